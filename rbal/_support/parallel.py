"""Compiled functions with long or parallel loops, called from any thread and any process.

Numba takes its threads from TBB or OpenMP where one is installed, and otherwise from a layer of its own. Two of these
can abort the process: numba's own layer when two threads call it at once, and GNU's OpenMP in a process that was forked
from one in which it had threads.
"""

import contextlib
import contextvars
import functools
import numbers
import os
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numba

STEPS = 16  # of two halves of a work between two calls from Python, where Ctrl-C takes effect
NAP = 1e-4  # seconds, when the other half is late
_turn = threading.Lock()
_alone = False


def _after_fork():
    global _turn, _alone
    _turn = threading.Lock()  # a thread that was not forked may hold the old one
    with contextlib.suppress(ValueError):  # numba has had no threads yet
        _alone = numba.threading_layer() == "omp"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@functools.cache
def _takes_one_caller():
    numba.get_num_threads()  # starts the threads, which decides the threading layer
    return numba.threading_layer() == "workqueue"


def pieces(n, size=8):
    """Cut range(n) into pieces (start, stop) that grow until each takes some tenths of a second.

    Ctrl-C does not interrupt compiled code: it takes effect between two calls, one for each piece.
    """
    start = 0
    while start < n:
        stop, began = min(start + size, n), time.perf_counter()
        yield start, stop
        took = time.perf_counter() - began
        if took < 0.1:
            size *= 2
        elif took > 0.4:
            size = max(1, size // 2)
        start = stop


def aside(function, *args, **options):
    """Call a function of scikit-learn in a thread of its own, which Ctrl-C leaves behind.

    Its compiled solvers let other threads run, but do not hear Ctrl-C themselves. Only the main thread hears it; any
    other calls the function at once.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*args, **options)
    from sklearn import config_context, get_config

    outcome, context, config = queue.SimpleQueue(), contextvars.copy_context(), get_config()

    def work():
        try:
            with config_context(**config):  # settings of scikit-learn belong to a thread
                outcome.put((context.run(function, *args, **options), None))
        except BaseException as error:
            outcome.put((None, error))

    threading.Thread(target=work, daemon=True).start()
    result, error = outcome.get()
    if error is not None:
        raise error
    return result


def workers(n_jobs):
    """Return the number of workers of joblib on this machine: ``n_jobs``, but at most the number of cores.

    joblib counts the cores that this process may use, and ``LOKY_MAX_CPU_COUNT`` if that is less.
    """
    from joblib import cpu_count

    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be an integer, not 0, or None, got {n_jobs!r}")
    return n_jobs if n_jobs is None or n_jobs < 0 else min(n_jobs, cpu_count())


def in_step(go_on, n):
    """Make n steps of two halves of a work in two threads, or in turn where numba is to have one.

    ``go_on(half, stop)`` makes steps up to that number, each when the other half has made all before it
    (:func:`.jit.wait`), and returns how many are made in all; fewer if it has waited for too long. The threads end with
    the work, and after Ctrl-C or an error.
    """
    if numba.get_num_threads() == 1:  # joblib sets it for its workers, as a reader can
        for step in range(n):
            go_on(0, step + 1)
            go_on(1, step + 1)
        return
    given_up = threading.Event()

    def go(half):
        done = 0
        try:
            while done < n and not given_up.is_set():
                before, done = done, go_on(half, min(n, done + STEPS))
                if done == before:
                    time.sleep(NAP)
        except BaseException:
            given_up.set()
            raise

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(go, 1)
        go(0)
        other.result()


def run(function, *args):
    """Call a function that was compiled with ``parallel=True``, or calls such.

    Its last argument, which is added by this function, is whether it must do without threads.
    """
    with _turn if _takes_one_caller() else contextlib.nullcontext():
        return function(*args, _alone)
