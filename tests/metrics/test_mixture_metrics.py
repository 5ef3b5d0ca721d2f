"""Metrics of mixtures of Gaussians: against those of one Gaussian a class, and by independent quadrature."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import ndtr
from scipy.stats import norm

from rbal.metrics import METRICS, Metrics, MixtureMetrics

MEAN, Q = np.array([0.5, 2.2, -1.0, -0.2]), np.array([1.0, 0.2, 0.7, 2.0])
SIGNS, SHARES = np.array([1, 1, -1, -1]), np.array([0.7, 0.3, 0.4, 0.6])


def mixture():
    return MixtureMetrics(MEAN, Q, SIGNS, SHARES)


def density(label):
    mine = label == SIGNS
    return lambda t: SHARES[mine] @ norm.pdf(t, MEAN[mine], np.sqrt(Q[mine]))


def tail(label):
    mine = label == SIGNS
    return lambda t: SHARES[mine] @ ndtr((MEAN[mine] - t) / np.sqrt(Q[mine]))


@pytest.mark.parametrize("name", [name for name, record in METRICS.items() if record.of_theory])
@pytest.mark.parametrize("threshold", [0.0, -0.7])
def test_identical_clusters_are_one_gaussian(name, threshold):
    q, r, b = np.array([0.5, 1.5]), np.array([1.2, 0.4]), np.array([0.3, -0.2])
    mean = 0.5 * r[:, None] * np.array([1, 1, -1, -1, -1]) - b[:, None]
    same = MixtureMetrics(mean, q[:, None], [1, 1, -1, -1, -1], [0.2, 0.8, 0.5, 0.25, 0.25])
    of = METRICS[name].of_theory
    np.testing.assert_allclose(of(same, 0.1, threshold), of(Metrics(q, r, b), 0.1, threshold), rtol=1e-10)


def test_other_methods_of_identical_clusters():
    one, same = Metrics(0.5, 1.2, 0.3), MixtureMetrics([0.3, 0.3, -0.9], 0.5, [1, 1, -1], [0.4, 0.6, 1.0])
    assert same.best_threshold() == pytest.approx(one.best_threshold(), abs=1e-12)
    assert (same.r, same.b) == (pytest.approx(one.r), pytest.approx(one.b))
    for label in (1, -1):
        assert same.density(0.2, label) == pytest.approx(one.density(0.2, label), rel=1e-12)
    assert same.gen_loss(0.2, kappa=1.0) == pytest.approx(one.gen_loss(0.2, kappa=1.0), rel=1e-12)

    def g(delta, y):
        return np.logaddexp(0.0, -y * delta)

    assert same.test_loss(g, 0.2) == pytest.approx(one.test_loss(g, 0.2), rel=1e-11)
    fpr, tpr = same.roc(31)
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0.0, 0.0, 1.0, 1.0)
    np.testing.assert_allclose(tpr, ndtr(1.2 / np.sqrt(0.5) - norm.isf(fpr)), atol=1e-9)  # the binormal curve
    assert np.diff(fpr).min() >= 0.0


def test_rates_are_integrals_of_the_density():
    m = mixture()
    for label, rate in ((1, m.tpr), (-1, m.fpr)):
        assert rate(0.3) == pytest.approx(quad(lambda t, y=label: m.density(t, y), 0.3, 30.0)[0], abs=1e-9)
    assert m.tnr(0.3) + m.fpr(0.3) == pytest.approx(1.0)
    assert m.fnr(0.3) + m.tpr(0.3) == pytest.approx(1.0)
    each = m.cluster_density(0.3)
    assert m.density(0.3, 1) == pytest.approx(SHARES[:2] @ each[:2])


def test_auc_by_quadrature():
    expected = quad(lambda t: density(-1)(t) * tail(1)(t), -15.0, 15.0, epsabs=1e-12, limit=200)[0]
    assert mixture().auc() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("phi", [0.02, 0.5])
def test_auprc_by_quadrature(phi):
    def precision(t):
        return phi * tail(1)(t) / (phi * tail(1)(t) + (1.0 - phi) * tail(-1)(t))

    expected = quad(lambda t: density(1)(t) * precision(t), -9.0, 9.0, epsabs=1e-12, limit=400)[0]
    assert mixture().auprc(phi) == pytest.approx(expected, abs=1e-9)
    recall, seen = mixture().prc(phi, 2001)
    assert np.trapezoid(seen, recall) == pytest.approx(expected, abs=1e-4)


def test_auprc_of_a_narrow_cluster():
    # a positive class a hundred times as wide as a negative cluster in its middle
    m = MixtureMetrics([0.0, 0.3, -1.0], [4.0, 4e-4, 1.0], [1, -1, -1], [1.0, 0.5, 0.5])
    s = np.array([2.0, 0.02, 1.0])

    def precision(t):
        up, down = ndtr(-t / s[0]), 0.5 * ndtr((0.3 - t) / s[1]) + 0.5 * ndtr((-1.0 - t) / s[2])
        return 0.1 * up / (0.1 * up + 0.9 * down)

    breaks = [-6.0, 0.0, 0.2, 0.25, 0.3, 0.35, 0.4, 1.0, 3.0, 18.0]
    expected = sum(
        quad(lambda t: norm.pdf(t, 0.0, 2.0) * precision(t), a, b, epsabs=1e-13, limit=400)[0]
        for a, b in zip([-18.0, *breaks[:-1]], breaks, strict=True)
    )
    assert m.auprc(0.1) == pytest.approx(expected, abs=1e-9)


def test_precision_far_out_is_that_of_the_widest_cluster():
    m = mixture()  # a negative cluster is the widest
    assert m.ppv(0.5, np.inf) == pytest.approx(0.0, abs=1e-12)
    assert m.ppv(0.3, -np.inf) == pytest.approx(0.3)
    assert m.npv(0.3, -np.inf) == pytest.approx(1.0)
    assert m.ppv(0.0, 0.0) == 0.0
    assert m.ppv(1.0, 0.0) == 1.0


def test_best_threshold_on_a_grid():
    m = mixture()
    grid = np.linspace(-6.0, 6.0, 4001)
    start = grid[np.argmax(m.ba(grid))]
    found = minimize_scalar(lambda t: -m.ba(t), bounds=(start - 0.01, start + 0.01), method="bounded",
                            options={"xatol": 1e-10})  # fmt: skip
    assert m.best_threshold() == pytest.approx(found.x, abs=1e-6)
    assert m.best_ba() == pytest.approx(-found.fun, abs=1e-12)
    assert m.best_ba() > m.ba(-m.b) + 1e-4  # no longer midway between the class means
    assert m.log_odds(m.best_threshold(), 0.5) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("mean", "q"), [
    ([1.0, -1.0], [1.0, 1.0]), ([1.0, -1.0], [4.0, 1.0]), ([0.1, -0.1], [9.0, 1.0]), ([0.1, -0.1], [1.0, 9.0]),
    ([-0.2, 0.2], [4.0, 1.0]), ([-1.0, 1.0], [1.0, 1.0]), ([0.0, 0.0], [1.0, 1.0]), ([2.0, 0.0], [1.0, 1.0 + 1e-9]),
    ([3.0, 0.0], [1e-4, 1.0]), ([0.0, 0.0], [0.0, 0.0]), ([1.0, 0.0], [0.0, 0.0]),
])  # fmt: skip
def test_one_cluster_a_class_has_a_parabola(mean, q):
    """The closed form is what a search over all thresholds finds, and the same for many laws at once."""
    m = MixtureMetrics(mean, q, [1, -1], [1.0, 1.0])
    grid = np.r_[-np.inf, np.linspace(-12.0, 12.0, 240_001), np.inf]
    assert m.best_ba() == pytest.approx(m.ba(grid).max(), abs=1e-7)
    assert m.ba(m.best_threshold()) == pytest.approx(m.best_ba(), abs=1e-12)
    several = MixtureMetrics([mean, [1.0, 0.0]], [q, [2.0, 1.0]], [1, -1], [1.0, 1.0])
    assert several.best_threshold()[0] == m.best_threshold()
    for phi, alarm in ((0.1, 1.0), (0.5, 5.0), (0.9, 0.2)):
        if min(q) > 0.0:
            costs = phi * m.fnr(grid) + alarm * (1.0 - phi) * m.fpr(grid)
            cut = m.threshold_for(phi, costs=(1.0, alarm)).threshold
            assert phi * m.fnr(cut) + alarm * (1.0 - phi) * m.fpr(cut) == pytest.approx(costs.min(), abs=1e-7)


def test_the_best_of_several_crossings():
    # positives on both sides of the negatives: the densities cross twice upwards
    m = MixtureMetrics([-2.0, 2.0, 0.0], [0.2, 0.2, 0.1], [1, 1, -1], [0.3, 0.7, 1.0])
    grid = np.linspace(-4.0, 4.0, 8001)
    assert m.best_ba() == pytest.approx(m.ba(grid).max(), abs=1e-6)
    assert m.best_threshold() > 0.5


def test_nothing_to_gain():
    m = MixtureMetrics([-1.0, 1.0], [1.0, 1.0], [1, -1], [1.0, 1.0])  # on the wrong side
    assert (m.best_threshold(), m.best_ba()) == (np.inf, 0.5)


def test_log_odds_are_bayes():
    m, t = mixture(), np.array([-1.0, 0.4, 3.0])
    expected = np.log(0.2 * np.array([density(1)(v) for v in t])) - np.log(0.8 * np.array([density(-1)(v) for v in t]))
    np.testing.assert_allclose(m.log_odds(t, 0.2), expected, rtol=1e-12)


def test_sweeps_are_loops():
    mean = MEAN + np.array([0.0, 0.3, -0.5])[:, None]
    many = MixtureMetrics(mean, Q, SIGNS, SHARES)
    for j in range(3):
        one = MixtureMetrics(mean[j], Q, SIGNS, SHARES)
        for name in ("ba", "auc", "best_threshold", "best_ba"):
            assert getattr(many, name)()[j] == pytest.approx(getattr(one, name)(), abs=1e-12)
        assert many.auprc(0.1)[j] == pytest.approx(one.auprc(0.1), abs=1e-12)
        np.testing.assert_allclose([a[j] for a in many.roc(21)], one.roc(21), atol=1e-14)
        np.testing.assert_allclose([a[j] for a in many.prc(0.1, 21)], one.prc(0.1, 21), atol=1e-14)


def test_a_collapsed_classifier():
    m = MixtureMetrics([-1.0, -1.0, -1.0], 0.0, [1, 1, -1], [0.5, 0.5, 1.0])
    assert (m.ba(), m.auc(), m.tpr(), m.tnr()) == (0.5, 0.5, 0.0, 1.0)
    assert m.best_ba() == 0.5
    with pytest.raises(ValueError, match="q must be > 0 for a density"):
        m.density(0.0, 1)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (([0.0, 1.0], [1.0, -1.0], [1, -1], [1.0, 1.0]), "q must be >= 0, got -1"),
        (([0.0, 1.0], [1.0, 1.0], [1, 1], [0.5, 0.5]), "signs must be"),
        (([0.0, 1.0], [1.0, 1.0], [1, -1, -1], [1.0, 0.5, 0.5]), "one entry for each of the 3 signs"),
    ],
)
def test_bad_input(args, message):
    with pytest.raises(ValueError, match=message):
        MixtureMetrics(*args)
