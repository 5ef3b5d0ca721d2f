"""The whole book in one PDF: a small book printed for the test, and the one of `make pdf` where there is one."""

import io
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml
from pages import CHROMIUM, HTML, ROOT

pypdf = pytest.importorskip("pypdf", reason="pypdf is in requirements.lock: make env")

import onepage  # noqa: E402
import pdf as printer  # noqa: E402

TOC = """
root: book/preface
parts:
  - caption: Theory
    chapters: [{file: notebooks/one}, {file: notebooks/two}]
"""
HEAD = (
    '<link rel="stylesheet" href="../_static/print.css"><script src="other.js"></script>'
    "<script>window.MathJax = {}</script>"
    '<script defer src="../_static/mathjax.js"></script>'
)
FOOT = '<span class="rbal-pdf" hidden></span>'
PAGE = '<html><head>{head}</head><body><article class="bd-article">{body}</article>{foot}</body></html>'
SOLUTION = """
<div class="exercise admonition" id="ex-1"><p class="admonition-title">Exercise 1.1</p><p>Why?</p></div>
<div class="solution dropdown admonition" id="sol-1"><p class="admonition-title">Solution to
<a href="#ex-1">Exercise 1.1</a></p><p>Therefore.</p></div>"""
BODIES = {
    "book/preface": '<section id="preface"><h1>Preface<a class="headerlink" href="#preface">#</a></h1><p>See '
    '<a href="../notebooks/two.html#there">two</a>, <a href="../genindex.html#A">index</a>, '
    '<a href="https://example.org/x">else</a>, <a href="../notebooks/one.html">one</a>.</p></section>',
    "notebooks/one": '<section id="one"><h1>1. One</h1>'
    '<details class="hide above-input"><pre>hidden = 1</pre></details>'
    '<img src="../_static/logo.svg" alt="x"><rbal-explorer name="mixing"><p>A still.</p></rbal-explorer>'
    f'{"<p>Much to say.</p>" * 80}<section id="exercises"><h2>1.1. Exercises</h2>{SOLUTION}</section></section>',
    "notebooks/two": '<section id="two"><h1>2. Two</h1><section id="there"><h2>2.1. There</h2><p>Words.</p>'
    '<div class="math">x</div></section></section>',
}
# stands for MathJax: it has to be waited for, and puts a container into each formula
MATHJAX = """
window.MathJax = {startup: {promise: new Promise((done) => setTimeout(() => {
  for (const node of document.querySelectorAll(".math")) node.innerHTML = "<mjx-container>x</mjx-container>";
  done();
}, 300))}};
"""


@pytest.fixture
def book(tmp_path):
    """A book of three pages: the folder of its source and that of its pages."""
    root, html = tmp_path / "root", tmp_path / "html"
    root.mkdir()
    for name in ("CITATION.cff", "_config.yml"):
        shutil.copy(ROOT / name, root)
    (root / "_toc.yml").write_text(TOC)
    (html / "_static").mkdir(parents=True)
    for name in ("logo.svg", "print.css"):
        shutil.copy(ROOT / "book" / "_static" / name, html / "_static")
    (html / "_static" / "mathjax.js").write_text(MATHJAX)
    for name, body in BODIES.items():
        (html / name).parent.mkdir(exist_ok=True)
        (html / f"{name}.html").write_text(PAGE.format(head=HEAD, body=body, foot=FOOT), encoding="utf-8")
    return root, html


def test_links_lead_to_the_same_place_in_the_whole(book):
    root, html = book
    text = onepage.whole(html, root)
    base = yaml.safe_load((root / "_config.yml").read_text())["html"]["baseurl"]
    for href in ("#notebooks-two--there", f"{base}genindex.html#A", "https://example.org/x", "#notebooks-one"):
        assert f'href="{href}"' in text
    assert 'src="_static/logo.svg"' in text
    assert "other.js" not in text
    anchors = re.findall(r'\sid="([^"]*)"', text)
    assert len(anchors) == len(set(anchors))
    assert not set(re.findall(r'href="#([^"]*)"', text)) - set(anchors)


def test_what_is_folded_away_stays_out_and_stills_say_where_they_move(book):
    root, html = book
    text = onepage.whole(html, root)
    assert "hidden = 1" not in text
    assert "headerlink" not in text
    assert "notebooks/one.html#explorer-mixing" in text
    assert "A still.<" not in text


def test_solutions_stand_at_the_end(book):
    root, html = book
    text = onepage.whole(html, root)
    assert text.count("Therefore.") == 1
    assert text.index("Therefore.") > text.index('id="solutions"') > text.index("2. Two</h1>")
    assert 'data-page-of="notebooks-one--sol-1"' in text.split('id="solutions"')[0]
    assert 'data-page-of="notebooks-one--ex-1"' in text.split('id="solutions"')[1]


@pytest.fixture
def printed():
    """Print a book in a thread of its own: in this one, the browser of other tests may be open."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine, so nothing is printed")
    with ThreadPoolExecutor(1) as thread:
        yield lambda root, html: thread.submit(printer.make, html, root).result()


@pytest.mark.browser
def test_numbers_in_the_contents_are_those_of_the_pages(book, printed):
    reader = pypdf.PdfReader(io.BytesIO(printed(*book)))
    pages = [page.extract_text() for page in reader.pages]
    (contents,) = [text for text in pages if re.match(r"\s*(Contents\s+)+", text)]
    for title, words in {
        "1. One": "Much to say",
        "2. Two": "Words.",
        "Solutions to the exercises": "Therefore.",
    }.items():
        number = int(re.search(rf"{re.escape(title)}\D*?(\d+)", contents)[1])
        assert words in pages[number - 1], title
        assert re.search(rf"\b{number}\s*$", pages[number - 1].strip()) or str(number) in pages[number - 1].split()
    assert "Restoring Balance" in pages[0]
    assert "Therefore." in pages[-1]
    where = {item.title: reader.get_destination_page_number(item) for item in flat(reader.outline)}
    assert "Words." in pages[where["2. Two"]]


def flat(outline):
    """All entries of an outline, of whatever depth."""
    for item in outline:
        yield from flat(item) if isinstance(item, list) else [item]


@pytest.mark.browser
def test_a_formula_that_is_not_set_is_not_printed(book, printed):
    root, html = book
    (html / "_static" / "mathjax.js").write_text("window.MathJax = {startup: {promise: Promise.resolve()}};")
    with pytest.raises(RuntimeError, match="formula not rendered: x"):
        printed(root, html)


def test_every_page_gets_a_link_and_only_one(book):
    _, html = book
    assert "Whole book" not in (html / "book" / "preface.html").read_text()
    for megabytes in (7.4, 8.2):
        assert printer.link(html, megabytes) == 3
        text = (html / "notebooks" / "one.html").read_text()
        assert text.count('<a href="../restoring-balance.pdf">Whole book as PDF</a>') == 1
        assert f"({megabytes:.0f} MB)" in text
        assert "hidden></span>" not in text


@pytest.mark.parametrize("missing", ["chromium", "book"])
def test_what_is_missing_is_said(missing, book, monkeypatch):
    _, html = book
    monkeypatch.setattr(printer, "HTML", html)
    if missing == "chromium":
        (html / "index.html").write_text("")
        monkeypatch.setattr(printer.browser, "CHROMIUM", None)
    with pytest.raises(SystemExit, match="no Chromium" if missing == "chromium" else "make book"):
        printer.main()


# ---- the book itself


@pytest.fixture(scope="module")
def whole():
    path = HTML / printer.NAME
    if not path.exists():
        pytest.skip("there is no PDF of the book: make pdf")
    assert path.stat().st_size <= printer.MAX_BYTES
    return pypdf.PdfReader(path)


def titles():
    """Names of all pages and their titles; None for a page that includes another file."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    for name, _ in onepage.contents_of(toc):
        found = re.search(r"^# (.+)$", (ROOT / f"{name}.md").read_text(encoding="utf-8"), re.MULTILINE)
        yield name, found and found[1]


@pytest.mark.browser
def test_the_pdf_has_every_page_of_the_book(whole):
    found = {item.title: whole.get_destination_page_number(item) for item in flat(whole.outline)}
    wanted = [*(title for _, title in titles() if title), "Solutions to the exercises"]
    placed = [next((page for title, page in found.items() if title.endswith(end)), None) for end in wanted]
    assert None not in placed, wanted[placed.index(None)]
    assert placed == sorted(placed)


@pytest.mark.browser
def test_links_within_the_pdf_lead_somewhere(whole):
    named = whole.named_destinations
    wanted = set()
    for page in whole.pages:
        for note in page.get("/Annots") or []:
            link = note.get_object()
            wanted.add(link.get("/Dest") or (link.get("/A") or {}).get("/D"))
    wanted = {str(name).lstrip("/") for name in wanted if name is not None and not isinstance(name, list)}
    assert len(wanted) > 100
    assert not wanted - {name.lstrip("/") for name in named}


@pytest.mark.browser
@pytest.mark.parametrize("name", [name for name, _ in titles()])
def test_each_page_says_its_version_and_links_the_pdf_if_there_is_one(name):
    path = HTML / f"{name}.html"
    if not path.exists():
        pytest.skip("there is no book in _build/html: make book")
    text = path.read_text(encoding="utf-8")
    version = yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]
    assert f"<li>Version {version}</li>" in text
    assert (f'{printer.NAME}">' in text) == (HTML / printer.NAME).exists()  # a link, and not just its name
    notebook = HTML / "_sources" / f"{name}.ipynb"
    assert (f'{name.split("/")[-1]}.ipynb" download' in text) == notebook.exists()
