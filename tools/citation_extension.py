"""Sphinx extension: how to cite each page, its version and what of it can be downloaded, below its text.

The words come from CITATION.cff; book/_templates/cite.html puts them into the page.
"""

import html
import re
from pathlib import Path

import yaml


def read(root):
    """CITATION.cff of the project below ``root``."""
    return yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))


def title_of(context):
    """Title of a page without its markup."""
    return html.unescape(re.sub(r"<[^>]+>", "", context.get("title") or "")).strip()


def key_of(pagename, version):
    """Key of a page in BibTeX."""
    return "rbal-" + re.sub(r"[^a-z0-9]+", "-", f"{pagename.split('/')[-1]}-{version}".lower())


def entry(context, pagename, citation, year, address):
    """The BibTeX entry of a page."""
    authors = " and ".join(f"{{{author['name']}}}" for author in citation["authors"])
    return (
        f"@incollection{{{key_of(pagename, citation['version'])},\n"
        f"  author    = {{{authors}}},\n"
        f"  title     = {{{title_of(context)}}},\n"
        f"  booktitle = {{Restoring Balance}},\n"
        f"  year      = {{{year}}},\n"
        f"  note      = {{Version {citation['version']}}},\n"
        f"  url       = {{{address}}}\n}}"
    )


def add_citation(app, pagename, templatename, context, doctree):
    """Hand to the template what it shows; pages without a text of their own, such as the search, have no box."""
    if doctree is None:
        context["cite"] = None
        return
    citation = read(Path(app.srcdir))
    year = str(app.config.copyright)[-4:]
    address = f"{app.config.html_baseurl.rstrip('/')}/{pagename}.html"
    paper = citation["references"][0]
    context["cite"] = {
        "authors": ", ".join(author["name"] for author in citation["authors"]),
        "year": year,
        "title": title_of(context),
        "version": citation["version"],
        "address": address,
        "bibtex": entry(context, pagename, citation, year, address),
        "paper": f"{paper['authors'][0]['family-names']} et al., {paper['year']}",
    }


def setup(app):
    """Register with Sphinx."""
    app.connect("html-page-context", add_citation)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
