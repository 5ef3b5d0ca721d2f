"""Draw the still of each explorer, at its first setting: book/_static/explorer/static/*.svg.

``python tools/make_explorer_figures.py`` takes some twenty seconds. Readers see them where there is no JavaScript.
"""

import json
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from make_explorer_data import data_sets

import rbal
from rbal import strategies
from rbal.metrics import METRICS
from rbal.widgets._widths import widened
from rbal_book import plotting

FOLDER = Path(__file__).resolve().parents[1] / "book" / "_static" / "explorer"
RHO = np.linspace(0.02, 0.98, 200)


def metrics(classes, kappa, alpha, shown, **_):
    """What each metric sees."""
    m = rbal.sweep(classes, alpha * RHO, alpha * (1 - RHO), kappa).metrics
    fig, ax = plt.subplots(figsize=(7, 3.6))
    for name, color in zip(shown, (plotting.VERMILLION, plotting.BLUE, plotting.PURPLE, plotting.ORANGE), strict=True):
        ax.plot(RHO, METRICS[name].of_theory(m, RHO), color=color, label=METRICS[name].label)
    ax.set(xlabel="share of positives in the training set, ρ⁺", ylabel="metric", xlim=(0, 1), ylim=(0, 1))
    ax.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return fig


def tradeoff(classes, kappa, alpha_pos, **_):
    """Balance against performance."""
    neg = alpha_pos * RHO / (1 - RHO)
    fig, ax = plt.subplots(figsize=(7, 3.6))
    for factor, dash in ((0.5, "--"), (2.0, "-."), (1.0, "-")):
        m, color = rbal.sweep(classes, alpha_pos, neg, factor * kappa).metrics, plotting.margin_color(factor * kappa)
        ax.plot(RHO, m.ba(), dash, color=color, label=f"κ = {factor * kappa:g}", lw=2.4 if factor == 1 else 1.5)
    ax.plot(RHO, m.best_ba(), ":", color=color, lw=1.5, label="moved threshold")
    gain = rbal.solve(classes, alpha_pos, alpha_pos, kappa).metrics.ba() - 0.5
    inside = RHO[m.ba() - 0.5 > gain / 2]
    ax.axvspan(inside[0], inside[-1], color=color, alpha=0.12, lw=0)
    ax.set(xlabel="share of negatives in the training set, ρ⁻", ylabel="balanced accuracy", xlim=(0, 1))
    ax.legend()
    return fig


def mixing(classes, kappa, alpha_pos, alpha_neg, metric, tolerance, **_):
    """Under, over, or both."""
    mu = np.linspace(0, 1, 200)
    values = getattr(strategies.mix(classes, alpha_pos, alpha_neg, mu, kappa).metrics, metric)()
    best = strategies.best_mixing(classes, alpha_pos, alpha_neg, kappa, metric=metric, tolerance=tolerance)
    as_is = getattr(rbal.solve(classes, alpha_pos, alpha_neg, kappa).metrics, metric)()
    fig, ax = plt.subplots(figsize=(7, 3.6))
    ax.axvspan(100 * best.low, 100 * best.high, color=plotting.GREEN, alpha=0.15, lw=0, label="as good as the best")
    ax.plot(100 * mu, values, color=plotting.VERMILLION, label="balance restored")
    ax.axhline(as_is, color=plotting.BLUE, label="data as they are")
    ax.plot(100 * best.mixing, best.value, "*", color=plotting.GREEN, ms=14, mec="white", label="best")
    ax.set(xlabel="mixing, %  (0 under, 100 over)", ylabel="balanced accuracy", xlim=(0, 100))
    ax.legend()
    return fig


def scores(classes, kappa, alpha_pos, alpha_neg, threshold, phi, **_):
    """Two bells and a threshold."""
    m = rbal.solve(classes, alpha_pos, alpha_neg, kappa).metrics
    fig, (bells, roc, prc) = plt.subplots(1, 3, figsize=(8, 2.9), width_ratios=(1.6, 1, 1))
    delta = -m.b + np.linspace(-1, 1, 241) * (m.r / 2 + 3.6 * np.sqrt(m.q))
    for label, share, color in ((-1, 1 - phi, plotting.BLUE), (1, phi, plotting.VERMILLION)):
        bells.plot(delta, share * m.density(delta, label), color=color)
    bells.axvline(threshold, color="0.2")
    bells.set(xlabel="score Δ", ylabel="density", ylim=(0, None))
    roc.plot(*m.roc(), color=plotting.PURPLE)
    roc.plot(m.fpr(threshold), m.tpr(threshold), "o", color=plotting.PURPLE)
    roc.set(xlabel="FPR", ylabel="TPR")
    prc.plot(*m.prc(phi), color=plotting.ORANGE)
    prc.plot(m.tpr(threshold), m.ppv(phi, threshold), "o", color=plotting.ORANGE)
    prc.set(xlabel="recall", ylabel="precision", ylim=(0, 1.05))
    return fig


def phases(classes, kappa, alpha_pos, alpha_neg, **_):
    """Phase diagram."""
    size = np.geomspace(0.05, 50, 40)
    surface = rbal.critical_margin(classes, size[:, None], size)
    fig, ax = plt.subplots(figsize=(5.4, 4.2))
    image = ax.pcolormesh(size, size, surface.T, shading="gouraud", rasterized=True)
    ax.contour(size, size, surface.T, [kappa], colors=plotting.VERMILLION, linewidths=2)
    ax.plot(alpha_pos, alpha_neg, "o", color=plotting.VERMILLION, mec="white", ms=9)
    ax.set(xscale="log", yscale="log", xlabel="positives per feature, α⁺", ylabel="negatives per feature, α⁻")
    fig.colorbar(image, ax=ax, label="critical margin")
    return fig


def widths(classes, kappa, alpha_pos, alpha_neg, width, **_):
    """The wider class."""
    m = rbal.solve(widened(classes, width), alpha_pos, alpha_neg, kappa).metrics
    over = np.geomspace(0.1, 10, 61)
    each = [rbal.solve(widened(classes, w), alpha_pos, alpha_neg, kappa).metrics for w in over]
    styles = [
        ("as trained", {"color": plotting.PURPLE, "ls": "--"}, lambda m: 0.0),
        ("midway", {"color": plotting.BLACK, "ls": ":"}, lambda m: -m.b),
        ("best", {"color": plotting.GREEN, "lw": 2.4}, lambda m: m.best_threshold()),
    ]
    fig, (bells, ax) = plt.subplots(1, 2, figsize=(8, 3.2))
    delta = -m.b + np.linspace(-1, 1, 241) * (m.r / 2 + 3.4 * np.sqrt(m.q.max()))
    for label, name, color in ((-1, "negatives", plotting.BLUE), (1, "positives", plotting.VERMILLION)):
        bells.plot(delta, m.density(delta, label), color=color, label=name)
    for name, style, at in styles:
        bells.axvline(at(m), **style)
        ax.plot(over, [one.ba(at(one)) for one in each], label=name, **style)
    bells.set(xlabel="score Δ", ylabel="density of each class", ylim=(0, None), yticks=[])
    bells.legend()
    ax.set(xscale="log", xlabel="width w of the positives", ylabel="balanced accuracy", xlim=(0.1, 10))
    ax.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    ax.legend()
    return fig


def main():
    """Draw them all."""
    plotting.use_style()
    plt.rcParams["savefig.dpi"] = 80  # of the rasterised map
    defaults = json.loads((FOLDER / "data" / "defaults.json").read_text(encoding="utf-8"))
    sets = data_sets()
    (FOLDER / "static").mkdir(exist_ok=True)
    for draw in (metrics, tradeoff, mixing, scores, phases, widths):
        setting = defaults[draw.__name__]
        fig = draw(sets[setting["data"]][1].spectrum.apart(setting["stretch"]), **setting)
        fig.savefig(FOLDER / "static" / f"{draw.__name__}.svg", metadata={"Date": None, "Creator": None})
        plt.close(fig)


if __name__ == "__main__":
    main()
