"""Metrics of more than two classes."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import rbal
from rbal.metrics import ManyMetrics


def random_scores(T, K=None, seed=0):
    rng = np.random.default_rng(seed)
    K = K or T
    F = rng.normal(size=(K, T, T + 2))
    return rng.normal(size=(K, T)) + np.eye(T)[np.arange(K) % T], F @ np.swapaxes(F, 1, 2) / T


def counted(metrics, offsets, n=400_000, seed=1):
    """Confusion matrix of random scores, and its standard errors."""
    rng, T = np.random.default_rng(seed), metrics.n_classes
    found, variance = np.zeros((T, T)), np.zeros((T, T))
    for c, (t, share) in enumerate(zip(metrics.places, metrics.shares, strict=True)):
        scores = rng.multivariate_normal(metrics.means[c], metrics.overlaps[c], size=n, method="eigh") - offsets
        p = np.bincount(scores.argmax(axis=1), minlength=T) / n
        found[t] += share * p
        variance[t] += share**2 * p * (1.0 - p) / n
    return found, np.sqrt(variance) + 1e-6


@pytest.mark.parametrize("T", [2, 3, 4, 7])
@pytest.mark.parametrize("moved", [False, True])
def test_confusion_of_random_scores(T, moved):
    m = ManyMetrics(*random_scores(T))
    offsets = np.linspace(-0.5, 0.7, T) if moved else np.zeros(T)
    expected, error = counted(m, offsets)
    got = m.confusion(offsets)
    np.testing.assert_allclose(got.sum(axis=1), 1.0, rtol=1e-12)
    assert np.all(np.abs(got - expected) < 5 * np.hypot(error, m.error(offsets)))
    assert np.all(m.error(offsets) == 0.0) == (T <= 3)


def test_three_classes_are_exact():
    # orthants in two dimensions, by another package
    means, overlaps = random_scores(3, seed=4)
    m = ManyMetrics(means, overlaps)
    got = m.confusion()
    for k in range(3):
        for j in range(3):
            others = [i for i in range(3) if i != j]
            change = np.eye(3)[others] - np.eye(3)[j]
            expected = multivariate_normal.cdf(
                np.zeros(2), change @ means[k], change @ overlaps[k] @ change.T, abseps=1e-10, releps=1e-10
            )
            assert got[k, j] == pytest.approx(expected, abs=1e-6)


def test_a_mirrored_score_is_the_usual_classifier():
    usual = rbal.Metrics(q=1.3, r=1.7, b=0.4)
    mean = np.array([[0.85, -0.85]]).T - 0.4  # of both classes, the positive one first
    q = 1.3 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    m = ManyMetrics(np.c_[mean, -mean], np.stack([q, q]))
    expected = [[usual.tpr(), usual.fnr()], [usual.fpr(), usual.tnr()]]
    np.testing.assert_allclose(m.confusion(), expected, rtol=1e-12)
    assert m.ba() == pytest.approx(usual.ba(), rel=1e-12)
    np.testing.assert_allclose(m.auc([0.2, 0.8]), usual.auc(), rtol=1e-12)
    assert m.precision([0.2, 0.8])[0] == pytest.approx(usual.ppv(0.2), rel=1e-12)
    assert m.f1([0.2, 0.8])[0] == pytest.approx(usual.f1(0.2), rel=1e-12)
    assert m.accuracy([0.2, 0.8]) == pytest.approx(usual.acc(0.2), rel=1e-12)


def test_permuting_classes_permutes_everything():
    means, overlaps = random_scores(3, seed=2)
    order = [2, 0, 1]
    m = ManyMetrics(means, overlaps)
    other = ManyMetrics(means[np.ix_(order, order)], overlaps[np.ix_(order, order, order)])
    np.testing.assert_allclose(other.confusion(), m.confusion()[np.ix_(order, order)], atol=1e-12)
    phi = np.array([0.2, 0.3, 0.5])
    for name in ("precision", "f1", "auc"):
        np.testing.assert_allclose(getattr(other, name)(phi[order]), getattr(m, name)(phi)[order], atol=1e-12)
    assert other.macro_f1(phi[order]) == pytest.approx(m.macro_f1(phi), abs=1e-12)
    assert other.weighted_f1(phi[order]) == pytest.approx(m.weighted_f1(phi), abs=1e-12)


def test_clusters_of_a_class_are_added():
    means, overlaps = random_scores(3, K=4, seed=3)
    m = ManyMetrics(means, overlaps, [0, 1, 2, 2], [1.0, 1.0, 0.25, 0.75])
    alone = [ManyMetrics(means[[0, 1, c]], overlaps[[0, 1, c]]).confusion()[2] for c in (2, 3)]
    np.testing.assert_allclose(m.confusion()[2], 0.25 * alone[0] + 0.75 * alone[1], rtol=1e-12)


def test_a_score_that_does_not_vary():
    # a machine without weights has one score for all: the others decide whether they exceed it
    means = np.array([[-1.0, 0.4, 0.1], [-1.0, 0.9, 0.2], [-1.0, 0.0, 0.8]])
    q = np.zeros((3, 3, 3))
    q[:, 1, 1], q[:, 2, 2], q[:, 1, 2], q[:, 2, 1] = 0.5, 0.4, 0.1, 0.1
    m = ManyMetrics(means, q)
    expected, error = counted(m, 0.0)
    assert np.all(np.abs(m.confusion() - expected) < 5 * error)


def test_top_k():
    m = ManyMetrics(*random_scores(4, seed=5))
    np.testing.assert_allclose(m.top(1), m.recall(), rtol=1e-12)
    np.testing.assert_array_equal(m.top(4), 1.0)
    assert np.all(np.diff([m.top(k) for k in (1, 2, 3, 4)], axis=0) >= 0.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"overlaps": np.zeros((3, 2, 2))}, "overlaps must have shape"),
        ({"places": [0, 1, 1]}, "places must name every class"),
        ({"shares": [1.0, 1.0]}, "one entry for each of the 3 clusters"),
    ],
)
def test_bad_input(change, message):
    means, overlaps = random_scores(3)
    with pytest.raises(ValueError, match=message):
        ManyMetrics(**({"means": means, "overlaps": overlaps} | change))
    m = ManyMetrics(means, overlaps)
    for call in (lambda: m.confusion([0.0, 1.0]), lambda: m.accuracy([1.0, 2.0]), lambda: m.top(4)):
        with pytest.raises(ValueError, match=r"offsets must|phi must|k must"):
            call()
