"""Sphinx extension of this book: assets and results of pages, downloads, the status table, old addresses."""

import os
import posixpath
import re
from pathlib import Path

import execute
import nbformat
import schedule
from docutils import nodes
from jupyter_cache import get_cache
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)


def leave_thebe_out(app):
    """Drop what sphinx-thebe does: Jupyter Book always loads it, and it puts links and scripts into every page."""
    app.registry.css_files[:] = [entry for entry in app.registry.css_files if "sphinx-thebe" not in entry[0]]
    for listeners in app.events.listeners.values():
        listeners[:] = [listener for listener in listeners if listener.handler.__module__ != "sphinx_thebe"]


def write_in_parallel(app, env):
    """Write pages in as many processes as BOOK_JOBS says; sphinx-proof lets them be read in one only."""
    app.parallel = int(os.environ.get("BOOK_JOBS", "1"))


def configure(app, config):
    """Point MathJax and the widget manager at the book's own copies, and the execution cache at this code's folder."""
    leave_thebe_out(app)
    root = Path(app.srcdir)
    config.nb_execution_cache_path = str(execute.cache_folder(root))

    if not (root / "book" / "_static" / "vendor" / "versions.txt").exists():
        logger.info("NOTICE: no book/_static/vendor, so pages load MathJax and the widget manager from public CDNs")
        return
    config.mathjax_path = "vendor/mathjax/tex-mml-chtml.js"
    config.nb_ipywidgets_js = {
        "vendor/requirejs/require.js": {},
        "widgets-offline.js": {},
        "vendor/html-manager/embed-amd.js": {"data-jupyter-widgets-cdn": "vendor/"},
    }


def fill_downloads(app, exception):
    """Put the outputs into the notebooks offered for download: with a cache, MyST-NB writes them without.

    Pages that a build was told not to run keep theirs as they are.
    """
    downloads = Path(app.outdir) / "_sources"
    if exception or app.builder.format != "html" or not downloads.exists():
        return
    cache = get_cache(app.config.nb_execution_cache_path)
    for path in downloads.rglob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        if execute.record(cache, notebook) is not None:
            _, executed = cache.merge_match_into_notebook(notebook)
            nbformat.write(executed, path)


MOVED = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>This page has moved</title>
<link rel="canonical" href="{new}">
<script>location.replace("{new}" + location.hash);</script>
<noscript><meta http-equiv="refresh" content="0; url={new}"></noscript>
</head>
<body><p>This page has moved: <a href="{new}">{new}</a>.</p></body>
</html>
"""


def redirect(app, exception):
    """Leave a page at each old address that leads to the new one, to the same place in it."""
    if exception or app.builder.format != "html":
        return
    for old, new in app.config.moved_pages.items():
        if new not in app.env.all_docs:
            logger.warning(f"moved_pages: {old} leads to {new}, which is no page")
        place = Path(app.outdir) / f"{old}.html"
        place.parent.mkdir(parents=True, exist_ok=True)
        target = posixpath.relpath(f"{new}.html", posixpath.dirname(old))
        place.write_text(MOVED.format(new=target), encoding="utf-8")


def paper_line(text):
    """The italic line in which a chapter says what it reproduces; None if there is none."""
    found = re.search(r"^\*(?!\*)([^*]+)\*$", text, re.MULTILINE)
    return found and " ".join(found[1].split())


class ChapterStatus(SphinxDirective):
    """A table of all pages that run: what each reproduces of the paper, and its execution time from the cache."""

    def run(self):
        """Write the table as MyST, so that titles and formulas resolve as anywhere else."""
        cache = get_cache(self.config.nb_execution_cache_path)
        here = Path(self.env.doc2path(self.env.docname)).parent
        rows = ["| page | what it reproduces | seconds | memory, MB |", "|:--|:--|--:|--:|"]
        total, pages = 0.0, schedule.known()
        for path, notebook in execute.pages().items():
            record = execute.record(cache, notebook)
            seconds = record.data["execution_seconds"] if record else None
            total += seconds or 0.0
            line = paper_line(path.read_text(encoding="utf-8"))
            if line is None and path.parent.name == "notebooks":
                logger.warning(f"{path.name}: no italic line says which figure of the paper it reproduces")
            link = f"[](../{path.relative_to(here.parent)})"
            megabytes = pages.get(str(path.relative_to(execute.ROOT)), {}).get("megabytes", "–")
            rows.append(f"| {link} | {line or '–'} | {'–' if seconds is None else f'{seconds:.0f}'} | {megabytes} |")
        rows.append(f"| all, one after another | | {total:.0f} | |")
        box = nodes.container(classes=["rbal-status"])
        self.state.nested_parse(rows, self.content_offset, box)
        return box.children


class RunningTime(SphinxPostTransform):
    """Add to the italic line of a chapter how long this build, or the tests before it, ran its cells."""

    default_priority = 800

    def run(self, **kwargs):
        """Look the time up in the cache that the page's outputs come from."""
        path = Path(self.env.doc2path(self.env.docname))
        if path.parent.name != "notebooks":
            return
        record = execute.record(get_cache(self.config.nb_execution_cache_path), execute.read(path))
        if record:
            add_time(self.document, record.data["execution_seconds"])


def add_time(document, seconds):
    """Add a sentence to the first paragraph that is nothing but italics."""
    for paragraph in document.findall(nodes.paragraph):
        if len(paragraph) == 1 and isinstance(paragraph[0], nodes.emphasis):
            paragraph[0] += nodes.Text(f" Ran in {max(1.0, seconds):.0f}\N{NO-BREAK SPACE}s when this book was built.")
            return


class CaptionAsAlt(SphinxPostTransform):
    """Give a figure of a cell the text of its caption as its alternative text, where the cell names none."""

    default_priority = 800

    def run(self, **kwargs):
        """Visit each figure."""
        for figure in self.document.findall(nodes.figure):
            caption = next(figure.findall(nodes.caption), None)
            for image in figure.findall(nodes.image):
                if caption is not None and not image.get("alt"):
                    image["alt"] = " ".join(caption.astext().split())


def setup(app):
    """Register with Sphinx."""
    app.add_directive("chapter-status", ChapterStatus)
    app.add_post_transform(CaptionAsAlt)
    app.add_post_transform(RunningTime)
    app.add_config_value("moved_pages", {}, "html")
    app.connect("config-inited", configure)
    app.connect("env-updated", write_in_parallel)
    app.connect("build-finished", redirect)
    app.connect("build-finished", fill_downloads)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
