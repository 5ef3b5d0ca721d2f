"""Resampling of real data, with the interface of imbalanced-learn."""

from ._informed import LikelihoodInformedSampler
from ._random_mix import RandomMixSampler
from ._smote import RBMSMOTE

__all__ = ["RBMSMOTE", "LikelihoodInformedSampler", "RandomMixSampler"]
