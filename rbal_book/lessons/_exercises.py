"""What answers are held to."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from scipy.special import ndtr, ndtri

from ._data import classes, scored, tumours

TP, FN, FP, TN = 18, 82, 45, 1855  # the report of the first lesson
POS, NEG, KAPPA = 0.5, 5.0, 0.5  # sizes and margin of the second one
FEW = 0.2, 4.0  # and its sizes with still fewer positives


@dataclass(frozen=True)
class Exercise:
    """What an answer is held to: a function that computes it, how far off it may be, a hint, and frequent slips."""

    expected: Callable
    hint: str
    right: str
    tolerance: float = 2e-3
    slips: dict = field(default_factory=dict)  # what to say to a wrong answer: a function of none that computes it


def _rates():
    return TP / (TP + FN), TN / (TN + FP)


def _separation():
    return float(sum(ndtri(_rates())))


def _precision(share):
    tpr, tnr = _rates()
    return share * tpr / (share * tpr + (1 - share) * (1 - tnr))


def _pairs():
    scores, labels = scored()
    return float(np.mean(scores[labels > 0][:, None] > scores[labels < 0]))


def _best_cut():
    """Highest balanced accuracy of the scores over all thresholds."""
    scores, labels = scored()
    cuts = np.sort(scores)[:, None]
    right = (scores > cuts) == (labels > 0)
    return float(np.max((right[:, labels > 0].mean(axis=1) + right[:, labels < 0].mean(axis=1)) / 2))


@cache
def _solved(pos=POS, neg=NEG, kappa=KAPPA, weight=1.0):
    from rbal.saddle import solve

    return solve(classes().moments, pos, neg, kappa, weight_pos=weight).metrics


@cache
def _mixing():
    from rbal.strategies import best_mixing

    return best_mixing(classes().moments, *FEW, KAPPA)


def _ranking():
    values = {
        "as it is": _solved().ba(),
        "undersampling": _solved(neg=POS).ba(),
        "oversampling": _solved(weight=NEG / POS).ba(),
        "moved threshold": _solved().best_ba(),
    }
    return sorted(values, key=values.get)


@cache
def _advice():
    from rbal.advice import advise

    X, y, _, _ = tumours()
    return advise(X, y, kernel="linear", progress=False)


@cache
def _measured(advised):
    """Balanced accuracy on the rows locked away: of the pipeline that is advised, or of an SVM and nothing else."""
    from sklearn.metrics import balanced_accuracy_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    X, y, X_locked, y_locked = tumours()
    plain = make_pipeline(StandardScaler(), SVC(kernel="linear", C=1.0))
    model = _advice().pipeline(random_state=0) if advised else plain
    return float(balanced_accuracy_score(y_locked, model.fit(X, y).predict(X_locked)))


def _inside():
    row = _advice().table.loc[_advice().best]
    return bool(row["low"] <= _measured(True) <= row["high"])


_METRICS = {
    "metrics-constant": Exercise(
        lambda: (TN + FP) / (TP + FN + FP + TN),
        "It is right on every negative of the test set, and wrong on every positive. How many are there of each?",
        "Right. This is the number that an accuracy has to beat.",
    ),
    "metrics-accuracy": Exercise(
        lambda: (TP + TN) / (TP + FN + FP + TN),
        "Count the answers that are right, of both classes, and divide by all 2,000.",
        "Right, and it is less than a constant answer has.",
    ),
    "metrics-balanced": Exercise(
        lambda: sum(_rates()) / 2,
        "Take the share of the positives that are found and the share of the negatives that are spared, each of its "
        "own class. Then their mean.",
        "Right: little more than one half, which any constant answer has.",
        slips={"This is the accuracy: it counts every sample alike.": lambda: (TP + TN) / (TP + FN + FP + TN)},
    ),
    "metrics-precision": Exercise(
        lambda: TP / (TP + FP),
        "Of all that were called positive, how many are?",
        "Right. Seven of ten alarms are false.",
        slips={"This is the recall: of all positives, the share that was found.": lambda: _rates()[0]},
    ),
    "metrics-rarer": Exercise(
        lambda: _precision(0.01),
        "The two rates stay as they are. Of 10,000 people 100 are now positive and 9,900 negative: how many alarms "
        "does each group give?",
        "Right. The classifier is the same, and its precision is a quarter of what it was.",
        slips={"This is the precision of the report, where 5 % are positive.": lambda: TP / (TP + FP)},
    ),
    "metrics-blind": Exercise(
        lambda: {"TPR", "TNR", "BA", "AUC"},
        "What stays the same is made of quantities that look at one class at a time, or at pairs with one sample of "
        "each.",
        "Right. All the others change with the test set, though the classifier does not.",
    ),
    "metrics-pairs": Exercise(
        _pairs,
        "Compare each of the 100 positives with each of the 900 negatives: scores[labels > 0][:, None] is a column, "
        "scores[labels < 0] a row.",
        "Right. The AUC needs no threshold, since it only compares.",
    ),
    "metrics-separation": Exercise(
        _separation,
        "ndtri, the inverse of the normal distribution function, says how many widths of the bell a rate lies away "
        "from one half. Add that of the true positive rate and that of the true negative rate.",
        "Right: the two bells stand about one width apart.",
        tolerance=5e-3,
        slips={"This is the difference, twice the bias. Take the sum.": lambda: np.diff(ndtri(_rates()))[0]},
    ),
    "metrics-moved": Exercise(
        lambda: float(ndtr(_separation() / 2)),
        "At the best threshold both classes are half of the separation away from it, and both rates are the same.",
        "Right: twelve points above what the report has, and nothing was trained again.",
        slips={"This is the AUC. Divide the separation by 2, not by √2.": lambda: float(ndtr(_separation() / 2**0.5))},
    ),
    "metrics-cut": Exercise(
        _best_cut,
        "Try each score as the threshold, and keep the highest balanced accuracy: the mean of the share of positives "
        "above it and the share of negatives not above it.",
        "Right. (On the samples it was chosen on, such a maximum is a little too high.)",
        tolerance=5e-3,
    ),
}

_REMEDIES = {
    "remedies-as-is": Exercise(
        lambda: float(_solved().ba()),
        "rbal.solve(moments, positives a feature, negatives a feature, margin), and of its metrics ba().",
        "Right. A coin has 0.5.",
        slips={"The sizes are exchanged: positives come first.": lambda: 1.0 - float(_solved().ba())},
    ),
    "remedies-under": Exercise(
        lambda: float(_solved(neg=POS).ba()),
        "Undersampling keeps as many negatives as there are positives. Nothing else changes.",
        "Right. Nine tenths of the negatives are gone, and it is better all the same.",
        slips={"Here the positives have become as many as the negatives.": lambda: float(_solved(pos=NEG).ba())},
    ),
    "remedies-over": Exercise(
        lambda: float(_solved(weight=NEG / POS).ba()),
        "A positive that is there c times is one whose loss has weight c: the argument weight_pos. Which c makes the "
        "two classes weigh the same?",
        "Right. Copies bring no new samples, but nothing is thrown away.",
        slips={"Copies are no new samples: these are ten times as many.": lambda: float(_solved(pos=NEG).ba())},
    ),
    "remedies-mixing": Exercise(
        lambda: float(_mixing().mixing),
        "rbal.strategies.best_mixing takes the same arguments as rbal.solve; what it returns has the field mixing.",
        "Right: between the two ends, and neither of them.",
        tolerance=0.02,
        slips={"This is the balanced accuracy there. The question is where.": lambda: float(_mixing().value)},
    ),
    "remedies-threshold": Exercise(
        lambda: float(_solved().best_ba()),
        "Train on the set as it is; the metrics of that solution know the best balanced accuracy of any threshold.",
        "Right, and no sample was dropped or repeated.",
        slips={"This is with the threshold that training gives.": lambda: float(_solved().ba())},
    ),
    "remedies-trained": Exercise(
        lambda: float(_solved().ba()),
        "In a loop: sample 50 positives and 500 negatives, fit rbal.SphericalPerceptron(kappa=0.5), and take the "
        "balanced accuracy of rbal.Metrics(*machine.order_parameters(moments)). Then the mean of ten.",
        "Right. Ten machines of 100 features agree with the theory of infinitely many.",
        tolerance=0.025,
    ),
    "remedies-margin": Exercise(
        lambda: float(_solved(kappa=4.0).ba()),
        "As in the first exercise, with another margin.",
        "Right: a large margin forgives no imbalance.",
    ),
    "remedies-ranking": Exercise(
        _ranking,
        "You have computed all four. Begin with the lowest.",
        "Right. Other data may have another order in the middle; that is what the theory is for.",
    ),
}

_DATA = {
    "data-share": Exercise(
        lambda: float(np.mean(tumours()[1])),
        "y is True for a malignant tumour, and the mean of True and False is a share.",
        "Right: one in eleven.",
    ),
    "data-alpha": Exercise(
        lambda: float(np.sum(tumours()[1]) / tumours()[0].shape[1]),
        "The number of malignant tumours over the number of columns.",
        "Right. Below one positive a feature there is little to learn the noise from.",
        slips={"These are all tumours a feature. The scarce ones count.": lambda: 275 / 30},
    ),
    "data-plain": Exercise(
        lambda: _measured(False),
        "Fit make_pipeline(StandardScaler(), SVC(kernel='linear', C=1.0)) on X and y, predict X_locked, and compare "
        "with y_locked by balanced_accuracy_score.",
        "Right. Keep it in mind.",
        tolerance=0.01,
    ),
    "data-remedy": Exercise(
        lambda: _advice().best,
        "The object that rbal.advise returns has the attribute best: a remedy, and where its threshold is.",
        "Right.",
    ),
    "data-predicted": Exercise(
        lambda: float(_advice().table.loc[_advice().best, "predicted"]),
        "advice.table has one row for each remedy; advice.best is the name of one of them.",
        "Right. No classifier has been trained so far.",
        slips={"This is the set as it is.": lambda: float(_advice().table.loc[("as is", "trained"), "predicted"])},
    ),
    "data-found": Exercise(
        lambda: _measured(True),
        "advice.pipeline(random_state=0) is ready to be fitted to X and y; then predict X_locked.",
        "Right.",
        tolerance=0.02,
    ),
    "data-inside": Exercise(
        _inside,
        "The row of the remedy has the columns low and high.",
        "Right.",
    ),
}

EXERCISES = {**_METRICS, **_REMEDIES, **_DATA}
