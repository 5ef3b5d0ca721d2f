"""Newton's method for the saddle point of a mixture, and where it starts: compiled in a common basis, or dense."""

import math
from typing import NamedTuple

import numpy as np
from numba.extending import overload

from .._support.gauss import jit
from ._equations import EDGE, RIDGE, SAT, assign, largest_of
from ._mixture_data import data_side, losses_at, newton_step, pulls, report_at
from ._mixture_weights import dense_side, diagonal_side
from ._newton import LARGEST_LOG_Q, LARGEST_LOG_Q_SAT, PATIENCE_WIDE

VANISHED = -40.0  # log q at which weights are taken to vanish
LOCAL = 0.3  # largest residual at which the change over a step tells of derivatives, and not of their own change


class Limits(NamedTuple):
    """Limits of one search."""

    tol: float
    max_iter: int
    x_limit: float  # largest x/√q


class Report(NamedTuple):
    """Results at a solution, which are written to these arrays."""

    each: np.ndarray  # (6, K), see ``report_at``
    single: np.ndarray  # (4,): r, r̂, the training loss and error


class Workspace(NamedTuple):
    """Scratch arrays of the iteration."""

    hats: np.ndarray
    dhats: np.ndarray
    value: np.ndarray
    jac: np.ndarray
    correction: np.ndarray  # of the derivatives of the residuals
    matrix: np.ndarray


@jit
def workspace(N):
    """Return fresh scratch arrays for N unknowns."""
    hats, dhats, value, jac = np.empty(N), np.empty((N + 1, N)), np.empty(N + 1), np.empty((N + 1, N + 1))
    return Workspace(hats, dhats, value, jac, np.zeros((N, N)), np.empty((N, N)))


@jit
def on_sphere(problem, y, value):
    """Whether the norm is that of the sphere, so that the search for ζ did not fail."""
    N = value.size - 1
    if problem.mode == RIDGE or y[N + 1] <= 0.0:
        return True
    return abs(value[N] - problem.norm) <= 1e-8 * problem.norm


@jit
def evaluate_diagonal(problem, block, y, work, res, step):
    """Write the residuals at y (N,) and Newton's step from there; False if y is out of the domain."""
    data_side(problem, y, work.hats, work.dhats)
    diagonal_side(problem, block, work.hats, y, work.value, work.jac)
    return on_sphere(problem, y, work.value) and newton_step(problem, y, work, res, step)


def evaluate_dense(problem, block, y, work, res, step):
    """Do the same for dense covariances."""
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


def correct(problem, block, ends, residuals, t, work, step):
    """Correct derivatives that come from probes by the change over the last step, and with them the next step.

    This is Broyden's update. The step led from ends[0] to ends[1], t times Newton's, and from residuals[0] to
    residuals[1]. The noise of the probes hardly changes from point to point, so that corrections stay true.
    """
    if getattr(block, "probes", None) is None or largest_of(residuals[1]) > LOCAL:
        return
    N = residuals[0].size
    units = np.array([unit_of(problem, ends[0], j) for j in range(N)])
    moved = (ends[1] - ends[0])[:N] / units
    deviation = residuals[1] - (1.0 - t) * residuals[0]
    work.correction[:] += np.outer(deviation, moved / units) / (moved @ moved)
    newton_step(problem, ends[1], work, residuals[1], step)


@overload(correct)
def _correct_compiled(problem, block, ends, residuals, t, work, step):
    """Sums in a common basis have exact derivatives."""

    def nothing(problem, block, ends, residuals, t, work, step):
        pass

    return nothing


@jit
def highest(y, n):
    """Return the largest of the first n entries of y."""
    high = y[0]
    for i in range(1, n):
        high = max(high, y[i])
    return high


@jit
def beyond(problem, y, widest, x_limit):
    """Whether log q is above its bound or |log q| too large for a double, or x/√q above its limit."""
    G = problem.n_shapes
    largest = LARGEST_LOG_Q_SAT if problem.mode == SAT else LARGEST_LOG_Q
    for h in range(G):
        if y[h] > widest or y[h] < -largest:
            return True
        if problem.mode != EDGE and y[G + h] - 0.5 * y[h] > math.log(x_limit):
            return True
    return False


def follow(problem, block, limits, y):
    """Newton with a line search from y; where it does not descend, a few steps of the damped fixed point.

    Starts from y and writes the solution to it. Returns (residual, iterations). A residual of infinity means that the
    path left the domain, or that x grew beyond its limit, the mark of the SAT phase.
    """
    tol, max_iter, x_limit = limits
    G, N = problem.n_shapes, y.size - 2
    work = workspace(N)
    res, step, res_new, step_new, new = np.empty(N), np.empty(N + 1), np.empty(N), np.empty(N + 1), np.empty(N + 2)
    resolved = 2.0 * math.log(problem.law.widest) - math.log(highest(problem.width, problem.width.size))
    too_wide = min(resolved + 4.0, LARGEST_LOG_Q_SAT if problem.mode == SAT else LARGEST_LOG_Q)
    widest = too_wide if resolved < math.inf else math.inf
    if highest(y, G) > widest or not evaluate(problem, block, y, work, res, step):
        return math.inf, 0
    size, plain, wide = largest_of(res), 0, 0
    for n_iter in range(1, max_iter + 1):
        if size <= tol:
            return size, n_iter
        wide += 1 if highest(y, G) > resolved else 0
        if wide > PATIENCE_WIDE:
            return math.inf, n_iter
        excess = 1.0
        for j in range(N):
            excess = max(excess, abs(step[j]) / reach(problem, y, j))
        t, size_new = 1.0 / excess, math.inf
        if plain == 0:
            for _ in range(6):
                for j in range(N + 1):  # the last is the bias, whose search starts there
                    new[j] = y[j] + t * step[j]
                new[N + 1] = y[N + 1]
                if highest(new, G) <= widest and evaluate(problem, block, new, work, res_new, step_new):
                    size_new = largest_of(res_new)
                    if size_new < (1.0 - 0.1 * t) * size or size_new <= tol:
                        correct(problem, block, (y, new), (res, res_new), t, work, step_new)
                        break
                size_new = math.inf
                t *= 0.4
        if size_new == math.inf:
            plain = 4 if plain == 0 else plain - 1
            for j in range(N):
                new[j] = y[j] + 0.4 * unit_of(problem, y, j) * min(max(res[j], -2.0), 2.0)
            new[N], new[N + 1] = y[N], y[N + 1]
            if highest(new, G) > widest or not evaluate(problem, block, new, work, res_new, step_new):
                return math.inf, n_iter
            size_new = largest_of(res_new)
        assign(y, new)
        assign(res, res_new)
        assign(step, step_new)
        size = size_new
        if beyond(problem, y, too_wide, x_limit):
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
def strong_start(problem, block, y):
    """Set y to weights as under a strong ridge, not larger than the margin needs."""
    G, N = problem.n_shapes, y.size - 2
    work = workspace(N)
    pulls(problem, work.hats)
    diagonal_side(problem, block, work.hats, y, work.value, work.jac)
    for j in range(N):
        y[j] = math.log(work.value[j]) if j < 2 * G else work.value[j]
    y[N] = 0.0
    cap(problem, y)


@jit
def solve_and_report(problem, block, limits, warm, y, report):
    """Solve an SVM from y if it is warm, else from the weights of a strong ridge; write the report if it converges.

    Returns (residual, iterations), with a residual of infinity where weights vanish. All in one call, because a call
    takes as long as a step.
    """
    if not warm:
        strong_start(problem, block, y)
    residual, n = follow_diagonal(problem, block, limits, y)
    if residual <= limits.tol:
        if highest(y, problem.n_shapes) <= VANISHED:
            return math.inf, n
        single = report.single
        single[0], single[1] = report_at(problem, y, report.each)
        single[2], single[3] = losses_at(problem, y)
    return residual, n


@jit
def cap(problem, y):
    """Cap q, x and m at the scale of the margin, which they do not exceed by much, and x below √q."""
    G, N = problem.n_shapes, y.size - 2
    top = 0.5 * (1.0 + highest(problem.kappa, problem.kappa.size))
    largest = 1e-300
    for h in range(G):
        y[h] = min(y[h], 2.0 * math.log(top))
        y[G + h] = min(y[G + h], 0.5 * y[h] + math.log(0.3))
    for c in range(2 * G, N):
        largest = max(largest, abs(y[c]))
    for c in range(2 * G, N):
        y[c] *= min(1.0, 0.5 * top / largest)


def search(problem, block, limits, y):
    """Run Newton's method on a block of either kind."""
    limits = Limits(float(limits.tol), int(limits.max_iter), float(limits.x_limit))
    if hasattr(block, "C"):
        with np.errstate(all="ignore"):
            return follow(problem, block, limits, y)
    return follow_diagonal(problem, block, limits, y)


# ---- where to start


def sphere_start(task, problem):
    """Return the state of weights on the sphere, half aligned with the difference of the class means."""
    block, G = task.block, problem.n_shapes
    directions = block.g.sum()
    y = np.empty(2 * G + problem.alpha.size + 2)
    y[:G] = np.log(problem.norm * block.traces() / directions)
    y[G : 2 * G] = 0.5 * y[:G]
    if problem.mode == EDGE:
        y[G] = 0.0
    y[2 * G : -2] = 0.5 * math.sqrt(problem.norm) * along_shift(problem, block)
    y[-2:] = 0.0, 1.0
    return y


def along_shift(problem, block):
    """Return the centres (K,) along the unit vector between the class means."""
    signed = problem.label * problem.alpha
    for label in (1.0, -1.0):
        mine = problem.label == label
        signed[mine] /= problem.alpha[mine].sum()
    shift = signed @ block.v
    size = np.linalg.norm(shift)
    return block.v @ shift / size if size > 0.0 else np.zeros(problem.alpha.size)


def under_ridge(task, problem, hats, ridge, y):
    """Write q, x and m to y that follow from these hats with x̂ = 0 under a ridge."""
    block, G = task.block, problem.n_shapes
    if hasattr(block, "C"):
        q, x, m = block.under_ridge(hats[:G], hats[2 * G :], ridge)
    else:
        work = workspace(y.size - 2)
        hats = hats.copy()
        hats[G : 2 * G] = 0.0
        diagonal_side(problem._replace(mode=RIDGE, ridge=ridge), block, hats, y, work.value, work.jac)
        q, x, m = work.value[:G], work.value[G : 2 * G], work.value[2 * G : -1]
    y[:G], y[G : 2 * G], y[2 * G : -2] = np.log(np.maximum(q, 1e-300)), np.log(x), m


def ridge_start(task, problem, ridge):
    """Return the state under a strong ridge, where samples pull with their force at score 0; capped at the margin."""
    N = 2 * problem.n_shapes + problem.alpha.size
    hats, y = np.empty(N), np.zeros(N + 2)
    pulls(problem, hats)
    under_ridge(task, problem, hats, ridge, y)
    cap(problem, y)
    y[N + 1] = ridge
    return y


def loose_start(task, problem):
    """Return the state of weights spread as without data, with the small pull of ever fewer samples."""
    G, block = problem.n_shapes, task.block
    y = sphere_start(task, problem)
    zeta = (block.g.sum() + block.g_null) / problem.norm
    y[G : 2 * G] = np.log(block.traces() / zeta)
    y[:G], y[2 * G : -2] = y[G : 2 * G] - 27.0, 0.0
    work = workspace(y.size - 2)
    data_side(problem, y, work.hats, work.dhats)
    b, w = y[-2], y[G : 2 * G].copy()
    under_ridge(task, problem, work.hats, zeta, y)
    y[G : 2 * G], y[-2:] = w, (b, zeta)
    return y
