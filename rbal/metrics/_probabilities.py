r"""Probabilities that a classifier claims, and how far they are from the truth.

A link turns a score Δ into a claimed probability of the positive class, σ(aΔ + c). What samples with that score really
are follows from the law of the scores in the two classes and from the share of positives. Both are laws on a line, so
that every measure of the difference is an integral over one variable.

The methods that a law must have are listed in ``_one_variance.py``, for one Gaussian a class.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from .._support.validation import broadcast, in_range, number, one_of, positive_int, real_array

_X, _W = np.polynomial.legendre.leggauss(16)
_LOGITS = np.array([-32.0, -16.0, -8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0])  # of σ, around its pole
_FREE = {"platt": (0, 1), "temperature": (0,), "shift": (1,)}  # which of (slope, intercept) is fitted
_FLAT = 1e-290  # curvature of a loss that has none left
_NEWTON = 100  # steps at most; from the standardised scores it takes about six


MOST_POINTS = 2**20  # of a curve, or bins: no picture shows more


class Link(NamedTuple):
    """A way from scores to claimed probabilities of the positive class, σ(slope·Δ + intercept).

    The default is what logistic regression claims: its score is its log-odds. Numbers or arrays that broadcast.

    Attributes
    ----------
    slope, intercept : float or array

    Examples
    --------
    A classifier that was trained on balanced classes, where one in ten is positive.

    >>> link = Link().corrected(train_share=0.5, test_share=0.1)
    >>> print(f"{link.intercept:.4f} {link(0.0):.4f} {link(2.0):.4f}")
    -2.1972 0.1000 0.4509
    """

    slope: float = 1.0
    intercept: float = 0.0

    def __call__(self, scores):
        """Return the claimed probabilities of scores, an array of any shape."""
        return expit(self.slope * np.asarray(scores, float) + self.intercept)

    def corrected(self, train_share, test_share):
        """Return the link after the prior correction: from one share of positives to another.

        Parameters
        ----------
        train_share, test_share : float or array
            Shares of positives in the training set, counted with their weights in the loss, and in the test set.

        Returns
        -------
        Link
        """
        shares = {"train_share": train_share, "test_share": test_share}
        shares = {name: in_range(name, share, 0.0, 1.0) for name, share in shares.items()}
        train, test = (logit(share)[()] for share in broadcast(**shares))
        if np.any(np.isinf(train) & (train == test)):
            raise ValueError("train_share must be > 0 and < 1 where test_share is the same, got one class alone")
        return Link(self.slope, self.intercept + test - train)

    def tempered(self, temperature):
        """Return the link with claimed log-odds divided by a temperature, a number or array > 0."""
        temperature = in_range("temperature", temperature, 0.0, open_low=True)
        return Link(self.slope / temperature, self.intercept / temperature)


class Reliability(NamedTuple):
    """Bins of a reliability diagram, each an array with the bins as its last axis."""

    claimed: np.ndarray  # mean claimed probability in a bin, NaN where no score falls
    observed: np.ndarray  # share of positives in it
    share: np.ndarray  # share of all test samples in it


class Probabilities:
    """Claimed and true probabilities, for scores with any law."""

    def brier(self, phi_pos, link=None):
        """Return the Brier score, the mean squared difference of claimed probability and outcome (1 or 0).

        Parameters
        ----------
        phi_pos : float or array
            Share of positives in the test set.
        link : Link, optional
            From scores to claimed probabilities; by default the score is the claimed log-odds.

        Returns
        -------
        float or array

        Examples
        --------
        >>> from rbal import Metrics
        >>> m = Metrics(q=4.0, r=2.0, b=0.0)
        >>> print(f"{m.brier(0.5):.4f}, calibrated {m.brier(0.5, m.calibration(0.5)):.4f}")
        0.2118, calibrated 0.1990
        """
        return self.linked(checked(link)).test_loss(lambda s, y: expit(-y * s) ** 2, phi_pos)

    def log_loss(self, phi_pos, link=None):
        """Return the mean of minus the logarithm of the probability claimed for what is the case, in nats.

        Parameters
        ----------
        phi_pos, link
            As for :meth:`brier`.

        Returns
        -------
        float or array
        """
        return self.linked(checked(link)).test_loss(lambda s, y: np.logaddexp(0.0, -y * s), phi_pos)

    def reliability(self, phi_pos, n=201, link=None):
        """Return the reliability curve: n claimed probabilities from 0 to 1, and how many of such samples are positive.

        Parameters
        ----------
        phi_pos, link
            As for :meth:`brier`.
        n : int
            Number of points, at least 2; they are the last axis.

        Returns
        -------
        claimed, observed : arrays
        """
        n = positive_int("n", n, MOST_POINTS)
        if n < 2:
            raise ValueError(f"n must be at least 2, got {n}")
        claimed, parts = np.linspace(0.0, 1.0, n), self._single_problems(link, phi_pos)
        # one step inside the ends, whose log-odds are infinite
        s = logit(np.clip(claimed, 1e-12, 1.0 - 1e-12))
        observed = _stacked(parts, lambda m, phi: expit(m.log_odds(s, phi)), (n,))
        return np.broadcast_to(claimed, observed.shape), observed

    def reliability_bins(self, phi_pos, bins=10, link=None):
        """Return what a reliability diagram with equal bins of the claimed probability would show.

        Parameters
        ----------
        phi_pos, link
            As for :meth:`brier`.
        bins : int
            Number of bins between 0 and 1.

        Returns
        -------
        Reliability
            A named tuple (claimed, observed, share); scikit-learn's ``calibration_curve`` returns the first two.

        Examples
        --------
        >>> from rbal import Metrics
        >>> seen = Metrics(q=4.0, r=2.0, b=0.0).reliability_bins(0.5, bins=2)
        >>> print(seen.claimed.round(3), seen.observed.round(3), seen.share.round(3))
        [0.204 0.796] [0.309 0.691] [0.5 0.5]
        """
        edges = _bin_edges(bins)
        values = _stacked(self._single_problems(link, phi_pos), lambda m, phi: _mass(m, phi, edges), (3, bins))
        claimed, observed, share = np.moveaxis(values, -2, 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return Reliability(claimed / share, observed / share, share)

    def ece(self, phi_pos, bins=None, link=None):
        """Return the expected calibration error, the mean distance of claimed probability and true frequency.

        Parameters
        ----------
        phi_pos, link
            As for :meth:`brier`.
        bins : int, optional
            Equal bins of the claimed probability within which signed differences cancel, as in most software; by
            default none, and every claimed probability is compared with the frequency at that probability.

        Returns
        -------
        float or array

        Examples
        --------
        >>> from rbal import Metrics
        >>> m = Metrics(q=4.0, r=2.0, b=0.0)
        >>> print(f"{m.ece(0.5):.4f} {m.ece(0.5, bins=2):.4f} {m.ece(0.5, link=m.calibration(0.5)):.4f}")
        0.1045 0.1045 0.0000
        """
        edges = None if bins is None else _bin_edges(bins)

        def error(m, phi):
            claimed, observed, _ = _mass(m, phi, _crossings(m, phi) if edges is None else edges)
            return np.abs(claimed - observed).sum()

        return _stacked(self._single_problems(link, phi_pos), error, ())[()]

    def best_link(self, phi_pos, kind="platt"):
        """Return the link of the lowest log loss, which endless held-out samples with this share would choose.

        Parameters
        ----------
        phi_pos : float or array
            Share of positives, > 0 and < 1.
        kind : {"platt", "temperature", "shift"}
            What is fitted: slope and intercept; the slope alone, with intercept 0; the intercept alone, with slope 1.

        Returns
        -------
        Link

        Examples
        --------
        >>> from rbal import Metrics
        >>> m = Metrics(q=4.0, r=2.0, b=0.5)
        >>> for kind in ("platt", "temperature", "shift"):
        ...     link = m.best_link(0.2, kind)
        ...     print(f"{kind}: {link.slope:.3f} {link.intercept:.3f}, log loss {m.log_loss(0.2, link):.4f}")
        platt: 0.500 -1.136, log loss 0.4267
        temperature: 0.624 0.000, log loss 0.5236
        shift: 1.000 -1.227, log loss 0.4705
        """
        free = list(_FREE[one_of("kind", kind, tuple(_FREE))])
        lines = _stacked(self._single_problems(None, phi_pos), lambda m, phi: _fitted(m, phi, free), (2,))
        return Link(lines[..., 0][()], lines[..., 1][()])


def checked(link):
    """Return the link, or that of logistic regression for None."""
    link = Link() if link is None else link
    if not isinstance(link, Link):
        raise TypeError(f"link must be a rbal.metrics.Link, got {type(link).__name__}")
    return link


def line_of(link):
    """Return slope and intercept as arrays; NaN in one, where nothing converged, makes both NaN."""
    line = [real_array(name, value, finite=False) for name, value in zip(Link._fields, checked(link), strict=True)]
    for name, value in zip(Link._fields, line, strict=True):
        if np.isinf(value).any():
            raise ValueError(f"{name} must be finite, got inf")
    return line


def _stacked(pairs, function, shape):
    """Return function(metrics, share), an array of this shape, of every pair; NaN where there is no solution."""
    values = np.empty((*pairs.shape, *shape))
    for at in np.ndindex(pairs.shape):
        values[at] = np.nan if pairs[at][0]._unknown else function(*pairs[at])
    return values


def _bin_edges(bins):
    return logit(np.linspace(0.0, 1.0, positive_int("bins", bins, MOST_POINTS) + 1))


def _mass(m, phi, edges):
    """Return integrals over the claimed log-odds between edges (n + 1,), which may be infinite, as an array (3, n).

    They are those of the claimed probability, of the positives and of all samples.
    """
    breaks = m._breaks()
    low, high = breaks.min(), breaks.max()
    inside = np.clip(np.r_[breaks, _LOGITS, edges], low, high)
    ends = np.unique(inside)
    half, middle = 0.5 * np.diff(ends), 0.5 * (ends[1:] + ends[:-1])
    s = middle[:, None] + half[:, None] * _X
    positives = phi * m.density(s, +1)
    everyone = positives + (1.0 - phi) * m.density(s, -1)
    panels = half * (np.stack([expit(s) * everyone, positives, everyone]) @ _W)
    place = np.clip(np.searchsorted(edges, middle) - 1, 0, len(edges) - 2)
    return np.stack([np.bincount(place, panel, len(edges) - 1) for panel in panels])


def _crossings(m, phi):
    """Return scores at which the claimed probability crosses the true one, with -∞ and ∞ around them."""
    if phi in (0.0, 1.0):
        return np.array([-np.inf, np.inf])

    def gap(s):
        return m.log_odds(s, phi) - s

    ends = np.unique(m._breaks())
    signs = np.sign(gap(ends))
    turns = np.flatnonzero(signs[1:] * signs[:-1] < 0)
    edges = [*ends[signs == 0], *(brentq(gap, ends[k], ends[k + 1]) for k in turns)]
    return np.r_[-np.inf, np.sort(edges), np.inf]


def _fitted(m, phi, free):
    """Return (slope, intercept) of the lowest log loss, by Newton's method on standardised scores where both are free.

    The loss is convex. A step is cut to ten times the size of the scores, since far from them the loss does not curve,
    and halved until it does not raise the loss.
    """
    number("phi_pos", phi, 1e-300, 1.0 - 1e-16)
    link, size = np.array([1.0, 0.0]), np.sqrt(m.test_loss(lambda s, y: s * s, phi))
    if len(free) == 2:
        link[0] = 1.0 / size
    elif free == [0]:
        link[0] = 0.0
    value = m.log_loss(phi, Link(*link))
    for _ in range(_NEWTON):
        gradient, curvature = _slopes(m, phi, link)
        step = np.zeros(2)
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)] + _FLAT * np.eye(len(free)), gradient[free])
        step /= max(1.0, max(abs(step[0]) * size, abs(step[1])) / (10.0 * (1.0 + size)))
        if np.abs(step[free] * gradient[free]).sum() <= 1e-22:  # remaining gain, above the noise of quadrature
            return link - step
        for _ in range(60):
            trial = m.log_loss(phi, Link(*(link - step)))
            if trial <= value * (1.0 + 1e-12):
                break
            step *= 0.5
        link, value = link - step, trial
    raise ValueError(f"no link of lowest log loss was found in {_NEWTON} steps for scores of {m!r}")


def _slopes(m, phi, link):
    """Return gradient (2,) and curvature (2, 2) of the log loss in slope and intercept."""
    a, c = link

    def of(power):
        return m.test_loss(lambda s, y: -y * s**power * expit(-y * (a * s + c)), phi)

    def curved(power):
        return m.test_loss(lambda s, y: s**power * expit(a * s + c) * expit(-a * s - c), phi)

    second, first, none = (curved(power) for power in (2, 1, 0))
    return np.array([of(1), of(0)]), np.array([[second, first], [first, none]])
