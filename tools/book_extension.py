"""Sphinx extension of this book: where pages find their assets, when a notebook must run again, what is downloaded."""

import hashlib
from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from sphinx.util import logging

logger = logging.getLogger(__name__)


def code_digest(root):
    """Digest of all that a notebook's output depends on besides its own cells: the package and the locked versions."""
    digest = hashlib.sha256()
    files = [path for path in (root / "rbal").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    for path in [root / "requirements.lock", *sorted(files)]:
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def leave_thebe_out(app):
    """Drop what sphinx-thebe does: Jupyter Book always loads it, and it writes its script twice into every page."""
    for listeners in app.events.listeners.values():
        listeners[:] = [listener for listener in listeners if listener.handler.__module__ != "sphinx_thebe"]


def configure(app, config):
    """Point MathJax and the widget manager at the book's own copies, and the execution cache at this code's folder."""
    leave_thebe_out(app)
    root = Path(app.srcdir)
    # The cache itself only watches a notebook's code cells; a folder for each state of rbal/ does the rest.
    config.nb_execution_cache_path = str(Path(app.outdir).parent / ".jupyter_cache" / code_digest(root))

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
    """Put the outputs into the notebooks offered for download: with a cache, MyST-NB writes them without."""
    downloads = Path(app.outdir) / "_sources"
    if exception or app.builder.format != "html" or not downloads.exists():
        return
    cache = get_cache(app.config.nb_execution_cache_path)
    for path in downloads.rglob("*.ipynb"):
        _, executed = cache.merge_match_into_notebook(nbformat.read(path, as_version=4))
        nbformat.write(executed, path)


def setup(app):
    """Register with Sphinx."""
    app.connect("config-inited", configure)
    app.connect("build-finished", fill_downloads)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
