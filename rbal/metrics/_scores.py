"""Metrics of real scores, under the names of :class:`rbal.Metrics`."""

import numpy as np
from scipy.stats import rankdata

from .._support.validation import real_array


def evaluate(scores, y, threshold=0.0):
    """Every metric of real scores, at the composition of the test set.

    Parameters
    ----------
    scores : (n,) array
        Higher for the positive class.
    y : (n,) array
        Labels +1 and -1, both present.
    threshold : float
        Answers are positive above it.

    Returns
    -------
    dict
        tpr, fpr, tnr, fnr, ba, acc, gen_error, ppv, npv, fdr, fomr, f1, fm, mcc, auc, auprc, as methods of
        :class:`rbal.Metrics` are called; and loss, the mean cross-entropy of the scores as logits. A share of answers
        that are never given is NaN; f1 and mcc are 0 there.

    Examples
    --------
    >>> m = evaluate([2.0, 1.0, -1.0, 0.5, -2.0, -1.0], [1, 1, 1, -1, -1, -1])
    >>> print(f"{m['tpr']:.3f} {m['tnr']:.3f} {m['ba']:.3f} {m['auc']:.3f} {m['ppv']:.3f}")
    0.667 0.667 0.667 0.833 0.667
    """
    scores, positive = _checked(scores, y)
    answer = scores > threshold
    n_pos, n_neg = positive.sum(), (~positive).sum()
    tp, fp = np.sum(answer & positive), np.sum(answer & ~positive)
    fn, tn = n_pos - tp, n_neg - fp
    tpr, tnr, phi = tp / n_pos, tn / n_neg, n_pos / len(scores)
    ppv, npv = (float(a) / (a + b) if a + b else np.nan for a, b in ((tp, fp), (tn, fn)))
    spread = np.sqrt(float(tp + fp) * (tn + fn) * n_pos * n_neg)
    values = {
        "tpr": tpr, "fpr": 1 - tnr, "tnr": tnr, "fnr": 1 - tpr,
        "ba": 0.5 * (tpr + tnr),
        "acc": phi * tpr + (1 - phi) * tnr, "gen_error": phi * (1 - tpr) + (1 - phi) * (1 - tnr),
        "ppv": ppv, "npv": npv, "fdr": 1 - ppv, "fomr": 1 - npv,
        "f1": 2 * tp / (2 * tp + fp + fn), "fm": np.sqrt(ppv * tpr),
        "mcc": (float(tp) * tn - float(fp) * fn) / spread if spread else 0.0,
        "auc": area(scores, positive), "auprc": _average_precision(scores, positive),
        "loss": np.mean(np.logaddexp(0.0, np.where(positive, -scores, scores))),
    }  # fmt: skip
    return {name: float(value) for name, value in values.items()}


def best_threshold(scores, y):
    """Threshold of the highest balanced accuracy on these scores: midway between the two scores that it separates.

    Parameters
    ----------
    scores, y
        As for :func:`evaluate`; to be fair, of samples that were not trained on.

    Returns
    -------
    float
        The middle of the widest gap, where several thresholds are equally good.

    Examples
    --------
    >>> best_threshold([3.0, 2.0, -1.0, -3.0], [1, 1, 1, -1])
    -2.0
    """
    scores, positive = _checked(scores, y)
    order = np.argsort(scores)
    s, p = scores[order], positive[order]
    # threshold below everything, then between neighbours, then above everything
    ba = 0.5 * (1 - np.r_[0, np.cumsum(p)] / p.sum() + np.r_[0, np.cumsum(~p)] / (~p).sum())
    gaps = np.r_[0.0, np.diff(s), 0.0]
    gaps[1:-1][gaps[1:-1] == 0] = -1.0  # no threshold fits between equal scores
    middle = np.r_[s[0] - 1.0, 0.5 * (s[1:] + s[:-1]), s[-1]]
    best = np.flatnonzero((ba >= ba[gaps >= 0].max() - 1e-12) & (gaps >= 0))
    return float(middle[best[np.argmax(gaps[best])]])


def area(scores, positive):
    """Area under the ROC curve: how often a positive has the higher score (Mann and Whitney; ties count half)."""
    n_pos, n_neg = positive.sum(), (~positive).sum()
    wins = rankdata(scores)[positive].sum() - 0.5 * n_pos * (n_pos + 1)
    return float(wins / (float(n_pos) * n_neg))


def _average_precision(scores, positive):
    """Precision averaged over the recall, equal scores taken together."""
    order = np.argsort(-scores, kind="stable")
    last = np.r_[np.diff(scores[order]) != 0, True]
    hits = np.cumsum(positive[order])[last]
    precision = hits / (np.flatnonzero(last) + 1)
    return np.sum(np.diff(np.r_[0, hits]) * precision) / positive.sum()


def _checked(scores, y):
    scores, y = real_array("scores", scores, 1), real_array("y", y, 1)
    if scores.shape != y.shape:
        raise ValueError(f"y must have the shape of scores {scores.shape}, got {y.shape}")
    if set(np.unique(y)) != {-1.0, 1.0}:
        raise ValueError(f"y must hold the labels +1 and -1, both, got {np.unique(y)[:5]}")
    return scores, y > 0
