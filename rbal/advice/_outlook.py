"""What follows from an advice without any data: its threshold, its probabilities, and what more rows would bring."""

import numpy as np
import pandas as pd

from .._support.validation import number
from ..metrics import Threshold
from ._cuts import at_threshold, best_threshold
from ._judgement import ends
from ._remedies import Choice, solve_row
from ._widths import Wide

STEPS = (1, 2, 5)  # round numbers of rows to add, in every decade
LEAST, MOST = 0.15, 10.0  # of them, in units of the rows that are there
MOST_COLUMNS = 2.0  # the same of columns


def choice(advice):
    """Return C and mixing of the recommended remedy."""
    return Choice(advice.C, float(advice.table.loc[advice.best, "mixing"]))


def solution(advice):
    """Return the saddle point of the recommended classifier."""
    return solve_row(advice.moments, advice.setting, advice.best[0], choice(advice))


def threshold(advice):
    """Return the threshold of the recommended classifier, and what it gives."""
    m, setting = solution(advice).metrics, advice.setting
    if advice.best[1] == "trained":
        return Threshold(0.0, float(m.tpr()), float(m.ppv(setting.share)), 0.0, 0.0, 0.0)
    costs = _costs(setting)
    if costs is not None:
        return threshold_for(advice, costs=costs)
    cut = float(best_threshold(m, setting))
    return Threshold(cut, float(m.tpr(cut)), float(m.ppv(setting.share, cut)), np.nan, np.nan, np.nan)


def _costs(setting):
    """Return the costs that a metric is in disguise, or None."""
    if setting.record.priced:
        return setting.costs
    return (1.0 / setting.share, 1.0 / (1.0 - setting.share)) if setting.metric == "ba" else None


def threshold_for(advice, **wanted):
    """Return the threshold for what is wanted, as numbers."""
    sizes = {"n_pos": advice.data.n_pos, "n_neg": advice.data.n_neg}
    for name in {"recall", "precision"} & {name for name, value in wanted.items() if value is not None}:
        wanted[name] = number(name, wanted[name], 0.0, 1.0)
    found = solution(advice).metrics.threshold_for(advice.setting.share, **wanted, **sizes)
    return Threshold(*map(float, found))


# ---- more rows, and more columns


def amounts(n):
    """Return round numbers of rows or columns to add to n, from a part of it to several times as many, ascending."""
    series = [step * 10**k for k in range(9) for step in STEPS]
    return [more for more in series if LEAST * n <= more <= MOST * n]


def curve_of_data(advice):
    """Return what more rows of either class bring, and more columns of the same kind, as a DataFrame."""
    n_pos, n_neg, columns = advice.data.n_pos, advice.data.n_neg, n_columns(advice)
    rows = [("positives", more, n_pos + more, n_neg, 1.0) for more in (0, *amounts(n_pos))]
    rows += [("negatives", more, n_pos, n_neg + more, 1.0) for more in (0, *amounts(n_neg))]
    if advice.kernel == "linear":
        some = [more for more in amounts(columns) if more <= MOST_COLUMNS * columns]
        rows += [("columns", more, n_pos, n_neg, 1.0 + more / columns) for more in (0, *some)]
    kind, more, *sizes = zip(*rows, strict=True)
    sizes = np.array(sizes, float)
    value, widths = _values(advice, advice.moments, sizes)
    others = np.stack([_values(advice, moments, sizes, widths)[0] for moments in advice.drawn])
    now = np.array([kind.index(name) for name in kind])
    sign = advice.setting.record.sign
    low, high = np.sort(sign * ends(value, others, advice.level), axis=0)
    gain = value - value[now]
    gain_low, gain_high = np.sort(sign * ends(gain, others - others[:, now], advice.level), axis=0)
    return pd.DataFrame({
        "kind": kind, "more": more, "predicted": sign * value, "low": low, "high": high, "gain": sign * gain,
        "gain_low": gain_low, "gain_high": gain_high,
    })  # fmt: skip


def n_columns(advice):
    """Return the number of columns of the table that are features."""
    return len(advice.data.numeric) + len(advice.data.categorical)


def _values(advice, moments, sizes, widths=None):
    """Return the metric of the recommended remedy, where more is better, and the widths if it has any.

    Columns of the same kind vary and separate as those that are there: with f times as many, the squared distance of
    the classes is f times as large, and the law of the eigenvalues is the same.

    Parameters
    ----------
    advice : Advice
    moments : Spectrum or Wide
    sizes : (3, n) array
        Positives, negatives, and how many times as many columns.
    widths : (n, 2) array, optional
        Widths that are known already.

    Returns
    -------
    ((n,) array, (n, 2) array or None)
    """
    setting, n = advice.setting._replace(phi=advice.setting.share, chosen=()), sizes.shape[1]
    value, found = np.empty(n), np.empty((n, 2)) if isinstance(moments, Wide) else None
    for growth in np.unique(sizes[2]):
        at = np.flatnonzero(sizes[2] == growth)
        grown = setting._replace(n_pos=sizes[0, at], n_neg=sizes[1, at], D=setting.D * growth)
        apart = moments.apart(float(np.sqrt(growth)))
        apart = apart if widths is None else apart._replace(known=widths[at])
        solution = solve_row(apart, grown, advice.best[0], choice(advice))
        value[at] = at_threshold(solution.metrics, grown, advice.best[1])[1]
        if found is not None:
            found[at] = solution.widths
    return value, found


def more_of_each(advice):
    """Return the rows of the curve that double each class and the columns, or nearly so, what gains most first."""
    curve, found = advice.curve_of_data, []
    sizes = {"positives": advice.data.n_pos, "negatives": advice.data.n_neg, "columns": n_columns(advice)}
    for kind, n in sizes.items():
        part = curve[(curve["kind"] == kind) & (curve["more"] > 0)]
        if len(part):
            found.append(part.iloc[int(np.argmin(np.abs(np.log(part["more"] / n))))])
    return sorted(found, key=lambda row: -advice.setting.record.sign * row["gain"])
