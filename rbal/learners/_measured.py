"""Order parameters of trained classifiers, the rows that they are trained on, and their common margin."""

from typing import NamedTuple

import numpy as np

from .._support.validation import number, real_array

LARGEST_MARGIN = 1e8  # biases grow with margins, and beyond this the last digits of scores are lost


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


def distinct(features, signs, weight):
    """Return each row once, with the sum of its weights, in an order that is that of the rows themselves.

    A solver that visits rows in turn stops at another place, within its tolerance, for rows in another order or
    repeated: so that a weight of 2 would not be the row twice.
    """
    rows = np.ascontiguousarray(np.column_stack([signs, features]) + 0.0)  # -0 is 0
    keys = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return features[first], signs[first], np.bincount(place, weight)


def common_margin(kappa, kappa_neg, lowest=0.0):
    """Return the common margin at which the weights are the same, and what margins of their own add to the bias.

    A loss is a function of κ - y (score - b): with κ± = κ ± d it is that of a common margin κ and the bias b + d.
    """
    if kappa_neg is None:
        return number("kappa", kappa, 0.0, LARGEST_MARGIN), 0.0
    pos, neg = (number(n, v, -LARGEST_MARGIN, LARGEST_MARGIN) for n, v in (("kappa", kappa), ("kappa_neg", kappa_neg)))
    return number("the mean of kappa and kappa_neg", 0.5 * (pos + neg), lowest), 0.5 * (neg - pos)
