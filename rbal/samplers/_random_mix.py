"""A mixture of random under- and oversampling."""

from numbers import Real

import numpy as np
from imblearn.base import BaseSampler
from imblearn.utils import check_target_type
from imblearn.utils._validation import _check_X
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_consistent_length, validate_data

from .._support.documented import Documented
from .._support.frames import NativeFrames, as_pandas, distinctly_named, labels_of
from .._support.validation import unmasked
from ._class_sizes import STRATEGIES, sizes_after


class RandomMixSampler(Documented, NativeFrames, BaseSampler):
    """Balance classes by a mixture of random under- and oversampling.

    Every class ends with n = round(n_min + mixing (n_max - n_min)) samples. A larger class loses samples at random,
    without replacement. A smaller class, of size m, keeps all its samples, each ⌊n/m⌋ times, and what is missing is
    drawn without replacement. So multiplicities are as equal as they can be around their mean c = n/m, which is what
    the theory of :mod:`rbal.strategies` assumes; those of imbalanced-learn's RandomOverSampler scatter.

    Parameters
    ----------
    mixing : float
        From 0, which is imbalanced-learn's RandomUnderSampler (sample by sample, for the same random state), to 1, with
        the class sizes of its RandomOverSampler.
    sampling_strategy : float, str, dict or callable
        ``"auto"`` or ``"all"``: as above. A float: the ratio of minority to majority after resampling, where the mixing
        goes from under only to over only all the same; for two classes. ``"not majority"`` oversamples all to the size
        of the largest class, ``"minority"`` the smallest class alone. ``"not minority"`` undersamples all to the size
        of the smallest class, ``"majority"`` the largest class alone. A dict, or a function of y that returns one:
        class to number of samples; a class that is not in it stays as it is.
    random_state : int, RandomState instance or None
        Seed of the draw.

    Attributes
    ----------
    sampling_strategy_ : dict
        Class to number of samples after resampling.
    sample_indices_ : (n_new,) array
        Rows of X that were taken, class by class. Their ``np.bincount`` is the sample weight that does what repeated
        rows do.
    n_features_in_ : int
        Number L of features seen.
    feature_names_in_ : (L,) array
        Their names, when X has any.

    See Also
    --------
    rbal.strategies.best_mixing : Which mixing the theory advises.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.arange(30.0).reshape(15, 2), np.repeat([1, 0], [3, 12])
    >>> sampler = RandomMixSampler(mixing=0.5, random_state=0)
    >>> X_new, y_new = sampler.fit_resample(X, y)
    >>> np.bincount(y_new), np.bincount(sampler.sample_indices_)[:3]
    (array([8, 8]), array([2, 3, 3]))

    Three classes, where the largest one loses samples, the smallest one gains some, and the other one stays:

    >>> y = np.repeat(["a", "b", "c"], [2, 3, 10])
    >>> some = RandomMixSampler(sampling_strategy={"a": 3, "c": 5}, random_state=0)
    >>> print(*np.unique(some.fit_resample(X, y)[1], return_counts=True))
    ['a' 'b' 'c'] [3 3 5]
    """

    _sampling_type = "bypass"  # one class shrinks while another grows: neither of imbalanced-learn's own kinds
    _parameter_constraints = {  # noqa: RUF012
        "mixing": [Interval(Real, 0, 1, closed="both")],
        "sampling_strategy": STRATEGIES,
        "random_state": ["random_state"],
    }

    def __init__(self, *, mixing=0.5, sampling_strategy="auto", random_state=None):
        self.mixing = mixing
        self.sampling_strategy = sampling_strategy
        self.random_state = random_state

    def fit(self, X, y, **params):
        """Check the input and find the size of each class; use ``fit_resample`` to resample.

        Parameters
        ----------
        X : {array, dataframe, sparse matrix} of shape (n, L)
        y : (n,) array
        **params
            None are used.

        Returns
        -------
        self
        """
        super().fit(X, y, **params)
        self.sampling_strategy_ = sizes_after(self._check_X_y(X, y)[1], self.sampling_strategy, self.mixing)
        return self

    def _check_X_y(self, X, y):
        y, binarize_y = check_target_type(labels_of(unmasked("y", y)), indicate_one_vs_all=True)
        X = _check_X(distinctly_named("X", as_pandas(unmasked("X", X))))
        validate_data(self, X=X, y=y, reset=True, skip_check_array=True)
        return X, y, binarize_y

    def _fit_resample(self, X, y):
        check_consistent_length(X, y)
        random_state = check_random_state(self.random_state)
        self.sampling_strategy_ = sizes_after(y, self.sampling_strategy, self.mixing)
        parts = []
        for label, target in self.sampling_strategy_.items():
            members = np.flatnonzero(y == label)
            times, rest = divmod(target, len(members))
            # a class that has its size already is left alone, and draws nothing
            extra = random_state.choice(range(len(members)), size=rest, replace=False) if rest else []
            parts += [np.tile(members, times), members[np.asarray(extra, int)]]
        self.sample_indices_ = np.concatenate(parts)
        return _safe_indexing(X, self.sample_indices_), _safe_indexing(y, self.sample_indices_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.sampler_tags.sample_indices = True
        return tags
