"""Measure the remedies on the data themselves, by repeated cross-validation, and judge the prediction by it."""

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_class_weight
from tqdm.auto import tqdm

from .._support import parallel
from ..strategies import REMEDIES
from ._judgement import LARGEST_GAP, STEPS, displaced, unconverged
from ._pipeline import class_weight, coding, learner, one_vs_rest_steps, sampler
from ._prediction import designs, evaluate
from ._selection import NEGLIGIBLE, PREDICTION_ERROR, simplest
from ._table import sample_rows
from ._threshold import best_cut, height

MOST_ROWS = 4_000  # a larger table is sampled down to so many rows
FEWEST = 200  # rows of each class that sampling down keeps, if there are so many
FEWEST_OF_CLASS = 20  # the same with more than two classes
RESAMPLES = 200  # resamplings of the rows, for standard errors
CLOSE = 1e-6  # gap between primal and dual objective, in units of the objective, of a fit that has converged
PATIENCE = 10_000_000  # products of two rows that libsvm may take, some hundredths of a second
STEPS_PER_ROW = 0.25  # steps of libsvm for each row below which it is not tried: every support vector needs one
MOST_GRAM = 1_000  # rows of an SVM with a kernel that interior points take; with more, libsvm takes its time
# Standard errors that the mean over all predictions may be off by: one test of 95 %, so two are enough.
MEAN_GAP_ERRORS = 2.0


class Validation(NamedTuple):
    """How a cross-validation is done."""

    folds: int
    repeats: int
    random_state: object = 0
    n_jobs: int | None = 1
    progress: bool = False
    most_rows: int = MOST_ROWS  # a larger table is sampled down


class Checked(NamedTuple):
    """What cross-validation measured."""

    n_pos: float  # size of a training fold
    n_neg: float
    value: dict  # from (strategy, threshold) to the metric, where more is better; NaN if a fit did not converge
    resampled: dict  # the same for resampled rows, (RESAMPLES,), paired between strategies


def cross_validate(data, setting, machines, validation):
    """Measure every (strategy, threshold), the keys of ``machines``, whose values are mixings (NaN for none) and C.

    Parameters
    ----------
    data : Data
    setting : Setting
    machines : dict
    validation : Validation

    Returns
    -------
    Checked
    """
    rng, most, repeats = np.random.default_rng(validation.random_state), validation.most_rows, validation.repeats
    X, y = sample_rows(data, most, min(FEWEST, most // 4), rng)
    folds = min(validation.folds, int(min(y.sum(), (~y).sum())))
    # remedies with the same mixing and C are the same classifier, trained once
    design_of = {row: (mixing if mixing == mixing else row[0], C) for row, (mixing, C) in machines.items()}
    trained = dict.fromkeys(design_of.values())
    splits = []
    for repeat in range(repeats):
        cut = StratifiedKFold(folds, shuffle=True, random_state=int(rng.integers(2**31)))
        splits += [Split(repeat, *parts, int(rng.integers(2**31))) for parts in cut.split(X, y)]
    X, kinds = X.rename(columns={name: str(name) for name in X.columns}), data.kinds.as_text()
    n_jobs = -1 if validation.n_jobs is None else parallel.workers(validation.n_jobs)
    work = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_scores)(X, y, kinds, split, _steps(trained, setting, y[split.train], split.seed)) for split in splits
    )
    scores = {design: np.empty((repeats, len(y))) for design in trained}
    fold_of = np.empty((repeats, len(y)), int)
    bar = tqdm(work, total=len(splits), desc="cross-validation", disable=not validation.progress)
    for k, (split, fold_scores) in enumerate(zip(splits, bar, strict=True)):
        fold_of[split.repeat, split.test] = k
        for design, values in fold_scores.items():
            scores[design][split.repeat, split.test] = values
    weights = _resampled_rows(y, rng)
    value, resampled = {}, {}
    for row, design in design_of.items():
        measured = _measure(scores[design], fold_of, y, row[1], setting, weights)
        value[row], resampled[row] = measured[0], measured[1:]
    grown = (folds - 1) / folds
    return Checked(grown * y.sum(), grown * (~y).sum(), value, resampled)


class Split(NamedTuple):
    """One fold of one repeat."""

    repeat: int
    train: np.ndarray
    test: np.ndarray
    seed: int  # of the sampler


def _steps(trained, setting, y, seed):
    """Return the sampler, or None, and the learner of each design: a mixing or the name of a remedy, and a C."""
    steps = {}
    for design, C in trained:
        drawn_by, weights = None, None
        if isinstance(design, str):
            weights = class_weight(REMEDIES[design], y.sum(), (~y).sum(), {1: True, 0: False})
        else:
            drawn_by = sampler(design, seed)
        steps[design, C] = drawn_by, learner(setting.loss, C, weights, setting.kernel, setting.gamma)
    return steps


def _scores(X, y, kinds, split, steps):
    """Train each design on the training rows, and return a dict from design to scores of the test rows."""
    known, new = _coded(X, kinds, split.train, split.test)
    scores = {}
    for design, (drawn_by, classifier) in steps.items():
        rows, labels = known, y[split.train].astype(int)
        if drawn_by is not None:
            rows, labels = drawn_by.fit_resample(rows, labels)
        scores[design] = converged_scores(classifier, rows, labels, new)
    return scores


def converged_scores(classifier, X, labels, new):
    """Train a classifier on rows X (n, D) and labels 0 or 1 (n,); return the scores of new rows, NaN if it fails.

    An SVM for which libsvm needs too many steps is trained by an interior-point method, to the same minimum. Any other
    classifier that does not converge has no scores: those of weights on their way mean nothing.
    """
    is_svm, n = isinstance(classifier, SVC), len(labels)
    steps = PATIENCE // n
    if is_svm and classifier.kernel == "linear" and steps < STEPS_PER_ROW * n:
        return _exact_scores(classifier, X, labels, new)
    if is_svm and (classifier.kernel == "linear" or n <= MOST_GRAM):
        classifier.set_params(max_iter=max(steps, 1))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            return classifier.fit(X, labels).decision_function(new)
    except ConvergenceWarning:
        return _exact_scores(classifier, X, labels, new) if is_svm else np.full(len(new), np.nan)


def _exact_scores(svm, X, labels, new):
    """Return the scores of new rows by an SVM that is trained with interior points; NaN if that fails too."""
    from ..learners.internal import fit_svm

    weights = compute_class_weight(svm.class_weight, classes=np.array([0, 1]), y=labels)
    y, costs = np.where(labels == 1, 1.0, -1.0), svm.C * weights[labels]
    rows, across = X, new
    if svm.kernel != "linear":  # features of the rows, from their Gram matrix
        values, basis = np.linalg.eigh(rbf_kernel(X, gamma=svm.gamma))
        roots = np.sqrt(np.maximum(values, 1e-12 * values[-1]))
        rows, across = basis * roots, rbf_kernel(new, X, gamma=svm.gamma) @ (basis / roots)
    fit = fit_svm(rows, y, costs)
    return across @ fit.w - fit.b if fit.gap <= CLOSE else np.full(len(new), np.nan)


def _coded(X, kinds, train, test):
    """Return training and test rows, (n, D) each, as the pipeline of the advice codes them.

    Numbers without gaps need a mean and a deviation of each column alone: the pipeline would take longer than the
    machines take to train on a few hundred rows.
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
    values = record.sign * np.array([record.of_scores(s, y, w) for w in few])
    return np.concatenate([values, np.resize(values[1:], len(weights) - len(few))])


# ---- prediction and measurement


def verify(advice, validation):
    """Add what cross-validation measures to an advice."""
    setting, table = advice.setting, advice.table.copy()
    sign = setting.record.sign
    machines = {row: (mixing, advice.C_of(row)) for row, mixing in table["mixing"].items()}
    checked = cross_validate(advice.data, setting, machines, validation)
    smaller = setting._replace(n_pos=checked.n_pos, n_neg=checked.n_neg)
    value, d = evaluate(advice.moments, smaller).value, designs(smaller)
    for row in table.index:
        k = setting.thresholds.index(row[1])
        nearest = d.mixed.start + int(np.argmin(np.abs(d.mixing[d.mixed] - table.loc[row, "mixing"])))
        table.loc[row, "measured"] = sign * checked.value[row]
        table.loc[row, "measured_error"] = np.std(checked.resampled[row])
        table.loc[row, "expected"] = sign * value[k, d.index(row, nearest)]
    advice.table = table
    judge(advice, checked)
    return advice


def judge(advice, checked):
    """Record in the advice whether theory and data agree, and change the recommendation if they do not.

    What did not converge has no measured value, and does not count.
    """
    known = [row for row, value in checked.value.items() if np.isfinite(value)]
    if len(known) < len(checked.value):
        advice.notes = [*advice.notes, unconverged(row for row in checked.value if row not in known)]
    if advice.best not in known:
        return
    table = advice.table.loc[known]
    gap = table["measured"] - table["expected"]
    unit = advice.setting.unit
    off = gap.abs() > np.maximum(LARGEST_GAP * unit, 3.0 * np.hypot(table["measured_error"], table["scatter"]))
    # remedies share rows, folds and moments, so their mean offset is judged as one number with an error of its own
    mean = np.mean([checked.resampled[row] for row in known], axis=0)
    advice.offset = float(gap.mean())
    advice.offset_error = float(np.hypot(np.std(mean), table["scatter"].mean()))
    winner = max(known, key=checked.value.get)
    lead = checked.value[winner] - checked.value[advice.best]
    doubt = np.std(checked.resampled[winner] - checked.resampled[advice.best])
    beaten = lead > max(0.5 * PREDICTION_ERROR * unit, 2.0 * doubt)
    surely = displaced(advice) and abs(advice.offset) > MEAN_GAP_ERRORS * advice.offset_error
    advice.agrees = not (beaten or off[advice.best] or off.mean() > 0.5 or surely)
    if beaten:
        close = max(NEGLIGIBLE * unit, 0.5 * doubt)
        advice.best = simplest(checked.value[winner] - pd.Series(checked.value)[known] <= close, advice.setting)
    # confidence rises only if the offset is known to be small, and falls if it is large, even where that may be chance
    step = -1 if displaced(advice) else int(advice.offset_error <= LARGEST_GAP * unit)
    step = step if advice.agrees else -len(STEPS)
    advice.confidence = STEPS[min(max(STEPS.index(advice.confidence) + step, 0), len(STEPS) - 1)]


# ---- three classes or more


def measure_many(advice, validation):
    """Return recalls and errors of all candidates of an advice by cross-validation, and the class sizes of a fold (T,).

    A table of more than ``validation.most_rows`` rows is sampled down.
    """
    data = advice.data
    chosen = sample_classes(
        data.y, min(validation.most_rows, len(data.y)), np.random.default_rng(validation.random_state)
    )
    X, y = data.X[chosen], data.y[chosen]
    recall, error, share = cross_validate_many(X, y, advice.setting.loss, advice.rows, validation)
    return recall, error, share * np.bincount(y)


def sample_classes(y, rows, rng):
    """Return indices of about so many rows of classes y (n,), in proportion, but at least FEWEST_OF_CLASS of each."""
    share, sizes = rows / len(y), np.bincount(y)
    take = np.minimum(sizes, np.maximum(np.rint(share * sizes).astype(int), FEWEST_OF_CLASS))
    chosen = [rng.permutation(np.flatnonzero(y == k))[:count] for k, count in enumerate(take)]
    return np.sort(np.concatenate(chosen))


def cross_validate_many(X, y, loss, candidates, validation):
    """Return macro recalls of candidates, a dict by (strategy, threshold), in repeated cross-validation.

    Parameters
    ----------
    X : (n, D) array
        Coded rows.
    y : (n,) array
        Their classes, of 0 … T-1.
    loss : str
    candidates : dict
    validation : Validation

    Returns
    -------
    recall : dict
        From (strategy, threshold) to the mean macro recall; NaN if a fit did not converge.
    error : dict
        To its standard error, of resampled rows within each class.
    share : float
        Part of the rows that each machine was trained on.
    """
    sizes, rng, repeats = np.bincount(y), np.random.default_rng(validation.random_state), validation.repeats
    folds = min(validation.folds, int(sizes.min()))
    hits = {row: np.zeros(len(y)) for row in candidates}
    for _ in range(repeats):
        split = StratifiedKFold(folds, shuffle=True, random_state=int(rng.integers(2**31)))
        for row, candidate in candidates.items():
            seed = int(rng.integers(2**31))
            for train, test in split.split(X, y):
                steps = one_vs_rest_steps(loss, candidate, seed)
                scores = _scores_many(steps, X[train], y[train], X[test])
                right = np.argmax(scores - candidate.offsets, axis=1) == y[test]
                hits[row][test] += np.where(np.isnan(scores).any(axis=1), np.nan, right)
    recall, error = {}, {}
    for row, hit in hits.items():
        parts = [hit[y == k] / repeats for k in range(len(sizes))]
        recall[row] = float(np.mean([part.mean() for part in parts]))
        error[row] = float(np.sqrt(sum(part.var() / len(part) for part in parts)) / len(sizes))
    return recall, error, (folds - 1) / folds


def _scores_many(steps, X, y, new):
    """Train steps on rows X (n, D) of classes y (n,); return the scores of new rows for each class."""
    *samplers, rest = steps
    classes = range(int(y.max()) + 1)
    for step in samplers:
        X, y = step.fit_resample(X, y)
    return np.stack([converged_scores(clone(rest.estimator), X, (y == k).astype(int), new) for k in classes], axis=1)
