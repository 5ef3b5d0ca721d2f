"""Compiled loops of restricted Boltzmann machines, in single precision.

Random bits come from outside. Units are written over their inputs, which are ``scale * inputs + bias``, so that a
matrix product needs no second pass. The exponential is written out, since the compiler can then work on many at once;
so is the generator of random bits, for as many streams side by side.
"""

import math
from typing import NamedTuple

import numpy as np

from .._support.jit import compiled

# As in _support/gauss.py, and other threads go on meanwhile.
jit = compiled(nogil=True)
jit_sum = compiled(fastmath={"reassoc", "contract"}, nogil=True)
# Products may be fused with sums; the order of sums stays, where digits depend on it.
jit_fused = compiled(fastmath={"contract"}, nogil=True)

LOG2_E = np.float32(1.0 / math.log(2.0))
LN2_HIGH = np.float32(0.693359375)  # few digits, so that a product with a small integer is exact
LN2_LOW = np.float32(math.log(2.0) - 0.693359375)
C2, C3, C4, C5, C6, C7 = (np.float32(1.0 / math.factorial(k)) for k in range(2, 8))
ZERO, ONE, TWO, HALF, FAR = (np.float32(x) for x in (0.0, 1.0, 2.0, 0.5, 87.0))
STEP = np.float32(2.0**-24)
MIDDLE = np.float32(2.0**-25)  # a uniform stands for the middle of its interval of 2⁻²⁴
BLOCK = 512  # factors 1 + e^{-|x|} ≤ 2 to a logarithm
LANES = 32  # streams of random bits that take turns
U7, U8, U9, U11, U21, U25 = (np.uint32(k) for k in (7, 8, 9, 11, 21, 25))
TURN = np.float32(2.0 * math.pi)


class ByState(NamedTuple):
    """Parameters of a machine, with those of the visible units for each of their states."""

    gaussian: bool  # whether the hidden units are
    W: np.ndarray  # (L, Q, M)
    b: np.ndarray  # (L, Q)
    c: np.ndarray  # (M,)


@jit_fused
def exp32(x):
    """Return e^x to single precision; x beyond ±87 counts as ±87."""
    x = min(max(x, -FAR), FAR)
    k = np.floor(x * LOG2_E + HALF)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    p = ONE + r * (ONE + r * (C2 + r * (C3 + r * (C4 + r * (C5 + r * (C6 + r * C7))))))
    return p * np.int32((np.int32(k) + np.int32(127)) << np.int32(23)).view(np.float32)


@jit
def random_bits(streams, n, words):
    """Return the next n words of 32 random bits, and move on the streams (4, LANES) that they come from: xoshiro128++.

    The generator is that of D. Blackman and S. Vigna, ACM Trans. Math. Softw. 47, 36 (2021). ``words`` has room for
    n + LANES.
    """
    a, b, c, d = streams[0], streams[1], streams[2], streams[3]
    for k in range(0, n, LANES):
        out = words[k : k + LANES]
        for j in range(LANES):
            total = np.uint32(a[j] + d[j])
            out[j] = np.uint32(((total << U7) | (total >> U25)) + a[j])
            c_new, d_new, shifted = c[j] ^ a[j], d[j] ^ b[j], b[j] << U9
            b[j] ^= c_new
            a[j] ^= d_new
            c[j] = c_new ^ shifted
            d[j] = (d_new << U11) | (d_new >> U21)
    return words[:n]


@jit_fused
def uniform(word):
    """Return 0 ≤ u < 1 from the upper 24 of 32 random bits: all that single precision holds."""
    return np.float32(np.int32(word >> U8)) * STEP


@jit_fused
def bernoulli_sample(units, bias, scale, words):
    """Replace inputs (n, M) by units that are 1 with probability σ(scale inputs + bias); words (n, M) decide."""
    for i in range(units.shape[0]):
        row, bits = units[i], words[i]
        for j in range(row.shape[0]):
            # u < 1/(1 + e^{-x}), without the division
            u = uniform(bits[j])
            odds = exp32(-(scale * row[j] + bias[j]))
            row[j] = ONE if (u + MIDDLE) * odds < (ONE - u) - MIDDLE else ZERO


@jit_fused
def bernoulli_mean(units, bias, scale):
    """Replace inputs (n, M) by σ(scale inputs + bias)."""
    for i in range(units.shape[0]):
        row = units[i]
        for j in range(row.shape[0]):
            row[j] = ONE / (ONE + exp32(-(scale * row[j] + bias[j])))


@jit_fused
def normal_sample(units, bias, words):
    """Add bias and normal deviates to inputs (n, M): two deviates from two of the words (Box and Muller)."""
    x, M = units.reshape(units.size), units.shape[1]
    for k in range(0, x.shape[0], 2):
        radius, angle = math.sqrt(-TWO * math.log(uniform(words[k]) + MIDDLE)), TURN * uniform(words[k + 1])
        x[k] += bias[k % M] + radius * math.cos(angle)
        if k + 1 < x.shape[0]:
            x[k + 1] += bias[(k + 1) % M] + radius * math.sin(angle)


@jit
def potts_sample(units, bias, scale, Q, words):
    """Replace inputs (n, L*Q) by one-hot states of weights exp(scale inputs + bias); words (n, L) decide."""
    L = bias.shape[0] // Q
    weights = np.empty(Q, np.float32)
    for i in range(units.shape[0]):
        for unit in range(L):
            row, h = units[i, unit * Q : (unit + 1) * Q], bias[unit * Q : (unit + 1) * Q]
            top = -np.float32(np.inf)
            for q in range(Q):
                weights[q] = scale * row[q] + h[q]
                top = max(top, weights[q])
            for q in range(Q):
                weights[q] = exp32(weights[q] - top)
            total = ZERO
            for q in range(Q):
                total += weights[q]
                weights[q] = total
            mark, state = (uniform(words[i, unit]) + MIDDLE) * total, 0
            for q in range(Q - 1):
                state += weights[q] <= mark
            for q in range(Q):
                row[q] = ZERO
            row[state] = ONE


@jit
def potts_mean(units, bias, scale, Q):
    """Replace inputs (n, L*Q) by the probabilities of the states of one-hot units, with weights as above."""
    for i in range(units.shape[0]):
        for start in range(0, bias.shape[0], Q):
            row, top, total = units[i, start : start + Q], -np.float32(np.inf), ZERO
            for q in range(Q):
                row[q] = scale * row[q] + bias[start + q]
                top = max(top, row[q])
            for q in range(Q):
                row[q] = exp32(row[q] - top)
                total += row[q]
            for q in range(Q):
                row[q] /= total


@jit_sum
def softplus_sum(inputs, shift, bias, scale):
    """Return Σ log(1 + e^x) over the units x = scale (inputs + shift) + bias of one row; all are (M,)."""
    total, n = 0.0, inputs.shape[0]
    for start in range(0, n, BLOCK):
        row, s, b = inputs[start : start + BLOCK], shift[start : start + BLOCK], bias[start : start + BLOCK]
        positive, product = 0.0, 1.0
        for j in range(row.shape[0]):
            x = scale * (np.float64(row[j]) + s[j]) + b[j]
            positive += max(x, 0.0)
            product *= 1.0 + np.float64(exp32(np.float32(-abs(x))))
        total += positive + math.log(product)
    return total


@jit_sum
def half_squares(inputs, shift, bias, scale):
    """Return Σ x²/2 over the units of one row, as above."""
    total = 0.0
    for j in range(inputs.shape[0]):
        x = scale * (np.float64(inputs[j]) + shift[j]) + bias[j]
        total += 0.5 * x * x
    return total


@jit
def log_norm(gaussian, inputs, shift, bias, scale):
    """Return the log of the summed weight of the hidden units of one row."""
    return half_squares(inputs, shift, bias, scale) if gaussian else softplus_sum(inputs, shift, bias, scale)


@jit
def log_norms(gaussian, inputs, bias, scale, out):
    """Write the ``log_norm`` of each row of inputs (n, M) to out (n,)."""
    nothing = np.zeros(inputs.shape[1], np.float32)
    for i in range(inputs.shape[0]):
        out[i] = log_norm(gaussian, inputs[i], nothing, bias, scale)


@jit
def conditionals(by_state, states, sites, inputs, out):
    """Write log p(v_i | the other sites) to out (n, k), for sites i (n, k) of states v (n, L) with inputs Wᵀv."""
    gaussian, W, b, c = by_state
    Q = W.shape[1]
    logs = np.empty(Q)
    shift, nothing = np.empty(W.shape[2], np.float32), np.zeros(W.shape[2], np.float32)
    for k in range(states.shape[0]):
        here = log_norm(gaussian, inputs[k], nothing, c, ONE)
        for s in range(sites.shape[1]):
            i, now = sites[k, s], states[k, sites[k, s]]
            for q in range(Q):
                logs[q] = b[i, q] + here
                if q != now:
                    for j in range(shift.shape[0]):
                        shift[j] = W[i, q, j] - W[i, now, j]
                    logs[q] = b[i, q] + log_norm(gaussian, inputs[k], shift, c, ONE)
            top = logs.max()
            out[k, s] = logs[now] - top - math.log(np.exp(logs - top).sum())
