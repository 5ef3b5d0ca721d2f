"""What compiled files of a wheel, made for a family of CPUs, lose against code compiled for this very CPU."""

import json
import os
import subprocess
import sys
import tempfile

from rbal._support import cache

# A solve, a sweep and an epoch each fill some tenths of a second; the best of five runs is the least disturbed.
PROGRAM = """
import json, time
import numpy as np, rbal
from rbal.datasets import synthetic
rng = np.random.default_rng(0)
wide = rbal.Moments.real(rng.normal(size=2000) / 45.0, np.zeros(2000), rng.gamma(2.0, 0.5, size=2000) + 0.05)
flat = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
X, y = synthetic.d1(100).sample(300, 700, 0)
clf = rbal.SphericalPerceptron(kappa=1.0)
V = (rng.random((2000, 784)) < 0.3).astype(np.int8)
rbm = rbal.RBM(random_state=0, n_epochs=1, progress=False).fit(V)
def sweep(loss):
    return lambda: rbal.sweep(flat, 2.0, np.linspace(1.0, 10.0, 400), model="svm", lam=1.0, loss=loss)
ways = {
    "300 solves, L = 100": lambda: [rbal.solve(flat, 2.0, 5.0, 0.5) for _ in range(300)],
    "sweep, L = 2,000": lambda: rbal.sweep(wide, 2.0, np.linspace(1.0, 10.0, 400), 0.5),
    "sweep, logistic": sweep("logistic"),
    "perceptron, n = 1,000": lambda: [clf.fit(X, y) for _ in range(20)],
    "epoch of an RBM": lambda: rbm.partial_fit(V),
}
def once(way):
    start = time.process_time()
    way()
    return time.process_time() - start
for way in ways.values():
    way()
print(json.dumps({name: min(once(way) for _ in range(5)) for name, way in ways.items()}))
"""


def timed(folder, environment):
    """CPU seconds of each kind of work in a process that is told to compile so; it compiles before it is timed."""
    settings = os.environ | {"NUMBA_CACHE_DIR": folder, "RBAL_SHIPPED": "0"} | environment
    return json.loads(subprocess.check_output([sys.executable, "-c", PROGRAM], env=settings, text=True))


def against_native(rounds=3):
    """(what, CPU seconds of native code, of the family's code), the best of rounds that alternate."""
    best = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for kind, environment in (("native", {}), ("family", cache.family() or {})):
                for name, seconds in timed(folder, environment).items():
                    best[name, kind] = min(seconds, best.get((name, kind), seconds))
    names = dict.fromkeys(name for name, _ in best)
    return [(name, best[name, "native"], best[name, "family"]) for name in names]


if __name__ == "__main__":
    for name, native, family in against_native():
        print(f"  {name:26}{1e3 * native:9.1f} ms{1e3 * family:9.1f} ms   {family / native - 1.0:+.1%}", flush=True)
