"""The classifier of the advice as scikit-learn builds it: coding of the columns, sampler, weights and learner."""

import numpy as np
from imblearn import FunctionSampler
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

from .._support.frames import plain
from ..learners._classifiers import INTERCEPT_SCALING
from ..samplers import RandomMixSampler
from ..strategies import REMEDIES


def coding(numeric, categorical, standardize=True):
    """Imputed and scaled numbers beside one-hot levels; columns that are not named are left out."""
    steps = [SimpleImputer()] + ([StandardScaler()] if standardize else [])
    levels = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    parts = [("numbers", make_pipeline(*steps), numeric), ("levels", levels, categorical)]
    return ColumnTransformer([part for part in parts if len(part[2])], sparse_threshold=0.0)


def coding_of(data):
    """Steps that do the same for the table that the advice is about, as it was given."""
    if data.is_sparse:
        return [StandardScaler(with_mean=False) if data.standardize else FunctionSampler()]
    places = {name: j for j, name in enumerate(data.names)}
    named = all(isinstance(name, str) for name in data.names)
    used = ([name if named else places[name] for name in part] for part in (data.numeric, data.categorical))
    coded = coding(*used, data.standardize)
    return [FunctionTransformer(plain), coded] if data.is_unusual else [coded]


def learner(loss, C, class_weight=None):
    """Linear classifier with this loss and ridge."""
    if loss == "logistic":
        return LogisticRegression(C=C, class_weight=class_weight, max_iter=1000)
    if loss == "squared_hinge":
        # the scaling weakens the test of convergence, hence the tolerance: 1e-4 stops short of the bias
        options = {"dual": False, "intercept_scaling": INTERCEPT_SCALING, "tol": 1e-7, "max_iter": 10_000}
        return LinearSVC(C=C, class_weight=class_weight, **options)
    return SVC(kernel="linear", C=C, class_weight=class_weight, cache_size=500)


def sampler(mixing, random_state=None):
    """Sampler with this mixing; one that leaves the samples alone where it is NaN."""
    if np.isnan(mixing):
        return FunctionSampler()
    return RandomMixSampler(mixing=float(mixing), random_state=random_state)


def pipeline(advice, random_state=None):
    """Everything that the recommended remedy needs, as one estimator."""
    from imblearn.pipeline import make_pipeline as chain

    from ._threshold import TunedThreshold

    strategy, threshold = advice.best
    setting, data = advice.setting, advice.data
    labels = {key: sign for label, sign in ((data.positive, True), (data.negative, False)) for key in _keys(label)}
    weights = class_weight(REMEDIES[strategy], data.n_pos, data.n_neg, labels)
    steps = *coding_of(data), advice.sampler(random_state), learner(setting.loss, setting.C, weights)
    trained = chain(*steps)
    if threshold == "trained":
        return trained
    return TunedThreshold(trained, metric=setting.metric, costs=setting.costs, pos_label=data.positive)


def class_weight(remedy, n_pos, n_neg, labels):
    """Weights as scikit-learn takes them, for classes of these sizes; ``labels`` tells which of its keys are positive.

    They are a name where scikit-learn has one, which counts the rows that it is fitted to, or else numbers.
    """
    if remedy.weights is None or remedy.class_weight:
        return remedy.class_weight
    pos, neg = remedy.weights(float(n_pos), float(n_neg))
    return {label: pos if is_positive else neg for label, is_positive in labels.items()}


def _keys(label):
    """A label, and the number that it may be the text of: files are read as text here, and as numbers elsewhere."""
    try:
        return [label, float(label)]
    except (TypeError, ValueError):
        return [label]
