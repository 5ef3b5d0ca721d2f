"""Data to put the theory to the test, drawn from a model.

The module is loaded when it is first used.
"""

from importlib import import_module

_MODULES = ("synthetic",)

__all__ = list(_MODULES)


def __getattr__(name):
    if name not in _MODULES:
        raise AttributeError(f"module 'rbal.datasets' has no attribute {name!r}")
    return import_module(f".{name}", __name__)


def __dir__():
    return sorted({*globals(), *_MODULES})
