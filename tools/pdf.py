"""Print the whole book into one PDF with the Chromium of this machine, and put a link to it into every page.

Run by ``make pdf`` after the book was built. Chromium prints twice: the first time to learn on which page each heading
stands, the second time with those numbers in the contents. Its own bookmarks need a tree of tags of every word, which
takes more than a quarter of the file: ours are made from the contents.
"""

import io
import logging
import re
import sys
from pathlib import Path

import browser
import onepage

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "_build" / "html"
NAME = "restoring-balance.pdf"
MAX_BYTES = 25_000_000
ADDRESS = "whole-book.html"  # of the one page; it is served from memory, and is no file
COLUMN = 650  # CSS pixels between the margins of A4 that onepage.css sets
PLACE = re.compile(r'<span class="rbal-pdf"[^>]*>.*?</span>', re.DOTALL)

# Formulas and images done; what is wider than the column made to fit; the list of what went wrong.
SETTLE = """
async (column) => {
  if (!window.MathJax?.startup) return ["MathJax did not load"];
  await MathJax.startup.promise;
  await document.fonts.ready;
  const wrong = [];
  for (const image of document.images) {
    await image.decode().catch(() => {});
    if (!image.naturalWidth) wrong.push(`missing image: ${image.getAttribute("src")}`);
  }
  for (const node of document.querySelectorAll(".math"))
    if (!node.querySelector("mjx-container")) wrong.push(`formula not rendered: ${node.textContent.slice(0, 60)}`);
  for (const node of document.querySelectorAll("mjx-merror"))
    wrong.push(`formula with an error: ${node.textContent.slice(0, 60)}`);
  const edge = (node) => node.parentElement.getBoundingClientRect();
  const tooWide = [];
  for (const node of document.querySelectorAll('mjx-container[display="true"]')) {
    const inner = node.querySelector("mjx-math").getBoundingClientRect().width;
    const number = node.parentElement.querySelector(".eqno")?.getBoundingClientRect().width ?? 0;
    const room = edge(node).width - 2 * number;
    if (inner > room) tooWide.push([node, "fontSize", room / inner]);
  }
  for (const node of document.querySelectorAll("table"))
    if (node.scrollWidth > edge(node).width + 1 || node.getBoundingClientRect().width > edge(node).width + 1)
      tooWide.push([node, "zoom", edge(node).width / Math.max(node.scrollWidth, node.getBoundingClientRect().width)]);
  for (const [node, property, ratio] of tooWide)
    node.style[property] = `${Math.floor(Math.max(ratio, 0.4) * 98)}%`;
  return wrong;
}
"""
FILL = """
(pages) => {
  for (const node of document.querySelectorAll("[data-page-of]")) node.textContent = pages[node.dataset.pageOf] ?? "";
  return [...document.querySelectorAll("[data-page-of]")].filter((n) => !n.textContent).map((n) => n.dataset.pageOf);
}
"""
# Of the contents: level, title, number of the page.
ENTRIES = """
[...document.querySelectorAll("#contents [data-level]")].map((row) =>
  [row.dataset.level, row.dataset.title, Number(row.querySelector("[data-page-of]").textContent)])
"""


def needed():
    """What is missing to print, as a sentence; None if nothing is."""
    if not (HTML / "index.html").exists():
        return "there is no book in _build/html: make book"
    if browser.CHROMIUM is None:
        return (
            "no Chromium and no Chrome is on the PATH (apt-get install chromium). The book is complete without a PDF."
        )
    for package in ("playwright", "pypdf"):
        try:
            __import__(package)
        except ImportError:
            return f"the Python package {package} is not installed: make env"
    return None


def pages_of(pdf):
    """Map each anchor to the number of its page in a PDF, counted from one."""
    import pypdf

    reader = pypdf.PdfReader(io.BytesIO(pdf))
    number = {page.indirect_reference.idnum: k for k, page in enumerate(reader.pages, 1)}
    found = {}
    for name, place in reader.named_destinations.items():
        page = getattr(place.page, "idnum", None)
        if page in number:
            found[name.lstrip("/")] = number[page]
    return found


def print_page(page):
    """Print an open page until the numbers in its contents are those of its own pages."""
    shown = {}
    for _ in range(8):
        pdf = page.pdf(prefer_css_page_size=True, print_background=True, outline=False, tagged=False)
        found = pages_of(pdf)
        if found == shown:
            return pdf
        if nowhere := [*page.evaluate(FILL, found), *{onepage.END}.difference(found)]:
            raise RuntimeError(f"the PDF has no page for {', '.join(nowhere[:5])}")
        shown = found
    raise RuntimeError("the numbers of pages do not come to rest")


def make(folder=HTML, root=ROOT):
    """The PDF of the book built in ``folder``, as bytes."""
    from playwright.sync_api import sync_playwright

    text = onepage.whole(folder, root)
    with browser.serve(folder) as origin, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser.CHROMIUM, args=[*browser.ARGUMENTS])
        page = chromium.new_page(viewport={"width": COLUMN, "height": 920})
        page.set_default_timeout(600_000)
        page.route(origin + ADDRESS, lambda route: route.fulfill(body=text, content_type="text/html; charset=utf-8"))
        page.emulate_media(media="print", color_scheme="light")
        page.goto(origin + ADDRESS, wait_until="load")
        if wrong := page.evaluate(SETTLE, COLUMN):
            raise RuntimeError("\n".join(["the book cannot be printed:", *wrong[:20]]))
        pdf, entries = print_page(page), page.evaluate(ENTRIES)
        chromium.close()
    return finished(pdf, entries)


def finished(pdf, entries):
    """The same without empty pages at the end, with a bookmark for each entry of the contents, and with its author."""
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.ERROR)  # Chromium counts its objects one way, pypdf another
    writer, last = pypdf.PdfWriter(clone_from=io.BytesIO(pdf)), pages_of(pdf)[onepage.END]
    for number in reversed(range(last, len(writer.pages))):
        writer.remove_page(number, clean=True)
    chapter = None
    for level, title, page in entries:
        inside = chapter if level == "section" else None
        mark = writer.add_outline_item(title, page - 1, parent=inside, is_open=False)
        chapter = mark if level == "chapter" else chapter
    writer.add_metadata({"/Author": "The rbal developers", "/Title": "Restoring Balance"})
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def link(folder, megabytes):
    """Put a link to the PDF where each page has a place for it; the number of pages that had one."""
    count = 0
    for path in folder.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        up = "../" * (len(path.relative_to(folder).parts) - 1)
        a = f'<span class="rbal-pdf"><a href="{up}{NAME}">Whole book as PDF</a> ({megabytes:.0f} MB)</span>'
        linked, places = PLACE.subn(a, text)
        if places:
            path.write_text(linked, encoding="utf-8")
            count += 1
    return count


def main():
    """Print, check the size, link."""
    if missing := needed():
        sys.exit(f"make pdf: {missing}")
    pdf = make()
    if len(pdf) > MAX_BYTES:
        sys.exit(f"make pdf: the PDF has {len(pdf) / 1e6:.1f} MB, more than {MAX_BYTES / 1e6:.0f}")
    (HTML / NAME).write_bytes(pdf)
    count = link(HTML, len(pdf) / 1e6)
    print(f"{(HTML / NAME).relative_to(ROOT)}: {len(pdf) / 1e6:.1f} MB, linked on {count} pages")


if __name__ == "__main__":
    main()
