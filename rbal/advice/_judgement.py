"""Turn predicted and measured values into a recommendation, and say how far to trust it."""

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

from .._support.warnings import convergence_warning
from ..moments.internal import ARGUMENTS, evenly
from ._choice import NEGLIGIBLE, TRUST, Selected, places, select, simplest
from ._diagnose import notes
from ._level import NOTHING, expected, level
from ._remedies import Values, designs, evaluate, reach, solve_all
from ._widths import Wide

# Rows of the rarer class, and the standard deviation of the logarithm of the factor by which the theory misjudges the
# distance between the classes of real tables. It is larger for few rows, since the covariance is then that of the other
# class. With these sizes, found by the book's study of tables (rbal_book.studies.tables.model_error), 90 % of the
# intervals hold what is measured on its design tables. The judging tables had no part in it.
MODEL_ERROR = {25: 0.33, 142: 0.20}
OF_WIDTHS = {25: 0.15, 142: 0.12}  # the same with a width for each class
# The same for an RBF kernel: root mean square of the log-ratio of trained to predicted distances, class weights, over
# the tables and C of the study `kernels`, for tables with fewer and with more than 100 positives, at their medians.
OF_KERNELS = {62: 0.26, 166: 0.20}
# Beside that, after training: the error of the theory in the differences between remedies, in units of the metric.
OF_ROWS = {25: 0.02, 142: 0.005}
MOST_NOISE = 0.5  # of log-distances, where the metric hardly depends on them
RUNGS = ndtri((np.arange(16) + 0.5) / 16)  # quantiles of the distance, after training
SURE = 0.07, 0.035  # half an interval, up to which confidence is moderate, and high
OFF = 0.03  # a prediction that misses the check by more than this and by more than three standard errors disagrees
SHARED = 2.0  # standard errors that the mean over all predictions may be off by: one test, so two are enough
STEPS = ("low", "moderate", "high")


class How(NamedTuple):
    """How sure a prediction is to be."""

    draws: int
    level: float
    model_error: float | None
    train: str  # "none", "little" or "check"


class Seen(NamedTuple):
    """What is known of the machine that was selected: by the theory, and by training a little."""

    selected: Selected
    moments: object  # moved apart as the level says
    at: Values  # of all designs, at the level
    others: np.ndarray  # (draws, thresholds, designs) values with the noise of the sample alone
    apart: list  # moments with the error of the level or of the theory, behind the intervals
    exact: bool  # whether the theory is taken to have no error, so that ``others`` are behind the intervals
    found: object  # the Level, or None
    nothing: float  # prediction for doing nothing

    @property
    def value(self):
        """What is predicted for the recommended remedy, where more is better."""
        return self.at.value[places(self.selected.setting, self.at.value)[self.selected.best]]


def predict(data, setting, wanted, how, random_state):
    """Return the fields of an Advice that follow from the table and, if anything is trained, from a few machines."""
    selected = select(data, setting, wanted, random_state)
    seen = _seen(data, selected, how, setting.C, random_state)
    if selected.linear is not None and how.train == "little":
        # kernels do not share the error of the theory, so that the level of both has to be seen
        other = _seen(data, selected.linear, how, setting.C, random_state)
        seen = seen if seen.value - other.value > TRUST * setting.unit else other
    return _fields(data, seen, wanted, how, random_state)


def _seen(data, selected, how, plain, random_state):
    """Return what is Seen of a machine that was selected; ``plain`` is the C of doing nothing."""
    machine, moments, setting, at, candidates, best, nothing, _ = selected
    at = _of_collapsed(at, moments, setting)
    error = how.model_error
    wide, smaller = isinstance(moments, Wide), min(data.n_pos, data.n_neg)
    error = model_error(smaller, wide, setting.kernel) if error is None else error
    drawn, errors = draw(machine.fitter, how.draws, random_state)
    if wide:  # the widths are those of the estimate, whose noise is small beside the shift's
        moments_known = moments._replace(known=solve_all(moments, setting).widths)
        drawn = [moments_known._replace(spectrum=spectrum) for spectrum in drawn]
    # remedies are compared by the noise of the sample alone, since they share the error of the theory
    others, found, known = values(drawn, setting), None, getattr(drawn[0], "known", None)
    if how.train == "little":
        to_train, prior = _to_train(setting, at, best, plain), _before(error, others, places(setting, at.value)[best])
        found = level(data, moments, setting, to_train, prior, random_state)
        moments = moments.apart(float(np.exp(found.u)))
        at, nothing = _moved(moments, setting, found, None if candidates is None else plain)
        still = moments if known is None else moments._replace(known=known)
        apart = misjudged([still] * len(RUNGS), found.error * RUNGS)
    else:
        apart = misjudged(drawn, error * errors) if error else drawn
    return Seen(selected, moments, at, others, apart, found is None and not error, found, nothing)


def _fields(data, seen, wanted, how, random_state):
    """Return the fields of an Advice on what was Seen."""
    selected, moments, at, others, apart, exact, found, nothing = seen
    machine, _, setting, _, candidates, best, *_ = selected
    interval = ends(at.value, others if exact else values(apart, setting), how.level)
    interval = _widened(interval, at, moments, setting, None if found is None else how.level)
    table = _summary(setting, at, others, interval)
    curve, mixing, low, high = _flatness(setting, at.value[0], others[:, 0], interval[:, 0])
    grave, light = notes(data, at, setting, random_state, isinstance(moments, Wide))
    return {
        "table": table, "best": best, "metric": setting.metric,
        "mixing": mixing, "mixing_low": low, "mixing_high": high,
        "notes": [*data.notes, *_of_machine(data, machine, wanted, how.train), *_of_level(found, best), *grave, *light],
        "confidence": _confidence(data, setting, table, grave, best if found else None), "curve": curve,
        "data": data, "setting": setting,
        "moments": moments, "level": how.level, "candidates": candidates, "nothing": nothing, "drawn": apart,
        "wanted": wanted, "trained": found,
    }  # fmt: skip


def _to_train(setting, at, best, plain):
    """Return what is trained, a dict from (strategy, threshold) to mixing and C: first of all what is recommended.

    Then the same machine with its other threshold and the data as they are with C = ``plain``, where that costs nothing
    more or is the machine of doing nothing.
    """
    d, rows = designs(setting), places(setting, at.value)
    known = {row: (float(d.mixing[j]), float(d.C[j])) for row, (_, j) in rows.items()}
    chosen = {best: known[best]}
    for row in known:
        twin = row[0] == best[0] and repr(known[row]) == repr(known[best])  # NaN is NaN here
        if twin or (row[0] == "as is" and known[row][1] == plain):
            chosen.setdefault(row, known[row])
    chosen.setdefault(NOTHING, (np.nan, plain))
    return chosen


def _before(error, others, place):
    """Return the function from the slope of a metric to both errors of log-distances before any training.

    They are that of the theory, and the noise of the sample as the draws of the metric show it.
    """
    scatter = float(np.nanstd(others[(slice(None), *place)]))

    def prior(slope):
        noise = scatter / slope if slope > 0.02 else MOST_NOISE
        return max(error, 1e-3), min(noise, MOST_NOISE)

    return prior


def _moved(moments, setting, found, plain):
    """Return the values of all designs after training, and the prediction for doing nothing with C = ``plain``.

    Where C is fixed, ``plain`` is None, and doing nothing is one of the designs.
    """
    at, d = _of_collapsed(evaluate(moments, setting), moments, setting), designs(setting)
    value = at.value.copy()
    for row, more in found.beside.items():
        j = d.chosen.get(row, d.place.get(row[0]))
        if j is not None and (plain is None or row[0] != "as is" or d.C[j] == plain):
            value[setting.thresholds.index(row[1]), j] += more
    if not setting.record.priced:
        value = np.clip(value, 0.0, 1.0)
    if plain is None:
        return at._replace(value=value), np.nan
    plainly = expected(moments, setting._replace(chosen=()), {NOTHING: (np.nan, plain)}, 0.0)[0][0]
    return at._replace(value=value), setting.record.sign * (plainly + found.beside.get(NOTHING, 0.0))


def _of_collapsed(at, moments, setting):
    """Return the values with those of collapsed machines in the middle of what an optimiser may leave of them."""
    if not (at.collapsed.any() and setting.tuned):
        return at
    top = reach(moments, setting)[:, None]
    middle = 0.5 * (at.value + np.fmax(at.value, top))
    return at._replace(value=np.where(at.collapsed & np.isfinite(top), middle, at.value))


def _widened(interval, at, moments, setting, level):
    """Return intervals (2, thresholds, designs) that allow for what the draws do not have; ``level`` if trained.

    After training, that is the error of the theory in the differences between remedies. And of a machine that has
    collapsed nobody knows what an optimiser leaves of its weights: up to what their direction can give.
    """
    low, high = interval
    if level is not None:
        own = ndtri(0.5 + 0.5 * level) * _at(min(setting.n_pos, setting.n_neg), OF_ROWS) * setting.unit
        low, high = at.value - np.hypot(at.value - low, own), at.value + np.hypot(high - at.value, own)
        if not setting.record.priced:
            low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
    if at.collapsed.any():
        bare, top = evaluate(moments, setting).value, reach(moments, setting)[:, None]
        low = np.where(at.collapsed & np.isfinite(top), np.fmin(low, bare), low)
        high = np.where(at.collapsed & np.isfinite(top), np.fmax(high, top), high)
    return np.stack([low, high])


def _of_machine(data, machine, wanted, train):
    """Return sentences on a kernel that was left out or chosen, and on the rows that it was judged by, if not all."""
    from ._machines import MOST_TRAINED

    n = data.n_pos + data.n_neg
    if wanted.kernel == "best" and n > MOST_TRAINED:
        return [
            f"With more than {MOST_TRAINED:,} rows an RBF kernel is slow to train, and was left out: "
            "kernel='rbf' asks for it."
        ]
    told = []
    if machine.rows != n:
        told.append(
            f"The RBF kernel was judged on {machine.rows:,} of {n:,} rows, drawn at random: class sizes are those of "
            "the table, the statistics of the classes those of the sample."
        )
    if wanted.kernel == "best" and machine.kernel != "linear" and train != "check":
        # measured on the tables that judge: chapter your_data, "Predicted and measured"
        told.append(
            "Where an RBF machine was recommended on the tables that judged this advice, its balanced accuracy came "
            "out 0.015 lower than predicted on average, and 0.04 lower with 25 positives; train='check' measures it."
        )
    return told


def _of_level(found, best):
    """Return a sentence if what was trained for the level did not converge, so that the level is the theory's."""
    return [] if found is None or best in found.measured else [unconverged([best])]


def model_error(rows, wide=False, kernel="linear"):
    """Return the standard deviation of the theory's log-distance error for a minority of so many rows."""
    if kernel != "linear":
        return _at(rows, OF_KERNELS)
    return _at(rows, OF_WIDTHS if wide else MODEL_ERROR)


def _at(rows, known):
    """Return what is known at some numbers of rows, at another one."""
    return float(np.interp(np.log(rows), np.log(list(known)), list(known.values())))


def draw(fitter, draws, random_state):
    """Draw spectra from the sampling distribution, and a standard normal error of the theory for each."""
    normals = evenly(draws, 1 + ARGUMENTS, np.random.default_rng(random_state))
    return list(fitter.draws(normals[:, 1:])), normals[:, 0]


def misjudged(drawn, errors):
    """Rescale the class distance of each draw by exp(error)."""
    return [moments.apart(factor) for moments, factor in zip(drawn, np.exp(errors), strict=True)]


def values(drawn, setting):
    """Return the metric of every design on each draw, (draws, thresholds, designs), NaN where it fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", convergence_warning())
        found = np.stack([evaluate(moments, setting).value for moments in drawn])
    lost = np.isnan(found).any(axis=(1, 2)).mean()
    if lost > 0.1:
        warnings.warn(
            f"{lost:.0%} of the draws did not converge: intervals are too narrow", convergence_warning(), stacklevel=4
        )
    return found


def ends(value, others, level):
    """Return the ends (2, …) of the central interval of the draws (draws, …), widened to hold the estimate (…)."""
    low, high = np.nanquantile(others, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0, method="hazen")
    return np.stack([np.fmin(low, value), np.fmax(high, value)])


def _summary(setting, at, others, interval):
    """Return the table of all remedies, indexed by (strategy, threshold)."""
    d = designs(setting)
    rows_at = places(setting, at.value)
    sign = setting.record.sign
    top = max(rows_at.values(), key=lambda place: np.nan_to_num(at.value[place], nan=-np.inf))
    rows = {}
    for name, (k, j) in rows_at.items():
        behind, error = at.value[top] - at.value[k, j], float(np.nanstd(others[(slice(None), *top)] - others[:, k, j]))
        low, high = np.sort(sign * interval[:, k, j])
        rows[name] = {
            "predicted": sign * at.value[k, j], "low": low, "high": high, "scatter": float(np.nanstd(others[:, k, j])),
            "behind": behind, "error": error,
            "as_good": bool(behind <= max(error, NEGLIGIBLE * setting.unit)), "tpr": at.tpr[k, j], "tnr": at.tnr[k, j],
            "auc": at.auc[j], "mixing": d.mixing[j],
        }  # fmt: skip
        if setting.chosen:
            rows[name]["C"] = d.C[j]
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["strategy", "threshold"])


def _flatness(setting, value, others, interval):
    """Return the metric against the mixing, the best mixing, and the range within one standard error of it."""
    d = designs(setting)
    mixing, value, others = d.mixing[d.mixed], value[d.mixed], others[:, d.mixed]
    best = int(np.argmax(np.nan_to_num(value, nan=-np.inf)))
    error = np.nanstd(others[:, [best]] - others, axis=0)
    worse = np.flatnonzero(~(value[best] - value <= np.maximum(error, NEGLIGIBLE * setting.unit)))
    low = max(worse[worse < best], default=-1) + 1
    high = min(worse[worse > best], default=len(mixing)) - 1
    sign = setting.record.sign
    tails = np.sort(sign * interval[:, d.mixed], axis=0)
    curve = pd.DataFrame({"mixing": mixing, "predicted": sign * value, "low": tails[0], "high": tails[1]})
    return curve, float(mixing[best]), float(mixing[low]), float(mixing[high])


def _confidence(data, setting, table, grave, trained=None):
    """Return the confidence in the prediction, before any check; ``trained`` is the row of a machine that was trained.

    After training, it is a matter of the interval alone: what is unusual about the classes was seen in the level.
    """
    if trained is not None:
        half = 0.5 * (table.loc[trained, "high"] - table.loc[trained, "low"]) / setting.unit
        return STEPS[int(half <= SURE[0]) + int(half <= SURE[1])]
    smaller = min(data.n_pos, data.n_neg)
    if grave:
        return "low"
    clear = (table["behind"] > 2.0 * table["error"]) | (table["behind"] <= TRUST * setting.unit)
    return "high" if smaller >= 100 and clear.mean() >= 0.5 else "moderate"


def verify(advice, **how):
    """Add what cross-validation measures to an advice; ``how`` goes to :func:`rbal.advice._check.cross_validate`."""
    from ._check import cross_validate

    setting, table = advice.setting, advice.table.copy()
    sign = setting.record.sign
    machines = {row: (mixing, advice.C_of(row)) for row, mixing in table["mixing"].items()}
    found = cross_validate(advice.data, setting, machines, **how)
    smaller = setting._replace(n_pos=found.n_pos, n_neg=found.n_neg)
    at = evaluate(advice.moments, smaller).value
    d = designs(smaller)
    for row in table.index:
        k = setting.thresholds.index(row[1])
        same = d.mixed.start + int(np.argmin(np.abs(d.mixing[d.mixed] - table.loc[row, "mixing"])))
        place = d.chosen.get(row, d.place.get(row[0], same))
        table.loc[row, "measured"] = sign * found.value[row]
        table.loc[row, "measured_error"] = np.std(found.resampled[row])
        table.loc[row, "expected"] = sign * at[k, place]
    advice.table = table
    _judge(advice, found)
    return advice


def _judge(advice, found):
    """Record in the advice whether theory and data agree, and change the recommendation if they do not.

    What did not converge has no measured value, and no say.
    """
    known = [row for row, value in found.value.items() if np.isfinite(value)]
    if len(known) < len(found.value):
        advice.notes = [*advice.notes, unconverged(row for row in found.value if row not in known)]
    if advice.best not in known:
        return
    table = advice.table.loc[known]
    gap = table["measured"] - table["expected"]
    unit = advice.setting.unit
    off = gap.abs() > np.maximum(OFF * unit, 3.0 * np.hypot(table["measured_error"], table["scatter"]))
    # remedies share rows, folds and moments, so their mean offset is judged as one number with an error of its own
    level = np.mean([found.resampled[row] for row in known], axis=0)
    advice.offset = float(gap.mean())
    advice.offset_error = float(np.hypot(np.std(level), table["scatter"].mean()))
    winner = max(known, key=found.value.get)
    lead = found.value[winner] - found.value[advice.best]
    doubt = np.std(found.resampled[winner] - found.resampled[advice.best])
    beaten = lead > max(0.5 * TRUST * unit, 2.0 * doubt)
    surely = displaced(advice) and abs(advice.offset) > SHARED * advice.offset_error
    advice.agrees = not (beaten or off[advice.best] or off.mean() > 0.5 or surely)
    if beaten:
        close = max(NEGLIGIBLE * unit, 0.5 * doubt)
        advice.best = simplest(found.value[winner] - pd.Series(found.value)[known] <= close, advice.setting)
    # confidence rises only if the offset is known to be small, and falls if it is large, even where that may be chance
    step = -1 if displaced(advice) else int(advice.offset_error <= OFF * unit)
    step = step if advice.agrees else -len(STEPS)
    advice.confidence = STEPS[min(max(STEPS.index(advice.confidence) + step, 0), len(STEPS) - 1)]


def unconverged(rows):
    """Return a sentence on fits, by (strategy, threshold), that were not used."""
    names = ", ".join(dict.fromkeys(f"“{strategy}”" for strategy, _ in rows))
    return f"Fits of {names} did not converge, and were not used: a smaller C, or scaled columns, may help."


def displaced(advice):
    """Return whether the check found a mean offset of all remedies that is too large to ignore."""
    return advice.offset is not None and abs(advice.offset) > OFF * advice.setting.unit
