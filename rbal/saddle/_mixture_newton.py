"""Newton's method for the saddle point of a mixture: compiled sums in a common basis, or dense matrices."""

import math
from typing import NamedTuple

import numpy as np
from numba.extending import overload

from .._support.gauss import jit
from ._clusters import data_side, newton_step, pulls
from ._problem import EDGE, RIDGE, SAT, largest_of
from ._resolvents import dense_side, diagonal_side

LARGEST_LOG_Q, LARGEST_LOG_Q_SAT = 300.0, 690.0  # the widest |log q| at which to go on
PATIENCE_WIDE = 4  # iterations where a quadrature does not resolve its loss
LOCAL = 0.3  # largest residual at which what a step did tells more about derivatives than about their change


class Workspace(NamedTuple):
    """Scratch arrays of the iteration."""

    hats: np.ndarray
    dhats: np.ndarray
    value: np.ndarray
    jac: np.ndarray
    learnt: np.ndarray


@jit
def workspace(N):
    """Return fresh scratch arrays for N unknowns."""
    return Workspace(np.empty(N), np.empty((N, N)), np.empty(N + 1), np.empty((N + 1, N + 1)), np.zeros((N, N)))


@jit
def on_sphere(problem, y, value):
    """Whether the norm is that of the sphere, as it is where ζ was found."""
    N = value.size - 1
    if problem.mode == RIDGE or y[N + 1] <= 0.0:
        return True
    return abs(value[N] - problem.norm) <= 1e-8 * problem.norm


@jit
def evaluate_diagonal(problem, block, y, work, res, step):
    """Write the residuals at y (N,) and Newton's step from there; False where it leaves the domain."""
    data_side(problem, y, work.hats, work.dhats)
    diagonal_side(problem, block, work.hats, y, work.value, work.jac)
    return on_sphere(problem, y, work.value) and newton_step(problem, y, work, res, step)


def evaluate_dense(problem, block, y, work, res, step):
    """Do the same with dense covariances."""
    data_side(problem, y, work.hats, work.dhats)
    if not np.isfinite(work.hats).all() or not dense_side(problem, block, work.hats, y, work.value, work.jac):
        return False
    return on_sphere(problem, y, work.value) and newton_step(problem, y, work, res, step)


def evaluate(problem, block, y, work, res, step):
    """Evaluate a block of either kind."""
    inside = evaluate_dense if hasattr(block, "C") else evaluate_diagonal
    return inside(problem, block, y, work, res, step)


@overload(evaluate)
def _evaluate_compiled(problem, block, y, work, res, step):
    """Compiled code knows sums in a common basis only."""

    def inside(problem, block, y, work, res, step):
        return evaluate_diagonal(problem, block, y, work, res, step)

    return inside


def learn(problem, block, ends, residuals, t, work, step):
    """Correct derivatives that come from probes by what the last step did, and with them the next step.

    This is Broyden's update. The step led from ends[0] to ends[1], t times Newton's, and from residuals[0] to
    residuals[1]. The noise of the probes hardly changes from point to point, so that what is learnt stays true.
    """
    if getattr(block, "probes", None) is None or largest_of(residuals[1]) > LOCAL:
        return
    units = np.array([unit_of(problem, ends[0], j) for j in range(step.size)])
    moved = (ends[1] - ends[0])[: step.size] / units
    missed = residuals[1] - (1.0 - t) * residuals[0]
    work.learnt[:] += np.outer(missed, moved / units) / (moved @ moved)
    newton_step(problem, ends[1], work, residuals[1], step)


@overload(learn)
def _learn_compiled(problem, block, ends, residuals, t, work, step):
    """Sums in a common basis have exact derivatives."""

    def nothing(problem, block, ends, residuals, t, work, step):
        pass

    return nothing


def follow(problem, block, limits, y):
    """Newton with a line search from y; where it does not descend, a few steps of the damped fixed point.

    limits is (tol, iterations, largest x/√q). y is start and result. Returns (residual, iterations). A residual of
    infinity means that the path left the domain, or that x grew beyond its limit, the mark of the SAT phase.
    """
    tol, max_iter, x_limit = limits
    G, N = problem.n_shapes, y.size - 2
    work = workspace(N)
    res, step, res_new, step_new, new = np.empty(N), np.empty(N), np.empty(N), np.empty(N), y.copy()
    largest = LARGEST_LOG_Q_SAT if problem.mode == SAT else LARGEST_LOG_Q
    resolved = 2.0 * math.log(problem.law.widest) - math.log(problem.width.max())
    too_wide = min(resolved + 4.0, largest)
    widest = too_wide if resolved < math.inf else math.inf
    if y[:G].max() > widest or not evaluate(problem, block, y, work, res, step):
        return math.inf, 0
    size, plain, wide = largest_of(res), 0, 0
    for n_iter in range(1, max_iter + 1):
        if size <= tol:
            return size, n_iter
        wide += 1 if y[:G].max() > resolved else 0
        if wide > PATIENCE_WIDE:
            return math.inf, n_iter
        cap = 1.0
        for j in range(N):
            cap = max(cap, abs(step[j]) / reach(problem, y, j))
        t, size_new = 1.0 / cap, math.inf
        if plain == 0:
            for _ in range(6):
                new[:N], new[N:] = y[:N] + t * step, y[N:]
                if new[:G].max() <= widest and evaluate(problem, block, new, work, res_new, step_new):
                    size_new = largest_of(res_new)
                    if size_new < (1.0 - 0.1 * t) * size or size_new <= tol:
                        learn(problem, block, (y, new), (res, res_new), t, work, step_new)
                        break
                size_new = math.inf
                t *= 0.4
        if size_new == math.inf:
            plain = 4 if plain == 0 else plain - 1
            for j in range(N):
                new[j] = y[j] + 0.4 * unit_of(problem, y, j) * min(max(res[j], -2.0), 2.0)
            new[N:] = y[N:]
            if new[:G].max() > widest or not evaluate(problem, block, new, work, res_new, step_new):
                return math.inf, n_iter
            size_new = largest_of(res_new)
        y[:], res[:], step[:] = new, res_new, step_new
        size = size_new
        if (
            y[:G].max() > too_wide
            or y[:G].min() < -largest
            or (problem.mode != EDGE and (y[G : 2 * G] - 0.5 * y[:G]).max() > math.log(x_limit))
        ):
            return math.inf, n_iter
    return size, max_iter


@jit
def unit_of(problem, y, j):
    """Return the size of a residual of 1, in units of unknown number j."""
    G = problem.n_shapes
    if j >= 2 * G:
        c = j - 2 * G
        return math.sqrt(problem.width[c]) * math.exp(0.5 * y[problem.shape[c]])
    return math.exp(0.5 * y[0]) if problem.mode == EDGE and j == G else 1.0


@jit
def reach(problem, y, j):
    """Return the longest step of unknown number j that the line search starts from."""
    G = problem.n_shapes
    if j < G:
        return 2.0
    if j < 2 * G and not (problem.mode == EDGE and j == G):
        return 3.0
    return 2.0 * unit_of(problem, y, j) + (2.0 if j == G else 1.0) * abs(y[j])


follow_diagonal = jit(follow)


@jit
def start_and_follow(problem, block, limits, y):
    """Set y to weights as under a strong ridge, and follow them to those of an SVM; returns as ``follow`` does."""
    N = y.size - 2
    work = workspace(N)
    pulls(problem, work.hats)
    diagonal_side(problem, block, work.hats, y, work.value, work.jac)
    for h in range(problem.n_shapes):
        y[h], y[problem.n_shapes + h] = math.log(work.value[h]), math.log(work.value[problem.n_shapes + h])
    y[2 * problem.n_shapes : N] = work.value[2 * problem.n_shapes : N]
    y[N] = 0.0
    at_most(problem, y)
    return follow_diagonal(problem, block, limits, y)


@jit
def at_most(problem, y):
    """Bring q, x and m down to the scale of the margin, which they do not exceed by much."""
    G, N = problem.n_shapes, y.size - 2
    top = 1.0 + problem.kappa.max()
    largest = 1e-300
    for h in range(G):
        y[h] = min(y[h], 2.0 * math.log(top))
        y[G + h] = min(y[G + h], 0.5 * y[h])
    for c in range(2 * G, N):
        largest = max(largest, abs(y[c]))
    for c in range(2 * G, N):
        y[c] *= min(1.0, 0.5 * top / largest)


def search(problem, block, limits, y):
    """Run Newton's method on a block of either kind."""
    limits = float(limits[0]), int(limits[1]), float(limits[2])
    if hasattr(block, "C"):
        with np.errstate(all="ignore"):
            return follow(problem, block, limits, y)
    return follow_diagonal(problem, block, limits, y)
