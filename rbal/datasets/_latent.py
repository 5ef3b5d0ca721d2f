"""A Gaussian behind discrete variables: thresholds, and what they make of its correlations.

Correlations are held as angles, ρ = sin θ: what thresholds make of them then has a bounded slope, and ρ = ±1 no edge.
"""

import math
from functools import partial

import numpy as np
from scipy.special import ndtri

from .._support.gauss import cdf, jit
from .._support.validation import in_range, real_array

TWO_PI = 2.0 * math.pi
# Twenty nodes on [0, 1] give both integrals below to rounding.
_x, _w = np.polynomial.legendre.leggauss(20)
NODES, WEIGHTS = 0.5 * (_x + 1.0), 0.5 * _w
DIRECT = math.asin(0.9)  # beyond this angle Plackett's integrand has too sharp a drop for twenty nodes


def gaussian_root(name, cov):
    """Return A (D, D) with AAᵀ = cov: Cholesky's, or from the eigenvectors where cov is singular."""
    try:
        return np.linalg.cholesky(cov)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(cov)
    # latent correlations are solved to rounding themselves: hence no finer than 1e-12
    floor = max(1e-12, 10 * len(values) * np.finfo(float).eps) * np.abs(values).max()
    if values[0] < -floor:
        raise ValueError(f"{name} must have no negative eigenvalue, got {values[0]:.3g}")
    return vectors * np.sqrt(np.maximum(values, 0.0))


def checked_correlation(name, value, L):
    """Return the value as a symmetric (L, L) array with 1 on its diagonal, when it is one up to rounding."""
    R = real_array(name, value, 2)
    if R.shape != (L, L):
        raise ValueError(f"{name} must have shape ({L}, {L}), got {R.shape}")
    off = max(np.abs(R - R.T).max(), np.abs(np.diagonal(R) - 1.0).max())
    if off > 1e-10:
        raise ValueError(f"{name} must be symmetric with 1 on its diagonal, got a deviation of {off:.3g}")
    R = 0.5 * (in_range(name, R, -1.0 - 1e-10, 1.0 + 1e-10) + R.T)
    return np.clip(R, -1.0, 1.0)


def check_variances(diagonal, midpoint, average):
    """Refuse a diagonal (L,) that does not lie between the two conventions, up to rounding."""
    miss = np.maximum(diagonal - midpoint, average - diagonal)
    i = int(np.argmax(miss))
    if miss[i] > 1e-8:
        raise ValueError(
            f"cov must have the variances of the spins on its diagonal, between {average[i]:.6g} and {midpoint[i]:.6g} "
            f"at spin {i}, got {diagonal[i]:.6g}"
        )


@jit
def search(values, edges):
    """Count how many of its site's edges (L, Q-1) are at or below each value (n, L): the state it falls into."""
    n, L = values.shape
    found = np.empty((n, L), dtype=np.int64)
    for k in range(n):
        for i in range(L):
            count = 0
            for t in range(edges.shape[1]):  # no early exit: comparisons of a whole row are made at once
                count += values[k, i] >= edges[i, t]
            found[k, i] = count
    return found


@jit
def _owen(h, ah):
    """Return Owen's T(h, a) for h ≥ 0, given h and ah ≥ 0, not both 0."""
    if ah > h:  # turned over, so that the integral ends at 1 or before
        p, q = cdf(-h), cdf(-ah)
        return 0.5 * (p + q) - p * q - _owen_short(ah, h / ah)
    return _owen_short(h, ah / h)


@jit
def _owen_short(h, a):
    """Return Owen's T(h, a) for a ≤ 1."""
    total = 0.0
    for k in range(NODES.size):
        u = 1.0 + (a * NODES[k]) ** 2
        total += WEIGHTS[k] * math.exp(-0.5 * h * h * u) / u
    return a * total / TWO_PI


@jit
def excess(h, k, theta):
    """Return P(x < h, y < k) - Φ(h)Φ(k) for standard Gaussians x, y with correlation sin θ."""
    if math.isinf(h) or math.isinf(k) or theta == 0.0:
        return 0.0
    if abs(theta) <= DIRECT:  # Plackett's identity: the derivative by ρ is the joint density
        total = 0.0
        for i in range(NODES.size):
            s = math.sin(theta * NODES[i])
            total += WEIGHTS[i] * math.exp((s * h * k - 0.5 * (h * h + k * k)) / (1.0 - s * s))
        return theta * total / TWO_PI
    p, q, s, c = cdf(h), cdf(k), math.sin(theta), math.cos(theta)
    if c < 1e-15:
        return min(p * (1.0 - q), q * (1.0 - p)) if s > 0.0 else -min(p * q, (1.0 - p) * (1.0 - q))
    if h == 0.0 and k == 0.0:
        return theta / TWO_PI
    joint = 0.5 * (p + q)
    for first, second in ((h, k), (k, h)):
        other = (second - s * first) / c
        part = _owen(abs(first), abs(other))
        joint -= part if (first >= 0.0) == (other >= 0.0) else -part
    if h * k < 0.0 or (h * k == 0.0 and h + k < 0.0):
        joint -= 0.5
    return joint - p * q


@jit
def latent_angle(h, k, target):
    """Return the angle θ at which :func:`excess` is the target, by Newton's method inside a shrinking bracket."""
    if target == 0.0 or math.isinf(h) or math.isinf(k):  # what never varies is correlated with nothing
        return 0.0
    low, high = -0.5 * math.pi, 0.5 * math.pi
    if target >= excess(h, k, high):
        return high
    if target <= excess(h, k, low):
        return low
    square, product = 0.5 * (h * h + k * k), h * k
    theta = max(0.8 * low, min(0.8 * high, TWO_PI * target * math.exp(square)))
    for _ in range(200):
        value = excess(h, k, theta) - target
        if value > 0.0:
            high = theta
        else:
            low = theta
        s = math.sin(theta)
        slope = math.exp((s * product - square) / (1.0 - s * s)) / TWO_PI
        new = theta - value / slope
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - theta) <= 1e-15 or high - low <= 1e-15:
            return new
        theta = new
    return theta


@jit
def latent_correlation(h, cov):
    """Return the correlations (L, L) of the Gaussian whose signs x_i < h_i, as spins ±1, have covariance cov (L, L)."""
    L = h.size
    R = np.eye(L)
    for i in range(L):
        for j in range(i):
            R[i, j] = R[j, i] = math.sin(latent_angle(h[i], h[j], 0.25 * cov[i, j]))
    return R


@jit
def site_covariance(edges, R):
    """Return the covariance (L, Q, L, Q) between states that a Gaussian of correlation R falls into; 0 in a site."""
    L, Q = edges.shape[0], edges.shape[1] + 1
    cov = np.zeros((L, Q, L, Q))
    corner = np.zeros((Q + 1, Q + 1))  # excess at each corner of the rectangles; none at infinity
    for i in range(L):
        for j in range(i):
            theta = math.asin(R[i, j])
            if theta == 0.0:
                continue
            for t in range(1, Q):
                for u in range(1, Q):
                    corner[t, u] = excess(edges[i, t - 1], edges[j, u - 1], theta)
            for t in range(Q):
                for u in range(Q):
                    value = corner[t + 1, u + 1] - corner[t, u + 1] - corner[t + 1, u] + corner[t, u]
                    cov[i, t, j, u] = cov[j, u, i, t] = value
    return cov


def latent_spins(mean, cov, sign):
    """Return a sampler of spins with mean (L,) and covariance (L, L) as signs of a Gaussian, when there is one."""
    p, q = 0.5 * (1.0 + mean), 0.5 * (1.0 - mean)
    high = 4.0 * np.minimum(np.outer(p, q), np.outer(q, p))
    low = -4.0 * np.minimum(np.outer(p, p), np.outer(q, q))
    outside = np.maximum(cov - high, low - cov)
    np.fill_diagonal(outside, -1.0)
    i, j = np.unravel_index(np.argmax(outside), outside.shape)
    if outside[i, j] > 1e-12:
        raise ValueError(
            f"cov must be >= {low[i, j]:.6g} and <= {high[i, j]:.6g} for spins {i} and {j}, whose means in the {sign} "
            f"class are {mean[i]:.6g} and {mean[j]:.6g} (Fréchet's bounds), got {cov[i, j]:.6g}"
        )
    thresholds = ndtri(p)
    name = f"cov must be within reach of signs of a Gaussian: its correlation matrix in the {sign} class"
    return partial(draw_signs, thresholds, gaussian_root(name, latent_correlation(thresholds, cov)))


def draw_signs(thresholds, root, n, rng):
    """Draw spins (n, L)."""
    return np.where(rng.normal(size=(n, root.shape[1])) @ root.T < thresholds, 1.0, -1.0)


def draw_intervals(edges, root, n, rng):
    """Draw states (n, L)."""
    return search(rng.normal(size=(n, root.shape[1])) @ root.T, edges)
