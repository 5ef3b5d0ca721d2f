r"""Probabilities of a trained linear classifier that are honest without any held-out samples.

The theory predicts how the scores of a linear classifier are spread in each class of new data, from the moments of the
training rows, the sizes and weights of the classes and the ridge. The true log-odds of a sample are then a line in its
score, with slope r/q and intercept log(φ⁺/φ⁻) + (r/q) b (:meth:`rbal.Metrics.calibration`). Held-out samples, which
Platt scaling needs, can all be used for training.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing, assert_all_finite
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, indexable

from ._support.validation import LARGEST, in_range, not_lost, number, real_array, squarable
from ._support.wrapper import ClassifierWrapper
from .learners import LinearSVM
from .metrics import Link
from .moments.internal import Fitter, from_covariances, from_rows
from .saddle import solve

__all__ = ["Calibrated", "calibrated"]


def calibrated(estimator, *, share=None):
    """Return a classifier that trains this one, and whose probabilities are those that the theory says are honest.

    Parameters
    ----------
    estimator : classifier
        A linear classifier with a ridge, of scikit-learn (``LogisticRegression``, ``SVC`` with a linear kernel,
        ``LinearSVC``, ``RidgeClassifier``) or :class:`rbal.LinearSVM`, with any class weights; or a pipeline that ends
        in one. Samplers of the pipeline have ``sample_indices_``, as those that under- or oversample at random.
    share : float, optional
        Share of positives (of the second of the sorted labels) among the samples to come; by default that of the
        samples given to ``fit``, before any resampling.

    Returns
    -------
    Calibrated

    Examples
    --------
    Trained with class weights, logistic regression believes that both classes are as frequent.

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1, 0], [100, 900])
    >>> X, X_new = (rng.normal(size=(1000, 100)) + 0.3 * y[:, None] * (np.arange(100) < 20) for _ in range(2))
    >>> balanced = LogisticRegression(class_weight="balanced", max_iter=1000)
    >>> for clf in (balanced, calibrated(balanced)):
    ...     print(f"{clf.fit(X, y).predict_proba(X_new)[:, 1].mean():.1f} of 1 are claimed to be positive, 0.1 are")
    0.3 of 1 are claimed to be positive, 0.1 are
    0.1 of 1 are claimed to be positive, 0.1 are
    """
    return Calibrated(estimator, share=share)


class Calibrated(ClassifierWrapper):
    """A linear classifier with the probabilities of the theory; :func:`rbal.calibrated` makes it.

    Parameters
    ----------
    estimator, share
        As for :func:`rbal.calibrated`.

    Attributes
    ----------
    estimator_ : classifier
        Trained on all samples.
    link_ : Link
        Slope and intercept of the log-odds against its score. Where the theory says that it gives every sample the same
        score, the slope is 0 and every probability is the share.
    solution_ : Solution
        What the theory says of it.
    share_ : float
        Share of positives that the probabilities are for.
    classes_ : (2,) array
        Labels; the second is the positive class.
    n_features_in_ : int
        Number of features seen.
    feature_names_in_ : array
        Their names, when X has any.

    Notes
    -----
    The theory takes both classes as clouds of one covariance, and many features. The moments are estimated from the
    training rows, without the optimism of those. ``LinearSVC`` also has a ridge on its intercept, which the theory does
    not know of: scale the features, or raise ``intercept_scaling``.

    Sample weights are weights of the loss in training, as class weights are: they change neither the share nor the
    moments, but a row of weight 0 is not there. Weights that are equal within each class are exact. Others are
    taken by their mean in the class: with a spread of half their mean the slope was found to be off by up to a tenth.
    """

    def __init__(self, estimator, *, share=None):
        self.estimator = estimator
        self.share = share

    def fit(self, X, y, sample_weight=None):
        """Train the classifier, and find the link of its probabilities from the moments of the rows.

        Parameters
        ----------
        X : table of n rows
        y : (n,) array
            Two labels.
        sample_weight : (n,) array, optional
            Weights of the rows in the loss of the classifier, >= 0. They go with an estimator that does not resample,
            and whose class weights are not "balanced".

        Returns
        -------
        self
        """
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "get_params"):
            raise TypeError(f"estimator must be a classifier, as LogisticRegression() is, got {self.estimator!r}")
        X, y = indexable(X, y)
        params = {}
        if sample_weight is not None:
            X, y, sample_weight = _weighted(X, y, sample_weight)
            params = passed_on(self.estimator, sample_weight)
        y = two_labels(y)
        self.classes_ = np.unique(y)
        self.share_ = float(np.mean(y == self.classes_[1]))
        if self.share is not None:
            self.share_ = number("share", self.share, 0.0, 1.0)
        self.estimator_ = clone(self.estimator).fit(X, y, **params)
        self._copy_features(self.estimator_)
        last, features, rows = _last_step(self.estimator_, X)
        squarable("X", not_lost("X", features))
        pulls = np.bincount(rows, minlength=len(y)) if sample_weight is None else sample_weight
        self.solution_ = _predicted(last, features, y, pulls)
        if not self.solution_.converged:
            raise ValueError(f"estimator must have a penalty at which the theory finds a solution, got {last!r}")
        link = self.solution_.metrics.calibration(self.share_)
        flat = Link(0.0, Link().corrected(0.5, self.share_).intercept)
        self.link_ = link if self.solution_.phase != "COLLAPSED" else flat
        return self

    def decision_function(self, X):
        """Return the log-odds of the positive class.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array
        """
        check_is_fitted(self)
        return self.link_.slope * self.estimator_.decision_function(X) + self.link_.intercept

    def predict_proba(self, X):
        """Return the probabilities of both classes.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, 2) array
        """
        log_odds = self.decision_function(X)
        return np.stack([Link()(-log_odds), Link()(log_odds)], axis=1)

    def predict(self, X):
        """Return the more probable labels, which are not those of the classifier inside.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array
        """
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]


class _TheoryTerms(NamedTuple):
    """A classifier in the terms of the theory."""

    loss: str
    ridge: float  # factor of ‖w‖²/2, relative to the summed loss
    class_weight: object
    margins: dict  # kappa and kappa_neg, where they differ from those of the loss


def _theory_terms(estimator, D):
    """Return what the theory needs of a linear classifier of D features."""
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.svm import SVC, LinearSVC

    if isinstance(estimator, LinearSVM) and estimator.n_states is None:
        margins = {"kappa": estimator.kappa, "kappa_neg": estimator.kappa_neg}
        return _TheoryTerms(estimator.loss, estimator.lam * D, None, margins)
    weight = getattr(estimator, "class_weight", None)
    if isinstance(estimator, RidgeClassifier):
        return _TheoryTerms("square", 2.0 * estimator.alpha, weight, {})
    if isinstance(estimator, LogisticRegression) and hasattr(estimator, "C") and _is_ridge(estimator):
        return _TheoryTerms("logistic", 1.0 / estimator.C, weight, {})
    if isinstance(estimator, LinearSVC) and estimator.penalty == "l2":
        return _TheoryTerms(estimator.loss, 1.0 / estimator.C, weight, {})
    if isinstance(estimator, SVC) and estimator.kernel == "linear":
        return _TheoryTerms("hinge", 1.0 / estimator.C, weight, {})
    raise ValueError(
        "estimator must be a linear classifier with an L2 penalty of a given size (LogisticRegression, "
        "SVC(kernel='linear'), LinearSVC, RidgeClassifier, rbal.LinearSVM), or a pipeline that ends in one, "
        f"got {estimator!r}"
    )


def _is_ridge(logistic):
    """Return whether the penalty of a logistic regression is that of a ridge, in any version of scikit-learn."""
    if logistic.penalty == "deprecated":
        return logistic.l1_ratio in (None, 0)
    return logistic.penalty == "l2"


def _predicted(estimator, features, y, pulls):
    """Return the solution of the theory for a classifier trained on features (n, D) and labels (n,).

    The ``pulls`` (n,) are the weights or the multiplicities of the rows; each class is solved with their mean.
    """
    labels = np.unique(y)
    terms, D = _theory_terms(estimator, features.shape[1]), features.shape[1]
    if not getattr(estimator, "fit_intercept", getattr(estimator, "fit_bias", True)):
        raise ValueError(f"estimator must fit an intercept, got {estimator!r}")
    resampled = np.repeat(y, pulls) if pulls.dtype.kind == "i" else y
    weights = compute_class_weight(terms.class_weight, classes=labels, y=resampled)
    sizes, factors = [], []
    for label, weight in zip(labels, weights, strict=True):
        class_pulls = pulls[y == label]
        sizes.append(float(np.count_nonzero(class_pulls)))
        factors.append(weight * class_pulls.sum() / sizes[-1])
    if not 0.0 < terms.ridge < np.inf:
        raise ValueError(f"estimator must have a finite penalty > 0, got {estimator!r}")
    return solve(
        _spectrum(features[y == labels[1]], features[y == labels[0]]), sizes[1] / D, sizes[0] / D,
        model="svm", loss=terms.loss, lam=terms.ridge / D,
        weight_pos=factors[1], weight_neg=factors[0], **terms.margins,
    )  # fmt: skip


def _spectrum(pos, neg):
    """Estimate the spectrum of two classes from their rows (n, D), without the optimism of small samples."""
    if min(len(pos), len(neg)) < 2:
        raise ValueError(f"y must hold two samples of each class, got n_samples = {len(neg)} and {len(pos)}")
    if not pos.var(axis=0).sum() + neg.var(axis=0).sum() > 0.0:
        raise ValueError("X must have a feature that varies within a class, got none")
    if len(pos) + len(neg) <= pos.shape[1]:
        return Fitter(from_rows(pos, neg)).fit()
    covariances = (np.atleast_2d(np.cov(rows, rowvar=False)) for rows in (pos, neg))
    return Fitter(from_covariances(len(pos), len(neg), pos.mean(axis=0) - neg.mean(axis=0), *covariances)).fit()


def _last_step(estimator, X):
    """Return the last step of a fitted pipeline, the features (n, D) of all of X there, and the rows trained on."""
    steps = getattr(estimator, "steps", [("", estimator)])
    rows = np.arange(X.shape[0] if hasattr(X, "shape") else len(X))
    for name, step in steps[:-1]:
        if step in (None, "passthrough"):
            continue
        if not hasattr(step, "fit_resample"):
            X = step.transform(X)
        elif hasattr(step, "sample_indices_"):
            rows = rows[step.sample_indices_]
        else:
            raise ValueError(f"estimator must use samplers that have sample_indices_, got {name}={step!r}")
    X = X.toarray() if sparse.issparse(X) else X
    return steps[-1][1], np.asarray(X, float), rows


def _weighted(X, y, sample_weight):
    """Return rows, labels and weights (n,) of the rows whose weight is not 0."""
    weight = _check_sample_weight(real_array("sample_weight", sample_weight, (0, 1))[()], X, dtype=float)
    in_range("sample_weight", weight, 0.0, LARGEST)
    used = np.flatnonzero(weight)
    if used.size < weight.size:
        X, y, weight = (_safe_indexing(rows, used) for rows in (X, y, weight))
    return X, y, weight


def passed_on(estimator, sample_weight):
    """Return the arguments by which the last step of an estimator gets the weights of its rows."""
    steps = getattr(estimator, "steps", [("", estimator)])
    for name, step in steps[:-1]:
        if hasattr(step, "fit_resample"):
            raise ValueError(f"sample_weight goes with an estimator that does not resample, got {name}={step!r}")
    name, last = steps[-1]
    if getattr(last, "class_weight", None) == "balanced":  # of counts or of weights: versions of scikit-learn differ
        raise ValueError("sample_weight goes with class weights that are given or None, got class_weight='balanced'")
    return {f"{name}__sample_weight" if name else "sample_weight": sample_weight}


def two_labels(y):
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    if (kind := type_of_target(y, input_name="y")) != "binary":
        raise ValueError(f"Only binary classification is supported. The type of the target is {kind}: y holds others")
    if len(np.unique(y)) < 2:
        raise ValueError("y must hold two classes, got 1 class")
    return y
