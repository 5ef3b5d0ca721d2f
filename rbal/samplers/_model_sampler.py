"""Base of the samplers that model a class: a table as states, a machine on them, and a report."""

from collections import Counter
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np
from imblearn.base import BaseSampler
from imblearn.utils import check_target_type
from imblearn.utils._validation import _check_X
from scipy import sparse
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import validate_data

from .._support.documented import Documented
from .._support.frames import NativeFrames, as_pandas, distinctly_named, labels_of
from .._support.validation import unmasked
from . import _columns, _likelihood
from ._class_sizes import by_function


@dataclass(frozen=True)
class ClassReport:
    """Report on the resampling of one class."""

    action: str  # "over", "under" or "kept"
    n_before: int
    n_after: int
    n_generated: int = 0  # samples from chains, with those that were rejected
    n_rejected: int = 0
    n_undone: int = 0  # generated cells with a state that their column never takes, put back to where the chain began
    low: float = np.nan  # scores between which samples were taken
    high: float = np.nan
    scores: np.ndarray = field(default=None, repr=False)  # of its samples, in their order; log p up to log Z
    kept: np.ndarray = field(default=None, repr=False)  # which of its samples are in the result
    generated_scores: np.ndarray = field(default=None, repr=False)  # of all that were generated


class ModelSampler(Documented, NativeFrames, BaseSampler):
    """Samplers that model a class by a Boltzmann machine on the states of a table."""

    _parameter_constraints = {  # noqa: RUF012
        "rbm": [None, HasMethods(["fit", "sample", "free_energy"])],
        "steps": [Interval(Integral, 1, None, closed="left")],
        "n_states": [None, Interval(Integral, 2, None, closed="left")],
        "n_bins": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    def _check_X_y(self, X, y):
        y, binarize_y = check_target_type(labels_of(unmasked("y", y)), indicate_one_vs_all=True)
        X = _check_X(distinctly_named("X", as_pandas(unmasked("X", X))))
        check_consistent_length(X, y)
        validate_data(self, X=X, y=y, reset=True, skip_check_array=True)
        _columns.check_finite(X.toarray() if sparse.issparse(X) else X)
        if callable(self.sampling_strategy):
            by_function(self.sampling_strategy, y)
        return X, y, binarize_y

    def _resample(self, X, y, rng):
        """Return rows and labels, class by class, new ones after the kept ones, as ``_new_classes`` selects them."""
        dense = X.toarray() if sparse.issparse(X) else X
        coded = _columns.code(dense, y, self.n_states, self.n_bins)
        self.rbms_, self.report_ = {}, {}
        kept, donors, labels = [], [], []
        for label, rows_kept, rows in self._new_classes(coded, y, rng):
            kept.append(rows_kept)
            donors.append(_columns.donors(coded, np.flatnonzero(y == label), rows, rng))
            labels.append(label)
        table = _columns.stacked(dense, np.concatenate(kept), np.concatenate(donors))
        # from "all that is kept, then all that is new" to one class after another
        labels_of_rows = np.r_[np.repeat(labels, list(map(len, kept))), np.repeat(labels, list(map(len, donors)))]
        order = np.concatenate([np.flatnonzero(labels_of_rows == label) for label in labels])
        table, labels_of_rows = _safe_indexing(table, order), labels_of_rows[order].astype(y.dtype)
        return (type(X)(table) if sparse.issparse(X) else table), labels_of_rows

    def _machine(self, label, coded, y, rng):
        """Return the machine of a class, trained at the first call."""
        if label not in self.rbms_:
            members = y == label
            if members.sum() < 2:
                raise ValueError(f"y must hold at least 2 samples of a class to model it, got 1 of class {label!r}")
            if _likelihood.is_trained(self.rbm) and members.sum() > min(Counter(y.tolist()).values()):
                raise ValueError(
                    f"rbm is trained, which serves the smallest class only, but class {label!r} needs a machine too: "
                    "pass one that is not trained"
                )
            self.rbms_[label] = _likelihood.trained(self.rbm, coded.codes[members], coded.occurs.shape[1], rng)
        return self.rbms_[label]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags


def generator(random_state):
    """Return a generator that is seeded by a random state of scikit-learn."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31))
