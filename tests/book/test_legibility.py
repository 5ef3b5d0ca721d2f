"""The built book on a phone and in the dark: text in figures, formulas, and where the first figure stands."""

import functools
import re
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from bs4 import BeautifulSoup
from looks import CUT, DESK, FIGURES, FIRST, opened
from pages import HTML, PAGES, PHONE

pytestmark = pytest.mark.browser

SMALLEST = 9  # pixels, of text in a figure on a phone
HIGHEST = 900  # pixels from the top of a page, within which a chapter shows its first figure
CHAPTERS = [name for name in PAGES if name.startswith("notebooks/")]
STILLS = "book/widgets.html"  # pictures of widgets, which draw on a canvas of their own, as Jupyter shows them
STILL = 740  # pixels that such a picture is wide at least, on a phone too; its text is then as large as at a desk
ROOMS = "architecture.svg"  # the drawing of the rooms in CONTRIBUTING.md


@functools.cache
def smallest(file):
    """Width of a figure and its smallest text, in its own units; None without text.

    matplotlib draws letters of 100 units, and writes the size of a text as their scale.
    """
    svg = (HTML / urlsplit(file).path.lstrip("/")).read_text(encoding="utf-8")
    sizes = [100 * float(size) for size in re.findall(r"scale\(([\d.]+) -[\d.]+\)", svg)]
    width = float(re.search(r'viewBox="[\d.]+ [\d.]+ ([\d.]+) ', svg)[1])
    return width, min(sizes, default=None)


def text_too_small(figures):
    """What is wrong with the text of figures as shown."""
    found = []
    for figure in figures:
        name = figure["file"].rsplit("/", 1)[-1][-40:]
        if not figure["ours"]:
            found.append(f"{name}: not drawn by rbal_book.plotting, so that its text cannot be measured")
            continue
        width, size = smallest(figure["file"])
        if size is not None and size * figure["width"] / width < SMALLEST:
            found.append(f"{name}: text of {size * figure['width'] / width:.1f} px")
    return found


@contextmanager
def look(context, origin, name=None, body=None):
    """The first chapter, or another page, when all of it is there."""
    with opened(context, origin, name or CHAPTERS[0], body) as (page, _):
        yield page


def need(pages):
    if not pages:
        pytest.skip("there is no book in _build/html: make book")


@pytest.mark.parametrize("name", PAGES)
def test_page_reads_on_a_phone(name, phone):
    problems, cut, figures = phone(name)
    stills = [figure for figure in figures if name == STILLS and not figure["ours"]]
    found = text_too_small([figure for figure in figures if figure not in stills]) + cut + problems
    found += [f"a still is {still['width']:.0f} px wide" for still in stills if still["width"] < STILL - 1]
    assert bool(stills) == (name == STILLS)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", PAGES)
def test_no_picture_escapes_the_measurement(name):
    page = BeautifulSoup((HTML / name).read_text(encoding="utf-8"), "html.parser")
    others = [img for img in page.select(".bd-article img:not(.rbal-img)") if not img.find_parent("rbal-explorer")]
    others = [img["src"] for img in others if not img["src"].endswith((ROOMS, "_static/minus.png"))]  # Sphinx's own
    assert bool(others) == (name == STILLS), others


def test_the_drawing_of_the_rooms_reads_on_a_phone(browser, origin):
    need(CHAPTERS)
    svg = next(HTML.rglob(ROOMS)).read_text(encoding="utf-8")
    size = min(map(float, re.findall(r'font-size="([\d.]+)"', svg)))
    width = float(re.search(r'viewBox="0 0 (\d+)', svg)[1])
    with browser.new_context(viewport=PHONE) as context, look(context, origin, "book/contributing.html") as page:
        shown = page.locator(f".bd-article img[src$='{ROOMS}']").bounding_box()["width"]
    assert size * shown / width >= SMALLEST


@pytest.mark.parametrize("name", [name for name in CHAPTERS if "/lessons/" not in name])  # these open with a task
def test_first_figure_stands_near_the_top(name, desk, record_property):
    top = desk(name).first
    record_property("first figure, px", top)
    assert top is not None, "no figure at all"
    assert top <= HIGHEST


@pytest.mark.parametrize("name", CHAPTERS)
def test_key_numbers_are_left_out(name):
    text = (HTML / name).read_text(encoding="utf-8")
    assert "nbval-check-output" not in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_follow_the_theme(scheme, browser, origin):
    need(CHAPTERS)
    with browser.new_context(viewport=DESK, color_scheme=scheme) as context, look(context, origin) as page:
        shown = [figure["file"] for figure in page.evaluate(FIGURES)]
        assert shown
        assert all(file.endswith(f"-{scheme}.svg") for file in shown)
        ground = page.locator(".rbal-img:visible").first.evaluate("e => getComputedStyle(e).backgroundColor")
        assert ground == "rgba(0, 0, 0, 0)"
        page.emulate_media(media="print")
        assert all(figure["file"].endswith("-light.svg") for figure in page.evaluate(FIGURES))


@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_a_figure_opens_large_by_keyboard(viewport, browser, origin):
    need(CHAPTERS)
    with browser.new_context(viewport=viewport) as context, look(context, origin) as page:
        button = page.locator(".rbal-enlarge").first
        button.focus()
        page.keyboard.press("Enter")
        dialog = page.locator("dialog.rbal-large")
        assert dialog.is_visible()
        large = dialog.locator("img")
        large.evaluate("e => e.decode()")
        assert large.get_attribute("alt")
        width, size = smallest(large.evaluate("e => e.src"))
        assert size * large.bounding_box()["width"] / width >= SMALLEST
        page.keyboard.press("Escape")
        assert dialog.count() == 0
        assert page.evaluate("document.activeElement.className") == "rbal-enlarge"


META = '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
HEAD = f"<!doctype html><html><head>{META}</head>"
FORMULA = (
    '<mjx-container display="true" style="display: block; width: 300px; overflow-x: {}" class="{}">'
    '<mjx-math style="display: block; width: 900px">x</mjx-math></mjx-container>'
)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (FORMULA.format("auto", "rbal-more-right"), None),
        (FORMULA.format("auto", ""), "a formula has no edge"),
        (FORMULA.format("hidden", "rbal-more-right"), "a formula does not scroll"),
        ('<mjx-container style="display: inline-block; width: 900px">x</mjx-container>', "within a line is cut off"),
        ('<div class="bd-article"><p>, where x is small</p></div>', "an orphan"),
    ],
)
def test_bad_formulas_are_recognised(body, expected, chromium, origin):
    text = f"{HEAD}<body>{body}</body></html>"
    with chromium.new_context(viewport=PHONE) as context, look(context, origin, "bad.html", text) as page:
        found = page.evaluate(CUT)
    assert (len(found) == 1 and expected in found[0]) if expected else not found, found


def test_small_text_and_late_figures_are_recognised(chromium, origin, tmp_path, monkeypatch):
    (tmp_path / "small.svg").write_text('<svg viewBox="0 0 600 300"><g transform="scale(0.1 -0.1)"/></svg>')
    monkeypatch.setattr("test_legibility.HTML", tmp_path)
    smallest.cache_clear()
    figure = {"file": "http://book/small.svg", "ours": True}
    assert "text of 5.8 px" in text_too_small([{**figure, "width": 350}])[0]
    assert not text_too_small([{**figure, "width": 600}])
    assert "cannot be measured" in text_too_small([{**figure, "width": 600, "ours": False}])[0]
    picture = '<figure style="margin-top: 1234px"><img src="data:," alt="x" width="9" height="9"></figure>'
    body = f'{HEAD}<body style="margin: 0"><div class="bd-article">{picture}</div></body></html>'
    with chromium.new_context(viewport=DESK) as context, look(context, origin, "bad.html", body) as page:
        assert page.evaluate(FIRST) > 1200
