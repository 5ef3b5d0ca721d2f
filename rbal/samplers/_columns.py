"""Tables as states 0 … Q-1, column by column, and back to values.

A column of numbers with many different values is cut into bins between quantiles; the states of every other column are
its different values. In either case a state is decoded as the value of a sample with this state in the column.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from .._support.frames import factorized
from .._support.validation import one_hot_room

MOST_STATES = 256  # more categories than this are names or dates, of which no model of states makes sense


class Coded(NamedTuple):
    """A table as states."""

    codes: np.ndarray  # (n, L) states
    occurs: np.ndarray  # (L, Q): whether a sample has this state in this column
    ordered: np.ndarray  # (L,): whether the column was cut into bins


def code(X, y, n_states, n_bins):
    """Code a table as states.

    Parameters
    ----------
    X : (n, L) array or dataframe
    y : (n,) array
        Labels: every class counts the same in the quantiles, so that a rare one is resolved too.
    n_states : int or None
        Q, when X holds states 0 … Q-1 already; None to look at each column.
    n_bins : int
        Numbers with more different values than this are cut into so many bins.

    Returns
    -------
    Coded
    """
    if n_states is not None:
        codes = _given(X, n_states)
        return _coded(codes, n_states, np.zeros(codes.shape[1], bool))
    if not hasattr(X, "iloc") and X.dtype.kind in "biuf":
        alphabet, codes = np.unique(X, return_inverse=True)
        if len(alphabet) <= n_bins:  # spins, pixels, sequences: one alphabet, also where a column has less
            return _coded(codes.reshape(X.shape), len(alphabet), np.zeros(X.shape[1], bool))
    weight = 1.0 / np.bincount(classes := np.unique(y, return_inverse=True)[1])[classes]
    parts = [_column(column, name, weight, n_bins) for name, column in _columns(X)]
    codes = np.stack([codes for codes, _ in parts], axis=1)
    return _coded(codes, int(codes.max()) + 1, np.array([binned for _, binned in parts]))


def donors(coded, members, rows, rng):
    """Choose samples that lend their values to new rows of states.

    Parameters
    ----------
    coded : Coded
    members : (m,) array
        Samples of the class, who lend the values within a bin; others do only where none of them is in it.
    rows : (k, L) array
        New states; each must occur in its column.
    rng : numpy.random.Generator

    Returns
    -------
    (k, L) array of int
        For each cell a sample with the same state in this column, drawn at random where the state is a bin.
    """
    # where a state is a value, any sample that has it will do
    having = np.zeros(coded.occurs.shape, np.intp)
    having[np.arange(rows.shape[1]), coded.codes] = np.arange(len(coded.codes))[:, None]
    donor = having[np.arange(rows.shape[1]), rows]
    for j in np.flatnonzero(coded.ordered):
        for state in np.unique(rows[:, j]):
            cells = np.flatnonzero(rows[:, j] == state)
            own = members[coded.codes[members, j] == state]
            pool = own if len(own) else np.flatnonzero(coded.codes[:, j] == state)
            donor[cells, j] = pool[rng.integers(len(pool), size=len(cells))]
    return donor


def stacked(X, kept, donor):
    """Return the rows of X at places ``kept`` (m,), above new rows whose cells come from rows ``lent`` (k, L)."""
    if hasattr(X, "iloc"):
        cells = [X.iloc[:, j].take(np.r_[kept, donor[:, j]]).reset_index(drop=True) for j in range(X.shape[1])]
        return pd.concat(cells, axis=1)
    return np.concatenate([X[kept], np.take_along_axis(X, donor, axis=0) if len(donor) else X[:0]])


def check_finite(X):
    """Refuse a table with missing or infinite values."""
    if isinstance(X, np.ndarray) and (X.dtype.kind in "biu" or (X.dtype.kind == "f" and np.isfinite(X).all())):
        return
    for name, column in _columns(X):
        if _is_number(column):
            column = _numbers(column)
            bad = ~np.isfinite(column)
        else:
            bad = np.asarray(pd.isna(column))
        if bad.any():
            kind = "infinity" if _is_number(column) and np.isinf(column[bad][0]) else "NaN"
            raise ValueError(f"X must hold no NaN and no infinity, got {kind} in column {name!r}: fill or drop it")


def _given(X, n_states):
    values = np.asarray(X)
    one_hot_room("n_states", 1, values.shape[1], int(n_states))
    if values.dtype.kind not in "biuf":
        raise ValueError(f"X must hold numbers 0 … {n_states - 1} (n_states={n_states}), got dtype {values.dtype}")
    bad = (values < 0) | (values >= n_states)
    if values.dtype.kind == "f":
        bad |= values != np.floor(values)
    if bad.any():
        raise ValueError(f"X must hold states 0 … {n_states - 1} (n_states={n_states}), got {values[bad].flat[0]:g}")
    return values.astype(np.intp)


def _coded(codes, Q, ordered):
    L, Q = codes.shape[1], max(Q, 2)  # a machine has two states at least, also where nothing ever changes
    occurs = np.bincount((codes + Q * np.arange(L)).ravel(), minlength=L * Q).reshape(L, Q) > 0
    return Coded(codes, occurs, ordered)


def _columns(X):
    if hasattr(X, "iloc"):
        return [(name, X.iloc[:, j]) for j, name in enumerate(X.columns)]
    return list(enumerate(X.T))


def _is_number(column):
    return pd.api.types.is_numeric_dtype(column.dtype) and column.dtype != object


def _numbers(column):
    """Return a column of numbers as an array of floats (n,), with NaN where one is missing."""
    if isinstance(column, np.ndarray):
        return column
    masked = isinstance(column.dtype, pd.api.extensions.ExtensionDtype) and not isinstance(column.dtype, pd.SparseDtype)
    return column.to_numpy(float, na_value=np.nan) if masked else np.asarray(column)


def _column(column, name, weight, n_bins):
    """Return the states (n,) of one column, and whether they are bins."""
    if not _is_number(column):
        codes, values = factorized(column, name) if isinstance(column, pd.Series) else pd.factorize(column)
        if len(values) > MOST_STATES:
            raise ValueError(
                f"X must have at most {MOST_STATES} categories in a column that holds no numbers, "
                f"got {len(values)} in column {name!r}: group or drop them"
            )
        return codes.astype(np.intp), False
    column = _numbers(column)
    values, codes = np.unique(column, return_inverse=True)
    if len(values) <= n_bins:
        return codes, False
    share = np.arange(1, n_bins) / n_bins
    edges = np.unique(np.quantile(column, share, weights=weight, method="inverted_cdf"))
    # a value on an edge belongs below it; numbered anew, for ties can leave a bin empty
    return np.unique(np.searchsorted(edges, column, side="left"), return_inverse=True)[1], True
