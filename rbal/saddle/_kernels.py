"""The saddle point, compiled: arrays and scalars in, arrays and scalars out.

Notation as in the paper. ``saddle.py`` explains the method, ``losses.py`` the data side.
"""

import functools
import math
from typing import NamedTuple

import numpy as np
from numba import typeof, types

from .._support.gauss import GL_NODES, GL_WEIGHTS, jit, jit_sum, log_sf
from .._support.jit import FLOAT, INT, VECTOR, address, late
from ..losses._constraints import NARROW
from ..losses._record import NO_LAW, Law, expectations_at, mean_force_at
from ..moments import Spectrum

# What to solve: the sphere where some loss is left (UNSAT), the sphere under hard constraints (SAT), the surface
# between the two (EDGE), or a fixed ridge k̂ (an SVM).
UNSAT, SAT, EDGE, RIDGE = range(4)


class Problem(NamedTuple):
    """One saddle point to solve. Pairs are (positive class, negative class)."""

    mode: int
    law: Law
    sat: Law  # of its SAT phase
    edge: Law  # of the surface between the phases
    kappa: tuple
    alpha: tuple
    weight: tuple
    norm: float  # ‖J‖²/L on the sphere
    ridge: float  # k̂ of an SVM
    fit_bias: bool
    newton: int  # its address: ``newton`` is called from many places, and takes long to compile into each


# Newton's error after a step is of the order of the square of that step: one as small as this, relative, was the last.
SMALL = 1e-9
# The widest |log q| at which to go on. In the SAT phase q falls with the number of samples, down to what is a double.
LARGEST_LOG_Q, LARGEST_LOG_Q_SAT = 300.0, 690.0
PATIENCE_WIDE = 4  # iterations where a quadrature does not resolve its loss: a path may pass, not stay

# The state y of the iteration. On the edge the second entry is the margin, elsewhere log x (log w in the SAT phase).
LOG_Q, LOG_X, R, B, ZETA = range(5)


# Plain loops: they compile many times faster than expressions of whole arrays, which are prepared to raise errors.
@jit
def assign(target, source):
    """target[:] = source."""
    for i in range(target.size):
        target[i] = source[i]


@jit
def largest_of(res):
    """Largest absolute value; NaN if any is."""
    largest = 0.0
    for i in range(res.size):
        if not abs(res[i]) <= largest:
            largest = abs(res[i])
            if math.isnan(largest):
                break
    return largest


class Sums(NamedTuple):
    """Σ g λᵏ for k = 0, 1, 2, and Σ s λᵏ for k = 0, 1."""

    g0: float
    g1: float
    g2: float
    s0: float
    s1: float


@jit
def sums(spectrum):
    """Moments of a spectrum."""
    g0 = g1 = g2 = s0 = s1 = 0.0
    for i in range(spectrum.lam.size):
        lam, g, s = spectrum.lam[i], spectrum.g[i], spectrum.s[i]
        g0 += g
        g1 += g * lam
        g2 += g * lam * lam
        s0 += s
        s1 += s * lam
    return Sums(g0, g1, g2, s0, s1)


@jit_sum
def weight_side(mode, spectrum, shift, zeta, x_hat, q_hat, r_hat, value, jac):
    """(norm, q, x, r) from the hats and their derivatives in (ζ, x̂, q̂, r̂), with A = ζ + x̂(λ - shift)."""
    lam, g, s = spectrum.lam, spectrum.g, spectrum.s
    n2 = n3 = n3d = q2 = q3 = q3d = gl1 = gl2 = gl2d = gll2 = s1 = s2 = s2d = sl2 = g1 = g2 = g2d = 0.0
    r_hat2 = r_hat * r_hat
    for i in range(lam.size):
        v, d = lam[i], lam[i] - shift
        a = 1.0 / (zeta + x_hat * d)
        gl, si, a2 = g[i] * v, s[i], a * a
        pull = (q_hat * gl + r_hat2 * si) * a2
        n2 += pull
        n3 += pull * a
        n3d += pull * a * d
        q2 += pull * v
        q3 += pull * v * a
        q3d += pull * v * a * d
        gl1 += gl * a
        gl2 += gl * a2
        gl2d += gl * a2 * d
        gll2 += gl * v * a2
        s1 += si * a
        s2 += si * a2
        s2d += si * a2 * d
        sl2 += si * v * a2
        g1 += g[i] * a
        g2 += g[i] * a2
        g2d += g[i] * a2 * d
    value[0], value[1], value[2], value[3] = n2, q2, gl1, r_hat * s1
    jac[0, 0], jac[0, 1], jac[0, 2], jac[0, 3] = -2.0 * n3, -2.0 * n3d, gl2, 2.0 * r_hat * s2
    jac[1, 0], jac[1, 1], jac[1, 2], jac[1, 3] = -2.0 * q3, -2.0 * q3d, gll2, 2.0 * r_hat * sl2
    jac[2, 0], jac[2, 1], jac[2, 2], jac[2, 3] = -gl2, -gl2d, 0.0, 0.0
    jac[3, 0], jac[3, 1], jac[3, 2], jac[3, 3] = -r_hat * s2, -r_hat * s2d, 0.0, s1
    if mode == SAT:  # the entropy of the weights, 1/L tr A⁻¹, shares the norm with the pull of the data
        value[0] += g1 + spectrum.g_null / zeta
        jac[0, 0] -= g2 + spectrum.g_null / zeta**2
        jac[0, 1] -= g2d


@jit_sum
def norm_and_slope(mode, spectrum, zeta, x_hat, q_hat, r_hat2):
    """The norm alone and its derivative in ζ: the first row of ``weight_side``, for the inner root search."""
    lam, g, s, shift = spectrum.lam, spectrum.g, spectrum.s, spectrum.shift
    n2 = n3 = g1 = g2 = 0.0
    for i in range(lam.size):
        a = 1.0 / (zeta + x_hat * (lam[i] - shift))
        pull = (q_hat * g[i] * lam[i] + r_hat2 * s[i]) * a * a
        n2 += pull
        n3 += pull * a
        g1 += g[i] * a
        g2 += g[i] * a * a
    if mode == SAT:
        return n2 + g1 + spectrum.g_null / zeta, -2.0 * n3 - g2 - spectrum.g_null / zeta**2
    return n2, -2.0 * n3


@jit
def solve_norm(mode, spectrum, norm, x_hat, q_hat, r_hat, guess):
    """ζ with ‖J‖²/L = norm: the norm falls monotonically in ζ, and its inverse square root is nearly linear.

    With directions that neither vary nor separate, weight put there costs nothing: ζ = 0 where the rest falls short.
    """
    r_hat2 = r_hat * r_hat
    free = mode != SAT and spectrum.g_null > 0.0 and spectrum.lam[0] > 0.0
    if free and norm_and_slope(mode, spectrum, 0.0, x_hat, q_hat, r_hat2)[0] <= norm:
        return 0.0
    m = sums(spectrum)
    total = q_hat * m.g1 + r_hat2 * m.s0
    entropy = m.g0 + spectrum.g_null if mode == SAT else 0.0
    lo, hi = 0.0, (entropy + math.sqrt(entropy * entropy + 4.0 * norm * total)) / (2.0 * norm)
    zeta = guess if 0.0 < guess < hi else hi
    for _ in range(200):
        value, slope = norm_and_slope(mode, spectrum, zeta, x_hat, q_hat, r_hat2)
        if value > norm:
            lo = zeta
        else:
            hi = zeta
        new = zeta + 2.0 * value / slope * (1.0 - math.sqrt(value / norm))
        if abs(new - zeta) <= SMALL * zeta:
            return new
        if not lo < new < hi:
            new = 0.5 * (lo + hi) if lo > 0.0 else 0.1 * hi
        if hi - lo <= 4e-16 * hi:
            return new
        zeta = new
    return zeta


@jit
def mean_force(law, kappa, c, x, mu, q):
    """(E[f], ∂E[f]/∂μ)."""
    if law.mean_force != 0:
        return mean_force_at(law.mean_force, (kappa, c, x, mu, q))
    e = expectations_at(law.expectations, (kappa, c, x, mu, q))
    return e[0], e[3]


@jit
def data_side(problem, kappa_shift, q, x, r, b, hats):
    """Rows: (x̂, q̂, r̂, bias gap), then their derivatives in q, x, r, b and κ."""
    for row in range(6):
        for j in range(4):
            hats[row, j] = 0.0
    for k in range(2):
        y = 1.0 - 2.0 * k
        a = problem.alpha[k]
        kappa = problem.kappa[k] + kappa_shift
        e = expectations_at(problem.law.expectations, (kappa, problem.weight[k], x, 0.5 * r - y * b, q))
        for row in range(6):
            # value, ∂q, ∂x, ∂r = ∂μ/2, ∂b = -y ∂μ, ∂κ = -∂μ (the expectations depend on κ - μ)
            if row < 3:
                j, scale = (0, a) if row == 0 else ((6, a) if row == 1 else (9, a))
            else:
                j, scale = 3, (0.5 * a if row == 3 else (-y * a if row == 4 else -a))
            hats[row, 0] += scale * e[j + 2]
            hats[row, 1] += scale * e[j + 1]
            hats[row, 2] += 0.5 * scale * e[j]
            hats[row, 3] += y * scale * e[j]


@jit
def bias_gap(problem, kappa_shift, q, x, r, b):
    """α₊E₊[f] - α₋E₋[f], its slope in b (never negative), and the size of the two forces."""
    up = mean_force(problem.law, problem.kappa[0] + kappa_shift, problem.weight[0], x, 0.5 * r - b, q)
    down = mean_force(problem.law, problem.kappa[1] + kappa_shift, problem.weight[1], x, 0.5 * r + b, q)
    f_up, f_down = problem.alpha[0] * up[0], problem.alpha[1] * down[0]
    return f_up - f_down, -problem.alpha[0] * up[1] - problem.alpha[1] * down[1], abs(f_up) + abs(f_down)


@jit
def log_step(problem, kappa_shift, q, x, r, b):
    """Newton's step for log α₊E₊[f] = log α₋E₋[f]: forces that fall like a Gaussian have nearly even logarithms."""
    up = mean_force(problem.law, problem.kappa[0] + kappa_shift, problem.weight[0], x, 0.5 * r - b, q)
    down = mean_force(problem.law, problem.kappa[1] + kappa_shift, problem.weight[1], x, 0.5 * r + b, q)
    if not (up[0] > 0.0 and down[0] > 0.0):
        return math.nan
    gap = math.log(problem.alpha[0] / problem.alpha[1]) + math.log(up[0]) - math.log(down[0])
    return gap / (up[1] / up[0] + down[1] / down[0])


@jit
def solve_bias(problem, kappa_shift, q, x, r, guess):
    """Bias with α₊E₊[f] = α₋E₋[f], where the gap rises monotonically in b; NaN where it is not found."""
    law, weight = problem.law, problem.weight
    b, lo, hi, s = guess, -math.inf, math.inf, math.sqrt(q)
    step = max(s, NARROW * math.sqrt(x)) if law.easier_below else s  # the scale on which the force changes
    # b is added to the margin and to r: what is below the last digit of these is no step
    grain = abs(r) + min(abs(problem.kappa[0] + kappa_shift), abs(problem.kappa[1] + kappa_shift))
    grain = 2e-16 * (grain + law.unit)
    up, down = problem.alpha[0] * weight[0], problem.alpha[1] * weight[1]
    if law.saturates and abs(up - down) <= 4e-16 * up:
        # Balanced forces that saturate (nearly every sample below its margin) fix b only through the rest.
        middle = 0.5 * (weight[0] - weight[1]) * x + 0.5 * (problem.kappa[1] - problem.kappa[0])
        _, slope, size = bias_gap(problem, kappa_shift, q, x, r, middle)
        if slope * step < 1e-7 * size and 2.0 * up - size < 1e-7 * size:
            return saturated_bias(problem, q, x, r, middle) if law.kinked else middle
    # it takes long where one class pulls alone; where each step is a quadrature, such a path is given up
    for n in range(50 if law.widest < math.inf else 400):
        gap, slope, size = bias_gap(problem, kappa_shift, q, x, r, b)
        if abs(gap) <= 4e-16 * size:
            return b
        if gap > 0.0:
            hi = b
        else:
            lo = b
        new = b - gap / slope if slope > 0.0 else math.nan
        if n >= 30 and abs(gap) > 0.5 * size:  # steps of Newton that would never end: one class pulls alone
            new = b + log_step(problem, kappa_shift, q, x, r, b)
        if abs(new - b) <= max(SMALL * s, 2e-16 * abs(b) + grain):
            return new
        if not (lo < new < hi and abs(new - b) <= 4.0 * step):
            if hi == math.inf:
                new = b + step
            elif lo == -math.inf:
                new = b - step
            else:
                new = 0.5 * (lo + hi)
            step *= 2.0
        if hi - lo <= 5e-16 * (abs(b) + s) + grain:
            return new
        b = new
    return b if abs(gap) <= 1e-10 * size else math.nan


@jit
def log_deficit(t1, t2):
    """log ∫ H(t) dt from t1 to t2: how far E[f] of a hinge is from saturation, without underflow."""
    end = min(t2, t1 + 40.0 / max(t1, 1.0))  # H falls like exp(-t²/2): nothing is left beyond
    top, total = log_sf(t1), 0.0
    width = (end - t1) / 4
    for panel in range(4):
        for k in range(GL_NODES.size):
            total += width * GL_WEIGHTS[k] * math.exp(log_sf(t1 + width * (panel + GL_NODES[k])) - top)
    return top + math.log(total)


@jit
def saturated_bias(problem, q, x, r, b):
    """Bias of a hinge when α₊c₊ = α₋c₋ and nearly every sample lies below its margin.

    Then α₊E₊[f] = α₋E₋[f] holds to rounding over a whole interval of b. What decides is the few samples above, so
    that the logarithms of E[c - f] are compared.
    """
    s = math.sqrt(q)
    width = (problem.weight[0] * x / s, problem.weight[1] * x / s)
    offset = math.log(problem.alpha[1] / problem.alpha[0])
    lo, hi = -math.inf, math.inf
    for _ in range(200):
        up, down = (problem.kappa[0] - 0.5 * r + b) / s, (problem.kappa[1] - 0.5 * r - b) / s
        gap = offset + log_deficit(down - width[1], down) - log_deficit(up - width[0], up)
        if gap > 0.0:
            hi = b
        else:
            lo = b
        new = b - gap * s / (abs(up - width[0]) + abs(down - width[1]) + 1.0)
        if abs(new - b) <= 1e-15 * (abs(b) + s):
            return new
        b = new if lo < new < hi else 0.5 * (lo + hi)
    return b


class Workspace(NamedTuple):
    """Scratch arrays of the iteration."""

    hats: np.ndarray
    value: np.ndarray
    jac: np.ndarray
    matrix: np.ndarray


@jit
def workspace():
    """Fresh scratch arrays."""
    return Workspace(np.empty((6, 4)), np.empty(4), np.empty((4, 4)), np.empty((3, 3)))


@jit
def evaluate(problem, spectrum, y, work, res, step):
    """Residual of the fixed point at y and the Newton step from there; False where it leaves the domain.

    The unknowns are log q, log x (κ on the edge) and r. The bias and ζ follow them by their monotone equations and
    enter the Jacobian through the implicit function theorem.
    """
    mode = problem.mode
    hats, value, jac, m = work.hats, work.value, work.jac, work.matrix
    q, r = math.exp(y[LOG_Q]), y[R]
    x, kappa_shift = (1.0, y[LOG_X]) if mode == EDGE else (math.exp(y[LOG_X]), 0.0)
    y[B] = solve_bias(problem, kappa_shift, q, x, r, y[B]) if problem.fit_bias else 0.0
    data_side(problem, kappa_shift, q, x, r, y[B], hats)
    x_hat, q_hat, r_hat = hats[0, 0], hats[0, 1], hats[0, 2]
    shift = spectrum.shift
    if mode == RIDGE:
        y[ZETA], shift = problem.ridge, 0.0
    else:
        y[ZETA] = solve_norm(mode, spectrum, problem.norm, x_hat, q_hat, r_hat, y[ZETA])
    weight_side(mode, spectrum, shift, y[ZETA], x_hat, q_hat, r_hat, value, jac)
    if not (value[1] > 0.0 and value[2] > 0.0 and math.isfinite(value[1] + value[2] + value[3])):
        return False
    if mode != RIDGE and y[ZETA] > 0.0 and not abs(value[0] - problem.norm) <= 1e-8 * problem.norm:
        return False  # no ζ was found
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
    c00 = m[1, 1] * m[2, 2] - m[1, 2] * m[2, 1]
    c01 = m[1, 2] * m[2, 0] - m[1, 0] * m[2, 2]
    c02 = m[1, 0] * m[2, 1] - m[1, 1] * m[2, 0]
    det = m[0, 0] * c00 + m[0, 1] * c01 + m[0, 2] * c02
    if det == 0.0 or not math.isfinite(det):
        assign(step, res)
        return
    c10 = m[0, 2] * m[2, 1] - m[0, 1] * m[2, 2]
    c11 = m[0, 0] * m[2, 2] - m[0, 2] * m[2, 0]
    c12 = m[0, 1] * m[2, 0] - m[0, 0] * m[2, 1]
    c20 = m[0, 1] * m[1, 2] - m[0, 2] * m[1, 1]
    c21 = m[0, 2] * m[1, 0] - m[0, 0] * m[1, 2]
    c22 = m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]
    step[0] = -(res[0] * c00 + res[1] * c10 + res[2] * c20) / det
    step[1] = -(res[0] * c01 + res[1] * c11 + res[2] * c21) / det
    step[2] = -(res[0] * c02 + res[1] * c12 + res[2] * c22) / det


@jit
def newton(problem, spectrum, tol, max_iter, x_limit, y):
    """Newton with a line search from y; where it does not descend, a few steps of the damped fixed point.

    y is start and result. Returns (residual, iterations). A residual of infinity means that the path left the
    domain, or that x grew beyond x_limit·√q, the mark of the SAT phase.
    """
    work = workspace()
    res, step, res_new, step_new = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    new = np.empty(5)
    assign(new, y)
    largest = LARGEST_LOG_Q_SAT if problem.mode == SAT else LARGEST_LOG_Q
    resolved = 2.0 * math.log(problem.law.widest)
    too_wide = min(resolved + 4.0, largest)
    # a quadrature that does not resolve the loss tells nothing, and takes its longest time over it
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
    problem = Problem(UNSAT, NO_LAW, NO_LAW, NO_LAW, pair, pair, pair, 0.0, 0.0, True, 0)
    return typeof(problem), typeof(Spectrum(none, none, none, 0.0, 0.0, 1, 1)), FLOAT, INT, FLOAT, VECTOR


FOUND = types.Tuple((FLOAT, INT))
newton_at = late(FOUND, kinds)


@functools.cache
def newton_address():
    """What a problem holds as ``newton``."""
    return address(newton, FOUND, kinds())
