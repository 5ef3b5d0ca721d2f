"""Every page of the built book, opened in a browser: nothing missing or broken, nothing fetched from elsewhere."""

import functools
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from pages import HTML, MOVED, PAGES, PHONE, WIDE

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


# What is wrong with the page as the reader sees it. An undefined macro is typeset in red and is no error to MathJax.
INSPECT = r"""
async () => {
  const found = [];
  if (window.MathJax?.startup) await MathJax.startup.promise;
  for (const image of document.images) {
    image.loading = "eager";
    await image.decode().catch(() => {});
    const name = image.getAttribute("src");
    if (!image.complete || image.naturalWidth === 0) found.push(`missing image: ${name}`);
    if (!image.alt.trim()) found.push(`image without alternative text: ${name}`);
  }
  for (const node of document.querySelectorAll("mjx-merror, [data-mjx-error]"))
    found.push(`formula with an error: ${node.getAttribute("data-mjx-error") || node.textContent}`);
  for (const node of document.querySelectorAll("mjx-mtext"))
    if (getComputedStyle(node).color === "rgb(255, 0, 0)") {
      const formula = MathJax.startup.document.getMathItemsWithin(node.closest("mjx-container").parentNode)[0];
      found.push(`undefined macro in a formula: ${formula?.math}`);
    }
  for (const node of document.querySelectorAll(".math"))
    if (!node.querySelector("mjx-container")) found.push(`formula not rendered: ${node.textContent.slice(0, 60)}`);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { parentElement: parent, textContent: text } = walker.currentNode;
    if (parent.closest("script, style, noscript, template, code, pre, mjx-container, .math")) continue;
    const raw = text.match(/\$\$|\\[(\[]|\\begin\{|\$[^\s$][^$]*\$/);
    if (raw) found.push(`raw formula in the text: ${text.trim().slice(0, 60)}`);
  }
  return found;
}
"""


def problems(browser, origin, name, body=None):
    """Everything that is wrong with one page in the browser; body stands in for the page's file."""
    found = []
    page = browser.new_page(viewport=WIDE)
    try:
        page.on("console", lambda m: m.type == "error" and found.append(f"console: {m.text} ({m.location['url']})"))
        page.on("pageerror", lambda error: found.append(f"script: {error}"))
        page.on("response", lambda r: r.status >= 400 and found.append(f"{r.status}: {r.url}"))

        def stay(route):
            if body is not None and route.request.url == origin + name:
                return route.fulfill(body=body, content_type="text/html; charset=utf-8")
            if route.request.url.startswith((origin, "data:", "blob:")):
                return route.continue_()
            found.append(f"a request leaves the book: {route.request.url}")
            return route.abort()

        page.route("**/*", stay)
        page.goto(origin + name, wait_until="load")
        page.wait_for_load_state("networkidle")
        found += page.evaluate(INSPECT)
        page.set_viewport_size(PHONE)
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > PHONE["width"]:
            found.append(f"{width} px wide on a phone of {PHONE['width']}")
    finally:
        page.close()
    return found


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


@pytest.mark.parametrize("expected", BROKEN)
def test_broken_pages_are_recognised(expected, browser, origin):
    head = (
        '<!doctype html><html><head><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        '<script>MathJax = {options: {processHtmlClass: "tex2jax_process|mathjax_process|math"}, tex: {inlineMath: '
        r'[["\\(", "\\)"]], displayMath: []}}</script>'
        '<script src="/_static/vendor/mathjax/tex-mml-chtml.js"></script></head><body>'
    )
    # served by the test itself, under a name that the book does not have
    assert not problems(browser, origin, "good.html", f"{head}<p>fine: \\(x\\)</p></body></html>")
    found = problems(browser, origin, "bad.html", f"{head}{BROKEN[expected]}</body></html>")
    assert any(expected in problem for problem in found), found


@pytest.mark.parametrize("old", MOVED)
def test_old_addresses_lead_to_the_same_place(old, chromium, origin):
    need_book()
    page = chromium.new_page()
    page.goto(f"{origin}/{old}#exercises")
    page.wait_for_url(f"{origin}/{MOVED[old]}#exercises")
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    broken = broken_links(name)
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("name", PAGES)
def test_page_in_the_browser(name, browser, origin):
    found = problems(browser, origin, name)
    assert not found, "\n".join(found)
