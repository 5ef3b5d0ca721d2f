"""The spherical perceptron, solved exactly."""

import warnings

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

PATIENCE = 20  # steps of the descent, in units of the number of weights, before it is taken to run in a circle
SPLITTING_STEPS = 50  # enough to guess which samples lie on the margin; the descent mends the rest


class Problem:
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
