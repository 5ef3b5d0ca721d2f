"""One record for each metric: its names, its formula, and which way is better.

Whatever takes a metric by its name, from :func:`rbal.strategies.compare` to the command line, looks it up in
:data:`METRICS`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from .._support.records import Record, enter
from .._support.validation import flag, number, one_of
from . import _formulas as formulas


@dataclass(frozen=True)
class Metric(Record):
    """A metric of the theory, of real scores, or of both.

    A metric of the confusion matrix has one formula, ``of_rates``, for both. A metric that needs no threshold has
    ``of_theory`` and ``of_scores`` instead.

    Attributes
    ----------
    name : str
        Name that ``metric=`` takes.
    label, title, about : str
        Text for a legend ("BA"), for a sentence ("balanced accuracy"), and for a menu if the title does not explain it.
    of_rates : callable, optional
        Function of rates, with the attributes tpr, fpr, tnr and fnr, and of the share of positives; arrays broadcast.
    of_theory : callable, optional
        Function of a :class:`rbal.Metrics`, the share of positives and a threshold; by default ``of_rates`` there.
    of_scores : callable, optional
        Function of scores (n,), whether each is that of a positive (n,), and weights (n,) or None.
    higher_is_better : bool
    goal : bool
        Whether it makes sense to optimise it. The true positive rate is best if every answer is positive, so it is not.
    balanced : bool
        Whether it favours balance, so that class weights are the first remedy to think of.
    best_threshold : callable, optional
        Threshold at which it is best, as a function of a :class:`rbal.Metrics` and the share of positives; by default
        it is searched.
    unit : callable, optional
        Scale by which differences are judged, as a function of the share of positives; by default 1.
    priced : callable, optional
        Function that returns this metric with other costs of a missed positive and of a false alarm.
    """

    _registry = ("rbal.metrics", "METRICS")
    name: str
    label: str
    title: str
    about: str = ""
    of_rates: Callable | None = None
    of_theory: Callable | None = None
    of_scores: Callable | None = None
    higher_is_better: bool = True
    goal: bool = True
    balanced: bool = False
    best_threshold: Callable | None = None
    unit: Callable | None = None
    priced: Callable | None = None

    def __post_init__(self):
        for name in ("higher_is_better", "goal", "balanced"):
            flag(name, getattr(self, name))
        for name in ("of_rates", "of_theory", "of_scores", "best_threshold", "unit", "priced"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise TypeError(f"{name} must be a function or None, got {type(getattr(self, name)).__name__}")
        if self.of_theory is None and self.of_rates is not None:
            object.__setattr__(self, "of_theory", partial(_of_theory, self.of_rates))
        if self.goal and self.of_rates is None and None in (self.of_theory, self.of_scores):
            raise ValueError(f"metric {self.name!r} must have of_rates, or of_theory and of_scores")

    def __reduce__(self):
        if self.priced and self != METRICS.get(self.name) and isinstance(self.of_rates, partial):
            return self.priced, tuple(self.of_rates.keywords.values())  # made anew from its costs
        return super().__reduce__()

    @property
    def sign(self):
        """+1 if higher is better, -1 if lower is."""
        return 1.0 if self.higher_is_better else -1.0

    @property
    def ranks(self):
        """Whether it does not depend on the threshold."""
        return self.of_rates is None


def _of_theory(of_rates, metrics, phi_pos, threshold=0.0):
    return of_rates(metrics._rates(threshold), phi_pos)


def register(metric):
    """Add a metric to METRICS, so that every function knows it by its name.

    Parameters
    ----------
    metric : Metric
        Its name must be new.

    Returns
    -------
    Metric

    Examples
    --------
    >>> import rbal
    >>> g_mean = Metric("g_mean", "G", "geometric mean", of_rates=lambda rates, phi: (rates.tpr * rates.tnr) ** 0.5)
    >>> known = register(g_mean)
    >>> print(f"{rbal.metrics.evaluate([2.0, 1.0, -1.0, -2.0], [1, -1, 1, -1])['g_mean']:.2f}")
    0.50
    >>> del rbal.metrics.METRICS["g_mean"]
    """
    return enter(METRICS, Metric, metric)


def cost(miss=1.0, alarm=1.0):
    """Return the record of the mean cost of an answer.

    Parameters
    ----------
    miss, alarm : float
        Cost of a missed positive and of a false alarm.

    Returns
    -------
    Metric
        For ``metric=`` of :func:`rbal.strategies.best_mixing` and :func:`rbal.strategies.compare`.
    """
    miss, alarm = (number("costs", price, 0.0, open_low=True) for price in (miss, alarm))
    return Metric(
        "cost", "cost", "cost per sample", of_rates=partial(formulas.cost, miss=miss, alarm=alarm),
        higher_is_better=False, balanced=True, priced=cost,
        unit=lambda phi: min(phi * miss, (1.0 - phi) * alarm),  # cost of always giving the cheaper answer
    )  # fmt: skip


def two_prices(costs):
    """Return the costs of a miss and of an alarm, when they are two numbers > 0."""
    try:
        miss, alarm = costs
    except (TypeError, ValueError):
        raise ValueError(f"costs must be two numbers, of a miss and of an alarm, got {costs!r}") from None
    return tuple(number("costs", price, 0.0, open_low=True) for price in (miss, alarm))


def named(name, costs=None):
    """Return the record of that name, with these costs if it takes any."""
    metric = METRICS[one_of("metric", name, tuple(METRICS))]
    return metric.priced(*two_prices(costs)) if metric.priced and costs is not None else metric


def goals():
    """Return the names of the metrics that can be optimised."""
    return tuple(name for name, record in METRICS.items() if record.goal)


def _method(name):
    """Return a function that calls this method of Metrics, which is exact even where the rates underflow."""
    return lambda metrics, phi_pos, threshold=0.0: getattr(metrics, name)(phi_pos, threshold)


_MEANS = {"goal": False}  # a means, not an end in itself
_ALL = (
    Metric("tpr", "TPR", "true positive rate", "true positive rate, recall", lambda r, phi: r.tpr, **_MEANS),
    Metric("fpr", "FPR", "false positive rate", of_rates=lambda r, phi: r.fpr, higher_is_better=False, **_MEANS),
    Metric("tnr", "TNR", "true negative rate", of_rates=lambda r, phi: r.tnr, **_MEANS),
    Metric("fnr", "FNR", "false negative rate", of_rates=lambda r, phi: r.fnr, higher_is_better=False, **_MEANS),
    Metric("ba", "BA", "balanced accuracy", of_rates=formulas.ba, balanced=True,
           best_threshold=lambda m, phi: m.best_threshold()),
    Metric("acc", "ACC", "accuracy", of_rates=formulas.acc, **_MEANS),
    Metric("gen_error", "error", "misclassification error", of_rates=formulas.cost, higher_is_better=False, **_MEANS),
    Metric("gen_loss", "loss", "mean shortfall of the margin", of_theory=lambda m, phi, _=0.0: m.gen_loss(phi),
           higher_is_better=False, **_MEANS),
    Metric("ppv", "PPV", "positive predictive value", "positive predictive value, precision",
           formulas.ppv, _method("ppv"), **_MEANS),
    Metric("npv", "NPV", "negative predictive value", "", formulas.npv, _method("npv"), **_MEANS),
    Metric("fdr", "FDR", "false discovery rate", "", formulas.fdr, _method("fdr"), higher_is_better=False, **_MEANS),
    Metric("fomr", "FOMR", "false omission rate", "", formulas.fomr, _method("fomr"), higher_is_better=False, **_MEANS),
    Metric("f1", "F₁", "F1", "harmonic mean of precision and recall", formulas.f1),
    Metric("fm", "FM", "Fowlkes–Mallows index", "", formulas.fm, _method("fm"), **_MEANS),
    Metric("mcc", "MCC", "Matthews correlation", "Matthews correlation coefficient", formulas.mcc),
    Metric("auprc", "AUPRC", "area under the precision–recall curve",
           of_theory=lambda m, phi, _=0.0: m.auprc(phi), of_scores=formulas.auprc),
    Metric("auc", "AUC", "area under the ROC curve", of_theory=lambda m, phi, _=0.0: m.auc(), of_scores=formulas.auc),
    # of the score as log-odds, as logistic regression claims; with an honest link they rank classifiers as the AUC does
    Metric("brier", "Brier", "Brier score", of_theory=lambda m, phi, _=0.0: m.brier(phi), of_scores=formulas.brier,
           higher_is_better=False, **_MEANS),
    Metric("log_loss", "log loss", "log loss", of_theory=lambda m, phi, _=0.0: m.log_loss(phi),
           of_scores=formulas.cross_entropy, higher_is_better=False, **_MEANS),
    Metric("best_ba", "best BA", "balanced accuracy at the best threshold", of_theory=lambda m, phi, _=0.0: m.best_ba(),
           **_MEANS),
    cost(),
    Metric("loss", "loss", "cross-entropy of the scores as logits", of_scores=formulas.cross_entropy,
           higher_is_better=False, **_MEANS),
)  # fmt: skip
METRICS = {metric.name: metric for metric in _ALL}
