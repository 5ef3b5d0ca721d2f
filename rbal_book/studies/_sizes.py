"""How machines that are trained on clusters approach the theory as they grow, for the chapter parts.

How it runs: ``python -m rbal_book.studies sizes``, four minutes of one core.
How it resumes: batches of machines are kept in the store as they come, and are not trained again.
Where it is stored: ``sizes.csv``, one row a batch and quantity; the chapter parts draws it, and
tests/studies/test_sizes_study.py reads it.

Classes are made of 2 to 10 clusters with unequal shares and covariances that do not commute: L/2 equal blocks of two
features, so that the theory is the same at every L, and numbers of rows that are whole at each of them. Four machines:
an SVM, perceptrons whose norm is held back (k̂ > 0) and pushed up (k̂ < 0), and typical ones of separable data. What is
kept is the mean of measured less predicted m, q and b over a batch; m and b in units of the deviation of the scores, q
of their variance.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from rbal import experiments
from rbal.learners import LinearSVM, SphericalPerceptron
from rbal.moments import Mixture
from rbal.saddle import solve

from ._stored import RESULTS, WORK, renew

BATCHES, SEED, LAM = 10, 41, 0.3
SIZES = (20, 40, 80, 200, 400)


class Setting(NamedTuple):
    """Which machine, and on which clusters."""

    sizes: tuple  # rows of each class over L
    counts: tuple  # rows of each cluster of both classes at L = 20
    kappa: float | None  # None for an SVM
    trials: tuple  # machines at each size
    typical: bool = False


MACHINES = {
    "SVM": Setting((0.6, 1.8), ((1, 2, 2, 3, 4), (4, 5, 7, 9, 11)), None, (6000, 3000, 1500, 600, 200)),
    "norm held back": Setting((0.5, 1.0), ((2, 3, 5), (8, 12)), 1.5, (6000, 3000, 1500, 1000, 400)),
    "norm pushed up": Setting((2.0, 4.0), ((16, 24), (80,)), 0.05, (6000, 3000, 1000, 200, 20)),
    "separable": Setting((0.3, 0.5), ((6,), (10,)), 0.1, (1000, 400, 100, 20, 10), True),  # long random walks
}
COLUMNS = ["machine", "L", "batch", "trials", "quantity", "value"]


class World(NamedTuple):
    """Clusters of one setting: everything that does not depend on L. K clusters."""

    covs: np.ndarray  # (K, 2, 2) of each block
    centres: np.ndarray  # (K, 2), to be divided by √(L/2)
    labels: np.ndarray  # (K,)
    counts: np.ndarray  # (K,) rows at L = 20
    shares: np.ndarray  # (K,)


def world(name):
    """Make the clusters of a setting, always the same."""
    counts = MACHINES[name].counts
    labels = np.repeat([1, -1], [len(part) for part in counts])
    rng = np.random.default_rng(len(labels))
    F = rng.normal(size=(len(labels), 2, 4)) * rng.uniform(0.3, 0.7, (len(labels), 1, 1))
    centres = 0.6 * rng.normal(size=(len(labels), 2)) + 0.7 * labels[:, None] * np.array([1.0, 0.3])
    if name == "norm pushed up":
        centres *= 0.4
    shares = np.concatenate([np.array(part) / sum(part) for part in counts])
    return World(F @ F.transpose(0, 2, 1), centres, labels, np.concatenate(counts), shares)


def mixture(name, L):
    """Return the clusters of a setting with L features."""
    w = world(name)
    covs = np.stack([np.kron(np.eye(L // 2), block) for block in w.covs])
    return Mixture.gaussian(np.tile(w.centres, L // 2) / np.sqrt(L / 2), covs, w.labels, w.shares, positive=1)


def predicted(name, L=4):
    """Return the solution, which is the same at every L."""
    setting = MACHINES[name]
    how = {"model": "svm", "lam": LAM} if setting.kappa is None else {"kappa": setting.kappa}
    return solve(mixture(name, L), *setting.sizes, **how)


def draw(w, L, rng):
    """Draw a training set, with whole numbers of rows."""
    rows = []
    for cov, centre, n in zip(w.covs, w.centres, w.counts * L // 20, strict=True):
        noise = rng.normal(size=(n, L // 2, 2)) @ np.linalg.cholesky(cov).T
        rows.append((noise + centre / np.sqrt(L / 2)).reshape(n, L))
    return np.concatenate(rows), np.repeat(w.labels, w.counts * L // 20)


def train(setting, X, y, rng):
    """Return weights and bias of a machine."""
    if setting.kappa is None:
        clf = LinearSVM(lam=LAM)
    elif setting.typical:
        clf = SphericalPerceptron(kappa=setting.kappa, sat="typical", random_state=rng)
    else:
        clf = SphericalPerceptron(kappa=setting.kappa)
    clf.fit(X, y)
    return clf.J_, clf.b_


def measured(w, L, J, b):
    """Return m and q of each cluster, and b counted from the mean of the class means."""
    parts, middle = J.reshape(-1, 2), (0.5 * w.shares) @ w.centres
    along = parts.sum(axis=0) / np.sqrt(L) / np.sqrt(L / 2)
    q = np.einsum("ni,kij,nj->k", parts, w.covs, parts) / L
    return np.r_[(w.centres - middle) @ along, q, b - middle @ along]


def residuals(rng, name, L, trials):
    """Return measured less predicted (trials, 2K + 1), in units of the scores."""
    setting, w, sol = MACHINES[name], world(name), predicted(name)
    found = [measured(w, L, *train(setting, *draw(w, L, rng), rng)) for _ in range(trials)]
    unit = np.sqrt(sol.variance.mean())
    units = np.r_[np.full(sol.m.size, unit), sol.variance, unit]
    return (np.array(found) - np.r_[sol.m, sol.variance, sol.b]) / units


def measure(rng, machine, L):
    """Train one batch."""
    trials = MACHINES[machine].trials[SIZES.index(L)] // BATCHES
    off = residuals(rng, machine, L, trials).mean(axis=0)
    K = len(off) // 2
    names = [f"{letter} {k}" for letter in "mq" for k in range(K)] + ["b"]
    return {"trials": trials, **dict(zip(names, off.tolist(), strict=True))}


def tidy(table):
    """Return one row a batch and quantity."""
    table = table.assign(batch=table.groupby(["machine", "L"]).cumcount())
    names = [name for name in table.columns if name[0] in "mqb" and name not in ("machine", "batch")]
    long = table.melt(["machine", "L", "batch", "trials"], names, "quantity", "value").dropna()
    return long.sort_values(["machine", "L", "batch"], kind="stable")[COLUMNS].reset_index(drop=True)


def batches(rows, L):
    """Return the residuals (batches, quantities) of one machine at a size."""
    return rows[rows.L == L].pivot(index="batch", columns="quantity", values="value").to_numpy()


def approach(table):
    """Return how far machines are from the theory at each size, in units of the smallest size.

    The mean residuals at a size are a vector, each over its scatter at the smallest size. Compared is the component
    along the vector of that size, whose own noise is taken out of its square: 1/2 at twice the size, if all of them
    fall like 1/L.

    Parameters
    ----------
    table : pandas.DataFrame
        ``stored("sizes")``, or the rows of some machines.

    Returns
    -------
    dict
        Size L, above the smallest: (ratio, standard error), from the scatter of the batches of both sizes.
    """
    first, *others = sorted(table.L.unique().tolist())
    rows = {}
    for L in others:
        both = [(batches(mine, first), batches(mine, L)) for _, mine in table.groupby("machine", sort=False)]
        weights = [small.var(axis=0, ddof=1) ** -1.0 for small, _ in both]
        means = [(small.mean(axis=0), large.mean(axis=0)) for small, large in both]
        noise = sum(small.shape[1] / len(small) for small, _ in both)
        bottom = sum(w @ s**2 for w, (s, _) in zip(weights, means, strict=True)) - noise
        ratio = sum((w * s) @ m for w, (s, m) in zip(weights, means, strict=True)) / bottom
        variance = 0.0
        for (small, large), w, (s, m) in zip(both, weights, means, strict=True):
            variance += np.var(large @ (w * s), ddof=1) / len(large)
            variance += np.var(small @ (w * (m - 2.0 * ratio * s)), ddof=1) / len(small)
        rows[L] = float(ratio), float(np.sqrt(variance) / abs(bottom))
    return rows


OPTIONS = {
    "--store": {"type": Path, "help": "folder that keeps batches (%(default)s)"},
    "--out": {"type": Path, "help": "folder of results (that of the package)"},
}


def run(store=WORK / "sizes", out=RESULTS):
    """Run what is missing, and write the table."""
    store.mkdir(parents=True, exist_ok=True)
    cells = [{"machine": name, "L": L} for name in MACHINES for L in SIZES]
    done = []
    for cell in cells:
        path = store / f"{cell['machine']}.jsonl"
        how = {"trials": BATCHES, "seed": SEED, "store": path, "n_jobs": 1, "progress": False}
        done.append(experiments.run(measure, [cell], **how))
    table = tidy(pd.concat(done, ignore_index=True))
    renew(out / "sizes.csv", table)
    print({L: (round(a, 3), round(e, 3)) for L, (a, e) in approach(table).items()})
