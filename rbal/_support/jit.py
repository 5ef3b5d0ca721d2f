"""Numba's compiler, with a cache that an edited source cannot leave stale."""

import functools
import hashlib
from pathlib import Path

from numba import njit

PACKAGE = Path(__file__).parents[1]


@functools.cache
def stamp():
    """Digest of every source of the package.

    Numba compares the date of the file that a function stands in, but not of those it calls into: an edited loss would
    leave the old solver in the cache.
    """
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(PACKAGE.rglob("*.py")))).hexdigest()


def compiled(**options):
    """Decorator like ``numba.njit(cache=True)``, whose cache is that of these very sources.

    A division by zero gives infinity or NaN, as in numpy: the solver looks for both.
    """
    compiler = njit(cache=True, error_model="numpy", **options)

    def decorate(function):
        dispatcher = compiler(function)
        index = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
        if index is not None:  # None without the compiler, or where numba finds no folder to write to
            index._source_stamp = stamp()
        return dispatcher

    return decorate
