"""Explore mixtures of under- and oversampling."""

import numpy as np
from ipywidgets import Dropdown
from scipy.optimize import minimize_scalar

from .. import saddle, strategies
from .._support import look
from .._support.validation import one_of
from ..metrics import METRICS
from ._canvas import Readout, book_style, rounded, two_digits
from ._curves import POINTS, band, choices, measure
from ._explorer import ROOM, WIDE, DataExplorer, margin_slider, size_slider

TOLERANCE = 1e-3  # mixings whose metric is this close to the best count as equally good


def mixings(ratio):
    """Return the mixings to draw for a ratio of class sizes, half of them even in log c: the best may be close to 0."""
    c = np.geomspace(1.0, ratio, POINTS // 2)
    from_c = (c - 1.0) / (ratio - 1.0) if ratio > 1.0 else np.linspace(0.0, 1.0, c.size)
    return np.unique(np.clip(np.concatenate([np.linspace(0.0, 1.0, POINTS // 2 + 1), from_c]), 0.0, 1.0))


class MixingExplorer(DataExplorer):
    """Shows a metric against the mixture of under- and oversampling."""

    def __init__(self, data, kappa, alpha_pos, alpha_neg, separation, metric):
        names = {label: name for name, (label, _) in choices().items()}
        controls = {
            "kappa": margin_slider(kappa),
            "alpha_pos": size_slider("alpha_pos", "positives α⁺", alpha_pos),
            "alpha_neg": size_slider("alpha_neg", "negatives α⁻", alpha_neg),
            "metric": Dropdown(
                options=names, value=one_of("metric", metric, tuple(names.values())), description="metric", style=WIDE,
                layout=ROOM,
            ),
        }  # fmt: skip
        super().__init__(7.4, 4.0, data, separation, controls)
        self._prepare()

    def _prepare(self):
        canvas = self.canvas
        with book_style():
            self.axes, side = canvas.figure.subplots(1, 2, width_ratios=(5, 1.8))
            ax = self.axes
            ax.set(xlim=(-0.02, 1.02), ylim=(0.5, 1), xlabel="mixing", ylabel="metric")
            two_digits(ax)
            ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["under\n0", "0.25", "0.5", "0.75", "over\n1"])
            self._good = canvas.moving(band(ax, look.ORANGE, 0.2))
            self.as_is_line = canvas.moving(ax.axhline(0.5, color=look.VERMILLION, lw=1.3, ls="--"))
            self.line = canvas.moving(*ax.plot([], [], color=look.BLUE, lw=2.4))
            self.sat_line = canvas.moving(*ax.plot([], [], color=look.SKY, lw=2.4))
            self.star = canvas.moving(
                *ax.plot([], [], "*", color=look.ORANGE, ms=17, mec=look.BLACK, mew=0.8, zorder=5, clip_on=False)
            )
            self._readout = Readout(canvas, side, 9)

    def _value(self, moments, mixing):
        pos, neg = self.alpha_pos.value, self.alpha_neg.value
        sols = strategies.mix(moments, pos, neg, mixing, self.kappa.value)
        return sols, measure(self.metric.value, sols.metrics, pos / (pos + neg))

    def _update(self):
        moments, pos, neg, name = self.problem(), self.alpha_pos.value, self.alpha_neg.value, self.metric.value
        mixing = mixings(max(pos, neg) / min(pos, neg))
        sols, value = self._value(moments, mixing)
        as_is = measure(name, saddle.solve(moments, pos, neg, self.kappa.value).metrics, pos / (pos + neg))
        best, highest = self._best(moments, mixing, value)
        sign = METRICS[name].sign
        low, high = self._range(mixing, sign * value, best, sign * highest)
        self.curves = {
            "mixing": mixing, "value": value, "phase": sols.phase, "metric": name, "as_is": float(as_is),
            "best_mixing": best, "best_value": highest, "low": low, "high": high,
        }  # fmt: skip
        self._draw_curves()

    def _best(self, moments, mixing, value):
        """Return the highest point of the curve, searched between the neighbours of the highest point drawn.

        :func:`rbal.strategies.best_mixing` finds the same from scratch, which is too slow to follow a slider.
        """
        sign = METRICS[self.metric.value].sign
        i = int(np.nanargmax(sign * value))
        if 0 < i < mixing.size - 1:
            found = minimize_scalar(
                lambda mu: -sign * self._value(moments, float(mu))[1],
                bounds=(mixing[i - 1], mixing[i + 1]),
                method="bounded",
                options={"xatol": 1e-4},
            )
            if -found.fun > sign * value[i]:
                return float(found.x), float(-sign * found.fun)
        return float(mixing[i]), float(value[i])

    @staticmethod
    def _range(mixing, value, best, highest):
        """Return the ends of the mixings around the best that are within the tolerance, by linear interpolation."""
        x, y = np.append(mixing, best), np.append(value, highest) - (highest - TOLERANCE)
        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
        at = int(np.searchsorted(x, best))
        ends = []
        for side in (-1, +1):
            i = at
            while 0 <= i + side < x.size and y[i + side] >= 0.0:
                i += side
            j = i + side
            ends.append(x[i] + (x[j] - x[i]) * y[i] / (y[i] - y[j]) if 0 <= j < x.size else x[i])
        return tuple(map(float, ends))

    def _draw_curves(self):
        c = self.curves
        sat = c["phase"] == "SAT"
        touching = sat | np.append(sat[1:], False) | np.insert(sat[:-1], 0, False)  # so that the colours meet
        self.line.set_data(c["mixing"], np.where(sat, np.nan, c["value"]))
        self.sat_line.set_data(c["mixing"], np.where(touching, c["value"], np.nan))
        self.as_is_line.set_ydata([c["as_is"]] * 2)
        self.star.set_data([c["best_mixing"]], [c["best_value"]])
        self._good.set_verts([[(c["low"], 0), (c["low"], 1), (c["high"], 1), (c["high"], 0)]])
        self.canvas.limits(self.axes, y=rounded(np.append(c["value"], c["as_is"])))
        label = METRICS[c["metric"]].label
        if self.axes.get_ylabel() != label:
            self.axes.set_ylabel(label)
            self.canvas.settle()
        self._write(label, sat.any())

    def _write(self, label, any_sat):
        c = self.curves
        self._readout.write(
            [
                (f"best mixing {c['best_mixing']:.3f}", look.ORANGE),
                (f"{label} {c['best_value']:.4f}", None),
                (f"as good: {c['low']:.2f} to {c['high']:.2f}", None),
                ("", None),
                ("as it is", look.VERMILLION),
                (f"{label} {c['as_is']:.4f}", None),
                ("", None),
                *([("separable", look.SKY)] if any_sat else []),
            ]
        )
        under, over = c["value"][0], c["value"][-1]
        self.summary.value = (
            f"{label}: {under:.4f} undersampled, {over:.4f} oversampled, {c['best_value']:.4f} at the best mixing, "
            f"{c['best_mixing']:.3f}; {c['as_is']:.4f} without resampling."
        )


def mixing(data="ising", *, kappa=0.5, alpha_pos=0.3, alpha_neg=5.0, separation=None, metric="ba"):
    """Explore a metric over all mixtures of under- and oversampling, with the best one marked.

    Parameters
    ----------
    data : str, Moments or object with ``moments``
        As in :func:`metrics`.
    kappa : float
        Margin of the training, from 0 to 6.
    alpha_pos, alpha_neg : float
        Class sizes over L, from 0.1 to 100.
    separation : float, optional
        Distance ‖δ‖/√L between the classes; by default that of the data.
    metric : str
        One of "ba", "acc", "auc", "auprc", "f1", "mcc" and "ppv"; tested with the class sizes as they are given.

    Returns
    -------
    Explorer
    """
    return MixingExplorer(data, kappa, alpha_pos, alpha_neg, separation, metric).start()
