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
from ..moments import Mixture
from ..moments._blocks import Diagonal
from ..moments._estimate import Sample
from ..moments._spectrum import Spectrum
from ..saddle import solve, sweep
from ..strategies._held import free_share

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


def mixture(spectrum, widths):
    """Return the Mixture of two classes with this spectrum, times a width each."""
    half = 0.5 * np.sqrt(spectrum.s)
    centres = np.stack([half, -half])
    found = Mixture(
        L=spectrum.L, Q=spectrum.Q, means=centres, centres=centres,
        covs=([spectrum.lam], np.zeros(2, np.int64), np.array(widths, float)),
        clusters=(np.array([1, -1]), np.ones(2), 1),
    )  # fmt: skip
    # directions are counted by numbers that are not whole, which only the block can hold
    found.blocks = Diagonal(np.ascontiguousarray(spectrum.lam[None]), spectrum.g, centres, spectrum.g_null)
    return found


def widths_along(sample, k_hat, x_hat, q_hat, r_hat):
    r"""Return the widths (2,) of both classes along the weights of a saddle point.

    Along an eigenvector of the pooled covariance, with the value λ and the shift δ, the squared weight is
    :math:`(\hat q\lambda/L + \hat r^2\delta^2)/(\hat k + \hat x\lambda)^2` for the true δ. The noise of the measured
    one, :math:`\tau\lambda`, is a part of :math:`\hat q\lambda/L` and is not counted twice.

    Parameters
    ----------
    sample : Sample
    k_hat, x_hat, q_hat, r_hat : float
        Hats of the saddle point: those of the classes summed up, each times its width.

    Returns
    -------
    (2,) array
    """
    values, total = sample.values, sample.values.sum()
    tau = sample.spread_pos.sum() / total / sample.n_pos + sample.spread_neg.sum() / total / sample.n_neg
    noise = max(q_hat / sample.D - r_hat**2 * tau, 0.0)
    squared = (noise * values + r_hat**2 * sample.shift**2) / (k_hat + x_hat * values) ** 2
    along = squared @ values
    if not along > 0.0:
        return np.ones(2)
    return np.clip([squared @ sample.spread_pos / along, squared @ sample.spread_neg / along], *LIMITS)


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
    columns = np.broadcast_arrays(alpha_pos, alpha_neg, weight_pos, weight_neg, lam)
    points = [
        dict(zip(("alpha_pos", "alpha_neg", "weight_pos", "weight_neg", "lam"), map(float, point), strict=True))
        for point in zip(*(np.atleast_1d(column) for column in columns), strict=True)
    ]
    start = [None] * len(points)
    if classes.known is None:
        start = _pooled(classes, points, loss)
    else:
        start = list(np.broadcast_to(classes.known, (len(points), 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", convergence_warning())
        found = [_settled(classes, point, loss, widths) for point, widths in zip(points, start, strict=True)]
    shape = columns[0].shape
    mean, q, error, phase, widths, free = zip(*found, strict=True)
    metrics = MixtureMetrics(np.reshape(mean, (*shape, 2)), np.reshape(q, (*shape, 2)), SIGNS, np.ones(2))
    one_each = (np.reshape(column, shape) for column in (error, phase))
    return WideSolution(metrics, *one_each, np.array(widths), np.reshape(free, shape))


def _pooled(classes, points, loss):
    """Return the widths of each point along the weights that it has without widths."""
    columns = {name: np.array([point[name] for point in points]) for name in points[0]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", convergence_warning())
        sol = sweep(classes.spectrum, **columns, model="svm", loss=loss)
    hats = np.stack([sol.k_hat, sol.x_hat, sol.q_hat, sol.r_hat], axis=1)
    return [widths_along(classes.sample, *h) if np.isfinite(h).all() else np.ones(2) for h in hats]


def _settled(classes, point, loss, widths):
    """Return means and variances of the scores (2,), training error, phase, widths and free share of one design."""
    for _ in range(1 if classes.known is not None else ROUNDS):
        sol = solve(mixture(classes.spectrum, widths), **point, model="svm", loss=loss)
        used = widths
        if classes.known is not None or not np.isfinite(sol.r_hat):
            break
        x_hat, q_hat = widths @ sol.x_hat, widths @ sol.q_hat
        widths = widths_along(classes.sample, sol.k_hat, x_hat, q_hat, sol.r_hat)
        if np.abs(np.log(widths / used)).max() < SETTLED:
            break
    return sol.m - sol.b, sol.variance, sol.train_error, sol.phase, used, free_share(sol)
