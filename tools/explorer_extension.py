"""Sphinx extension: the directive ``explorer``, which puts one of the explorers of book/_static/explorer into a page.

Readers without JavaScript, and other builders than HTML, get the static figure that stands inside the element.
"""

from pathlib import Path

import bundle
from docutils import nodes
from docutils.parsers.rst.directives import unchanged
from sphinx.util.docutils import SphinxDirective

# Names, and what the static figure of each shows.
FIGURES = {
    "metrics": "Balanced accuracy, accuracy, AUC and AUPRC against the share of positives in the training set",
    "tradeoff": "Balanced accuracy against the share of negatives for three margins, with the window of the middle one",
    "mixing": "Balanced accuracy against the mixing of under- and oversampling, with the best mixing marked",
    "scores": "Densities of the scores of both classes with a threshold, the ROC curve and the precision-recall curve",
    "phases": "Critical margin over the plane of class sizes, with the border of the separable phase",
    "widths": "Densities of the scores of a wide and a narrow class, three thresholds, and the balanced accuracy of "
    "each against the width",
}


class Explorer(SphinxDirective):
    """An explorer by its name; content, if any, goes below the static figure."""

    required_arguments = 1
    has_content = False
    option_spec = {"class": unchanged}  # noqa: RUF012

    def run(self):
        """Write the element around the static figure."""
        name = self.arguments[0]
        if name not in FIGURES:
            raise self.error(f"explorer must be one of {', '.join(FIGURES)}, got {name!r}")
        image = nodes.image(uri=f"/book/_static/explorer/static/{name}.svg", alt=FIGURES[name])
        note = nodes.paragraph(text="A still of an explorer, which needs JavaScript.")
        figure = nodes.container("", image, note, classes=["rbal-static"], is_div=True)
        start = f'<rbal-explorer name="{name}" id="explorer-{name}">'
        return [nodes.raw("", start, format="html"), figure, nodes.raw("", "</rbal-explorer>", format="html")]


def add_assets(app, pagename, templatename, context, doctree):
    """Load the module and its style sheet on pages that hold an explorer, and on no others."""
    if doctree is None or not any("<rbal-explorer" in node.astext() for node in doctree.findall(nodes.raw)):
        return
    app.add_js_file("explorer/index.js", type="module")
    app.add_js_file("explorer/from-file.js")
    app.add_css_file("explorer/explorer.css")


def write_bundle(app, exception):
    """Write the explorers as one script, for pages that are opened from a folder."""
    folder = Path(app.outdir) / "_static" / "explorer"
    if not exception and app.builder.format == "html" and folder.exists():
        (folder / "bundle.js").write_text(bundle.bundle(folder), encoding="utf-8")


def setup(app):
    """Register with Sphinx."""
    app.add_directive("explorer", Explorer)
    app.connect("html-page-context", add_assets)
    app.connect("build-finished", write_bundle)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
