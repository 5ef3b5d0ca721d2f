"""What it costs to predict kernel machines, against cross-validation of the same grid."""

import resource
import time

import numpy as np
from imblearn.pipeline import make_pipeline
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

import rbal
from rbal import strategies

C = np.geomspace(1e-2, 1e3, 20)
MIXINGS = {"undersampling": 0.0, "best mix": 0.5, "oversampling": 1.0}


def spheres(n, D=20, share=0.2, seed=2024):
    """Two Gaussian classes of different widths, a little apart."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < share * n, 1, -1)
    X = rng.normal(size=(n, D)) + 0.2 * (y > 0)[:, None]
    X[y > 0] *= 1.2
    return X, y


def predicted(X, y):
    """Predict every remedy at every C."""
    return strategies.best_classifier(X, y, kernels={"rbf": {"gamma": ["scale"]}}, C=C)


def cross_validated(X, y, folds=5):
    """Train every remedy at every C on each fold; of the best mixture, one mixing."""
    found = {}
    for name in strategies.REMEDIES:
        weight = "balanced" if name == "class weights" else None
        machine = make_pipeline(SVC(class_weight=weight))
        if name in MIXINGS:
            sampler = rbal.RandomMixSampler(mixing=MIXINGS[name], random_state=0)
            machine = make_pipeline(sampler, SVC())
        split = StratifiedKFold(folds, shuffle=True, random_state=0)
        search = GridSearchCV(machine, {"svc__C": C}, scoring="balanced_accuracy", cv=split, refit=False)
        found[name] = search.fit(X, y).cv_results_["mean_test_score"]
    return found


def against_cross_validation(n=1000):
    """Row of the table of ratios: all remedies at 20 values of C."""
    X, y = spheres(n)
    predicted(X[::4], y[::4])
    ours = np.inf
    for _ in range(3):
        start = time.perf_counter()
        best = predicted(X, y)
        ours = min(ours, time.perf_counter() - start)
    start = time.perf_counter()
    found = cross_validated(X, y)
    theirs = time.perf_counter() - start
    table = best.table.pivot(index="remedy", columns="C", values="value")
    off = np.mean([np.abs(table.loc[name].to_numpy() - found[name]).mean() for name in found if name != "best mix"])
    return f"5 remedies, 20 values of C, n = {n:,}", ours, theirs, 20, f"they differ by {off:.3f} on average"


def many_rows(n=20_000):
    """Wall seconds for moments of n rows and all remedies at 20 values of C, share left out, peak memory in GB."""
    X, y = spheres(n)
    start = time.perf_counter()
    best = predicted(X, y)
    seconds = time.perf_counter() - start
    missing = rbal.kernels.moments(X, y, best.kernel).missing
    return seconds, missing, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
