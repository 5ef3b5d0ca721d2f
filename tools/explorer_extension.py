"""Sphinx extension: an image of the class ``explorer-NAME`` is one of the explorers of book/_static/explorer.

The image is the still of it, and stands inside the element: for readers without JavaScript, for other builders than
HTML, and for Jupyter, where a directive of our own would be an error.
"""

from pathlib import Path

import bundle
from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

logger = logging.getLogger(__name__)
CLASS = "explorer-"  # of an image, followed by the name
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


class PlaceExplorers(SphinxTransform):
    """Put each explorer around its still."""

    default_priority = 200  # before images are collected

    def apply(self, **kwargs):
        """Visit each image that asks for one."""
        for image in list(self.document.findall(nodes.image)):
            name = next((kind.removeprefix(CLASS) for kind in image["classes"] if kind.startswith(CLASS)), None)
            if name is None:
                continue
            if name not in FIGURES or not image["uri"].endswith(f"/{name}.svg"):
                message = (
                    f"explorer must be one of {', '.join(FIGURES)}, with the still of its name, got {name!r} with "
                )
                logger.error(message + image["uri"], location=image)
                continue
            image["classes"].clear()
            image["alt"] = FIGURES[name]
            note = nodes.paragraph(text="A still of an explorer, which needs JavaScript.")
            figure = nodes.container("", image.deepcopy(), note, classes=["rbal-static"], is_div=True)
            start = f'<rbal-explorer name="{name}" id="explorer-{name}">'
            image.replace_self(
                [nodes.raw("", start, format="html"), figure, nodes.raw("", "</rbal-explorer>", format="html")]
            )


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
    app.add_transform(PlaceExplorers)
    app.connect("html-page-context", add_assets)
    app.connect("build-finished", write_bundle)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
