"""Measure the theory on all 45 pairs of digits: one cloud a class, own covariances, and parts.

How it runs: ``make study-pairs``, about six minutes of one core.
How it resumes: parts of the digits and results of pairs are kept in the store as they come, and not computed again.
Where it is stored: ``pairs.csv``, written anew after each pair, once there are as many rows as it holds; the chapter
parts draws it, and tests/studies/test_pairs_study.py reads it.

Digits of MNIST in black and white, cut to the middle 20 x 20 pixels, which hold nearly all of their ink: L = 400. A
linear SVM with ridge 0.1 is trained on 400 images of each digit, or on 40 of one digit and 800 of the other, 8 times
each, and tested on 1,700 images of the published test set. The error of what is measured has the scatter of the
training sets and that of the test images, which all trainings of a pair share.

The theory takes the moments of all training images of the two digits, with the noise taken out of the centres:

- one: one cloud a class, and the mean of both covariances;
- own: one cloud a class with its covariance, drawn to the pooled one by ``covariance="shrunk"``;
- parts: each digit in as many parts as ``clusters="auto"`` chooses from its own images, with such covariances.

What is fresh: all rules were fixed on synthetic classes, a pair of FashionMNIST and the task {0, 2} against {3, 7};
no pair of single digits was looked at before the run that is stored.
"""

import itertools
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from .. import experiments
from ..datasets import images
from ..learners import LinearSVM
from ..moments import Mixture, Moments
from ..moments._choice import cut, number_of_parts
from ..saddle import solve
from ._stored import RESULTS, WORK, renew

PAIRS = list(itertools.combinations(range(10), 2))
CELLS = {"none": (400, 400), "first": (40, 800), "second": (800, 40)}  # which digit is rare: images of both
LAM, TRIALS, N_TEST, SEED = 0.1, 8, 1700, 19
KINDS = ("one", "own", "parts")
MIDDLE = slice(4, 24)
COLUMNS = ["first", "second", "rare", "trained", "error", *KINDS, "parts_first", "parts_second"]


def middle(X):
    """Cut images (n, 784) to their middle 20 x 20 pixels, (n, 400)."""
    return X.reshape(-1, 28, 28)[:, MIDDLE, MIDDLE].reshape(len(X), -1).astype(float)


@cache
def load(first, second):
    """Return training images of both digits, and test images with labels +1 for the first."""
    task = images.load_mnist((first, second), n_test=N_TEST)
    return middle(task.X_pos), middle(task.X_neg), middle(task.X_test), task.y_test


def parts_of_digit(digit, rows, store):
    """Return the part (n,) of each image of a digit, found once."""
    path = store / f"parts_{digit}.npy"
    if not path.exists():
        np.save(path, cut(rows, number_of_parts(rows, SEED), SEED))
    return np.load(path)


def mixtures(first, second, store):
    """Return what the theory takes, by kind, and the number of parts of both digits."""
    pos, neg, _, _ = load(first, second)
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


def measure(rng, first, second, folder):
    """Train and foresee one pair in all cells."""
    of, n = mixtures(first, second, Path(folder))
    out = {"parts_first": n[0], "parts_second": n[1]}
    for rare, sizes in CELLS.items():
        out[f"trained {rare}"], out[f"error {rare}"] = trained(load(first, second), sizes, rng)
        alpha = [n / middle_pixels() for n in sizes]
        for kind, classes in of.items():
            out[f"{kind} {rare}"] = float(solve(classes, *alpha, model="svm", lam=LAM).metrics.ba())
    return out


def middle_pixels():
    """Return the number of pixels, L."""
    return len(range(*MIDDLE.indices(28))) ** 2


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


OPTIONS = {
    "--store": {"type": Path, "help": "folder that keeps parts and results (%(default)s)"},
    "--out": {"type": Path, "help": "folder of results (that of the package)"},
}


def run(store=WORK / "pairs", out=RESULTS):
    """Run what is missing, one pair after another, and write the table."""
    store.mkdir(parents=True, exist_ok=True)
    done = []
    for first, second in PAIRS:
        cell = {"first": first, "second": second, "folder": str(store)}
        done.append(
            experiments.run(measure, [cell], trials=1, seed=SEED, store=store / "pairs.jsonl", n_jobs=1, progress=False)
        )
        load.cache_clear()
        renew(out / "pairs.csv", tidy(pd.concat(done, ignore_index=True)))
    print(summary(tidy(pd.concat(done, ignore_index=True))).round(4).to_string())
