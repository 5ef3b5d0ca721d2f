"""The parts that all explorations share: controls, a picture, a line of words, and errors shown on the page."""

import html
import warnings
from contextlib import contextmanager

import numpy as np
from ipywidgets import HTML, Dropdown, FloatLogSlider, FloatSlider, GridBox, Layout, VBox

from .._support.validation import number
from . import _data
from ._canvas import Canvas

KAPPA = (0.0, 6.0)
ALPHA = (0.1, 100.0)
WIDE = {"description_width": "9.5em"}
ROOM = {"width": "auto"}  # a dict, since a Layout that all share would be closed with the first of them


def slider(name, label, value, low, high, step=0.01):
    """Return a slider on a linear scale; errors about ``value`` call it ``name``."""
    value = number(name, value, low, high)
    return FloatSlider(value, min=low, max=high, step=step, description=label, style=WIDE, layout=ROOM)


def size_slider(name, label, value, high=ALPHA[1]):
    """Return a slider for a class size over L, on a logarithmic scale."""
    return FloatLogSlider(
        number(name, value, ALPHA[0], high),
        min=np.log10(ALPHA[0]),
        max=np.log10(high),
        step=0.001,  # fine enough for the page to show the value that Python has
        description=label,
        readout_format=".2f",
        style=WIDE,
        layout=ROOM,
    )


def margin_slider(kappa):
    """Return a slider for the margin of the training."""
    return slider("kappa", "margin κ", kappa, *KAPPA, step=0.05)


class Explorer(VBox):
    """Controls above a picture, and a line of words below it.

    Attributes
    ----------
    controls : dict
        Every control by its name; each is also an attribute, so that ``ui.kappa.value = 1.0`` moves a slider.
    curves : dict
        The numbers behind the picture, plain arrays and floats.
    picture : ipywidgets.Image
        The figure, as PNG.
    summary : ipywidgets.HTML
        The result in words.
    error : str
        The error of the last update, empty if there was none.
    """

    def __init__(self, width, height, controls, extras=()):
        self._held = True
        self.controls, self.curves, self.error = controls, {}, ""
        for name, control in controls.items():
            setattr(self, name, control)
            if control.has_trait("value"):
                control.observe(self._changed, names="value")
        self.canvas = Canvas(width, height)
        self.picture, self.summary, self._message = self.canvas.image, HTML(), HTML()
        columns = "repeat(auto-fit, minmax(300px, 1fr))"
        grid = GridBox(
            list(controls.values()),
            layout=Layout(grid_template_columns=columns, grid_gap="2px 16px", width="100%"),
        )
        super().__init__(
            [grid, *extras, self._message, self.picture, self.summary],
            layout=Layout(width="100%", max_width=self.picture.layout.width),
        )

    def start(self):
        """Draw for the first time; from now on every change of a control redraws."""
        self._held = False
        self.redraw()
        return self

    def redraw(self):
        """Compute and draw again."""
        with self._shown():
            self._update()
            self.canvas.draw()

    def _update(self):
        raise NotImplementedError

    def _changed(self, change):
        if not self._held:
            self.redraw()

    @contextmanager
    def _hold(self):
        """Let several controls change before anything is drawn."""
        before, self._held = self._held, True
        try:
            yield
        finally:
            self._held = before

    @contextmanager
    def _shown(self):
        """Show errors and warnings on the page: those of a callback would end in a log that no one reads."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            except Exception as error:
                self.error = str(error) or type(error).__name__
            else:
                self.error = ""
        notes = [str(w.message) for w in caught if issubclass(w.category, (UserWarning, RuntimeWarning))]
        self._say(self.error, notes)

    def _say(self, error, notes):
        lines = [_line(error, "#D55E00", "alert")] if error else []
        lines += [_line(note, "#8c6d00", "status") for note in dict.fromkeys(notes)]
        self._message.value = "".join(lines)


def _line(text, colour, role):
    style = f"border-left:4px solid {colour};padding:2px 8px;margin:4px 0;line-height:1.4"
    return f'<div role="{role}" style="{style}">{html.escape(text)}</div>'


class DataExplorer(Explorer):
    """An exploration with a menu of data, and a slider for the distance between the classes."""

    def __init__(self, width, height, data, separation, controls, extras=()):
        chosen = _data.source(data)
        menu = Dropdown(options=_data.options(chosen), value=chosen, description="data", style=WIDE, layout=ROOM)
        distance = FloatSlider(
            0.0, min=0.0, max=1.0, step=0.01, description="separation ‖δ‖/√L", style=WIDE, layout=ROOM
        )
        self._spectrum, self._loaded = None, None
        super().__init__(width, height, {"data": menu, **controls, "separation": distance}, extras)
        self._load()
        if separation is not None:
            separation = number("separation", separation, 0.0)
            distance.max = max(distance.max, separation)
            distance.value = separation

    def _load(self):
        """Load the spectrum of the chosen data, and move the slider to their own separation."""
        value = self.data.value
        moments = _data.named(value) if isinstance(value, str) else value
        self._spectrum, self._loaded = moments.spectrum.condensed(), value
        own = _data.separation(self._spectrum)
        with self._hold():
            self.separation.max = max(float(np.ceil(20.0 * own) / 10.0), 0.1)
            self.separation.value = own

    def problem(self):
        """Return the spectrum of the chosen data at the chosen separation."""
        if self.data.value != self._loaded:
            self._load()
        return _data.separated(self._spectrum, self.separation.value)
