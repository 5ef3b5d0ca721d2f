"""Solve for the bias, which balances the forces of the two classes, compiled."""

import math

from .._support.gauss import GL_NODES, GL_WEIGHTS, jit, log_sf
from ..losses.internal import NARROW, expectations_at, mean_force_at
from ._problem import SMALL


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
    up = mean_force(law, kappa[0], c[0], w[0] * x, 0.5 * r - b, w[0] * q)
    return up, mean_force(law, kappa[1], c[1], w[1] * x, 0.5 * r + b, w[1] * q)


@jit
def bias_gap(problem, kappa_shift, q, x, r, b):
    """Return α₊E₊[f] - α₋E₋[f], its slope in b (never negative), and the size of the two forces."""
    up, down = forces(problem, kappa_shift, q, x, r, b)
    f_up, f_down = problem.alpha[0] * up[0], problem.alpha[1] * down[0]
    return f_up - f_down, -problem.alpha[0] * up[1] - problem.alpha[1] * down[1], abs(f_up) + abs(f_down)


@jit
def log_step(problem, kappa_shift, q, x, r, b):
    """Return Newton's step for log α₊E₊[f] = log α₋E₋[f], which is smoother where forces fall like a Gaussian."""
    up, down = forces(problem, kappa_shift, q, x, r, b)
    if not (up[0] > 0.0 and down[0] > 0.0):
        return math.nan
    gap = math.log(problem.alpha[0] / problem.alpha[1]) + math.log(up[0]) - math.log(down[0])
    return gap / (up[1] / up[0] + down[1] / down[0])


@jit
def solve_bias(problem, kappa_shift, q, x, r, guess):
    """Return the bias with α₊E₊[f] = α₋E₋[f], whose gap rises monotonically in b; NaN if it is not found."""
    law, weight, w = problem.law, problem.weight, problem.width
    b, lo, hi, s = guess, -math.inf, math.inf, math.sqrt(min(w[0], w[1]) * q)
    step = max(s, NARROW * math.sqrt(x)) if law.easier_below else s  # the scale on which the force changes
    # b is added to the margin and to r, so a step below their last digit changes nothing
    grain = abs(r) + min(abs(problem.kappa[0] + kappa_shift), abs(problem.kappa[1] + kappa_shift))
    grain = 2e-16 * (grain + law.unit)
    up, down = problem.alpha[0] * weight[0], problem.alpha[1] * weight[1]
    if law.saturates and abs(up - down) <= 4e-16 * up:
        # balanced forces that saturate (nearly every sample below its margin) fix b only by the few others
        middle = 0.5 * (w[0] * weight[0] - w[1] * weight[1]) * x + 0.5 * (problem.kappa[1] - problem.kappa[0])
        _, slope, size = bias_gap(problem, kappa_shift, q, x, r, middle)
        if slope * step < 1e-7 * size and 2.0 * up - size < 1e-7 * size:
            return saturated_bias(problem, q, x, r, middle) if law.kinked else middle
    # many steps are needed where one class pulls alone; with slow quadratures such a path is given up
    for n in range(50 if law.widest < math.inf else 400):
        gap, slope, size = bias_gap(problem, kappa_shift, q, x, r, b)
        if abs(gap) <= 4e-16 * size:
            return b
        if gap > 0.0:
            hi = b
        else:
            lo = b
        new = b - gap / slope if slope > 0.0 else math.nan
        if n >= 30 and abs(gap) > 0.5 * size:  # one class pulls alone, and Newton's steps are too short
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
    """Return log ∫ H(t) dt from t1 to t2, without underflow: how far E[f] of a hinge is from saturation."""
    end = min(t2, t1 + 40.0 / max(t1, 1.0))  # H falls like exp(-t²/2): nothing is left beyond
    top, total = log_sf(t1), 0.0
    width = (end - t1) / 4
    for panel in range(4):
        for k in range(GL_NODES.size):
            total += width * GL_WEIGHTS[k] * math.exp(log_sf(t1 + width * (panel + GL_NODES[k])) - top)
    return top + math.log(total)


@jit
def saturated_bias(problem, q, x, r, b):
    """Return the bias of a hinge when α₊c₊ = α₋c₋ and nearly every sample lies below its margin.

    Then α₊E₊[f] = α₋E₋[f] holds to rounding over a whole interval of b. The few samples above decide, so the
    logarithms of E[c - f] are compared.
    """
    w = problem.width
    s = (math.sqrt(w[0] * q), math.sqrt(w[1] * q))
    band = (problem.weight[0] * w[0] * x / s[0], problem.weight[1] * w[1] * x / s[1])
    # E[c - f] is √(wq)/(wx) times the integral of log_deficit
    offset = math.log(problem.alpha[1] / problem.alpha[0]) + 0.5 * math.log(w[0] / w[1])
    lo, hi = -math.inf, math.inf
    for _ in range(200):
        up, down = (problem.kappa[0] - 0.5 * r + b) / s[0], (problem.kappa[1] - 0.5 * r - b) / s[1]
        gap = offset + log_deficit(down - band[1], down) - log_deficit(up - band[0], up)
        if gap > 0.0:
            hi = b
        else:
            lo = b
        new = b - gap / ((abs(up - band[0]) + 0.5) / s[0] + (abs(down - band[1]) + 0.5) / s[1])
        if abs(new - b) <= 1e-15 * (abs(b) + min(s[0], s[1])):
            return new
        b = new if lo < new < hi else 0.5 * (lo + hi)
    return b
