"""How well RBF machines are foreseen from their Gram matrices, on the tables for design of the study on tables.

Each trial is one fold: three remedies at three values of C, with the default width of the kernel, predicted from the
training part with one covariance and an interval of 90 % that has the noise of the sample alone, and again with a width
for each class (``widened``); trained, and tested on the rest. Rows, folds and coding of the columns are those of the
study on tables, so that ``tables/measured.csv`` and ``tables/foreseen.csv`` have the linear machines on the same folds.
Tables that judge are not looked at.

On the first fold of each table there is a second interval, that of :func:`rbal.strategies.interval`, which has the
theory's own error too. Its rule was fixed on synthetic classes, before it met a table.

How it runs: ``make study-kernels`` fetches the tables and runs everything, ten minutes of one core.
How it resumes: every fold is kept in a store as it comes, and is not computed again.
Where it is stored: ``kernels.csv``, one row a table, fold, C and remedy; ``kernel_intervals.csv``: second intervals.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.svm import SVC

from rbal import experiments, kernels
from rbal.metrics import evaluate
from rbal.saddle import solve
from rbal.strategies import REMEDIES, own_widths
from rbal.strategies.internal import LEVERAGES, interval_ends, theory_error, with_distances

from ._stored import RESULTS, WORK, renew
from .tables._sources import names, role_of
from .tables._trials import FOLDS, SEED, fold_of, weights

SETTINGS = [(C, remedy) for C in (0.1, 1.0, 10.0) for remedy in ("as is", "class weights", "undersampling")]
DRAWS, LEVEL = 32, 0.9
_ONE = partial(solve, model="svm")  # one covariance for both classes
_ROWS = partial(own_widths, leverages=LEVERAGES)  # widths as those of an interval
COLUMNS = ["table", "fold", "n_pos", "n_neg", "C", "remedy", "predicted", "low", "high", "widened", "trained"]
BELIEVED = [*COLUMNS[:6], "value", "low", "high"]


def trial(rng, table, fold):
    """Predict and train every setting on one fold; names of the results end in the index of the setting."""
    (X, y), (X_test, y_test) = fold_of(table, 0, fold)
    kernel = kernels.bind("rbf", X)
    K, K_test = kernel(X), kernel(X_test, X)
    features = kernels.moments(K, y, "precomputed", positive=1)
    out, dice = {"n_pos": features.n_pos, "n_neg": features.n_neg}, int(rng.integers(2**31))
    drawn = features.draws(DRAWS, random_state=dice)
    for k, (C, remedy) in enumerate(SETTINGS):
        others = [foreseen(spectrum, features, C, remedy) for spectrum in drawn]
        low, high = np.quantile(others, (0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL))
        weight = weights(y, remedy, None, dice)
        rows = np.flatnonzero(weight)  # those that undersampling keeps
        machine = SVC(kernel="precomputed", C=C).fit(K[np.ix_(rows, rows)], y[rows], sample_weight=weight[rows])
        found = evaluate(machine.decision_function(K_test[:, rows]), y_test, names=["ba"])["ba"]
        told = {"predicted": foreseen(features, features, C, remedy), "low": low, "high": high, "trained": found}
        told["widened"] = foreseen(features, features, C, remedy, own_widths)
        out |= {f"{name} {k}": float(value) for name, value in told.items()}
    return out


def believed(rng, table, fold):
    """Return predictions with own widths for every setting on one fold, with intervals that have the theory's error."""
    (X, y), _ = fold_of(table, 0, fold)
    K = kernels.bind("rbf", X)(X)
    features = kernels.moments(K, y, "precomputed", positive=1)
    out, dice, sizes = {"n_pos": features.n_pos, "n_neg": features.n_neg}, int(rng.integers(2**31)), {}
    drawn = features.draws(DRAWS, random_state=dice)  # those of trial
    for k, (C, remedy) in enumerate(SETTINGS):
        like = "as is" if remedy == "as is" else "class weights"
        if (C, like) not in sizes:
            sizes[C, like] = theory_error(features, K, y > 0, C, like)
        spectra = with_distances(drawn, sizes[C, like], dice)
        others = [foreseen(spectrum, features, C, remedy) for spectrum in spectra]
        one, wide = (foreseen(features, features, C, remedy, way) for way in (_ONE, _ROWS))
        told = (wide, *interval_ends(wide, one, others, LEVEL))
        out |= {f"{name} {k}": float(value) for name, value in zip(BELIEVED[6:], told, strict=True)}
    return out


def foreseen(moments, features, C, remedy, way=_ONE):
    """Return the balanced accuracy that moments, or a spectrum of ``features``, predict in one of two ways."""
    n_pos, n_neg, weight_pos, weight_neg = REMEDIES[remedy].design(features.alpha_pos, features.alpha_neg)
    options = {"lam": features.ridge(C), "weight_pos": float(weight_pos), "weight_neg": float(weight_neg)}
    return way(moments, float(n_pos), float(n_neg), **options).metrics.ba()


def tidy(table, columns=COLUMNS):
    """Return one row a table, fold and setting, from one row a fold."""
    parts = []
    for k, (C, remedy) in enumerate(SETTINGS):
        own = {f"{name} {k}": name for name in columns[6:]}
        part = table[[*columns[:4], *own]].rename(columns=own)
        parts.append(part.assign(C=C, remedy=remedy))
    return pd.concat(parts)[columns].sort_values(["table", "fold"], kind="stable").reset_index(drop=True)


def errors(table, by=("C", "remedy"), told="predicted"):
    """Return how far predictions are off, from rows of the stored table: means over the folds of a table first.

    Parameters
    ----------
    table : DataFrame
        ``stored("kernels")``, or a part of it.
    by : sequence of str
        Columns that tell rows of the result apart.
    told : {"predicted", "widened"}
        Predictions with one covariance, or with a width for each class.

    Returns
    -------
    DataFrame
        ``size``: mean over tables of the absolute error; ``bias``: mean error; ``tables``: their number; ``held``:
        share of the intervals that hold what was trained, on average over the folds of the table, within two standard
        errors of that average.
    """
    by = list(by)
    parts = table.groupby([*by, "table"])
    means, error = parts[[told, "trained"]].mean(), parts["trained"].sem()
    off = means[told] - means["trained"]
    at = pd.MultiIndex.from_frame(table[[*by, "table"]])
    mean, room = means["trained"].loc[at].to_numpy(), 2.0 * error.loc[at].to_numpy()
    held = ((table["low"] - room <= mean) & (mean <= table["high"] + room)).groupby([table[c] for c in by]).mean()
    groups = off.groupby(by)
    size = off.abs().groupby(by).mean()
    return pd.DataFrame({"size": size, "bias": groups.mean(), "tables": groups.size(), "held": held})


def coverage(table, intervals):
    """Return which shares of intervals hold what was trained: the mean over the folds of a table, ± two errors.

    Parameters
    ----------
    table, intervals : DataFrame
        ``stored("kernels")`` and ``stored("kernel_intervals")``.

    Returns
    -------
    DataFrame
        One row a C and remedy: ``sample``, of intervals with the noise of the sample alone, on the same folds;
        ``both``, of those with the theory's own error; and the mean lengths of both, ``length`` and ``longer``.
    """
    keys = ["C", "remedy", "table"]
    parts = table.groupby(keys)["trained"]
    found = intervals.merge(table, on=[*keys, "fold"], suffixes=("_both", "")).set_index(keys)
    mean, room = parts.mean().reindex(found.index), 2.0 * parts.sem().reindex(found.index)
    columns = {}
    for name, length, end in (("sample", "length", ""), ("both", "longer", "_both")):
        low, high = found[f"low{end}"], found[f"high{end}"]
        columns |= {name: (low - room <= mean) & (mean <= high + room), length: high - low}
    return pd.DataFrame(columns).groupby(level=[0, 1]).mean()


OPTIONS = {
    "--table": {"action": "append", "help": "only this one (may be given several times)"},
    "--store": {"type": Path, "help": "folder that keeps what is done already (%(default)s)"},
    "--out": {"type": Path, "help": "folder of results (that of the package)"},
}


def run(table=None, store=WORK / "kernels", out=RESULTS):
    """Run what is missing on the tables for design, or on those that are named, and write the table."""
    chosen = table or [name for name in names() if role_of(name) == "design"]
    store.mkdir(parents=True, exist_ok=True)
    grid = {"table": chosen, "fold": list(range(FOLDS))}
    found = tidy(experiments.run(trial, grid, trials=1, seed=SEED, store=store / "trial.jsonl", n_jobs=1))
    renew(out / "kernels.csv", found)
    first = {"table": chosen, "fold": [0]}
    more = experiments.run(believed, first, trials=1, seed=SEED, store=store / "believed.jsonl", n_jobs=1)
    more = tidy(more, BELIEVED)
    renew(out / "kernel_intervals.csv", more)
    for told in ("predicted", "widened"):
        print(f"{told}\n{errors(found, told=told).round(4).to_string()}")
    print(coverage(found, more).round(4).to_string())
