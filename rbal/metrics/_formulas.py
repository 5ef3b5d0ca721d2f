"""The formula of each metric, from the four rates and the share of positives, or from scores and labels."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit


class Rates(NamedTuple):
    """Rates of the four outcomes, each within its class; numbers or arrays of one shape."""

    tpr: float
    fpr: float
    tnr: float
    fnr: float

    @classmethod
    def of(cls, tpr, fpr):
        """Return all four rates, from the shares of each class that are answered "positive"."""
        return cls(tpr, fpr, 1.0 - fpr, 1.0 - tpr)


def ba(rates, phi):
    """Return the balanced accuracy, the mean of TPR and TNR."""
    return 0.5 * (rates.tpr + rates.tnr)


def acc(rates, phi):
    """Return the accuracy on a test set with a share phi of positives."""
    return phi * rates.tpr + (1.0 - phi) * rates.tnr


def cost(rates, phi, miss=1.0, alarm=1.0):
    """Return the mean cost of an answer, which for costs of 1 is the misclassification error, without cancellation."""
    return miss * phi * rates.fnr + alarm * (1.0 - phi) * rates.fpr


def ppv(rates, phi):
    """Return the positive predictive value, NaN where no answer is positive."""
    return _part(phi * rates.tpr, (1.0 - phi) * rates.fpr)


def npv(rates, phi):
    """Return the negative predictive value, NaN where no answer is negative."""
    return _part((1.0 - phi) * rates.tnr, phi * rates.fnr)


def fdr(rates, phi):
    """Return the false discovery rate, 1 - PPV."""
    return _part((1.0 - phi) * rates.fpr, phi * rates.tpr)


def fomr(rates, phi):
    """Return the false omission rate, 1 - NPV."""
    return _part(phi * rates.fnr, (1.0 - phi) * rates.tnr)


def f1(rates, phi):
    """Return F1, the harmonic mean of precision and recall."""
    total = phi * (1.0 + rates.tpr) + (1.0 - phi) * rates.fpr
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total == 0, 0.0, 2.0 * phi * rates.tpr / total)[()]


def fm(rates, phi):
    """Return the Fowlkes–Mallows index, √(PPV·TPR)."""
    return np.sqrt(ppv(rates, phi) * rates.tpr)


def mcc(rates, phi):
    """Return the Matthews correlation, 0 where one class is never predicted."""
    tpr, fpr, tnr, fnr = rates
    spread = (phi * tpr + (1.0 - phi) * fpr) * (phi * fnr + (1.0 - phi) * tnr)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.sqrt(phi * (1.0 - phi)) * (tpr * tnr - fpr * fnr) / np.sqrt(spread)
    return np.where(spread == 0, 0.0, value)[()]


def auc(scores, positive, weight=None):
    """Return how often a positive has the higher score (Mann and Whitney; ties count half), all arguments (n,)."""
    pos, neg = _counts(scores, positive, weight)
    return float(pos @ (np.cumsum(neg) - 0.5 * neg) / (pos.sum() * neg.sum()))


def auprc(scores, positive, weight=None):
    """Return the precision averaged over the recall, equal scores taken together; all arguments are (n,)."""
    pos, neg = (counts[::-1] for counts in _counts(scores, positive, weight))
    hits = np.cumsum(pos)
    return float(pos @ (hits / np.maximum(hits + np.cumsum(neg), 1e-300)) / hits[-1])


def cross_entropy(scores, positive, weight=None):
    """Return the mean cross-entropy of scores (n,) taken as logits."""
    return float(np.average(np.logaddexp(0.0, np.where(positive, -scores, scores)), weights=weight))


def brier(scores, positive, weight=None):
    """Return the mean squared difference of outcomes and the probabilities of scores (n,) taken as logits."""
    return float(np.average(expit(np.where(positive, -scores, scores)) ** 2, weights=weight))


def _part(of, other):
    """Return of / (of + other), NaN where both are 0."""
    with np.errstate(invalid="ignore"):
        return np.divide(of, of + other)


def _counts(scores, positive, weight):
    """Return the weights of positives and of negatives at each distinct score, from the lowest up."""
    values, place = np.unique(scores, return_inverse=True)
    weight = np.ones(len(scores)) if weight is None else weight
    return (np.bincount(place[member], weight[member], len(values)) for member in (positive, ~positive))
