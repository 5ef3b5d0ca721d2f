"""How chapters open: their source, and a tiny book with a lifted figure, built by Sphinx without running anything."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[2]
CONF = """
extensions = ["myst_nb", "figure_extension", "opening_extension"]
nb_execution_mode = "off"
numfig = True
html_theme = "basic"
"""
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 50"><metadata><rbal-words>A line that rises, from the '
    'lower left to the upper right.</rbal-words></metadata><path style="stroke: #0072b2" d="M0 50 L100 0"/></svg>'
)
OPENING = "# A chapter\n\nAn answer.\n\n```{{admonition}} Its figure\n:class: opening {}\nIt is computed below.\n```\n"
CHAPTERS = sorted((ROOT / "notebooks").glob("*.md"))
LONGEST = 59  # words of a caption
TEXT = "## Later\n\nSee {numref}`fig-early`, then {numref}`fig-Best`.\n"


def drawing(name, tags=()):
    """A cell that has drawn a figure."""
    figure = {"mystnb": {"figure": {"name": name, "caption": f"Caption of {name}."}}, "tags": list(tags)}
    output = nbformat.v4.new_output("display_data", {"image/svg+xml": SVG, "text/plain": "<Figure>"})
    return nbformat.v4.new_code_cell(f"draw('{name}')", metadata=figure, outputs=[output], execution_count=1)


def build(folder, opens):
    """Build a book of one chapter that opens with the figures of these names; what Sphinx said, and the page."""
    folder.mkdir(exist_ok=True)
    (folder / "conf.py").write_text(CONF)
    texts = [nbformat.v4.new_markdown_cell(text) for text in ("".join(OPENING.format(name) for name in opens), TEXT)]
    cells = [texts[0], drawing("fig-early"), texts[1], drawing("fig-Best", ["hide-input"])]
    about = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=about), folder / "index.ipynb")
    command = [sys.executable, "-m", "sphinx", "-qW", "--keep-going", "-b", "html", str(folder), str(folder / "out")]
    # its own warnings about Python are not ours
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools"), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done, (folder / "out" / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    done, html = build(tmp_path_factory.mktemp("book"), ["fig-Best"])
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return BeautifulSoup(html, "html.parser")


@pytest.mark.slow
def test_the_figure_stands_before_all_code(page):
    figures = page.find_all("figure")
    assert [figure["id"] for figure in figures] == ["fig-best", "fig-early"]
    assert figures[0].find_previous("div", class_="cell") is None
    assert figures[0].find_previous("p").text == "An answer."
    assert "computed below" not in page.text


@pytest.mark.slow
def test_numbers_follow_the_order_in_which_a_reader_meets_the_figures(page):
    captions = [" ".join(figure.figcaption.text.split()) for figure in page.find_all("figure")]
    assert [caption.rstrip("¶ ") for caption in captions] == [
        "Fig. 1 Caption of fig-Best.",
        "Fig. 2 Caption of fig-early.",
    ]
    assert "See Fig. 2, then Fig. 1." in page.text


@pytest.mark.slow
def test_the_cell_says_where_its_figure_is(page):
    cell = page.find_all("div", class_="cell")[-1]
    assert "draw" in cell.details.text
    line = cell.find("p", class_="rbal-lifted")
    assert line.text == "This cell draws Fig. 1, which opens the chapter."
    assert line.a["href"] == "#fig-best"
    assert len(page.find_all("p", class_="rbal-lifted")) == 1


@pytest.mark.slow
def test_the_figure_keeps_its_two_palettes_and_its_description(page):
    images = page.find("figure", id="fig-best").find_all("img")
    assert [re.search(r"-(light|dark)\.svg$", image["src"])[1] for image in images] == ["light", "dark"]
    assert all(image["alt"].startswith("A line that rises") for image in images)


@pytest.mark.slow
def test_a_name_that_leads_nowhere_fails_the_build(tmp_path):
    done, html = build(tmp_path / "book", ["fig-none", "fig-early", "fig-early"])
    assert done.returncode != 0
    told = [line for line in done.stderr.splitlines() if "ERROR: opening" in line]
    assert ["'fig-none'" in told[0], "'fig-early'" in told[1], len(told)] == [True, True, 2]
    assert "it has 'fig-best'" in told[1]
    assert html.count("<figure") == 2


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_opens_with_question_answer_paper_and_figure(chapter):
    top = chapter.read_text(encoding="utf-8").split("```{code-cell}")[0]
    order = [
        r"^```\{admonition\} The question$",
        r"^```\{admonition\} The answer$",
        r"^\*(?!\*)[^*]+\*$",  # what of the paper it reproduces
        r"^:class: (opening fig-|explorer-)\S+$",
    ]
    found = [re.search(pattern, top, re.MULTILINE) for pattern in order]
    assert all(found), f"not before the first cell: {[p for p, f in zip(order, found, strict=True) if not f]}"
    places = [match.start() for match in found]
    assert places == sorted(places)
    answer = top[found[1].end() : top.index("\n```\n", found[1].end())]
    assert len(re.findall(r"^- ", answer, re.MULTILINE)) == 3


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_captions_are_short(chapter):
    captions = re.findall(
        r"^    name: (\S+)\n    caption: \|\n((?: {6}.*\n)+)", chapter.read_text("utf-8"), re.MULTILINE
    )
    assert captions
    assert not {name: n for name, text in captions if (n := len(text.split())) > LONGEST}
