"""Previews of symbols: the rows of the page of notation, and what the script finds under the pointer."""

import json
import re
import shutil
import sys

import pytest
from looks import seen_within
from pages import CONFIG, HTML, ROOT, serve

sys.path.append(str(ROOT / "tools"))
import symbol_extension

STATIC = ROOT / "book" / "_static"
ROWS = symbol_extension.table((ROOT / "book" / "notation.md").read_text(encoding="utf-8"))
FORMULAS = {
    "plain": r"\kappa",
    "power": r"\kappa^2",
    "index": r"\kappa_7",
    "marked": r"\kappa'",
    "hat": r"\hat q",
    "sign": r"\rho^+",
    "bold": r"\bm\delta",
    "word": r"\mathrm{BA}",
    "sum": r"\mathbf J^\top C\mathbf J",
    "upper": r"e^{-\beta x}",
    "lower": r"q_{12} + s_x",
}


def explained(tex):
    return next(row["html"] for row in ROWS if tex in row["names"])


def test_rows_hold_what_texts_write():
    for tex in (r"\kappa", r"\alpha^+", r"\rho^-", r"\mathbf J", r"\hat x", r"\kappa_{\rm crit}", r"\mathrm{AUPRC}"):
        assert explained(tex)
    assert "margin" in explained(r"\kappa")
    assert "critical_margin" in explained(r"\kappa_{\rm crit}")


def test_a_symbol_has_one_row():
    """But for the two that the table repeats for clusters."""
    first = [row["names"][0] for row in ROWS]
    assert {name for name in first if first.count(name) > 1} <= {"A", "b"}


def test_no_markup_is_left():
    for row in ROWS:
        assert not re.search(r"\{(eq|ref|numref|math)\}|`|\$", row["html"]), row["html"]
        assert row["html"].count("<span") == row["html"].count("</span>")


@pytest.fixture
def folder(tmp_path):
    """A page with formulas, MathJax and the scripts."""
    mathjax = HTML / "_static" / "vendor" / "mathjax"
    if not mathjax.exists():
        pytest.skip("there is no MathJax in _build/html: make book")
    shutil.copytree(mathjax, tmp_path / "mathjax")
    for name in ("previews.js", "previews.css"):
        shutil.copy(STATIC / name, tmp_path)
    (tmp_path / "symbols.js").write_text(f"window.rbalSymbols = {json.dumps(ROWS)};", encoding="utf-8")
    tex = json.dumps({"tex": CONFIG["sphinx"]["config"]["mathjax3_config"]["tex"]})
    lines = "".join(rf'<p id="{name}">\({formula}\)</p>' for name, formula in FORMULAS.items())
    page = (
        '<!doctype html><meta charset="utf-8"><title>t</title><link rel="stylesheet" href="previews.css">'
        f'<script>window.MathJax = {tex}</script><script defer src="mathjax/tex-mml-chtml.js"></script>'
        '<script defer src="symbols.js"></script><script defer src="previews.js"></script>'
        f'<body style="padding: 2em; font-size: 30px"><article>{lines}</article>'
    )
    (tmp_path / "lattice.html").write_text(page, encoding="utf-8")  # a page with letters of its own: S
    return tmp_path


@pytest.mark.browser
def test_what_is_under_the_pointer(folder, chromium):
    tab, wrong = chromium.new_page(), []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    with serve(folder) as address:
        tab.goto(address + "lattice.html")
        tab.wait_for_selector("#lower mjx-mi")

        def shown(where):
            tab.mouse.move(1, 1)
            tab.wait_for_function("() => document.getElementById('rbal-preview')?.hidden ?? true")
            tab.locator(where).hover(force=True)
            seen_within(tab, 600)
            return tab.evaluate(
                "() => { const e = document.getElementById('rbal-preview');"
                " return e && !e.hidden ? e.querySelector('p').childNodes[1].textContent.trim() : '' }"
            )

        assert shown("#plain mjx-mi") == "margin"
        assert shown("#power mjx-mi") == "margin"
        assert shown("#index mjx-mi") == ""  # not κ, but κ with an index that the book does not know
        assert shown("#marked mjx-mi") == ""
        assert shown("#hat mjx-base mjx-mi").startswith("conjugates")
        assert shown("#sign mjx-mi").startswith("fractions of the classes in the training")
        assert shown("#bold mjx-mi").startswith("shift between them")
        assert shown("#word mjx-mi") == "balanced accuracy"
        assert shown("#sum mjx-msup mjx-mi >> nth=0").startswith("weights and bias")
        assert shown("#sum > mjx-container > mjx-math > mjx-mi") == "covariance, the same in both classes"
        assert shown("#upper mjx-script mjx-mi >> nth=0").startswith("inverse temperature")
        assert shown("#lower mjx-msub >> nth=0 >> mjx-mi").startswith("covariance of the pre-activations")
        assert shown("#lower mjx-msub >> nth=1 >> mjx-script mjx-mi") == ""
    assert not wrong
    tab.close()
