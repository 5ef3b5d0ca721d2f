"""Write an advice in words: names of remedies, verdict, explanation, the text of the command, and code to copy."""

import json
import shlex
import shutil
import textwrap

import numpy as np

from ..losses import LOSSES
from ..strategies import REMEDIES
from ._judgement import displaced
from ._selection import PREDICTION_ERROR, simplest

WIDEST = 100  # characters in a line of the text that the command prints; fewer where the terminal has fewer
SHOWN = 12  # classes that the terminal lists, those with the lowest recalls first
MORE_COLUMNS = "columns of the same kind"


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


# ---- the explanation


def explain(advice):
    """Return paragraphs: a disagreement first, then what to do and why, how much it matters, and how sure it is."""
    parts = [_disagreement(advice)] if advice.agrees is False else [_offset(advice)]
    parts += [_recommendation(advice), training_sentence(advice), _best_mixing(advice), _confidence(advice)]
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
    sentence = (
        f"Trained classifiers {verb} {abs(advice.offset):.3f} ± {advice.offset_error:.3f} {by} than predicted, "
        f"in {share} remedies."
    )
    return sentence if advice.agrees is False else sentence + " That may be chance, but believe the measured column."


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
    step = REMEDIES[strategy].doing
    if REMEDIES[strategy].searched:
        step += f" (mixing {advice.table.loc[advice.best, 'mixing']:.2f})"
    each = " of each class" if advice.many else ""
    return step + (f", and move the threshold{each}." if threshold == "moved" else ".")


def _recommendation(advice):
    row, name = advice.table.loc[advice.best], title(advice)
    first = f"Train {machine(advice, article=True)}. " if advice.whole else ""
    sentence = (
        f"{first}{doing(advice)} Predicted {name}: {row['predicted']:.3f} "
        f"({advice.level:.0%} interval {row['low']:.3f} to {row['high']:.3f})"
    )
    if advice.whole:
        sentence += f"; doing nothing would give {nothing(advice):.3f}"
    elif advice.best != ("as is", "trained"):
        sentence += f"; the data as they are would give {nothing(advice):.3f}"
    if "measured" in advice.table:
        sentence += f"; cross-validation measures {row['measured']:.3f} ± {row['measured_error']:.3f}"
    sentence += "."
    top = advice.table["behind"].idxmin()
    others = [remedy(r) for r in advice.table.index[advice.table["as_good"]] if r != advice.best]
    if not row["as_good"] and advice.agrees is not False:
        sentence += (
            f" Predicted best is “{remedy(top)}”, with {advice.table.loc[top, 'predicted']:.3f}: a lead smaller than "
            "what predictions err by on real tables, so the simpler remedy comes first."
        )
    elif others:
        sentence += f" As good within one standard error: {'; '.join(others)}."
    return f"{sentence} {_reason(advice)}".strip()


def _reason(advice):
    """Return a sentence on why the theory recommends it, empty where it gains next to nothing."""
    if advice.whole:
        return _worth_of_C(advice)
    table, (strategy, threshold) = advice.table, advice.best
    at = advice.setting.record.sign * table["predicted"]
    if threshold == "moved":
        gain = at[advice.best] - at[(strategy, "trained")]
        lost = at[advice.best] - at[("undersampling", "moved")]
        sentence = f"Imbalance mostly displaces the threshold: putting it back is worth {gain:.3f}"
        if lost > 0.002:
            sentence += f", while throwing samples away would cost {lost:.3f}"
        return sentence + "."
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


def training_sentence(advice):
    """Return a sentence on what was trained for the level, empty if nothing was."""
    level = advice.trained
    if level is None or not level.measured:
        return ""
    row = next(iter(level.measured))
    value, error, expected = level.measured[row]
    return (
        f"The level is that of theory and training together: in {level.fits} fits to folds of {level.rows:,} rows "
        f"“{remedy(row)}” measured {value:.3f} ± {error:.3f}, where the theory alone expects {expected:.3f}."
    )


def _best_mixing(advice):
    """Return a sentence on the range of good mixings."""
    low, high, best = advice.mixing_low, advice.mixing_high, advice.mixing
    if low == 0.0 and high == 1.0:
        return "If you resample: any mixture of under- and oversampling is within one standard error of the best."
    return (
        f"If you resample: the best mixture is {best:.0%} of the way from under- to oversampling; "
        f"anything from {low:.0%} to {high:.0%} is within one standard error."
    )


def _confidence(advice):
    data = advice.data
    sentence = f"Confidence: {advice.confidence} ({data.n_pos:,} positive and {data.n_neg:,} negative samples"
    if advice.agrees is not None:
        checked = ", cross-validation leaves it open" if displaced(advice) else ", checked by cross-validation"
        sentence += checked if advice.agrees else ", cross-validation disagrees"
    return sentence + ")."


def _columns_used(data):
    """Return how many columns of which kind are used."""
    kinds = f"{len(data.numeric)} numeric" + (f", {len(data.categorical)} categorical" if data.categorical else "")
    return f"{len(data.columns)} columns used ({kinds}; {data.D} features)"


def summary(advice):
    """Return lines about the table that was read and the classifier."""
    data = advice.data
    lines = [
        f"{data.n_pos + data.n_neg:,} rows, {_columns_used(data)}; "
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
    """Return the text on an advice: of the whole classifier, if C or the kernel was searched, or of the remedies."""
    if advice.whole:
        return whole_text(advice)
    paragraphs = [fold(line) for line in explain(advice).split("\n")]
    return "\n".join([*map(fold, summary(advice)), "", *_table_lines(advice), "", *paragraphs])


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


# ---- the text of the command, if C or the kernel was searched


def verdict(advice):
    """Return two sentences: what to train, and what to expect of it against doing nothing."""
    advised = f"Train {machine(advice, article=True)}. {doing(advice)}"
    return advised, _expectation(advice, title(advice), nothing(advice))


def _expectation(advice, metric, baseline):
    """Return a sentence on the predicted metric, its interval or what contradicts it, and the baseline."""
    row = advice.table.loc[advice.best]
    interval = f"{advice.level:.0%} interval {row['low']:.3f} to {row['high']:.3f}"
    if advice.agrees is False:
        interval = f"but cross-validation measures {row['measured']:.3f} ± {row['measured_error']:.3f}"
    return f"Expect {metric} {row['predicted']:.3f} ({interval}); doing nothing gives {baseline:.3f}."


def whole_text(advice, command=(), *, rates=(), bold=False):
    """Return the text that the command prints, if C or the kernel was searched.

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
    parts = [*_headlines(verdict(advice), bold), "", *_short(advice), ""]
    parts += [*map(fold, (*rates, *sentences(advice))), "", *_code_lines(advice)]
    parts += ["", *map(fold, summary(advice))]
    return "\n".join([*parts, "", *map(clean, command)] if command else parts)


def _headlines(lines, bold):
    """Return the lines of the verdict as the terminal shows them."""
    return [f"\x1b[1m{fold(line)}\x1b[0m" if bold else fold(line) for line in lines]


def _code_lines(advice):
    """Return the lines of the short code, indented."""
    return [f"  {clean(line)}" for line in code(advice, short=True).split("\n")]


def sentences(advice):
    """Return sentences on more data, probabilities, wanted rates, confidence and notes."""
    parts = [_offset(advice)] if advice.agrees is not None else []
    parts += [training_sentence(advice), more_data(advice), probability_sentence(advice), _confidence(advice)]
    return [line for line in (*parts, *(f"Note: {clean(note)}" for note in advice.notes)) if line]


def more_data(advice):
    """Return a sentence on what more rows of either class would bring, and more columns."""
    parts = []
    for row in _doubled(advice):
        now, kind = row["predicted"] - row["gain"], MORE_COLUMNS if row["kind"] == "columns" else row["kind"]
        if abs(row["gain"]) < 0.005 * advice.setting.unit:
            parts.append(f"{row['more']:,} more {kind}: no change to speak of")
            continue
        parts.append(
            f"{row['more']:,} more {kind}: {now:.3f} → {row['predicted']:.3f} "
            f"({row['gain_low']:+.3f} to {row['gain_high']:+.3f})"
        )
    return "; ".join(parts) + "."


def probability_sentence(advice):
    """Return a sentence on the probabilities of the recommended classifier."""
    link = advice.calibration
    if not link.slope > 0.0:
        return ""
    line = f"{link.slope:.3g} s {'-' if link.intercept < 0.0 else '+'} {abs(link.intercept):.3g}"
    sentence = f"Probability of a positive with the score s: 1/(1 + exp(-({line})))"
    return f"{sentence}, in the mix of this table; pipeline(probabilities=True) has them."


def rate_sentence(advice, recall=None, precision=None):
    """Return a sentence on the threshold for a wanted recall or precision."""
    name, value = ("recall", recall) if precision is None else ("precision", precision)
    cut = advice.threshold_for(recall=recall, precision=precision)
    if not abs(cut.threshold) < float("inf"):
        return f"At a {name} of {value:g}: no threshold has it."
    other = "precision" if name == "recall" else "recall"
    return (
        f"At a {name} of {value:g}: threshold {cut.threshold:.3g} ± {cut.threshold_se:.2g} of decision_function, "
        f"{other} {getattr(cut, other):.3f} ± {getattr(cut, f'{other}_se'):.3f}."
    )


def _short(advice):
    """Return the lines of a short table: the simpler of two thresholds of each strategy, and doing nothing."""
    table, rows = advice.table, []
    for strategy in dict.fromkeys(table.index.get_level_values("strategy")):
        same = table.index[table.index.get_level_values("strategy") == strategy]
        height = advice.setting.record.sign * table.loc[same, "predicted"]
        best = simplest(height.max() - height <= PREDICTION_ERROR * advice.setting.unit, advice.setting)
        rows.append(advice.best if strategy == advice.best[0] else best)
    checked = "measured" in table
    head = f"{'':32}{'C':>8}{'predicted':>11}{f'{advice.level:.0%} interval':>18}"
    lines = [head + (f"{'in a fold':>11}{'measured':>19}" if checked else "")]
    for row in rows:
        v = table.loc[row]
        line = f"{'*' if row == advice.best else ' '} {remedy(row):30}{advice.C_of(row):>8g}{v['predicted']:>11.3f}"
        line += f"{v['low']:>10.3f} … {v['high']:.3f}"
        if checked:
            line += f"{v['expected']:>11.3f}{v['measured']:>11.3f} ± {v['measured_error']:.3f}"
        lines.append(line)
    C = 1.0 if "C" in table else advice.setting.C
    return [*lines, f"  {'doing nothing':30}{C:>8g}{nothing(advice):>11.3f}", "* recommended"]


def _doubled(advice):
    """Return the rows of the curve that double each class and the columns, or nearly so, what gains most first."""
    curve, rows = advice.curve_of_data, []
    sizes = {"positives": advice.data.n_pos, "negatives": advice.data.n_neg, "columns": len(advice.data.columns)}
    for kind, n in sizes.items():
        part = curve[(curve["kind"] == kind) & (curve["more"] > 0)]
        if len(part):
            rows.append(part.iloc[int(np.argmin(np.abs(np.log(part["more"] / n))))])
    return sorted(rows, key=lambda row: -advice.setting.record.sign * row["gain"])


# ---- code, and the next command


def code(advice, short=False):
    """Return Python code that reads the table as it was read here, and trains the recommended classifier.

    The short form is for an advice that nobody has changed since.
    """
    data, options, source = advice.data, dict(advice.asked), advice.data.source
    lines = ["import rbal", "# X, y: the features and the labels, as they were given here"]
    if source is not None:
        name = "table.csv" if source.path is None else str(source.path)
        lines[1] = f"X, y = rbal.advice.read_table({_written(name, source.label, **source.options)})"
        if source.path is None:
            lines.insert(1, "# the table came from standard input: save it as a file, and put its path here")
    if not advice.many:
        label = data.positive
        options["positive"] = label if type(label) in (str, int, float, bool) else str(label)
    seed = options.get("random_state", 0)
    lines.append(f"advice = rbal.advise(X, y, {_written(**options)})".replace(", )", ")"))
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


# ---- three classes or more


def many_machine(advice):
    """Return the recommended classifier within a sentence."""
    return f"a {LOSSES[advice.setting.loss].title}, one machine for each class, C = {advice.C:g}"


def many_verdict(advice):
    """Return two sentences: what to train, and what to expect of it against doing nothing."""
    return f"Train {many_machine(advice)}. {doing(advice)}", _expectation(advice, "macro recall", advice.nothing)


def class_sentences(advice):
    """Return sentences on the classes that fare worst, and on the confidence."""
    low = advice.recalls.sort_values("recall").iloc[0]
    sentences = [
        f"Hardest class: {clean(low.name)}, recall {low['recall']:.3f} ({low['low']:.3f} to {low['high']:.3f}), most "
        f"often taken for {clean(low['taken for'])}."
    ]
    smallest = int(advice.data.sizes.min())
    checked = {None: "", True: ", checked by cross-validation", False: ", cross-validation disagrees"}[advice.agrees]
    T = len(advice.data.classes)
    sentences.append(f"Confidence: {advice.confidence} ({T} classes, the smallest of {smallest:,} rows{checked}).")
    return sentences + [f"Note: {clean(note)}" for note in advice.notes]


def many_explain(advice):
    """Return the recommendation and what to expect of it, in paragraphs."""
    return "\n".join([*many_verdict(advice), *class_sentences(advice)])


def many_text(advice, *, bold=False):
    """Return the text that the command prints: verdict, remedies, classes, code."""
    parts = [*_headlines(many_verdict(advice), bold), "", *_many_table_lines(advice), "", *_class_lines(advice), ""]
    parts += [*map(fold, class_sentences(advice)), "", *_code_lines(advice), ""]
    data = advice.data
    parts.append(fold(f"{data.sizes.sum():,} rows, {len(data.classes)} classes, {_columns_used(data)}"))
    return "\n".join(parts)


def _many_table_lines(advice):
    table, checked = advice.table, "measured" in advice.table
    head = f"{'':32}{'C':>8}{'macro recall':>14}{f'{advice.level:.0%} interval':>18}{'lowest':>9}"
    lines = [head + (f"{'in a fold':>11}{'measured':>17}" if checked else "")]
    for row, v in table.iterrows():
        line = f"{'*' if row == advice.best else ' '} {remedy(row):30}{v['C']:>8.3g}{v['predicted']:>14.3f}"
        line += f"{v['low']:>10.3f} … {v['high']:.3f}{v['lowest']:>9.3f}"
        if checked:
            line += f"{v['expected']:>11.3f}{v['measured']:>9.3f} ± {v['measured_error']:.3f}"
        lines.append(line)
    return [*lines, "* recommended; lowest: recall of the class that fares worst"]


def _class_lines(advice):
    table = advice.recalls.sort_values("recall", kind="stable")
    lines = [f"{'class':24}{'rows':>9}{'recall':>9}{f'{advice.level:.0%} interval':>18}   mostly taken for"]
    for name, v in table.head(SHOWN).iterrows():
        shown, other = (textwrap.shorten(clean(word), 22, placeholder="…") for word in (name, v["taken for"]))
        lines.append(f"{shown:24}{v['rows']:>9,}{v['recall']:>9.3f}{v['low']:>10.3f} … {v['high']:.3f}   {other}")
    return lines + ([f"and {len(table) - SHOWN} classes with higher recalls"] if len(table) > SHOWN else [])
