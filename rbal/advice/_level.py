r"""The level of all predictions, from a few trained machines; differences of remedies stay those of the theory.

What the theory misjudges on real tables is, above all, one number: how far apart the classes are. So the level is
carried by that number too. A few machines are trained by cross-validation; each measured value says by which factor
:math:`e^u` the classes would have to be nearer or further apart for the theory to give it, at the size of the folds.
Before, u is about 0 with the error of the theory; the measured values have errors of their own. Both together give u
its mean and its error, weighed by inverse variances (by quadrature, since metrics bend near their ends), and everything
is then predicted with the classes moved apart by it: remedies, intervals, what more data bring. What the rows at hand
get wrong about the classes is in the moments and in the measured values alike. So training does not mend it: it is left
out of the weighing, and then added to the error.

How much is trained is a matter of rows and columns alone, not of the clock: the same on every machine.
"""

from typing import NamedTuple

import numpy as np

from ._prediction import Choice, at_threshold, collapse_bound, prediction_of

NOTHING = ("as is", "trained")
FOLDS, MOST_REPEATS = 5, 4
# Of work(): below two seconds of one core, a promise of the documentation; no study finds an optimum.
WORK_BUDGET = 6e8
EXTRA = 20  # columns that the other steps of an optimiser count for
LEAST_ROWS = 120  # that machines are trained on, however many columns there are
GRID = np.linspace(-2.0, 1.25, 14)  # of u, at which the theory is asked
N_FINE = 1301  # points of the quadrature over u
# Degrees of freedom of Student's law of u before anything is trained: there are tables on which the theory errs by far
# more than usual. Chosen by judgement; no study.
PRIOR_DEGREES_OF_FREEDOM = 4.0
# Largest part of the variance of measured values that counts as shared with the moments, since folds add to it. Chosen
# by judgement; no study.
MOST_SHARED = 0.75
# Error of the theory, in units of the metric, in the difference between the recommended machine and unmodified data,
# beside the error of u: PLAIN_ERRORS by their threshold (a moved one may be that of a collapsed machine), and
# TWIN_ERROR for the other threshold of the recommended machine. Chosen by judgement; no study. Stored predictions on
# tables for design (design-foreseen.csv; tests/advice/test_sources.py), after the level is known, still have errors of
# 0.023 with all positives and 0.037 with 25, for unmodified data against class weights.
PLAIN_ERRORS = {("as is", "trained"): 0.03, ("as is", "moved"): 0.06}
TWIN_ERROR = 0.015
# The same for an SVM with a kernel: root mean square, over the tables and C of the stored study `kernels`, of the error
# of the theory in the difference between unmodified data and class weights (tests/advice/test_sources.py).
KERNEL_ERROR = 0.062


class Level(NamedTuple):
    """What was trained, and what follows from it."""

    u: float  # logarithm of the factor by which the classes are moved apart
    error: float  # its standard deviation
    measured: dict  # from (strategy, threshold) to the metric, its standard error, and what the theory expected of it
    rows: int  # trained on
    fits: int
    residual_offset: dict  # from (strategy, threshold) to measured minus re-predicted score (sign: higher is better)


def work(rows, columns, fits):
    """Return the work of some fits of an SVM, up to a constant: scalar products of all pairs of rows.

    Parameters
    ----------
    rows, columns, fits : int

    Returns
    -------
    float
    """
    return fits * float(rows) ** 2 * (columns + EXTRA)


def plan(n, columns, machines):
    """Return on how many of n rows to train this many machines, and how often to repeat their folds."""
    fits = FOLDS * machines
    rows = int(np.sqrt(WORK_BUDGET / work(1.0 - 1.0 / FOLDS, columns, fits)))
    rows = min(n, max(rows, LEAST_ROWS))
    repeats = int(WORK_BUDGET / work((1.0 - 1.0 / FOLDS) * rows, columns, fits))
    return rows, min(max(repeats, 1), MOST_REPEATS)


class Trained(NamedTuple):
    """Machines that were trained on a part of the rows."""

    checked: object  # Checked: what was measured
    machines: dict  # from (strategy, threshold) to mixing and the C that they had
    rows: int
    fits: int


def measure(data, setting, machines, random_state):
    """Train machines, a dict from (strategy, threshold) to mixing and C, by cross-validation; return Trained.

    On a part of the rows, C is larger by as much as they are fewer, so that the ridge has the same weight: with C as it
    is, nearly all samples could be within the margin, where nothing holds the bias of an SVM.
    """
    from ._check import Validation, cross_validate

    n = data.n_pos + data.n_neg
    distinct = {(row[0] if mixing != mixing else mixing, C) for row, (mixing, C) in machines.items()}
    rows, repeats = plan(n, data.D, len(distinct))
    machines = {row: (mixing, C * n / rows) for row, (mixing, C) in machines.items()}
    checked = cross_validate(data, setting, machines, Validation(FOLDS, repeats, random_state, most_rows=rows))
    return Trained(checked, machines, rows, FOLDS * repeats * len(distinct))


def expected(moments, setting, machines, u):
    """Return the predicted metric of machines with the classes moved apart by exp(u), and which have collapsed.

    More is better. For a collapsed machine it is the middle between the prediction and the ``collapse_bound``.
    """
    moments, heights, collapsed = moments.apart(float(np.exp(u))), [], []
    for (strategy, threshold), (mixing, C) in machines.items():
        solution = prediction_of(moments, setting, strategy, Choice(C, mixing))
        value = float(at_threshold(solution.metrics, setting, threshold)[1])
        collapsed.append(bool(np.all(solution.phase == "COLLAPSED")))
        if collapsed[-1]:
            top = collapse_bound(moments, setting)[setting.thresholds.index(threshold)]
            value = 0.5 * (value + np.fmax(value, top))
        heights.append(value)
    return heights, collapsed


def update(prior, grid, predicted, value, noise, tails=PRIOR_DEGREES_OF_FREEDOM):
    """Return mean and standard deviation of u, from predicted metrics at some of its values, and measured metrics.

    Parameters
    ----------
    prior : float
        Standard deviation before, about 0 (of a normal u; the scale, if it has tails).
    grid : (g,) array
        Values of u, ascending.
    predicted : (g, k) array
        Expected values at these; where one is NaN, the measured value says nothing.
    value : (k,) array
    noise : (k, k) array
        Covariance of the measured values.
    tails : float
        Degrees of freedom of u before, by Student's law: there are tables, of rare indicators above all, on which the
        theory errs by far more than usual, and then the measured values are to be believed.

    Returns
    -------
    (float, float)
    """
    fine = np.linspace(grid[0], grid[-1], N_FINE)
    gaps = np.stack([np.interp(fine, grid, column) for column in predicted.T], axis=1) - value
    chi = np.einsum("gi,ij,gj->g", gaps, np.linalg.inv(noise), gaps)
    squared = (fine / prior) ** 2
    before = 0.5 * squared if np.isinf(tails) else 0.5 * (tails + 1.0) * np.log1p(squared / tails)
    log_p = -before - 0.5 * chi
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = float(p @ fine)
    return mean, float(np.sqrt(p @ (fine - mean) ** 2))


def weigh(model, sample, grid, predicted, value, noise):
    """Return mean and standard deviation of u, whose error has two parts: of the theory, and of the rows at hand.

    Parameters
    ----------
    model : float
        Scale of the error of the theory.
    sample : float
        Standard deviation of the error that the moments have from their rows. The measured values share it.
    grid, predicted, value, noise
        As in :func:`update`.

    Returns
    -------
    (float, float)
    """
    slope = np.nan_to_num([_slope(grid, column) for column in predicted.T])
    part = sample**2 * slope @ np.linalg.solve(noise, slope)  # shared part of the noise of the measured values
    shared = sample**2 * min(1.0, MOST_SHARED / part) * np.outer(slope, slope) if part > 0.0 else 0.0
    u, error = update(model, grid, predicted, value, noise - shared)
    return u, float(np.hypot(error, sample))


def _slope(grid, predicted):
    """Return the slope of a predicted metric (g,) in u about u = 0."""
    low, high = np.interp([-0.25, 0.25], grid, predicted)
    return (high - low) / 0.5


def level(data, moments, setting, machines, prior, random_state):
    """Train what the budget allows, and return the Level.

    Parameters
    ----------
    data : Data
    moments : Spectrum or Wide
    setting : Setting
    machines : dict
        From (strategy, threshold) to mixing and C: the recommended one first, then perhaps that of doing nothing.
    prior : function
        From the slope of the recommended metric in u to the errors of u before: of the theory, and of the rows.
    random_state : int

    Returns
    -------
    Level
    """
    trained = measure(data, setting, machines, random_state)
    checked, machines, size = trained.checked, trained.machines, (trained.rows, trained.fits)
    first = next(iter(machines))
    machines = {row: machine for row, machine in machines.items() if row == first or np.isfinite(checked.value[row])}
    smaller = setting._replace(n_pos=checked.n_pos, n_neg=checked.n_neg, chosen=())
    predicted, collapsed = map(np.array, zip(*(expected(moments, smaller, machines, u) for u in GRID), strict=True))
    good = np.isfinite(predicted).all(axis=1)
    if good.sum() < 3:
        return Level(0.0, float(np.hypot(*prior(np.nan))), {}, *size, {})
    grid, predicted = GRID[good], predicted[good]
    value = np.array([checked.value[row] for row in machines])
    noise = np.atleast_2d(np.cov(np.stack([checked.resampled[row] for row in machines])))
    # rows that are all answered alike have no scatter, and yet an error: that of one row
    noise += (0.5 * setting.unit / max(min(checked.n_pos, checked.n_neg), 1.0)) ** 2 * np.eye(len(value))
    own = np.diag([(setting.unit * _own_error(row, k, setting.kernel)) ** 2 for k, row in enumerate(machines)])
    slope = float(_slope(grid, predicted[:, 0]))
    if not np.isfinite(value[0]):  # what is recommended did not converge: the theory alone is left
        return Level(0.0, float(np.hypot(*prior(slope))), {}, *size, {})
    # what an optimiser leaves of a collapsed machine says nothing about the distance of the classes
    informative = ~collapsed[np.argmin(np.abs(GRID))]
    informative[0] = True
    noise_of = (noise + own)[np.ix_(informative, informative)]
    u, error = weigh(*prior(slope), grid, predicted[:, informative], value[informative], noise_of)
    at_0, at_u = (np.array([np.interp(at, grid, column) for column in predicted.T]) for at in (0.0, u))
    residual_offset = own @ np.linalg.solve(noise + own, value - at_u)
    errors, sign = np.sqrt(np.diag(noise)), setting.record.sign
    measured = {row: (sign * v, e, sign * p) for row, v, e, p in zip(machines, value, errors, at_0, strict=True)}
    return Level(u, error, measured, *size, dict(zip(machines, residual_offset.tolist(), strict=True)))


def _own_error(row, k, kernel):
    """Return the error of the theory for the k-th machine in addition to that of u, which refers to the first one."""
    return 0.0 if k == 0 else PLAIN_ERRORS.get(row, TWIN_ERROR) if kernel == "linear" else KERNEL_ERROR
