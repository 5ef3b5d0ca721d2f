"""The classes of a table as machines see them: linear ones from all rows, RBF kernels from as many as fit."""

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from ..kernels import bind
from ..moments import Moments
from ._choice import Machine
from ._pipeline import coding

MOST_ROWS = 1_500  # of a Gram matrix, whose eigenvalues take a second: a larger table is sampled down
MOST_TRAINED = 10_000  # rows of a table for which an RBF kernel is recommended unasked: its training takes their square
FEWEST = 200  # rows of each class that sampling down keeps, if there are so many
WIDTHS = (1.0, 0.25, 4.0)  # of the RBF kernel, in units of gamma="scale"
FURTHER = (1 / 16, 16.0)  # beyond the second and the third of them


def linear(data):
    """Return the linear machine, whose moments are those of all rows."""
    return Machine.of("linear", None, data.sample, data.n_pos + data.n_neg)


def rbf(data, random_state):
    """Return a function from a width to the machine with this RBF kernel, all from the same rows."""
    X, y = coded_rows(data, MOST_ROWS, random_state)
    squares = euclidean_distances(X - X.mean(axis=0), squared=True)
    scale = bind("rbf", X).parameters["gamma"]

    def machine(width):
        gamma = float(f"{scale * width:.3g}")  # the number that is told is the one that is used
        moments = Moments.from_kernel(np.exp(-gamma * squares), y, positive=True)
        return Machine.of("rbf", gamma, moments.sample, len(y))

    return machine


def subset(data, most, fewest, rng):
    """Return the kept rows of a table, both classes in proportion, and which are positive: all, or at most so many."""
    X, positive = data.rows
    n_pos, n_neg = data.n_pos, data.n_neg
    share = min(1.0, most / (n_pos + n_neg))
    chosen = []
    for label, n in ((True, n_pos), (False, n_neg)):
        members = np.flatnonzero(positive == label)
        take = min(len(members), max(round(share * n), min(n, fewest)))
        chosen.append(rng.permutation(members)[:take])
    chosen = np.concatenate(chosen)
    return X.iloc[chosen].reset_index(drop=True), positive[chosen]


def coded_rows(data, most, random_state):
    """Return at most so many rows (n, D) as the classifier sees them, and which are positive (n,)."""
    X, y = subset(data, most, FEWEST, np.random.default_rng(random_state))
    names = {name: str(name) for name in X.columns}
    coder = coding([names[n] for n in data.numeric], [names[n] for n in data.categorical], data.standardize)
    return coder.fit_transform(X.rename(columns=names)), y
