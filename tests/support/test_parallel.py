"""Parallel loops where numba's threading layers would end the process: in several threads, and after a fork."""

import os
import subprocess
import sys
import textwrap

import numba
import pytest

WORK = """
    import multiprocessing
    from concurrent.futures import ThreadPoolExecutor
    import numba, numpy as np, rbal

    classes = rbal.Moments.ising(m=0.4, delta=1.0, L=20)
    X = np.random.default_rng(0).integers(0, 2, (300, 20))

    def work(_):
        rbm = rbal.RBM(5, n_epochs=10, random_state=0, progress=False).fit(X)
        return rbm.weights_.sum(), rbal.sweep(classes, 2.0, np.linspace(1.0, 9.0, 500), 0.5).q.sum()

    alone = work(0)
"""

IN_THREADS = """
    with ThreadPoolExecutor(4) as pool:
        print(numba.threading_layer(), all(result == alone for result in pool.map(work, range(8))))
"""

IN_A_FORK = """
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(numba.threading_layer(), pool.map_async(work, [0]).get(60) == [alone])
"""


def run(program, layer):
    """What a program prints with a threading layer of numba."""
    env = {**os.environ, "NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "2"}
    program = textwrap.dedent(WORK) + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=env)
    return done.stdout.split(), done.stderr


def test_threads_take_turns_where_they_must():
    printed, errors = run(IN_THREADS, "workqueue")
    assert printed == ["workqueue", "True"], errors


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_works_alone():
    numba.get_num_threads()
    layer = numba.threading_layer()
    printed, errors = run(IN_A_FORK, layer)
    assert printed == [layer, "True"], errors
