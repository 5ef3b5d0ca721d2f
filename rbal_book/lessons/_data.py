"""The data of the lessons."""

from functools import cache

import numpy as np


@cache
def classes():
    """Return the two Gaussian classes of the second lesson, 100 features with a random covariance.

    Returns
    -------
    classes : object
        ``moments`` for the theory, ``sample(n_pos, n_neg, rng)`` for rows and labels, ``L`` features.
    """
    from rbal.datasets import synthetic

    return synthetic.random_gaussian(np.random.default_rng(9), scale=1.5)


@cache
def scored():
    """Return scores and labels of the first lesson: 100 positives and 900 negatives.

    Returns
    -------
    scores : (1000,) ndarray
    labels : (1000,) ndarray
        1 or -1.
    """
    rng = np.random.default_rng(1)
    labels = np.repeat([1, -1], [100, 900])
    scores = rng.normal(size=1000) + 0.7 * labels - 0.9
    return scores.round(3), labels


@cache
def tumours():
    """Return the table of the third lesson, 25 malignant and 250 benign tumours, and rows locked away for the end.

    Returns
    -------
    X, y : DataFrame and ndarray of bool
        Thirty numbers about each tumour of the data, and whether it is malignant.
    X_locked, y_locked : DataFrame and ndarray of bool
        All other tumours.
    """
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer(as_frame=True)
    malignant = bunch.target.to_numpy() == 0
    rng = np.random.default_rng(15)
    pos, neg = (rng.permutation(np.flatnonzero(malignant == kind)) for kind in (True, False))
    rows, locked = np.r_[pos[:25], neg[:250]], np.r_[pos[25:], neg[250:]]
    return bunch.data.iloc[rows], malignant[rows], bunch.data.iloc[locked], malignant[locked]
