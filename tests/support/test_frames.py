"""Frames of polars and pyarrow, and those of pandas with Arrow's types: the same advice and the same samples."""

import datetime
import decimal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rbal
from rbal.advice.internal import FileOptions, from_arrays, read, to_json

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")

ROOT = Path(__file__).parents[2]
QUICK = {"draws": 4, "C": 1.0, "kernel": "linear", "moments": "pooled", "train": "none"}


def table(n=200, seed=0):
    """Numbers, levels, truth values and gaps in all of them, and dates."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.3, "yes", "no")
    X = pd.DataFrame({
        "a": rng.normal(size=n) + (y == "yes"),
        "b": rng.exponential(size=n) * 1e6 + 1e9,
        "code": rng.integers(0, 40, size=n).astype(float),
        "kind": rng.choice(["red", "green", "blue"], n).astype(object),
        "flag": pd.array(rng.random(n) < 0.4, dtype="boolean"),
        "when": pd.Timestamp("2026-01-01"),
    })  # fmt: skip
    for name in ("a", "code", "kind", "flag"):
        X.loc[rng.random(n) < 0.1, name] = None
    return X, y


def polars(X, lazy=False):
    frame = pl.DataFrame({
        "a": pl.Series([None if np.isnan(v) else v for v in X["a"]]),
        "b": pl.Series(X["b"].to_numpy()),
        "code": pl.Series([None if np.isnan(v) else int(v) for v in X["code"]], dtype=pl.Int16),
        "kind": pl.Series([None if pd.isna(v) else v for v in X["kind"]]).cast(pl.Enum(["red", "green", "blue"])),
        "flag": pl.Series([None if pd.isna(v) else bool(v) for v in X["flag"]]),
        "when": [datetime.date(2026, 1, 1)] * len(X),
    })  # fmt: skip
    return frame.lazy() if lazy else frame


FORMS = {
    "polars": lambda X, y: (polars(X), pl.Series("y", y)),
    "polars categorical": lambda X, y: (
        polars(X).with_columns(pl.col("kind").cast(pl.String).cast(pl.Categorical)),
        pl.Series("y", y).cast(pl.Categorical),
    ),
    "polars text": lambda X, y: (polars(X).with_columns(pl.col("kind").cast(pl.String)), y),
    "polars lazy": lambda X, y: (polars(X, lazy=True), pl.Series("y", y)),
    "pyarrow": lambda X, y: (pa.Table.from_pandas(X), pa.chunked_array([y.tolist()])),
    "pyarrow of polars": lambda X, y: (polars(X).to_arrow(), pa.chunked_array([y.tolist()])),
    "pandas on pyarrow": lambda X, y: (
        X.convert_dtypes(dtype_backend="pyarrow"), pd.Series(y, dtype=pd.ArrowDtype(pa.string())),
    ),
    "pandas on dictionaries": lambda X, y: (
        pa.Table.from_pandas(X.astype({"kind": "category"})).to_pandas(types_mapper=pd.ArrowDtype), pd.Series(y),
    ),
    "pandas with NA": lambda X, y: (X.convert_dtypes(), pd.Series(y, dtype="string")),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_tables_of_any_library_are_one(form):
    X, y = table()
    one, two = from_arrays(X, y), from_arrays(*FORMS[form](X, y))
    assert (two.numeric, two.categorical) == (one.numeric, one.categorical) == (["a", "b", "code", "flag"], ["kind"])
    assert two.imputed == one.imputed
    assert two.dropped == one.dropped == {"when": "dates: turn them into numbers to use them"}
    assert (two.positive, two.negative) == ("yes", "no")
    for a, b in zip(one.sample, two.sample, strict=True):
        np.testing.assert_allclose(np.square(a), np.square(b), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize(
    ("form", "best"),
    [
        *((form, ("best mix", "trained")) for form in FORMS if "lazy" not in form),
        ("polars", ("as is", "trained")),
        *((form, ("class weights", "moved")) for form in ("polars", "pandas on pyarrow")),
    ],
)
def test_pipelines_take_any_table(form, best):
    X, y = table()
    given = FORMS[form](X, y)
    advice = rbal.advise(*given, **QUICK)
    advice.best = best
    answers = np.asarray(advice.pipeline(random_state=0).fit(*given).predict(given[0]))
    usual = rbal.advise(X, y, **QUICK)
    usual.best = best
    theirs = usual.pipeline(random_state=0).fit(X, y).predict(X)
    assert (answers == theirs).mean() > 0.99
    assert to_json(advice).count('"strategy"') == to_json(usual).count('"strategy"')


def test_lazy_frames_are_computed():
    X, y = table()
    one, two = rbal.advise(polars(X), y, **QUICK), rbal.advise(polars(X, lazy=True), pl.Series(y), **QUICK)
    pd.testing.assert_frame_equal(one.table, two.table, check_exact=True)


@pytest.mark.parametrize("how", ["polars", "pyarrow", "pandas on pyarrow", "pandas"])
def test_parquet_of_any_library(tmp_path, how):
    X, y = table()
    path = tmp_path / "t.parquet"
    frame = X.assign(y=y)
    if how == "polars":
        frame = polars(X).with_columns(y=pl.Series(y), price=pl.Series(np.arange(200) % 17).cast(pl.Decimal(10, 2)))
        frame.write_parquet(path)
    elif how == "pyarrow":
        pa.parquet.write_table(pa.Table.from_pandas(frame), path)
    else:
        (frame.convert_dtypes(dtype_backend="pyarrow") if "pyarrow" in how else frame).to_parquet(path)
    data = read(path, "y", file=FileOptions(drop=["price"] if how == "polars" else []))
    one = from_arrays(X, y)
    assert (data.numeric, data.categorical, data.imputed) == (one.numeric, one.categorical, one.imputed)
    for a, b in zip(one.sample, data.sample, strict=True):
        np.testing.assert_allclose(np.square(a), np.square(b), rtol=1e-7, atol=1e-12)
    if how == "polars":
        assert "price" in read(path, "y").numeric
        assert read(path, "y", file=FileOptions(na=["red", "16"])).imputed["price"] == (np.arange(200) % 17 == 16).sum()


def test_columns_of_lists_are_refused(tmp_path):
    X, y = table()
    frame = polars(X).with_columns(list=pl.Series([[1, 2]] * 200), y=pl.Series(y))
    frame.write_parquet(tmp_path / "t.parquet")
    for way in (
        lambda: rbal.advise(frame.drop("y"), y),
        lambda: rbal.advise(frame.drop("y").to_arrow(), y),
        lambda: rbal.advise(frame.drop("y").to_pandas(), y),
        lambda: read(tmp_path / "t.parquet", "y"),
    ):
        with pytest.raises(ValueError, match=r"column 'list' holds values of type .*: take numbers or text from them"):
            way()


def test_missing_labels_of_polars():
    X, y = table()
    with pytest.raises(ValueError, match="the label is missing in 3 rows"):
        rbal.advise(polars(X), pl.Series([None] * 3 + y[3:].tolist()))


def test_moments_of_frames():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 4)), columns=list("abcd"))
    one = rbal.Moments.from_data(X[:20], X[20:])
    for form in (pl.from_pandas, pa.Table.from_pandas, lambda X: X.convert_dtypes(dtype_backend="pyarrow")):
        two = rbal.Moments.from_data(form(X[:20]), form(X[20:]))
        np.testing.assert_allclose(one.delta, two.delta, rtol=1e-12)
        np.testing.assert_allclose(one.eigenvalues, two.eigenvalues, rtol=1e-12)
    with pytest.raises(ValueError, match="must be finite"):
        rbal.Moments.from_data(pl.from_pandas(X[:20]).with_columns(a=pl.lit(None, pl.Float64)), X[20:])


MACHINE = {"n_hidden": 3, "n_epochs": 2, "progress": False}
SAMPLERS = {
    "mix": lambda: rbal.RandomMixSampler(mixing=0.5, random_state=0),
    "informed": lambda: rbal.LikelihoodInformedSampler(rbm=rbal.RBM(**MACHINE), random_state=0),
    "smote": lambda: rbal.RBMSMOTE(rbm=rbal.RBM(**MACHINE), random_state=0),
}


def whole(n=80, seed=0):
    """A frame of polars without gaps, with every type that can be sampled."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < 20).astype(int)
    start = datetime.date(2026, 1, 1)
    frame = pl.DataFrame({
        "x": rng.normal(size=n) + y, "n": rng.integers(0, 5, size=n).astype(np.int8),
        "kind": pl.Series(rng.choice(["u", "v"], n)).cast(pl.Categorical),
        "level": pl.Series(rng.choice(["low", "high"], n)).cast(pl.Enum(["low", "high"])),
        "text": rng.choice(["é", "β"], n), "flag": rng.random(n) < 0.5,
        "day": [start + datetime.timedelta(days=int(d)) for d in rng.integers(0, 9, size=n)],
        "price": pl.Series([decimal.Decimal(int(v)) / 4 for v in rng.integers(0, 40, size=n)], dtype=pl.Decimal(10, 2)),
    })  # fmt: skip
    return frame, y


@pytest.mark.parametrize("library", ["polars", "lazy", "pyarrow"])
@pytest.mark.parametrize("which", SAMPLERS)
def test_samplers_give_back_the_frame_of_the_library(which, library):
    frame, y = whole()
    sampler, usual = SAMPLERS[which](), SAMPLERS[which]()
    given = {"polars": frame, "lazy": frame.lazy(), "pyarrow": frame.to_arrow()}[library]
    labels = pa.chunked_array([y.tolist()]) if library == "pyarrow" else pl.Series("y", y)
    X_new, y_new = sampler.fit_resample(given, labels)
    theirs, of = usual.fit_resample(frame.to_pandas().assign(price=frame["price"].cast(pl.Float64).to_numpy()), y)
    assert isinstance(X_new, pa.Table if library == "pyarrow" else pl.DataFrame)
    assert isinstance(y_new, pa.ChunkedArray if library == "pyarrow" else pl.Series)
    np.testing.assert_array_equal(np.asarray(y_new), of)
    back = pl.from_arrow(X_new) if library == "pyarrow" else X_new
    if library == "pyarrow":
        assert X_new.schema.types == given.schema.types
    else:
        assert back.schema == frame.schema
    for name in ("x", "n", "text", "flag"):
        assert back[name].to_list() == theirs[name].tolist()
    assert set(back["price"].to_list()) <= set(frame["price"].to_list())
    assert list(sampler.feature_names_in_) == frame.columns
    assert list(SAMPLERS[which]().fit(given, labels).feature_names_in_) == frame.columns


def test_random_mixtures_take_gaps():
    X, y = table()
    sampler = rbal.RandomMixSampler(random_state=0)
    X_new, y_new = sampler.fit_resample(polars(X), y)
    assert X_new.equals(polars(X)[sampler.sample_indices_])
    assert isinstance(y_new, np.ndarray)


def test_the_package_needs_no_polars():
    code = (
        "import builtins, numpy as np\n"
        "there = builtins.__import__\n"
        "def without(name, *rest):\n"
        "    if name.split('.')[0] in ('polars', 'pyarrow'): raise ImportError(name)\n"
        "    return there(name, *rest)\n"
        "builtins.__import__ = without\n"
        "import rbal\n"
        "X = np.random.default_rng(0).normal(size=(60, 3)); y = np.arange(60) < 20\n"
        "from rbal.advice.internal import from_arrays\n"
        "print(from_arrays(X, y).D, rbal.RandomMixSampler().fit_resample(X, y)[0].shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stdout == "3 (60, 3)\n", done.stderr
