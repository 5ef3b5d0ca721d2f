"""Metrics of more than two classes, where each class has a score and the largest one decides."""

import functools

import numpy as np
from scipy.special import ndtr, ndtri

from .._support.validation import given_function, in_range, one_of, positive_int, real_array

REPLICATES, POINTS = 8, 4096  # independent sets of quasi-random points, and points in each
SEARCHED = 2**22  # most scores, of all clusters and classes, among which thresholds are searched
SWEEPS, GRID = 14, 65  # rounds of that search, each with half the range of the last one, and thresholds tried in each
_X, _W = np.polynomial.legendre.leggauss(12)
_X, _W = 0.5 * (_X + 1.0), 0.5 * _W  # on [0, 1]
_Z = 8.5  # a Gaussian has mass 2e-17 beyond
_TINY = 1e-13  # variance of a difference of scores, relative to theirs, below which it does not vary


class ManyMetrics:
    """Every metric of T jointly Gaussian scores, of samples in K clusters that belong to T classes.

    With two or three classes the confusion matrix is exact. With more it is a mean over quasi-random scores, whose
    standard error is :meth:`error`.

    Parameters
    ----------
    means : (K, T) array
        Mean scores of the samples of each cluster.
    overlaps : (K, T, T) array
        Covariances of the scores within each cluster.
    places : (K,) array of int, optional
        Class of each cluster, 0 … T-1; by default cluster k is class k.
    shares : (K,) array, optional
        Share of each cluster in its class.

    Examples
    --------
    >>> import numpy as np
    >>> m = ManyMetrics(np.eye(3), np.tile(np.eye(3), (3, 1, 1)))
    >>> print(m.confusion().round(4)[0], round(m.ba(), 4))
    [0.6337 0.1831 0.1831] 0.6337
    """

    def __init__(self, means, overlaps, places=None, shares=None):
        self.means = real_array("means", means, 2, finite=False)
        self.overlaps = real_array("overlaps", overlaps, 3, finite=False)
        K, T = self.means.shape
        if self.overlaps.shape != (K, T, T):
            raise ValueError(f"overlaps must have shape ({K}, {T}, {T}), got {self.overlaps.shape}")
        self.places = np.arange(K) if places is None else real_array("places", places, 1)
        self.shares = np.ones(K) if shares is None else in_range("shares", real_array("shares", shares, 1), 0.0)
        if self.places.shape != (K,) or self.shares.shape != (K,):
            raise ValueError(f"places and shares must have one entry for each of the {K} clusters")
        if set(self.places.tolist()) != set(range(T)):
            raise ValueError(f"places must name every class from 0 to {T - 1}, got {sorted(set(self.places.tolist()))}")
        self.places = self.places.astype(np.intp)

    @property
    def _unknown(self):
        """Whether there is no solution, so that no metric has a value."""
        return not (np.isfinite(self.means).all() and np.isfinite(self.overlaps).all())

    @property
    def n_classes(self):
        """Number of classes, T."""
        return self.means.shape[1]

    def confusion(self, offsets=None):
        """Return the confusion matrix: of each class (row) the shares that are answered as each class (column).

        Parameters
        ----------
        offsets : (T,) array, optional
            Subtracted from the scores before they are compared: a threshold for each class.

        Returns
        -------
        (T, T) array
            Rows sum to 1.
        """
        return self._confusions(self._offsets(offsets)).mean(axis=0)

    def error(self, offsets=None):
        """Return the standard error (T, T) of the confusion matrix, 0 where it is exact; ``offsets`` as there."""
        sets = self._confusions(self._offsets(offsets))
        if len(sets) == 1:
            return 0.0 * sets[0]
        return sets.std(axis=0, ddof=1) / np.sqrt(len(sets))

    def recall(self, offsets=None):
        """Return the recall (T,) of each class; ``offsets`` as for :meth:`confusion`."""
        return np.diagonal(self.confusion(offsets)).copy()

    def ba(self, offsets=None):
        """Return the balanced accuracy, the mean recall; ``offsets`` as for :meth:`confusion`."""
        return float(self.recall(offsets).mean())

    def accuracy(self, phi, offsets=None):
        """Return the share of right answers.

        Parameters
        ----------
        phi : (T,) array
            Share of each class in the test set, up to a factor.
        offsets : (T,) array, optional
            As for :meth:`confusion`.

        Returns
        -------
        float
        """
        return float(self._phi(phi) @ self.recall(offsets))

    def precision(self, phi, offsets=None):
        """Return the precision (T,) of each answer, NaN for one that is never given; arguments as for accuracy."""
        phi, confusion = self._phi(phi), self.confusion(offsets)
        with np.errstate(invalid="ignore", divide="ignore"):
            return phi * np.diagonal(confusion) / (phi @ confusion)

    def f1(self, phi, offsets=None):
        """Return the F1 score (T,) of each class, 0 where its answer is never given; arguments as for accuracy."""
        return _f1(self.confusion(offsets), self._phi(phi))

    def macro_f1(self, phi, offsets=None):
        """Return the mean F1 score over the classes; arguments as for accuracy."""
        return float(self.f1(phi, offsets).mean())

    def weighted_f1(self, phi, offsets=None):
        """Return the mean F1 score over the samples; arguments as for accuracy."""
        return float(self._phi(phi) @ self.f1(phi, offsets))

    def auc(self, phi):
        """Return the area under the ROC curve (T,) of each score, its class against the rest.

        Parameters
        ----------
        phi : (T,) array
            Share of each class in the test set, up to a factor: it mixes the rest.

        Returns
        -------
        (T,) array
        """
        phi, areas = self._phi(phi)[self.places] * self.shares, np.empty(self.n_classes)
        for t in range(self.n_classes):
            mine = self.places == t
            gap = self.means[mine, t][:, None] - self.means[~mine, t]
            q = self.overlaps[mine, t, t][:, None] + self.overlaps[~mine, t, t]
            with np.errstate(invalid="ignore", divide="ignore"):
                z = np.where((q <= 0.0) & (gap == 0.0), 0.0, gap / np.sqrt(np.maximum(q, 0.0)))
            weight = np.outer(self.shares[mine], phi[~mine])  # its own share in the test set makes no difference
            if not weight.any():
                raise ValueError(f"phi must leave samples of another class than class {t}, got none")
            areas[t] = np.sum(weight * ndtr(z)) / np.sum(weight)
        return areas

    def top(self, k, offsets=None):
        """Return the share (T,) of each class whose score is among the k largest.

        Parameters
        ----------
        k : int
            From 1 to T.
        offsets : (T,) array, optional
            As for :meth:`confusion`.

        Returns
        -------
        (T,) array
        """
        if positive_int("k", k) > self.n_classes:
            raise ValueError(f"k must be at most the number of classes, {self.n_classes}, got {k}")
        offsets, recall = self._offsets(offsets), np.zeros(self.n_classes)
        if self._unknown:
            return np.full(self.n_classes, np.nan)
        for c, (t, share) in enumerate(zip(self.places, self.shares, strict=True)):
            scores = self._scores(c) - offsets
            above = np.sum(scores > scores[..., t, None], axis=-1)
            recall[t] += share * np.mean(above < k)
        return recall

    def best_offsets(self, metric="ba", phi=None):
        """Return the threshold of each class at which a metric is best: one vector, found class by class in turn.

        Parameters
        ----------
        metric : {"ba", "accuracy", "macro_f1", "weighted_f1"} or callable
            Balanced accuracy, which is macro recall; or another; or a function of confusion matrices (n, T, T) and
            shares phi (T,) that returns (n,) values, of which the highest is best.
        phi : (T,) array, optional
            Share of each class in the test set, up to a factor; by default all are equal.

        Returns
        -------
        (T,) array
            Thresholds, with mean 0: what all have in common changes no answer.

        Examples
        --------
        >>> import numpy as np
        >>> means = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 0.0], [0.0, 1.0, 1.0]])  # the second score is 1 too high
        >>> m = ManyMetrics(means, np.tile(np.eye(3), (3, 1, 1)))
        >>> print(round(m.ba(), 4), round(m.ba(m.best_offsets()), 4))
        0.5842 0.6337
        """
        value, phi = goal(metric), self._phi(np.ones(self.n_classes) if phi is None else phi)
        if self._unknown:
            return np.full(self.n_classes, np.nan)
        if self.n_classes <= 3:
            return self._polished(self._searched(value, phi), value, phi)
        return self._searched(value, phi)

    # ---- how

    def _searched(self, value, phi):
        """Return offsets (T,) by ascent along one of them at a time, on quasi-random scores."""
        T, K = self.n_classes, self.means.shape[0]
        n = max(64, min(POINTS, SEARCHED // (K * T)))
        scores = np.concatenate([self._scores(c, slice(1))[0, :n] for c in range(K)])
        place, weight = np.repeat(self.places, n), np.repeat(self.shares / n, n)
        offsets = np.average(self.means, axis=0, weights=self.shares)  # all scores on one level
        best = -np.inf
        for start in (np.zeros(T), offsets):  # from the trained thresholds, or from the levels, whichever is better
            height = float(value(self.confusion(start)[None], phi)[0])
            offsets, best = (start, height) if height > best else (offsets, best)
        start, offsets = offsets, offsets.copy()
        for sweep in range(SWEEPS):
            for t in range(T):
                others = scores - offsets
                others[:, t] = -np.inf
                answer = others.argmax(axis=1)
                gap = scores[:, t] - others[np.arange(len(others)), answer]  # above its threshold the answer is t
                width = 0.5**sweep * np.ptp(np.quantile(gap, [0.001, 0.999]))
                tried = offsets[t] + width * np.linspace(-1.0, 1.0, GRID)
                heights = value(_confusions_along(tried, gap, place, answer, weight, t, T), phi)
                if heights.max() > heights[GRID // 2]:
                    offsets[t] = tried[heights.argmax()]
        gains = value(self._confusions(offsets), phi) - value(self._confusions(start), phi)
        gains = gains[1:] if len(gains) > 1 else gains  # not on the points of the search
        doubt = np.std(gains, ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
        if not gains.mean() > 2.0 * doubt:  # the resolution of the points
            offsets = start
        return offsets - offsets.mean()

    def _polished(self, offsets, value, phi):
        """Return offsets (T,) where the exact confusion matrix is best, near those given."""
        from scipy.optimize import minimize

        def height(free):
            return -float(value(self.confusion(np.r_[0.0, free])[None], phi)[0])

        start, scale = offsets[1:] - offsets[0], np.sqrt(np.trace(self.overlaps.mean(axis=0)) / self.n_classes)
        simplex = np.vstack([start, start + 0.03 * max(scale, 1e-12) * np.eye(start.size)])
        options = {"initial_simplex": simplex, "xatol": 1e-7 * max(scale, 1e-12), "fatol": 1e-13, "maxfev": 200}
        offsets = np.r_[0.0, minimize(height, start, method="Nelder-Mead", options=options).x]
        return offsets - offsets.mean()

    def _offsets(self, offsets):
        if offsets is None:
            return np.zeros(self.n_classes)
        offsets = real_array("offsets", offsets, 1)
        if offsets.shape != (self.n_classes,):
            raise ValueError(f"offsets must have one entry for each of {self.n_classes} classes, got {offsets.shape}")
        return offsets

    def _phi(self, phi):
        phi = in_range("phi", real_array("phi", phi, 1), 0.0)
        if phi.shape != (self.n_classes,) or not phi.sum() > 0.0:
            raise ValueError(f"phi must be {self.n_classes} shares with a sum > 0, got shape {phi.shape}")
        return phi / phi.sum()

    def _confusions(self, offsets):
        """Return confusion matrices (n, T, T) whose mean is the result: one if it is exact."""
        T, exact = self.n_classes, self.n_classes <= 3
        confusion = np.zeros((1 if exact else REPLICATES, T, T))
        if self._unknown:
            return np.full_like(confusion, np.nan)
        for c, (t, share) in enumerate(zip(self.places, self.shares, strict=True)):
            if exact:
                confusion[0, t] += share * _largest(self.means[c] - offsets, self.overlaps[c])
            else:
                answers = np.argmax(self._scores(c) - offsets, axis=-1)
                confusion[:, t] += share * np.stack([np.bincount(row, minlength=T) for row in answers]) / POINTS
        return confusion

    def _scores(self, c, sets=slice(None)):
        """Return quasi-random scores (REPLICATES, POINTS, T) of a cluster, or some of the sets."""
        values, basis = np.linalg.eigh(self.overlaps[c])
        root = basis * np.sqrt(np.maximum(values, 0.0))
        return self.means[c] + _normals(self.n_classes)[sets] @ root.T


def _f1(confusion, phi):
    right = phi * np.diagonal(confusion, axis1=-2, axis2=-1)
    return 2.0 * right / (phi + phi @ confusion)


GOALS = {
    "ba": lambda confusion, phi: np.diagonal(confusion, axis1=-2, axis2=-1).mean(axis=-1),
    "accuracy": lambda confusion, phi: np.diagonal(confusion, axis1=-2, axis2=-1) @ phi,
    "macro_f1": lambda confusion, phi: _f1(confusion, phi).mean(axis=-1),
    "weighted_f1": lambda confusion, phi: _f1(confusion, phi) @ phi,
}


def goal(metric):
    """Return the function of confusion matrices (n, T, T) and shares (T,) behind a name, or the function given."""
    if callable(metric):
        return given_function("metric", metric, "confusion matrices and shares")
    return GOALS[one_of("metric", metric, tuple(GOALS))]


def _confusions_along(tried, gap, place, answer, weight, t, T):
    """Return the confusion matrices (n, T, T) of ascending thresholds of class t, where others stay."""
    n = tried.size
    below = np.searchsorted(tried, gap)  # number of thresholds that the sample exceeds: those have the answer t
    cells = (place * T + answer) * (n + 1) + below
    mass = np.bincount(cells, weight, T * T * (n + 1)).reshape(T, T, n + 1).cumsum(axis=-1)
    tail = np.moveaxis(mass[..., :-1], -1, 0).copy()  # not exceeded: the answer is another
    tail[..., t] += mass[..., -1].sum(axis=-1) - tail.sum(axis=-1)
    return tail


@functools.lru_cache(maxsize=4)
def _normals(T):
    """Return quasi-random standard normals (REPLICATES, POINTS, T), the same in every run."""
    from scipy.stats import qmc

    sets = [qmc.Sobol(T, scramble=True, rng=seed).random(POINTS) for seed in range(REPLICATES)]
    return ndtri(np.clip(np.stack(sets), 1e-16, 1.0 - 1e-16))


def _largest(mean, cov):
    """Return the probabilities (T,) that each of T ≤ 3 Gaussian scores is the largest; ties are shared."""
    T = len(mean)
    chances = np.empty(T)
    for j in range(T):
        others = [i for i in range(T) if i != j]
        change = np.eye(T)[j] - np.eye(T)[others]  # score j must exceed the others
        gap, q = change @ mean, change @ cov @ change.T
        scale = _TINY * max(np.abs(np.diagonal(cov)).max(), 1e-300)
        chances[j] = _positive(gap, np.where(np.abs(q) <= scale, 0.0, q))
    return chances / chances.sum()


def _positive(gap, q):
    """Return the probability that one or two Gaussians, of means gap and covariance q, are positive."""
    with np.errstate(invalid="ignore", divide="ignore"):
        z = np.where((np.diagonal(q) == 0.0) & (gap == 0.0), 0.0, gap / np.sqrt(np.maximum(np.diagonal(q), 0.0)))
    if len(gap) == 1:
        return float(ndtr(z[0]))
    if np.any(np.isinf(z)) or np.any(np.diagonal(q) == 0.0):
        return float(np.prod(ndtr(z)))
    rho = float(np.clip(q[0, 1] / np.sqrt(q[0, 0] * q[1, 1]), -1.0, 1.0))
    rest = np.sqrt((1.0 - rho) * (1.0 + rho))
    if rest < 1e-7:  # one number decides both
        return float(ndtr(z.min())) if rho > 0.0 else float(max(0.0, ndtr(z[0]) - ndtr(-z[1])))
    # P = ∫ φ(u) Φ((z₁ + ρu)/√(1 - ρ²)) du over u > -z₀, on panels that are short where Φ changes
    centre = -z[1] / rho if rho != 0.0 else 0.0
    width = min(1.0, rest / abs(rho)) if rho != 0.0 else 1.0
    edges = np.r_[np.linspace(-_Z, _Z, 18), centre + width * np.arange(-9.0, 9.5, 1.5), -z[0]]
    edges = np.unique(np.clip(edges, max(-z[0], -_Z), _Z))
    size = np.diff(edges)[:, None]
    u = edges[:-1, None] + size * _X
    density = np.exp(-0.5 * u**2) / np.sqrt(2.0 * np.pi)
    return float(np.sum(size * _W * density * ndtr((z[1] + rho * u) / rest)))
