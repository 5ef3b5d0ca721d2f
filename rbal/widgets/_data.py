"""The data an exploration can be about: what the book uses, or the reader's own moments."""

from functools import cache

import numpy as np

from .._support.validation import one_of
from ..moments import Moments
from ..moments._spectrum import spectrum_of

RANDOM, POTTS = 707, 2  # seeds: of the classes of chapter 7, and of the Potts frequencies


def _spins():
    return Moments.ising(m=0.4, delta=1.0, L=100)


def _potts():
    from ..datasets import synthetic

    return synthetic.d2(POTTS).moments


def _random():
    from ..datasets import synthetic

    return synthetic.random_gaussian(RANDOM, scale=1.5).moments


def _mnist():
    from ..datasets import images

    return images.load_mnist("parity").moments


def _fashion():
    from ..datasets import images

    return images.load_fashion_mnist().moments


def _dimers():
    from ..datasets import lattice

    return Moments.from_data(lattice.load_dimers("bounded"), lattice.load_dimers("unbounded"), n_states=20)


SOURCES = {
    "ising": ("Independent spins", _spins),
    "random": ("Random covariance", _random),
    "potts": ("Potts, 10 states", _potts),
    "mnist": ("MNIST, odd or even", _mnist),
    "fashion": ("FashionMNIST, pullover or shirt", _fashion),
    "lattice": ("Lattice proteins, bound or not", _dimers),
}


@cache
def named(name):
    """Moments of one of the sources, made once."""
    return SOURCES[name][1]()


def source(data):
    """What ``data`` stands for, as the value of a menu: a name, or Moments."""
    if isinstance(data, Moments):
        return data
    if isinstance(getattr(data, "moments", None), Moments):
        return data.moments
    if not isinstance(data, str):
        raise TypeError(f"data must be a rbal.Moments, have moments, or be a name, got {type(data).__name__}")
    return one_of("data", data, tuple(SOURCES))


def options(chosen):
    """Entries of the menu, with the reader's own moments first where there are some."""
    entries = [(label, name) for name, (label, _) in SOURCES.items()]
    return entries if isinstance(chosen, str) else [("the moments given", chosen), *entries]


def separation(moments):
    """Distance between the classes, ‖δ‖/√L."""
    return float(np.sqrt(spectrum_of(moments).s.sum()))


def separated(moments, distance):
    """Spectrum of the same covariance, with the classes moved along δ until ‖δ‖/√L is ``distance``."""
    spectrum, own = spectrum_of(moments), separation(moments)
    if distance == own:
        return spectrum
    if own == 0.0:
        raise ValueError("these classes have equal means: there is no direction to move them apart")
    return spectrum.apart(distance / own)
