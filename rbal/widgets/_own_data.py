"""Explore a table of the reader's own: the advice of :func:`rbal.advise`, and curves of the theory around it."""

import html

import numpy as np
import pandas as pd
from ipywidgets import Button, Checkbox, Dropdown, FileUpload, FloatLogSlider, HBox

from .. import saddle
from .._support import look
from .._support.validation import number, one_of
from ..advice import Advice, advise
from ..advice import internal as _report
from ..losses import LOSSES, trained
from . import _table
from ._canvas import FAINT, GREY, Readout, book_style, rectangles, rounded, two_digits
from ._curves import POINTS, SHARES, band
from ._explorer import ROOM, WIDE, Explorer

C_RANGE = (1e-4, 1e4)
CURVES = {"ba": look.BLUE, "best_ba": look.GREEN, "auc": look.PURPLE}
LEVELS = {  # remedies without a mixing, drawn as horizontal lines
    ("as is", "trained"): look.BLUE,
    ("as is", "moved"): look.GREEN,
    ("class weights", "trained"): look.SKY,
}


class OwnDataExplorer(Explorer):
    """Shows the advice on a table, and the curves that the theory predicts for it."""

    def __init__(self, table, label, C, loss, standardize):
        self.table = self.advice = self._advise = self._label_of_classes = None
        self.upload = FileUpload(accept=".csv,.tsv,.txt", multiple=False, description="choose a CSV file", layout=ROOM)
        self.example = Button(
            description="or take an example", tooltip="breast cancer, 569 patients, 30 features", layout=ROOM
        )
        controls = {
            "label": Dropdown(options=[], description="label column", style=WIDE, layout=ROOM),
            "positive": Dropdown(options=[], description="positive class", style=WIDE, layout=ROOM),
            "loss": Dropdown(
                options={LOSSES[name].title: name for name in trained()}, value=one_of("loss", loss, trained()),
                description="classifier", style=WIDE, layout=ROOM,
            ),
            "C": FloatLogSlider(
                number("C", C, *C_RANGE), min=np.log10(C_RANGE[0]), max=np.log10(C_RANGE[1]), step=0.05,
                description="inverse ridge C", readout_format=".3g", style=WIDE, layout=ROOM, continuous_update=False,
            ),
            "standardize": Checkbox(bool(standardize), description="features in units of their spread", indent=False),
        }  # fmt: skip
        super().__init__(8.4, 3.9, controls, [HBox([self.upload, self.example])])
        self.upload.observe(self._uploaded, names="value")
        self.example.on_click(self._example)
        self._prepare()
        if table is not None:
            if not isinstance(table, pd.DataFrame):
                raise TypeError(f"table must be a pandas.DataFrame, got {type(table).__name__}")
            if label is not None:
                one_of("label", label, tuple(table.columns))
            self._take_frame(table, label)

    def _prepare(self):
        canvas, moving = self.canvas, self.canvas.moving
        with book_style():
            left, right, side = canvas.figure.subplots(1, 3, width_ratios=(1, 1, 0.62))
            self.share_axes, self.mixing_axes = left, right
            left.set(xlim=(0, 1), ylim=(0.5, 1), xlabel=r"share of positives, $\rho^+$", title="at this size")
            right.set(xlim=(-0.03, 1.03), ylim=(0.5, 1), xlabel="mixing", title="balance restored")
            right.set_xticks([0, 0.5, 1], ["0\nunder", "0.5", "1\nover"])
            left.set_ylabel("predicted")
            two_digits(left, right)
            self._collapsed = moving(band(left))
            self._here = moving(left.axvline(-1.0, color=GREY, lw=1.0, ls=":"))
            self.lines = {name: moving(*left.plot([], [], color=colour)) for name, colour in CURVES.items()}
            self._dots = {name: moving(*left.plot([], [], "o", color=colour)) for name, colour in CURVES.items()}
            self._good = moving(band(right, look.ORANGE, 0.2))
            self.mixing_line = moving(*right.plot([], [], color=look.ORANGE))
            self.levels = {
                row: moving(right.axhline(-1.0, color=colour, lw=1.3, ls="--")) for row, colour in LEVELS.items()
            }
            self.star = moving(
                *right.plot([], [], "*", color=look.ORANGE, ms=17, mec=look.BLACK, mew=0.8, zorder=5, clip_on=False)
            )
            self._readout = Readout(canvas, side, 11)

    def _uploaded(self, _change):
        with self._shown():
            if self.upload.value:
                self._forget()
                chosen = self.upload.value[0]
                file = _table.File(chosen["name"], chosen["content"])
                self._take(file.table, None, file.advise)
                self._draw_all()

    def _example(self, _button):
        from sklearn.datasets import load_breast_cancer

        with self._shown():
            data = load_breast_cancer(as_frame=True)
            self._take_frame(data.frame.assign(target=data.target_names[data.target]), "target")
            self._draw_all()

    def _draw_all(self):
        self._update()
        self.canvas.draw()

    def _forget(self):
        """Remove an earlier table, so that no curve of it is shown beside the name of a new one."""
        self.table = self.advice = self._advise = self._label_of_classes = None
        self.curves = {}
        with self._hold():
            self.label.options, self.positive.options = [], []

    def _take_frame(self, table, label):
        self._take(table, label, lambda name, **options: advise(table.drop(columns=name), table[name], **options))

    def _take(self, table, label, advise):
        """Take a new table, put its columns into the menu, and keep the function that advises on it."""
        self._forget()
        with self._hold():
            self.label.options = [(str(name), name) for name in table.columns]
            self.label.value = label if label is not None else _table.likely_label(table)
        self.table, self._advise = table, advise

    def _update(self):
        self._clear()
        if self.table is None:
            self.summary.value = "Choose a table with a header, one row per sample, and a column with two labels."
            return
        try:
            self._ask()
        except Exception:
            self.canvas.draw()  # so that no picture of another table stays beside an error
            raise
        self._predict()
        self._draw_curves()

    def _ask(self):
        """Get the advice on this table, with the settings of the controls."""
        if self.label.value is None:
            raise ValueError("no column of this table holds exactly two values: none can be the label")
        advice = self._advise(
            self.label.value, C=self.C.value, loss=self.loss.value, kernel="linear", moments="pooled",
            train="none", standardize=self.standardize.value,
            positive=self.positive.value if self.label.value == self._label_of_classes else None,
        )  # fmt: skip
        if not isinstance(advice, Advice):
            raise ValueError(f"the label takes {len(advice.data.classes)} values, and these curves are of two classes: "
                             "rbal.advise tells what to do with more")  # fmt: skip
        self.advice, data = advice, advice.data
        with self._hold():
            if self.label.value != self._label_of_classes:
                self.positive.options = [(str(value), value) for value in (data.positive, data.negative)]
            self.positive.value = data.positive
        self._label_of_classes = self.label.value

    def _predict(self):
        """Compute the curves over the share of positives, with that of the table among the points."""
        setting, D = self.advice.setting, self.advice.setting.D
        rho = np.union1d(np.linspace(*SHARES, POINTS), [setting.share])  # 64 points are still one walk
        alpha = (setting.n_pos + setting.n_neg) / D
        sols = saddle.sweep(
            self.advice.moments, alpha * rho, alpha * (1.0 - rho), model="svm", loss=setting.loss,
            lam=1.0 / (setting.C * D),
        )  # fmt: skip
        table = self.advice.table
        as_is = table.loc[("as is", "trained")]
        self.curves = {
            "rho_pos": rho, **{name: getattr(sols.metrics, name)() for name in CURVES}, "phase": sols.phase,
            "point": {
                "rho_pos": setting.share, "ba": float(as_is["predicted"]), "auc": float(as_is["auc"]),
                "best_ba": float(table.loc[("as is", "moved"), "predicted"]),
            },
            "mixing": self.advice.curve["mixing"].to_numpy(), "mixed_ba": self.advice.curve["predicted"].to_numpy(),
            "levels": {row: float(table.loc[row, "predicted"]) for row in LEVELS},
        }  # fmt: skip

    def _clear(self):
        self.advice, self.curves = None, {}
        for line in (*self.lines.values(), *self._dots.values(), self.mixing_line, self.star):
            line.set_data([], [])
        self._collapsed.set_verts([])
        self._good.set_verts([])
        for line in (self._here, *self.levels.values()):
            line.set_data([-1.0, -1.0], [-1.0, -1.0])
        self._readout.write([])
        self.summary.value = ""

    def _draw_curves(self):
        c, advice = self.curves, self.advice
        for name, line in self.lines.items():
            line.set_data(c["rho_pos"], c[name])
            self._dots[name].set_data([c["point"]["rho_pos"]], [c["point"][name]])
        self._here.set_data([c["point"]["rho_pos"]] * 2, [0.0, 1.0])
        self._collapsed.set_verts(rectangles(c["rho_pos"], c["phase"] == "COLLAPSED"))
        self.mixing_line.set_data(c["mixing"], c["mixed_ba"])
        self.star.set_data([advice.mixing], [advice.table.loc[("best mix", "trained"), "predicted"]])
        low, high = advice.mixing_low, advice.mixing_high
        self._good.set_verts([[(low, 0), (low, 1), (high, 1), (high, 0)]])
        for row, line in self.levels.items():
            line.set_data([0.0, 1.0], [c["levels"][row]] * 2)
        self.canvas.limits(self.mixing_axes, y=rounded(np.append(c["mixed_ba"], list(c["levels"].values()))))
        self.canvas.limits(self.share_axes, y=rounded([c[name] for name in self.lines], 0.05))
        self._write()

    def _write(self):
        c, advice = self.curves, self.advice
        at, best = c["point"], advice.table.loc[("best mix", "trained"), "predicted"]
        self._readout.write(
            [
                ("BA as it is", look.BLUE), (f"{at['ba']:.4f}", None),
                ("threshold moved", look.GREEN), (f"BA {at['best_ba']:.4f}", None),
                ("AUC", look.PURPLE), (f"{at['auc']:.4f}", None),
                ("class weights", look.SKY), (f"BA {c['levels']['class weights', 'trained']:.4f}", None),
                ("best mixing", look.ORANGE), (f"{advice.mixing:.2f}: BA {best:.4f}", None),
                *([("one answer for all", FAINT)] if (c["phase"] == "COLLAPSED").any() else []),
            ]
        )  # fmt: skip
        words = [*_report.summary(advice), *advice.explain().split("\n")]
        self.summary.value = "".join(f"<p>{html.escape(_report.clean(line))}</p>" for line in words)


def own_data(table=None, *, label=None, C=1.0, loss="hinge", standardize=True):
    """Explore what the theory predicts for a table of your own, at any imbalance and with every remedy.

    The table is a CSV file with a header, chosen on the page, or a data frame. Numbers and words are those of
    :func:`rbal.advise`, and the page says what was imputed or left out. The curves show the scores of the same
    classifier on as many samples with another share of positives.

    Parameters
    ----------
    table : pandas.DataFrame, optional
        One row per sample.
    label : str, optional
        Column with two values; by default one that looks like it.
    C : float
        Inverse ridge of the classifier, as in scikit-learn, from 0.0001 to 10,000.
    loss : {"hinge", "squared_hinge", "logistic"}
        Loss of the classifier, as in :func:`rbal.advise`.
    standardize : bool
        Whether the classifier sees numeric columns scaled to unit variance.

    Returns
    -------
    Explorer
        ``advice`` is what :func:`rbal.advise` says of the table.
    """
    return OwnDataExplorer(table, label, C, loss, standardize).start()
