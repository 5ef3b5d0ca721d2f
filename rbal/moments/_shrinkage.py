r"""Covariances of clusters from few rows: how far each is drawn to a width of the pooled one.

A sample covariance :math:`S_c` of :math:`n_c` rows is noisy. The pooled one of all rows, :math:`P`, is less so, but may
be the wrong one. Between them stands :math:`(1-\rho_c)S_c + \rho_c w_cP`, with the width :math:`w_c` that the cluster
has on average. Both numbers follow from the rows, as in Ledoit and Wolf's shrinkage towards a multiple of the identity:
:math:`\rho_c` is the sampling variance of :math:`S_c` over its squared distance from :math:`w_cP`, less the part that
:math:`P` owes to these rows itself. With equal covariances it is 1 on average.

Distances are those that a classifier sees. It knows covariances by resolvents :math:`(z + C)^{-1}`, in which an error
counts relative to :math:`z + C`. So all is measured in units of :math:`z + P`, where :math:`z` is such that half of
the directions that vary are above it: a leading eigenvalue a thousand times the others does not decide alone, and
neither do a thousand directions that hardly vary.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from ._blocks import EPS, LowRank, check_room


class Shrunk(NamedTuple):
    """How far the covariance of each cluster is drawn to the pooled one. Arrays are (K,)."""

    intensity: np.ndarray  # ρ, 0 for a cluster's own covariance and 1 for a width of the pooled one
    width: np.ndarray  # w, drawn to 1 itself


def shrunk(roots):
    """Return covariances, index and factor of each cluster, and how far each was drawn.

    Parameters
    ----------
    roots : list of (n, D) arrays
        Rows of each cluster, less their mean, over √(n - 1), so that FᵀF is its covariance.

    Returns
    -------
    covs : tuple
        (list of covariances, index (K,), factor (K,)), as :func:`rbal.moments._parts.estimated` has them.
    how : Shrunk
    pool : (K,) array
        Share of each cluster in the pooled covariance.
    """
    K, D = len(roots), roots[0].shape[1]
    freedom = np.array([max(len(F) - 1.0, 1.0) for F in roots])
    pool = freedom / freedom.sum()
    if sum(map(len, roots)) < D:
        pooled = np.concatenate([np.sqrt(p) * F for p, F in zip(pool, roots, strict=True)])
        how = intensities(roots, pool, units_of_rows(pooled))
        if np.all(how.intensity == 1.0):
            return ([LowRank(pooled, 0.0)], np.zeros(K, np.int64), how.width), how, pool
        covs = [
            LowRank(np.concatenate([np.sqrt(1.0 - rho) * F, np.sqrt(rho * w) * pooled]), 0.0)
            for F, rho, w in zip(roots, *how, strict=True)
        ]
        return (covs, np.arange(K), np.ones(K)), how, pool
    check_room("X", K, D)
    own = [F.T @ F for F in roots]
    pooled = sum(p * S for p, S in zip(pool, own, strict=True))
    how = intensities(roots, pool, units_of(*eigh(pooled, driver="evd")))
    if np.all(how.intensity == 1.0):
        return ([pooled], np.zeros(K, np.int64), how.width), how, pool
    covs = [(1.0 - rho) * S + rho * w * pooled for S, rho, w in zip(own, *how, strict=True)]
    return (covs, np.arange(K), np.ones(K)), how, pool


def units_of_rows(rows):
    """Return the units of fewer rows than columns."""
    _, singular, basis = np.linalg.svd(rows, full_matrices=False)
    return units_of(singular[::-1] ** 2, basis[::-1].T)


def units_of(values, basis):
    """Return the matrix (D, k) that turns features into units of (z + P)^½, in the k directions that vary."""
    kept = values > 10 * len(basis) * EPS * values[-1]
    values, basis = values[kept], basis[:, kept]
    return basis / np.sqrt(half_seen(values) + values)


def half_seen(values):
    """Return the z at which Σ λ/(z + λ) is half of the number of eigenvalues λ > 0, ascending."""
    low, high = values[0], values[-1]
    for _ in range(60):
        z = np.sqrt(low * high)
        low, high = (z, high) if np.mean(values / (z + values)) > 0.5 else (low, z)
    return float(np.sqrt(low * high))


def intensities(roots, pool, units):
    """Return intensities and widths of all clusters.

    Parameters
    ----------
    roots : list of (n, D) arrays
        As above.
    pool : (K,) array
        Share of each cluster in the pooled covariance.
    units : (D, k) array
        As :func:`units_of` returns.

    Returns
    -------
    Shrunk
    """
    seen = [F @ units for F in roots]
    own = [G.T @ G for G in seen]
    pooled = sum(p * S for p, S in zip(pool, own, strict=True))
    total = np.trace(pooled)
    rho, width = np.empty(len(roots)), np.empty(len(roots))
    for c, (G, S, p) in enumerate(zip(seen, own, pool, strict=True)):
        # S is a sum over rows g gᵀ: its variance, and that of its trace, are those of independent terms
        squares = np.sum(G**2, axis=1)
        raw = squares.sum() / total
        scatter = np.sum((squares - squares.mean()) ** 2) / total**2
        kept = 1.0 - scatter / (raw - 1.0) ** 2 if abs(raw - 1.0) > EPS else 0.0
        width[c] = 1.0 + (raw - 1.0) * max(kept, 0.0)
        noise = (1.0 - p) * max(np.sum(squares**2) - np.sum(S**2) / len(G), 0.0)
        gap = np.sum((S - width[c] * pooled) ** 2)
        rho[c] = noise / gap if noise < gap else 1.0
    return Shrunk(rho, width)
