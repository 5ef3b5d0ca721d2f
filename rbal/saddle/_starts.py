"""Where Newton's method starts, and its first attempt at a point."""

import math

import numpy as np

from .._support.gauss import jit
from ..losses.internal import force_at
from ._kernels import newton_at
from ._problem import EDGE, LOG_Q, LOG_X, RIDGE, UNSAT, ZETA, B, R
from ._weights import sums

X_LIMIT = 1e7  # x/√q beyond this: go and see whether the data are separable
HUGE = 1e300
FEW, FEWER = np.int64(40), np.int64(20)  # iterations after which to look at something else, before more is tried
VANISHING = -40.0  # log q below which to see whether any weights lower the loss


@jit
def force(problem, k, u):
    """-ℓ'(u), the force on a sample of class k that ended at u."""
    return force_at(problem.law.force, (problem.kappa[k], problem.weight[k], u))


@jit
def sphere_start(problem, spectrum, y):
    """Set y to weights on the sphere, half aligned with the shift."""
    m = sums(spectrum)
    q = problem.norm * m.g1 / m.g0
    y[LOG_Q], y[LOG_X] = math.log(q), 0.0 if problem.mode == EDGE else 0.5 * math.log(q)
    y[R], y[B], y[ZETA] = 0.5 * math.sqrt(problem.norm * m.s0), 0.0, 1.0


@jit
def ridge_start(problem, spectrum, ridge, y):
    """Weights as under a strong ridge, where every sample pulls with the force it has at 0; capped at the margin."""
    q_hat = r_hat = 0.0
    for k in range(2):
        f = force(problem, k, 0.0)
        q_hat += problem.alpha[k] * problem.width[k] * f * f
        r_hat += 0.5 * problem.alpha[k] * f
    m = sums(spectrum)
    top = 1.0 + max(problem.kappa[0], problem.kappa[1])
    q = min((q_hat * m.g2 + r_hat**2 * m.s1) / ridge**2, top**2)
    x = min(m.g1 / ridge, math.sqrt(q))
    y[LOG_Q], y[LOG_X] = math.log(q), math.log(x)
    y[R], y[B], y[ZETA] = min(r_hat * m.s0 / ridge, top), 0.0, ridge


@jit
def most_iterations(problem, max_iter):
    """Iterations of one attempt: a quadrature is smooth, so that it takes ten or will not come; each is a long one."""
    return min(max_iter, FEW) if problem.law.widest < math.inf else max_iter


@jit
def first_attempt(question, problem, spectrum, y, phase):
    """Newton's method from y, if that is a neighbour of this phase, or else from the usual start.

    Returns (residual, iterations); a residual of infinity where the point needs a closer look.
    """
    ridge = problem.mode == RIDGE
    most, limit = most_iterations(problem, question.max_iter), HUGE
    if not ridge and problem.law.vanishes:
        most, limit = min(most, FEW), X_LIMIT
    if phase != UNSAT:
        if ridge:
            ridge_start(problem, spectrum, problem.ridge, y)
        else:
            sphere_start(problem, spectrum, y)
    residual, n_iter = newton_at(question.newton, (problem, spectrum, question.tol, most, limit, y))
    if ridge and y[LOG_Q] <= VANISHING:
        residual = math.inf
    return residual, n_iter


@jit
def too_wide(problem, y):
    """Whether the quadrature of the loss does not resolve it any more."""
    return y[LOG_Q] > 2.0 * math.log(problem.law.widest) - math.log(max(problem.width[0], problem.width[1]))
