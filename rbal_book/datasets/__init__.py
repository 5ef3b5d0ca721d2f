"""Real data of the book: photographs and handwriting, and proteins that are folded on a lattice.

Modules are loaded when they are first used.
"""

from importlib import import_module

_MODULES = ("images", "lattice")

__all__ = list(_MODULES)


def __getattr__(name):
    if name not in _MODULES:
        raise AttributeError(f"module 'rbal_book.datasets' has no attribute {name!r}")
    return import_module(f".{name}", __name__)


def __dir__():
    return sorted({*globals(), *_MODULES})
