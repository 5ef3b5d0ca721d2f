"""The README's example prints what the README says it prints."""

import contextlib
import io
import re
import sys
from pathlib import Path

import numpy as np

import rbal

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_example_runs_as_printed():
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)
    printed = re.search(r"```text\n(.*?)```", README, re.DOTALL).group(1)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    assert out.getvalue() == printed


def test_links_lead_somewhere():
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert len(links) > 3
    for link in links:
        assert (ROOT / link).exists(), link


def test_a_chapter_shows_the_figures_its_row_claims():
    # a chapter names what it reproduces; Fig. 9, the faces, once stood in the row of a page that shows none
    rows = [row for row in README.splitlines() if row.startswith("| ") and "](" in row]
    claimed = 0
    for row in rows:
        pages = [(ROOT / page).read_text(encoding="utf-8") for page in re.findall(r"\]\(([^)]+)\)", row)]
        named = {number for page in pages for number in figures(page)}
        wanted = figures(row.split("|")[1])
        assert wanted <= named, row
        claimed += len(wanted)
    assert claimed > 10


def figures(text):
    """Numbers of the paper's figures that a text names: Fig. 2a, Figs. 3 and 6, Fig. 4a and 4b."""
    phrases = re.findall(r"Figs?\.\s+(\d[a-c]?(?:(?:,| and)\s+\d[a-c]?\b)*)", text)
    return {number for phrase in phrases for number in re.findall(r"\d[a-c]?", phrase)}


def test_the_figure_shows_what_its_caption_says():
    # of features of equal variance; the chapter tradeoff has others, where a larger margin does not lift the peak
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import readme_figure
    finally:
        sys.path.pop(0)
    classes, margins = readme_figure.classes(), readme_figure.MARGINS
    assert np.ptp(classes.eigenvalues) < 1e-6
    rho = np.linspace(0.05, 0.95, 181)
    ba = [rbal.sweep(classes, 2.0, 2.0 * rho / (1 - rho), kappa).metrics.ba() for kappa in margins]
    peaks = [curve[90] for curve in ba]
    windows = [np.sum(curve - 0.5 > 0.5 * (curve[90] - 0.5)) for curve in ba]
    assert all(np.diff(peaks) > 0.001)
    assert all(np.diff(windows) < 0)


def test_every_chapter_opens_with_its_question():
    # so the preface says; and that the chapter on strategies ends in a short answer
    chapters = sorted((ROOT / "notebooks").glob("*.md"))
    assert len(chapters) > 10
    for path in chapters:
        opening = path.read_text(encoding="utf-8").split("```{code-cell}")[0]
        assert "```{admonition} The question" in opening, path.name
    assert "```{admonition} The short answer" in (ROOT / "notebooks" / "strategies.md").read_text(encoding="utf-8")


def test_notation_has_every_metric():
    notation = (ROOT / "book" / "notation.md").read_text(encoding="utf-8")
    for name in dir(rbal.Metrics):
        assert name.startswith("_") or f"`{name}`" in notation, name
