"""Compiled functions with parallel loops, called from any thread."""

import contextlib
import functools
import threading

import numba

_turn = threading.Lock()


@functools.cache
def _takes_one_caller():
    numba.get_num_threads()  # starts the threads: only then is it known whose they are
    return numba.threading_layer() == "workqueue"


def run(function, *args):
    """Result of a function that was compiled with ``parallel=True``, or calls such.

    Numba has its threads from TBB or OpenMP where there is one of them. Else it falls back on a layer of its own, which
    ends the process when two threads come to it at once: then they take turns.
    """
    with _turn if _takes_one_caller() else contextlib.nullcontext():
        return function(*args)
