"""The study of kernel machines on tables: what its stored table claims, and a run of small tables."""

import numpy as np
import pandas as pd
import pytest

from rbal_book import studies
from rbal_book.studies import _kernels
from rbal_book.studies.tables import listed


@pytest.fixture
def table():
    return studies.stored("kernels")


def test_every_table_for_design_and_no_other(table):
    assert list(table.columns) == _kernels.COLUMNS
    known = listed()
    assert set(table.table) == set(known.index[known.role == "design"])
    for _, part in table.groupby(["C", "remedy"]):
        assert part.groupby("table").fold.apply(list).map(lambda folds: folds == [0, 1, 2, 3, 4]).all()
    assert (table.low <= table.high).all()


def test_how_far_predictions_are_off(table):
    """What the chapter says, at C = 1: below 0.025 with class weights and 0.035 as is, with a width for each class."""
    off = _kernels.errors(table, told="widened")["size"]
    assert off[1.0, "class weights"] <= 0.025
    assert off[1.0, "as is"] <= 0.035


def test_errors_are_of_means_over_folds():
    rows = [("a", 0, 0.6, 0.55, 0.65, 0.5), ("a", 1, 0.6, 0.55, 0.65, 0.7), ("b", 0, 0.9, 0.88, 0.92, 0.7)]
    rows += [("b", 1, 0.9, 0.88, 0.92, 0.72)]
    part = pd.DataFrame(rows, columns=["table", "fold", "predicted", "low", "high", "trained"])
    part["C"], part["remedy"] = 1.0, "as is"
    found = _kernels.errors(part).loc[1.0, "as is"]
    np.testing.assert_allclose(found[["size", "bias", "tables", "held"]], [0.095, 0.095, 2, 0.5], atol=1e-12)


def test_coverage_is_of_means_over_folds():
    rows = [(name, fold, 1.0, "as is", 0.5, 0.6, ba) for name, bas in (("a", (0.5, 0.6)), ("b", (0.8, 0.82)))
            for fold, ba in enumerate(bas)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["table", "fold", "C", "remedy", "low", "high", "trained"])
    intervals = table[table.fold == 0].drop(columns="trained").assign(high=0.9)
    found = _kernels.coverage(table, intervals).loc[1.0, "as is"]
    np.testing.assert_allclose(found[["sample", "both", "length", "longer"]], [0.5, 1.0, 0.1, 0.4])


def test_intervals_with_the_error_of_the_theory(table):
    """One for each table and setting, on its first fold, and they are longer than those of the sample."""
    intervals = studies.stored("kernel_intervals")
    assert list(intervals.columns) == _kernels.BELIEVED
    assert set(intervals.table) == set(table.table)
    assert len(intervals) == table.table.nunique() * len(_kernels.SETTINGS)
    found = _kernels.coverage(table, intervals)
    assert (found["both"] >= found["sample"]).all()
    assert (found["longer"] > found["length"]).all()


@pytest.fixture
def small(monkeypatch):
    """One table of two Gaussian classes, in place of those that must be fetched."""

    def fold_of(name, repeat, fold):
        rng = np.random.default_rng(fold)
        parts = []
        for n in (30, 200):
            y = np.repeat([1, -1], [n, 2 * n])
            parts.append((rng.normal(size=(3 * n, 6)) + 0.8 * (y > 0)[:, None], y))
        return parts

    monkeypatch.setattr(_kernels, "fold_of", fold_of)
    monkeypatch.setattr(_kernels, "FOLDS", 2)


def test_a_run_goes_on_where_it_stopped(small, tmp_path, monkeypatch, capsys):
    _kernels.run(["some"], tmp_path / "store", tmp_path / "out")
    table = studies.stored("kernels", tmp_path / "out")
    assert list(table.columns) == _kernels.COLUMNS
    assert len(table) == 2 * len(_kernels.SETTINGS)
    assert (table.n_pos == 30).all()
    close = table[table.C == 1.0]
    assert (close.predicted - close.trained).abs().max() < 0.1
    assert (close.widened - close.predicted).abs().max() < 0.05
    more = studies.stored("kernel_intervals", tmp_path / "out")
    assert list(more.columns) == _kernels.BELIEVED
    assert len(more) == len(_kernels.SETTINGS)
    first = table[table.fold == 0].reset_index(drop=True)
    assert (more.value - first.widened).abs().max() < 0.1  # other widths
    assert ((more.low <= more.value) & (more.value <= more.high)).all()
    assert (more.high - more.low > 0.99 * (first.high - first.low)).mean() > 0.8
    monkeypatch.setattr(_kernels, "SVC", None)  # nothing is trained again
    _kernels.run(["some"], tmp_path / "store", tmp_path / "out")
    assert "class weights" in capsys.readouterr().out
