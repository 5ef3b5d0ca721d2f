"""The study of the error bars of log Z: what its stored table claims, and a run of small machines."""

import numpy as np
import pytest

from rbal_book import studies
from rbal_book.studies import _log_z


@pytest.fixture
def table():
    return studies.stored("log_z")


def test_six_machines_and_ten_seeds(table):
    assert list(table.columns) == _log_z.COLUMNS
    assert list(table.machine.unique()) == list(_log_z.MACHINES)
    for _, part in table.groupby("machine"):
        assert list(part.seed) == list(_log_z.SEEDS)
        assert part.reference.nunique() == part.reference_error.nunique() == 1
    exact = table[table.reference_error == 0.0]
    assert exact.machine.nunique() >= 4
    assert (exact.error > 0.0).all()  # annealed, not enumerated


def test_intervals_of_reliable_values_hold(table):
    np.testing.assert_array_equal(table.covered, _log_z.covered(table))
    reliable = table[table.reliable]
    assert reliable.covered.mean() >= 0.9
    assert _log_z.covered(reliable, with_reference=False).mean() >= 0.9
    assert reliable[reliable.reference_error == 0.0].covered.mean() >= 0.9
    assert len(reliable) >= len(table) / 2


def test_what_is_far_off_is_never_called_reliable(table):
    far = (table.value - table.reference).abs() > 4.0 * np.hypot(table.error, table.reference_error)
    assert not (far & table.reliable).any()


@pytest.fixture
def small(monkeypatch):
    """Two machines of a few units, and little annealing."""
    states = np.random.default_rng(0).integers(0, 2, size=(40, 5), dtype=np.int8)
    params = {"n_hidden": 3, "n_epochs": 2, "random_state": 0}
    monkeypatch.setattr(_log_z, "MACHINES", {name: (lambda: states, params) for name in ("exact", "annealed")})
    monkeypatch.setattr(_log_z, "SEEDS", range(2))
    monkeypatch.setattr(_log_z, "defaults", lambda: {"n_chains": 20, "n_betas": 20, "max_betas": 100})


def test_a_run_goes_on_where_it_stopped(small, tmp_path, monkeypatch, capsys):
    store, out = tmp_path / "store", tmp_path / "out"
    known = iter([True] * 3)  # asked twice by estimates of the first machine, and by its reference; not of the second
    monkeypatch.setattr(_log_z, "enumerable", lambda machine: next(known, False))
    _log_z.run(store, out)
    table = studies.stored("log_z", out)
    assert list(table) == _log_z.COLUMNS
    assert table.machine.tolist() == ["exact"] * 2 + ["annealed"] * 2
    assert (table.units == "5 x 3").all()
    assert table.seed.tolist() == [0, 1] * 2
    assert (table.reference_error > 0).tolist() == [False] * 2 + [True] * 2
    assert table.covered.all()
    assert "rms pull" in capsys.readouterr().out

    before = (out / "log_z.csv").read_bytes()
    (out / "log_z.csv").unlink()
    for name in ("annealed", "bridged", "enumerated"):  # any further computing would fail
        monkeypatch.setattr(_log_z, name, None)
    known = iter([True])
    _log_z.run(store, out)
    assert (out / "log_z.csv").read_bytes() == before
