r"""Predict every remedy by the theory, for one set of moments: the part of the advice that needs no data.

A remedy, for example "undersampling", is a record of ``rbal.strategies.REMEDIES``: how many rows of each class it
leaves, and with which weights. :func:`designs` turns all of them into training sets, one column each,
:func:`solve_all` solves their saddle points, and :func:`evaluate` gives the metric of each with its trained and
its moved threshold. ``prediction_of(moments, setting, "undersampling", choice)`` solves a single one.

A moved threshold is tuned on cross-validated scores (:func:`rbal.advice._threshold.best_cut`): at the best metric of
rates that are smoothed by a kernel in each class. Two things keep it from the best threshold, and both follow from the
law of the scores. Smoothing widens the classes, the rarer one more; and where the derivative of the smoothed metric is
0 is known up to the noise of two estimated densities.

Classes may have one covariance up to a factor each, the width of a class along the weights. With few rows the
covariance of a class cannot be estimated, but its variance along the weights can: it is a mean over all directions,
:math:`w_+ = J^\top C_+J / J^\top CJ`. The weights follow from the saddle point, which depends on the widths in turn,
so that both are found in some rounds.
"""

import warnings
from typing import NamedTuple

import numpy as np

from .._support.warnings import convergence_warning
from ..metrics import Metrics, MixtureMetrics
from ..metrics.internal import Rates, named
from ..moments import Spectrum
from ..moments.internal import Sample
from ..saddle import sweep
from ..saddle.internal import sweep_widths
from ..strategies import REMEDIES
from ..strategies.internal import Design, free_share, kept, multiplicity

GRID = 17  # mixtures of under- and oversampling, evenly spaced in log c
VANISHING = 1e-4  # inverse ridge that leaves only the difference of the class means
# Kernel that smooths rates, in deviations of a class of n scores: 0.9 n^(-1/5), Silverman (1986), eq. 3.31.
BANDWIDTH, POWER = 0.9, -0.2
REFINEMENTS = 3  # times that the grid of thresholds closes in
SIGNS = np.array([1.0, -1.0])
STEP = 0.05  # of numerical derivatives, in deviations of the narrower class, and of rates
# Deviations that a tuned threshold may be off by: where the metric is flat, it stays among the scores. Two hold 95 % of
# Gaussian scores; chosen by judgement; no study.
LARGEST_TUNING_ERROR = 2.0
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()
ROUNDS = 4  # of weights and widths
SETTLED = 1e-3  # change of log w at which rounds end
# Smallest and largest width of a class, relative to the pooled one; beyond, the weights all but vanish. Chosen by
# judgement; no study.
WIDTH_LIMITS = 0.05, 20.0


class Choice(NamedTuple):
    """What was chosen for one remedy: its inverse ridge, and its mixing (NaN where nothing is sampled)."""

    C: float
    mixing: float


class Setting(NamedTuple):
    """The sizes of the classes, the classifier and the metric."""

    n_pos: float
    n_neg: float
    D: int
    C: float
    loss: str
    metric: str
    costs: tuple  # of a missed positive and of a false alarm
    kernel: str = "linear"
    gamma: float | None = None  # width of an RBF kernel
    chosen: tuple = ()  # pairs of a (strategy, threshold) and its Choice, where C was to be chosen
    phi: float | None = None  # share of positives in the test set, if it is not that of the sizes
    grid: int = GRID  # mixtures that are compared
    tuned: bool = False  # whether a moved threshold is found on as many held-out rows, not known

    @property
    def share(self):
        """Share of positives in the test set: that of the data, unless they are given more rows of one class."""
        return self.n_pos / (self.n_pos + self.n_neg) if self.phi is None else self.phi

    @property
    def record(self):
        """The record of the metric, with its costs."""
        return named(self.metric, self.costs)

    @property
    def thresholds(self):
        """The thresholds that make a difference to the metric."""
        return ("trained",) if self.record.ranks else ("trained", "moved")

    @property
    def unit(self):
        """Scale of the metric: 1, or for a cost the cost of always giving the cheaper answer."""
        unit = self.record.unit
        return unit(self.share) if unit else 1.0


class Designs(NamedTuple):
    """The n training sets to compare: remedies that do not mix, mixtures from under- to oversampling, chosen ones."""

    n_pos: np.ndarray  # (n,)
    n_neg: np.ndarray
    weight_pos: np.ndarray
    weight_neg: np.ndarray
    mixing: np.ndarray  # NaN where nothing is sampled
    C: np.ndarray
    place: dict  # from the name of a remedy to its index; a searched mixing has none yet
    mixed: slice  # indices of the mixtures
    chosen: dict  # from the (strategy, threshold) of a choice to its index

    def index(self, row, searched=None):
        """Return the index of the design of a (strategy, threshold); ``searched`` if its mixing is yet to be chosen."""
        return self.chosen.get(row, self.place.get(row[0], searched))

    def at_each(self, C):
        """Return the designs with each of the inverse ridges C (k,), one after another: (k · n,) in all."""
        columns = (np.tile(column, len(C)) for column in self[:5])
        return self._replace(**dict(zip(self._fields, columns, strict=False)), C=np.repeat(C, len(self.C)))


def designs(setting):
    """Return all training sets that the remedies choose from."""
    sizes = setting.n_pos, setting.n_neg
    ratio, t = max(sizes) / min(sizes), np.linspace(0.0, 1.0, setting.grid)
    c = ratio**t
    mixing = (c - 1.0) / (ratio - 1.0) if ratio > 1.0 else t
    ends = {0.0: 0, 1.0: setting.grid - 1}  # mixings that are the first and the last of the mixtures
    own = [remedy for remedy in REMEDIES.values() if not (remedy.searched or remedy.mixing in ends)]  # columns
    place = {remedy.name: j for j, remedy in enumerate(own)}
    place |= {name: len(own) + ends[remedy.mixing] for name, remedy in REMEDIES.items() if remedy.mixing in ends}
    rows = [(*remedy.design(*sizes), remedy.mixing if remedy.samples else np.nan) for remedy in own]
    rows += [(*_design_with(name, *sizes, choice.mixing), choice.mixing) for (name, _), choice in setting.chosen]
    fixed, chosen = np.split(np.transpose(rows), [len(own)], axis=1)
    columns = np.hstack([fixed, (*kept(*sizes, c), mixing), chosen])
    first = len(own) + setting.grid
    # each remedy at its own C, and the mixtures at that of the recommended one
    chosen_C = {row: choice.C for row, choice in setting.chosen}
    C = [chosen_C.get((remedy.name, "trained"), setting.C) for remedy in own]
    C = np.r_[C, np.full(setting.grid, setting.C), list(chosen_C.values())]
    place_of = {row: first + j for j, (row, _) in enumerate(setting.chosen)}
    return Designs(*columns, C, place, slice(len(own), first), place_of)


def _design_with(name, n_pos, n_neg, mixing):
    """Return the design of a remedy whose mixing, if it samples, is known."""
    remedy = REMEDIES[name]
    return kept(n_pos, n_neg, multiplicity(n_pos, n_neg, mixing)) if remedy.samples else remedy.design(n_pos, n_neg)


def solve_all(moments, setting):
    """Solve the saddle point of every design."""
    d = designs(setting)
    return _solve(moments, setting, d, d.C)


def _solve(moments, setting, d, C):
    """Solve the saddle points of some designs, with one covariance or with widths."""
    # on features that are not divided by √D, scikit-learn's 1/C is λ̃ D
    options = {"lam": 1.0 / (C * setting.D), "weight_pos": d.weight_pos, "weight_neg": d.weight_neg}
    sizes = d.n_pos / setting.D, d.n_neg / setting.D
    if isinstance(moments, Wide):
        return solve_wide(moments, *sizes, loss=setting.loss, **options)
    return sweep(moments, *sizes, model="svm", loss=setting.loss, **options)


def collapse_bound(moments, setting):
    """Return an upper bound (thresholds,) on the metric of collapsed classifiers; NaN at the trained threshold.

    It is the metric of the mean-difference direction with a moved threshold, where an early-stopped optimiser ends up.
    At the trained threshold that classifier gives every sample one label.
    """
    n_pos, n_neg = float(setting.n_pos), float(setting.n_neg)
    # the square loss keeps this direction at any ridge, however strong
    balanced = Design(n_pos, n_neg, 0.5 / n_pos, 0.5 / n_neg)
    m = _solve(moments, setting._replace(loss="square"), balanced, VANISHING).metrics
    ranks = setting.record.ranks
    top = float(at_threshold(m, setting, "trained" if ranks else "moved")[1])
    return np.array([top if ranks or threshold == "moved" else np.nan for threshold in setting.thresholds])


def prediction_of(moments, setting, strategy, choice):
    """Solve the saddle point of one remedy with a known C and mixing; sizes of the setting may be arrays."""
    d = _design_with(strategy, np.asarray(setting.n_pos, float), np.asarray(setting.n_neg, float), choice.mixing)
    return _solve(moments, setting, d, choice.C)


class Values(NamedTuple):
    """Metric and rates of every design at each threshold, (thresholds, designs); the last five are (designs,)."""

    value: np.ndarray
    tpr: np.ndarray
    tnr: np.ndarray
    auc: np.ndarray
    train_error: np.ndarray
    collapsed: np.ndarray
    spread: np.ndarray  # by how much scores differ, in units of the margin: their width, or the distance of the classes
    free: np.ndarray  # share of the training samples of a class, of the one with more, that are at or beyond the margin

    def of_designs(self, part):
        """Return the values of some designs, a slice."""
        return Values(*(value[..., part] for value in self))


def evaluate(moments, setting, d=None):
    """Return the values of all designs at all thresholds; ``d`` are the designs of the setting, if they are known."""
    return _evaluated(moments, setting, designs(setting) if d is None else d)


def evaluate_each(moments, setting, C):
    """Return a list of the values of all designs for each inverse ridge C, which are solved together."""
    d = designs(setting)
    together, n = _evaluated(moments, setting, d.at_each(C)), len(d.C)
    return [together.of_designs(slice(k * n, (k + 1) * n)) for k in range(len(C))]


def _evaluated(moments, setting, d):
    """Return the values of designs at all thresholds."""
    solution = _solve(moments, setting, d, d.C)
    m = solution.metrics
    cuts, value = zip(*(at_threshold(m, setting, threshold) for threshold in setting.thresholds), strict=True)
    value = np.stack(value)
    tpr, tnr = (np.stack([rate(cut) for cut in cuts]) for rate in (m.tpr, m.tnr))
    width = np.sqrt(m.q.max(axis=-1) if isinstance(m, MixtureMetrics) else m.q)
    spread = np.maximum(width, np.abs(m.r))
    free = solution.free if isinstance(moments, Wide) else free_share(solution)
    return Values(value, tpr, tnr, m.auc(), solution.train_error, solution.phase == "COLLAPSED", spread, free)


# ---- thresholds


def score(metrics, setting, threshold=0.0):
    """Return the metric with the sign by which higher is better, so that a cost is negative."""
    record = setting.record
    return record.sign * record.of_theory(metrics, setting.share, threshold)


def best_threshold(metrics, setting):
    """Return the threshold at which the metric is best, by its formula or else by a grid that closes in."""
    if setting.record.best_threshold:
        return setting.record.best_threshold(metrics, setting.share)
    if isinstance(metrics, MixtureMetrics):
        mean, q = (np.atleast_2d(a)[:, None, :] for a in (metrics.mean, metrics.q))
        wide = MixtureMetrics(mean, q, metrics.signs, metrics.shares)
        centre, half = mean.mean(axis=-1), 0.5 * np.ptp(mean, axis=-1) + 6.0 * np.sqrt(q.max(axis=-1)) + 1e-12
    else:
        q, r, b = (np.atleast_1d(a)[:, None] for a in (metrics.q, metrics.r, metrics.b))
        wide = Metrics(q, r, b)
        half = 0.5 * np.abs(r) + 6.0 * np.sqrt(q) + 1e-12
        centre = -b
    for _ in range(REFINEMENTS):
        trial = centre + half * np.linspace(-1.0, 1.0, 65)
        heights = score(wide, setting, trial)
        at = np.argmax(np.nan_to_num(heights, nan=-np.inf), axis=1)[:, None]
        centre, half = np.take_along_axis(trial, at, axis=1), half / 24.0
    return centre[:, 0].reshape(np.shape(metrics.b))


def at_threshold(metrics, setting, threshold):
    """Return the "trained" or the "moved" threshold, and the metric that is to be expected of it, (n,) each.

    If the setting says that a moved threshold is tuned, its metric is that of tuned ones, and less than the best.
    """
    if threshold == "trained":
        cut = np.zeros_like(metrics.b)
        return cut, np.broadcast_to(score(metrics, setting, cut), cut.shape)
    cut = best_threshold(metrics, setting)
    best = np.broadcast_to(score(metrics, setting, cut), np.shape(cut))
    return cut, (expected_when_tuned(metrics, setting, best) if setting.tuned else best)


def expected_when_tuned(metrics, setting, best):
    """Return the mean metric of thresholds that are tuned on as many held-out scores as the setting has rows, (n,).

    Parameters
    ----------
    metrics : Metrics or MixtureMetrics
        Of n designs.
    setting : Setting
    best : (n,) array
        The metric at the best threshold, which is kept where all scores of a class are one.

    Returns
    -------
    (n,) array
    """
    mean, q = _law(metrics)
    shape, mean, q = np.shape(best), mean.reshape(-1, 2), q.reshape(-1, 2)
    usable = np.isfinite(mean).all(axis=-1) & (q > 0.0).all(axis=-1)
    expected = np.array(best, float).reshape(-1)
    if not usable.any():
        return expected.reshape(shape)
    sizes = np.stack(np.broadcast_arrays(setting.n_pos, setting.n_neg, np.zeros(shape))[:2], axis=-1).reshape(-1, 2)
    mean, q, sizes = mean[usable], q[usable], np.maximum(sizes[usable], 2.0)
    law = MixtureMetrics(mean, q, SIGNS, np.ones(2))
    cut, error = tuned_threshold(law, setting, sizes)
    values = score(law, setting, cut + error * NODES[:, None])
    # no tuned threshold is better than the best one; a grid is 1e-5 off
    expected[usable] = np.minimum(np.nan_to_num(values, nan=-np.inf).T @ NODE_WEIGHTS, expected[usable])
    return expected.reshape(shape)


def tuned_threshold(law, setting, sizes):
    """Return the mean and the standard deviation (n,) of tuned thresholds, from n laws with two classes each.

    Parameters
    ----------
    law : MixtureMetrics
        Means and variances (n, 2).
    setting : Setting
        For its metric.
    sizes : (n, 2) array
        Held-out scores of each class.

    Returns
    -------
    ((n,) array, (n,) array)
    """
    mean, q = law.mean, law.q
    width = BANDWIDTH * np.sqrt(q) * sizes**POWER
    smooth = MixtureMetrics(mean, q + width**2, SIGNS, np.ones(2))
    cut = best_threshold(smooth, setting)
    # variance of a kernel estimate of a density at the cut: its mean square minus the square of its mean
    square = _density(cut, mean, q + 0.5 * width**2) / (2.0 * np.sqrt(np.pi) * width)
    noise = (square - _density(cut, mean, q + width**2) ** 2) / sizes
    slopes = _slopes(smooth, setting, cut)
    step = STEP * 4.0 * np.sqrt(q.min(axis=-1))
    left, middle, right = score(smooth, setting, cut + step * np.array([[-1.0], [0.0], [1.0]]))
    curvature = np.maximum((2.0 * middle - left - right) / step**2, 1e-12)
    error = np.sqrt(np.sum(slopes**2 * np.maximum(noise, 0.0), axis=-1)) / curvature
    return cut, np.minimum(error, LARGEST_TUNING_ERROR * np.sqrt(q.max(axis=-1)))


def _law(metrics):
    """Return means and variances (..., 2) of the scores of both classes."""
    if isinstance(metrics, MixtureMetrics):
        return metrics.mean, metrics.q
    half = 0.5 * metrics.r
    mean = np.stack(np.broadcast_arrays(half - metrics.b, -half - metrics.b), axis=-1)
    return mean, np.broadcast_to(np.asarray(metrics.q)[..., None], mean.shape)


def _density(at, mean, variance):
    """Return the Gaussian densities (n, 2) of both classes at (n,)."""
    return np.exp(-0.5 * (at[:, None] - mean) ** 2 / variance) / np.sqrt(2.0 * np.pi * variance)


def _slopes(law, setting, cut):
    """Return the derivatives (n, 2) of the metric in the rates of both classes above the threshold."""
    record, rates = setting.record, [law.tpr(cut), law.fpr(cut)]
    slopes = []
    for k in range(2):
        ends = []
        for side in (-1.0, 1.0):
            moved = [np.clip(rate + side * STEP * 0.1 * (j == k), 0.0, 1.0) for j, rate in enumerate(rates)]
            ends.append((moved[k], record.of_rates(Rates.of(*moved), setting.share)))
        (low, below), (high, above) = ends
        slopes.append((above - below) / (high - low))
    return np.nan_to_num(np.stack(slopes, axis=-1))


# ---- classes with a width each


class Wide(NamedTuple):
    """Statistics of two classes with a width each along the weights."""

    spectrum: Spectrum  # of the pooled covariance, and the shift
    sample: Sample
    known: np.ndarray | None = None  # (n, 2) widths of the positive and the negative class, of each design to be solved

    def apart(self, factor):
        """Return a copy with the means of the classes ``factor`` times as far apart."""
        return self._replace(spectrum=self.spectrum.apart(factor))


class WideSolution(NamedTuple):
    """Saddle points of n designs."""

    metrics: MixtureMetrics
    train_error: np.ndarray  # (n,)
    phase: np.ndarray
    widths: np.ndarray  # (n, 2)
    free: np.ndarray  # (n,) as of free_share


def widths_along(sample, k_hat, x_hat, q_hat, r_hat):
    r"""Return the widths (..., 2) of both classes along the weights of saddle points.

    Along an eigenvector of the pooled covariance, with the value λ and the shift δ, the squared weight is
    :math:`(\hat q\lambda/L + \hat r^2\delta^2)/(\hat k + \hat x\lambda)^2` for the true δ. The noise of the measured
    one, :math:`\tau\lambda`, is a part of :math:`\hat q\lambda/L` and is not counted twice.

    Parameters
    ----------
    sample : Sample
    k_hat, x_hat, q_hat, r_hat : float or (...) array
        Hats of the saddle points.

    Returns
    -------
    (..., 2) array
        1 where the weights vanish.
    """
    values, total = sample.values, sample.values.sum()
    tau = sample.spread_pos.sum() / total / sample.n_pos + sample.spread_neg.sum() / total / sample.n_neg
    k_hat, x_hat, q_hat, signal = (np.asarray(a)[..., None] for a in (k_hat, x_hat, q_hat, np.square(r_hat)))
    noise = np.maximum(q_hat / sample.D - signal * tau, 0.0)
    squared = (noise * values + signal * sample.shift**2) / (k_hat + x_hat * values) ** 2
    along = np.stack([squared @ sample.spread_pos, squared @ sample.spread_neg], axis=-1)
    pooled = (squared @ values)[..., None]
    return np.where(pooled > 0.0, np.clip(along / np.where(pooled > 0.0, pooled, 1.0), *WIDTH_LIMITS), 1.0)


def solve_wide(classes, alpha_pos, alpha_neg, *, weight_pos, weight_neg, lam, loss):
    """Solve n designs, arrays (n,), with widths that are known or found.

    Parameters
    ----------
    classes : Wide
    alpha_pos, alpha_neg, weight_pos, weight_neg, lam : (n,) arrays
        As in :func:`rbal.sweep`.
    loss : str

    Returns
    -------
    WideSolution
    """
    names = ("alpha_pos", "alpha_neg", "weight_pos", "weight_neg", "lam")
    columns = np.broadcast_arrays(alpha_pos, alpha_neg, weight_pos, weight_neg, lam)
    options = dict(zip(names, columns, strict=True)) | {"loss": loss}
    shape, known = columns[0].shape, classes.known is not None
    widths = np.array(np.broadcast_to(classes.known if known else 1.0, (*shape, 2)), float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", convergence_warning())
        sol = sweep_widths(classes.spectrum, np.moveaxis(widths, -1, 0), **options)
        for _ in range(0 if known else ROUNDS):
            updated = widths_along(classes.sample, sol.k_hat, sol.x_hat, sol.q_hat, sol.r_hat)
            updated = np.where(np.isfinite(updated), updated, widths)  # unchanged where the weights vanish
            change = np.abs(np.log(updated / widths)).max(initial=0.0)
            if change < SETTLED:
                break
            widths = updated
            sol = sweep_widths(classes.spectrum, np.moveaxis(widths, -1, 0), **options)
    mean = 0.5 * SIGNS * sol.r[..., None] - sol.b[..., None]
    metrics = MixtureMetrics(mean, widths * sol.q[..., None], SIGNS, np.ones(2))
    return WideSolution(metrics, sol.train_error, sol.phase, widths, free_share(sol, widths))
