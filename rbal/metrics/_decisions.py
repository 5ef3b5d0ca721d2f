r"""Thresholds for a wanted precision, recall or cost, how far they scatter when they are tuned, and cost curves.

A threshold that is tuned on held-out scores is a random number. For a wanted recall it is a quantile of the scores of
positives, for a wanted precision the root of a ratio of two shares: both are smooth functions of shares of samples,
with an error of order n^(-1/2) by the delta method. The threshold of lowest cost is the lowest point of a random walk
on a parabola, and its error is of order n^(-1/3): Chernoff's law.
"""

from typing import NamedTuple

import numpy as np

from .._support.validation import broadcast, in_range, number, positive_int, real_array
from ._metric_record import two_prices

MOST = 2**53  # held-out samples: a double counts no further
_HALVINGS = 200  # of an interval of scores, until no double is left inside
_CHERNOFF = 0.26355964  # variance of the highest point of W(t) - t², W a two-sided Brownian motion


class Threshold(NamedTuple):
    """A threshold, what it gives, and by how much all of it scatters where the threshold is tuned on few samples.

    Numbers or arrays. Standard errors are NaN where the numbers of held-out samples were not given.
    """

    threshold: float
    recall: float
    precision: float
    threshold_se: float
    recall_se: float  # of the true recall on endless data, at the threshold that was tuned
    precision_se: float


class UncertainCost(NamedTuple):
    """Mean cost of an answer while the share of positives in the test set is not known; numbers or arrays."""

    threshold: float
    cost: float  # mean over the shares
    spread: float  # standard deviation over the shares
    informed: float  # mean cost with the best threshold for each share
    safe_threshold: float  # with the same cost at every share
    safe_cost: float


class Decisions:
    """Thresholds and costs of scores with any law."""

    def threshold_for(self, phi_pos, *, recall=None, precision=None, costs=None, n_pos=None, n_neg=None):
        """Return the threshold for a wanted recall or precision or for the lowest cost, and its standard error.

        Parameters
        ----------
        phi_pos : float or array
            Share of positives in the test set.
        recall, precision : float or array, optional
            Wanted true positive rate, or wanted positive predictive value: the lowest threshold that has it. Where all
            thresholds have it, that is -inf, and where none has it, NaN.
        costs : (float, float), optional
            Costs of a missed positive and of a false alarm. One of recall, precision and costs is to be given.
        n_pos, n_neg : int, optional
            Held-out samples of each class on which the threshold is tuned: where their own recall or precision (at the
            share ``phi_pos``) is the wanted one, or their own cost is lowest. For a recall only ``n_pos`` counts.

        Returns
        -------
        Threshold
            A named tuple (threshold, recall, precision, threshold_se, recall_se, precision_se).

        Examples
        --------
        >>> from rbal import Metrics
        >>> found = Metrics(q=1.0, r=2.0, b=0.5).threshold_for(0.1, precision=0.5, n_pos=50, n_neg=450)
        >>> print(f"{found.threshold:.3f} ± {found.threshold_se:.3f}, {found.recall:.3f} ± {found.recall_se:.3f}")
        -0.099 ± 0.130, 0.725 ± 0.043
        """
        options = {"recall": recall, "precision": precision, "costs": costs}
        given = [name for name, value in options.items() if value is not None]
        if len(given) != 1:
            raise ValueError(f"one of recall, precision and costs must be given, got {given or 'none'}")
        phi, sizes = self._phi(phi_pos), _sizes(n_pos, n_neg)
        if costs is not None:
            miss, alarm = two_prices(costs)
            at = self._cheapest(phi, miss, alarm)
            error = self._chernoff(at, phi, (miss, alarm), sizes)[0]
        elif recall is not None:
            rate = in_range("recall", recall, 0.0, 1.0)
            broadcast(recall=rate, phi_pos=phi, **self._sizes)
            at = self._lowest(lambda cut: rate - self.tpr(cut))
            error = np.sqrt(rate * (1.0 - rate) / sizes[0]) / _or_nan(self.density(at, +1))
        else:
            precision = in_range("precision", precision, 0.0, 1.0)
            broadcast(precision=precision, phi_pos=phi, **self._sizes)
            at = self._with_precision(precision, phi)
            error = np.sqrt(self._noise(at, sizes)) / _or_nan(np.abs(self._rise(at)))
        tpr, ppv = self.tpr(at), self.ppv(phi, at)
        slopes = self.density(at, +1), ppv * (1.0 - ppv) * np.abs(self._rise(at))
        return Threshold(at, tpr, ppv, error[()], *((slope * error)[()] for slope in slopes))

    def tuning_cost(self, phi_pos, costs=(1.0, 1.0), *, n_pos, n_neg):
        """Return by how much the mean cost exceeds the lowest, after the threshold was tuned on held-out samples.

        Parameters
        ----------
        phi_pos, costs, n_pos, n_neg
            As for :meth:`threshold_for`. The formula is that for many samples.

        Returns
        -------
        float or array

        Examples
        --------
        >>> from rbal import Metrics
        >>> m = Metrics(q=1.0, r=2.0, b=0.5)
        >>> print(f"{m.tuning_cost(0.1, (9.0, 1.0), n_pos=25, n_neg=225):.4f}")
        0.0185
        """
        phi, prices = self._phi(phi_pos), two_prices(costs)
        error, curvature = self._chernoff(self._cheapest(phi, *prices), phi, prices, _sizes(n_pos, n_neg))
        return (0.5 * curvature * error**2)[()]

    def cost_curve(self, n=201, threshold=None):
        """Return the cost curve: the mean cost of an answer against the weight of positives in it.

        With costs of a miss and of an alarm, the weight of positives is w = φ⁺·miss / (φ⁺·miss + φ⁻·alarm). In units of
        the denominator, the cost is w·FNR + (1 - w)·FPR, at most 1/2 for the best threshold.

        Parameters
        ----------
        n : int
            Number of weights from 0 to 1, at least 2; they are the last axis.
        threshold : float, optional
            Of the classifier; by default the best at each weight, which gives the lower envelope of all thresholds.

        Returns
        -------
        weight, cost : arrays

        Examples
        --------
        >>> from rbal import Metrics
        >>> weight, cost = Metrics(q=1.0, r=2.0, b=0.5).cost_curve(n=3)
        >>> print(weight, cost.round(4))
        [0.  0.5 1. ] [0.     0.1587 0.    ]
        """
        curve, weight = self._curve(n)[0], np.linspace(0.0, 1.0, n)
        cut = curve._cheapest(weight, 1.0, 1.0) if threshold is None else number("threshold", threshold, -np.inf)
        cost = weight * curve.fnr(cut) + (1.0 - weight) * curve.fpr(cut)
        return np.broadcast_to(weight, cost.shape), cost

    def uncertain_cost(self, shares, weights=None, *, costs=(1.0, 1.0), threshold=None):
        """Return the mean cost of an answer where the share of positives is known as a distribution only.

        At a fixed threshold the cost is linear in the share, so that its mean depends on the mean share alone. What the
        distribution adds is the spread, and what it would be worth to know the share.

        Parameters
        ----------
        shares : (k,) array
            Possible shares of positives.
        weights : (k,) array, optional
            Their probabilities, up to a factor; by default equal.
        costs : (float, float)
            Costs of a missed positive and of a false alarm.
        threshold : float, optional
            By default the one of lowest mean cost.

        Returns
        -------
        UncertainCost
            A named tuple (threshold, cost, spread, informed, safe_threshold, safe_cost).

        Examples
        --------
        >>> from rbal import Metrics
        >>> found = Metrics(q=1.0, r=2.0, b=0.5).uncertain_cost([0.05, 0.1, 0.3], costs=(5.0, 1.0))
        >>> print(f"{found.cost:.3f} ± {found.spread:.3f}, informed {found.informed:.3f}, safe {found.safe_cost:.3f}")
        0.253 ± 0.079, informed 0.220, safe 0.318
        """
        shares = in_range("shares", real_array("shares", shares, 1), 0.0, 1.0)
        weights = (
            np.ones_like(shares) if weights is None else in_range("weights", real_array("weights", weights, 1), 0.0)
        )
        if weights.shape != shares.shape or not weights.sum() > 0.0:
            raise ValueError(f"weights must be {shares.size} numbers with a sum > 0, got shape {weights.shape}")
        (miss, alarm), weights = two_prices(costs), weights / weights.sum()
        mean = min(float(shares @ weights), 1.0)  # rounding may lead beyond
        cut = self._cheapest(mean, miss, alarm) if threshold is None else real_array("threshold", threshold)[()]
        missed, alarmed = miss * self.fnr(cut), alarm * self.fpr(cut)
        spread = np.sqrt((shares - mean) ** 2 @ weights) * np.abs(missed - alarmed)
        known = [self._cost(self._cheapest(share, miss, alarm), share, miss, alarm) for share in shares]
        safe = self._lowest(lambda at: miss * self.fnr(at) - alarm * self.fpr(at))
        informed = np.moveaxis(np.array(known), 0, -1) @ weights
        return UncertainCost(
            cut, mean * missed + (1.0 - mean) * alarmed, spread, informed[()], safe, (miss * self.fnr(safe))[()]
        )

    def _cost(self, cut, phi, miss, alarm):
        return miss * phi * self.fnr(cut) + alarm * (1.0 - phi) * self.fpr(cut)

    def _cheapest(self, phi, miss, alarm):
        """Return the threshold of lowest cost, infinite where one answer is always the cheaper one."""
        with np.errstate(divide="ignore"):
            return self._score_at(np.log(alarm) - np.log(miss), phi)

    def _with_precision(self, precision, phi):
        """Return the lowest threshold with this precision, which rises with the threshold."""
        at = self._lowest(lambda cut: self.ppv(phi, cut) - precision)
        # all answers positive: their precision is the share of positives, whatever rounding makes of it
        return np.where((np.asarray(precision) <= phi) & ~self._unknown, -np.inf, at)[()]

    def _lowest(self, rising):
        """Return the score at which a function that rises with the threshold is 0, by halving; NaN where it is not."""
        low, high = self._reach()
        shape = np.broadcast_shapes(low.shape, np.shape(rising(low)))
        low, high = (np.broadcast_to(end, shape) for end in (low, high))
        none = (rising(low) > 0.0) | ~(rising(high) >= 0.0)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            up = rising(middle) >= 0.0
            low, high = np.where(up, low, middle), np.where(up, middle, high)
        return np.where(none, np.nan, high)[()]

    def _rise(self, cut):
        """Return the slope of the log-odds of precision against the threshold, f₋/FPR - f₊/TPR."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.density(cut, -1) / self.fpr(cut) - self.density(cut, +1) / self.tpr(cut)

    def _noise(self, cut, sizes):
        """Return the variance of the log-odds of precision over held-out samples of these sizes."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.fnr(cut) / (sizes[0] * self.tpr(cut)) + self.tnr(cut) / (sizes[1] * self.fpr(cut))

    def _chernoff(self, cut, phi, prices, sizes):
        """Return the standard error of the threshold of lowest cost, and the curvature of the cost there."""
        with np.errstate(invalid="ignore", divide="ignore"):
            height = prices[0] * phi * self.density(cut, +1)  # = alarm (1 - φ) f₋ at the lowest cost
            curvature = height * self._steepness(cut)
            noise = height * (prices[0] * phi / sizes[0] + prices[1] * (1.0 - phi) / sizes[1])
            return np.sqrt(_CHERNOFF) * (4.0 * noise / curvature**2) ** (1.0 / 3.0), curvature


def _sizes(n_pos, n_neg):
    """Return both numbers of held-out samples as floats, NaN for those that are not given."""
    return [
        np.nan if n is None else float(positive_int(name, n, MOST)) for name, n in (("n_pos", n_pos), ("n_neg", n_neg))
    ]


def _or_nan(slope):
    """Return a slope, NaN where it is 0."""
    return np.where(slope > 0.0, slope, np.nan)
