"""Newton's method for the saddle point of two classes, and where it starts, compiled."""

import functools
import math
from typing import NamedTuple

import numpy as np
from numba import typeof, types

from .._support.gauss import jit
from .._support.jit import FLOAT, INT, VECTOR, address, late
from ..losses.internal import NO_LAW, force_at
from ..moments import Spectrum
from ._equations import (
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
    assign,
    data_side,
    largest_of,
    solve_bias,
    solve_norm,
    sums,
    weight_side,
)  # fmt: skip

# Largest |log q| at which to go on. In the SAT phase q falls with the number of samples, down to the smallest doubles.
LARGEST_LOG_Q, LARGEST_LOG_Q_SAT = 300.0, 690.0
PATIENCE_WIDE = 4  # iterations at scores so wide that the quadrature of the loss is inexact


class Workspace(NamedTuple):
    """Scratch arrays of the iteration."""

    hats: np.ndarray
    value: np.ndarray
    jac: np.ndarray
    matrix: np.ndarray


@jit
def workspace():
    """Return fresh scratch arrays."""
    return Workspace(np.empty((6, 4)), np.empty(4), np.empty((4, 4)), np.empty((3, 3)))


@jit
def evaluate(problem, spectrum, y, work, res, step):
    """Write the residual of the fixed point at y and the Newton step from there; False if y is out of the domain.

    The unknowns are log q, log x (κ on the edge) and r. The bias and ζ follow them by their monotone equations and
    enter the Jacobian through the implicit function theorem.
    """
    mode = problem.mode
    hats, value, jac, m = work.hats, work.value, work.jac, work.matrix
    q, r = math.exp(y[LOG_Q]), y[R]
    x, kappa_shift = (1.0, y[LOG_X]) if mode == EDGE else (math.exp(y[LOG_X]), 0.0)
    y[B] = solve_bias(problem, kappa_shift, q, x, r, y[B]) if problem.fit_bias else 0.0
    data_side(problem.law, problem, kappa_shift, (q, x, r, y[B]), hats)
    x_hat, q_hat, r_hat = hats[0, 0], hats[0, 1], hats[0, 2]
    shift = spectrum.shift
    if mode == RIDGE:
        y[ZETA], shift = problem.ridge, 0.0
    else:
        y[ZETA] = solve_norm(mode, spectrum, problem.norm, x_hat, q_hat, r_hat, y[ZETA])
    weight_side(mode, spectrum, shift, y[ZETA], (x_hat, q_hat, r_hat), value, jac)
    if not (value[1] > 0.0 and value[2] > 0.0 and math.isfinite(value[1] + value[2] + value[3])):
        return False
    if mode != RIDGE and y[ZETA] > 0.0 and not abs(value[0] - problem.norm) <= 1e-8 * problem.norm:
        return False  # the search for ζ failed
    root_q = math.sqrt(q)
    res[0] = math.log(value[1] / q)
    res[1] = math.log(value[2] / x)
    res[2] = (value[3] - r) / root_q

    for j in range(3):
        row, scale = (1, q) if j == 0 else ((2, x) if j == 1 else (3, 1.0))
        if j == 1 and mode == EDGE:
            row, scale = 5, 1.0
        db = -hats[row, 3] / hats[4, 3] if problem.fit_bias and hats[4, 3] > 0.0 else 0.0
        dx_hat = scale * (hats[row, 0] + hats[4, 0] * db)
        dq_hat = scale * (hats[row, 1] + hats[4, 1] * db)
        dr_hat = scale * (hats[row, 2] + hats[4, 2] * db)
        dz = 0.0
        if mode != RIDGE and y[ZETA] > 0.0:
            dz = -(jac[0, 1] * dx_hat + jac[0, 2] * dq_hat + jac[0, 3] * dr_hat) / jac[0, 0]
        m[0, j] = (jac[1, 0] * dz + jac[1, 1] * dx_hat + jac[1, 2] * dq_hat + jac[1, 3] * dr_hat) / value[1]
        m[1, j] = (jac[2, 0] * dz + jac[2, 1] * dx_hat) / value[2]
        m[2, j] = (jac[3, 0] * dz + jac[3, 1] * dx_hat + jac[3, 3] * dr_hat) / root_q
    m[0, 0] -= 1.0
    if mode != EDGE:
        m[1, 1] -= 1.0
    m[2, 0] -= 0.5 * res[2]
    m[2, 2] -= 1.0 / root_q
    solve3(m, res, step)
    return True


@jit
def solve3(m, res, step):
    """step = -m⁻¹ res by Cramer's rule, or the plain residual where m is singular."""
    m00, m01, m02 = m[0, 0], m[0, 1], m[0, 2]
    m10, m11, m12 = m[1, 0], m[1, 1], m[1, 2]
    m20, m21, m22 = m[2, 0], m[2, 1], m[2, 2]
    r0, r1, r2 = res[0], res[1], res[2]
    c00, c01, c02 = m11 * m22 - m12 * m21, m12 * m20 - m10 * m22, m10 * m21 - m11 * m20
    det = m00 * c00 + m01 * c01 + m02 * c02
    if det == 0.0 or not math.isfinite(det):
        assign(step, res)
        return
    c10, c11, c12 = m02 * m21 - m01 * m22, m00 * m22 - m02 * m20, m01 * m20 - m00 * m21
    c20, c21, c22 = m01 * m12 - m02 * m11, m02 * m10 - m00 * m12, m00 * m11 - m01 * m10
    step[0] = -(r0 * c00 + r1 * c10 + r2 * c20) / det
    step[1] = -(r0 * c01 + r1 * c11 + r2 * c21) / det
    step[2] = -(r0 * c02 + r1 * c12 + r2 * c22) / det


@jit
def newton(problem, spectrum, tol, max_iter, x_limit, y):
    """Newton with a line search from y; where it does not descend, a few steps of the damped fixed point.

    Starts from y and writes the solution to it. Returns (residual, iterations). A residual of infinity means that the
    path left the domain, or that x grew beyond x_limit·√q, the mark of the SAT phase.
    """
    work = workspace()
    res, step, res_new, step_new = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    new = np.empty(5)
    assign(new, y)
    largest = LARGEST_LOG_Q_SAT if problem.mode == SAT else LARGEST_LOG_Q
    resolved = 2.0 * math.log(problem.law.widest) - math.log(max(problem.width[0], problem.width[1]))
    too_wide = min(resolved + 4.0, largest)
    # where a quadrature does not resolve the loss it is wrong, and slowest
    widest = too_wide if resolved < math.inf else math.inf
    if y[LOG_Q] > widest or not evaluate(problem, spectrum, y, work, res, step):
        return math.inf, 0
    size = largest_of(res)
    plain = wide = 0
    for n_iter in range(1, max_iter + 1):
        if size <= tol:
            return size, n_iter
        if y[LOG_Q] > resolved:
            wide += 1
            if wide > PATIENCE_WIDE:
                return math.inf, n_iter
        root_q = math.exp(0.5 * y[LOG_Q])
        unit1 = root_q + abs(y[LOG_X]) if problem.mode == EDGE else 1.5
        cap = max(abs(step[0]) / 2.0, abs(step[1]) / (2.0 * unit1), abs(step[2]) / (2.0 * root_q + abs(y[R])))
        t = 1.0 / max(1.0, cap)
        size_new = math.inf
        if plain == 0:
            for _ in range(6):
                for j in range(3):
                    new[j] = y[j] + t * step[j]
                new[B], new[ZETA] = y[B], y[ZETA]
                if new[LOG_Q] <= widest and evaluate(problem, spectrum, new, work, res_new, step_new):
                    size_new = largest_of(res_new)
                    if size_new < (1.0 - 0.1 * t) * size or size_new <= tol:
                        break
                size_new = math.inf
                t *= 0.4
        if size_new == math.inf:
            plain = 4 if plain == 0 else plain - 1
            for j in range(3):
                unit = root_q if j == 2 or (j == 1 and problem.mode == EDGE) else 1.0
                new[j] = y[j] + unit * min(max(0.7 * res[j], -1.0), 1.0)
            new[B], new[ZETA] = y[B], y[ZETA]
            if new[LOG_Q] > widest or not evaluate(problem, spectrum, new, work, res_new, step_new):
                return math.inf, n_iter
            size_new = largest_of(res_new)
        assign(y, new)
        assign(res, res_new)
        assign(step, step_new)
        size = size_new
        if (
            y[LOG_Q] > too_wide
            or y[LOG_Q] < -largest
            or (problem.mode != EDGE and y[LOG_X] - 0.5 * y[LOG_Q] > math.log(x_limit))
        ):
            return math.inf, n_iter
    return size, max_iter


def kinds():
    """Types of the arguments of ``newton``."""
    none, pair = np.empty(0), (0.0, 0.0)
    problem = Problem(UNSAT, NO_LAW, pair, pair, pair, pair, 0.0, 0.0, True)
    return typeof(problem), typeof(Spectrum(none, none, none, 0.0, 0.0, 1, 1)), FLOAT, INT, FLOAT, VECTOR


RESULT = types.Tuple((FLOAT, INT))
newton_at = late(RESULT, kinds)


@functools.cache
def newton_address():
    """Return the address of ``newton``, for the settings."""
    return address(newton, RESULT, kinds())


# ---- where to start, and the first attempt at a point


X_LIMIT = 1e7  # x/√q above which to test whether the data are separable
HUGE = 1e300
PATIENCE = 20  # times max_iter: iterations after which a continuation stops
FEW, FEWER = np.int64(40), np.int64(20)  # iterations of short attempts, before other starts are tried
VANISHING = -40.0  # log q below which to test whether any weights lower the loss


@jit
def force(problem, k, u):
    """Return the force -ℓ'(u) on a sample of class k at the score u."""
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
    """Set y to weights under a strong ridge: samples pull with their force at score 0; capped at the margin."""
    q_hat = r_hat = 0.0
    for k in range(2):
        f = force(problem, k, 0.0)
        q_hat += problem.alpha[k] * problem.width[k] * f * f
        r_hat += 0.5 * problem.alpha[k] * f
    m = sums(spectrum)
    top = 1.0 + max(problem.kappa[0], problem.kappa[1])
    q = min((q_hat * m.g2 + r_hat**2 * m.s1) / ridge**2, top**2)
    x = min(m.g1 / ridge, math.sqrt(q))
    y[LOG_Q], y[LOG_X] = math.log(q), math.log(x)
    y[R], y[B], y[ZETA] = min(r_hat * m.s0 / ridge, top), 0.0, ridge


@jit
def most_iterations(problem, max_iter):
    """Return the iterations of one attempt: few with a quadrature, which is slow, and smooth so that ten suffice."""
    return min(max_iter, FEW) if problem.law.widest < math.inf else max_iter


@jit
def first_attempt(settings, problem, spectrum, y, phase):
    """Run Newton's method from y, if that is the solution of an UNSAT neighbour, or else from the usual start.

    Returns (residual, iterations); the residual is infinity where the fallback has to decide the phase.
    """
    ridge = problem.mode == RIDGE
    most, limit = most_iterations(problem, settings.max_iter), HUGE
    if not ridge and problem.law.vanishes:
        most, limit = min(most, FEW), X_LIMIT
    if phase != UNSAT:
        if ridge:
            ridge_start(problem, spectrum, problem.ridge, y)
        else:
            sphere_start(problem, spectrum, y)
    residual, n_iter = newton_at(settings.newton, (problem, spectrum, settings.tol, most, limit, y))
    if ridge and y[LOG_Q] <= VANISHING:
        residual = math.inf
    return residual, n_iter


@jit
def too_wide(problem, y):
    """Whether scores are too wide for the quadrature of the loss."""
    return y[LOG_Q] > 2.0 * math.log(problem.law.widest) - math.log(max(problem.width[0], problem.width[1]))
