"""Sphinx extension: the directive ``opening``, which shows a figure of a page before the code that computes it.

The figure moves; the cell that drew it keeps its place, with a line that says where its figure is. Since it moves
before figures are numbered, numbers follow the order in which a reader meets them. In Jupyter nothing moves, and what
stands inside the directive is read there: a sentence that says that the figure is computed below.
"""

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)
LIFTED = "rbal-lifted"  # class of the line that is left behind


class opening(nodes.General, nodes.Element):
    """Place that waits for a figure."""


class Opening(SphinxDirective):
    """The place for a figure of the same page, by its name. What stands inside is for readers of the notebook."""

    required_arguments = 1
    has_content = True

    def run(self):
        """Mark the place."""
        place = opening(figure=nodes.fully_normalize_name(self.arguments[0]))
        self.set_source_info(place)
        return [place]


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
        for place in list(self.document.findall(opening)):
            name = place["figure"]
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
    app.add_directive("opening", Opening)
    app.add_transform(LiftFigures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
