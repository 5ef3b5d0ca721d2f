"""A restricted Boltzmann machine: two layers and the weights between them, and work in independent pieces.

The units of a layer are independent of each other, given their inputs. A layer of n units is written as rows of
``width`` features f, and inputs I give a row the weight e^{f·I}. Bernoulli units have one feature, 0 or 1; Potts units
the one-hot code of their state; Gaussian units a real one, with an extra weight e^{-f²/2}/√2π.

``log_norm`` and ``mean`` are exact, in double precision. ``sample`` is fast, in single precision, and overwrites its
inputs, which are ``scale * inputs + bias``.
"""

import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import get_num_threads
from scipy.special import expit, logsumexp, softmax
from threadpoolctl import ThreadpoolController

from . import _unit_kernels as kernels

ROWS_AT_ONCE = 4096
ONE = np.float32(1.0)


def streams(rng, *shape):
    """Draw the states (…, 4, LANES) of streams of random bits."""
    return rng.integers(0, 1 << 32, (*shape, 4, kernels.LANES), dtype=np.uint32)


def random_words(rows, n, rng):
    """Draw words (rows, n) of 32 random bits, from streams that the generator seeds."""
    size = rows * n
    return kernels.random_bits(streams(rng), size, np.empty(size + kernels.LANES, np.uint32)).reshape(rows, n)


class Bernoulli:
    """Units 0 and 1, one feature each."""

    n_states = 2
    gaussian = False

    def __init__(self, n):
        self.n = self.width = n

    def encode(self, states, dtype=np.float64):
        """Return the features (n, width) of rows of states."""
        return states.astype(dtype)

    def decode(self, features):
        """Return the states (n, units) of rows of features."""
        return features.astype(np.int8)

    def by_state(self, parameters):
        """Return parameters of the features as those of all states, (units, Q, …)."""
        return np.stack([np.zeros_like(parameters), parameters], axis=1)

    def inputs_of(self, mean):
        """Return the inputs (width,) that give independent units these mean features."""
        return np.log(mean / (1.0 - mean))

    def in_gauge(self, parameters):
        """Return parameters without the part that changes nothing: binary units have none."""
        return parameters

    def log_norm(self, inputs):
        """Return the log of the summed weight of all states, for each row of inputs (n, width)."""
        return np.logaddexp(0.0, inputs).sum(axis=1)

    def mean(self, inputs):
        """Return the mean features, given inputs (n, width)."""
        return expit(inputs)

    def draw(self, rows, rng):
        """Draw the random bits (rows, n) that decide a sample."""
        return random_words(rows, self.n, rng)

    def sample(self, inputs, bias, draws, scale=ONE):
        """Replace inputs (rows, width) by random features, as the draws decide."""
        kernels.bernoulli_sample(inputs, bias, scale, draws)
        return inputs


class Potts:
    """Units with states 0 … Q-1, one-hot: Q features each."""

    gaussian = False

    def __init__(self, n, n_states):
        self.n, self.n_states, self.width = n, n_states, n * n_states

    def _by_unit(self, features):
        return features.reshape(len(features), self.n, self.n_states)

    def encode(self, states, dtype=np.float64):
        """Return the features (n, width) of rows of states."""
        features = np.zeros((len(states), self.width), dtype)
        np.put_along_axis(self._by_unit(features), states[:, :, None], 1.0, axis=2)
        return features

    def decode(self, features):
        """Return the states (n, units) of rows of features."""
        return self._by_unit(features).argmax(axis=2).astype(np.int8 if self.n_states <= 128 else np.int32)

    def by_state(self, parameters):
        """Return parameters of the features as those of all states, (units, Q, …)."""
        return parameters.reshape(self.n, self.n_states, *parameters.shape[1:])

    def inputs_of(self, mean):
        """Return the inputs (width,) that give independent units these mean features."""
        return self.in_gauge(np.log(mean))

    def in_gauge(self, parameters):
        """Return parameters with zero sum over the states of each unit."""
        by_unit = self.by_state(parameters)
        return (by_unit - by_unit.mean(axis=1, keepdims=True)).reshape(parameters.shape)

    def log_norm(self, inputs):
        """Return the log of the summed weight of all states, for each row of inputs (n, width)."""
        return logsumexp(self._by_unit(inputs), axis=2).sum(axis=1)

    def mean(self, inputs):
        """Return the mean features, given inputs (n, width)."""
        return softmax(self._by_unit(inputs), axis=2).reshape(inputs.shape)

    def draw(self, rows, rng):
        """Draw the random bits (rows, n) that decide a sample."""
        return random_words(rows, self.n, rng)

    def sample(self, inputs, bias, draws, scale=ONE):
        """Replace inputs (rows, width) by random features, as the draws decide."""
        kernels.potts_sample(inputs, bias, scale, self.n_states, draws)
        return inputs


class Gaussian:
    """Real units of unit variance, one feature each."""

    gaussian = True

    def __init__(self, n):
        self.n = self.width = n

    def log_norm(self, inputs):
        """Return the log of the integrated weight, for each row of inputs (n, width)."""
        return 0.5 * np.einsum("ij,ij->i", inputs, inputs)

    def mean(self, inputs):
        """Return the mean features, given inputs (n, width)."""
        return inputs

    def draw(self, rows, rng):
        """Draw the normal deviates (rows, n) that decide a sample."""
        return rng.standard_normal((rows, self.n), dtype=np.float32)

    def sample(self, inputs, bias, draws, scale=ONE):
        """Replace inputs (rows, width) by random features, as the draws decide."""
        inputs *= scale
        inputs += bias
        inputs += draws
        return inputs


def visible_layer(L, n_states):
    """Return a layer of L units with this many states: binary where there are two."""
    return Bernoulli(L) if n_states == 2 else Potts(L, n_states)


HIDDEN = {"bernoulli": Bernoulli, "gaussian": Gaussian}


# ---- pieces of work

_piece = threading.local()


class GivenUp(BaseException):
    """Ends a thread whose result is no longer needed."""


def go_on():
    """Raise when the piece of work of this thread has been given up; long loops call it at each step."""
    given_up = getattr(_piece, "given_up", None)
    if given_up is not None and given_up.is_set():
        raise GivenUp


def by_rows(function, rows):
    """Apply a function to a few thousand rows at a time."""
    return np.concatenate([function(rows[i : i + ROWS_AT_ONCE]) for i in range(0, len(rows), ROWS_AT_ONCE)])


def seeds(rng, n):
    """Return n independent generators, one for each piece of work, so that draws do not depend on the threads."""
    return [np.random.default_rng(words) for words in rng.integers(0, 1 << 32, (n, 4), dtype=np.uint32)]


@functools.cache
def _libraries():
    return ThreadpoolController()


def serial_products():
    """Keep matrix products in the thread that calls them.

    BLAS rounds differently with another number of threads, and one rounding may change a random draw. So that a seed
    has the same result everywhere, the work is cut into the same pieces for any number of threads.
    """
    return _libraries().limit(limits=1, user_api="blas")


def in_pieces(function, *pieces):
    """Return the results of a function for pieces of work, in order. After Ctrl-C or an error, all pieces end soon."""
    n = min(len(pieces[0]), get_num_threads())  # joblib sets it for its workers, as a reader can
    given_up = threading.Event()

    def work(*piece):
        _piece.given_up = given_up
        return function(*piece)

    with serial_products():
        if n == 1:
            return list(map(function, *pieces))
        with ThreadPoolExecutor(n) as pool:  # which waits for its threads at the end
            try:
                return list(pool.map(work, *pieces))
            except BaseException:
                given_up.set()
                raise


# ---- the machine


class Machine(NamedTuple):
    """Probability p(f, z) ∝ exp(b·f + c·z + fᵀWz) of visible features f and hidden units z."""

    visible: object
    hidden: object
    W: np.ndarray  # (D, M): visible and hidden width
    b: np.ndarray  # (D,)
    c: np.ndarray  # (M,)

    def astype(self, dtype):
        """Return a copy with parameters of this precision."""
        return self._replace(W=self.W.astype(dtype), b=self.b.astype(dtype), c=self.c.astype(dtype))

    def to_hidden(self, features):
        """Return the inputs (n, M) of the hidden units, given features (n, D)."""
        return features @ self.W + self.c

    def to_visible(self, z):
        """Return the inputs (n, D) of the visible features, given hidden units (n, M)."""
        return z @ self.W.T + self.b

    def free_energy(self, features):
        """Return F(v), (n,), with p(v) = e^{-F(v)}/Z."""
        return -(features @ self.b) - self.hidden.log_norm(self.to_hidden(features))

    def gibbs(self, features, steps, rng):
        """Return the features (n, D) after some steps of block Gibbs sampling, in single precision."""
        rows = len(features)
        for _ in range(steps):
            go_on()
            z = self.hidden.sample(features @ self.W, self.c, self.hidden.draw(rows, rng))
            features = self.visible.sample(z @ self.W.T, self.b, self.visible.draw(rows, rng))
        return features
