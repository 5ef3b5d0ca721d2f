"""Where to cut the scores, and what a cut is worth that has to be found on few held-out rows.

A moved threshold is tuned on cross-validated scores (:func:`rbal.advice._threshold.best_cut`): at the best metric of
rates that are smoothed by a kernel in each class. Two things keep it from the best threshold, and both follow from the
law of the scores. Smoothing widens the classes, the rarer one more; and where the derivative of the smoothed metric is
0 is known up to the noise of two estimated densities.
"""

import numpy as np

from ..metrics import Metrics, MixtureMetrics

BANDWIDTH, POWER = 0.9, -0.2  # of the kernel that smooths rates: Silverman's, in deviations of a class of n scores
REFINEMENTS = 3  # times that the grid of thresholds closes in
SIGNS = np.array([1.0, -1.0])
STEP = 0.05  # of numerical derivatives, in deviations of the narrower class, and of rates
FURTHEST = 2.0  # deviations that a tuned threshold may be off by: where the metric is flat, it stays among the scores
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def score(metrics, setting, threshold=0.0):
    """Return the metric with the sign that makes more better, so that a cost is negative."""
    record = setting.record
    return record.sign * record.of_theory(metrics, setting.share, threshold)


def best_threshold(metrics, setting):
    """Return the threshold at which the metric is best, by its formula or else by a grid that closes in."""
    if setting.record.best_threshold:
        return setting.record.best_threshold(metrics, setting.share)
    if isinstance(metrics, MixtureMetrics):
        mean, q = (np.atleast_2d(a)[:, None, :] for a in (metrics.mean, metrics.q))
        wide = MixtureMetrics(mean, q, metrics.signs, metrics.shares)
        centre, half = mean.mean(axis=-1), 0.5 * np.ptp(mean, axis=-1) + 6.0 * np.sqrt(q.max(axis=-1)) + 1e-12
    else:
        q, r, b = (np.atleast_1d(a)[:, None] for a in (metrics.q, metrics.r, metrics.b))
        wide = Metrics(q, r, b)
        half = 0.5 * np.abs(r) + 6.0 * np.sqrt(q) + 1e-12
        centre = -b
    for _ in range(REFINEMENTS):
        trial = centre + half * np.linspace(-1.0, 1.0, 65)
        heights = score(wide, setting, trial)
        at = np.argmax(np.nan_to_num(heights, nan=-np.inf), axis=1)[:, None]
        centre, half = np.take_along_axis(trial, at, axis=1), half / 24.0
    return centre[:, 0].reshape(np.shape(metrics.b))


def at_threshold(metrics, setting, kind):
    """Return the threshold of a kind, "trained" or "moved", and the metric that is to be expected of it, (n,) each.

    If the setting says that a moved threshold is tuned, its metric is that of tuned ones, and less than the best.
    """
    if kind == "trained":
        cut = np.zeros_like(metrics.b)
        return cut, np.broadcast_to(score(metrics, setting, cut), cut.shape)
    cut = best_threshold(metrics, setting)
    best = np.broadcast_to(score(metrics, setting, cut), np.shape(cut))
    return cut, (expected_when_tuned(metrics, setting, best) if setting.tuned else best)


def expected_when_tuned(metrics, setting, best):
    """Return the mean metric of thresholds that are tuned on as many held-out scores as the setting has rows, (n,).

    Parameters
    ----------
    metrics : Metrics or MixtureMetrics
        Of n designs.
    setting : Setting
    best : (n,) array
        The metric at the best threshold, which is kept where all scores of a class are one.

    Returns
    -------
    (n,) array
    """
    mean, q = _law(metrics)
    shape, mean, q = np.shape(best), mean.reshape(-1, 2), q.reshape(-1, 2)
    usable = np.isfinite(mean).all(axis=-1) & (q > 0.0).all(axis=-1)
    found = np.array(best, float).reshape(-1)
    if not usable.any():
        return found.reshape(shape)
    sizes = np.stack(np.broadcast_arrays(setting.n_pos, setting.n_neg, np.zeros(shape))[:2], axis=-1).reshape(-1, 2)
    mean, q, sizes = mean[usable], q[usable], np.maximum(sizes[usable], 2.0)
    law = MixtureMetrics(mean, q, SIGNS, np.ones(2))
    cut, error = tuned(law, setting, sizes)
    values = score(law, setting, cut + error * NODES[:, None])
    # no tuned threshold is better than the best one; a grid is 1e-5 off
    found[usable] = np.minimum(np.nan_to_num(values, nan=-np.inf).T @ WEIGHTS, found[usable])
    return found.reshape(shape)


def tuned(law, setting, sizes):
    """Return the mean and the standard deviation (n,) of tuned thresholds, from n laws with two classes each.

    Parameters
    ----------
    law : MixtureMetrics
        Means and variances (n, 2).
    setting : Setting
        For its metric.
    sizes : (n, 2) array
        Held-out scores of each class.

    Returns
    -------
    ((n,) array, (n,) array)
    """
    mean, q = law.mean, law.q
    width = BANDWIDTH * np.sqrt(q) * sizes**POWER
    smooth = MixtureMetrics(mean, q + width**2, SIGNS, np.ones(2))
    cut = best_threshold(smooth, setting)
    # a kernel estimate of a density at the cut: its mean square, less the square of its mean
    square = _density(cut, mean, q + 0.5 * width**2) / (2.0 * np.sqrt(np.pi) * width)
    noise = (square - _density(cut, mean, q + width**2) ** 2) / sizes
    slopes = _slopes(smooth, setting, cut)
    step = STEP * 4.0 * np.sqrt(q.min(axis=-1))
    left, middle, right = score(smooth, setting, cut + step * np.array([[-1.0], [0.0], [1.0]]))
    curvature = np.maximum((2.0 * middle - left - right) / step**2, 1e-12)
    error = np.sqrt(np.sum(slopes**2 * np.maximum(noise, 0.0), axis=-1)) / curvature
    return cut, np.minimum(error, FURTHEST * np.sqrt(q.max(axis=-1)))


def _law(metrics):
    """Return means and variances (..., 2) of the scores of both classes."""
    if isinstance(metrics, MixtureMetrics):
        return metrics.mean, metrics.q
    half = 0.5 * metrics.r
    mean = np.stack(np.broadcast_arrays(half - metrics.b, -half - metrics.b), axis=-1)
    return mean, np.broadcast_to(np.asarray(metrics.q)[..., None], mean.shape)


def _density(at, mean, variance):
    """Return the Gaussian densities (n, 2) of both classes at (n,)."""
    return np.exp(-0.5 * (at[:, None] - mean) ** 2 / variance) / np.sqrt(2.0 * np.pi * variance)


def _slopes(law, setting, cut):
    """Return the derivatives (n, 2) of the metric in the rates of both classes above the threshold."""
    from ..metrics.internal import Rates

    record, rates = setting.record, [law.tpr(cut), law.fpr(cut)]
    found = []
    for k in range(2):
        ends = []
        for side in (-1.0, 1.0):
            moved = [np.clip(rate + side * STEP * 0.1 * (j == k), 0.0, 1.0) for j, rate in enumerate(rates)]
            ends.append((moved[k], record.of_rates(Rates.of(*moved), setting.share)))
        (low, below), (high, above) = ends
        found.append((above - below) / (high - low))
    return np.nan_to_num(np.stack(found, axis=-1))
