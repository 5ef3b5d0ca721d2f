"""Ways to the solution on the sphere where the first attempt fails: which phase it is, and other starts."""

import math

import numpy as np

from .._support.gauss import jit
from ..moments import Spectrum
from ._bias import solve_bias
from ._kernels import data_side
from ._problem import EDGE, LOG_Q, LOG_X, SAT, UNSAT, ZETA, B, Problem, R, assign
from ._ridge import solve_vanishing
from ._starts import FEW, FEWER, HUGE, X_LIMIT, first_attempt, most_iterations, sphere_start
from ._ways import COLLAPSED, PATIENCE, from_major, major, search, tools_of, with_mode, with_sizes
from ._weights import sums


@jit
def solve_edge(problem, tools, spectrum, y):
    """The SAT/UNSAT surface: y[LOG_X] becomes the critical margin. Extreme sizes are reached from milder ones."""
    p = with_mode(problem, tools, EDGE, (0.0, 0.0), 0.0)
    sphere_start(p, spectrum, y)
    residual, total = search(p, tools, spectrum, tools.max_iter, HUGE, y)
    if residual <= tools.tol:
        return residual, total
    solved, factor, good = 0.0, 4.0, np.empty(5)
    assign(good, y)
    share = 1e-3 / max(p.alpha[0], p.alpha[1])
    for _ in range(200):
        alpha = (p.alpha[0] * share, p.alpha[1] * share)
        mild = with_sizes(p, alpha, p.norm)
        if solved > 0.0:
            assign(y, good)
        else:
            sphere_start(mild, spectrum, y)
        residual, n = search(mild, tools, spectrum, tools.max_iter, HUGE, y)
        total += n
        if residual <= tools.tol:
            if share == 1.0:
                break
            solved, factor = share, min(factor * factor, 100.0)
            assign(good, y)
        elif solved == 0.0 or factor < 1.01:
            break
        else:
            factor = math.sqrt(factor)
        if total > PATIENCE * tools.max_iter:
            break
        share = min(1.0, solved * factor)
    return residual, total


@jit
def beyond_edge(problem, tools, spectrum):
    """Whether the critical margin is quickly seen to be below the one asked for: then there is no SAT phase."""
    if not tools.sat.easier_below or spectrum.g_null > 0.0:
        return False
    p = with_mode(problem, tools, EDGE, (0.0, 0.0), 0.0)
    y = np.empty(5)
    sphere_start(p, spectrum, y)
    return search(p, tools, spectrum, FEWER, HUGE, y)[0] <= tools.tol and y[LOG_X] <= problem.kappa[0]


@jit
def solve_sat(problem, tools, spectrum, y):
    """Typical weights without loss. How far the margin is from the critical one tells where to start."""
    p = with_mode(problem, tools, SAT, problem.kappa, 0.0)
    edge = np.empty(5)
    residual, total = solve_edge(problem, tools, spectrum, edge)
    known, gap = residual <= tools.tol, edge[LOG_X] - p.kappa[0]
    if p.law.easier_below and known and gap <= 0.0 and spectrum.g_null == 0.0:
        return math.inf, total
    if p.law.easier_below and known and gap > 0.0:  # the spread w of the solutions opens linearly
        sphere_start(p, spectrum, y)
        widest = y[LOG_Q]
        assign(y, edge)
        y[LOG_X] = min(math.log(0.5 * gap) + 0.5 * edge[LOG_Q], widest)
        residual, n = search(p, tools, spectrum, FEW, HUGE, y)
        total += n
        if residual <= tools.tol:
            return residual, total
    for k in range(4):  # half aligned with the shift, fully, not at all, just enough for the margin
        sphere_start(p, spectrum, y)
        if k == 1:
            y[R] *= 2.0
        elif k > 1:
            y[R] = min(y[R], 2.0 * (k - 2.0) * p.kappa[0])
        residual, n = search(p, tools, spectrum, FEW, HUGE, y)
        total += n
        if residual <= tools.tol:
            return residual, total
    if p.law.easier_below:
        loose_start(p, spectrum, y)
        residual, n = search(p, tools, spectrum, FEW, HUGE, y)
        total += n
        if residual <= tools.tol:
            return residual, total
    if known and gap > 0.0:
        return leave_edge(p, tools, spectrum, edge, y, total)
    return math.inf, total


@jit
def loose_start(problem, spectrum, y):
    """Weights spread as without data, and the little that ever fewer samples then pull."""
    m = sums(spectrum)
    zeta = (m.g0 + spectrum.g_null) / problem.norm
    w = m.g1 / zeta
    q = 1e-12 * w
    b = solve_bias(problem, 0.0, q, w, 0.0, 0.0) if problem.fit_bias else 0.0
    hats = np.empty((6, 4))
    data_side(problem.law, problem, 0.0, (q, w, 0.0, b), hats)
    q_hat, r_hat = hats[0, 1], hats[0, 2]
    y[LOG_Q] = math.log(max((q_hat * m.g2 + r_hat**2 * m.s1) / zeta**2, 1e-300))
    y[LOG_X], y[R], y[B], y[ZETA] = math.log(w), r_hat * m.s0 / zeta, b, zeta


@jit
def leave_edge(problem, tools, spectrum, edge, y, total):
    """Follow the SAT phase from its surface, where the volume of solutions closes, down to the margin asked for."""
    gap = edge[LOG_X] - problem.kappa[0]
    share, solved, factor, good = 0.02, 0.0, 2.0, np.empty(5)
    assign(good, edge)
    residual = math.inf
    for _ in range(100):
        kappa = edge[LOG_X] - share * gap
        p = with_mode(problem, tools, SAT, (kappa, kappa), 0.0)
        for k in range(1 if solved > 0.0 else 6):  # the spread near the surface is of the order of the distance
            assign(y, good)
            if solved == 0.0:
                y[LOG_X] = min(2.0 * math.log(share * gap), edge[LOG_Q]) - 2.0 * k
            residual, n = search(p, tools, spectrum, FEW, HUGE, y)
            total += n
            if residual <= tools.tol:
                break
        if residual <= tools.tol:
            if share == 1.0:
                break
            assign(good, y)
            solved, factor = share, min(factor * factor, 4.0)
        elif solved == 0.0 or factor < 1.01:
            break
        else:
            factor = math.sqrt(factor)
        share = min(1.0, solved * factor)
    return residual, total


@jit
def solve_unsat(problem, tools, spectrum, y):
    """The sphere with some loss left, from several starts. An infinite residual tells of the SAT phase."""
    limit, total = X_LIMIT if problem.law.vanishes else HUGE, 0
    residual = math.inf
    for k in range(3):  # as always; among the directions of least variance; with a small x
        sphere_start(problem, spectrum, y)
        if k == 1:
            y[LOG_Q] = math.log(0.9 * problem.norm * spectrum.lam[0] + 0.1 * math.exp(y[LOG_Q]))
            y[R] = min(y[R], 2.0 * problem.kappa[0])
        elif k == 2:
            y[LOG_X] -= 5.0
        residual, n = search(problem, tools, spectrum, tools.max_iter, limit, y)
        total += n
        if residual <= tools.tol:
            return residual, total
        side = major(problem)
        if problem.law.kinked and side != 0.0 and residual < math.inf:
            moved = from_major(problem, tools)
            y[B] += side * problem.kappa[0]
            residual, n = search(moved, tools, spectrum, tools.max_iter, limit, y)
            y[B] -= side * problem.kappa[0]
            total += n
            if residual <= tools.tol:
                return residual, total
    return residual, total


@jit
def collapses(problem, tools, spectrum):
    """Whether, on the sphere, all weight goes to directions that neither vary nor separate (there must be some)."""
    if not (spectrum.g_null > 0.0 and spectrum.lam[0] > 0.0):
        return False
    y = np.empty(5)
    if problem.kappa[0] > 0.0:
        if not problem.law.kinked:
            return False
        residual, _, k_hat = solve_vanishing(problem, tools, spectrum, y)
        return residual <= tools.tol and k_hat <= 0.0
    # at κ = 0 the scale of the visible weights is free, and any loss they leave is saved by none
    visible = Spectrum(spectrum.lam, spectrum.g, spectrum.s, 0.0, spectrum.lam[0], spectrum.L, spectrum.Q)
    residual, _ = solve_unsat(problem, tools, visible, y)
    return problem.law.vanishes and residual <= tools.tol


@jit
def rescue_sphere(question, problem, spectrum, y, phase, n_iter):
    """Solve a point where the first attempt failed, or whose neighbour of the given phase is SAT: then there was none.

    Returns residual, iterations and phase, among the iterations the ``n_iter`` so far.
    """
    tools = tools_of(question, most_iterations(problem, question.max_iter))
    if phase == SAT:
        if not beyond_edge(problem, tools, spectrum):
            residual, n = search(with_mode(problem, tools, SAT, problem.kappa, 0.0), tools, spectrum, FEWER, HUGE, y)
            n_iter += n
            if residual <= tools.tol:
                return residual, n_iter, SAT
        residual, n = first_attempt(question, problem, spectrum, y, SAT)
        n_iter += n
        if residual <= tools.tol:
            return residual, n_iter, UNSAT
    if collapses(problem, tools, spectrum):
        return 0.0, n_iter, COLLAPSED
    if problem.law.vanishes:
        residual, n = solve_sat(problem, tools, spectrum, y)
        n_iter += n
        if residual <= tools.tol:
            return residual, n_iter, SAT
    residual, n = solve_unsat(problem, tools, spectrum, y)
    return residual, n_iter + n, UNSAT


@jit
def edges(question, spectrum, alphas, out):
    """Critical margins. Rows of alphas: α₊, α₋; rows of out: κ_c, q, r, b, residual."""
    y, tools = np.empty(5), tools_of(question, question.max_iter)
    for j in range(alphas.shape[0]):
        alpha, zeros, ones = (alphas[j, 0], alphas[j, 1]), (0.0, 0.0), (1.0, 1.0)
        problem = Problem(
            EDGE, tools.edge, zeros, alpha, ones, ones, question.norm, 0.0, question.fit_bias
        )  # fmt: skip
        out[j, 4], _ = solve_edge(problem, tools, spectrum, y)
        out[j, 0], out[j, 1], out[j, 2], out[j, 3] = y[LOG_X], math.exp(y[LOG_Q]), y[R], y[B]
