"""Numba's compiler, with a cache that an edited source cannot leave stale."""

import functools
import hashlib
import re
from pathlib import Path

from numba import njit

PACKAGE = Path(__file__).parents[1]
IMPORT = re.compile(r"^\s*from (\.+)([\w.]*) import (\(.*?\)|.*?$)", re.MULTILINE | re.DOTALL)


@functools.cache
def stamp(path):
    """Digest of a source and of all sources of the package that it imports, directly or not.

    Numba compares the date of the file that a function stands in, but not of those it calls into: an edited loss would
    leave the old solver in the cache.
    """
    known, new = set(), {Path(path)}
    while new:
        known |= new
        new = {found for source in new for found in _imported(source)} - known
    return hashlib.sha256(b"".join(source.read_bytes() for source in sorted(known))).hexdigest()


@functools.cache
def _imported(source):
    """Files of the package that a source takes names from, by its relative imports."""
    found = set()
    for dots, module, names in IMPORT.findall(source.read_text(encoding="utf-8")):
        folder = source.parents[len(dots) - 1].joinpath(*module.split(".")) if module else source.parents[len(dots) - 1]
        places = [folder, *(folder / name for name in re.findall(r"\w+", names))]
        found |= {file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")}
    return {file for file in found if file.is_file() and file != PACKAGE / "__init__.py"}


def compiled(**options):
    """Decorator like ``numba.njit(cache=True)``, whose cache is that of these very sources.

    A division by zero gives infinity or NaN, as in numpy: the solver looks for both.
    """
    compiler = njit(cache=True, error_model="numpy", **options)

    def decorate(function):
        dispatcher = compiler(function)
        index = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
        source = Path(function.__code__.co_filename)
        if index is not None and source.is_relative_to(PACKAGE):  # None without the compiler, or a folder to write to
            index._source_stamp = stamp(source)
        return dispatcher

    return decorate
