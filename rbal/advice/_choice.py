"""Choose what the user leaves open, by the theory and without training: the C of each remedy, and the kernel.

Of candidates that are predicted all but equal the simplest is taken: C nearest to 1; and of kernels that differ by no
more than predictions err on real tables, the linear one, and the RBF width nearest to "scale".
"""

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd

from .._support.warnings import convergence_warning
from ..losses import LOSSES
from ..moments.internal import Fitter, Sample
from ..strategies import REMEDIES
from ..strategies.internal import bias_is_held
from ._remedies import Choice, Setting, Values, designs, evaluate, evaluate_each
from ._widths import Wide

NEGLIGIBLE = 0.002  # remedies that differ by less count as equal
TRUST = 0.02  # error of predictions on real tables (your_data): of remedies closer than this the simplest is taken
# Of values of C that are predicted this close to the best one, the nearest to 1 is taken. On tables for design with 25
# positives that is better than 0.002, and as good as any tolerance up to 0.02: a far C is a bolder claim.
WORTH = 0.01
COARSE = 9  # mixtures that are compared while C is chosen
FEWEST = 10  # rows of a class whose width is worth to be taken
FAINT = 0.01  # scores that differ by less than this share of the margin are noise of the optimiser
STEPS = (1.0, 2.0, 5.0)  # of a first grid of C in every decade
FINER = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
DECADES = {"linear": (-4, 2), "rbf": (-2, 4)}  # of C, both ends included: rows of an RBF kernel have length 1


class Wanted(NamedTuple):
    """What is left open."""

    C: str | tuple | None = None  # "best", candidates, or None where it is fixed
    kernel: str = "linear"  # or "rbf", or "best"
    moments: str = "auto"  # or "width", or "pooled"


class Machine(NamedTuple):
    """A kernel, and the classes as it sees them."""

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
        """Return the moments: one covariance, or with a width of each class, which takes some rows to be known."""
        found, few = self.fitter.fit(), min(self.sample.n_pos, self.sample.n_neg) < FEWEST
        return found if kind == "pooled" or (kind == "auto" and few) else Wide(found, self.sample)


class Selected(NamedTuple):
    """The machine that was chosen, with the C of each remedy."""

    machine: Machine
    moments: object
    setting: Setting
    at: Values
    candidates: pd.DataFrame  # all that were predicted, a row each; None where nothing was left open
    best: tuple  # (strategy, threshold)
    nothing: float = np.nan  # prediction for the data as they are, where something was left open
    linear: object = None  # the Selected of the linear machine, where an RBF kernel was taken instead of it


# ---- the simplest of the good


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
        for k, kind in enumerate(setting.thresholds):
            best = d.mixed.start + int(np.argmax(np.nan_to_num(value[k, d.mixed], nan=-np.inf)))
            rows[name, kind] = (k, d.chosen.get((name, kind), d.place.get(name, best)))
    return rows


def recommended(setting, value):
    """Return the (strategy, threshold) to recommend: the simplest of those that are predicted close to the best."""
    rows = pd.Series({row: value[place] for row, place in places(setting, value).items()})
    return simplest(rows.max() - rows <= TRUST * setting.unit, setting)


# ---- C


def grid(kernel, steps=STEPS):
    """Return round values of C over some decades, ascending."""
    low, high = DECADES[kernel]
    return [float(f"{step}e{k}") for k in range(low, high) for step in steps] + [10.0**high]


def choose(moments, setting, C):
    """Choose a C for each remedy, from "best" or a tuple; return the setting with the choices, and all candidates."""
    first = grid(setting.kernel) if C == "best" else sorted(set(C))
    found = _rows_at(moments, setting, first)
    if C == "best":
        tops = {max(first, key=lambda c, row=row: _rank(found[c][row])) for row in found[first[0]]}
        found |= _rows_at(moments, setting, _between(first, tops, grid(setting.kernel, FINER)))
    chosen = []
    for row in found[first[0]]:
        heights = {c: _rank(rows[row]) for c, rows in found.items()}
        top = max(heights.values())
        close = [c for c in sorted(heights) if heights[c] >= top - WORTH * setting.unit]
        # of two that are as far from 1, the smaller: it trains faster
        best = min(close, key=lambda c: (round(abs(np.log(c)), 9), c))
        chosen.append((row, Choice(best, found[best][row]["mixing"])))
    gamma = np.nan if setting.gamma is None else setting.gamma  # of one type, whatever the kernel
    kept = pd.DataFrame(
        {"kernel": setting.kernel, "gamma": gamma, "strategy": row[0], "threshold": row[1], "C": c, **values}
        for c in sorted(found) for row, values in found[c].items()
    )  # fmt: skip
    return setting._replace(chosen=tuple(chosen)), kept


def _rows_at(moments, setting, C):
    """Return a dict from each of some C to a dict from (strategy, threshold) to the prediction."""
    setting = setting._replace(chosen=(), grid=COARSE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", convergence_warning())  # at the ends of the grid, which are then not chosen
        found = evaluate_each(moments, setting, C) if len(C) else []
    return {c: _rows_of(setting, at) for c, at in zip(C, found, strict=True)}


def _rows_of(setting, at):
    """Return a dict from (strategy, threshold) to the prediction, from the values of all designs at one C."""
    d, loose = designs(setting), ~bias_is_held(at.free, LOSSES[setting.loss].kinked)
    sign = setting.record.sign
    return {
        row: {"mixing": float(d.mixing[j]), "predicted": float(sign * at.value[k, j]), "height": float(at.value[k, j]),
              "trainable": bool(at.spread[j] >= FAINT and not (row[1] == "trained" and loose[j]))}
        for row, (k, j) in places(setting, at.value).items()
    }  # fmt: skip


def _rank(row):
    """Return the height of a candidate, by which it is chosen: -inf where it failed, or cannot be trained to the end.

    A machine whose weights all but vanish is left where the optimiser stops, far from the one that is predicted. And
    where all but a few samples are within the margin of a hinge loss, these few alone hold the bias of classes that
    weigh the same, and they are the outliers of the table.
    """
    return -np.inf if not row["trainable"] or np.isnan(row["height"]) else row["height"]


def _between(first, tops, finer):
    """Return the values of a finer grid beside the best ones of the first, but not those of the first."""
    new = set()
    for top in tops:
        j = first.index(top)
        low, high = first[max(j - 1, 0)], first[min(j + 1, len(first) - 1)]
        new |= {c for c in finer if low < c < high}
    return sorted(new - set(first))


# ---- the kernel


def select(data, setting, wanted, random_state):
    """Choose the kernel and C, and return what was Selected."""
    found = list(_settled_machines(data, setting, wanted, random_state))
    if all(np.isnan(one.at.value).all() for one in found):
        other = "larger" if setting.C < 1.0 else "smaller"
        raise ValueError(f"no saddle point converged at C={setting.C:g} and loss={setting.loss!r}: try a {other} C")
    value = [_value(one) for one in found]
    curved = [j for j, one in enumerate(found) if one.machine.kernel != "linear"]
    best = 0
    if curved:
        # listed from "scale" outwards, so that the first of equals is the simplest; kernels do not share their errors
        top = max(value[j] for j in curved)
        best = next(j for j in curved if value[j] >= top - TRUST * setting.unit)
        if curved[0] == 1 and not value[best] - value[0] > TRUST * setting.unit:
            best = 0
    if found[best].candidates is None:
        return found[best]
    of_all = [one.candidates.astype({"gamma": object}) for one in found]  # a linear machine has None, others a number
    candidates = pd.concat(of_all, ignore_index=True).drop(columns="height")
    plain = _rows_at(found[0].moments, found[0].setting, [setting.C])[setting.C]["as is", "trained"]["predicted"]
    chosen, first = (found[j]._replace(candidates=candidates, nothing=plain) for j in (best, 0))
    return chosen._replace(linear=first) if best and curved[0] == 1 and first.best is not None else chosen


def _settled(machine, setting, wanted):
    """Choose the C of each remedy for one machine, and solve it there."""
    setting, moments, candidates = machine.setting(setting), machine.moments(wanted.moments), None
    if wanted.C is not None:
        setting, candidates = choose(moments, setting, wanted.C)
        value = evaluate(moments, setting).value
        if not np.isnan(value).all():
            setting = setting._replace(C=dict(setting.chosen)[recommended(setting, value)].C)
    elif wanted.kernel != "linear":
        _, candidates = choose(moments, setting, (setting.C,))
    at = evaluate(moments, setting)
    best = None if np.isnan(at.value).all() else recommended(setting, at.value)
    return Selected(machine, moments, setting, at, candidates, best)


def _value(one):
    """Return what is predicted for the best remedy of a Selected, where more is better; -inf if nothing converged."""
    return -np.inf if one.best is None else one.at.value[places(one.setting, one.at.value)[one.best]]


def _settled_machines(data, setting, wanted, random_state):
    """Yield what is Selected of each machine: the linear one first, then RBF kernels from "scale" outwards.

    A kernel further out is tried only on the side where the nearer one is better than "scale".
    """
    from . import _machines as machines

    if wanted.kernel in ("linear", "best"):
        yield _settled(machines.linear(data), setting, wanted)
    large = data.n_pos + data.n_neg > machines.MOST_TRAINED
    if wanted.kernel == "linear" or (wanted.kernel == "best" and large):
        return
    machine = machines.rbf(data, random_state)
    near = [_settled(machine(width), setting, wanted) for width in machines.WIDTHS]
    yield from near
    best = int(np.argmax([_value(one) for one in near]))
    if best:
        yield _settled(machine(machines.FURTHER[best - 1]), setting, wanted)
