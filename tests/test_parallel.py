"""Parallel loops called from several threads at once, on the plainest of numba's threading layers."""

import os
import subprocess
import sys
import textwrap

PROGRAM = """
    from concurrent.futures import ThreadPoolExecutor
    import numba, numpy as np, rbal

    classes = rbal.Moments.ising(m=0.4, delta=1.0, L=20)
    X = np.random.default_rng(0).integers(0, 2, (300, 20))

    def work(_):
        rbm = rbal.RBM(5, n_epochs=10, random_state=0, progress=False).fit(X)
        return rbm.weights_.sum(), rbal.sweep(classes, 2.0, np.linspace(1.0, 9.0, 500), 0.5).q.sum()

    alone = work(0)
    with ThreadPoolExecutor(4) as pool:
        print(numba.threading_layer(), all(result == alone for result in pool.map(work, range(8))))
"""


def test_threads_take_turns_where_they_must():
    env = {**os.environ, "NUMBA_THREADING_LAYER": "workqueue", "NUMBA_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, check=False, env=env
    )
    assert done.stdout.split() == ["workqueue", "True"], done.stderr
