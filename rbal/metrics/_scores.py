"""Metrics of real scores, under the names of :class:`rbal.Metrics`."""

import numpy as np

from .._support.validation import one_of, real_array
from ._formulas import Rates
from ._metric_record import METRICS, named


def evaluate(scores, y, threshold=0.0, *, names=None, costs=None):
    """Return every metric of real scores, at the composition of the test set.

    Parameters
    ----------
    scores : (n,) array
        Higher for the positive class.
    y : (n,) array
        Labels +1 and -1, both present.
    threshold : float
        Answers are positive above it.
    names : iterable of str, optional
        Metrics to compute; by default all.
    costs : (float, float), optional
        Cost of a missed positive and of a false alarm; without them the metric "cost" is left out.

    Returns
    -------
    dict
        From names to floats: tpr, fpr, tnr, fnr, ba, acc, gen_error, ppv, npv, fdr, fomr, f1, fm, mcc, auprc and auc,
        as the methods of :class:`rbal.Metrics`; brier and log_loss (or loss) of the scores as logits; and all others in
        :data:`rbal.metrics.METRICS`. A share of answers that are never given is NaN; f1 and mcc are 0 there.

    Examples
    --------
    >>> m = evaluate([2.0, 1.0, -1.0, 0.5, -2.0, -1.0], [1, 1, 1, -1, -1, -1])
    >>> print(f"{m['tpr']:.3f} {m['tnr']:.3f} {m['ba']:.3f} {m['auc']:.3f} {m['ppv']:.3f}")
    0.667 0.667 0.667 0.833 0.667
    """
    scores, positive = _checked(scores, y)
    known = [name for name, record in METRICS.items() if _measurable(record, costs)]
    answer, phi = scores > real_array("threshold", threshold, 0, finite=False), positive.mean()
    pos, neg = answer[positive], answer[~positive]
    rates = Rates(pos.mean(), neg.mean(), (~neg).mean(), (~pos).mean())
    values = {}
    if names is not None and not isinstance(names, (list, tuple, set, dict)):
        raise TypeError(f"names must be a list of metrics, got {type(names).__name__}")
    for name in known if names is None else names:
        record = named(one_of("names", name, known), costs)
        values[name] = float(record.of_scores(scores, positive) if record.ranks else record.of_rates(rates, phi))
    return values


def _measurable(record, costs):
    """Return whether this metric can be computed from real scores, with these costs."""
    return not (record.ranks and record.of_scores is None) and (record.priced is None or costs is not None)


def best_threshold(scores, y):
    """Return the threshold of the highest balanced accuracy, midway between the two scores that it separates.

    Parameters
    ----------
    scores, y
        As for :func:`evaluate`; a fair threshold needs samples that were not trained on.

    Returns
    -------
    float
        The middle of the widest gap, if several thresholds are equally good.

    Examples
    --------
    >>> best_threshold([3.0, 2.0, -1.0, -3.0], [1, 1, 1, -1])
    -2.0
    """
    scores, positive = _checked(scores, y)
    order = np.argsort(scores)
    s, p = scores[order], positive[order]
    # for thresholds below all scores, between neighbours and above all scores
    ba = 0.5 * (1 - np.r_[0, np.cumsum(p)] / p.sum() + np.r_[0, np.cumsum(~p)] / (~p).sum())
    gaps = np.r_[0.0, np.diff(s), 0.0]
    gaps[1:-1][gaps[1:-1] == 0] = -1.0  # no threshold fits between equal scores
    middle = np.r_[s[0] - 1.0, 0.5 * (s[1:] + s[:-1]), s[-1]]
    best = np.flatnonzero((ba >= ba[gaps >= 0].max() - 1e-12) & (gaps >= 0))
    return float(middle[best[np.argmax(gaps[best])]])


def _checked(scores, y):
    scores, y = real_array("scores", scores, 1), real_array("y", y, 1)
    if scores.shape != y.shape:
        raise ValueError(f"y must have the shape of scores {scores.shape}, got {y.shape}")
    if set(np.unique(y)) != {-1.0, 1.0}:
        raise ValueError(f"y must hold the labels +1 and -1, both, got {np.unique(y)[:5]}")
    return scores, y > 0
