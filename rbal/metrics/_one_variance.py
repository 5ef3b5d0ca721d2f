"""The law of the scores of a linear classifier on classes of one covariance: a Gaussian a class, of one variance.

Probabilities and thresholds need of it: the true log-odds and their inverse, the law after a link, its entries where it
is an array, and the intervals in which its densities are smooth. For mixtures of Gaussians with different variances,
whose log-odds are not a line, ``_mixture_metrics.py`` has the same methods.
"""

import numpy as np
from scipy.special import logit

from .._support.validation import broadcast, in_range, real_array
from ._decisions import Decisions
from ._probabilities import Link, Probabilities, checked, line_of

_SIGMAS = np.r_[-12.0, -9.5, -7.5:8.0:1.5, 9.5, 12.0]  # ends of panels around a class mean, in deviations


def broadcast_first(**arrays):
    """Return the first of these, scores or thresholds, as a float array, after a check that it broadcasts with all."""
    name, value = next(iter(arrays.items()))
    arrays[name] = real_array(name, value, finite=False)
    broadcast(**arrays)
    return arrays[name]


class OneVariance(Probabilities, Decisions):
    """Probabilities and thresholds of scores N(y r/2 - b, q)."""

    def calibration(self, phi_pos, link=None):
        r"""Return slope and intercept of the true log-odds against the claimed ones, as a :class:`rbal.metrics.Link`.

        Given a score Δ the true log-odds are log(φ⁺/φ⁻) + (r/q)(Δ + b): a line of slope r/q. Slope 1 and intercept 0
        are honest. A slope below 1 is overconfidence, a negative intercept means that too many positives are claimed.
        This is what Cox's regression of the outcomes on the claimed log-odds estimates. The score of logistic
        regression, x·J/√L - b, is its claimed log-odds, so that no link is needed; for scores in other units, as those
        of a support vector machine, the line itself is the link that makes them honest.

        Parameters
        ----------
        phi_pos : float or array
            Share of positives in the test set. That of the training set is in b.
        link : Link, optional
            Through which claims are made; by default the score is the claimed log-odds.

        Returns
        -------
        Link
            A named tuple (slope, intercept), which is also the function from claimed log-odds to true probabilities;
            NaN where q = 0.

        Examples
        --------
        >>> from rbal import Metrics
        >>> slope, intercept = Metrics(q=4.0, r=2.0, b=0.5).calibration(phi_pos=0.2)
        >>> print(f"{slope:.4f} {intercept:.4f}")
        0.5000 -1.1363
        """
        linked = self.linked(checked(link))
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(linked.q > 0, linked.r / linked.q, np.nan)
            intercept = logit(linked._phi(phi_pos)) + slope * linked.b
        return Link(slope[()], intercept[()])

    def log_odds(self, delta, phi_pos):
        """Return the true log-odds of the positive class at scores ``delta``, for a share ``phi_pos`` of positives."""
        slope, intercept = self.calibration(phi_pos)
        with np.errstate(over="ignore"):  # beyond all numbers the odds are infinite
            return slope * broadcast_first(delta=delta, slope=slope, phi_pos=intercept) + intercept

    def linked(self, link):
        """Return the metrics of claimed log-odds, slope·Δ + intercept, in the place of scores."""
        a, c = line_of(link)
        return type(self)(a**2 * self.q, a * self.r, a * self.b - c)

    def _single_problems(self, link, phi_pos):
        """Return an array of pairs: metrics of claimed log-odds with one number each, and the share of positives."""
        linked = self.linked(checked(link))
        arrays = broadcast(q=linked.q, r=linked.r, b=linked.b, phi_pos=in_range("phi_pos", phi_pos, 0.0, 1.0))
        pairs = np.empty(arrays[0].shape, object)
        for at in np.ndindex(pairs.shape):
            q, r, b, phi = (float(a[at]) for a in arrays)
            pairs[at] = type(self)(q, r, b), phi
        return pairs

    def _breaks(self):
        """Return scores (n,) between which the densities of both classes are smooth, and beyond which they vanish."""
        middles = 0.5 * self.r * np.array([[1.0], [-1.0]]) - self.b
        return np.ravel(middles + np.sqrt(self.q) * _SIGMAS)

    def _reach(self):
        """Return scores below and above all of both classes."""
        half = 0.5 * np.abs(self.r) + 37.0 * np.sqrt(self.q)
        return -self.b - half, -self.b + half

    def _score_at(self, log_odds, phi):
        """Return the score with these true log-odds; infinite if a higher score does not mean higher log-odds.

        Then no threshold is cheaper than one answer for all, and the share of positives decides which.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = log_odds - logit(phi)
            inside = np.where(self.q == 0.0, 0.0, gap * (self.q / self.r)) - self.b
        cut = np.where(self.r > 0.0, inside, np.where(gap < 0.0, -np.inf, np.inf))
        return np.where(self._unknown, np.nan, cut)[()]

    def _steepness(self, cut):
        """Return the slope of the true log-odds against the score."""
        return self.calibration(0.5).slope
