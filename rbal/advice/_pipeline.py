"""Build the classifier of the advice from scikit-learn parts: coding of the columns, sampler, weights and learner.

A bag has several undersampled machines, whose scores are averaged: the rarer class is in all of them, the other one is
drawn anew for each. That wins back what undersampling throws away (the chapter "Margins and ensembles").
"""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._support.documented import Documented
from .._support.frames import plain
from .._support.validation import flag, number, positive_int
from ..calibration import Calibrated, calibrated, passed_on, two_labels
from ..losses import LOSSES
from ..metrics import Link
from ..strategies import REMEDIES

MOST_NAMES = 1_000  # columns that scikit-learn looks up by their names in no time
MEMBER = "undersampling", "trained"  # the remedy of each machine in a bag


def coding(numeric, categorical, standardize=True):
    """Return a transformer that imputes and scales numeric columns, one-hot encodes others and drops unnamed ones."""
    steps = [SimpleImputer()] + ([StandardScaler()] if standardize else [])
    levels = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    parts = [("numbers", make_pipeline(*steps), numeric), ("levels", levels, categorical)]
    parts = [(name, part, Columns(used) if len(used) > MOST_NAMES else used) for name, part, used in parts if len(used)]
    return ColumnTransformer(parts, sparse_threshold=0.0)


class Columns:
    """Many columns of a frame, looked up all at once: scikit-learn searches all names for each of them."""

    def __init__(self, names):
        self.names = names

    def __call__(self, X):
        """Return the places of the columns in X."""
        if not hasattr(X, "columns"):
            return self.names  # which are places
        at = X.columns.get_indexer(self.names) if isinstance(self.names[0], str) else np.array(self.names)
        if (at < 0).any():
            raise ValueError(f"X must have the column {self.names[int(np.argmin(at))]!r}")
        return at.tolist()

    def __repr__(self):
        return f"Columns({self.names!r})"


def coding_of(data):
    """Return the pipeline steps that code the table of the advice in the form in which it was given."""
    if data.is_sparse:
        return [StandardScaler(with_mean=False) if data.standardize else sampler(np.nan)]
    places = {name: j for j, name in enumerate(data.names)}
    named = all(isinstance(name, str) for name in data.names)
    used = ([name if named else places[name] for name in part] for part in (data.numeric, data.categorical))
    coded = coding(*used, data.standardize)
    return [FunctionTransformer(plain), coded] if data.is_unusual else [coded]


def learner(loss, C, class_weight=None, kernel="linear", gamma=None):
    """Return an unfitted classifier with this loss and inverse ridge C: a linear one, or an SVM with an RBF kernel."""
    if kernel == "linear":
        return LOSSES[loss].estimator(C, class_weight=class_weight)
    from sklearn.svm import SVC

    return SVC(C=C, kernel=kernel, gamma=gamma, class_weight=class_weight)


def sampler(mixing, random_state=None):
    """Return a sampler with this mixing, or one that leaves the samples alone where the mixing is NaN."""
    from imblearn import FunctionSampler  # takes a second to import, and advice alone needs none

    from ..samplers import RandomMixSampler

    if np.isnan(mixing):
        return FunctionSampler()
    return RandomMixSampler(mixing=float(mixing), random_state=random_state)


def pipeline(advice, random_state=None, *, members=None, probabilities=False, share=None):
    """Return one unfitted estimator that applies the recommended remedy to tables like the one advised on."""
    from imblearn.pipeline import make_pipeline as chain

    from ._threshold import TunedThreshold

    strategy, threshold = advice.best
    setting, data = advice.setting, advice.data
    if members is not None:
        if flag("probabilities", probabilities):
            raise ValueError("probabilities must be False for a bag, whose scores are means: got members and True")
        bag = _bag(advice, members, random_state)
        if threshold == "trained":
            return bag
        return TunedThreshold(bag, metric=setting.metric, costs=setting.costs, pos_label=data.positive)
    labels = {key: sign for label, sign in ((data.positive, True), (data.negative, False)) for key in _keys(label)}
    weights = class_weight(REMEDIES[strategy], data.n_pos, data.n_neg, labels)
    classifier = learner(setting.loss, advice.C, weights, setting.kernel, setting.gamma)
    steps = *coding_of(data), advice.sampler(random_state), classifier
    if flag("probabilities", probabilities):
        steps = [step for step in steps if type(step).__name__ != "FunctionSampler"]  # they do nothing
        trained = _calibrated(chain(*steps), advice, share)
    elif share is not None:
        raise ValueError(f"share goes with probabilities=True, got {share!r}")
    else:
        trained = chain(*steps)
    if threshold == "moved":
        return TunedThreshold(trained, metric=setting.metric, costs=setting.costs, pos_label=data.positive)
    return AsTrained(trained) if probabilities else trained


def _bag(advice, members, random_state):
    """Return a bag of undersampled machines, each with the C of undersampling."""
    from imblearn.pipeline import make_pipeline as chain

    setting = advice.setting
    classifier = learner(setting.loss, advice.C_of(MEMBER), None, setting.kernel, setting.gamma)
    member = chain(*coding_of(advice.data), sampler(REMEDIES[MEMBER[0]].mixing, 0), classifier)
    return AveragedScores(member, positive_int("members", members), random_state=random_state)


def _calibrated(trained, advice, share):
    """Return a pipeline with probabilities for this share of positives."""
    share = share if share is None else number("share", share, 0.0, 1.0)
    first, second = advice.data.negative, advice.data.positive
    try:
        swapped = second < first
    except TypeError:
        swapped = str(second) < str(first)
    if advice.kernel == "linear":  # whose moments can be found again when it is trained, in whatever table
        return calibrated(trained, share=1.0 - share if swapped and share is not None else share)
    own, link = advice.setting.share, advice.calibration
    if not link.slope > 0.0:
        link = Link(0.0, Link().corrected(0.5, own).intercept)
    link = link if share is None else link.corrected(own, share)
    # the probability of the second of the sorted labels
    return Linked(trained, slope=float(link.slope), intercept=float(-link.intercept if swapped else link.intercept))


def class_weight(remedy, n_pos, n_neg, labels):
    """Return the ``class_weight`` of a remedy for classes of these sizes; ``labels`` maps a label to "is positive".

    It is a name where scikit-learn has one, which then counts the rows it is fitted to, or else a dict of numbers.
    """
    if remedy.weights is None or remedy.class_weight:
        return remedy.class_weight
    pos, neg = remedy.weights(float(n_pos), float(n_neg))
    return {label: pos if is_positive else neg for label, is_positive in labels.items()}


def _keys(label):
    """Return a label and the number it spells, if any: advise reads files as text, others read them as numbers."""
    try:
        return [label, float(label)]
    except (TypeError, ValueError):
        return [label]


# ---- classifiers around others


def copy_names(estimator, trained):
    """Copy what a trained classifier knows of the columns to the estimator around it."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(trained, name):
            setattr(estimator, name, getattr(trained, name))


class OfTwoClasses(Documented, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier of two classes around another one, in ``estimator``."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags = self.estimator.__sklearn_tags__().input_tags
        return tags


class AsTrained(OfTwoClasses):
    """A classifier with probabilities, and with the labels of the classifier inside it.

    The labels of :class:`rbal.calibration.Calibrated` are the more probable ones, which is another threshold.

    Parameters
    ----------
    estimator : Calibrated

    Attributes
    ----------
    estimator_ : Calibrated
        Trained.
    classes_ : (2,) array
        Labels.
    """

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y, sample_weight=None):
        """Train the classifier on X (n rows) and labels y (n,), perhaps with weights (n,) of the rows; return self."""
        self.estimator_ = clone(self.estimator).fit(X, y, sample_weight=sample_weight)
        self.classes_ = self.estimator_.classes_
        copy_names(self, self.estimator_)
        return self

    def predict(self, X):
        """Return the labels (n,) of the classifier inside."""
        check_is_fitted(self)
        return self.estimator_.estimator_.predict(X)

    def decision_function(self, X):
        """Return its scores (n,)."""
        check_is_fitted(self)
        return self.estimator_.estimator_.decision_function(X)

    def predict_proba(self, X):
        """Return the probabilities of both classes, (n, 2)."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)


class Linked(Calibrated):
    """A classifier whose link from scores to probabilities is known before it is trained.

    Parameters
    ----------
    estimator : classifier
    slope, intercept : float
        Of the log-odds of the second label against its score.

    Attributes
    ----------
    estimator_ : classifier
        Trained.
    link_ : Link
        That which was given.
    classes_ : (2,) array
        Labels.
    """

    def __init__(self, estimator, *, slope=1.0, intercept=0.0):
        self.estimator = estimator
        self.slope = slope
        self.intercept = intercept

    def fit(self, X, y, sample_weight=None):
        """Train the classifier on X (n rows) and labels y (n,), perhaps with weights (n,) of the rows; return self."""
        given = {} if sample_weight is None else passed_on(self.estimator, sample_weight)
        self.estimator_ = clone(self.estimator).fit(X, y, **given)
        self.classes_, self.link_ = self.estimator_.classes_, Link(self.slope, self.intercept)
        copy_names(self, self.estimator_)
        return self


class AveragedScores(OfTwoClasses):
    """A classifier of two classes whose score is the mean of those of several, each trained with a seed of its own.

    Parameters
    ----------
    estimator : classifier
        With ``decision_function``, and a ``random_state`` somewhere in it.
    members : int
        Number of classifiers.
    random_state : int, RandomState instance or None
        Seed of all of them.

    Attributes
    ----------
    estimators_ : list
        The trained classifiers.
    classes_ : (2,) array
        Labels.
    """

    def __init__(self, estimator, members=10, *, random_state=None):
        self.estimator = estimator
        self.members = members
        self.random_state = random_state

    def fit(self, X, y, **params):
        """Train all members on X (n rows) and labels y (n,); ``params`` go to each of them. Returns self."""
        y = two_labels(y)
        rng, self.estimators_ = check_random_state(self.random_state), []
        for _ in range(positive_int("members", self.members)):
            one = clone(self.estimator)
            seeds = [name for name in one.get_params() if name.split("__")[-1] == "random_state"]
            one.set_params(**{name: int(rng.randint(2**31 - 1)) for name in sorted(seeds)})
            self.estimators_.append(one.fit(X, y, **params))
        self.classes_ = self.estimators_[0].classes_
        copy_names(self, self.estimators_[0])
        return self

    def decision_function(self, X):
        """Return the mean scores (n,)."""
        check_is_fitted(self)
        return np.mean([one.decision_function(X) for one in self.estimators_], axis=0)

    def predict(self, X):
        """Return the labels (n,) at the threshold 0."""
        check_is_fitted(self)
        return self.classes_[(self.decision_function(X) > 0.0).astype(int)]


# ---- three classes or more


class ClassThresholds(Documented, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier with a score for each class minus a threshold for each: the largest difference is the answer.

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
        copy_names(self, self.estimator_)
        return self

    def decision_function(self, X):
        """Return the scores (n, T) minus the thresholds."""
        check_is_fitted(self)
        return self.estimator_.decision_function(X) - self.offsets_

    def predict(self, X):
        """Return the labels (n,) of the largest scores."""
        return self.classes_[np.argmax(self.decision_function(X), axis=1)]


def one_vs_rest_steps(loss, candidate, random_state=None):
    """Return the steps of a candidate after the coding: a sampler, if it has one, and machines against the rest."""
    from sklearn.multiclass import OneVsRestClassifier

    weights = "balanced" if REMEDIES[candidate.strategy].weights is not None else None
    steps = [] if np.isnan(candidate.mixing) else [sampler(candidate.mixing, random_state)]
    return [*steps, OneVsRestClassifier(learner(loss, candidate.C, weights))]


def many_pipeline(advice, random_state=None):
    """Return the recommended classifier of a ManyAdvice, not yet fitted."""
    from imblearn.pipeline import make_pipeline

    candidate = advice.rows[advice.best]
    trained = make_pipeline(*coding_of(advice.data), *one_vs_rest_steps(advice.setting.loss, candidate, random_state))
    if candidate.threshold == "trained":
        return trained
    offsets = candidate.offsets.tolist()
    return ClassThresholds(trained, dict(zip(advice.data.classes, offsets, strict=True)))
