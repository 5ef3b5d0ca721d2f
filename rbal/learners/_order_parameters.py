"""Order parameters of trained classifiers."""

from typing import NamedTuple

import numpy as np

from .._support.validation import real_array


class OrderParameters(NamedTuple):
    """The order parameters of the theory, measured on a trained classifier."""

    q: float  # variance of the scores within a class
    r: float  # distance between the class means of the score
    b: float  # bias, counted from the midpoint of the classes


def order_parameters(scores, y):
    """Return the order parameters of any classifier with a score, measured on samples it was not trained on.

    Parameters
    ----------
    scores : (n,) array
        Higher for the positive class, as ``decision_function`` returns them.
    y : (n,) array
        Labels +1 and -1, at least two of each.

    Returns
    -------
    OrderParameters
        A named tuple (q, r, b): variance within a class, mean of both; distance of the class means; minus their
        midpoint.

    Examples
    --------
    >>> order_parameters([3.0, 1.0, -1.0, -2.0], [1, 1, -1, -1])
    OrderParameters(q=1.25, r=3.5, b=-0.25)
    """
    scores, y = real_array("scores", scores, 1), real_array("y", y, 1)
    if scores.shape != y.shape:
        raise ValueError(f"y must have the shape of scores {scores.shape}, got {y.shape}")
    if not np.isin(y, (-1.0, 1.0)).all() or min(np.sum(y > 0), np.sum(y < 0)) < 2:
        raise ValueError("y must hold the labels +1 and -1, at least two of each")
    pos, neg = scores[y > 0], scores[y < 0]
    q = 0.5 * (pos.var(ddof=1) + neg.var(ddof=1))
    return OrderParameters(float(q), float(pos.mean() - neg.mean()), float(-0.5 * (pos.mean() + neg.mean())))
