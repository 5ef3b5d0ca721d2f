"""Numba's compiler, with a cache that an edited source cannot leave stale."""

import functools
import hashlib
import re
from pathlib import Path

from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

FLOAT, INT, VECTOR = types.float64, types.int64, types.float64[::1]
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


def address(function, result, kinds):
    """Address of a compiled function with arguments of these types, for :func:`late`.

    What is called by its address is compiled once, and not again into every caller; and the caller need not know which
    function it is. The code stays loaded as long as the function is there. Without the compiler it is the function.
    """
    if config.DISABLE_JIT:
        return function
    found = function.get_compile_result(result(*kinds))
    if found.signature.return_type != result:
        raise TypeError(f"{function.__name__} must return {result}, got {found.signature.return_type}")
    return found.library.get_pointer_to_function(found.fndesc.llvm_func_name)


def late(result, kinds):
    """Compiled function ``call(address, arguments)``, for functions of these types; ``kinds`` may be a function too."""
    if config.DISABLE_JIT:
        return lambda function, arguments: function(*arguments)

    @intrinsic
    def call(typing, address, arguments):
        wanted = kinds() if callable(kinds) else kinds

        def generate(context, builder, signature, values):
            convention = context.call_conv
            function = builder.inttoptr(values[0], convention.get_function_type(result, wanted).as_pointer())
            parts = cgutils.unpack_tuple(builder, values[1])
            return convention.call_function(builder, function, result, wanted, parts)[1]

        return result(types.intp, types.Tuple(wanted)), generate

    return call
