"""What to do with an imbalanced table: the theory, fed with its moments, predicts every remedy.

:func:`advise` measures the class statistics of a table (see :mod:`rbal._estimate` for how, from few samples), solves the
saddle point of the user's classifier under each remedy, and says which one to take, how sure that is, and when not to
believe it.
"""

from dataclasses import dataclass, field

import numpy as np

from . import _table
from ._estimate import Fitter
from ._remedies import METRICS, STRATEGIES, Setting, designs, evaluate
from ._validation import number, one_of, positive_int

LOSSES = ("hinge", "squared_hinge", "logistic")
SIMPLEST_FIRST = (
    ("as is", "trained"), ("class weights", "trained"), ("as is", "moved"), ("class weights", "moved"),
    ("oversampling", "trained"), ("undersampling", "trained"), ("best mix", "trained"),
    ("oversampling", "moved"), ("undersampling", "moved"), ("best mix", "moved"),
)  # fmt: skip
NEGLIGIBLE = 0.002  # remedies closer than this are the same, and the simplest is taken


@dataclass
class Advice:
    """What :func:`advise` found.

    Attributes
    ----------
    table : pandas.DataFrame
        One row a remedy, index (strategy, threshold). Columns: ``predicted`` (of the metric), its interval ``low`` to
        ``high``, ``behind`` (how far behind the best remedy) and the standard error ``error`` of that, whether it is as
        good as the best (``as_good``), ``tpr``, ``tnr``, ``auc``, ``mixing``; after a check also ``measured``, its
        standard error ``measured_error``, and ``expected``, the prediction at the size of the training folds.
    best : (str, str)
        Row of the remedy that is recommended.
    mixing, mixing_low, mixing_high : float
        Best mixture of under- and oversampling at the trained threshold, and the range that is within one standard
        error of it.
    notes : list of str
        Where the theory does not apply, or hardly.
    agrees : bool or None
        Whether the check agrees with the theory; None without a check.
    confidence : str
        "high", "moderate" or "low".
    """

    table: object
    best: tuple
    metric: str
    mixing: float
    mixing_low: float
    mixing_high: float
    notes: list = field(default_factory=list)
    agrees: bool | None = None
    confidence: str = "moderate"
    data: object = None
    curve: object = None
    moments: object = None

    def sampler(self, random_state=None):
        """Sampler of the recommended remedy, for a pipeline of imbalanced-learn.

        Where the remedy is class weights or the threshold alone, it leaves the samples as they are.
        """
        from imblearn import FunctionSampler

        from .samplers import RandomMixSampler

        mixing = self.table.loc[self.best, "mixing"]
        return FunctionSampler() if np.isnan(mixing) else RandomMixSampler(mixing=mixing, random_state=random_state)

    def explain(self):
        """Recommendation, its reason and its confidence, in plain words."""
        strategy, threshold = self.best
        return f"{strategy}, {threshold} threshold"


def advise(
    X,
    y,
    metric="ba",
    *,
    C=1.0,
    loss="hinge",
    costs=None,
    positive=None,
    categorical="auto",
    standardize=True,
    check=False,
    folds=5,
    repeats=4,
    draws=200,
    level=0.9,
    n_jobs=None,
    random_state=0,
    progress=True,
):
    """Advice on the class imbalance of a table, for a linear classifier.

    Parameters
    ----------
    X : (n, L) array, DataFrame or sparse matrix
        Features. Columns of a DataFrame that hold no numbers are categorical.
    y : (n,) array
        Two labels of any type.
    metric : {"ba", "f1", "mcc", "auprc", "auc", "cost"}
        What counts.
    C : float
        Inverse ridge of the classifier, as in scikit-learn.
    loss : {"hinge", "squared_hinge", "logistic"}
        Loss of the classifier: a linear SVM, LinearSVC's default, or logistic regression.
    costs : (float, float), optional
        Cost of a missed positive and of a false alarm, for ``metric="cost"``.
    positive : label, optional
        Label of the positive class; by default the rarer one.
    categorical : "auto" or list of columns
        Columns to encode one-hot.
    standardize : bool
        Whether the classifier sees numeric columns scaled to unit variance.
    check : bool
        Whether to train the classifier on the data too, by repeated stratified cross-validation.
    folds, repeats : int
        Of the check.
    draws : int
        Draws of the moments behind the intervals.
    level : float
        Coverage of the intervals.
    n_jobs : int, optional
        Workers of the check, as in joblib; by default all cores.
    random_state : int
        Seed.
    progress : bool
        Whether the check shows a bar.

    Returns
    -------
    Advice
    """
    one_of("metric", metric, METRICS)
    one_of("loss", loss, LOSSES)
    number("C", C, 0.0, open_low=True)
    number("level", level, 0.0, 1.0, open_low=True)
    positive_int("draws", draws)
    data = _table.from_arrays(X, y, positive, categorical, standardize)
    setting = Setting(data.n_pos, data.n_neg, data.D, C, loss, metric, _costs(metric, costs))
    return _advice(data, setting, draws, level, random_state)


def _costs(metric, costs):
    """Costs of a missed positive and of a false alarm."""
    if metric != "cost":
        if costs is not None:
            raise ValueError(f"costs go with metric='cost', got metric={metric!r}")
        return 1.0, 1.0
    if costs is None or np.size(costs) != 2:
        raise ValueError(f"costs must be two numbers, of a missed positive and of a false alarm, got {costs!r}")
    return tuple(number("costs", cost, 0.0, open_low=True) for cost in costs)


def _advice(data, setting, draws, level, random_state):
    """Prediction from the moments alone."""
    fitter = Fitter(data.sample)
    moments = fitter.fit()
    at = evaluate(moments, setting)
    rng = np.random.default_rng(random_state)
    others = np.stack([evaluate(m, setting).value for m in fitter.draws(draws, rng)])
    chosen = _rows(setting, at.value)
    table = _summary(setting, at, others, chosen, level)
    best = _recommended(table)
    curve, mixing, low, high = _flatness(setting, at.value[0], others[:, 0])
    return Advice(table, best, setting.metric, mixing, low, high, data=data, curve=curve, moments=moments)


def _rows(setting, value):
    """(strategy, threshold) to the index of its design."""
    rows = {}
    for name in STRATEGIES:
        for k, kind in enumerate(setting.thresholds):
            last = value.shape[1] - 1
            best = 2 + int(np.nanargmax(value[k, 2:]))
            at = {"as is": 0, "class weights": 1, "undersampling": 2, "oversampling": last, "best mix": best}
            rows[name, kind] = (k, at[name])
    return rows


def _summary(setting, at, others, chosen, level):
    """The table of all remedies."""
    import pandas as pd

    d = designs(setting)
    sign = -1.0 if setting.metric == "cost" else 1.0
    top = max(chosen.values(), key=lambda place: np.nan_to_num(at.value[place], nan=-np.inf))
    tails = 0.5 - 0.5 * level, 0.5 + 0.5 * level
    rows = {}
    for name, (k, j) in chosen.items():
        behind, gap = at.value[top] - at.value[k, j], others[:, *top] - others[:, k, j]
        error = float(np.nanstd(gap))
        low, high = np.sort(sign * np.nanquantile(others[:, k, j], tails))
        rows[name] = {
            "predicted": sign * at.value[k, j], "low": low, "high": high, "behind": behind, "error": error,
            "as_good": bool(behind <= max(error, NEGLIGIBLE)), "tpr": at.tpr[k, j], "tnr": at.tnr[k, j],
            "auc": at.auc[j], "mixing": d.mixing[j],
        }  # fmt: skip
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["strategy", "threshold"])
    return table


def _recommended(table):
    """Simplest of the remedies that are as good as the best but for a negligible difference."""
    good = table["behind"] <= NEGLIGIBLE
    return next(row for row in SIMPLEST_FIRST if row in table.index and good[row])


def _flatness(setting, value, others):
    """Curve of the metric against the mixing, its best point and the range within one standard error of it."""
    d = designs(setting)
    mixing, value, others = d.mixing[2:], value[2:], others[:, 2:]
    best = int(np.nanargmax(value))
    error = np.nanstd(others[:, [best]] - others, axis=0)
    fine = value[best] - value <= np.maximum(error, NEGLIGIBLE)
    low = best - int(np.argmax(~fine[best::-1])) + 1 if not fine[: best + 1].all() else 0
    high = best + int(np.argmax(~fine[best:])) - 1 if not fine[best:].all() else len(fine) - 1
    return (mixing, value, others), float(mixing[best]), float(mixing[low]), float(mixing[high])
