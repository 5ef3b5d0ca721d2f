"""Find the threshold of a classifier among the scores themselves."""

import numpy as np
from scipy.special import ndtri
from sklearn import get_config
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.utils import metadata_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, indexable

from .._support.validation import number, one_of, positive_int
from ..calibration import two_labels
from ..metrics import METRICS
from ..metrics.internal import Rates, goals, named
from ._pipeline import OfTwoClasses, copy_names
from ._prediction import BANDWIDTH, POWER

NODES = 16  # points of equal probability by which rates are smoothed


def height(record, tpr, fpr, share):
    """Return the metric at these rates, with the sign by which higher is better."""
    return record.sign * record.of_rates(Rates.of(tpr, fpr), share)


def best_cut(scores, positive, metric, weight=None):
    """Return the threshold above which to answer "positive", and the metric of the scores there.

    Every threshold that tells the scores apart is tried: halfway between neighbours, and beyond both ends. So an
    outlier is one score among many, however far out it lies. The rates are smoothed over the width of a kernel estimate
    of the density of each class, which helps with few samples: the threshold of the bare scores misses the best one by
    two to three times as much. Sorting takes most of the time.

    Parameters
    ----------
    scores : (n,) array
    positive : (n,) array of bool
    metric : Metric
        A metric that depends on the threshold.
    weight : (n,) array, optional
        Weight of each sample.

    Returns
    -------
    (float, float)
    """
    weight = np.ones(len(scores)) if weight is None else weight
    known = np.unique(scores[weight > 0.0])
    middle = 0.5 * known[:-1] + 0.5 * known[1:]
    middle = np.where(middle < known[1:], middle, known[:-1])  # the smaller of two neighbouring doubles
    cuts = np.concatenate([[-np.inf], middle, [np.inf]])
    share = float(weight[positive].sum() / weight.sum())
    smooth, bare = [], []
    for member in (positive, ~positive):
        s, above = _survival(scores[member], weight[member])
        width = _width(s)
        nodes = width * ndtri((np.arange(NODES) + 0.5) / NODES) if width else [0.0]
        smooth.append(sum(above(cuts + z) for z in nodes) / len(nodes))
        bare.append(above)
    heights = np.broadcast_to(height(metric, *smooth, share), cuts.shape)
    best = cuts[np.argmax(np.nan_to_num(heights, nan=-np.inf))]
    return float(best), float(height(metric, *(above(best) for above in bare), share))


def _survival(s, weight):
    """Return the sorted scores (n,) of a class, and the function from a threshold to the share above it."""
    order = np.argsort(s, kind="stable")
    s, below = s[order], np.concatenate([[0.0], np.cumsum(weight[order])])
    return s, lambda cut: 1.0 - below[np.searchsorted(s, cut, side="right")] / below[-1]


def _width(s):
    """Return Silverman's kernel width, by the middle half of scores (n,); 0 where half of them are one number."""
    spread = min(s.std(), np.subtract(*np.percentile(s, [75, 25])) / 1.34)
    return BANDWIDTH * spread * len(s) ** POWER


def _has(method):
    """Return a decorator for a method that exists only if the inner classifier has it."""

    def has(self):
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return available_if(has)


class TunedThreshold(OfTwoClasses):
    """A classifier with the threshold at which a metric of cross-validated scores is best.

    It does what :class:`sklearn.model_selection.TunedThresholdClassifierCV` does, with two differences. Thresholds are
    not spread evenly between the extreme scores, where one outlier leaves none in between, but lie at the scores. And
    the scores of all folds are pooled, so that each fold need not hold enough of the rare class.

    Parameters
    ----------
    estimator : classifier
        It has ``decision_function``, which is preferred, or ``predict_proba``.
    metric : {"ba", "f1", "mcc", "cost"}
        Balanced accuracy, F1, Matthews correlation, the mean cost, or another metric in
        :data:`rbal.metrics.METRICS` that depends on the threshold.
    costs : (float, float)
        Cost of a missed positive and of a false alarm, for ``metric="cost"``.
    pos_label : label, optional
        Label of the positive class; by default the second of the two sorted labels.
    cv : int or splitter
        Number of stratified folds, at most the size of the smaller class; or a splitter of scikit-learn.
    n_jobs : int, optional
        Workers, as in joblib.

    Attributes
    ----------
    estimator_ : classifier
        Trained on all samples.
    best_threshold_ : float
        Scores above it are answered "positive".
    best_score_ : float
        The metric of the cross-validated scores there; minus the metric where less is better.
    classes_ : (2,) array
        Labels.
    n_features_in_ : int
        Number of features seen.
    feature_names_in_ : array
        Their names, when X has any.
    """

    def __init__(self, estimator, *, metric="ba", costs=(1.0, 1.0), pos_label=None, cv=5, n_jobs=None):
        self.estimator = estimator
        self.metric = metric
        self.costs = costs
        self.pos_label = pos_label
        self.cv = cv
        self.n_jobs = n_jobs

    def fit(self, X, y, **params):
        """Find the threshold by cross-validation, and train on all samples.

        Parameters
        ----------
        X : table of n rows
        y : (n,) array
            Two labels.
        **params : dict
            Passed on to the ``fit`` of the classifier, cut to the rows of a fold if they are as long as y. If
            ``sample_weight`` (or ``step__sample_weight`` of a pipeline) is among them, the metric uses it too.

        Returns
        -------
        self
        """
        one_of("metric", self.metric, [name for name in goals() if not METRICS[name].ranks])
        costs = tuple(number("costs", cost, 0.0, open_low=True) for cost in self.costs)
        X, y = indexable(X, y)
        y = two_labels(y)
        self.classes_, counts = np.unique(y, return_counts=True)
        if len(self.classes_) < 2:
            raise ValueError("y must hold two classes, got 1 class")
        weights = [value for name, value in params.items() if name.split("__")[-1] == "sample_weight"]
        weight = _check_sample_weight(weights[0] if weights else None, y, dtype=float, ensure_non_negative=True)
        where = weight > 0.0
        positive = y == self.classes_[self._positive()]
        if len(np.unique(positive[where])) < 2:
            raise ValueError("sample_weight must leave samples of both classes, got those of one class")
        scores = cross_val_predict(
            self.estimator, X, y, cv=self._folds(counts), n_jobs=self.n_jobs, method=self._method(), params=params
        )
        self.best_threshold_, self.best_score_ = best_cut(
            self._one_sided(scores)[where], positive[where], named(self.metric, costs), weight[where]
        )
        if get_config()["enable_metadata_routing"]:
            params = metadata_routing.process_routing(self, "fit", **params).estimator.fit
        self.estimator_ = clone(self.estimator).fit(X, y, **params)
        copy_names(self, self.estimator_)
        return self

    def get_metadata_routing(self):
        """Return how metadata reach the classifier.

        Returns
        -------
        MetadataRouter
        """
        mapping = metadata_routing.MethodMapping().add(caller="fit", callee="fit")
        router = metadata_routing.MetadataRouter(owner=type(self).__name__)
        return router.add(estimator=self.estimator, method_mapping=mapping)

    def _folds(self, counts):
        if not isinstance(self.cv, (int, np.integer)):
            return self.cv
        folds = min(positive_int("cv", self.cv), int(counts.min()))
        if folds < 2:
            raise ValueError(
                f"cv must be at least 2, and so must the samples of each class, got {self.cv} and {counts.min()}"
            )
        return StratifiedKFold(folds)

    def _method(self):
        return "decision_function" if hasattr(self.estimator, "decision_function") else "predict_proba"

    def _positive(self):
        """Return the index of the positive label in classes_, where text from a file may stand for a number."""
        if self.pos_label is None:
            return 1
        for same in (lambda label: label == self.pos_label, lambda label: str(label) == str(self.pos_label)):
            for place, label in enumerate(self.classes_.tolist()):
                if same(label):
                    return place
        raise ValueError(f"pos_label must be one of {self.classes_.tolist()}, got {self.pos_label!r}")

    def _one_sided(self, scores):
        """Return scores (n,) that are larger for the positive class."""
        place = self._positive()
        if scores.ndim == 2:
            return scores[:, place]
        return scores if place == 1 else -scores

    def predict(self, X):
        """Return labels: the positive class where its score is above the threshold.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array
        """
        check_is_fitted(self)
        scores = self._one_sided(getattr(self.estimator_, self._method())(X))
        place = self._positive()
        return self.classes_[np.where(scores > self.best_threshold_, place, 1 - place)]

    @_has("decision_function")
    def decision_function(self, X):
        """Return the scores of the classifier, which do not depend on the threshold.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array
        """
        check_is_fitted(self)
        return self.estimator_.decision_function(X)

    @_has("predict_proba")
    def predict_proba(self, X):
        """Return the probabilities of the classifier, which do not depend on the threshold.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, 2) array
        """
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    @_has("predict_log_proba")
    def predict_log_proba(self, X):
        """Return the logarithms of the probabilities.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, 2) array
        """
        check_is_fitted(self)
        return self.estimator_.predict_log_proba(X)
