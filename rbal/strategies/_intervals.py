r"""Intervals of predictions for kernel machines: the noise of the sample, and the theory's own error.

The theory assumes Gaussian scores. Its error on the data at hand is measured without training, on one machine: that of
least squares, whose scores of left-out rows are known in closed form. With the dual coefficients
:math:`\alpha` and the inverse :math:`M` of its linear system, row i has the score :math:`y_i - \alpha_i/M_{ii}` by the
machine that was not given row i.

The rule was fixed on synthetic classes (heavy tails, skewed and binary columns, clusters, crosses, rings, unequal
widths, Gaussian ones; 300 and 600 rows, three values of C, with and without class weights): with the noise of the
sample alone intervals of 90 % held 0.71 of what was trained, with the error of least squares as it is found 0.90. No
factor was needed.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.special import ndtri

from .._support.validation import MOST_DRAWS, number, one_of, positive_int, real_array
from .._support.warnings import one_convergence_warning
from ..moments import Moments
from ..moments.internal import labelled
from ..saddle import solve
from ._mixing import scored
from ._own_widths import own_widths
from ._remedy_record import REMEDIES

RIDGES = np.array([10.0**-0.5, 1.0, 10.0**0.5])  # in units of 1/C: machines of least squares that are compared
LEVERAGES = "rows"  # widths that have no bias of their own
LEAST, MOST = 0.25, 4.0  # factors between two distances of the classes


class Interval(NamedTuple):
    """A prediction and its interval."""

    value: float  # predicted, with a width for each class
    low: float
    high: float
    model_error: float  # standard deviation of the logarithm of the distance of the classes that was allowed for


@one_convergence_warning()
def interval(K, y, C=1.0, remedy="class weights", metric="ba", *, level=0.9, draws=64, model_error=None, positive=None,
             phi_pos=None, random_state=0):  # fmt: skip
    """Predict a kernel machine from the Gram matrix of its training rows, with an interval.

    Spectra that other rows could have given (:meth:`rbal.moments.KernelMoments.draws`) are drawn, the distance of the
    classes in each is multiplied by a random factor, and the interval has the middle part of what they predict. The
    logarithm of the factor has the standard deviation ``model_error``: how far the theory is off, in the distance of
    the classes, for machines of least squares on the same rows, whose leave-one-out scores need no training.

    Parameters
    ----------
    K : (n, n) array
        Gram matrix.
    y : (n,) array
        Two labels.
    C : float
        Inverse ridge, as in scikit-learn.
    remedy : str
        Name in :data:`rbal.strategies.REMEDIES`, of one whose mixing is not searched.
    metric : str, Metric or callable
        As in :func:`rbal.strategies.best_mixing`.
    level : float
        Of the interval, > 0 and < 1.
    draws : int
        Number of spectra, at least 1/(1 - level), so that some lie outside the interval, and at most 16,384.
    model_error : float, optional
        By default measured; 0 leaves the noise of the sample alone.
    positive : label, optional
        Label of the positive class; by default the rarer one.
    phi_pos : float, optional
        Share of positives in the test set; by default that of y.
    random_state : int
        Seed of the draws.

    Returns
    -------
    Interval

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 30)), np.repeat([1, -1], [50, 150])
    >>> X[y > 0] += 0.4
    >>> told = interval(X @ X.T, y, C=0.01)
    >>> told.low < told.value < told.high
    True
    """
    K = real_array("K", K, 2)
    moments = Moments.from_kernel(K, y, positive=positive)
    member, _ = labelled(y, len(K), positive)
    if REMEDIES[one_of("remedy", remedy, tuple(REMEDIES))].searched:
        raise ValueError(f"remedy must be one whose mixing is not searched, got {remedy!r}")
    C, level, draws = number("C", C, 0.0, open_low=True), *_spread_of(level, draws)
    score, _ = scored(metric, member.mean() if phi_pos is None else number("phi_pos", phi_pos, 0.0, 1.0))
    if model_error is None:
        model_error = theory_error(moments, K, member, C, remedy)
    else:
        model_error = number("model_error", model_error, 0.0, 20.0)  # its exponential is a number
    if np.isnan(model_error):  # the theory itself did not converge, which it has warned of
        return Interval(np.nan, np.nan, np.nan, np.nan)
    sizes, options = _design(moments, C, remedy)
    value = float(score(own_widths(moments, *sizes, leverages=LEVERAGES, **options).metrics))
    one = float(score(solve(moments, *sizes, model="svm", **options).metrics))
    spectra = with_distances(moments.draws(draws, random_state), model_error, random_state)
    others = [score(solve(s, *sizes, model="svm", **options).metrics) for s in spectra]
    return Interval(value, *interval_ends(value, one, others, level), float(model_error))


def _spread_of(level, draws):
    """Return the level and the number of draws, after a check that the draws have a quantile at each end."""
    level = number("level", level, 0.0, 1.0, open_low=True)
    if level == 1.0:
        raise ValueError("level must be < 1, got 1")
    least = math.ceil(1.0 / (1.0 - level) - 1e-9)
    if positive_int("draws", draws, MOST_DRAWS) < least:
        raise ValueError(f"draws must be at least {least} for level={level:g}, got {draws}")
    return float(level), int(draws)


def interval_ends(value, one, others, level):
    """Return both ends of the interval around ``value``, the prediction with a width for each class.

    The prediction ``one`` and those of the draws, ``others``, are made with one covariance: their quantiles, relative
    to ``one``, are added to ``value``. A metric that is between 0 and 1 for all draws, as rates are, stays there.
    """
    if np.isnan(value) or np.isnan(others).all():
        return np.nan, np.nan
    low, high = np.nanquantile(others, (0.5 - 0.5 * level, 0.5 + 0.5 * level))
    low, high = value + min(low - one, 0.0), value + max(high - one, 0.0)
    if 0.0 <= np.nanmin([value, one, *others]) and np.nanmax([value, one, *others]) <= 1.0:
        low, high = max(low, 0.0), min(high, 1.0)
    return float(low), float(high)


def with_distances(spectra, error, random_state):
    """Return the spectra with the distance of the classes times exp(error × a standard normal)."""
    n = len(spectra)
    normals = ndtri((np.random.default_rng(random_state).permutation(n) + 0.5) / n)
    return [s.apart(factor) for s, factor in zip(spectra, np.exp(error * normals), strict=True)]


def theory_error(moments, K, member, C, remedy):
    r"""Return how far the theory is off for least squares: the root mean square of log(d'/d) over three ridges.

    :math:`d = \Phi^{-1}(\text{TPR}) + \Phi^{-1}(\text{TNR})` is the distance of the classes in standard deviations,
    d' that of the left-out scores. A remedy that restores balance is represented by class weights, which lose no row.

    Parameters
    ----------
    moments : KernelMoments
    K : (n, n) array
    member : (n,) array of bool
    C : float
    remedy : str

    Returns
    -------
    float
    """
    sizes, options = _design(moments, C, "as is" if remedy == "as is" else "class weights")
    weight = np.where(member, options["weight_pos"], options["weight_neg"])
    errors = []
    for factor in RIDGES:
        scores = left_out(K, np.where(member, 1.0, -1.0), C / factor, weight)
        distance = _distance(_smoothed(scores[member] > 0.0), _smoothed(scores[~member] < 0.0))
        ridge = options | {"lam": factor * options["lam"], "leverages": LEVERAGES}
        wide = own_widths(moments, *sizes, loss="square", **ridge).metrics
        errors.append(np.log(distance / _distance(wide.tpr(), wide.tnr())))
    return float(np.sqrt(np.mean(np.square(np.clip(errors, np.log(LEAST), np.log(MOST))))))


def left_out(K, y, C, weight):
    """Return the score (n,) of each row by the machine of least squares that is trained on the others.

    Parameters
    ----------
    K : (n, n) array
    y : (n,) array
        Labels +1 and -1.
    C : float
    weight : (n,) array
        Factor on the loss of each row.

    Returns
    -------
    (n,) array
    """
    centred = (
        K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    )  # the bias is free, and centred products are more accurate
    factor, fault = lapack.dpotrf(centred + np.diag(0.5 / (C * weight)), lower=1)
    inverse, more = lapack.dpotri(factor, lower=1)
    if fault or more:
        raise ValueError(f"K must have no negative eigenvalues, got some that a ridge of {0.5 / C:g} does not cover")
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    ones = inverse.sum(axis=1)
    total = ones.sum()
    dual = inverse @ y - ones * (ones @ y) / total
    return y - dual / (np.diag(inverse) - ones**2 / total)


def _smoothed(right):
    """Return the share of right answers, smoothed so that it is neither 0 nor 1."""
    return (np.sum(right) + 0.5) / (len(right) + 1.0)


def _distance(tpr, tnr):
    """Return the distance of the classes in standard deviations, at least 0.1: below, there is nothing to learn."""
    return max(float(ndtri(tpr) + ndtri(tnr)), 0.1)


def _design(moments, C, remedy):
    """Return the sizes of the classes, and the options of the solver."""
    n_pos, n_neg, weight_pos, weight_neg = REMEDIES[remedy].design(moments.alpha_pos, moments.alpha_neg)
    options = {"lam": float(moments.ridge(C)), "weight_pos": float(weight_pos), "weight_neg": float(weight_neg)}
    return (float(n_pos), float(n_neg)), options
