"""More classes in parts, for the chapter parts: photographs, proteins, and surrogates of pairs of digits.

How it runs: ``python -m rbal_book.studies parts``, five minutes of one core; ``--only NAME`` runs one of the three.
How it resumes: results are kept in the store as they come, and are not computed again.
Where it is stored: ``parts/…csv``; the chapter parts draws it, and tests/studies/test_parts_study.py reads it.

Kinds of theory and all rules are those of ``_pairs``, which were fixed before any of this was run.

- photographs: two pairs of CIFAR-10 in black and white, every second pixel, L = 256: trucks against deer, of all that
  can be told apart the pair whose covariances are most alike, and frogs against ships, the pair where they are least so
  (as the chapter images chose them). Fetched if they are not there.
- proteins: bounded against unbounded pairs of lattice proteins, perceptrons with margin 5 on 1,026 positives. Parts are
  the two families of the chapter lattice: with a cysteine at site 2, 19 or 25 of the second protein, or without.
- surrogates: rows of ``pairs.csv`` where parts are worse than one cloud by more than 0.005, and ten others by lot.
  Machines are trained on Gaussian points of the same parts, and on images; the latter are judged by the Gaussian law of
  their scores, on images that were left out, and on test images.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from rbal import experiments
from rbal.learners import LinearSVM, SphericalPerceptron
from rbal.metrics import MixtureMetrics
from rbal.moments import Mixture
from rbal.moments.internal import cut, number_of_parts
from rbal.saddle import solve

from ..datasets import images, lattice
from . import _pairs
from ._pairs import KINDS, LAM, SEED, clouds, parts_of_digit
from ._stored import RESULTS, WORK, renew, stored

WORSE, OTHERS, TRIALS, MACHINES = 0.005, 10, 8, 4  # machines on proteins, of each share
PHOTOGRAPHS = (("truck", "deer"), ("frog", "ship"))
KAPPA, N_POS, SHARES, STATES = 5.0, 1026, (0.2, 0.5, 0.8), 20
FAMILY = (28, 45, 51)  # sites 2, 19 and 25 of the second protein


def chosen_rows():
    """Return (first, second, rare, why) of the rows whose surrogates are looked at."""
    table = stored("pairs")
    off = table[list(KINDS)].sub(table.trained, axis=0).abs()
    worse = np.flatnonzero(off.parts - off.one > WORSE)
    rest = np.setdiff1d(np.arange(len(table)), worse)
    others = np.random.default_rng(SEED).choice(rest, OTHERS, replace=False)
    return [
        {"first": int(table["first"][k]), "second": int(table["second"][k]), "rare": table.rare[k], "why": why}
        for why, some in (("worse", worse), ("lot", np.sort(others)))
        for k in some
    ]


def foreseen(of, alpha, **how):
    """Return the balanced accuracy of each kind of theory."""
    return {kind: float(solve(classes, *alpha, **how).metrics.ba()) for kind, classes in of.items()}


def photographs(rng, first, second):
    """Train and foresee one pair of photographs."""
    task = images.load_cifar10((first, second), pixels="binary", n_test=2000, progress=False)
    data = [X.reshape(-1, *task.shape)[:, ::2, ::2].reshape(len(X), -1).astype(float)
            for X in (task.X_pos, task.X_neg, task.X_test)]  # fmt: skip
    names = [cut(rows, number_of_parts(rows, SEED), SEED) for rows in data[:2]]
    numbers = {f"parts_{which}": int(n.max()) + 1 for which, n in zip(("first", "second"), names, strict=True)}
    return numbers | in_cells(rng, (*data, task.y_test), clouds(*data[:2], np.concatenate(names)), data[0].shape[1])


def in_cells(rng, data, of, L):
    """Train and foresee with as many rows a feature as the pairs of digits have."""
    out = {}
    for rare in _pairs.CELLS:
        sizes = _pairs.sizes_of(rare, L)
        out[f"trained {rare}"], out[f"error {rare}"] = _pairs.trained(data, sizes, rng)
        found = foreseen(of, [n / L for n in sizes], model="svm", lam=LAM)
        out |= {f"{kind} {rare}": value for kind, value in found.items()}
    return out


@cache
def proteins_and_theory():
    """Return both classes of proteins, and what the theory takes."""
    pos, neg = lattice.load_dimers("bounded"), lattice.load_dimers("unbounded")
    cysteine = lattice.AMINO_ACIDS.index("C")
    names = np.concatenate([np.any(X[:, FAMILY] == cysteine, axis=1) for X in (pos, neg)])
    return pos, neg, clouds(pos, neg, names, STATES)


def proteins(rng, share):
    """Train and foresee at one share of negatives."""
    pos, neg, of = proteins_and_theory()
    sizes, right = (N_POS, round(N_POS * share / (1.0 - share))), []
    for _ in range(MACHINES):
        drawn = [rng.permutation(len(X)) for X in (pos, neg)]
        X = np.concatenate([some[d[:n]] for some, d, n in zip((pos, neg), drawn, sizes, strict=True)])
        clf = SphericalPerceptron(kappa=KAPPA, n_states=STATES).fit(X, np.repeat([1, -1], sizes))
        left = [some[d[n:]] for some, d, n in zip((pos, neg), drawn, sizes, strict=True)]
        right.append([np.mean(clf.predict(Z) == label) for Z, label in zip(left, (1, -1), strict=True)])
    ba, n_left = np.mean(right, axis=1), [len(X) - n for X, n in zip((pos, neg), sizes, strict=True)]
    shared = 0.25 * sum(r * (1.0 - r) / n for r, n in zip(np.mean(right, axis=0), n_left, strict=True))
    error = float(np.sqrt(np.var(ba, ddof=1) / MACHINES + shared))
    L = pos.shape[1]
    return {"trained": float(ba.mean()), "error": error, **foreseen(of, [n / L for n in sizes], kappa=KAPPA)}


def surrogates(rng, first, second, rare, why, folder):
    """Train on Gaussian points and on images, and judge the latter in three ways."""
    pos, neg, X_test, y_test = _pairs.load(first, second)
    L = pos.shape[1]
    sizes = _pairs.sizes_of(rare, L)
    X, y = np.concatenate([pos, neg]), np.repeat([1, -1], [len(pos), len(neg)])
    names = [parts_of_digit(digit, rows, Path(folder)) for digit, rows in ((first, pos), (second, neg))]
    mix = Mixture.from_data(X, y, np.concatenate(names), "shrunk", positive=1).debiased()
    points, labels = mix.sample(*(TRIALS * n for n in sizes), rng)  # every 8th of them is a training set
    found = []
    for k in range(TRIALS):
        gaussian = LinearSVM(lam=LAM).fit(points[k::TRIALS], labels[k::TRIALS])
        rows = np.concatenate([rng.choice(len(pos), sizes[0], False), len(pos) + rng.choice(len(neg), sizes[1], False)])
        clf = LinearSVM(lam=LAM).fit(X[rows], y[rows])
        left = np.setdiff1d(np.arange(len(X)), rows)
        seen = [balanced(clf.predict(Z) == t, t) for Z, t in ((X[left], y[left]), (X_test, y_test))]
        found.append([law(mix, gaussian), law(mix, clf), *seen])
    found = np.array(found)
    names = ("surrogates", "law", "left_out", "test")
    out = {"theory": float(solve(mix, *(n / L for n in sizes), model="svm", lam=LAM).metrics.ba())}
    for name, column in zip(names, found.T, strict=True):
        out |= {name: float(column.mean()), f"{name}_se": float(column.std(ddof=1) / np.sqrt(TRIALS))}
    return out


def law(mix, clf):
    """Return the balanced accuracy of a machine if scores within each part were Gaussian."""
    found = mix.order_parameters(clf.J_, clf.b_)
    return float(MixtureMetrics(found.m - found.b, found.q, mix.signs, mix.shares).ba())


def balanced(right, y):
    """Return the mean of both recalls."""
    return 0.5 * (right[y > 0].mean() + right[y < 0].mean())


def in_rows(table):
    """Return one row a pair and cell."""
    named = table.assign(**{name: table.get(name, np.nan) for name in ("parts_first", "parts_second")})
    return _pairs.tidy(named).dropna(axis=1, how="all")


def cells_of(name, store):
    """Return what one of the three measures: its function, its cells, and how to order its rows."""
    folder = str(store)
    if name == "photographs":
        return photographs, [{"first": a, "second": b} for a, b in PHOTOGRAPHS], in_rows
    if name == "proteins":
        columns = ["share", "trained", "error", *KINDS]
        return proteins, [{"share": share} for share in SHARES], lambda table: table[columns]
    columns = ["first", "second", "rare", "why", "theory"]
    columns += [name + se for name in ("surrogates", "law", "left_out", "test") for se in ("", "_se")]
    return surrogates, [{**row, "folder": folder} for row in chosen_rows()], lambda table: table[columns]


NAMES = ("proteins", "photographs", "surrogates")
OPTIONS = {
    "--store": {"type": Path, "help": "folder that keeps parts and results (%(default)s)"},
    "--out": {"type": Path, "help": "folder of results (that of the package)"},
    "--only": {"choices": NAMES, "help": "one of the three (all)"},
}


def run(store=WORK / "pairs", out=RESULTS, only=None):
    """Run what is missing, and write the tables."""
    store.mkdir(parents=True, exist_ok=True)
    (out / "parts").mkdir(exist_ok=True)
    for name in NAMES if only is None else (only,):
        function, cells, ordered = cells_of(name, store)
        done = []
        for cell in cells:
            how = {"trials": 1, "seed": SEED, "store": store / f"{name}.jsonl", "n_jobs": 1, "progress": False}
            done.append(experiments.run(function, [cell], **how))
            _pairs.load.cache_clear()
            renew(out / "parts" / f"{name}.csv", ordered(pd.concat(done, ignore_index=True)))
        print(name, ordered(pd.concat(done, ignore_index=True)).round(4).to_string(), sep="\n")
