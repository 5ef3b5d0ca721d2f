"""Where to start, which phase to solve, what to do when Newton fails: the strategy around ``_kernels.newton``."""

import math

import numpy as np

from .._support.gauss import jit
from ..losses._record import force_at
from ..moments import Spectrum
from ._bias import solve_bias
from ._kernels import data_side, newton_at
from ._problem import EDGE, LOG_Q, LOG_X, RIDGE, SAT, UNSAT, ZETA, B, Problem, R, assign
from ._weights import sums

COLLAPSED = 2  # a phase beside UNSAT and SAT: no weights lower the loss

X_LIMIT = 1e7  # x/√q beyond this: go and see whether the data are separable
FAR = 1e9  # a margin that every sample misses
HUGE = 1e300
PATIENCE = 20  # times max_iter: all iterations of one search, after which it is given up
FEW = 40  # iterations after which to see whether the data are separable, before more is tried


@jit
def with_mode(p, mode, kappa, ridge):
    """Copy of a problem with another mode and its law, margin and ridge."""
    law = p.sat if mode == SAT else (p.edge if mode == EDGE else p.law)
    return Problem(mode, law, p.sat, p.edge, kappa, p.alpha, p.weight, p.norm, ridge, p.fit_bias, p.newton)


@jit
def with_sizes(p, alpha, norm):
    """Copy of a problem with other class sizes and norm."""
    return Problem(p.mode, p.law, p.sat, p.edge, p.kappa, alpha, p.weight, norm, p.ridge, p.fit_bias, p.newton)


@jit
def search(problem, spectrum, tol, max_iter, limit, y):
    """Call ``newton`` by its address."""
    return newton_at(problem.newton, (problem, spectrum, tol, max_iter, limit, y))


@jit
def can_vanish(problem):
    """Whether the loss can vanish on all the data, so that there is a SAT phase."""
    return problem.sat.expectations != 0


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
        q_hat += problem.alpha[k] * f * f
        r_hat += 0.5 * problem.alpha[k] * f
    m = sums(spectrum)
    top = 1.0 + max(problem.kappa[0], problem.kappa[1])
    q = min((q_hat * m.g2 + r_hat**2 * m.s1) / ridge**2, top**2)
    x = min(m.g1 / ridge, math.sqrt(q))
    y[LOG_Q], y[LOG_X] = math.log(q), math.log(x)
    y[R], y[B], y[ZETA] = min(r_hat * m.s0 / ridge, top), 0.0, ridge


@jit
def solve_edge(problem, spectrum, tol, max_iter, y):
    """The SAT/UNSAT surface: y[LOG_X] becomes the critical margin. Extreme sizes are reached from milder ones."""
    p = with_mode(problem, EDGE, (0.0, 0.0), 0.0)
    sphere_start(p, spectrum, y)
    residual, total = search(p, spectrum, tol, max_iter, HUGE, y)
    if residual <= tol:
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
        residual, n = search(mild, spectrum, tol, max_iter, HUGE, y)
        total += n
        if residual <= tol:
            if share == 1.0:
                break
            solved, factor = share, min(factor * factor, 100.0)
            assign(good, y)
        elif solved == 0.0 or factor < 1.01:
            break
        else:
            factor = math.sqrt(factor)
        if total > PATIENCE * max_iter:
            break
        share = min(1.0, solved * factor)
    return residual, total


@jit
def beyond_edge(problem, spectrum, tol):
    """Whether the critical margin is quickly seen to be below the one asked for: then there is no SAT phase."""
    if not problem.sat.easier_below or spectrum.g_null > 0.0:
        return False
    p = with_mode(problem, EDGE, (0.0, 0.0), 0.0)
    y = np.empty(5)
    sphere_start(p, spectrum, y)
    return search(p, spectrum, tol, 20, HUGE, y)[0] <= tol and y[LOG_X] <= problem.kappa[0]


@jit
def solve_sat(problem, spectrum, tol, max_iter, y):
    """Typical weights without loss. How far the margin is from the critical one tells where to start."""
    p = with_mode(problem, SAT, problem.kappa, 0.0)
    edge = np.empty(5)
    residual, total = solve_edge(problem, spectrum, tol, max_iter, edge)
    known, gap = residual <= tol, edge[LOG_X] - p.kappa[0]
    if p.law.easier_below and known and gap <= 0.0 and spectrum.g_null == 0.0:
        return math.inf, total
    if p.law.easier_below and known and gap > 0.0:  # the spread w of the solutions opens linearly
        sphere_start(p, spectrum, y)
        widest = y[LOG_Q]
        assign(y, edge)
        y[LOG_X] = min(math.log(0.5 * gap) + 0.5 * edge[LOG_Q], widest)
        residual, n = search(p, spectrum, tol, 40, HUGE, y)
        total += n
        if residual <= tol:
            return residual, total
    for k in range(4):  # half aligned with the shift, fully, not at all, just enough for the margin
        sphere_start(p, spectrum, y)
        if k == 1:
            y[R] *= 2.0
        elif k > 1:
            y[R] = min(y[R], 2.0 * (k - 2.0) * p.kappa[0])
        residual, n = search(p, spectrum, tol, 40, HUGE, y)
        total += n
        if residual <= tol:
            return residual, total
    if p.law.easier_below:
        loose_start(p, spectrum, y)
        residual, n = search(p, spectrum, tol, 40, HUGE, y)
        total += n
        if residual <= tol:
            return residual, total
    if known and gap > 0.0:
        return leave_edge(p, spectrum, tol, edge, y, total)
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
    data_side(problem, 0.0, q, w, 0.0, b, hats)
    q_hat, r_hat = hats[0, 1], hats[0, 2]
    y[LOG_Q] = math.log(max((q_hat * m.g2 + r_hat**2 * m.s1) / zeta**2, 1e-300))
    y[LOG_X], y[R], y[B], y[ZETA] = math.log(w), r_hat * m.s0 / zeta, b, zeta


@jit
def leave_edge(problem, spectrum, tol, edge, y, total):
    """Follow the SAT phase from its surface, where the volume of solutions closes, down to the margin asked for."""
    gap = edge[LOG_X] - problem.kappa[0]
    share, solved, factor, good = 0.02, 0.0, 2.0, np.empty(5)
    assign(good, edge)
    residual = math.inf
    for _ in range(100):
        kappa = edge[LOG_X] - share * gap
        p = with_mode(problem, SAT, (kappa, kappa), 0.0)
        for k in range(1 if solved > 0.0 else 6):  # the spread near the surface is of the order of the distance
            assign(y, good)
            if solved == 0.0:
                y[LOG_X] = min(2.0 * math.log(share * gap), edge[LOG_Q]) - 2.0 * k
            residual, n = search(p, spectrum, tol, 40, HUGE, y)
            total += n
            if residual <= tol:
                break
        if residual <= tol:
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
def major(problem):
    """Label of the class that pulls harder at the bias; 0 when they are even."""
    gap = problem.alpha[0] * problem.weight[0] - problem.alpha[1] * problem.weight[1]
    if abs(gap) <= 4e-16 * problem.alpha[0] * problem.weight[0] or not problem.fit_bias:
        return 0.0
    return 1.0 if gap > 0.0 else -1.0


@jit
def from_major(problem):
    """Copy of a problem whose bias is counted from the margin of the major class.

    There it sits at large margins, and b alone, near ±κ, would lose the digits that matter.
    """
    y = major(problem)
    kappa = problem.kappa
    moved = (kappa[0] - y * kappa[0], kappa[1] + y * kappa[0])
    return with_mode(problem, problem.mode, moved, problem.ridge)


@jit
def x_limit(problem):
    """Bound on x/√q beyond which the data are taken to be separable."""
    return X_LIMIT if can_vanish(problem) else HUGE


@jit
def solve_unsat(problem, spectrum, tol, max_iter, y):
    """The sphere with some loss left, from several starts. An infinite residual tells of the SAT phase."""
    limit, total = x_limit(problem), 0
    residual = math.inf
    for k in range(3):  # as always; among the directions of least variance; with a small x
        sphere_start(problem, spectrum, y)
        if k == 1:
            y[LOG_Q] = math.log(0.9 * problem.norm * spectrum.lam[0] + 0.1 * math.exp(y[LOG_Q]))
            y[R] = min(y[R], 2.0 * problem.kappa[0])
        elif k == 2:
            y[LOG_X] -= 5.0
        residual, n = search(problem, spectrum, tol, max_iter, limit, y)
        total += n
        if residual <= tol:
            return residual, total
        side = major(problem)
        if problem.law.kinked and side != 0.0 and residual < math.inf:
            moved = from_major(problem)
            y[B] += side * problem.kappa[0]
            residual, n = search(moved, spectrum, tol, max_iter, limit, y)
            y[B] -= side * problem.kappa[0]
            total += n
            if residual <= tol:
                return residual, total
    return residual, total


@jit
def solve_vanishing(problem, spectrum, tol, max_iter, y):
    """Direction of the weights of a hinge SVM as they vanish: major class at its margin, minor class far below.

    The problem is then homogeneous, and its multiplier k̂ on the unit sphere decides: positive, and weights of size
    k̂/λ̃ lower the loss under a strong ridge λ̃; not positive, and no weights do, under any ridge.
    """
    side = major(problem)
    if side == 0.0:
        return even_vanishing(problem, spectrum, y)
    kappa = (0.0, FAR) if side > 0.0 else (FAR, 0.0)
    p = with_sizes(with_mode(problem, UNSAT, kappa, 0.0), problem.alpha, 1.0)
    visible = Spectrum(spectrum.lam, spectrum.g, spectrum.s, 0.0, spectrum.lam[0], spectrum.L, spectrum.Q)
    sphere_start(p, visible, y)
    residual, n = search(p, visible, tol, max_iter, HUGE, y)
    hats = np.empty((6, 4))
    data_side(p, 0.0, math.exp(y[LOG_Q]), math.exp(y[LOG_X]), y[R], y[B], hats)
    return residual, n, y[ZETA] - hats[0, 0] * visible.shift


@jit
def even_vanishing(problem, spectrum, y):
    """Direction of vanishing weights where the classes pull evenly: all samples are below their margin."""
    q_hat = r_hat = 0.0
    for k in range(2):
        q_hat += problem.alpha[k] * problem.weight[k] ** 2
        r_hat += 0.5 * problem.alpha[k] * problem.weight[k]
    m = sums(spectrum)
    k_hat = math.sqrt(q_hat * m.g1 + r_hat**2 * m.s0)
    y[LOG_Q] = math.log((q_hat * m.g2 + r_hat**2 * m.s1) / k_hat**2)
    y[LOG_X], y[R] = math.log(m.g1 / k_hat), r_hat * m.s0 / k_hat
    y[B], y[ZETA] = 0.0, k_hat
    return 0.0, 0, k_hat


@jit
def too_wide(problem, y):
    """Whether the quadrature of the loss does not resolve it any more."""
    return y[LOG_Q] > 2.0 * math.log(problem.law.widest)


@jit
def solve_ridge(problem, spectrum, tol, max_iter, y, warm):
    """SVM: from a guess; else follow the solution from a strong ridge, where it is known. Returns the phase too."""
    ridge = problem.ridge
    if not warm:
        ridge_start(problem, spectrum, ridge, y)
    residual, total = search(problem, spectrum, tol, max_iter, HUGE, y)
    if residual <= tol and y[LOG_Q] > -40.0:
        return residual, total, UNSAT

    m = sums(spectrum)
    pull = problem.alpha[0] * problem.weight[0] + problem.alpha[1] * problem.weight[1]
    strong = max(ridge, 1e3 * pull * (1.0 + m.g1 + m.s0 + m.g2))
    side = 0.0
    if problem.law.kinked:
        side = major(problem)
        residual, n, k_hat = solve_vanishing(problem, spectrum, tol, max_iter, y)
        total += n
        if residual > tol:
            return residual, total, UNSAT
        if k_hat <= 0.0:
            return 0.0, total, COLLAPSED
        scale = k_hat / strong
        y[LOG_Q] += 2.0 * math.log(scale)
        y[LOG_X] += math.log(scale)
        y[R] *= scale
        y[B] *= scale
    else:
        ridge_start(problem, spectrum, strong, y)

    moved = from_major(problem)
    kappa = moved.kappa if side != 0.0 else problem.kappa
    level, solved, factor, good = strong, strong, 0.1, np.empty(5)
    assign(good, y)
    for _ in range(300):
        residual, n = search(with_mode(problem, RIDGE, kappa, level), spectrum, tol, max_iter, HUGE, y)
        total += n
        if residual <= tol:
            if level == ridge:
                y[B] -= side * problem.kappa[0]
                return residual, total, UNSAT
            assign(good, y)
            solved, factor = level, max(factor * factor, 0.01)
        elif factor > 0.99 or level == strong or too_wide(problem, good):
            break
        else:
            assign(y, good)
            factor = math.sqrt(factor)
        if total > (5 if problem.law.widest < math.inf else PATIENCE) * max_iter:
            break
        level = max(ridge, solved * factor)
    return residual, total, UNSAT


@jit
def collapses(problem, spectrum, tol, max_iter):
    """Whether, on the sphere, all weight goes to directions that neither vary nor separate (there must be some)."""
    if not (spectrum.g_null > 0.0 and spectrum.lam[0] > 0.0):
        return False
    y = np.empty(5)
    if problem.kappa[0] > 0.0:
        if not problem.law.kinked:
            return False
        residual, _, k_hat = solve_vanishing(problem, spectrum, tol, max_iter, y)
        return residual <= tol and k_hat <= 0.0
    # at κ = 0 the scale of the visible weights is free, and any loss they leave is saved by none
    visible = Spectrum(spectrum.lam, spectrum.g, spectrum.s, 0.0, spectrum.lam[0], spectrum.L, spectrum.Q)
    residual, _ = solve_unsat(problem, visible, tol, max_iter, y)
    return can_vanish(problem) and residual <= tol
