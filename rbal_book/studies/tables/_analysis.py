"""Analyse the results of the study on tables: stored ones, or those of a run of your own."""

import numpy as np
import pandas as pd
from scipy.special import ndtri

from .. import _compare
from .._stored import stored
from ._sources import source_of
from ._trials import ERRORS, FOLD, LEVEL, PLACES, REMEDIES, ROWS, SCARCE, label_of

DIGIT = 1e-4  # last digit that is stored: differences below it do not count


def load(name, folder=None):
    """Return the results "measured", "foreseen" or "widened", one row per fold; folder as for ``stored``."""
    return stored(f"tables/{name}", folder).set_index(FOLD)


def listed(folder=None):
    """Return the list of the tables, indexed by name; folder as for ``stored``."""
    return stored("tables/listed", folder).set_index("table")


def remedies(measured, foreseen):
    """Return the balanced accuracy of every remedy and of the advised one, per fold, from results of :func:`load`."""
    found = measured[list(REMEDIES)].copy()
    found["best mix"] = foreseen["measured, trained"].fillna(found["oversampling"])
    found["best mix, tuned"] = foreseen["measured, moved"].fillna(found["oversampling, tuned"])
    column = [found.columns.get_loc(label_of(*ROWS[row])) for row in foreseen["advised"].astype(int)]
    found["advice"] = found.to_numpy()[np.arange(len(found)), column]
    return found


def centre(found):
    """Return the mean of each column over the folds, and its standard error: two frames with one row per table."""
    parts = found.groupby(level=["table", "minority"], sort=False)
    return parts.mean(), parts.std().div(np.sqrt(parts.size()), axis=0)


def holds(predicted, low, high, measured, error=0.0):
    """Return which intervals hold the measured values, which have a standard error; all of shape (n,)."""
    side = np.where(measured > predicted, high - predicted, predicted - low)
    return np.hypot(side, ndtri(0.5 + 0.5 * LEVEL) * error) + DIGIT >= np.abs(measured - predicted)


def covered(found, foreseen):
    """Return which intervals hold the mean of their table, one row per fold and remedy: as advised, or of noise alone.

    ``told`` and ``noise`` allow for the standard error of that mean, ``strictly`` does not.
    """
    means, errors = (part.loc[foreseen.index.droplevel(["repeat", "fold"])] for part in centre(found))
    parts = []
    for label in (label_of(*row) for row in ROWS):
        at, mean, error = foreseen[label], means[label].to_numpy(), errors[label].to_numpy()
        low, high = foreseen[f"{label}, low"], foreseen[f"{label}, high"]
        reach = ndtri(0.5 + 0.5 * LEVEL) * foreseen[f"{label}, scatter"]
        columns = {"remedy": label, "width": high - low, "width of noise": 2.0 * reach}
        columns |= {"told": holds(at, low, high, mean, error), "strictly": holds(at, low, high, mean)}
        columns["noise"] = holds(at, at - reach, at + reach, mean, error)
        parts.append(pd.DataFrame(columns, foreseen.index))
    return pd.concat(parts)


def model_error(measured, widened):
    """Find the size of the theory's error at which the share of intervals that hold the measured value is their level.

    Returns pairs (rows of the rarer class, size), for few positives and for all.
    """
    return [
        _model_error(measured, widened.xs(minority, level="minority", drop_level=False)) for minority in (SCARCE, 0)
    ]


def _model_error(measured, widened):
    rows = measured.loc[widened.index, "n_pos"].groupby(level="table").mean().median()
    means, errors = (part.loc[widened.index.droplevel(["repeat", "fold"])] for part in centre(measured))
    sizes = np.linspace(ERRORS[0], ERRORS[-1], 121)
    shares = [
        np.mean([
            holds(widened[label], *_between(widened, label, size), means[label].to_numpy(), errors[label].to_numpy())
            for label in (label_of(*row) for row in PLACES)
        ])
        for size in sizes
    ]  # fmt: skip
    return rows, float(np.interp(LEVEL, shares, sizes))


def _between(widened, label, size):
    """Return the ends of the intervals for any size, interpolated between those that were tried."""
    k = min(int(np.searchsorted(ERRORS, size, side="right")), len(ERRORS) - 1)
    part = (size - ERRORS[k - 1]) / (ERRORS[k] - ERRORS[k - 1])
    ends = ([widened[f"{label}, {end} {error:g}"] for error in ERRORS[k - 1 : k + 1]] for end in ("low", "high"))
    return [(1.0 - part) * left + part * right for left, right in ends]


def regrets(found):
    """Return how far each rule is behind the best one on every table, and its standard error over the folds."""
    rows = []
    for (table, minority), part in found.groupby(level=["table", "minority"], sort=False):
        best = part[part.mean().idxmax()]
        for rule in part:
            behind = best - part[rule]
            rows.append((table, minority, rule, behind.mean(), behind.std() / np.sqrt(len(part))))
    return pd.DataFrame(rows, columns=["table", "minority", "rule", "regret", "error"])


def versus(means, rule, others):
    """Test what a rule gains over each of several others, in pairs, with errors clustered by source; one row each.

    ``means`` has one row per table and one column per rule. ``p_holm`` is corrected for the number of the others.
    ``least`` and ``most`` are the mean gain without the source that favours the rule most, and least; ``without`` and
    ``without it`` name these sources. ``worst`` is the smallest gain on any table.
    """
    sources = means.index.get_level_values("table").map(source_of)
    rows = {}
    for other in others:
        gain = means[rule] - means[other]
        without = pd.Series({name: gain[sources != name].mean() for name in sources.unique()})
        rows[other] = {
            **_compare.clustered(gain, sources)._asdict(),
            "least": without.min(),
            "without": without.idxmin(),
            "most": without.max(),
            "without it": without.idxmax(),
            "worst": gain.min(),
        }
    table = pd.DataFrame.from_dict(rows, orient="index")
    table.insert(table.columns.get_loc("p") + 1, "p_holm", _compare.holm(table["p"].to_numpy(float)))
    return table
