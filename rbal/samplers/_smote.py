"""Oversampling by a Boltzmann machine that starts between samples."""

from numbers import Integral

import numpy as np
from imblearn.over_sampling.base import BaseOverSampler
from sklearn.neighbors import NearestNeighbors
from sklearn.utils._param_validation import Interval

from . import _likelihood
from ._model_sampler import ClassReport, ModelSampler, generator


class RBMSMOTE(ModelSampler, BaseOverSampler):
    """Oversample with a Boltzmann machine whose chains start between samples, as SMOTE puts them.

    A restricted Boltzmann machine is trained on the class. A new sample starts between a sample and one of its
    nearest neighbours of the same class (by the number of columns in which their states differ): with u uniform on
    [0, 1], every column has the neighbour's state with probability u, and the sample's own otherwise. From there a
    chain makes ``steps`` Gibbs steps. No sample is rejected.

    Parameters
    ----------
    sampling_strategy : float, str, dict or callable
        As for the oversamplers of imbalanced-learn.
    k_neighbors : int
        Number of nearest neighbours to choose from, or as many as there are in a smaller class.
    steps : int
        Gibbs steps from a point in between to a new sample.
    rbm, n_states, n_bins, random_state
        As for :class:`rbal.LikelihoodInformedSampler`, with the same treatment of columns.

    Attributes
    ----------
    sampling_strategy_ : dict
        Class to number of samples that are added.
    report_, rbms_
        As for :class:`rbal.LikelihoodInformedSampler`; no score is computed.
    n_features_in_ : int
        Number L of features seen.
    feature_names_in_ : (L,) array
        Their names, when X has any.

    Notes
    -----
    The method is that of Zięba, Tomczak and Gonczarek (2015), for states instead of numbers between 0 and 1: there the
    start is a point on the line from sample to neighbour, which is the mean of ours.

    Examples
    --------
    >>> import numpy as np, rbal
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1, 0], [30, 200])
    >>> X = (rng.random((230, 12)) < np.where(y[:, None] == 1, 0.7, 0.3)).astype(int)
    >>> sampler = RBMSMOTE(rbm=rbal.RBM(n_hidden=5, n_epochs=20, progress=False), random_state=0)
    >>> np.bincount(sampler.fit_resample(X, y)[1])
    array([200, 200])
    """

    _parameter_constraints = {  # noqa: RUF012
        **BaseOverSampler._parameter_constraints,
        **ModelSampler._parameter_constraints,
        "k_neighbors": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        sampling_strategy="auto",
        k_neighbors=5,
        steps=1,
        rbm=None,
        n_states=None,
        n_bins=10,
        random_state=None,
    ):
        self.sampling_strategy = sampling_strategy
        self.k_neighbors = k_neighbors
        self.steps = steps
        self.rbm = rbm
        self.n_states = n_states
        self.n_bins = n_bins
        self.random_state = random_state

    def _fit_resample(self, X, y):
        return self._resample(X, y, generator(self.random_state))

    def _new_classes(self, coded, y, rng):
        """Yield for each class its label, the places of its samples, and the states (k, L) of new ones."""
        for label in np.unique(y).tolist():
            own, n = np.flatnonzero(y == label), int(self.sampling_strategy_.get(label, 0))
            rows, report = coded.codes[:0], {"action": "kept"}
            if n:
                machine = self._machine(label, coded, y, rng)
                start = self._between(coded.codes[own], n, rng)
                rows, undone = _likelihood.evolved(machine, start, self.steps, coded.occurs, rng)
                report = {"action": "over", "n_generated": n, "n_undone": undone}
            self.report_[label] = ClassReport(
                n_before=len(own), n_after=len(own) + n, kept=np.ones(len(own), bool), **report
            )
            yield label, own, rows

    def _between(self, codes, n, rng):
        k = min(self.k_neighbors, len(codes) - 1)
        near = NearestNeighbors(n_neighbors=k, metric="hamming").fit(codes).kneighbors(return_distance=False)
        own = _likelihood.in_turn(len(codes), n, rng)
        other = near[own, rng.integers(k, size=n)]
        crossed = rng.random((n, codes.shape[1])) < rng.random((n, 1))
        return np.where(crossed, codes[other], codes[own])
