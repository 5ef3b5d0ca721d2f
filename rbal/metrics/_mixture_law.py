"""The law of scores that are mixtures of Gaussians: what ``_gaussian.py`` answers for one Gaussian a class.

The true log-odds are no line here, and need not rise with the score. So the best threshold is the cheapest of all
crossings, and the line of calibration is the one that Cox's regression would find.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import logit

from .._support.validation import in_range
from ._gaussian import _SIGMAS
from ._probabilities import checked, line_of

_GRID = np.linspace(-12.0, 12.0, 193)  # deviations from each cluster at which crossings are looked for


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

    def _apart(self, link, phi_pos):
        """Return an array of pairs: metrics of claimed log-odds with one number each, and the share of positives."""
        seen = self.linked(checked(link))
        shape, points = seen._points(in_range("phi_pos", phi_pos, 0.0, 1.0))
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
        grid = np.unique(self.mean[:, None] + np.sqrt(self.q)[:, None] * _GRID)
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
        found = np.full(shape, np.nan)
        for at, one, (wanted, share) in points:
            if one._unknown:
                continue
            if wanted <= share:  # that of all answers positive, whatever rounding makes of it
                found[at] = -np.inf
                continue
            cuts = one._rising(lambda s, one=one, share=share, wanted=wanted: one.ppv(share, s) - wanted)
            found[at] = cuts[0] if cuts.size else np.nan
        return found[()]
