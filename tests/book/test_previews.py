"""Previews of what a link leads to: the script on small pages, and on the pages of the book."""

import shutil

import pytest
from looks import SEEN, seen_within
from pages import HTML, ROOT, serve

STATIC = ROOT / "book" / "_static"
HEAD = (
    '<!doctype html><meta charset="utf-8"><title>t</title><link rel="stylesheet" href="previews.css">'
    '<script defer src="previews.js"></script>'
)
HERE = (
    HEAD + '<body><article class="bd-article"><section id="one"><h2>One<a class="headerlink" href="#one">#</a></h2>'
    "<p>A first paragraph that is long enough to tell what this is.</p>"
    '<p><a id="to-figure" class="reference internal" href="#fig-x">Fig. 1</a> '
    '<a id="to-term" class="reference internal" href="there.html#term-margin">margin</a> '
    '<a id="to-section" class="reference internal" href="#one">One</a> '
    '<a id="to-cited" class="reference internal" href="there.html#id7">Somebody (1999)</a> '
    '<a id="to-none" class="reference internal" href="#not-there">nothing</a></p>'
    '<figure id="fig-x"><img src="dot.svg" alt="a dot" width="40" height="40"><figcaption>A dot.</figcaption></figure>'
    "</section></article>"
)
THERE = (
    HEAD
    + '<body><article><dl class="glossary"><dt id="term-margin">margin</dt><dd><p>What a score reaches.</p></dd></dl>'
    '<div class="citation" id="id7"><p>Somebody. A book. 1999.</p></div></article>'
)
DOT = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><circle cx="20" cy="20" r="9"/></svg>'


@pytest.fixture
def folder(tmp_path):
    for name in ("previews.js", "previews.css"):
        shutil.copy(STATIC / name, tmp_path)
    for name, text in (("here.html", HERE), ("there.html", THERE), ("dot.svg", DOT)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def preview(tab, link):
    """Text that is shown as soon as the pointer has rested on a link; empty if there is none after a while."""
    tab.mouse.move(1, 1)
    tab.wait_for_function("() => document.getElementById('rbal-preview')?.hidden ?? true")
    tab.hover(f"#to-{link}")
    return seen_within(tab, 700)


@pytest.mark.browser
def test_what_a_link_leads_to(folder, chromium):
    tab = chromium.new_page()
    with serve(folder) as address:
        tab.goto(address + "here.html")
        assert preview(tab, "figure") == "A dot."
        assert tab.locator("#rbal-preview img").get_attribute("src") == "dot.svg"
        assert tab.locator("#to-figure").get_attribute("aria-describedby") == "rbal-preview"
        assert preview(tab, "term").split("\n") == ["margin", "", "What a score reaches."]
        assert preview(tab, "cited") == "Somebody. A book. 1999."
        assert preview(tab, "section").startswith("One")
        assert preview(tab, "none") == ""
        assert tab.locator("#fig-x").count() == 1  # copies have no ids
    tab.close()


@pytest.mark.browser
def test_keyboard_and_escape(folder, chromium):
    tab = chromium.new_page()
    with serve(folder) as address:
        tab.goto(address + "here.html")
        tab.keyboard.press("Tab")
        tab.keyboard.press("Tab")  # past the link of the heading
        tab.wait_for_function("document.getElementById('rbal-preview')?.hidden === false")
        assert tab.evaluate(SEEN) == "A dot."
        tab.keyboard.press("Escape")
        assert tab.evaluate(SEEN) == ""
        assert tab.locator("#to-figure").get_attribute("aria-describedby") is None
        tab.keyboard.press("Tab")
        tab.wait_for_function("document.getElementById('rbal-preview').hidden === false")
        assert tab.evaluate(SEEN).startswith("margin")
    tab.close()


@pytest.mark.browser
def test_from_a_folder_the_same_page_alone(folder, chromium):
    tab, wrong = chromium.new_page(), []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    tab.goto((folder / "here.html").as_uri())
    assert preview(tab, "figure") == "A dot."
    assert preview(tab, "term") == ""
    assert not wrong
    tab.close()


@pytest.mark.browser
def test_nothing_on_a_touch_screen(folder, browser):
    context = browser.new_context(has_touch=True, is_mobile=True, viewport={"width": 375, "height": 700})
    tab = context.new_page()
    with serve(folder) as address:
        tab.goto(address + "here.html")
        tab.locator("#to-figure").tap()
        tab.wait_for_timeout(600)
        assert tab.locator("#rbal-preview").count() == 0
    context.close()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_the_book(scheme, browser, origin):
    if not (HTML / "book" / "glossary.html").exists():
        pytest.skip("there is no book in _build/html: make book")
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1300, "height": 900})
    tab, wrong = context.new_page(), []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.goto(origin + "book/glossary.html")
    tab.locator('dl.glossary a[href*="metrics.html#"]').first.hover()
    tab.wait_for_function("document.getElementById('rbal-preview')?.hidden === false")
    look = tab.locator("#rbal-preview").evaluate(
        "e => [getComputedStyle(e).backgroundColor, e.getBoundingClientRect().right]"
    )
    ground = sum(map(int, look[0].removeprefix("rgb(").removesuffix(")").split(",")))
    assert ground > 700 if scheme == "light" else ground < 200
    assert look[1] <= 1300
    assert not wrong
    context.close()
