r"""Metrics of a linear classifier, from its order parameters.

On a test sample of class :math:`y` the score is Gaussian, :math:`\Delta^y\sim\mathcal N(y r/2 - b,\, q)`, and every
metric of the confusion matrix is a function of :math:`(q, r, b)`, of the threshold :math:`\gamma` and, for those that
depend on it, of the share :math:`\varphi^+` of positives in the test set.
"""

import numpy as np
from scipy.special import log_ndtr, ndtr

from ._validation import broadcast, in_range, one_of, positive_int, real_array

# Trapezoid in the score of a positive. PPV has its nearest pole at Im z = π/s for classes s deviations apart, so that
# the error is exp(-2π²/(s h)): 1e-12 at s = 45, where the pole lies far out in the Gaussian's tail anyway.
_STEP = 1.0 / 64.0
_NODES = np.arange(-9.5, 9.5 + _STEP / 2, _STEP)
_WEIGHTS = _STEP * np.exp(-0.5 * _NODES**2) / np.sqrt(2.0 * np.pi)


class Metrics:
    """Every metric of the scores N(y r/2 - b, q). Arrays broadcast, and so do thresholds and test compositions.

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
        self.q, self.r, self.b = (np.asarray(a, float) for a in (q, r, b))
        if np.any(self.q < 0):
            raise ValueError(f"q must be >= 0, got {self.q[self.q < 0].flat[0]:g}")
        broadcast(q=self.q, r=self.r, b=self.b)

    def _z(self, label, threshold):
        """How many deviations the mean of a class lies above the threshold."""
        gap = label * 0.5 * self.r - self.b - np.asarray(threshold, float)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            z = gap / np.sqrt(self.q)
        return np.where((self.q == 0) & (gap == 0), 0.0, z)[()]  # a tie counts half

    def density(self, delta, label):
        """Probability density of the test score of class ``label`` (+1 or -1)."""
        one_of("label", label, (1, -1))
        if np.any(self.q == 0):
            raise ValueError("q must be > 0 for a density: where it is 0 every sample of a class has the same score")
        with np.errstate(over="ignore"):
            z = (np.asarray(delta, float) - (label * 0.5 * self.r - self.b)) / np.sqrt(self.q)
            return np.exp(-0.5 * z * z) / (np.sqrt(2.0 * np.pi) * np.sqrt(self.q))

    def tpr(self, threshold=0.0):
        """True positive rate (recall, sensitivity)."""
        return ndtr(self._z(+1, threshold))

    def fpr(self, threshold=0.0):
        """False positive rate."""
        return ndtr(self._z(-1, threshold))

    def tnr(self, threshold=0.0):
        """True negative rate (specificity)."""
        return ndtr(-self._z(-1, threshold))

    def fnr(self, threshold=0.0):
        """False negative rate."""
        return ndtr(-self._z(+1, threshold))

    def ba(self, threshold=0.0):
        """Balanced accuracy."""
        return 0.5 * (self.tpr(threshold) + self.tnr(threshold))

    def acc(self, phi_pos, threshold=0.0):
        """Accuracy on a test set with a share ``phi_pos`` of positives."""
        phi = _share(phi_pos)
        return phi * self.tpr(threshold) + (1.0 - phi) * self.tnr(threshold)

    def gen_error(self, phi_pos, threshold=0.0):
        """Misclassification error, 1 - accuracy, without cancellation."""
        phi = _share(phi_pos)
        return phi * self.fnr(threshold) + (1.0 - phi) * self.fpr(threshold)

    def gen_loss(self, phi_pos, kappa=0.0):
        """Mean of max(0, κ - yΔ) on test data.

        With κ = 0, the mean distance by which misclassified samples miss; with the margin of the training, the
        generalisation loss. The paper's text describes the first and its formula the second (errata).
        """
        phi, kappa = _share(phi_pos), real_array("kappa", kappa)
        return phi * self._shortfall(+1, kappa) + (1.0 - phi) * self._shortfall(-1, kappa)

    def _shortfall(self, label, kappa):
        gap = kappa - 0.5 * self.r + label * self.b
        s = np.sqrt(self.q)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            t = gap / s
            positive = s * np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi) + gap * ndtr(t)
        return np.where(self.q == 0, np.maximum(gap, 0.0), positive)[()]

    def _purity(self, label, threshold, phi_pos, *, right=True):
        """Share of class ``label`` among what is predicted as that class (or, not right, among the other answer)."""
        phi = np.asarray(_share(phi_pos))
        side = label if right else -label  # which answer is given
        of, other = side * self._z(label, threshold), side * self._z(-label, threshold)
        phi_of, phi_other = (phi, 1.0 - phi) if label > 0 else (1.0 - phi, phi)
        return _share_of(of, other, phi_of, phi_other, self.r if right else -self.r)

    def ppv(self, phi_pos, threshold=0.0):
        """Positive predictive value (precision)."""
        return self._purity(+1, threshold, phi_pos)

    def npv(self, phi_pos, threshold=0.0):
        """Negative predictive value."""
        return self._purity(-1, threshold, phi_pos)

    def fdr(self, phi_pos, threshold=0.0):
        """False discovery rate, 1 - PPV: negatives among the positive answers."""
        return self._purity(-1, threshold, phi_pos, right=False)

    def fomr(self, phi_pos, threshold=0.0):
        """False omission rate, 1 - NPV: positives among the negative answers."""
        return self._purity(+1, threshold, phi_pos, right=False)

    def f1(self, phi_pos, threshold=0.0):
        """Harmonic mean of precision and recall."""
        phi, tpr = _share(phi_pos), self.tpr(threshold)
        total = phi * (1.0 + tpr) + (1.0 - phi) * self.fpr(threshold)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(total == 0, 0.0, 2.0 * phi * tpr / total)[()]

    def fm(self, phi_pos, threshold=0.0):
        """Fowlkes–Mallows index, √(PPV·TPR)."""
        return np.sqrt(self.ppv(phi_pos, threshold) * self.tpr(threshold))

    def mcc(self, phi_pos, threshold=0.0):
        """Matthews correlation coefficient; 0 where one class is never predicted."""
        phi = _share(phi_pos)
        tpr, fpr, tnr, fnr = self.tpr(threshold), self.fpr(threshold), self.tnr(threshold), self.fnr(threshold)
        spread = (phi * tpr + (1.0 - phi) * fpr) * (phi * fnr + (1.0 - phi) * tnr)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.sqrt(phi * (1.0 - phi)) * (tpr * tnr - fpr * fnr) / np.sqrt(spread)
        return np.where(spread == 0, 0.0, value)[()]

    def auc(self):
        """Area under the ROC curve, P(Δ⁺ > Δ⁻)."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            z = self.r / np.sqrt(2.0 * self.q)
        return ndtr(np.where((self.q == 0) & (self.r == 0), 0.0, z))[()]

    def auprc(self, phi_pos):
        """Area under the precision–recall curve, to about 1e-12."""
        phi = np.asarray(_share(phi_pos))[..., None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            s = np.where((self.q == 0) & (self.r == 0), 0.0, self.r / np.sqrt(self.q))[..., None]
        # over scores γ = μ₊ + √q z: TPR = H(z), FPR = H(z + s), weight |dTPR| = Dz
        return _share_of(-_NODES, -_NODES - s, phi, 1.0 - phi, self.r[..., None]) @ _WEIGHTS

    def roc(self, n=201):
        """(FPR, TPR) at n thresholds, from (0, 0) to (1, 1)."""
        curve, threshold = self._curve(n)
        return curve.fpr(threshold), curve.tpr(threshold)

    def prc(self, phi_pos, n=201):
        """(recall, precision) at n thresholds, from recall 0 to recall 1."""
        curve, threshold = self._curve(n)
        return curve.tpr(threshold), curve.ppv(np.asarray(_share(phi_pos))[..., None], threshold)

    def _curve(self, n):
        """These metrics with one more axis, and thresholds along it: from +∞ past both classes to -∞."""
        n = positive_int("n", n)
        if n < 2:
            raise ValueError(f"n must be at least 2, got {n}")
        q, r, b = (a[..., None] for a in (self.q, self.r, self.b))
        threshold = -b + (0.5 * np.abs(r) + 8.5 * np.sqrt(q)) * np.linspace(1.0, -1.0, n)
        threshold[..., 0], threshold[..., -1] = np.inf, -np.inf
        return Metrics(q, r, b), threshold

    def best_threshold(self):
        """Threshold that maximises the balanced accuracy: midway between the class means (infinite where r < 0)."""
        return np.where(self.r < 0, np.inf, -self.b)[()]

    def best_ba(self):
        """Balanced accuracy at :meth:`best_threshold`; what moving the threshold gains is best_ba() - ba()."""
        return np.maximum(self.ba(-self.b), 0.5)[()]


def _share_of(z_of, z_other, phi_of, phi_other, r):
    """φ Φ(z) / (φ Φ(z) + φ' Φ(z')) in logs, also where both tails underflow or are infinitely far out.

    There the class with the higher mean wins by far, as the sign of r says.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_of, log_other = log_ndtr(z_of), log_ndtr(z_other)
        far = np.isneginf(log_of) & np.isneginf(log_other)  # even log Φ ≈ -z²/2 is no double
        log_ratio = np.where(far, 0.5 * (z_of - z_other) * (z_of + z_other), log_other - log_of)
        lost = np.isneginf(z_of) & np.isneginf(z_other)
        log_ratio = np.where(lost, np.where(r == 0, 0.0, np.copysign(np.inf, -r)), log_ratio)
        share = 1.0 / (1.0 + np.exp(log_ratio + (np.log(phi_other) - np.log(phi_of))))
    return np.where(phi_of == 0, 0.0, np.where(phi_other == 0, 1.0, share))[()]


def _share(phi_pos):
    return in_range("phi_pos", phi_pos, 0.0, 1.0)
