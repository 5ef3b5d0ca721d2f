"""What advice costs: on a table in memory, and on a long file."""

import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import rbal
from rbal.advice import advise_file


def table(n, D, share=0.05, seed=2024):
    """Gaussian classes, with a label column."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    return rng.normal(size=(n, D)) + 0.2 * y[:, None], y


def in_memory(kernel, n=10_000, D=100):
    """Wall and CPU seconds of :func:`rbal.advise` after the first call, which compiles."""
    X, y = table(n, D)
    rbal.advise(X[:500], y[:500], kernel=kernel)
    wall, cpu = time.perf_counter(), time.process_time()
    rbal.advise(X, y, kernel=kernel)
    return time.perf_counter() - wall, time.process_time() - cpu


def from_file(n=1_000_000, D=100, block=20_000):
    """Wall and CPU seconds for a CSV file, and its size in GB: blocks of rows written again and again."""
    X, y = table(block, D)
    names = [f"x{j}" for j in range(D)]
    head, rows = pd.DataFrame(X.round(6), columns=names).assign(y=y).to_csv(index=False).split("\n", 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        with open(path, "w") as file:
            file.write(head + "\n")
            for _ in range(n // block):
                file.write(rows)
        wall, cpu = time.perf_counter(), time.process_time()
        advise_file(path, "y", progress=False)
        return time.perf_counter() - wall, time.process_time() - cpu, path.stat().st_size / 1e9
