"""A page of the book as a browser shows it, opened once at each width, and all that the tests ask of it there."""

import json
from contextlib import contextmanager
from typing import NamedTuple

from pages import PHONE, SETTLE

from rbal._support.files import locked

DESK = {"width": 1400, "height": 900}
# Nothing but this machine can be reached: what a page asks of others is told, and fails at once.
ALONE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"

# A page that leads to another one has done so.
ARRIVED = """() => document.readyState === "complete" && !document.querySelector("meta[http-equiv=refresh]")"""

READY = """async () => {
  if (window.MathJax?.startup) await MathJax.startup.promise;
  const images = [...document.images];
  for (const image of images) image.loading = "eager";
  await Promise.all(images.map((image) => image.decode().catch(() => {})));
  await new Promise((done) => setTimeout(done, 100));
}"""

# What is wrong with the page as the reader sees it. An undefined macro is typeset in red and is no error to MathJax.
INSPECT = r"""() => {
  const found = [];
  for (const image of document.images) {
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
}"""

# How far down the first figure stands.
FIRST = """() => {
  const shown = [...document.querySelectorAll(".bd-article :is(figure img, .cell_output img, rbal-explorer)")]
    .filter((node) => node.offsetParent !== null);
  return shown.length ? Math.min(...shown.map((node) => node.getBoundingClientRect().top + scrollY)) : null;
}"""

# Explorers of the page that are live, and their settings.
EXPLORERS = """() => [...document.querySelectorAll("rbal-explorer")].map((node) =>
  [node.getAttribute("name"), node.matches(".x-live") ? JSON.parse(JSON.stringify(node.explorer.state)) : null])"""

# Figures of cells that are shown: their file and width. Others have text that cannot be measured.
FIGURES = """() => [...document.querySelectorAll(".cell_output figure img, .rbal-figure img")]
  .filter((image) => image.offsetParent !== null)
  .map((image) => ({ file: image.currentSrc, width: image.getBoundingClientRect().width,
                     ours: image.classList.contains("rbal-img") }))"""

# Formulas that go on where nobody can see it: outside of the page, or in a box that does not scroll or has no edge.
CUT = """() => {
  const found = [];
  for (const node of document.querySelectorAll("mjx-container")) {
    if (node.offsetParent === null || node.closest("nav")) continue; // in a closed solution, or in the contents
    const name = node.textContent.slice(0, 40) || node.querySelector("math")?.textContent.slice(0, 40);
    const box = node.getBoundingClientRect();
    if (node.getAttribute("display") !== "true" && !node.matches(".rbal-wide")) {
      const scrolls = node.closest(".pst-scrollable-table-container, pre");
      if (!scrolls && box.right > innerWidth + 1) found.push(`a formula within a line is cut off: ${name}`);
      continue;
    }
    if (box.right > innerWidth + 1) found.push(`a formula leaves the page: ${name}`);
    const inner = node.querySelector("mjx-math")?.getBoundingClientRect();
    const hidden = inner ? inner.right - box.right : 0;
    if (hidden <= 2) continue;
    if (!/auto|scroll/.test(getComputedStyle(node).overflowX)) found.push(`a formula does not scroll: ${name}`);
    else if (!node.matches(".rbal-more-right, .rbal-more-left")) found.push(`a formula has no edge: ${name}`);
  }
  for (const node of document.querySelectorAll(".bd-article p"))
    if (/^[,.;:]/.test(node.textContent.trim())) found.push(`an orphan: ${node.textContent.trim().slice(0, 40)}`);
  return found;
}"""


# Text of the preview that is shown.
SEEN = "() => { const e = document.getElementById('rbal-preview'); return e && !e.hidden ? e.innerText.trim() : '' }"


@contextmanager
def listening(page, origin):
    """List of what goes wrong on a page meanwhile: errors, what is missing, and requests that leave the book."""
    wrong = []

    def leaves(request):
        if not request.url.startswith((origin, "data:", "blob:")):
            wrong.append(f"a request leaves the book: {request.url}")

    heard = {
        "console": lambda m: m.type == "error" and wrong.append(f"console: {m.text} ({m.location['url']})"),
        "pageerror": lambda error: wrong.append(f"script: {error}"),
        "response": lambda r: r.status >= 400 and wrong.append(f"{r.status}: {r.url}"),
        "request": leaves,
    }
    for event, hear in heard.items():
        page.on(event, hear)
    try:
        yield wrong
    finally:
        for event, hear in heard.items():
            page.remove_listener(event, hear)


def tab_of(context):
    """A new tab of a context, which knows nothing of the pages before it."""
    page = context.new_page()
    page.set_default_timeout(120_000)
    return page


@contextmanager
def opened(context, origin, name, body=None):
    """A page of the book when all of it is there, and the list of what went wrong; body stands in for its file."""
    page = tab_of(context)
    with listening(page, origin) as wrong:
        if body is not None:
            page.route(origin + name, lambda route: route.fulfill(body=body, content_type="text/html; charset=utf-8"))
        try:
            page.goto(origin + name, wait_until="load")
            page.wait_for_function(ARRIVED)
            page.evaluate(READY)
            page.evaluate(SETTLE)
            page.wait_for_load_state("networkidle")
            yield page, wrong
        finally:
            page.close()


class AtADesk(NamedTuple):
    """What a page is like at a desk: all that is wrong, the height of its first figure, the state of its explorers."""

    problems: list
    first: float | None
    explorers: list


class OnAPhone(NamedTuple):
    """What a page is like on a phone: all that is wrong, formulas that are cut off, and its figures."""

    problems: list
    cut: list
    figures: list


def at_a_desk(context, origin, name, body=None):
    """Open a page at a desk; at the end its window becomes as narrow as a phone."""
    with opened(context, origin, name, body) as (page, wrong):
        found, first, explorers = (page.evaluate(script) for script in (INSPECT, FIRST, EXPLORERS))
        page.set_viewport_size(PHONE)
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > PHONE["width"]:
            found.append(f"{width} px wide on a phone of {PHONE['width']}")
        return AtADesk([*wrong, *found], first, explorers)


def on_a_phone(context, origin, name, body=None):
    """Open a page on a phone."""
    with opened(context, origin, name, body) as (page, wrong):
        cut, figures = (page.evaluate(script) for script in (CUT, FIGURES))
        return OnAPhone(list(wrong), cut, figures)


def once(look, context, origin, folder):
    """A function of a page's name that opens the page if no worker has done so yet; answers are kept in a folder."""
    kind = {at_a_desk: AtADesk, on_a_phone: OnAPhone}[look]

    def answer(name):
        path = folder / f"{look.__name__} {name.replace('/', ' ')}.json"
        with locked(path):
            if not path.exists():
                path.write_text(json.dumps(look(context, origin, name)), encoding="utf-8")
        return kind(*json.loads(path.read_text(encoding="utf-8")))

    return answer


def seen_within(tab, milliseconds):
    """Text of the preview once it is shown, or an empty one after this time."""
    shown = f"""new Promise((done) => {{
      const seen = {SEEN}, end = performance.now() + {milliseconds};
      const look = () => (seen() || performance.now() > end ? done(seen()) : setTimeout(look, 20));
      look();
    }})"""
    return tab.evaluate(shown)
