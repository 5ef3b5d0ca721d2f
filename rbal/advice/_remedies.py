"""What the theory predicts of each remedy, for one set of moments: the part of the advice without data."""

from typing import NamedTuple

import numpy as np

from ..metrics import Metrics
from ..metrics._records import named
from ..saddle import sweep
from ..strategies import REMEDIES
from ..strategies._records import kept

GRID = 33  # mixtures of under- and oversampling, evenly spaced in log c
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
    def record(self):
        """Record of the metric, with its costs."""
        return named(self.metric, self.costs)

    @property
    def thresholds(self):
        """The kinds of threshold that make a difference to the metric."""
        return ("trained",) if self.record.ranks else ("trained", "moved")

    @property
    def unit(self):
        """Scale of the metric: 1, and for a cost that of always giving the cheaper answer."""
        unit = self.record.unit
        return unit(self.share) if unit else 1.0


class Designs(NamedTuple):
    """Training sets to compare, n of them: those of remedies that do not mix, then mixtures from under- to over-."""

    n_pos: np.ndarray  # (n,)
    n_neg: np.ndarray
    weight_pos: np.ndarray
    weight_neg: np.ndarray
    mixing: np.ndarray  # NaN where nothing is sampled
    place: dict  # name of a remedy to its place; that of a searched mixing is not known yet
    mixed: slice  # places of the mixtures


def designs(setting):
    """All training sets that the remedies choose from."""
    sizes = setting.n_pos, setting.n_neg
    ratio, t = max(sizes) / min(sizes), np.linspace(0.0, 1.0, GRID)
    c = ratio**t
    mixing = (c - 1.0) / (ratio - 1.0) if ratio > 1.0 else t
    ends = {0.0: 0, 1.0: GRID - 1}  # of the mixtures
    own = [remedy for remedy in REMEDIES.values() if not (remedy.searched or remedy.mixing in ends)]
    place = {remedy.name: j for j, remedy in enumerate(own)}
    place |= {name: len(own) + ends[remedy.mixing] for name, remedy in REMEDIES.items() if remedy.mixing in ends}
    rows = [(*remedy.design(*sizes), remedy.mixing if remedy.samples else np.nan) for remedy in own]
    columns = np.hstack([np.transpose(rows), (*kept(*sizes, c), mixing)])
    return Designs(*columns, place, slice(len(own), None))


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
    record = setting.record
    return record.sign * record.of_theory(metrics, setting.share, threshold)


def best_threshold(metrics, setting):
    """Threshold at which the metric is best: in closed form where there is one, else by a grid that closes in."""
    if setting.record.best_threshold:
        return setting.record.best_threshold(metrics, setting.share)
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
