"""Advice on a table of three classes or more: one linear machine for each class against the rest."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from ._choice import Wanted
from ._judgement import ends, model_error, unconverged
from ._many_level import PLAIN, after, before, moved, to_train, trained
from ._many_predict import (
    DECADES,
    DRAWS,
    SCANNED,
    ManySetting,
    NotSolved,
    candidates,
    chosen,
    classes_of,
    every,
    intervals,
    solved,
    spread,
    steps,
    table_of,
)
from ._many_predict import recommended as simplest

OFF = 0.03  # macro recall that a check may miss by
FEW, MANY = 30, 100  # rows of the smallest class below which confidence is low, and from which it is high
SPREAD = (
    "A column that does not vary in some class tells it from the others, by these rows for sure: every column is taken "
    "to vary in every class as one row more could show."
)
MOST = 40  # classes whose machines are solved together: pairs of machines and classes grow as its third power


@dataclass
class ManyAdvice:
    """The advice that :func:`rbal.advise` returns for three classes or more.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per remedy, index (strategy, threshold): the ``predicted`` macro recall with its interval ``low`` to
        ``high``, how far it is ``behind`` the best, the ``lowest`` recall of a class, the ``accuracy``, ``C`` and
        ``mixing`` (NaN where nothing is sampled). Remedies share what is not known of the classes: all intervals are
        that of the recommended one, moved. After a check also ``measured``, ``measured_error`` and, for the recommended
        one and for doing nothing, ``expected``: the prediction at the size of the training folds.
    best : (str, str)
        Row of the recommended remedy: the simplest of those predicted within 0.02 of the best. A threshold that is
        "moved" is one for each class, chosen by the theory.
    confusion : pandas.DataFrame
        Of each class (row) the shares that are answered as each class (column), as predicted for the recommended one.
    recalls : pandas.DataFrame
        One row per class: its ``rows``, predicted ``recall`` with ``low`` and ``high``, and the class that it is most
        often ``taken for``.
    thresholds : pandas.Series
        What is subtracted from the score of each class; 0 if thresholds are as trained.
    nothing : float
        Predicted macro recall of the data as they are, with C = 1 or the C that was fixed.
    notes : list of str
    confidence : {"high", "moderate", "low"}
    agrees : bool or None
        Whether a check agrees with the theory; None without a check.
    metric : str
        "ba", the balanced accuracy: of many classes this is the macro recall.
    level : float
        Coverage of the intervals.
    data, setting, rows : object
        The table that was read, the classifier, and the candidate of each row of the table.
    """

    table: object
    best: tuple
    confusion: object
    recalls: object
    thresholds: object
    nothing: float
    notes: list
    confidence: str
    agrees: bool | None = None
    metric: str = "ba"
    level: float = 0.9
    data: object = field(default=None, repr=False)
    setting: object = field(default=None, repr=False)
    rows: dict = field(default_factory=dict, repr=False)
    many: bool = field(default=True, repr=False)
    asked: dict = field(default_factory=dict, repr=False)  # arguments that were not the default, for the code

    @property
    def C(self):
        """Inverse ridge of the recommended classifier."""
        return float(self.table.loc[self.best, "C"])

    @property
    def kernel(self):
        """Kernel of the recommended classifier: "linear"."""
        return "linear"

    def explain(self):
        """Return the recommendation, and what is to be expected of it, in plain words."""
        from ._many_telling import explain

        return explain(self)

    def pipeline(self, random_state=None):
        """Return the recommended classifier, not yet fitted.

        Parameters
        ----------
        random_state : int, RandomState instance or None
            Seed of the sampler.

        Returns
        -------
        estimator
            Coding, sampler if there is one, a machine for each class against the rest, and a threshold for each class.
        """
        from ._many_pipeline import pipeline

        return pipeline(self, random_state)

    def to_json(self):
        """Return the whole advice as one JSON object."""
        from ._many_telling import to_json

        return to_json(self)

    def to_html(self):
        """Return a report as one HTML page that needs no other files and no network."""
        from ._many_telling import to_html

        return to_html(self)

    def _repr_html_(self):
        """Return the verdict and the tables, for a notebook."""
        from ._many_telling import to_fragment

        return to_fragment(self)


def advise_many(
    data, wanted, C, loss, metric, *, level=0.9, error=None, draws=DRAWS, random_state=0, train="none", check=None,
    progress=False,
):  # fmt: skip
    """Return the advice on a table of many classes.

    Parameters
    ----------
    data : ManyData
    wanted : Wanted
        What is left open.
    C : float
        Inverse ridge, where it is fixed.
    loss, metric : str
    level : float
        Coverage of the intervals.
    error : float, optional
        Error of the theory, as ``model_error`` of :func:`rbal.advise`.
    draws : int
        Draws of the class centres, at most DRAWS.
    random_state : int
    train : {"none", "little", "check"}
        Whether a few machines are trained, for the level of all predictions; of more than SCANNED classes none are.
    check : dict, optional
        ``folds`` and ``repeats`` of a cross-validation.
    progress : bool
        Whether a bar shows how long the predictions will take.

    Returns
    -------
    ManyAdvice
    """
    notes = [*data.notes, *_checked(data, wanted, metric)]
    setting = _setting(data, wanted, C, loss)
    mixture, counts = classes_of(data.X, data.y)
    quiet = mixture.debiased(counts)
    draws = min(draws, DRAWS if len(data.classes) <= SCANNED else DRAWS // 2)
    bar = tqdm(total=steps(setting, draws), desc="predicting", disable=not progress, leave=False)
    try:
        found = every(quiet, setting, bar)
    except NotSolved:
        mixture, notes = spread(mixture, counts), [*notes, SPREAD]
        quiet = mixture.debiased(counts)
        bar.reset()
        found = every(quiet, setting, bar)
    rows = chosen(found)
    best = simplest(rows)
    error = model_error(min(data.sizes)) if error is None else error
    how = {"draws": draws, "error": error, "rng": np.random.default_rng(random_state)}
    # doing nothing: with C = 1, or with the one that was fixed
    plain = next(iter(candidates(quiet, setting, "as is", 1.0 if wanted.C is not None else C)), None)
    found = None
    if train == "little" and len(data.classes) <= SCANNED:  # of more, the theory alone takes seconds at each distance
        prior = before(mixture, counts, error, random_state)
        found = trained(data, quiet, setting, to_train(rows, best, plain), prior, random_state)
        rows, plain = moved(rows, found, quiet, setting, best), after(plain, PLAIN, found, quiet, setting)
        how |= {"error": found.error.get(best, error), "u": found.u.get(best, 0.0)}
        notes += _of_training(found, best)
    with bar:
        macro, recalls = intervals(mixture, counts, setting, rows[best], how, bar)
    told = np.diagonal(rows[best].confusion)
    around = ends(np.array(rows[best].recall), macro, level) - rows[best].recall
    confusion = pd.DataFrame(rows[best].confusion, data.classes, data.classes)
    advice = ManyAdvice(
        table_of(rows, setting, around), best, confusion, _recalls(data, told, ends(told, recalls, level), confusion),
        pd.Series(rows[best].offsets, data.classes), np.nan if plain is None else plain.recall,
        [*notes, *_of_classes(data, rows[best])], _confidence(data, rows[best]),
        level=level, data=data, setting=setting, rows=rows,
    )  # fmt: skip
    return _verified(advice, quiet, check, random_state) if check else advice


def _setting(data, wanted, C, loss):
    grid = [10.0**k for k in range(DECADES[0], DECADES[1] + 1)]
    tried = (C,) if wanted.C is None else tuple(grid) if wanted.C == "best" else tuple(sorted(set(wanted.C)))
    return ManySetting(tuple(data.sizes.tolist()), data.D, loss, tried, wanted.C == "best")


def _checked(data, wanted: Wanted, metric):
    """Raise an error for what goes with two classes only, and return notes on what was left out."""
    T = len(data.classes)
    if metric != "ba":
        raise ValueError(f"metric must be 'ba', which is the macro recall, for {T} classes, got {metric!r}")
    if wanted.kernel == "rbf":
        raise ValueError(f"kernel must be 'linear' for {T} classes, got 'rbf'")
    if wanted.moments == "width":
        raise ValueError(f"moments must be 'auto' or 'pooled' for {T} classes, got 'width'")
    if T > MOST:
        raise ValueError(
            f"the label takes {T} values, and advice is for at most {MOST} classes: join rare ones, or leave them out"
        )
    return ["Of more than two classes only linear classifiers are predicted."] if wanted.kernel == "best" else []


def _recalls(data, told, interval, confusion):
    """Return the table of the classes."""
    wrong = confusion.to_numpy().copy()
    np.fill_diagonal(wrong, -1.0)
    for_whom = pd.Series([data.classes[k] for k in wrong.argmax(axis=1)], dtype=object).to_numpy()
    columns = {"rows": data.sizes, "recall": told, "low": interval[0], "high": interval[1], "taken for": for_whom}
    return pd.DataFrame(columns, index=pd.Index(data.classes, name="class", dtype=object))


def _of_classes(data, candidate):
    """Return notes on classes that are never answered, and on machines without weights."""
    said, recall = [], np.diagonal(candidate.confusion)
    lost = [str(data.classes[k]) for k in np.flatnonzero(recall < 0.01)]
    if lost:
        shown = ", ".join(lost[:5]) + (f" and {len(lost) - 5} more" if len(lost) > 5 else "")
        said.append(f"Next to no row of these classes would be recognised: {shown}.")
    if candidate.collapsed:
        said.append(
            "Some machines have no weights to speak of: what an optimiser makes of them depends on where it stops."
        )
    return said


def _of_training(found, best):
    """Return a sentence on what was trained."""
    if best not in found.measured:
        return [unconverged([best])]
    value, error, told = found.measured[best]
    return [
        f"{found.fits} machines were trained on {found.rows:,} rows: macro recall {value:.3f} ± {error:.3f} in folds, "
        f"where the theory expected {told:.3f}. All predictions are weighed with that."
    ]


def _confidence(data, candidate):
    smallest = int(data.sizes.min())
    if smallest < FEW or candidate.collapsed:
        return "low"
    return "high" if smallest >= MANY and len(data.X) >= 5 * data.D else "moderate"


def _verified(advice, mixture, check, random_state):
    """Add what cross-validation measures, and whether it agrees."""
    from ._many_pipeline import measured

    recall, error, sizes = measured(advice, **check, random_state=random_state)
    table, smaller = advice.table.copy(), advice.setting._replace(sizes=tuple(sizes.tolist()))
    for row, candidate in advice.rows.items():
        table.loc[row, ["measured", "measured_error"]] = recall[row], error[row]
        mixing = None if np.isnan(candidate.mixing) else candidate.mixing
        at = solved(mixture, smaller, candidate.strategy, candidate.C, mixing)
        table.loc[row, "expected"] = np.nan if at is None else at.metrics.ba(candidate.offsets)
    advice.table, row = table, table.loc[advice.best]
    lost = [name for name, value in recall.items() if not np.isfinite(value)]
    if lost:
        advice.notes = [*advice.notes, unconverged(lost)]
    if advice.best in lost:
        return advice
    half = 0.5 * (row["high"] - row["low"])
    gap = abs(row["measured"] - row["expected"])
    advice.agrees = bool(gap <= max(OFF, np.hypot(half, 2.0 * row["measured_error"])))
    steps = ("low", "moderate", "high")
    place = steps.index(advice.confidence) + (1 if gap <= OFF else -1)
    advice.confidence = steps[min(max(place, 0), 2)] if advice.agrees else "low"
    return advice
