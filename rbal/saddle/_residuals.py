"""Compare how fast Newton's method and the damped fixed point reach the saddle point."""

from typing import NamedTuple

import numpy as np

from .._support.validation import number, positive_int
from ..losses import HINGE
from ..moments import spectrum_of
from ._equations import LOG_Q, UNSAT, Problem
from ._newton import HUGE, evaluate, newton, sphere_start, workspace


class Residuals(NamedTuple):
    """Largest relative violation of the equations after 0, 1, 2, … iterations."""

    newton: np.ndarray
    damped: np.ndarray


def residuals(moments, alpha_pos, alpha_neg, kappa, *, n_newton=15, n_damped=120):
    """Return the residuals of a spherical perceptron with the hinge loss, by two methods from the same start.

    Parameters
    ----------
    moments : Moments
        Statistics of the classes.
    alpha_pos, alpha_neg, kappa : float
        Class sizes over L, and the margin, above the critical one.
    n_newton, n_damped : int
        Iterations of Newton's method, and of the fixed point with half of its step.

    Returns
    -------
    Residuals
        Arrays of shapes (n_newton + 1,) and (n_damped,).
    """
    spectrum, y = spectrum_of(moments), np.empty(5)
    alpha = number("alpha_pos", alpha_pos, 0.0, open_low=True), number("alpha_neg", alpha_neg, 0.0, open_low=True)
    margin = number("kappa", kappa, 0.0)
    positive_int("n_newton", n_newton)
    positive_int("n_damped", n_damped)
    norm = float(spectrum.Q)
    problem = Problem(UNSAT, HINGE.law, (margin, margin), alpha, (1.0, 1.0), (1.0, 1.0), norm, 0.0, True)
    work, res, step = workspace(), np.empty(3), np.empty(3)
    damped, fast = [], []
    sphere_start(problem, spectrum, y)
    for _ in range(n_damped):
        evaluate(problem, spectrum, y, work, res, step)
        damped.append(np.abs(res).max())
        y[:3] += 0.5 * res * (1.0, 1.0, np.exp(y[LOG_Q] / 2))
    for k in range(1, n_newton + 1):
        sphere_start(problem, spectrum, y)
        fast.append(newton(problem, spectrum, 1e-15, k, HUGE, y)[0])
    return Residuals(np.array([damped[0], *fast]), np.array(damped))
