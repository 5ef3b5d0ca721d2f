"""Solve a mixture: find its phase, and choose what to try when Newton's method fails.

The strategy of ``_fallback.py``, for any number of clusters. Functions that return (residual, iterations, y) have the
solution in y.
"""

import math
from typing import NamedTuple

import numpy as np

from ..losses import Law
from ._equations import COLLAPSED, EDGE, SAT, UNSAT
from ._fallback import FACTOR, FAR, Path, next_path
from ._mixture_data import data_side, pulls
from ._mixture_newton import (
    VANISHED,
    Limits,
    Report,
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
    """Shared by all attempts: laws of the loss, of its SAT phase and of the surface; the weight side; the accuracy."""

    laws: tuple[Law, Law, Law]
    block: object
    tol: float
    max_iter: int


def with_mode(task, problem, mode, **changes):
    """Copy of a problem with another mode and its law."""
    law = task.laws[1] if mode == SAT else task.laws[2] if mode == EDGE else task.laws[0]
    return problem._replace(mode=mode, law=law, **changes)


class Result(NamedTuple):
    """Result of ``solve_sphere`` and ``solve_ridge``."""

    phase: int
    residual: float
    n_iter: int
    y: np.ndarray
    report: Report | None = None  # if it is known already


def attempt(task, problem, y, max_iter=None, limit=HUGE):
    """Search from y, which becomes the solution; return the residual and the number of iterations."""
    max_iter = task.max_iter if max_iter is None else min(max_iter, task.max_iter)
    return search(problem, task.block, Limits(task.tol, max_iter, limit), y)


def can_vanish(task):
    """Whether the loss can vanish on all the data, so that there is a SAT phase."""
    return task.laws[1].expectations != 0


def x_limit(task):
    """Return the bound on x/√q beyond which the data are taken to be separable."""
    return X_LIMIT if can_vanish(task) else HUGE


# ---- the surface between the phases, and what lies below it


def solve_edge(task, problem):
    """Return (residual, iterations, y) on the SAT/UNSAT surface, for extreme sizes from milder ones.

    y has a shift of all margins in the place of the first log x.
    """
    p = with_mode(task, problem, EDGE)
    y = sphere_start(task, p)
    residual, total = attempt(task, p, y)
    if residual <= task.tol:
        return residual, total, y
    path, good = Path(1e-3 / p.alpha.max(), 0.0, 4.0), None
    for _ in range(200):
        mild = p._replace(alpha=p.alpha * path.share)
        y = sphere_start(task, mild) if good is None else good.copy()
        residual, n = attempt(task, mild, y)
        total += n
        converged = residual <= task.tol
        if converged and path.share == 1.0:
            return residual, total, y
        if converged:
            good = y.copy()
        path = next_path(path, converged, FACTOR)
        if math.isnan(path.share) or total > PATIENCE * task.max_iter:
            break
    return math.inf if residual <= task.tol else residual, total, y


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
    """Follow the SAT phase from its surface, where the volume of solutions closes, down to the problem's margin."""
    gap = edge[problem.n_shapes]
    path, good, residual = Path(0.02, 0.0, 2.0), None, math.inf
    for _ in range(100):
        p = problem._replace(kappa=problem.kappa + (1.0 - path.share) * gap)
        for k in range(6 if good is None else 1):  # the spread near the surface is of the order of the distance
            y = near_edge(task, p, edge, math.log(path.share * gap) - 2.0 * k) if good is None else good.copy()
            residual, n = attempt(task, p, y, FEW)
            total += n
            if residual <= task.tol:
                break
        converged = residual <= task.tol
        if converged and path.share == 1.0:
            return residual, total, y
        if converged:
            good = y.copy()
        path = next_path(path, converged, 4.0)
        if math.isnan(path.share):
            break
    return math.inf if residual <= task.tol else residual, total, y


# ---- weights that vanish


def major(problem):
    """Return the label of the class that pulls harder at the bias; 0 if both pull equally."""
    pull = problem.alpha * problem.weight
    pos, neg = pull[problem.label > 0.0].sum(), pull[problem.label < 0.0].sum()
    if abs(pos - neg) <= 1e-14 * pos or not problem.fit_bias:
        return 0.0
    return 1.0 if pos > neg else -1.0


def margin_of(problem, side):
    """Return the margin of the class with this label."""
    return problem.kappa[problem.label == side][0] if side else 0.0


def from_major(problem):
    """Copy of a problem whose bias is counted from the margin of the major class, near which it is at large margins."""
    side = major(problem)
    return problem._replace(kappa=problem.kappa - problem.label * side * margin_of(problem, side))


def multiplier(task, problem, y):
    """Return k̂ of the sphere at a solution, from ζ."""
    work = workspace(y.size - 2)
    data_side(problem, y.copy(), work.hats, work.dhats)
    return y[-1] - task.block.lowest(work.hats[problem.n_shapes : 2 * problem.n_shapes])


class Vanishing(NamedTuple):
    """Direction of vanishing weights, on the unit sphere."""

    residual: float
    n_iter: int
    k_hat: float
    y: np.ndarray


def solve_vanishing(task, problem):
    """Find the direction of the weights of a hinge SVM as they vanish.

    The major class is then at its margin, the minor class far below, and the problem is homogeneous. The result is on
    the unit sphere. If its k̂ is positive, weights of size k̂/λ̃ lower the loss under a strong ridge λ̃; if not, no
    weights do, under any ridge.
    """
    side, G = major(problem), problem.n_shapes
    if side == 0.0:  # both classes pull equally, and all samples are below their margin
        hats, y = np.empty(2 * G + problem.alpha.size), np.zeros(2 * G + problem.alpha.size + 2)
        pulls(problem, hats)
        W = hats[2 * G :] @ task.block.v
        k_hat = math.sqrt(hats[:G] @ task.block.traces() + W @ W)
        under_ridge(task, problem, hats, k_hat, y)
        y[-1] = k_hat
        return Vanishing(0.0, 0, k_hat, y)
    p = with_mode(task, problem, UNSAT, kappa=np.where(problem.label == side, 0.0, FAR), norm=1.0)
    visible = task._replace(block=task.block.visible())
    y = sphere_start(visible, p)
    residual, n = attempt(visible, p, y)
    return Vanishing(residual, n, multiplier(visible, p, y) if residual <= task.tol else math.nan, y)


def collapses(task, problem):
    """Whether, on the sphere, all weight goes to directions that neither vary nor separate (there must be some)."""
    block = task.block
    if not (block.g_null > 0.0 and block.lowest(np.ones(problem.n_shapes), visible=True) > 0.0):
        return False
    if problem.kappa.min() > 0.0:
        if not problem.law.kinked:
            return False
        vanishing = solve_vanishing(task, problem)
        return vanishing.residual <= task.tol and vanishing.k_hat <= 0.0
    # at κ = 0 the scale of the visible weights is free, and vanishing weights save any loss that they leave
    residual, _, _ = solve_unsat(task._replace(block=block.visible()), problem)
    return can_vanish(task) and residual <= task.tol


# ---- the phases


def solve_unsat(task, problem):
    """Return (residual, iterations, y) on the sphere with some loss left, from several starts."""
    limit, total, residual, G = x_limit(task), 0, math.inf, problem.n_shapes
    for k in range(3):  # the usual start; among directions of little variance; with a small x
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


def solve_sphere(task, problem, y, neighbour):
    """Return the Result of the perceptron. neighbour is the phase of the start y, or -1."""
    separable, tol, total, residual = can_vanish(task), task.tol, 0, math.inf
    if neighbour < 0 and hasattr(task.block, "C"):
        rough = solve_sphere(task._replace(block=task.block.commuting), problem, None, -1)
        y, neighbour = rough.y, rough.phase if rough.residual <= tol else -1
    if neighbour == SAT and separable:
        residual, total = attempt(task, with_mode(task, problem, SAT), y, 20)
        if residual <= tol and not below_edge(task, problem):
            residual = math.inf
        if residual <= tol:
            return Result(SAT, residual, total, y)
    if neighbour != UNSAT:
        y = sphere_start(task, problem)
    residual, n = attempt(task, problem, y, FEW if separable else None, x_limit(task))
    total += n
    if not residual <= tol and collapses(task, problem):
        return Result(COLLAPSED, 0.0, total, y)
    if separable and not residual <= tol:
        residual_sat, n, y_sat = solve_sat(task, problem)
        total += n
        if residual_sat <= tol:
            return Result(SAT, residual_sat, total, y_sat)
    if not residual <= tol:
        residual, n, y = solve_unsat(task, problem)
        total += n
    return Result(UNSAT, residual, total, y)


def below_edge(task, problem):
    """Whether there can be a SAT phase: a short search does not show that the margins are above the critical ones."""
    if not task.laws[1].easier_below or task.block.g_null > 0.0:
        return True
    p = with_mode(task, problem, EDGE)
    y = sphere_start(task, p)
    residual, _ = attempt(task, p, y, 20)
    return not (residual <= task.tol and y[problem.n_shapes] <= 0.0)


def solve_ridge(task, problem, y=None, neighbour=-1):
    """Return the Result of an SVM, from the start y of an UNSAT neighbour, or else followed from a strong ridge."""
    K, G, tol = problem.alpha.size, problem.n_shapes, task.tol
    block, dense, warm = task.block, hasattr(task.block, "C"), neighbour == UNSAT
    report, limits = Report(np.empty((6, K)), np.empty(4)), Limits(tol, task.max_iter, HUGE)
    if not warm:
        y = np.empty(2 * G + K + 2)
    if not (warm and dense):
        residual, total = solve_and_report(problem, block.commuting if dense else block, limits, warm, y, report)
    if dense:
        if not (warm or residual <= tol):
            y = ridge_start(task, problem, problem.ridge)
        residual, total = attempt(task, problem, y)
        report, residual = None, residual if y[:G].max() > VANISHED else math.inf
    if residual <= tol:
        return Result(UNSAT, residual, total, y, report)
    result = from_strong_ridge(task, problem)
    return result._replace(n_iter=total + result.n_iter)


def from_strong_ridge(task, problem):
    """Return the Result of an SVM whose weights nearly vanish, or that is hard to reach."""
    total, side = 0, 0.0
    pull, t = (problem.alpha * problem.weight).sum(), task.block.traces()
    strong = max(problem.ridge, 1e3 * pull * (1.0 + t.sum() + (task.block.v**2).sum() + (t**2).sum()))
    if problem.law.kinked:
        side = major(problem)
        vanishing = solve_vanishing(task, problem)
        total, y = vanishing.n_iter, vanishing.y
        if not vanishing.residual <= task.tol:
            return Result(UNSAT, vanishing.residual, total, y)
        if vanishing.k_hat <= 0.0:
            return Result(COLLAPSED, 0.0, total, y)
        y = scaled(problem, y, vanishing.k_hat / strong)
    else:
        y = ridge_start(task, problem, strong)
    residual, n, y = lower_ridge(task, from_major(problem) if side else problem, strong, y)
    y[-2] -= side * margin_of(problem, side)
    return Result(UNSAT, residual, total + n, y)


def lower_ridge(task, problem, strong, y):
    """Follow the solution from a strong ridge to the problem's own; return (residual, iterations, y).

    Small weights are in inverse proportion to the ridge, and little but the ridge fixes their size: Newton's steps from
    another size are short. So each step starts from weights scaled by the power of the ridge that the last one showed.
    """
    G = problem.n_shapes
    path, total, good, residual, power = Path(problem.ridge / strong, 0.0, 10.0), 0, y.copy(), math.inf, 1.0
    widest = 2.0 * math.log(problem.law.widest) - math.log(problem.width.max())
    for _ in range(300):
        share = path.share
        y = scaled(problem, good, (share / path.solved) ** power) if path.solved > 0.0 else good.copy()
        residual, n = attempt(task, problem._replace(ridge=problem.ridge / share), y)
        total += n
        converged = residual <= task.tol
        if converged:
            if share == 1.0:
                return residual, total, y
            if path.solved > 0.0:
                power = min(max(0.5 * (y[0] - good[0]) / math.log(share / path.solved), 0.0), 1.0)
            good = y
        elif good[:G].max() > widest:
            break
        path = next_path(path, converged, FACTOR)
        if math.isnan(path.share) or total > (5 if problem.law.widest < math.inf else PATIENCE) * task.max_iter:
            break
    return residual if share == 1.0 else math.inf, total, y


def scaled(problem, y, scale):
    """Return y with the weights multiplied by a factor, and with them the bias of a loss with a kink."""
    G, new = problem.n_shapes, y.copy()
    new[:G] += 2.0 * math.log(scale)
    new[G : 2 * G] += math.log(scale)
    new[2 * G : -1 if problem.law.kinked else -2] *= scale
    return new
