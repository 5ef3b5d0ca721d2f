"""A matplotlib figure that follows a slider.

Matplotlib needs some 25 ms to draw axes, ticks and labels, and these rarely change: they are drawn once and kept as a
background. A frame restores it, draws the artists that move, and is sent to the page as a picture with a fixed palette,
which is both quicker to make and smaller on the wire than one in full colour.
"""

import io
from contextlib import contextmanager

import matplotlib.style
import numpy as np
from ipywidgets import Image as ImageWidget
from ipywidgets import Layout
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import offset_copy
from PIL import Image

from .._support import look

CSS_DPI = 100  # pixels of the page per inch of the figure
SHARPNESS = 1.44  # pixels of the picture per pixel of the page
SHADES = 20  # steps from a colour to white
INK, GREY, FAINT = "#222222", "#444444", "#8c8c8c"

COLOURS = (
    look.BLUE, look.VERMILLION, look.GREEN, look.PURPLE, look.ORANGE, look.SKY, look.BLACK,
    INK, GREY, FAINT,
)  # fmt: skip


@contextmanager
def book_style():
    """Use the style of the book, whatever the notebook has set; the font is named, since each draw looks it up."""
    with matplotlib.style.context(["default", look.STYLE, {"font.family": "DejaVu Sans"}]):
        yield


def _palette():
    """Return a picture with the palette of every frame: white, and each colour in all its shades.

    Pillow looks colours up by their upper six bits: shades that are closer than that would be taken for each other.
    """
    strength = np.arange(SHADES, 0, -1)[:, None] / SHADES
    shades = [1.0 + strength * (np.array(to_rgb(colour)) - 1.0) for colour in COLOURS]
    table = [np.array([255, 255, 255])]
    for shade in np.rint(255 * np.stack(shades, axis=1).reshape(-1, 3)).astype(int):
        if np.abs(shade - 255).max() > 8 and all(np.abs(shade - other).max() > 3 for other in table):
            table.append(shade)
    holder = Image.new("P", (1, 1))
    holder.putpalette(np.concatenate([table, np.repeat(table[:1], 256 - len(table), axis=0)]).ravel().tolist())
    return holder


PALETTE = _palette()


class Canvas:
    """Figure of a given size in inches, shown by ``image``, an ``ipywidgets.Image``."""

    def __init__(self, width, height):
        with book_style():
            self.figure = Figure(figsize=(width, height), dpi=SHARPNESS * CSS_DPI, layout="constrained")
        self._agg = FigureCanvasAgg(self.figure)
        layout = Layout(width=f"{width * CSS_DPI:g}px", max_width="100%", height="auto")
        self.image = ImageWidget(format="png", layout=layout)
        self._moving, self._background = [], None

    def moving(self, *artists):
        """Redraw these artists in every frame, and return the first of them."""
        for artist in artists:
            artist.set_animated(True)
            artist.set_in_layout(False)
            self._moving.append(artist)
        self._moving.sort(key=lambda artist: artist.get_zorder())  # stable: equals stay in the order they came
        return artists[0]

    def settle(self):
        """Forget the background, because something in it has changed."""
        self._background = None

    def limits(self, axes, x=None, y=None):
        """Set the range of axes, and make a new background only if it changes."""
        if x is not None and tuple(x) != axes.get_xlim():
            axes.set_xlim(x)
            self.settle()
        if y is not None and tuple(y) != axes.get_ylim():
            axes.set_ylim(y)
            self.settle()

    def draw(self):
        """Draw one frame and send it to the page."""
        if self._background is None:
            with book_style():
                self._agg.draw()
            self._background = self._agg.copy_from_bbox(self.figure.bbox)
        self._agg.restore_region(self._background)
        renderer = self._agg.get_renderer()
        for artist in self._moving:
            artist.draw(renderer)
        frame = Image.fromarray(np.asarray(self._agg.buffer_rgba())).convert("RGB")
        file = io.BytesIO()
        frame.quantize(palette=PALETTE, dither=Image.Dither.NONE).save(file, "png", compress_level=1)
        self.image.value = file.getvalue()


def two_digits(*all_axes):
    """Write y ticks with two digits: labels of one width keep the axes in place when the range changes."""
    for axes in all_axes:
        axes.yaxis.set_major_formatter("{x:.2f}")
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))


def rounded(values, step=0.02):
    """Return a range of y that holds the values, in whole steps so that it rarely changes."""
    low, high = np.nanmin(values), np.nanmax(values)
    bottom, top = step * np.floor(low / step - 0.2), min(step * np.ceil(high / step + 0.2), 1.02)
    if top - bottom < 2.5 * step:  # else the ticks would need a third digit
        bottom -= step
    return float(bottom), float(top)


class Readout:
    """Rows of words beside the curves, each with a swatch in the colour of what it is about."""

    def __init__(self, canvas, axes, rows):
        axes.set_axis_off()
        self._alone = axes.transAxes
        self._beside = offset_copy(axes.transAxes, canvas.figure, x=15.0, units="points")
        options = {"transform": self._alone, "va": "top", "fontsize": 10.5}
        places = 0.98 - 0.085 * np.arange(rows)
        self._swatches = [canvas.moving(axes.text(0.0, y, "", **options)) for y in places]
        self._words = [canvas.moving(axes.text(0.0, y, "", color=INK, **options)) for y in places]

    def write(self, rows):
        """Replace all rows by pairs (words, colour); without a colour the words stand alone."""
        rows = [*rows, *[("", None)] * (len(self._words) - len(rows))]
        for swatch, word, (text, colour) in zip(self._swatches, self._words, rows, strict=True):
            word.set_text(text)
            word.set_transform(self._alone if colour is None else self._beside)
            swatch.set_text("" if colour is None else "■")
            swatch.set_color(colour or INK)


def rectangles(x, inside):
    """Return corners of the stretches of x (n,) where ``inside`` (n,) holds, for ``set_verts`` of a band.

    A stretch reaches to the middle between its last point and the next one.
    """
    edges = np.concatenate([x[:1], 0.5 * (x[1:] + x[:-1]), x[-1:]])
    steps = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(int)))
    pairs = zip(edges[steps[::2]], edges[steps[1::2]], strict=True)
    return [[(left, 0.0), (left, 1.0), (right, 1.0), (right, 0.0)] for left, right in pairs]
