"""The record of one saddle point to solve, and the state of the iteration."""

import math
from typing import NamedTuple

from .._support.gauss import jit
from ..losses._record import Law

# What to solve: the sphere where some loss is left (UNSAT), the sphere under hard constraints (SAT), the surface
# between the two (EDGE), or a fixed ridge k̂ (an SVM).
UNSAT, SAT, EDGE, RIDGE = range(4)


class Problem(NamedTuple):
    """One saddle point to solve. Pairs are (positive class, negative class)."""

    mode: int
    law: Law
    sat: Law  # law of the SAT phase
    edge: Law  # law of the surface between the phases
    kappa: tuple
    alpha: tuple
    weight: tuple
    norm: float  # ‖J‖²/L on the sphere
    ridge: float  # k̂ of an SVM
    fit_bias: bool
    newton: int  # address of ``newton``, which would take long to compile into each of its many callers


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
