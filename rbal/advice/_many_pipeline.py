"""Build the classifier for a table of many classes: coding, sampler, one machine a class, and a threshold for each."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.validation import check_is_fitted

from .._support.documented import Documented
from ..strategies import REMEDIES
from ._check import MOST_ROWS, converged_scores
from ._many_level import part
from ._pipeline import coding_of, learner, sampler


class ClassThresholds(Documented, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier with a score for each class, less a threshold for each: the largest difference is the answer.

    Parameters
    ----------
    estimator : classifier
        With ``decision_function`` of shape (n, T).
    offsets : dict
        Threshold of each label; a label that is not in it, nor its text, has 0.

    Attributes
    ----------
    estimator_ : classifier
        Trained.
    classes_ : (T,) array
    offsets_ : (T,) array
        In the order of ``classes_``.
    """

    def __init__(self, estimator, offsets):
        self.estimator = estimator
        self.offsets = offsets

    def fit(self, X, y):
        """Train the classifier on X (n rows) and labels y (n,); return self."""
        self.estimator_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.estimator_.classes_
        known = {str(label): float(offset) for label, offset in self.offsets.items()}
        self.offsets_ = np.array([known.get(str(label), 0.0) for label in self.classes_.tolist()])
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def decision_function(self, X):
        """Return the scores (n, T), less the thresholds."""
        check_is_fitted(self)
        return self.estimator_.decision_function(X) - self.offsets_

    def predict(self, X):
        """Return the labels (n,) of the largest scores."""
        return self.classes_[np.argmax(self.decision_function(X), axis=1)]


def machines(loss, candidate, random_state=None):
    """Return the steps of a candidate after the coding: a sampler, if it has one, and machines against the rest."""
    weights = "balanced" if REMEDIES[candidate.strategy].weights is not None else None
    steps = [] if np.isnan(candidate.mixing) else [sampler(candidate.mixing, random_state)]
    return [*steps, OneVsRestClassifier(learner(loss, candidate.C, weights))]


def pipeline(advice, random_state=None):
    """Return the recommended classifier of a ManyAdvice, not yet fitted."""
    from imblearn.pipeline import make_pipeline

    candidate = advice.rows[advice.best]
    trained = make_pipeline(*coding_of(advice.data), *machines(advice.setting.loss, candidate, random_state))
    if candidate.threshold == "trained":
        return trained
    offsets = candidate.offsets.tolist()
    return ClassThresholds(trained, dict(zip(advice.data.classes, offsets, strict=True)))


def measured(advice, folds, repeats, random_state):
    """Return recalls and errors of all candidates of an advice by cross-validation, and the class sizes of a fold (T,).

    A table of more than MOST_ROWS rows is sampled down.
    """
    data = advice.data
    chosen = part(data.y, min(MOST_ROWS, len(data.y)), np.random.default_rng(random_state))
    X, y = data.X[chosen], data.y[chosen]
    recall, error, share = cross_validated((X, y), advice.setting.loss, advice.rows, folds, repeats, random_state)
    return recall, error, share * np.bincount(y)


def cross_validated(table, loss, candidates, folds, repeats, random_state):
    """Return macro recalls of candidates, a dict by (strategy, threshold), in repeated cross-validation.

    Parameters
    ----------
    table : tuple
        Coded rows (n, D) and their classes (n,), of 0 … T-1.
    loss : str
    candidates : dict
    folds, repeats : int
    random_state : int

    Returns
    -------
    recall : dict
        From (strategy, threshold) to the mean macro recall; NaN if a fit did not converge.
    error : dict
        To its standard error, of resampled rows within each class.
    share : float
        Part of the rows that each machine was trained on.
    """
    from sklearn.model_selection import StratifiedKFold

    X, y = table
    sizes, rng = np.bincount(y), np.random.default_rng(random_state)
    folds = min(folds, int(sizes.min()))
    hits = {row: np.zeros(len(y)) for row in candidates}
    for _ in range(repeats):
        split = StratifiedKFold(folds, shuffle=True, random_state=int(rng.integers(2**31)))
        for row, candidate in candidates.items():
            seed = int(rng.integers(2**31))
            for train, test in split.split(X, y):
                scores = _scores(loss, candidate, X[train], y[train], X[test], seed)
                right = np.argmax(scores - candidate.offsets, axis=1) == y[test]
                hits[row][test] += np.where(np.isnan(scores).any(axis=1), np.nan, right)
    recall, error = {}, {}
    for row, hit in hits.items():
        parts = [hit[y == k] / repeats for k in range(len(sizes))]
        recall[row] = float(np.mean([part.mean() for part in parts]))
        error[row] = float(np.sqrt(sum(part.var() / len(part) for part in parts)) / len(sizes))
    return recall, error, (folds - 1) / folds


def _scores(loss, candidate, X, y, new, seed):
    """Train a candidate on rows X (n, D) of classes y (n,); return the scores of new rows for each class."""
    *drawn, rest = machines(loss, candidate, seed)
    for step in drawn:
        X, y = step.fit_resample(X, y)
    classes = range(len(candidate.offsets))
    return np.stack([converged_scores(clone(rest.estimator), X, (y == k).astype(int), new) for k in classes], axis=1)
