"""Advice on tables in memory and in files, and the command in this process, with nasty tables, files and options."""

import contextlib
import io
import json

import numpy as np
import pytest
from files import DAMAGE, file, rows, stored
from hypothesis import strategies as st
from nasty import Case, hold
from objects import GLOBALS, OBJECTS

import rbal
from rbal import cli

pytestmark = pytest.mark.fuzz
AREA = "advice"


def command(path, words):
    """Exit code, output and errors of the command, in this process."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(["advise", str(path), *words])
        except SystemExit as error:
            code = error.code
    out.flush(), err.flush()
    return code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()


def resumed(store, grid):
    """What a run makes of a store."""
    return rbal.experiments.run(OBJECTS["trial"](), grid, trials=1, store=store, n_jobs=1, progress=False)


GLOBALS |= {"file": file, "stored": stored, "command": command, "resumed": resumed}
OBJECTS |= {
    "FRAME": lambda: rows().drop(columns="y"),
    "WORDS": lambda: rows()["y"],
    "ADVICE": lambda: rbal.advise(rows().drop(columns="y"), rows()["y"], C=1.0, kernel="linear", train="none", progress=False),
    "THREE": lambda: rbal.advise(_rows_of_three(), np.arange(60) % 3, C=1.0, kernel="linear", train="none", progress=False),
}  # fmt: skip


def _rows_of_three():
    return np.random.default_rng(0).normal(size=(60, 4)) + np.eye(4)[np.arange(60) % 3]


def advised(advice, call):
    """Intervals hold their predictions, rates are rates, and all of it can be told."""
    table = advice.table
    predicted, low, high = (np.asarray(table[name], float) for name in ("predicted", "low", "high"))
    assert np.all((low <= predicted + 1e-9) & (predicted <= high + 1e-9)), "an interval does not hold its prediction"
    if advice.metric in ("ba", "acc", "auc"):
        assert np.all((predicted >= 0.0) & (predicted <= 1.0))
    json.loads(advice.to_json())
    assert advice.explain()
    assert "<html" in advice.to_html()


def ended(found, call):
    """The command ends with a code of its list, and says why in one line."""
    code, out, err = found
    assert code in (cli.OK, cli.BAD_INPUT, cli.USAGE, cli.DISAGREE), f"exit code {code}"
    assert "Traceback" not in err
    assert "Warning" not in err, err[-300:]
    if code in (cli.OK, cli.DISAGREE):
        assert out
        if "--json" in call.values.get("words", ()):
            json.loads(out)
    elif code == cli.BAD_INPUT:
        assert err.startswith("rbal: "), err[:200]
        assert len(err.strip().splitlines()) == 1, err[:300]


FAST = {"C": ("1.0", "0.1"), "kernel": ("'linear'",), "train": ("'none'",), "progress": ("False",)}
OPTIONS = {
    "metric": ("'ba'", "'f1'", "'auc'"), "moments": ("'auto'", "'pooled'", "'width'"), "loss": ("'hinge'", "'logistic'"), "costs": ("None",),
    "positive": ("None",), "categorical": ("'auto'", "[]"), "keep": ("()",), "standardize": ("True", "False"), "check": ("False",),
    "folds": ("2",), "repeats": ("1",), "draws": ("None", "10"), "level": ("0.9", "0.5"), "model_error": ("None", "0.1"), "n_jobs": ("1",),
    "random_state": ("0",),
}  # fmt: skip
READING = {
    "drop": ("()", "['city']"), "sep": ("None", "','", "';'"), "encoding": ("None", "'utf-8'", "'latin-1'"), "decimal": ("None", "'.'", "','"),
    "thousands": ("None", "','"), "na": ("()", "['-999']"),
}  # fmt: skip
FREE = tuple(OPTIONS) + tuple(READING)
DAMAGES = st.lists(st.tuples(st.sampled_from(sorted(DAMAGE)), st.integers(0, 99)), max_size=3)
FILES = DAMAGES.map(lambda found: f"file({', '.join(map(repr, found))})") | st.just("file(name='t.parquet')")
STORES = DAMAGES.map(lambda found: f"stored({', '.join(map(repr, found))})")
TEXTS = st.sampled_from(
    [
        "",
        "y",
        "age",
        "nan",
        "-1",
        "0",
        "1e400",
        "1",
        "best",
        "a,b",
        ";",
        "\t",
        "\x00",
        "é",
        "\ud800",
        "yes",
        "utf-16",
        "../x",
        "-",
        "--",
        "x" * 3000,
    ]
)
NAMES = ("label", "positive", "metric", "costs", "C", "kernel", "moments", "loss", "categorical", "drop", "keep", "no-standardize", "sep", "encoding",
         "decimal", "thousands", "na", "at-precision", "at-recall", "train", "seed", "json", "html", "quiet")  # fmt: skip
PAIR = st.tuples(st.sampled_from(NAMES).map("--{}".format), TEXTS | st.none())
EXTRA = (st.lists(PAIR, max_size=1) | st.lists(PAIR, max_size=3)).map(
    lambda pairs: [word for pair in pairs for word in pair if word is not None]
)
WORDS = st.builds(
    lambda extra: repr(["--label", "y", "--C", "1", "--kernel", "linear", "--train", "none", *extra]), EXTRA
)

CASES = [
    Case("rbal.advise", {"X": ("X", "FRAME"), "y": ("y", "WORDS")} | FAST | OPTIONS, advised, optional=FREE, words=("column", "columns", "labels", "label", "rows"), covers=("advice.Advice",), examples=30),
    Case("rbal.advise", {"X": ("X",), "y": ("np.arange(40) % 3",)} | FAST | OPTIONS, optional=FREE, words=("column", "columns", "label", "labels", "rows"), covers=("advice.ManyAdvice",), examples=8),
    Case("rbal.advise", {"X": ("X", "FRAME"), "y": ("y",), "progress": ("False",), "train": ("'little'", "'none'", "'check'"), "folds": ("2",), "repeats": ("1",), "n_jobs": ("1",)}, optional=(), words=("column", "columns", "label", "labels", "rows"), examples=3),
    Case("rbal.advice.advise_file", {"path": FILES, "label": ("'y'", "'city'")} | FAST | OPTIONS | READING, advised, optional=FREE, words=("column", "label", "labels", "rows", "table.csv", "t.parquet", "file"), errors=(ValueError, TypeError, OSError), examples=40),
    Case("rbal.advice.read_table", {"path": FILES, "label": ("'y'", "'city'"), "categorical": OPTIONS["categorical"]} | READING, covers=("advice.read_table",), words=("column", "label", "labels", "rows", "table.csv", "t.parquet", "file"), errors=(ValueError, TypeError, OSError), examples=20),
    Case("command", {"path": FILES, "words": WORDS}, ended, errors=(), fixed=("words",), covers=("cli.main", "advice.advise_file"), examples=80),
    Case("resumed", {"store": STORES, "grid": ("{'n': [1, 2]}", "{'n': [1, 2, 3]}")}, errors=(ValueError, TypeError, OSError), examples=60),
    Case("ADVICE.threshold_for", {"recall": ("0.9",), "precision": ("None",), "costs": ("None",)}, nan=True, covers=("advice.Advice.threshold_for",)),
    Case("ADVICE.bags", {"members": ("(1, 3)",)}, covers=("advice.Advice.bags",), examples=10),
    Case("ADVICE.C_of", {"row": ("0", "ADVICE.best", "'class weights'")}, covers=("advice.Advice.C_of",)),
    Case("ADVICE.pipeline", {"random_state": ("0", "None"), "members": ("None", "3"), "probabilities": ("False", "True"), "share": ("None", "0.3")}, covers=("advice.Advice.pipeline",)),
    Case("ADVICE.sampler", {"random_state": ("0", "None")}, covers=("advice.Advice.sampler",)),
    Case("ADVICE.plot", {"axes": ("None",)}, covers=("advice.Advice.plot",), examples=10),
    *(Case(f"{owner}.{name}", {}, covers=(f"advice.{kind}.{name}",), examples=1) for owner, kind in (("ADVICE", "Advice"), ("THREE", "ManyAdvice")) for name in ("explain", "to_html", "to_json")),
    Case("THREE.pipeline", {"random_state": ("0", "None")}, covers=("advice.ManyAdvice.pipeline",)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.target)
def test_named_errors_or_sound_answers(case):
    hold(case)
