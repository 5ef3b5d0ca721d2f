"""The rules of the second edition: each trains on the training part of a fold and answers for the rest.

Rules that share a trained machine, and differ in its threshold only, come from one function. CPU seconds of a rule are
those of its process from the coded rows to the classifier that is ready to answer.
"""

import inspect
import time
from typing import NamedTuple

import numpy as np
from imblearn.pipeline import Pipeline
from imblearn.under_sampling import RandomUnderSampler
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
)
from sklearn.svm import SVC

from rbal.advice import advise
from rbal.metrics import METRICS, Link, best_threshold
from rbal.strategies import REMEDIES

from ..tables import weights

INNER = 5  # folds of every search, and of every tuned threshold
TREES = 300
STEPS = 100_000  # of the optimiser for one machine of the grid search
CACHE = 500  # MB, of SVC
DECADES = {"linear": (-4, 1), "rbf": (-2, 3)}  # of C in the grid search, one value each
WIDTHS = (0.25, 1.0, 4.0)  # of the RBF kernel in the grid search, in units of gamma="scale"
FIXED = {  # kernel, C and remedy of the rules that choose nothing
    "as is": ("linear", 1.0, "as is"),
    "undersampling": ("linear", 1.0, "undersampling"),
    "weights": ("linear", 1.0, "class weights"),
    "weights, C = 0.1": ("linear", 0.1, "class weights"),
    "weights, C = 0.01": ("linear", 0.01, "class weights"),
    "RBF weights": ("rbf", 1.0, "class weights"),
}
ADVICE = {  # arguments of rbal.advise
    "advice": {"C": "best", "kernel": "best", "train": "little"},
    "advice, linear": {"C": "best", "kernel": "linear", "train": "little"},
}
GRID = "grid search"
GRIDS = (GRID, f"{GRID}, trained", f"{GRID}, any")  # its three variants
FOREST = "forest"
TUNED = "{}, tuned"  # name of the twin of a rule that tunes the threshold
RULES = [name for rule in FIXED for name in (rule, TUNED.format(rule))]  # that choose nothing
OTHERS = [*RULES, *GRIDS, FOREST, TUNED.format(FOREST)]
MACHINES = [*FIXED, GRID, GRIDS[2], FOREST, *ADVICE]  # by which thresholds do not count


class Fitted(NamedTuple):
    """A trained machine as the test rows see it, with one answer and its CPU seconds for each rule that it serves."""

    scores: np.ndarray  # (n_test,), larger for positives
    unseen: np.ndarray  # (n,) scores of the training rows by machines that did not see them
    answers: dict  # from the name of a rule to booleans (n_test,)
    cpu: dict  # from the name of a rule to seconds
    link: Link | None = None  # from scores to probabilities; by default one is fitted to the unseen scores
    more: dict = {}  # further numbers, by name  # noqa: RUF012


class Rows(NamedTuple):
    """Coded rows of one fold."""

    X: np.ndarray
    y: np.ndarray  # of ±1
    X_test: np.ndarray


# ---- rules that choose nothing


def fixed(rows, name, seed):
    """Train a machine whose kernel, C and remedy are given, with a trained and with a tuned threshold."""
    kernel, C, remedy = FIXED[name]
    machine, begin = SVC(kernel=kernel, C=C, cache_size=CACHE), time.process_time()
    weight = weights(rows.y, remedy, None, seed)
    scores = clone(machine).fit(rows.X, rows.y, sample_weight=weight).decision_function(rows.X_test)
    trained = time.process_time()
    unseen = scores_of_unseen(machine, rows, seed, {"sample_weight": weight})
    cut = best_threshold(unseen, rows.y)
    tuned, twin = time.process_time(), TUNED.format(name)
    answers = {name: scores > 0.0, twin: scores > cut}
    return Fitted(scores, unseen, answers, {name: trained - begin, twin: tuned - begin})


def forest(rows, name, seed):
    """Train a random forest with balanced subsamples; rows that a tree did not draw tune its threshold."""
    begin = time.process_time()
    trees = RandomForestClassifier(TREES, class_weight="balanced_subsample", oob_score=True, random_state=seed)
    scores = trees.fit(rows.X, rows.y).predict_proba(rows.X_test)[:, 1]
    seconds, unseen = time.process_time() - begin, np.nan_to_num(trees.oob_decision_function_[:, 1], nan=0.5)
    twin = TUNED.format(name)
    answers = {name: scores > 0.5, twin: scores > best_threshold(unseen, rows.y)}
    return Fitted(scores, unseen, answers, dict.fromkeys((name, twin), seconds))


# ---- grid search, by scikit-learn alone


def grid(X):
    """Return the parameters that the grid search tries on rows X (n, D), as GridSearchCV takes them."""
    scale = 1.0 / (X.shape[1] * X.var())
    remedies = [
        {"sampler": ["passthrough"], "svc__class_weight": [None, "balanced"]},
        {"sampler": [RandomUnderSampler(random_state=0)]},
    ]
    kernels = [
        {"svc__kernel": ["linear"], "svc__C": decades("linear")},
        {"svc__kernel": ["rbf"], "svc__C": decades("rbf"), "svc__gamma": [scale * width for width in WIDTHS]},
    ]
    return [kernel | remedy for kernel in kernels for remedy in remedies]


def decades(kernel):
    """Return the values of C that the grid search tries for a kernel."""
    low, high = DECADES[kernel]
    return [10.0**k for k in range(low, high + 1)]


def best_of_all_thresholds(estimator, X, y):
    """Return the highest balanced accuracy that any threshold reaches: a scorer of scikit-learn."""
    scores = estimator.decision_function(X)
    answer = scores > best_threshold(scores, y)
    return 0.5 * (answer[y > 0].mean() + (~answer[y < 0]).mean())


def searched(rows, seed):
    """Search the grid by cross-validation and tune the threshold of the winner; return two Fitted.

    The first has the winner by the balanced accuracy at the trained threshold, which is then tuned, or left as trained;
    the second the winner by the highest balanced accuracy of any threshold, which is then tuned.
    """
    machine = Pipeline([("sampler", "passthrough"), ("svc", SVC(cache_size=CACHE, max_iter=STEPS))])
    folds = StratifiedKFold(INNER, shuffle=True, random_state=seed)
    scoring = {"trained": "balanced_accuracy", "any": best_of_all_thresholds}
    begin = time.process_time()
    search = GridSearchCV(machine, grid(rows.X), scoring=scoring, refit=False, cv=folds, error_score=0.5)
    found = search.fit(rows.X, rows.y).cv_results_
    seconds, parts = time.process_time() - begin, []
    for how in scoring:
        winner = clone(machine).set_params(**found["params"][int(np.argmax(found[f"mean_test_{how}"]))])
        parts.append(_with_threshold(winner, rows, folds, seconds, GRIDS[:2] if how == "trained" else GRIDS[2:]))
    return parts


def _with_threshold(winner, rows, folds, seconds, names):
    """Tune the threshold of the winner of a search that took some seconds."""
    begin = time.process_time()
    tuned = TunedThresholdClassifierCV(
        winner, scoring="balanced_accuracy", response_method="decision_function", cv=folds
    ).fit(rows.X, rows.y)
    seconds += time.process_time() - begin
    scores = tuned.estimator_.decision_function(rows.X_test)
    answers = {names[0]: tuned.predict(rows.X_test) > 0} | dict.fromkeys(names[1:], scores > 0.0)
    unseen = cross_val_predict(winner, rows.X, rows.y, cv=folds, method="decision_function")
    svc = winner.named_steps["svc"]
    more = {"C": svc.C, "curved": svc.kernel == "rbf", "weighted": svc.class_weight is not None}
    more["sampled"] = winner.named_steps["sampler"] != "passthrough"
    return Fitted(scores, unseen, answers, dict.fromkeys(names, seconds), None, more)


# ---- advice


def asked(options):
    """Return the options that this version of rbal.advise takes: one that cannot train takes no ``train``."""
    known = inspect.signature(advise).parameters
    return {name: value for name, value in options.items() if name in known}


def advised(rows, name, seed):
    """Ask for advice on the training rows and train what it recommends."""
    begin = time.process_time()
    advice = advise(rows.X, rows.y, positive=1, random_state=seed, progress=False, **asked(ADVICE[name]))
    chosen = time.process_time()
    machine = advice.pipeline(random_state=seed)
    trained = clone(machine).fit(rows.X, rows.y)
    ready = time.process_time()
    scores, answer = trained.decision_function(rows.X_test), trained.predict(rows.X_test) > 0
    inside = machine.estimator if advice.best[1] == "moved" else machine
    unseen = scores_of_unseen(inside, rows, seed)
    row = advice.table.loc[advice.best]
    more = {
        "predicted": row["predicted"], "low": row["low"], "high": row["high"], "choosing": chosen - begin,
        "C": advice.C, "curved": advice.kernel == "rbf", "remedy": list(REMEDIES).index(advice.best[0]),
        "moved": advice.best[1] == "moved", "confidence": ("low", "moderate", "high").index(advice.confidence),
    }  # fmt: skip
    return Fitted(scores, unseen, {name: answer}, {name: ready - begin}, advice.calibration, more)


# ---- what all share


def scores_of_unseen(machine, rows, seed, params=None):
    """Return scores (n,) of the training rows by machines that did not see them."""
    folds = StratifiedKFold(INNER, shuffle=True, random_state=seed)
    return cross_val_predict(machine, rows.X, rows.y, cv=folds, method="decision_function", params=params)


def sigmoid(unseen, y):
    """Return the Link of Platt's method: a logistic regression on unseen scores (n,), with softened labels y (n,)."""
    n_pos, n_neg = np.sum(y > 0), np.sum(y < 0)
    scale = float(np.std(unseen)) or 1.0
    sure = np.where(y > 0, (n_pos + 1.0) / (n_pos + 2.0), (n_neg + 1.0) / (n_neg + 2.0))  # of the label that it has
    column, labels = np.tile(unseen / scale, 2)[:, None], np.r_[y, -y]
    fit = LogisticRegression(C=1e6, max_iter=1000).fit(column, labels, sample_weight=np.r_[sure, 1.0 - sure])
    return Link(float(fit.coef_[0, 0]) / scale, float(fit.intercept_[0]))


def best_f1(unseen, y):
    """Return the threshold at which F1 of unseen scores (n,) is highest, midway between two of them."""
    from rbal.advice.internal import best_cut

    return best_cut(unseen, y > 0, METRICS["f1"])[0]
