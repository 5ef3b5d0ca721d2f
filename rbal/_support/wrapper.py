"""Base of the classifiers that wrap another classifier."""

from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin

from .documented import Documented


class ClassifierWrapper(Documented, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier around the one that its parameter ``estimator`` holds, with the same input and two classes."""

    _multiclass = False

    def _copy_features(self, trained):
        """Take over the number and the names of the features, as far as a trained estimator has them."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(trained, name):
                setattr(self, name, getattr(trained, name))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._multiclass
        tags.input_tags = self.estimator.__sklearn_tags__().input_tags
        return tags
