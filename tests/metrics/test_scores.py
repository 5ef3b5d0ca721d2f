"""Metrics of real scores, against scikit-learn and by trying every threshold."""

import numpy as np
import pytest
from sklearn import metrics

from rbal.metrics import best_threshold, evaluate


def test_metrics_are_those_of_scikit_learn():
    rng = np.random.default_rng(1)
    y = np.where(rng.random(300) < 0.3, 1, -1)
    scores = np.round(rng.normal(size=300) + 0.7 * y, 1)  # with ties
    m, answer = evaluate(scores, y, 0.05), np.where(scores > 0.05, 1, -1)
    expected = {
        "tpr": metrics.recall_score(y, answer),
        "tnr": metrics.recall_score(y, answer, pos_label=-1),
        "ba": metrics.balanced_accuracy_score(y, answer),
        "acc": metrics.accuracy_score(y, answer),
        "ppv": metrics.precision_score(y, answer),
        "npv": metrics.precision_score(y, answer, pos_label=-1),
        "f1": metrics.f1_score(y, answer),
        "mcc": metrics.matthews_corrcoef(y, answer),
        "auc": metrics.roc_auc_score(y, scores),
        "auprc": metrics.average_precision_score(y, scores),
        "loss": metrics.log_loss(y > 0, 1 / (1 + np.exp(-scores))),
        "log_loss": metrics.log_loss(y > 0, 1 / (1 + np.exp(-scores))),
        "brier": metrics.brier_score_loss(y > 0, 1 / (1 + np.exp(-scores))),
        "fm": np.sqrt(metrics.precision_score(y, answer) * metrics.recall_score(y, answer)),
    }
    assert m == pytest.approx({**expected, "fpr": 1 - m["tnr"], "fnr": 1 - m["tpr"], "gen_error": 1 - m["acc"],
                               "fdr": 1 - m["ppv"], "fomr": 1 - m["npv"]})  # fmt: skip


def test_metrics_of_one_answer():
    m = evaluate([-1.0, -2.0, -3.0], [1, -1, -1])
    assert np.isnan(m["ppv"])
    assert (m["f1"], m["mcc"], m["ba"]) == (0.0, 0.0, 0.5)


def test_best_threshold_is_best():
    rng = np.random.default_rng(2)
    for _ in range(20):
        y = np.r_[1, -1, rng.choice([1, -1], 20)]
        scores = np.round(rng.normal(size=22) + 0.5 * y, 1)
        steps = np.unique(scores)
        tries = np.r_[steps[0] - 1, 0.5 * (steps[1:] + steps[:-1]), steps[-1]]
        highest = max(evaluate(scores, y, t)["ba"] for t in tries)
        assert evaluate(scores, y, best_threshold(scores, y))["ba"] == pytest.approx(highest)


@pytest.mark.parametrize(
    ("scores", "y", "message"),
    [
        ([1.0, 2.0], [1, 1], "y must hold the labels"),
        ([1.0, 2.0], [1, 0], "y must hold the labels"),
        ([1.0, 2.0], [1, -1, 1], r"y must have the shape of scores \(2,\)"),
        ([1.0, np.nan], [1, -1], "scores must be finite"),
    ],
)
def test_scores_of_the_wrong_kind(scores, y, message):
    with pytest.raises(ValueError, match=message):
        evaluate(scores, y)
