"""Every page of the built book, opened in a browser: nothing missing or broken, nothing fetched from elsewhere."""

import functools
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from looks import DESK, at_a_desk
from pages import HTML, MOVED, PAGES

pytestmark = pytest.mark.browser


class Links(HTMLParser):
    """Addresses and anchors of one page."""

    def __init__(self, text):
        super().__init__()
        self.hrefs, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        if tag == "a" and attrs.get("href"):
            self.hrefs.append(attrs["href"])


@functools.cache
def links(name):
    return Links((HTML / name).read_text(encoding="utf-8"))


def broken_links(name, hrefs=None):
    """Links of a page, within the book, whose file or anchor does not exist."""
    broken = []
    for href in links(name).hrefs if hrefs is None else hrefs:
        target = urlsplit(urljoin(f"http://book/{name}", href))
        if target.netloc != "book":
            continue
        path = unquote(target.path).lstrip("/")
        if not (HTML / path).is_file():
            broken.append(f"{href}: no such file")
        elif path.endswith(".html") and target.fragment and unquote(target.fragment) not in links(path).ids:
            broken.append(f"{href}: no such anchor")
    return broken


def need_book():
    if not PAGES:
        pytest.skip("there is no book in _build/html: make book")


def test_book_has_all_its_pages():
    need_book()
    assert {"index.html", "book/preface.html", "book/status.html", "notebooks/imbalance.html"} <= set(PAGES)


@pytest.mark.parametrize("href", ["#nowhere", "status.html#nowhere", "nofile.html", "../nofile.html", "/nofile.html"])
def test_broken_links_are_recognised(href):
    need_book()
    good = ["#", "status.html", "../notebooks/imbalance.html#imbalance-in-one-picture", "https://example.org/x"]
    assert broken_links("book/preface.html", good) == []
    assert len(broken_links("book/preface.html", [href])) == 1


BROKEN = {
    "undefined macro": r"<p>\(\nosuchmacro{x} + 1\)</p>",
    "formula": r"<p>\(\frac{1}{\)</p>",
    "raw formula": "<p>where $$x = 1$$ holds</p>",
    "a request leaves": '<img src="https://example.org/x.png" alt="x">',
    "missing image": '<img src="nofile.png" alt="x">',
    "alternative text": '<img src="_static/logo.svg">',
    "console: boo": "<script>console.error('boo')</script>",
    "script: thrown": "<script>throw new Error('thrown')</script>",
    "px wide": '<div style="width: 900px">wide</div>',
}
HEAD = (
    '<!doctype html><html><head><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
    '<script>MathJax = {options: {processHtmlClass: "tex2jax_process|mathjax_process|math"}, tex: {inlineMath: '
    r'[["\\(", "\\)"]], displayMath: []}}</script>'
    '<script src="/_static/vendor/mathjax/tex-mml-chtml.js"></script></head><body>'
)


@pytest.fixture(scope="module")
def served(browser, origin):
    """What is wrong with a page that the test itself serves, under a name that the book does not have."""
    with browser.new_context(viewport=DESK) as context:
        yield lambda name, inner: at_a_desk(context, origin, name, f"{HEAD}{inner}</body></html>").problems


@pytest.fixture(scope="module")
def good(served):
    return served("good.html", "<p>fine: \\(x\\)</p>")


@pytest.mark.parametrize("expected", BROKEN)
def test_broken_pages_are_recognised(expected, served, good):
    assert not good
    found = served("bad.html", BROKEN[expected])
    assert any(expected in problem for problem in found), found


@pytest.mark.parametrize("old", MOVED)
def test_old_addresses_lead_to_the_same_place(old, chromium, origin):
    need_book()
    page = chromium.new_page()
    page.goto(f"{origin}{old}#exercises", wait_until="commit")
    page.wait_for_url(f"{origin}{MOVED[old]}#exercises", wait_until="commit")
    page.close()
    assert (HTML / MOVED[old]).is_file()


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    broken = broken_links(name)
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("name", PAGES)
def test_page_in_the_browser(name, desk):
    found = desk(name).problems
    assert not found, "\n".join(found)
