r"""The linear SVM by an interior-point method: min ½‖w‖² + Σ c ξ with y (x·w - b) ≥ 1 - ξ and ξ ≥ 0.

The number of steps, twenty to forty, hardly depends on c or on how close the classes are, where a coordinate descent
such as libsvm's takes a number of steps in proportion to c. Each step costs one Cholesky factor of D weights. It is the
predictor-corrector method of Mehrotra on the conditions

.. math:: w = Z^T a, \quad y^T a = 0, \quad a s = v \xi = \mu \to 0, \quad v = c - a, \quad s = Z w - y b + \xi - 1,

where the rows of Z are y x. Samples with a = c are below their margin, those with 0 < a < c on it.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

TOLERANCE = 1e-9  # of the gap
MOST_STEPS = 200
SHARE = 0.995  # of the distance to the nearest bound that a step covers


class Fit(NamedTuple):
    """A linear SVM: the score of a row is x·w - b."""

    w: np.ndarray  # (D,)
    b: float
    gap: float  # between primal and dual objective, in units of the primal one: a bound of the error
    n_iter: int


class Complementary(NamedTuple):
    """Variables (n,) of the conditions a s = v ξ = μ."""

    a: np.ndarray
    s: np.ndarray
    v: np.ndarray
    xi: np.ndarray


class Step(NamedTuple):
    """Changes of the variables; v changes by -a."""

    a: np.ndarray
    w: np.ndarray
    b: float
    s: np.ndarray
    xi: np.ndarray


def fit_svm(X, y, c, fit_bias=True):
    """Train a linear SVM of ridge 1 on rows X (n, D), labels y = ±1 (n,) and costs c > 0 (n,); return the Fit.

    It ends when the gap is at most the tolerance, or when rounding errors leave no better step; the caller checks the
    gap.
    """
    n, D = X.shape
    basis = None
    if D > n:  # weights lie in the span of the rows
        basis, triangle = np.linalg.qr(X.T)
        X = triangle.T
    Z, signs = y[:, None] * X, y if fit_bias else np.zeros(n)
    w, b, a = np.zeros(X.shape[1]), 0.0, 0.5 * c
    xi = np.ones(n)
    s = np.ones(n)
    best = Fit(w, b, np.inf, 0)
    for step in range(MOST_STEPS + 1):
        v = c - a
        margins = Z @ w - signs * b
        gap = _gap(margins, w, a, c, Z, signs)
        if gap < best.gap:
            best = Fit(w, b, gap, step)
        if gap <= TOLERANCE or step == MOST_STEPS:
            break
        theta = xi / v + s / a
        residual = 1.0 - margins - xi + s, Z.T @ a - w, -(signs @ a)
        try:
            solve = _Newton(Z, signs, theta)
        except LinAlgError:
            break
        now, mu = Complementary(a, s, v, xi), (a @ s + v @ xi) / (2 * n)
        d = _direction(solve, residual, now, 0.0, 0.0)
        t = _reach(now, d)
        after = ((a + t * d.a) @ (s + t * d.s) + (v - t * d.a) @ (xi + t * d.xi)) / (2 * n)
        centre = (after / mu) ** 3 * mu
        d = _direction(solve, residual, now, centre - d.a * d.s, centre + d.a * d.xi)
        t = min(1.0, SHARE * _reach(now, d))
        if not t > 1e-12:
            break
        a, w, b, s, xi = a + t * d.a, w + t * d.w, b + t * d.b, s + t * d.s, xi + t * d.xi
        a = np.clip(a, 1e-300, np.nextafter(c, 0.0))
    if fit_bias:
        best = best._replace(b=best_bias(X @ best.w, y, c))
    return best if basis is None else best._replace(w=basis @ best.w)


def best_bias(scores, y, c):
    """Return the bias of least loss for scores x·w (n,), labels y = ±1 and costs c; of several, the one in the middle.

    The loss is convex and piecewise linear in b. Its slope, minus the cost of all negatives at first, grows by c at
    each score x·w - y.
    """
    kinks = scores - y
    order = np.argsort(kinks)
    kinks, slope = kinks[order], np.cumsum(c[order]) - c[y < 0.0].sum()
    flat = np.abs(slope[:-1]) <= 1e-12 * slope[-1]
    if flat.any():
        k = int(np.argmax(flat))
        return float(0.5 * (kinks[k] + kinks[k + 1]))
    return float(kinks[min(int(np.searchsorted(slope, 0.0)), len(kinks) - 1)])


class _Newton:
    """The linear equations of a step, reduced to those of the weights and the bias."""

    def __init__(self, Z, signs, theta):
        self.Z, self.signs, self.inverse = Z, signs, 1.0 / theta
        scaled = Z * np.sqrt(self.inverse)[:, None]
        matrix = scaled.T @ scaled
        matrix.flat[:: len(matrix) + 1] += 1.0
        self.factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
        self.side = Z.T @ (signs * self.inverse)
        self.across = cho_solve(self.factor, self.side, check_finite=False)
        self.schur = signs**2 @ self.inverse - self.side @ self.across

    def __call__(self, right, dual, balance):
        """Return the changes of a, w and b; the bias stays where it is 0 for every sample."""
        inner = cho_solve(self.factor, dual + self.Z.T @ (right * self.inverse), check_finite=False)
        remainder = balance - self.signs @ (right * self.inverse) + self.side @ inner
        db = remainder / self.schur if self.schur > 0.0 else 0.0
        dw = inner + self.across * db
        return (right - self.Z @ dw + self.signs * db) * self.inverse, dw, db


def _direction(solve, residual, variables, first, second):
    """Return the Step that takes a s to ``first`` and v ξ to ``second``."""
    primal, dual, balance = residual
    a, s, v, xi = variables
    da, dw, db = solve(primal - (second / v - xi) + (first / a - s), dual, balance)
    return Step(da, dw, db, first / a - s - s / a * da, second / v - xi + xi / v * da)


def _reach(variables, d):
    """Return the part of a step, at most 1, after which a variable would become negative."""
    pairs = zip(variables, (d.a, d.s, -d.a, d.xi), strict=True)
    return min(1.0, *(float(np.min(-x / dx, where=dx < 0.0, initial=np.inf)) for x, dx in pairs))


def _gap(margins, w, a, c, Z, signs):
    """Return the distance of the primal from the dual objective, in units of the primal one.

    The dual needs y·a = 0: the multipliers of one class are scaled down to that.
    """
    primal = 0.5 * w @ w + c @ np.maximum(1.0 - margins, 0.0)
    up, down = a @ np.maximum(signs, 0.0), a @ np.maximum(-signs, 0.0)
    feasible = a * np.where(signs > 0.0, min(1.0, down / up) if up else 1.0, min(1.0, up / down) if down else 1.0)
    back = Z.T @ feasible
    dual = feasible.sum() - 0.5 * back @ back
    return float((primal - dual) / max(primal, 1e-300))
