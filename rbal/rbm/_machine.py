"""A restricted Boltzmann machine: two layers and the weights between them."""

import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import get_num_threads
from threadpoolctl import ThreadpoolController

ROWS_AT_ONCE = 4096
_piece = threading.local()


class GivenUp(BaseException):
    """Ends a thread whose result nobody waits for any more."""


def go_on():
    """Raise when the piece of work of this thread has been given up; long loops call it at each step."""
    given_up = getattr(_piece, "given_up", None)
    if given_up is not None and given_up.is_set():
        raise GivenUp


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
    """Keep matrix products in the thread that asks for them.

    BLAS rounds differently with another number of threads, and one rounding may turn a random draw. So that a seed
    means the same thing everywhere, the work is cut into pieces here, in one way, however many threads there are.
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
