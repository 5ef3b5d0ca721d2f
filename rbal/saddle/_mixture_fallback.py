"""Which phase a mixture is in, where to start, and what to try when Newton's method fails.

The strategy is that of ``_fallback.py``, for any number of clusters.
"""

import math
from typing import NamedTuple

import numpy as np

from ..losses import Law
from ._equations import COLLAPSED, EDGE, SAT, UNSAT
from ._fallback import FAR
from ._mixture_data import data_side, pulls
from ._mixture_newton import (
    VANISHED,
    loose_start,
    ridge_start,
    search,
    solve_and_report,
    sphere_start,
    under_ridge,
    workspace,
)
from ._newton import FEW, HUGE, PATIENCE, X_LIMIT


class Task(NamedTuple):
    """What is the same in all attempts: laws of the loss, of its SAT phase and of the surface; and the accuracy."""

    laws: tuple[Law, Law, Law]
    block: object
    tol: float
    max_iter: int


def with_mode(task, problem, mode, **changes):
    """Copy of a problem with another mode and its law."""
    law = task.laws[1] if mode == SAT else task.laws[2] if mode == EDGE else task.laws[0]
    return problem._replace(mode=mode, law=law, **changes)


def attempt(task, problem, y, max_iter=None, limit=HUGE):
    """Search from y, which becomes the solution; return the residual and the number of iterations."""
    max_iter = task.max_iter if max_iter is None else min(max_iter, task.max_iter)
    return search(problem, task.block, (task.tol, max_iter, limit), y)


def can_vanish(task):
    """Whether the loss can vanish on all the data, so that there is a SAT phase."""
    return task.laws[1].expectations != 0


def x_limit(task):
    """Bound on x/√q beyond which the data are taken to be separable."""
    return X_LIMIT if can_vanish(task) else HUGE


# ---- the surface between the phases, and what lies below it


def solve_edge(task, problem):
    """Return (residual, iterations, y) on the SAT/UNSAT surface. Extreme sizes are reached from milder ones.

    The place of the first log x in y is a shift of all margins.
    """
    p = with_mode(task, problem, EDGE)
    y = sphere_start(task, p)
    residual, total = attempt(task, p, y)
    if residual <= task.tol:
        return residual, total, y
    solved, factor, good = 0.0, 4.0, None
    share = 1e-3 / p.alpha.max()
    for _ in range(200):
        mild = p._replace(alpha=p.alpha * share)
        y = sphere_start(task, mild) if good is None else good.copy()
        residual, n = attempt(task, mild, y)
        total += n
        if residual <= task.tol:
            if share == 1.0:
                break
            solved, factor, good = share, min(factor * factor, 100.0), y.copy()
        elif good is None or factor < 1.01:
            break
        else:
            factor = math.sqrt(factor)
        if total > PATIENCE * task.max_iter:
            break
        share = min(1.0, solved * factor)
    return residual, total, y


def solve_sat(task, problem):
    """Return (residual, iterations, y) of typical weights without loss."""
    p, G = with_mode(task, problem, SAT), problem.n_shapes
    residual, total, edge = solve_edge(task, problem)
    known, gap = residual <= task.tol, edge[G]
    if p.law.easier_below and known and gap <= 0.0 and task.block.g_null == 0.0:
        return math.inf, total, edge
    starts = []
    if p.law.easier_below and known and gap > 0.0:
        starts.append(near_edge(task, p, edge, math.log(0.5 * gap)))  # the spread w opens linearly
    for k in range(4):  # half aligned with the shift, fully, not at all, just enough for the margin
        y = sphere_start(task, p)
        m, margin = y[2 * G : -2], np.abs(p.kappa).max()
        if k == 1:
            m *= 2.0
        elif k > 1:
            m *= min(1.0, (k - 2.0) * margin / max(np.abs(m).max(), 1e-300))
        starts.append(y)
    if p.law.easier_below:
        starts.append(loose_start(task, p))
    for y in starts:
        residual, n = attempt(task, p, y, FEW)
        total += n
        if residual <= task.tol:
            return residual, total, y
    if known and gap > 0.0:
        return leave_edge(task, p, edge, total)
    return math.inf, total, edge


def near_edge(task, problem, edge, log_gap):
    """Return the state on the surface, with solutions spread by that much in units of √q."""
    G, y = problem.n_shapes, edge.copy()
    relative = np.r_[0.0, edge[G + 1 : 2 * G]]
    widest = sphere_start(task, problem)[:G]
    y[G : 2 * G] = np.minimum(log_gap + 0.5 * edge[0] + relative, widest)
    return y


def leave_edge(task, problem, edge, total):
    """Follow the SAT phase from its surface, where the volume of solutions closes, down to the margin asked for."""
    gap = edge[problem.n_shapes]
    share, solved, factor, good, residual = 0.02, 0.0, 2.0, None, math.inf
    for _ in range(100):
        p = problem._replace(kappa=problem.kappa + (1.0 - share) * gap)
        for k in range(6 if good is None else 1):  # the spread near the surface is of the order of the distance
            y = near_edge(task, p, edge, math.log(share * gap) - 2.0 * k) if good is None else good.copy()
            residual, n = attempt(task, p, y, FEW)
            total += n
            if residual <= task.tol:
                break
        if residual <= task.tol:
            if share == 1.0:
                break
            solved, factor, good = share, min(factor * factor, 4.0), y.copy()
        elif good is None or factor < 1.01:
            break
        else:
            factor = math.sqrt(factor)
        share = min(1.0, solved * factor)
    return residual, total, y


# ---- weights that vanish


def major(problem):
    """Label of the class that pulls harder at the bias; 0 when they are even."""
    pull = problem.alpha * problem.weight
    up, down = pull[problem.label > 0.0].sum(), pull[problem.label < 0.0].sum()
    if abs(up - down) <= 1e-14 * up or not problem.fit_bias:
        return 0.0
    return 1.0 if up > down else -1.0


def margin_of(problem, side):
    """Return the margin of the class with this label."""
    return problem.kappa[problem.label == side][0] if side else 0.0


def from_major(problem):
    """Copy of a problem whose bias is counted from the margin of the major class, where large margins push it."""
    side = major(problem)
    return problem._replace(kappa=problem.kappa - problem.label * side * margin_of(problem, side))


def multiplier(task, problem, y):
    """Return k̂ of the sphere at a solution, from ζ."""
    work = workspace(y.size - 2)
    data_side(problem, y.copy(), work.hats, work.dhats)
    return y[-1] - task.block.lowest(work.hats[problem.n_shapes : 2 * problem.n_shapes])


def solve_vanishing(task, problem):
    """Direction of the weights of a hinge SVM as they vanish: major class at its margin, minor class far below.

    The problem is then homogeneous. Returns (residual, iterations, k̂, y) on the unit sphere: where k̂ > 0, weights of
    size k̂/λ̃ lower the loss under a strong ridge λ̃; where it is not, no weights do, under any ridge.
    """
    side, G = major(problem), problem.n_shapes
    if side == 0.0:  # the classes pull evenly, and all samples are below their margin
        hats, y = np.empty(2 * G + problem.alpha.size), np.zeros(2 * G + problem.alpha.size + 2)
        pulls(problem, hats)
        W = hats[2 * G :] @ task.block.v
        k_hat = math.sqrt(hats[:G] @ task.block.traces() + W @ W)
        under_ridge(task, problem, hats, k_hat, y)
        y[-1] = k_hat
        return 0.0, 0, k_hat, y
    p = with_mode(task, problem, UNSAT, kappa=np.where(problem.label == side, 0.0, FAR), norm=1.0)
    visible = task._replace(block=task.block.visible())
    y = sphere_start(visible, p)
    residual, n = attempt(visible, p, y)
    return residual, n, multiplier(visible, p, y) if residual <= task.tol else math.nan, y


def collapses(task, problem):
    """Whether, on the sphere, all weight goes to directions that neither vary nor separate (there must be some)."""
    block = task.block
    if not (block.g_null > 0.0 and block.lowest(np.ones(problem.n_shapes), visible=True) > 0.0):
        return False
    if problem.kappa.min() > 0.0:
        if not problem.law.kinked:
            return False
        residual, _, k_hat, _ = solve_vanishing(task, problem)
        return residual <= task.tol and k_hat <= 0.0
    # at κ = 0 the scale of the visible weights is free, and any loss they leave is saved by none
    residual, _, _ = solve_unsat(task._replace(block=block.visible()), problem)
    return can_vanish(task) and residual <= task.tol


# ---- the phases


def solve_unsat(task, problem):
    """Return (residual, iterations, y) of the sphere with some loss left, from several starts."""
    limit, total, residual, G = x_limit(task), 0, math.inf, problem.n_shapes
    for k in range(3):  # as always; among directions of little variance; with a small x
        y = sphere_start(task, problem)
        if k == 1:
            y[:G] -= 2.0
            y[2 * G : -2] *= min(1.0, np.abs(problem.kappa).max() / max(np.abs(y[2 * G : -2]).max(), 1e-300))
        elif k == 2:
            y[G : 2 * G] -= 5.0
        residual, n = attempt(task, problem, y, limit=limit)
        total += n
        side = major(problem)
        if not residual <= task.tol and problem.law.kinked and side and residual < math.inf:
            y[-2] += side * margin_of(problem, side)
            residual, n = attempt(task, from_major(problem), y, limit=limit)
            y[-2] -= side * margin_of(problem, side)
            total += n
        if residual <= task.tol:
            break
    return residual, total, y


def solve_sphere(task, problem, warm, y):
    """Return (phase, residual, iterations, y) of the perceptron; warm is the phase of the start y, or -1."""
    separable, tol, total, residual = can_vanish(task), task.tol, 0, math.inf
    if warm < 0 and hasattr(task.block, "C"):
        rough, residual, _, y = solve_sphere(task._replace(block=task.block.commuting), problem, -1, None)
        warm = rough if residual <= tol else -1
    if warm == SAT and separable:
        residual, total = attempt(task, with_mode(task, problem, SAT), y, 20)
        if residual <= tol and not below_edge(task, problem):
            residual = math.inf
        if residual <= tol:
            return SAT, residual, total, y
    if warm != UNSAT:
        y = sphere_start(task, problem)
    residual, n = attempt(task, problem, y, FEW if separable else None, x_limit(task))
    total += n
    if not residual <= tol and collapses(task, problem):
        return COLLAPSED, 0.0, total, y
    if separable and not residual <= tol:
        at_sat, n, found = solve_sat(task, problem)
        total += n
        if at_sat <= tol:
            return SAT, at_sat, total, found
    if not residual <= tol:
        residual, n, y = solve_unsat(task, problem)
        total += n
    return UNSAT, residual, total, y


def below_edge(task, problem):
    """Whether the margins asked for are not seen to be above the critical ones: then the SAT phase can be."""
    if not task.laws[1].easier_below or task.block.g_null > 0.0:
        return True
    p = with_mode(task, problem, EDGE)
    y = sphere_start(task, p)
    residual, _ = attempt(task, p, y, 20)
    return not (residual <= task.tol and y[problem.n_shapes] <= 0.0)


def solve_ridge(task, problem, warm, y):
    """Return (phase, residual, iterations, y, report) of an SVM: from a guess, else followed from a strong ridge.

    The report is (each, one) as ``solve_and_report`` writes them, or None.
    """
    K, G, tol = problem.alpha.size, problem.n_shapes, task.tol
    block, told, limits = task.block, (np.empty((6, K)), np.empty(4)), (tol, task.max_iter, HUGE)
    dense = hasattr(block, "C")
    if not warm:
        y = np.empty(2 * G + K + 2)
    if not (warm and dense):
        residual, total = solve_and_report(problem, block.commuting if dense else block, limits, warm, y, *told)
    if dense:
        if not (warm or residual <= tol):
            y = ridge_start(task, problem, problem.ridge)
        residual, total = attempt(task, problem, y)
        told, residual = None, residual if y[:G].max() > VANISHED else math.inf
    if residual <= tol:
        return UNSAT, residual, total, y, told
    phase, residual, n, y = from_strong_ridge(task, problem)
    return phase, residual, total + n, y, None


def from_strong_ridge(task, problem):
    """Return (phase, residual, iterations, y) of an SVM whose weights nearly vanish, or that is hard to reach."""
    total, side = 0, 0.0
    pull, t = (problem.alpha * problem.weight).sum(), task.block.traces()
    strong = max(problem.ridge, 1e3 * pull * (1.0 + t.sum() + (task.block.v**2).sum() + (t**2).sum()))
    if problem.law.kinked:
        side = major(problem)
        residual, total, k_hat, y = solve_vanishing(task, problem)
        if not residual <= task.tol:
            return UNSAT, residual, total, y
        if k_hat <= 0.0:
            return COLLAPSED, 0.0, total, y
        y = scaled(problem, y, k_hat / strong)
    else:
        y = ridge_start(task, problem, strong)
    moved = from_major(problem) if side else problem
    residual, n, y = lower_ridge(task, moved, strong, y)
    y[-2] -= side * margin_of(problem, side)
    return UNSAT, residual, total + n, y


def lower_ridge(task, problem, strong, y):
    """Follow the solution from a strong ridge to the one asked for; return (residual, iterations, y).

    Small weights are in inverse proportion to the ridge, and little but the ridge fixes their size: Newton's steps from
    another size are short. So each step starts from weights scaled by the power of the ridge that the last one showed.
    """
    ridge, G = problem.ridge, problem.n_shapes
    level, solved, factor, total, good, residual, power = strong, strong, 0.1, 0, y.copy(), math.inf, 1.0
    widest = 2.0 * math.log(problem.law.widest) - math.log(problem.width.max())
    for _ in range(300):
        y = scaled(problem, good, (solved / level) ** power)
        residual, n = attempt(task, problem._replace(ridge=level), y)
        total += n
        if residual <= task.tol:
            if level == ridge:
                break
            if level < solved:
                power = min(max(0.5 * (y[0] - good[0]) / math.log(solved / level), 0.0), 1.0)
            good, solved, factor = y, level, max(factor * factor, 0.01)
        elif factor > 0.99 or level == strong or good[:G].max() > widest:
            break
        else:
            factor = math.sqrt(factor)
        if total > (5 if problem.law.widest < math.inf else PATIENCE) * task.max_iter:
            break
        level = max(ridge, solved * factor)
    return residual if level == ridge else math.inf, total, y


def scaled(problem, y, scale):
    """Return y with weights so many times as large, and with them the bias of a loss with a kink."""
    G, new = problem.n_shapes, y.copy()
    new[:G] += 2.0 * math.log(scale)
    new[G : 2 * G] += math.log(scale)
    new[2 * G : -1 if problem.law.kinked else -2] *= scale
    return new
