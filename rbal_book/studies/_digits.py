"""Predict and train machines of ten digits, all classes alike and with a long tail, for the chapter many_classes.

How it runs: ``make study-digits``, two minutes of one core.
How it resumes: predictions and training sets are kept in the store as they come, and are not computed again.
Where it is stored: ``digits.npz``; tests/studies/test_digits_study.py reads it.

Ten digits of MNIST in black and white, 784 pixels, about 2,500 rows in all. Three settings: 250 rows of each digit; a
long tail from 1,000 rows of the digit 0 down to 10 of the digit 9, in steps of one ratio; and the same from 9 down to
0. Linear SVMs with ridge 1, one for each digit against the rest, with equal weights and with balanced ones.

Predictions know the means and covariances of the 60,000 training images, one covariance for each digit or one for all,
and no trained machine. Training sets are drawn from these images. Test images are 800 of each digit out of the
published test part. Three confusion matrices are measured on each training set: that of the test images; the same with
thresholds that the theory chose for macro recall; and that of Gaussian test data with the moments of the digits, which
shows how much of a gap is due to the shape of the classes.
"""

import functools
from pathlib import Path

import numpy as np
from sklearn.svm import SVC

from rbal._support.files import atomic
from rbal.metrics import ManyMetrics
from rbal.moments import Mixture
from rbal.saddle import solve_ovr

from ..datasets import images
from ._stored import RESULTS, WORK

L, LAM, TEST, SEED = 784, 1.0, 800, 9100
TAIL = 100.0 ** (-np.arange(10) / 9.0)
SETTINGS = {
    "1:1": np.full(10, 250),
    "1:100": np.rint(1000 * TAIL).astype(int),
    "100:1": np.rint(1000 * TAIL[::-1]).astype(int),
}
WEIGHTS = {"equal": None, "balanced": "balanced"}
COVARIANCES = ("own", "shared")
TRAININGS = 5  # sets for each setting


def load():
    """Return training images by digit, and test images (10, 800, 784), as spins."""
    train, test = [], []
    for pair in ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9)):
        data = images.load_mnist(pair, n_test=2 * TEST)
        train += [data.X_pos, data.X_neg]
        test += [data.X_test[:TEST], data.X_test[TEST:]]
    return train, np.stack(test)


def moments(train, covariance):
    """Return the ten digits as a mixture, with own covariances or a shared one."""
    means = np.stack([rows.mean(axis=0) for rows in train])
    covs = np.stack([np.cov(rows.astype(np.float32), rowvar=False, dtype=float) for rows in train])
    return Mixture.gaussian(means, covs if covariance == "own" else covs.mean(axis=0), np.arange(10))


def predicted(mixture, sizes, weights):
    """Return the confusion matrix, that with moved thresholds, and these."""
    metrics = solve_ovr(mixture, sizes / L, LAM, weights=weights).metrics
    offsets = metrics.best_offsets("ba")
    return {"plain": metrics.confusion(), "moved": metrics.confusion(offsets), "offsets": offsets}


def trained(train, test, mixture, sizes, weights, offsets, seed):
    """Return the confusion matrices of one training set: test images, with moved thresholds, and Gaussian test data."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rows[rng.choice(len(rows), n, replace=False)] for rows, n in zip(train, sizes, strict=True)])
    y = np.repeat(np.arange(10), sizes)
    X = X.astype(float) / np.sqrt(L)
    gram, J, b = X @ X.T, np.empty((10, L)), np.empty(10)
    for t in range(10):
        machine = SVC(kernel="precomputed", C=1.0 / LAM, class_weight=weights, tol=1e-4).fit(gram, y == t)
        J[t] = machine.dual_coef_[0] @ X[machine.support_] / np.sqrt(L)
        b[t] = machine.intercept_[0]
    scores = test @ J.T + b  # (10, n, 10)
    overlaps = np.stack([J @ mixture.covariance(k) @ J.T for k in range(10)])
    gaussian = ManyMetrics(mixture.means @ J.T + b, overlaps).confusion()
    return {"plain": counted(scores), "moved": counted(scores - offsets), "gaussian": gaussian}


def counted(scores):
    """Return the confusion matrix of scores (T, n, T)."""
    return np.stack([np.bincount(row.argmax(axis=1), minlength=len(scores)) for row in scores]) / scores.shape[1]


def kept(path, make):
    """Return arrays by name from a file, which is made if it is not there."""
    if not path.exists():
        arrays = make()
        with atomic(path) as file:
            np.savez(file, **arrays)
    with np.load(path) as arrays:
        return dict(arrays)


def collect(store, settings=tuple(SETTINGS), trainings=TRAININGS):
    """Return all confusion matrices, by name: axes are setting, weights, then covariance or training set."""
    train, test = load()
    mixtures = {name: moments(train, name) for name in COVARIANCES}

    def theory(setting, key, name):
        make = functools.partial(predicted, mixtures[name], SETTINGS[setting], WEIGHTS[key])
        return kept(store / f"{setting.replace(':', '_')}-{key}-{name}.npz", make)

    def real(setting, key, k):
        offsets = theory(setting, key, "own")["offsets"]
        how = mixtures["own"], SETTINGS[setting], WEIGHTS[key], offsets, SEED + k
        return kept(store / f"{setting.replace(':', '_')}-{key}-{k}.npz", functools.partial(trained, train, test, *how))

    parts = {
        "predicted": (theory, COVARIANCES, ("plain", "moved")),
        "trained": (real, range(trainings), ("plain", "moved", "gaussian")),
    }
    arrays = {"sizes": np.stack([SETTINGS[setting] for setting in settings])}
    for kind, (one, which, names) in parts.items():
        found = [[[one(setting, key, k) for k in which] for key in WEIGHTS] for setting in settings]
        for name in names:
            arrays[f"{kind}_{name}"] = np.array([[[part[name] for part in row] for row in rows] for rows in found])
    return arrays


OPTIONS = {
    "--store": {"type": Path, "help": "folder that keeps predictions and training sets (%(default)s)"},
    "--out": {"type": Path, "help": "folder of results (that of the package)"},
}


def run(store=WORK / "digits", out=RESULTS):
    """Run what is missing, write the arrays, and print macro recalls."""
    store.mkdir(parents=True, exist_ok=True)
    arrays = collect(store)
    with atomic(out / "digits.npz") as file:
        np.savez_compressed(file, **{name: array.astype(np.float32) for name, array in arrays.items()})
    for name in ("predicted_plain", "trained_plain", "trained_gaussian", "predicted_moved", "trained_moved"):
        recall = np.diagonal(arrays[name], axis1=-2, axis2=-1).mean(axis=-1)
        print(name, recall.round(4).tolist())
