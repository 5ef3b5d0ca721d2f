r"""The spherical perceptron: min Σ c (κ - u)₊ with u = y (x·J - b) over ‖J‖ = radius.

Two steps get there. The splitting of :mod:`rbal.learners._splitting` guesses which samples lie on the margin. Then the
exact descent of :mod:`rbal.learners._descent` takes over, until the optimality conditions hold to rounding, whatever
the sign of the multiplier.
"""

import functools
import math
import warnings
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from .._support import parallel
from .._support.gauss import jit
from ._descent import NEAR, descend
from ._faces import Samples, length
from ._splitting import split

NEAR_CONVEX = 2  # as NEAR, where there is one minimum and few steps lead to it
MOST_SMO_STEPS = 100_000  # of libsvm, which has no end where only a margin of exactly 0 separates the classes
WALK_BLOCK = 1000  # steps whose random numbers are held in memory together


class Draws(NamedTuple):
    """Random numbers of some steps of a walk."""

    normals: np.ndarray  # (steps, D) directions
    hidden: np.ndarray  # (steps,) how far each points into coordinates that the last one stands for
    uniforms: np.ndarray  # (steps, 2) places on the arc, and in the range of the bias


class Frame:
    """Orthonormal coordinates: n that span the samples X (n, D), n < D - 1, and one for a direction outside.

    They are a QR factorisation of the samples as columns, and stay a product of reflections: to write them out would
    take longer than to find them.
    """

    def __init__(self, X):
        columns = np.vstack([X, np.ones(X.shape[1])]).T
        room = int(lapack.dgeqrf_lwork(*columns.shape)[0])
        self.reflections, self.tau, _, _ = lapack.dgeqrf(columns, lwork=room, overwrite_a=True)
        self.width, self.n = X.shape[1], len(X)

    def samples(self):
        """Return the samples in these coordinates (n, n + 1)."""
        return np.ascontiguousarray(np.triu(self.reflections[: self.n + 1])[:, :-1].T)

    def lift(self, J):
        """Return the weights (D,) that have the coordinates J (n + 1,)."""
        return self.reflect("N", np.append(J, np.zeros(self.width - len(J))))

    def lower(self, J):
        """Return the coordinates (n + 1,) of weights J (D,)."""
        return self.reflect("T", J)[: self.n + 1]

    def outside(self, J):
        """Return the part of weights J (D,) that is orthogonal to all samples."""
        return J - self.lift(self.lower(J)[:-1])

    def reflect(self, way, v):
        return lapack.dormqr("L", way, self.reflections, self.tau, v[:, None], lwork=64 * 65)[0][:, 0]


class Problem:
    """A training set: X (n, D), divided by √L already, labels y = ±1 and weights c (n,)."""

    def __init__(self, X, y, c, kappa, radius):
        X, self.y, self.c = merge_repeated(X, y, c)
        self.kappa, self.radius, self.near = np.full(len(X), kappa), radius, NEAR
        # Weights outside the span of the samples only add to the norm: one such direction stands for all.
        self.frame = None
        if X.shape[1] > len(X) + 1:
            self.frame = Frame(X)
            X = self.frame.samples()
        self.X = np.ascontiguousarray(X)

    @property
    def samples(self):
        """The training set as the compiled functions take it."""
        return Samples(self.X, self.y, self.c * self.y, self.kappa)

    def margins(self, J, b):
        return self.y * (self.X @ J - b)

    def objective(self, J, b):
        return float(self.c @ np.maximum(self.kappa - self.margins(J, b), 0.0))

    def lift(self, J):
        """Return weights in the coordinates of the features."""
        return J if self.frame is None else self.frame.lift(J)

    def solve(self, tol, max_iter, start=None):
        """Return weights, bias, multiplier, violation of the optimality conditions, and number of steps.

        ``start`` is a solution to begin at, as :meth:`beside` takes it; by default a splitting finds a beginning.
        """
        J, b, on = self.split() if start is None else self.beside(*start)
        if self.objective(J, b) == 0.0:
            return J, b, 0.0, 0.0, 1
        patience = 20 * (len(J) + 10)  # steps before the descent is taken to run in a circle
        found = self.descend(J, b, on, min(max_iter, patience))
        if not found[3] <= tol and max_iter > found[4]:
            # A corner where more samples meet than there are weights can trap the descent in a circle.
            jitter = np.random.default_rng(0).random(len(self.kappa))
            self.kappa = self.kappa + 1e-3 * tol * (1.0 + self.kappa) * jitter
            found = self.descend(J, b, on, max_iter)
        if not found[3] <= tol:
            warnings.warn(
                f"the perceptron did not converge in {found[4]} steps: violation {found[3]:.1e}, tol {tol:.1e}",
                ConvergenceWarning,
                stacklevel=3,
            )
        return found

    def split(self):
        """Return approximate weights and bias, and the samples that lie on their margin there, the closest first."""
        J, b = self.start()
        J, b, on, convex = split(self.samples, self.radius, J, b)
        self.near = NEAR_CONVEX if convex else NEAR
        return J, b, on[np.argsort(np.abs((self.margins(J, b) - self.kappa)[on]))][: int(0.9 * len(J))]

    def beside(self, J, b, kappa):
        """Return a solution for margin ``kappa`` in these coordinates, and the samples that lie on their margins there.

        Its weights J are in the coordinates of the features; what lies outside the span of the samples counts as one.
        """
        if self.frame is not None:
            J = np.append(self.frame.lower(J)[:-1], np.linalg.norm(self.frame.outside(J)))
        J = J * (self.radius / np.linalg.norm(J))
        off = np.abs(self.margins(J, b) - kappa)
        on = np.flatnonzero(off <= 1e-9 * (1.0 + kappa))
        return J, b, on[np.argsort(off[on])]

    def start(self):
        """Return weights along the difference of the weighted class means, and the median of their scores as bias."""
        positive = self.y > 0
        pull = (self.c * self.y / np.where(positive, self.c[positive].sum(), self.c[~positive].sum())) @ self.X
        size = length(pull)
        J = self.radius * (pull / size if size > 0 else np.eye(len(pull))[0])
        middle = [(len(self.X) - 1) // 2, len(self.X) // 2]
        return J, float(np.partition(self.X @ J, middle)[middle].mean())

    def descend(self, J, b, on, max_iter):
        """Descend exactly from J and b, and measure by how much the optimality conditions are violated at the end."""
        J, b, k, share, held, n_iter = descend(self.samples, J, b, on, max_iter, self.near)
        if held == 0:  # the loss does not depend on the bias up to the next sample on either side
            kinks = self.X @ J - self.y * self.kappa
            below, above = kinks[kinks < b], kinks[kinks > b]
            b = 0.5 * (below.max() + above.min()) if len(below) and len(above) else b
        pulls = self.c * self.y * np.clip(share, 0.0, 1.0)
        short = self.kappa - self.margins(J, b)
        lack = math.hypot(length(k * J - pulls @ self.X), pulls.sum()) / length(self.c)
        # a sample above its margin does not pull, one below pulls in full
        wrong = np.max(np.where(share < 1.0, short, 0.0) - np.where(share > 0.0, np.minimum(short, 0.0), 0.0))
        return J, float(b), float(k), float(lack + max(wrong, 0.0) / (1.0 + self.kappa[0])), n_iter

    def largest_margin(self):
        """Return weights and bias of largest margin for separable data, and how unequal its support vectors are."""
        svm = SVC(kernel="linear", C=1e12, tol=1e-4, max_iter=MOST_SMO_STEPS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the active set goes on from any guess
            parallel.aside(svm.fit, self.X, self.y)
        w = equal_margins(self.X, self.y, list(svm.support_), svm.coef_[0])
        J = self.radius * w / np.linalg.norm(w)
        scores = self.X @ J
        b = 0.5 * (scores[self.y > 0].min() + scores[self.y < 0].max())
        margins = self.margins(J, b)
        # w = Σ a y x with Σ a y = 0 gives ‖w‖² = Σ a (1 + slack): a shortfall of the margin is one of optimality
        lack = 1.0 - margins.min() * np.linalg.norm(w) / self.radius
        return J, float(b), float(abs(lack))

    def typical(self, J, b, sweeps, rng):
        """Draw weights and bias evenly from all that have zero loss, by a walk that starts at J and b."""
        n_hidden = 0 if self.frame is None else self.frame.width - len(self.X) - 1
        left, samples = sweeps * len(J), self.samples
        while left > 0:
            steps = min(left, WALK_BLOCK)
            hidden = np.sqrt(rng.chisquare(n_hidden, size=steps)) if n_hidden else np.zeros(steps)
            normals, uniforms, square = rng.normal(size=(steps, len(J))), rng.random((steps, 2)), J @ J
            for lo, hi in parallel.pieces(steps):
                J, b = walk(samples, J, b, square, Draws(normals[lo:hi], hidden[lo:hi], uniforms[lo:hi]))
            left -= steps
        if self.frame is None:
            return J, float(b)
        # the last coordinate stands for all directions outside the span of the samples, which are alike: take any
        outside = self.frame.outside(rng.normal(size=self.frame.width))
        return self.frame.lift(J[:-1]) + J[-1] * outside / np.linalg.norm(outside), float(b)


def equal_margins(X, y, on, otherwise):
    """Return the shortest w (D,) with y (x·w - b) ≥ 1, by an active set that starts at a guess of the support vectors.

    On the set all margins are 1 and w = Σ a y x with Σ a y = 0. A sample with a < 0 leaves, the one furthest below its
    margin joins.
    """
    for _ in range(10 * len(on) + 100):
        Z = y[on, None] * X[on]
        matrix = np.block([[Z @ Z.T, -y[on, None]], [y[None, on], np.zeros((1, 1))]])
        *a, b = np.linalg.lstsq(matrix, np.append(np.ones(len(on)), 0.0), rcond=1e-13)[0]
        if min(a) < -1e-10 * max(a) and len(on) > 2:
            del on[int(np.argmin(a))]
            continue
        w = Z.T @ a
        margins = y * (X @ w - b)
        worst = int(np.argmin(margins))
        if margins[worst] >= 1.0 - 1e-9:
            return w
        if worst in on:
            break
        on.append(worst)
    return otherwise


@functools.lru_cache(8)
def direction(D):
    """Return the same random vector (D,) at all times."""
    return np.random.default_rng(0).normal(size=D)


def merge_repeated(X, y, c):
    """Merge equal samples of a class, and add up their weights c (n,): repeated rows would meet in every corner."""
    probe = X @ direction(X.shape[1])
    gaps = np.diff(np.sort(probe))
    if len(X) < 2 or gaps.min() > 1e-9 * np.abs(probe).max():
        return X, y, c
    rows, index = np.unique(np.column_stack([X, y]), axis=0, return_inverse=True)
    return np.ascontiguousarray(rows[:, :-1]), rows[:, -1].copy(), np.bincount(index.ravel(), c)


@jit
def walk(samples, J, b, square, draws):
    """Hit and run among the weights J (D,) and biases of zero loss, with weights of that squared norm.

    Along a random great circle the weights move to an even draw from the arc around them that keeps every margin, then
    the bias to an even draw from what the new weights leave it. The last coordinate may stand for several that are
    alike to all samples.
    """
    X, y, _, kappa = samples
    normals, hidden, uniforms = draws
    scores = X @ J
    for step in range(len(normals)):
        turn = normals[step] - (normals[step] @ J) * J / square
        scale = np.sqrt(square / (turn @ turn + hidden[step] ** 2))
        turn *= scale
        across = X @ turn
        up, down = np.inf, -np.inf
        for i in range(len(y)):
            # roots t = tan(θ/2) of scores cos θ + across sin θ - b = yκ
            gap = scores[i] - b - y[i] * kappa[i]
            a = gap - 2.0 * scores[i]
            disc = across[i] * across[i] - a * gap
            if disc > 0.0:
                w = -(across[i] + np.copysign(np.sqrt(disc), across[i]))
                for t in (w / a, gap / w):
                    if t > 0.0:
                        up = min(up, t)
                    elif t < 0.0:
                        down = max(down, t)
        low, high = 2.0 * np.arctan(down), 2.0 * np.arctan(up)
        angle = low + (high - low) * uniforms[step, 0]
        J = np.cos(angle) * J + np.sin(angle) * turn
        J[-1] = np.copysign(np.hypot(J[-1], np.sin(angle) * scale * hidden[step]), J[-1])
        J *= np.sqrt(square / (J @ J))
        scores = X @ J
        low, high = -np.inf, np.inf
        for i in range(len(y)):
            if y[i] > 0.0:
                high = min(high, scores[i] - kappa[i])
            else:
                low = max(low, scores[i] + kappa[i])
        b = low + (high - low) * uniforms[step, 1]
    return J, b
