"""Importing this module adds the images and the proteins of the book to the menus of :mod:`rbal.widgets`."""

from rbal.moments import Moments
from rbal.widgets.internal import SOURCES

from .datasets import images, lattice


def _dimers():
    return Moments.from_data(lattice.load_dimers("bounded"), lattice.load_dimers("unbounded"), n_states=20)


SOURCES |= {
    "mnist": ("MNIST, odd or even", lambda: images.load_mnist("parity").moments),
    "fashion": ("FashionMNIST, pullover or shirt", lambda: images.load_fashion_mnist().moments),
    "lattice": ("Lattice proteins, bound or not", _dimers),
}
