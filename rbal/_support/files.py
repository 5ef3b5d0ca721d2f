"""Files that appear whole or not at all."""

import contextlib
import os
import secrets
from pathlib import Path


class DataError(OSError):
    """Data are not there, or not what they should be; the message says what to do."""


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
def replacing(path):
    """Like ``atomic``, in a folder that exists; an error is passed on as it is."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:  # also when interrupted from the keyboard
        temporary.unlink(missing_ok=True)
        raise


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
