"""Solve one point after another, each from its neighbour, and report the phase and the solution of each."""

import math
from typing import NamedTuple

import numpy as np
from numba import prange

from .._support.gauss import cdf, jit
from .._support.jit import compiled
from ..losses.internal import law_of, mean_loss_at
from ._equations import COLLAPSED, LOG_Q, LOG_X, RIDGE, SAT, UNSAT, ZETA, B, Problem, R, assign, data_side
from ._fallback import fallback_at, major
from ._newton import first_attempt, force, too_wide

# Columns of a result.
COLUMNS = (
    "q", "r", "b", "x", "k_hat", "x_hat", "q_hat", "r_hat",
    "train_loss", "train_error", "residual", "n_iter", "phase", "converged",
)  # fmt: skip
N_COLUMNS = len(COLUMNS)
Q, R_, B_, X, K_HAT, X_HAT, Q_HAT, R_HAT, TRAIN_LOSS, TRAIN_ERROR, RESIDUAL, N_ITER, PHASE, CONVERGED = range(N_COLUMNS)


@jit
def report(settings, problem, spectrum, phase, y, out):
    """Write order parameters, hats, training loss and error of a solution to out."""
    weighted = (problem.alpha[0] * problem.weight[0], problem.alpha[1] * problem.weight[1])
    total = weighted[0] + weighted[1]
    if phase == COLLAPSED:
        side = major(problem)
        lost = (weighted[1] if side > 0.0 else weighted[0]) / total
        out[Q], out[R_], out[B_], out[X] = 0.0, 0.0, -side * problem.kappa[0], 0.0
        out[K_HAT] = problem.ridge if problem.mode == RIDGE else 0.0
        out[TRAIN_LOSS] = 2.0 * problem.kappa[0] * lost
        out[TRAIN_ERROR] = lost if problem.kappa[0] > 0.0 else 0.0  # at κ = 0 every score is 0, and none is wrong
        return
    q, x, r, b = math.exp(y[LOG_Q]), math.exp(y[LOG_X]), y[R], y[B]
    hats = np.empty((6, 4))
    law = law_of(settings.calls[1], settings.traits[1]) if phase == SAT else problem.law
    data_side(law, problem, 0.0, (q, x, r, b), hats)
    k_hat = y[ZETA]
    if problem.mode != RIDGE:
        k_hat -= hats[0, 0] * spectrum.shift
    out[Q], out[R_], out[B_], out[X] = q, r, b, x
    out[K_HAT], out[X_HAT], out[Q_HAT], out[R_HAT] = k_hat, hats[0, 0], hats[0, 1], hats[0, 2]
    out[TRAIN_LOSS] = out[TRAIN_ERROR] = 0.0
    if phase == UNSAT:
        for k in range(2):
            mu = 0.5 * r - (1.0 - 2.0 * k) * b
            c, kappa, w = problem.weight[k], problem.kappa[k], problem.width[k]
            mean_loss = mean_loss_at(problem.law.mean_loss, (kappa, c, w * x, mu, w * q))
            out[TRAIN_LOSS] += problem.alpha[k] * mean_loss / total
            # u < 0 exactly where u0 < -x f(u = 0)
            edge = -w * x * force(problem, k, 0.0)
            out[TRAIN_ERROR] += weighted[k] * cdf((edge - mu) / math.sqrt(w * q)) / total


@jit
def walk(settings, spectrum, points, y, phase, out):
    """Solve one point after another, each from its neighbour. Rows of points: κ, α₊, α₋, c₊, c₋, λ̃, w₊, w₋.

    y and phase are the state and the phase to start from (phase -1: from none). Writes the state of the last point to y
    and returns its phase and the number of points solved: all, or those before the first that needs the fallback when
    the settings have none.
    """
    law, start = law_of(settings.calls[0], settings.traits[0]), np.empty(5)
    for j in range(points.shape[0]):
        kappa, ridge = points[j, 0], points[j, 5]
        alpha, weight = (points[j, 1], points[j, 2]), (points[j, 3], points[j, 4])
        width = (points[j, 6], points[j, 7])
        problem = Problem(
            settings.mode, law, (kappa, kappa), alpha, weight, width, settings.norm, ridge, settings.fit_bias
        )  # fmt: skip
        residual, n_iter, result = math.inf, 0, UNSAT
        assign(start, y)
        if phase != SAT:
            residual, n_iter = first_attempt(settings, problem, spectrum, y, phase)
        if not residual <= settings.tol:
            if settings.fallback == 0:
                assign(y, start)
                return phase, j
            residual, n_iter, result = fallback_at(settings.fallback, (settings, problem, spectrum, y, phase, n_iter))
        row = out[j]
        for k in range(row.size):
            row[k] = math.nan
        converged = residual <= settings.tol and not too_wide(problem, y)
        if converged:
            report(settings, problem, spectrum, result, y, row)
        row[RESIDUAL], row[N_ITER], row[PHASE], row[CONVERGED] = residual, n_iter, result, 1.0 if converged else 0.0
        phase = result if converged and result != COLLAPSED else -1
    return phase, points.shape[0]


class Walks(NamedTuple):
    """Walks of ``chunk`` points each.

    Holds the points and the rows of results; and of each walk its state, phase and number of points done.
    """

    chunk: int
    points: np.ndarray
    out: np.ndarray
    y: np.ndarray
    phase: np.ndarray
    done: np.ndarray


@jit
def walk_part(i, settings, spectrum, walks, until):
    """Continue walk number i until this many of its points are done."""
    lo, hi = i * walks.chunk + walks.done[i], min(i * walks.chunk + until, walks.points.shape[0])
    if lo < hi:
        phase, n = walk(settings, spectrum, walks.points[lo:hi], walks.y[i], walks.phase[i], walks.out[lo:hi])
        walks.phase[i] = phase
        walks.done[i] += n


@compiled(parallel=True)
def walk_parallel(settings, spectrum, walks, which, until, alone):
    """Continue walks which[0] to which[1] in parallel, until this many points of each are done.

    Walks have a fixed length, so that the result does not depend on the number of threads.
    """
    if alone:
        for i in range(which[0], which[1]):
            walk_part(i, settings, spectrum, walks, until)
    else:
        for i in prange(which[0], which[1]):
            walk_part(np.int64(i), settings, spectrum, walks, until)
