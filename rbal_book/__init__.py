"""The laboratory of the book: what its chapters need and a user of :mod:`rbal` does not.

Studies and their stored results, images and lattice proteins, deep networks, lessons, and the look of the figures. It
is installed with the repository, and never part of the wheel. Modules are loaded when they are first used.
"""

from importlib import import_module

_MODULES = ("datasets", "deep", "lessons", "plotting", "studies", "warmup", "widgets")

__all__ = list(_MODULES)


def __getattr__(name):
    if name not in _MODULES:
        raise AttributeError(f"module 'rbal_book' has no attribute {name!r}")
    return import_module(f".{name}", __name__)


def __dir__():
    return sorted({*globals(), *_MODULES})
