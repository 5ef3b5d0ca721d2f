"""Compute the metrics of the theory from the order parameters."""

import numpy as np
from scipy.special import log_ndtr, ndtr

from .._support.validation import broadcast, given_function, in_range, one_of, positive_int, real_array
from . import _formulas as formulas
from ._one_variance import OneVariance, broadcast_first
from ._probabilities import MOST_POINTS

# Trapezoid in the score of a positive. PPV has its nearest pole at Im z = π/s for classes s deviations apart, so that
# the error is exp(-2π²/(s h)): 1e-12 at s = 45, where the pole lies far out in the Gaussian's tail anyway.
_STEP = 1.0 / 64.0
_NODES = np.arange(-9.5, 9.5 + _STEP / 2, _STEP)
_WEIGHTS = _STEP * np.exp(-0.5 * _NODES**2) / np.sqrt(2.0 * np.pi)

# Panels for the mean of any function of the score, in deviations from the class mean. The second set is for what lies
# in the tails, and ends where the Gaussian underflows.
_NEAR = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.5, 9.5, 12.0])
_FAR = np.r_[_NEAR, 15.0, 18.0, 22.0, 26.0, 30.0, 34.0, 37.5]
_PANELS = tuple(np.r_[-ends[::-1], 0.0, ends] for ends in (_NEAR, _FAR))

# On each panel the function is interpolated at 17 Chebyshev points, and its interpolant integrated. Where the last
# coefficients of the interpolant have not died out, as at a kink or a step, the panel is halved. There is a point at
# either end: a kink close to it would hide between the nodes of Gauss's rules.
_ORDER = 16
_POINTS = np.cos(np.pi / _ORDER * np.arange(_ORDER + 1))
_COEFFICIENTS = np.linalg.inv(np.polynomial.chebyshev.chebvander(_POINTS, _ORDER)).T  # from values to coefficients
_FINE = _COEFFICIENTS[:, ::2] @ (2.0 / (1.0 - np.arange(0.0, _ORDER + 1, 2) ** 2))  # ∫T_k = 2/(1 - k²), k even
_LAST = _COEFFICIENTS[:, -3:]
_ACCURACY = 1e-12 / 30.0  # of a panel, relative to the mean of |g|
_HALVINGS = 52  # then a panel is as narrow as the spacing of floating-point numbers
_MANY = 2_000  # panels of one mean: more come from a function that is noise
_BLOCK = 2_048  # means at a time, so that arrays of any size fit into memory


class Metrics(OneVariance):
    """Every metric of scores distributed as N(y r/2 - b, q).

    Arrays broadcast, and so do thresholds and shares of positives.

    Parameters
    ----------
    q : float or array
        Variance of the scores, ≥ 0 (0 is a classifier that gives every sample one score).
    r, b : float or array
        Distance between the class means of the score, and bias.

    Examples
    --------
    >>> m = Metrics(q=1.0, r=2.0, b=0.5)
    >>> print(f"{m.ba():.4f} {m.auc():.4f} {m.best_ba():.4f}")
    0.8123 0.9214 0.8413
    """

    def __init__(self, q, r, b):
        given = {"q": q, "r": r, "b": b}
        self.q, self.r, self.b = (real_array(name, value, finite=False) for name, value in given.items())
        if np.any(self.q < 0):
            raise ValueError(f"q must be >= 0, got {self.q[self.q < 0].flat[0]:g}")
        broadcast(q=self.q, r=self.r, b=self.b)

    @property
    def _unknown(self):
        """Where there is no solution, so that no metric has a value."""
        return np.isnan(self.q) | np.isnan(self.r) | np.isnan(self.b)

    def _phi(self, phi_pos, threshold=None, **others):
        """Return the share of positives, after a check that it broadcasts with the metrics and the other arrays."""
        phi = _share(phi_pos)
        if np.ndim(phi) or others:
            others |= {} if threshold is None else {"threshold": real_array("threshold", threshold, finite=False)}
            broadcast(phi_pos=phi, **others, **self._sizes)
        return phi

    @property
    def _sizes(self):
        """The arrays with which thresholds and shares must broadcast."""
        return {"q": self.q, "r": self.r, "b": self.b}

    def _z(self, label, threshold):
        """Return by how many standard deviations the mean of a class lies above the threshold."""
        gap = label * 0.5 * self.r - self.b - broadcast_first(threshold=threshold, q=self.q, r=self.r, b=self.b)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            z = gap / np.sqrt(self.q)
        return np.where((self.q == 0) & (gap == 0), 0.0, z)[()]  # a tie counts half

    def density(self, delta, label):
        """Return the probability density of the test score of class ``label`` (+1 or -1) at ``delta``."""
        one_of("label", label, (1, -1))
        delta = broadcast_first(delta=delta, q=self.q, r=self.r, b=self.b)
        if np.any(self.q == 0):
            raise ValueError("q must be > 0 for a density: where it is 0 every sample of a class has the same score")
        with np.errstate(over="ignore"):
            z = (delta - (label * 0.5 * self.r - self.b)) / np.sqrt(self.q)
            return np.exp(-0.5 * z * z) / (np.sqrt(2.0 * np.pi) * np.sqrt(self.q))

    def _rates(self, threshold=0.0):
        """Return all four rates."""
        pos, neg = self._z(+1, threshold), self._z(-1, threshold)
        return formulas.Rates(ndtr(pos), ndtr(neg), ndtr(-neg), ndtr(-pos))

    def tpr(self, threshold=0.0):
        """Return the true positive rate (recall, sensitivity)."""
        return ndtr(self._z(+1, threshold))

    def fpr(self, threshold=0.0):
        """Return the false positive rate."""
        return ndtr(self._z(-1, threshold))

    def tnr(self, threshold=0.0):
        """Return the true negative rate (specificity)."""
        return ndtr(-self._z(-1, threshold))

    def fnr(self, threshold=0.0):
        """Return the false negative rate."""
        return ndtr(-self._z(+1, threshold))

    def ba(self, threshold=0.0):
        """Return the balanced accuracy."""
        return formulas.ba(self._rates(threshold), None)

    def acc(self, phi_pos, threshold=0.0):
        """Return the accuracy on a test set with a share ``phi_pos`` of positives."""
        return formulas.acc(self._rates(threshold), self._phi(phi_pos, threshold))

    def gen_error(self, phi_pos, threshold=0.0):
        """Return the misclassification error, 1 - accuracy, without cancellation."""
        return formulas.cost(self._rates(threshold), self._phi(phi_pos, threshold))

    def gen_loss(self, phi_pos, kappa=0.0):
        """Return the mean of max(0, κ - yΔ) on test data.

        With κ = 0 this is the mean distance by which misclassified samples miss; with the margin of the training it is
        the generalisation loss. The paper's text describes the first and its formula the second (errata).
        """
        kappa = real_array("kappa", kappa)
        phi = self._phi(phi_pos, kappa=kappa)
        return phi * self._shortfall(+1, kappa) + (1.0 - phi) * self._shortfall(-1, kappa)

    def _shortfall(self, label, kappa):
        gap = kappa - 0.5 * self.r + label * self.b
        s = np.sqrt(self.q)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            t = gap / s
            positive = s * np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi) + gap * ndtr(t)
        return np.where(self.q == 0, np.maximum(gap, 0.0), positive)[()]

    def test_loss(self, g, phi_pos):
        r"""Return the mean test loss, :math:`\sum_y\varphi^y\,\langle g(\Delta^y, y)\rangle` (Eq. (8) of the paper).

        The Gaussian average is taken by quadrature on panels that are halved until the mean is known to about 1e-12 of
        the mean of \|g\|. Kinks and steps of g need no care, but a feature that is much narrower than the spread √q of
        the scores can hide between the nodes, unless it is at Δ = 0.

        Parameters
        ----------
        g : callable
            Loss ``g(delta, y)`` of an array of scores and a label y, +1 or -1; it returns an array of the same shape.
            After the threshold is moved by γ the loss sees ``delta - γ``.
        phi_pos : float or array
            Share of positives in the test set.

        Returns
        -------
        float or array

        Examples
        --------
        The error, as the mean of the 0/1 loss, and the mean of a logistic loss.

        >>> m = Metrics(q=1.0, r=2.0, b=0.5)
        >>> print(f"{m.test_loss(lambda delta, y: y * delta < 0, 0.1):.6f} {m.gen_error(0.1):.6f}")
        0.090980 0.090980
        >>> print(f"{m.test_loss(lambda delta, y: np.logaddexp(0.0, -y * delta), 0.1):.6f}")
        0.306835
        """
        g = given_function("g", g, "a score and a label")
        phi = self._phi(phi_pos)
        q, r, b = np.broadcast_arrays(self.q, self.r, self.b)
        positive, negative = (_mean_loss(g, y, y * 0.5 * r - b, np.sqrt(q)) for y in (1, -1))
        return (phi * positive + (1.0 - phi) * negative)[()]

    def _purity(self, label, threshold, phi_pos, *, right=True):
        """Return the share of class ``label`` among the samples answered so (or otherwise, if not ``right``)."""
        phi = np.asarray(self._phi(phi_pos, threshold))
        side = label if right else -label  # which answer is given
        of, other = side * self._z(label, threshold), side * self._z(-label, threshold)
        phi_of, phi_other = (phi, 1.0 - phi) if label > 0 else (1.0 - phi, phi)
        return _share_of(of, other, phi_of, phi_other, self.r if right else -self.r)

    def ppv(self, phi_pos, threshold=0.0):
        """Return the positive predictive value (precision)."""
        return self._purity(+1, threshold, phi_pos)

    def npv(self, phi_pos, threshold=0.0):
        """Return the negative predictive value."""
        return self._purity(-1, threshold, phi_pos)

    def fdr(self, phi_pos, threshold=0.0):
        """Return the false discovery rate, 1 - PPV: the share of negatives among positive answers."""
        return self._purity(-1, threshold, phi_pos, right=False)

    def fomr(self, phi_pos, threshold=0.0):
        """Return the false omission rate, 1 - NPV: the share of positives among negative answers."""
        return self._purity(+1, threshold, phi_pos, right=False)

    def f1(self, phi_pos, threshold=0.0):
        """Return F1, the harmonic mean of precision and recall."""
        return formulas.f1(self._rates(threshold), self._phi(phi_pos, threshold))

    def fm(self, phi_pos, threshold=0.0):
        """Return the Fowlkes–Mallows index, √(PPV·TPR)."""
        return np.sqrt(self.ppv(phi_pos, threshold) * self.tpr(threshold))

    def mcc(self, phi_pos, threshold=0.0):
        """Return the Matthews correlation coefficient, 0 where one class is never predicted."""
        return formulas.mcc(self._rates(threshold), self._phi(phi_pos, threshold))

    def auc(self):
        """Return the area under the ROC curve, P(Δ⁺ > Δ⁻)."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            z = self.r / np.sqrt(2.0 * self.q)
        return ndtr(np.where((self.q == 0) & (self.r == 0), 0.0, z))[()]

    def auprc(self, phi_pos):
        """Return the area under the precision–recall curve, to about 1e-12."""
        phi = np.asarray(self._phi(phi_pos))[..., None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            s = np.where((self.q == 0) & (self.r == 0), 0.0, self.r / np.sqrt(self.q))[..., None]
        # over scores γ = μ₊ + √q z: TPR = H(z), FPR = H(z + s), weight |dTPR| = Dz
        return _share_of(-_NODES, -_NODES - s, phi, 1.0 - phi, self.r[..., None]) @ _WEIGHTS

    def roc(self, n=201):
        """Return (FPR, TPR) at n thresholds, from (0, 0) to (1, 1); the thresholds are the last axis."""
        curve, threshold = self._curve(n)
        return curve.fpr(threshold), curve.tpr(threshold)

    def prc(self, phi_pos, n=201):
        """Return (recall, precision) at n thresholds, from recall 0 to recall 1; the thresholds are the last axis."""
        curve, threshold = self._curve(n)
        return curve.tpr(threshold), curve.ppv(np.asarray(self._phi(phi_pos))[..., None], threshold)

    def _curve(self, n):
        """Return these metrics with one more axis, and n thresholds along it, from +∞ past both classes to -∞."""
        n = positive_int("n", n, MOST_POINTS)
        if n < 2:
            raise ValueError(f"n must be at least 2, got {n}")
        q, r, b = (a[..., None] for a in (self.q, self.r, self.b))
        threshold = -b + (0.5 * np.abs(r) + 8.5 * np.sqrt(q)) * np.linspace(1.0, -1.0, n)
        threshold[..., 0], threshold[..., -1] = np.inf, -np.inf
        return Metrics(q, r, b), threshold

    def best_threshold(self):
        """Return the threshold of the highest balanced accuracy, midway between the class means (infinite if r < 0)."""
        return np.where(self.r < 0, np.inf, -self.b)[()]

    def best_ba(self):
        """Return the balanced accuracy at :meth:`best_threshold`; moving the threshold gains best_ba() - ba()."""
        return np.maximum(self.ba(-self.b), 0.5)[()]


def _share_of(z_of, z_other, phi_of, phi_other, r):
    """Return φ Φ(z) / (φ Φ(z) + φ' Φ(z')), from logarithms, even where both tails underflow or z is infinite.

    In these limits the class with the higher mean dominates, and the sign of r decides.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_of, log_other = log_ndtr(z_of), log_ndtr(z_other)
        far = np.isneginf(log_of) & np.isneginf(log_other)  # even log Φ ≈ -z²/2 overflows
        log_ratio = np.where(far, 0.5 * (z_of - z_other) * (z_of + z_other), log_other - log_of)
        lost = far & (z_of == z_other)  # to rounding, or both infinite
        log_ratio = np.where(lost, np.where(r == 0, 0.0, np.copysign(np.inf, -r)), log_ratio)
        return _share_at(log_ratio, phi_of, phi_other)


def _share_at(log_ratio, phi_of, phi_other):
    """Return φ / (φ + φ' exp(log_ratio)): φ itself, to the last digit, where the ratio is 1."""
    with np.errstate(invalid="ignore"):
        small, up = np.exp(-np.abs(log_ratio)), log_ratio > 0.0
        of, other = phi_of * np.where(up, small, 1.0), phi_other * np.where(up, 1.0, small)
        share = np.where(phi_of == 0, 0.0, np.where(phi_other == 0, 1.0, of / (of + other)))
    return np.where(np.isnan(log_ratio), np.nan, share)[()]


def _mean_loss(g, label, mean, deviation):
    """Return the mean of g(Δ, label) over Δ ~ N(mean, deviation²), for arrays of one shape; NaN where either is."""
    mu, s = (np.ravel(a) for a in (mean, deviation))
    known = np.flatnonzero(~(np.isnan(mu) | np.isnan(s)))
    means = np.full(mu.size, np.nan)
    for k in range(0, known.size, _BLOCK):
        block = known[k : k + _BLOCK]
        means[block] = _block_of_means(g, label, mu[block], s[block])
    return means.reshape(np.shape(mean))


def _block_of_means(g, label, mu, s):
    """Return means (n,), from the near panels if they hold all of each mean, or else from the far ones."""
    for panels, is_last in zip(_PANELS, (False, True), strict=True):
        which, low, high = _cut(panels, mu, s)
        first = _on_panels(g, label, mu[which], s[which], low, high)
        size = np.bincount(which, first[1], mu.size)  # the mean of |g|, which sets the scale of all errors
        outermost = first[1].reshape(mu.size, -1)[:, [0, -1]].max(axis=1)
        if not is_last and np.any((size == 0.0) | (outermost > _ACCURACY * size)):
            continue
        if np.any((outermost > 1e-6 * size) & (size > 1e-200)):
            raise ValueError(
                f"g must grow more slowly than a Gaussian falls, got a mean from the tails for y = {label}"
            )
        return _halve_until_settled(g, label, mu, s, (which, low, high), first, size)


def _cut(panels, mu, s):
    """Return index, start and end of the panels of every mean, cut also at score 0, where a loss may have a kink."""
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = np.clip(np.nan_to_num(-mu / s), panels[0], panels[-1])
    ends = np.sort(np.c_[np.tile(panels, (mu.size, 1)), zero], axis=1)
    return np.repeat(np.arange(mu.size), ends.shape[1] - 1), ends[:, :-1].ravel(), ends[:, 1:].ravel()


def _halve_until_settled(g, label, mu, s, panels, first, size):
    """Return sums over the panels, halving those on which the interpolant is not accurate."""
    (which, low, high), (value, _, error), total = panels, first, np.zeros(mu.size)
    for _ in range(_HALVINGS):
        rough = error > _ACCURACY * size[which]
        total += np.bincount(which[~rough], value[~rough], mu.size)
        if not rough.any():
            return total
        which, low, high = which[rough], low[rough], high[rough]
        if np.bincount(which).max() > _MANY:
            break
        middle = 0.5 * (low + high)
        which, low, high = np.tile(which, 2), np.r_[low, middle], np.r_[middle, high]
        value, _, error = _on_panels(g, label, mu[which], s[which], low, high)
    raise ValueError(f"g must have a mean that panels of any width can find, got none for y = {label}")


def _on_panels(g, label, mu, s, low, high):
    """Return the integral over each panel, that of the absolute value, and the error of the interpolant."""
    half = 0.5 * (high - low)[:, None]
    z = 0.5 * (high + low)[:, None] + half * _POINTS
    terms = half * _values(g, mu[:, None] + s[:, None] * z, label) * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return terms @ _FINE, np.abs(terms) @ _FINE, np.abs(terms @ _LAST).max(axis=1)


def _values(g, delta, label):
    """Return g at these scores, after checking that each value is one finite number."""
    values = real_array("g", g(delta, label))
    if values.shape not in ((), delta.shape):
        raise ValueError(f"g must return one value for each score, got shape {values.shape} for {delta.shape}")
    return values


def _share(phi_pos):
    return in_range("phi_pos", phi_pos, 0.0, 1.0)
