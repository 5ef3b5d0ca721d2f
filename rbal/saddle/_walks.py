"""Solve one point after another, decide the phase of each, and report it."""

import math
from typing import NamedTuple

import numpy as np
from numba import prange

from .._support.gauss import cdf, jit
from .._support.jit import compiled
from ..losses._record import law_of, mean_loss_at
from ._kernels import data_side
from ._problem import LOG_Q, LOG_X, RIDGE, SAT, UNSAT, ZETA, B, Problem, R
from ._solver import (
    COLLAPSED,
    FEW,
    HUGE,
    beyond_edge,
    can_vanish,
    collapses,
    force,
    major,
    search,
    solve_edge,
    solve_ridge,
    solve_sat,
    solve_unsat,
    sphere_start,
    too_wide,
    with_mode,
    x_limit,
)

# Columns of a result.
COLUMNS = (
    "q", "r", "b", "x", "k_hat", "x_hat", "q_hat", "r_hat",
    "train_loss", "train_error", "residual", "n_iter", "phase", "converged",
)  # fmt: skip
N_COLUMNS = len(COLUMNS)
Q, R_, B_, X, K_HAT, X_HAT, Q_HAT, R_HAT, TRAIN_LOSS, TRAIN_ERROR, RESIDUAL, N_ITER, PHASE, CONVERGED = range(N_COLUMNS)


@jit
def solve_point(problem, spectrum, tol, max_iter, y, warm_phase, out):
    """One saddle point into one row of COLUMNS; y is the start when warm_phase ≥ 0, and the solution after.

    Returns the phase to start from at a neighbouring point, or -1.
    """
    if problem.law.widest < math.inf:  # smooth, so that it takes ten iterations or will not come; each is a long one
        max_iter = min(max_iter, FEW)
    if problem.mode == RIDGE:
        residual, n, phase = solve_ridge(problem, spectrum, tol, max_iter, y, warm_phase == UNSAT)
    else:
        separable = can_vanish(problem)
        phase, residual, n = UNSAT, math.inf, 0
        if warm_phase == SAT and separable and not beyond_edge(problem, spectrum, tol):
            phase = SAT
            residual, n = search(with_mode(problem, SAT, problem.kappa, 0.0), spectrum, tol, 20, HUGE, y)
        if not residual <= tol:
            phase = UNSAT
            if warm_phase != UNSAT:
                sphere_start(problem, spectrum, y)
            residual, more = search(
                problem, spectrum, tol, min(FEW, max_iter) if separable else max_iter, x_limit(problem), y
            )
            n += more
        if not residual <= tol and collapses(problem, spectrum, tol, max_iter):
            phase, residual = COLLAPSED, 0.0
        if separable and not residual <= tol:
            at_sat, more = solve_sat(problem, spectrum, tol, max_iter, y)
            n += more
            if at_sat <= tol:
                phase, residual = SAT, at_sat
        if not residual <= tol:
            residual, more = solve_unsat(problem, spectrum, tol, max_iter, y)
            n += more
    ok = residual <= tol
    if ok and too_wide(problem, y):
        ok = False
    report(problem, spectrum, phase, ok, y, out)
    out[RESIDUAL], out[N_ITER], out[PHASE], out[CONVERGED] = residual, n, phase, 1.0 if ok else 0.0
    return phase if ok and phase != COLLAPSED else -1


@jit
def report(problem, spectrum, phase, ok, y, out):
    """Order parameters, hats, training loss and error of a solution; NaN throughout where there is none."""
    for j in range(out.size):
        out[j] = math.nan
    if not ok:
        return
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
    p = problem
    if phase == SAT:
        p = with_mode(problem, SAT, problem.kappa, 0.0)
    data_side(p, 0.0, q, x, r, b, hats)
    k_hat = y[ZETA]
    if problem.mode != RIDGE:
        k_hat -= hats[0, 0] * spectrum.shift
    out[Q], out[R_], out[B_], out[X] = q, r, b, x
    out[K_HAT], out[X_HAT], out[Q_HAT], out[R_HAT] = k_hat, hats[0, 0], hats[0, 1], hats[0, 2]
    out[TRAIN_LOSS] = out[TRAIN_ERROR] = 0.0
    if phase == UNSAT:
        for k in range(2):
            mu = 0.5 * r - (1.0 - 2.0 * k) * b
            c, kappa = problem.weight[k], problem.kappa[k]
            mean_loss = mean_loss_at(problem.law.mean_loss, (kappa, c, x, mu, q))
            out[TRAIN_LOSS] += problem.alpha[k] * mean_loss / total
            # u < 0 exactly where u0 < -x f(u = 0)
            edge = -x * force(problem, k, 0.0)
            out[TRAIN_ERROR] += weighted[k] * cdf((edge - mu) / math.sqrt(q)) / total


class Question(NamedTuple):
    """What is the same at all points of a walk: UNSAT or RIDGE, the tables of the loss, the norm, the accuracy."""

    mode: int
    calls: np.ndarray
    traits: np.ndarray
    norm: float
    fit_bias: bool
    tol: float
    max_iter: int
    newton: int


@jit
def laws(question):
    """Laws of the loss, of its SAT phase and of the surface between the phases."""
    calls, traits = question.calls, question.traits
    return law_of(calls, traits, 0), law_of(calls, traits, 1), law_of(calls, traits, 2)


@jit
def walk(question, spectrum, points, y, phase, out):
    """Solve one point after another, each from its neighbour. Rows of points: κ, α₊, α₋, c₊, c₋, λ̃.

    y and phase are the state and the phase to start from (-1: from none), and then those of the last point: y in
    place, the phase as what is returned.
    """
    law, sat, edge = laws(question)
    for j in range(points.shape[0]):
        kappa, ridge = points[j, 0], points[j, 5]
        alpha, weight = (points[j, 1], points[j, 2]), (points[j, 3], points[j, 4])
        problem = Problem(
            question.mode, law, sat, edge, (kappa, kappa), alpha, weight, question.norm, ridge, question.fit_bias,
            question.newton,
        )  # fmt: skip
        phase = solve_point(problem, spectrum, question.tol, question.max_iter, y, phase, out[j])
    return phase


class Walks(NamedTuple):
    """Walks of ``chunk`` points each: the points, and for each walk its state, its phase and the rows of results."""

    chunk: int
    points: np.ndarray
    y: np.ndarray
    phase: np.ndarray
    out: np.ndarray


@jit
def walk_part(i, question, spectrum, walks, steps):
    """Some steps of walk number i, from where it was left."""
    lo, hi = i * walks.chunk + steps[0], min(i * walks.chunk + steps[1], walks.points.shape[0])
    walks.phase[i] = walk(question, spectrum, walks.points[lo:hi], walks.y[i], walks.phase[i], walks.out[lo:hi])


@compiled(parallel=True)
def walk_parallel(question, spectrum, walks, which, steps, alone):
    """Walks side by side, of a fixed length, so that the result does not depend on the number of threads.

    One call takes some steps, from steps[0] to steps[1], of some walks, from which[0] to which[1].
    """
    if alone:
        for i in range(which[0], which[1]):
            walk_part(i, question, spectrum, walks, steps)
    else:
        for i in prange(which[0], which[1]):
            walk_part(np.int64(i), question, spectrum, walks, steps)


@jit
def edges(question, spectrum, alphas, out):
    """Critical margins. Rows of alphas: α₊, α₋; rows of out: κ_c, q, r, b, residual."""
    y = np.empty(5)
    _, sat, edge = laws(question)
    for j in range(alphas.shape[0]):
        alpha = (alphas[j, 0], alphas[j, 1])
        problem = Problem(
            question.mode, edge, sat, edge, (0.0, 0.0), alpha, (1.0, 1.0), question.norm, 0.0, question.fit_bias,
            question.newton,
        )  # fmt: skip
        out[j, 4], _ = solve_edge(problem, spectrum, question.tol, question.max_iter, y)
        out[j, 0], out[j, 1], out[j, 2], out[j, 3] = y[LOG_X], math.exp(y[LOG_Q]), y[R], y[B]
