"""The stored table of tools/log_z_study.py: what is claimed of the intervals of log Z."""

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("log_z_study")


@pytest.fixture
def table(study):
    return pd.read_csv(study.TABLE)


def test_six_machines_and_ten_seeds(study, table):
    assert list(table.columns) == study.COLUMNS
    assert list(table.machine.unique()) == list(study.MACHINES)
    for _, part in table.groupby("machine"):
        assert list(part.seed) == list(study.SEEDS)
        assert part.reference.nunique() == part.reference_error.nunique() == 1
    exact = table[table.reference_error == 0.0]
    assert exact.machine.nunique() >= 4
    assert (exact.error > 0.0).all()  # annealed, not enumerated


def test_intervals_of_reliable_values_hold(study, table):
    np.testing.assert_array_equal(table.covered, study.covered(table))
    reliable = table[table.reliable]
    assert reliable.covered.mean() >= 0.9
    assert study.covered(reliable, with_reference=False).mean() >= 0.9
    assert reliable[reliable.reference_error == 0.0].covered.mean() >= 0.9
    assert len(reliable) >= len(table) / 2


def test_what_is_far_off_is_never_called_reliable(table):
    far = (table.value - table.reference).abs() > 4.0 * np.hypot(table.error, table.reference_error)
    assert not (far & table.reliable).any()


def test_a_store_goes_on_where_it_stopped(study, tmp_path, capsys):
    store = study.Store(tmp_path)
    first = store.result("a", lambda: (1.0, 2.0))
    again = study.Store(tmp_path).result("a", lambda: pytest.fail("it is there"))
    assert again == first
    assert first[:2] == [1.0, 2.0]
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
    assert capsys.readouterr().out.startswith("a [1.0, 2.0]")
