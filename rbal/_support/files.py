"""Files that appear whole or not at all."""

import contextlib
import errno
import os
import secrets
from pathlib import Path


class DataError(OSError):
    """Data are missing or not as expected; the message says what to do."""


def any_path(name, value):
    """Return the value as a path, when it is one that the system can write: no number, no bytes, nothing empty."""
    if not isinstance(value, (str, os.PathLike)) or not isinstance(path := os.fspath(value), str):
        raise ValueError(f"{name} must be a path, got {value!r}")
    if not path or not _encodable(path) or "\0" in path:
        raise ValueError(f"{name} must be a path, got {path!r}")
    return Path(path)


def file_path(name, value):
    """Return the value as a path, when it is that of a file or of nothing yet: no folder, device, pipe or number."""
    if not isinstance(value, (str, os.PathLike)) or not isinstance(path := os.fspath(value), str):
        raise ValueError(f"{name} must be the path of a file, got {value!r}")
    if not _encodable(path) or not path or "\0" in path or (os.path.exists(path) and not os.path.isfile(path)):
        why = ", a folder" if path and os.path.isdir(path) else ", a device or a pipe" if os.path.exists(path) else ""
        raise ValueError(f"{name} must be the path of a file, got {path!r}{why}")
    return Path(path)


def _encodable(path):
    """Return whether the system can write a name: halves of surrogate pairs it cannot."""
    try:
        return bool(os.fsencode(path)) or not path
    except UnicodeEncodeError:
        return False


@contextlib.contextmanager
def writing(path):
    """Turn an error of writing into one that says what to do, as about a full disk."""
    try:
        yield
    except DataError:
        raise
    except OSError as error:
        raise DataError(
            f"{path} could not be written ({error}): make room, or set RBAL_DATA to a folder that has it"
        ) from error


@contextlib.contextmanager
def atomic(path):
    """Open a binary file that gets its name when the block ends well, and is gone when it does not."""
    path = Path(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            yield file


@contextlib.contextmanager
def replacing(path, really=True):
    """Like ``atomic``, in a folder that exists; an error names the path. If not ``really``, nothing is replaced."""
    path = Path(path)
    if path.exists() and not path.is_file():  # a device would be gone
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    temporary = path.with_name(f".{path.name[:50]}.{secrets.token_hex(8)}")  # a name has 255 bytes at most
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if really:
            os.replace(temporary, path)
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(temporary)):
            raise type(error)(error.errno, error.strerror, str(path)) from error
        raise
    finally:  # also when interrupted from the keyboard
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path):
    """Let one process in at a time, where the platform has file locks; others wait, and then find the file."""
    path = Path(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.with_name(f".{path.name}.lock")
        lock.touch()
    with open(lock, "ab") as file:
        with contextlib.suppress(ImportError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
