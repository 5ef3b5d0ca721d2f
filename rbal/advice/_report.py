"""Write an advice in words, as a figure and as JSON."""

import json
import math
import shutil
import textwrap

import numpy as np

from ..losses import LOSSES
from ..strategies import REMEDIES
from ._judgement import displaced

VERSION = 1  # of the JSON: a later one may leave out or rename what an earlier one has, but not within a number
WIDEST = 100  # characters in a line of the text that the command prints; fewer where the terminal has fewer


def remedy(row):
    """Return the name of a remedy, from its (strategy, threshold)."""
    strategy, threshold = row
    return f"{strategy}, threshold moved" if threshold == "moved" else strategy


def title(advice):
    """Return the name of the metric within a sentence."""
    return advice.setting.record.title


def clean(text):
    """Escape control characters and writing directions in text from a file, so that no terminal obeys them."""
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] if c != "\x7f" else "\\u007f" for c in str(text))


def fold(line):
    """Break a line of words as the terminal would, but between words."""
    width = min(shutil.get_terminal_size((WIDEST, 0)).columns, WIDEST)
    return textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)


def explain(advice):
    """Return paragraphs: a disagreement first, then what to do and why, how much it matters, and how sure it is."""
    parts = [_disagreement(advice)] if advice.agrees is False else [_offset(advice)]
    parts += [_recommendation(advice), of_training(advice), _flat(advice), _confidence(advice)]
    parts += [f"Note: {clean(note)}" for note in advice.notes]
    return "\n".join(part for part in parts if part)


def _disagreement(advice):
    table = advice.table
    gap = (table["measured"] - table["expected"]).abs()
    worst = gap.idxmax()
    parts = [
        "THEORY AND DATA DISAGREE.",
        _offset(advice),
        f"Believe the measured column, not the predicted one: for “{remedy(worst)}” the theory expects "
        f"{table.loc[worst, 'expected']:.3f} and cross-validation measures {table.loc[worst, 'measured']:.3f} ± "
        f"{table.loc[worst, 'measured_error']:.3f}.",
    ]
    return " ".join(part for part in parts if part)


def _offset(advice):
    """Return a sentence on the mean offset of all remedies, empty unless it is large."""
    if not displaced(advice):
        return ""
    gap = advice.table["measured"] - advice.table["expected"]
    alike = int((np.sign(gap) == np.sign(advice.offset)).sum())
    words = {5: "five", 10: "ten"}
    rows = words.get(len(gap), len(gap))
    share = f"all {rows}" if alike == len(gap) else f"{alike} of {rows}"
    verb, by = ("cost", "more") if advice.setting.record.priced else ("score", "higher")
    by = by if advice.offset > 0.0 else {"more": "less", "higher": "lower"}[by]
    said = (
        f"Trained classifiers {verb} {abs(advice.offset):.3f} ± {advice.offset_error:.3f} {by} than predicted, "
        f"in {share} remedies."
    )
    return said if advice.agrees is False else said + " That may be chance, but believe the measured column."


def machine(advice, article=False):
    """Return the recommended classifier within a sentence, with its article if that is asked for."""
    setting = advice.setting
    if setting.kernel == "linear":
        name = LOSSES[setting.loss].title
        return f"{'a ' if article else ''}{name}, C = {advice.C:g}"
    return (
        f"{'an ' if article else ''}SVM with an {setting.kernel.upper()} kernel, C = {advice.C:g}, "
        f"gamma = {setting.gamma:g}"
    )


def nothing(advice):
    """Return the prediction for doing nothing: the data as they are and, if C was left open, C = 1."""
    return advice.nothing if advice.whole else float(advice.table.loc[("as is", "trained"), "predicted"])


def doing(advice):
    """Return the recommended remedy as one sentence."""
    strategy, threshold = advice.best
    what = REMEDIES[strategy].doing
    if REMEDIES[strategy].searched:
        what += f" (mixing {advice.table.loc[advice.best, 'mixing']:.2f})"
    return what + (", and move the threshold." if threshold == "moved" else ".")


def _recommendation(advice):
    row, name = advice.table.loc[advice.best], title(advice)
    first = f"Train {machine(advice, article=True)}. " if advice.whole else ""
    said = (
        f"{first}{doing(advice)} Predicted {name}: {row['predicted']:.3f} "
        f"({advice.level:.0%} interval {row['low']:.3f} to {row['high']:.3f})"
    )
    if advice.whole:
        said += f"; doing nothing would give {nothing(advice):.3f}"
    elif advice.best != ("as is", "trained"):
        said += f"; the data as they are would give {nothing(advice):.3f}"
    if "measured" in advice.table:
        said += f"; cross-validation measures {row['measured']:.3f} ± {row['measured_error']:.3f}"
    said += "."
    top = advice.table["behind"].idxmin()
    others = [remedy(r) for r in advice.table.index[advice.table["as_good"]] if r != advice.best]
    if not row["as_good"] and advice.agrees is not False:
        said += (
            f" Predicted best is “{remedy(top)}”, with {advice.table.loc[top, 'predicted']:.3f}: a lead smaller than "
            "what predictions err by on real tables, so the simpler remedy comes first."
        )
    elif others:
        said += f" As good within one standard error: {'; '.join(others)}."
    return f"{said} {_reason(advice)}".strip()


def _reason(advice):
    """Return a sentence on why the theory recommends it, empty where it gains next to nothing."""
    if advice.whole:
        return _worth_of_C(advice)
    table, (strategy, threshold) = advice.table, advice.best
    at = advice.setting.record.sign * table["predicted"]
    if threshold == "moved":
        gain = at[advice.best] - at[(strategy, "trained")]
        lost = at[advice.best] - at[("undersampling", "moved")]
        said = f"Imbalance mostly displaces the threshold: putting it back is worth {gain:.3f}"
        if lost > 0.002:
            said += f", while throwing samples away would cost {lost:.3f}"
        return said + "."
    if strategy == "as is":
        return "At this size and ridge, imbalance does no harm that a remedy would undo."
    gain = at[advice.best] - at[("as is", "trained")]
    if gain > 0.002:
        return f"It restores the balance that the trained threshold needs, which is worth {gain:.3f}."
    return ""


def _worth_of_C(advice):
    """Return a sentence on what the choice of C is worth, empty where that is not known, or nothing."""
    c, setting = advice.candidates, advice.setting
    same = (c["strategy"] == advice.best[0]) & (c["threshold"] == advice.best[1]) & (c["kernel"] == setting.kernel)
    same &= (c["gamma"] == setting.gamma) | (setting.gamma is None)
    plain = c[same & (c["C"] == 1.0)]["predicted"]
    if advice.C == 1.0 or plain.empty:
        return ""
    gain = setting.record.sign * (advice.table.loc[advice.best, "predicted"] - plain.iloc[0])
    return f"With C = 1 the same remedy would give {plain.iloc[0]:.3f}." if gain > 0.0 else ""


def of_training(advice):
    """Return a sentence on what was trained for the level, empty if nothing was."""
    found = advice.trained
    if found is None or not found.measured:
        return ""
    row = next(iter(found.measured))
    value, error, alone = found.measured[row]
    return (
        f"The level is that of theory and training together: in {found.fits} fits to folds of {found.rows:,} rows "
        f"“{remedy(row)}” measured {value:.3f} ± {error:.3f}, where the theory alone expects {alone:.3f}."
    )


def _flat(advice):
    low, high, best = advice.mixing_low, advice.mixing_high, advice.mixing
    if low == 0.0 and high == 1.0:
        return "If you resample: any mixture of under- and oversampling is within one standard error of the best."
    return (
        f"If you resample: the best mixture is {best:.0%} of the way from under- to oversampling; "
        f"anything from {low:.0%} to {high:.0%} is within one standard error."
    )


def _confidence(advice):
    data = advice.data
    said = f"Confidence: {advice.confidence} ({data.n_pos:,} positive and {data.n_neg:,} negative samples"
    if advice.agrees is not None:
        checked = ", cross-validation leaves it open" if displaced(advice) else ", checked by cross-validation"
        said += checked if advice.agrees else ", cross-validation disagrees"
    return said + ")."


def summary(advice):
    """Return lines about the table that was read and the classifier."""
    data = advice.data
    kinds = f"{len(data.numeric)} numeric" + (f", {len(data.categorical)} categorical" if data.categorical else "")
    lines = [
        f"{data.n_pos + data.n_neg:,} rows, {len(data.columns)} columns used ({kinds}; {data.D} features); "
        f"positive: {clean(data.positive)} ({data.n_pos:,}), negative: {clean(data.negative)} ({data.n_neg:,})",
        f"{machine(advice)}, {'standardised' if data.standardize else 'as they are'}; metric: {title(advice)}",
    ]
    if data.imputed:
        shown = ", ".join(f"{clean(name)} ({count:,})" for name, count in list(data.imputed.items())[:5])
        more = f" and {len(data.imputed) - 5} more columns" if len(data.imputed) > 5 else ""
        lines.append(f"missing values imputed: {shown}{more}")
    if data.dropped:
        shown = ", ".join(f"{clean(name)} ({why})" for name, why in list(data.dropped.items())[:5])
        more = f" and {len(data.dropped) - 5} more" if len(data.dropped) > 5 else ""
        lines.append(f"columns left out: {shown}{more}")
    return lines


def text(advice):
    """Return the text that the command prints."""
    if advice.whole:
        from ._telling import text as whole

        return whole(advice)
    said = [fold(line) for line in explain(advice).split("\n")]
    return "\n".join([*map(fold, summary(advice)), "", *_table_lines(advice), "", *said])


def _table_lines(advice):
    head = f"{'':32}{'predicted':>10}{f'{advice.level:.0%} interval':>18}"
    checked = "measured" in advice.table
    if checked:
        head += f"{'in a fold':>11}{'measured':>19}"
    lines = [head]
    for row, values in advice.table.iterrows():
        mark = "*" if row == advice.best else ("~" if values["as_good"] else " ")
        line = f"{mark} {remedy(row):30}{values['predicted']:>10.3f}{values['low']:>10.3f} … {values['high']:.3f}"
        if checked:
            line += f"{values['expected']:>11.3f}{values['measured']:>11.3f} ± {values['measured_error']:.3f}"
        lines.append(line)
    lines.append("* recommended, ~ as good within one standard error")
    return lines


def plot(advice, axes=None):
    """Draw the remedies with their intervals, and the metric against the mixing; return the figure."""
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


def as_dict(advice):
    """Return the whole advice as numbers, strings, lists and dicts, with None for NaN."""
    data, setting = advice.data, advice.setting
    rows = [
        {"strategy": row[0], "threshold": row[1], **{name: _number(value) for name, value in values.items()}}
        for row, values in advice.table.iterrows()
    ]
    found = {
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
        "table": rows,
        "classifier": {"loss": setting.loss, "C": setting.C, "standardize": data.standardize},
        "costs": list(setting.costs) if setting.record.priced else None,
        "data": {
            "positive": str(data.positive), "negative": str(data.negative), "n_pos": data.n_pos, "n_neg": data.n_neg,
            "features": data.D,
            "numeric": list(map(str, data.numeric)),
            "categorical": list(map(str, data.categorical)),
            "imputed": {str(k): v for k, v in data.imputed.items()},
            "dropped": {str(k): v for k, v in data.dropped.items()},
        },
    }  # fmt: skip
    if advice.trained is not None:
        found["trained"] = _trained(advice.trained)
    return found | _whole(advice) if advice.whole else found


def _trained(found):
    """Return what was trained for the level."""
    rows = [
        {"strategy": row[0], "threshold": row[1], "measured": _number(v), "error": _number(e), "expected": _number(h)}
        for row, (v, e, h) in found.measured.items()
    ]
    return {"log_distance": _number(found.u), "error": _number(found.error), "rows": found.rows, "fits": found.fits,
            "machines": rows}  # fmt: skip


def _whole(advice):
    """Return what an advice on the whole classifier has beside the rest."""
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
    lines = json.dumps(as_dict(advice) | more, indent=2, ensure_ascii=False, allow_nan=False).split("\n")
    return "\n".join(map(clean, lines))  # these escapes are those of JSON
