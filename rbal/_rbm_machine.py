"""A restricted Boltzmann machine: two layers, the weights between them and what is known of the pair exactly."""

from typing import NamedTuple

import numpy as np

ROWS_AT_ONCE = 4096


class Machine(NamedTuple):
    """Probability p(f, z) ∝ exp(b·f + c·z + fᵀWz) of visible features f and hidden units z."""

    visible: object
    hidden: object
    W: np.ndarray  # (visible width, hidden width)
    b: np.ndarray
    c: np.ndarray

    def astype(self, dtype):
        """The same machine with parameters of another precision."""
        return self._replace(W=self.W.astype(dtype), b=self.b.astype(dtype), c=self.c.astype(dtype))

    def to_hidden(self, features):
        """Inputs of the hidden units."""
        return features @ self.W + self.c

    def to_visible(self, z):
        """Inputs of the visible units."""
        return z @ self.W.T + self.b

    def free_energy(self, features):
        """F(v) with p(v) = e^{-F(v)}/Z."""
        return -(features @ self.b) - self.hidden.log_norm(self.to_hidden(features))

    def gibbs(self, features, steps, rng):
        """Visible features after some steps of block Gibbs sampling."""
        for _ in range(steps):
            features = self.visible.sample(self.to_visible(self.hidden.sample(self.to_hidden(features), rng)), rng)
        return features


def by_rows(function, rows):
    """Function of rows, applied to a few thousand at a time."""
    return np.concatenate([function(rows[i : i + ROWS_AT_ONCE]) for i in range(0, len(rows), ROWS_AT_ONCE)])
