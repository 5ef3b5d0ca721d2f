"""Claimed probabilities: every measure against quadrature of its definition, draws, and what scikit-learn measures."""

import numpy as np
import pytest
import sklearn.metrics as sk
from scipy.special import expit, logit
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression

import rbal
from rbal.metrics import Link

# ordinary, overconfident, separable, misplaced, nearly one score
LAWS = [(1.0, 2.0, 0.5), (9.0, 1.5, -1.0), (2500.0, 100.0, 20.0), (0.3, 0.2, 2.0), (1e-4, 1e-4, 1.0)]
LINKS = [Link(), Link(0.4, -1.5), Link().tempered(3.0), Link().corrected(0.5, 0.05), Link(-1.0, 0.3)]
laws = pytest.mark.parametrize("law", LAWS, ids=str)
links = pytest.mark.parametrize("link", LINKS, ids=str)


def on_a_fine_grid(law, phi):
    """Scores, their spacing, and the densities of positives and of negatives among all samples."""
    q, r, b = law
    s, step = np.linspace(-b - r / 2 - 10 * np.sqrt(q), -b + r / 2 + 10 * np.sqrt(q), 400_001, retstep=True)
    pos, neg = (np.exp(-((s - y * r / 2 + b) ** 2) / (2 * q)) / np.sqrt(2 * np.pi * q) for y in (1, -1))
    return s, step, phi * pos, (1 - phi) * neg


@laws
@links
@pytest.mark.parametrize("phi", [0.5, 0.03])
def test_scores_against_quadrature(law, link, phi):
    m, (s, step, pos, neg) = rbal.Metrics(*law), on_a_fine_grid(law, phi)
    log_odds = link.slope * s + link.intercept
    p = 1.0 / (1.0 + np.exp(-np.clip(log_odds, -700, 700)))
    brier = step * np.sum(pos * (1 - p) ** 2 + neg * p**2)
    assert m.brier(phi, link) == pytest.approx(brier, rel=1e-9)
    loss = step * np.sum(pos * np.logaddexp(0, -log_odds) + neg * np.logaddexp(0, log_odds))
    assert m.log_loss(phi, link) == pytest.approx(loss, rel=1e-9)
    error = step * np.sum(np.abs(p * (pos + neg) - pos))  # with a kink, where the trapezoid is good to its step squared
    assert m.ece(phi, link=link) == pytest.approx(error, rel=1e-6, abs=1e-9)


@laws
def test_log_odds_are_those_of_the_densities(law):
    m, phi = rbal.Metrics(*law), 0.2
    s = -law[2] + np.sqrt(law[0]) * np.linspace(-3, 3, 7)
    ratio = np.log(phi * m.density(s, +1)) - np.log((1 - phi) * m.density(s, -1))
    np.testing.assert_allclose(m.log_odds(s, phi), ratio, rtol=1e-9, atol=1e-9)
    assert m.calibration(phi)(s) == pytest.approx(expit(ratio), rel=1e-9)


@links
def test_a_link_only_changes_units(link):
    m = rbal.Metrics(2.0, 1.5, 0.3)
    seen = m.calibration(0.1, link)
    s = np.linspace(-4, 4, 9)
    claimed = link.slope * s + link.intercept
    np.testing.assert_allclose(seen.slope * claimed + seen.intercept, m.log_odds(s, 0.1), atol=1e-12)
    honest = m.calibration(0.1, m.calibration(0.1))
    np.testing.assert_allclose(honest, (1.0, 0.0), atol=1e-12)


def test_prior_correction_repairs_the_intercept_only():
    # perfectly calibrated at one share, so at the other after the correction; with a slope of 1/2 it is not
    m, other = rbal.Metrics(2.0, 2.0, logit(0.5) - logit(0.3)), rbal.Metrics(2.0, 1.0, 0.0)
    np.testing.assert_allclose(m.calibration(0.3), (1.0, 0.0), atol=1e-12)
    np.testing.assert_allclose(m.calibration(0.05, Link().corrected(0.3, 0.05)), (1.0, 0.0), atol=1e-12)
    slope, intercept = other.calibration(0.05, Link().corrected(0.5, 0.05))
    assert slope == pytest.approx(0.5)
    assert intercept == pytest.approx(0.5 * logit(0.05))


@laws
@pytest.mark.parametrize("phi", [0.5, 0.1])
def test_best_links_have_the_lowest_log_loss(law, phi):
    m = rbal.Metrics(*law)
    platt = m.best_link(phi)
    np.testing.assert_allclose(platt, m.calibration(phi), rtol=1e-6, atol=1e-6)  # Newton against the closed form
    for kind, free in (("platt", (0, 1)), ("temperature", (0,)), ("shift", (1,))):
        best = m.best_link(phi, kind)
        lowest = m.log_loss(phi, best)
        unit = np.array([1.0 / np.sqrt(law[0]), 1.0])
        for k in free:
            for way in (-0.01, 0.01):
                assert m.log_loss(phi, Link(*(np.array(best) + way * unit * (np.arange(2) == k)))) > lowest
    assert m.best_link(phi, "temperature").intercept == 0.0
    assert m.best_link(phi, "shift").slope == 1.0


@pytest.mark.parametrize("law", [(1e4, 1.0, 500.0), (1e4, 300.0, -200.0), (1e-6, 1e-5, 0.005)], ids=str)
def test_best_links_of_scores_far_from_zero(law):
    m = rbal.Metrics(*law)
    np.testing.assert_allclose(m.best_link(0.5), m.calibration(0.5), rtol=1e-6, atol=1e-6)
    lowest = m.best_link(0.5, "shift").intercept
    assert m.log_loss(0.5, Link(1.0, lowest)) <= min(m.log_loss(0.5, Link(1.0, lowest + c)) for c in (-1.0, 1.0))


@pytest.mark.parametrize("name", ["brier", "log_loss", "ece"])
def test_proper_scores_are_lowest_where_claims_are_true(name):
    m = rbal.Metrics(3.0, 1.5, 0.4)
    honest = m.calibration(0.2)
    scores = [getattr(m, name)(0.2, link=Link(a * honest.slope, honest.intercept + c)) for a, c in
              ((1, 0), (1.1, 0), (0.9, 0), (1, 0.1), (1, -0.1))]  # fmt: skip
    assert np.argmin(scores) == 0


# ---- bins


def test_bins_against_a_large_sample():
    q, r, b, phi, n = 4.0, 2.0, 0.5, 0.2, 400_000
    m, rng = rbal.Metrics(q, r, b), np.random.default_rng(0)
    y = (np.arange(n) < phi * n).astype(int)
    s = (y - 0.5) * r - b + np.sqrt(q) * rng.normal(size=n)
    p = expit(s)
    seen = m.reliability_bins(phi, bins=10)
    share = np.histogram(p, 10, (0, 1))[0] / n
    observed, claimed = calibration_curve(y, p, n_bins=10)
    np.testing.assert_allclose(share, seen.share, atol=5 * np.sqrt(0.25 / n))
    error = np.sqrt(seen.observed * (1 - seen.observed) / (n * seen.share))
    assert (np.abs(observed - seen.observed) < 5 * error).all()
    assert (np.abs(claimed - seen.claimed) < 5 * 0.1 / np.sqrt(12 * n * seen.share)).all()
    measured = share @ np.abs(observed - claimed)
    assert m.ece(phi, bins=10) == pytest.approx(measured, abs=5 / np.sqrt(n))
    assert m.ece(phi, bins=10) <= m.ece(phi) + 1e-12  # differences cancel within a bin, never the other way
    brier, loss = (p - y) ** 2, -np.log(np.where(y == 1, p, 1 - p))
    assert m.brier(phi) == pytest.approx(sk.brier_score_loss(y, p), abs=5 * brier.std() / np.sqrt(n))
    assert m.log_loss(phi) == pytest.approx(sk.log_loss(y, p), abs=5 * loss.std() / np.sqrt(n))


@laws
@pytest.mark.parametrize("bins", [1, 7, 200])
def test_bins_add_up(law, bins):
    m, phi = rbal.Metrics(*law), 0.15
    seen = m.reliability_bins(phi, bins)
    used = seen.share > 0
    assert seen.share.sum() == pytest.approx(1.0, abs=1e-12)
    assert (seen.share * seen.observed)[used].sum() == pytest.approx(phi, abs=1e-12)
    mean = m.test_loss(lambda s, y: expit(s), phi)
    assert (seen.share * seen.claimed)[used].sum() == pytest.approx(mean, abs=1e-12)
    if bins == 1:
        assert m.ece(phi, bins=1) == pytest.approx(abs(mean - phi), abs=1e-12)


def test_many_bins_approach_the_error_without_any():
    m = rbal.Metrics(3.0, 1.0, 0.7)
    gaps = [m.ece(0.3) - m.ece(0.3, bins=bins) for bins in (3, 30, 300)]
    assert gaps[0] >= gaps[1] >= gaps[2] >= -1e-13
    assert gaps[2] < 1e-4


def test_reliability_curve_passes_through_the_bins():
    m = rbal.Metrics(4.0, 2.0, 0.5)
    claimed, observed = m.reliability(0.2, n=4001)
    seen, inner = m.reliability_bins(0.2, bins=500), slice(5, -5)  # at the ends the curve is steep within a bin
    along = np.interp(seen.claimed, claimed, observed)
    np.testing.assert_allclose(along[inner], seen.observed[inner], atol=1e-4)
    assert claimed[[0, -1]].tolist() == [0.0, 1.0]
    np.testing.assert_allclose(observed[[0, -1]], [0.0, 1.0], atol=1e-4)


# ---- as users call it


def test_arrays_broadcast():
    m = rbal.Metrics([1.0, 2.0], [[1.0], [2.0], [3.0]], 0.1)
    link = Link(np.array([1.0, 0.5]), 0.0)
    for name in ("brier", "log_loss", "ece"):
        values = getattr(m, name)(0.2, link=link)
        assert values.shape == (3, 2)
        one = getattr(rbal.Metrics(2.0, 3.0, 0.1), name)(0.2, link=Link(0.5, 0.0))
        assert values[2, 1] == pytest.approx(one, rel=1e-11)
    assert m.calibration(np.full((3, 2), 0.2)).intercept.shape == (3, 2)
    assert m.reliability_bins(0.2, bins=4).share.shape == (3, 2, 4)
    assert m.reliability(0.2, n=5)[1].shape == (3, 2, 5)
    assert m.best_link(0.2, "shift").intercept.shape == (3, 2)


def test_one_score_for_all_has_no_slope():
    slope, intercept = rbal.Metrics(0.0, 0.0, 1.0).calibration(0.2)
    assert np.isnan([slope, intercept]).all()
    assert rbal.Metrics(0.0, 0.0, 1.0).brier(0.2) == pytest.approx(0.2 * expit(1.0) ** 2 + 0.8 * expit(-1.0) ** 2)


def test_errors_name_what_they_got():
    m = rbal.Metrics(1.0, 1.0, 0.0)
    with pytest.raises(TypeError, match=r"link must be a rbal.metrics.Link, got float"):
        m.brier(0.1, 2.0)
    with pytest.raises(ValueError, match="phi_pos must be >= 0 and <= 1, got 2"):
        m.calibration(2.0)
    with pytest.raises(ValueError, match="temperature must be > 0, got 0"):
        Link().tempered(0.0)
    with pytest.raises(ValueError, match="train_share must be >= 0 and <= 1, got -1"):
        Link().corrected(-1.0, 0.5)
    with pytest.raises(ValueError, match="kind must be one of 'platt', 'temperature', 'shift', got 'isotonic'"):
        m.best_link(0.1, "isotonic")
    with pytest.raises(ValueError, match="bins must be a positive integer, got 0"):
        m.ece(0.1, bins=0)
    with pytest.raises(ValueError, match="n must be at least 2, got 1"):
        m.reliability(0.1, n=1)


# ---- Cox's regression on draws


def test_cox_regression_on_draws():
    q, r, b, phi, n = 4.0, 2.0, 0.5, 0.2, 200_000
    rng = np.random.default_rng(1)
    y = (rng.random(n) < phi).astype(int)
    s = (y - 0.5) * r - b + np.sqrt(q) * rng.normal(size=n)
    slope, intercept = rbal.Metrics(q, r, b).calibration(phi)
    fit = LogisticRegression(C=np.inf).fit(s[:, None], y)
    p = expit(slope * s + intercept)
    design = np.c_[s, np.ones(n)]
    error = np.sqrt(np.diag(np.linalg.inv((design * (p * (1 - p))[:, None]).T @ design)))
    assert abs(fit.coef_[0, 0] - slope) < 5 * error[0]
    assert abs(fit.intercept_[0] - intercept) < 5 * error[1]
