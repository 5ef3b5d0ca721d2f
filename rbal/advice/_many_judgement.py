"""Advice on a table of three classes or more: one linear machine for each class against the rest."""

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from ._advice import ManyAdvice
from ._check import measure_many
from ._judgement import LARGEST_GAP, STEPS, ends, model_error, unconverged
from ._many_prediction import (
    DECADES,
    DRAWS,
    SCANNED,
    ManySetting,
    NotSolved,
    all_candidates,
    at_level,
    candidates,
    chosen_rows,
    drawn_mixtures,
    estimate_classes,
    expected_recall,
    intervals,
    many_level,
    n_steps,
    prior_errors,
    recommended_row,
    table_of,
    to_train,
    with_spread,
)  # fmt: skip

# Rows of the smallest class below which confidence is low, and from which it is high. Chosen by judgement; no study.
FEW, MANY = 30, 100
SPREAD = (
    "A column that does not vary in some class tells it from the others, by these rows for sure: every column is taken "
    "to vary in every class as one row more could show."
)
MOST = 40  # classes whose machines are solved together: pairs of machines and classes grow as its third power


def advise_many(data, options):
    """Return the advice on a table of many classes.

    Parameters
    ----------
    data : ManyData
    options : rbal.advice._advise.Options
        At most DRAWS draws of the class centres are taken. Of more than SCANNED classes nothing is trained for the
        level.

    Returns
    -------
    ManyAdvice
    """
    search, random_state = options.search, options.random_state
    notes = [*data.notes, *_checked(data, search, options.metric)]
    setting = _setting(data, options)
    mixture, counts = estimate_classes(data.X, data.y)
    quiet = mixture.debiased(counts)
    draws = min(options.draws, DRAWS if len(data.classes) <= SCANNED else DRAWS // 2)
    bar = tqdm(total=n_steps(setting, draws), desc="predicting", disable=not options.progress, leave=False)
    try:
        predicted = all_candidates(quiet, setting, bar)
    except NotSolved:
        mixture, notes = with_spread(mixture, counts), [*notes, SPREAD]
        quiet = mixture.debiased(counts)
        bar.reset()
        predicted = all_candidates(quiet, setting, bar)
    rows = chosen_rows(predicted)
    best = recommended_row(rows)
    error, u = model_error(min(data.sizes)) if options.model_error is None else options.model_error, 0.0
    rng = np.random.default_rng(random_state)
    # doing nothing: with C = 1, or with the one that was fixed
    plain_C = 1.0 if search.C is not None else options.C
    plain = next(iter(candidates(quiet, setting, "as is", plain_C)), None)
    # with more classes, the theory alone takes seconds at each distance
    if options.train == "little" and len(data.classes) <= SCANNED:
        prior = prior_errors(mixture, counts, error, random_state)
        level = many_level(data, quiet, setting, to_train(rows, best, plain), prior, random_state)
        rows, plain = at_level(rows, plain, level, quiet, setting, best)
        error, u = level.error.get(best, error), level.u.get(best, 0.0)
        notes += _training_notes(level, best)
    with bar:
        macro, recalls = intervals(drawn_mixtures(mixture, counts, draws, error, rng, u), setting, rows[best], bar)
    predicted = np.diagonal(rows[best].confusion)
    offsets = ends(np.array(rows[best].recall), macro, options.level) - rows[best].recall
    confusion = pd.DataFrame(rows[best].confusion, data.classes, data.classes)
    advice = ManyAdvice(
        table_of(rows, setting, offsets), best, confusion,
        _recalls(data, predicted, ends(predicted, recalls, options.level), confusion),
        pd.Series(rows[best].offsets, data.classes), np.nan if plain is None else plain.recall,
        [*notes, *_class_notes(data, rows[best])], _confidence(data, rows[best]),
        level=options.level, data=data, setting=setting, rows=rows,
    )  # fmt: skip
    return _verified(advice, quiet, options.validation) if options.train == "check" else advice


def _setting(data, options):
    C = options.search.C
    grid = [10.0**k for k in range(DECADES[0], DECADES[1] + 1)]
    tried = (options.C,) if C is None else tuple(grid) if C == "best" else tuple(sorted(set(C)))
    return ManySetting(tuple(data.sizes.tolist()), data.D, options.loss, tried, C == "best")


def _checked(data, search, metric):
    """Raise an error for what goes with two classes only, and return notes on what was left out."""
    T = len(data.classes)
    if metric != "ba":
        raise ValueError(f"metric must be 'ba', which is the macro recall, for {T} classes, got {metric!r}")
    if search.kernel == "rbf":
        raise ValueError(f"kernel must be 'linear' for {T} classes, got 'rbf'")
    if search.moments == "width":
        raise ValueError(f"moments must be 'auto' or 'pooled' for {T} classes, got 'width'")
    if T > MOST:
        raise ValueError(
            f"the label takes {T} values, and advice is for at most {MOST} classes: join rare ones, or leave them out"
        )
    return ["Of more than two classes only linear classifiers are predicted."] if search.kernel == "best" else []


def _recalls(data, predicted, interval, confusion):
    """Return the table of the classes."""
    wrong = confusion.to_numpy().copy()
    np.fill_diagonal(wrong, -1.0)
    taken_for = pd.Series([data.classes[k] for k in wrong.argmax(axis=1)], dtype=object).to_numpy()
    columns = {"rows": data.sizes, "recall": predicted, "low": interval[0], "high": interval[1], "taken for": taken_for}
    return pd.DataFrame(columns, index=pd.Index(data.classes, name="class", dtype=object))


def _class_notes(data, candidate):
    """Return notes on classes that are never answered, and on machines without weights."""
    notes, recall = [], np.diagonal(candidate.confusion)
    lost = [str(data.classes[k]) for k in np.flatnonzero(recall < 0.01)]
    if lost:
        shown = ", ".join(lost[:5]) + (f" and {len(lost) - 5} more" if len(lost) > 5 else "")
        notes.append(f"Next to no row of these classes would be recognised: {shown}.")
    if candidate.collapsed:
        notes.append(
            "Some machines have no weights to speak of: what an optimiser makes of them depends on where it stops."
        )
    return notes


def _training_notes(level, best):
    """Return a sentence on what was trained."""
    if best not in level.measured:
        return [unconverged([best])]
    value, error, expected = level.measured[best]
    return [
        f"{level.fits} machines were trained on {level.rows:,} rows: macro recall {value:.3f} ± {error:.3f} in folds, "
        f"where the theory expected {expected:.3f}. All predictions are weighed with that."
    ]


def _confidence(data, candidate):
    smallest = int(data.sizes.min())
    if smallest < FEW or candidate.collapsed:
        return "low"
    return "high" if smallest >= MANY and len(data.X) >= 5 * data.D else "moderate"


def _verified(advice, mixture, validation):
    """Add what cross-validation measures, and whether it agrees."""
    recall, error, sizes = measure_many(advice, validation)
    table, smaller = advice.table.copy(), advice.setting._replace(sizes=tuple(sizes.tolist()))
    for row, candidate in advice.rows.items():
        table.loc[row, ["measured", "measured_error"]] = recall[row], error[row]
        table.loc[row, "expected"] = expected_recall(mixture, smaller, candidate)
    advice.table, row = table, table.loc[advice.best]
    lost = [name for name, value in recall.items() if not np.isfinite(value)]
    if lost:
        advice.notes = [*advice.notes, unconverged(lost)]
    if advice.best in lost:
        return advice
    half = 0.5 * (row["high"] - row["low"])
    gap = abs(row["measured"] - row["expected"])
    advice.agrees = bool(gap <= max(LARGEST_GAP, np.hypot(half, 2.0 * row["measured_error"])))
    place = STEPS.index(advice.confidence) + (1 if gap <= LARGEST_GAP else -1)
    advice.confidence = STEPS[min(max(place, 0), 2)] if advice.agrees else "low"
    return advice
