r"""A splitting (ADMM) with the margins as the split variable: a quick guess of which samples lie on the margin.

Its weight step is a least-squares problem on a sphere, :math:`(G + \mu) a = h` with the centred Gram matrix G and the
norm of a prescribed. The shift :math:`\mu` converges with the other variables. So Newton's method, with a factorisation
in each step, finds it once in a block of steps, and in between it is corrected to first order. Most is in single
precision: a guess needs no more digits, and most of the time goes into reading the samples.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from ._faces import dot, free_part, jit, length, scale

BLOCK = 10  # steps between two looks at which samples lie on the margin
BLOCKS = 30
BLOCKS_CORNER = 5  # where the multiplier is negative the minimum is a corner, and only the descent finds one
# Samples per weight that come to their margins or leave them in a block, below which the splitting ends: the descent
# needs one step for each.
SETTLED = 0.1
NEWTON = 40  # steps at most
LEAST = 1e-6  # relative to the mean eigenvalue: least shift of a Gram matrix that has vanishing eigenvalues
CLOSE = 1e-4  # relative error of the norm that needs no correction
ROUGH = 0.03  # relative error of the norm that a correction to first order makes good
WELL = 1e4  # times the least shift: above it the problem is convex for certain, and single precision suffices
FALL = 4.0  # largest factor by which the shift falls in a block: after the first ones h is far from settled
LARGE = 200  # weights from which on factorisations take most of the time
POWERS, INVERSES, SHIFTS = 16, 8, 400  # dimension of a space in which shifts are tried, and their number
f32 = np.float32
RELAXED = f32(1.6)  # over-relaxation


class Rows(NamedTuple):
    """Training samples in single precision; their number is a multiple of four, filled up with zeros."""

    Z: np.ndarray  # (rows, D) centred features
    y: np.ndarray  # (rows,) labels
    kappa: np.ndarray  # (rows,) margins
    loss: np.ndarray  # (rows,) relative weights: how far the loss moves a margin


class Margins(NamedTuple):
    """Variables (rows,) of the splitting, which change in place."""

    split: np.ndarray  # split margins
    dual: np.ndarray  # their dual variables


class WeightStep(NamedTuple):
    """Vectors (D,) of the weight step (G + μ) a = h, which change in place."""

    h: np.ndarray
    a: np.ndarray  # the weights
    change: np.ndarray  # -da/dμ


# Scalars of the splitting, which change in place, as fields of a numpy record.
SCALARS = np.dtype(
    [
        ("radius", float),  # norm of the weights
        ("constant", np.int64),  # column of the features that is constant (-1: none)
        ("mean_target", float),
        ("b", float),  # bias of the centred features
        ("short", np.int64),  # samples that are short of their margins
        ("n", np.int64),  # samples
    ]
)


class Guess(NamedTuple):
    """Approximate weights (D,) and bias, and the samples that lie on their margins there."""

    J: np.ndarray
    b: float
    on: np.ndarray
    convex: bool  # whether the problem is large and convex


def split(samples, radius, J, b):
    """Return a Guess for weights of norm ``radius``, from weights J (D,) and bias b."""
    state = Splitting(samples, radius, J, b)
    on = np.zeros(len(samples.y), bool)
    for block in range(BLOCKS):
        before = on
        state.factorise()
        state.run(BLOCK)
        on = (state.margins.split == state.rows.kappa)[: len(on)]
        if not state.scalars["short"]:
            break
        # What is left costs the descent one step a sample. After one block it may not have begun to show.
        if np.sum(on != before) <= SETTLED * len(J) and (block > 0 or not state.convex):
            break
        if block + 1 >= BLOCKS_CORNER and state.mu < 0.0:
            break
    return Guess(*state.weights(), np.flatnonzero(on), state.convex)


class Splitting:
    """The state of a splitting, for weights of norm ``radius``; it starts at weights J (D,) and bias b."""

    def __init__(self, samples, radius, J, b):
        X, y, pulls, kappa = samples
        self.mean, self.mu, c = X.mean(axis=0), None, y * pulls
        n, rows = len(X), 4 * -(-len(X) // 4)
        self.rows = Rows(np.zeros((rows, len(J)), f32), *np.zeros((3, rows), f32))
        Z, labels, kappas, loss = self.rows
        np.subtract(X, self.mean, out=Z[:n], casting="same_kind")
        labels[:n], kappas[:n], loss[:n] = y, kappa, c / c.mean()
        self.gram, self.upper = Z.T @ Z, None
        # Large problems count as convex as long as the shift, which becomes the multiplier, stays well above zero.
        self.convex = len(J) >= LARGE
        spread = np.diag(self.gram).astype(float)
        self.least = LEAST * max(spread.mean(), 1e-300)
        self.margins, self.factor = Margins(*np.zeros((2, rows), f32)), None
        self.step = WeightStep(*np.zeros((3, len(J)), f32))
        self.margins.split[:n] = np.maximum(y * (X @ J - b), kappa)
        target = labels * self.margins.split
        self.step.h[:] = target @ Z
        self.scalars = np.zeros(1, SCALARS)[0]
        self.scalars["radius"], self.scalars["n"], self.scalars["short"] = radius, n, 1
        self.scalars["constant"] = int(np.argmin(spread)) if spread.min() <= 1e-12 * spread.max() else -1
        self.scalars["mean_target"] = target.sum(dtype=float) / n

    def weights(self):
        """Return weights (D,) and bias."""
        J = self.step.a.astype(float)
        J *= self.scalars["radius"] / length(J)
        return J, float(self.mean @ J + self.scalars["b"])

    def run(self, steps):
        """Make steps of ADMM."""
        splitting(self.rows, self.margins, self.step, self.factor, self.scalars, steps)

    def factorise(self, close=CLOSE, rough=ROUGH):
        """Factorise G + μ for the shift μ at which the solution of the weight step has the right norm.

        The norm falls in μ, and its inverse is nearly linear (a secular equation). It may be too small even where G + μ
        is nearly singular: then the rest goes along a constant column, or else all weights are scaled.

        The relative error of the norm is at most ``close``, and at most ``rough`` as long as the problem looks convex:
        there is one minimum then, and the descent finds it from any guess.
        """
        h, radius = self.step.h.astype(float), self.scalars["radius"]
        low = floor = self.least if self.scalars["constant"] >= 0 else -np.inf
        if self.convex and self.mu is not None:
            low = floor = max(floor, self.mu / FALL)
        high = max(length(h) / radius, 2.0 * self.least)
        mu = (self.guess_shift(high, 0.0) or high) if self.mu is None else max(self.mu, low)
        for step in range(NEWTON):
            well = rough > close and self.convex and mu > WELL * self.least
            if not self.cholesky(mu, f32 if well else float):
                low, mu = mu, 0.5 * (mu + high)
                continue
            a = self.solve(h)
            norm = length(a)
            if norm == 0.0 or abs(norm / radius - 1.0) <= (rough if well else close) or (mu == floor and norm < radius):
                break
            new = mu + norm**2 / (a @ self.solve(a)) * (norm / radius - 1.0)
            if well and step == 0:
                new = self.guess_shift(high, new)
            low, high = (mu, high) if norm > radius else (low, mu)
            if new <= floor or not low < new < high:
                new = floor if low == floor > -np.inf else 0.5 * (max(low, new) + high)
            if abs(new - mu) <= 1e-6 * abs(mu):
                break
            mu = new
        self.factor = np.asarray(self.upper.T, f32)
        self.convex &= self.mu > WELL * self.least

    def cholesky(self, mu, kind):
        """Write the upper triangle whose square is G + μ, in this precision or a higher one; False if there is none."""
        if mu == self.mu and self.upper.dtype >= kind:
            return True
        shifted = self.gram.astype(kind)
        shifted.flat[:: len(shifted) + 1] += kind(mu)
        # The matrix is symmetric: transposed, its columns are what LAPACK expects, and nothing is copied.
        potrf = lapack.spotrf if kind is f32 else lapack.dpotrf
        upper, info = potrf(shifted.T, overwrite_a=True, clean=False)
        if info == 0:
            self.upper, self.mu = upper, mu
        return info == 0

    def guess_shift(self, high, fallback):
        """Return a shift μ ≤ high from the secular equation in a Krylov space of h, or ``fallback`` if it is larger.

        Few vectors of the space, from powers of G or of its inverse for another μ, cost less than one factorisation of
        a large matrix. The part of h outside the space adds to the norm, so that this shift is a lower bound; so is one
        of Newton's method.
        """
        h, radius, least = self.step.h, self.scalars["radius"], WELL * self.least
        if not (self.convex and high > least):
            return fallback
        n = POWERS if self.upper is None else INVERSES
        space, image, v = np.zeros((n, len(h)), f32), np.zeros((n, len(h)), f32), h
        for k in range(n):
            v = free_part(v, space[:k])
            space[k] = v / f32(max(length(v), 1e-30))
            image[k] = self.gram @ space[k]
            v = image[k] if self.upper is None else self.solve(space[k]).astype(f32)
        values, vectors = np.linalg.eigh(space @ image.T)
        shifts = np.geomspace(least, high, SHIFTS)
        norms = np.linalg.norm((space @ h) @ vectors / (np.maximum(values, 0.0) + shifts[:, None]), axis=1)
        return max(float(np.interp(-radius, -norms, shifts)), fallback) if norms[0] > radius else fallback

    def solve(self, v):
        """Return (G + μ)⁻¹ v for the shift that G is factorised with."""
        return (lapack.spotrs if self.upper.dtype == f32 else lapack.dpotrs)(self.upper, v)[0]


@jit
def splitting(rows, margins, step, factor, scalars, steps):
    """Make steps of ADMM in place: weights fit the split margins, which then lower the loss.

    Four samples at a time: the pull is then read and written once for four.
    """
    Z, h, a = rows.Z, step.h, step.a
    for _ in range(steps):
        fit_weights(step, factor, scalars)
        b, short, total = f32(-scalars["mean_target"]), 0, 0.0
        scale(h, f32(0.0))
        for i in range(0, Z.shape[0], 4):
            one, two, three, four = Z[i], Z[i + 1], Z[i + 2], Z[i + 3]
            (s, short1), (t, short2) = move_margin(rows, margins, a, b, i), move_margin(rows, margins, a, b, i + 1)
            (u, short3), (v, short4) = move_margin(rows, margins, a, b, i + 2), move_margin(rows, margins, a, b, i + 3)
            short += short1 + short2 + short3 + short4
            total = (((total + s) + t) + u) + v
            for j in range(h.shape[0]):
                h[j] += (s * one[j] + t * two[j]) + (u * three[j] + v * four[j])
        scalars["b"], scalars["short"], scalars["mean_target"] = -scalars["mean_target"], short, total / scalars["n"]


@jit
def move_margin(rows, margins, a, b, k):
    """Lower the loss of a sample by its split margin; return the score to fit next, and whether its margin is short."""
    row, y, score = rows.Z[k], rows.y[k], f32(0.0)
    for j in range(row.shape[0]):
        score += row[j] * a[j]
    margin = y * (score - b)
    relaxed = RELAXED * margin + (f32(1.0) - RELAXED) * margins.split[k] + margins.dual[k]
    new = max(relaxed, min(relaxed + rows.loss[k], rows.kappa[k]))
    dual = relaxed - new
    margins.split[k], margins.dual[k] = new, dual
    return y * (new - dual), margin < rows.kappa[k]


@jit
def fit_weights(step, factor, scalars):
    """Make the weight step with the current factor, and correct the shift μ to first order."""
    a, change, radius = step.a, step.change, scalars["radius"]
    solve(factor, step.h, a)
    norm = np.sqrt(dot(a, a))
    if scalars["constant"] >= 0 and norm <= radius:
        # a fused product may round the difference below zero
        a[scalars["constant"]] = np.sqrt(max(radius * radius - norm * norm, 0.0))
    elif norm > 0.0:
        if abs(norm / radius - 1.0) > CLOSE:
            solve(factor, a, change)
            shift = f32(norm * norm / dot(a, change) * (norm / radius - 1.0))
            for j in range(a.shape[0]):
                a[j] -= shift * change[j]
            norm = np.sqrt(dot(a, a))
        scale(a, f32(radius / norm))


@jit
def solve(factor, right, out):
    """Solve (factor factorᵀ) out = right for a lower triangle (D, D), four rows at a time and the last few one by one.

    A row has to wait for the one before it, and four of them wait once: that takes a quarter of the time of a large
    triangle.
    """
    D, four = out.shape[0], out.shape[0] - out.shape[0] % 4
    for i in range(0, four, 4):
        p, q, r, s = factor[i], factor[i + 1], factor[i + 2], factor[i + 3]
        a, b, c, d = right[i], right[i + 1], right[i + 2], right[i + 3]
        for j in range(i):
            a -= p[j] * out[j]
            b -= q[j] * out[j]
            c -= r[j] * out[j]
            d -= s[j] * out[j]
        a /= p[i]
        b = (b - q[i] * a) / q[i + 1]
        c = (c - r[i] * a - r[i + 1] * b) / r[i + 2]
        d = (d - s[i] * a - s[i + 1] * b - s[i + 2] * c) / s[i + 3]
        out[i], out[i + 1], out[i + 2], out[i + 3] = a, b, c, d
    for i in range(four, D):
        total = right[i]
        for j in range(i):
            total -= factor[i, j] * out[j]
        out[i] = total / factor[i, i]
    for i in range(D - 1, four - 1, -1):
        out[i] /= factor[i, i]
        for j in range(i):
            out[j] -= out[i] * factor[i, j]
    for i in range(four - 4, -1, -4):
        p, q, r, s = factor[i], factor[i + 1], factor[i + 2], factor[i + 3]
        d = out[i + 3] / s[i + 3]
        c = (out[i + 2] - s[i + 2] * d) / r[i + 2]
        b = (out[i + 1] - s[i + 1] * d - r[i + 1] * c) / q[i + 1]
        a = (out[i] - s[i] * d - r[i] * c - q[i] * b) / p[i]
        out[i], out[i + 1], out[i + 2], out[i + 3] = a, b, c, d
        for j in range(i):
            out[j] -= (a * p[j] + b * q[j]) + (c * r[j] + d * s[j])
