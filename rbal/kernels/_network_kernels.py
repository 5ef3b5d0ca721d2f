r"""Kernels of fully connected ReLU networks of infinite width.

Layer by layer the covariance of two pre-activations passes through an expectation over Gaussian weights. With
:math:`\cos\theta` the correlation of the layer before it, and weights of variance 2 (or 1, for steps) over the width,

.. math:: \kappa_0 = 1 - \frac\theta\pi,\qquad \kappa_1 = \frac{\sin\theta + (\pi - \theta)\cos\theta}{\pi}

are the arc-cosine kernels of order 0 (steps) and 1 (rectified units) of unit vectors.
"""

import numpy as np

from .._support.validation import LARGEST, number, one_of, positive_int, real_array, squarable

DEEPEST = 5  # hidden layers


def arc_cosine(X, Y, depth=1, order=1, bias=0.0):
    """Return the covariance of the outputs of random networks: a machine that trains the last layer alone.

    Parameters
    ----------
    X, Y : (n, D) and (m, D) arrays
    depth : int
        Number of hidden layers.
    order : {0, 1}
        Units that are steps, or rectified linear.
    bias : float
        Variance of the biases.

    Returns
    -------
    (n, m) array
    """
    S, x, y, bias = _inputs(X, Y, bias)
    one_of("order", order, (0, 1))
    for _ in range(positive_int("depth", depth, DEEPEST)):
        norm, zero, one = _layer(S, x, y)
        S = (norm * one if order == 1 else zero) + bias
        x, y = (x + bias, y + bias) if order == 1 else (np.full_like(x, 1.0 + bias), np.full_like(y, 1.0 + bias))
    return S


def ntk(X, Y, depth=1, bias=0.0):
    """Return the neural tangent kernel: a machine that trains all layers, so wide that each weight hardly moves.

    Parameters
    ----------
    X, Y, depth, bias
        As in :func:`arc_cosine`.

    Returns
    -------
    (n, m) array
    """
    S, x, y, bias = _inputs(X, Y, bias)
    tangent = S
    for _ in range(positive_int("depth", depth, DEEPEST)):
        norm, zero, one = _layer(S, x, y)
        S = norm * one + bias
        tangent = S + tangent * zero
        x, y = x + bias, y + bias
    return tangent


def _inputs(X, Y, bias):
    """Return covariance (n, m) and variances (n,), (m,) of the first pre-activations, and the bias."""
    X, Y, bias = (
        squarable("X", real_array("X", X, 2)),
        squarable("Y", real_array("Y", Y, 2)),
        number("bias", bias, 0.0, LARGEST),
    )
    D = X.shape[1]
    if Y.shape[1] != D or not D:
        raise ValueError(f"Y must have the columns of X, one at least, got {Y.shape[1]} and {D}")
    return (X @ Y.T) / D + bias, np.sum(X**2, axis=1) / D + bias, np.sum(Y**2, axis=1) / D + bias, bias


def _layer(S, x, y):
    """Return the product of the norms of both inputs, and both arc-cosine kernels of their directions, all (n, m)."""
    norm = np.sqrt(np.outer(x, y))
    with np.errstate(invalid="ignore", divide="ignore"):
        cos = np.clip(S / norm, -1.0, 1.0)
    cos = np.where(norm > 0.0, cos, np.equal.outer(x, y))  # two rows of zeros have no direction; they count as parallel
    theta = np.arccos(cos)
    return norm, 1.0 - theta / np.pi, (np.sin(theta) + (np.pi - theta) * cos) / np.pi
