"""Build the classifier of the advice from scikit-learn parts: coding of the columns, sampler, weights and learner."""

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from .._support.frames import plain
from ..losses import LOSSES
from ..strategies import REMEDIES


def coding(numeric, categorical, standardize=True):
    """Return a transformer that imputes and scales numeric columns, one-hot encodes others and drops unnamed ones."""
    steps = [SimpleImputer()] + ([StandardScaler()] if standardize else [])
    levels = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    parts = [("numbers", make_pipeline(*steps), numeric), ("levels", levels, categorical)]
    return ColumnTransformer([part for part in parts if len(part[2])], sparse_threshold=0.0)


def coding_of(data):
    """Return the pipeline steps that code the table of the advice in the form in which it was given."""
    if data.is_sparse:
        return [StandardScaler(with_mean=False) if data.standardize else sampler(np.nan)]
    places = {name: j for j, name in enumerate(data.names)}
    named = all(isinstance(name, str) for name in data.names)
    used = ([name if named else places[name] for name in part] for part in (data.numeric, data.categorical))
    coded = coding(*used, data.standardize)
    return [FunctionTransformer(plain), coded] if data.is_unusual else [coded]


def learner(loss, C, class_weight=None):
    """Return an unfitted linear classifier with this loss and inverse ridge C."""
    return LOSSES[loss].estimator(C, class_weight=class_weight)


def sampler(mixing, random_state=None):
    """Return a sampler with this mixing, or one that leaves the samples alone where the mixing is NaN."""
    from imblearn import FunctionSampler  # takes a second to import, and advice alone needs none

    from ..samplers import RandomMixSampler

    if np.isnan(mixing):
        return FunctionSampler()
    return RandomMixSampler(mixing=float(mixing), random_state=random_state)


def pipeline(advice, random_state=None):
    """Return one unfitted estimator that applies the recommended remedy to tables like the one advised on."""
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
    """Return the ``class_weight`` of a remedy for classes of these sizes; ``labels`` maps a label to "is positive".

    It is a name where scikit-learn has one, which then counts the rows it is fitted to, or else a dict of numbers.
    """
    if remedy.weights is None or remedy.class_weight:
        return remedy.class_weight
    pos, neg = remedy.weights(float(n_pos), float(n_neg))
    return {label: pos if is_positive else neg for label, is_positive in labels.items()}


def _keys(label):
    """Return a label and the number it spells, if any: files are read as text here, and as numbers elsewhere."""
    try:
        return [label, float(label)]
    except (TypeError, ValueError):
        return [label]
