"""Write an advice as one HTML page: verdict, threshold, code to copy, probabilities, and then the numbers.

The page has no script and no link, and everything that came from the table is escaped.
"""

import html
import io
import re

import numpy as np

from .._support.extras import needs
from ..losses import LOSSES
from ..strategies import REMEDIES
from ._pipeline import learner
from ._report import plot
from ._text import (
    class_sentences,
    clean,
    code,
    doing,
    explain,
    machine,
    many_verdict,
    more_data,
    nothing,
    probability_sentence,
    remedy,
    summary,
    title,
)  # fmt: skip

INK, BAND = "#222221", "#ebebeb"  # colours of the figure that the page replaces, since it may be dark


def to_fragment(advice):
    """Return the verdict and the table for a notebook, with colours of their own and nothing that needs a style."""
    return f'<div class="rbal-advice"><style>{FRAGMENT}</style>{_verdict(advice)}{_table(advice)}</div>'


def to_html(advice):
    """Return the page."""
    from .. import __version__

    parts = {
        "verdict": _verdict(advice), "threshold": _paragraphs(threshold(advice)), "figures": _figures(advice),
        "table": _table(advice), "code": _text(code(advice)), "probabilities": _paragraphs(probabilities(advice)),
        "words": _paragraphs(*explain(advice).split("\n")[advice.agrees is False :]),  # the verdict shows it
        "summary": _paragraphs(*summary(advice)), "more": _more_data_section(advice),
    }  # fmt: skip
    return PAGE.format(style=STYLE, version=__version__, **parts)


def _text(words):
    """Escape words for the page, line by line."""
    return "\n".join(html.escape(clean(line)) for line in str(words).split("\n"))


def _cell(words):
    """Escape words for one line of the page."""
    return html.escape(clean(str(words)))


def _paragraphs(*lines):
    return "\n".join(f"<p>{_text(line)}</p>" for line in lines if line)


# ---- the verdict


def _verdict(advice):
    """Return the section that says what to train, what to expect of it, and what of doing nothing."""
    wrong = advice.agrees is False
    warned = f'<p class="alarm">{_text(explain(advice).split(chr(10))[0])}</p>' if wrong else ""
    cards = [*_expected(advice, wrong), ("Confidence", advice.confidence, _because(advice))]
    shown = "".join(
        f"<div><dt>{_text(head)}</dt><dd><b>{_text(big)}</b><span>{_text(small)}</span></dd></div>"
        for head, big, small in cards
    )
    style = "verdict disagree" if wrong else "verdict"
    advised = f"Train {machine(advice, article=True)}. {doing(advice)}" if advice.whole else doing(advice)
    return f'<section class="{style}"><h2>{_text(advised)}</h2>{warned}<dl>{shown}</dl></section>'


def _expected(advice, wrong):
    """Return cards (head, number, words) of the verdict: measured numbers if the theory is wrong, else predicted."""
    row, plain = advice.table.loc[advice.best], advice.table.loc[("as is", "trained")]
    what = f"{title(advice)} on new data ({machine(advice)})"
    interval = f"{row['low']:.3f} to {row['high']:.3f} is the {advice.level:.0%} interval"
    measured = f"{row['measured']:.3f} ± {row['measured_error']:.3f}" if "measured" in advice.table else ""
    if wrong:
        cards = [
            ("Expect", measured, f"{what}; measured by cross-validation, where the theory says {row['expected']:.3f}")
        ]
    else:
        cards = [("Expect", f"{row['predicted']:.3f}", f"{what}; {interval}")]
        if measured:
            cards.append(("Measured", measured, f"by cross-validation, where {row['expected']:.3f} is predicted"))
    if advice.whole and not wrong:
        as_it_is = f"the defaults, on the data as they are: {_behind(advice, row['predicted'], nothing(advice))}"
        cards.append(("Doing nothing", f"{nothing(advice):.3f}", as_it_is))
    elif advice.best != ("as is", "trained"):
        column = "measured" if wrong else "predicted"
        as_it_is = f"training on the data as they are, {column}: {_behind(advice, row[column], plain[column])}"
        cards.append(("Doing nothing", f"{plain[column]:.3f}", as_it_is))
    return cards


def _behind(advice, value, plain):
    """Return how much worse training on the unmodified data would do."""
    gain = advice.setting.record.sign * (value - plain)
    if abs(gain) < 0.005 * advice.setting.unit:
        return "all but the same"
    return f"{abs(gain):.3f} {'worse' if gain > 0.0 else 'better'}"


def _because(advice):
    data = advice.data
    sizes = f"{data.n_pos:,} positive and {data.n_neg:,} negative rows"
    if advice.agrees is None:
        return f"{sizes}; not checked by training (rbal advise --check)"
    return f"{sizes}; cross-validation {'agrees' if advice.agrees else 'disagrees'}"


# ---- the threshold, and probabilities


def threshold(advice):
    """Return a paragraph on the threshold of the recommended classifier."""
    row, data = advice.table.loc[advice.best], advice.data
    called = (data.n_pos * row["tpr"] + data.n_neg * (1.0 - row["tnr"])) / (data.n_pos + data.n_neg)
    rates = (
        f"Predicted: {row['tpr']:.0%} of the positives are found and {row['tnr']:.0%} of the negatives are left in "
        f"peace, so that {called:.0%} of all rows are called positive."
    )
    if advice.agrees is False:
        rates = ""
    if advice.setting.record.ranks:
        return (
            f"The {title(advice)} does not depend on a threshold: the classifier ranks, and where to cut is "
            f"yours to say. The numbers of the table are for the threshold as trained, a score of zero. {rates}"
        )
    if advice.best[1] == "trained":
        return f"Keep the threshold as trained: predict() cuts at a score of zero. {rates}"
    best = "best" if advice.setting.record.higher_is_better else "lowest"
    return (
        f"Move it: away from a score of zero, to where the {title(advice)} is {best}. No number is given here, because "
        "it belongs to the trained classifier: the pipeline below finds it by cross-validation, trying the scores of "
        f"rows that were held out, and predict() then uses it. {rates}"
    )


def probabilities(advice):
    """Return a caveat on the probabilities of the recommended classifier."""
    (strategy, _), data = advice.best, advice.data
    share, odds = data.n_pos / (data.n_pos + data.n_neg), data.n_pos / data.n_neg
    training = "with class weights" if REMEDIES[strategy].weights else "on resampled rows" * REMEDIES[strategy].samples
    if advice.whole and (sentence := probability_sentence(advice)):
        return sentence
    if hasattr(learner(advice.setting.loss, advice.setting.C), "predict_proba"):
        sentence = (
            f"Trained {training}, the probabilities of predict_proba are"
            if training
            else "The probabilities of predict_proba are"
        )
    else:
        sentence = f"A {LOSSES[advice.setting.loss].title} gives scores (decision_function), not probabilities. "
        sentence += "Probabilities fitted to them"
        sentence += f" {training} are" if training else " are"
    if not training:
        return (
            f"{sentence} those of this table, {share:.1%} of it positive; on another mix of the classes they are off."
        )
    n_pos, n_neg, weight_pos, weight_neg = REMEDIES[strategy].design(data.n_pos, data.n_neg, 1.0)
    trained_odds = n_pos * weight_pos / (n_neg * weight_neg)  # odds of a positive in the training set
    mix, part = "another mix of the classes", f"{trained_odds / (1.0 + trained_odds):.1%}"
    if abs(trained_odds - 1.0) < 1e-9:
        mix, part = "a balanced problem", "half"
    return (
        f"{sentence} those of {mix}, not of this table: they take {part} of the rows as positive, where {share:.1%} "
        f"are. For this table multiply the odds p/(1−p) of a positive by {odds / trained_odds:.3g}, or calibrate on "
        "rows in its own mix that were not trained on."
    )


# ---- figures and numbers


def _figures(advice):
    """Return two SVG figures that take their colours from the page."""

    def draw(left, right):
        plot(advice, (left, right))
        if left.get_legend():  # the long names of the remedies leave more room on the left
            left.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncol=3, fontsize="small", columnspacing=1.0)

    metric = f"Predicted {title(advice)}"
    labels = f"{metric} of every remedy, with intervals", f"{metric} against the mixture of under- and oversampling"
    return _drawn(draw, ((4.9, 3.9), (4.1, 3.9)), labels)


def _drawn(draw, sizes, labels, first=0):
    """Return SVG figures of these sizes, whose axes ``draw`` fills, with labels for those who cannot see them."""
    with needs("plot", "the page of an advice"):
        import matplotlib as mpl
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

    from .._support.look import BLUE, SKY, VERMILLION

    inks = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK)
    clear = {"figure.facecolor": "none", "axes.facecolor": "none", "legend.frameon": False}
    with mpl.rc_context({"svg.hashsalt": "rbal", "svg.fonttype": "path", **inks, **clear}):
        figures = [Figure(figsize=size, layout="constrained") for size in sizes]
        for figure in figures:
            FigureCanvasSVG(figure)
        draw(*(figure.subplots() for figure in figures))
        drawn = [_svg(figure) for figure in figures]
    inks = {INK: "currentColor", BAND: "var(--band)", BLUE: "var(--blue)", SKY: "var(--sky)", VERMILLION: "var(--red)"}
    shown = []
    for k, (svg, label) in enumerate(zip(drawn, labels, strict=True), start=first):
        for colour, by_page in inks.items():
            svg = re.sub(colour, by_page, svg, flags=re.IGNORECASE)
        svg = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>figure{k}-", svg)  # the figures share a page, but no names
        shown.append(svg.replace("<svg ", f'<svg role="img" aria-label="{_text(label)}" ', 1))
    return "\n".join(shown)


def _more_data_section(advice):
    """Return a section on what more rows would bring, with a figure, if the whole classifier was advised on."""
    if not advice.whole:
        return ""
    from .._support.look import BLUE, VERMILLION

    curve = advice.curve_of_data

    def draw(ax):
        for kind, colour in (("positives", BLUE), ("negatives", VERMILLION)):
            part = curve[curve["kind"] == kind]
            ax.plot(part["more"], part["predicted"], color=colour, marker="o", ms=3, label=f"more {kind}")
            ax.fill_between(part["more"], part["low"], part["high"], color=colour, alpha=0.15, lw=0)
        ax.set_xscale("symlog", linthresh=max(curve["more"][curve["more"] > 0].min(), 1))
        ax.set_xlabel("rows added")
        ax.set_ylabel(title(advice))
        ax.legend(loc="best", fontsize="small")

    figure = _drawn(draw, [(4.9, 3.2)], [f"Predicted {title(advice)} against rows added to either class"], first=2)
    words = _paragraphs(
        more_data(advice), "The remedy and C are held, and so is the mix of the classes that is tested."
    )
    return f'<h2>What more data would bring</h2>\n{words}\n<div class="figures">{figure}</div>\n'


def _svg(figure):
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    svg = re.sub(r"<metadata>.*?</metadata>", "", out.getvalue(), flags=re.DOTALL)
    return svg[svg.index("<svg") :]


def _table(advice):
    checked = "measured" in advice.table
    open_C = "C" in advice.table
    heads = ["remedy", *(["C"] if open_C else []), "predicted", f"{advice.level:.0%} interval", "TPR", "TNR"]
    heads += ["predicted in a fold", "measured"] if checked else []
    lines = ["<table><thead><tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr></thead><tbody>"]
    for row, v in advice.table.iterrows():
        cells = [
            remedy(row) + (" ~" if v["as_good"] and row != advice.best else ""), *([f"{v['C']:g}"] if open_C else []),
            f"{v['predicted']:.3f}", f"{v['low']:.3f} – {v['high']:.3f}", f"{v['tpr']:.3f}", f"{v['tnr']:.3f}",
        ]  # fmt: skip
        cells += [f"{v['expected']:.3f}", f"{v['measured']:.3f} ± {v['measured_error']:.3f}"] if checked else []
        mark = ' class="best"' if row == advice.best else ""
        lines.append(f"<tr{mark}>" + "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>")
    return "\n".join([*lines, "</tbody></table>"])


# ---- three classes or more


def _grid(head, rows, best=None):
    """Return an HTML table of strings; the row of that index is marked."""
    top = "".join(f"<th>{_cell(word)}</th>" for word in head)
    body = "".join(
        f"<tr{' class=best' if k == best else ''}>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>"
        for k, row in enumerate(rows)
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _many_table(advice):
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
    names, body = [_cell(name) for name in advice.confusion.columns], []
    for name, line in zip(names, advice.confusion.to_numpy(), strict=True):
        cells = "".join(
            f'<td style="background:rgb(0 114 178 / {0.6 * np.sqrt(max(value, 0.0)):.2f})">'
            f"{f'{100 * value:.0f}' if value >= 0.005 else ''}</td>"
            for value in line
        )
        body.append(f"<tr><th>{name}</th>{cells}</tr>")
    top = "".join(f"<th>{name}</th>" for name in names)
    return f"<table><thead><tr><th></th>{top}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _many_verdict_section(advice):
    first, second = many_verdict(advice)
    style = "verdict disagree" if advice.agrees is False else "verdict"
    words = "".join(f"<p>{_cell(line)}</p>" for line in (second, *class_sentences(advice)[:2]))
    return f'<section class="{style}"><h2>{_cell(first)}</h2>{words}</section>'


def many_to_fragment(advice):
    """Return the verdict and the table of remedies, for a notebook."""
    return (
        f'<div class="rbal-advice"><style>{FRAGMENT}</style>{_many_verdict_section(advice)}{_many_table(advice)}</div>'
    )


def many_to_html(advice):
    """Return the page."""
    from .. import __version__

    notes = "".join(f"<p>{_cell(line)}</p>" for line in class_sentences(advice))
    return MANY_PAGE.format(
        style=STYLE, verdict=_many_verdict_section(advice), code=_text(code(advice, short=True)),
        classes=_classes(advice), confusion=_confusion(advice), remedies=_many_table(advice), notes=notes,
        version=__version__,
    )  # fmt: skip


# ---- templates


LIGHT = """color-scheme: light; --ink: #1f2328; --paper: #ffffff; --soft: #57606a; --line: #d8dee4; --box: #eef6fc;
  --alarm: #fdf0e8; --code: #f4f6f8; --band: #ebebeb; --blue: #0072b2; --sky: #56b4e9; --red: #c75500;"""
DARK = """color-scheme: dark; --ink: #e6e9ec; --paper: #15181c; --soft: #a3abb4; --line: #3a4149; --box: #16283a;
  --alarm: #38220f; --code: #20252b; --band: #2c333b; --blue: #5fb4ec; --sky: #b3dcf7; --red: #f28b3c;"""
STYLE = f"""
:root {{ {LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}
* {{ box-sizing: border-box }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 1.5rem auto; padding: 0 1rem;
  color: var(--ink); background: var(--paper); overflow-wrap: anywhere }}
h1 {{ font-size: 1.1rem; font-weight: 600; color: var(--soft); margin: 0 0 .75rem }}
h2 {{ font-size: 1.15rem; margin: 2rem 0 .5rem }}
p {{ margin: .5rem 0; max-width: 46rem }}
.verdict {{ background: var(--box); border-left: 5px solid var(--blue); border-radius: 4px; padding: 1rem 1.25rem }}
.verdict h2 {{ font-size: 1.45rem; line-height: 1.3; margin: 0 }}
.verdict.disagree {{ background: var(--alarm); border-color: var(--red) }}
.alarm {{ font-weight: 600; color: var(--red) }}
dl {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .75rem 1.5rem;
  margin: 1rem 0 0 }}
dt {{ color: var(--soft); font-size: .85rem }}
dd {{ margin: 0 }}
dd b {{ display: block; font-size: 1.45rem; line-height: 1.3; font-variant-numeric: tabular-nums }}
dd span, small {{ color: var(--soft); font-size: .85rem; line-height: 1.4; display: inline-block }}
.scroll {{ overflow-x: auto }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; overflow-wrap: normal }}
th, td {{ padding: .25rem .75rem; text-align: right; border-bottom: 1px solid var(--line) }}
td {{ white-space: nowrap }}
th:first-child, td:first-child {{ text-align: left; padding-left: .25rem; white-space: normal; min-width: 13rem }}
tr.best {{ background: var(--box); font-weight: 600 }}
pre {{ background: var(--code); border: 1px solid var(--line); border-radius: 4px; padding: .75rem 1rem;
  margin: .5rem 0; overflow-x: auto; font: .85rem/1.5 ui-monospace, monospace; overflow-wrap: normal }}
pre code {{ user-select: all; font: inherit }}
.figures {{ display: flex; flex-wrap: wrap; gap: 1rem }}
.figures svg {{ flex: 4.1 1 20.5rem; width: 100%; min-width: 0; max-width: 36rem; height: auto }}
.figures svg:first-child {{ flex: 4.9 1 24.5rem }}
@media (max-width: 30rem) {{ body {{ margin: 1rem auto }} .verdict {{ padding: .75rem 1rem }}
  .figures svg, .figures svg:first-child {{ flex-basis: 100% }}
  th, td {{ padding: .25rem .4rem; font-size: .85rem }} td:first-child {{ min-width: 7rem }} }}
@media print {{ :root {{ {LIGHT} }} body {{ font-size: 11pt; margin: 0; max-width: none }}
  pre {{ white-space: pre-wrap }} .scroll {{ overflow: visible }}
  .verdict, pre, svg, tr {{ break-inside: avoid }} h2 {{ break-after: avoid }} }}
"""

FRAGMENT = """
.rbal-advice { --blue: #0072b2; --red: #c75500; max-width: 60rem }
.rbal-advice .verdict { border-left: 5px solid var(--blue); padding: .25rem 1rem }
.rbal-advice .verdict h2 { font-size: 1.2rem; margin: 0 }
.rbal-advice .disagree { border-color: var(--red) }
.rbal-advice .alarm { color: var(--red); font-weight: 600 }
.rbal-advice dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .5rem 1.5rem }
.rbal-advice dd { margin: 0 }
.rbal-advice dd b { display: block; font-size: 1.2rem }
.rbal-advice dt, .rbal-advice dd span { opacity: .75; font-size: .85rem }
.rbal-advice th, .rbal-advice td { padding: .15rem .6rem; text-align: right }
.rbal-advice th:first-child, .rbal-advice td:first-child { text-align: left }
.rbal-advice tr.best { font-weight: 600 }
"""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Advice on an imbalanced table</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{style}</style></head><body><main>
<h1>Advice on an imbalanced table</h1>
{verdict}
<h2>The threshold</h2>
{threshold}
<h2>In Python</h2>
<div class="scroll"><pre><code>{code}</code></pre></div>
<h2>Probabilities</h2>
{probabilities}
{more}<h2>Every remedy</h2>
<div class="figures">{figures}</div>
<div class="scroll" role="region" aria-label="Every remedy, in numbers" tabindex="0">{table}</div>
<p><small>Bold: recommended. ~ as good within one standard error. TPR: share of the positives that are found; TNR:
share of the negatives that are left in peace.</small></p>
<h2>Why, and how sure</h2>
{words}
<h2>What was read</h2>
{summary}
<p><small>Made by rbal {version}. Predicted: mean over training sets of this size; its interval is that of the class
statistics, and of what the theory errs by on real tables.</small></p>
</main></body></html>
"""

MANY_PAGE = """<!doctype html>
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
