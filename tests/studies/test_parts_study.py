"""The study of parts: what its stored tables hold, how rows are chosen, and small runs of what is measured."""

import numpy as np
import pytest

import rbal
from rbal_book import studies
from rbal_book.studies import _pairs, _parts


def test_photographs_in_every_cell():
    table = studies.stored("parts/photographs")
    found = list(zip(table["first"], table["second"], table.rare, strict=True))
    assert found == [(*pair, rare) for pair in sorted(_parts.PHOTOGRAPHS) for rare in _pairs.CELLS]
    assert table[list(_pairs.KINDS)].stack().between(0.5, 1.0).all()
    assert table.error.between(1e-4, 0.05).all()


def test_proteins_at_every_share():
    table = studies.stored("parts/proteins")
    assert table.share.tolist() == list(_parts.SHARES)
    assert table[["trained", *_pairs.KINDS]].stack().between(0.5, 1.0).all()


def test_surrogates_of_the_rows_that_were_chosen():
    table = studies.stored("parts/surrogates")
    chosen = [tuple(row.values()) for row in _parts.chosen_rows()]
    assert list(table[["first", "second", "rare", "why"]].itertuples(index=False, name=None)) == chosen
    pairs = studies.stored("pairs").set_index(["first", "second", "rare"])
    rows = pairs.loc[list(table[["first", "second", "rare"]].itertuples(index=False, name=None))]
    # the theory of the same parts again: k-means and rounding of the table are all that may differ
    np.testing.assert_allclose(table.theory, rows.parts, atol=2e-3)
    # the equations are right: machines on Gaussian points of the same parts do as they say
    off = (table.surrogates - table.theory) / np.hypot(table.surrogates_se, 0.5 / 400)
    assert np.abs(off).max() < 5.0
    assert abs(off.mean()) < 4.0 / np.sqrt(len(off))


def test_rows_are_those_that_got_worse():
    rows, pairs = _parts.chosen_rows(), studies.stored("pairs")
    worse = [row for row in rows if row["why"] == "worse"]
    off = pairs[list(_pairs.KINDS)].sub(pairs.trained, axis=0).abs()
    assert len(worse) == np.sum(off.parts - off.one > _parts.WORSE)
    assert len(rows) == len(worse) + _parts.OTHERS
    keys = {(row["first"], row["second"], row["rare"]) for row in rows}
    assert len(keys) == len(rows)


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Two classes of two parts each, 12 features, in the place of digits."""
    rng = np.random.default_rng(3)
    half = rng.normal(size=12) / np.sqrt(12)
    pos, neg = (rng.normal(size=(300, 12)) + sign * half for sign in (1, -1))
    test, y = np.concatenate([rng.normal(size=(200, 12)) + sign * half for sign in (1, -1)]), np.repeat([1, -1], 200)
    monkeypatch.setattr(_pairs, "load", lambda first, second: (pos, neg, test, y))
    monkeypatch.setattr(_pairs, "CELLS", {"none": (1, 1), "first": (1 / 3, 2), "second": (2, 1 / 3)})
    for digit in (0, 1):
        np.save(tmp_path / f"parts_{digit}_12.npy", np.repeat([0, 1], 150))
    return tmp_path, (pos, neg, test, y)


def test_surrogates_of_gaussian_classes_agree_with_all(small):
    # rows that are Gaussian: all four are the theory
    found = _parts.surrogates(np.random.default_rng(4), 0, 1, "none", "lot", str(small[0]))
    for name in ("surrogates", "law", "left_out", "test"):
        assert abs(found[name] - found["theory"]) < 5.0 * found[f"{name}_se"] + 0.05  # twelve features are few


def test_cells_of_any_classes(small):
    _, data = small
    of = _pairs.clouds(*data[:2], np.repeat([0, 1, 0, 1], 150))
    found = _parts.in_cells(np.random.default_rng(5), data, of, 12)
    assert set(found) == {f"{what} {rare}" for what in ("trained", "error", *_pairs.KINDS) for rare in _pairs.CELLS}
    assert found["one none"] == pytest.approx(found["trained none"], abs=0.1)


def test_the_law_of_a_machine():
    rng = np.random.default_rng(6)
    mix = rbal.Mixture.gaussian(rng.normal(size=(3, 8)), rng.uniform(0.5, 2.0, (3, 8)), [1, 1, -1], [0.3, 0.7, 1.0])
    X, y = mix.sample(60, 60, rng)
    clf = rbal.LinearSVM(lam=0.3).fit(X, y)
    Z, t = mix.sample(40_000, 40_000, rng)
    right = clf.predict(Z) == t
    assert _parts.law(mix, clf) == pytest.approx(_parts.balanced(right, t), abs=5.0 * 0.5 / np.sqrt(40_000))
