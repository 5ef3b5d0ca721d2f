"""Sphinx extension: an admonition of the class ``opening`` shows a figure of the page before the code that computes it.

Its second class is the name of the figure. The figure moves; the cell that drew it keeps its place, with a line that
says where its figure is. Since it moves before figures are numbered, numbers follow the order in which a reader meets
them. In Jupyter nothing moves, and the admonition is read there: a sentence that says that the figure comes below. (A
directive of our own would be an error there, in red.)
"""

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

logger = logging.getLogger(__name__)
MARK, FIGURE = "opening", "fig-"  # class of such an admonition, and how its second class, the name of a figure, begins
LIFTED = "rbal-lifted"  # class of the line that is left behind


def openings(document):
    """Places that wait for a figure, and its name."""
    for place in list(document.findall(nodes.admonition)):
        if MARK in place["classes"]:
            yield place, next((name for name in place["classes"] if name.startswith(FIGURE)), None)


def left_behind(name, docname):
    """The line in the place of a figure that was lifted."""
    link = addnodes.pending_xref(
        "",
        nodes.inline("", name, classes=["xref", "std", "std-numref"]),
        refdomain="std",
        reftype="numref",
        refexplicit=False,
        reftarget=name,
        refdoc=docname,
        refwarn=True,
    )
    text = nodes.Text("This cell draws "), link, nodes.Text(", which opens the chapter.")
    return nodes.paragraph("", "", *text, classes=[LIFTED])


class LiftFigures(SphinxTransform):
    """Put each figure where the page asks for it."""

    default_priority = 700  # before figures are known by their names (850), long before they are numbered

    def apply(self, **kwargs):
        """Visit each place."""
        figures = {name: figure for figure in self.document.findall(nodes.figure) for name in figure["names"]}
        for place, name in openings(self.document):
            figure = figures.pop(name, None)
            if figure is None:
                message = f"opening: this page has no figure {name!r}, or it stands in another opening; it has "
                logger.error(message + (", ".join(map(repr, figures)) or "none"), location=place)
                place.parent.remove(place)
                continue
            figure.replace_self(left_behind(name, self.env.docname))
            place.replace_self(figure)


def setup(app):
    """Register with Sphinx."""
    app.add_transform(LiftFigures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
