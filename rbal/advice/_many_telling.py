"""Tell an advice on many classes: on a terminal, as JSON, and as one HTML page without scripts or links."""

import html
import json
import textwrap

import numpy as np

from ..losses import LOSSES
from ..strategies import REMEDIES
from ._report import VERSION, _number, clean, fold, remedy
from ._telling import code

SHOWN = 12  # classes that the terminal lists, those with the lowest recalls first


def machine(advice):
    """Return the recommended classifier within a sentence."""
    return f"a {LOSSES[advice.setting.loss].title}, one machine for each class, C = {advice.C:g}"


def doing(advice):
    """Return the recommended remedy as one sentence."""
    strategy, threshold = advice.best
    what = REMEDIES[strategy].doing
    if REMEDIES[strategy].searched:
        what += f" (mixing {advice.table.loc[advice.best, 'mixing']:.2f})"
    return what + (", and move the threshold of each class." if threshold == "moved" else ".")


def verdict(advice):
    """Return two sentences: what to train, and what to expect of it against doing nothing."""
    row = advice.table.loc[advice.best]
    interval = f"{advice.level:.0%} interval {row['low']:.3f} to {row['high']:.3f}"
    if advice.agrees is False:
        interval = f"but cross-validation measures {row['measured']:.3f} ± {row['measured_error']:.3f}"
    return (
        f"Train {machine(advice)}. {doing(advice)}",
        f"Expect macro recall {row['predicted']:.3f} ({interval}); doing nothing gives {advice.nothing:.3f}.",
    )


def of_classes(advice):
    """Return sentences on the classes that fare worst, and on the confidence."""
    low = advice.recalls.sort_values("recall").iloc[0]
    said = [
        f"Hardest class: {clean(low.name)}, recall {low['recall']:.3f} ({low['low']:.3f} to {low['high']:.3f}), most "
        f"often taken for {clean(low['taken for'])}."
    ]
    smallest = int(advice.data.sizes.min())
    checked = {None: "", True: ", checked by cross-validation", False: ", cross-validation disagrees"}[advice.agrees]
    T = len(advice.data.classes)
    said.append(f"Confidence: {advice.confidence} ({T} classes, the smallest of {smallest:,} rows{checked}).")
    return said + [f"Note: {clean(note)}" for note in advice.notes]


def explain(advice):
    """Return the recommendation and what to expect of it, in paragraphs."""
    return "\n".join([*verdict(advice), *of_classes(advice)])


def text(advice, *, bold=False):
    """Return the text that the command prints: verdict, remedies, classes, code."""
    parts = [fold(line) for line in verdict(advice)]
    parts = [f"\x1b[1m{part}\x1b[0m" for part in parts] if bold else parts
    parts += ["", *_remedy_lines(advice), "", *_class_lines(advice), ""]
    parts += [fold(line) for line in of_classes(advice)]
    parts += ["", *(f"  {clean(line)}" for line in code(advice, short=True).split("\n")), ""]
    data = advice.data
    kinds = f"{len(data.numeric)} numeric" + (f", {len(data.categorical)} categorical" if data.categorical else "")
    used = f"{len(data.columns)} columns used ({kinds}; {data.D} features)"
    parts.append(fold(f"{data.sizes.sum():,} rows, {len(data.classes)} classes, {used}"))
    return "\n".join(parts)


def _remedy_lines(advice):
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


# ---- JSON


def as_dict(advice):
    """Return the whole advice as numbers, strings, lists and dicts, with None for NaN."""
    data, setting = advice.data, advice.setting
    words = verdict(advice)
    rows = [
        {"strategy": row[0], "threshold": row[1], **{name: _number(value) for name, value in values.items()}}
        for row, values in advice.table.iterrows()
    ]
    classes = [
        {
            "class": str(name), "rows": int(v["rows"]), "recall": _number(v["recall"]), "low": _number(v["low"]),
            "high": _number(v["high"]), "taken_for": str(v["taken for"]), "threshold": float(advice.thresholds[name]),
        }
        for name, v in advice.recalls.iterrows()
    ]  # fmt: skip
    return {
        "version": VERSION, "classes": len(data.classes), "metric": "macro_recall", "best": list(advice.best),
        "verdict": " ".join(words), "confidence": advice.confidence, "agrees": advice.agrees, "level": advice.level,
        "classifier": {"loss": setting.loss, "kernel": "linear", "C": advice.C, "scheme": "one versus rest"},
        "nothing": _number(advice.nothing), "table": rows, "recalls": classes,
        "confusion": [[_number(value) for value in line] for line in advice.confusion.to_numpy()],
        "notes": list(advice.notes),
        "data": {
            "rows": int(data.sizes.sum()), "features": data.D, "numeric": list(map(str, data.numeric)),
            "categorical": list(map(str, data.categorical)),
            "imputed": {str(k): v for k, v in data.imputed.items()},
            "dropped": {str(k): v for k, v in data.dropped.items()},
        },
    }  # fmt: skip


def to_json(advice):
    """Return the advice as one JSON object, without NaN."""
    lines = json.dumps(as_dict(advice), indent=2, ensure_ascii=False, allow_nan=False).split("\n")
    return "\n".join(map(clean, lines))


# ---- HTML


def _escaped(words):
    return html.escape(clean(str(words)))


def _grid(head, rows, best=None):
    """Return an HTML table of strings; the row of that index is marked."""
    top = "".join(f"<th>{_escaped(word)}</th>" for word in head)
    body = "".join(
        f"<tr{' class=best' if k == best else ''}>{''.join(f'<td>{_escaped(cell)}</td>' for cell in row)}</tr>"
        for k, row in enumerate(rows)
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _remedies(advice):
    head = ["remedy", "C", "macro recall", f"{advice.level:.0%} interval", "lowest recall"]
    checked = "measured" in advice.table
    rows = []
    for row, v in advice.table.iterrows():
        line = [remedy(row), f"{v['C']:.3g}", f"{v['predicted']:.3f}", f"{v['low']:.3f} to {v['high']:.3f}"]
        line.append(f"{v['lowest']:.3f}")
        rows.append(line + ([f"{v['measured']:.3f} ± {v['measured_error']:.3f}"] if checked else []))
    return _grid(head + (["measured"] if checked else []), rows, list(advice.table.index).index(advice.best))


def _classes(advice):
    head = ["class", "rows", "recall", f"{advice.level:.0%} interval", "mostly taken for", "threshold"]
    rows = [
        [
            name,
            f"{v['rows']:,}",
            f"{v['recall']:.3f}",
            f"{v['low']:.3f} to {v['high']:.3f}",
            v["taken for"],
            f"{cut:.3g}",
        ]
        for (name, v), cut in zip(advice.recalls.iterrows(), advice.thresholds, strict=True)
    ]
    return _grid(head, rows)


def _confusion(advice):
    """Return the confusion matrix in percent, darker where it is more."""
    names, body = [_escaped(name) for name in advice.confusion.columns], []
    for name, line in zip(names, advice.confusion.to_numpy(), strict=True):
        cells = "".join(
            f'<td style="background:rgb(0 114 178 / {0.6 * np.sqrt(max(value, 0.0)):.2f})">'
            f"{f'{100 * value:.0f}' if value >= 0.005 else ''}</td>"
            for value in line
        )
        body.append(f"<tr><th>{name}</th>{cells}</tr>")
    top = "".join(f"<th>{name}</th>" for name in names)
    return f"<table><thead><tr><th></th>{top}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _verdict(advice):
    first, second = verdict(advice)
    kind = "verdict disagree" if advice.agrees is False else "verdict"
    said = "".join(f"<p>{_escaped(line)}</p>" for line in (second, *of_classes(advice)[:2]))
    return f'<section class="{kind}"><h2>{_escaped(first)}</h2>{said}</section>'


def to_fragment(advice):
    """Return the verdict and the table of remedies, for a notebook."""
    from ._page import FRAGMENT

    return f'<div class="rbal-advice"><style>{FRAGMENT}</style>{_verdict(advice)}{_remedies(advice)}</div>'


def to_html(advice):
    """Return the page."""
    from .. import __version__
    from ._page import STYLE

    notes = "".join(f"<p>{_escaped(line)}</p>" for line in of_classes(advice))
    told = html.escape("\n".join(map(clean, code(advice, short=True).split("\n"))))
    return PAGE.format(
        style=STYLE, verdict=_verdict(advice), code=told,
        classes=_classes(advice), confusion=_confusion(advice), remedies=_remedies(advice), notes=notes,
        version=__version__,
    )  # fmt: skip


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Advice on an imbalanced table</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{style}</style></head><body><main>
<h1>Advice on an imbalanced table</h1>
{verdict}
<h2>In Python</h2>
<div class="scroll"><pre><code>{code}</code></pre></div>
<h2>Every class</h2>
<div class="scroll" role="region" aria-label="Every class, in numbers" tabindex="0">{classes}</div>
<h2>Who is taken for whom</h2>
<div class="scroll" role="region" aria-label="Confusion matrix" tabindex="0">{confusion}</div>
<p><small>Of each class (row), percent that are answered as each class (column), as predicted. Shares below half a
percent are left out.</small></p>
<h2>Every remedy</h2>
<div class="scroll" role="region" aria-label="Every remedy, in numbers" tabindex="0">{remedies}</div>
<p><small>Marked: recommended. Macro recall is the mean recall over the classes, lowest that of the class that fares
worst. All intervals are that of the recommended remedy, moved.</small></p>
<h2>How sure</h2>
{notes}
<p><small>Made by rbal {version}. Predicted: mean over training sets of this size; its interval is that of the class
statistics, and of what the theory errs by on real tables.</small></p>
</main></body></html>
"""
