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
    R,
    Settings,
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

FAR = 1e9  # a margin that every sample misses
FACTOR = 100.0  # largest ratio of two steps of a continuation


class Tools(NamedTuple):
    """Shared by the solvers below: the laws of the SAT phase and of its surface, Newton's address, the accuracy."""

    sat: Law
    edge: Law
    newton: int
    tol: float
    max_iter: int


@jit
def tools_of(settings, max_iter):
    """Return the tools for these settings."""
    calls, traits = settings.calls, settings.traits
    return Tools(law_of(calls[1], traits[1]), law_of(calls[2], traits[2]), settings.newton, settings.tol, max_iter)


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
def search(problem, tools, spectrum, max_iter, limit, y):
    """Call ``newton`` by its address."""
    return newton_at(tools.newton, (problem, spectrum, tools.tol, max_iter, limit, y))


@jit
def major(problem):
    """Label of the class that pulls harder at the bias; 0 if both pull equally."""
    gap = problem.alpha[0] * problem.weight[0] - problem.alpha[1] * problem.weight[1]
    if abs(gap) <= 4e-16 * problem.alpha[0] * problem.weight[0] or not problem.fit_bias:
        return 0.0
    return 1.0 if gap > 0.0 else -1.0


@jit
def from_major(problem, tools):
    """Copy of a problem whose bias is counted from the margin of the major class.

    At large margins the bias is near that margin, and b alone, near ±κ, would lose the digits that matter.
    """
    y = major(problem)
    kappa = problem.kappa
    moved = (kappa[0] - y * kappa[0], kappa[1] + y * kappa[0])
    return with_mode(problem, tools, problem.mode, moved, problem.ridge)


# ---- continuation from an easier problem


class Path(NamedTuple):
    """Progress of a continuation: the problem to solve is at share 1, easier ones are at smaller shares."""

    share: float  # to try next
    solved: float  # the largest that was solved, 0 if there is none
    factor: float  # of the next step


def next_path(path, converged, largest_factor):
    """Return the path after an attempt at its share; the next share is NaN if the continuation has to stop."""
    if converged:
        factor = min(path.factor * path.factor, largest_factor)
        return Path(min(1.0, path.share * factor), path.share, factor)
    if path.solved == 0.0 or path.factor < 1.01:
        return Path(math.nan, path.solved, path.factor)
    factor = math.sqrt(path.factor)
    return Path(min(1.0, path.solved * factor), path.solved, factor)


next_path_compiled = jit(next_path)


# ---- under a ridge


@jit
def solve_vanishing(problem, tools, spectrum, y):
    """Find the direction of the weights of a hinge SVM as they vanish.

    The major class is then at its margin and the minor class far below. The problem is homogeneous, and its multiplier
    k̂ on the unit sphere decides: if it is positive, weights of size k̂/λ̃ lower the loss under a strong ridge λ̃; if not,
    no weights do, under any ridge. Returns (residual, iterations, k̂).
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
    """Find the direction of vanishing weights if both classes pull equally: all samples are below their margin."""
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
    """Multiply the weights by a factor, and with them the bias of a loss with a kink."""
    y[LOG_Q] += 2.0 * math.log(scale)
    y[LOG_X] += math.log(scale)
    y[R] *= scale
    if problem.law.kinked:
        y[B] *= scale


@jit
def follow_ridge(problem, tools, spectrum, y):
    """Follow the solution of an SVM from a strong ridge, where it is known. Returns the phase too."""
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
    # Small weights are in inverse proportion to the ridge, and little but the ridge fixes their size, so that Newton's
    # steps from another size are short. So each step starts from weights scaled by the power that the last one showed.
    path, power, good = Path(ridge / strong, 0.0, 10.0), 1.0, np.empty(5)
    assign(good, y)
    residual = math.inf
    for _ in range(300):
        assign(y, good)
        if path.solved > 0.0:
            scale_weights(problem, y, (path.share / path.solved) ** power)
        level = ridge / path.share
        residual, n = search(with_mode(problem, tools, RIDGE, kappa, level), tools, spectrum, tools.max_iter, HUGE, y)
        total += n
        converged = residual <= tools.tol
        if converged:
            if path.share == 1.0:
                y[B] -= side * problem.kappa[0]
                return residual, total, UNSAT
            if path.solved > 0.0:
                power = 0.5 * (y[LOG_Q] - good[LOG_Q]) / math.log(path.share / path.solved)
                power = min(max(power, 0.0), 1.0)
            assign(good, y)
        elif too_wide(problem, good):
            break
        path = next_path_compiled(path, converged, FACTOR)
        if math.isnan(path.share) or total > (5 if problem.law.widest < math.inf else PATIENCE) * tools.max_iter:
            break
    return math.inf if residual <= tools.tol else residual, total, UNSAT


@jit
def ridge_fallback(settings, problem, spectrum, y, phase, n_iter):
    """Solve a point of an SVM where the first attempt failed. Returns residual, all iterations, and the phase."""
    tools = tools_of(settings, most_iterations(problem, settings.max_iter))
    residual, n, phase = follow_ridge(problem, tools, spectrum, y)
    return residual, n_iter + n, phase


# ---- on the sphere


@jit
def solve_edge(problem, tools, spectrum, y):
    """Solve on the SAT/UNSAT surface, for extreme sizes from milder ones: y[LOG_X] becomes the critical margin."""
    p = with_mode(problem, tools, EDGE, (0.0, 0.0), 0.0)
    sphere_start(p, spectrum, y)
    residual, total = search(p, tools, spectrum, tools.max_iter, HUGE, y)
    if residual <= tools.tol:
        return residual, total
    path, good = Path(1e-3 / max(p.alpha[0], p.alpha[1]), 0.0, 4.0), np.empty(5)
    assign(good, y)
    for _ in range(200):
        mild = with_sizes(p, (p.alpha[0] * path.share, p.alpha[1] * path.share), p.norm)
        if path.solved > 0.0:
            assign(y, good)
        else:
            sphere_start(mild, spectrum, y)
        residual, n = search(mild, tools, spectrum, tools.max_iter, HUGE, y)
        total += n
        converged = residual <= tools.tol
        if converged and path.share == 1.0:
            return residual, total
        if converged:
            assign(good, y)
        path = next_path_compiled(path, converged, FACTOR)
        if math.isnan(path.share) or total > PATIENCE * tools.max_iter:
            break
    return math.inf if residual <= tools.tol else residual, total


@jit
def beyond_edge(problem, tools, spectrum):
    """Whether a short search shows that the margin is above the critical one: then there is no SAT phase."""
    if not tools.sat.easier_below or spectrum.g_null > 0.0:
        return False
    p = with_mode(problem, tools, EDGE, (0.0, 0.0), 0.0)
    y = np.empty(5)
    sphere_start(p, spectrum, y)
    return search(p, tools, spectrum, FEWER, HUGE, y)[0] <= tools.tol and y[LOG_X] <= problem.kappa[0]


@jit
def solve_sat(problem, tools, spectrum, y):
    """Solve for typical weights without loss. The distance to the critical margin decides where to start."""
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
    """Set y to weights spread as without data, with the small pull of ever fewer samples."""
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
    """Follow the SAT phase from its surface, where the volume of solutions closes, down to the problem's margin."""
    gap = edge[LOG_X] - problem.kappa[0]
    path, good = Path(0.02, 0.0, 2.0), np.empty(5)
    assign(good, edge)
    residual = math.inf
    for _ in range(100):
        kappa = edge[LOG_X] - path.share * gap
        p = with_mode(problem, tools, SAT, (kappa, kappa), 0.0)
        for k in range(1 if path.solved > 0.0 else 6):  # the spread near the surface is of the order of the distance
            assign(y, good)
            if path.solved == 0.0:
                y[LOG_X] = min(2.0 * math.log(path.share * gap), edge[LOG_Q]) - 2.0 * k
            residual, n = search(p, tools, spectrum, FEW, HUGE, y)
            total += n
            if residual <= tools.tol:
                break
        converged = residual <= tools.tol
        if converged and path.share == 1.0:
            return residual, total
        if converged:
            assign(good, y)
        path = next_path_compiled(path, converged, 4.0)
        if math.isnan(path.share):
            break
    return math.inf if residual <= tools.tol else residual, total


@jit
def solve_unsat(problem, tools, spectrum, y):
    """Solve on the sphere with some loss left, from several starts. An infinite residual is a sign of the SAT phase."""
    limit, total = X_LIMIT if problem.law.vanishes else HUGE, 0
    residual = math.inf
    for k in range(3):  # the usual start; among the directions of least variance; with a small x
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
    # at κ = 0 the scale of the visible weights is free, and vanishing weights save any loss that they leave
    visible = Spectrum(spectrum.lam, spectrum.g, spectrum.s, 0.0, spectrum.lam[0], spectrum.L, spectrum.Q)
    residual, _ = solve_unsat(problem, tools, visible, y)
    return problem.law.vanishes and residual <= tools.tol


@jit
def sphere_fallback(settings, problem, spectrum, y, phase, n_iter):
    """Solve a point on the sphere where the first attempt failed, or, if its neighbour is SAT, has not been made.

    Returns residual, iterations (with the ``n_iter`` before) and phase.
    """
    tools = tools_of(settings, most_iterations(problem, settings.max_iter))
    if phase == SAT:
        if not beyond_edge(problem, tools, spectrum):
            residual, n = search(with_mode(problem, tools, SAT, problem.kappa, 0.0), tools, spectrum, FEWER, HUGE, y)
            n_iter += n
            if residual <= tools.tol:
                return residual, n_iter, SAT
        residual, n = first_attempt(settings, problem, spectrum, y, SAT)
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
def edges(settings, spectrum, alphas, out):
    """Write critical margins to out: κ_c, q, r, b and the residual in each row. Rows of alphas: α₊, α₋."""
    y, tools = np.empty(5), tools_of(settings, settings.max_iter)
    for j in range(alphas.shape[0]):
        alpha, zeros, ones = (alphas[j, 0], alphas[j, 1]), (0.0, 0.0), (1.0, 1.0)
        problem = Problem(
            EDGE, tools.edge, zeros, alpha, ones, ones, settings.norm, 0.0, settings.fit_bias
        )  # fmt: skip
        out[j, 4], _ = solve_edge(problem, tools, spectrum, y)
        out[j, 0], out[j, 1], out[j, 2], out[j, 3] = y[LOG_X], math.exp(y[LOG_Q]), y[R], y[B]


# ---- their addresses


def kinds():
    """Types of the arguments: the settings, the problem, the spectrum, y, the phase of a neighbour, iterations."""
    problem, spectrum, *_ = newton_kinds()
    settings = Settings(UNSAT, np.empty((3, CALLS), np.int64), np.empty((3, TRAITS)), 0.0, True, 0.0, 0, 0, 0)
    return typeof(settings), problem, spectrum, VECTOR, INT, INT


OUTCOME = types.Tuple((FLOAT, INT, INT))
fallback_at = late(OUTCOME, kinds)


class Compiled(NamedTuple):
    """The compiled part of the settings: tables of the laws of a loss, and the address of the fallback or 0."""

    calls: np.ndarray
    traits: np.ndarray
    fallback: int


COMPILED = {}  # by loss and mode


def tables_and_fallback(law, mode, needed=False):
    """Return what the settings hold of this loss and mode. The fallback is compiled when it is first needed."""
    compiled = COMPILED.get((law, mode))
    if compiled is None:
        compiled = COMPILED[law, mode] = Compiled(*law.table, 0)
    if needed and compiled.fallback == 0:
        function, tables = (ridge_fallback, law.table) if mode == RIDGE else (sphere_fallback, law.tables)
        compiled = COMPILED[law, mode] = Compiled(*tables, address(function, OUTCOME, kinds()))
    return compiled
