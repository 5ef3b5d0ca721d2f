"""How well RBF and tangent kernels are foreseen on pairs of digits and of clothes, for C over five decades.

How it runs: ``make study-kernel-images``, some minutes of one core; the second pair of clothes is fetched once.
How it resumes: every cell (pair, sizes, kernel, remedy) is kept in a store as it comes, and is not computed again.
Where it is stored: ``kernel_images.csv``, one row a cell and C; the chapter kernels draws it, and
tests/studies/test_kernel_images_study.py reads it.

Images of MNIST and FashionMNIST in black and white, 784 pixels. 500 training images, as many of both classes or one to
nine; nine values of C over five decades, in units of one over the mean of k(x, x). RBF kernels with five widths, over
two decades around scikit-learn's rule; tangent kernels of 1, 3 and 5 hidden layers. Each machine is predicted from
the Gram matrix of its training rows, with one covariance and with a width for each class, and trained, on four training
sets, the same for all kernels of a pair. It is tested on 1,700 images of the published test set. The error of what is
measured has the scatter of the training sets and that of the test images, which they share. Nothing was tuned on these
pairs, and the run that is stored is the first.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.svm import SVC

from rbal import experiments, kernels
from rbal.saddle import sweep
from rbal.strategies import REMEDIES, own_widths
from rbal.strategies.internal import free_share

from ..datasets import images
from ._stored import RESULTS, WORK, renew

PAIRS = {
    "4 or 9": (4, 9),
    "3 or 5": (3, 5),
    "pullover or shirt": ("Pullover", "Shirt"),
    "top or dress": ("T-shirt/top", "Dress"),
}
SIZES = {"1:1": (250, 250), "1:9": (50, 450)}
BALANCE = {"1:1": ("as is",), "1:9": ("as is", "class weights")}  # remedies that differ
KERNELS = [("rbf", float(f)) for f in np.geomspace(0.1, 10.0, 5)] + [("ntk", float(d)) for d in (1, 3, 5)]
C = np.geomspace(1e-2, 1e3, 9)
SETS, N_TEST, SEED = 4, 1700, 20
FOUND = ("trained", "error", "predicted", "scatter", "widened", "free")
COLUMNS = ["pair", "sizes", "kernel", "at", "remedy", "C", *FOUND]


@cache
def load(pair):
    """Return the images of a pair."""
    classes = PAIRS[pair]
    loader = images.load_fashion_mnist if isinstance(classes[0], str) else images.load_mnist
    return loader(classes, n_test=N_TEST)


def training_sets(pair, sizes):
    """Yield rows and labels of the training sets, the same for every kernel."""
    where = [list(PAIRS).index(pair), list(SIZES).index(sizes)]
    for k in range(SETS):
        yield load(pair).sample(*SIZES[sizes], np.random.default_rng([SEED, *where, k]))


def bound(kernel, at, X):
    """Return the kernel with its width in units of "scale", or its depth."""
    if kernel == "ntk":
        return kernels.bind("ntk", X, depth=int(at))
    return kernels.bind("rbf", X, gamma=at * kernels.bind("rbf", X).parameters["gamma"])


def right(K, y, K_test, y_test, C, remedy):
    """Return which test images (n,) a machine answers right."""
    clf = SVC(kernel="precomputed", C=C, class_weight=REMEDIES[remedy].class_weight).fit(K, y)
    scores = K_test[:, clf.support_] @ clf.dual_coef_[0] + clf.intercept_[0]
    return np.where(scores > 0.0, 1, -1) == y_test


def foreseen(mom, C, remedy):
    """Return predictions at each C, with one covariance and with own widths, and the share of samples that are free."""
    sizes = mom.alpha_pos, mom.alpha_neg
    design = REMEDIES[remedy].design(*sizes)
    weights = {"weight_pos": float(design.weight_pos), "weight_neg": float(design.weight_neg)}
    sol = sweep(mom, *sizes, model="svm", lam=mom.ridge(C), **weights)
    wide = [own_widths(mom, *sizes, lam=float(lam), **weights).metrics.ba() for lam in mom.ridge(C)]
    return sol.metrics.ba(), wide, free_share(sol)


def measure(rng, pair, sizes, kernel, at, remedy):
    """Predict and train one kernel on all training sets of a pair, at every C; each output has an entry a C."""
    test, told, hits = load(pair), [], []
    for X, y in training_sets(pair, sizes):
        k = bound(kernel, at, X)
        K, K_test = k(X), k(test.X_test, X)
        grid = C / np.mean(np.diag(K))
        told.append(foreseen(kernels.moments(K, y, "precomputed", positive=1), grid, remedy))
        hits.append([right(K, y, K_test, test.y_test, c, remedy) for c in grid])
    mean, scatter = np.mean(told, axis=0), np.std(told, axis=0, ddof=1) / np.sqrt(SETS)
    tested = [experiments.shared_test(np.array(hit, float), test.y_test) for hit in zip(*hits, strict=True)]
    columns = [one.mean for one in tested], [one.se for one in tested], mean[0], scatter[0], mean[1], mean[2]
    return {name: np.asarray(column, float) for name, column in zip(FOUND, columns, strict=True)}


def tidy(table):
    """Return one row a cell and C, from one row a cell."""
    rows = table.assign(C=[C] * len(table)).explode(["C", *FOUND], ignore_index=True)
    return rows[COLUMNS].astype(dict.fromkeys(("C", *FOUND), float))


def summary(table, by=("kernel", "remedy"), told="predicted"):
    """Return how far predictions are off, from rows of the stored table.

    Parameters
    ----------
    table : DataFrame
        ``stored("kernel_images")``, or a part of it.
    by : sequence of str
        Columns that tell rows of the result apart.
    told : {"predicted", "widened"}
        Predictions with one covariance, or with a width for each class.

    Returns
    -------
    DataFrame
        ``size``: mean absolute error; ``bias``: mean error; ``noise``: what the first would be on average if the theory
        were right, from the errors of what was measured; ``settings``: their number.
    """
    off = (table[told] - table["trained"]).rename("off")
    groups = pd.concat([table[list(by)], off, table["error"]], axis=1).groupby(list(by))
    return pd.DataFrame(
        {
            "size": groups["off"].apply(lambda a: a.abs().mean()),
            "bias": groups["off"].mean(),
            "noise": np.sqrt(2.0 / np.pi) * groups["error"].mean(),
            "settings": groups.size(),
        }
    )


OPTIONS = {
    "--pair": {"action": "append", "help": "only this one (may be given several times)"},
    "--store": {"type": Path, "help": "folder that keeps what is done already (%(default)s)"},
    "--out": {"type": Path, "help": "folder of results (that of the package)"},
}


def run(pair=None, store=WORK / "kernel_images", out=RESULTS):
    """Run what is missing on all pairs, or on those that are named, and write the table."""
    store.mkdir(parents=True, exist_ok=True)
    cells = [
        {"pair": name, "sizes": sizes, "kernel": kernel, "at": at, "remedy": remedy}
        for name in (pair or PAIRS) for sizes in SIZES for kernel, at in KERNELS for remedy in BALANCE[sizes]
    ]  # fmt: skip
    found = tidy(experiments.run(measure, cells, trials=1, seed=SEED, store=store / "cells.jsonl", n_jobs=1))
    renew(out / "kernel_images.csv", found)
    for told in ("predicted", "widened"):
        print(f"{told}\n{summary(found, told=told).round(4).to_string()}")
