"""Compiled code is kept, and comes with a wheel: when it is used, and what happens where it cannot be."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba import config
from numba.core.caching import _CacheLocator

from rbal._support import cache

PACKAGE = Path(__file__).resolve().parents[2] / "rbal"
CALL = """
import json
from rbal._support import cache
from rbal._support.gauss import pdf
value = pdf(0.5)
told = {"value": value, "compiled": sum(pdf.outer.stats.cache_misses.values()), "obstacle": cache.obstacle()}
print(json.dumps({**told, "described": cache.described(), "folder": str(cache.folder_of(pdf))}))
"""

pytestmark = pytest.mark.skipif(
    config.DISABLE_JIT or cache.family() is None, reason="nothing is compiled, or no family of CPUs is known"
)


@pytest.fixture
def copy(tmp_path):
    """The part of the package that has the kernel, in a place of its own."""
    shutil.copytree(PACKAGE / "_support", tmp_path / "a" / "rbal" / "_support", ignore=shutil.ignore_patterns("__py*"))
    (tmp_path / "a" / "rbal" / "__init__.py").touch()
    return tmp_path / "a"


def call(place, kept=None, **environment):
    """What a new process tells that calls a kernel of the package in this place."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "RBAL_", "PYTHON"))}
    kept = {} if kept is None else {"NUMBA_CACHE_DIR": str(kept)}
    done = subprocess.run(
        [sys.executable, "-c", CALL], cwd=place, env=clean | kept | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def shipped(copy, tmp_path):
    """The same package elsewhere, with compiled files of the first."""
    made = call(copy, tmp_path / "made", **cache.family())
    assert made["compiled"] == 1
    other = tmp_path / "b"
    shutil.copytree(copy, other)
    room = tmp_path / "made" / _CacheLocator.get_suitable_cache_subpath(str(copy / "rbal" / "_support" / "gauss.py"))
    shutil.copytree(room, other / "rbal" / "_compiled" / "_support")
    write(other, made["described"])
    return other


def write(place, manifest):
    (place / "rbal" / "_compiled" / cache.MANIFEST).write_text(json.dumps(manifest))


def read(place):
    return json.loads((place / "rbal" / "_compiled" / cache.MANIFEST).read_text())


def test_files_that_came_along_are_used(shipped, tmp_path):
    kept = tmp_path / "kept"
    told = call(shipped, kept)
    assert told["compiled"] == 0
    assert told["obstacle"] is None
    assert abs(told["value"] - 0.3520653267642995) < 1e-15
    assert not list(kept.rglob("*.nbc"))
    assert call(shipped, kept, RBAL_SHIPPED="0")["compiled"] == 1
    # what was compiled for this very CPU comes first: with the files of the package gone it is still there
    shutil.rmtree(shipped / "rbal" / "_compiled")
    assert call(shipped, kept)["compiled"] == 0


def test_files_of_other_sources_are_not_used(shipped, tmp_path):
    with (shipped / "rbal" / "_support" / "jit.py").open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    assert call(shipped, tmp_path / "kept")["compiled"] == 1


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"numba": "0.1"}, "they are for numba 0.1, and this is "),
        ({"python": "cpython-30"}, "they are for python cpython-30, and this is "),
        ({"needs": ["avx2", "abacus"]}, "this CPU lacks abacus"),
    ],
)
def test_files_that_do_not_fit_are_not_used(shipped, tmp_path, changed, says):
    write(shipped, read(shipped) | changed)
    told = call(shipped, tmp_path / "kept")
    assert told["compiled"] == 1
    assert says in told["obstacle"]


def test_who_names_a_cpu_gets_code_for_it(shipped, tmp_path):
    told = call(shipped, tmp_path / "kept", NUMBA_CPU_NAME="nehalem", NUMBA_CPU_FEATURES="")
    if cache.family()["NUMBA_CPU_NAME"] == "x86-64-v3":
        assert told["compiled"] == 1
        assert told["obstacle"] == "they are for x86-64-v3, and NUMBA_CPU_NAME is nehalem"
        assert told["described"]["target"][1:] == ["nehalem", ""]


def test_without_a_folder_to_write_to_all_works(copy, shipped):
    """Neither beside the sources nor in the user's own cache: code is compiled in each process, or comes along."""
    nowhere = {"HOME": os.devnull, "XDG_CACHE_HOME": os.path.join(os.devnull, "cache")}
    for place, compiled in ((copy, 1), (shipped, 0)):
        beside = place / "rbal" / "_support" / "__pycache__"
        shutil.rmtree(beside, ignore_errors=True)
        beside.touch()  # a file where a folder would be
        for _ in range(2):
            told = call(place, **nowhere)
            assert told["compiled"] == compiled
            assert told["folder"] == "None"


def test_this_machine_has_what_its_family_needs_or_says_so(monkeypatch):
    """The list of features is that of LLVM: each of its names is known to it."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    for name, needs in cache.FAMILIES.values():
        if name == cache.family()["NUMBA_CPU_NAME"]:
            assert set(needs) <= set(features)


@pytest.mark.parametrize("other", [("B", "s"), ("A", "another state of the sources")])
def test_processes_that_save_at_the_same_time_keep_their_own(tmp_path, other):
    """Numba would number both files 1: what the index leads to is then whatever was written last."""
    key, sources = other
    mine, yours = cache.Named(str(tmp_path), "f", "s"), cache.Named(str(tmp_path), "f", sources)
    written = []
    yours._save_index = lambda overloads: written.append(overloads)  # it has not come to its index yet
    mine.save("A", "mine")
    yours.save(key, "yours")
    assert mine.load("A") == "mine"
    (index,) = written
    assert yours._load_data(index[key]) == "yours"


class OfALostClass:
    """Stands for a signature whose class the sources no longer have: it cannot be read."""

    def __reduce__(self):
        return getattr, (cache, "a class that was renamed")


def test_signatures_of_other_sources_are_not_read(tmp_path):
    old, new = (cache.Named(str(tmp_path), "f", sources) for sources in ("old", "new"))
    old.save(OfALostClass(), "code")
    assert new.load("A") is None
    new.save("A", "mine")
    assert new.load("A") == "mine"


# ---- damaged files and full disks


def half(content):
    return content[: len(content) // 2]


def spoilt(content):
    """One bit is another in the middle: machine code that nobody wrote."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGES = {
    "empty": lambda content: b"",
    "truncated": half,
    "one byte less": lambda content: content[:-1],
    "one bit": spoilt,
    "random": lambda content: os.urandom(len(content)),
    "zeros": lambda content: bytes(len(content)),
    "text": lambda content: b"cos\nsystem\n(S'false'\ntR.",  # a pickle that calls something
}


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_damaged_file_is_compiled_again(copy, tmp_path, ending):
    kept = tmp_path / "kept"
    whole = call(copy, kept)["value"]
    for damage in DAMAGES.values():
        for file in kept.rglob(f"*.{ending}"):
            file.write_bytes(damage(file.read_bytes()))
        told = call(copy, kept)
        assert (told["value"], told["compiled"]) == (whole, 1)
    assert call(copy, kept)["compiled"] == 0  # it was mended


def test_a_damaged_file_of_a_wheel_is_compiled_again(shipped, tmp_path):
    for file in (shipped / "rbal" / "_compiled").rglob("*.nb[ic]"):
        file.write_bytes(half(file.read_bytes()))
    assert call(shipped, tmp_path / "kept")["compiled"] == 1


FULL = """
import builtins, errno, os, sys, warnings
class Full:
    def __init__(self, file): self.file = file
    def __enter__(self): return self
    def __exit__(self, *error): self.file.close()
    def write(self, block): raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
plain = open
def opened(path, mode="r", *args, **kwargs):
    file = plain(path, mode, *args, **kwargs)
    return Full(file) if ".tmp." in str(path) and "w" in mode else file
builtins.open = opened
"""


def test_a_full_disk_keeps_nothing_and_all_works(copy, tmp_path):
    kept, program = tmp_path / "kept", FULL + CALL.replace("value = pdf(0.5)", "value = pdf(0.5) + 0 * pdf(1)")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "RBAL_", "PYTHON"))}
    environment = clean | {"NUMBA_CACHE_DIR": str(kept)}
    done = subprocess.run([sys.executable, "-c", program], cwd=copy, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["compiled"] == 2  # of floats, and of integers
    assert done.stderr.count("NotKept: compiled code cannot be kept in") == 1
    assert "(No space left on device)" in done.stderr
    assert not [path for path in kept.rglob("*") if path.is_file()]
    assert call(copy, kept)["compiled"] == 1
