"""The layers of a restricted Boltzmann machine: units that are independent of each other, given their inputs.

A layer of n units is written as rows of ``width`` features f, and a unit with inputs I has weight e^{f·I}: for
Bernoulli units f is 0 or 1, for Potts units the one-hot code of a state, for Gaussian units a real number, with an
extra weight e^{-f²/2}/√2π.
"""

import numpy as np
from scipy.special import expit, logsumexp


class Bernoulli:
    """Units 0 and 1, one feature each."""

    n_states = 2

    def __init__(self, n):
        self.n = self.width = n

    def encode(self, states, dtype=np.float64):
        """Features of rows of states."""
        return states.astype(dtype)

    def decode(self, features):
        """States of rows of features."""
        return features.astype(np.int8)

    def log_norm(self, inputs):
        """Log of the summed weight of all states of the layer, for each row of inputs."""
        return np.logaddexp(0.0, inputs).sum(axis=1)

    def mean(self, inputs):
        """Mean features, given the inputs."""
        return expit(inputs)

    def sample(self, inputs, rng):
        """Features drawn at random, given the inputs."""
        return (rng.random(inputs.shape, dtype=np.float32) < expit(inputs)).astype(inputs.dtype)


class Potts:
    """Units with states 0 … Q-1, one-hot: Q features each."""

    def __init__(self, n, n_states):
        self.n, self.n_states, self.width = n, n_states, n * n_states

    def _by_unit(self, features):
        return features.reshape(len(features), self.n, self.n_states)

    def encode(self, states, dtype=np.float64):
        """Features of rows of states."""
        return (states[:, :, None] == np.arange(self.n_states)).astype(dtype).reshape(len(states), -1)

    def decode(self, features):
        """States of rows of features."""
        return self._by_unit(features).argmax(axis=2).astype(np.int8 if self.n_states <= 128 else np.int32)

    def log_norm(self, inputs):
        """Log of the summed weight of all states of the layer, for each row of inputs."""
        return logsumexp(self._by_unit(inputs), axis=2).sum(axis=1)

    def mean(self, inputs):
        """Mean features, given the inputs."""
        units = self._by_unit(inputs)
        weights = np.exp(units - units.max(axis=2, keepdims=True))
        return (weights / weights.sum(axis=2, keepdims=True)).reshape(inputs.shape)

    def sample(self, inputs, rng):
        """Features drawn at random, given the inputs."""
        steps = self._by_unit(self.mean(inputs)).cumsum(axis=2)
        steps /= steps[:, :, -1:]
        drawn = rng.random((len(inputs), self.n, 1), dtype=np.float32)
        return self.encode((drawn >= steps).sum(axis=2), inputs.dtype)


class Gaussian:
    """Real units of unit variance, one feature each."""

    def __init__(self, n):
        self.n = self.width = n

    def log_norm(self, inputs):
        """Log of the integrated weight of the layer, for each row of inputs."""
        return 0.5 * np.einsum("ij,ij->i", inputs, inputs)

    def mean(self, inputs):
        """Mean features, given the inputs."""
        return inputs

    def sample(self, inputs, rng):
        """Features drawn at random, given the inputs."""
        return inputs + rng.standard_normal(inputs.shape, dtype=np.float32)


def visible_layer(L, n_states):
    """L units with this many states: binary where there are two."""
    return Bernoulli(L) if n_states == 2 else Potts(L, n_states)


def hidden_layer(M, kind):
    """M hidden units of this kind."""
    return {"bernoulli": Bernoulli, "gaussian": Gaussian}[kind](M)
