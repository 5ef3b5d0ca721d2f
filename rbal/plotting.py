"""The style of every figure: theory as lines, simulations as dots with error bars, white background."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

#: Okabe–Ito colours, told apart by readers with any colour vision.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
)  # fmt: skip


def use_style():
    """Switch matplotlib to the style of the book."""
    plt.style.use(Path(__file__).with_name("rbal.mplstyle"))


def dots(ax, x, trials, **kwargs):
    """Draw the mean over trials with its standard error.

    Parameters
    ----------
    ax : matplotlib Axes
    x : (n,) array
    trials : (n_trials, n) array
        One row per simulation.
    **kwargs
        Passed on to ``ax.errorbar``.

    Returns
    -------
    matplotlib ErrorbarContainer
    """
    trials = np.asarray(trials, float)
    if trials.ndim != 2 or len(trials) < 2:
        raise ValueError(f"trials must have at least two rows, one per simulation, got shape {trials.shape}")
    error = trials.std(axis=0, ddof=1) / np.sqrt(len(trials))
    return ax.errorbar(x, trials.mean(axis=0), error, fmt="o", **kwargs)
