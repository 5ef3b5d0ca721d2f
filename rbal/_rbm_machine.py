"""A restricted Boltzmann machine: two layers and the weights between them."""

import contextlib
import functools
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import config
from threadpoolctl import ThreadpoolController

ROWS_AT_ONCE = 4096


class Machine(NamedTuple):
    """Probability p(f, z) ∝ exp(b·f + c·z + fᵀWz) of visible features f and hidden units z."""

    visible: object
    hidden: object
    W: np.ndarray  # (visible width, hidden width)
    b: np.ndarray
    c: np.ndarray

    def astype(self, dtype):
        """A copy with parameters of this precision."""
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
        """Visible features after some steps of block Gibbs sampling, in single precision."""
        rows = len(features)
        for _ in range(steps):
            z = self.hidden.sample(features @ self.W, self.c, self.hidden.draw(rows, rng))
            features = self.visible.sample(z @ self.W.T, self.b, self.visible.draw(rows, rng))
        return features


def by_rows(function, rows):
    """Function of rows, applied to a few thousand at a time."""
    return np.concatenate([function(rows[i : i + ROWS_AT_ONCE]) for i in range(0, len(rows), ROWS_AT_ONCE)])


def seeds(rng, n):
    """Independent generators, one a piece of work: what each draws does not depend on which thread does it."""
    return [np.random.default_rng(words) for words in rng.integers(0, 1 << 32, (n, 4), dtype=np.uint32)]


@functools.cache
def _libraries():
    return ThreadpoolController()


@contextlib.contextmanager
def workers(n):
    """A pool of up to n threads, none where there is one core; matrix products inside stay in their own thread.

    BLAS rounds differently with another number of threads, and one rounding may turn a random draw. So that a seed
    means the same thing everywhere, the work is cut into pieces here, in one way, however many threads there are.
    """
    n = min(n, config.NUMBA_NUM_THREADS)  # joblib sets it for its workers, as a reader can
    with _libraries().limit(limits=1, user_api="blas"):
        if n == 1:
            yield None
        else:
            with ThreadPoolExecutor(n) as pool:
                yield pool


def start_work(pool, function, *args):
    """A call under way in a thread of the pool, or one still to come where there is none: its result, when asked."""
    return functools.partial(function, *args) if pool is None else pool.submit(function, *args).result


def side_by_side(pool, one, two):
    """Exhaust two generators of equal length: neither goes on from a ``yield`` before the other has come to its own."""
    more = True
    while more:
        ahead = start_work(pool, next, two, False)
        more = next(one, False) is None
        ahead()


def in_pieces(function, *pieces):
    """Results of a function for pieces of work, in their order."""
    with workers(len(pieces[0])) as pool:
        return list((map if pool is None else pool.map)(function, *pieces))
