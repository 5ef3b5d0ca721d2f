r"""Metrics of a linear classifier, from its order parameters.

On a test sample of class :math:`y` the score is Gaussian, :math:`\Delta^y\sim\mathcal N(y r/2 - b,\, q)`, and every
metric of the confusion matrix is a function of :math:`(q, r, b)`, of the threshold :math:`\gamma` and, for those that
depend on it, of the share :math:`\varphi^+` of positives in the test set. The same formulas serve real scores. Every
metric has one record, in :data:`METRICS`.
"""

from ._decisions import Threshold, UncertainCost
from ._metric_record import METRICS, Metric, cost, register
from ._mixture_metrics import MixtureMetrics
from ._multiclass import ManyMetrics
from ._probabilities import Link, Reliability
from ._scores import best_threshold, evaluate
from ._theory import Metrics

__all__ = [
    "METRICS", "Link", "ManyMetrics", "Metric", "Metrics", "MixtureMetrics", "Reliability", "Threshold",
    "UncertainCost", "best_threshold", "cost", "evaluate", "register",
]  # fmt: skip
