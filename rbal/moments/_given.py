"""Covariances of clusters as they are given: checked, and each kept once."""

import numpy as np
from scipy.linalg import cholesky, eigvalsh

from .._support.validation import in_range
from ._blocks import EPS, check_room


def given(covs, K, D):
    """Return a list of one covariance, or of K, each checked."""
    if covs.shape == (D,) or covs.shape == (D, D):
        covs = covs[None]
    if covs.shape not in ((1, D), (1, D, D), (K, D), (K, D, D)):
        takes = f"({D},), ({D}, {D}), ({K}, {D}) or ({K}, {D}, {D})"
        raise ValueError(f"covs must have shape {takes}, got {covs.shape}")
    if covs.ndim == 2:
        in_range("covs", covs, 0.0)
    else:
        check_room("covs", *covs.shape[:2])
    checked = []
    for c, cov in enumerate(covs):
        if cov.ndim == 2:
            off = np.abs(cov - cov.T).max()
            if off > 1e-10 * np.abs(cov).max():
                raise ValueError(f"covs must be symmetric, got entries that differ by {off:g} in cluster {c}")
            cov = 0.5 * (cov + cov.T)
            _check_positive(cov, c)
        if not cov.any():
            raise ValueError(f"covs must not be zero, got nothing that varies in cluster {c}")
        checked.append(cov)
    return checked


def _check_positive(cov, c):
    """Refuse negative eigenvalues: Cholesky's factorisation of what is raised by rounding tells."""
    floor = 10 * len(cov) * EPS * np.abs(cov).max()
    try:
        cholesky(cov + 2.0 * floor * np.eye(len(cov)), check_finite=False)
    except np.linalg.LinAlgError:
        low = eigvalsh(cov)[0]
        if low < -floor:
            raise ValueError(f"covs must have no negative eigenvalue, got {low:g} in cluster {c}") from None


def distinct(covs, K):
    """Return the index (K,) and factor (K,) of each cluster's covariance among those that differ, and these."""
    if len(covs) == 1:
        return np.zeros(K, np.int64), np.ones(K), covs
    shape, width, found = np.empty(K, np.int64), np.empty(K), []
    for c, cov in enumerate(covs):
        for h, other in enumerate(found):
            ratio = cov.sum() / other.sum() if cov.ndim == 1 else np.trace(cov) / np.trace(other)
            ratio = 1.0 if abs(ratio - 1.0) < 4 * EPS else ratio
            if np.abs(cov - ratio * other).max() <= 1e-14 * np.abs(cov).max():
                shape[c], width[c] = h, ratio
                break
        else:
            shape[c], width[c] = len(found), 1.0
            found.append(cov)
    return shape, width, found
