"""The record of a loss, and the laws that the compiled solver gets of it."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import config, types

from .._support.gauss import jit
from .._support.jit import FLOAT, address, late
from .._support.records import Record, enter

#: All losses, by the name that ``loss=`` takes.
LOSSES = {}


class Law(NamedTuple):
    """A loss or a constraint as the solver sees it. Every law has the same type, so that one solver serves all.

    Functions are given as addresses, 0 if there is none.
    """

    expectations: int
    mean_force: int
    mean_loss: int
    force: int
    widest: float  # √q up to which the expectations are exact: finite for a quadrature, which is slow
    unit: float  # the scale on which the loss bends beside κ, 0 for none
    saturates: bool  # the force is at most c
    kinked: bool  # the force jumps from c to 0 at κ, and is constant elsewhere
    easier_below: bool  # a constraint that is easier to meet with a smaller margin
    vanishes: bool  # the loss can vanish on all the data, so that there is a SAT phase


# Calls of the functions of a law by their addresses: with (κ, c, x, μ, q), the last one with (κ, c, u).
PAIR, TWELVE = types.UniTuple(FLOAT, 2), types.UniTuple(FLOAT, 12)
FIVE, THREE = (FLOAT,) * 5, (FLOAT,) * 3
expectations_at, mean_force_at, mean_loss_at = late(TWELVE, FIVE), late(PAIR, FIVE), late(FLOAT, FIVE)
force_at = late(FLOAT, THREE)
CALLS, TRAITS = 4, 6  # fields of a law that are addresses, and others
NO_LAW = Law(0, 0, 0, 0, math.inf, 0.0, False, False, False, False)


@jit
def law_of(c, t):
    """Return the law in a row, of shapes (CALLS,) and (TRAITS,), of the tables of a loss."""
    return Law(c[0], c[1], c[2], c[3], t[0], t[1], t[2] != 0.0, t[3] != 0.0, t[4] != 0.0, t[5] != 0.0)


@dataclass(frozen=True, eq=False)
class Constraint:
    """The constraint that samples obey where a loss vanishes on all of them.

    Attributes
    ----------
    name : str
    expectations, edge : compiled function of (κ, c, w, μ, q)
        The twelve expectations inside the SAT phase, with w in the place of x, and on the surface where it ends.
    mean_force : compiled function of the same, optional
        Only E[f] and ∂E[f]/∂μ, if that is faster.
    easier_below : bool
        Whether the constraint is easier to meet with a smaller margin.
    """

    name: str
    expectations: Callable
    edge: Callable
    mean_force: Callable | None = None
    easier_below: bool = False

    @functools.cached_property
    def laws(self):
        """The laws of the SAT phase and of its surface."""
        quick = address(self.mean_force, PAIR, FIVE) if self.mean_force else 0
        at_edge = NO_LAW._replace(expectations=address(self.edge, TWELVE, FIVE))
        inside = at_edge._replace(
            expectations=address(self.expectations, TWELVE, FIVE), mean_force=quick, easier_below=self.easier_below
        )
        return inside, at_edge


@dataclass(frozen=True, eq=False)
class Loss(Record):
    """A loss ℓ of the signed score u, with margin κ and weight c, and all that the library needs of it.

    Attributes
    ----------
    name : str
        Name that ``loss=`` takes.
    title : str
        Name of the classifier that is trained with it.
    formula : str
        ℓ at weight 1.
    value : function of (u, κ)
        ℓ at weight 1, of arrays.
    expectations : compiled function of (κ, c, x, μ, q)
        E[f], E[f²], E[-f'], then their derivatives in μ, in q and in x.
    mean_loss : compiled function of the same
        E[ℓ(prox(u0))].
    force, curvature : compiled function of (κ, c, u)
        -ℓ'(u), from below where it jumps, and ℓ''(u).
    estimator : function of (C, fit_bias, tol, max_iter, class_weight), optional
        Returns an unfitted classifier of scikit-learn that minimises Σ ℓ + ‖J‖²/(2C) at the default of κ; all arguments
        but C have defaults. With None, only the theory knows this loss.
    constraint : Constraint, optional
        Constraint that replaces the loss if it can vanish on all the data.
    margin : float
        Default of κ: 1, or 0 for a loss without a margin, where κ is a shift.
    widest : float
        √q up to which the expectations are exact, finite for a quadrature.
    unit : float
        Scale on which the loss bends beside κ, 0 for none.
    saturates, kinked : bool
        Whether the force is at most c; whether it jumps from c to 0 at κ, and is constant elsewhere.
    """

    _registry = ("rbal.losses", "LOSSES")
    name: str
    title: str
    formula: str
    value: Callable
    expectations: Callable
    mean_loss: Callable
    force: Callable
    curvature: Callable
    estimator: Callable | None = None
    constraint: Constraint | None = None
    margin: float = 1.0
    widest: float = math.inf
    unit: float = 0.0
    saturates: bool = False
    kinked: bool = False

    @functools.cached_property
    def law(self):
        """The law of the loss itself; this compiles its functions."""
        return Law(
            address(self.expectations, TWELVE, FIVE),
            0,
            address(self.mean_loss, FLOAT, FIVE),
            address(self.force, FLOAT, THREE),
            self.widest,
            self.unit,
            self.saturates,
            self.kinked,
            False,
            self.constraint is not None,
        )

    @functools.cached_property
    def laws(self):
        """The laws of the loss, of its SAT phase and of the surface between them."""
        return self.law, *(self.constraint.laws if self.constraint else (NO_LAW, NO_LAW))

    @functools.cached_property
    def table(self):
        """The law of the loss as two arrays, of addresses and of traits, which threads can share; see :func:`law_of`.

        Their shapes are (3, CALLS) and (3, TRAITS); here the last two rows are empty.
        """
        return _tables((self.law, NO_LAW, NO_LAW))

    @functools.cached_property
    def tables(self):
        """The same of all laws, for the sphere where the loss may vanish."""
        return _tables(self.laws)


def _tables(laws):
    kind = object if config.DISABLE_JIT else np.int64
    return np.array([law[:CALLS] for law in laws], kind), np.array([law[CALLS:] for law in laws], float)


def register(loss):
    """Add a loss to LOSSES, so that the solver, the learners and the advice know it by its name.

    Parameters
    ----------
    loss : Loss
        Its name must be new.

    Returns
    -------
    Loss
    """
    return enter(LOSSES, Loss, loss)


def trained():
    """Return the names of the losses that have a classifier to train."""
    return tuple(name for name, loss in LOSSES.items() if loss.estimator)
