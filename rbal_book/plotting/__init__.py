"""The style of every figure: theory as lines, simulations as dots with error bars, one colour for each margin."""

import sys

import matplotlib.pyplot as plt
import numpy as np

from rbal._support.look import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, STYLE, VERMILLION
from rbal._support.validation import number

from ._figures import show_as_svg

__all__ = [
    "BLACK", "BLUE", "GREEN", "ORANGE", "PURPLE", "SKY", "VERMILLION", "dots", "margin_color", "use_style",
]  # fmt: skip

#: Margins that the book draws, each with its colour in every figure.
_MARGINS = {0.0: BLACK, 0.3: ORANGE, 0.5: SKY, 1.0: BLUE, 1.5: GREEN, 2.0: PURPLE, 4.0: VERMILLION}


def use_style():
    """Switch matplotlib to the style of the book; in a notebook, figures are shown as SVG from then on."""
    plt.style.use(STYLE)
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None and hasattr(shell, "kernel"):
        show_as_svg(shell)


def margin_color(kappa):
    """Give the colour of a margin, the same in all figures of the book.

    Parameters
    ----------
    kappa : float
        Margin. Those that the book draws most (0, 0.3, 0.5, 1, 1.5, 2, 4) have a colour each, and any other takes the
        colour of the nearest of them in ratio.

    Returns
    -------
    str
        Colour as ``#rrggbb``.

    Examples
    --------
    >>> from rbal_book import plotting
    >>> plotting.margin_color(1.0) == plotting.BLUE, plotting.margin_color(8.0) == plotting.VERMILLION
    (True, True)
    """
    kappa = number("kappa", kappa, -np.inf)
    if kappa <= 0:
        return _MARGINS[0.0]
    return _MARGINS[
        min((known for known in _MARGINS if known > 0), key=lambda known: abs(np.log(kappa) - np.log(known)))
    ]


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
    if not hasattr(ax, "errorbar"):
        raise TypeError(f"ax must be matplotlib Axes, got {type(ax).__name__}")
    trials, x = _numbers("trials", trials), _numbers("x", x)
    if trials.ndim != 2 or len(trials) < 2:
        raise ValueError(f"trials must have at least two rows, one per simulation, got shape {trials.shape}")
    if x.shape != trials.shape[1:]:
        raise ValueError(f"x must have one entry for each of the {trials.shape[1]} columns of trials, got {x.shape}")
    error = trials.std(axis=0, ddof=1) / np.sqrt(len(trials))
    return ax.errorbar(x, trials.mean(axis=0), error, fmt="o", **kwargs)


def _numbers(name, value):
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be numeric, got {type(value).__name__}") from None
