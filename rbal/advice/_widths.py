r"""Two classes with one covariance up to a factor each: the width of a class along the weights.

With few rows the covariance of a class cannot be estimated, but its variance along the weights can: it is a mean over
all directions, :math:`w_+ = J^\top C_+J / J^\top CJ`. The weights follow from the saddle point, which depends on the
widths in turn, so that both are found in some rounds.
"""

import warnings
from typing import NamedTuple

import numpy as np

from .._support.warnings import convergence_warning
from ..metrics import MixtureMetrics
from ..moments import Spectrum
from ..moments.internal import Sample
from ..saddle.internal import sweep_widths
from ..strategies.internal import free_share

ROUNDS = 4  # of weights and widths
SETTLED = 1e-3  # change of log w at which rounds end
LIMITS = 0.05, 20.0  # of a width: beyond, the weights all but vanish
SIGNS = np.array([1.0, -1.0])


class Wide(NamedTuple):
    """What is known of the two classes."""

    spectrum: Spectrum  # of the pooled covariance, and the shift
    sample: Sample
    known: np.ndarray | None = None  # (n, 2) widths of the positive and the negative class, of each design to be solved

    def apart(self, factor):
        """Return a copy with the means of the classes ``factor`` times as far apart."""
        return self._replace(spectrum=self.spectrum.apart(factor))


class WideSolution(NamedTuple):
    """Saddle points of n designs."""

    metrics: MixtureMetrics
    train_error: np.ndarray  # (n,)
    phase: np.ndarray
    widths: np.ndarray  # (n, 2)
    free: np.ndarray  # (n,) as of free_share


def widths_along(sample, k_hat, x_hat, q_hat, r_hat):
    r"""Return the widths (..., 2) of both classes along the weights of saddle points.

    Along an eigenvector of the pooled covariance, with the value λ and the shift δ, the squared weight is
    :math:`(\hat q\lambda/L + \hat r^2\delta^2)/(\hat k + \hat x\lambda)^2` for the true δ. The noise of the measured
    one, :math:`\tau\lambda`, is a part of :math:`\hat q\lambda/L` and is not counted twice.

    Parameters
    ----------
    sample : Sample
    k_hat, x_hat, q_hat, r_hat : float or (...) array
        Hats of the saddle points.

    Returns
    -------
    (..., 2) array
        1 where the weights vanish.
    """
    values, total = sample.values, sample.values.sum()
    tau = sample.spread_pos.sum() / total / sample.n_pos + sample.spread_neg.sum() / total / sample.n_neg
    k_hat, x_hat, q_hat, pull = (np.asarray(a)[..., None] for a in (k_hat, x_hat, q_hat, np.square(r_hat)))
    noise = np.maximum(q_hat / sample.D - pull * tau, 0.0)
    squared = (noise * values + pull * sample.shift**2) / (k_hat + x_hat * values) ** 2
    along = np.stack([squared @ sample.spread_pos, squared @ sample.spread_neg], axis=-1)
    whole = (squared @ values)[..., None]
    return np.where(whole > 0.0, np.clip(along / np.where(whole > 0.0, whole, 1.0), *LIMITS), 1.0)


def solve_wide(classes, alpha_pos, alpha_neg, *, weight_pos, weight_neg, lam, loss):
    """Solve n designs, arrays (n,), with widths that are known or found.

    Parameters
    ----------
    classes : Wide
    alpha_pos, alpha_neg, weight_pos, weight_neg, lam : (n,) arrays
        As in :func:`rbal.sweep`.
    loss : str

    Returns
    -------
    WideSolution
    """
    names = ("alpha_pos", "alpha_neg", "weight_pos", "weight_neg", "lam")
    columns = np.broadcast_arrays(alpha_pos, alpha_neg, weight_pos, weight_neg, lam)
    options = dict(zip(names, columns, strict=True)) | {"loss": loss}
    shape, known = columns[0].shape, classes.known is not None
    widths = np.array(np.broadcast_to(classes.known if known else 1.0, (*shape, 2)), float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", convergence_warning())
        sol = sweep_widths(classes.spectrum, np.moveaxis(widths, -1, 0), **options)
        for _ in range(0 if known else ROUNDS):
            found = widths_along(classes.sample, sol.k_hat, sol.x_hat, sol.q_hat, sol.r_hat)
            found = np.where(np.isfinite(found), found, widths)  # where the weights vanish, as they are
            change = np.abs(np.log(found / widths)).max(initial=0.0)
            if change < SETTLED:
                break
            widths = found
            sol = sweep_widths(classes.spectrum, np.moveaxis(widths, -1, 0), **options)
    mean = 0.5 * SIGNS * sol.r[..., None] - sol.b[..., None]
    metrics = MixtureMetrics(mean, widths * sol.q[..., None], SIGNS, np.ones(2))
    return WideSolution(metrics, sol.train_error, sol.phase, widths, free_share(sol, widths))
