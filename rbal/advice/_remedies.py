"""Predict each remedy by the theory, for one set of moments: the part of the advice that needs no data."""

from typing import NamedTuple

import numpy as np

from ..metrics import MixtureMetrics
from ..metrics.internal import named
from ..saddle import sweep
from ..strategies import REMEDIES
from ..strategies.internal import Design, kept, multiplicity
from ._cuts import at_threshold
from ._widths import Wide, free_share, solve_wide

GRID = 17  # mixtures of under- and oversampling, evenly spaced in log c
VANISHING = 1e-4  # inverse ridge that leaves only the difference of the class means


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
        """The kinds of threshold between which the metric differs."""
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
    own = [remedy for remedy in REMEDIES.values() if not (remedy.searched or remedy.mixing in ends)]
    place = {remedy.name: j for j, remedy in enumerate(own)}
    place |= {name: len(own) + ends[remedy.mixing] for name, remedy in REMEDIES.items() if remedy.mixing in ends}
    rows = [(*remedy.design(*sizes), remedy.mixing if remedy.samples else np.nan) for remedy in own]
    rows += [(*_remade(name, *sizes, choice.mixing), choice.mixing) for (name, _), choice in setting.chosen]
    fixed, chosen = np.split(np.transpose(rows), [len(own)], axis=1)
    columns = np.hstack([fixed, (*kept(*sizes, c), mixing), chosen])
    first = len(own) + setting.grid
    # each remedy at its own C, and the mixtures at that of the recommended one
    chosen_C = {row: choice.C for row, choice in setting.chosen}
    C = [chosen_C.get((remedy.name, "trained"), setting.C) for remedy in own]
    C = np.r_[C, np.full(setting.grid, setting.C), list(chosen_C.values())]
    place_of = {row: first + j for j, (row, _) in enumerate(setting.chosen)}
    return Designs(*columns, C, place, slice(len(own), first), place_of)


def _remade(name, n_pos, n_neg, mixing):
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


def reach(moments, setting):
    """Return the metric (thresholds,) of scores along the difference of the class means, with the threshold moved.

    That is the direction of weights that vanish, and the most that a machine has of which theory says that they do, but
    which an optimiser leaves before they are gone. At the trained threshold it gives every sample one label.
    """
    n_pos, n_neg = float(setting.n_pos), float(setting.n_neg)
    # the square loss keeps this direction at any ridge, however strong
    balanced = Design(n_pos, n_neg, 0.5 / n_pos, 0.5 / n_neg)
    m = _solve(moments, setting._replace(loss="square"), balanced, VANISHING).metrics
    kind = "trained" if setting.record.ranks else "moved"
    top = float(at_threshold(m, setting, kind)[1])
    return np.array([top if kind == "moved" or setting.record.ranks else np.nan for kind in setting.thresholds])


def solve_row(moments, setting, strategy, choice):
    """Solve the saddle point of one remedy with a known C and mixing; sizes of the setting may be arrays."""
    d = _remade(strategy, np.asarray(setting.n_pos, float), np.asarray(setting.n_neg, float), choice.mixing)
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

    def of_design(self, some):
        """Return the values of some designs, a slice."""
        return Values(*(value[..., some] for value in self))


def evaluate(moments, setting):
    """Return the values of all designs at all thresholds."""
    return _evaluated(moments, setting, designs(setting))


def evaluate_each(moments, setting, C):
    """Return a list of the values of all designs for each inverse ridge C, which are solved together."""
    d = designs(setting)
    together, n = _evaluated(moments, setting, d.at_each(C)), len(d.C)
    return [together.of_design(slice(k * n, (k + 1) * n)) for k in range(len(C))]


def _evaluated(moments, setting, d):
    """Return the values of designs at all thresholds."""
    solution = _solve(moments, setting, d, d.C)
    m = solution.metrics
    cuts, value = zip(*(at_threshold(m, setting, kind) for kind in setting.thresholds), strict=True)
    value = np.stack(value)
    tpr, tnr = (np.stack([rate(cut) for cut in cuts]) for rate in (m.tpr, m.tnr))
    width = np.sqrt(m.q.max(axis=-1) if isinstance(m, MixtureMetrics) else m.q)
    spread = np.maximum(width, np.abs(m.r))
    free = solution.free if isinstance(moments, Wide) else free_share(solution)
    return Values(value, tpr, tnr, m.auc(), solution.train_error, solution.phase == "COLLAPSED", spread, free)
