"""Tell an advice on the whole classifier on a terminal: the verdict first, in two lines, and the next command last."""

import shlex

import numpy as np

from . import _report
from ._choice import TRUST, simplest
from ._outlook import more_of_each
from ._report import clean, doing, fold, machine, nothing, remedy, title

MORE_COLUMNS = "columns of the same kind"


def verdict(advice):
    """Return two sentences: what to train, and what to expect of it against doing nothing."""
    row = advice.table.loc[advice.best]
    train = f"Train {machine(advice, article=True)}. {doing(advice)}"
    interval = f"{advice.level:.0%} interval {row['low']:.3f} to {row['high']:.3f}"
    if advice.agrees is False:
        interval = f"but cross-validation measures {row['measured']:.3f} ± {row['measured_error']:.3f}"
    return (
        train,
        f"Expect {title(advice)} {row['predicted']:.3f} ({interval}); doing nothing gives {nothing(advice):.3f}.",
    )


def text(advice, command=(), *, rates=(), bold=False):
    """Return the text that the command prints.

    Parameters
    ----------
    advice : Advice
    command : tuple of str
        Lines on the next one to try.
    rates : list of str
        Sentences on wanted rates.
    bold : bool
        Whether the verdict is in bold, by the codes of a terminal.

    Returns
    -------
    str
    """
    parts = [fold(line) for line in verdict(advice)]
    parts = [f"\x1b[1m{part}\x1b[0m" for part in parts] if bold else parts
    parts += ["", *_short(advice), ""]
    parts += [fold(line) for line in (*rates, *lines(advice))]
    parts += ["", *(f"  {clean(line)}" for line in code(advice, short=True).split("\n"))]
    parts += ["", *map(fold, _report.summary(advice))]
    return "\n".join([*parts, "", *map(clean, command)] if command else parts)


def lines(advice):
    """Return sentences on more data, probabilities, wanted rates, confidence and notes."""
    said = [_report._offset(advice)] if advice.agrees is not None else []
    said += [_report.of_training(advice), of_data(advice), of_probabilities(advice), _report._confidence(advice)]
    return [line for line in (*said, *(f"Note: {clean(note)}" for note in advice.notes)) if line]


def of_data(advice):
    """Return a sentence on what more rows of either class would bring, and more columns."""
    parts = []
    for row in more_of_each(advice):
        now, kind = row["predicted"] - row["gain"], MORE_COLUMNS if row["kind"] == "columns" else row["kind"]
        if abs(row["gain"]) < 0.005 * advice.setting.unit:
            parts.append(f"{row['more']:,} more {kind}: no change to speak of")
            continue
        parts.append(
            f"{row['more']:,} more {kind}: {now:.3f} → {row['predicted']:.3f} "
            f"({row['gain_low']:+.3f} to {row['gain_high']:+.3f})"
        )
    return "; ".join(parts) + "."


def of_probabilities(advice):
    """Return a sentence on the probabilities of the recommended classifier."""
    link = advice.calibration
    if not link.slope > 0.0:
        return ""
    line = f"{link.slope:.3g} s {'-' if link.intercept < 0.0 else '+'} {abs(link.intercept):.3g}"
    said = f"Probability of a positive with the score s: 1/(1 + exp(-({line})))"
    return f"{said}, in the mix of this table; pipeline(probabilities=True) has them."


def of_rates(advice, recall=None, precision=None):
    """Return a sentence on the threshold for a wanted recall or precision."""
    name, value = ("recall", recall) if precision is None else ("precision", precision)
    found = advice.threshold_for(recall=recall, precision=precision)
    if not abs(found.threshold) < float("inf"):
        return f"At a {name} of {value:g}: no threshold has it."
    other = "precision" if name == "recall" else "recall"
    return (
        f"At a {name} of {value:g}: threshold {found.threshold:.3g} ± {found.threshold_se:.2g} of decision_function, "
        f"{other} {getattr(found, other):.3f} ± {getattr(found, f'{other}_se'):.3f}."
    )


def _short(advice):
    """Return the lines of a short table: the simpler of two thresholds of each strategy, and doing nothing."""
    table, rows = advice.table, []
    for strategy in dict.fromkeys(table.index.get_level_values("strategy")):
        mine = table.index[table.index.get_level_values("strategy") == strategy]
        height = advice.setting.record.sign * table.loc[mine, "predicted"]
        best = simplest(height.max() - height <= TRUST * advice.setting.unit, advice.setting)
        rows.append(advice.best if strategy == advice.best[0] else best)
    checked = "measured" in table
    head = f"{'':32}{'C':>8}{'predicted':>11}{f'{advice.level:.0%} interval':>18}"
    found = [head + (f"{'in a fold':>11}{'measured':>19}" if checked else "")]
    for row in rows:
        v = table.loc[row]
        line = f"{'*' if row == advice.best else ' '} {remedy(row):30}{advice.C_of(row):>8g}{v['predicted']:>11.3f}"
        line += f"{v['low']:>10.3f} … {v['high']:.3f}"
        if checked:
            line += f"{v['expected']:>11.3f}{v['measured']:>11.3f} ± {v['measured_error']:.3f}"
        found.append(line)
    C = 1.0 if "C" in table else advice.setting.C
    return [*found, f"  {'doing nothing':30}{C:>8g}{nothing(advice):>11.3f}", "* recommended"]


def code(advice, short=False):
    """Return Python code that reads the table as it was read here, and trains the recommended classifier.

    The short form is for an advice that nobody has changed since.
    """
    data, asked, source = advice.data, dict(advice.asked), advice.data.source
    lines = ["import rbal", "# X, y: the features and the labels, as they were given here"]
    if source is not None:
        name = "table.csv" if source.path is None else str(source.path)
        lines[1] = f"X, y = rbal.advice.read_table({_written(name, source.label, **source.options)})"
        if source.path is None:
            lines.insert(1, "# the table came from standard input: save it as a file, and put its path here")
    if not getattr(advice, "many", False):
        label = data.positive
        asked["positive"] = label if type(label) in (str, int, float, bool) else str(label)
    seed = asked.get("random_state", 0)
    lines.append(f"advice = rbal.advise(X, y, {_written(**asked)})".replace(", )", ")"))
    if not short:
        lines.append(f"advice.best = {advice.best!r}  # the remedy recommended above")
    seed = seed if seed is None or seed < 2**32 else 0  # more than scikit-learn takes
    return "\n".join([*lines, f"model = advice.pipeline(random_state={seed!r}).fit(X, y)"])


def _written(*values, **options):
    """Return arguments as code."""
    return ", ".join([*map(_as_code, values), *(f"{name}={_as_code(value)}" for name, value in options.items())])


def _as_code(value):
    if isinstance(value, (list, tuple, set)):
        return f"[{', '.join(map(_as_code, value))}]"
    return repr(value.item() if isinstance(value, np.generic) else value)


def next_command(words, advice):
    """Return why to try which command next, from the words of the last one, in two lines; none after all of them."""
    if advice.agrees is None:
        return "Next, to see whether theory and data agree:", f"  rbal {shlex.join([*words, '--check'])}"
    if "--html" not in words:
        return "Next, for a report:", f"  rbal {shlex.join([*words, '--html', 'report.html'])}"
    return ()
