"""Compare every remedy for one imbalanced set."""

import numpy as np

from .._support.validation import number
from .._support.warnings import one_convergence_warning
from ..metrics import Link
from ..saddle import solve
from ._mixing import best_mixing, scored, sizes
from ._remedy_record import REMEDIES


@one_convergence_warning()
def compare(moments, alpha_pos, alpha_neg, kappa=None, *, metric="ba", phi_pos=None, **options):
    """Return a table of every remedy for one imbalanced set, each with the trained threshold and with a moved one.

    The strategies are those of :data:`rbal.strategies.REMEDIES`: the unmodified set; undersampling; oversampling; the
    best mixture of both; class weights inverse to the class sizes with mean 1, as scikit-learn's
    ``class_weight="balanced"``; and all that are registered. The moved threshold is that of the highest balanced
    accuracy: for classes with one covariance it is midway between the class means of the score. Class weights and
    oversampling are the same for the perceptron; for an SVM the weights are smaller, and so the ridge has more effect.

    Parameters
    ----------
    moments : Moments or Mixture
    alpha_pos, alpha_neg : float
        Class sizes over L.
    kappa : float, optional
        Margin.
    metric : str, Metric or callable
        Metric by which the best mixture is chosen, as in :func:`best_mixing`; it is also the last column.
    phi_pos : float, optional
        Share of positives in the test set; by default that of the unmodified set.
    **options
        Passed on to :func:`rbal.solve`: model, lam, loss, fit_bias, tol, max_iter.

    Returns
    -------
    pandas.DataFrame
        Index (strategy, threshold), threshold "trained" or "moved"; columns n_pos and n_neg (distinct samples over L),
        weight_pos, weight_neg, q (of a mixture, the mean over its clusters), r, b (counted from the threshold), tpr,
        tnr, ba, auc and the metric.

    Examples
    --------
    >>> import rbal
    >>> classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    >>> compare(classes, 0.5, 5.0, kappa=0.5)["ba"].unstack(sort=False).round(3)
    threshold      trained  moved
    strategy
    as is            0.551  0.603
    undersampling    0.574  0.574
    oversampling     0.591  0.603
    best mix         0.591  0.603
    class weights    0.591  0.603
    """
    import pandas as pd

    pos, neg = number("alpha_pos", alpha_pos, 0.0, open_low=True), number("alpha_neg", alpha_neg, 0.0, open_low=True)
    sizes(pos, neg)
    phi = pos / (pos + neg) if phi_pos is None else number("phi_pos", phi_pos, 0.0, 1.0)
    for name, value in {"kappa": kappa, "lam": options.get("lam")}.items():
        if value is not None:
            number(name, value, 0.0)  # an array would be many problems, and the table has one
    score, sign = scored(metric, phi)
    label = metric if isinstance(metric, str) else getattr(metric, "name", getattr(metric, "__name__", "metric"))
    rows, known = {}, {}
    for threshold, moved in (("trained", False), ("moved", True)):
        see = _centred if moved else _as_trained
        best = best_mixing(moments, pos, neg, kappa, metric=lambda m, see=see: sign * score(see(m)), **options)
        for name, remedy in REMEDIES.items():
            design = n_pos, n_neg, weight_pos, weight_neg = (*map(float, remedy.design(pos, neg, float(best.c))),)
            if design not in known:
                known[design] = solve(
                    moments, n_pos, n_neg, kappa, weight_pos=weight_pos, weight_neg=weight_neg, **options
                )
            m = see(known[design].metrics)
            rows[name, threshold] = {
                "n_pos": n_pos, "n_neg": n_neg, "weight_pos": weight_pos, "weight_neg": weight_neg,
                "q": np.mean(m.q), "r": m.r, "b": m.b,
                "tpr": m.tpr(), "tnr": m.tnr(), "ba": m.ba(), "auc": m.auc(), label: score(m),
            }  # fmt: skip
    table = pd.DataFrame.from_dict(rows, orient="index", dtype=float).rename_axis(["strategy", "threshold"])
    return table.loc[[(name, threshold) for name in REMEDIES for threshold in ("trained", "moved")]]


def _as_trained(metrics):
    return metrics


def _centred(metrics):
    """Return the metrics after the threshold is moved to where the balanced accuracy is highest.

    Where no threshold is better than a constant answer, it is moved midway between the classes.
    """
    best = metrics.best_threshold()
    return metrics.linked(Link(1.0, -np.where(np.isinf(best), -metrics.b, best)))
