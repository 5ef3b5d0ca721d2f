"""Compiled functions with parallel loops, called from any thread and any process.

Numba has its threads from TBB or OpenMP where there is one of them, and else from a layer of its own. Two of these end
the process where they cannot go on: the last when two threads come to it at once, and GNU's OpenMP in a process that
was forked from one in which it had threads.
"""

import contextlib
import functools
import os
import threading

import numba

_turn = threading.Lock()
_alone = False


def _after_fork():
    global _turn, _alone
    _turn = threading.Lock()  # a thread that is not here may have held it
    with contextlib.suppress(ValueError):  # numba has had no threads yet
        _alone = numba.threading_layer() == "omp"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@functools.cache
def _takes_one_caller():
    numba.get_num_threads()  # starts the threads: only then is it known whose they are
    return numba.threading_layer() == "workqueue"


def run(function, *args):
    """Result of a function that was compiled with ``parallel=True``, or calls such.

    Its last argument, which is added here, tells whether it has to do without threads.
    """
    with _turn if _takes_one_caller() else contextlib.nullcontext():
        return function(*args, _alone)
