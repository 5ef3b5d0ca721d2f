"""Probabilities and thresholds of scores that are mixtures of Gaussians."""

import numpy as np
import pytest
from scipy.special import expit, logit

import rbal
from rbal.metrics import Link, MixtureMetrics

ONE = rbal.Metrics(q=1.7, r=1.3, b=0.4)
SAME = MixtureMetrics([0.25, 0.25, -1.05], [1.7, 1.7, 1.7], [1, 1, -1], [0.3, 0.7, 1.0])  # ONE, cut into clusters
MIXED = MixtureMetrics([0.6, 2.5, -0.9, 0.2], [0.8, 0.2, 1.5, 0.3], [1, 1, -1, -1], [0.6, 0.4, 0.7, 0.3])


@pytest.mark.parametrize("link", [None, Link(0.7, -0.3)])
def test_equal_clusters_are_one_gaussian(link):
    np.testing.assert_allclose(SAME.calibration(0.2, link), ONE.calibration(0.2, link), rtol=1e-7)
    for name in ("brier", "log_loss", "ece"):
        assert getattr(SAME, name)(0.2, link=link) == pytest.approx(getattr(ONE, name)(0.2, link=link), rel=1e-9)
    for got, expected in zip(SAME.reliability_bins(0.2, 5, link), ONE.reliability_bins(0.2, 5, link), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9)


@pytest.mark.parametrize("wanted", [{"recall": 0.9}, {"precision": 0.6}, {"costs": (5.0, 1.0)}])
def test_thresholds_of_equal_clusters(wanted):
    got, expected = (m.threshold_for(0.2, **wanted, n_pos=40, n_neg=160) for m in (SAME, ONE))
    np.testing.assert_allclose(got, expected, rtol=1e-8)
    assert SAME.tuning_cost(0.2, (5.0, 1.0), n_pos=40, n_neg=160) == pytest.approx(
        ONE.tuning_cost(0.2, (5.0, 1.0), n_pos=40, n_neg=160), rel=1e-9
    )
    np.testing.assert_allclose(SAME.cost_curve(5), ONE.cost_curve(5), atol=1e-12)


def sample(metrics, phi, n=400_000, seed=0):
    """Scores and outcomes (0 or 1) of many samples."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < phi
    scores = np.empty(n)
    for label in (1, -1):
        mean, q, shares = metrics._of(label)
        mine = y == (label > 0)
        part = rng.choice(shares.size, size=mine.sum(), p=shares)
        scores[mine] = mean[part] + np.sqrt(q[part]) * rng.normal(size=mine.sum())
    return scores, y.astype(float)


def test_measures_of_samples():
    # own variances and clusters: the integrals are means over samples, within five of their errors
    phi, link = 0.3, Link(0.8, 0.1)
    scores, y = sample(MIXED, phi)
    p = link(scores)
    for got, terms in (
        (MIXED.brier(phi, link), (p - y) ** 2),
        (MIXED.log_loss(phi, link), -np.log(np.where(y > 0, p, 1.0 - p))),
    ):
        assert abs(got - terms.mean()) < 5 * terms.std() / np.sqrt(terms.size)
    truth = expit(MIXED.log_odds(scores, phi))
    assert abs((truth - y).mean()) < 5 * (truth - y).std() / np.sqrt(y.size)
    assert MIXED.log_loss(phi, MIXED.calibration(phi)) < MIXED.log_loss(phi, link)


def test_calibration_is_the_line_of_lowest_log_loss():
    slope, intercept = MIXED.calibration(0.3)
    best = MIXED.log_loss(0.3, Link(slope, intercept))
    for a, c in ((0.01, 0.0), (-0.01, 0.0), (0.0, 0.01), (0.0, -0.01)):
        assert MIXED.log_loss(0.3, Link(slope + a, intercept + c)) > best


def test_cheapest_threshold_is_the_lowest_point():
    found = MIXED.threshold_for(0.3, costs=(3.0, 1.0))
    cuts = np.linspace(-6.0, 6.0, 4001)
    cost = 3.0 * 0.3 * MIXED.fnr(cuts) + 0.7 * MIXED.fpr(cuts)
    at = 3.0 * 0.3 * MIXED.fnr(found.threshold) + 0.7 * MIXED.fpr(found.threshold)
    assert at <= cost.min() + 1e-12
    assert abs(found.threshold - cuts[cost.argmin()]) < 0.01
    step = 1e-4
    slope = (MIXED.log_odds(0.4 + step, 0.3) - MIXED.log_odds(0.4 - step, 0.3)) / (2 * step)
    assert MIXED._steepness(0.4) == pytest.approx(slope, rel=1e-6)


def test_lowest_threshold_with_a_precision():
    wanted = 0.8
    found = MIXED.threshold_for(0.3, precision=wanted)
    assert found.precision == pytest.approx(wanted, abs=1e-10)
    below = np.linspace(-8.0, found.threshold - 1e-6, 2000)
    assert np.all(MIXED.ppv(0.3, below) < wanted)
    assert MIXED.threshold_for(0.3, precision=0.3).threshold == -np.inf


def test_arrays_broadcast():
    phi = np.array([0.1, 0.5])
    both = MixtureMetrics(np.stack([MIXED.mean, 2 * MIXED.mean]), MIXED.q, MIXED.signs, MIXED.shares)
    for name in ("brier", "log_loss", "ece"):
        got = getattr(both, name)(phi)
        assert got.shape == (2,)
        assert got[0] == pytest.approx(getattr(MIXED, name)(0.1), rel=1e-12)
    assert both.threshold_for(phi, costs=(2.0, 1.0)).threshold.shape == (2,)
    assert logit(both.calibration(phi)(0.0)).shape == (2,)
