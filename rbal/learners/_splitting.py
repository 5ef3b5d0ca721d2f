r"""A splitting (ADMM) with the margins as the split variable: a quick guess of which samples lie on the margin.

Its weight step is a least-squares problem on a sphere, :math:`(G + \mu) a = h` with the centred Gram matrix G and the
norm of a prescribed. The shift :math:`\mu` settles down with the rest. So it is found by Newton's method, with a
factorisation in each step, only now and then, and corrected to first order in between. Most is in single precision: a
guess needs no more digits, and most of the time goes into reading the samples. BLAS does that, so nothing is compiled.
"""

import numpy as np
from scipy.linalg import blas, lapack

from ._faces import free_part, length

BLOCK = 10  # steps between two looks at which samples lie on the margin
BLOCKS = 30
BLOCKS_CORNER = 5  # where the multiplier is negative the minimum is a corner, and only the descent finds one
# samples that come to their margins or leave them in a block, for each weight: a step of the descent each, or less
# where a small problem is convex
SETTLED, SETTLED_CONVEX = 0.1, 0.3
NEWTON = 40  # steps at most
LEAST = 1e-6  # of the mean eigenvalue is added to a Gram matrix that has none to spare
CLOSE = 1e-4  # relative error of the norm that needs no correction
ROUGH = 0.03  # that which a correction to first order makes good
WELL = 1e4  # times the least shift: above it the problem is convex for certain, and single precision will do
FALL = 4.0  # factor that the shift falls by at most in a block: after the first ones h is far from settled
LARGE = 200  # weights from which on factorisations take most of the time
POWERS, INVERSES, SHIFTS = 16, 8, 400  # dimension of a space in which shifts are tried, and their number
PIECE = 2**18  # numbers of samples that are read at a time: a megabyte
f32 = np.float32
RELAXED = f32(1.6)  # over-relaxation


def split(samples, radius, J, b):
    """Return approximate weights (D,) and bias, the samples on their margins there, and if it is convex for certain.

    It starts at J (D,) and b.
    """
    state = Splitting(samples, radius, J, b)
    on = np.zeros(len(samples.y), bool)
    for block in range(BLOCKS):
        before = on
        state.factorise()
        state.run(BLOCK)
        on = state.split == state.kappa
        if not state.short:
            break
        # What is left costs the descent one step a sample. After one block it may not have begun to show.
        few = (SETTLED_CONVEX if state.sure() and len(J) < LARGE else SETTLED) * len(J)
        if np.count_nonzero(on != before) <= few and (block > 0 or not state.convex):
            break
        if block + 1 >= BLOCKS_CORNER and state.mu < 0.0:
            break
    J, b = state.weights()
    return J, b, np.flatnonzero(on), state.sure()


class Splitting:
    """The state of a splitting, for weights of norm ``radius``; it starts at weights J (D,) and bias b."""

    def __init__(self, samples, radius, J, b):
        X, y, pulls, kappa = samples
        n, D = X.shape
        self.mean, self.mu, self.upper, self.radius, c = X.mean(axis=0), None, None, radius, y * pulls
        # Samples from their mean times their labels, and the labels: what the mean score adds to all margins.
        self.Z = np.empty((n, D + 1), f32)
        np.subtract(X, self.mean, out=self.Z[:, :D], casting="same_kind")
        self.Z[:, D] = 1.0
        self.Z *= y.astype(f32)[:, None]
        self.gram = (self.Z.T @ self.Z)[:D, :D].copy()
        # Large problems count as convex as long as the shift, which becomes the multiplier, stays well above zero.
        self.convex = D >= LARGE
        spread = np.diag(self.gram).astype(float)
        self.least = LEAST * max(spread.mean(), 1e-300)
        # the column that no sample changes (-1: none)
        self.slack = int(np.argmin(spread)) if spread.min() <= 1e-12 * spread.max() else -1
        self.kappa, self.loss = kappa.astype(f32), (c / c.mean()).astype(f32)  # how far the loss moves a margin
        self.split = np.maximum(y * (X @ J - b), kappa).astype(f32)
        self.moved = self.split.copy()  # split margins and their dual variables together
        self.pull = self.split @ self.Z  # right side h of the weight step, and n times the mean score to fit
        self.a = np.zeros(D + 1, f32)  # its solution, and the mean score
        self.margins, self.short = np.empty(n, f32), 1  # and samples short of theirs
        # What is read twice in a step is read from a near cache the second time.
        rows = (self.Z, self.kappa, self.loss, self.margins, self.moved, self.split)
        size = max(PIECE // (D + 1), 1)
        self.pieces = [[row[first : first + size] for row in rows] for first in range(0, n, size)]

    def sure(self):
        """Whether the shift is so far above zero that the problem is convex for certain."""
        return self.mu > WELL * self.least

    def weights(self):
        """Return weights (D,) and bias."""
        J = self.a[:-1].astype(float)
        J *= self.radius / length(J)
        return J, float(self.mean @ J - self.a[-1])

    def run(self, steps):
        """Make steps of ADMM: weights fit the split margins, which then lower the loss."""
        for _ in range(steps):
            self.fit_weights()
            pull = 0.0
            for Z, kappa, loss, margins, moved, split in self.pieces:
                np.dot(Z, self.a, out=margins)
                moved += RELAXED * (margins - split)
                np.minimum(moved + loss, kappa, out=split)
                np.maximum(moved, split, out=split)
                pull = pull + (split + split - moved) @ Z
            self.pull = pull
        self.short = np.count_nonzero(self.margins < self.kappa)

    def fit_weights(self):
        """Make the weight step with the factor that there is, and correct the shift μ to first order."""
        a, radius = self.quick_solve(self.pull[:-1]), self.radius
        norm = length(a)
        if self.slack >= 0 and norm <= radius:
            a[self.slack] = np.sqrt(radius * radius - norm * norm)
        elif norm > 0.0:
            if abs(norm / radius - 1.0) > CLOSE:
                change = self.quick_solve(a)  # -da/dμ
                a -= f32(norm * norm / float(a @ change) * (norm / radius - 1.0)) * change
                norm = length(a)
            a *= f32(radius / norm)
        self.a[:-1], self.a[-1] = a, self.pull[-1] / len(self.Z)

    def quick_solve(self, v):
        """Return (G + μ)⁻¹ v (D,) in single precision."""
        return blas.strsv(self.factor, blas.strsv(self.factor, v, trans=1))

    def factorise(self, close=CLOSE, rough=ROUGH):
        """Factorise G + μ for the shift μ at which the solution of the weight step has the right norm.

        The norm falls in μ, and its inverse is nearly linear (a secular equation). It may fall short even where G + μ
        is nearly singular: then the rest goes along a column that no sample changes, or else all weights are scaled.

        The norm is right up to ``close``, and up to ``rough`` as long as the problem looks convex, for small ones from
        the second time on: there is one minimum then, and the descent finds it from any guess.
        """
        h, radius = self.pull[:-1].astype(float), self.radius
        low = floor = self.least if self.slack >= 0 else -np.inf
        if self.convex and self.mu is not None:
            low = floor = max(floor, self.mu / FALL)
        high = max(length(h) / radius, 2.0 * self.least)
        mu = (self.guess(high, 0.0) or high) if self.mu is None else max(self.mu, low)
        known = self.convex or self.mu is not None
        for step in range(NEWTON):
            sure = rough > close and known and mu > WELL * self.least
            well = sure and self.convex
            if not self.cholesky(mu, f32 if well else float):
                low, mu = mu, 0.5 * (mu + high)
                continue
            a = self.solve(h)
            norm = length(a)
            if norm == 0.0 or abs(norm / radius - 1.0) <= (rough if sure else close) or (mu == floor and norm < radius):
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
        self.factor = np.asarray(self.upper, f32)
        self.convex &= self.sure()

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
        h, radius, least = self.pull[:-1], self.radius, WELL * self.least
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
