"""A figure as one SVG that a page can show anywhere: with a narrow version of itself, and with a description.

The wide version is what a notebook shows. Inside its ``metadata`` stand two elements that no viewer draws: the text of
a narrow version for phones, with panels below each other, and a description of what is drawn. The book takes them out
(tools/figure_extension.py), and makes the colours for the dark from the colours for the light.
"""

import io
import math
import pickle
from xml.sax.saxutils import escape

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import rcParams
from matplotlib.collections import Collection, QuadMesh
from matplotlib.colors import to_rgb, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.text import Text

from ._words import described

NARROW = 4.6  # inches: 331 points, the column of a phone of 375 px, so that a point of text is a pixel there
SMALLEST = 10.0  # points, of text in the narrow version
PANEL = (2.3, 3.1)  # inches, the least and the greatest height of a panel in the narrow version
LARGEST = 250_000  # characters of one version; what is longer has its many points drawn as a picture
MANY = 300  # points of one artist
LINE = 46  # characters of text that fit the width of the narrow version
GALLERY = 5  # columns from which panels are taken for a gallery of pictures
COLUMNS = {1: ("",), 2: ("left", "right"), 3: ("left", "middle", "right")}  # as captions call panels
ROWS = {1: ("",), 2: ("top", "bottom"), 3: ("top", "middle", "bottom")}
HEADING = 0.2  # inches, the height of a title


def show_as_svg(shell):
    """Have an IPython shell show figures by ``svg``, and not as PNG."""
    if "inline" in plt.get_backend():
        plt.switch_backend(plt.get_backend())  # loads it now: with its first figure it would register its own formats
    formatters = shell.display_formatter.formatters
    for kind in ("image/png", "image/jpeg", "application/pdf"):
        formatters[kind].pop(Figure, None)
    formatters["image/svg+xml"].for_type(Figure, svg)


def svg(fig):
    """Return the figure as SVG text, with its narrow version and its description inside.

    Parameters
    ----------
    fig : matplotlib Figure

    Returns
    -------
    str
    """
    by_hand = not isinstance(fig.get_layout_engine(), ConstrainedLayoutEngine)  # a copy would be laid out as usual
    inside = f"<rbal-words>{escape(described(fig))}</rbal-words>"
    wide = _drawn(fig)
    try:
        copy = pickle.loads(pickle.dumps(fig))
    except (pickle.PicklingError, AttributeError, TypeError):  # a function of the reader's within: no narrow version
        copy = None
    if copy is not None:
        if by_hand:
            copy.set_layout_engine("none")
        try:
            inside += f"<rbal-narrow>{escape(_drawn(narrowed(copy)))}</rbal-narrow>"
        finally:
            plt.close(copy)
    at = wide.rindex("</svg>")
    return f"{wide[:at]}<metadata>{inside}</metadata>\n{wide[at:]}"


def _drawn(fig):
    """SVG text of the figure as it is, prepared for two palettes; with many points as pictures if it would be long."""
    for number, patch in enumerate([fig.patch, *(ax.patch for ax in fig.axes)]):
        patch.set_gid(f"ground-{number}")  # by this name a page finds the white ground, and takes it away
    for ax in fig.axes:
        _keep_scale(ax)
    if sum(map(_size, fig.findobj(_heavy))) > 10 * MANY:
        _as_picture(fig)
    text = _saved(fig)
    if len(text) > LARGEST:
        _as_picture(fig)
        text = _saved(fig)
    return text


def _keep_scale(ax):
    """Draw scales of colour as pictures, which keep their colours in the dark, and so must what is drawn upon them."""
    scales = [one for one in ax.collections if one.get_array() is not None and not getattr(one, "colors", None)]
    for scale in scales:
        scale.set_rasterized(True)
    if ax.get_images() or any(isinstance(one, QuadMesh) or getattr(one, "filled", False) for one in scales):
        arrows = (text.arrow_patch for text in ax.texts if getattr(text, "arrow_patch", None) is not None)
        for artist in (*ax.lines, *ax.texts, *ax.collections, *ax.patches, *arrows):
            for part in ("color", "markeredgecolor", "markerfacecolor", "edgecolor", "facecolor"):
                _keep_color(artist, part)


def _keep_color(artist, part):
    """Take a white or a black that is no part of a palette, in place of white, and of black or the ink of texts."""
    get, change = (getattr(artist, f"{verb}_{part}", None) for verb in ("get", "set"))
    if get is None or change is None:
        return
    color = get()
    shades = np.atleast_2d(to_rgba_array(color)) if color is not None and len(color) else np.zeros((0, 4))
    if len(shades) and np.all(shades == shades[0]):  # one, or one for each line of a contour
        for shade, kept in (("white", "#fefefe"), ("black", "#010101"), (rcParams["text.color"], "#010101")):
            if np.allclose(shades[0, :3], to_rgb(shade)) and shades[0, 3] > 0:
                change(kept)


def _saved(fig):
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    fig.savefig(buffer, format="svg", bbox_inches="tight", dpi=200, metadata=nothing)
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _as_picture(fig):
    for artist in fig.findobj(_heavy):
        artist.set_rasterized(True)


def _heavy(artist):
    """Whether an artist draws many points, or many shapes."""
    marked = not isinstance(artist, Line2D) or artist.get_marker() not in ("None", None, "", " ")
    return marked and _size(artist) > MANY


def _size(artist):
    if isinstance(artist, Line2D):
        return len(artist.get_xdata())
    if isinstance(artist, Collection):
        return max(len(artist.get_offsets()), len(artist.get_paths()))
    return 0


def narrowed(fig):
    """Change a figure to one for a phone: panels of one row below each other, and no small text. Returns it.

    Galleries of pictures, and figures whose panels are placed by hand, are only made smaller.
    """
    width, height = fig.get_size_inches()
    panels = _panels(fig)
    for text in fig.findobj(Text):
        text.set_fontsize(max(text.get_fontsize(), SMALLEST))
    if width <= NARROW:
        return fig
    if panels is None or not panels:
        fig.set_size_inches(NARROW, height * NARROW / width)
        return fig
    rows = max(ax.get_subplotspec().rowspan.stop for ax in panels)
    if len(panels) > rows:
        untitled = sum(_titled(ax) is None for ax in panels)
        _stack(fig, panels)
        height += HEADING * untitled * rows / len(panels)
    heights = min(max(height / rows, PANEL[0]), PANEL[1]) if len(panels) > 1 else height
    heights = max(heights, *(0.5 + 0.17 * len(ax.get_yticks()) for ax in panels if len(ax.get_yticks()) > 12), 0)
    taken = sum(_move_legend(ax, ax.get_legend()) for ax in fig.axes)
    taken += sum(_move_legend(fig, legend) for legend in list(fig.legends))
    fig.set_size_inches(NARROW, heights * len(panels) + taken)
    return fig


def _panels(fig):
    """Axes of the figure's grid in reading order, or None where they should stay where they are."""
    placed = [ax for ax in fig.axes if not hasattr(ax, "_colorbar")]
    specs = [ax.get_subplotspec() for ax in placed]
    if any(spec is None for spec in specs) or len({id(spec.get_gridspec()) for spec in specs}) != 1:
        return None
    if specs[0].get_gridspec().ncols >= GALLERY or any(
        len(spec.colspan) > 1 or len(spec.rowspan) > 1 for spec in specs
    ):
        return None
    first = {}
    for ax, spec in zip(placed, specs, strict=True):
        first.setdefault(spec.num1, ax)  # a twin stands on the panel it belongs to
    if all(_picture(ax) for ax in first.values()):
        return None
    return [first[number] for number in sorted(first)]


def _picture(ax):
    """Whether a panel is a picture without scales."""
    return bool(ax.get_images()) and not (ax.axison and (len(ax.get_xticks()) or len(ax.get_yticks())))


def _stack(fig, panels):
    """Put panels below each other, each with the labels that it shared, and with the place that captions know."""
    places = [ax.get_subplotspec() for ax in panels]
    grid = places[0].get_gridspec()
    for ax, place in zip(panels, places, strict=True):
        row = [other for other, spot in zip(panels, places, strict=True) if spot.rowspan == place.rowspan]
        column = [other for other, spot in zip(panels, places, strict=True) if spot.colspan == place.colspan]
        if ax.get_shared_y_axes().joined(ax, row[0]) and ax is not row[0]:
            ax.set_ylabel(ax.get_ylabel() or row[0].get_ylabel())
            ax.tick_params(axis="y", labelleft=True)
        if ax.get_shared_x_axes().joined(ax, column[-1]) and ax is not column[-1]:
            ax.set_xlabel(ax.get_xlabel() or column[-1].get_xlabel())
            ax.tick_params(axis="x", labelbottom=True)
        if not _titled(ax) and _titled(column[0]):
            ax.set_title(column[0].get_title(_titled(column[0])), loc=_titled(column[0]))
    for ax, place in zip(panels, places, strict=True):  # after titles were shared
        if grid.nrows in ROWS and grid.ncols in COLUMNS:
            _name(ax, f"{ROWS[grid.nrows][place.rowspan.start]} {COLUMNS[grid.ncols][place.colspan.start]}".strip())
    stack = fig.add_gridspec(len(panels), 1)
    moved = {place.num1: stack[number, 0] for number, place in enumerate(places)}
    for ax in fig.axes:
        place = ax.get_subplotspec()
        if place is not None and place.get_gridspec() is grid:
            ax.set_subplotspec(moved[place.num1])


def _titled(ax):
    """Where the title of a panel stands, or None."""
    return next((where for where in ("left", "center", "right") if ax.get_title(where)), None)


def _name(ax, place):
    """Begin the title of a panel with its place in the wide version."""
    where = _titled(ax)
    title = ax.get_title(where) if where else ""
    gap = "\n" if len(place) + len(title.split("\n")[0]) + 2 > LINE else " "
    ax.set_title(f"{place}:{gap}{title}" if title else place, loc=where)


def _move_legend(owner, legend):
    """Put the legend of a panel above it, off the curves, and give every legend as many columns as fit.

    Returns the inches of height that the legend takes from its panel.
    """
    if legend is None:
        return 0.0
    texts = [text.get_text() for text in legend.get_texts()]
    longest = max((len(line) for text in texts for line in text.splitlines()), default=1)
    columns = max(1, min(len(texts), math.floor(LINE / (longest + 7))))  # 7: a line or dot, and the space around
    title = legend.get_title().get_text()
    options = {"ncols": columns, "title": title or None, "fontsize": SMALLEST}
    if owner is legend.get_figure():
        options |= {"loc": "outside lower center"}
    else:
        options |= {
            "loc": "lower center",
            "bbox_to_anchor": (0.5, 1.0),
            "borderaxespad": 2.0 if _titled(owner) else 0.5,
        }
    # what the legend drew of a dot with an error bar is the bar alone: the artists themselves know better
    panels = owner.axes if owner is legend.get_figure() else [owner]
    known = [dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True)) for ax in reversed(panels)]
    known = {label: handle for labels in known for label, handle in labels.items()}
    handles = [known.get(text, drawn) for text, drawn in zip(texts, legend.legend_handles, strict=True)]
    legend.remove()
    owner.legend(handles, texts, **options)
    rows = math.ceil(len(texts) / columns) + bool(title)
    return 0.21 * rows
