"""Frames of the widgets: how long one takes from the slider to the picture, and what drawing anew would cost."""

import io
import time

import matplotlib.pyplot as plt
import numpy as np

import rbal
from rbal import widgets
from rbal.widgets import _canvas, _curves, _data
from rbal_book import plotting

FRAMES = 24
EXPLORERS = {  # a slider that is dragged, and where to
    "metrics": (widgets.metrics, "kappa", np.linspace(0.5, 2.5, FRAMES)),
    "tradeoff": (widgets.tradeoff, "kappa", np.linspace(0.5, 2.5, FRAMES)),
    "mixing": (widgets.mixing, "kappa", np.linspace(0.5, 2.5, FRAMES)),
    "margins": (widgets.margins, "threshold", np.linspace(-2.0, 2.0, FRAMES)),
    "phases": (widgets.phases, "kappa", np.linspace(0.1, 2.5, FRAMES)),
}


def frames(function, values):
    """Median wall and CPU seconds of a call for each value."""
    wall, cpu = [], []
    for value in values:
        start, start_cpu = time.perf_counter(), time.process_time()
        function(value)
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - start_cpu)
    return np.median(wall), np.median(cpu)


def drag(name, data):
    """Wall and CPU seconds of a frame while one slider moves."""
    make, control, values = EXPLORERS[name]
    ui = make(data)
    slider = ui.controls[control]

    def move(value):
        slider.value = value
        assert not ui.error, ui.error

    move(values[-1])
    return frames(move, values)


def naive_metrics(data):
    """The same picture of metrics by clearing a pyplot figure and plotting anew, as one would write it at first."""
    moments, rho = _data.named(data), np.linspace(*_curves.SHARES, _curves.POINTS)
    with _canvas.book_style():
        fig = plt.figure(figsize=(7.4, 4.0), dpi=_canvas.CSS_DPI * _canvas.SHARPNESS)

    def frame(kappa):
        with _canvas.book_style():
            fig.clear()
            ax, side = fig.subplots(1, 2, width_ratios=(5, 1.25))
            m = rbal.sweep(moments, 4.0 * rho, 4.0 * (1.0 - rho), kappa).metrics
            for name in ("ba", "acc", "auc", "f1", "mcc"):
                ax.plot(rho, _curves.measure(name, m, rho), label=name, color=_curves.COLOURS[name])
            ax.axvline(0.2, color=plotting.BLACK, ls=":")
            ax.set(xlim=(0, 1), ylim=(0, 1), xlabel=r"share of positives in training, $\rho^+$", ylabel="on test data")
            side.set_axis_off()
            side.legend(*ax.get_legend_handles_labels(), loc="upper left")
            fig.savefig(io.BytesIO(), format="png", dpi=fig.dpi)

    frame(1.0)
    result = frames(frame, EXPLORERS["metrics"][2])
    plt.close(fig)
    return result


def against_naive(data="ising"):
    """A row for the table of ratios, by CPU time."""
    (wall, ours), (_, theirs) = drag("metrics", data), naive_metrics(data)
    return "metrics(), frame by CPU time", ours, theirs, 2, f"{1.0 / wall:.0f} frames a second"


def table():
    """(explorer, data, wall, CPU) of one frame for all explorers and data."""
    return [(name, data, *drag(name, data)) for name in EXPLORERS for data in _data.SOURCES]
