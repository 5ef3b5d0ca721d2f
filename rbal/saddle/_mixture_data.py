"""The data side of a mixture, compiled: one proximal step a cluster, one bias, and Newton's step for the whole.

The unknowns of a mixture stand in one array y: log q and log x of each shape of covariance, m of each cluster, then the
bias b and ζ = k̂ + λ_min, which follow from the others. A cluster c has a shape and a width w_c, so that q_c = w_c q and
x_c = w_c x. Hats stand in the same order: q̂ and x̂ of each shape, m̂ of each cluster.
"""

import math
from typing import NamedTuple

import numpy as np

from .._support.gauss import cdf, jit
from ..losses.internal import Law, expectations_at, force_at, mean_loss_at
from ._equations import EDGE, log_deficit, mean_force

LAST_STEP = 1e-7  # of the bias, over the spread of scores: the error after it is of the order of its square
SATURATED = 1e-7  # share of forces that are not c, below which only these fix the bias of balanced classes


class Clusters(NamedTuple):
    """One saddle point of a mixture to solve. Arrays are (K,), one entry a cluster."""

    mode: int
    law: Law
    alpha: np.ndarray
    label: np.ndarray
    kappa: np.ndarray
    weight: np.ndarray
    shape: np.ndarray  # index of the shape of its covariance
    width: np.ndarray  # its covariance in units of this shape
    n_shapes: int
    norm: float  # ‖J‖²/L on the sphere
    ridge: float  # k̂ of an SVM
    fit_bias: bool


class Scores(NamedTuple):
    """Scores of the clusters: margin, x, mean and variance of u0 without bias, all (K,)."""

    kappa: np.ndarray
    x: np.ndarray
    m: np.ndarray
    q: np.ndarray


@jit
def scores_at(problem, y):
    """Return the scores at a state y; on the edge a shift of all margins takes the place of the first log x."""
    K, G = problem.alpha.size, problem.n_shapes
    kappa, x, m, q = np.empty(K), np.empty(K), np.empty(K), np.empty(K)
    shift = y[G] if problem.mode == EDGE else 0.0
    for c in range(K):
        h = problem.shape[c]
        log_x = 0.0 if problem.mode == EDGE and h == 0 else y[G + h]
        kappa[c] = problem.kappa[c] + shift
        x[c] = problem.width[c] * math.exp(log_x)
        q[c] = problem.width[c] * math.exp(y[h])
        m[c] = y[2 * G + c]
    return Scores(kappa, x, m, q)


@jit
def forces_at(problem, scores, b):
    """Return Σ α y E[f], its slope in b (never negative), and Σ α |E[f]|."""
    gap = slope = size = 0.0
    for c in range(problem.alpha.size):
        a, y = problem.alpha[c], problem.label[c]
        mu = y * (scores.m[c] - b)
        f, df = mean_force(problem.law, scores.kappa[c], problem.weight[c], scores.x[c], mu, scores.q[c])
        if problem.mode == EDGE:  # only x f stays finite there
            f, df = f / scores.x[c], df / scores.x[c]
        gap += a * y * f
        slope -= a * df
        size += a * abs(f)
    return gap, slope, size


@jit
def solve_bias(problem, scores, guess):
    """Return the bias at which the forces of all clusters cancel, or NaN; their sum rises monotonically in b."""
    s = 0.0
    rounding = math.inf
    for c in range(problem.alpha.size):
        s = max(s, math.sqrt(scores.q[c]))
        rounding = min(rounding, abs(scores.kappa[c]))
    rounding = 2e-16 * (rounding + np.abs(scores.m).max() + problem.law.unit)
    if problem.law.easier_below:
        s = max(s, 1e-3 * math.sqrt(scores.x.max()))
    if problem.law.kinked and saturated(problem, scores, guess):
        return saturated_bias(problem, scores, guess, s)
    b, lo, hi, step, gap, size = guess, -math.inf, math.inf, s, math.inf, 0.0
    for n in range(60 if problem.law.widest < math.inf else 400):
        gap, slope, size = forces_at(problem, scores, b)
        if abs(gap) <= 4e-16 * size:
            return b
        if gap > 0.0:
            hi = b
        else:
            lo = b
        new = b - gap / slope if slope > 0.0 else math.nan
        if abs(new - b) <= max(LAST_STEP * s, 2e-16 * abs(b) + rounding):
            return new
        # where one class pulls alone Newton's steps are too short: halve the bracket at every other step
        if not (lo < new < hi and abs(new - b) <= 4.0 * step) or (n > 20 and n % 2):
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
def saturated(problem, scores, b):
    """Whether balanced classes pull with nearly all their force, so that b is lost in rounding."""
    pos = neg = 0.0
    for c in range(problem.alpha.size):
        if problem.label[c] > 0.0:
            pos += problem.alpha[c] * problem.weight[c]
        else:
            neg += problem.alpha[c] * problem.weight[c]
    if abs(pos - neg) > 1e-14 * pos:
        return False
    gap, _, size = forces_at(problem, scores, b)
    return abs(gap) < SATURATED * size and pos + neg - size < SATURATED * size


@jit
def log_unsaturated(problem, scores, b):
    """Return log Σ α E[c - f] of the negative class minus the same of the positive class, which rises with b."""
    top_pos = top_neg = -math.inf
    pos = neg = 0.0
    for c in range(problem.alpha.size):
        s, y = math.sqrt(scores.q[c]), problem.label[c]
        t = (scores.kappa[c] - y * (scores.m[c] - b)) / s
        log_part = log_deficit(t - problem.weight[c] * scores.x[c] / s, t)
        log_part += math.log(problem.alpha[c] * s / scores.x[c])
        if y > 0.0:
            new = max(top_pos, log_part)
            pos, top_pos = pos * math.exp(top_pos - new) + math.exp(log_part - new), new
        else:
            new = max(top_neg, log_part)
            neg, top_neg = neg * math.exp(top_neg - new) + math.exp(log_part - new), new
    return top_neg + math.log(neg) - top_pos - math.log(pos)


@jit
def saturated_bias(problem, scores, guess, s):
    """Return the bias of a hinge when α₊c₊ = α₋c₋ and nearly every sample lies below its margin: the others fix it."""
    lo = hi = guess
    step = s
    for _ in range(200):
        if log_unsaturated(problem, scores, lo) <= 0.0:
            break
        lo -= step
        step *= 2.0
    step = s
    for _ in range(200):
        if log_unsaturated(problem, scores, hi) >= 0.0:
            break
        hi += step
        step *= 2.0
    for _ in range(200):
        b = 0.5 * (lo + hi)
        if not lo < b < hi or hi - lo <= 1e-15 * (abs(b) + s):
            break
        if log_unsaturated(problem, scores, b) > 0.0:
            hi = b
        else:
            lo = b
    return 0.5 * (lo + hi)


@jit
def expectations_of(problem, scores, c, b):
    """Return E[f], E[f²], E[-f'] of cluster c, then their derivatives in μ, q and x."""
    x = scores.x[c]
    mu = problem.label[c] * (scores.m[c] - b)
    e = expectations_at(problem.law.expectations, (scores.kappa[c], problem.weight[c], x, mu, scores.q[c]))
    if problem.mode != EDGE:
        return e
    a, a2 = 1.0 / x, 1.0 / (x * x)
    return (
        e[0] * a, e[1] * a2, e[2] * a,
        e[3] * a, e[4] * a2, e[5] * a,
        e[6] * a, e[7] * a2, e[8] * a,
        -e[0] * a2, -2.0 * e[1] * a2 * a, -e[2] * a2,
    )  # fmt: skip


@jit
def data_side(problem, y, hats, dhats):
    """Solve for the bias, which goes to y; write the hats (N,) and derivatives in the unknowns to dhats (N + 1, N).

    The bias follows the unknowns, by the implicit function theorem; its derivatives are the last row.
    """
    K, G = problem.alpha.size, problem.n_shapes
    N, scores = 2 * G + K, scores_at(problem, y)
    y[N] = solve_bias(problem, scores, y[N]) if problem.fit_bias else 0.0
    hats[:] = 0.0
    dhats[:] = 0.0
    by_bias, slope = np.zeros(N), 0.0
    for c in range(K):
        e = expectations_of(problem, scores, c, y[N])
        a, label, h, w = problem.alpha[c], problem.label[c], problem.shape[c], problem.width[c]
        hats[h] += a * w * e[1]
        hats[G + h] += a * w * e[2]
        hats[2 * G + c] = a * label * e[0]
        slope -= a * e[3]
        # ∂μ = y ∂m = -y ∂b, and the expectations depend on κ - μ
        for k in range(3):
            column, j, scale = 2 * G + c, 3, label
            if k == 1:
                column, j, scale = h, 6, scores.q[c]
            elif k == 2:
                column, j, scale = G + h, 9, scores.x[c]
            if problem.mode == EDGE and column == G:
                continue
            dhats[h, column] += a * w * scale * e[j + 1]
            dhats[G + h, column] += a * w * scale * e[j + 2]
            dhats[2 * G + c, column] += a * label * scale * e[j]
        if problem.mode == EDGE:
            dhats[h, G] -= a * w * e[4]
            dhats[G + h, G] -= a * w * e[5]
            dhats[2 * G + c, G] -= a * label * e[3]
        by_bias[h] -= a * w * label * e[4]
        by_bias[G + h] -= a * w * label * e[5]
        by_bias[2 * G + c] = -a * e[3]
    if problem.fit_bias and slope > 0.0:
        for c in range(K):
            for j in range(N):
                dhats[N, j] -= dhats[2 * G + c, j] / slope
        for i in range(N):
            for j in range(N):
                dhats[i, j] += by_bias[i] * dhats[N, j]


@jit
def newton_step(problem, y, work, res, step):
    """Write the residuals (N,) and Newton's step (N + 1,), the last of the bias; False if they are undefined.

    work has value (N + 1,): q, x, m and the norm; jac (N + 1, N + 1): their derivatives in q̂, x̂, m̂ and k̂; dhats
    (N + 1, N): those of the hats and of the bias; and correction (N, N), added to the derivatives of the residuals.
    """
    value, jac, dhats, matrix = work.value, work.jac, work.dhats, work.matrix
    K, G = problem.alpha.size, problem.n_shapes
    N = 2 * G + K
    for i in range(N):
        if not math.isfinite(value[i]) or (i < 2 * G and not value[i] > 0.0):
            return False
    on_sphere, widest = jac[N, N] != 0.0, 0.0  # there the multiplier follows the unknowns
    for i in range(N):
        if i < 2 * G:
            old = math.exp(y[i]) if i < G or problem.mode != EDGE or i > G else 1.0
            res[i], scale = math.log(value[i] / old), 1.0 / value[i]
        else:
            spread = math.sqrt(problem.width[i - 2 * G] * math.exp(y[problem.shape[i - 2 * G]]))
            scale, widest = 1.0 / spread, max(widest, spread)
            res[i] = (value[i] - y[i]) * scale
        for j in range(N):
            matrix[i, j] = work.correction[i, j]
        for k in range(N):
            part = jac[i, k] - jac[i, N] * jac[N, k] / jac[N, N] if on_sphere else jac[i, k]
            if part != 0.0:
                for j in range(N):
                    matrix[i, j] += part * scale * dhats[k, j]
        if not (problem.mode == EDGE and i == G):
            matrix[i, i] -= scale if i >= 2 * G else 1.0
        if i >= 2 * G:
            matrix[i, problem.shape[i - 2 * G]] -= 0.5 * res[i]
    for i in range(N):
        step[i] = -res[i]
    if not eliminate(matrix, step):
        for i in range(N):
            step[i] = res[i]
    step[N] = 0.0
    for j in range(N):
        step[N] += dhats[N, j] * step[j]
    if not abs(step[N]) <= 2.0 * widest:  # too far for a derivative
        step[N] = 0.0
    return True


@jit
def eliminate(matrix, vector):
    """Solve matrix (N, N) · z = vector[:N] in place by Gauss's elimination with pivots; False if it is singular."""
    N = matrix.shape[0]
    for j in range(N):
        best = j
        for i in range(j + 1, N):
            if abs(matrix[i, j]) > abs(matrix[best, j]):
                best = i
        if not abs(matrix[best, j]) > 0.0 or not math.isfinite(matrix[best, j]):
            return False
        if best != j:
            for k in range(j, N):
                matrix[j, k], matrix[best, k] = matrix[best, k], matrix[j, k]
            vector[j], vector[best] = vector[best], vector[j]
        for i in range(j + 1, N):
            ratio = matrix[i, j] / matrix[j, j]
            for k in range(j + 1, N):
                matrix[i, k] -= ratio * matrix[j, k]
            vector[i] -= ratio * vector[j]
    for j in range(N - 1, -1, -1):
        for k in range(j + 1, N):
            vector[j] -= matrix[j, k] * vector[k]
        vector[j] /= matrix[j, j]
        if not math.isfinite(vector[j]):
            return False
    return True


@jit
def pulls(problem, hats):
    """Write the hats (N,) if every sample pulls with its force at score 0, and both classes pull equally."""
    K, G = problem.alpha.size, problem.n_shapes
    hats[:] = 0.0
    pos = neg = 0.0
    for c in range(K):
        f = force_at(problem.law.force, (problem.kappa[c], problem.weight[c], 0.0))
        hats[problem.shape[c]] += problem.alpha[c] * problem.width[c] * f * f
        hats[2 * G + c] = problem.alpha[c] * problem.label[c] * f
        if problem.label[c] > 0.0:
            pos += problem.alpha[c] * f
        else:
            neg += problem.alpha[c] * f
    for c in range(K):
        own = pos if problem.label[c] > 0.0 else neg
        hats[2 * G + c] *= 0.5 * (pos + neg) / own if own > 0.0 else 1.0


@jit
def report_at(problem, y, each):
    """Write m, q, x, x̂, q̂ and m̂ of each cluster to each (6, K); return the distance r of the class means, and r̂."""
    N, scores = y.size - 2, scores_at(problem, y)
    r_hat, pos, neg, size_pos, size_neg = 0.0, 0.0, 0.0, 0.0, 0.0
    for c in range(problem.alpha.size):
        e = expectations_of(problem, scores, c, y[N])
        a, label, m = problem.alpha[c], problem.label[c], scores.m[c]
        each[0, c], each[1, c], each[2, c] = m, scores.q[c], scores.x[c]
        each[3, c], each[4, c], each[5, c] = a * e[2], a * e[1], a * label * e[0]
        r_hat += 0.5 * a * e[0]
        if label > 0.0:
            pos, size_pos = pos + a * m, size_pos + a
        else:
            neg, size_neg = neg + a * m, size_neg + a
    return pos / size_pos - neg / size_neg, r_hat


@jit
def losses_at(problem, y):
    """Return the training loss and error, weighted means over the samples of all clusters."""
    N, scores = y.size - 2, scores_at(problem, y)
    loss = error = total = 0.0
    for c in range(problem.alpha.size):
        a, w, x = problem.alpha[c], problem.weight[c], scores.x[c]
        mu = problem.label[c] * (scores.m[c] - y[N])
        loss += a * mean_loss_at(problem.law.mean_loss, (scores.kappa[c], w, x, mu, scores.q[c]))
        # u < 0 exactly where u0 < -x f(u = 0)
        edge = -x * force_at(problem.law.force, (scores.kappa[c], w, 0.0))
        error += a * w * cdf((edge - mu) / math.sqrt(scores.q[c]))
        total += a * w
    return loss / total, error / total
