"""Numbers that follow from an advice without any data: threshold, more rows, bags; as a figure and as JSON."""

import json
import math

import numpy as np
import pandas as pd

from .._support.extras import needs
from .._support.validation import number, positive_int, real_array
from ..metrics import MixtureMetrics, Threshold
from ..strategies import REMEDIES, bagging
from ._judgement import ends
from ._pipeline import MEMBER
from ._prediction import Choice, Wide, at_threshold, best_threshold, prediction_of
from ._text import clean, explain, many_verdict, remedy, title

VERSION = 1  # of the JSON: a later one may leave out or rename what an earlier one has, but not within a number
STEPS = (1, 2, 5)  # round numbers of rows to add, in every decade
LEAST, MOST = 0.15, 10.0  # smallest and largest of them, in units of today's rows
MOST_COLUMNS = 2.0  # largest number of columns to add, in units of today's


def choice(advice):
    """Return C and mixing of the recommended remedy."""
    return Choice(advice.C, float(advice.table.loc[advice.best, "mixing"]))


def solution(advice):
    """Return the saddle point of the recommended classifier."""
    return prediction_of(advice.moments, advice.setting, advice.best[0], choice(advice))


def threshold(advice):
    """Return the threshold of the recommended classifier, with its rates."""
    m, setting = solution(advice).metrics, advice.setting
    if advice.best[1] == "trained":
        return Threshold(0.0, float(m.tpr()), float(m.ppv(setting.share)), 0.0, 0.0, 0.0)
    costs = _costs(setting)
    if costs is not None:
        return threshold_for(advice, costs=costs)
    cut = float(best_threshold(m, setting))
    return Threshold(cut, float(m.tpr(cut)), float(m.ppv(setting.share, cut)), np.nan, np.nan, np.nan)


def _costs(setting):
    """Return the costs of both errors to which the metric is equivalent, or None."""
    if setting.record.priced:
        return setting.costs
    return (1.0 / setting.share, 1.0 / (1.0 - setting.share)) if setting.metric == "ba" else None


def threshold_for(advice, **goal):
    """Return the threshold for a recall, a precision or costs, as numbers."""
    sizes = {"n_pos": advice.data.n_pos, "n_neg": advice.data.n_neg}
    for name in {"recall", "precision"} & {name for name, value in goal.items() if value is not None}:
        goal[name] = number(name, goal[name], 0.0, 1.0)
    cut = solution(advice).metrics.threshold_for(advice.setting.share, **goal, **sizes)
    return Threshold(*map(float, cut))


# ---- more rows, and more columns


def amounts(n):
    """Return round numbers of rows or columns to add to n, from a part of it to several times as many, ascending."""
    series = [step * 10**k for k in range(9) for step in STEPS]
    return [more for more in series if LEAST * n <= more <= MOST * n]


def curve_of_data(advice):
    """Return what more rows of either class bring, and more columns of the same kind, as a DataFrame."""
    n_pos, n_neg, columns = advice.data.n_pos, advice.data.n_neg, len(advice.data.columns)
    rows = [("positives", more, n_pos + more, n_neg, 1.0) for more in (0, *amounts(n_pos))]
    rows += [("negatives", more, n_pos, n_neg + more, 1.0) for more in (0, *amounts(n_neg))]
    if advice.kernel == "linear":
        added = [more for more in amounts(columns) if more <= MOST_COLUMNS * columns]
        rows += [("columns", more, n_pos, n_neg, 1.0 + more / columns) for more in (0, *added)]
    kind, more, *sizes = zip(*rows, strict=True)
    sizes = np.array(sizes, float)
    value, widths = _values(advice, advice.moments, sizes)
    draws = np.stack([_values(advice, moments, sizes, widths)[0] for moments in advice.drawn])
    now = np.array([kind.index(name) for name in kind])
    sign = advice.setting.record.sign
    low, high = np.sort(sign * ends(value, draws, advice.level), axis=0)
    gain = value - value[now]
    gain_low, gain_high = np.sort(sign * ends(gain, draws - draws[:, now], advice.level), axis=0)
    return pd.DataFrame({
        "kind": kind, "more": more, "predicted": sign * value, "low": low, "high": high, "gain": sign * gain,
        "gain_low": gain_low, "gain_high": gain_high,
    })  # fmt: skip


def _values(advice, moments, sizes, widths=None):
    """Return the metric of the recommended remedy, where more is better, and the widths if it has any.

    Columns of the same kind vary and separate as today's: with f times as many, the squared distance of
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
    value, solved_widths = np.empty(n), np.empty((n, 2)) if isinstance(moments, Wide) else None
    for growth in np.unique(sizes[2]):
        at = np.flatnonzero(sizes[2] == growth)
        grown = setting._replace(n_pos=sizes[0, at], n_neg=sizes[1, at], D=setting.D * growth)
        scaled = moments.apart(float(np.sqrt(growth)))
        scaled = scaled if widths is None else scaled._replace(known=widths[at])
        solution = prediction_of(scaled, grown, advice.best[0], choice(advice))
        value[at] = at_threshold(solution.metrics, grown, advice.best[1])[1]
        if solved_widths is not None:
            solved_widths[at] = solution.widths
    return value, solved_widths


# ---- bags


def bags(advice, members):
    """Return what bags of so many undersampled machines are predicted to score, as a DataFrame; see Advice.bags."""
    setting = advice.setting
    if setting.kernel != "linear":
        raise ValueError(f"bags are predicted for linear classifiers, not for an {setting.kernel.upper()} kernel")
    counts = np.atleast_1d(real_array("members", members, ndim=(0, 1))).tolist()
    members = [positive_int("members", int(count) if count.is_integer() else count) for count in counts]
    C = advice.C_of(MEMBER)
    sizes, lam = (setting.n_pos / setting.D, setting.n_neg / setting.D), 1.0 / (C * setting.D)
    single = advice.moments.spectrum if isinstance(advice.moments, Wide) else advice.moments
    bag = bagging(single, *sizes, np.array(members, float), model="svm", loss=setting.loss, lam=lam)
    metrics = bag.metrics
    if isinstance(advice.moments, Wide):
        # the scores of one machine, whose variances fall by as much as with one covariance
        m = prediction_of(advice.moments, setting, MEMBER[0], Choice(C, REMEDIES[MEMBER[0]].mixing)).metrics
        ratio = bag.variance() / bag.member.variance
        metrics = MixtureMetrics(np.broadcast_to(m.mean, (len(members), 2)), ratio[:, None] * m.q, m.signs, m.shares)
    sign = setting.record.sign
    values = {name: sign * at_threshold(metrics, setting, name)[1] for name in setting.thresholds}
    return pd.DataFrame(values, index=pd.Index(members, name="members"))


# ---- the figure


def plot(advice, axes=None):
    """Draw the remedies with their intervals, and the metric against the mixing; return the figure."""
    with needs("plot", "Advice.plot"):
        import matplotlib.pyplot as plt

    from .._support.look import BLUE, SKY, VERMILLION

    if axes is None:
        _, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained", width_ratios=(1.3, 1.0))
    axes = list(np.ravel(np.asarray(axes, dtype=object)))
    if len(axes) != 2 or not all(hasattr(ax, "errorbar") for ax in axes):
        raise TypeError("axes must be two matplotlib Axes, or None")
    left, right = axes
    table = advice.table[::-1]
    place = np.arange(len(table))
    ends = np.abs(table[["low", "high"]].to_numpy().T - table["predicted"].to_numpy())
    left.errorbar(table["predicted"], place, xerr=ends, fmt="|", color=BLUE, label="predicted")
    if "measured" in table:
        left.plot(table["expected"], place - 0.2, "|", color=SKY, label="predicted, in a fold")
        left.errorbar(
            table["measured"], place - 0.2, xerr=table["measured_error"], fmt="o", color=VERMILLION, label="measured"
        )
    best = list(table.index).index(advice.best)
    left.axhspan(best - 0.4, best + 0.4, color="0.92", zorder=0)
    left.set_yticks(place, [remedy(row) for row in table.index])
    left.set_xlabel(title(advice))
    if "measured" in table:
        left.legend(loc="lower left", bbox_to_anchor=(-0.2, 1.0), ncol=3, fontsize="small", columnspacing=1.0)
    curve = advice.curve
    right.axvspan(advice.mixing_low, advice.mixing_high, color="0.92", label="within one standard error")
    right.plot(curve["mixing"], curve["predicted"], color=BLUE, label="predicted")
    interval = f"{advice.level:.0%} interval"
    right.fill_between(curve["mixing"], curve["low"], curve["high"], color=BLUE, alpha=0.15, lw=0, label=interval)
    right.set_xlabel(f"mixing (0 under, 1 over),\nall with C = {advice.setting.C:g}")
    right.set_ylabel(title(advice))
    right.margins(y=0.25)  # room for the legend
    right.legend(loc="lower center", fontsize="small")
    return left.figure


# ---- JSON


def as_dict(advice):
    """Return the whole advice as numbers, strings, lists and dicts, with None for NaN."""
    data, setting = advice.data, advice.setting
    record = {
        "version": VERSION,
        "metric": advice.metric,
        "recommended": {"strategy": advice.best[0], "threshold": advice.best[1]},
        "confidence": advice.confidence,
        "agrees": advice.agrees,
        "offset": None if advice.offset is None else _number(advice.offset),
        "offset_error": None if advice.offset_error is None else _number(advice.offset_error),
        "explanation": explain(advice),
        "notes": list(advice.notes),
        "mixing": {"best": advice.mixing, "low": advice.mixing_low, "high": advice.mixing_high},
        "level": advice.level,
        "table": _table_rows(advice),
        "classifier": {"loss": setting.loss, "C": setting.C, "standardize": data.standardize},
        "costs": list(setting.costs) if setting.record.priced else None,
        "data": {
            "positive": str(data.positive), "negative": str(data.negative), "n_pos": data.n_pos, "n_neg": data.n_neg,
            **_columns_read(data),
        },
    }  # fmt: skip
    if advice.trained is not None:
        record["trained"] = _trained(advice.trained)
    return record | _whole(advice) if advice.whole else record


def _trained(level):
    """Return what was trained for the level."""
    rows = [
        {"strategy": row[0], "threshold": row[1], "measured": _number(v), "error": _number(e), "expected": _number(p)}
        for row, (v, e, p) in level.measured.items()
    ]
    return {"log_distance": _number(level.u), "error": _number(level.error), "rows": level.rows, "fits": level.fits,
            "machines": rows}  # fmt: skip


def _whole(advice):
    """Return the entries of the JSON that only an advice on the whole classifier has."""
    setting, data = advice.setting, advice.data
    link, cut = advice.calibration, advice.threshold
    machine = {"loss": setting.loss, "kernel": setting.kernel, "gamma": setting.gamma, "C": advice.C}
    return {
        "classifier": {**machine, "standardize": data.standardize},
        "nothing": _number(advice.nothing),
        "threshold": numbers(cut),
        "calibration": numbers(link),
        "more_data": [
            {name: value if isinstance(value, str) else _number(value) for name, value in row.items()}
            for row in advice.curve_of_data.to_dict(orient="records")
        ],
    }


def numbers(record):
    """Return a named tuple of numbers as a dict, with None for what is not finite."""
    return {name: _number(value) for name, value in record._asdict().items()}


def _number(value):
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    return float(value) if math.isfinite(value) else None


def to_json(advice, **more):
    """Return the advice as one JSON object, without NaN, and with more entries if they are given."""
    return _json(as_dict(advice) | more)


def _table_rows(advice):
    """Return the rows of the table as dicts."""
    return [
        {"strategy": row[0], "threshold": row[1], **{name: _number(value) for name, value in values.items()}}
        for row, values in advice.table.iterrows()
    ]


def _columns_read(data):
    """Return which columns were used, imputed and left out."""
    return {
        "features": data.D, "numeric": list(map(str, data.numeric)), "categorical": list(map(str, data.categorical)),
        "imputed": {str(k): v for k, v in data.imputed.items()},
        "dropped": {str(k): v for k, v in data.dropped.items()},
    }  # fmt: skip


def _json(record):
    lines = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False).split("\n")
    return "\n".join(map(clean, lines))  # these escapes are those of JSON


def many_as_dict(advice):
    """Return the whole advice on three classes or more as numbers, strings, lists and dicts, with None for NaN."""
    data, setting = advice.data, advice.setting
    classes = [
        {
            "class": str(name), "rows": int(v["rows"]), "recall": _number(v["recall"]), "low": _number(v["low"]),
            "high": _number(v["high"]), "taken_for": str(v["taken for"]), "threshold": float(advice.thresholds[name]),
        }
        for name, v in advice.recalls.iterrows()
    ]  # fmt: skip
    return {
        "version": VERSION, "classes": len(data.classes), "metric": "macro_recall", "best": list(advice.best),
        "verdict": " ".join(many_verdict(advice)), "confidence": advice.confidence, "agrees": advice.agrees,
        "level": advice.level,
        "classifier": {"loss": setting.loss, "kernel": "linear", "C": advice.C, "scheme": "one versus rest"},
        "nothing": _number(advice.nothing), "table": _table_rows(advice), "recalls": classes,
        "confusion": [[_number(value) for value in line] for line in advice.confusion.to_numpy()],
        "notes": list(advice.notes),
        "data": {"rows": int(data.sizes.sum()), **_columns_read(data)},
    }  # fmt: skip


def many_to_json(advice):
    """Return the advice as one JSON object, without NaN."""
    return _json(many_as_dict(advice))
