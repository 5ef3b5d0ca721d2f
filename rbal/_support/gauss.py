"""Scalar Gaussian functions and fixed quadrature nodes, compiled.

Nothing here knows about classifiers. Everything stays accurate in the tails, where the saddle point of a strongly
imbalanced problem lives.
"""

import math

import numpy as np

from .jit import compiled

jit = compiled()
# Sums may be reordered so that they vectorise; NaN and infinity stay honest.
jit_sum = compiled(fastmath={"reassoc", "contract"})

SQRT2 = math.sqrt(2.0)
INV_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)

# Nodes on [0, 1]. Twelve integrate a Gaussian times a cubic over one standard deviation to rounding.
_x, _w = np.polynomial.legendre.leggauss(12)
GL_NODES, GL_WEIGHTS = 0.5 * (_x + 1.0), 0.5 * _w

Z_MAX = 8.5  # a Gaussian has mass 2e-17 beyond


@jit
def pdf(t):
    return INV_SQRT_2PI * math.exp(-0.5 * t * t)


@jit
def cdf(t):
    return 0.5 * math.erfc(-t / SQRT2)


@jit
def interval(t1, t2):
    """Φ(t2) - Φ(t1) for t1 ≤ t2, taken in the tail where no digits are lost."""
    if t1 > 0.0:
        return cdf(-t1) - cdf(-t2)
    return cdf(t2) - cdf(t1)


def _excess(t):
    """h - t at t ≥ 3 by Laplace's continued fraction, deep enough for rounding."""
    excess = 0.0
    for k in range(60, 0, -1):
        excess = k / (t + excess)
    return excess


# (4 + t)(h - t) for t ≥ 3 is a smooth function of v = 14/(4 + t) - 1 on [-1, 1], and this is its polynomial.
_v = np.polynomial.chebyshev.chebpts1(20)
EXCESS_POWERS = np.polynomial.Chebyshev.fit(_v, 14.0 / (1.0 + _v) * _excess(14.0 / (1.0 + _v) - 4.0), 19, [-1, 1])
EXCESS_POWERS = np.polynomial.chebyshev.cheb2poly(EXCESS_POWERS.coef)


@jit
def mills(t):
    """h = φ(t)/H(t) and h - t, where H = 1 - Φ; neither loses digits as t → ∞."""
    if t < 3.0:
        h = pdf(t) / cdf(-t)
        return h, h - t
    u = 1.0 / (4.0 + t)
    v, excess = 14.0 * u - 1.0, EXCESS_POWERS[-1]
    for k in range(EXCESS_POWERS.size - 2, -1, -1):
        excess = excess * v + EXCESS_POWERS[k]
    excess *= u
    return t + excess, excess


# Laurent coefficients of h - t at infinity: 1/t - 2/t³ + 10/t⁵ - …
_EXCESS = np.array([1.0, -2.0, 10.0, -74.0, 706.0, -8162.0, 110410.0, -1708394.0])


@jit
def mills_curvatures(t, h, excess):
    """First, second and third derivative of h at t, for h and h - t as :func:`mills` gives them."""
    h1 = h * excess
    if t < 20.0:
        h2 = h1 * excess + h * (h1 - 1.0)
        return h1, h2, h2 * (h + excess) + 2.0 * h1 * (h1 - 1.0)
    h2 = h3 = 0.0  # differences of nearly equal numbers here: differentiate the series instead
    for k in range(_EXCESS.size - 1, -1, -1):
        factor = _EXCESS[k] * (2.0 * k + 1.0) * (2.0 * k + 2.0)
        h2 = h2 / (t * t) + factor
        h3 = h3 / (t * t) - factor * (2.0 * k + 3.0)
    return h1, h2 / t**3, h3 / t**4


@jit
def log_sf(t):
    """log H(t), for any t."""
    if t < 3.0:
        return math.log(cdf(-t))
    return -0.5 * t * t + math.log(INV_SQRT_2PI) - math.log(mills(t)[0])
