"""How many parts a class has: as many as foretell rows that were left out."""

import numpy as np
from scipy.linalg import cho_solve, cholesky, eigvalsh
from scipy.special import logsumexp

from ._blocks import as_matrix
from ._shrinkage import half_seen, shrunk

NUMBERS = (1, 2, 4, 8)  # of parts that are tried
FEWEST = 20  # rows of a part on average, in the half that is fitted
STARTS = 3  # of k-means for each number


def cut(features, n, seed, starts=10):
    """Return the part (rows,) of each row, by k-means."""
    if n == 1:
        return np.zeros(len(features), np.int64)
    from sklearn.cluster import KMeans

    return KMeans(n, n_init=starts, random_state=seed).fit_predict(features)


def number_of_parts(features, seed):
    """Return the number of parts of one class that foretells best, or a smaller one that does as well.

    Half of the rows are cut by k-means into 1, 2, 4 or 8 parts, each a Gaussian with its covariance drawn to that of
    all parts, raised by the z at which half of the directions are seen: what varies less does not matter to a
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
    if len(fitted) <= fitted.shape[1]:  # outside of the span of these rows all numbers foretell the same
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
        behind = scores[best] - score
        if behind.mean() <= behind.std() / np.sqrt(len(behind)):
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
