"""Trials of the second edition: every rule on one fold, and what advice foresees of the first edition's machines."""

import contextlib
import functools
import time
import traceback
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rbal._support.warnings import convergence_warning
from rbal.advice import advise
from rbal.metrics import evaluate

from ..tables import SCARCE, listed
from ..tables._trials import FOLDS, fold_of, label_of
from . import _methods as methods

LEVEL = 0.9  # of the intervals
CLIP = 1e-3  # probabilities nearer to 0 or 1 count as this
SPLITS = {500: 10, 1200: 5, 2000: 3}  # splits of a table with at most so many rows
FORESEEN = [  # rows of the first edition's comparison of predictions with measurements
    ("as is", "trained"), ("undersampling", "trained"), ("oversampling", "trained"), ("class weights", "trained"),
    ("as is", "moved"),
]  # fmt: skip
SCORES = ("f1", "auprc", "log_loss")  # of a machine, beside the balanced accuracy of each rule


def splits_of(rows):
    """Return how many splits a table with so many rows is judged by."""
    return next(count for most, count in SPLITS.items() if rows <= most)


def cells(names):
    """Return the splits of tables, with all positives and with few: the first folds of the study on tables."""
    rows = listed()["rows"]
    return [
        {"table": name, "minority": minority, "repeat": k // FOLDS, "fold": k % FOLDS}
        for minority in (0, SCARCE)
        for name in names
        for k in range(splits_of(rows[name]))
    ]


def compared(rng, table, minority, repeat, fold):
    """Measure every rule on one fold: its balanced accuracy and CPU seconds, and three more metrics of its machine."""
    (X, y), (X_test, y_test) = fold_of(table, repeat, fold, minority)
    rows, seed = methods.Rows(X, y, X_test), int(rng.integers(2**31))
    warm()
    out = {"n_pos": int(np.sum(y > 0)), "n_neg": int(np.sum(y < 0)), "D": X.shape[1]}
    with quiet():
        for name in methods.FIXED:
            out |= measured([name], lambda name=name: [methods.fixed(rows, name, seed)], y, y_test)
        out |= measured([methods.FOREST], lambda: [methods.forest(rows, methods.FOREST, seed)], y, y_test)
        out |= measured([methods.GRID, methods.GRIDS[2]], lambda: methods.searched(rows, seed), y, y_test)
        for name in methods.ADVICE:
            out |= measured([name], lambda name=name: [methods.advised(rows, name, seed)], y, y_test)
    return out


def foreseen(rng, table, minority, repeat, fold):
    """Return what advice with C = 1 and a linear kernel foresees on one fold, for the remedies of the first edition."""
    (X, y), _ = fold_of(table, repeat, fold, minority)
    options = methods.asked({"C": 1.0, "kernel": "linear", "train": "little", "level": LEVEL})
    warm()
    begin = time.process_time()
    with quiet():
        advice = advise(X, y, positive=1, random_state=int(rng.integers(2**31)), progress=False, **options)
    out = {"cpu": time.process_time() - begin}
    for row in FORESEEN:
        found = advice.table.loc[row]
        out |= {label_of(*row): found["predicted"]} | {
            f"{label_of(*row)}, {end}": found[end] for end in ("low", "high")
        }
    return {name: float(value) for name, value in out.items()}


@contextlib.contextmanager
def quiet():
    """Let no optimiser and no saddle point complain: what comes of it is measured."""
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, convergence_warning(), UserWarning):
            warnings.simplefilter("ignore", kind)
        yield


@functools.cache
def warm():
    """Compile, or load, all that advice runs, so that no rule is charged for it; once in each process."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, -1], [30, 90])
    X = rng.normal(size=(120, 5)) + 0.3 * y[:, None]
    with quiet():
        for name in methods.ADVICE:
            methods.advised(methods.Rows(X, y, X), name, 0)


# ---- from a machine to numbers


def measured(names, train, y, y_test):
    """Train the machines of these names, and return all numbers of their rules: those of a failure if it fails."""
    try:
        parts = [numbers(name, fitted, y, y_test) for name, fitted in zip(names, train(), strict=True)]
        failed = 0
    except Exception:  # whatever it was: a rule that gives no answer counts as one that knows nothing
        traceback.print_exc()  # and its cause is told, so that a fault of this program is not taken for one of a rule
        parts, failed = [ignorant(name, y, y_test) for name in names], 1
    return {k: v for part in parts for k, v in part.items()} | {f"{names[0]}: failed": failed}


def numbers(name, fitted, y, y_test):
    """Return the numbers of one machine, by name."""
    link = methods.sigmoid(fitted.unseen, y) if fitted.link is None else fitted.link
    cut = methods.best_f1(fitted.unseen, y)
    out = {f"{name}: f1": evaluate(fitted.scores, y_test, cut, names=["f1"])["f1"]}
    out[f"{name}: auprc"] = evaluate(fitted.scores, y_test, names=["auprc"])["auprc"]
    out[f"{name}: log_loss"] = log_loss(link(fitted.scores) if link.slope > 0.0 else np.mean(y > 0), y_test)
    for rule, answer in fitted.answers.items():
        out[f"{rule}: ba"] = 0.5 * (np.mean(answer[y_test > 0]) + np.mean(~answer[y_test < 0]))
        out[f"{rule}: cpu"] = fitted.cpu[rule]
    out |= {f"{name}: {what}": value for what, value in fitted.more.items()}
    return {k: float(v) for k, v in out.items()}


def log_loss(chance, y):
    """Return the mean log loss of probabilities (n,), or of one for all, for labels y (n,) of ±1."""
    chance = np.clip(np.broadcast_to(chance, np.shape(y)), CLIP, 1.0 - CLIP)
    return float(-np.mean(np.log(np.where(y > 0, chance, 1.0 - chance))))


def ignorant(name, y, y_test):
    """Return the numbers of a machine that failed: those of one that tells no row from another."""
    share = float(np.mean(y_test > 0))
    out = {f"{name}: f1": 0.0, f"{name}: auprc": share, f"{name}: log_loss": log_loss(np.mean(y > 0), y_test)}
    for rule in RULES_OF[name]:
        out |= {f"{rule}: ba": 0.5, f"{rule}: cpu": float("nan")}
    return out | {f"{name}: {what}": float("nan") for what in MORE.get(name, ())}


TUNED = methods.TUNED
RULES_OF = {name: [name, TUNED.format(name)] for name in (*methods.FIXED, methods.FOREST)}
RULES_OF |= {methods.GRID: list(methods.GRIDS[:2]), methods.GRIDS[2]: [methods.GRIDS[2]]}
RULES_OF |= {name: [name] for name in methods.ADVICE}
MORE = dict.fromkeys((methods.GRID, methods.GRIDS[2]), ("C", "curved", "weighted", "sampled"))
MORE |= dict.fromkeys(
    methods.ADVICE, ("predicted", "low", "high", "choosing", "C", "curved", "remedy", "moved", "confidence")
)
