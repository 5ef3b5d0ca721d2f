"""What the theory predicts for a table of the reader's own."""

import html

import numpy as np
import pandas as pd
from ipywidgets import Button, Checkbox, Dropdown, FileUpload, HBox
from matplotlib.collections import PolyCollection

from .. import plotting, saddle, strategies
from .._condense import condensed
from .._validation import one_of
from ..moments import Moments
from . import _table
from ._canvas import GREY, Readout, book_style, rectangles, rounded, two_digits
from ._curves import POINTS, SHARES, separable_band
from ._explorer import ROOM, WIDE, Explorer, margin_slider
from ._mixing import mixings

COVARIANCES = {"pooled": "pooled", "shrunk (few rows)": "shrunk", "independent features": "sites"}
FEW = 20  # features below which a theory of many says little


class OwnDataExplorer(Explorer):
    """A table, its label, and the curves the theory predicts for it."""

    def __init__(self, table, label, kappa, covariance, standardise):
        self.table = self.moments = self._key = None
        self._notes, self._counts = [], (0, 0)
        self.upload = FileUpload(accept=".csv,.tsv,.txt", multiple=False, description="choose a CSV file", layout=ROOM)
        self.example = Button(
            description="or take an example", tooltip="breast cancer, 569 patients, 30 features", layout=ROOM
        )
        controls = {
            "label": Dropdown(options=[], description="label column", style=WIDE, layout=ROOM),
            "positive": Dropdown(options=[], description="positive class", style=WIDE, layout=ROOM),
            "kappa": margin_slider(kappa),
            "covariance": Dropdown(
                options=COVARIANCES, value=one_of("covariance", covariance, tuple(COVARIANCES.values())),
                description="covariance", style=WIDE, layout=ROOM,
            ),
            "standardise": Checkbox(bool(standardise), description="features in units of their spread", indent=False),
        }  # fmt: skip
        super().__init__(7.8, 3.9, controls, [HBox([self.upload, self.example])])
        self.upload.observe(self._uploaded, names="value")
        self.example.on_click(self._example)
        self._prepare()
        if table is not None:
            if not isinstance(table, pd.DataFrame):
                raise TypeError(f"table must be a pandas.DataFrame, got {type(table).__name__}")
            if label is not None:
                one_of("label", label, tuple(table.columns))
            self._take(table, label)

    def _prepare(self):
        canvas, moving = self.canvas, self.canvas.moving
        with book_style():
            left, right, side = canvas.figure.subplots(1, 3, width_ratios=(1, 1, 0.5))
            self.share_axes, self.mixing_axes = left, right
            left.set(xlim=(0, 1), ylim=(0.5, 1), xlabel=r"share of positives, $\rho^+$", title="at this size")
            right.set(xlim=(-0.03, 1.03), ylim=(0.5, 1), xlabel="mixing", title="balance restored")
            right.set_xticks([0, 0.5, 1], ["0\nunder", "0.5", "1\nover"])
            left.set_ylabel("predicted")
            two_digits(left, right)
            self._sat = moving(separable_band(left))
            self._here = moving(left.axvline(-1.0, color=GREY, lw=1.0, ls=":"))
            colours = {"ba": plotting.BLUE, "best_ba": plotting.GREEN, "auc": plotting.PURPLE}
            self.lines = {name: moving(*left.plot([], [], color=colour)) for name, colour in colours.items()}
            self._dots = {name: moving(*left.plot([], [], "o", color=colour)) for name, colour in colours.items()}
            band = PolyCollection([], facecolor=plotting.ORANGE, edgecolor="none", alpha=0.2, zorder=0)
            band.set_transform(right.get_xaxis_transform())
            self._good = moving(right.add_collection(band))
            self.mixing_line = moving(*right.plot([], [], color=plotting.BLUE))
            self.as_is_line = moving(right.axhline(-1.0, color=plotting.VERMILLION, lw=1.3, ls="--"))
            self.star = moving(
                *right.plot(
                    [], [], "*", color=plotting.ORANGE, ms=17, mec=plotting.BLACK, mew=0.8, zorder=5, clip_on=False
                )
            )
            self._readout = Readout(canvas, side, 11)

    def _uploaded(self, _change):
        with self._shown():
            if self.upload.value:
                self._forget()
                self._take(_table.read(self.upload.value[0]["content"]), None)
                self._update()
                self.canvas.draw()

    def _example(self, _button):
        from sklearn.datasets import load_breast_cancer

        with self._shown():
            data = load_breast_cancer(as_frame=True)
            table = data.frame.assign(target=data.target_names[data.target])
            self._take(table, "target")
            self._update()
            self.canvas.draw()

    def _forget(self):
        """No curve of an earlier table beside the name of a new one."""
        self.table = self.moments = self._key = None
        self.curves = {}
        with self._hold():
            self.label.options, self.positive.options = [], []

    def _take(self, table, label):
        """A new table, with its columns in the menu."""
        self._forget()
        with self._hold():
            self.label.options = [(str(name), name) for name in table.columns]
            self.label.value = label if label is not None else _table.likely_label(table)
        self.table = table

    def _update(self):
        if self.table is None:
            self.summary.value = "Choose a table with a header, one row a sample, and a column with two labels."
            self._clear()
            return
        if self.label.value is None:
            raise ValueError("no column of this table holds exactly two values: none can be the label")
        self._load()
        self._predict()
        self._draw_curves()

    def _load(self):
        """Moments of the table, when what they depend on has changed."""
        key = (self.label.value, self.positive.value, self.covariance.value, self.standardise.value)
        if key == self._key:
            return
        self.moments, self._key, self.curves = None, None, {}
        self._clear()
        two = _table.values(self.table, self.label.value)
        if list(self.positive.options) != [(str(v), v) for v in two]:
            with self._hold():
                self.positive.options = [(str(value), value) for value in two]
                self.positive.value = two[0]
        classes = _table.split(self.table, self.label.value, self.positive.value, self.standardise.value)
        self.moments = condensed(Moments.from_data(classes.X_pos, classes.X_neg, covariance=self.covariance.value))
        self._notes, self._counts = classes.notes, (len(classes.X_pos), len(classes.X_neg))
        self._key = (self.label.value, self.positive.value, self.covariance.value, self.standardise.value)

    def _predict(self):
        kappa, (n_pos, n_neg) = self.kappa.value, self._counts
        pos, neg = n_pos / self.moments.L, n_neg / self.moments.L
        rho, here = np.linspace(*SHARES, POINTS), n_pos / (n_pos + n_neg)
        sols = saddle.sweep(self.moments, (pos + neg) * rho, (pos + neg) * (1.0 - rho), kappa)
        point = saddle.solve(self.moments, pos, neg, kappa)
        mixing = mixings(max(pos, neg) / min(pos, neg))
        mixed = strategies.mix(self.moments, pos, neg, mixing, kappa).metrics.ba()
        best = strategies.best_mixing(self.moments, pos, neg, kappa)
        names = ("ba", "best_ba", "auc")
        self.curves = {
            "rho_pos": rho, **{name: getattr(sols.metrics, name)() for name in names}, "phase": sols.phase,
            "point": {"rho_pos": here, **{name: float(getattr(point.metrics, name)()) for name in names}},
            "mixing": mixing, "mixed_ba": mixed, "best": best, "alpha_pos": pos, "alpha_neg": neg,
        }  # fmt: skip

    def _clear(self):
        for line in (*self.lines.values(), *self._dots.values(), self.mixing_line, self.star):
            line.set_data([], [])
        self._sat.set_verts([])
        self._good.set_verts([])
        self._here.set_xdata([-1.0, -1.0])
        self.as_is_line.set_ydata([-1.0, -1.0])
        self._readout.write([])

    def _draw_curves(self):
        c = self.curves
        for name, line in self.lines.items():
            line.set_data(c["rho_pos"], c[name])
            self._dots[name].set_data([c["point"]["rho_pos"]], [c["point"][name]])
        self._here.set_xdata([c["point"]["rho_pos"]] * 2)
        self._sat.set_verts(rectangles(c["rho_pos"], c["phase"] == "SAT"))
        best = c["best"]
        self.mixing_line.set_data(c["mixing"], c["mixed_ba"])
        self.star.set_data([best.mixing], [best.value])
        self._good.set_verts([[(best.low, 0), (best.low, 1), (best.high, 1), (best.high, 0)]])
        self.as_is_line.set_ydata([c["point"]["ba"]] * 2)
        self.canvas.limits(self.mixing_axes, y=rounded(np.append(c["mixed_ba"], c["point"]["ba"])))
        self.canvas.limits(self.share_axes, y=rounded([c[name] for name in self.lines], 0.05))
        self._write(best)

    def _write(self, best):
        at, L = self.curves["point"], self.moments.L
        self._readout.write(
            [
                ("BA", plotting.BLUE), (f"{at['ba']:.4f} as it is", None),
                ("moved cut", plotting.GREEN), (f"BA {at['best_ba']:.4f}", None),
                ("AUC", plotting.PURPLE), (f"{at['auc']:.4f}", None), ("", None),
                ("best mixing", plotting.ORANGE), (f"{best.mixing:.2f}: BA {best.value:.4f}", None), ("", None),
                *([("separable", "#d9d9d9")] if (self.curves["phase"] == "SAT").any() else []),
            ]
        )  # fmt: skip
        n_pos, n_neg = self._counts
        words = (
            f"{n_pos} of '{self.positive.label}' and {n_neg} others, L = {L} features: α⁺ = {n_pos / L:.2f}, "
            f"α⁻ = {n_neg / L:.2f}. Predicted BA: {at['ba']:.4f} as it is, {best.value:.4f} at the best mixing, "
            f"{at['best_ba']:.4f} with the threshold moved."
        )
        if L < FEW:
            words += f" With {L} features take this as a hint: the theory is exact for many."
        self.summary.value = html.escape(words + "".join(f" {note[0].upper()}{note[1:]}." for note in self._notes))


def own_data(table=None, *, label=None, kappa=1.0, covariance="pooled", standardise=True):
    """What the theory predicts for a table of one's own, against imbalance and for every way to restore balance.

    The table is a CSV file with a header, chosen on the page, or a data frame. The moments of the two classes are
    estimated from it, and the curves are those of a perceptron trained on as many samples. Columns without
    numbers and rows with missing values are left out, and the page says which.

    Parameters
    ----------
    table : pandas.DataFrame, optional
        One row a sample.
    label : str, optional
        Column with two values; by default one that looks like it.
    kappa : float
        Margin of the training, from 0 to 6.
    covariance : {"pooled", "shrunk", "sites"}
        As in :meth:`rbal.Moments.from_data`.
    standardise : bool
        Whether to divide each feature by its standard deviation.

    Returns
    -------
    Explorer
    """
    return OwnDataExplorer(table, label, kappa, covariance, standardise).start()
