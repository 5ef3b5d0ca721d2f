"""Where compiled functions are kept: numba's cache, never older than the sources, and the files of a wheel.

A wheel may carry compiled files (``make wheel``). They are made for a family of CPUs and hold for one version of Python
and of numba, which their manifest names. As in any cache of numba, files of a function are used if they were made from
the current sources. Code that this machine has compiled takes precedence, since it is made for its CPU.
"""

import functools
import hashlib
import io
import json
import os
import pickle
import platform
import re
import sys
import warnings
import zlib
from pathlib import Path

import llvmlite.binding as llvm
import numba
from numba import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator
from numba.core.registry import cpu_target

PACKAGE = Path(__file__).parents[1]
SHIPPED = PACKAGE / "_compiled"
MANIFEST = "manifest.json"
IMPORT = re.compile(r"^\s*from (\.+|rbal\b\.?)([\w.]*) import (\(.*?\)|.*?$)", re.MULTILINE | re.DOTALL)

# The CPU that files of a wheel are compiled for, by machine, and the features that a CPU needs to run them. On x86
# nearly all CPUs have had them since 2013 (Haswell, Excavator). The script `start`, for Binder, makes the same choice.
FAMILIES = {
    "x86_64": ("x86-64-v3", ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")),
    "aarch64": ("generic", ()),
}
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}  # other names for the same


@functools.cache
def stamp(path):
    """Digest of a source and of all sources that it imports from this package or its own, directly or not.

    Numba compares the date of the file that a function stands in, but not of those it calls into: an edited loss would
    leave the old solver in the cache.
    """
    known, new = set(), {Path(path)}
    while new:
        known |= new
        new = {file for source in new for file in _imported(source)} - known
    return hashlib.sha256(b"".join(source.read_bytes() for source in sorted(known))).hexdigest()


@functools.cache
def _imported(source):
    """Files that a source takes names from, by its relative imports and those from ``rbal``."""
    files = set()
    for start, module, names in IMPORT.findall(source.read_text(encoding="utf-8")):
        base = PACKAGE if start.startswith("rbal") else source.parents[len(start) - 1]
        folder = base.joinpath(*module.split(".")) if module else base
        places = [folder, *(folder / name for name in re.findall(r"\w+", names))]
        files |= {file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")}
    return {file for file in files if file.is_file() and file != PACKAGE / "__init__.py"}


# ---- files of a wheel


def family():
    """Environment in which numba compiles for the family of this machine's CPU, or None if no family is known."""
    machine = platform.machine().lower()
    machine = MACHINES.get(machine, machine)
    if machine not in FAMILIES:
        return None
    return {"NUMBA_CPU_NAME": FAMILIES[machine][0], "NUMBA_CPU_FEATURES": "", "NUMBA_DISABLE_INTEL_SVML": "1"}


def described():
    """Return the manifest of files that this process compiles, for a family of CPUs where numba's options name one."""
    target = cpu_target.target_context.codegen().magic_tuple()
    needs = dict(FAMILIES.values()).get(target[1])
    return {"numba": numba.__version__, "python": sys.implementation.cache_tag, "target": target, "needs": needs}


@functools.cache
def manifest():
    """Return the manifest of the files that came with the package, or None if none came."""
    try:
        return json.loads((SHIPPED / MANIFEST).read_text(encoding="utf-8"))
    except OSError:
        return None


@functools.cache
def obstacle():
    """Return why the shipped files cannot be used on this machine, or None if they can or if there are none."""
    shipped_for = manifest()
    if shipped_for is None:
        return None
    for name, current in (("numba", numba.__version__), ("python", sys.implementation.cache_tag)):
        if shipped_for[name] != current:
            return f"they are for {name} {shipped_for[name]}, and this is {current}"
    if config.CPU_NAME not in (None, shipped_for["target"][1]):
        return f"they are for {shipped_for['target'][1]}, and NUMBA_CPU_NAME is {config.CPU_NAME}"
    features = llvm.get_host_cpu_features()
    missing = [name for name in shipped_for["needs"] if not features.get(name)]
    return f"this CPU lacks {', '.join(missing)}" if missing else None


def shipped():
    """Whether shipped files exist and are used on this machine. ``RBAL_SHIPPED=0`` disables them."""
    return manifest() is not None and obstacle() is None and os.environ.get("RBAL_SHIPPED") != "0"


# ---- the cache of one function


class NotKept(RuntimeWarning):
    """Compiled code cannot be kept, and is compiled again by the next process."""


class Nowhere(_CacheLocator):
    """The place of last resort, where no folder can be written to: nothing is kept."""

    def __init__(self, line):
        self._line = line

    @classmethod
    def from_function(cls, py_func, py_file):
        """Return the locator of a function."""
        return cls(py_func.__code__.co_firstlineno)

    def get_cache_path(self):
        """There is no folder."""
        return ""

    def get_source_stamp(self):
        """Nothing is kept that could be stale."""
        return ""

    def get_disambiguator(self):
        """As for other locators: the line that the function begins on."""
        return str(self._line)


class Files(CompileResultCacheImpl):
    """Numba's own files, or none where they cannot be written."""

    _locator_classes = (*CompileResultCacheImpl._locator_classes, Nowhere)


class Named(IndexDataCacheFile):
    """Numba's index, whose files are named by what they hold and end in a checksum of it.

    Numba numbers them. Two processes that save at the same time can take one number for two signatures, or for two
    states of the sources, and the index of one then leads to the code of the other. Damaged files are ignored.
    """

    def save(self, key, data):
        """Save the compiled form with this key, and only then name it in the index."""
        name = self._data_name(hashlib.sha256(repr((self._source_stamp, key)).encode()).hexdigest()[:16])
        self._write(self._data_path(name), self._dump(data))
        self._save_index({**self._load_index(), key: name})

    def load(self, key):
        """Load the compiled form with this key, or return None."""
        name = self._load_index().get(key)
        content = None if name is None else self._read(self._data_path(name))
        return None if content is None else pickle.loads(content)

    def _load_index(self):
        file = io.BytesIO(self._read(self._index_path) or pickle.dumps(None))
        # Signatures of another version of numba, or of other sources, may be of classes that no longer exist.
        return pickle.load(file) if pickle.load(file) == (self._version, self._source_stamp) else {}

    def _save_index(self, overloads):
        self._write(self._index_path, pickle.dumps((self._version, self._source_stamp)) + self._dump(overloads))

    def _write(self, path, content):
        with self._open_for_write(path) as file:
            file.write(content + zlib.crc32(content).to_bytes(4, "big"))

    def _read(self, path):
        """Return the content of a file, or None if there is none, or it is damaged."""
        try:
            content = Path(path).read_bytes()
        except OSError:
            return None
        content, checksum = content[:-4], content[-4:]
        return content if zlib.crc32(content).to_bytes(4, "big") == checksum and content else None

    def _data_name(self, what):
        return f"{self._index_name.removesuffix('.nbi')}.{what}.nbc"


class Kept(FunctionCache):
    """The compiled forms of one function."""

    _impl_class = Files

    def __init__(self, function):
        super().__init__(function)
        source = Path(function.__code__.co_filename)
        if isinstance(self._impl.locator, Nowhere):
            self.disable()
        self._shipped = None
        if source.is_file():  # not a cell of a notebook
            self._cache_file = Named(self.cache_path, self._impl.filename_base, stamp(source))
            if shipped() and source.is_relative_to(PACKAGE):
                folder = SHIPPED / source.parent.relative_to(PACKAGE)
                self._shipped = Named(str(folder), self._impl.filename_base, stamp(source))

    def _load_overload(self, sig, target_context):
        overload = super()._load_overload(sig, target_context)
        if overload is None and self._shipped is not None:
            kinds, _, code = self._index_key(sig, target_context.codegen())
            data = self._shipped.load((kinds, tuple(manifest()["target"]), code))
            overload = None if data is None else self._impl.rebuild(target_context, data)
        return overload

    def _save_overload(self, sig, data):
        try:
            super()._save_overload(sig, data)
        except OSError as error:
            _warn_of(error.strerror)


@functools.cache  # once a process, not once a function
def _warn_of(why):
    place = config.CACHE_DIR or "the cache folder of this user"
    words = "every process compiles it again until there is room, or NUMBA_CACHE_DIR is a folder that has it"
    warnings.warn(f"compiled code cannot be kept in {place} ({why}): {words}", NotKept, stacklevel=2)


def folder_of(kernel):
    """Return the folder that the compiled forms of a kernel are kept in, or None if no folder can be written to."""
    path = kernel.inner._cache.cache_path
    return Path(path) if path else None
