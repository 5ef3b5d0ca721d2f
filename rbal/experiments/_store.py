"""Results of a run in a file, each on a line of its own, written as they come."""

import contextlib
import functools
import hashlib
import inspect
import json
import os
import pickle
import platform
import re
import time
import warnings
from datetime import UTC, datetime

import numpy as np

from .. import __version__
from .._support.files import file_path

FORMAT = "rbal.experiments 1"
SAME = ("trial", "arguments", "seed", "rbal")  # entries in which results must agree to form one table
# entries of a line, and their types
HEADER = dict.fromkeys(("format", "trial", "arguments", "rbal", "started"), (str, "a string"))
HEADER["seed"] = (int, "an integer")
RESULT = {
    "seed": (str, "a string"),
    "cell": (dict, "an object"),
    "trial": (int, "an integer"),
    "outputs": (dict, "an object of numbers"),
    "seconds": ((int, float), "a number"),
}
SYNC_SECONDS = 1.0  # a result survives the end of its process at once, and a power cut after this long


def describe(trial, seed):
    """Return the first line of a store: the trial, versions, and time of the start."""
    name, bound = named(trial)
    return {
        "format": FORMAT,
        "trial": name,
        "arguments": fingerprint(bound),
        "seed": seed,
        "rbal": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def named(trial):
    """Return the qualified name of a trial, and the arguments bound to it."""
    if not callable(trial):
        raise TypeError(f"trial must be callable, got {type(trial).__name__}")
    if isinstance(trial, functools.partial):
        name, bound = named(trial.func)
        return name, (bound, trial.args, trial.keywords)
    if inspect.isroutine(trial) or inspect.isclass(trial):
        return _name(trial), getattr(trial, "__self__", None)
    return _name(type(trial)), trial


def fingerprint(value):
    """Return a digest of the content of an object, the same in every process."""
    try:
        text = repr(content(value)).encode()
    except RecursionError:  # an object that holds itself
        text = pickle.dumps(value)
    return hashlib.sha256(text).hexdigest()[:32]


def content(value):
    """Return the content of an object as nested tuples, without cached properties."""
    if isinstance(value, (np.generic, np.ndarray)) and value.dtype != object:
        array = np.asarray(value)
        return (str(array.dtype), array.shape, hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest())
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
        return value
    if isinstance(value, dict):
        return ("dict", *sorted((repr(content(k)), content(v)) for k, v in value.items()))
    if isinstance(value, (set, frozenset)):
        return ("set", *sorted(repr(content(v)) for v in value))
    if isinstance(value, (list, tuple)):
        return ("list", *map(content, value))
    if inspect.ismodule(value):
        return value.__name__
    if inspect.isroutine(value) or inspect.isclass(value):
        closure = getattr(value, "__closure__", None) or ()
        return (_name(value), content(getattr(value, "__self__", None)), *(content(c.cell_contents) for c in closure))
    if isinstance(value, functools.partial):
        return ("partial", content(value.func), content(value.args), content(value.keywords))
    if hasattr(value, "__dict__"):
        return (_name(type(value)), content({k: v for k, v in vars(value).items() if not _remembered(value, k)}))
    return ("pickle", hashlib.sha256(pickle.dumps(value)).hexdigest())


def _name(function):
    return f"{function.__module__}.{function.__qualname__}"


def _remembered(value, name):
    return isinstance(inspect.getattr_static(type(value), name, None), functools.cached_property)


@contextlib.contextmanager
def opened(path, header):
    """Open a store: results by key, a function that appends one, start of the first run. No path: nothing is stored."""
    if path is None:
        yield {}, lambda result: None, header["started"]
        return
    with _appended(path) as file:
        lock(file, path)
        done, started = read(file, path, header)
        waiting, synced = [header], time.monotonic()

        def append(result):
            nonlocal synced
            waiting.append(result)
            while waiting:  # the header goes with the first result, so that reading alone leaves a store as it is
                _write(file, waiting.pop(0), path)
            if time.monotonic() - synced > SYNC_SECONDS:
                os.fsync(file.fileno())
                synced = time.monotonic()

        try:
            yield done, append, started or header["started"]
        finally:
            os.fsync(file.fileno())


def _appended(path):
    """Open the file of a store."""
    path = file_path("store", path)
    try:
        return open(path, "a+b", buffering=0)
    except OSError as error:
        raise ValueError(f"store must be a file that can be written, got {str(path)!r}: {error.strerror}") from error


def _write(file, record, path):
    line = json.dumps(record).encode() + b"\n"
    try:
        while line:  # a full disk takes a part without complaint, and complains about the rest
            line = line[file.write(line) :]
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def lock(file, path):
    """Keep other runs out while the file is open. The system lets go of the lock when the process dies."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - not on Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RuntimeError(
            f"store {os.fspath(path)!r} is in use by another run: wait for its end, or take another path"
        ) from None
    except OSError as error:  # some network file systems
        warnings.warn(
            f"store {os.fspath(path)!r} cannot be locked ({error}): let one run at a time use it", stacklevel=5
        )


def read(file, path, header):
    """Return results by key, and the start of the first run; a half-written end is cut off."""
    file.seek(0)
    first = json.dumps({"format": FORMAT}).encode()[:-1]
    text = file.read(len(first))  # no more, if it is not a store
    if not first.startswith(text):
        raise ValueError(f"store {os.fspath(path)!r} is not of the format {FORMAT!r}: take another path, or delete it")
    records = _records(text + file.read(), file, path)
    names = None
    for number, record in enumerate(records, 1):
        if fault := _fault(record, names):
            raise ValueError(
                f"store {os.fspath(path)!r} is damaged in line {number}: {fault}; remove that line, or the file"
            )
        if "format" not in record:
            names = list(record["outputs"]) if names is None else names
            continue
        for name in SAME:
            if record[name] != header[name]:
                raise ValueError(
                    f"store {os.fspath(path)!r} belongs to another run: {name} is {record[name]!r} there, "
                    f"{header[name]!r} here; take another path, or delete it"
                )
    return {r["seed"]: r for r in records if "outputs" in r}, records[0]["started"] if records else None


def _fault(record, names):
    """Return the fault of a line of JSON, or None; results must have the outputs of the first one."""
    if not isinstance(record, dict):
        return f"it should be a result, and is {_shown(record)}"
    kinds = HEADER if "format" in record else RESULT
    for name, (kind, takes) in kinds.items():
        if name not in record:
            return f"it has no {name}"
        if not isinstance(record[name], kind) or (isinstance(record[name], bool) and kind is not bool):
            return f"{name} should be {takes}, and is {_shown(record[name])}"
    if "format" in record:
        return None
    if not re.fullmatch("[0-9a-f]{40}", record["seed"]):
        return f"seed should be 40 hexadecimal digits, and is {_shown(record['seed'])}"
    for name, value in record["outputs"].items():
        entries = value if isinstance(value, list) else [value]
        if not all(isinstance(entry, (bool, int, float)) for entry in entries):
            return f"output {name!r} should be a number or a list of numbers, and is {_shown(value)}"
    if names is not None and set(record["outputs"]) != set(names):
        return f"it has the outputs {sorted(record['outputs'])}, where the first result has {sorted(names)}"
    return None


def _shown(value):
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _records(text, file, path):
    records, end = [], 0
    for i, line in enumerate(lines := text.splitlines(keepends=True)):
        try:
            records.append(json.loads(line))
            complete = line.endswith(b"\n")
        except ValueError:
            complete = False
        if not complete and i + 1 < len(lines):
            raise ValueError(f"store {os.fspath(path)!r} is damaged in line {i + 1}: remove that line, or the file")
        if not complete:
            file.truncate(end)
            return records[:i]
        end += len(line)
    return records
