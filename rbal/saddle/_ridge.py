"""Ways to the solution of an SVM where the first attempt fails."""

import math

import numpy as np

from .._support.gauss import jit
from ..moments import Spectrum
from ._kernels import data_side
from ._problem import LOG_Q, LOG_X, RIDGE, UNSAT, ZETA, B, R, assign
from ._starts import HUGE, most_iterations, ridge_start, sphere_start, too_wide
from ._ways import COLLAPSED, PATIENCE, from_major, major, search, tools_of, with_mode, with_sizes
from ._weights import sums

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
