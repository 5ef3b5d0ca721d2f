"""The record of one saddle point to solve, and the state of the iteration."""

import math
from typing import NamedTuple

import numpy as np

from .._support.gauss import jit
from ..losses.internal import Law

# What to solve: the sphere where some loss is left (UNSAT), the sphere under hard constraints (SAT), the surface
# between the two (EDGE), or a fixed ridge k̂ (an SVM).
# Numbers of numpy: for each number of Python numba would compile what is called with it once more.
UNSAT, SAT, EDGE, RIDGE = np.arange(4)


class Problem(NamedTuple):
    """One saddle point to solve. Pairs are (positive class, negative class).

    The covariance of a class is its width times the common one, so that its scores have the variance width·q and the
    susceptibility width·x. Widths other than 1 are for a ridge alone.
    """

    mode: int
    law: Law
    kappa: tuple
    alpha: tuple
    weight: tuple
    width: tuple
    norm: float  # ‖J‖²/L on the sphere
    ridge: float  # k̂ of an SVM
    fit_bias: bool


class Question(NamedTuple):
    """What is the same at all points of a walk: UNSAT or RIDGE, the tables of the loss, the norm, the accuracy.

    The last two are addresses of compiled functions, which would take long to compile into each of their callers.
    ``rescue`` is 0 until a point needs it.
    """

    mode: int
    calls: np.ndarray
    traits: np.ndarray
    norm: float
    fit_bias: bool
    tol: float
    max_iter: int
    newton: int
    rescue: int


# Newton's error after a step is of the order of its square, so a relative step as small as this is the last one.
SMALL = 1e-9

# The state y of the iteration. On the edge the second entry is the margin, elsewhere log x (log w in the SAT phase).
LOG_Q, LOG_X, R, B, ZETA = range(5)


# Plain loops compile many times faster than expressions of whole arrays, which must be able to raise errors.
@jit
def assign(target, source):
    """Copy source (n,) into target (n,)."""
    for i in range(target.size):
        target[i] = source[i]


@jit
def largest_of(res):
    """Return the largest absolute value of res (n,), NaN if any is."""
    largest = 0.0
    for i in range(res.size):
        if not abs(res[i]) <= largest:
            largest = abs(res[i])
            if math.isnan(largest):
                break
    return largest
