"""Whether a trained machine has the bias that is predicted: the guard against one that only a few samples hold."""

import numpy as np
from scipy.special import ndtr

from ..saddle import MixtureSolution

FREE = 0.05  # share of samples beyond the margin that it takes to hold the bias of a hinge loss
SIGNS = np.array([1.0, -1.0])


def free_share(sol, widths=1.0):
    """Return the share of the training samples of a class, of the one with more, that are at or beyond the margin.

    The others pull with their whole weight. If they all do, nothing holds the bias of classes that weigh the same.

    Parameters
    ----------
    sol : Solution or MixtureSolution
    widths : (..., 2) array
        Factors on the q and x of a Solution, for each class.

    Returns
    -------
    float or array
    """
    wide = isinstance(sol, MixtureSolution)
    q, x = (np.asarray(a) if wide else np.asarray(a)[..., None] * widths for a in (sol.q, sol.x))
    mean = SIGNS * sol.m if wide else 0.5 * np.asarray(sol.r)[..., None] + np.zeros(2)
    mean = mean - SIGNS * np.asarray(sol.b)[..., None]
    edge = np.stack(np.broadcast_arrays(sol.kappa, sol.kappa_neg), axis=-1)
    edge = edge - x * np.stack(np.broadcast_arrays(sol.weight_pos, sol.weight_neg), axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return ndtr((mean - edge) / np.sqrt(q)).max(axis=-1)


def bias_is_held(free, kinked=True):
    """Return whether enough samples hold the bias, so that a trained machine has the one that is predicted.

    Where all but a few samples are within the margin of a loss with a kink, these few alone hold the bias of classes
    that weigh the same, and they are the outliers of the data.

    Parameters
    ----------
    free : float or array
        As :func:`free_share` returns it; NaN where nothing is known, which is not held.
    kinked : bool
        Whether the loss has a kink, as the hinge; a smooth one is held by all samples.

    Returns
    -------
    bool or array of bool
    """
    return (np.asarray(free) >= FREE) | (not kinked)
