"""Under-bagging: several undersampled machines whose scores are averaged, predicted and ready to be trained.

The rarer class is in all of them, the other one is drawn anew for each. A bag wins back what undersampling throws away
(the chapter "Margins and ensembles").
"""

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._support.documented import Documented
from .._support.validation import positive_int, real_array
from ..calibration import two_labels
from ..metrics import MixtureMetrics
from ..strategies import REMEDIES, bagging
from ._cuts import at_threshold
from ._remedies import Choice, solve_row
from ._widths import Wide

SAMPLED = "undersampling", "trained"  # the remedy that a member has


def predicted(advice, members):
    """Return what bags of so many members are predicted to score, as a DataFrame; see :meth:`Advice.bags`."""
    setting = advice.setting
    if setting.kernel != "linear":
        raise ValueError(f"bags are predicted for linear classifiers, not for an {setting.kernel.upper()} kernel")
    counts = np.atleast_1d(real_array("members", members, ndim=(0, 1))).tolist()
    members = [positive_int("members", int(count) if count.is_integer() else count) for count in counts]
    C = advice.C_of(SAMPLED)
    sizes, lam = (setting.n_pos / setting.D, setting.n_neg / setting.D), 1.0 / (C * setting.D)
    one = advice.moments.spectrum if isinstance(advice.moments, Wide) else advice.moments
    bag = bagging(one, *sizes, np.array(members, float), model="svm", loss=setting.loss, lam=lam)
    metrics = bag.metrics
    if isinstance(advice.moments, Wide):
        # the scores of one machine, whose variances fall by as much as with one covariance
        m = solve_row(advice.moments, setting, SAMPLED[0], Choice(C, REMEDIES[SAMPLED[0]].mixing)).metrics
        ratio = bag.variance() / bag.member.variance
        metrics = MixtureMetrics(np.broadcast_to(m.mean, (len(members), 2)), ratio[:, None] * m.q, m.signs, m.shares)
    found = {kind: setting.record.sign * at_threshold(metrics, setting, kind)[1] for kind in setting.thresholds}
    return pd.DataFrame(found, index=pd.Index(members, name="members"))


class AveragedScores(Documented, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
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
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))
        return self

    def decision_function(self, X):
        """Return the mean scores (n,)."""
        check_is_fitted(self)
        return np.mean([one.decision_function(X) for one in self.estimators_], axis=0)

    def predict(self, X):
        """Return the labels (n,) at the threshold 0."""
        check_is_fitted(self)
        return self.classes_[(self.decision_function(X) > 0.0).astype(int)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags = self.estimator.__sklearn_tags__().input_tags
        return tags
