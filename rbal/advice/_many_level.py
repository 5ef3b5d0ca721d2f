"""The level of macro recall, from a few trained machines, as ``_level.py`` has it for two classes.

Of up to five classes, what is recommended, the data as they are and class weights are trained by cross-validation.
Each measured macro recall says by which factor exp(u) the centres of the classes would have to be further apart for the
theory to give it, at the size of the folds. Outliers, above all, make the theory err by another factor for each remedy,
so that what was trained has a factor of its own, and all others that of the recommended one.
"""

from typing import NamedTuple

import numpy as np

from ..strategies import REMEDIES
from ._level import FOLDS, plan, weigh
from ._many_predict import candidates, drawn, rescaled, solved

GRID = np.array([-0.9, -0.4, 0.0, 0.4, 0.9])  # of u, at which the theory is asked
PLAIN = ("as is", "plain")  # doing nothing, with the C that it has
DRAWN, MOST_NOISE = 8, 0.5  # draws of the centres that tell their noise, and most that it is taken for
KEPT = 20  # rows of each class that training on a part keeps, if there are so many


class ManyLevel(NamedTuple):
    """What was trained, and what follows from it."""

    u: dict  # from (strategy, threshold) to the logarithm of the factor by which the centres are moved apart
    error: dict  # to its standard deviation
    measured: dict  # to macro recall, its standard error, and what the theory expected of it
    rows: int  # trained on
    fits: int
    plain: float  # C of doing nothing


def to_train(rows, best, plain):
    """Return the candidates to train: the recommended one, class weights, and doing nothing (None if it fails)."""
    weighted = next(name for name, remedy in REMEDIES.items() if remedy.class_weight), "trained"
    chosen = {row: rows[row] for row in dict.fromkeys([best, weighted]) if row in rows}
    return chosen if plain is None else chosen | {PLAIN: plain}


def before(mixture, counts, error, random_state):
    """Return both errors of u before training: that of the theory, and the noise of the centres."""
    rng, quiet = np.random.default_rng(random_state), mixture.debiased(counts)
    others = [quiet, *drawn(mixture, counts, DRAWN, 0.0, rng)]
    far = np.array([np.linalg.norm(other.means - other.means.mean(axis=0)) for other in others])
    # classes in one place have no distance whose noise could be told
    noise = MOST_NOISE if far[0] < 0.1 * far.max() else np.std(np.log(np.maximum(far / far[0], 0.1)))
    return max(error, 1e-3), float(min(noise, MOST_NOISE))


def part(y, rows, rng):
    """Return indices of about so many rows of classes y (n,), in proportion, but at least KEPT of each class."""
    share, sizes = rows / len(y), np.bincount(y)
    take = np.minimum(sizes, np.maximum(np.rint(share * sizes).astype(int), KEPT))
    chosen = [rng.permutation(np.flatnonzero(y == k))[:count] for k, count in enumerate(take)]
    return np.sort(np.concatenate(chosen))


def trained(data, mixture, setting, machines, prior, random_state):
    """Train some candidates, and return the ManyLevel.

    Parameters
    ----------
    data : ManyData
    mixture : Mixture
        The classes as the theory has them.
    setting : ManySetting
    machines : dict
        The candidates to train.
    prior : (float, float)
        Errors of u before: of the theory, and of the rows.
    random_state : int

    Returns
    -------
    ManyLevel
    """
    from ._many_pipeline import cross_validated

    T = len(data.classes)
    rows, repeats = plan(len(data.X), data.D, T * len(machines))
    chosen = part(data.y, rows, np.random.default_rng(random_state))
    X, y = data.X[chosen], data.y[chosen]
    # on a part of the rows, C is larger by as much as they are fewer: the ridge keeps its weight
    more = np.sum(setting.sizes) / len(y)
    at = {row: c._replace(C=c.C * more) for row, c in machines.items()}
    recall, error, share = cross_validated((X, y), setting.loss, at, FOLDS, repeats, random_state)
    smaller = setting._replace(sizes=tuple((share * np.bincount(y)).tolist()))
    found = ManyLevel(
        {}, {}, {}, len(y), FOLDS * repeats * T * len(at), machines[PLAIN].C if PLAIN in machines else np.nan
    )
    for row, c in at.items():
        if not np.isfinite(recall[row]):  # its fits did not converge
            continue
        told = np.array([_expected(rescaled(mixture, u), smaller, c) for u in GRID])
        good = np.isfinite(told)
        if good.sum() < 3:
            continue
        noise = np.array([[error[row] ** 2 + (0.5 / (T * np.bincount(y).min())) ** 2]])
        found.u[row], found.error[row] = weigh(*prior, GRID[good], told[good, None], np.array([recall[row]]), noise)
        found.measured[row] = recall[row], error[row], float(np.interp(0.0, GRID[good], told[good]))
    return found


def _expected(mixture, setting, c):
    """Return the macro recall of a candidate on other classes, with its thresholds; NaN where it fails."""
    solution = solved(mixture, setting, c.strategy, c.C, None if np.isnan(c.mixing) else c.mixing)
    return np.nan if solution is None else solution.metrics.ba(c.offsets)


def moved(rows, found, mixture, setting, best):
    """Return the candidates of all rows of the table after training: each by its own level, or by that of the best."""
    return {
        row: after(c, row if row in found.u else PLAIN if _is_plain(c, found) else best, found, mixture, setting)
        for row, c in rows.items()
    }


def after(c, row, found, mixture, setting):
    """Return a candidate, if there is one, with the classes as far apart as the level of a row says."""
    if c is None or row not in found.u:
        return c
    mixing = None if np.isnan(c.mixing) else c.mixing
    other = rescaled(mixture, found.u[row])
    again = candidates(other, setting, c.strategy, c.C, mixing, moved=c.threshold == "moved")
    return next((new for new in again if new.threshold == c.threshold), c)


def _is_plain(c, found):
    """Return whether a candidate is the machine of doing nothing."""
    return c.strategy == "as is" and c.threshold == "trained" and c.C == found.plain
