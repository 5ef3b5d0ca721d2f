"""The equations of one saddle point of two classes, compiled: the problem, the bias, the data side, the weight side.

Notation as in the paper. The docstring of ``rbal.saddle`` explains the method, that of ``rbal.losses`` the data side.
"""

import math
from typing import NamedTuple

import numpy as np

from .._support.gauss import GL_NODES, GL_WEIGHTS, jit, jit_sum, log_sf
from ..losses.internal import NARROW, Law, expectations_at, mean_force_at

# Mode of a problem: the sphere where some loss is left (UNSAT), the sphere under hard constraints (SAT), the surface
# between the two (EDGE), or a fixed ridge k̂ (RIDGE, an SVM). Use numpy ints: numba specialises on Python int literals.
UNSAT, SAT, EDGE, RIDGE = np.arange(4)
COLLAPSED = 2  # a third phase, besides UNSAT and SAT: no weights lower the loss


class Problem(NamedTuple):
    """One saddle point to solve. Pairs are (positive class, negative class).

    The covariance of a class is its width times the common one, so that its scores have the variance width·q and the
    susceptibility width·x. Widths other than 1 are for a ridge alone.
    """

    mode: int
    law: Law
    kappa: tuple
    alpha: tuple
    weight: tuple
    width: tuple
    norm: float  # ‖J‖²/L on the sphere
    ridge: float  # k̂ of an SVM
    fit_bias: bool


class Settings(NamedTuple):
    """Settings that all points of a sweep share: UNSAT or RIDGE, the tables of the loss, the norm, the accuracy.

    ``newton`` and ``fallback`` are addresses of compiled functions, which would take long to compile into each of their
    callers. ``fallback`` is 0 until a point needs it.
    """

    mode: int
    calls: np.ndarray
    traits: np.ndarray
    norm: float
    fit_bias: bool
    tol: float
    max_iter: int
    newton: int
    fallback: int


# Newton's error after a step is of the order of the step squared, so a relative step as small as this is the last one.
SMALL = 1e-9

# The state y of the iteration. On the edge the second entry is the margin, elsewhere log x (log w in the SAT phase).
LOG_Q, LOG_X, R, B, ZETA = range(5)


# Plain loops compile many times faster than array expressions, which must be able to raise errors.
@jit
def assign(target, source):
    """Copy source (n,) into target (n,)."""
    for i in range(target.size):
        target[i] = source[i]


@jit
def largest_of(res):
    """Return the largest absolute value of res (n,), or NaN if one entry is NaN."""
    largest = 0.0
    for i in range(res.size):
        if not abs(res[i]) <= largest:
            largest = abs(res[i])
            if math.isnan(largest):
                break
    return largest


# ---- the bias, which balances the forces of the two classes


@jit
def mean_force(law, kappa, c, x, mu, q):
    """Return E[f] and ∂E[f]/∂μ."""
    if law.mean_force != 0:
        return mean_force_at(law.mean_force, (kappa, c, x, mu, q))
    e = expectations_at(law.expectations, (kappa, c, x, mu, q))
    return e[0], e[3]


@jit
def forces(problem, kappa_shift, q, x, r, b):
    """Return E[f] and ∂E[f]/∂μ of the positive class, and of the negative class."""
    law, c, w = problem.law, problem.weight, problem.width
    kappa = (problem.kappa[0] + kappa_shift, problem.kappa[1] + kappa_shift)
    pos = mean_force(law, kappa[0], c[0], w[0] * x, 0.5 * r - b, w[0] * q)
    return pos, mean_force(law, kappa[1], c[1], w[1] * x, 0.5 * r + b, w[1] * q)


@jit
def bias_gap(problem, kappa_shift, q, x, r, b):
    """Return α₊E₊[f] - α₋E₋[f], its slope in b (never negative), and the size of the two forces."""
    pos, neg = forces(problem, kappa_shift, q, x, r, b)
    f_pos, f_neg = problem.alpha[0] * pos[0], problem.alpha[1] * neg[0]
    return f_pos - f_neg, -problem.alpha[0] * pos[1] - problem.alpha[1] * neg[1], abs(f_pos) + abs(f_neg)


@jit
def log_step(problem, kappa_shift, q, x, r, b):
    """Return Newton's step for log α₊E₊[f] = log α₋E₋[f], which is smoother where forces fall like a Gaussian."""
    pos, neg = forces(problem, kappa_shift, q, x, r, b)
    if not (pos[0] > 0.0 and neg[0] > 0.0):
        return math.nan
    gap = math.log(problem.alpha[0] / problem.alpha[1]) + math.log(pos[0]) - math.log(neg[0])
    return gap / (pos[1] / pos[0] + neg[1] / neg[0])


@jit
def solve_bias(problem, kappa_shift, q, x, r, guess):
    """Return the bias at which α₊E₊[f] = α₋E₋[f], or NaN. The gap of the two rises monotonically in b."""
    law, weight, w = problem.law, problem.weight, problem.width
    b, lo, hi, s = guess, -math.inf, math.inf, math.sqrt(min(w[0], w[1]) * q)
    step = max(s, NARROW * math.sqrt(x)) if law.easier_below else s  # the scale on which the force changes
    # b is added to the margin and to r, so a step below their last digit changes nothing
    rounding = abs(r) + min(abs(problem.kappa[0] + kappa_shift), abs(problem.kappa[1] + kappa_shift))
    rounding = 2e-16 * (rounding + law.unit)
    pull_pos, pull_neg = problem.alpha[0] * weight[0], problem.alpha[1] * weight[1]
    if law.saturates and abs(pull_pos - pull_neg) <= 4e-16 * pull_pos:
        # where nearly every sample is below its margin, balanced forces saturate and only the other samples fix b
        middle = 0.5 * (w[0] * weight[0] - w[1] * weight[1]) * x + 0.5 * (problem.kappa[1] - problem.kappa[0])
        _, slope, size = bias_gap(problem, kappa_shift, q, x, r, middle)
        if slope * step < 1e-7 * size and 2.0 * pull_pos - size < 1e-7 * size:
            return saturated_bias(problem, q, x, r, middle) if law.kinked else middle
    # where one class pulls alone many steps are needed, which is too slow with quadratures
    for n in range(50 if law.widest < math.inf else 400):
        gap, slope, size = bias_gap(problem, kappa_shift, q, x, r, b)
        if abs(gap) <= 4e-16 * size:
            return b
        if gap > 0.0:
            hi = b
        else:
            lo = b
        new = b - gap / slope if slope > 0.0 else math.nan
        if n >= 30 and abs(gap) > 0.5 * size:  # one class pulls alone: Newton's steps are too short
            new = b + log_step(problem, kappa_shift, q, x, r, b)
        if abs(new - b) <= max(SMALL * s, 2e-16 * abs(b) + rounding):
            return new
        if not (lo < new < hi and abs(new - b) <= 4.0 * step):
            if hi == math.inf:
                new = b + step
            elif lo == -math.inf:
                new = b - step
            else:
                new = 0.5 * (lo + hi)
            step *= 2.0
        if hi - lo <= 5e-16 * (abs(b) + s) + rounding:
            return new
        b = new
    return b if abs(gap) <= 1e-10 * size else math.nan


@jit
def log_deficit(t1, t2):
    """Return log ∫ H(t) dt from t1 to t2, without underflow: the distance of E[f] of a hinge from saturation."""
    end = min(t2, t1 + 40.0 / max(t1, 1.0))  # H falls like exp(-t²/2): the rest is below rounding
    top, total = log_sf(t1), 0.0
    width = (end - t1) / 4
    for panel in range(4):
        for k in range(GL_NODES.size):
            total += width * GL_WEIGHTS[k] * math.exp(log_sf(t1 + width * (panel + GL_NODES[k])) - top)
    return top + math.log(total)


@jit
def saturated_bias(problem, q, x, r, b):
    """Return the bias of a hinge when α₊c₊ = α₋c₋ and nearly every sample lies below its margin.

    Then α₊E₊[f] = α₋E₋[f] holds to rounding over a whole interval of b. The few samples above their margins fix b, so
    this compares the logarithms of E[c - f].
    """
    w = problem.width
    s = (math.sqrt(w[0] * q), math.sqrt(w[1] * q))
    band = (problem.weight[0] * w[0] * x / s[0], problem.weight[1] * w[1] * x / s[1])
    # E[c - f] is √(wq)/(wx) times the integral of log_deficit
    offset = math.log(problem.alpha[1] / problem.alpha[0]) + 0.5 * math.log(w[0] / w[1])
    lo, hi = -math.inf, math.inf
    for _ in range(200):
        t_pos, t_neg = (problem.kappa[0] - 0.5 * r + b) / s[0], (problem.kappa[1] - 0.5 * r - b) / s[1]
        gap = offset + log_deficit(t_neg - band[1], t_neg) - log_deficit(t_pos - band[0], t_pos)
        if gap > 0.0:
            hi = b
        else:
            lo = b
        new = b - gap / ((abs(t_pos - band[0]) + 0.5) / s[0] + (abs(t_neg - band[1]) + 0.5) / s[1])
        if abs(new - b) <= 1e-15 * (abs(b) + min(s[0], s[1])):
            return new
        b = new if lo < new < hi else 0.5 * (lo + hi)
    return b


# ---- the data side


@jit
def data_side(law, problem, kappa_shift, at, hats):
    """Rows of hats (6, 4), at q, x, r, b: (x̂, q̂, r̂, bias gap), then their derivatives in q, x, r, b and κ.

    The scores of a class of width w have w·q and w·x, and its forces count w times in x̂ and q̂.
    """
    q, x, r, b = at
    for row in range(6):
        for j in range(4):
            hats[row, j] = 0.0
    for k in range(2):
        y = 1.0 - 2.0 * k
        a = problem.alpha[k]
        kappa = problem.kappa[k] + kappa_shift
        w = problem.width[k]
        e = expectations_at(law.expectations, (kappa, problem.weight[k], w * x, 0.5 * r - y * b, w * q))
        for row in range(6):
            # value, ∂q, ∂x, ∂r = ∂μ/2, ∂b = -y ∂μ, ∂κ = -∂μ (the expectations depend on κ - μ)
            if row < 3:
                j, scale = (0, a) if row == 0 else ((6, w * a) if row == 1 else (9, w * a))
            else:
                j, scale = 3, (0.5 * a if row == 3 else (-y * a if row == 4 else -a))
            hats[row, 0] += w * scale * e[j + 2]
            hats[row, 1] += w * scale * e[j + 1]
            hats[row, 2] += 0.5 * scale * e[j]
            hats[row, 3] += y * scale * e[j]


# ---- the weight side: sums over the spectrum


class Sums(NamedTuple):
    """Σ g λᵏ for k = 0, 1, 2, and Σ s λᵏ for k = 0, 1."""

    g0: float
    g1: float
    g2: float
    s0: float
    s1: float


@jit
def sums(spectrum):
    """Return the sums over a spectrum."""
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
def weight_side(mode, spectrum, shift, zeta, hats, value, jac):
    """Write (norm, q, x, r) to value (4,), and derivatives in (ζ, x̂, q̂, r̂) to jac (4, 4); A = ζ + x̂(λ - shift)."""
    x_hat, q_hat, r_hat = hats
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
    """Return the norm and its derivative in ζ, as in the first row of ``weight_side``, for the root search."""
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
    """Return ζ with ‖J‖²/L = norm: the norm falls monotonically in ζ, and its inverse square root is nearly linear.

    Weight in directions that neither vary nor separate costs nothing, so ζ = 0 if the others fall short of the norm.
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
