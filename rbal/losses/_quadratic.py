"""Losses whose force is a piece of a line: squared hinge, ℓ = c (κ - u)₊², and square, ℓ = c (κ - u)²."""

import numpy as np

from .._support.gauss import jit
from ._constraints import EQUALITY, INEQUALITY, line, positive_part, ramp
from ._record import Loss

# liblinear puts a ridge on the intercept too, which this scale makes negligible. It also weakens the test of
# convergence: at the usual tolerance of 1e-4 the bias would not have converged.
INTERCEPT_SCALING = 1e3


@jit
def squared_hinge(kappa, c, x, mu, q):
    """Return the twelve expectations of the squared hinge."""
    return ramp(2.0 * c / (1.0 + 2.0 * c * x), kappa, mu, q)


@jit
def squared_hinge_loss(kappa, c, x, mu, q):
    """Return E[ℓ(u)] of the squared hinge."""
    return c * positive_part(kappa, mu, q)[2] / (1.0 + 2.0 * c * x) ** 2


@jit
def squared_hinge_force(kappa, c, u):
    """Return the force -ℓ'(u) of the squared hinge."""
    return 2.0 * c * max(kappa - u, 0.0)


@jit
def squared_hinge_curvature(kappa, c, u):
    """Return ℓ''(u) of the squared hinge."""
    return 2.0 * c if u < kappa else 0.0


@jit
def square(kappa, c, x, mu, q):
    """Return the twelve expectations of the square loss."""
    return line(2.0 * c / (1.0 + 2.0 * c * x), kappa, mu, q)


@jit
def square_loss(kappa, c, x, mu, q):
    """Return E[ℓ(u)] of the square loss."""
    return c * ((kappa - mu) ** 2 + q) / (1.0 + 2.0 * c * x) ** 2


@jit
def square_force(kappa, c, u):
    """Return the force -ℓ'(u) of the square loss."""
    return 2.0 * c * (kappa - u)


@jit
def square_curvature(kappa, c, u):
    """Return ℓ''(u) of the square loss."""
    return 2.0 * c


def svc(C, fit_bias=True, tol=1e-7, max_iter=10_000, class_weight=None):
    """Return a linear SVM of scikit-learn with squared hinge, solved by liblinear."""
    from sklearn.svm import LinearSVC

    return LinearSVC(
        C=C, dual=False, fit_intercept=fit_bias, intercept_scaling=INTERCEPT_SCALING,
        tol=tol, max_iter=max_iter, class_weight=class_weight,
    )  # fmt: skip


def ridge(C, fit_bias=True, tol=1e-4, max_iter=None, class_weight=None):
    """Return the classifier of scikit-learn by ridge regression on labels ±1, which takes no iterations."""
    from sklearn.linear_model import RidgeClassifier

    return RidgeClassifier(alpha=0.5 / C, fit_intercept=fit_bias, tol=tol, class_weight=class_weight)


SQUARED_HINGE = Loss(
    name="squared_hinge",
    title="linear SVM with squared hinge",
    formula="(κ - u)₊²",
    value=lambda u, kappa: np.maximum(kappa - u, 0.0) ** 2,
    expectations=squared_hinge,
    mean_loss=squared_hinge_loss,
    force=squared_hinge_force,
    curvature=squared_hinge_curvature,
    estimator=svc,
    constraint=INEQUALITY,
)
SQUARE = Loss(
    name="square",
    title="ridge classifier",
    formula="(κ - u)²",
    value=lambda u, kappa: (kappa - u) ** 2,
    expectations=square,
    mean_loss=square_loss,
    force=square_force,
    curvature=square_curvature,
    estimator=ridge,
    constraint=EQUALITY,
)
