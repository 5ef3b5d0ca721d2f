"""What the first answer costs: CPU seconds of a new process that finds nothing compiled."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = {  # what a user does first, and the goal in CPU seconds
    "solve": ("rbal.solve(rbal.Moments.ising(m=0.4, delta=1.0, L=100), 2.0, 5.0, 0.5)", 4),
    "rbal advise": ("from rbal.cli import main; main(['advise', 'table.csv', '--label', 'y'])", 8),
    "SphericalPerceptron": ("rbal.SphericalPerceptron(kappa=0.5).fit(X, y)", 6),
    "RBM": ("rbal.RBM(20, n_epochs=2, random_state=0, progress=False).fit(X > 0.0)", 8),
}
HEAD = """
import contextlib, io, json, resource
import numpy as np
import rbal
rng = np.random.default_rng(0)
y = np.repeat([1, 0], [60, 140])
X = rng.normal(size=(200, 30)) + 0.2 * y[:, None]
names = ",".join([*(f"x{j}" for j in range(30)), "y"])
np.savetxt("table.csv", np.column_stack([X, y]), fmt="%.6g", delimiter=",", header=names, comments="")
"""
TAIL = """
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps(usage.ru_utime + usage.ru_stime))
"""


def seconds(program):
    """CPU seconds of a program in a new process, in a folder of its own and with an empty cache, imports included."""
    quiet = f"with contextlib.redirect_stdout(io.StringIO()): {program}\n"
    with tempfile.TemporaryDirectory() as folder:
        settings = {"NUMBA_CACHE_DIR": str(Path(folder) / "cache"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        others = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        run = subprocess.run(
            [sys.executable, "-c", HEAD + quiet + TAIL],
            cwd=folder,
            env={**others, **settings, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
    return json.loads(run.stdout.splitlines()[-1])


def table():
    """(what, CPU seconds, goal) of each first use: the second of two, when Python has its modules compiled."""
    return [(name, [seconds(program) for _ in range(2)][-1], goal) for name, (program, goal) in PROGRAMS.items()]
