"""The study of pairs of digits: what its stored table holds, and a run of two small pairs."""

import numpy as np
import pytest

from rbal_book import studies
from rbal_book.studies import _pairs


@pytest.fixture(params=_pairs.TABLES.values())
def table(request):
    return studies.stored(request.param)


def test_every_pair_in_every_cell(table):
    assert list(table.columns) == _pairs.COLUMNS
    pairs = list(zip(table["first"], table["second"], strict=True))
    n = len(pairs) // len(_pairs.CELLS)
    assert pairs == [tuple(pair) for pair in sorted(_pairs.by_lot()[:n]) for _ in _pairs.CELLS]  # none was left out
    assert table.rare.tolist() == list(_pairs.CELLS) * n
    assert table[list(_pairs.KINDS)].stack().between(0.5, 1.0).all()
    assert table.error.between(1e-4, 0.05).all()


def test_400_pixels_have_all_pairs_and_784_many():
    assert len(studies.stored("pairs")) == 3 * len(_pairs.PAIRS)
    assert len(studies.stored("pairs_784")) == 3 * 45


def test_sizes_are_those_of_a_pixel():
    assert [_pairs.sizes_of(rare, 400) for rare in _pairs.CELLS] == [[400, 400], [40, 800], [800, 40]]
    assert [_pairs.sizes_of(rare, 784) for rare in _pairs.CELLS] == [[784, 784], [78, 1568], [1568, 78]]


def test_parts_belong_to_the_digit(table):
    first, second = table.groupby("first").parts_first.unique(), table.groupby("second").parts_second.unique()
    assert (first.map(len) == 1).all()
    for digit in first.index.intersection(second.index):
        assert first[digit][0] == second[digit][0]


def test_summary_is_what_the_table_says(table):
    found = _pairs.summary(table)
    balance = table[table.rare == "none"]
    assert found.one["balance"] == pytest.approx((balance.one - balance.trained).abs().mean())
    assert found["worst against one"]["all"] >= found["worst against one"]["balance"]


def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    rows = {d: rng.normal(size=(60, 6)) + 2.5 * d * np.eye(6)[0] for d in range(3)}

    def load(first, second, side):
        return rows[first][:40], rows[second][:40], np.r_[rows[first][40:], rows[second][40:]], np.repeat([1, -1], 20)

    load.cache_clear = lambda: None
    monkeypatch.setattr(_pairs, "load", load)
    monkeypatch.setattr(_pairs, "PAIRS", [(1, 0), (2, 0)])
    monkeypatch.setattr(_pairs, "CELLS", {"none": (3, 3), "first": (0.5, 5), "second": (5, 0.5)})
    store, out = tmp_path / "store", tmp_path / "out"
    _pairs.run(store, out)
    assert "worst against one" in capsys.readouterr().out
    found = studies.stored("pairs", out)
    assert found[["first", "second"]].drop_duplicates().to_numpy().tolist() == [[1, 0], [2, 0]]
    assert set(found.parts_first) == {1}
    assert found.trained.iloc[3] > found.trained.iloc[0]  # twice as far apart
    before = (out / "pairs.csv").read_bytes()
    (out / "pairs.csv").unlink()
    for name in ("solve", "mixtures", "trained"):  # any further computing would fail
        monkeypatch.setattr(_pairs, name, None)
    _pairs.run(store, out)
    assert (out / "pairs.csv").read_bytes() == before
