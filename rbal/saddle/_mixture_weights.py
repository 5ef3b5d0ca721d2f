r"""The weight side of a mixture: traces of resolvents, their derivatives, and the multiplier of the sphere.

With :math:`A = \hat k + \sum_h \hat x_h C_h`, :math:`S = \sum_h \hat q_h C_h`, :math:`W = \sum_c \hat m_c v_c` and
:math:`B = A^{-1}SA^{-1}/L + A^{-1}WW^\top A^{-1}`, the second moment of the weights,

.. math:: x_h = \tfrac1L\operatorname{tr} C_hA^{-1},\qquad q_h = \operatorname{tr} C_hB,\qquad
          m_c = v_c^\top A^{-1}W,\qquad \text{norm} = \operatorname{tr} B,

where centres :math:`v_c` are divided by :math:`\sqrt L`. In a basis that diagonalises every :math:`C_h` these are sums,
which are compiled. Otherwise :math:`A` is factorised once a step.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, eigh, lapack

from .._support.gauss import jit, jit_sum
from ._equations import RIDGE, SAT, SMALL


@jit_sum
def norm_and_slope(mode, zeta, above, g, pull, g_null):
    """Return the norm and its derivative in ζ, for A = ζ + above and pull = g S + W², all (n,)."""
    n2 = n3 = g1 = g2 = 0.0
    for i in range(above.size):
        a = 1.0 / (zeta + above[i])
        p = pull[i] * a * a
        n2 += p
        n3 += p * a
        g1 += g[i] * a
        g2 += g[i] * a * a
    if mode == SAT:  # the entropy of the weights, 1/L tr A⁻¹, shares the norm with the pull of the data
        return n2 + g1 + g_null / zeta, -2.0 * n3 - g2 - g_null / zeta**2
    return n2, -2.0 * n3


@jit
def solve_norm(mode, norm, above, g, pull, g_null, guess):
    """Return ζ with ‖J‖²/L = norm: the norm falls monotonically in ζ, and its inverse square root is nearly linear.

    Weight in directions that neither vary nor separate costs nothing, so ζ = 0 if the others fall short of the norm.
    """
    lowest, entropy, total = math.inf, g_null, 0.0
    for i in range(above.size):
        lowest = min(lowest, above[i])
        entropy += g[i]
        total += pull[i]
    if mode != SAT:
        entropy = 0.0
        if g_null > 0.0 and lowest > 0.0 and norm_and_slope(mode, 0.0, above, g, pull, g_null)[0] <= norm:
            return 0.0
    lo, hi = 0.0, (entropy + math.sqrt(entropy * entropy + 4.0 * norm * total)) / (2.0 * norm)
    zeta = guess if 0.0 < guess < hi else hi
    for _ in range(200):
        value, slope = norm_and_slope(mode, zeta, above, g, pull, g_null)
        if value > norm:
            lo = zeta
        else:
            hi = zeta
        new = zeta + 2.0 * value / slope * (1.0 - math.sqrt(value / norm))
        if abs(new - zeta) <= SMALL * zeta:
            return new
        if not lo < new < hi:
            new = 0.5 * (lo + hi) if lo > 0.0 else 0.1 * hi
        if hi - lo <= 4e-16 * hi:
            return new
        zeta = new
    return zeta


@jit
def smallest(above, g_null):
    """Return the smallest eigenvalue of A - k̂, which is 0 where there are free directions."""
    low = 0.0 if g_null > 0.0 else math.inf
    for i in range(above.size):
        low = min(low, above[i])
    return low


@jit_sum
def resolvent(problem, block, hats, y, W, pull, a):
    """Write W (n,), the pull (g S + W²)/A² (n,) and 1/A (n,), and ζ to y."""
    lam, g, v = block.lam, block.g, block.v
    G, n = lam.shape
    N = 2 * G + v.shape[0]
    for i in range(n):
        W[i] = pull[i] = a[i] = 0.0
    for h in range(G):
        for i in range(n):
            a[i] += hats[G + h] * lam[h, i]
            pull[i] += hats[h] * lam[h, i]
    for c in range(v.shape[0]):
        for i in range(n):
            W[i] += hats[2 * G + c] * v[c, i]
    for i in range(n):
        pull[i] = g[i] * pull[i] + W[i] * W[i]
    if problem.mode == RIDGE:
        y[N + 1] = problem.ridge
    else:
        low = smallest(a, block.g_null)
        for i in range(n):
            a[i] -= low
        y[N + 1] = solve_norm(problem.mode, problem.norm, a, g, pull, block.g_null, y[N + 1])
    for i in range(n):
        a[i] = 1.0 / (y[N + 1] + a[i])
        pull[i] *= a[i] * a[i]


@jit_sum
def diagonal_side(problem, block, hats, y, value, jac):
    """Write q, x, m and the norm to value (N + 1,), and their derivatives in q̂, x̂, m̂ and k̂ to jac (N + 1, N + 1)."""
    lam, g, v = block.lam, block.g, block.v
    G, n = lam.shape
    K = v.shape[0]
    N, W, pull, a = 2 * G + K, np.empty(n), np.empty(n), np.empty(n)
    resolvent(problem, block, hats, y, W, pull, a)
    value[:] = 0.0
    jac[:] = 0.0
    spread, pull_a, weighted, va = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        spread[i], pull_a[i], weighted[i] = g[i] * a[i] * a[i], pull[i] * a[i], W[i] * a[i] * a[i]
    for h in range(G):
        q = x = qk = xk = 0.0
        for i in range(n):
            q += lam[h, i] * pull[i]
            x += lam[h, i] * g[i] * a[i]
            qk += lam[h, i] * pull_a[i]
            xk += lam[h, i] * spread[i]
        value[h], value[G + h] = q, x
        jac[h, N], jac[G + h, N] = -2.0 * qk, -xk
        jac[N, h], jac[N, G + h] = xk, -2.0 * qk
        for k in range(h + 1):
            t = u = 0.0
            for i in range(n):
                t += lam[h, i] * lam[k, i] * spread[i]
                u += lam[h, i] * lam[k, i] * pull_a[i]
            jac[h, k] = jac[k, h] = t
            jac[G + h, G + k] = jac[G + k, G + h] = -t
            jac[h, G + k] = jac[k, G + h] = -2.0 * u
        for c in range(K):
            t = 0.0
            for i in range(n):
                t += lam[h, i] * v[c, i] * weighted[i]
            jac[h, 2 * G + c], jac[2 * G + c, G + h] = 2.0 * t, -t
    for c in range(K):
        m = mk = 0.0
        for i in range(n):
            va[i] = v[c, i] * a[i]
            m += va[i] * W[i]
            mk += v[c, i] * weighted[i]
        value[2 * G + c] = m
        jac[2 * G + c, N], jac[N, 2 * G + c] = -mk, 2.0 * mk
        for d in range(c + 1):
            t = 0.0
            for i in range(n):
                t += va[i] * v[d, i]
            jac[2 * G + c, 2 * G + d] = jac[2 * G + d, 2 * G + c] = t
    write_norm(problem, block.g_null, Sums(g, a, pull, spread), y[N + 1], value, jac)


class Sums(NamedTuple):
    """Terms of the sums over directions, (n,) each."""

    g: np.ndarray
    a: np.ndarray  # 1/A
    pull: np.ndarray  # (g S + W²)/A²
    spread: np.ndarray  # g/A²


@jit
def write_norm(problem, g_null, sums, zeta, value, jac):
    """Write the norm and its slope in k̂. On the sphere with ζ = 0 the norm is slack, and k̂ has no derivatives."""
    g, a, pull, spread = sums
    N = value.size - 1
    value[N] = pull.sum()
    if problem.mode == RIDGE or zeta <= 0.0:
        return
    jac[N, N] = -2.0 * (pull * a).sum()
    if problem.mode == SAT:  # the entropy of the weights, 1/L tr A⁻¹, shares the norm with the pull of the data
        value[N] += (g * a).sum() + g_null / zeta
        jac[N, N] -= spread.sum() + g_null / zeta**2
        G = problem.n_shapes
        for h in range(G):
            jac[N, G + h] -= jac[N, h]


def dense_side(problem, block, hats, y, value, jac):
    """Write the same for covariances that share no basis; return False if A is not positive."""
    G, K, L = problem.n_shapes, problem.alpha.size, block.L
    N, mode = 2 * G + K, problem.mode
    q_hat, x_hat, m_hat = hats[:G], hats[G : 2 * G], hats[2 * G :]
    flat = block.flat
    above, S = (np.stack([x_hat, q_hat]) @ flat).reshape(2, *block.C.shape[1:])  # one pass over the covariances
    W = m_hat @ block.v
    out = x_hat @ block.lam_out
    if mode == RIDGE:
        y[N + 1] = problem.ridge
        inverse = inverse_of(above, problem.ridge)
        if inverse is None:
            return False
    else:
        levels, basis = eigh(above, driver="evd", check_finite=False)
        shift = smallest(np.r_[levels, out], block.g_null)
        rotated = basis.T @ S
        pull = np.einsum("ij,ji->i", rotated, basis) / L + (W @ basis) ** 2
        pulls = np.r_[pull, (q_hat @ block.lam_out) * block.g_out]
        above = np.r_[levels, out] - shift
        y[N + 1] = solve_norm(mode, problem.norm, above, block.g, pulls, block.g_null, y[N + 1])
        half = basis / np.sqrt(y[N + 1] + levels - shift)
        inverse, out = half @ half.T, out - shift
    a_out = 1.0 / (y[N + 1] + out)
    pull_out = (q_hat @ block.lam_out) * block.g_out * a_out**2
    p = inverse @ W
    second = _sandwich(inverse, S)
    second /= L
    second += np.outer(p, p)
    jac[:] = 0.0
    both = flat @ np.stack([second.ravel(), inverse.ravel()], axis=1)
    value[:G] = both[:, 0] + block.lam_out @ pull_out
    value[G : 2 * G] = both[:, 1] / L + block.lam_out @ (block.g_out * a_out)
    Av = block.v @ inverse
    value[2 * G : N] = Av @ W
    _write_traces(block, inverse, second, p, jac)
    spread, pull_a = block.g_out * a_out**2, pull_out * a_out
    jac[:G, :G] += (block.lam_out * spread) @ block.lam_out.T
    jac[:G, G : 2 * G] -= 2.0 * (block.lam_out * pull_a) @ block.lam_out.T
    jac[G : 2 * G, G : 2 * G] = -jac[:G, :G]
    Cp = block.C @ p
    jac[:G, 2 * G : N] = 2.0 * Cp @ Av.T
    jac[2 * G : N, G : 2 * G] = -Av @ Cp.T
    jac[2 * G : N, 2 * G : N] = Av @ block.v.T
    value[N] = np.trace(second) + pull_out.sum()
    if mode != RIDGE:
        weights, outside = Weights(inverse, second, p, Av), Outside(a_out, spread, pull_a)
        _write_multiplier(problem, block, weights, outside, y[N + 1], value, jac)
    return True


def inverse_of(above, ridge):
    """Return (ridge + above)⁻¹ by Cholesky's factorisation, None if it is not positive."""
    A = above.copy()
    A.flat[:: len(A) + 1] += ridge
    factor, info = lapack.dpotrf(A.T, lower=1, overwrite_a=1)
    if info:
        return None
    inverse, info = lapack.dpotri(factor, lower=1, overwrite_c=1)
    inverse = inverse + inverse.T  # the factorisation leaves zeros above its diagonal
    inverse.flat[:: len(A) + 1] *= 0.5
    return inverse if info == 0 else None


def _sandwich(inverse, S):
    """Return A⁻¹SA⁻¹ as the square of A⁻¹ times a root of S, which takes half the time of two products."""
    root, info = lapack.dpotrf(S.T, lower=1)
    if info:  # some direction does not vary, or only within rounding
        return inverse @ S @ inverse
    half = blas.dtrmm(1.0, root, inverse.T, side=1, lower=1)
    return half @ half.T


def _write_traces(block, inverse, second, p, jac):
    """Write tr C A⁻¹CA⁻¹/L and -2 tr C A⁻¹CB, exact or from probes Z with ⟨ZZᵀ⟩ = 1."""
    G, L = len(block.C), block.L
    if block.probes is None:
        left = block.C @ inverse  # its transpose is A⁻¹C
        flipped = np.swapaxes(left, 1, 2).reshape(G, -1)
        jac[:G, :G] = left.reshape(G, -1) @ flipped.T / L
        jac[:G, G : 2 * G] = -2.0 * flipped @ (block.C @ second).reshape(G, -1).T
        return
    Cp = block.C @ p
    trace = second - np.outer(p, p)  # the rank-one part is exact without probes
    probed = block.probed.reshape(G, -1)
    t = probed @ (inverse @ (block.C @ (inverse @ block.probes))).reshape(G, -1).T / L
    u = probed @ (inverse @ (block.C @ (trace @ block.probes))).reshape(G, -1).T + Cp @ (inverse @ Cp.T)
    jac[:G, :G], jac[:G, G : 2 * G] = 0.5 * (t + t.T), -(u + u.T)


class Weights(NamedTuple):
    """The weights within the directions of a dense block."""

    inverse: np.ndarray  # A⁻¹
    second: np.ndarray  # B, their second moment
    p: np.ndarray  # A⁻¹W, their mean
    Av: np.ndarray  # (K, k) A⁻¹v of each centre


class Outside(NamedTuple):
    """The terms of the sums over directions outside of a dense block."""

    a: np.ndarray
    spread: np.ndarray
    pull_a: np.ndarray


def _write_multiplier(problem, block, weights, outside, zeta, value, jac):
    """Write the derivatives in k̂, and those of the norm."""
    inverse, second, p, Av = weights
    a_out, spread, pull_a = outside
    G, L, N = problem.n_shapes, block.L, value.size - 1
    squared, mixed = inverse @ inverse / L, inverse @ second
    by_x = block.flat @ squared.ravel() + block.lam_out @ spread
    by_q = block.flat @ mixed.ravel() + block.lam_out @ pull_a
    by_m = Av @ p
    jac[:G, N], jac[G : 2 * G, N], jac[2 * G : N, N] = -2.0 * by_q, -by_x, -by_m
    jac[N, :G], jac[N, G : 2 * G], jac[N, 2 * G : N] = by_x, -2.0 * by_q, 2.0 * by_m
    if zeta <= 0.0:
        return
    jac[N, N] = -2.0 * (np.trace(mixed) + pull_a.sum())
    if problem.mode == SAT:
        value[N] += np.trace(inverse) / L + block.g_out @ a_out + block.g_null / zeta
        jac[N, N] -= np.trace(squared) + spread.sum() + block.g_null / zeta**2
        jac[N, G : 2 * G] -= by_x
