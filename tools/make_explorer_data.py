"""Write the moments that the explorers of the book start from: book/_static/explorer/data/moments.json.

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
from rbal._kernels import RIDGE, UNSAT
from rbal._solver import COLUMNS, N_COLUMNS, walk
from rbal.datasets import images, lattice, synthetic
from rbal.losses import LOSSES
from rbal.moments import Spectrum

TARGET = Path(__file__).resolve().parents[1] / "book" / "_static" / "explorer" / "data" / "moments.json"
TOLERANCE = 1e-8  # of every order parameter, on the grid of `points`; tests/test_explorer.py asks 1e-6 on another grid
DIGITS = 15


def data_sets():
    """Key, name and moments of every data set."""
    random = synthetic.random_gaussian(np.random.default_rng(707), L=100, scale=1.5)  # the classes of chapter 7
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
            walk(mode, LOSSES["hinge"], spectrum, point[None], float(norm), True, 1e-12, 200, out)
            rows.append(out[0])
    table = dict(zip(COLUMNS, np.array(rows).T, strict=True))
    return np.stack([table[name] for name in ("q", "r", "b", "x")]), table["phase"]


def gauss_rule(nodes, weights, n):
    """Rule with n nodes that integrates polynomials up to degree 2n - 1 as the discrete measure does (Lanczos)."""
    used = weights > 0
    nodes, weights = nodes[used], weights[used]
    if nodes.size <= n:
        return nodes, weights
    centre, width = 0.5 * (nodes[0] + nodes[-1]), 0.5 * (nodes[-1] - nodes[0])
    t, basis = (nodes - centre) / width, [np.sqrt(weights / weights.sum())]
    diagonal, off = [], []
    for k in range(n):
        v = t * basis[k]
        diagonal.append(v @ basis[k])
        for _ in range(2):  # twice is enough to keep the basis orthogonal
            for u in basis:
                v = v - (u @ v) * u
        off.append(np.linalg.norm(v))
        basis.append(v / off[-1])
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off[:-1], 1) + np.diag(off[:-1], -1))
    return centre + width * values, weights.sum() * vectors[0] ** 2


def condense(spectrum, ratio, n):
    """Bins of λ - shift that widen by a factor ``ratio``; in each, n nodes for the directions and n for the shift.

    The poles of what is integrated lie at or below the smallest eigenvalue, so that bins may widen away from it.
    """
    lam, g, s, g_null, shift = spectrum
    gap = lam - shift
    first = gap[gap > 0][0] if (gap > 0).any() else 1.0
    bins = np.where(gap > 0, np.floor(np.log(np.maximum(gap, first) / first) / np.log(ratio) * (1 - 1e-12)), -1)
    parts = []
    for index in np.unique(bins):
        here = bins == index
        if here.sum() <= 2 * n:
            parts.append(np.stack([lam[here], g[here], s[here]]))
            continue
        for row, weights in ((1, g[here]), (2, s[here])):
            part = np.zeros((3, min(n, np.count_nonzero(weights))))
            part[0], part[row] = gauss_rule(lam[here], weights, n)
            parts.append(part)
    nodes = np.concatenate(parts, axis=1)
    nodes = nodes[:, np.argsort(nodes[0], kind="stable")]
    return Spectrum(*np.ascontiguousarray(nodes), g_null, shift)


def smallest(spectrum, norm):
    """The smallest condensed spectrum that solves to the tolerance, and its error; the full one if none is smaller."""
    exact, phases = order_parameters(spectrum, norm)
    trials = [condense(spectrum, ratio, n) for ratio in (2.0, 3.0, 5.0, 10.0, 30.0, 1e3) for n in range(2, 25)]
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


def main():
    """Condense every data set and write the file."""
    sets = {}
    for key, (name, moments) in data_sets().items():
        full = moments._spectrum
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
