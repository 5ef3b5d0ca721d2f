"""Frames of any library (polars, pyarrow and others that narwhals knows), as pandas frames and back."""

import narwhals as nw
import numpy as np
import pandas as pd

TIMES = ("date", "time", "timestamp", "duration")  # beginnings of the names of Arrow's types
TIMES_OF_PYTHON = ("date", "datetime", "time", "timedelta", "datetime64", "timedelta64")


class TableError(ValueError):
    """The table cannot be used; the message is one line that says what to do."""


def as_pandas(X, name="X"):
    """Return a frame or a series of another library as one of pandas, and anything else as it is.

    Numbers become floats where some are missing, categories and text Python strings, dates and times Python objects.
    A lazy frame is computed.
    """
    if isinstance(X, pd.DataFrame):
        if X.columns.nlevels > 1:
            raise TableError(
                f"{name} must have one row of column names, got {X.columns.nlevels}: join them, for example with "
                f"{name}.columns = ['_'.join(map(str, c)) for c in {name}.columns]"
            )
        return X
    frame = _narwhals(X)
    if isinstance(frame, nw.DataFrame):
        return pd.DataFrame({column: _column(frame[column]) for column in frame.columns}, columns=frame.columns)
    return _column(frame, name) if isinstance(frame, nw.Series) else X


def distinctly_named(name, X):
    """Return X, when no two of its columns share a name, if it has any."""
    if isinstance(X, pd.DataFrame) and (twice := X.columns[X.columns.duplicated()]).size:
        raise TableError(f"{name} must have columns of different names, got {twice[0]!r} more than once")
    return X


def checked_rows(estimator, *rows, name="X", **options):
    """Check rows, and labels if there are any, by scikit-learn's ``validate_data``; errors about cells name them."""
    from sklearn.utils.validation import validate_data

    try:
        return validate_data(estimator, distinctly_named(name, rows[0]), *rows[1:], **options)
    except OverflowError:
        raise ValueError(f"{name} must hold numbers up to 1e308, got a larger integer") from None
    except ValueError as error:
        if str(error).startswith("could not convert"):
            raise ValueError(f"{name} must be numeric: {error}") from None
        raise


def like(new, old, X):
    """Return rows, put together from the cells of others, as a frame or a series of the library of X.

    Parameters
    ----------
    new : pandas frame or array
        Every value occurs in its column of ``old``.
    old : pandas frame or array
        X as one of pandas.
    X : frame or series
    """
    native = _narwhals(X)
    if isinstance(native, nw.Series):
        return native[_places(new, old)].to_native()
    columns = [native[name][_places(new[name], old[name])].to_frame() for name in native.columns]
    return nw.concat(columns, how="horizontal").to_native()


def _places(new, old):
    """Return the place where each value of ``new`` first stands in ``old``."""
    old = pd.Series(old)
    first = np.flatnonzero(~old.duplicated())
    return first[pd.Index(old.iloc[first], dtype=object).get_indexer(pd.Index(new, dtype=object))]


def is_foreign(X):
    """Tell whether a frame or series is of another library than pandas."""
    return isinstance(_narwhals(X), (nw.DataFrame, nw.Series))


def plain(X):
    """Return a frame as scikit-learn takes it: floats with NaN, and objects with NaN where text is missing."""
    X = as_pandas(X)
    return pd.DataFrame({name: _plain(X[name]) for name in X.columns}, index=X.index) if _is_unusual(X) else X


def needs_plain(X):
    """Tell whether scikit-learn would stumble over the frame."""
    return is_foreign(X) or _is_unusual(X)


def is_time(column):
    """Tell whether a column of a pandas frame holds dates or times."""
    dtype = column.dtype
    if isinstance(dtype, pd.ArrowDtype):
        return str(dtype).startswith(TIMES)
    if pd.api.types.is_object_dtype(dtype):
        return pd.api.types.infer_dtype(column, skipna=True) in TIMES_OF_PYTHON
    return pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column)


def distinct(labels):
    """Return the labels of a Series in the order in which they first occur, or raise an error if one is no label."""
    try:
        return labels.unique()
    except TypeError:
        kind = next(type(label).__name__ for label in labels if getattr(label, "__hash__", None) is None)
        kind = "list" if kind == "ndarray" else kind
        raise TableError(f"a label is of type {kind}: each must be one number, text or truth value") from None


def floats(names, block):
    """Return columns of a frame as floats (n, len(names)), NaN where a value is missing."""
    chosen = block[names]
    if all(map(is_plain, chosen.dtypes)):
        return chosen.to_numpy(float)
    values = np.empty((len(block), len(names)))
    for j, name in enumerate(names):
        values[:, j] = as_floats(name, block[name])
    return values


def as_floats(name, column):
    """Return a column as floats (n,), or raise an error if it holds anything else."""
    try:
        return column.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError):
        numbers = pd.to_numeric(column, errors="coerce")
        bad = column[numbers.isna() & column.notna()]
        raise TableError(
            f"column {name!r} begins with numbers but holds {bad.tolist()[0]!r} further on: "
            "correct it, or name it as categorical"
        ) from None


def is_plain(dtype):
    """Return whether a type is one of NumPy's numbers or truth values."""
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def factorized(column, name):
    """Return codes (n,) and levels of a column of a pandas frame."""
    try:
        # the factorize of pandas stumbles over dictionaries of Arrow
        return pd.factorize(column.astype(object) if isinstance(column.dtype, pd.ArrowDtype) else column)
    except (TypeError, NotImplementedError):
        kind = type(column.dropna().iloc[0]).__name__
        raise TableError(f"column {name!r} holds values of type {kind}: take numbers or text from them") from None


class NativeFrames:
    """Samplers that give back a frame of the library that the table came in."""

    def fit_resample(self, X, y, **params):
        """Resample the table.

        Parameters
        ----------
        X : {array, dataframe, sparse matrix} of shape (n, L)
            A frame of polars or pyarrow comes back as one, too.
        y : (n,) array or series
        **params
            None are used.

        Returns
        -------
        X_resampled : {array, dataframe, sparse matrix} of shape (n_new, L)
        y_resampled : (n_new,) array or series
        """
        table, labels = as_pandas(X), labels_of(y)
        X_new, y_new = super().fit_resample(table, labels, **params)
        X_new = like(X_new, table, X) if is_foreign(X) else X_new
        return X_new, like(y_new, labels, y) if is_foreign(y) else y_new


def labels_of(y):
    """Return labels of another library as an array, and anything else as it is."""
    return np.asarray(as_pandas(y, "y")) if is_foreign(y) else y


def _narwhals(X):
    if isinstance(X, (np.ndarray, pd.DataFrame, pd.Series, list, tuple)):
        return X
    try:
        frame = nw.from_native(X, pass_through=True, allow_series=True)
        frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
        if isinstance(frame, nw.DataFrame):
            _ = frame.columns
        return frame
    except nw.exceptions.DuplicateError as error:
        raise TableError(f"two columns have one name: rename one ({' '.join(str(error).split())})") from None


def _column(series, name=None):
    """Return a column of narwhals as one of pandas; errors name it by its own name, unless another is given."""
    dtype = series.dtype
    gaps = bool(series.is_null().any())
    if dtype.is_numeric():
        if dtype == nw.Decimal or gaps:
            series = series.cast(nw.Float64).fill_null(float("nan"))
        return pd.Series(series.to_numpy(), name=series.name)
    if dtype == nw.Boolean:
        return pd.Series(series.to_list(), dtype="boolean" if gaps else bool, name=series.name)
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return pd.Series(series.cast(nw.String).to_list(), dtype=object, name=series.name)
    if dtype in (nw.Date, nw.Datetime, nw.Duration, nw.Time) or series.is_null().all():
        return pd.Series(series.to_list(), dtype=object, name=series.name)
    raise TableError(
        f"{name or f'column {series.name!r}'} holds values of type {dtype}: take numbers or text from them"
    )


def _is_unusual(X):
    return isinstance(X, pd.DataFrame) and any(_has_pandas_na(dtype) for dtype in X.dtypes)


def _has_pandas_na(dtype):
    return isinstance(dtype, pd.api.extensions.ExtensionDtype) and dtype.na_value is pd.NA


def _plain(column):
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=float, na_value=np.nan)
    values = column.astype(object)
    return values.where(column.notna(), np.nan)
