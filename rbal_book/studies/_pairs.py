"""Measure the theory on all 45 pairs of digits: one cloud a class, own covariances, and parts.

How it runs: ``make study-pairs``, 15 to 20 minutes of one core; ``--side 20`` or ``--side 28`` runs one of the two.
How it resumes: parts of the digits and results of pairs are kept in the store as they come, and not computed again.
Pairs come in an order by lot, so that those of an unfinished run are a sample of all.
Where it is stored: ``pairs_784.csv`` and ``pairs.csv``, written anew after each pair, once there are as many rows as
they hold; the chapter parts draws them, and tests/studies/test_pairs_study.py reads them.

Digits of MNIST in black and white, whole (28 x 28 pixels, L = 784), or cut to the middle 20 x 20 pixels, which hold
nearly all of their ink: L = 400. A linear SVM with ridge 0.1 is trained on L images of each digit, or on L/10 of one
digit and 2 L of the other (rounded), 8 times each, and tested on 1,700 images of the published test set. The error of
what is measured has the scatter of the training sets and that of the test images, which all trainings of a pair share.

The theory takes the moments of all training images of the two digits, with the noise taken out of the centres:

- one: one cloud a class, and the mean of both covariances;
- own: one cloud a class with its covariance, drawn to the pooled one by ``covariance="shrunk"``;
- parts: each digit in as many parts as ``clusters="auto"`` chooses from its own images, with such covariances.

Pixels that are the same in all images of a pair stay: they count in L, and are directions without variance to the
theory and without weight to a machine with a ridge.

What is fresh: all rules were fixed on synthetic classes, a pair of FashionMNIST and the task {0, 2} against {3, 7};
no pair of single digits was looked at before the run with 400 pixels, which was the first. The run with 784 pixels came
later, with the same rules, sizes a pixel, ridge, number of trainings and seed, and none was changed for it.
"""

import itertools
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd

from rbal import experiments
from rbal.learners import LinearSVM
from rbal.moments import Mixture, Moments
from rbal.moments.internal import cut, number_of_parts
from rbal.saddle import solve

from ..datasets import images
from ._stored import RESULTS, WORK, renew

PAIRS = list(itertools.combinations(range(10), 2))
CELLS = {"none": (1.0, 1.0), "first": (0.1, 2.0), "second": (2.0, 0.1)}  # which digit is rare: images a pixel of both
TABLES = {28: "pairs_784", 20: "pairs"}  # by the side of the images
LAM, TRIALS, N_TEST, SEED = 0.1, 8, 1700, 19
KINDS = ("one", "own", "parts")
COLUMNS = ["first", "second", "rare", "trained", "error", *KINDS, "parts_first", "parts_second"]


@cache
def load(first, second, side=20):
    """Return the middle pixels (n, side²) of training images of both digits and of test images, and labels of these."""
    task = images.load_mnist((first, second), n_test=N_TEST)
    inside = slice((28 - side) // 2, (28 + side) // 2)
    cut_out = (X.reshape(-1, 28, 28)[:, inside, inside] for X in (task.X_pos, task.X_neg, task.X_test))
    return *(X.reshape(len(X), -1).astype(float) for X in cut_out), task.y_test


def sizes_of(rare, L):
    """Return the number of training images of both digits."""
    return [round(a * L) for a in CELLS[rare]]


def parts_of_digit(digit, rows, store):
    """Return the part (n,) of each image of a digit, found once."""
    path = store / f"parts_{digit}_{rows.shape[1]}.npy"
    if not path.exists():
        np.save(path, cut(rows, number_of_parts(rows, SEED), SEED))
    return np.load(path)


def mixtures(first, second, pos, neg, store):
    """Return what the theory takes of the images of both digits, by kind, and the number of parts of both."""
    names = [parts_of_digit(digit, rows, store) for digit, rows in ((first, pos), (second, neg))]
    return clouds(pos, neg, np.concatenate(names)), [int(n.max()) + 1 for n in names]


def clouds(pos, neg, names, n_states=None):
    """Return two classes of rows as the theory takes them, by kind; names (n,) are the parts of all rows."""
    X, y = np.concatenate([pos, neg]), np.repeat([1, -1], [len(pos), len(neg)])
    how = {"covariance": "shrunk", "n_states": n_states, "positive": 1}
    own, parts = (Mixture.from_data(X, y, clusters, **how).debiased() for clusters in (1, names))
    one = Moments.from_data(pos, neg, n_states).debiased(len(pos), len(neg))
    return dict(zip(KINDS, (one, own, parts), strict=True))


def trained(data, sizes, rng):
    """Return the balanced accuracy of trained machines, and its error with that of the shared test images."""
    pos, neg, X_test, y_test = data
    right = []
    for _ in range(TRIALS):
        rows = [some[rng.choice(len(some), n, replace=False)] for some, n in zip((pos, neg), sizes, strict=True)]
        svm = LinearSVM(lam=LAM).fit(np.concatenate(rows), np.repeat([1, -1], sizes))
        right.append(svm.predict(X_test) == y_test)
    found = experiments.shared_test(np.array(right, float), y_test)
    return found.mean, found.se


def measure(rng, first, second, folder, side=20):
    """Train and foresee one pair in all cells."""
    data = load(first, second, side)
    of, n = mixtures(first, second, *data[:2], Path(folder))
    out, L = {"parts_first": n[0], "parts_second": n[1]}, data[0].shape[1]
    for rare in CELLS:
        sizes = sizes_of(rare, L)
        out[f"trained {rare}"], out[f"error {rare}"] = trained(data, sizes, rng)
        for kind, classes in of.items():
            alpha = [n / L for n in sizes]
            out[f"{kind} {rare}"] = float(solve(classes, *alpha, model="svm", lam=LAM).metrics.ba())
    return out


def tidy(table):
    """Return one row a pair and cell."""
    parts = []
    for rare in CELLS:
        part = table[["first", "second", "parts_first", "parts_second"]].assign(rare=rare)
        for name in ("trained", "error", *KINDS):
            part[name] = table[f"{name} {rare}"]
        parts.append(part)
    return pd.concat(parts).sort_values(["first", "second"], kind="stable")[COLUMNS].reset_index(drop=True)


def summary(table):
    """Return the mean |error| of each kind at balance and with a rare class, and the worst loss against one cloud."""
    rows = {}
    for name, part in (("balance", table[table.rare == "none"]), ("1:20", table[table.rare != "none"]), ("all", table)):
        off = part[list(KINDS)].sub(part.trained, axis=0).abs()
        noise = np.sqrt(2.0 / np.pi) * part.error.mean()  # what |error| would be on average if the theory were right
        rows[name] = {**off.mean(), "noise": noise, "worst against one": (off.parts - off.one).max()}
    return pd.DataFrame(rows).T


def by_lot():
    """Return the pairs in the order of the run."""
    return np.random.default_rng(SEED).permutation(PAIRS).tolist()


OPTIONS = {
    "--store": {"type": Path, "help": "folder that keeps parts and results (%(default)s)"},
    "--out": {"type": Path, "help": "folder of results (that of the package)"},
    "--side": {"type": int, "choices": tuple(TABLES), "help": "side of the images in pixels (both)"},
}


def run(store=WORK / "pairs", out=RESULTS, side=None):
    """Run what is missing, one pair after another, and write the tables."""
    store.mkdir(parents=True, exist_ok=True)
    for one in TABLES if side is None else (side,):
        done, name = [], TABLES[one]
        for first, second in by_lot():
            cell = {"first": first, "second": second, "folder": str(store)}
            how = {"trials": 1, "seed": SEED, "store": store / f"{name}.jsonl", "n_jobs": 1, "progress": False}
            done.append(experiments.run(partial(measure, side=one), [cell], **how))
            load.cache_clear()
            renew(out / f"{name}.csv", tidy(pd.concat(done, ignore_index=True)))
        print(f"L = {one**2}", summary(tidy(pd.concat(done, ignore_index=True))).round(4).to_string(), sep="\n")
