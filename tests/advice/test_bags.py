"""Bags of undersampled machines: what the advice predicts of them, and what it trains."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import rbal
from rbal.advice._pipeline import AveragedScores

FIRST = {"C": 0.05, "kernel": "linear", "moments": "pooled", "train": "none", "draws": 2}


def gaussian(n_pos=40, n_neg=400, D=40, shift=0.3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(["ill", "well"], [n_pos, n_neg])
    return rng.normal(size=(len(y), D)) + shift * (y == "ill")[:, None], y


@pytest.fixture(scope="module")
def advice():
    return rbal.advise(*gaussian(), **FIRST)


@pytest.mark.parametrize("kind", ["pooled", "width"])
def test_one_member_is_undersampling(kind):
    advice = rbal.advise(*gaussian(), **{**FIRST, "moments": kind})
    told = advice.bags([1, 10])
    assert told.loc[1, "trained"] == pytest.approx(
        advice.table.loc[("undersampling", "trained"), "predicted"], abs=1e-7
    )
    assert told.loc[1, "moved"] == pytest.approx(advice.table.loc[("undersampling", "moved"), "predicted"], abs=1e-7)
    assert told.loc[10, "trained"] > told.loc[1, "trained"] + 0.02


@pytest.mark.slow
def test_trained_bags_score_what_is_predicted():
    """With the moments of the classes themselves, over many training sets; the seed of each bag is another."""
    advice = rbal.advise(*gaussian(), **FIRST)
    advice.moments = rbal.Moments.real(np.full(40, 0.3), np.zeros(40), np.ones(40)).spectrum
    told, found = advice.bags([1, 10])["trained"], []
    advice.best = ("class weights", "trained")
    X_test, y_test = gaussian(4000, 4000, seed=99)
    for seed in range(16):
        X, y = gaussian(seed=100 + seed)
        row = []
        for members in (1, 10):
            answer = advice.pipeline(seed, members=members).fit(X, y).predict(X_test)
            row.append(np.mean([np.mean(answer[y_test == label] == label) for label in ("ill", "well")]))
        found.append(row)
    error = np.std(found, axis=0) / np.sqrt(16) + 0.5 / np.sqrt(8000)  # with that of the test set
    np.testing.assert_array_less(np.abs(np.mean(found, axis=0) - told), 4.0 * error)


def test_a_bag_with_a_moved_threshold(advice):
    X, y = gaussian()
    advice.best = ("class weights", "moved")
    bag = advice.pipeline(0, members=3).fit(X, y)
    assert len(bag.estimator_.estimators_) == 3
    scores = [one.decision_function(X) for one in bag.estimator_.estimators_]
    np.testing.assert_allclose(bag.decision_function(X), np.mean(scores, axis=0))
    assert np.ptp(scores, axis=0).max() > 1e-3  # each has negatives of its own
    assert set(bag.predict(X)) == {"ill", "well"}
    again = clone(bag).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), bag.predict(X))


def test_what_a_bag_does_not_take(advice):
    with pytest.raises(ValueError, match="probabilities must be False for a bag"):
        advice.pipeline(members=3, probabilities=True)
    with pytest.raises(ValueError, match="members must be"):
        advice.bags(0)
    curved = rbal.advise(*gaussian(20, 60, 5), **{**FIRST, "C": 1.0, "kernel": "rbf"})
    with pytest.raises(ValueError, match="bags are predicted for linear classifiers"):
        curved.bags()


def _estimator():
    from sklearn.svm import LinearSVC

    return AveragedScores(LinearSVC(dual=False), members=2, random_state=0)


@parametrize_with_checks([_estimator()])
def test_averaged_scores_are_an_estimator(estimator, check):
    check(estimator)
