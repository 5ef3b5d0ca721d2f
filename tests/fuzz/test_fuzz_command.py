"""The command as a process: closed and full streams, ascii, interrupts; and files where the disk is full or read-only."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from files import file
from nasty import ROOT, Case, hold
from objects import GLOBALS, Objects, folder
from test_fuzz_advice import WORDS

import rbal
from rbal import cli

pytestmark = pytest.mark.fuzz
AREA = "command"
CODES = (cli.OK, cli.BAD_INPUT, cli.USAGE, cli.DISAGREE, cli.INTERRUPTED)
CLOSE = {"stdin": 0, "stdout": 1, "stderr": 2}
LATER = 60.0  # seconds, after which a process hangs


def opened(kind, mode):
    """What a process gets as a stream."""
    if kind == "broken":  # a pipe whose other end is closed
        ends = os.pipe()
        os.close(ends[mode == "r"])
        return os.fdopen(ends[mode == "w"], f"{mode}b", buffering=0)
    path = Objects()["DEVICES"] / kind
    if not path.is_char_device():  # where no devices can be made: a pipe in its place would wait for its other end
        path = Path(folder()) / kind
        path.touch()
    return open(path, f"{mode}b", buffering=0)


def process(words, path="-", stdin="table", stdout="pipe", stderr="pipe", encoding="utf-8", interrupt=None):
    """Exit code and what was written by the command as a process of its own."""
    kinds = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
    closed = [CLOSE[name] for name, kind in kinds.items() if kind == "closed"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding, "COLUMNS": "100"}
    if encoding == "C":
        environment |= {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""}
    with contextlib.ExitStack() as stack:
        streams = {}
        for name, kind in kinds.items():
            if kind == "table":
                streams[name] = stack.enter_context(open(file(), "rb"))
            elif kind == "pipe":
                streams[name] = subprocess.PIPE
            else:
                streams[name] = stack.enter_context(opened(kind, "r" if name == "stdin" else "w"))
        child = subprocess.Popen(
            [sys.executable, "-m", "rbal", "advise", str(path), *words], env=environment, cwd=folder(), **streams,
            preexec_fn=lambda: [os.close(number) for number in closed],
        )  # fmt: skip
        if interrupt is not None:
            strike(child, interrupt)
        try:
            out, err = child.communicate(timeout=LATER)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            raise
    return child.returncode, (out or b"").decode(errors="replace"), (err or b"").decode(errors="replace")


def strike(child, after):
    """Interrupt a process so many seconds after it has begun to work: before that, Python itself is interrupted."""
    maps, end = Path(f"/proc/{child.pid}/maps"), time.monotonic() + LATER
    with contextlib.suppress(OSError):
        while child.poll() is None and time.monotonic() < end and "numpy" not in maps.read_text():
            time.sleep(0.01)
    time.sleep(after)
    if child.poll() is None:
        child.send_signal(signal.SIGINT)


def ended(found, call):
    """No traceback, and a code of the list."""
    code, out, err = found
    assert "Traceback" not in err, err[-600:]
    assert "Exception ignored" not in err, err[-600:]
    # Python 3.11 ends itself by the signal where it met code that was made from a string, whoever caught the exception
    if code == -signal.SIGINT and "rbal: interrupted" in err:
        code = cli.INTERRUPTED
    assert code in CODES, f"exit code {code}: {err[-300:]}"
    if code == cli.OK and call.of("stdout", "pipe") == "pipe":
        assert out


def passed_on(words):
    """Whether words can be given to a process at all."""
    return "\\x00" not in words and "\\ud800" not in words


GLOBALS |= {"process": process}
STREAMS = {
    "stdin": ("'table'", "'closed'", "'null'"), "stdout": ("'pipe'", "'closed'", "'full'", "'broken'", "'null'"),
    "stderr": ("'pipe'", "'closed'", "'full'", "'broken'", "'null'"), "encoding": ("'utf-8'", "'ascii'", "'latin-1'", "'C'"),
}  # fmt: skip
PLAIN = (
    "['--label', 'y', '--C', '1', '--kernel', 'linear', '--train', 'none']",
    "['--label', 'y', '--C', '1', '--kernel', 'linear', '--train', 'none', '--json']",
    "['--label', 'none']",
)

CASES = [
    Case("process", {"words": PLAIN} | STREAMS, ended, fixed=("words", *STREAMS), optional=(), errors=(), examples=6),
    Case("process", {"words": WORDS.filter(passed_on), "path": ("file()", "file(('latin', 0))")}, ended, fixed=("words", "path"), errors=(), examples=2),
    Case("process", {"words": PLAIN[:2], "interrupt": ("0.0", "0.1", "0.3", "0.6", "1.0", "1.5")}, ended, fixed=("words", "interrupt"), optional=(), errors=(), examples=3),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=["streams", "options", "interrupts"])
def test_the_command_ends_in_order(case):
    hold(case)


# ---- a full disk, and one that cannot be written to


@pytest.fixture(params=["full", "read-only"])
def place(request, tmp_path):
    """A folder on a small file system of its own, which is full or cannot be written to."""
    libc = ctypes.CDLL(None, use_errno=True)
    options, flags = (b"size=8k", 0) if request.param == "full" else (b"", 1)
    mounted = libc.mount(b"tmpfs", str(tmp_path).encode(), b"tmpfs", flags, options) == 0
    if not mounted:
        if request.param == "full" or os.getuid() == 0:
            pytest.skip(f"no file system can be mounted here ({os.strerror(ctypes.get_errno())})")
        tmp_path.chmod(0o500)
    if request.param == "full":
        with contextlib.suppress(OSError), (tmp_path / "filler").open("wb", buffering=0) as filler:
            while filler.write(b"x" * 512):
                pass
    yield tmp_path
    if mounted:
        libc.umount2(str(tmp_path).encode(), 2)
    else:
        tmp_path.chmod(0o700)


def writes(place):
    return {
        "store": lambda: rbal.experiments.run(Objects()["trial"], {"n": list(range(200))}, trials=2, store=place / "s", n_jobs=1, progress=False),
        "machine": lambda: Objects()["BOLTZMANN"].save(place / "machine"),
    }  # fmt: skip


@pytest.mark.parametrize("what", ["store", "machine"])
def test_a_disk_that_takes_nothing_is_named(place, what):
    before = sorted(place.iterdir())
    with pytest.raises((OSError, ValueError), match=str(place)):
        writes(place)[what]()
    assert [path for path in sorted(place.iterdir()) if path not in before and path.stat().st_size == 0] in (
        [],
        [place / "s"],
    )


def test_a_page_that_cannot_be_written_is_named(place):
    code, _, err = process([*eval(PLAIN[0]), "--html", str(place / "page.html")], path=file())
    assert code == cli.BAD_INPUT
    assert "Traceback" not in err
    assert str(place / "page.html") in err
