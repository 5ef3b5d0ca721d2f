"""What the theory predicts of each remedy, for one set of moments: the part of the advice without data."""

from typing import NamedTuple

import numpy as np

from ..metrics import Metrics
from ..saddle import sweep

GRID = 33  # mixtures of under- and oversampling, evenly spaced in log c
STRATEGIES = ("as is", "undersampling", "oversampling", "best mix", "class weights")
METRICS = ("ba", "f1", "mcc", "auprc", "auc", "cost")
RANKING = ("auprc", "auc")  # blind to the threshold
REFINEMENTS = 3  # of the grid of thresholds


class Setting(NamedTuple):
    """The classifier, the classes and what counts."""

    n_pos: float
    n_neg: float
    D: int
    C: float
    loss: str
    metric: str
    costs: tuple  # of a missed positive and of a false alarm

    @property
    def share(self):
        """Share of positives in the data, and so in the test set."""
        return self.n_pos / (self.n_pos + self.n_neg)

    @property
    def thresholds(self):
        """The kinds of threshold that make a difference to the metric."""
        return ("trained",) if self.metric in RANKING else ("trained", "moved")

    @property
    def unit(self):
        """Scale of the metric: 1, and for a cost that of always giving the cheaper answer."""
        if self.metric != "cost":
            return 1.0
        return min(self.share * self.costs[0], (1.0 - self.share) * self.costs[1])


class Designs(NamedTuple):
    """Training sets to compare: the set as it is, class weights, then mixtures from under- to oversampling."""

    n_pos: np.ndarray
    n_neg: np.ndarray
    weight_pos: np.ndarray
    weight_neg: np.ndarray
    c: np.ndarray  # multiplicity of the minority
    mixing: np.ndarray


def designs(setting):
    """All training sets that the strategies choose from."""
    pos, neg = setting.n_pos, setting.n_neg
    small, ratio = min(pos, neg), max(pos, neg) / min(pos, neg)
    c = ratio ** np.linspace(0.0, 1.0, GRID)
    ones = np.ones(GRID)
    mixed = (small * ones, c * small, c, ones) if pos <= neg else (c * small, small * ones, ones, c)
    mean = 0.5 * (pos + neg)
    plain = ((pos, pos), (neg, neg), (1.0, mean / pos), (1.0, mean / neg))
    mixing = (c - 1.0) / (ratio - 1.0) if ratio > 1.0 else np.linspace(0.0, 1.0, GRID)
    parts = [np.concatenate(both) for both in zip(plain, mixed, strict=True)]
    return Designs(*parts, np.concatenate([[1.0, np.nan], c]), np.concatenate([[np.nan, np.nan], mixing]))


def solve_all(moments, setting):
    """Solution of every design."""
    d = designs(setting)
    # on features that are not divided by √D, scikit-learn's 1/C is λ̃ D
    lam = 1.0 / (setting.C * setting.D)
    return sweep(
        moments, d.n_pos / setting.D, d.n_neg / setting.D, model="svm", loss=setting.loss, lam=lam,
        weight_pos=d.weight_pos, weight_neg=d.weight_neg,
    )  # fmt: skip


def score(metrics, setting, threshold=0.0):
    """The metric that counts, more is better: a cost is negative."""
    if setting.metric == "cost":
        miss, alarm = setting.costs
        share = setting.share
        return -(share * miss * metrics.fnr(threshold) + (1.0 - share) * alarm * metrics.fpr(threshold))
    if setting.metric in ("ba", "auc"):
        return metrics.ba(threshold) if setting.metric == "ba" else metrics.auc()
    if setting.metric == "auprc":
        return metrics.auprc(setting.share)
    return getattr(metrics, setting.metric)(setting.share, threshold)


def best_threshold(metrics, setting):
    """Threshold at which the metric is best: in closed form where there is one, else by a grid that closes in."""
    middle = -metrics.b
    if setting.metric in (*RANKING, "ba"):
        return middle
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


class Values(NamedTuple):
    """The metric of every design, at each kind of threshold: (thresholds, designs) arrays."""

    value: np.ndarray
    tpr: np.ndarray
    tnr: np.ndarray
    auc: np.ndarray
    train_error: np.ndarray
    collapsed: np.ndarray


def evaluate(moments, setting):
    """All designs at all thresholds."""
    solution = solve_all(moments, setting)
    m = solution.metrics
    zero = np.zeros_like(m.b)
    cuts = [zero if kind == "trained" else best_threshold(m, setting) for kind in setting.thresholds]
    value = np.stack([np.broadcast_to(score(m, setting, cut), zero.shape) for cut in cuts])
    tpr, tnr = (np.stack([rate(cut) for cut in cuts]) for rate in (m.tpr, m.tnr))
    return Values(value, tpr, tnr, m.auc(), solution.train_error, solution.phase == "COLLAPSED")
