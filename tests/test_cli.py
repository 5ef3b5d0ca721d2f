"""The command, as a process of its own."""

import contextlib
import gzip
import io
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rbal import cli
from rbal._support.frames import TableError
from rbal.advice import _reading
from rbal.advice.internal import FileOptions, TableOptions

ROOT = Path(__file__).parents[1]
LABEL = "--label", "y"
FIXED = (
    "--C",
    "1",
    "--kernel",
    "linear",
    "--moments",
    "pooled",
    "--train",
    "none",
)  # the theory alone, of one classifier


def run(*arguments, module="rbal", **kwargs):
    """The command with these arguments; a traceback is never right."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, **kwargs)
    assert "Traceback" not in done.stderr
    return done


def table(n_pos=40, n_neg=200, D=15, seed=0, shift=0.6):
    rng = np.random.default_rng(seed)
    y = np.repeat(["yes", "no"], [n_pos, n_neg])
    X = rng.normal(size=(n_pos + n_neg, D)) + shift * (y == "yes")[:, None]
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(D)]).assign(y=y).sample(frac=1.0, random_state=0)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "table.csv"
    table().to_csv(path, index=False)
    return path


def test_help_imports_nothing_heavy():
    code = "import sys; from rbal import cli; cli.parser().format_help(); print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT).split()
    assert not {"numpy", "scipy", "numba", "sklearn", "pandas"} & set(loaded)


# ---- what it prints


def test_text(path):
    done = run("advise", path, *LABEL, *FIXED)
    assert done.returncode == cli.OK
    assert done.stderr == ""
    assert "240 rows, 15 columns used (15 numeric; 15 features); positive: yes (40), negative: no (200)" in done.stdout
    assert done.stdout.count("threshold moved") >= 5
    assert re.search(r"^\* ", done.stdout, re.MULTILINE)
    assert "Confidence: " in done.stdout
    assert "one standard error" in done.stdout


def test_json_and_page(path, tmp_path):
    page = tmp_path / "report.html"
    done = run("advise", path, *LABEL, "--metric", "f1", "--json", "--html", page, module="rbal.cli")
    found = json.loads(done.stdout)
    assert found["metric"] == "f1"
    assert found["data"]["n_pos"] == 40
    assert len(found["table"]) == 10
    assert all(row["low"] <= row["predicted"] <= row["high"] for row in found["table"])
    assert {"strategy", "threshold"} == set(found["recommended"])
    text = page.read_text(encoding="utf-8")
    HTMLParser().feed(text)
    assert "<svg" in text
    assert not re.search(r"<script|<link|<img|src=|@import|url\(http", text)  # nothing is fetched, nothing runs


def test_check(path, capsys):
    options = "--check", "--repeats", "1", "--folds", "3", "--jobs", "1", "--json"
    code = cli.main(["advise", str(path), *LABEL, *FIXED, *options])
    assert code in (cli.OK, cli.DISAGREE)
    found = json.loads(capsys.readouterr().out)
    assert found["agrees"] is (code == cli.OK)
    assert all(0.3 < row["measured"] <= 1.0 and row["measured_error"] > 0.0 for row in found["table"])


@pytest.mark.parametrize("classes", [2, 3])
def test_by_default_nothing_but_advice_is_printed(tmp_path, classes):
    """With columns that are no numbers and values that are missing: dependencies have nothing to say either."""
    frame = table(60, 240).reset_index(drop=True)
    frame["y"] = np.where((frame["x0"] > 0.7) & (classes == 3), "maybe", frame["y"])
    frame = frame.assign(city=np.resize(["a", "b", None], len(frame)), flag=frame["x1"] > 0.0)
    frame.loc[::17, "x3"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = run("advise", tmp_path / "t.csv", *LABEL)
    assert (done.returncode, done.stderr) == (cli.OK, "")
    assert "Train a " in done.stdout


def test_usage():
    assert run().returncode == cli.USAGE
    assert run("advise", "table.csv").returncode == cli.USAGE
    assert run("advise", "table.csv", *LABEL, "--metric", "luck").returncode == cli.USAGE
    assert run("--version").stdout.startswith("rbal ")


# ---- the whole classifier


def words(capsys, *arguments):
    """What the command prints, in this process."""
    assert cli.main([*map(str, arguments)]) == cli.OK
    return capsys.readouterr().out


def test_the_verdict_comes_first_and_the_next_command_last(path, capsys):
    said = words(capsys, "advise", path, *LABEL, "--C", "best", "--at-precision", 0.9, "--at-recall", 0.8).split("\n")
    assert said[0].startswith("Train a linear SVM, C = ")
    assert said[1].startswith("Expect balanced accuracy 0.")
    assert "doing nothing gives 0." in said[1]
    assert sum(line.startswith(("At a precision of 0.9: ", "At a recall of 0.8: ")) for line in said) == 2
    assert f"  X, y = rbal.advice.read_table({str(path)!r}, 'y')" in said
    command = f"rbal advise {path} --label y --C best --at-precision 0.9 --at-recall 0.8 --check"
    assert said[-3:-1] == ["Next, to see whether theory and data agree:", f"  {command}"]
    assert "\x1b" not in "".join(said)


def test_lines_are_no_wider_than_the_terminal(path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "72")
    said = words(capsys, "advise", path, *LABEL, "--train", "none").split("\n")
    prose = [line for line in said if line and not line.startswith("  ")]
    assert max(map(len, prose)) <= 72
    assert " ".join(prose).count("doing nothing gives 0.") == 1


@pytest.mark.parametrize(
    ("terminal", "environment", "bold"),
    [
        (True, {}, True), (False, {}, False), (True, {"NO_COLOR": "1"}, False), (True, {"TERM": "dumb"}, False),
        (True, {"NO_COLOR": ""}, True),
    ],
)  # fmt: skip
def test_bold_is_for_terminals(path, capsys, monkeypatch, terminal, environment, bold):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    said = words(capsys, "advise", path, *LABEL, "--C", "0.1,1", "--quiet")
    assert said.startswith("\x1b[1mTrain") == bold
    assert ("\x1b" in said) == bold


def test_standard_input_is_a_file(path, capsys, monkeypatch):
    from_file = words(capsys, "advise", path, *LABEL, *FIXED, "--json")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    assert words(capsys, "advise", "-", *LABEL, *FIXED, "--json") == from_file
    for nothing, says in ((b"", "standard input' is empty"), (b"a,b\n1,2\n", "no column 'y'")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(nothing)))
        assert cli.main(["advise", "-", *LABEL]) == cli.BAD_INPUT
        assert says in capsys.readouterr().err


def test_json_has_a_version_and_the_thresholds(path, capsys):
    found = json.loads(words(capsys, "advise", path, *LABEL, "--C", "best", "--json", "--at-recall", "0.9"))
    assert found["version"] == 1
    assert found["at_recall"]["recall"] == pytest.approx(0.9)
    assert found["classifier"]["kernel"] == "linear"


@pytest.mark.parametrize(
    "options", [("--C", "some"), ("--C", "1,x"), ("--kernel", "poly"), ("--at-recall", "95"), ("--train", "much")]
)
def test_usage_of_the_whole(options, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["advise", "table.csv", *LABEL, *options])
    assert stopped.value.code == cli.USAGE
    assert options[1] in capsys.readouterr().err


def test_what_is_fixed_is_printed_as_before(path, capsys):
    plain = words(capsys, "advise", path, *LABEL, *FIXED)
    assert plain.startswith("240 rows, 15 columns used")
    more = words(capsys, "advise", path, *LABEL, *FIXED, "--at-precision", "0.9")
    assert more.startswith(plain)
    assert more[len(plain) :].startswith("At a precision of 0.9: threshold ")


def test_help_names_every_exit_code(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["advise", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "0 advice given; 1 the table cannot be used; 2 wrong usage; 3 --check found" in text


# ---- files: the ways to write the same table


def read(path, **options):
    file = {name: options.pop(name) for name in vars(FileOptions()) if name in options}
    return _reading.read(path, "y", TableOptions(**options), FileOptions(**file))


WAYS = ("semicolon", "tab", "gzip", "latin-1", "utf-16", "bom", "blank lines", "quotes", "crlf")


@pytest.mark.parametrize("how", WAYS)
def test_the_same_table_in_another_file(path, tmp_path, how):
    frame, options, other = pd.read_csv(path), {}, tmp_path / "other.csv"
    text = frame.to_csv(index=False)
    if how == "gzip":
        other = tmp_path / "other.csv.gz"
        other.write_bytes(gzip.compress(text.encode()))
    elif how == "semicolon":
        other.write_text(frame.to_csv(index=False, sep=";"))
    elif how == "tab":
        other.write_text(frame.to_csv(index=False, sep="\t"))
    elif how in ("latin-1", "utf-16"):
        other.write_text(text.replace("x0", "é"), encoding=how)
        options["encoding"] = how
    elif how == "bom":
        other.write_text(text, encoding="utf-8-sig")
    elif how == "blank lines":
        other.write_text(text.replace("yes\n", "yes\n\n", 5))
    elif how == "quotes":
        other.write_text(frame.assign(y=frame["y"]).to_csv(index=False, quoting=1))
    else:
        other.write_bytes(text.replace("\n", "\r\n").encode())
    one, two = read(path).sample, read(other, **options).sample
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8)


def test_blocks_do_not_matter(path, monkeypatch):
    whole = read(path).sample
    monkeypatch.setattr(_reading, "BLOCK", 1)  # 100 rows at a time
    monkeypatch.setattr("rbal.advice._table.MOST_FLOATS", 1000)  # rows are summed up, not held
    for a, b in zip(whole, read(path).sample, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-12)


def test_parquet(path, tmp_path):
    pd.read_csv(path).to_parquet(tmp_path / "t.parquet")
    for a, b in zip(read(path).sample, read(tmp_path / "t.parquet").sample, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_columns_that_are_no_features(path):
    data = read(path, drop=["x3", "x4"])
    assert data.D == 13
    assert "x3" not in data.columns


# ---- bad input: one line that says what to do, and exit code 1


def bad(*arguments, says, apart=False):
    """The error, of a process ``apart`` or, which is quicker, of this one."""
    arguments = ["advise", *map(str, arguments), "--quiet"]
    if apart:
        done = run(*arguments)
        code, out, err = done.returncode, done.stdout, done.stderr
    else:
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            code = cli.main(arguments)
        out, err = out.getvalue(), err.getvalue()
    assert code == cli.BAD_INPUT
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith("rbal: ")
    assert says in line, line


def write(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def csv_of(**columns):
    return pd.DataFrame({**{"x": np.arange(20.0)}, "y": ["a", "b"] * 10, **columns}).to_csv(index=False)


def test_no_such_file(tmp_path):
    bad(tmp_path / "none.csv", *LABEL, says="there is no file", apart=True)


def test_folder(tmp_path):
    bad(tmp_path, *LABEL, says="is not a file")


def test_no_such_column(path):
    bad(path, "--label", "target", says="there is no column 'target' to be the label: there are 'x0', 'x1'")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("\n\n", "holds no table"),
        ("x,y\n", "no rows"),
        (csv_of(y=["a", "b", "c"] * 6 + ["d", "d"]), "label 'd' has 2 rows"),
        (csv_of(y=["a"] * 20), "always 'a'"),
        (csv_of(x=[1.0] * 20), "no column varies ('x' is constant)"),
        (csv_of(y=["a", None] * 10), "the label is missing in 10 rows"),
        (csv_of(y=["a"] * 17 + ["b"] * 3), "'b' has 3 rows"),
        (csv_of(x=[np.inf] + [1.0] * 19), "column 'x' holds infinite values"),
        (csv_of().replace("5.0,b", "5.0,b,7,8"), "line 7"),
        (csv_of().replace("5.0,b", "5.0,b,7"), "has 3 fields"),
        (csv_of(z=1.0, w=np.arange(20.0)).replace("5.0,b,1.0,5.0", "5.0,b"), "has 2 fields and the header 4"),
        (csv_of().replace("x", "é").encode("latin-1"), "is not in utf-8: name its encoding"),
        (csv_of().encode("utf-16"), "--encoding utf-16"),
        (b"\x00\x01\x02" * 1000, "is a binary file"),
        (b"\x80\x04\x95pickle\n", "is not in utf-8"),
        (b"PAR1garbage", "arquet"),
    ],
    ids=[
        "empty", "blank", "header only", "three labels", "one label", "constant", "label missing", "few", "infinite",
        "long row", "longer by one", "short row", "latin-1", "utf-16", "binary", "pickle", "parquet",
    ],
)  # fmt: skip
def test_bad_table(tmp_path, text, says):
    bad(write(tmp_path, text), *LABEL, says=says)


def test_numbers_that_end(tmp_path, monkeypatch):
    rows = "".join(f"{k},{'ab'[k % 2]}\n" for k in range(300))
    path = write(tmp_path, "x,y\n" + rows + "oops,a\n")
    with pytest.raises(TableError, match="column 'x' holds numbers, but also 'oops'"):
        read(path)
    monkeypatch.setattr(_reading, "BLOCK", 1)
    monkeypatch.setattr(_reading, "LOOKED", 1)  # the beginning has numbers only
    with pytest.raises(TableError, match=r"column 'x' begins with numbers .* but holds 'oops' further on"):
        read(path)


def test_bad_options(path):
    bad(path, *LABEL, "--positive", "maybe", says="positive must be one of the labels, ")
    bad(path, *LABEL, "--categorical", "z", says="there is no column 'z' to be categorical")
    bad(path, *LABEL, "--metric", "cost", says="costs must be two numbers")
    bad(path, *LABEL, "--C", "-1", says="C must be >= 1e-10 and <= 1e+10, got -1")
    bad(path, *LABEL, "--encoding", "klingon", says="there is no encoding 'klingon'")
    bad(path, *LABEL, "--html", path / "no" / "page.html", says="page.html")


def test_ten_gigabytes_of_nothing(tmp_path):
    """A file that is far too large and no table is refused by its beginning."""
    path = tmp_path / "huge.csv"
    with open(path, "wb") as file:
        file.truncate(10_000_000_000)  # takes no space: a hole
    bad(path, *LABEL, says="is a binary file")


def test_a_line_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(_reading, "LINE", 1000)
    with pytest.raises(TableError, match="no line end"):
        read(write(tmp_path, "x" * 2000))


def test_nothing_in_a_file_is_obeyed(tmp_path, capsys):
    """Names that are markup or terminal codes come out as text."""
    frame = table().rename(columns={"x0": "<script>alert(1)</script>", "x1": "\x1b[31mred"})
    frame["<script>alert(1)</script>"] = 1.0
    frame.loc[frame.index[0], "\x1b[31mred"] = np.nan
    path, page = tmp_path / "t.csv", tmp_path / "t.html"
    frame.to_csv(path, index=False)
    assert "\x1b" not in words(capsys, "advise", path, *LABEL, *FIXED, "--html", page)
    assert "<script" not in page.read_text(encoding="utf-8")
    assert "&lt;script&gt;" in page.read_text(encoding="utf-8")


def test_the_readme_shows_what_is_printed(tmp_path):
    """Its two commands, in a folder of their own; numbers may differ in the last digit on another machine."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (make,) = re.findall(r'^python -c "(.*)"$', readme, re.MULTILINE)
    (command,) = re.findall(r"^rbal (advise .*)$", readme, re.MULTILINE)
    (shown,) = re.findall(r"```console\n(.*?)```", readme, re.DOTALL)
    subprocess.run([sys.executable, "-c", make], check=True, cwd=tmp_path)
    printed = run(*command.split(), cwd=tmp_path).stdout
    number = re.compile(r"\d+\.\d+|\d+(?=%)")
    assert number.sub("#", " ".join(shown.split())) == number.sub("#", " ".join(printed.split()))
    pairs = zip(number.findall(shown), number.findall(printed), strict=True)
    assert all(abs(float(a) - float(b)) <= (0.005 if "." in a else 3) for a, b in pairs)
