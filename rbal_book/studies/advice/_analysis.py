"""From the results of the second edition to its tables, its tests and the goals that were set.

Everything here takes frames with one row per split, indexed as those of the study on tables, so that synthetic results
with known answers go the same way as real ones.
"""

import numpy as np
import pandas as pd
from scipy.stats import t

from rbal.strategies import REMEDIES as STRATEGIES

from .. import _compare
from .._stored import stored
from ..tables import FOLD, SCARCE, centre, holds, regrets, source_of, versus
from ..tables._trials import label_of
from ._methods import GRID, GRIDS, OTHERS, RULES
from ._trials import FORESEEN

SETTINGS = {"all positives": 0, "25 positives": SCARCE}
REMEDIES = [label_of(*row) for row in FORESEEN]
CONFIDENCES = ("low", "moderate", "high")  # as they are stored, from 0
INFERIOR = 0.01  # a rule that is behind another by less is not inferior
ALPHA = 0.05  # of the primary hypotheses together
WANTED = {  # the goals, as they were set
    "error": {0: 0.018, SCARCE: 0.028},
    "held": (0.87, 0.95),
    "width": 0.5,  # in units of the first edition's
    "behind": -0.003,
    "cpu": 20.0,
    "gain": 0.015,
    "recall": 0.03,
}


def load(role, kind="compared", folder=None):
    """Return the results of one role, "design" or "judge", and one kind of trial, one row per split."""
    return stored(f"advice/{role}-{kind}", folder).set_index(FOLD)


def load_many(role, folder=None):
    """Return the results on tables of many classes of a role, one row per split; None if there are none."""
    try:
        return stored(f"advice/{role}-many", folder)
    except ValueError:
        return None


def metric(results, name="ba"):
    """Return one metric ("ba", "f1", "auprc", "log_loss", "cpu") of every rule or machine that has it."""
    ending = f": {name}"
    return results[[c for c in results if c.endswith(ending)]].rename(columns=lambda c: c.removesuffix(ending))


def means(found, minority):
    """Return the mean over the splits of each table in one setting, indexed by table."""
    return found.xs(minority, level="minority").groupby(level="table", sort=False).mean()


def compared(results, rule="advice", others=OTHERS, name="ba"):
    """Return what a rule gains over others, in pairs, in both settings (:func:`~rbal_book.studies.tables.versus`)."""
    found = metric(results, name)
    others = [other for other in others if other in found and other != rule]
    return pd.concat(
        {setting: versus(means(found, minority), rule, others) for setting, minority in SETTINGS.items()},
        names=["setting", "rule"],
    )


# ---- predictions


def errors(foreseen, first, measured):
    """Return the mean absolute error over remedies, indexed by (table, minority), of ``foreseen`` and of ``first``.

    Parameters
    ----------
    foreseen, first : DataFrame
        Predictions of this edition and of the first one; only splits that both have count.
    measured : DataFrame
        What the first edition measured, on all of its folds: their mean is what a prediction is held to.

    Returns
    -------
    DataFrame
        Columns ``second`` and ``first``.
    """
    both = foreseen.index.intersection(first.index)
    truth = centre(measured[REMEDIES])[0]
    parts = {}
    for name, told in (("second", foreseen), ("first", first)):
        mean = centre(told.loc[both, REMEDIES])[0]
        parts[name] = (mean - truth.loc[mean.index]).abs().mean(axis=1)
    return pd.DataFrame(parts)


def intervals(foreseen, measured):
    """Return which intervals hold the measured mean of their table, within its error, and their widths: a row each."""
    mean, error = (part.loc[foreseen.index.droplevel(["repeat", "fold"])] for part in centre(measured[REMEDIES]))
    parts = []
    for name in REMEDIES:
        told, low, high = (foreseen[c] for c in (name, f"{name}, low", f"{name}, high"))
        held = holds(told, low, high, mean[name].to_numpy(), error[name].to_numpy())
        parts.append(pd.DataFrame({"remedy": name, "held": held, "width": high - low}, foreseen.index))
    return pd.concat(parts)


def predictions(foreseen, measured):
    """Return what was predicted and measured, mean over splits and folds, a row per table, minority and remedy."""
    told, truth = centre(foreseen[REMEDIES])[0], centre(measured[REMEDIES])[0]
    parts = [told.stack().rename("predicted"), truth.loc[told.index].stack().rename("measured")]
    return pd.concat(parts, axis=1).rename_axis(["table", "minority", "remedy"])


def recommended(results, rule="advice"):
    """Return predicted and measured balanced accuracy of what was recommended, and its interval, a row per split."""
    part = results[[f"{rule}: {name}" for name in ("predicted", "low", "high", "ba")]]
    return part.set_axis(["predicted", "low", "high", "measured"], axis=1)


def confidences(results, rule="advice"):
    """Return what was said and what was measured of the recommended classifier, for each step of the confidence.

    Splits of one table with the same confidence count as one, since a single test part has few positives.

    Returns
    -------
    DataFrame
        Index (setting, confidence), from high to low. Columns ``tables`` and ``splits``; ``half`` of the interval;
        ``error``, the mean distance between predicted and measured value; ``noise``, the part of it that tests of this
        size would have if all predictions were right: the mean distance of a normal variable whose deviation is the
        standard error of the measured mean; and ``worst``, the largest distance.
    """
    told = recommended(results, rule)
    half = 0.5 * (told["high"] - told["low"])
    step = results[f"{rule}: confidence"].map(dict(enumerate(CONFIDENCES)))
    told = told.assign(half=half, confidence=step)
    parts = told.groupby(["table", "minority", "confidence"])
    mean, size = parts.mean(), parts.size()
    own = told["measured"].groupby(level=["table", "minority"]).std()  # of single splits
    se = own.reindex(mean.index.droplevel("confidence")).to_numpy() / np.sqrt(size)
    mean = mean.assign(splits=size, error=(mean["predicted"] - mean["measured"]).abs(), noise=np.sqrt(2.0 / np.pi) * se)
    rows = {}
    for setting, minority in SETTINGS.items():
        part = mean.xs(minority, level="minority")
        for name in reversed(CONFIDENCES):
            one = part[part.index.get_level_values("confidence") == name]
            sums = {"tables": len(one), "splits": int(one["splits"].sum())}
            averages = one[["half", "error", "noise"]].mean().to_dict()
            rows[setting, name] = sums | averages | {"worst": one["error"].max()}
    table = pd.DataFrame(list(rows.values()), pd.MultiIndex.from_tuples(rows, names=["setting", "confidence"]))
    return table.astype({"tables": int, "splits": int})


def choices(results, rule="advice"):
    """Return how often each remedy, threshold and kernel was recommended: shares of the splits of each setting."""
    names = list(STRATEGIES)
    strategy = results[f"{rule}: remedy"].map(lambda k: names[int(k)] if k == k else "failed")
    moved = results[f"{rule}: moved"].map({0.0: "trained", 1.0: "moved"})
    kernel = results[f"{rule}: curved"].map({0.0: "linear", 1.0: "RBF"})
    keys = pd.DataFrame({"kernel": kernel, "strategy": strategy, "threshold": moved})
    parts = {name: keys.xs(m, level="minority").value_counts(normalize=True) for name, m in SETTINGS.items()}
    return pd.DataFrame(parts).fillna(0.0)


def seconds(results):
    """Return CPU seconds of the grid search and of the parts of the advice, mean over splits, and the ratio of sums."""
    spent = metric(results, "cpu")
    parts = {"grid search": spent[GRID], "advice": spent["advice"], "advising": metric(results, "choosing")["advice"]}
    parts["training"] = parts["advice"] - parts["advising"]
    parts["advice, linear"] = spent["advice, linear"]
    table = pd.DataFrame(parts).dropna()
    rows = {name: table.xs(m, level="minority").mean() for name, m in SETTINGS.items()}
    table = pd.DataFrame(rows).T
    return table.assign(ratio=table["grid search"] / table["advice"])


# ---- hypotheses and goals


def not_inferior(gain, sources, margin=INFERIOR):
    """Return the one-sided p-value of the hypothesis that a rule is behind by the margin, with sources as groups."""
    found = _compare.clustered(gain, sources)
    if found.se == 0.0:
        return 0.0 if found.mean > -margin else 1.0
    return float(t.sf((found.mean + margin) / found.se, found.sources - 1))


def primary(results, off):
    """Test the five primary hypotheses; ``off`` is from :func:`errors`. One row each, corrected by Holm's method.

    Returns
    -------
    DataFrame
        Columns ``mean`` (of the differences between tables), its clustered ``se``, ``p``, ``p_holm`` and ``shown``.
    """
    ba, rows = metric(results), {}
    few = means(ba, SCARCE)
    rows["25 positives: advice above weights at C = 1"] = _tested(few["advice"] - few["weights"])
    for setting, minority in SETTINGS.items():
        mean = means(ba, minority)
        gain = mean["advice"] - mean[hardest(mean)]
        found = _tested(gain)
        found["p"] = not_inferior(gain, _sources(gain))
        rows[f"{setting}: advice not inferior to grid search"] = found
    for setting, minority in SETTINGS.items():
        part = off.xs(minority, level="minority")
        rows[f"{setting}: predictions nearer than in the first edition"] = _tested(part["first"] - part["second"])
    table = pd.DataFrame.from_dict(rows, orient="index")
    table["p_holm"] = _compare.holm(table["p"].to_numpy(float))
    table["shown"] = (table["p_holm"] < ALPHA) & ((table["mean"] > 0.0) | table.index.str.contains("not inferior"))
    return table


def hardest(mean):
    """Return the variant of the grid search with the highest mean: the one to be held to."""
    return mean[list(GRIDS)].mean().idxmax()


def _tested(gain):
    found = _compare.clustered(gain, _sources(gain))
    return {"mean": found.mean, "se": found.se, "low": found.low, "high": found.high, "p": found.p}


def _sources(gain):
    return gain.index.get_level_values("table").map(source_of)


def goals(results, foreseen, first, measured, many=None):
    """Judge every goal that was set.

    Parameters
    ----------
    results : DataFrame
        Of the trial ``compared``.
    foreseen, first, measured : DataFrame
        As for :func:`errors`; ``first`` has intervals too.
    many : DataFrame, optional
        Of the trial on many classes.

    Returns
    -------
    DataFrame
        One row per goal and setting: ``value``, ``wanted`` in words, and whether it is ``met``.
    """
    off = errors(foreseen, first, measured)
    shown = bool(primary(results, off)["shown"].iloc[0])
    both = foreseen.index.intersection(first.index)
    told, before = (intervals(one.loc[both], measured) for one in (foreseen, first))
    rows = []
    for setting, minority in SETTINGS.items():
        parts = (part.xs(minority, level="minority") for part in (off, told, before))
        rows += [(goal, setting, *rest) for goal, *rest in _of_predictions(*parts, WANTED["error"][minority])]
        rows += [(goal, setting, *rest) for goal, *rest in _of_choices(results, minority)]
    few = means(metric(results), SCARCE)
    gain = (few["advice"] - few["weights"]).mean()
    met = gain >= WANTED["gain"] and shown
    rows.append(("advice less weights at C = 1", "25 positives", gain, f"≥ {WANTED['gain']}, significantly", met))
    if many is not None:
        rows.append(_most("mean |error| of macro recall", recall_errors(many).mean(), WANTED["recall"], "many classes"))
    table = pd.DataFrame(rows, columns=["goal", "setting", "value", "wanted", "met"])
    return table.astype({"met": bool, "value": float})


def _of_predictions(off, told, before, most):
    """Return goal, value, what is wanted, and whether it is met, of predictions in one setting."""
    (low, high), held = WANTED["held"], told["held"].mean()
    ratio = told["width"].median() / before["width"].median()
    return [
        _most("mean |error| of predictions", off["second"].mean(), most),
        ("intervals that hold", held, f"{low} to {high}", low <= held <= high),
        _most("width of intervals over that of the first edition", ratio, WANTED["width"]),
    ]


def _of_choices(results, minority):
    """Return goal, value, what is wanted, and whether it is met, of what was chosen in one setting."""
    ba = metric(results)
    mean, behind = means(ba, minority), mean_regrets(ba, minority)
    grid, best = hardest(mean), behind[RULES].idxmin()
    spent = metric(results, "cpu").xs(minority, level="minority")[[GRID, "advice"]].dropna().sum()
    return [
        _least("advice less the best grid search", (mean["advice"] - mean[grid]).mean(), WANTED["behind"]),
        _least("CPU of grid search over that of advice", spent[GRID] / spent["advice"], WANTED["cpu"]),
        ("regret", behind["advice"], f"≤ {behind[best]:.4f}, of “{best}”", behind["advice"] <= behind[best]),
    ]


def mean_regrets(ba, minority):
    """Return the mean over tables of how far each rule is behind the best one; the forest is outside of these."""
    found = regrets(ba[[*RULES, *GRIDS, "advice"]].xs(minority, level="minority", drop_level=False))
    return found.groupby("rule", sort=False)["regret"].mean()


def recall_errors(many):
    """Return the absolute error of the predicted macro recall, a mean over rules for each table of many classes."""
    mean = many.groupby("table").mean()
    rules = [c.removesuffix(": predicted") for c in mean if c.endswith(": predicted")]
    return np.abs(pd.DataFrame({r: mean[f"{r}: predicted"] - mean[f"{r}: recall"] for r in rules})).mean(axis=1)


def _most(goal, value, limit, *setting):
    return (goal, *setting, value, f"≤ {limit}", value <= limit)


def _least(goal, value, limit):
    return goal, value, f"≥ {limit}", value >= limit
