"""Write what the explorers of the book start from: book/_static/explorer/data/moments.json, and records.js beside it.

``python tools/make_explorer_data.py`` takes a minute. The explorers solve the saddle point in the reader's browser, and
all they need of a data set is its spectrum: eigenvalues, how many directions share each, and the squared shift along
them. A spectrum with many eigenvalues is condensed: the sums over it that the theory asks for are integrals of smooth
functions, so that few nodes of a Gauss rule do the work of many eigenvalues. How few is found by solving with both.
"""

import json
import warnings
from pathlib import Path

import numpy as np

import rbal
from rbal import saddle
from rbal.datasets import synthetic
from rbal.losses import HINGE
from rbal.metrics import METRICS
from rbal.saddle.internal import COLUMNS, N_COLUMNS, RIDGE, UNSAT, Settings, newton_address, tables_and_fallback, walk
from rbal_book.datasets import images, lattice

EXPLORER = Path(__file__).resolve().parents[1] / "book" / "_static" / "explorer"
TARGET = EXPLORER / "data" / "moments.json"
RECORDS = EXPLORER / "records.js"
TOLERANCE = 1e-8  # of every order parameter, on the grid of `points`; test_explorer.py asks 1e-6 on another grid
DIGITS = 15


def data_sets():
    """Key, name and moments of every data set."""
    random = synthetic.random_gaussian(np.random.default_rng(707), L=100, scale=1.5)  # as in metrics_seen
    pos, neg = lattice.load_dimers("bounded"), lattice.load_dimers("unbounded")
    return {
        "ising": ("Independent spins", rbal.Moments.ising(m=0.4, delta=1.0, L=100)),
        "random": ("Random covariance", random.moments),
        "potts": ("Potts, 10 states", synthetic.d2(np.random.default_rng(2)).moments),
        "mnist": ("MNIST, odd or even", images.load_mnist("parity").moments),
        "fashion": ("FashionMNIST, pullover or shirt", images.load_fashion_mnist().moments),
        "lattice": ("Lattice proteins, bound or not", rbal.Moments.from_data(pos, neg, n_states=20)),
    }


def points(norm):
    """Problems on which the condensed spectrum is judged: rows of κ, α⁺, α⁻, c⁺, c⁻, λ̃, and the mode of each."""
    sphere = [
        (kappa * np.sqrt(norm), pos, neg, c, 1.0, 0.0)
        for kappa in (0.0, 0.2, 0.5, 1.0, 2.0, 5.0)
        for pos, neg in ((0.05, 0.05), (0.1, 2.0), (0.5, 1.0), (2.0, 2.0), (1.0, 10.0), (20.0, 5.0))
        for c in (1.0, max(neg / pos, 1.0))
    ]
    ridge = [(1.0, *row[1:5], lam) for row in sphere[:12] for lam in (0.01, 0.1, 1.0)]
    return [(UNSAT, np.array(sphere)), (RIDGE, np.array(ridge))]


def order_parameters(spectrum, norm):
    """q, r, b and x at the points, and the phases."""
    rows = []
    for mode, grid in points(norm):
        for point in grid:  # each from scratch, so that no two spectra take different ways
            out = np.empty((1, N_COLUMNS))
            calls, traits, fallback = tables_and_fallback(HINGE, mode, needed=True)
            settings = Settings(mode, calls, traits, float(norm), True, 1e-12, 200, newton_address(), fallback)
            walk(settings, spectrum, point[None], np.empty(5), -1, out)
            rows.append(out[0])
    table = dict(zip(COLUMNS, np.array(rows).T, strict=True))
    return np.stack([table[name] for name in ("q", "r", "b", "x")]), table["phase"]


def smallest(spectrum, norm):
    """The smallest condensed spectrum that solves to the tolerance, and its error; the full one if none is smaller."""
    exact, phases = order_parameters(spectrum, norm)
    trials = [spectrum.condensed(ratio, n) for ratio in (2.0, 3.0, 5.0, 10.0, 30.0, 1e3) for n in range(2, 25)]
    for trial in sorted(trials, key=lambda spectrum: spectrum.lam.size):
        if trial.lam.size >= spectrum.lam.size:
            break
        found, phases_found = order_parameters(trial, norm)
        error = np.nanmax(np.abs(found - exact) / np.maximum(np.abs(exact), 1.0))
        if error < TOLERANCE and (phases == phases_found).all() and (np.isnan(found) == np.isnan(exact)).all():
            return trial, error
    return spectrum, 0.0


def rounded(values):
    """Numbers as JSON writes them, to DIGITS significant digits."""
    return [float(f"{value:.{DIGITS}g}") for value in values]


def records():
    """Module of the names of all metrics of the theory, from their records."""
    shown = {
        name: {"name": metric.label, "title": metric.about or metric.title, "sign": int(metric.sign)}
        for name, metric in METRICS.items()
        if metric.of_theory
    }
    lines = [f"  {name}: {json.dumps(entry, ensure_ascii=False)}," for name, entry in shown.items()]
    head = "/** What metrics are called: written by tools/make_explorer_data.py from rbal.metrics.METRICS. @module */"
    return "\n".join([head, "export const RECORDS = {", *lines, "};", ""])


def main():
    """Write the names of the metrics, condense every data set and write the file."""
    RECORDS.write_text(records(), encoding="utf-8")
    sets = {}
    for key, (name, moments) in data_sets().items():
        full = moments.spectrum
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", saddle.convergence_warning())
            spectrum, error = smallest(full, moments.Q)
        print(f"{key}: {full.lam.size} eigenvalues, {spectrum.lam.size} kept, error {error:.1e}")
        lam, g, s = (rounded(values) for values in spectrum[:3])
        sets[key] = {
            "name": name, "L": moments.L, "Q": moments.Q, "n_eigenvalues": int(full.lam.size),
            "lam": lam, "g": g, "s": s, "g_null": spectrum.g_null,
        }  # fmt: skip
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(json.dumps(sets, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
