"""Rows of a table as clusters: which rows belong together, and the covariances of such parts."""

import numbers

import numpy as np

from .._support.validation import LARGEST, n_dimensions, positive_int, seeded, unmasked
from ._blocks import LowRank, check_room
from ._choice import cut, number_of_parts
from ._shrinkage import shrunk


def labels_of(name, value, n, of):
    """Return labels (n,), none of them missing."""
    n_dimensions(name, value)
    labels = np.asarray(unmasked(name, value))
    if labels.dtype.kind in "mM":
        raise TypeError(f"{name} must be numbers or words, got the type {labels.dtype}")
    if labels.shape != (n,):
        raise ValueError(f"{name} must have one entry for each of the {n} {of}, got shape {labels.shape}")
    if labels.dtype == object:
        kinds = sorted({type(label).__name__ for label in labels})
        if "NoneType" in kinds:
            raise ValueError(f"{name} must not be missing, got None")
        if len(kinds) > 1 and not all(isinstance(label, numbers.Real) for label in labels):
            raise ValueError(f"{name} must hold labels of one kind, got {' and '.join(kinds)}")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"{name} must not be missing, got {labels[~np.isfinite(labels)][0]}")
    return labels


def estimated(roots, labels, shares, covariance):
    """Return (covariances, index, factor of each cluster), their mixing and how far they were shrunk.

    roots are rows with FᵀF = S of each cluster; its covariance is Σ mixing[c, k] S[k].
    """
    K, D = len(roots), roots[0].shape[1]
    for c, F in enumerate(roots):
        if not F.any():
            raise ValueError(f"X must vary within every cluster, got equal rows in one of class {labels.tolist()[c]!r}")
        if (size := np.abs(F).max()) * LARGEST < 1.0:
            raise ValueError(
                f"X must vary by {1.0 / LARGEST:g} or more, got {size:g} in a cluster of class {labels.tolist()[c]!r}, "
                "whose square is lost: multiply X by a factor"
            )
    if covariance == "shrunk":
        covs, how, pool = shrunk(roots)
        return covs, np.diag(1.0 - how.intensity) + np.outer(how.intensity * how.width, pool), how.intensity
    if covariance == "own":
        if sum(map(len, roots)) + K < D:
            return ([LowRank(F, 0.0) for F in roots], np.arange(K), np.ones(K)), np.eye(K), None
        check_room("X", K, D)
        return ([F.T @ F for F in roots], np.arange(K), np.ones(K)), np.eye(K), None
    weights = shares / np.unique(labels).size
    stacked = np.concatenate([np.sqrt(w) * F for w, F in zip(weights, roots, strict=True)])
    if len(stacked) < D:
        pooled, total = LowRank(stacked, 0.0), np.sum(stacked**2)
    else:
        check_room("X", 1, D)
        pooled, total = stacked.T @ stacked, np.sum(stacked**2)
    width = np.array([np.sum(F**2) / total for F in roots]) if covariance == "width" else np.ones(K)
    return ([pooled], np.zeros(K, np.int64), width), np.outer(width, weights), None


def parts_of(features, y, clusters, random_state):
    """Return (label, indices of rows) of each cluster."""
    if n_dimensions("clusters", clusters) == 0:
        if isinstance(clusters, str) and clusters != "auto":
            raise ValueError(f"clusters must be a number, 'auto' or the part of each row, got {clusters!r}")
        n = clusters if isinstance(clusters, str) else positive_int("clusters", clusters)
        parts = [(label, part) for label in np.unique(y).tolist() for part in _cut(features, y, label, n, random_state)]
    else:
        names = labels_of("clusters", clusters, len(y), "rows")
        parts = [
            (label, np.flatnonzero((y == label) & (names == name)))
            for label in np.unique(y).tolist()
            for name in np.unique(names[y == label])
        ]
    for label, rows in parts:
        if rows.size < 2:
            raise ValueError(f"clusters must have at least 2 rows each, got {rows.size} in one of class {label!r}")
    return parts


def _cut(features, y, label, n, random_state):
    """Return the rows of each of n parts of a class, found by k-means."""
    rows = np.flatnonzero(y == label)
    if n == 1:
        return [rows]
    seed = int(seeded("random_state", random_state).integers(2**31))
    if n == "auto":
        n = number_of_parts(features[rows], seed) if rows.size > 3 else 1
    elif rows.size < 2 * n:
        raise ValueError(f"clusters must leave at least 2 rows each, got {n} for {rows.size} rows of class {label!r}")
    part = cut(features[rows], n, seed)
    return [rows[part == k] for k in range(n)]
