"""All pages of the built book as one page to print: cover, contents, chapters, and the solutions at the end.

Anchors of a page get its name in front, links between pages become links within the one, and what leads out of the book
leads to its public address. A span with ``data-page-of`` waits for the number of the printed page of that anchor.
"""

import datetime
import html
import os
import posixpath
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

import execute
import yaml
from bs4 import BeautifulSoup

STYLE = Path(__file__).with_suffix(".css")
# Of no use on paper: marks beside headings, code that the page folds away and where its figure is, scripts, what only
# screen readers need.
LEFT_OUT = "a.headerlink, details.hide.above-input, .rbal-lifted, script, style, .toctree-wrapper"

# Chromium drops the last pages of a long document (19 of 645, at version 156). So empty ones follow the last that is
# needed, and are taken off the PDF; how many pages there are is seen from the anchor before them.
END, ENDPAPERS = "pdf-end", 100
LEFT_OUT_TEXT = (
    "Code that the pages fold away is left out here, and so are the parts of pages that need a browser: of each "
    "explorer a still is shown. Solutions to the exercises stand at the end."
)


class Page(NamedTuple):
    """A page of the book: its name, the caption of its part where it is the first of one, and its article."""

    name: str
    part: str | None
    article: object


def anchor(name, fragment=""):
    """The anchor in the whole book of an anchor in one page, or of its beginning."""
    return name.replace("/", "-") + (f"--{fragment}" if fragment else "")


def contents_of(toc):
    """(name, caption of the part if it begins one) of every page in a table of contents, in order."""
    listed = [(toc["root"], None)]
    for part in toc["parts"]:
        names = execute.listed(part)
        listed += [(name, part["caption"] if k == 0 else None) for k, name in enumerate(names)]
    return listed


def target(name, href, names, base):
    """Where a link of a page leads, in the whole book or outside."""
    parts = urlsplit(urljoin(f"http://book/{name}.html", href))
    if parts.netloc != "book":
        return href
    page = unquote(parts.path).lstrip("/").removesuffix(".html")
    if page in names:
        return "#" + anchor(page, parts.fragment)
    return urljoin(base, parts.path.lstrip("/")) + (f"#{parts.fragment}" if parts.fragment else "")


def localise(article, name, names, base):
    """Give anchors the name of their page, and send links and images where they lead from the root of the book."""
    for node in article.find_all(id=True):
        if node.find_parent("svg") is None:
            node["id"] = anchor(name, node["id"])
    for node in article.find_all("a", href=True):
        node["href"] = target(name, node["href"], names, base)
        node.attrs.pop("title", None)
    for node in article.find_all("img", src=True):
        if not node["src"].startswith("data:"):
            node["src"] = posixpath.normpath(posixpath.join(posixpath.dirname(name), node["src"]))
        node["loading"] = "eager"


def fragment(text):
    """Nodes of a piece of HTML."""
    return BeautifulSoup(text, "html.parser")


def on_page(where):
    """A link that is the number of a printed page."""
    return f'<a class="pdf-page" href="#{where}"><span data-page-of="{where}"></span></a>'


def tell_stills(article, name, base):
    """Say of the still of an explorer where it moves."""
    for node in article.find_all("rbal-explorer"):
        place = f"{base}{name}.html#explorer-{node['name']}"
        note = f'<p class="pdf-still">A still of an explorer, which moves at <a href="{place}">{place}</a>.</p>'
        (node.find("p") or node).replace_with(fragment(note))


def take_solutions(article):
    """Take the solutions out of a page; each leaves behind the number of the page where it now stands."""
    taken = []
    for node in article.select("div.solution"):
        note = f'<p class="pdf-solution">Solution on page {on_page(node["id"])}.</p>'
        node.replace_with(fragment(note))
        title = node.find("p", class_="admonition-title")
        if title is not None and (link := title.find("a", href=True)) is not None:
            title.append(fragment(f", page {on_page(link['href'].lstrip('#'))}"))
        taken.append(node)
    return taken


def read_pages(folder, toc, base):
    """Every page of the table of contents, ready to be put beside the others; and the head of them all."""
    listed = contents_of(toc)
    names = {name for name, _ in listed}
    pages, styles, scripts = [], {}, {}
    for name, part in listed:
        soup = BeautifulSoup((folder / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
        for link in soup.head.find_all("link", rel="stylesheet"):
            styles.setdefault(posixpath.normpath(posixpath.join(posixpath.dirname(name), link["href"])))
        for script in soup.head.find_all("script"):
            if "mathjax" in script.get("src", "").lower() and "//" not in script["src"]:
                script["src"] = posixpath.normpath(posixpath.join(posixpath.dirname(name), script["src"]))
            if "mathjax" in script.get("src", "").lower() or script.text.startswith("window.MathJax"):
                scripts.setdefault(str(script))
        article = soup.find("article", class_="bd-article").extract()
        for node in article.select(LEFT_OUT):
            node.decompose()
        for node in article.find_all("details"):
            node["open"] = ""
        tell_stills(article, name, base)
        localise(article, name, names, base)
        pages.append(Page(name, part, article))
    head = "".join(f'<link rel="stylesheet" href="{html.escape(href)}">\n' for href in styles) + "\n".join(scripts)
    return pages, head


def heading(node):
    """The text of a heading, with its formulas as they are typeset."""
    return node.decode_contents().strip()


def plain(title):
    """The text of a heading where there are no formulas: as a bookmark."""
    return re.sub(r"\\[()]|\s+", " ", fragment(title).get_text()).strip()


def contents(pages):
    """The table of contents, in which each number of a page is still to be filled in."""
    rows = []

    def row(level, title, where):
        mark = f'data-level="{level}" data-title="{html.escape(plain(title))}"'
        rows.append(f'<li class="pdf-{level}" {mark}><a href="#{where}">{title}</a><i></i>{on_page(where)}</li>')

    for page in pages:
        if page.part:
            rows.append(f'<li class="pdf-part">{html.escape(page.part)}</li>')
        row("chapter", heading(page.article.h1), anchor(page.name))
        for section in page.article.find_all("h2"):
            holder = section.find_parent("section")
            if holder is not None and holder.get("id"):
                row("section", heading(section), holder["id"])
    row("chapter", "Solutions to the exercises", "solutions")
    return f'<nav id="contents"><h1>Contents</h1><ol>{"".join(rows)}</ol></nav>'


def cover(citation, base):
    """The cover, and the page behind it: version, licence, how to cite."""
    version, built = html.escape(str(citation["version"])), build_date()
    source = citation["repository-code"]
    paper = citation["references"][0]
    who = ", ".join(f"{a['given-names']} {a['family-names']}" for a in paper["authors"])
    authors = html.escape(", ".join(author["name"] for author in citation["authors"]))
    return f"""
<section class="pdf-cover"><img src="_static/logo.svg" alt="">
<p class="pdf-title">Restoring Balance</p>
<p class="pdf-subtitle">{html.escape(citation["abstract"])}</p>
<p class="pdf-authors">{authors}</p><p>Version {version}, {built}</p></section>
<section class="pdf-imprint">
<p><em>Restoring Balance</em>, version {version}, printed on {built} from the pages at <a href="{base}">{base}</a>,
where figures move and every chapter can be downloaded as the notebook that was executed. Library and source:
<a href="{source}">{source}</a> ({html.escape(citation["title"])}). Licence: {citation["license"]}.</p>
<p>{LEFT_OUT_TEXT}</p>
<p>To cite this book: {authors}, <em>Restoring Balance</em>, version {version}, {base}. Please cite with it the paper
whose theory it follows: {html.escape(who)}, “{html.escape(paper["title"])}”, {html.escape(paper["collection-title"])},
PMLR {paper["volume"]}, {paper["year"]}.</p></section>"""


def build_date():
    """Today, or the day that SOURCE_DATE_EPOCH names, for builds that are to be the same byte by byte."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.datetime.fromtimestamp(int(epoch), datetime.UTC) if epoch else now
    return f"{day.day} {day:%B %Y}"


def running_heads(titles):
    """A style for each chapter that writes its title above its pages."""
    rules = []
    for where, title in titles:
        text = title.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        rules.append(f'@page {where} {{ @top-right {{ content: "{text}" }} }}\n#{where} {{ page: {where} }}\n')
    return "".join(rules)


def whole(folder, root):
    """The one page to print, as HTML, from the built pages in ``folder`` and the settings below ``root``."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    base = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["html"]["baseurl"]
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    pages, head = read_pages(folder, toc, base)
    body, solved, titles = [], [], []
    for page in pages:
        where, title = anchor(page.name), page.article.h1.get_text(" ", strip=True)
        titles.append((where, title))
        if solutions := take_solutions(page.article):
            solved.append(f"<h2>{heading(page.article.h1)}</h2>" + "".join(map(str, solutions)))
        part = f'<p class="pdf-partname">{html.escape(page.part)}</p>' if page.part else ""
        body.append(f'<section class="pdf-page-of-book" id="{where}">{part}{page.article}</section>')
    titles.append(("solutions", "Solutions to the exercises"))
    body.append(
        '<section class="pdf-page-of-book" id="solutions"><article class="bd-article">'
        f'<h1>Solutions to the exercises</h1>{"".join(solved)}<div id="{END}"></div></article></section>'
        + f'<p class="pdf-endpaper"><a href="#{END}">end</a></p>'
        * ENDPAPERS
    )
    return f"""<!DOCTYPE html>
<html lang="en" data-theme="light" data-mode="light"><head><meta charset="utf-8"><title>Restoring Balance</title>
<link rel="icon" href="data:,">
{head}
<style>{STYLE.read_text(encoding="utf-8")}{running_heads(titles)}</style></head>
<body>{cover(citation, base)}{contents(pages)}<main class="bd-main"><div class="bd-content">
<div class="bd-article-container">{"".join(body)}</div></div></main></body></html>"""
