"""An imbalanced set of digits, balanced in every way, and an SVM for each.

How it runs: ``make study-sampling``, half an hour of two cores. One trial is one set of digits of each size.
How it resumes: every trial is kept in the store as it comes, and is not run again.
Where it is stored: ``sampling.csv``, written anew after each round, once there are as many trials as it holds.
"""

import functools
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.svm import LinearSVC
from tqdm.auto import trange

from rbal import experiments
from rbal._support.validation import one_of, positive_int
from rbal.experiments.internal import measured
from rbal.rbm import RBM

from ..datasets.images import load_mnist
from ._stored import RESULTS, WORK, renew

SEED = 13
#: Ways to restore balance: how the minority grows, and how the majority shrinks.
STRATEGIES = {
    "random": ("copies", "random"),
    "SMOTE": ("SMOTE", "random"),
    "SMOTEN": ("SMOTEN", "random"),
    "RBM-SMOTE": ("RBM-SMOTE", "random"),
    "LIS over": ("LIS", "random"),
    "LIS under": ("copies", "LIS"),
    "LIS mixed": ("LIS", "LIS"),
    "LIS over, no filter": ("unfiltered", "random"),
    "LIS over, narrow filter": ("narrow", "random"),
    "LIS under, edges only": ("copies", "edges"),
    "new digits": ("new", "random"),
}
QUICK = tuple(name for name in STRATEGIES if name != "SMOTEN")  # SMOTEN takes as long as all others together
MIXINGS = (0.0, 0.05, 0.15, 0.4, 1.0)
MINORITIES = (100, 300, 1000)
N_MAJORITY = 5000
N_TEST = 9722  # as many published test digits as two classes of equal size can have


def sampling(
    rng,
    P,
    *,
    data,
    N=N_MAJORITY,
    mixings=MIXINGS,
    strategies=QUICK,
    steps=10,
    n_epochs=250,
    C=10.0,
):
    """Run a trial of the sampling figure: one imbalanced set of digits, balanced in every way, and an SVM for each.

    All strategies share the set, the machine that is trained on its minority and the order in which majority samples
    are taken at random, so that their differences are paired. Each way to grow the minority is asked once for N
    samples; a smaller P' takes the first P' of them.

    Parameters
    ----------
    rng : numpy.random.Generator
    P : int
        Samples of the minority, the positive class.
    data : Images
        Images to draw from, with spins as pixels; the SVM gets pixels 0 and 1 over √L.
    N : int
        Samples of the majority.
    mixings : sequence of float
        P' = round(P + mixing (N - P)) samples of each class.
    strategies : sequence of str
        Names in ``STRATEGIES``.
    steps : int
        Gibbs steps of the likelihood-informed sampler; all else has its default.
    n_epochs : int
        Epochs of training of the RBM.
    C : float
        Inverse ridge of the SVM, which has no intercept.

    Returns
    -------
    dict
        ``"ba as is"``, and for each strategy and mixing ``"ba <strategy> <mixing>"``; the same with ``auc``.
    """
    P, N = positive_int("P", P), positive_int("N", N)
    for name in strategies:
        one_of("strategies", name, tuple(STRATEGIES))
    bits = ((data.sample(N, N, rng)[0] + 1) / 2).astype(np.int8)
    digits, X, y = bits[:N], np.concatenate([bits[:P], bits[N:]]), np.repeat([1, -1], [P, N])
    order, random_state = rng.permutation(N), int(rng.integers(2**31))
    rbm = RBM(n_epochs=n_epochs, progress=False, random_state=random_state).fit(X[:P])
    samplers = _samplers(rbm, steps, random_state)
    ways = {STRATEGIES[name] for name in strategies}
    grown = {"copies": X[np.arange(N) % P], "new": digits}
    grown |= {over: _of(1, samplers[over], X, y, N) for over, _ in ways if over in samplers}
    result = _seen("as is", _tested(X[:P], X[P:], data, C))
    for mixing in mixings:
        n = round(P + mixing * (N - P))
        kept, tested = {"random": X[P:][order[:n]]}, {}
        if n < N:
            kept |= {under: _of(-1, samplers[under], X, y, n) for _, under in ways if under in samplers}
        for name in strategies:
            over, under = STRATEGIES[name]
            pair = (over if n > P else "copies", under if n < N else "random")  # nothing to change
            if pair not in tested:
                tested[pair] = _tested(grown[pair[0]][:n], kept[pair[1]], data, C)
            result |= _seen(f"{name} {mixing:g}", tested[pair])
    return result


def _seen(name, tested):
    return {f"{metric} {name}": tested[metric] for metric in ("ba", "auc")}


def _samplers(rbm, steps, random_state):
    """Return samplers by the names that STRATEGIES uses."""
    from imblearn.over_sampling import SMOTE, SMOTEN

    from rbal.samplers import RBMSMOTE, LikelihoodInformedSampler

    seed = {"random_state": random_state}
    lis = {"rbm": rbm, "steps": steps, "n_states": 2, **seed}
    return {
        "SMOTE": SMOTE(**seed),
        "SMOTEN": SMOTEN(**seed),
        "RBM-SMOTE": RBMSMOTE(rbm=rbm, n_states=2, **seed),
        "LIS": LikelihoodInformedSampler(**lis),
        "unfiltered": LikelihoodInformedSampler(over_range=None, **lis),
        "narrow": LikelihoodInformedSampler(over_range=(0.05, 0.95), **lis),
        "edges": LikelihoodInformedSampler(under_range=(0.5, 0.5), **lis),
    }


def _of(label, sampler, X, y, n):
    """Return n samples of one class, the given ones first."""
    from imblearn.over_sampling import SMOTE

    X = X.astype(float) if isinstance(sampler, SMOTE) else X  # SMOTE interpolates, and keeps the type
    Z, labels = sampler.set_params(sampling_strategy={label: n}).fit_resample(X, y)
    return Z[labels == label]


def _tested(X_pos, X_neg, data, C):
    """Train an SVM without intercept, and return its metrics on the test set."""
    X, y = np.concatenate([X_pos, X_neg]) / np.sqrt(data.L), np.repeat([1, -1], [len(X_pos), len(X_neg)])
    # seeded, since liblinear takes samples in random order, which changes the result within the tolerance
    svm = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-3, max_iter=1_000_000, random_state=0).fit(X, y)
    return measured((data.X_test @ svm.coef_[0]) + svm.coef_.sum(), data.y_test, 1.0)


def tidy(table):
    """Return the long form of a table of :func:`sampling`: one row per trial, strategy and mixing.

    Parameters
    ----------
    table : pandas.DataFrame
        Result of :func:`rbal.experiments.run`.

    Returns
    -------
    pandas.DataFrame
        Columns P, trial, strategy, mixing (NaN for "as is"), ba, auc.
    """
    rows = []
    for record in table.to_dict("records"):
        for column in (name for name in record if name.startswith("ba ")):
            name = column.removeprefix("ba ")
            strategy, mixing = (name, np.nan) if name == "as is" else name.rsplit(" ", 1)
            rows.append((record["P"], record["trial"], strategy, float(mixing), record[column], record[f"auc {name}"]))
    return pd.DataFrame(rows, columns=["P", "trial", "strategy", "mixing", "ba", "auc"])


OPTIONS = {
    "--trials": {"type": int, "help": "realisations of each size (%(default)s)"},
    "--n-jobs": {"type": int, "help": "workers (%(default)s)"},
    "--store": {"type": Path, "help": "file that keeps every trial (%(default)s)"},
    "--out": {"type": Path, "help": "folder of results (that of the package)"},
}


def run(trials=100, n_jobs=1, store=WORK / "sampling.jsonl", out=RESULTS):
    """Run the trials that are missing, one of each size after another, and write the table."""
    store.parent.mkdir(parents=True, exist_ok=True)
    trial = functools.partial(sampling, data=load_mnist("five", n_test=N_TEST))
    for done in trange(1, trials + 1):
        table = experiments.run(trial, {"P": MINORITIES}, done, SEED, store=store, n_jobs=n_jobs, progress=False)
        renew(out / "sampling.csv", tidy(table))
