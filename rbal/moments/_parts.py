"""Rows of a table as clusters: the rows of each part, the number of parts of a class, and their covariances."""

import numbers

import numpy as np
from scipy.linalg import cho_solve, cholesky, eigvalsh
from scipy.special import logsumexp

from .._support.validation import LARGEST, n_dimensions, positive_int, seeded, unmasked
from ._blocks import LowRank, as_matrix, check_room
from ._few_rows import half_seen, shrunk

NUMBERS = (1, 2, 4, 8)  # candidates for the number of parts
FEWEST = 20  # rows of a part on average, in the half that is fitted
STARTS = 3  # of k-means for each number


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
    """Return (covariances, index, factor of each cluster), their mixing and the intensities of shrinkage.

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
        covs, shrinkage, pool = shrunk(roots)
        rho, width = shrinkage
        return covs, np.diag(1.0 - rho) + np.outer(rho * width, pool), rho
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


# ---- the number of parts: the one that best predicts rows which were left out


def cut(features, n, seed, starts=10):
    """Return the part (rows,) of each row, by k-means."""
    if n == 1:
        return np.zeros(len(features), np.int64)
    from sklearn.cluster import KMeans

    return KMeans(n, n_init=starts, random_state=seed).fit_predict(features)


def number_of_parts(features, seed):
    """Return the number of parts of one class that predicts best, or a smaller one that is as good.

    Half of the rows are cut by k-means into 1, 2, 4 or 8 parts, each a Gaussian with its covariance drawn to that of
    all parts, raised by the z of :func:`half_seen`, below which variance does not matter to a
    classifier. The mixture's mean log-likelihood of the other half decides. The smallest number counts whose mean is
    within one standard error of the highest, that of the differences row by row.

    Parameters
    ----------
    features : (n, D) array
        Rows of one class.
    seed : int

    Returns
    -------
    int
    """
    order = np.random.default_rng(seed).permutation(len(features))
    fitted, judges = features[order[: len(order) // 2]], features[order[len(order) // 2 :]]
    centre = fitted.mean(axis=0)
    fitted, judges = fitted - centre, judges - centre
    if len(fitted) <= fitted.shape[1]:  # outside of the span of these rows all numbers predict the same
        basis = np.linalg.svd(fitted, full_matrices=False)[2][: max(len(fitted) - 1, 1)]
        fitted, judges = fitted @ basis.T, judges @ basis.T
    values = eigvalsh(fitted.T @ fitted / max(len(fitted) - 1, 1))
    values = values[values > 1e-10 * values[-1]]
    if values.size == 0:
        return 1
    z = half_seen(values)
    numbers = [n for n in NUMBERS if n == 1 or n * FEWEST <= len(fitted)]
    scores = []
    for n in numbers:
        part = cut(fitted, n, seed, STARTS)
        if np.bincount(part, minlength=n).min() < 2:
            break
        scores.append(log_likelihood(fitted, part, judges, z))
    best = int(np.argmax([score.mean() for score in scores]))
    for n, score in zip(numbers, scores, strict=False):
        deficit = scores[best] - score
        if deficit.mean() <= deficit.std() / np.sqrt(len(deficit)):
            return n
    return numbers[best]


def log_likelihood(fitted, part, judges, z):
    """Return the log-likelihood (n,) of other rows under parts that were fitted, up to a constant."""
    rows = [fitted[part == k] for k in range(part.max() + 1)]
    means = [r.mean(axis=0) for r in rows]
    (covs, shape, width), *_ = shrunk([(r - m) / np.sqrt(len(r) - 1.0) for r, m in zip(rows, means, strict=True)])
    terms = []
    for k, (r, mean) in enumerate(zip(rows, means, strict=True)):
        factor = cholesky(width[k] * as_matrix(covs[shape[k]]) + z * np.eye(fitted.shape[1]), lower=True)
        off = judges - mean
        squared = np.einsum("ij,ji->i", off, cho_solve((factor, True), off.T))
        terms.append(np.log(len(r) / len(fitted)) - np.sum(np.log(np.diag(factor))) - 0.5 * squared)
    return logsumexp(terms, axis=0)
