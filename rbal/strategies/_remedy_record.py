"""One record for each remedy: what it does to the training set, in the theory and on real rows.

:func:`rbal.strategies.compare`, :func:`rbal.advise`, its check, its pipeline and its report loop over :data:`REMEDIES`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._support.records import enter
from .._support.validation import broadcast, in_range, number

BEST = "best"  # a mixing that is to be searched


class Design(NamedTuple):
    """Training set of a remedy: the number of distinct samples of each class and their weights, numbers or arrays."""

    n_pos: float
    n_neg: float
    weight_pos: float
    weight_neg: float


@dataclass(frozen=True)
class Remedy:
    """A remedy for imbalance: weights of the classes, a mixture of under- and oversampling, or nothing at all.

    Attributes
    ----------
    name : str
    doing : str
        What to do, as a sentence without its full stop.
    weights : callable, optional
        Weights of a positive and of a negative sample, as a function of the class sizes.
    mixing : float or "best", optional
        From 0, undersampling, to 1, oversampling; or the best of all, which is searched.
    place : int
        Rank from simple (0) to complicated; of equally good remedies the simplest is recommended.
    class_weight : str, optional
        Name of these weights in scikit-learn, if it has one.
    """

    name: str
    doing: str
    weights: Callable | None = None
    mixing: float | str | None = None
    place: int = 100
    class_weight: str | None = None

    def __post_init__(self):
        if self.mixing is not None and self.weights is not None:
            raise ValueError(f"remedy {self.name!r} must have weights or a mixing, got both")
        if self.mixing is not None and not (isinstance(self.mixing, str) and self.mixing == BEST):
            number("mixing", self.mixing, 0.0, 1.0)

    @property
    def searched(self):
        """Whether its mixing is to be searched."""
        return self.mixing == BEST

    @property
    def samples(self):
        """Whether it resamples the training set."""
        return self.mixing is not None

    def design(self, n_pos, n_neg, c=None):
        """Return the training set that it makes of classes of these sizes, counted in any unit.

        Parameters
        ----------
        n_pos, n_neg : float
        c : float, optional
            Multiplicity of the minority, if it is searched.

        Returns
        -------
        Design
        """
        n_pos, n_neg = in_range("n_pos", n_pos, 0.0, open_low=True), in_range("n_neg", n_neg, 0.0, open_low=True)
        broadcast(n_pos=n_pos, n_neg=n_neg)
        if self.samples:
            return kept(n_pos, n_neg, c if self.searched else multiplicity(n_pos, n_neg, self.mixing))
        return Design(n_pos, n_neg, *(self.weights(n_pos, n_neg) if self.weights else (1.0, 1.0)))


def multiplicity(pos, neg, mixing):
    """Return how many times each sample of the minority counts at this mixing; arrays broadcast."""
    return 1.0 + mixing * (np.maximum(pos, neg) / np.minimum(pos, neg) - 1.0)


def kept(pos, neg, c):
    """Return the balanced protocol: the whole minority with weight c, the majority cut to match; arrays broadcast."""
    pos_is_minority = pos <= neg
    return Design(
        np.where(pos_is_minority, pos, c * neg)[()],
        np.where(pos_is_minority, c * pos, neg)[()],
        np.where(pos_is_minority, c, 1.0)[()],
        np.where(pos_is_minority, 1.0, c)[()],
    )


def _inverse(n_pos, n_neg):
    """Return weights inverse to the class sizes, with mean 1 over the samples."""
    mean = 0.5 * (n_pos + n_neg)
    return mean / n_pos, mean / n_neg


def register(remedy):
    """Add a remedy to REMEDIES, so that every function knows it by its name.

    Parameters
    ----------
    remedy : Remedy
        Its name must be new.

    Returns
    -------
    Remedy

    Examples
    --------
    >>> import rbal
    >>> half = Remedy("half weights", "Weigh by square roots", lambda pos, neg: ((neg / pos) ** 0.5, 1.0))
    >>> register(half).design(1.0, 4.0)
    Design(n_pos=1.0, n_neg=4.0, weight_pos=2.0, weight_neg=1.0)
    >>> del rbal.strategies.REMEDIES["half weights"]
    """
    return enter(REMEDIES, Remedy, remedy)


_ALL = (
    Remedy("as is", "Train on the data as they are", place=1),
    Remedy("undersampling", "Undersample the larger class to the size of the smaller one", mixing=0.0, place=3),
    Remedy("oversampling", "Oversample the smaller class to the size of the larger one", mixing=1.0, place=2),
    Remedy("best mix", "Mix under- and oversampling", mixing=BEST, place=4),
    Remedy("class weights", "Use balanced class weights", _inverse, place=0, class_weight="balanced"),
)
REMEDIES = {remedy.name: remedy for remedy in _ALL}
