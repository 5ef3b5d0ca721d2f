"""Where Newton's method starts for a mixture: on the sphere, under a ridge, or among weights that hardly lose."""

import math

import numpy as np

from ._clusters import data_side, pulls
from ._mixture_newton import at_most, workspace
from ._problem import EDGE, RIDGE
from ._resolvents import diagonal_side


def sphere_start(task, problem):
    """Return weights on the sphere, half aligned with the difference of the class means."""
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
    """Return weights as under a strong ridge, where every sample pulls with its force at 0; capped at the margin."""
    N = 2 * problem.n_shapes + problem.alpha.size
    hats, y = np.empty(N), np.zeros(N + 2)
    pulls(problem, hats)
    under_ridge(task, problem, hats, ridge, y)
    at_most(problem, y)
    y[N + 1] = ridge
    return y


def loose_start(task, problem):
    """Return weights spread as without data, and the little that ever fewer samples then pull."""
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
