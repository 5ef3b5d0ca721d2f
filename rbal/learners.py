r"""Classifiers trained for real, exactly: the dots on the theory's lines.

The spherical perceptron minimises :math:`\sum_\mu c_\mu(\kappa - u_\mu)_+` with
:math:`u_\mu = y_\mu(\mathbf x_\mu\cdot\mathbf J/\sqrt L - b)` over :math:`\lVert\mathbf J\rVert^2 = LQ`. Two steps get
there. A splitting (ADMM) with the margins as the split variable guesses which samples lie on the margin: its weight
step is a least-squares problem on a sphere, one secular equation in the eigenbasis of the centred Gram matrix. Then an
exact descent goes from face to face of the piecewise linear loss until the optimality conditions hold to rounding,
whatever the sign of the multiplier.
"""

import warnings

import numpy as np
from scipy.linalg import helmert, solve_triangular
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ._validation import in_range, positive_int

PATIENCE = 20  # steps of the descent, in units of the number of weights, before it is taken to run in a circle
SPLITTING_STEPS = 50  # enough to guess which samples lie on the margin; the descent mends the rest


class SphericalPerceptron(ClassifierMixin, BaseEstimator):
    """Perceptron with margin on the sphere, trained to optimality.

    Parameters
    ----------
    kappa : float
        Margin, >= 0.
    n_states : int, optional
        Q for categorical features coded 0 … Q-1, one-hot encoded in the zero-sum gauge; None for real features.
    tol : float
        Largest violation of the optimality conditions, relative to the norm of the sample weights.
    max_iter : int
        Steps of the descent, from face to face.

    Attributes
    ----------
    J_ : (D,) or (L, Q) array
        Weights: squared norm D for real features, L·Q and zero sum over the states for categorical ones.
    b_ : float
        Bias: the score of a sample is x·J/√L - b.
    multiplier_ : float
        k̂ of the stationarity condition Σ c s y x/√L = k̂ J, of either sign; 0 where the loss vanishes.
    objective_ : float
        Summed loss, with its weights.
    kkt_residual_ : float
        Largest violation of the optimality conditions.
    n_iter_ : int
        Steps taken.
    classes_ : (2,) array
        Labels; the second is the positive class.

    Notes
    -----
    Where the data are separable with margin ``kappa`` the weights of largest margin are returned. Where the multiplier
    is negative the problem is not convex and the result is a local minimum.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1, -1], [100, 300])
    >>> X = rng.normal(size=(400, 50)) + 0.2 * y[:, None]
    >>> clf = SphericalPerceptron(kappa=1.0).fit(X, y)
    >>> round(float(np.sum(clf.J_**2)), 6), bool(clf.kkt_residual_ < 1e-6)
    (50.0, True)
    """

    def __init__(self, *, kappa=1.0, n_states=None, tol=1e-6, max_iter=20_000):
        self.kappa = kappa
        self.n_states = n_states
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X, y, sample_weight=None):
        """Train on samples X with two labels y.

        Parameters
        ----------
        X : (n, L) array
        y : (n,) array
        sample_weight : (n,) array, optional
            Factors on the loss of each sample, >= 0.

        Returns
        -------
        self
        """
        kappa = float(in_range("kappa", self.kappa, 0.0))
        X, y = validate_data(self, X, y, dtype=float)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. "
                f"The type of the target is {type_of_target(y)}: y holds {len(self.classes_)} classes"
            )
        if len(self.classes_) < 2:
            raise ValueError("y must hold two classes, got 1 class")
        signs = np.where(y == self.classes_[1], 1.0, -1.0)
        weight = _check_sample_weight(sample_weight, X, dtype=float, ensure_non_negative=True)
        used = weight > 0.0
        if len(np.unique(signs[used])) < 2:
            raise ValueError("sample_weight must leave samples of both classes")
        features, radius, scale = self._encode(X)
        problem = _Problem(features[used] / scale, signs[used], weight[used], kappa, radius)
        J, self.b_, self.multiplier_, self.objective_, self.kkt_residual_, self.n_iter_ = problem.solve(
            in_range("tol", self.tol, 0.0, open_low=True), positive_int("max_iter", self.max_iter)
        )
        self.J_ = J if self.n_states is None else J.reshape(X.shape[1], -1) @ helmert(self.n_states)
        return self

    def decision_function(self, X):
        """Scores x·J/√L - b."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=float, reset=False)
        if self.n_states is None:
            return X @ self.J_ / np.sqrt(X.shape[1]) - self.b_
        states = _states(X, self.n_states)
        return self.J_[np.arange(X.shape[1]), states].sum(axis=1) / np.sqrt(X.shape[1]) - self.b_

    def predict(self, X):
        """Labels: the positive class where the score is positive."""
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]

    def _encode(self, X):
        """Features without the zero-sum directions, radius of the sphere, √L."""
        L = X.shape[1]
        if self.n_states is None:
            return X, np.sqrt(L), np.sqrt(L)
        Q = positive_int("n_states", self.n_states)
        if Q < 2:
            raise ValueError(f"n_states must be at least 2, got {Q}")
        return helmert(Q).T[_states(X, Q)].reshape(len(X), -1), np.sqrt(L * Q), np.sqrt(L)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _states(X, Q):
    bad = (X != np.floor(X)) | (X < 0) | (X >= Q)
    if bad.any():
        raise ValueError(f"X must hold states 0 … {Q - 1} (n_states={Q}), got {X[bad].flat[0]:g}")
    return X.astype(np.intp)


class _Problem:
    """min Σ c (κ - u)₊ with u = y (XJ - b) over ‖J‖ = radius; X is divided by √L already."""

    def __init__(self, X, y, c, kappa, radius):
        self.X, self.y, self.c, self.radius = X, y, c, radius
        self.kappa = np.full(len(y), kappa)
        self.mean = X.mean(axis=0)
        centred = X - self.mean
        self.gram, self.basis = np.linalg.eigh(centred.T @ centred)
        self.gram = np.maximum(self.gram, 0.0)

    def margins(self, J, b):
        return self.y * (self.X @ J - b)

    def objective(self, J, b):
        return float(self.c @ np.maximum(self.kappa - self.margins(J, b), 0.0))

    def solve(self, tol, max_iter):
        J, b, on = self.split(SPLITTING_STEPS)
        if (self.margins(J, b) >= self.kappa).all():
            return (*self.largest_margin(), 1)
        found = self.descend(*self.enter(J, b, on), min(max_iter, PATIENCE * (len(J) + 10)))
        if not found[4] <= tol and max_iter > found[5]:
            # A corner where more samples meet than there are weights (repeated rows) can trap the descent in a circle.
            jitter = np.random.default_rng(0).random(len(self.kappa))
            self.kappa = self.kappa + 1e-3 * tol * (1.0 + self.kappa) * jitter
            found = self.descend(*self.enter(J, b, on), max_iter)
        if not found[4] <= tol:
            warnings.warn(
                f"the perceptron did not converge in {found[5]} steps: violation {found[4]:.1e}, tol {tol:.1e}",
                ConvergenceWarning,
                stacklevel=3,
            )
        return found

    def split(self, steps):
        """Approximate weights, and the samples that a splitting (ADMM) finds on their margin."""
        J, b = self.start()
        penalty = self.c.mean()
        u, dual = np.maximum(self.margins(J, b), self.kappa), np.zeros(len(self.y))
        reach = self.c / penalty
        for _ in range(steps):
            J, b = self.least_squares(self.y * (u - dual))
            moved = 1.6 * self.margins(J, b) - 0.6 * u + dual
            u = np.where(moved >= self.kappa, moved, np.where(moved >= self.kappa - reach, self.kappa, moved + reach))
            dual = moved - u
        return J, b, np.flatnonzero(u == self.kappa)

    def start(self):
        """Weights along the difference of the weighted class means."""
        pull = self.X.T @ (self.c * self.y / np.where(self.y > 0, self.c[self.y > 0].sum(), self.c[self.y < 0].sum()))
        size = np.linalg.norm(pull)
        J = self.radius * (pull / size if size > 0 else self.basis[:, -1])
        return J, float(np.median(self.X @ J))

    def least_squares(self, target):
        """J on the sphere and b that minimise ‖XJ - b - target‖²."""
        middle = target.mean()
        h = self.basis.T @ (self.X.T @ (target - middle))
        coefficients = sphere_least_squares(self.gram, h, self.radius)
        J = self.basis @ coefficients
        return J, float(self.mean @ J - middle)

    def enter(self, J, b, on):
        """Weights moved onto the face where the given samples lie exactly on their margin, as many as it bears."""
        on = on[np.argsort(np.abs((self.margins(J, b) - self.kappa)[on]))][: int(0.8 * len(J))]
        while len(on) > 1:
            edge = self.y[on] * self.kappa[on]
            frame, rhs = self.frame(on), edge[1:] - edge[0]
            fixed = frame[0] @ solve_triangular(frame[1], rhs, trans="T")
            room = self.radius**2 - fixed @ fixed
            free = J - frame[0] @ (frame[0].T @ J)
            if room > 0.0 and free @ free > 0.0:
                J = fixed + np.sqrt(room / (free @ free)) * free
                return J, float(self.X[on[0]] @ J - edge[0]), list(on)
            on = on[: len(on) // 2]
        return J, b, []

    def frame(self, on):
        """QR of the differences that a move along the face must be orthogonal to."""
        return np.linalg.qr((self.X[on[1:]] - self.X[on[0]]).T)

    def descend(self, J, b, on, max_iter):
        """Exact descent from face to face.

        With the samples on the margin held there, the loss is linear and the weights move on a smaller sphere, along
        the arc to its minimum; a sample that reaches its margin on the way either passes or stays. At the minimum
        of a face the multipliers tell which sample to let go. On the sphere a minimum with a negative multiplier can
        only be a corner, with as many samples on the margin as there are weights.
        """
        n_iter, residual, k = 0, np.inf, np.nan
        while n_iter < max_iter:
            n_iter += 1
            if not on:
                b, on = self.best_bias(J, b)
            below = self.margins(J, b) < self.kappa
            below[on] = False
            stopped, J, b = self.arc(J, b, on, below)
            if stopped is not None:
                on.append(stopped)
                continue
            k, share, residual = self.multipliers(J, on, below)
            worst = int(np.argmax(np.abs(share - 0.5))) if on else 0
            if not on or abs(share[worst] - 0.5) <= 0.5 + 1e-9:
                break
            on.pop(worst)
        return J, b, k, self.objective(J, b), residual, n_iter

    def best_bias(self, J, b):
        """Bias of least loss for these weights, and the sample it puts on its margin (none where a range is best)."""
        scores = self.X @ J
        # a sample of class y passes its margin, and the slope grows by c, where b = score - yκ
        kinks = scores - self.y * self.kappa
        order = np.argsort(kinks)
        slope = -self.c[self.y < 0].sum() + np.cumsum(self.c[order])
        flat = 1e-12 * self.c.sum()
        at = int(np.argmax(slope >= -flat))
        if abs(slope[at]) <= flat and at + 1 < len(order):
            return float(0.5 * (kinks[order[at]] + kinks[order[at + 1]])), []
        return float(kinks[order[at]]), [int(order[at])]

    def arc(self, J, b, on, below):
        """Move to the minimum of the face, or to the first sample that must stay: (sample or None, J, b)."""
        anchor, offset = (self.X[on[0]], self.y[on[0]] * self.kappa[on[0]]) if on else (np.zeros_like(J), -b)
        pulls = self.c * self.y
        if len(on) > 1:
            Q = self.frame(on)[0]
            free = J - Q @ (Q.T @ J)
            free -= Q @ (Q.T @ free)
        else:
            Q, free = None, J.copy()
        size = np.linalg.norm(free)
        if len(on) >= len(J) or size <= 1e-9 * self.radius:
            return None, J, b
        fixed = J - free
        along = self.X @ free - anchor @ free
        base = self.X @ fixed - anchor @ fixed + offset
        # the direction of steepest descent, within the face and across the weights
        force = self.X.T @ (pulls * below) - (pulls @ below) * anchor
        if Q is not None:
            force -= Q @ (Q.T @ force)
            force -= Q @ (Q.T @ force)
        force -= free * (force @ free) / size**2
        strength = np.linalg.norm(force)
        if strength <= 1e-11 * np.linalg.norm(self.c):
            return None, J, b
        turn = force * (size / strength)
        across = self.X @ turn - anchor @ turn
        angle, sample = self.first_stop(base, along, across, below, on)
        J = fixed + np.cos(angle) * free + np.sin(angle) * turn
        J *= self.radius / np.linalg.norm(J) if not on else 1.0
        return sample, J, float(anchor @ J - offset)

    def first_stop(self, base, along, across, below, on):
        """Angle of least loss along the arc, and the sample whose kink it is (None where the loss is smooth there)."""
        amplitude = np.hypot(along, across)
        with np.errstate(divide="ignore", invalid="ignore"):
            half = np.arccos((self.y * self.kappa - base) / amplitude)  # NaN where the margin is never met
        phase = np.arctan2(across, along)
        angles = np.concatenate([phase + half, phase - half]) % (2.0 * np.pi)
        samples = np.tile(np.arange(len(self.y)), 2)
        keep = np.isfinite(angles) & (angles > 1e-12) & (angles < np.pi)
        if on:
            keep &= ~np.isin(samples, on)
        angles, samples = angles[keep], samples[keep]
        order = np.argsort(angles)
        pulls = self.c * self.y
        cosine, sine = -(pulls * below) @ along, -(pulls * below) @ across  # loss = const + cosine cos θ + sine sin θ
        inside = below.copy()
        for angle, sample in zip(angles[order], samples[order], strict=True):
            lowest = np.arctan2(-sine, -cosine) % (2.0 * np.pi)
            if lowest <= angle:
                return lowest, None
            sign = -1.0 if inside[sample] else 1.0
            cosine -= sign * pulls[sample] * along[sample]
            sine -= sign * pulls[sample] * across[sample]
            inside[sample] = not inside[sample]
            if -cosine * np.sin(angle) + sine * np.cos(angle) >= 0.0:
                return angle, int(sample)
        return np.arctan2(-sine, -cosine) % (2.0 * np.pi), None

    def multipliers(self, J, on, below):
        """k̂, the shares s of the samples on the margin, and how far the optimality conditions are from holding."""
        pulls = self.c * self.y
        force, balance = self.X.T @ (pulls * below), float(pulls @ below)
        # k J - Σ c s y x = force and -Σ c s y = balance, for k and s
        matrix = np.zeros((len(J) + 1, len(on) + 1))
        matrix[:-1, 0] = J
        matrix[:-1, 1:] = -(pulls[on, None] * self.X[on]).T
        matrix[-1, 1:] = -pulls[on]
        target = np.append(force, balance)
        solution = np.linalg.lstsq(matrix, target, rcond=None)[0]
        share = solution[1:]
        clipped = np.append(solution[0], np.clip(share, 0.0, 1.0))
        residual = np.linalg.norm(matrix @ clipped - target) / np.linalg.norm(self.c)
        return float(solution[0]), share, float(residual)

    def largest_margin(self):
        """Separable data: the hard-margin solution, scaled to the sphere."""
        svm = SVC(kernel="linear", C=1e12, tol=1e-10).fit(self.X, self.y)
        w = svm.coef_[0]
        J = self.radius * w / np.linalg.norm(w)
        scores = self.X @ J
        b = 0.5 * (scores[self.y > 0].min() + scores[self.y < 0].max())
        objective = self.objective(J, b)
        return J, float(b), 0.0, objective, objective


def sphere_least_squares(gram, h, radius):
    """Minimiser of ½ Σ gram a² - h·a on ‖a‖ = radius, by its secular equation Σ h²/(gram + μ)² = radius².

    The norm falls in μ > -min(gram), and its inverse is nearly linear there. Where even the smallest μ leaves the
    norm short (the pull has no component along the softest directions), the rest goes along the softest one.
    """
    soft = gram - gram[0]
    size = np.linalg.norm(h)
    if size == 0.0:
        a = np.zeros_like(h)
        a[0] = radius
        return a
    lo, hi = 0.0, size / radius
    nu = hi
    for _ in range(100):
        a = h / (soft + nu)
        norm = np.linalg.norm(a)
        if abs(norm / radius - 1.0) <= 1e-14:
            break
        if norm > radius:
            lo = nu
        else:
            hi = nu
        slope = -np.sum(a * a / (soft + nu)) / norm
        new = nu + norm / slope * (1.0 - norm / radius)
        nu_next = new if lo < new < hi else (0.5 * (lo + hi) if lo > 0.0 else 0.01 * hi)
        if nu_next < 1e-14 * max(gram[-1], 1e-300):
            a = np.where(soft > 0.0, h / np.where(soft > 0.0, soft, 1.0), 0.0)
            missing = radius**2 - a @ a
            if missing > 0.0:
                a[0] = np.copysign(np.sqrt(missing), h[0] if h[0] != 0.0 else 1.0)
                return a
        nu = nu_next
    return a
