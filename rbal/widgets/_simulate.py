"""Train perceptrons at the press of a button, and see their dots on the curve of the theory."""

import numpy as np
from ipywidgets import Button, Dropdown, HBox, IntProgress, IntSlider, Layout

from .. import saddle
from .._support import look
from .._support.validation import number, one_of, positive_int
from ..datasets import synthetic
from ..learners import SphericalPerceptron
from ..metrics import METRICS, Metrics
from ._canvas import FAINT, GREY, Readout, book_style, rectangles, rounded, two_digits
from ._curves import POINTS, SHARES, band, choices, measure
from ._data import RANDOM, SOURCES
from ._explorer import ROOM, WIDE, Explorer, margin_slider, size_slider, slider

KINDS = ("ising", "random")
SIZES = (25, 50, 100, 200)


def classes_of(kind, L, separation):
    """Return two classes to draw from, at the distance ``separation`` = ‖δ‖/√L."""
    if kind == "ising":
        return synthetic.ising(m=0.4, delta=separation, L=L)
    base = synthetic.random_gaussian(RANDOM, L=L).moments
    half = separation * base.delta / np.linalg.norm(base.delta) / 2.0
    return synthetic.gaussian(half, -half, base._covariance)


class SimulateExplorer(Explorer):
    """Shows a curve of the theory, and dots of perceptrons trained on the spot."""

    def __init__(self, data, kappa, alpha, separation, rho_pos, *, L, metric, trials, seed):
        self._rng = np.random.default_rng(seed)
        self.trials = {}  # setting -> class sizes -> list of order parameters, one for each perceptron
        labels = {label: name for name, (label, _) in choices().items()}
        look = {"style": WIDE, "layout": ROOM}
        controls = {
            "data": Dropdown(
                options=[(SOURCES[name][0], name) for name in KINDS], value=one_of("data", data, KINDS),
                description="data", **look,
            ),
            "L": Dropdown(
                options=SIZES, value=one_of("L", positive_int("L", L), SIZES), description="features L", **look
            ),
            "kappa": margin_slider(kappa),
            "alpha": size_slider("alpha", "size α⁺ + α⁻", alpha, high=20.0),
            "separation": slider("separation", "separation ‖δ‖/√L", separation, 0.0, 4.0),
            "rho_pos": slider("rho_pos", "train at ρ⁺", rho_pos, 0.05, 0.95),
            "metric": Dropdown(
                options=labels, value=one_of("metric", metric, tuple(labels.values())), description="metric", **look
            ),
            "repeats": IntSlider(
                int(number("trials", trials, 1, 50)), min=1, max=50, description="perceptrons per click", **look
            ),
        }  # fmt: skip
        self.train = Button(
            description="train", button_style="primary", tooltip="train perceptrons at this point", layout=ROOM
        )
        self.forget = Button(description="remove the dots", tooltip="forget all trained perceptrons", layout=ROOM)
        self.progress = IntProgress(0, min=0, max=1, layout=Layout(width="12em", visibility="hidden"))
        super().__init__(7.4, 4.0, controls, [HBox([self.train, self.forget, self.progress])])
        self.train.on_click(self._train)
        self.forget.on_click(self._forget)
        self._classes = self._classes_of = None
        self._prepare()

    def _prepare(self):
        canvas = self.canvas
        with book_style():
            self.axes, side = canvas.figure.subplots(1, 2, width_ratios=(5, 1.8))
            ax = self.axes
            ax.set(xlim=(0, 1), ylim=(0, 1), xlabel=r"share of positives, $\rho^+$", ylabel="metric")
            two_digits(ax)
            self._sat = canvas.moving(band(ax))
            self._here = canvas.moving(ax.axvline(0.5, color=GREY, lw=1.0, ls=":"))
            self.line = canvas.moving(*ax.plot([], [], color=look.BLUE))
            self.single_dots = canvas.moving(*ax.plot([], [], "o", color=FAINT, ms=3, alpha=0.6))
            self.bars = canvas.moving(ax.vlines([], [], [], color=look.VERMILLION, lw=1.8, zorder=4))
            self.dots = canvas.moving(*ax.plot([], [], "o", color=look.VERMILLION, ms=7, zorder=5))
            self._readout = Readout(canvas, side, 10)

    @property
    def setting(self):
        """The values that all dots of a picture have in common."""
        return self.data.value, self.L.value, self.kappa.value, self.alpha.value, self.separation.value

    def _sizes(self):
        n = max(round(self.alpha.value * self.L.value), 4)
        n_pos = min(max(round(self.rho_pos.value * n), 2), n - 2)
        return n_pos, n - n_pos

    def classes(self):
        """Return the classes that samples are drawn from, made anew when a control changes them."""
        key = self.data.value, self.L.value, self.separation.value
        if key != self._classes_of:
            self._classes, self._classes_of = classes_of(*key), key
        return self._classes

    def _update(self):
        moments, alpha, kappa, name = self.classes().moments, self.alpha.value, self.kappa.value, self.metric.value
        rho = np.linspace(*SHARES, POINTS)
        sols = saddle.sweep(moments, alpha * rho, alpha * (1.0 - rho), kappa)
        n_pos, n_neg = self._sizes()
        L, here = self.L.value, n_pos / (n_pos + n_neg)
        point = saddle.solve(moments, n_pos / L, n_neg / L, kappa)
        self.curves = {
            "rho_pos": rho, "value": measure(name, sols.metrics, rho), "phase": sols.phase, "metric": name,
            "here": here, "value_here": float(measure(name, point.metrics, here)), **self._measured(name),
        }  # fmt: skip
        self._draw_curves(n_pos + n_neg)

    def _measured(self, name):
        """Return (share, metric) of every perceptron, and (share, mean, standard error, number) of every dot."""
        every, rows = [], []
        for (n_pos, n_neg), parameters in self.trials.get(self.setting, {}).items():
            share = n_pos / (n_pos + n_neg)
            values = measure(name, Metrics(*np.transpose(parameters)), share)
            every += [(share, value) for value in values]
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            rows.append((share, values.mean(), error, len(values)))
        return {"single": np.reshape(every, (-1, 2)), "dots": np.reshape(rows, (-1, 4))}

    def _draw_curves(self, n):
        c = self.curves
        self.line.set_data(c["rho_pos"], c["value"])
        self._sat.set_verts(rectangles(c["rho_pos"], c["phase"] == "SAT"))
        self._here.set_xdata([c["here"]] * 2)
        self.single_dots.set_data(*c["single"].T)
        share, mean, error, _ = c["dots"].T
        self.dots.set_data(share, mean)
        ends = np.nan_to_num(error)
        self.bars.set_segments([[(x, y - e), (x, y + e)] for x, y, e in zip(share, mean, ends, strict=True)])
        values = np.concatenate([c["value"], c["single"][:, 1]])
        self.canvas.limits(self.axes, y=rounded(values, 0.05))
        label = METRICS[c["metric"]].label
        if self.axes.get_ylabel() != label:
            self.axes.set_ylabel(label)
            self.canvas.settle()
        self._write(label, n)

    def _write(self, label, n):
        c = self.curves
        at = np.flatnonzero(c["dots"][:, 0] == c["here"])
        rows = [("theory", look.BLUE), (f"{label} {c['value_here']:.4f}", None), ("", None)]
        words = f"n = {n}, of which {round(c['here'] * n)} positive. Theory: {label} {c['value_here']:.4f}."
        if at.size:
            _, mean, error, count = c["dots"][at[0]]
            rows += [(f"{count:.0f} trained", look.VERMILLION), (f"{label} {mean:.4f}", None)]
            words += f" {count:.0f} trained: {mean:.4f}"
            if count > 1:
                off = (mean - c["value_here"]) / error if error > 0.0 else np.nan
                rows += [(f"± {error:.4f}", None), (f"off by {off:+.1f} errors", None)]
                words += f" ± {error:.4f} (standard error), {off:+.1f} of which it is off"
            words += "."
        if (c["phase"] == "SAT").any():
            rows += [("", None), ("separable", "#d9d9d9")]
        self._readout.write(rows)
        self.summary.value = words

    def _train(self, _button):
        """Train perceptrons one by one and update the dot after each, so that an interrupted run keeps what is done."""
        with self._shown():
            (n_pos, n_neg), classes, key = self._sizes(), self.classes(), self.setting
            self.progress.max, self.progress.value = self.repeats.value, 0
            self.progress.layout.visibility, self.train.disabled = "visible", True
            try:
                for _ in range(self.repeats.value):
                    self._one(classes, key, n_pos, n_neg)
                    self.progress.value += 1
                    self._update()
                    self.canvas.draw()
            finally:
                self.progress.layout.visibility, self.train.disabled = "hidden", False

    def _one(self, classes, key, n_pos, n_neg):
        """Train one perceptron on one draw; in the SAT phase a typical solution, which is what the theory describes."""
        X, y = classes.sample(n_pos, n_neg, self._rng)
        learner = SphericalPerceptron(kappa=self.kappa.value, sat="typical", random_state=self._rng)
        self.trials.setdefault(key, {}).setdefault((n_pos, n_neg), []).append(
            learner.fit(X, y).order_parameters(classes.moments)
        )

    def _forget(self, _button):
        self.trials.clear()
        self.redraw()


def simulate(data="ising", *, kappa=1.0, alpha=4.0, separation=1.0, rho_pos=0.3, L=100, metric="ba", trials=5, seed=0):
    """Explore theory and simulation: at the press of a button perceptrons are trained, and their dot is drawn.

    Each click draws training sets, trains a :class:`rbal.SphericalPerceptron` on each, to optimality, and adds them
    to the dot at this share of positives: the mean of all that were trained there, with its standard error. Small
    grey dots are single perceptrons. Dots vanish when a slider moves, and return with the old setting.

    Parameters
    ----------
    data : {"ising", "random"}
        Independent spins with m = 0.4, or Gaussian features with a random covariance.
    kappa : float
        Margin of the training, from 0 to 6.
    alpha : float
        Size of the training set over L, from 0.1 to 20.
    separation : float
        Distance ‖δ‖/√L between the classes, from 0 to 4.
    rho_pos : float
        Share of positives at which to train, from 0.05 to 0.95.
    L : int
        Number of features: 25, 50, 100 or 200. The theory is exact for many.
    metric : str
        One of "ba", "acc", "auc", "auprc", "f1", "mcc" and "ppv"; tested with the share of the training set.
    trials : int
        Perceptrons per click, from 1 to 50.
    seed : int
        Seed of all training sets and typical solutions.

    Returns
    -------
    Explorer
        ``train.click()`` is the button; ``trials`` holds the order parameters of all perceptrons.
    """
    return SimulateExplorer(
        data, kappa, alpha, separation, rho_pos, L=L, metric=metric, trials=trials, seed=seed
    ).start()
