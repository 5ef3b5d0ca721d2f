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

SHARE = 0.995  # of the way to the nearest bound that a step goes


class Fit(NamedTuple):
    """A linear SVM: the score of a row is x·w - b."""

    w: np.ndarray  # (D,)
    b: float
    gap: float  # between primal and dual objective, in units of the primal one: a bound of the error
    n_iter: int


def fit_svm(X, y, c, fit_bias=True, tol=1e-9, max_iter=200):
    """Train a linear SVM of ridge 1 on rows X (n, D), labels y = ±1 (n,) and costs c > 0 (n,); return the Fit.

    It ends when the gap is at most ``tol``, or when rounding errors leave no better step; the caller looks at the gap.
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
    for step in range(max_iter + 1):
        v = c - a
        margins = Z @ w - signs * b
        gap = _gap(margins, w, a, c, Z, signs)
        if gap < best.gap:
            best = Fit(w, b, gap, step)
        if gap <= tol or step == max_iter:
            break
        theta = xi / v + s / a
        lack = 1.0 - margins - xi + s, Z.T @ a - w, -(signs @ a)
        try:
            solve = _Newton(Z, signs, theta)
        except LinAlgError:
            break
        mu = (a @ s + v @ xi) / (2 * n)
        da, dw, db, ds, dxi = _direction(solve, lack, (a, s, v, xi), 0.0, 0.0)
        reach = _reach((a, da), (s, ds), (v, -da), (xi, dxi))
        after = ((a + reach * da) @ (s + reach * ds) + (v - reach * da) @ (xi + reach * dxi)) / (2 * n)
        centre = (after / mu) ** 3 * mu
        da, dw, db, ds, dxi = _direction(solve, lack, (a, s, v, xi), centre - da * ds, centre + da * dxi)
        t = min(1.0, SHARE * _reach((a, da), (s, ds), (v, -da), (xi, dxi)))
        if not t > 1e-12:
            break
        a, w, b, s, xi = a + t * da, w + t * dw, b + t * db, s + t * ds, xi + t * dxi
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
        lack = balance - self.signs @ (right * self.inverse) + self.side @ inner
        db = lack / self.schur if self.schur > 0.0 else 0.0
        dw = inner + self.across * db
        return (right - self.Z @ dw + self.signs * db) * self.inverse, dw, db


def _direction(solve, lack, state, first, second):
    """Return the changes of a, w, b, s and ξ that take a s to ``first`` and v ξ to ``second``."""
    primal, dual, balance = lack
    a, s, v, xi = state
    da, dw, db = solve(primal - (second / v - xi) + (first / a - s), dual, balance)
    return da, dw, db, first / a - s - s / a * da, second / v - xi + xi / v * da


def _reach(*pairs):
    """Return how far a step can go, in units of the step and at most 1, before a number of the pairs is negative."""
    return min(1.0, *(float(np.min(-x / dx, where=dx < 0.0, initial=np.inf)) for x, dx in pairs))


def _gap(margins, w, a, c, Z, signs):
    """Return the distance of the primal from the dual objective, in units of the primal one.

    The dual needs y·a = 0: what is missing is taken from the multipliers of one class.
    """
    primal = 0.5 * w @ w + c @ np.maximum(1.0 - margins, 0.0)
    up, down = a @ np.maximum(signs, 0.0), a @ np.maximum(-signs, 0.0)
    feasible = a * np.where(signs > 0.0, min(1.0, down / up) if up else 1.0, min(1.0, up / down) if down else 1.0)
    back = Z.T @ feasible
    dual = feasible.sum() - 0.5 * back @ back
    return float((primal - dual) / max(primal, 1e-300))
