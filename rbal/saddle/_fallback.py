"""Solvers for points at which the first attempt fails: they find the phase, start elsewhere, or follow easier points.

They are compiled when a point first needs them, and called by their addresses.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import typeof, types

from .._support.gauss import jit
from .._support.jit import FLOAT, INT, VECTOR, address, late
from ..losses.internal import CALLS, TRAITS, Law, law_of
from ..moments import Spectrum
from ._equations import (
    COLLAPSED,
    EDGE,
    LOG_Q,
    LOG_X,
    RIDGE,
    SAT,
    UNSAT,
    ZETA,
    B,
    Problem,
    Question,
    R,
    assign,
    data_side,
    solve_bias,
    sums,
)
from ._newton import (
    FEW,
    FEWER,
    HUGE,
    PATIENCE,
    X_LIMIT,
    first_attempt,
    most_iterations,
    newton_at,
    ridge_start,
    sphere_start,
    too_wide,
)
from ._newton import kinds as newton_kinds


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


# ---- under a ridge


FAR = 1e9  # a margin that every sample misses


@jit
def solve_vanishing(problem, tools, spectrum, y):
    """Direction of the weights of a hinge SVM as they vanish: major class at its margin, minor class far below.

    The problem is then homogeneous, and its multiplier k̂ on the unit sphere decides: positive, and weights of size
    k̂/λ̃ lower the loss under a strong ridge λ̃; not positive, and no weights do, under any ridge.
    """
    side = major(problem)
    if side == 0.0:
        return even_vanishing(problem, spectrum, y)
    kappa = (0.0, FAR) if side > 0.0 else (FAR, 0.0)
    p = with_sizes(with_mode(problem, tools, UNSAT, kappa, 0.0), problem.alpha, 1.0)
    visible = Spectrum(spectrum.lam, spectrum.g, spectrum.s, 0.0, spectrum.lam[0], spectrum.L, spectrum.Q)
    sphere_start(p, visible, y)
    residual, n = search(p, tools, visible, tools.max_iter, HUGE, y)
    hats = np.empty((6, 4))
    data_side(p.law, p, 0.0, (math.exp(y[LOG_Q]), math.exp(y[LOG_X]), y[R], y[B]), hats)
    return residual, n, y[ZETA] - hats[0, 0] * visible.shift


@jit
def even_vanishing(problem, spectrum, y):
    """Direction of vanishing weights where the classes pull evenly: all samples are below their margin."""
    q_hat = r_hat = 0.0
    for k in range(2):
        q_hat += problem.alpha[k] * problem.width[k] * problem.weight[k] ** 2
        r_hat += 0.5 * problem.alpha[k] * problem.weight[k]
    m = sums(spectrum)
    k_hat = math.sqrt(q_hat * m.g1 + r_hat**2 * m.s0)
    y[LOG_Q] = math.log((q_hat * m.g2 + r_hat**2 * m.s1) / k_hat**2)
    y[LOG_X], y[R] = math.log(m.g1 / k_hat), r_hat * m.s0 / k_hat
    y[B], y[ZETA] = 0.0, k_hat
    return 0.0, 0, k_hat


@jit
def scale_weights(problem, y, scale):
    """Make the weights so many times as large, and with them the bias of a loss with a kink."""
    y[LOG_Q] += 2.0 * math.log(scale)
    y[LOG_X] += math.log(scale)
    y[R] *= scale
    if problem.law.kinked:
        y[B] *= scale


@jit
def follow_ridge(problem, tools, spectrum, y):
    """SVM: follow the solution from a strong ridge, where it is known. Returns the phase too."""
    ridge, total = problem.ridge, 0
    m = sums(spectrum)
    pull = problem.alpha[0] * problem.weight[0] + problem.alpha[1] * problem.weight[1]
    strong = max(ridge, 1e3 * pull * (1.0 + m.g1 + m.s0 + m.g2))
    side = 0.0
    if problem.law.kinked:
        side = major(problem)
        residual, n, k_hat = solve_vanishing(problem, tools, spectrum, y)
        total += n
        if residual > tools.tol:
            return residual, total, UNSAT
        if k_hat <= 0.0:
            return 0.0, total, COLLAPSED
        scale_weights(problem, y, k_hat / strong)
    else:
        ridge_start(problem, spectrum, strong, y)

    moved = from_major(problem, tools)
    kappa = moved.kappa if side != 0.0 else problem.kappa
    # Small weights are in inverse proportion to the ridge, and little but the ridge fixes their size: Newton's steps
    # from another size are short. So each level starts from weights scaled by the power that the last one showed.
    level, solved, factor, power, good = strong, strong, 0.1, 1.0, np.empty(5)
    assign(good, y)
    for _ in range(300):
        assign(y, good)
        scale_weights(problem, y, (solved / level) ** power)
        residual, n = search(with_mode(problem, tools, RIDGE, kappa, level), tools, spectrum, tools.max_iter, HUGE, y)
        total += n
        if residual <= tools.tol:
            if level == ridge:
                y[B] -= side * problem.kappa[0]
                return residual, total, UNSAT
            if level < solved:
                power = min(max(0.5 * (y[LOG_Q] - good[LOG_Q]) / math.log(solved / level), 0.0), 1.0)
            assign(good, y)
            solved, factor = level, max(factor * factor, 0.01)
        elif factor > 0.99 or level == strong or too_wide(problem, good):
            break
        else:
            factor = math.sqrt(factor)
        if total > (5 if problem.law.widest < math.inf else PATIENCE) * tools.max_iter:
            break
        level = max(ridge, solved * factor)
    return residual, total, UNSAT


@jit
def rescue_ridge(question, problem, spectrum, y, phase, n_iter):
    """Solve a point where the first attempt failed. Returns residual, all iterations, and the phase."""
    tools = tools_of(question, most_iterations(problem, question.max_iter))
    residual, n, found = follow_ridge(problem, tools, spectrum, y)
    return residual, n_iter + n, found


# ---- on the sphere


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


# ---- their addresses


def kinds():
    """Types of the arguments: the question, the problem, the spectrum, y, the phase of a neighbour, iterations."""
    problem, spectrum, *_ = newton_kinds()
    question = Question(UNSAT, np.empty((3, CALLS), np.int64), np.empty((3, TRAITS)), 0.0, True, 0.0, 0, 0, 0)
    return typeof(question), problem, spectrum, VECTOR, INT, INT


OUTCOME = types.Tuple((FLOAT, INT, INT))
rescue_at = late(OUTCOME, kinds)


READY = {}  # for each loss and mode that needed a rescue: the tables of its laws, and the address


def tables_and_rescue(law, mode, needed=False):
    """What a question of this loss and mode holds as ``calls``, ``traits`` and ``rescue``.

    All ways and laws of a rescue are compiled when it is first needed; until then its address is 0.
    """
    if needed and (law, mode) not in READY:
        function, tables = (rescue_ridge, law.table) if mode == RIDGE else (rescue_sphere, law.tables)
        READY[law, mode] = (*tables, address(function, OUTCOME, kinds()))
    return READY.get((law, mode), (*law.table, 0))
