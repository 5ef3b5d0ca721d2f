"""What advice costs: a table in memory, a long file, and the moments against training what they predict."""

import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

import rbal
from rbal.advice import advise_file


def table(n, D, share=0.05, seed=2024):
    """Gaussian classes, with a label column."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    return rng.normal(size=(n, D)) + 0.2 * y[:, None], y


def in_memory(n=10_000, D=100):
    """Seconds of :func:`rbal.advise`, and how many times as long one 5-fold cross-validation of one remedy takes.

    The cross-validation is on a fifth of the rows.
    """
    X, y = table(n, D)
    rbal.advise(X[:500], y[:500])  # compiles
    start = time.perf_counter()
    rbal.advise(X, y)
    ours = time.perf_counter() - start
    start = time.perf_counter()
    cross_val_score(SVC(kernel="linear", class_weight="balanced"), X[: n // 5], y[: n // 5], cv=5)
    return ours, (time.perf_counter() - start) / ours


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
