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
MOST_SMO_STEPS = 100_000  # of libsvm, which never ends where only a margin of exactly 0 separates the classes
WALK_BLOCK = 1000  # steps whose random numbers are held in memory together


class Draws(NamedTuple):
    """Random numbers of some steps of a walk."""

    normals: np.ndarray  # (steps, D) directions
    hidden: np.ndarray  # (steps,) length of each in the coordinates that the last one stands for
    uniforms: np.ndarray  # (steps, 2) positions on the arc, and in the range of the bias


class Start(NamedTuple):
    """Where a descent begins."""

    J: np.ndarray
    b: float
    on: np.ndarray  # samples that lie on their margins there, the closest first
    near: int  # samples per weight that are followed at first


class Solution(NamedTuple):
    """Weights and bias at a minimum, in the coordinates of the problem."""

    J: np.ndarray
    b: float
    multiplier: float
    violation: float  # of the optimality conditions
    n_iter: int


class Frame:
    """Orthonormal coordinates: n that span the samples X (n, D), n < D - 1, and one for a direction outside.

    They are a QR factorisation of the samples as columns, kept as a product of reflections: writing them out would take
    longer than the factorisation.
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

    def reflect(self, transposition, v):
        return lapack.dormqr("L", transposition, self.reflections, self.tau, v[:, None], lwork=64 * 65)[0][:, 0]


class Problem:
    """A training set: X (n, D), divided by √L already, labels y = ±1 and weights c (n,)."""

    def __init__(self, X, y, c, kappa, radius):
        X, self.y, self.c = merge_repeated(X, y, c)
        self.kappa, self.radius = np.full(len(X), kappa), radius
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

    def solve(self, tol, max_iter, last=None):
        """Return the Solution, with a warning if it violates the optimality conditions by more than ``tol``.

        ``last`` is a solution to start from, as :meth:`restart` takes it; by default a splitting finds the start.
        """
        start = self.split() if last is None else self.restart(*last)
        if self.objective(start.J, start.b) == 0.0:
            return Solution(start.J, start.b, 0.0, 0.0, 1)
        patience = 20 * (len(start.J) + 10)  # steps after which the descent is assumed to run in a circle
        solution = self.descend(start, min(max_iter, patience), self.kappa)
        if not solution.violation <= tol and max_iter > solution.n_iter:
            # A corner where more samples meet than there are weights can trap the descent in a circle.
            jitter = np.random.default_rng(0).random(len(self.kappa))
            solution = self.descend(start, max_iter, self.kappa + 1e-3 * tol * (1.0 + self.kappa) * jitter)
        if not solution.violation <= tol:
            warnings.warn(
                f"the perceptron did not converge in {solution.n_iter} steps: "
                f"violation {solution.violation:.1e}, tol {tol:.1e}",
                ConvergenceWarning,
                stacklevel=3,
            )
        return solution

    def split(self):
        """Return the Start that a splitting finds."""
        J, b, on, convex = split(self.samples, self.radius, *self.start())
        on = on[np.argsort(np.abs((self.margins(J, b) - self.kappa)[on]))][: int(0.9 * len(J))]
        return Start(J, b, on, NEAR_CONVEX if convex else NEAR)

    def restart(self, J, b, kappa):
        """Return the Start at a solution for margin ``kappa``.

        Its weights J are in the coordinates of the features; their part outside the span of the samples becomes one
        coordinate.
        """
        if self.frame is not None:
            J = np.append(self.frame.lower(J)[:-1], np.linalg.norm(self.frame.outside(J)))
        J = J * (self.radius / np.linalg.norm(J))
        distance = np.abs(self.margins(J, b) - kappa)
        on = np.flatnonzero(distance <= 1e-9 * (1.0 + kappa))
        return Start(J, b, on[np.argsort(distance[on])], NEAR)

    def start(self):
        """Return weights along the difference of the weighted class means, and the median of their scores as bias."""
        positive = self.y > 0
        pull = (self.c * self.y / np.where(positive, self.c[positive].sum(), self.c[~positive].sum())) @ self.X
        size = length(pull)
        J = self.radius * (pull / size if size > 0 else np.eye(len(pull))[0])
        middle = [(len(self.X) - 1) // 2, len(self.X) // 2]
        return J, float(np.partition(self.X @ J, middle)[middle].mean())

    def descend(self, start, max_iter, kappa):
        """Descend from a Start with margins ``kappa`` (n,), and return the Solution."""
        samples = self.samples._replace(kappa=kappa)
        J, b, k, share, held, n_iter = descend(samples, start.J, start.b, start.on, max_iter, start.near)
        if held == 0:  # the loss does not depend on the bias up to the next sample on either side
            kinks = self.X @ J - self.y * kappa
            below, above = kinks[kinks < b], kinks[kinks > b]
            b = 0.5 * (below.max() + above.min()) if len(below) and len(above) else b
        pulls = self.c * self.y * np.clip(share, 0.0, 1.0)
        short = kappa - self.margins(J, b)
        imbalance = math.hypot(length(k * J - pulls @ self.X), pulls.sum()) / length(self.c)
        # a sample above its margin does not pull, one below pulls in full
        wrong = np.max(np.where(share < 1.0, short, 0.0) - np.where(share > 0.0, np.minimum(short, 0.0), 0.0))
        return Solution(J, float(b), float(k), float(imbalance + max(wrong, 0.0) / (1.0 + kappa[0])), n_iter)

    def largest_margin(self):
        """Return weights and bias of largest margin for separable data, and the inequality of its support vectors."""
        svm = SVC(kernel="linear", C=1e12, tol=1e-4, max_iter=MOST_SMO_STEPS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the active set accepts any guess
            parallel.aside(svm.fit, self.X, self.y)
        w = equal_margins(self.X, self.y, list(svm.support_), svm.coef_[0])
        J = self.radius * w / np.linalg.norm(w)
        scores = self.X @ J
        b = 0.5 * (scores[self.y > 0].min() + scores[self.y < 0].max())
        margins = self.margins(J, b)
        # w = Σ a y x with Σ a y = 0 gives ‖w‖² = Σ a (1 + slack): a shortfall of the margin is one of optimality
        shortfall = 1.0 - margins.min() * np.linalg.norm(w) / self.radius
        return J, float(b), float(abs(shortfall))

    def typical(self, J, b, sweeps, rng):
        """Draw weights and bias uniformly from all that have zero loss, by a walk that starts at J and b."""
        n_hidden = 0 if self.frame is None else self.frame.width - len(self.X) - 1
        remaining, samples = sweeps * len(J), self.samples
        while remaining > 0:
            steps = min(remaining, WALK_BLOCK)
            hidden = np.sqrt(rng.chisquare(n_hidden, size=steps)) if n_hidden else np.zeros(steps)
            normals, uniforms, square = rng.normal(size=(steps, len(J))), rng.random((steps, 2)), J @ J
            for lo, hi in parallel.pieces(steps):
                J, b = walk(samples, J, b, square, Draws(normals[lo:hi], hidden[lo:hi], uniforms[lo:hi]))
            remaining -= steps
        if self.frame is None:
            return J, float(b)
        # the last coordinate stands for all directions outside the span of the samples, which are equivalent: draw one
        outside = self.frame.outside(rng.normal(size=self.frame.width))
        return self.frame.lift(J[:-1]) + J[-1] * outside / np.linalg.norm(outside), float(b)


def equal_margins(X, y, on, fallback):
    """Return the shortest w (D,) with y (x·w - b) ≥ 1, by an active set that starts at a guess of the support vectors.

    On the set all margins are 1 and w = Σ a y x with Σ a y = 0. A sample with a < 0 leaves, the one furthest below its
    margin joins. Where the set does not settle, ``fallback`` is returned.
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
    return fallback


@functools.lru_cache(8)
def direction(D):
    """Return a random vector (D,) that is the same in every call."""
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

    Along a random great circle the weights move to a uniform draw from the arc around them that keeps every margin,
    then the bias to a uniform draw from the range that the new weights allow. The last coordinate may stand for several
    that no sample distinguishes.
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
