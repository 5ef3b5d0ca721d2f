"""Means over many trials, and their errors."""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from .._support.validation import instance, n_dimensions, real_array
from ._trial_runs import PROVENANCE


def summary(table, by=None):
    """Compute mean and standard error of what the trials returned, for every cell.

    Parameters
    ----------
    table : pandas.DataFrame
        From :func:`run`.
    by : str or list of str, optional
        Columns that define a cell; by default all names of the grid.

    Returns
    -------
    pandas.DataFrame
        A row for each cell: its values, for every output ``x`` the mean as ``x`` and the standard error of the mean as
        ``x_se``, and the number of trials as ``count``. A NaN in any trial makes its mean NaN. Lists are left out.

    Notes
    -----
    Dots with error bars are one line: ``s = summary(table)``, then
    ``ax.errorbar(s.alpha_neg, s.ba, s.ba_se, fmt="o")``.

    The error is that of trials which are independent of each other. Where all are tested on the same images, use
    :func:`shared_test`.
    """
    instance("table", table, pd.DataFrame)
    names = list(table.attrs.get("grid", []))
    if by is None and "grid" not in table.attrs:
        raise ValueError("by must name the columns that define a cell: this table does not know its grid")
    by = names if by is None else [by] if isinstance(by, str) else by
    if not isinstance(by, (list, tuple)) or not all(isinstance(name, str) for name in by):
        raise TypeError(f"by must be a column or a list of columns, got {by!r}")
    by = list(by)
    if missing := [name for name in by if name not in table]:
        raise ValueError(f"by must name columns of the table, got {missing[0]!r}")
    numeric = table.select_dtypes(["number", "bool"]).columns
    outputs = [name for name in numeric if name not in (*names, *by, *PROVENANCE)]
    rows = []
    for values, part in table.groupby(by, sort=False, dropna=False) if by else [((), table)]:
        row = dict(zip(by, values, strict=True))
        for name in outputs:
            row[name], row[f"{name}_se"] = _mean_and_error(part[name].to_numpy(float))
        rows.append({**row, "count": len(part)})
    return pd.DataFrame(rows)


def pivot(table, output, by, **cell):
    """What the trials returned, as an array with one row for each trial, ready for ``rbal_book.plotting.dots``.

    Parameters
    ----------
    table : pandas.DataFrame
        From :func:`run`.
    output : str
        Column of what was measured.
    by : str
        Column of the grid that varies along a row.
    **cell
        Values of the other columns of the grid, where it has any: ``kappa=0.5`` keeps the trials with that margin.

    Returns
    -------
    (n_trials, n_values) array
        Column k belongs to the k-th smallest value of ``by``.

    Examples
    --------
    >>> table = pd.DataFrame({"alpha_neg": [2, 1, 2, 1], "trial": [0, 0, 1, 1], "ba": [0.8, 0.7, 0.9, 0.6]})
    >>> pivot(table, "ba", "alpha_neg")
    array([[0.7, 0.8],
           [0.6, 0.9]])
    """
    instance("table", table, pd.DataFrame), instance("output", output, str), instance("by", by, str)
    if missing := [name for name in (output, by, *cell) if name not in table]:
        raise ValueError(f"table must have the column {missing[0]!r}")
    for name, value in cell.items():
        try:
            table = table[table[name] == _scalar(name, value)]
        except OverflowError:
            raise ValueError(f"{name} must be one value of the grid, got an integer beyond 1e308") from None
    if (
        table.empty
        or len(table) != table.trial.nunique() * table[by].nunique()
        or table.duplicated(["trial", by]).any()
    ):
        raise ValueError(f"table must have one row for every trial and {by}, and no others: name the rest of the cell")
    return table.pivot(index="trial", columns=by, values=output).to_numpy()


class SharedTest(NamedTuple):
    """Mean over trials that share a test set, and its standard error from both."""

    mean: float
    se: float  # of both parts, of_trials and of_test, added in squares
    of_trials: float  # because training sets were drawn: what other trials on this test set would change
    of_test: float  # because the test set was drawn: what other test samples would change, for any number of trials


def shared_test(values, y=None):
    r"""Average what several trials say of one test set, with the errors from the trials and from the test set.

    More trials do not make a small test set larger. With :math:`v_{ti}` what trial t says of sample i, both drawn at
    random, the error of the mean has two parts: the scatter of the trials over their number, and the scatter of the
    samples, each averaged over trials, over their number. What scatters without regard to either would be counted in
    both, and is taken out of the second. Classes are averaged with equal weight, so that with answers right or wrong
    the mean is the balanced accuracy.

    Parameters
    ----------
    values : (n_trials, n_test) array
        For every trial and test sample a number: whether the answer is right, or the loss. At least two trials.
    y : (n_test,) array, optional
        Class of each test sample, at least two of each; by default all are of one class.

    Returns
    -------
    SharedTest
        ``mean, se, of_trials, of_test``.

    Examples
    --------
    Two trials that agree on every sample: all of the error is that of the test set.

    >>> right = [[1, 1, 1, 0, 1, 0], [1, 1, 1, 0, 1, 0]]
    >>> found = shared_test(right, [1, 1, 1, 1, -1, -1])
    >>> print(f"{found.mean:.3f} ± {found.se:.3f}, of trials {found.of_trials:.3f}")
    0.625 ± 0.280, of trials 0.000
    """
    values = real_array("values", values, ndim=2)
    n_trials, n_test = values.shape
    y = np.zeros(n_test) if y is None else y
    n_dimensions("y", y)
    y = np.asarray(y)
    if y.shape != (n_test,):
        raise ValueError(f"y must give the class of each of {n_test} test samples, got shape {y.shape}")
    classes, sizes = np.unique(y, return_counts=True)
    if n_trials < 2 or not n_test or sizes.min() < 2:
        raise ValueError(f"values must hold two trials and two samples of each class at least, got {values.shape}")
    means, of_test = np.zeros(n_trials), 0.0
    for label in classes:
        own = values[:, y == label]
        n, of_trial, of_sample = own.shape[1], own.mean(axis=1), own.mean(axis=0)
        rest = own - of_trial[:, None] - of_sample + own.mean()
        by_chance = np.sum(rest**2) / ((n_trials - 1) * (n - 1)) / n_trials
        means += of_trial / len(classes)
        of_test += (of_sample.var(ddof=1) - by_chance) / n / len(classes) ** 2
    of_trials = means.var(ddof=1) / n_trials
    of_test = max(of_test, 0.0)  # an unbiased estimate of a variance may be negative
    return SharedTest(float(means.mean()), *(math.sqrt(v) for v in (of_trials + of_test, of_trials, of_test)))


def _scalar(name, value):
    if not np.isscalar(value):
        raise TypeError(f"{name} must be one value of the grid, got {type(value).__name__}")
    return value


def _mean_and_error(x):
    with np.errstate(invalid="ignore"):
        return x.mean(), (x.std(ddof=1) / math.sqrt(len(x)) if len(x) > 1 else math.nan)
