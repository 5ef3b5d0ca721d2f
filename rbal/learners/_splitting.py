r"""A splitting (ADMM) with the margins as the split variable: a quick guess of which samples lie on the margin.

Its weight step is a least-squares problem on a sphere, :math:`(G + \mu) a = h` with the centred Gram matrix G and the
norm of a prescribed. The shift :math:`\mu` settles down with the rest. So it is found by Newton's method, with a
factorisation in each step, only now and then, and corrected to first order in between. Most is in single precision: a
guess needs no more digits, and most of the time goes into reading the samples.
"""

import numpy as np
from scipy.linalg import lapack

from ._faces import dot, free_part, jit, length, scale

BLOCK = 10  # steps between two looks at which samples lie on the margin
BLOCKS = 30
BLOCKS_CORNER = 5  # where the multiplier is negative the minimum is a corner, and only the descent finds one
SETTLED = (
    0.1  # samples that come to their margins or leave them in a block, for each weight: a step of the descent each
)
NEWTON = 40  # steps at most
LEAST = 1e-6  # of the mean eigenvalue is added to a Gram matrix that has none to spare
CLOSE = 1e-4  # relative error of the norm that needs no correction
ROUGH = 0.03  # that which a correction to first order makes good
WELL = 1e4  # times the least shift: above it the problem is convex for certain, and single precision will do
FALL = 4.0  # factor that the shift falls by at most in a block: after the first ones h is far from settled
LARGE = 200  # weights from which on factorisations take most of the time
POWERS, INVERSES, SHIFTS = 16, 8, 400  # dimension of a space in which shifts are tried, and their number
f32 = np.float32
RELAXED = f32(1.6)  # over-relaxation
LABEL, MARGIN, LOSS = range(
    3
)  # rows of what is known of the samples, (3, n): the last is how far the loss moves a margin
# Rows of what changes, (3, n): split margins; their dual variables; and what the weights are to fit
SPLIT, DUAL, TARGET = range(3)
PULL, WEIGHTS, CHANGE = range(3)  # rows of vectors (3, D): right side h of the weight step, its solution a, and -da/dμ
# norm of the weights, column that no sample changes (-1: none), mean score that weights are to fit, bias, samples that
# are short of their margins, and samples in all
RADIUS, SLACK, MIDDLE, BIAS, SHORT, COUNT = range(6)


def split(samples, radius, J, b):
    """Return approximate weights (D,) and bias, the samples on their margins there, and if it is large and convex.

    It starts at J (D,) and b.
    """
    state = Splitting(samples, radius, J, b)
    on = np.zeros(len(samples.y), bool)
    for block in range(BLOCKS):
        before = on
        state.factorise()
        state.run(BLOCK)
        on = (state.table[SPLIT] == state.known[MARGIN])[: len(on)]
        if not state.numbers[SHORT]:
            break
        # What is left costs the descent one step a sample. After one block it may not have begun to show.
        if np.sum(on != before) <= SETTLED * len(J) and (block > 0 or not state.convex):
            break
        if block + 1 >= BLOCKS_CORNER and state.mu < 0.0:
            break
    J, b = state.weights()
    return J, b, np.flatnonzero(on), state.convex


class Splitting:
    """The state of a splitting, for weights of norm ``radius``; it starts at weights J (D,) and bias b.

    Samples come in fours; what is missing of the last four is zero, and neither pulls nor counts.
    """

    def __init__(self, samples, radius, J, b):
        X, y, pulls, kappa = samples
        self.mean, self.mu, c = X.mean(axis=0), None, y * pulls
        n, rows = len(X), 4 * -(-len(X) // 4)
        self.Z, self.known, self.table = (np.zeros(shape, f32) for shape in ((rows, len(J)), (3, rows), (3, rows)))
        np.subtract(X, self.mean, out=self.Z[:n], casting="same_kind")
        self.gram, self.upper = self.Z.T @ self.Z, None
        # Large problems count as convex as long as the shift, which becomes the multiplier, stays well above zero.
        self.convex = len(J) >= LARGE
        spread = np.diag(self.gram).astype(float)
        self.least = LEAST * max(spread.mean(), 1e-300)
        slack = int(np.argmin(spread)) if spread.min() <= 1e-12 * spread.max() else -1
        self.known[:, :n] = y, kappa, c / c.mean()
        self.table[SPLIT, :n] = np.maximum(y * (X @ J - b), kappa)
        target = self.known[LABEL] * self.table[SPLIT]
        self.vectors, self.factor = np.zeros((3, len(J)), f32), None
        self.vectors[PULL] = target @ self.Z
        self.numbers = np.array([radius, slack, target.sum(dtype=float) / n, 0.0, 1.0, n])

    def weights(self):
        """Return weights (D,) and bias."""
        J = self.vectors[WEIGHTS].astype(float)
        J *= self.numbers[RADIUS] / length(J)
        return J, float(self.mean @ J + self.numbers[BIAS])

    def run(self, steps):
        """Make steps of ADMM."""
        splitting(self.Z, self.known, self.table, self.vectors, self.factor, self.numbers, steps)

    def factorise(self, close=CLOSE, rough=ROUGH):
        """Factorise G + μ for the shift μ at which the solution of the weight step has the right norm.

        The norm falls in μ, and its inverse is nearly linear (a secular equation). It may fall short even where G + μ
        is nearly singular: then the rest goes along a column that no sample changes, or else all weights are scaled.

        The norm is right up to ``close``, and up to ``rough`` as long as the problem looks convex: there is one minimum
        then, and the descent finds it from any guess.
        """
        h, radius = self.vectors[PULL].astype(float), self.numbers[RADIUS]
        low = floor = self.least if self.numbers[SLACK] >= 0 else -np.inf
        if self.convex and self.mu is not None:
            low = floor = max(floor, self.mu / FALL)
        high = max(length(h) / radius, 2.0 * self.least)
        mu = (self.guess(high, 0.0) or high) if self.mu is None else max(self.mu, low)
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
                new = self.guess(high, new)
            low, high = (mu, high) if norm > radius else (low, mu)
            if new <= floor or not low < new < high:
                new = floor if low == floor > -np.inf else 0.5 * (max(low, new) + high)
            if abs(new - mu) <= 1e-6 * abs(mu):
                break
            mu = new
        self.factor = np.asarray(self.upper.T, f32)
        self.convex &= self.mu > WELL * self.least

    def cholesky(self, mu, kind):
        """Write the upper triangle whose square is G + μ, of this type or a better one; False where there is none."""
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

    def guess(self, high, otherwise):
        """Return a shift μ ≤ high from the secular equation in a Krylov space of h, or the other one if it is larger.

        Few vectors of the space, of powers of G or of the inverse that is known for another μ, cost less than one
        factorisation of a large matrix. What is outside of it adds to the norm, so that this shift is too small, if
        anything; so is one of Newton's method.
        """
        h, radius, least = self.vectors[PULL], self.numbers[RADIUS], WELL * self.least
        if not (self.convex and high > least):
            return otherwise
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
        return max(float(np.interp(-radius, -norms, shifts)), otherwise) if norms[0] > radius else otherwise

    def solve(self, v):
        """Return (G + μ)⁻¹ v for the shift that G is factorised with."""
        return (lapack.spotrs if self.upper.dtype == f32 else lapack.dpotrs)(self.upper, v)[0]


@jit
def splitting(Z, known, table, vectors, factor, numbers, steps):
    """Make steps of ADMM in place: weights fit the split margins, which then lower the loss.

    Four samples at a time: the pull is then read and written once for four.
    """
    h, a, targets = vectors[PULL], vectors[WEIGHTS], table[TARGET]
    for _ in range(steps):
        fit_weights(vectors, factor, numbers)
        bias, short, total = f32(-numbers[MIDDLE]), 0, 0.0
        scale(h, f32(0.0))
        for i in range(0, Z.shape[0], 4):
            for k in range(i, i + 4):
                row, score = Z[k], f32(0.0)
                for j in range(row.shape[0]):
                    score += row[j] * a[j]
                margin = known[LABEL, k] * (score - bias)
                moved = RELAXED * margin + (f32(1.0) - RELAXED) * table[SPLIT, k] + table[DUAL, k]
                new = max(moved, min(moved + known[LOSS, k], known[MARGIN, k]))
                table[SPLIT, k], table[DUAL, k] = new, moved - new
                short += margin < known[MARGIN, k]
                targets[k] = known[LABEL, k] * (new - table[DUAL, k])
                total += targets[k]
            one, two, three, four = Z[i], Z[i + 1], Z[i + 2], Z[i + 3]
            s, t, u, v = targets[i], targets[i + 1], targets[i + 2], targets[i + 3]
            for j in range(h.shape[0]):
                h[j] += (s * one[j] + t * two[j]) + (u * three[j] + v * four[j])
        numbers[BIAS], numbers[SHORT], numbers[MIDDLE] = -numbers[MIDDLE], short, total / numbers[COUNT]


@jit
def fit_weights(vectors, factor, numbers):
    """Make the weight step with the factor that there is, and correct the shift μ to first order."""
    a, change, radius = vectors[WEIGHTS], vectors[CHANGE], numbers[RADIUS]
    solve(factor, vectors[PULL], a)
    norm = np.sqrt(dot(a, a))
    if numbers[SLACK] >= 0 and norm <= radius:
        # a fused product may round the difference below zero
        a[int(numbers[SLACK])] = np.sqrt(max(radius * radius - norm * norm, 0.0))
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
