"""What other packages use of this room, beside its public names: the entries of the menu of data."""

from ._data import SOURCES

__all__ = ["SOURCES"]
