"""Choose what the user leaves open, by the theory and without training: the C of each remedy, and the kernel.

Of candidates that are predicted all but equal the simplest is taken: C nearest to 1; and of kernels that differ by no
more than predictions err on real tables, the linear one, and the RBF width nearest to "scale".
"""

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics.pairwise import euclidean_distances

from .._support.warnings import convergence_warning
from ..kernels import bind
from ..losses import LOSSES
from ..moments import Moments
from ..moments.internal import Fitter, Sample
from ..strategies import REMEDIES
from ..strategies.internal import bias_is_held
from ._prediction import Choice, Setting, Values, Wide, designs, evaluate, evaluate_each
from ._table import coded, sample_rows

NEGLIGIBLE = 0.002  # remedies that differ by less count as equal; chosen by judgement; no study
# Error of predictions on real tables: of remedies closer than this the simplest is taken. On the tables that judge
# (stored study `advice`, judge-compared.csv; tests/advice/test_sources.py) predictions for linear machines are off by
# 0.011 on average with all positives, and by 0.025 with 25.
PREDICTION_ERROR = 0.02
# Of values of C that are predicted this close to the best one, the nearest to 1 is taken. On tables for design with 25
# positives that is better than 0.002, and as good as any tolerance up to 0.02: a far C is a bolder claim. (That
# comparison is not among the stored results.)
C_TOLERANCE = 0.01
COARSE = 9  # mixtures that are compared while C is chosen
# Rows of a class whose width is worth to be taken: the variance along the weights then has a standard error of
# sqrt(2 / 10), 45 %. Chosen by judgement; no study.
FEWEST_OF_WIDTH = 10
# Scores that differ by less than this share of the margin are noise of the optimiser: ten times the tolerance of
# scikit-learn's SVC, 1e-3. Chosen by judgement; no study.
SMALLEST_SPREAD = 0.01
STEPS = (1.0, 2.0, 5.0)  # of a first grid of C in every decade
FINER = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
DECADES = {"linear": (-4, 2), "rbf": (-2, 4)}  # of C, both ends included: rows of an RBF kernel have length 1
MOST_ROWS = 1_500  # of a Gram matrix, whose eigenvalues take a second: a larger table is sampled down
MOST_TRAINED = 10_000  # rows of a table for which an RBF kernel is recommended unasked: its training takes their square
FEWEST = 200  # rows of each class that sampling down keeps, if there are so many
WIDTHS = (1.0, 0.25, 4.0)  # of the RBF kernel, in units of gamma="scale"
FURTHER = (1 / 16, 16.0)  # beyond the second and the third of them
# By how much the balanced accuracy came out below its prediction on those of the tables that judge for which an RBF
# machine was recommended on most splits, with all positives and with 25: results of the stored study `advice`
# (judge-compared.csv), with which tests/advice/test_sources.py compares them. Chapter your_data.
RBF_SHORTFALL, RBF_SHORTFALL_SCARCE = 0.015, 0.04


class Search(NamedTuple):
    """What the user leaves open: C, the kernel, and the kind of moments."""

    C: str | tuple | None = None  # "best", candidates, or None where it is fixed
    kernel: str = "linear"  # or "rbf", or "best"
    moments: str = "auto"  # or "width", or "pooled"


class Machine(NamedTuple):
    """A kernel, with the statistics of the classes in its feature space."""

    kernel: str
    gamma: float | None
    sample: Sample
    fitter: Fitter  # of the moments
    rows: int  # that the moments are of

    @classmethod
    def of(cls, kernel, gamma, sample, rows):
        """Return the machine of a sample."""
        return cls(kernel, gamma, sample, Fitter(sample), rows)

    def setting(self, setting):
        """Return the setting of this machine."""
        return setting._replace(kernel=self.kernel, gamma=self.gamma, D=self.sample.D)

    def moments(self, kind):
        """Return the moments: with one covariance or, if there are enough rows for that, with a width of each class."""
        pooled, few = self.fitter.fit(), min(self.sample.n_pos, self.sample.n_neg) < FEWEST_OF_WIDTH
        return pooled if kind == "pooled" or (kind == "auto" and few) else Wide(pooled, self.sample)


class Selection(NamedTuple):
    """The machine that was chosen, with the C of each remedy."""

    machine: Machine
    moments: object
    setting: Setting
    values: Values
    candidates: pd.DataFrame  # all that were predicted, a row each; None where nothing was left open
    best: tuple  # (strategy, threshold)
    baseline: float = np.nan  # prediction for the data as they are, where something was left open
    linear: object = None  # the Selection of the linear machine, where an RBF kernel was taken instead of it

    @property
    def height(self):
        """Prediction for the best remedy, where more is better; -inf if nothing converged."""
        return -np.inf if self.best is None else self.values.value[places(self.setting, self.values.value)[self.best]]


# ---- the simplest of good remedies


def simplicity(strategy, threshold, balanced):
    """Return a key that sorts remedies, the simplest first.

    For metrics that ask for balance, class weights come first: they lose no sample and need no second step. Otherwise
    the remedy with fewer steps comes first.
    """
    remedy, moved = REMEDIES[strategy], threshold == "moved"
    does = remedy.samples or remedy.weights is not None
    return not balanced and does, remedy.samples, remedy.samples and moved, remedy.place, moved


def simplest(good, setting):
    """Return the simplest of the remedies that the boolean Series marks as good enough."""
    return min(good.index[good], key=lambda row: simplicity(*row, setting.record.balanced))


def places(setting, value):
    """Return a dict from (strategy, threshold) to the indices of its threshold and of its design."""
    d, rows = designs(setting), {}
    for name in REMEDIES:
        for k, threshold in enumerate(setting.thresholds):
            best = d.mixed.start + int(np.argmax(np.nan_to_num(value[k, d.mixed], nan=-np.inf)))
            rows[name, threshold] = (k, d.index((name, threshold), best))
    return rows


def recommended(setting, value):
    """Return the (strategy, threshold) to recommend: the simplest of those that are predicted close to the best."""
    rows = pd.Series({row: value[place] for row, place in places(setting, value).items()})
    return simplest(rows.max() - rows <= PREDICTION_ERROR * setting.unit, setting)


# ---- C


def grid(kernel, steps=STEPS):
    """Return round values of C over some decades, ascending."""
    low, high = DECADES[kernel]
    return [float(f"{step}e{k}") for k in range(low, high) for step in steps] + [10.0**high]


def distance_from_1(C):
    """Return a key that sorts values of C by their distance from 1, of two the smaller first: it trains faster."""
    return round(abs(np.log(C)), 9), C


def choose(moments, setting, C):
    """Choose a C for each remedy, from "best" or a tuple; return the setting with the choices, and all candidates."""
    first = grid(setting.kernel) if C == "best" else sorted(set(C))
    predictions = _rows_at(moments, setting, first)
    if C == "best":
        tops = {max(first, key=lambda c, row=row: _rank(predictions[c][row])) for row in predictions[first[0]]}
        predictions |= _rows_at(moments, setting, _between(first, tops, grid(setting.kernel, FINER)))
    chosen = []
    for row in predictions[first[0]]:
        heights = {c: _rank(rows[row]) for c, rows in predictions.items()}
        top = max(heights.values())
        close = [c for c in sorted(heights) if heights[c] >= top - C_TOLERANCE * setting.unit]
        best = min(close, key=distance_from_1)
        chosen.append((row, Choice(best, predictions[best][row]["mixing"])))
    gamma = np.nan if setting.gamma is None else setting.gamma  # of one type, whatever the kernel
    candidates = pd.DataFrame(
        {"kernel": setting.kernel, "gamma": gamma, "strategy": row[0], "threshold": row[1], "C": c, **values}
        for c in sorted(predictions) for row, values in predictions[c].items()
    )  # fmt: skip
    return setting._replace(chosen=tuple(chosen)), candidates


def _rows_at(moments, setting, C):
    """Return the predictions at some values of C: a dict from C to a dict by (strategy, threshold)."""
    setting = setting._replace(chosen=(), grid=COARSE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", convergence_warning())  # at the ends of the grid, which are then not chosen
        values = evaluate_each(moments, setting, C) if len(C) else []
    return {c: _rows_of(setting, at) for c, at in zip(C, values, strict=True)}


def _rows_of(setting, at):
    """Return the predictions at one C, a dict by (strategy, threshold), from the values of all designs."""
    d, loose = designs(setting), ~bias_is_held(at.free, LOSSES[setting.loss].kinked)
    sign = setting.record.sign
    return {
        row: {"mixing": float(d.mixing[j]), "predicted": float(sign * at.value[k, j]), "height": float(at.value[k, j]),
              "trainable": bool(at.spread[j] >= SMALLEST_SPREAD and not (row[1] == "trained" and loose[j]))}
        for row, (k, j) in places(setting, at.value).items()
    }  # fmt: skip


def _rank(row):
    """Return the score by which a candidate is chosen: -inf if it failed, or if an optimiser does not reach it.

    A machine whose weights all but vanish is left where the optimiser stops, far from the one that is predicted. And
    where all but a few samples are within the margin of a hinge loss, these few alone hold the bias of classes that
    weigh the same, and they are the outliers of the table.
    """
    return -np.inf if not row["trainable"] or np.isnan(row["height"]) else row["height"]


def _between(first, tops, finer):
    """Return the values of a finer grid next to the best ones of the first grid, without those of the first."""
    new = set()
    for top in tops:
        j = first.index(top)
        low, high = first[max(j - 1, 0)], first[min(j + 1, len(first) - 1)]
        new |= {c for c in finer if low < c < high}
    return sorted(new - set(first))


# ---- machines: linear ones take the statistics of all rows, RBF kernels those of as many rows as fit


def linear_machine(data):
    """Return the linear machine, whose moments are those of all rows."""
    return Machine.of("linear", None, data.sample, data.n_pos + data.n_neg)


def rbf_machines(data, random_state):
    """Return a function from a width to the machine with this RBF kernel, all from the same rows."""
    rows, y = sample_rows(data, MOST_ROWS, FEWEST, np.random.default_rng(random_state))
    X = coded(rows, data.kinds)
    squares = euclidean_distances(X - X.mean(axis=0), squared=True)
    scale = bind("rbf", X).parameters["gamma"]

    def machine(width):
        gamma = float(f"{scale * width:.3g}")  # the number that is printed is the one that is used
        moments = Moments.from_kernel(np.exp(-gamma * squares), y, positive=True)
        return Machine.of("rbf", gamma, moments.sample, len(y))

    return machine


# ---- the kernel


def select(data, setting, search, random_state):
    """Choose the kernel and C, and return the Selection."""
    candidates = list(_selections(data, setting, search, random_state))
    if all(np.isnan(one.values.value).all() for one in candidates):
        other = "larger" if setting.C < 1.0 else "smaller"
        raise ValueError(f"no saddle point converged at C={setting.C:g} and loss={setting.loss!r}: try a {other} C")
    heights = [one.height for one in candidates]
    curved = [j for j, one in enumerate(candidates) if one.machine.kernel != "linear"]
    best = 0
    if curved:
        # listed from "scale" outwards, so that the first of equals is the simplest; kernels do not share their errors
        top = max(heights[j] for j in curved)
        best = next(j for j in curved if heights[j] >= top - PREDICTION_ERROR * setting.unit)
        if curved[0] == 1 and not heights[best] - heights[0] > PREDICTION_ERROR * setting.unit:
            best = 0
    if candidates[best].candidates is None:
        return candidates[best]
    of_all = [one.candidates.astype({"gamma": object}) for one in candidates]  # linear machines have None
    table = pd.concat(of_all, ignore_index=True).drop(columns="height")
    first = candidates[0]
    baseline = _rows_at(first.moments, first.setting, [setting.C])[setting.C]["as is", "trained"]["predicted"]
    chosen, first = (candidates[j]._replace(candidates=table, baseline=baseline) for j in (best, 0))
    return chosen._replace(linear=first) if best and curved[0] == 1 and first.best is not None else chosen


def _select_C(machine, setting, search):
    """Choose the C of each remedy for one machine, solve it there, and return the Selection."""
    setting, moments, candidates = machine.setting(setting), machine.moments(search.moments), None
    if search.C is not None:
        setting, candidates = choose(moments, setting, search.C)
        value = evaluate(moments, setting).value
        if not np.isnan(value).all():
            setting = setting._replace(C=dict(setting.chosen)[recommended(setting, value)].C)
    elif search.kernel != "linear":
        _, candidates = choose(moments, setting, (setting.C,))
    values = evaluate(moments, setting)
    best = None if np.isnan(values.value).all() else recommended(setting, values.value)
    return Selection(machine, moments, setting, values, candidates, best)


def _selections(data, setting, search, random_state):
    """Yield the Selection of each machine: the linear one first, then RBF kernels from "scale" outwards.

    A kernel further out is tried only on the side where the nearer one is better than "scale".
    """
    if search.kernel in ("linear", "best"):
        yield _select_C(linear_machine(data), setting, search)
    large = data.n_pos + data.n_neg > MOST_TRAINED
    if search.kernel == "linear" or (search.kernel == "best" and large):
        return
    machine = rbf_machines(data, random_state)
    near = [_select_C(machine(width), setting, search) for width in WIDTHS]
    yield from near
    best = int(np.argmax([one.height for one in near]))
    if best:
        yield _select_C(machine(FURTHER[best - 1]), setting, search)


def kernel_notes(data, machine, options):
    """Return sentences on a kernel that was left out or chosen, and on the rows that it was judged by, if not all."""
    n, open_kernel = data.n_pos + data.n_neg, options.search.kernel == "best"
    if open_kernel and n > MOST_TRAINED:
        return [
            f"With more than {MOST_TRAINED:,} rows an RBF kernel is slow to train, and was left out: "
            "kernel='rbf' asks for it."
        ]
    notes = []
    if machine.rows != n:
        notes.append(
            f"The RBF kernel was judged on {machine.rows:,} of {n:,} rows, drawn at random: class sizes are those of "
            "the table, the statistics of the classes those of the sample."
        )
    if open_kernel and machine.kernel != "linear" and options.train != "check":
        notes.append(
            "Where an RBF machine was recommended on the tables that judged this advice, its balanced accuracy came "
            f"out {RBF_SHORTFALL:g} lower than predicted on average, and {RBF_SHORTFALL_SCARCE:g} lower with 25 "
            "positives; train='check' measures it."
        )
    return notes
