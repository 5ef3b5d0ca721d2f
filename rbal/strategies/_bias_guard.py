"""Whether a trained machine has the predicted bias: a guard against a bias that only a few samples determine."""

import numpy as np
from scipy.special import ndtr

from ..saddle import MixtureSolution

FREE = 0.05  # share of samples beyond the margin that it takes to hold the bias of a hinge loss
SIGNS = np.array([1.0, -1.0])


def free_share(sol, widths=1.0):
    """Return the largest class-wise share of training samples at or beyond the margin.

    The other samples pull with their whole weight. If all of them do, nothing determines the bias of classes of equal
    total weight.

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
    """Return whether enough samples determine the bias, so that a trained machine has the predicted one.

    Where all but a few samples are within the margin of a loss with a kink, these few alone determine the bias of
    classes of equal total weight, and they are the outliers of the data.

    Parameters
    ----------
    free : float or array
        As :func:`free_share` returns it; NaN, where it is unknown, counts as too few.
    kinked : bool
        Whether the loss has a kink, as the hinge; a smooth one is held by all samples.

    Returns
    -------
    bool or array of bool
    """
    return (np.asarray(free) >= FREE) | (not kinked)
