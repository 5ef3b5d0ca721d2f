"""The code of the chapters, read and not run: short cells, and imports of what a reader can import too."""

import functools
import pkgutil
import re
from pathlib import Path
from statistics import median

import jupytext
import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
CHAPTERS, LESSONS = sorted(NOTEBOOKS.glob("*.md")), sorted(NOTEBOOKS.glob("lessons/*.md"))
LONGEST, MEDIAN = 25, 6  # non-blank lines
WIDEST = 84  # characters: what the column of a wide page holds
# Directives that jupyterlab-myst renders, of those that are of use here.
LAB = {"admonition", "code-cell", "exercise", "figure", "image", "math", "note", "solution", "solution-end"}
LAB |= {"solution-start", "prf:lemma", "prf:proof", "prf:proposition", "prf:theorem", "table", "tip", "warning"}


@functools.cache
def cells(chapter):
    return [cell for cell in jupytext.read(chapter).cells if cell.cell_type == "code"]


def lines(cell):
    return len([line for line in cell.source.splitlines() if line.strip()])


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_no_cell_is_long(chapter):
    assert cells(chapter)
    assert not [cell.source for cell in cells(chapter) if lines(cell) > LONGEST]


def test_most_cells_are_short():
    assert median(lines(cell) for chapter in CHAPTERS for cell in cells(chapter)) <= MEDIAN


@pytest.mark.parametrize("chapter", [*CHAPTERS, *LESSONS], ids=lambda path: path.stem)
def test_code_fits_the_column(chapter):
    """The cells of key numbers may be wider: no page shows them."""
    shown = [cell for cell in cells(chapter) if "nbval-check-output" not in cell.metadata.get("tags", [])]
    assert not [line for cell in shown for line in cell.source.splitlines() if len(line) > WIDEST]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_chapters_import_public_names_only(chapter):
    source = "\n".join(cell.source for cell in cells(chapter))
    imports = re.findall(r"^\s*(?:from|import) rbal.*$", source, re.MULTILINE)
    assert imports
    assert not [line for line in imports if re.search(r"\b_", line)]


@pytest.mark.parametrize("chapter", [*CHAPTERS, *LESSONS], ids=lambda path: path.stem)
def test_names_of_the_library_exist(chapter):
    """Also in cells that run only where a reader fills something in."""
    names = {name for cell in cells(chapter) for name in re.findall(r"\brbal(?:_book)?(?:\.[a-z]\w*)+", cell.source)}
    for name in names:
        pkgutil.resolve_name(name)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_chapters_need_no_path(chapter):
    assert not [cell.source for cell in cells(chapter) if "sys.path" in cell.source]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_jupyterlab_knows_every_directive(chapter):
    """One that it does not know is an error there, in red, which hides what it says."""
    used = set(re.findall(r"^[`:]{3,}\{([^}]+)\}", chapter.read_text(encoding="utf-8"), re.MULTILINE))
    assert used <= LAB, (
        f"instead of {used - LAB} write a directive that Lab knows, and let tools/ make of it what it is"
    )


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_key_numbers_have_no_heading(chapter):
    """They are hidden on the page, and a heading would stand there alone."""
    before, last = jupytext.read(chapter).cells[-2:]
    assert "nbval-check-output" in last.metadata.get("tags", [])
    assert not before.source.splitlines()[-1].startswith("#")
