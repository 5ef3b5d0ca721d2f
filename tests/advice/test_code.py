"""The code that the command prints is the analysis: it reads the file in the same way, and gives the same numbers."""

import gzip
import io
import re
import sys
from html import unescape

import numpy as np
import pandas as pd
import pytest

import rbal
import rbal.advice
from rbal import cli
from rbal._support.frames import TableError
from rbal.advice import _reading, _text, advise_file, read_table

CHEAP = "--C", "0.1,1", "--kernel", "linear", "--moments", "pooled", "--train", "none"


def table(n=120, classes=("yes", "no"), seed=0):
    """Numbers, whole numbers, levels and labels."""
    rng = np.random.default_rng(seed)
    y = rng.choice(len(classes), n, p=np.arange(1, len(classes) + 1) / np.arange(1, len(classes) + 1).sum())
    X = rng.normal(size=(n, 3)) * [1.0, 10.0, 2e4] + [0.0, 0.0, 3e4] + 0.8 * y[:, None] * [1.0, 10.0, 2e4]
    frame = pd.DataFrame(X.round(1), columns=list("abc"))
    frame["a"] = X[:, 0].round(2)
    return frame.assign(
        whole=rng.integers(0, 50, n), kind=rng.choice(["u", "v", "w"], n), y=np.array(classes, dtype=object)[y]
    )


def csv(frame, encoding="utf-8", **options):
    return frame.to_csv(index=False, **options).encode(encoding)


def foreign(frame, decimal, thousands):
    def written(value):
        return f"{value:,.2f}".replace(",", "\0").replace(".", decimal).replace("\0", thousands)

    return frame.assign(**{name: frame[name].map(written) for name in "abc"})


def with_gaps(frame, word):
    frame = frame.astype({"whole": object})
    frame.loc[[3, 8, 60], "whole"], frame.loc[[5, 9], "kind"] = word, word
    return frame


def parquet(frame):
    out = io.BytesIO()
    frame.to_parquet(out)
    return out.getvalue()


EVIL = {"a": 'it\'s \\"a"', "b": "b\nc", "kind": "\u202e']; raise SystemExit #", "y": "\\'y\t"}
CASES = {
    "plain": (csv(table()), ()),
    "semicolon": (csv(table(), sep=";"), ()),
    "tab": (csv(table(), sep="\t"), ()),
    "a separator of one's own": (csv(table(), sep="~"), ("--sep", "~")),
    "decimal comma": (csv(foreign(table(), ",", ""), sep=";"), ()),
    "decimal comma and thousands": (csv(foreign(table(), ",", "."), sep=";"), ()),
    "thousands": (csv(foreign(table(), ".", ",")), ()),
    "marks that are given": (csv(foreign(table(), ",", " ")), ("--decimal", ",", "--thousands", " ")),
    "two conventions": (csv(table().assign(b=lambda t: t["b"].map("{:.2f}".format).str.replace(".", ","))), ()),
    "unicode minus": (csv(table()).replace(b",-", ",−".encode()), ()),
    "gzip": (gzip.compress(csv(table())), ()),
    "byte order mark": (csv(table(), "utf-8-sig"), ()),
    "latin-1": (csv(table(classes=("größer", "no")), "latin-1"), ("--encoding", "latin-1")),
    "utf-16": (csv(table(), "utf-16"), ("--encoding", "utf-16")),
    "question marks": (csv(with_gaps(table(), "?")), ()),
    "a word for missing": (csv(with_gaps(table(), "-999")), ("--na", "-999")),
    "empty cells": (csv(with_gaps(table(), None)), ()),
    "parquet": (parquet(table()), ()),
    "parquet with gaps and truth values": (
        parquet(with_gaps(table(), None).assign(
            whole=lambda t: t["whole"].astype("Int64"), told=lambda t: (t["a"] > 0).astype("boolean").mask(t["b"] > 9)
        )),
        ("--na", "u"),
    ),
    "numbers as labels": (csv(table(classes=(1, 0))), ()),
    "other numbers as labels": (csv(table(classes=(2.5, -1))), ("--positive", "-1")),
    "truth values": (csv(table(classes=(True, False)).assign(told=lambda t: t["a"] > 0)), ()),
    "leading zeros": (csv(table(classes=("01", "02"))), ()),
    "categories that are numbers": (csv(table().assign(code=lambda t: t["whole"] % 4)), ("--categorical", "code")),
    "keep": (csv(table().assign(id=range(120))), ("--keep", "id")),
    "an index": (csv(table().assign(id=range(120))), ()),
    "drop": (csv(table()), ("--drop", "b", "kind")),
    "seed": (csv(table()), ("--seed", "7")),
    "positive": (csv(table()), ("--positive", "no")),
    "no standardize": (csv(table()), ("--no-standardize", "--loss", "square")),
    "costs": (csv(table()), ("--metric", "cost", "--costs", "5", "1")),
    "a little training": (csv(table()), ("--train", "little", "--seed", "5")),
    "two columns of one name": (csv(table()).replace(b"b,", b"a,", 1), ()),
    "evil names": (csv(table(classes=("'y\"", "\\n")).rename(columns=EVIL)), ("--label", EVIL["y"])),
    "three classes": (csv(table(classes=("x", "y", "z"))), ("--seed", "2")),
    "five classes": (csv(table(300, classes=(1, 2, 3, 4, 5)), sep=";"), ()),
    "three classes of parquet": (parquet(table(classes=("x", "it's", "z"))), ("--drop", "kind", "--keep", "a")),
}  # fmt: skip
MANY = ("three classes", "five classes", "three classes of parquet")
ON_A_PAGE = ("decimal comma", "evil names", "three classes of parquet")


@pytest.fixture
def said(monkeypatch):
    """All advice that the command gave."""
    given = []

    def kept(*arguments, **options):
        given.append(advise_file(*arguments, **options))
        return given[-1]

    monkeypatch.setattr(rbal.advice, "advise_file", kept)
    return given


def assert_same(one, two):
    """Compare what was read, what is predicted and what is recommended."""
    pd.testing.assert_frame_equal(one.table, two.table, rtol=1e-9)
    assert one.best == two.best
    assert str(one.pipeline(0).get_params()) == str(two.pipeline(0).get_params())
    assert [one.data.names, one.data.imputed, one.data.dropped] == [two.data.names, two.data.imputed, two.data.dropped]
    if getattr(one, "many", False):
        pd.testing.assert_frame_equal(one.data.frame, two.data.frame)
        assert one.data.classes == two.data.classes
    else:
        pd.testing.assert_frame_equal(one.data.rows[0], two.data.rows[0])
        assert (one.data.positive, one.data.n_pos) == (two.data.positive, two.data.n_pos)


@pytest.mark.parametrize("case", CASES)
def test_the_printed_code_is_the_analysis(case, said, tmp_path, monkeypatch, capsys):
    content, options = CASES[case]
    suffix = ".csv.gz" if case == "gzip" else ".parquet" if "parquet" in case else ".csv"
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"my 'table'{suffix}").write_bytes(content)
    cheap = ("--C", "1", "--train", "none") if case in MANY else CHEAP
    page = ("--html", "r.html") if case in ON_A_PAGE else ()
    words = ["advise", f"my 'table'{suffix}", "--label", "y", *cheap, *options, *page, "--quiet"]
    assert cli.main(words) == cli.OK
    lines = [line[2:] for line in capsys.readouterr().out.split("\n")]
    printed = "\n".join(line for line in lines if line.startswith(("import", "X, y", "advice", "model")))
    if page:
        (code,) = re.findall(r"<pre><code>(.*?)</code></pre>", (tmp_path / "r.html").read_text("utf-8"), re.DOTALL)
        code = [line for line in unescape(code).split("\n") if not line.startswith("advice.best")]
        assert code == printed.split("\n")
    names = {}
    exec(printed, names)
    assert_same(names["advice"], said[0])
    model = said[0].pipeline(names["advice"].asked.get("random_state", 0)).fit(names["X"], names["y"])
    np.testing.assert_array_equal(model.predict(names["X"]), names["model"].predict(names["X"]))


def test_what_is_recognised_is_spelled_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(csv(foreign(table(), ",", "."), sep=";"))
    assert _reading.read(path, "y").source.options == {"sep": ";", "decimal": ",", "thousands": "."}
    X, y = read_table(path, "y", sep=";", decimal=",", thousands=".")
    pd.testing.assert_frame_equal(X, table().drop(columns="y"), check_dtype=False)
    assert y.tolist() == table()["y"].tolist()


def test_code_for_standard_input_asks_for_a_file(monkeypatch, capsys, tmp_path):
    stdin = io.TextIOWrapper(io.BytesIO(csv(table(), sep=";")))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert cli.main(["advise", "-", "--label", "y", *CHEAP, "--quiet", "--html", str(tmp_path / "r.html")]) == cli.OK
    out = capsys.readouterr().out
    assert "# the table came from standard input: save it as a file, and put its path here" in out
    assert "X, y = rbal.advice.read_table('table.csv', 'y', sep=';')" in out
    assert "standard input: save it" in (tmp_path / "r.html").read_text("utf-8")


def test_blocks_of_rows_change_nothing(tmp_path, monkeypatch):
    """More rows than are kept, in many blocks: in a later one truth values have gaps, and levels are numbers."""
    monkeypatch.setattr("rbal.advice._table.KEPT", 100)
    frame = table(900).assign(told=lambda t: t["a"] > 0, late=lambda t: t["kind"]).astype({"told": object})
    frame.loc[700, "told"], frame.loc[600:, "late"] = None, "3"
    path = tmp_path / "t.csv"
    path.write_bytes(csv(frame))
    options = {"C": 1.0, "kernel": "linear", "train": "none", "random_state": 4}
    monkeypatch.setattr(_reading, "BLOCK", 1)
    monkeypatch.setattr(_reading, "LOOKED", 1)
    said = advise_file(path, "y", progress=False, **options)
    X, y = read_table(path, "y")
    assert_same(said, rbal.advise(X, y, **options))
    assert said.data.numeric == ["a", "b", "c", "whole", "told"]


def test_code_of_options_that_numpy_holds():
    frame = table()
    X, y = frame.drop(columns="y"), (frame["y"] == "yes").astype(int)
    options = {"C": np.array([0.1, 1.0]), "level": np.float64(0.8), "positive": np.int64(0), "train": "none"}
    advice = rbal.advise(X, y, kernel="linear", **options)
    names = {"X": X, "y": y}
    exec(_text.code(advice), names)
    assert_same(advice, names["advice"])
    assert names["advice"].level == 0.8


@pytest.mark.parametrize("rows", [0, 3])
def test_a_table_that_cannot_be_read(tmp_path, rows):
    path = tmp_path / "t.csv"
    path.write_bytes(csv(table()[:rows]) if rows == 0 else csv(table()).replace(b"yes", b"", 1))
    with pytest.raises(TableError, match="the table has no rows" if rows == 0 else "the label is missing in 1 rows"):
        read_table(path, "y")
