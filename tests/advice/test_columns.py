"""Columns that are no features: indices, leaks, constants and codes."""

import numpy as np
import pandas as pd
import pytest

from rbal._support.frames import TableError
from rbal.advice import _columns, _reading
from rbal.advice.internal import FileOptions, TableOptions, from_arrays


def table(n=300, seed=0):
    """Numbers of several sizes, whole numbers and levels."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.3, "yes", "no")
    X = rng.normal(size=(n, 4)) * [1.0, 10.0, 1e3, 2e4] + [0.0, 0.0, 0.0, 3e4] + 0.5 * (y == "yes")[:, None]
    frame = pd.DataFrame(X, columns=list("abcd")).round({"a": 3, "b": 2, "c": 1, "d": 0})
    return frame.assign(e=rng.integers(0, 50, size=n), kind=rng.choice(["u", "v", "w"], n), y=y)


@pytest.fixture
def write(tmp_path):
    def to(content, name="t.csv", **options):
        path = tmp_path / name
        if isinstance(content, pd.DataFrame):
            content = content.to_csv(index=False, **options)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return to


def read(path, **options):
    file = {name: options.pop(name) for name in vars(FileOptions()) if name in options}
    return _reading.read(path, "y", TableOptions(**options), FileOptions(**file))


def assert_same(one, two):
    assert (one.numeric, one.categorical, one.n_pos, one.n_neg) == (two.numeric, two.categorical, two.n_pos, two.n_neg)
    for a, b in zip(one.sample, two.sample, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)  # last digits depend on the BLAS and on alignment


@pytest.mark.parametrize("order", ["as it is", "shuffled"])
def test_a_saved_index_is_left_out(write, order):
    frame = table() if order == "as it is" else table().sample(frac=1.0, random_state=0)
    data = read(write(frame.to_csv().encode()))
    assert_same(read(write(frame, "plain.csv")), data)
    assert data.dropped == {"Unnamed: 0": "an index: it has no name"}
    assert data.notes == [
        "Column 'Unnamed: 0' is left out as an index: it has no name. If it is a feature, keep it (--keep)."
    ]
    kept = read(write(frame.to_csv().encode()), keep=["Unnamed: 0"])
    assert kept.numeric[0] == "Unnamed: 0"
    assert kept.notes == []


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("step", [1, 7, -1])
def test_a_column_that_counts(write, monkeypatch, start, step):
    frame = table()
    frame.insert(0, "id", start + step * np.arange(300))
    monkeypatch.setattr(_reading, "BLOCK", 1)
    data = read(write(frame))
    assert list(data.dropped) == ["id"]
    assert "'id' is left out as an index" in data.notes[0]
    assert "id" in read(write(frame), keep=["id"]).numeric
    frame.loc[299, "id"] = frame.loc[298, "id"]  # twice
    assert "id" in read(write(frame)).numeric


@pytest.mark.parametrize("step", [1, 7, -1])
@pytest.mark.parametrize("place", [0, 3, 6])
def test_a_column_that_counts_anywhere(write, monkeypatch, place, step):
    """Whatever the order of the rows says about the label, which a table sorted by it shows."""
    frame = table().sort_values("y", ignore_index=True)
    plain = read(write(frame, "plain.csv"))
    frame.insert(place, "id", 1000 + step * np.arange(300))
    monkeypatch.setattr(_reading, "BLOCK", 1)
    data = read(write(frame))
    assert_same(plain, data)
    assert list(data.dropped) == ["id"]
    assert "Column 'id' is left out as an index: " in data.notes[0]
    assert "keep it (--keep)" in data.notes[0]
    assert "id" in read(write(frame), keep=["id"]).numeric


@pytest.mark.parametrize("start", [0, 1, 2**60])
def test_an_array_with_a_column_that_counts(start):
    frame = table().sort_values("y")
    X = np.column_stack([frame[list("abc")], np.arange(300.0)]) if start < 2 else (
        frame[["a", "b"]].assign(id=start + np.arange(300)).to_numpy(object)
    )  # fmt: skip
    data = from_arrays(X, frame["y"])
    assert data.dropped == {X.shape[1] - 1: "an index: it counts the rows"}
    gaps = X.astype(object)
    gaps[5, -1] = None
    assert "index" not in str(from_arrays(gaps, frame["y"]).dropped)


def test_an_index_of_a_frame():
    frame = table().reset_index()
    y = frame.pop("y")
    data = from_arrays(frame, y)
    assert data.dropped == {"index": "an index: it counts the rows"}
    assert "index" in from_arrays(frame, y, TableOptions(keep=["index"])).numeric
    with pytest.raises(TableError, match="there is no column 'id' to keep"):
        from_arrays(frame, y, TableOptions(keep=["id"]))


@pytest.mark.parametrize("how", ["text", "number", "reversed", "levels", "with gaps"])
def test_a_feature_that_is_the_label(write, how):
    frame = table()
    positive = frame["y"] == "yes"
    leak = {
        "text": frame["y"], "number": positive.astype(int), "reversed": 7.5 - 3.0 * positive,
        "levels": np.where(positive, np.where(frame["e"] > 20, "p", "q"), "n"), "with gaps": positive.astype(float),
    }[how]  # fmt: skip
    leaking = frame.assign(leak=leak)
    if how == "with gaps":
        leaking.loc[:20, "leak"] = np.nan
    data = read(write(leaking))
    assert_same(read(write(frame, "plain.csv")), data)
    assert data.dropped == {"leak": "a leak: it tells the label of every row"}
    assert data.notes[0].startswith("LEAK. Column 'leak' tells the label of every row")
    with pytest.raises(TableError, match="column 'leak' tells the label of every row"):
        read(write(leaking), keep=["leak"])
    with pytest.raises(TableError, match="'leak' is a leak: it tells the label of every row"):
        read(write(leaking[["leak", "y"]]))


def test_columns_that_tell_the_label_together():
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.3
    a = rng.normal(size=200)
    assert from_arrays(np.stack([a, 5.0 * y - a], axis=1), y).notes[0].startswith("LEAK? Some columns together")
    assert from_arrays(np.stack([a, 5.0 * y - a**2], axis=1), y).notes == []


def test_an_index_is_watched_block_by_block():
    counting = _columns.Counting()
    for part in ([1, 2, 3], [4, 5]):
        counting.add(pd.Series(part))
    assert counting.why == "an index: it counts the rows"
    counting.add(pd.Series([5]))
    assert counting.why is None
