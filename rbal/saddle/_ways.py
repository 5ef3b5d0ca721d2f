"""What every way to a solution needs where the first attempt fails: other problems, and Newton by its address."""

from typing import NamedTuple

from .._support.gauss import jit
from ..losses.internal import Law, law_of
from ._kernels import newton_at
from ._problem import EDGE, SAT, Problem

COLLAPSED = 2  # a phase beside UNSAT and SAT: no weights lower the loss
PATIENCE = 20  # times max_iter: all iterations of one search, after which it is given up


class Tools(NamedTuple):
    """What the ways below share: the laws of the SAT phase and of its surface, the address of Newton, the accuracy."""

    sat: Law
    edge: Law
    newton: int
    tol: float
    max_iter: int


@jit
def tools_of(question, max_iter):
    """Return the tools for a question."""
    calls, traits = question.calls, question.traits
    return Tools(law_of(calls[1], traits[1]), law_of(calls[2], traits[2]), question.newton, question.tol, max_iter)


@jit
def with_mode(p, tools, mode, kappa, ridge):
    """Copy of a problem with another mode and its law, margin and ridge."""
    law = tools.sat if mode == SAT else (tools.edge if mode == EDGE else p.law)
    return Problem(mode, law, kappa, p.alpha, p.weight, p.width, p.norm, ridge, p.fit_bias)


@jit
def with_sizes(p, alpha, norm):
    """Copy of a problem with other class sizes and norm."""
    return Problem(p.mode, p.law, p.kappa, alpha, p.weight, p.width, norm, p.ridge, p.fit_bias)


@jit
def search(problem, tools, spectrum, most, limit, y):
    """Call ``newton`` by its address, for at most so many iterations."""
    return newton_at(tools.newton, (problem, spectrum, tools.tol, most, limit, y))


@jit
def major(problem):
    """Label of the class that pulls harder at the bias; 0 when they are even."""
    gap = problem.alpha[0] * problem.weight[0] - problem.alpha[1] * problem.weight[1]
    if abs(gap) <= 4e-16 * problem.alpha[0] * problem.weight[0] or not problem.fit_bias:
        return 0.0
    return 1.0 if gap > 0.0 else -1.0


@jit
def from_major(problem, tools):
    """Copy of a problem whose bias is counted from the margin of the major class.

    There it sits at large margins, and b alone, near ±κ, would lose the digits that matter.
    """
    y = major(problem)
    kappa = problem.kappa
    moved = (kappa[0] - y * kappa[0], kappa[1] + y * kappa[0])
    return with_mode(problem, tools, problem.mode, moved, problem.ridge)
