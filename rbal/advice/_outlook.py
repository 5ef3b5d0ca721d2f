"""What follows from an advice without any data: its threshold, its probabilities, and what more rows would bring."""

import numpy as np
import pandas as pd

from ..metrics import Threshold
from ._cuts import at_threshold, best_threshold
from ._judgement import ends
from ._remedies import Choice, solve_row

STEPS = (1, 2, 5)  # round numbers of rows to add, in every decade
LEAST, MOST = 0.15, 10.0  # of them, in units of the rows that are there


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
    found = solution(advice).metrics.threshold_for(advice.setting.share, **wanted, **sizes)
    return Threshold(*map(float, found))


# ---- more rows


def amounts(n):
    """Return round numbers of rows to add to n, from a part of it to several times as many, ascending."""
    series = [step * 10**k for k in range(9) for step in STEPS]
    return [more for more in series if LEAST * n <= more <= MOST * n]


def curve_of_data(advice):
    """Return what more rows of either class bring, as a DataFrame."""
    n_pos, n_neg = advice.data.n_pos, advice.data.n_neg
    rows = [("positives", more, n_pos + more, n_neg) for more in (0, *amounts(n_pos))]
    rows += [("negatives", more, n_pos, n_neg + more) for more in (0, *amounts(n_neg))]
    kind, more, pos, neg = zip(*rows, strict=True)
    setting = advice.setting._replace(
        n_pos=np.array(pos, float), n_neg=np.array(neg, float), phi=advice.setting.share, chosen=()
    )
    value, widths = _values(advice, advice.moments, setting)
    others = np.stack([_values(advice, moments, setting, widths)[0] for moments in advice.drawn])
    now = np.array([0 if name == "positives" else kind.index("negatives") for name in kind])
    sign = setting.record.sign
    low, high = np.sort(sign * ends(value, others, advice.level), axis=0)
    gain = value - value[now]
    gain_low, gain_high = np.sort(sign * ends(gain, others - others[:, now], advice.level), axis=0)
    return pd.DataFrame({
        "kind": kind, "more": more, "predicted": sign * value, "low": low, "high": high, "gain": sign * gain,
        "gain_low": gain_low, "gain_high": gain_high,
    })  # fmt: skip


def _values(advice, moments, setting, widths=None):
    """Return the metric of the recommended remedy at sizes (n,), where more is better, and the widths if it has any."""
    moments = moments if widths is None else moments._replace(known=widths)
    found = solve_row(moments, setting, advice.best[0], choice(advice))
    return at_threshold(found.metrics, setting, advice.best[1])[1], getattr(found, "widths", None)


def more_rows(advice):
    """Return the rows of the curve that double each class, or nearly so, the one that gains more first."""
    curve, found = advice.curve_of_data, []
    for kind, n in (("positives", advice.data.n_pos), ("negatives", advice.data.n_neg)):
        part = curve[(curve["kind"] == kind) & (curve["more"] > 0)]
        found.append(part.iloc[int(np.argmin(np.abs(np.log(part["more"] / n))))])
    return sorted(found, key=lambda row: -advice.setting.record.sign * row["gain"])
