"""Standard streams of a command, which may be closed, full or without some letters, and the page that it writes."""

import codecs
import contextlib
import os
import re
import signal
import sys
import threading

from .files import replacing

# What is printed instead of a mark that the encoding of the terminal lacks.
PLAIN = str.maketrans({
    "…": "...", "±": "+-", "·": "*", "−": "-", "–": "-", "—": "-", "“": '"', "”": '"', "→": "->", "≤": "<=", "≥": ">=",
})  # fmt: skip


def open_streams():
    """Make standard streams usable: closed ones lead nowhere, and what is written replaces letters that they lack."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:  # closed: without this, a file that is opened later would get its number
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    codecs.register_error("rbal", plain)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="rbal")


@contextlib.contextmanager
def interrupts_wait():
    """Deliver an interrupt after this block: one in the middle of an import of numpy is raised as a failed import."""
    if threading.current_thread() is not threading.main_thread():  # which alone is interrupted
        yield
        return
    came = []
    before = signal.signal(signal.SIGINT, lambda *signal_and_frame: came.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def plain(error):
    """Return marks in plain letters and others as Python escapes them, for :func:`codecs.register_error`."""
    missing = error.object[error.start : error.end].translate(PLAIN)
    return missing.encode("ascii", "backslashreplace").decode(), error.end


def in_utf8(words):
    """Return words of the command line as tables have them, also where the locale does not know their letters."""
    if isinstance(words, list):
        return [in_utf8(word) for word in words]
    with contextlib.suppress(UnicodeError, TypeError):  # other bytes, or no word
        return os.fsencode(words).decode("utf-8")
    return words


def complain(message):
    """Say in one line on stderr what went wrong, as long as someone can read it."""
    with contextlib.suppress(OSError):
        print(f"rbal: {message}", file=sys.stderr)


def silence():
    """Lead standard output nowhere, so that nothing is tried again when Python ends."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fitting_json(text):
    """Return JSON with its own escapes where standard output is not in UTF-8, which JSON is otherwise."""
    if "utf" in (getattr(sys.stdout, "encoding", None) or "utf-8").lower():
        return text
    import json

    return re.sub(r"[^\x00-\x7f]", lambda letter: json.dumps(letter[0])[1:-1], text)


def check_page(path, table):
    """Raise an error if the page would replace the table, under any of its names, or cannot be written."""
    if os.path.exists(path) and os.path.exists(table) and os.path.samefile(path, table):
        raise ValueError(f"--html {path} is the table itself: give another file to write to")
    place = os.path.realpath(path)
    why = None
    if not path:
        why = "it has no name"
    elif os.path.isdir(path):
        why = "it is a folder"
    elif os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe, which opening alone might change
        why = None if os.access(path, os.W_OK) else "it is read-only"
    elif not os.path.isdir(os.path.dirname(place)):
        why = "no such folder"
    else:
        try:
            with replacing(place, really=False):
                pass
        except OSError as error:
            why = error.strerror or error
    if why is not None:
        raise ValueError(f"--html {path} cannot be written: {why}")


def write_page(path, page):
    """Write a page completely or not at all, and return None, or a line that says why it could not be written."""
    page = page.encode("utf-8", "backslashreplace")
    try:
        if (stream := standard_stream(path)) is not None:  # a file that others write to is not replaced
            stream.flush()
            with open(stream.fileno(), "wb", closefd=False) as file:
                file.write(page)
        elif os.path.exists(path) and not os.path.isfile(path):  # a pipe or a terminal cannot be replaced
            with open(path, "wb") as file:
                file.write(page)
        else:
            with replacing(os.path.realpath(path)) as file:  # replace the target of a link, not the link
                file.write(page)
    except OSError as error:
        return f"--html {path} cannot be written: {error.strerror or error}"


def standard_stream(path):
    """Return the standard stream that a path leads to (/dev/stdout, say), or None."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # no such file, or a stream without one
            if os.path.samestat(os.stat(path), os.fstat(stream.fileno())):
                return stream
    return None
