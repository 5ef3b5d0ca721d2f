r"""The level, from a few trained machines; the differences between remedies stay those of the theory.

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

from ._cuts import at_threshold
from ._remedies import Choice, reach, solve_row

NOTHING = ("as is", "trained")
FOLDS, MOST_REPEATS = 5, 4
BUDGET = 6e8  # of work(): below two seconds of one core
EXTRA = 20  # columns that the other steps of an optimiser count for
LEAST_ROWS = 120  # that machines are trained on, however many columns there are
GRID = np.linspace(-2.0, 1.25, 14)  # of u, at which the theory is asked
FINE = np.linspace(GRID[0], GRID[-1], 1301)
TAILS = 4.0  # of the law of u before anything is trained: degrees of freedom
MOST_SHARED = 0.75  # of the variance of measured values that counts as shared with the moments: folds add to it
# error of the theory beside that of u, in the difference between the recommended machine and others; a moved threshold
# of data as they are may be that of a collapsed machine
OWN = {("as is", "trained"): 0.03, ("as is", "moved"): 0.06}
OF_TWIN = 0.015  # the same for the other threshold of the recommended machine
# The same for an SVM with a kernel: root mean square, over the tables and C of the study `kernels`, of the error of the
# theory in the difference between unmodified data and class weights.
OF_KERNELS = 0.062


class Level(NamedTuple):
    """What was trained, and what follows from it."""

    u: float  # logarithm of the factor by which the classes are moved apart
    error: float  # its standard deviation
    measured: dict  # from (strategy, threshold) to the metric, its standard error, and what the theory expected of it
    rows: int  # trained on
    fits: int
    beside: dict  # from (strategy, threshold) to what a machine has beside that, where more is better


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
    rows = int(np.sqrt(BUDGET / work(1.0 - 1.0 / FOLDS, columns, fits)))
    rows = min(n, max(rows, LEAST_ROWS))
    repeats = int(BUDGET / work((1.0 - 1.0 / FOLDS) * rows, columns, fits))
    return rows, min(max(repeats, 1), MOST_REPEATS)


def measure(data, setting, machines, random_state):
    """Train machines, a dict from (strategy, threshold) to mixing and C; return what was measured, and of what.

    On a part of the rows, C is larger by as much as they are fewer, so that the ridge has the same weight: with C as it
    is, nearly all samples could be within the margin, where nothing holds the bias of an SVM.

    Returns
    -------
    (Checked, dict, int, int)
        What was measured, the machines with the C that they had, the number of rows and of fits.
    """
    from ._check import cross_validate

    n = data.n_pos + data.n_neg
    distinct = {(row[0] if mixing != mixing else mixing, C) for row, (mixing, C) in machines.items()}
    rows, repeats = plan(n, data.D, len(distinct))
    machines = {row: (mixing, C * n / rows) for row, (mixing, C) in machines.items()}
    found = cross_validate(
        data, setting, machines, folds=FOLDS, repeats=repeats, n_jobs=1, random_state=random_state, progress=False,
        most=rows,
    )  # fmt: skip
    return found, machines, rows, FOLDS * repeats * len(distinct)


def expected(moments, setting, machines, u):
    """Return what the theory expects of machines with the classes moved apart by exp(u), and which have collapsed.

    More is better. Of a collapsed machine that is the middle of what an optimiser may leave of it.
    """
    moments, found, collapsed = moments.apart(float(np.exp(u))), [], []
    for (strategy, threshold), (mixing, C) in machines.items():
        solution = solve_row(moments, setting, strategy, Choice(C, mixing))
        value = float(at_threshold(solution.metrics, setting, threshold)[1])
        collapsed.append(bool(np.all(solution.phase == "COLLAPSED")))
        if collapsed[-1]:
            top = reach(moments, setting)[setting.thresholds.index(threshold)]
            value = 0.5 * (value + np.fmax(value, top))
        found.append(value)
    return found, collapsed


def update(prior, grid, told, value, noise, tails=TAILS):
    """Return mean and standard deviation of u, from what the theory expects at some of its values, and measured ones.

    Parameters
    ----------
    prior : float
        Standard deviation before, about 0 (of a normal u; the scale, if it has tails).
    grid : (g,) array
        Values of u, ascending.
    told : (g, k) array
        Expected values there; where one is NaN, the measured value says nothing.
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
    fine = np.linspace(grid[0], grid[-1], len(FINE))
    gaps = np.stack([np.interp(fine, grid, column) for column in told.T], axis=1) - value
    chi = np.einsum("gi,ij,gj->g", gaps, np.linalg.inv(noise), gaps)
    squared = (fine / prior) ** 2
    before = 0.5 * squared if np.isinf(tails) else 0.5 * (tails + 1.0) * np.log1p(squared / tails)
    log_p = -before - 0.5 * chi
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = float(p @ fine)
    return mean, float(np.sqrt(p @ (fine - mean) ** 2))


def weigh(model, sample, grid, told, value, noise):
    """Return mean and standard deviation of u, whose error has two parts: of the theory, and of the rows at hand.

    Parameters
    ----------
    model : float
        Scale of the error of the theory.
    sample : float
        Standard deviation of the error that the moments have from their rows. The measured values share it.
    grid, told, value, noise
        As in :func:`update`.

    Returns
    -------
    (float, float)
    """
    slope = np.array([np.diff(np.interp([-0.25, 0.25], grid, column))[0] for column in told.T]) / 0.5
    slope = np.nan_to_num(slope)
    part = sample**2 * slope @ np.linalg.solve(noise, slope)  # of the noise of the measured values that is shared
    shared = sample**2 * min(1.0, MOST_SHARED / part) * np.outer(slope, slope) if part > 0.0 else 0.0
    u, error = update(model, grid, told, value, noise - shared)
    return u, float(np.hypot(error, sample))


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
    found, machines, rows, fits = measure(data, setting, machines, random_state)
    first = next(iter(machines))
    machines = {row: how for row, how in machines.items() if row == first or np.isfinite(found.value[row])}
    smaller = setting._replace(n_pos=found.n_pos, n_neg=found.n_neg, chosen=())
    told, collapsed = map(np.array, zip(*(expected(moments, smaller, machines, u) for u in GRID), strict=True))
    good = np.isfinite(told).all(axis=1)
    if good.sum() < 3:
        return Level(0.0, float(np.hypot(*prior(np.nan))), {}, rows, fits, {})
    grid, told = GRID[good], told[good]
    value = np.array([found.value[row] for row in machines])
    noise = np.atleast_2d(np.cov(np.stack([found.resampled[row] for row in machines])))
    # rows that are all answered alike have no scatter, and yet an error: that of one row
    noise += (0.5 * setting.unit / max(min(found.n_pos, found.n_neg), 1.0)) ** 2 * np.eye(len(value))
    own = np.diag([(setting.unit * _own(row, k, setting.kernel)) ** 2 for k, row in enumerate(machines)])
    slope = float(np.diff(np.interp([-0.25, 0.25], grid, told[:, 0]))[0]) / 0.5
    if not np.isfinite(value[0]):  # what is recommended did not converge: the theory alone is left
        return Level(0.0, float(np.hypot(*prior(slope))), {}, rows, fits, {})
    # what an optimiser leaves of a collapsed machine says nothing about the distance of the classes
    says = ~collapsed[np.argmin(np.abs(GRID))]
    says[0] = True
    u, error = weigh(*prior(slope), grid, told[:, says], value[says], (noise + own)[np.ix_(says, says)])
    here, there = (np.array([np.interp(at, grid, column) for column in told.T]) for at in (0.0, u))
    beside = own @ np.linalg.solve(noise + own, value - there)
    errors, sign = np.sqrt(np.diag(noise)), setting.record.sign
    said = {row: (sign * v, e, sign * h) for row, v, e, h in zip(machines, value, errors, here, strict=True)}
    return Level(u, error, said, rows, fits, dict(zip(machines, beside.tolist(), strict=True)))


def _own(row, k, kernel):
    """Return the error of the theory for the k-th machine beside that of u, which is counted from the first."""
    return 0.0 if k == 0 else OWN.get(row, OF_TWIN) if kernel == "linear" else OF_KERNELS
