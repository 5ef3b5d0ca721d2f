"""The command where its streams are closed, full, or lack letters, and where its page cannot be written."""

import ast
import io
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rbal import cli
from rbal._support import streams

ROOT = Path(__file__).parents[2]
FIXED = "--C 1 --kernel linear --moments pooled --train none"
LAST = "Confidence: moderate (40 positive and 200 negative samples)."

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the shell of POSIX closes streams")


def test_an_interrupt_waits_until_modules_are_imported():
    """In the middle of an import numpy would raise it as an import that failed."""
    passed = []

    def imported():
        with streams.interrupts_wait():
            os.kill(os.getpid(), signal.SIGINT)
            passed.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        imported()
    assert passed == ["all of it"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table, one of whose columns has a name that no small encoding has."""
    rng, y = np.random.default_rng(0), np.repeat(["yes", "no"], [40, 200])
    X = rng.normal(size=(240, 16)) + 0.6 * (y == "yes")[:, None]
    folder = tmp_path_factory.mktemp("streams")
    pd.DataFrame(X, columns=[*"abcdefghijklmno", "é東😀"]).assign(y=y).to_csv(folder / "t.csv", index=False)
    return folder


def shell(folder, line, **environment):
    """What the shell does with a line in which ``rbal`` is the command; there is never a traceback."""
    line = line.replace("rbal ", f"{shlex.quote(sys.executable)} -m rbal ").replace("FIXED", f"t.csv --label y {FIXED}")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = ["bash", "-o", "pipefail", "-c", line]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=300, check=False)
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    return done.returncode, done.stdout, done.stderr.decode()


# ---- letters

ASCII = {"PYTHONIOENCODING": "ascii"}
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}


@pytest.mark.parametrize("environment", [ASCII, {"PYTHONIOENCODING": "latin-1"}, C_LOCALE])
def test_letters_that_the_output_lacks_are_replaced(folder, environment):
    code, out, err = shell(folder, "rbal advise t.csv --label y --drop é東😀", **environment)
    assert (code, err) == (cli.OK, "")
    text = out.decode("latin-1")
    assert " ... 0." in text
    names = re.findall(r"'[^'\n]*\\U0001f600'", text)
    assert names
    assert {ast.literal_eval(name) for name in names} == {"é東😀"}  # the code is still right


def test_json_is_json_in_every_encoding(folder):
    line = "rbal advise FIXED --drop é東😀 --json"
    (_, plain, _), (_, ascii_only, _) = shell(folder, line, PYTHONIOENCODING="utf-8"), shell(folder, line, **ASCII)
    assert json.loads(ascii_only.decode("ascii")) == json.loads(plain)


def test_marks_of_the_report_have_plain_forms():
    text = "“0.5 ± 0.1” … 0.6 – é \udcff"
    stream = io.TextIOWrapper(io.BytesIO(), "ascii", errors="rbal")
    streams.codecs.register_error("rbal", streams.plain)
    stream.write(text)
    stream.flush()
    assert stream.buffer.getvalue() == rb'"0.5 +- 0.1" ... 0.6 - \xe9 \udcff'


# ---- full and closed streams


@pytest.fixture
def full_device(tmp_path):
    """A device that is full, of our own: what is replaced by mistake, as root, must not be that of the machine."""
    try:
        os.mknod(tmp_path / "full", 0o666 | stat.S_IFCHR, os.makedev(1, 7))
        with open(tmp_path / "full", "rb"):
            return tmp_path / "full"
    except OSError as error:
        pytest.skip(f"no device can be made here ({error.strerror})")


def test_full_devices_are_one_line(folder, full_device):
    full = "rbal: standard output cannot be written: No space left on device\n"
    assert shell(folder, f"rbal advise FIXED > {full_device}") == (cli.BAD_INPUT, b"", full)
    assert shell(folder, f"rbal advise FIXED --json > {full_device}") == (cli.BAD_INPUT, b"", full)
    assert shell(folder, f"rbal advise FIXED --html {full_device} > {full_device}") == (cli.BAD_INPUT, b"", full)
    code, out, err = shell(folder, f"rbal advise FIXED --html {full_device}")
    assert (code, err) == (cli.BAD_INPUT, f"rbal: --html {full_device} cannot be written: No space left on device\n")
    assert LAST in out.decode()  # the advice is not lost
    assert shell(folder, f"rbal advise none.csv --label y 2> {full_device}") == (cli.BAD_INPUT, b"", "")


def test_who_reads_only_the_beginning_gets_it(folder):
    for line in ("rbal advise FIXED | head -1", "rbal advise --help | head -1", "rbal advise FIXED | true"):
        code, out, err = shell(folder, line)
        assert (code, err) == (cli.OK, "")
        assert out.count(b"\n") == (0 if "true" in line else 1)


def test_closed_streams_lead_nowhere(folder):
    for closed in ("<&-", "2>&-"):
        code, out, err = shell(folder, f"rbal advise FIXED {closed}")
        assert (code, err) == (cli.OK, "")
        assert out.decode().splitlines()[-1] == LAST
    assert shell(folder, "rbal advise FIXED --html p.html <&- >&- 2>&-") == (cli.OK, b"", "")
    assert (folder / "p.html").read_text(encoding="utf-8").endswith("</html>\n")
    assert shell(folder, "rbal advise - --label y <&-") == (cli.BAD_INPUT, b"", "rbal: 'standard input' is empty\n")
    assert shell(folder, "rbal advise 2>&-") == (cli.USAGE, b"", "")


# ---- the page


def test_a_page_goes_to_standard_output(folder):
    for line in ("rbal advise FIXED --html /dev/stdout | cat", "rbal advise FIXED --html /dev/stdout > o && cat o"):
        code, out, err = shell(folder, line)
        assert (code, err) == (cli.OK, "")
        assert out.startswith(b"<!doctype html>")
        assert out.decode().splitlines()[-1] == LAST


@pytest.mark.parametrize(
    ("page", "says"),
    [("", "it has no name"), ("none/p.html", "no such folder"), (".", "it is a folder"), ("t.csv/p", "no such folder")],
)
def test_a_place_without_a_page_is_found_before_the_run(folder, monkeypatch, capsys, page, says):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("rbal.advice.advise_file", lambda *args, **options: pytest.fail("the table was read"))
    assert cli.main(["advise", "t.csv", "--label", "y", "--html", page]) == cli.BAD_INPUT
    assert capsys.readouterr().err.split() == f"rbal: --html {page} cannot be written: {says}".split()


def test_a_folder_that_nothing_can_be_written_to(folder, monkeypatch, capsys):
    monkeypatch.setattr("rbal.advice.advise_file", lambda *args, **options: pytest.fail("the table was read"))
    place = "/proc/p.html"  # not even root writes there
    if not os.path.isdir("/proc"):
        pytest.skip("no folder here that root cannot write to")
    assert cli.main(["advise", str(folder / "t.csv"), "--label", "y", "--html", place]) == cli.BAD_INPUT
    assert capsys.readouterr().err.startswith(f"rbal: --html {place} cannot be written: ")


def test_a_long_name_of_a_page_is_a_name(tmp_path):
    page = tmp_path / ("a" * 245 + ".html")
    assert streams.write_page(page, "<p>") is None
    assert [entry.name for entry in tmp_path.iterdir()] == [page.name]


def test_errors_escape_what_their_stream_cannot_encode(folder):
    code, _, err = shell(folder, "rbal advise FIXED $'\\xff'", PYTHONIOENCODING="utf-8:strict", LC_ALL="C.UTF-8")
    assert code == 2  # of argparse
    assert r"unrecognized arguments: \udcff" in err
