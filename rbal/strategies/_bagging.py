r"""Bags of classifiers: each trained on its own resampled set, their scores averaged.

Members of a bag are trained on samples of one and the same set, so that their scores agree more than chance. With the
variance q of one score and the covariance :math:`q_{12}` of two (:func:`rbal.overlap`), the mean of K scores has the
variance :math:`q_{12} + (q - q_{12})/K`, about the same means.
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln, ndtr

from .._support.validation import number, one_of, real_array
from .._support.warnings import convergence_warning
from ..losses import bootstrapped, record_of
from ..metrics import Metrics
from ..saddle import Overlap, Solution, overlap, solve
from ._mixing import scored

SMALLEST_SIZE = 1e-100  # of a class, over L: squares of shared sizes must not overflow

UNDECIDED = 1e-7  # share of its pull that a class must withhold to determine the bias
KINDS = ("undersampling", "balanced", "bootstrap")


@dataclass(frozen=True)
class Bagging:
    """A bag of classifiers whose scores are averaged.

    Attributes
    ----------
    members : float or array
        Number of classifiers, infinity for the limit of many.
    member : Solution
        The saddle point of one of them.
    overlap : Overlap
        Covariance of the scores of two of them.
    phi_pos : float
        Share of positives in the data.
    kind : str
    """

    members: float
    member: Solution
    overlap: Overlap
    phi_pos: float
    kind: str

    def variance(self, members=None):
        """Return the variance of the mean score of this many members, by default of the bag's."""
        members = self.members if members is None else _members(members)
        return self.overlap.q + (self.member.variance - self.overlap.q) / members

    @property
    def metrics(self):
        """Test metrics of the bag, as :class:`rbal.Metrics`."""
        return self._metrics(self.members)

    @property
    def limit(self):
        """Test metrics of infinitely many members."""
        return self._metrics(np.inf)

    def _metrics(self, members):
        variance = self.variance(members)
        r, b = (np.broadcast_to(value, np.shape(variance))[()] for value in (self.member.r, self.member.b))
        return Metrics(variance, r, b)

    def worth(self, tolerance=1e-3, *, metric="ba", phi_pos=None):
        """Return the number of members after which more of them change a metric by at most the tolerance.

        Parameters
        ----------
        tolerance : float
            How far from the limit of infinitely many members the metric may be.
        metric : str, Metric or callable
            As in :func:`rbal.strategies.best_mixing`.
        phi_pos : float, optional
            Share of positives in the test set, by default that of the data.

        Returns
        -------
        int
        """
        tolerance = number("tolerance", tolerance, 0.0, open_low=True)
        phi = self.phi_pos if phi_pos is None else number("phi_pos", phi_pos, 0.0, 1.0)
        score, _ = scored(metric, phi)
        limit = score(self.limit)

        def enough(members):
            return abs(score(self._metrics(members)) - limit) <= tolerance

        high = 1
        while not enough(high):
            high *= 2
        low = high // 2  # not enough, or 0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high


def bagging(moments, alpha_pos, alpha_neg, members, kappa=None, *, kind="undersampling", **options):
    """Return a bag of classifiers that are trained on resampled sets of the same data, and whose scores are averaged.

    Parameters
    ----------
    moments : Moments or Spectrum
    alpha_pos, alpha_neg : float
        Class sizes over L.
    members : int or array
        Number of classifiers; ``numpy.inf`` is the limit of many, and 1 a single one.
    kappa : float, optional
        Margin, as in :func:`rbal.solve`.
    kind : {"undersampling", "balanced", "bootstrap"}
        What a member is trained on. "undersampling": the smaller class, and as many of the larger one, drawn without
        replacement. "balanced": a bootstrap sample of all rows whose larger class is then undersampled, as
        imbalanced-learn's ``BalancedBaggingClassifier``. "bootstrap": a bootstrap sample of all rows, as imbalanced as
        they are.
    **options
        Passed on to :func:`rbal.solve`: model, lam, loss, kappa_neg, fit_bias, tol, max_iter.

    Returns
    -------
    Bagging
        With ``metrics``, their ``limit`` for infinitely many members, and ``worth()``, the number after which more of
        them bring next to nothing.

    Notes
    -----
    Rows of a bootstrap sample are there a number of times that is Poisson in the limit of many rows, and independent
    between members. On the sphere, members that were bootstrapped must have some loss left. Under so strong a ridge
    that nearly every row is below its margin their bias is not determined: it is NaN, as are all metrics but the AUC.

    Examples
    --------
    >>> import numpy as np, rbal
    >>> classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    >>> bag = bagging(classes, 0.5, 5.0, [1, 10, np.inf], model="svm", lam=1.0)
    >>> bag.metrics.ba().round(4)
    array([0.597 , 0.62  , 0.6237])
    >>> bag.worth(0.005)
    8
    """
    members = _members(members)
    pos, neg = number("alpha_pos", alpha_pos, SMALLEST_SIZE), number("alpha_neg", alpha_neg, SMALLEST_SIZE)
    least = min(pos, neg)
    if one_of("kind", kind, KINDS) == "undersampling":
        member = solve(moments, least, least, kappa, **options)
        shared = least**2 / pos, least**2 / neg  # a row of a class is in both with the square of the share that is kept
    else:
        rates = (1.0, 1.0) if kind == "bootstrap" else (least / pos, least / neg)
        member = _bootstrapped(moments, (pos, neg), rates, kappa, options)
        shared = pos, neg
    shared_overlap = overlap(moments, member, member, shared)
    return Bagging(members, member if kind == KINDS[0] else _decided(member), shared_overlap, pos / (pos + neg), kind)


def _members(members):
    members = np.asarray(real_array("members", members, finite=False))
    if np.isnan(members).any() or (members < 1.0).any():
        raise ValueError(f"members must be >= 1, or infinity, got {members[()]}")
    return members[()]


def _bootstrapped(moments, sizes, rates, kappa, options):
    """Return the saddle point of one member, whose rows are repeated a Poisson number of times with these means."""
    options = dict(options)
    old = record_of(options.pop("loss", "hinge"))
    for name in ("weight_pos", "weight_neg"):
        if options.pop(name, 1.0) != 1.0:
            raise ValueError(f"{name} must be 1 for a bootstrap sample, whose copies are its weights")
    weights = {"weight_pos": rates[0], "weight_neg": rates[1]}
    sol = solve(moments, *sizes, kappa, loss=bootstrapped(old), **weights, **options)
    if sol.phase != "UNSAT" or not sol.converged:
        return sol
    wrong = 0.0
    for label, size, rate, margin in ((1, sizes[0], rates[0], sol.kappa), (-1, sizes[1], rates[1], sol.kappa_neg)):
        n = np.arange(1, 40 + int(10 * rate))
        share = n * np.exp(n * np.log(rate) - rate - gammaln(n + 1))  # of copies that belong to a row with n of them
        force = np.array([old.force(margin, float(k), 0.0) for k in n])
        wrong += size * share @ ndtr((-sol.x * force - 0.5 * sol.r + label * sol.b) / np.sqrt(sol.q))
    return replace(sol, train_error=float(wrong / (sizes[0] * rates[0] + sizes[1] * rates[1])))


def _decided(sol):
    """Return a bootstrapped member with NaN as its bias, and a warning, if no row determines the bias."""
    loss = record_of(sol.loss)
    if not (loss.saturates and sol.fit_bias and sol.converged and sol.phase == "UNSAT"):
        return sol
    for label, rate, margin in ((1, sol.weight_pos, sol.kappa), (-1, sol.weight_neg, sol.kappa_neg)):
        pull = loss.expectations(margin, rate, sol.x, 0.5 * sol.r - label * sol.b, sol.q)[0]
        if 1.0 - pull / rate > UNDECIDED:
            return sol
    warnings.warn(
        "the bias of a bootstrapped member is NaN: nearly every row is below its margin, whatever the bias",
        convergence_warning(),
        stacklevel=3,
    )
    return replace(sol, b=np.nan, train_error=np.nan)
