"""Turn predicted values into a recommendation with intervals, and say where the theory hardly applies."""

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtr, ndtri
from sklearn.metrics.pairwise import euclidean_distances

from .._support.warnings import convergence_warning
from ..metrics import METRICS
from ..metrics import evaluate as evaluate_scores
from ..moments.internal import ARGUMENTS, evenly
from ._level import NOTHING, expected, level
from ._prediction import Values, Wide, collapse_bound, designs, evaluate, solve_all
from ._selection import NEGLIGIBLE, PREDICTION_ERROR, Selection, kernel_notes, places, select
from ._table import coded

# Rows of the rarer class, and the standard deviation of the logarithm of the factor by which the theory misjudges the
# distance between the classes of real tables. It is larger for few rows, since the covariance is then that of the other
# class. With these sizes, found by the book's study of tables (rbal_book.studies.tables.model_error), 90 % of the
# intervals hold what is measured on its design tables. The judging tables had no part in it.
MODEL_ERROR = {25: 0.33, 142: 0.20}
# The same with a width for each class. No stored study finds it alone. Together with what training adds
# (DIFFERENCE_ERROR and the constants of ``_level.py``), intervals of 90 % hold 91 % of what is measured on tables for
# design and on those that judge (stored study `advice`, ...-foreseen.csv; tests/advice/test_sources.py).
WIDTH_MODEL_ERROR = {25: 0.15, 142: 0.12}
# The same for an RBF kernel: root mean square of the log-ratio of trained to predicted distances, class weights, over
# the tables and C of the stored study `kernels`, for tables with fewer and with more than 100 positives, at their
# medians (tests/advice/test_sources.py).
KERNEL_MODEL_ERROR = {62: 0.26, 166: 0.20}
# After training: error of the theory in the differences between remedies, in units of the metric, by the rows of the
# rarer class. Chosen by judgement; no study. Stored predictions on tables for design (design-foreseen.csv;
# tests/advice/test_sources.py) have errors of 0.004 with 25 positives and 0.011 with all, for under- and oversampling
# against class weights.
DIFFERENCE_ERROR = {25: 0.02, 142: 0.005}
# Largest noise of log-distances, where the metric hardly depends on them. Chosen by judgement; no study.
LARGEST_NOISE = 0.5
LEVEL_QUANTILES = ndtri((np.arange(16) + 0.5) / 16)  # quantiles of the distance, after training
# Half an interval, in units of the metric, up to which confidence is moderate, and high. Chosen by judgement; no study.
CONFIDENT_HALF_WIDTHS = 0.07, 0.035
# A prediction that misses the check by more than this and by more than three standard errors disagrees. Chosen by
# judgement; no study.
LARGEST_GAP = 0.03
STEPS = ("low", "moderate", "high")
DIAGNOSED_ROWS = 500  # largest number of rows of each class that are looked at
FEW_FEATURES = 10
FEW_POSITIVES = 30


class Estimate(NamedTuple):
    """What is known of the machine that was selected: by the theory, and by training a little."""

    selection: Selection
    moments: object  # with the classes moved apart as the level says
    values: Values  # of all designs, at the level
    sampled: np.ndarray  # (draws, thresholds, designs) values with the noise of the sample alone
    drawn: list  # moments with the error of the level or of the theory, behind the intervals
    exact: bool  # whether the theory is taken to have no error, so that ``sampled`` is behind the intervals
    level: object  # the Level, or None
    baseline: float  # prediction for doing nothing

    @property
    def height(self):
        """Prediction for the recommended remedy, where more is better."""
        selection = self.selection
        return self.values.value[places(selection.setting, self.values.value)[selection.best]]


def predict(data, setting, options):
    """Return the fields of an Advice that follow from the table and, if anything is trained, from a few machines.

    Parameters
    ----------
    data : Data
    setting : Setting
    options : rbal.advice._advise.Options
    """
    selection = select(data, setting, options.search, options.random_state)
    estimate = _estimate(data, selection, options)
    if selection.linear is not None and options.train == "little":
        # kernels do not share the error of the theory, so that the levels of both are needed
        other = _estimate(data, selection.linear, options)
        estimate = estimate if estimate.height - other.height > PREDICTION_ERROR * setting.unit else other
    return _fields(data, estimate, options)


def _estimate(data, selection, options):
    """Return the Estimate of a machine that was selected."""
    moments, setting, best, baseline = selection.moments, selection.setting, selection.best, selection.baseline
    values = _with_collapsed(selection.values, moments, setting)
    error = options.model_error
    wide, smaller = isinstance(moments, Wide), min(data.n_pos, data.n_neg)
    error = model_error(smaller, wide, setting.kernel) if error is None else error
    drawn, errors = draw(selection.machine.fitter, options.draws, options.random_state)
    if wide:  # the widths are those of the estimate, whose noise is small beside the shift's
        moments_known = moments._replace(known=solve_all(moments, setting).widths)
        drawn = [moments_known._replace(spectrum=spectrum) for spectrum in drawn]
    # remedies are compared by the noise of the sample alone, since they share the error of the theory
    sampled, known = values_of(drawn, setting), getattr(drawn[0], "known", None)
    if options.train != "little":
        drawn = misjudged(drawn, error * errors) if error else drawn
        return Estimate(selection, moments, values, sampled, drawn, not error, None, baseline)
    machines = _to_train(setting, values, best, options.C)
    prior = _prior(error, sampled, places(setting, values.value)[best])
    trained = level(data, moments, setting, machines, prior, options.random_state)
    moments = moments.apart(float(np.exp(trained.u)))
    C_fixed = selection.candidates is None
    values, baseline = _at_level(moments, setting, trained, None if C_fixed else options.C)
    center = moments if known is None else moments._replace(known=known)
    drawn = misjudged([center] * len(LEVEL_QUANTILES), trained.error * LEVEL_QUANTILES)
    return Estimate(selection, moments, values, sampled, drawn, False, trained, baseline)


def _fields(data, estimate, options):
    """Return the fields of an Advice on an Estimate."""
    selection, values, trained = estimate.selection, estimate.values, estimate.level
    setting, best = selection.setting, selection.best
    draws = estimate.sampled if estimate.exact else values_of(estimate.drawn, setting)
    interval = ends(values.value, draws, options.level)
    interval = _widened(interval, values, estimate.moments, setting, None if trained is None else options.level)
    table = _summary(setting, values, estimate.sampled, interval)
    grave, light = diagnose(data, values, setting, options.random_state, isinstance(estimate.moments, Wide))
    level_notes = [] if trained is None or best in trained.measured else [unconverged([best])]
    return {
        "table": table, "best": best, "metric": setting.metric,
        **_mixing_curve(setting, values.value[0], estimate.sampled[:, 0], interval[:, 0]),
        "notes": [*data.notes, *kernel_notes(data, selection.machine, options), *level_notes, *grave, *light],
        "confidence": _confidence(data, setting, table, grave, best if trained else None),
        "data": data, "setting": setting, "moments": estimate.moments, "level": options.level,
        "candidates": selection.candidates, "nothing": estimate.baseline, "drawn": estimate.drawn,
        "wanted": options.search, "trained": trained,
    }  # fmt: skip


def _to_train(setting, values, best, plain_C):
    """Return the machines to train, a dict from (strategy, threshold) to mixing and C: the recommended one first.

    Then come the same machine with its other threshold and the data as they are with C = ``plain_C``, where that costs
    nothing more or is the machine of doing nothing.
    """
    d, rows = designs(setting), places(setting, values.value)
    known = {row: (float(d.mixing[j]), float(d.C[j])) for row, (_, j) in rows.items()}
    chosen = {best: known[best]}
    for row in known:
        twin = row[0] == best[0] and repr(known[row]) == repr(known[best])  # NaN equals NaN in text
        if twin or (row[0] == "as is" and known[row][1] == plain_C):
            chosen.setdefault(row, known[row])
    chosen.setdefault(NOTHING, (np.nan, plain_C))
    return chosen


def _prior(error, sampled, place):
    """Return the function from the slope of a metric to both errors of log-distances before any training.

    They are that of the theory, and the noise of the sample as the draws of the metric show it.
    """
    scatter = float(np.nanstd(sampled[(slice(None), *place)]))

    def prior(slope):
        noise = scatter / slope if slope > 0.02 else LARGEST_NOISE
        return max(error, 1e-3), min(noise, LARGEST_NOISE)

    return prior


def _at_level(moments, setting, trained, plain_C):
    """Return the values of all designs after training, and the prediction for doing nothing with C = ``plain_C``.

    Where C is fixed, ``plain_C`` is None, and doing nothing is one of the designs.
    """
    values, d = _with_collapsed(evaluate(moments, setting), moments, setting), designs(setting)
    value = values.value.copy()
    for row, offset in trained.residual_offset.items():
        j = d.index(row)
        if j is not None and (plain_C is None or row[0] != "as is" or d.C[j] == plain_C):
            value[setting.thresholds.index(row[1]), j] += offset
    if not setting.record.priced:
        value = np.clip(value, 0.0, 1.0)
    if plain_C is None:
        return values._replace(value=value), np.nan
    baseline = expected(moments, setting._replace(chosen=()), {NOTHING: (np.nan, plain_C)}, 0.0)[0][0]
    baseline += trained.residual_offset.get(NOTHING, 0.0)
    return values._replace(value=value), setting.record.sign * baseline


def _with_collapsed(values, moments, setting):
    """Return the values with those of collapsed machines halfway to what an optimiser may leave of them."""
    if not (values.collapsed.any() and setting.tuned):
        return values
    top = collapse_bound(moments, setting)[:, None]
    halfway = 0.5 * (values.value + np.fmax(values.value, top))
    return values._replace(value=np.where(values.collapsed & np.isfinite(top), halfway, values.value))


def _widened(interval, values, moments, setting, level):
    """Return intervals (2, thresholds, designs) with the errors that the draws do not have; ``level`` if trained.

    After training, that is the error of the theory in the differences between remedies. And of a collapsed machine
    nobody knows what an optimiser leaves of its weights: up to the collapse bound.
    """
    low, high = interval
    if level is not None:
        error = interpolated(min(setting.n_pos, setting.n_neg), DIFFERENCE_ERROR)
        own = ndtri(0.5 + 0.5 * level) * error * setting.unit
        low, high = values.value - np.hypot(values.value - low, own), values.value + np.hypot(high - values.value, own)
        if not setting.record.priced:
            low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
    if values.collapsed.any():
        bare, top = evaluate(moments, setting).value, collapse_bound(moments, setting)[:, None]
        low = np.where(values.collapsed & np.isfinite(top), np.fmin(low, bare), low)
        high = np.where(values.collapsed & np.isfinite(top), np.fmax(high, top), high)
    return np.stack([low, high])


def model_error(rows, wide=False, kernel="linear"):
    """Return the standard deviation of the theory's log-distance error for a minority of so many rows."""
    if kernel != "linear":
        return interpolated(rows, KERNEL_MODEL_ERROR)
    return interpolated(rows, WIDTH_MODEL_ERROR if wide else MODEL_ERROR)


def interpolated(rows, known):
    """Interpolate a dict from numbers of rows to values, linearly in the logarithm of the rows."""
    return float(np.interp(np.log(rows), np.log(list(known)), list(known.values())))


def draw(fitter, draws, random_state):
    """Draw spectra from the sampling distribution, and a standard normal error of the theory for each."""
    normals = evenly(draws, 1 + ARGUMENTS, np.random.default_rng(random_state))
    return list(fitter.draws(normals[:, 1:])), normals[:, 0]


def misjudged(drawn, errors):
    """Rescale the class distance of each draw by exp(error)."""
    return [moments.apart(factor) for moments, factor in zip(drawn, np.exp(errors), strict=True)]


def values_of(drawn, setting):
    """Return the metric of every design on each draw, (draws, thresholds, designs), NaN where it fails."""
    d = designs(setting)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", convergence_warning())
        values = np.stack([evaluate(moments, setting, d).value for moments in drawn])
    lost = np.isnan(values).any(axis=(1, 2)).mean()
    if lost > 0.1:
        warnings.warn(
            f"{lost:.0%} of the draws did not converge: intervals are too narrow", convergence_warning(), stacklevel=4
        )
    return values


def ends(value, draws, level):
    """Return the ends (2, …) of the central interval of the draws (draws, …), widened to hold the estimate (…)."""
    low, high = np.nanquantile(draws, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0, method="hazen")
    return np.stack([np.fmin(low, value), np.fmax(high, value)])


def _summary(setting, values, sampled, interval):
    """Return the table of all remedies, indexed by (strategy, threshold)."""
    d = designs(setting)
    rows_at = places(setting, values.value)
    sign = setting.record.sign
    top = max(rows_at.values(), key=lambda place: np.nan_to_num(values.value[place], nan=-np.inf))
    rows = {}
    for name, (k, j) in rows_at.items():
        behind = values.value[top] - values.value[k, j]
        error = float(np.nanstd(sampled[(slice(None), *top)] - sampled[:, k, j]))
        low, high = np.sort(sign * interval[:, k, j])
        rows[name] = {
            "predicted": sign * values.value[k, j], "low": low, "high": high,
            "scatter": float(np.nanstd(sampled[:, k, j])),
            "behind": behind, "error": error,
            "as_good": bool(behind <= max(error, NEGLIGIBLE * setting.unit)), "tpr": values.tpr[k, j],
            "tnr": values.tnr[k, j], "auc": values.auc[j], "mixing": d.mixing[j],
        }  # fmt: skip
        if setting.chosen:
            rows[name]["C"] = d.C[j]
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["strategy", "threshold"])


def _mixing_curve(setting, value, sampled, interval):
    """Return the metric against the mixing, the best mixing, and the range within one standard error of it, a dict."""
    d = designs(setting)
    mixing, value, sampled = d.mixing[d.mixed], value[d.mixed], sampled[:, d.mixed]
    best = int(np.argmax(np.nan_to_num(value, nan=-np.inf)))
    error = np.nanstd(sampled[:, [best]] - sampled, axis=0)
    worse = np.flatnonzero(~(value[best] - value <= np.maximum(error, NEGLIGIBLE * setting.unit)))
    low = max(worse[worse < best], default=-1) + 1
    high = min(worse[worse > best], default=len(mixing)) - 1
    sign = setting.record.sign
    tails = np.sort(sign * interval[:, d.mixed], axis=0)
    curve = pd.DataFrame({"mixing": mixing, "predicted": sign * value, "low": tails[0], "high": tails[1]})
    return {
        "curve": curve, "mixing": float(mixing[best]), "mixing_low": float(mixing[low]),
        "mixing_high": float(mixing[high]),
    }  # fmt: skip


def _confidence(data, setting, table, grave, trained=None):
    """Return the confidence in the prediction, before any check; ``trained`` is the row of a machine that was trained.

    After training, only the interval counts: the level has measured what is unusual about the classes.
    """
    if trained is not None:
        half = 0.5 * (table.loc[trained, "high"] - table.loc[trained, "low"]) / setting.unit
        return STEPS[int(half <= CONFIDENT_HALF_WIDTHS[0]) + int(half <= CONFIDENT_HALF_WIDTHS[1])]
    smaller = min(data.n_pos, data.n_neg)
    if grave:
        return "low"
    clear = (table["behind"] > 2.0 * table["error"]) | (table["behind"] <= PREDICTION_ERROR * setting.unit)
    return "high" if smaller >= 100 and clear.mean() >= 0.5 else "moderate"


def unconverged(rows):
    """Return a sentence on fits, by (strategy, threshold), that were not used."""
    names = ", ".join(dict.fromkeys(f"“{strategy}”" for strategy, _ in rows))
    return f"Fits of {names} did not converge, and were not used: a smaller C, or scaled columns, may help."


def displaced(advice):
    """Return whether the check found a mean offset of all remedies that is too large to ignore."""
    return advice.offset is not None and abs(advice.offset) > LARGEST_GAP * advice.setting.unit


# ---- where the theory does not apply: small, separable, non-Gaussian, unequally spread or curved classes


def diagnose(data, values, setting, random_state=0, wide=False):
    """Return two lists of sentences on how the data differ from what the theory assumes, grave ones and light ones.

    With ``wide`` it knows that classes differ in width.
    """
    grave, light = _size_notes(data, values, designs(setting).place["as is"], setting.kernel)
    X, y = _diagnosed_rows(data, np.random.default_rng(random_state))
    if X is not None and setting.kernel != "linear":
        grave += _shape_notes(np.exp(-setting.gamma * euclidean_distances(X, squared=True)), y, wide)
    elif X is not None:
        grave += [*_shape_notes(_products(X), y, wide), *_curvature_notes(X, y)]
    return grave, light


def _size_notes(data, values, plain, kernel):
    """Return sentences on the sizes, and on the classifier of the unmodified data, which is design ``plain``."""
    grave, light = [], []
    rank = len(data.sample.values)
    if rank < FEW_FEATURES and kernel == "linear":  # features of a kernel are many
        grave.append(
            f"Only {rank} independent feature{'s' if rank > 1 else ''}: the theory is exact for many, and rough here."
        )
    smaller = min(data.n_pos, data.n_neg)
    if smaller < FEW_POSITIVES:
        grave.append(f"Only {smaller} samples in the smaller class: all predictions have wide errors.")
    if values.collapsed[plain]:
        light.append("Trained as it is, the classifier would give every sample the label of the larger class.")
    if values.train_error[plain] < 1e-3 and values.auc[plain] > 0.999:
        light.append("The classes are all but separable: every remedy will do, and differences are small.")
    return grave, light


def _diagnosed_rows(data, rng):
    """Return some coded rows (n, D) of both classes and which are positive (n,), or None twice if they are too few."""
    X, y = data.rows
    chosen = []
    for label in (True, False):
        members = rng.permutation(np.flatnonzero(y == label))[:DIAGNOSED_ROWS]
        if len(members) < 2 * FEW_POSITIVES // 3:
            return None, None
        chosen.append(members)
    chosen = rng.permutation(np.concatenate(chosen))
    return coded(X.iloc[chosen], data.kinds), y[chosen]


def _ridge_scores(K, y):
    """Score each half of n samples by kernel ridge regression on the other half: K (n, n), y (n,) bool, result (n,)."""
    n = len(y)
    fold = np.zeros(n, int)
    for label in (True, False):
        fold[np.flatnonzero(y == label)[::2]] = 1
    scores = np.empty(n)
    for k in (0, 1):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        signs = np.where(y[train], 1.0, -1.0)
        weight = np.where(y[train], 0.5 / y[train].mean(), 0.5 / (~y[train]).mean())
        inner = K[np.ix_(train, train)]
        factor = cho_factor(inner + np.diag(np.trace(inner) / len(train) / weight))
        offset = cho_solve(factor, np.ones(len(train)))
        a = cho_solve(factor, signs)
        b = a.sum() / offset.sum()
        scores[test] = K[np.ix_(test, train)] @ (a - b * offset) + b
        scores[test] /= scores[test].std() or 1.0
    return scores


def _auc(scores, y):
    """Return the area under the ROC curve and an upper bound on its standard error."""
    value = METRICS["auc"].of_scores(scores, y)
    return value, np.sqrt(max(value * (1.0 - value), 1e-4) / min(y.sum(), (~y).sum()))


def _products(X):
    """Return scalar products (n, n) of rows (n, D) minus their mean."""
    Z = X - X.mean(axis=0)
    return Z @ Z.T


def _shape_notes(K, y, wide=False):
    """Return sentences if scores of the kernel K (n, n) are not Gaussian or, without widths, not equally wide."""
    s = _ridge_scores(K, y)
    pos, neg = s[y], s[~y]
    notes = []
    ratio = pos.std() / max(neg.std(), 1e-12)
    error = np.sqrt(0.5 / len(pos) + 0.5 / len(neg))
    if not wide and abs(np.log(ratio)) > max(np.log(1.5), 3.0 * error):
        wider, factor = ("positive", ratio) if ratio > 1.0 else ("negative", 1.0 / ratio)
        notes.append(
            f"The scores of the {wider} class are {factor:.1f} times as wide as those of the other: "
            "the theory takes them as equally wide, and misjudges the trained threshold."
        )
    midpoint = 0.5 * (pos.mean() + neg.mean())
    measured = evaluate_scores(s, np.where(y, 1, -1), midpoint, names=["ba"])["ba"]
    gap = 0.5 * (pos.mean() - neg.mean())
    gaussian = 0.5 * (ndtr(gap / max(pos.std(), 1e-12)) + ndtr(gap / max(neg.std(), 1e-12)))
    error = 0.5 * np.sqrt(0.25 / len(pos) + 0.25 / len(neg))
    if abs(measured - gaussian) > max(0.03, 3.0 * error):
        notes.append(
            f"The scores are not Gaussian: midway between the classes {measured:.0%} are on their own side, "
            f"where Gaussian scores would have {gaussian:.0%}."
        )
    return notes


def _curvature_notes(X, y):
    """Return a sentence if a classifier with a curved boundary separates the classes much better."""
    Z = X - X.mean(axis=0)
    squares = euclidean_distances(Z, squared=True)
    width = np.median(squares[:300, :300][np.triu_indices(min(len(Z), 300), 1)]) or 1.0
    linear, error = _auc(_ridge_scores(Z @ Z.T, y), y)
    curved, other = _auc(_ridge_scores(np.exp(-squares / width), y), y)
    if curved - linear > max(0.05, 2.0 * np.hypot(error, other)):
        return [
            f"The classes are not separated by a plane: a curved boundary reaches an AUC of {curved:.2f}, "
            f"a linear one {linear:.2f}. Consider another classifier: kernel='rbf' (--kernel rbf) asks for one."
        ]
    return []
