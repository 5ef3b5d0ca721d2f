"""Compiled loops of restricted Boltzmann machines, in single precision.

Random bits come from outside. Units are written over their inputs, which are ``scale * inputs + bias``, so that a
matrix product needs no second pass. The exponential is written out, since the compiler can then work on many at once;
so is the generator of random bits, for as many streams side by side.

All are called from Python. Operations that numpy does as fast are left to it, and plain loops over indices compile
several times faster than slices.
"""

import math

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
ZERO, ONE, TWO, HALF, FAR, LOWEST = (np.float32(x) for x in (0.0, 1.0, 2.0, 0.5, 87.0, -math.inf))
STEP = np.float32(2.0**-24)
MIDDLE = np.float32(2.0**-25)  # a uniform stands for the middle of its interval of 2⁻²⁴
BLOCK = 512  # factors 1 + e^{-|x|} ≤ 2 to a logarithm
LANES = 32  # streams of random bits that take turns
U7, U8, U9, U11, U21, U25 = (np.uint32(k) for k in (7, 8, 9, 11, 21, 25))
U1, U2, U3 = (np.uint8(k) for k in (1, 2, 3))
TURN = np.float32(2.0 * math.pi)


@jit_fused
def exp32(x):
    """Return e^x to single precision; x beyond ±87 counts as ±87."""
    x = min(max(x, -FAR), FAR)
    k = np.floor(x * LOG2_E + HALF)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    p = ONE + r * (ONE + r * (C2 + r * (C3 + r * (C4 + r * (C5 + r * (C6 + r * C7))))))
    return p * np.int32((np.int32(k) + np.int32(127)) << np.int32(23)).view(np.float32)


@jit
def fill(streams, words):
    """Write random bits to words (n, LANES), and move on the streams (4, LANES) that they come from: xoshiro128++.

    The generator is that of D. Blackman and S. Vigna, ACM Trans. Math. Softw. 47, 36 (2021).
    """
    for k in range(words.shape[0]):
        for j in range(LANES):
            a, b = streams[0, j], streams[1, j]
            total = np.uint32(a + streams[3, j])
            words[k, j] = ((total << U7) | (total >> U25)) + a
            c, d = streams[2, j] ^ a, streams[3, j] ^ b
            streams[0, j] = a ^ d
            streams[1, j] = b ^ c
            streams[2, j] = c ^ (b << U9)
            streams[3, j] = (d << U11) | (d >> U21)


@jit
def random_bits(streams, n, words):
    """Return the next n words of 32 random bits, and move on the streams. ``words`` has room for n + LANES."""
    blocks = -(-n // LANES)
    fill(streams, words[: blocks * LANES].reshape((blocks, LANES)))
    return words[:n]


@jit_fused
def uniform(word):
    """Return 0 ≤ u < 1 from the upper 24 of 32 random bits: all that single precision holds."""
    return np.float32(np.int32(word >> U8)) * STEP


@jit_fused
def bernoulli_sample(units, bias, scale, words):
    """Replace inputs (n, M) by units that are 1 with probability σ(scale inputs + bias); words (n, M) decide."""
    for i in range(units.shape[0]):
        for j in range(units.shape[1]):
            # u < 1/(1 + e^{-x}), without the division
            u = uniform(words[i, j])
            odds = exp32(-(scale * units[i, j] + bias[j]))
            units[i, j] = ONE if (u + MIDDLE) * odds < (ONE - u) - MIDDLE else ZERO


@jit_fused
def bernoulli_mean(units, bias, scale):
    """Replace inputs (n, M) by σ(scale inputs + bias)."""
    for i in range(units.shape[0]):
        for j in range(units.shape[1]):
            units[i, j] = ONE / (ONE + exp32(-(scale * units[i, j] + bias[j])))


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
    weights = np.empty(Q, np.float32)
    for i in range(units.shape[0]):
        for unit in range(words.shape[1]):
            first, top = unit * Q, LOWEST
            for q in range(Q):
                weights[q] = scale * units[i, first + q] + bias[first + q]
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
                units[i, first + q] = ONE if q == state else ZERO


@jit
def potts_mean(units, bias, scale, Q):
    """Replace inputs (n, L*Q) by the probabilities of the states of one-hot units, with weights as above."""
    for i in range(units.shape[0]):
        for first in range(0, units.shape[1], Q):
            top, total = LOWEST, ZERO
            for j in range(first, first + Q):
                units[i, j] = scale * units[i, j] + bias[j]
                top = max(top, units[i, j])
            for j in range(first, first + Q):
                units[i, j] = exp32(units[i, j] - top)
                total += units[i, j]
            for j in range(first, first + Q):
                units[i, j] /= total


@jit_fused
def hidden_means(inputs, bias, gaussian, share, z, total):
    """Write to z (rows, M) the means of hidden units, each row times its share, and their sum to total (M,).

    Their inputs (2, rows, M) come from two halves of the visible units.
    """
    for k in range(z.shape[0]):
        for j in range(z.shape[1]):
            z[k, j] = (inputs[0, k, j] + inputs[1, k, j]) + (bias[j] if gaussian else ZERO)
    if not gaussian:
        bernoulli_mean(z, bias, ONE)
    for j in range(z.shape[1]):
        total[j] = ZERO
    for k in range(z.shape[0]):
        for j in range(z.shape[1]):
            z[k, j] *= share[k]
            total[j] += z[k, j]


@jit_fused
def weighted_sum(rows, share, out):
    """Write to out (D,) the sum of rows (n, …), each times its share."""
    for j in range(out.shape[0]):
        out[j] = ZERO
    for k in range(share.shape[0]):
        for j in range(out.shape[0]):
            out[j] += share[k] * np.float32(rows[k, j])


# ---- products with features that are 0 and 1: four at a time, one of sixteen sums that are made before


@jit
def tabulate(rows, table):
    """Write to table (16 ⌈n/4⌉, M) the sums of all subsets of rows (n, M): of 4g … 4g + 3 from entry 16 g on."""
    for g in range((rows.shape[0] + 3) // 4):
        first = 16 * g
        for j in range(rows.shape[1]):
            table[first, j] = ZERO
        for t in range(min(4, rows.shape[0] - 4 * g)):
            for subset in range(first, first + (1 << t)):
                for j in range(rows.shape[1]):
                    table[subset + (1 << t), j] = table[subset, j] + rows[4 * g + t, j]


@jit
def list_subsets(bits, index, count):
    """Write the entries of a table whose sum is the product of each row of bits (n, 4 G), and their number.

    ``index`` is (n, G + 1): an entry is written at each step, and kept if it is not 0, which is faster than a branch.
    """
    for k in range(bits.shape[0]):
        n, row = 0, bits[k]
        for g in range(row.shape[0] // 4):
            subset = row[4 * g] | row[4 * g + 1] << U1 | row[4 * g + 2] << U2 | row[4 * g + 3] << U3
            index[k, n] = 16 * g + subset
            n += subset != 0
        count[k] = n


@jit
def sum_listed(index, count, table, out):
    """Write to each row of out (n, M) the sum of those entries of a table (…, M) that its list names.

    Four at a time: to read and write the sum costs as much as to add a row.
    """
    for k in range(out.shape[0]):
        n = count[k]
        for j in range(out.shape[1]):
            out[k, j] = ZERO
        for m in range(0, n - 3, 4):
            a, b, c, d = index[k, m], index[k, m + 1], index[k, m + 2], index[k, m + 3]
            for j in range(out.shape[1]):
                out[k, j] += (table[a, j] + table[b, j]) + (table[c, j] + table[d, j])
        for m in range(n - n % 4, n):
            a = index[k, m]
            for j in range(out.shape[1]):
                out[k, j] += table[a, j]


@jit
def list_columns(bits, subsets, index, count):
    """Do the same for the columns of bits (4 n, …), of which groups of four rows count; ``subsets`` (n, D) is room."""
    for r in range(subsets.shape[0]):
        a, b, c, d = bits[4 * r], bits[4 * r + 1], bits[4 * r + 2], bits[4 * r + 3]
        for i in range(subsets.shape[1]):
            subsets[r, i] = a[i] | b[i] << U1 | c[i] << U2 | d[i] << U3
    for i in range(subsets.shape[1]):
        n = 0
        for r in range(subsets.shape[0]):
            index[i, n] = 16 * r + subsets[r, i]
            n += subsets[r, i] != 0
        count[i] = n


@jit_sum
def climb(W, dvz, visible, hidden, rate, shrink):
    """Step up the likelihood with weights (D, M), in coordinates where the means are subtracted from the units.

    The weights multiply (v - mean)(z - hidden_mean), and the penalty does not change the inputs at the means.
    ``visible`` is the fields, the means and the gradient of v, all (D,); ``hidden`` the means, the gradient of z and
    space for the decrease of the biases by the step, all (M,).
    """
    (b, mean, dv), (hidden_mean, dz, back) = visible, hidden
    for j in range(W.shape[1]):
        back[j] = ZERO
    for i in range(W.shape[0]):
        m, d, along = mean[i], dv[i], ZERO
        for j in range(W.shape[1]):
            step = dvz[i, j] - m * dz[j] - d * hidden_mean[j] - shrink * W[i, j]
            W[i, j] += rate * step
            along += step * hidden_mean[j]
            back[j] += m * step
        b[i] += rate * (d - along)


@jit_sum
def softplus_sums(inputs, bias, scale, out):
    """Add to out (n,) the sums of log(1 + e^x) over units x = scale inputs + bias, for inputs (n, M ≤ BLOCK)."""
    for i in range(inputs.shape[0]):
        positive, product = 0.0, 1.0
        for j in range(inputs.shape[1]):
            x = scale * inputs[i, j] + bias[j]
            positive += max(x, 0.0)
            product *= 1.0 + exp32(np.float32(-abs(x)))
        out[i] += positive + math.log(product)


def log_norms(gaussian, inputs, bias, scale):
    """Return the log of the summed weight of the hidden units (n,), for inputs (n, M) in single precision.

    Units are ``scale * inputs + bias``, with a bias (M,) and a scale in double precision.
    """
    if gaussian:
        x = np.float64(scale) * inputs + bias
        return 0.5 * np.einsum("ij,ij->i", x, x)
    out = np.zeros(len(inputs))
    for first in range(0, len(bias), BLOCK):
        some = slice(first, first + BLOCK)
        softplus_sums(np.ascontiguousarray(inputs[:, some]), bias[some], scale, out)
    return out
