"""Explore curves over the composition of the training set: all metrics, and the trade-off window."""

from itertools import cycle

import numpy as np
from ipywidgets import Button, Checkbox, HBox, Layout
from matplotlib.collections import PolyCollection
from scipy.optimize import brentq
from scipy.special import logit

from .. import saddle
from .._support import look
from .._support.validation import one_of
from ..metrics import METRICS
from ..metrics.internal import goals
from ._canvas import FAINT, GREY, Readout, book_style, rectangles, rounded, two_digits
from ._explorer import ROOM, DataExplorer, margin_slider, size_slider, slider

POINTS = 63  # below 64, so that the solver takes one walk from neighbour to neighbour; odd, to include balance
SHARES = (0.02, 0.98)
NEAR, NARROWEST = -23.0, 1e-10  # log |log(α⁻/α⁺)| as close to balance as the solver resolves, and the width there

COLOURS = {
    "ba": look.BLUE,
    "acc": look.VERMILLION,
    "auc": look.GREEN,
    "auprc": look.PURPLE,
    "f1": look.ORANGE,
    "mcc": look.SKY,
    "ppv": look.BLACK,
}


def choices():
    """Return a dict from each metric to choose from to its label and colour."""
    others = [name for name in goals() if name not in COLOURS and not METRICS[name].priced]
    colours = zip([*COLOURS, *others], cycle(COLOURS.values()), strict=False)
    return {name: (METRICS[name].label, colour) for name, colour in colours}


def measure(name, metrics, phi_pos):
    """Return the metric of that name, on a test set with a share ``phi_pos`` of positives."""
    return METRICS[name].of_theory(metrics, phi_pos, 0.0)


def band(axes, colour=FAINT, alpha=0.15):
    """Return vertical bands behind the curves, whose corners ``set_verts`` takes with y from 0 to 1."""
    look = {"facecolor": colour, "edgecolor": "none", "alpha": alpha, "zorder": 0}
    return axes.add_collection(PolyCollection([], transform=axes.get_xaxis_transform(), **look))


class MetricsExplorer(DataExplorer):
    """Shows metrics against the composition of the training set."""

    def __init__(self, data, kappa, alpha, separation, phi_pos, rho_pos, show):
        shares = slider("phi_pos", "test positives φ⁺", 0.5 if phi_pos is None else phi_pos, 0.01, 0.99)
        same = Checkbox(phi_pos is None, description="tested as trained, φ⁺ = ρ⁺", indent=False)
        self.choices = choices()
        self.show = {name: Checkbox(name in show, description=label, indent=False, layout=Layout(width="5.6em"))
                     for name, (label, _) in self.choices.items()}  # fmt: skip
        for name in show:
            one_of("show", name, tuple(self.choices))
        controls = {
            "kappa": margin_slider(kappa),
            "alpha": size_slider("alpha", "size α⁺ + α⁻", alpha),
            "rho_pos": slider("rho_pos", "read off at ρ⁺", rho_pos, *SHARES),
            "phi_pos": shares,
            "tested_as_trained": same,
        }
        super().__init__(
            7.4, 4.0, data, separation, controls, [HBox(list(self.show.values()), layout=Layout(flex_flow="row wrap"))]
        )
        for box in self.show.values():
            box.observe(self._changed, names="value")
        self._prepare()

    def _prepare(self):
        canvas = self.canvas
        with book_style():
            self.axes, side = canvas.figure.subplots(1, 2, width_ratios=(5, 1.25))
            self.axes.set(
                xlim=(0, 1), ylim=(0, 1), xlabel=r"share of positives in training, $\rho^+$", ylabel="on test data"
            )
            self._sat = canvas.moving(band(self.axes))
            self._here = canvas.moving(self.axes.axvline(0.5, color=GREY, lw=1.0, ls=":"))
            colours = {name: colour for name, (_, colour) in self.choices.items()}
            self.lines = {n: canvas.moving(*self.axes.plot([], [], color=c)) for n, c in colours.items()}
            self._dots = {n: canvas.moving(*self.axes.plot([], [], "o", color=c, ms=6)) for n, c in colours.items()}
            self._readout = Readout(canvas, side, len(colours) + 2)

    def _update(self):
        moments, kappa, alpha, here = self.problem(), self.kappa.value, self.alpha.value, self.rho_pos.value
        self.phi_pos.disabled = self.tested_as_trained.value
        rho = np.linspace(*SHARES, POINTS)
        sols = saddle.sweep(moments, alpha * rho, alpha * (1.0 - rho), kappa)
        point = saddle.solve(moments, alpha * here, alpha * (1.0 - here), kappa)
        phi, phi_here = (rho, here) if self.tested_as_trained.value else (self.phi_pos.value,) * 2
        names = [name for name, box in self.show.items() if box.value]
        self.curves = {"rho_pos": rho, "phase": sols.phase, "point": {"rho_pos": here, "phase": point.phase}}
        for name in names:
            self.curves[name] = measure(name, sols.metrics, phi)
            self.curves["point"][name] = float(measure(name, point.metrics, phi_here))
        self._sat.set_verts(rectangles(rho, sols.phase == "SAT"))
        self._here.set_xdata([here, here])
        for name in self.choices:
            shown = name in names
            self.lines[name].set_data(*((rho, self.curves[name]) if shown else ([], [])))
            self._dots[name].set_data(*(([here], [self.curves["point"][name]]) if shown else ([], [])))
        self._write(names, here, point.phase)

    def _write(self, names, here, phase):
        at = self.curves["point"]
        order = sorted(names, key=lambda name: -at[name])  # from top to bottom, as on the line
        rows = [(rf"at $\rho^+ = {here:.2f}$", None)]
        rows += [(f"{self.choices[name][0]}  {at[name]:.3f}", self.choices[name][1]) for name in order]
        if (self.curves["phase"] == "SAT").any():
            rows.append(("separable", "#d9d9d9"))
        self._readout.write(rows)
        numbers = ", ".join(f"{METRICS[name].label} {at[name]:.4f}" for name in order)
        self.summary.value = f"At ρ⁺ = {here:.2f} ({phase}): {numbers or 'no metric chosen'}."


def _shares_around_balance():
    """Return shares of negatives, dense around one half, where a window can be a hundredth wide."""
    near = np.geomspace(5e-4, 0.02, POINTS // 6)
    return np.unique(np.concatenate([np.linspace(0.02, 0.98, 2 * POINTS // 3 + 1), 0.5 - near, 0.5 + near]))


class TradeoffExplorer(DataExplorer):
    """Shows balanced accuracy against the share of negatives, and the window in which it is good."""

    KEPT = (look.ORANGE, look.PURPLE, look.GREEN, look.VERMILLION)

    def __init__(self, data, kappa, alpha_pos, separation):
        controls = {"kappa": margin_slider(kappa), "alpha_pos": size_slider("alpha_pos", "positives α⁺", alpha_pos)}
        self.keep = Button(
            description="keep this curve", tooltip="leave it in the picture, to compare others with", layout=ROOM
        )
        self.forget = Button(description="forget them", tooltip="remove all kept curves", layout=ROOM)
        super().__init__(7.4, 4.0, data, separation, controls, [HBox([self.keep, self.forget])])
        self.keep.on_click(self._keep)
        self.forget.on_click(self._forget)
        self.kept = []
        self._prepare()

    def _prepare(self):
        canvas = self.canvas
        with book_style():
            self.axes, side = canvas.figure.subplots(1, 2, width_ratios=(5, 1.95))
            ax = self.axes
            ax.set(xlim=(0, 1), ylim=(0.5, 1), xlabel=r"share of negatives, $\rho^-$", ylabel="balanced accuracy")
            two_digits(ax)
            ax.axvline(0.5, color=FAINT, lw=0.8, ls=":")
            self._window = canvas.moving(band(ax, look.BLUE, 0.1))
            self._half = canvas.moving(*ax.plot([], [], color=look.BLUE, lw=1.0, ls=":"))
            self._kept_lines = [canvas.moving(*ax.plot([], [], color=c, lw=1.5)) for c in self.KEPT]
            self.moved_line = canvas.moving(*ax.plot([], [], color=GREY, lw=1.3, ls="--"))
            self.line = canvas.moving(*ax.plot([], [], color=look.BLUE, lw=2.4))
            self._readout = Readout(canvas, side, 10)

    def _update(self):
        moments, pos, rho = self.problem(), self.alpha_pos.value, _shares_around_balance()
        sols = saddle.sweep(moments, pos, pos * rho / (1.0 - rho), self.kappa.value)
        ba = sols.metrics.ba()
        centre = rho.size // 2
        gain = ba[centre] - 0.5
        before = after = 0.0  # where nothing is learnt, there is no window
        if gain > 1e-6:
            before, after = (self._edge(moments, rho, ba, 0.5 + 0.5 * gain, side) for side in (-1, +1))
        self.curves = {
            "rho_neg": rho, "ba": ba, "best_ba": sols.metrics.best_ba(), "phase": sols.phase,
            "ba_at_balance": float(ba[centre]), "window": (0.5 - before, 0.5 + after), "width": before + after,
        }  # fmt: skip
        self._draw_curves()

    def _edge(self, moments, rho, ba, level, side):
        """Return how far from ½ half of the gain is lost, on one side; NaN if that is outside of the picture.

        The root is searched in the logarithm of |log(α⁻/α⁺)|, so that a narrow window is as exact as a wide one. The
        result is 0 if half is lost closer to balance than the solver resolves.
        """
        order = np.arange(rho.size // 2, rho.size) if side > 0 else np.arange(rho.size // 2, -1, -1)
        below = np.flatnonzero(ba[order] < level)
        if below.size == 0:
            return np.nan
        pos, kappa = self.alpha_pos.value, self.kappa.value

        def above(t):
            return saddle.solve(moments, pos, pos * np.exp(side * np.exp(t)), kappa).metrics.ba() - level

        inner, outer = (float(abs(logit(rho[order[k]]))) for k in (below[0] - 1, below[0]))
        near, far = (np.log(inner) if inner > 0.0 else NEAR), np.log(outer)
        if above(near) <= 0.0:
            return 0.0
        return 0.5 * np.tanh(0.5 * np.exp(brentq(above, near, far, xtol=1e-6)))

    def _draw_curves(self):
        c = self.curves
        rho, (low, high) = c["rho_neg"], c["window"]
        self.line.set_data(rho, c["ba"])
        self.moved_line.set_data(rho, c["best_ba"])
        left, right = np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)
        self._window.set_verts([[(left, 0), (left, 1), (right, 1), (right, 0)]])
        self._half.set_data([left, right], [0.5 + 0.5 * (c["ba_at_balance"] - 0.5)] * 2)
        for i, line in enumerate(self._kept_lines):
            line.set_data(*((self.kept[i]["rho_neg"], self.kept[i]["ba"]) if i < len(self.kept) else ([], [])))
        highest = max(np.nanmax(curve[name]) for curve in (c, *self.kept) for name in ("ba", "best_ba"))
        self.canvas.limits(self.axes, y=(0.5, rounded([0.5, highest], 0.05)[1]))
        self._write()

    def _write(self):
        c, kappa = self.curves, self.kappa.value
        open_ended = np.isnan(c["width"])
        narrow = c["width"] == 0.0 and c["ba_at_balance"] > 0.5 + 1e-6
        width = f"W < {NARROWEST:.0e}" if narrow else f"W = {c['width']:.3g}"
        if open_ended:
            width = f"W > {np.ptp(c['rho_neg']):.2f}"
        rows = [
            (f"κ = {kappa:.2f}", look.BLUE),
            (f"peak BA {c['ba_at_balance']:.3f}", None),
            (f"window {width}", None),
            ("", None),
            ("threshold moved", GREY),
            ("", None),
            *((f"κ = {k['kappa']:.2f}: {k['text']}", colour) for k, colour in zip(self.kept, self.KEPT, strict=False)),
        ]
        self._readout.write(rows)
        c["kappa"], c["text"] = kappa, width
        where = "wider than the picture" if open_ended else "from ρ⁻ = {:.4f} to {:.4f}".format(*c["window"])
        where = f"narrower than {NARROWEST:.0e}" if narrow else where
        self.summary.value = (
            f"Balanced accuracy {c['ba_at_balance']:.4f} at balance; more than half of what it has above ½ is left in "
            f"the shaded window, {where}."
        )

    def _keep(self, _button):
        if len(self.kept) == len(self.KEPT):
            self.kept.pop(0)
        self.kept.append(dict(self.curves))
        self.redraw()

    def _forget(self, _button):
        self.kept.clear()
        self.redraw()


def metrics(
    data="ising",
    *,
    kappa=1.0,
    alpha=4.0,
    separation=None,
    phi_pos=None,
    rho_pos=0.2,
    show=("ba", "acc", "auc", "f1", "mcc"),
):
    """Explore the metrics of a trained perceptron against the composition of its training set.

    Parameters
    ----------
    data : str, Moments or object with ``moments``
        One of "ising", "random" and "potts", as in the book's explorers, or your own. In the book's repository
        ``import rbal_book.widgets`` adds "mnist", "fashion" and "lattice".
    kappa : float
        Margin of the training, from 0 to 6.
    alpha : float
        Size of the training set over L, from 0.1 to 100.
    separation : float, optional
        Distance ‖δ‖/√L between the classes; by default that of the data.
    phi_pos : float, optional
        Share of positives in the test set; by default that of the training set.
    rho_pos : float
        Share of positives in training at which numbers are read off.
    show : iterable of str
        Metrics to draw at first: "ba", "acc", "auc", "auprc", "f1", "mcc", "ppv" or another goal in
        :data:`rbal.metrics.METRICS`.

    Returns
    -------
    Explorer
        A box that a notebook shows; ``controls`` holds its sliders, ``curves`` what it draws.

    Examples
    --------
    >>> import rbal
    >>> ui = rbal.widgets.metrics(kappa=0.5, alpha=7.0)
    >>> ui.rho_pos.value = 0.3
    >>> round(ui.curves["point"]["ba"], 3)
    0.62
    """
    show = tuple(show)
    return MetricsExplorer(data, kappa, alpha, separation, phi_pos, rho_pos, show).start()


def tradeoff(data="ising", *, kappa=1.0, alpha_pos=2.0, separation=None):
    """Explore balanced accuracy over the share of negatives, and the window in which it is good.

    Inside the window, balanced accuracy is more than half as far above ½ as it is at balance. The button "keep this
    curve" leaves a curve in the picture, to compare others with.

    Parameters
    ----------
    data : str, Moments or object with ``moments``
        As in :func:`metrics`.
    kappa : float
        Margin of the training, from 0 to 6.
    alpha_pos : float
        Positives over L, from 0.1 to 100; the negatives follow from their share.
    separation : float, optional
        Distance ‖δ‖/√L between the classes; by default that of the data.

    Returns
    -------
    Explorer
    """
    return TradeoffExplorer(data, kappa, alpha_pos, separation).start()
