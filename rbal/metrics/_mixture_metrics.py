"""The metrics of scores that are mixtures of Gaussians, one for each cluster of a class.

:class:`MixtureLaw` answers what ``_one_variance.py`` answers for one Gaussian a class. The true log-odds are not a line
here, and need not rise with the score. So the best threshold is the cheapest of all crossings, and the line of
calibration is the one that Cox's regression would find.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, logit, logsumexp, ndtr

from .._support.validation import broadcast, given_function, in_range, one_of, positive_int, real_array
from . import _formulas as formulas
from ._one_variance import _SIGMAS, broadcast_first
from ._probabilities import MOST_POINTS, checked, line_of
from ._theory import _NODES, _STEP, Metrics, _mean_loss, _share_at

_FAR = 1e8  # deviations beyond all clusters: only the widest one has mass left
_GRID = np.linspace(-8.0, 8.0, 65)  # deviations from each cluster at which crossings of the densities are searched
_CROSSINGS = np.linspace(-12.0, 12.0, 193)  # likewise crossings of the true log-odds
_FINEST = 16  # nodes to a deviation of the narrowest cluster


class MixtureLaw:
    """Probabilities and thresholds of scores that are N(mean, q) in each cluster."""

    def calibration(self, phi_pos, link=None):
        """Return slope and intercept of the line that comes closest to the true log-odds, in log loss.

        For one Gaussian a class with one variance the true log-odds are this line. Here it is what Cox's regression of
        the outcomes on the claimed log-odds finds with endless samples; see :meth:`log_odds` for the truth.

        Parameters
        ----------
        phi_pos : float or array
            Share of positives in the test set, > 0 and < 1.
        link : Link, optional
            Through which claims are made; by default the score is the claimed log-odds.

        Returns
        -------
        Link
        """
        return self.linked(checked(link)).best_link(phi_pos)

    def linked(self, link):
        """Return the metrics of claimed log-odds, slope·Δ + intercept, in the place of scores."""
        a, c = (part[..., None] for part in line_of(link))
        return type(self)(a * self.mean + c, a**2 * self.q, self.signs, self.shares)

    def _single_problems(self, link, phi_pos):
        """Return an array of pairs: metrics of claimed log-odds with one number each, and the share of positives."""
        linked = self.linked(checked(link))
        shape, points = linked._points(in_range("phi_pos", phi_pos, 0.0, 1.0))
        pairs = np.empty(shape, object)
        for at, one, (phi,) in points:
            pairs[at] = one, phi
        return pairs

    def _points(self, *arrays):
        """Return the shape to which these metrics and the arrays broadcast, and (index, metrics, numbers) of each."""
        arrays = [np.asarray(values, float) for values in arrays]
        shape = np.broadcast_shapes(self.mean.shape[:-1], *(values.shape for values in arrays))
        mean, q = (np.broadcast_to(values, (*shape, self.signs.size)) for values in (self.mean, self.q))
        arrays = [np.broadcast_to(values, shape) for values in arrays]
        return shape, (
            (at, type(self)(mean[at], q[at], self.signs, self.shares), [float(values[at]) for values in arrays])
            for at in np.ndindex(shape)
        )

    def _breaks(self):
        """Return scores (n,) between which the densities of all clusters are smooth, and beyond which they vanish."""
        return np.ravel(self.mean[..., None] + np.sqrt(self.q)[..., None] * _SIGMAS)

    def _reach(self):
        """Return scores below and above all clusters."""
        return self._ends(37.0)

    def _score_at(self, log_odds, phi):
        """Return the cheapest threshold where one false alarm costs exp(log_odds) misses."""
        if self.signs.size == 2 and not np.any(self.q == 0.0):
            with np.errstate(divide="ignore"):
                level = np.asarray(log_odds, float) - logit(phi)
            cuts = np.stack(np.broadcast_arrays(-np.inf, np.nan_to_num(self._crossing(level), nan=np.inf), np.inf))
            cost = phi * self.fnr(cuts) + np.exp(log_odds) * (1.0 - np.asarray(phi)) * self.fpr(cuts)
            cheapest = np.take_along_axis(cuts, np.argmin(cost, axis=0)[None], axis=0)[0]
            return np.where(self._unknown, np.nan, cheapest)[()]
        shape, points = self._points(log_odds, phi)
        best = np.full(shape, np.nan)
        for at, one, (level, share) in points:
            if one._unknown:
                continue
            with np.errstate(invalid="ignore"):
                cuts = one._rising(lambda s, one=one, share=share, level=level: one.log_odds(s, share) - level)
            cuts = np.r_[-np.inf, cuts, np.inf]
            cost = share * one.fnr(cuts) + np.exp(level) * (1.0 - share) * one.fpr(cuts)
            best[at] = cuts[np.argmin(cost)]
        return best[()]

    def _rising(self, function):
        """Return the scores (n,) at which a function of scores rises through 0, for metrics with one number each."""
        grid = np.unique(self.mean[:, None] + np.sqrt(self.q)[:, None] * _CROSSINGS)
        values = function(grid)
        turns = np.flatnonzero((values[:-1] < 0.0) & (values[1:] >= 0.0))
        return np.array([brentq(function, grid[k], grid[k + 1], xtol=1e-14) for k in turns])

    def _steepness(self, cut):
        """Return the slope of the true log-odds against the score."""
        slopes = []
        for label in (1, -1):
            _, q, shares = self._of(label)
            z = self._z(label, cut)
            with np.errstate(invalid="ignore", over="ignore"):
                height = shares * np.exp(-0.5 * (z**2 - np.min(z**2, axis=-1, keepdims=True))) / np.sqrt(q)
                slopes.append(np.sum(height * z / np.sqrt(q), axis=-1) / np.sum(height, axis=-1))
        return (slopes[0] - slopes[1])[()]

    def _with_precision(self, precision, phi):
        """Return the lowest threshold with this precision, which may rise and fall with the threshold."""
        shape, points = self._points(precision, phi)
        cuts = np.full(shape, np.nan)
        for at, one, (precision, share) in points:
            if one._unknown:
                continue
            if precision <= share:  # that of all answers positive, whatever rounding makes of it
                cuts[at] = -np.inf
                continue
            crossings = one._rising(lambda s, one=one, share=share, precision=precision: one.ppv(share, s) - precision)
            cuts[at] = crossings[0] if crossings.size else np.nan
        return cuts[()]


class MixtureMetrics(MixtureLaw, Metrics):
    """Every metric of scores whose clusters are distributed as N(mean, q).

    Leading axes broadcast with thresholds and shares of positives.

    Parameters
    ----------
    mean, q : (..., K) array
        Mean and variance of the scores of each cluster, q ≥ 0.
    signs : (K,) array
        +1 for clusters of the positive class, -1 for the others.
    shares : (K,) array
        Share of each cluster in its class.

    Examples
    --------
    A positive class of two clusters.

    >>> m = MixtureMetrics([0.5, 2.0, -1.0], [1.0, 0.25, 1.0], signs=[1, 1, -1], shares=[0.5, 0.5, 1.0])
    >>> print(f"{m.ba():.4f} {m.auc():.4f} {m.best_threshold():.4f} {m.best_ba():.4f}")
    0.8435 0.9260 0.2098 0.8469
    """

    def __init__(self, mean, q, signs, shares):
        given = {"mean": mean, "q": q}
        self.mean, self.q = broadcast(**{name: real_array(name, a, finite=False) for name, a in given.items()})
        self.signs, self.shares = (
            real_array("signs", signs, 1),
            in_range("shares", real_array("shares", shares, 1), 0.0),
        )
        if np.any(self.q < 0):
            raise ValueError(f"q must be >= 0, got {self.q[self.q < 0].flat[0]:g}")
        K = self.signs.size
        if self.mean.shape[-1:] != (K,) or self.shares.shape != (K,):
            raise ValueError(f"mean, q and shares must have one entry for each of the {K} signs, got {self.mean.shape}")
        if set(self.signs) != {1.0, -1.0}:
            raise ValueError(f"signs must be +1 and -1, at least one each, got {self.signs}")
        for label in (1.0, -1.0):
            total = self.shares[self.signs == label].sum()
            if abs(total - 1.0) > 1e-6:
                raise ValueError(f"shares must add up to 1 in each class, got {total:g} for the sign {label:+g}")
        pos, neg = (self._mean_of(label, self.mean) for label in (1, -1))
        self.r, self.b = pos - neg, -0.5 * (pos + neg)

    @property
    def _sizes(self):
        """The arrays with which thresholds and shares must broadcast."""
        return {"mean": self.mean[..., 0]}

    @property
    def _unknown(self):
        """Where there is no solution, so that no metric has a value."""
        return np.isnan(self.mean).any(axis=-1) | np.isnan(self.q).any(axis=-1)

    def _of(self, label):
        """Return mean, q (..., k) and shares (k,) of the clusters of a class."""
        mine = self.signs == label
        return self.mean[..., mine], self.q[..., mine], self.shares[mine]

    def _mean_of(self, label, values):
        """Return the mean over the clusters of a class of values (..., K)."""
        mine = self.signs == label
        return np.asarray(values[..., mine] @ self.shares[mine])

    def _z(self, label, threshold):
        """Return by how many deviations the mean of each cluster of a class lies above the threshold, (..., k)."""
        mean, q, _ = self._of(label)
        gap = mean - broadcast_first(threshold=threshold, mean=mean[..., 0])[..., None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            z = gap / np.sqrt(q)
        return np.where((q == 0) & (gap == 0), 0.0, z)  # a tie counts half

    def _tail(self, label, threshold, side):
        """Return the share of a class above (side 1) or below (side -1) the threshold."""
        return (ndtr(side * self._z(label, threshold)) @ self.shares[self.signs == label])[()]

    def density(self, delta, label):
        """Return the probability density of the test score of class ``label`` (+1 or -1) at ``delta``."""
        one_of("label", label, (1, -1))
        if np.any(self.q == 0):
            raise ValueError("q must be > 0 for a density: where it is 0 every sample of a cluster has the same score")
        return np.exp(self._log_density(broadcast_first(delta=delta, mean=self.mean[..., 0]), label))[()]

    def cluster_density(self, delta):
        """Return the density of the test score of each cluster at ``delta``, with the clusters as the last axis."""
        delta = broadcast_first(delta=delta, mean=self.mean[..., 0])
        with np.errstate(over="ignore"):
            z = (delta[..., None] - self.mean) / np.sqrt(self.q)
            return np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi * self.q)

    def _log_density(self, delta, label):
        _, q, shares = self._of(label)
        z = self._z(label, delta)
        with np.errstate(over="ignore"):
            return logsumexp(-0.5 * z * z - 0.5 * np.log(2.0 * np.pi * q), b=shares, axis=-1)

    def log_odds(self, delta, phi_pos):
        """Return the true log-odds of the positive class at scores ``delta``, which are not linear in the score.

        Parameters
        ----------
        delta : float or array
            Scores.
        phi_pos : float or array
            Share of positives in the test set.

        Returns
        -------
        float or ndarray
        """
        phi = self._phi(phi_pos)
        delta = broadcast_first(delta=delta, phi_pos=phi, **self._sizes)
        pos, neg = (self._log_density(delta, label) for label in (+1, -1))
        if (lost := np.isneginf(pos) & np.isneginf(neg)).any():
            far = np.broadcast_to(delta, lost.shape)[lost]
            raise ValueError(f"delta must be within 1e150 deviations of the clusters, got {far.flat[0]:g}")
        with np.errstate(divide="ignore"):
            return (logit(phi) + pos - neg)[()]

    def _rates(self, threshold=0.0):
        """Return all four rates."""
        return formulas.Rates(*(self._tail(*args) for args in self._four(threshold)))

    @staticmethod
    def _four(threshold):
        return (+1, threshold, 1), (-1, threshold, 1), (-1, threshold, -1), (+1, threshold, -1)

    def tpr(self, threshold=0.0):
        """Return the true positive rate (recall, sensitivity)."""
        return self._tail(+1, threshold, 1)

    def fpr(self, threshold=0.0):
        """Return the false positive rate."""
        return self._tail(-1, threshold, 1)

    def tnr(self, threshold=0.0):
        """Return the true negative rate (specificity)."""
        return self._tail(-1, threshold, -1)

    def fnr(self, threshold=0.0):
        """Return the false negative rate."""
        return self._tail(+1, threshold, -1)

    def _shortfall(self, label, kappa):
        mean, q, shares = self._of(label)
        gap, s = np.asarray(kappa)[..., None] - label * mean, np.sqrt(q)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            t = gap / s
            positive = s * np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi) + gap * ndtr(t)
        return (np.where(q == 0, np.maximum(gap, 0.0), positive) @ shares)[()]

    def test_loss(self, g, phi_pos):
        """Return the mean test loss of any function of score and label; see :meth:`rbal.Metrics.test_loss`."""
        g = given_function("g", g, "a score and a label")
        phi, losses = self._phi(phi_pos), []
        for label in (1, -1):
            mean, q, shares = self._of(label)
            losses.append(_mean_loss(g, label, mean, np.sqrt(q)) @ shares)
        return (phi * losses[0] + (1.0 - phi) * losses[1])[()]

    def _purity(self, label, threshold, phi_pos, *, right=True):
        """Return the share of class ``label`` among the samples answered so (or otherwise, if not ``right``)."""
        phi, side = np.asarray(self._phi(phi_pos, threshold)), label if right else -label
        low, high = self._ends(_FAR)
        threshold = np.clip(broadcast_first(threshold=threshold, mean=low), low, high)  # beyond: the widest cluster
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            log_of, log_other = (
                logsumexp(log_ndtr(side * self._z(y, threshold)), b=self.shares[self.signs == y], axis=-1)
                for y in (label, -label)
            )
            log_ratio = np.where(np.isneginf(log_of) & np.isneginf(log_other), 0.0, log_other - log_of)
            phi_of, phi_other = (phi, 1.0 - phi) if label > 0 else (1.0 - phi, phi)
        return _share_at(log_ratio, phi_of, phi_other)

    def _ends(self, deviations):
        """Return scores that many deviations below and above all clusters."""
        reach = deviations * np.sqrt(self.q)
        return (self.mean - reach).min(axis=-1), (self.mean + reach).max(axis=-1)

    def auc(self):
        """Return the area under the ROC curve, P(Δ⁺ > Δ⁻): a sum over pairs of clusters."""
        (up, q_up, shares_up), (down, q_down, shares_down) = self._of(1), self._of(-1)
        gap = up[..., :, None] - down[..., None, :]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            q = q_up[..., :, None] + q_down[..., None, :]
            z = np.where((q == 0) & (gap == 0), 0.0, gap / np.sqrt(q))
        return (ndtr(z) @ shares_down @ shares_up)[()]

    def auprc(self, phi_pos):
        """Return the area under the precision–recall curve: the mean of the precision over scores of positives."""
        phi, total = np.asarray(self._phi(phi_pos)), 0.0
        mean, q, shares = self._of(+1)
        narrowest = np.sqrt(self.q[self.q > 0].min(initial=np.inf))
        for k in range(shares.size):
            widest = np.sqrt(np.fmax(q[..., k], 0.0).max(initial=0.0))
            finer = max(1, int(np.ceil(widest / narrowest * _FINEST * _STEP)))  # steps into which a node is cut
            step = _STEP / finer
            z = _NODES if finer == 1 else np.arange(_NODES[0], _NODES[-1] + step / 2, step)
            cuts = mean[..., k, None] + np.sqrt(q[..., k, None]) * z
            precision = self._with_axis()._purity(+1, cuts, phi[..., None])
            total = total + shares[k] * (precision @ (step * np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)))
        return total

    def _with_axis(self):
        """Return the same metrics with one more axis, for thresholds."""
        return MixtureMetrics(self.mean[..., None, :], self.q[..., None, :], self.signs, self.shares)

    def _curve(self, n):
        """Return these metrics with one more axis, and n thresholds along it, from +∞ past all clusters to -∞."""
        n = positive_int("n", n, MOST_POINTS)
        if n < 2:
            raise ValueError(f"n must be at least 2, got {n}")
        K = self.signs.size
        cuts = [  # each cluster has its part of them, spread over its own deviations
            self.mean[..., k, None] + np.sqrt(self.q[..., k, None]) * np.linspace(-8.5, 8.5, -(-n // K))
            for k in range(K)
        ]
        cuts = np.sort(np.concatenate(cuts, axis=-1), axis=-1)
        threshold = cuts[..., np.linspace(cuts.shape[-1] - 1, 0, n).round().astype(int)]
        threshold[..., 0], threshold[..., -1] = np.inf, -np.inf
        return self._with_axis(), threshold

    def best_threshold(self):
        """Return the threshold of the highest balanced accuracy, where the densities of the classes cross."""
        return self._best()[0]

    def best_ba(self):
        """Return the balanced accuracy at :meth:`best_threshold`; moving the threshold gains best_ba() - ba()."""
        return self._best()[1]

    def _best(self):
        """Return the best threshold and its balanced accuracy, from all roots of equal densities."""
        best, rest = np.empty((2, *self.mean.shape[:-1])), np.ones(self.mean.shape[:-1], bool)
        if self.signs.size == 2:
            cut = self._crossing(0.0)
            value, rest = self.ba(cut), np.any(self.q == 0.0, axis=-1)
            good = value > 0.5  # neither NaN nor worse than one answer for all
            best[0], best[1] = np.where(good, cut, np.inf), np.where(good, value, 0.5)
        best[:, self._unknown] = np.nan
        rest = rest & ~self._unknown
        for at in zip(*np.nonzero(rest), strict=True) if rest.ndim else [()] * int(rest):
            one = MixtureMetrics(self.mean[at], self.q[at], self.signs, self.shares)
            cuts = one._crossings()
            values = one.ba(cuts) if cuts.size else np.zeros(0)
            top = int(np.argmax(values)) if cuts.size else -1
            best[(slice(None), *at)] = (cuts[top], values[top]) if top >= 0 and values[top] > 0.5 else (np.inf, 0.5)
        return best[0][()], best[1][()]

    def _crossing(self, level):
        """Return the score (...) at which the log-ratio of the densities rises through a level, of one cluster a class.

        The log-ratio is a parabola, of which one root rises. It is NaN where there is none.

        Parameters
        ----------
        level : float or (...) array

        Returns
        -------
        (...) array
        """
        (up, q_up, _), (down, q_down, _) = self._of(1), self._of(-1)
        origin, d, q_up, q_down = down[..., 0], (up - down)[..., 0], q_up[..., 0], q_down[..., 0]
        with np.errstate(invalid="ignore", divide="ignore"):
            a, b = 0.5 / q_down - 0.5 / q_up, d / q_up
            c = 0.5 * np.log(q_down / q_up) - 0.5 * d * b - level
            root = np.sqrt(b * b - 4.0 * a * c)
            return origin + np.where(b > 0.0, -2.0 * c / (b + root), 0.5 * (root - b) / a)

    def _crossings(self):
        """Return the scores (n,) at which the density of the positives rises above that of the negatives."""
        if np.any(self.q == 0):
            return np.sort(np.r_[0.5 * (self.mean[:, None] + self.mean).ravel()])
        grid = np.unique(self.mean[:, None] + np.sqrt(self.q)[:, None] * _GRID)
        gap = self.log_odds(grid, 0.5)
        at = np.flatnonzero((gap[:-1] < 0) & (gap[1:] >= 0))
        low, high = grid[at], grid[at + 1]
        for _ in range(60):
            middle = 0.5 * (low + high)
            below = self.log_odds(middle, 0.5) < 0
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return 0.5 * (low + high)
