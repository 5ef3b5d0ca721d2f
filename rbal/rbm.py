r"""Restricted Boltzmann machines: a generative model of one class.

Visible units :math:`v_1 \dots v_L`, binary or with states 0 … Q-1, and hidden units :math:`z_1 \dots z_M`, binary or
Gaussian, have probability

.. math:: p(v, z) \propto \exp\Big(\sum_i h_i(v_i) + \sum_\mu c_\mu z_\mu + \sum_{i\mu} w_{i\mu}(v_i)\, z_\mu\Big),

with an extra weight :math:`e^{-z_\mu^2/2}/\sqrt{2\pi}` for Gaussian units.
"""

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from tqdm.auto import trange

from . import _rbm_training
from ._rbm_layers import hidden_layer, visible_layer
from ._rbm_machine import Machine, by_rows
from ._rbm_partition import LogPartition, annealed, enumerable, enumerated
from ._validation import number, one_of, positive_int, states

__all__ = ["RBM", "LogPartition"]


class RBM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Restricted Boltzmann machine with binary or categorical visible units.

    Parameters
    ----------
    n_hidden : int
        Number M of hidden units.
    n_states : int
        Number Q of states of each visible unit, coded 0 … Q-1.
    hidden : {"bernoulli", "gaussian"}
        Hidden units 0 and 1, or real ones.
    n_epochs : int
        Passes over the data.
    batch_size : int
        Samples to an update.
    n_chains : int
        Persistent Markov chains that estimate the means of the model.
    n_gibbs : int
        Steps of these chains between two updates.
    learning_rate : float
        Step of an update.
    l2 : float
        Penalty l2·‖w‖² on the mean log-likelihood.
    ais_every : int, optional
        Epochs between two estimates of the log-likelihood during training; None for none.
    warm_start : bool
        Whether ``fit`` goes on from an earlier (perhaps interrupted) one, to ``n_epochs`` in all.
    random_state : int, Generator or None
        Seed of all that is random in training.
    progress : bool
        Whether to show a progress bar.

    Attributes
    ----------
    weights_ : (L, M) or (L, Q, M) array
    fields_ : (L,) or (L, Q) array
    biases_ : (M,) array
        Of the hidden units.
    history_ : dict of arrays
        ``pseudo_likelihood``, ``reconstruction_error`` and ``log_likelihood`` after each epoch.
    n_epochs_ : int
        Epochs so far.
    """

    def __init__(
        self,
        n_hidden=100,
        *,
        n_states=2,
        hidden="bernoulli",
        n_epochs=250,
        batch_size=100,
        n_chains=100,
        n_gibbs=1,
        learning_rate=0.05,
        l2=0.001,
        ais_every=None,
        warm_start=False,
        random_state=None,
        progress=True,
    ):
        self.n_hidden = n_hidden
        self.n_states = n_states
        self.hidden = hidden
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.n_chains = n_chains
        self.n_gibbs = n_gibbs
        self.learning_rate = learning_rate
        self.l2 = l2
        self.ais_every = ais_every
        self.warm_start = warm_start
        self.random_state = random_state
        self.progress = progress

    def fit(self, X, y=None):
        """Train on the states X.

        Parameters
        ----------
        X : (n, L) array
            States 0 … Q-1.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        going_on = self.warm_start and hasattr(self, "_training")
        X = self._check(X, reset=not going_on)
        if not going_on:
            self._start(X)
        for _ in trange(self.n_epochs_, self.n_epochs, disable=not self.progress, desc="RBM", unit="epoch"):
            self._epoch(X)
        return self

    def partial_fit(self, X, y=None):
        """One epoch over the states X, from where training stands.

        Parameters
        ----------
        X : (n, L) array
            States 0 … Q-1.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        first = not hasattr(self, "_training")
        X = self._check(X, reset=first)
        if first:
            self._start(X)
        self._epoch(X)
        return self

    def _check(self, X, reset):
        X = validate_data(self, X, dtype=None, reset=reset)
        return states("X", X, positive_int("n_states", self.n_states))

    def _start(self, X):
        one_of("hidden", self.hidden, ("bernoulli", "gaussian"))
        visible = visible_layer(X.shape[1], self.n_states)
        hidden = hidden_layer(positive_int("n_hidden", self.n_hidden), self.hidden)
        rng = np.random.default_rng(self.random_state)
        self.n_epochs_ = 0
        self._publish(_rbm_training.start(X, visible, hidden, positive_int("n_chains", self.n_chains), rng))

    def _epoch(self, X):
        rate = number("learning_rate", self.learning_rate, 0.0, open_low=True)
        rate *= min(1.0, max(0.05, 2.0 * (1.0 - self.n_epochs_ / self.n_epochs)))
        training = _rbm_training.epoch(
            self._training,
            X,
            positive_int("batch_size", self.batch_size),
            positive_int("n_gibbs", self.n_gibbs),
            rate,
            number("l2", self.l2, 0.0),
        )
        self._publish(training)
        self.n_epochs_ += 1

    def _publish(self, training):
        self._training = training
        machine = training.machine
        L, Q = machine.visible.n, machine.visible.n_states
        self.weights_ = machine.W if Q == 2 else machine.W.reshape(L, Q, -1)
        self.fields_ = machine.b if Q == 2 else machine.b.reshape(L, Q)
        self.biases_ = machine.c
        self.history_ = {name: np.array(values) for name, values in training.history.items()}
        self._log_partition = None

    @property
    def _n_features_out(self):
        return len(self.biases_)

    def _machine(self):
        check_is_fitted(self)
        return self._training.machine

    def free_energy(self, X):
        """F(v), for which p(v) = exp(-F(v))/Z.

        Parameters
        ----------
        X : (n, L) array
            States 0 … Q-1.

        Returns
        -------
        (n,) array
        """
        machine = self._machine().astype(np.float64)
        return by_rows(lambda rows: machine.free_energy(machine.visible.encode(rows)), self._check(X, reset=False))

    def score_samples(self, X):
        """Log-likelihood log p(v) = -F(v) - log Z, normalised by ``log_partition()``.

        Parameters
        ----------
        X : (n, L) array
            States 0 … Q-1.

        Returns
        -------
        (n,) array
        """
        free_energy = self.free_energy(X)
        if self._log_partition is None:
            self._log_partition = self.log_partition()
        return -free_energy - self._log_partition.value

    def score(self, X, y=None):
        """Mean log-likelihood of the samples.

        Parameters
        ----------
        X : (n, L) array
            States 0 … Q-1.
        y : None
            Ignored.

        Returns
        -------
        float
        """
        return float(self.score_samples(X).mean())

    def transform(self, X):
        """Means of the hidden units, given the visible ones.

        Parameters
        ----------
        X : (n, L) array
            States 0 … Q-1.

        Returns
        -------
        (n, M) array
        """
        machine = self._machine().astype(np.float64)
        return by_rows(
            lambda rows: machine.hidden.mean(machine.to_hidden(machine.visible.encode(rows))),
            self._check(X, reset=False),
        )

    def sample(self, n=1, *, init=None, steps=100, random_state=None):
        """States drawn by block Gibbs sampling.

        Parameters
        ----------
        n : int
            Number of samples.
        init : (k, L) array, optional
            States to start from, in turn, again from the first where k < n; by default the persistent chains.
        steps : int
            Steps of each chain: all hidden units, then all visible ones.
        random_state : int, Generator or None
            Seed of the draw.

        Returns
        -------
        (n, L) array of int
        """
        machine = self._machine()
        n, steps = positive_int("n", n), positive_int("steps", steps)
        rng = np.random.default_rng(random_state)
        if init is None:
            features = self._training.visible_chains
        else:
            features = machine.visible.encode(self._check(init, reset=False), np.float32)
        features = features[np.arange(n) % len(features)]
        return machine.visible.decode(machine.gibbs(features, steps, rng))

    def log_partition(self, *, n_chains=100, n_betas=1000, random_state=0):
        """Log of the partition function Z = Σ exp(-F(v)).

        Exact, by enumeration, where either layer has at most 2²⁰ states; else by annealed importance sampling.

        Parameters
        ----------
        n_chains : int
            Independent annealings.
        n_betas : int
            Inverse temperatures of each, from independent sites to the machine.
        random_state : int, Generator or None
            Seed of the annealings.

        Returns
        -------
        LogPartition
            A named tuple (value, error); the error is 0 where the value is exact.
        """
        machine = self._machine()
        if enumerable(machine):
            return enumerated(machine)
        rng = np.random.default_rng(random_state)
        return annealed(machine, self._training.base, n_chains, n_betas, rng)

    def save(self, path):
        """Write the machine, and all that training needs to go on, to an npz file.

        Parameters
        ----------
        path : path-like
        """
        raise NotImplementedError

    @classmethod
    def load(cls, path):
        """Read a machine that was saved.

        Parameters
        ----------
        path : path-like

        Returns
        -------
        RBM
        """
        raise NotImplementedError
