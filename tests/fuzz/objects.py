"""What calls are made of: small data, moments, solutions and metrics, each made when an expression first names it."""

import functools
import os
import stat
import tempfile
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

import rbal
from rbal import (
    calibration,
    datasets,
    experiments,
    kernels,
    learners,
    limits,
    losses,
    margins,
    metrics,
    moments,
    phases,
    rbm,
    saddle,
    samplers,
    strategies,
)
from rbal.datasets import synthetic
from rbal_book import plotting, studies
from rbal_book.datasets import images, lattice

GLOBALS = {
    "Decimal": Decimal, "Fraction": Fraction, "Path": Path, "np": np, "pd": pd, "pl": pl, "pa": pa, "sparse": sparse,
    "rbal": rbal, "calibration": calibration, "datasets": datasets, "experiments": experiments, "kernels": kernels,
    "learners": learners, "limits": limits, "losses": losses, "margins": margins, "metrics": metrics, "moments": moments,
    "phases": phases, "plotting": plotting, "rbm": rbm, "saddle": saddle, "samplers": samplers, "strategies": strategies,
    "studies": studies, "images": images, "lattice": lattice, "synthetic": synthetic,
}  # fmt: skip


def _labels():
    return np.repeat([1, -1], [12, 28])


def _rows(L=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, L)) * np.geomspace(0.5, 2.0, L)
    X[:12] += 0.8
    return X


def _gram():
    X = _rows(30)
    return X @ X.T


def _covariance(L, seed=1):
    F = np.random.default_rng(seed).normal(size=(L, 3 * L)) / np.sqrt(3 * L)
    return F @ F.T


def _mixture():
    rng = np.random.default_rng(2)
    return rbal.Mixture.gaussian(rng.normal(size=(4, 6)) / 2, _covariance(6), [1, 1, -1, -1], [0.7, 0.3, 0.5, 0.5])


def _own():
    rng = np.random.default_rng(3)
    covs = np.stack([_covariance(6, 1), _covariance(6, 2)])
    return rbal.Mixture.gaussian(rng.normal(size=(2, 6)) / 2, covs, [1, -1])


def _many(T=3):
    rng = np.random.default_rng(4)
    return rbal.Mixture.gaussian(rng.normal(size=(T, 8)), _covariance(8), np.arange(T))


def _boltzmann():
    states = np.random.default_rng(0).integers(0, 2, (30, 4))
    return rbal.RBM(n_hidden=2, n_epochs=2, batch_size=10, n_chains=5, progress=False, random_state=0).fit(states)


def _trial(rng, n=2, scale=1.0):
    return {"mean": scale * float(rng.normal(size=1 + int(n)).mean())}


def _table():
    return experiments.run(_trial, {"n": [2, 3], "scale": [1.0, 2.0]}, trials=3, progress=False, n_jobs=1)


def _tempered():
    return rbal.solve(Objects()["ISING"], 1.0, 3.0, model="svm", lam=0.5, loss="logistic")


OBJECTS = {
    "X": _rows,
    "y": _labels,
    "K": _gram,
    "WIDE_X": lambda: _rows(60),
    "STATES": lambda: np.random.default_rng(0).integers(0, 3, (40, 4)),
    "BITS": lambda: np.random.default_rng(0).integers(0, 2, (30, 4)),
    "COV": lambda: _covariance(5),
    "ISING": lambda: rbal.Moments.ising(m=0.4, delta=1.0, L=5),
    "CORRELATED": lambda: rbal.Moments.ising(m=0.2, delta=[1.0, 0.5, 0.2, 0.0, -1.0], cov=_covariance(5) + 0.1),
    "REAL": lambda: rbal.Moments.real(np.ones(6), -np.ones(6), _covariance(6)),
    "POTTS": lambda: rbal.Moments.potts(np.full((4, 3), 1 / 3), np.tile([0.2, -0.1, -0.1], (4, 1))),
    "FROM_ROWS": lambda: rbal.Moments.from_data(_rows()[:12], _rows()[12:]),
    "WIDE": lambda: rbal.Moments.from_data(_rows(60)[:12], _rows(60)[12:]),
    "KERNEL": lambda: rbal.Moments.from_kernel(_gram(), _labels()),
    "MIXTURE": _mixture,
    "OWN": _own,
    "MANY": _many,
    "TWO": lambda: _many(2),
    "SOLUTION": lambda: rbal.solve(Objects()["ISING"], 1.0, 3.0, 0.5),
    "SAT": lambda: rbal.solve(Objects()["ISING"], 0.2, 0.2, 0.1),
    "RIDGE": lambda: rbal.solve(Objects()["ISING"], 1.0, 3.0, model="svm", lam=0.5),
    "LOGISTIC": _tempered,
    "OF_MIXTURE": lambda: rbal.solve(Objects()["MIXTURE"], 1.0, 3.0, model="svm", lam=0.5),
    "OF_ROWS": lambda: rbal.solve(rbal.Mixture.from_data(_rows(), _labels()), 1.0, 3.0, model="svm", lam=0.5),
    "OF_KERNEL": lambda: rbal.solve(Objects()["KERNEL"], 1.0, 3.0, model="svm", lam=0.5),
    "OVR": lambda: rbal.solve_ovr(Objects()["MANY"], [0.5, 1.0, 3.0]),
    "MULTINOMIAL": lambda: rbal.solve_multinomial(Objects()["MANY"], [0.5, 1.0, 3.0]),
    "METRICS": lambda: rbal.Metrics(1.0, 1.2, 0.1),
    "SWEPT": lambda: rbal.Metrics([0.5, 1.0], [1.2, 0.4], [0.3, -0.2]),
    "OF_PARTS": lambda: metrics.MixtureMetrics([0.5, 2.2, -1.0], [1.0, 0.2, 0.7], [1, 1, -1], [0.7, 0.3, 1.0]),
    "OF_MANY": lambda: Objects()["OVR"].metrics,
    "LINK": lambda: metrics.Link(1.5, -0.2),
    "BAGGED": lambda: strategies.bagging(Objects()["ISING"], 0.5, 3.0, 5, 0.5),
    "SCORES": lambda: np.random.default_rng(0).normal(size=40) + 0.5 * _labels(),
    "BOLTZMANN": _boltzmann,
    "trial": lambda: _trial,
    "TABLE": _table,
    "CLASSES": lambda: synthetic.ising(m=0.3, delta=1.0, L=8),
    "FOLDS": lambda: lattice.representative_structures(30, rng=1),
    "CHAINS": lambda: np.random.default_rng(0).integers(0, 20, (3, 27)),
    "PAIRS": lambda: np.random.default_rng(0).integers(0, 20, (3, 54)),
    "DOCKS": lambda: lattice.dimer_contacts(Objects()["FOLDS"].walks[0], Objects()["FOLDS"].walks[1]),
    "AXES": lambda: __import__("matplotlib.figure", fromlist=["Figure"]).Figure().subplots(),
    "FOLDER": lambda: Path(folder()),
    "DEVICES": lambda: Path(devices()),
}


def folder():
    """A new folder, which goes with this process."""
    return tempfile.mkdtemp(dir=_all_folders().name)


@functools.cache
def devices():
    """A folder with devices of our own: what is written by mistake, as root, must not be those of the machine."""
    made = Path(folder())
    os.mkfifo(made / "pipe")
    for name, minor in {"null": 3, "zero": 5, "full": 7}.items():
        try:
            os.mknod(made / name, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
        except OSError:  # only root makes devices
            os.mkfifo(made / name)
    return made


@functools.cache
def _all_folders():
    return tempfile.TemporaryDirectory(prefix="rbal-fuzz-")


class Objects(Mapping):
    """The objects by their names, for ``eval``."""

    def __getitem__(self, name):
        return _made(name)

    def __iter__(self):
        return iter(OBJECTS)

    def __len__(self):
        return len(OBJECTS)


@functools.cache
def _made(name):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return OBJECTS[name]()
