"""The machine as an estimator of scikit-learn."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import trange

from .._support.documented import Documented
from .._support.frames import checked_rows
from .._support.validation import flag, number, one_hot_room, one_of, positive_int, room, seeded, states, unmasked
from . import _training
from ._learned import Learned
from ._machine import HIDDEN, by_rows, in_pieces, seeds, serial_products, visible_layer
from ._partition import annealed, enumerable, enumerated

CHAINS_AT_ONCE = 250  # in one piece of work of ``sample``
RATES = {"bernoulli": 0.1, "gaussian": 0.01}
SLOWEST = 0.01  # of the learning rate is left at the end


class RBM(Documented, Learned, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Restricted Boltzmann machine with binary or categorical visible units.

    Trained by persistent contrastive divergence with centred gradients. Visible fields start at the log-odds of the
    data, each state counted half a time more than it is seen, so that a site that never changes does no harm.

    Parameters
    ----------
    n_hidden : int
        Number M of hidden units.
    n_states : int
        Number Q of states of each visible unit, coded 0 … Q-1.
    hidden : {"bernoulli", "gaussian"}
        Hidden units 0 and 1, or real ones of unit variance.
    n_epochs : int
        Passes over the data.
    batch_size : int
        Samples to an update, about: batches of an epoch are as equal as they can be.
    n_chains : int
        Persistent Markov chains that stand for the model.
    n_gibbs : int
        Steps of each chain between two updates.
    learning_rate : float, optional
        Step of an update in the first half of the epochs; in the second half it falls linearly to a hundredth. By
        default 0.1, or 0.01 where the hidden units are Gaussian, since these have no bound.
    l2 : float
        Strength of the penalty: what is maximised is the mean log-likelihood less l2·Σw².
    ais_every : int, optional
        Epochs from one estimate of the log-likelihood to the next during training; None for no such estimates.
    warm_start : bool
        Whether ``fit`` goes on where an earlier one (an interrupted one, perhaps) came to, up to ``n_epochs`` in all.
    random_state : int, Generator or None
        Seed of everything random in training.
    progress : bool
        Whether to show a progress bar.

    Attributes
    ----------
    weights_ : (L, M) or (L, Q, M) array
        w; with zero sum over the states when Q > 2.
    fields_ : (L,) or (L, Q) array
        h, likewise.
    biases_ : (M,) array
        c, of the hidden units.
    history_ : dict of arrays
        After each epoch, as means over up to 500 training samples: ``pseudo_likelihood``, the sum over sites of
        log p(v_i | the other sites), from a few sites of each sample; ``reconstruction_error``, the probability that a
        site comes out wrong when v is drawn anew given the means of the hidden units; ``log_likelihood``, NaN in epochs
        without an estimate.
    n_epochs_ : int
        Epochs so far.
    n_features_in_ : int
        Number L of sites.
    feature_names_in_ : (L,) array
        Their names, when X has any.

    Notes
    -----
    An interrupted ``fit`` leaves the machine as it was after its last complete epoch. ``fit`` with ``warm_start``, or
    ``partial_fit``, then goes on exactly as if nothing had happened. A seed gives the same machine with any number of
    threads.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat([[0, 0, 1, 1], [1, 1, 0, 0]], 50, axis=0)
    >>> rbm = RBM(4, n_epochs=200, batch_size=10, l2=0.0, random_state=0, progress=False).fit(X)
    >>> seen, unseen = rbm.score([[0, 0, 1, 1], [1, 1, 0, 0]]), rbm.score([[0, 1, 0, 1], [1, 0, 1, 0]])
    >>> print(f"{np.exp(seen):.1f} {np.exp(unseen):.1f}")
    0.5 0.0
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
        learning_rate=None,
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
        n_epochs = self._check_params()
        going_on = self.warm_start and hasattr(self, "_training")
        X = self._states(X, reset=not going_on)
        if not going_on:
            self._start(X)
        with serial_products():
            for _ in trange(self.n_epochs_, n_epochs, desc="RBM", unit="epoch", disable=not self.progress):
                self._epoch(X)
        return self

    def partial_fit(self, X, y=None):
        """Train for one more epoch, on the states X.

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
        self._check_params()
        first = not hasattr(self, "_training")
        X = self._states(X, reset=first)
        if first:
            self._start(X)
        with serial_products():
            self._epoch(X)
        return self

    def _check_params(self):
        one_of("hidden", self.hidden, tuple(HIDDEN))
        for name in ("n_hidden", "batch_size", "n_chains", "n_gibbs"):
            positive_int(name, getattr(self, name))
        if self.ais_every is not None:
            positive_int("ais_every", self.ais_every)
        if self.learning_rate is not None:
            number("learning_rate", self.learning_rate, 0.0, open_low=True)
        number("l2", self.l2, 0.0)
        flag("warm_start", self.warm_start), flag("progress", self.progress)
        return positive_int("n_epochs", self.n_epochs)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.positive_only = True  # states 0 … n_states-1, not real numbers
        return tags

    def _states(self, X, reset=False, name="X"):
        Q = positive_int("n_states", self.n_states)
        X = checked_rows(self, unmasked(name, X), name=name, dtype="numeric", reset=reset)
        one_hot_room("n_states", 1, X.shape[1], Q)
        X = states(name, X, Q, np.int8 if Q <= 128 else np.int32)
        return np.require(X, requirements="CW")  # numba compiles anew for any other layout

    def _start(self, X):
        visible, hidden = visible_layer(X.shape[1], self.n_states), HIDDEN[self.hidden](self.n_hidden)
        rng = seeds(seeded("random_state", self.random_state), 1)[0]
        self._publish(_training.start(X, visible, hidden, self.n_chains, rng))
        self._warned = False  # that log Z is not reliable

    def _epoch(self, X):
        done = self.n_epochs_
        rate = RATES[self.hidden] if self.learning_rate is None else float(self.learning_rate)
        rate *= max(SLOWEST, min(1.0, 2.0 * (1.0 - done / self.n_epochs)))
        self._publish(_training.epoch(self._training, X, self.batch_size, self.n_gibbs, rate, self.l2))
        if self.ais_every is not None and (done + 1) % self.ais_every == 0:
            self._training.history[-1]["log_likelihood"] = self.score(_training.monitored(X))

    def free_energy(self, X):
        """Compute F(v), for which p(v) = exp(-F(v))/Z.

        Parameters
        ----------
        X : (n, L) array
            States 0 … Q-1.

        Returns
        -------
        (n,) array
        """
        machine = self._machine().astype(np.float64)
        return by_rows(lambda rows: machine.free_energy(machine.visible.encode(rows)), self._states(X))

    def score_samples(self, X):
        """Compute log p(v) = -F(v) - log Z, with log Z from ``log_partition()``, found once for all calls.

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
        """Compute the mean log-likelihood of the samples.

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
        """Compute the means of the hidden units, given the visible ones.

        Parameters
        ----------
        X : (n, L) array
            States 0 … Q-1.

        Returns
        -------
        (n, M) array
        """
        machine = self._machine().astype(np.float64)
        hidden, encode = machine.hidden, machine.visible.encode
        return by_rows(lambda rows: hidden.mean(machine.to_hidden(encode(rows))), self._states(X))

    def sample(self, n=1, *, init=None, steps=100, random_state=None):
        """Draw states by block Gibbs sampling.

        Parameters
        ----------
        n : int
            Number of samples, each from a chain of its own.
        init : (k, L) array, optional
            States that the chains start from, one after the other and again from the first; the persistent chains by
            default.
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
        room("n", n, n * self.n_features_in_)
        visible, rng = machine.visible, seeded("random_state", random_state)
        first = visible.decode(self._training.visible_chains) if init is None else self._states(init, name="init")
        pieces = [np.arange(i, min(i + CHAINS_AT_ONCE, n)) % len(first) for i in range(0, n, CHAINS_AT_ONCE)]

        def run(rows, own):
            return visible.decode(machine.gibbs(visible.encode(first[rows], np.float32), steps, own))

        return np.concatenate(in_pieces(run, pieces, seeds(rng, len(pieces))))

    def log_partition(self, X=None, *, n_chains=200, n_betas=500, random_state=0, max_betas=4000):
        """Compute the log of the partition function Z = Σ exp(-F(v)).

        It is exact, by enumeration, where one of the layers has at most 2²⁰ states, and else annealed both ways.
        Forward, chains begin at independent sites with the means of the training data, and all other parameters are
        turned on in small steps; in reverse, chains begin at states of the machine, and all is turned off again. The
        weights that they pick up give log Z from below and from above, and Bennett's acceptance ratio the one value at
        which both agree. Each effort has four rounds of both; after each, ends of paths forward may take the place of
        states on the other side, by a Metropolis rule. Shares of modes among these states may be those of the start,
        and not those of the machine. So the error has three parts: that of independent chains; how far the value moves
        when it rests more on one direction; and what states as the one that paths forward find least could weigh.

        The value is reliable when enough paths could have been of either direction, when estimates that rest more on
        those forward agree within three errors with ones that rest more on those in reverse, and when at least three
        of all paths forward are expected to take the place of each state. If not, the number of steps is doubled, up to
        ``max_betas``. ``make study-log-z`` measures on trained machines whether the intervals hold.

        Parameters
        ----------
        X : (k, L) array, optional
            States that chains on the side of the machine begin at, such as training data; the persistent chains by
            default. Mass that neither they nor annealing from independent sites finds is not seen.
        n_chains : int
            Chains in each direction, at least 16.
        n_betas : int
            Inverse temperatures from 0 to 1 of the first effort, at least 2; also the steps that chains make before.
        random_state : int, Generator or None
            Seed of the annealings.
        max_betas : int
            Inverse temperatures of the last effort, at most.

        Returns
        -------
        LogPartition
            A named tuple (value, error, reliable), for which value ± 1.96 error is an interval of 95 %. The error is 0
            where the value is exact. Where it is not reliable, a warning says so, once in a training, and the error is
            about how far off the value may be.
        """
        machine = self._machine()
        n_chains, n_betas = positive_int("n_chains", n_chains), positive_int("n_betas", n_betas)
        max_betas = positive_int("max_betas", max_betas)
        if n_chains < 16 or n_betas < 2:
            raise ValueError(f"n_chains must be at least 16 and n_betas 2, got {n_chains} and {n_betas}")
        starts = machine.visible.decode(self._training.visible_chains) if X is None else self._states(X)
        if enumerable(machine):
            return enumerated(machine)
        rng = np.random.default_rng(random_state)
        log_z = annealed(machine, self._training.base, starts, n_chains, n_betas, max_betas, rng)
        if not (log_z.reliable or self._warned):
            self._warned = True
            warnings.warn(
                f"log Z = {log_z.value:.1f} is not reliable: annealing forward and in reverse disagree, or do not find "
                f"the same states, with up to {max_betas} inverse temperatures, and it may be off by about "
                f"{log_z.error:.2g}; take more n_chains or max_betas "
                "(this is said once)",
                ConvergenceWarning,
                stacklevel=2,
            )
        return log_z
