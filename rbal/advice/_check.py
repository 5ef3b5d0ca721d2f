"""Measure the remedies on the data themselves, by repeated stratified cross-validation."""

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from tqdm.auto import tqdm

from .._support import parallel
from ..strategies import REMEDIES
from ._machines import subset as rows_of
from ._pipeline import class_weight, coding, learner, sampler
from ._threshold import best_cut, height

MOST_ROWS = 4_000  # a larger table is sampled down to so many rows
FEWEST = 200  # rows of each class that sampling down keeps, if there are so many
RESAMPLES = 200  # resamplings of the rows, for standard errors
CLOSE = 1e-6  # gap between primal and dual objective, in units of the objective, of a fit that has converged
PATIENCE = 10_000_000  # products of two rows that libsvm may take, some hundredths of a second
MOST_GRAM = 1_000  # rows of an SVM with a kernel that interior points take; with more, libsvm takes its time


class Checked(NamedTuple):
    """What cross-validation measured."""

    n_pos: float  # size of a training fold
    n_neg: float
    value: dict  # from (strategy, threshold) to the metric, where more is better; NaN if a fit did not converge
    resampled: dict  # the same for resampled rows, (RESAMPLES,), paired between strategies


def subset(data, rng, most=MOST_ROWS):
    """Return the rows to check on, and which are positive: all rows, or as many as the check takes."""
    return rows_of(data, most, min(FEWEST, most // 4), rng)


def cross_validate(data, setting, machines, *, folds, repeats, n_jobs, random_state, progress, most=MOST_ROWS):
    """Measure every (strategy, threshold), the keys of ``machines``, whose values are mixings (NaN for none) and C.

    A table of more than ``most`` rows is sampled down.
    """
    rng = np.random.default_rng(random_state)
    X, y = subset(data, rng, most)
    folds = min(folds, int(min(y.sum(), (~y).sum())))
    # remedies with the same mixing and C are the same classifier, trained once
    at = {row: (mixing if mixing == mixing else row[0], C) for row, (mixing, C) in machines.items()}
    designs = dict.fromkeys(at.values())
    splits = []
    for repeat in range(repeats):
        cut = StratifiedKFold(folds, shuffle=True, random_state=int(rng.integers(2**31)))
        splits += [(repeat, train, test, int(rng.integers(2**31))) for train, test in cut.split(X, y)]
    names = {name: str(name) for name in X.columns}
    X = X.rename(columns=names)
    kinds = [names[n] for n in data.numeric], [names[n] for n in data.categorical], data.standardize
    work = Parallel(n_jobs=-1 if n_jobs is None else parallel.workers(n_jobs), return_as="generator")(
        delayed(_scores)(X, y, kinds, train, test, _steps(designs, setting, y[train], seed))
        for _, train, test, seed in splits
    )
    scores = {design: np.empty((repeats, len(y))) for design in designs}
    fold_of = np.empty((repeats, len(y)), int)
    bar = tqdm(work, total=len(splits), desc="cross-validation", disable=not progress)
    for k, ((repeat, _, test, _), found) in enumerate(zip(splits, bar, strict=True)):
        fold_of[repeat, test] = k
        for design, values in found.items():
            scores[design][repeat, test] = values
    weights = _resampled_rows(y, rng)
    value, resampled = {}, {}
    for row, design in at.items():
        measured = _measure(scores[design], fold_of, y, row[1], setting, weights)
        value[row], resampled[row] = measured[0], measured[1:]
    grown = (folds - 1) / folds
    return Checked(grown * y.sum(), grown * (~y).sum(), value, resampled)


def _steps(designs, setting, y, seed):
    """Return the sampler, or None, and the learner of each design, a mixing or the name of a remedy, and a C."""
    steps, machine = {}, (setting.loss, setting.kernel, setting.gamma)
    for what, C in designs:
        draw, weights = None, None
        if isinstance(what, str):
            weights = class_weight(REMEDIES[what], y.sum(), (~y).sum(), {1: True, 0: False})
        else:
            draw = sampler(what, seed)
        steps[what, C] = draw, learner(machine[0], C, weights, *machine[1:])
    return steps


def _scores(X, y, kinds, train, test, steps):
    """Train each design on the training rows, and return a dict from design to scores of the test rows."""
    known, new = _coded(X, kinds, train, test)
    found = {}
    for design, (draw, classifier) in steps.items():
        rows, labels = known, y[train].astype(int)
        if draw is not None:
            rows, labels = draw.fit_resample(rows, labels)
        found[design] = converged_scores(classifier, rows, labels, new)
    return found


def converged_scores(classifier, X, labels, new):
    """Train a classifier on rows X (n, D) and labels 0 or 1 (n,); return the scores of new rows, NaN if it fails.

    An SVM for which libsvm needs too many steps is trained by an interior-point method, to the same minimum. Any other
    classifier that does not converge has no scores: those of weights on their way mean nothing.
    """
    is_svm, n = isinstance(classifier, SVC), len(labels)
    if is_svm and (classifier.kernel == "linear" or n <= MOST_GRAM):
        classifier.set_params(max_iter=max(PATIENCE // n, 1))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            return classifier.fit(X, labels).decision_function(new)
    except ConvergenceWarning:
        return _exact_scores(classifier, X, labels, new) if is_svm else np.full(len(new), np.nan)


def _exact_scores(svm, X, labels, new):
    """Return the scores of new rows by an SVM that is trained with interior points; NaN if that fails too."""
    from ..learners.internal import fit_svm

    y, costs = np.where(labels == 1, 1.0, -1.0), svm.C * svm.class_weight_[labels]
    rows, across = X, new
    if svm.kernel != "linear":  # features of the rows, from their Gram matrix
        values, basis = np.linalg.eigh(rbf_kernel(X, gamma=svm.gamma))
        roots = np.sqrt(np.maximum(values, 1e-12 * values[-1]))
        rows, across = basis * roots, rbf_kernel(new, X, gamma=svm.gamma) @ (basis / roots)
    fit = fit_svm(rows, y, costs)
    return across @ fit.w - fit.b if fit.gap <= CLOSE else np.full(len(new), np.nan)


def _coded(X, kinds, train, test):
    """Return training and test rows, (n, D) each, as the pipeline of the advice codes them.

    Of numbers alone, without gaps, that is a mean and a deviation of each column. The pipeline takes longer to say so
    than the machines take to train on a few hundred rows.
    """
    numeric, categorical, standardize = kinds
    if not categorical and X[numeric].dtypes.map(pd.api.types.is_float_dtype).all():
        rows = X[numeric].to_numpy(float)
        if np.isfinite(rows).all():
            known, new = rows[train], rows[test]
            if not standardize:
                return known, new
            scaler = StandardScaler().fit(known)
            return scaler.transform(known), scaler.transform(new)
    coder = coding(*kinds)
    return coder.fit_transform(X.iloc[train]), coder.transform(X.iloc[test])


def _resampled_rows(y, rng):
    """Return multiplicities of the rows, (1 + RESAMPLES, n): ones, then draws with replacement within each class."""
    weights = np.ones((1 + RESAMPLES, len(y)))
    for label in (True, False):
        members = np.flatnonzero(y == label)
        weights[1:, members] = rng.multinomial(len(members), np.full(len(members), 1.0 / len(members)), size=RESAMPLES)
    return weights


def _measure(scores, fold_of, y, threshold, setting, weights):
    """Return the metric (more is better), averaged over the repeats, for each row of weights (1 + RESAMPLES, n)."""
    if np.isnan(scores).any():
        return np.full(len(weights), np.nan)
    total = np.zeros(len(weights))
    for s, fold in zip(scores, fold_of, strict=True):
        if setting.record.ranks:
            total += _ranking(s, fold, y, setting.record, weights)
            continue
        cut = np.zeros(len(s))
        if threshold == "moved":
            for k in np.unique(fold):  # the threshold of a fold comes from the others
                cut[fold == k] = best_cut(s[fold != k], y[fold != k], setting.record)[0]
        answer = (s > cut).astype(float)
        tpr = (weights[:, y] @ answer[y]) / weights[:, y].sum(axis=1)
        fpr = (weights[:, ~y] @ answer[~y]) / weights[:, ~y].sum(axis=1)
        total += height(setting.record, tpr, fpr, float(y.mean()))
    return total / len(scores)


def _ranking(s, fold, y, record, weights):
    """Return a metric that needs no threshold, of scores standardised in each fold, for each row of weights."""
    s = s.copy()
    for k in np.unique(fold):
        part = fold == k
        s[part] = (s[part] - s[part].mean()) / (s[part].std() or 1.0)
    few = weights[:51]  # enough for a standard error
    found = record.sign * np.array([record.of_scores(s, y, w) for w in few])
    return np.concatenate([found, np.resize(found[1:], len(weights) - len(few))])
