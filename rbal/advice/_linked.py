"""Probabilities of a classifier whose link is known before it is trained: SVMs with an RBF kernel."""

from sklearn.base import clone

from ..calibration import Calibrated, passed_on
from ..metrics import Link


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
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self
