"""Draw the figure of the README: ``python tools/readme_figure.py`` writes book/_static/tradeoff.png."""

from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np

import rbal
from rbal_book import plotting

TARGET = Path(__file__).parents[1] / "book" / "_static" / "tradeoff.png"


MARGINS = (0.5, 1.0, 2.0)


def classes():
    """A hundred independent spins of equal variance, with a random shift."""
    return rbal.Moments.ising(m=0.4, delta=np.random.default_rng(2024).normal(0.0, 2.0, size=100))


def main():
    """Balanced accuracy against the share of negatives, for several margins, with the best moved threshold."""
    plotting.use_style()
    rho_neg = np.linspace(0.05, 0.95, 361)
    fig, ax = plt.subplots(figsize=(7.0, 3.3))
    for kappa in MARGINS:
        color = plotting.margin_color(kappa)
        metrics = rbal.sweep(classes(), 2.0, 2.0 * rho_neg / (1.0 - rho_neg), kappa).metrics
        ax.plot(rho_neg, metrics.ba(), color=color, label=f"κ = {kappa:g}")
        ax.plot(rho_neg, metrics.best_ba(), ":", color=color, lw=1.2)
    ax.set(xlabel="share of negatives in the training set, ρ⁻", ylabel="balanced accuracy", xlim=(0.05, 0.95))
    ax.legend(title="margin", loc="center left", bbox_to_anchor=(1.0, 0.5))
    fig.savefig(TARGET, metadata={"Software": None})


if __name__ == "__main__":
    main()
