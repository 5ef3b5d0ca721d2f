r"""Clusters from few rows: covariances drawn to the pooled one, and centres without their noise.

Covariances
-----------
A sample covariance :math:`S_c` of :math:`n_c` rows is noisy. The pooled one of all rows, :math:`P`, is less so, but may
be the wrong one. Between them stands :math:`(1-\rho_c)S_c + \rho_c w_cP`, with the width :math:`w_c` that the cluster
has on average. Both numbers follow from the rows, as in Ledoit and Wolf's shrinkage towards a multiple of the identity:
:math:`\rho_c` is the sampling variance of :math:`S_c` over its squared distance from :math:`w_cP`, less the part that
:math:`P` owes to these rows itself. With equal covariances it is 1 on average.

Distances are measured as a classifier weighs them. It depends on covariances by resolvents :math:`(z + C)^{-1}`, in
which an error counts relative to :math:`z + C`. So all is measured in units of :math:`z + P`, where :math:`z` is such
that half of the directions that vary are above it: a leading eigenvalue a thousand times the others does not decide
alone, and neither do a thousand directions that hardly vary.

Centres
-------
Estimated centres are further apart than the true ones. With :math:`n_c` rows of covariance :math:`C_c` in a cluster,
the scalar products :math:`v_c\cdot v_d` of centres along a direction are too large by :math:`C_c/n_c` for
:math:`c = d`, and by what follows from it for centres counted from a mean. The saddle point sees these products in sums
over many directions. So they are corrected in bands of neighbouring eigenvalues, as :meth:`rbal.Moments.debiased` does
for two classes.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from ._blocks import EPS, LowRank, as_matrix, check_room


class Shrunk(NamedTuple):
    """Shrinkage of the covariance of each cluster towards the pooled one. Arrays are (K,)."""

    intensity: np.ndarray  # ρ, 0 for a cluster's own covariance and 1 for a width of the pooled one
    width: np.ndarray  # w, drawn to 1 itself


def shrunk(roots):
    """Return covariances, index and factor of each cluster, and the shrinkage of each.

    Parameters
    ----------
    roots : list of (n, D) arrays
        Rows of each cluster, less their mean, over √(n - 1), so that FᵀF is its covariance.

    Returns
    -------
    covs : tuple
        (list of covariances, index (K,), factor (K,)), as :func:`rbal.moments._parts.estimated` has them.
    shrinkage : Shrunk
    pool : (K,) array
        Share of each cluster in the pooled covariance.
    """
    K, D = len(roots), roots[0].shape[1]
    freedom = np.array([max(len(F) - 1.0, 1.0) for F in roots])
    pool = freedom / freedom.sum()
    if sum(map(len, roots)) < D:
        pooled = np.concatenate([np.sqrt(p) * F for p, F in zip(pool, roots, strict=True)])
        shrinkage = intensities(roots, pool, units_of_rows(pooled))
        if np.all(shrinkage.intensity == 1.0):
            return ([LowRank(pooled, 0.0)], np.zeros(K, np.int64), shrinkage.width), shrinkage, pool
        covs = [
            LowRank(np.concatenate([np.sqrt(1.0 - rho) * F, np.sqrt(rho * w) * pooled]), 0.0)
            for F, rho, w in zip(roots, *shrinkage, strict=True)
        ]
        return (covs, np.arange(K), np.ones(K)), shrinkage, pool
    check_room("X", K, D)
    own = [F.T @ F for F in roots]
    pooled = sum(p * S for p, S in zip(pool, own, strict=True))
    shrinkage = intensities(roots, pool, units_of(*eigh(pooled, driver="evd")))
    if np.all(shrinkage.intensity == 1.0):
        return ([pooled], np.zeros(K, np.int64), shrinkage.width), shrinkage, pool
    covs = [(1.0 - rho) * S + rho * w * pooled for S, rho, w in zip(own, *shrinkage, strict=True)]
    return (covs, np.arange(K), np.ones(K)), shrinkage, pool


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
    scaled = [F @ units for F in roots]
    own = [G.T @ G for G in scaled]
    pooled = sum(p * S for p, S in zip(pool, own, strict=True))
    total = np.trace(pooled)
    rho, width = np.empty(len(roots)), np.empty(len(roots))
    for c, (G, S, p) in enumerate(zip(scaled, own, pool, strict=True)):
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


# ---- centres without their noise


def quiet(centres, covs, counts, weights, band):
    """Return centres (K, D) whose products have no noise on average.

    Parameters
    ----------
    centres : (K, D) array
    covs : tuple
        (list of covariances, index (K,), factor (K,)).
    counts : (K,) array
        Rows that each centre is the mean of.
    weights : (K,) array
        Weights of the clusters in the mean that centres are counted from.
    band : int
        Number of neighbouring eigenvalues that are corrected together.
    """
    mean = weights @ centres
    values, basis, spreads = directions(covs, weights)
    components = (centres - mean) @ basis
    rest = centres - mean - components @ basis.T  # the noise is unknown where no row varies
    counted = np.eye(len(centres)) - weights  # (K, K): centres less their mean
    for part in np.array_split(np.arange(values.size), max(1, values.size // band)):
        scaled = components[:, part] / np.sqrt(values[part])
        products = scaled @ scaled.T
        noise = counted @ np.diag((spreads[:, part] / values[part]).sum(axis=1) / counts) @ counted.T
        components[:, part] = transport(products, products - noise) @ components[:, part]
    return mean + components @ basis.T + rest


def directions(covs, weights):
    """Return eigenvalues (k,) of the mean covariance, ascending and above 0, basis (D, k), spreads (K, k) along it."""
    distinct, shape, width = covs
    share = np.bincount(shape, weights * width, len(distinct))  # weight of each different covariance in the mean
    if all(isinstance(cov, LowRank) and cov.floor == 0.0 for cov in distinct):
        rows = np.concatenate([np.sqrt(w) * cov.rows for w, cov in zip(share, distinct, strict=True)])
        _, singular, basis = np.linalg.svd(rows, full_matrices=False)
        values, basis = singular[::-1] ** 2, basis[::-1].T
        kept = values > 10 * max(rows.shape) * EPS * values[-1]
        basis = basis[:, kept]
        spreads = np.stack([np.sum((cov.rows @ basis) ** 2, axis=0) for cov in distinct])
    else:
        matrices = [as_matrix(cov) for cov in distinct]
        values, basis = eigh(sum(w * C for w, C in zip(share, matrices, strict=True)), driver="evd")
        kept = values > 10 * len(values) * EPS * values[-1]
        basis = basis[:, kept]
        spreads = np.stack([np.einsum("ij,ij->j", basis, C @ basis) for C in matrices])
    return values[kept], basis, width[:, None] * spreads[shape]


def transport(products, target):
    """Return the T (K, K) nearest to 1 for which T · products · Tᵀ is the target, made positive.

    Negative eigenvalues of the target are noise, and so is some of the positive ones: the total stays.
    """
    values, basis = np.linalg.eigh(target)
    total, positive = values.sum(), np.maximum(values, 0.0)
    if total <= 0.0:
        return np.zeros_like(products)
    target = (basis * (positive * total / positive.sum())) @ basis.T
    root, back = _root(products)
    inner, _ = _root(root @ target @ root)
    return back @ inner @ back


def _root(matrix):
    """Return the root of a positive matrix, and the inverse of this root where it is not zero."""
    values, basis = np.linalg.eigh(matrix)
    root = np.sqrt(np.maximum(values, 0.0))
    back = np.where(values > 1e-12 * values[-1], 1.0 / np.where(root > 0.0, root, 1.0), 0.0)
    return (basis * root) @ basis.T, (basis * back) @ basis.T
