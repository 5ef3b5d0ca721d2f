"""From a table of any kind to what the theory takes: class sizes, means and covariances of coded columns."""

from dataclasses import dataclass

import numpy as np

from ._estimate import from_covariances, from_rows


@dataclass
class Data:
    """A coded table."""

    n_pos: int
    n_neg: int
    D: int
    sample: object


def from_arrays(X, y, positive, categorical, standardize):
    X, y = np.asarray(X, float), np.asarray(y)
    labels, counts = np.unique(y, return_counts=True)
    pos = labels[np.argmin(counts)] if positive is None else positive
    sd = X.std(axis=0)
    X = X[:, sd > 0] / (sd[sd > 0] if standardize else 1.0)
    P, N = X[y == pos], X[y != pos]
    if len(X) > X.shape[1]:
        sample = from_covariances(len(P), len(N), P.mean(0) - N.mean(0), np.cov(P.T), np.cov(N.T))
    else:
        sample = from_rows(P, N)
    return Data(len(P), len(N), X.shape[1], sample)
