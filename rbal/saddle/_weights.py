"""The weight side: sums over the spectrum, compiled. Notation as in the paper."""

import math
from typing import NamedTuple

from .._support.gauss import jit, jit_sum
from ._problem import SAT, SMALL


class Sums(NamedTuple):
    """Σ g λᵏ for k = 0, 1, 2, and Σ s λᵏ for k = 0, 1."""

    g0: float
    g1: float
    g2: float
    s0: float
    s1: float


@jit
def sums(spectrum):
    """Return the sums over a spectrum."""
    g0 = g1 = g2 = s0 = s1 = 0.0
    for i in range(spectrum.lam.size):
        lam, g, s = spectrum.lam[i], spectrum.g[i], spectrum.s[i]
        g0 += g
        g1 += g * lam
        g2 += g * lam * lam
        s0 += s
        s1 += s * lam
    return Sums(g0, g1, g2, s0, s1)


@jit_sum
def weight_side(mode, spectrum, shift, zeta, hats, value, jac):
    """Write (norm, q, x, r) to value (4,), and derivatives in (ζ, x̂, q̂, r̂) to jac (4, 4); A = ζ + x̂(λ - shift)."""
    x_hat, q_hat, r_hat = hats
    lam, g, s = spectrum.lam, spectrum.g, spectrum.s
    n2 = n3 = n3d = q2 = q3 = q3d = gl1 = gl2 = gl2d = gll2 = s1 = s2 = s2d = sl2 = g1 = g2 = g2d = 0.0
    r_hat2 = r_hat * r_hat
    for i in range(lam.size):
        v, d = lam[i], lam[i] - shift
        a = 1.0 / (zeta + x_hat * d)
        gl, si, a2 = g[i] * v, s[i], a * a
        pull = (q_hat * gl + r_hat2 * si) * a2
        n2 += pull
        n3 += pull * a
        n3d += pull * a * d
        q2 += pull * v
        q3 += pull * v * a
        q3d += pull * v * a * d
        gl1 += gl * a
        gl2 += gl * a2
        gl2d += gl * a2 * d
        gll2 += gl * v * a2
        s1 += si * a
        s2 += si * a2
        s2d += si * a2 * d
        sl2 += si * v * a2
        g1 += g[i] * a
        g2 += g[i] * a2
        g2d += g[i] * a2 * d
    value[0], value[1], value[2], value[3] = n2, q2, gl1, r_hat * s1
    jac[0, 0], jac[0, 1], jac[0, 2], jac[0, 3] = -2.0 * n3, -2.0 * n3d, gl2, 2.0 * r_hat * s2
    jac[1, 0], jac[1, 1], jac[1, 2], jac[1, 3] = -2.0 * q3, -2.0 * q3d, gll2, 2.0 * r_hat * sl2
    jac[2, 0], jac[2, 1], jac[2, 2], jac[2, 3] = -gl2, -gl2d, 0.0, 0.0
    jac[3, 0], jac[3, 1], jac[3, 2], jac[3, 3] = -r_hat * s2, -r_hat * s2d, 0.0, s1
    if mode == SAT:  # the entropy of the weights, 1/L tr A⁻¹, shares the norm with the pull of the data
        value[0] += g1 + spectrum.g_null / zeta
        jac[0, 0] -= g2 + spectrum.g_null / zeta**2
        jac[0, 1] -= g2d


@jit_sum
def norm_and_slope(mode, spectrum, zeta, x_hat, q_hat, r_hat2):
    """Return the norm and its derivative in ζ, as in the first row of ``weight_side``, for the root search."""
    lam, g, s, shift = spectrum.lam, spectrum.g, spectrum.s, spectrum.shift
    n2 = n3 = g1 = g2 = 0.0
    for i in range(lam.size):
        a = 1.0 / (zeta + x_hat * (lam[i] - shift))
        pull = (q_hat * g[i] * lam[i] + r_hat2 * s[i]) * a * a
        n2 += pull
        n3 += pull * a
        g1 += g[i] * a
        g2 += g[i] * a * a
    if mode == SAT:
        return n2 + g1 + spectrum.g_null / zeta, -2.0 * n3 - g2 - spectrum.g_null / zeta**2
    return n2, -2.0 * n3


@jit
def solve_norm(mode, spectrum, norm, x_hat, q_hat, r_hat, guess):
    """Return ζ with ‖J‖²/L = norm: the norm falls monotonically in ζ, and its inverse square root is nearly linear.

    Weight in directions that neither vary nor separate costs nothing, so ζ = 0 if the others fall short of the norm.
    """
    r_hat2 = r_hat * r_hat
    free = mode != SAT and spectrum.g_null > 0.0 and spectrum.lam[0] > 0.0
    if free and norm_and_slope(mode, spectrum, 0.0, x_hat, q_hat, r_hat2)[0] <= norm:
        return 0.0
    m = sums(spectrum)
    total = q_hat * m.g1 + r_hat2 * m.s0
    entropy = m.g0 + spectrum.g_null if mode == SAT else 0.0
    lo, hi = 0.0, (entropy + math.sqrt(entropy * entropy + 4.0 * norm * total)) / (2.0 * norm)
    zeta = guess if 0.0 < guess < hi else hi
    for _ in range(200):
        value, slope = norm_and_slope(mode, spectrum, zeta, x_hat, q_hat, r_hat2)
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
