"""The data that an exploration can show: models, entries that the book adds to SOURCES, or moments of the reader."""

from functools import cache

import numpy as np

from .._support.validation import one_of
from ..moments import Moments, spectrum_of

RANDOM, POTTS = 707, 2  # seeds of the random classes of the chapter metrics_seen and of the Potts frequencies


def _spins():
    return Moments.ising(m=0.4, delta=1.0, L=100)


def _potts():
    from ..datasets import synthetic

    return synthetic.d2(POTTS).moments


def _random():
    from ..datasets import synthetic

    return synthetic.random_gaussian(RANDOM, scale=1.5).moments


SOURCES = {
    "ising": ("Independent spins", _spins),
    "random": ("Random covariance", _random),
    "potts": ("Potts, 10 states", _potts),
}


@cache
def named(name):
    """Return the moments of one of the sources, computed once."""
    return SOURCES[name][1]()


def source(data):
    """Return the value of the menu that ``data`` stands for: a name or Moments."""
    if isinstance(data, Moments):
        return data
    if isinstance(getattr(data, "moments", None), Moments):
        return data.moments
    if not isinstance(data, str):
        raise TypeError(f"data must be a rbal.Moments, have moments, or be a name, got {type(data).__name__}")
    return one_of("data", data, tuple(SOURCES))


def options(chosen):
    """Return the entries of the menu, with moments that the reader gave in front."""
    entries = [(label, name) for name, (label, _) in SOURCES.items()]
    return entries if isinstance(chosen, str) else [("the moments given", chosen), *entries]


def separation(moments):
    """Return the distance ‖δ‖/√L between the classes."""
    return float(np.sqrt(spectrum_of(moments).s.sum()))


def separated(moments, distance):
    """Return the spectrum of the same covariance after moving the classes along δ until ‖δ‖/√L is ``distance``."""
    spectrum, own = spectrum_of(moments), separation(moments)
    if distance == own:
        return spectrum
    if own == 0.0:
        raise ValueError("these classes have equal means: there is no direction to move them apart")
    return spectrum.apart(distance / own)
