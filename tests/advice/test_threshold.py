"""Thresholds that are tuned on held-out scores: the best cut, outliers, and the classifier around it."""

import numpy as np
import pytest
from imblearn.pipeline import make_pipeline
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score, matthews_corrcoef
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import rbal
from rbal.advice._threshold import TunedThreshold, height
from rbal.advice.internal import best_cut
from rbal.losses import LOSSES
from rbal.metrics.internal import named

FIRST = {"C": 1.0, "kernel": "linear", "moments": "pooled", "train": "none"}  # one covariance, and the theory alone
QUICK = {"draws": 10, **FIRST}


def gaussian(n_pos=60, n_neg=600, D=30, shift=0.45, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n_pos + n_neg) < n_pos
    return rng.normal(size=(len(y), D)) + shift * y[:, None], y


def by_scikit_learn(metric, y, answer, costs=(3.0, 1.0)):
    if metric == "cost":
        return -float(np.mean(costs[0] * (y & ~answer) + costs[1] * (~y & answer)))
    return {"ba": balanced_accuracy_score, "f1": f1_score, "mcc": matthews_corrcoef}[metric](y, answer)


@pytest.mark.parametrize("metric", ["ba", "f1", "mcc", "cost"])
def test_measured_metrics_are_those_of_scikit_learn(metric):
    rng = np.random.default_rng(0)
    y, answer = rng.random(200) < 0.3, rng.random(200) < 0.4
    found = height(named(metric, (3.0, 1.0)), answer[y].mean(), answer[~y].mean(), y.mean())
    assert found == pytest.approx(by_scikit_learn(metric, y, answer))


def with_an_outlier(seed=0):
    """One row of the larger class lies far out on its own side, with a score of -30,000 or so."""
    X, y = gaussian(60, 300, 5, shift=0.8, seed=seed)
    X[100] -= 1e4
    return X, y


@pytest.mark.parametrize("metric", ["ba", "f1", "mcc", "cost"])
def test_an_outlier_leaves_the_tuned_threshold_where_it_was(metric):
    X, y = with_an_outlier()
    fresh, truth = gaussian(1000, 5000, 5, shift=0.8, seed=9)
    clf = TunedThreshold(LOSSES["hinge"].estimator(1.0, class_weight="balanced"), metric=metric, costs=(3.0, 1.0)).fit(
        X, y
    )
    scores = clf.decision_function(fresh)
    best = max(by_scikit_learn(metric, truth, scores > cut) for cut in np.quantile(scores, np.linspace(0, 1, 200)))
    # at most 0.06 behind; thresholds spread evenly between the extreme scores, 0.3 and more
    assert by_scikit_learn(metric, truth, clf.predict(fresh)) > best - 0.1


def test_an_outlier_leaves_the_pipeline_and_the_check_as_they_were():
    X, y = with_an_outlier()
    advice = rbal.advise(X, y, standardize=False, check=True, repeats=1, n_jobs=1, progress=False, **QUICK)
    advice.best = ("class weights", "moved")
    assert advice.table.loc[advice.best, "measured"] > 0.72  # 0.80 with new samples; 0.5 on an even grid
    fresh, truth = gaussian(1000, 5000, 5, shift=0.8, seed=9)
    assert balanced_accuracy_score(truth, advice.pipeline().fit(X, y).predict(fresh)) > 0.72


@pytest.mark.parametrize("metric", ["ba", "f1", "mcc", "cost"])
@pytest.mark.parametrize("kind", ["few values", "separable", "outliers", "constant"])
def test_no_threshold_is_much_better_than_the_one_found(metric, kind):
    """Against a search through all thresholds; scores of a few values are not smoothed, and so it is exact there."""
    rng = np.random.default_rng(3)
    y = np.arange(300) < 60
    s = {
        "few values": np.where(rng.random(300) < 0.7, y, rng.integers(-1, 3, size=300)).astype(float),
        "separable": rng.random(300) + 1.5 * y,
        "outliers": np.where(rng.random(300) < 0.02, 1e12 * rng.normal(size=300), rng.normal(size=300) + 2.0 * y),
        "constant": np.zeros(300),
    }[kind]
    cut, told = best_cut(s, y, named(metric, (3.0, 1.0)))
    values = [by_scikit_learn(metric, y, s > c) for c in (-np.inf, *np.unique(s))]
    assert told == pytest.approx(by_scikit_learn(metric, y, s > cut))
    assert max(values) - told < (0.1 if kind == "outliers" else 1e-9)


def test_weights_of_a_threshold_are_repetitions():
    rng = np.random.default_rng(5)
    y, w = np.arange(120) < 40, rng.integers(1, 4, size=120)
    s = (rng.random(120) < np.where(y, 0.6, 0.3)) * 1.0 + (rng.random(120) < 0.1)
    for metric in ("ba", "f1", "mcc", "cost"):
        record = named(metric, (3.0, 1.0))
        once = best_cut(s, y, record, w.astype(float))
        assert once == pytest.approx(best_cut(np.repeat(s, w), np.repeat(y, w), record))


def test_threshold_of_the_check_is_nearly_that_of_the_population():
    rng = np.random.default_rng(1)
    y = np.arange(440) < 40
    cuts = [best_cut(rng.normal(size=440) + 2.0 * y, y, named("ba"))[0] for _ in range(40)]
    assert np.mean(cuts) == pytest.approx(1.0, abs=4.0 * np.std(cuts) / np.sqrt(40) + 0.05)
    assert np.std(cuts) < 0.35


@parametrize_with_checks(
    [TunedThreshold(LogisticRegression()), TunedThreshold(GaussianNB(), cv=3)],
    # as for scikit-learn's own estimators of this kind
    expected_failed_checks=lambda _: {"check_classifiers_train": "the threshold is not 0, nor one half"},
)
def test_tuned_threshold_is_an_estimator(estimator, check):
    check(estimator)


def test_tuned_threshold_hands_through_scores_and_weights():
    X, y = gaussian(60, 200, 5, shift=0.8)
    clf = TunedThreshold(LogisticRegression()).fit(X, y)
    plain = LogisticRegression().fit(X, y)
    np.testing.assert_array_equal(clf.decision_function(X), plain.decision_function(X))
    np.testing.assert_array_equal(clf.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_array_equal(clf.predict(X), clf.decision_function(X) > clf.best_threshold_)
    np.testing.assert_array_equal(
        TunedThreshold(LogisticRegression(), pos_label="False").fit(X, y).predict(X), clf.predict(X)
    )
    assert not hasattr(TunedThreshold(SVC()), "predict_proba")
    weight = np.where(X[:, 0] > 0.0, 1.0, 1e-9)
    half = X[:, 0] > 0.0
    weighted = TunedThreshold(LogisticRegression(), cv=StratifiedKFold(4)).fit(X, y, sample_weight=weight)
    alone = TunedThreshold(LogisticRegression(), cv=StratifiedKFold(4)).fit(X[half], y[half])
    assert weighted.best_threshold_ == pytest.approx(alone.best_threshold_, abs=0.6)
    assert abs(weighted.best_threshold_ - clf.best_threshold_) > 1e-6
    step = make_pipeline(StandardScaler(), LogisticRegression())
    stepped = TunedThreshold(step, cv=StratifiedKFold(4)).fit(X, y, logisticregression__sample_weight=weight)
    np.testing.assert_array_equal(stepped.estimator_[-1].coef_.shape, (1, 5))
    with pytest.raises(ValueError, match="pos_label must be one of"):
        TunedThreshold(LogisticRegression(), pos_label="ill").fit(X, y)
    with pytest.raises(ValueError, match="metric must be one of"):
        TunedThreshold(LogisticRegression(), metric="auc").fit(X, y)
    with pytest.raises(ValueError, match="cv must be at least 2"):
        TunedThreshold(LogisticRegression()).fit(X, np.arange(len(y)) == 3)
