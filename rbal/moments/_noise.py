r"""Centres of clusters without the noise of few rows.

Estimated centres are further apart than the true ones. With :math:`n_c` rows of covariance :math:`C_c` in a cluster,
the scalar products :math:`v_c\cdot v_d` of centres along a direction are too large by :math:`C_c/n_c` for
:math:`c = d`, and by what follows from it for centres counted from a mean. The saddle point sees these products in sums
over many directions. So they are put right in bands of neighbouring eigenvalues, as :meth:`rbal.Moments.debiased` does
for two classes.
"""

import numpy as np
from scipy.linalg import eigh

from ._blocks import EPS, LowRank, as_matrix


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
    middle = weights @ centres
    values, basis, spreads = directions(covs, weights)
    along = (centres - middle) @ basis
    rest = centres - middle - along @ basis.T  # where nothing varies, nothing is known of the noise
    counted = np.eye(len(centres)) - weights  # (K, K): centres less their mean
    for part in np.array_split(np.arange(values.size), max(1, values.size // band)):
        scaled = along[:, part] / np.sqrt(values[part])
        products = scaled @ scaled.T
        noise = counted @ np.diag((spreads[:, part] / values[part]).sum(axis=1) / counts) @ counted.T
        along[:, part] = transport(products, products - noise) @ along[:, part]
    return middle + along @ basis.T + rest


def directions(covs, weights):
    """Return eigenvalues (k,) of the mean covariance, ascending and above 0, basis (D, k), spreads (K, k) along it."""
    distinct, shape, width = covs
    of = np.bincount(shape, weights * width, len(distinct))  # weight of each different covariance in the mean
    if all(isinstance(cov, LowRank) and cov.floor == 0.0 for cov in distinct):
        rows = np.concatenate([np.sqrt(w) * cov.rows for w, cov in zip(of, distinct, strict=True)])
        _, singular, basis = np.linalg.svd(rows, full_matrices=False)
        values, basis = singular[::-1] ** 2, basis[::-1].T
        kept = values > 10 * max(rows.shape) * EPS * values[-1]
        basis = basis[:, kept]
        spreads = np.stack([np.sum((cov.rows @ basis) ** 2, axis=0) for cov in distinct])
    else:
        matrices = [as_matrix(cov) for cov in distinct]
        values, basis = eigh(sum(w * C for w, C in zip(of, matrices, strict=True)), driver="evd")
        kept = values > 10 * len(values) * EPS * values[-1]
        basis = basis[:, kept]
        spreads = np.stack([np.einsum("ij,ij->j", basis, C @ basis) for C in matrices])
    return values[kept], basis, width[:, None] * spreads[shape]


def transport(products, wanted):
    """Return the T (K, K) nearest to 1 for which T · products · Tᵀ is what is wanted, made positive.

    Negative eigenvalues of what is wanted are noise, and so is some of the positive ones: the total stays.
    """
    values, basis = np.linalg.eigh(wanted)
    total, positive = values.sum(), np.maximum(values, 0.0)
    if total <= 0.0:
        return np.zeros_like(products)
    wanted = (basis * (positive * total / positive.sum())) @ basis.T
    root, back = _root(products)
    inner, _ = _root(root @ wanted @ root)
    return back @ inner @ back


def _root(matrix):
    """Return the root of a positive matrix, and the inverse of this root where it is not zero."""
    values, basis = np.linalg.eigh(matrix)
    root = np.sqrt(np.maximum(values, 0.0))
    back = np.where(values > 1e-12 * values[-1], 1.0 / np.where(root > 0.0, root, 1.0), 0.0)
    return (basis * root) @ basis.T, (basis * back) @ basis.T
