"""Multinomial logistic regression of several classes."""

import naive
import numpy as np
import pytest
from scipy.linalg import helmert
from sklearn.linear_model import LogisticRegression

import rbal
from rbal.saddle import _multinomial


def classes(T=3, D=60, distance=2.0, own=False, seed=0):
    """T classes at random centres, with one covariance or their own."""
    rng = np.random.default_rng(seed)
    means = distance * rng.normal(size=(T, D)) / np.sqrt(D)
    F = rng.normal(size=(T if own else 1, D, 3 * D)) / np.sqrt(3 * D)
    covs = F @ np.swapaxes(F, 1, 2)
    return rbal.Mixture.gaussian(means, covs if own else covs[0], np.arange(T))


@pytest.mark.parametrize("weights", [None, "balanced"])
@pytest.mark.parametrize("lam", [0.02, 1.0])
def test_two_classes_are_the_usual_regression(lam, weights):
    # both sets of weights lie on one line, so that the ridge counts twice
    mix, alphas = classes(2), [0.8, 3.0]
    sol = rbal.solve_multinomial(mix, alphas, 2.0 * lam, weights, tol=1e-11)
    usual = rbal.solve_ovr(mix, alphas, lam, "logistic", weights)
    np.testing.assert_allclose(sol.metrics.confusion(), usual.metrics.confusion(), rtol=1e-8)
    score = sol.cluster_means[:, 0] - sol.cluster_means[:, 1]
    np.testing.assert_allclose(score, usual.cluster_means[:, 0], rtol=1e-7)
    assert sol.converged


@pytest.mark.parametrize("T", [2, 3, 5])
@pytest.mark.parametrize("weight", [0.3, 40.0])
def test_proximal_points_are_minima(T, weight):
    rng, H = np.random.default_rng(T), helmert(T)
    F = rng.normal(size=(T - 1, T + 1))
    V, fields = 3.0 * F @ F.T / T, 4.0 * rng.normal(size=(6, T - 1))
    u, p = _multinomial.proximal(fields, fields, V, weight, T - 1, H)
    for field, point, chance in zip(fields, u, p, strict=True):
        expected = naive.softmax_proximal(field, V, weight, T - 1, H)
        np.testing.assert_allclose(point, expected, atol=2e-5)
        np.testing.assert_allclose(chance, np.exp(point @ H) / np.exp(point @ H).sum(), rtol=1e-9)


def test_slope_of_the_force_is_its_derivative():
    # V̂ from the Hessian, against a change of the fields
    rng, H, V, weight = np.random.default_rng(1), helmert(3), np.array([[1.5, 0.4], [0.4, 0.8]]), 2.0
    fields = rng.normal(size=(5, 2))

    def force(at):
        return -weight * (_multinomial.proximal(at, at, V, weight, 1, H)[1] @ H.T - H[:, 1])

    p = _multinomial.proximal(fields, fields, V, weight, 1, H)[1]
    S = weight * _multinomial.curvature(p, H)
    slope = S @ np.linalg.inv(np.eye(2) + V @ S)
    for a in range(2):
        step = 1e-5 * np.eye(2)[a]
        change = (force(fields + step) - force(fields - step)) / 2e-5
        np.testing.assert_allclose(change, -slope[:, :, a], atol=1e-8)


def test_permuting_classes_permutes_everything():
    mix, order, alphas = classes(3, own=True, D=30), [2, 0, 1], np.array([0.3, 1.0, 2.0])
    covs = np.stack([mix.covariance(c) for c in order])
    sol = rbal.solve_multinomial(mix, alphas, 0.3)
    other = rbal.solve_multinomial(rbal.Mixture.gaussian(mix.means[order], covs, [0, 1, 2]), alphas[order], 0.3)
    bound = 20.0 * sol.overlaps_error.max() + 1e-6  # nodes of the rule are not permuted
    np.testing.assert_allclose(other.means, sol.means[np.ix_(order, order)], atol=bound)
    np.testing.assert_allclose(other.overlaps, sol.overlaps[np.ix_(order, order, order)], atol=bound)
    np.testing.assert_allclose(sol.means.sum(axis=1), 0.0, atol=1e-12)


def test_levels_of_covariances_agree_and_split_clusters_change_nothing():
    mix, alphas = classes(3, D=30), [0.5, 1.0, 3.0]
    C = mix.covariance(0)
    dense = rbal.Mixture.gaussian(mix.means, np.stack([C, C + 1e-9 * np.diag(np.arange(30.0)), C]), [0, 1, 2])
    halves = rbal.Mixture.gaussian(mix.means[[0, 1, 1, 2]], C, [0, 1, 1, 2], shares=[1.0, 0.3, 0.7, 1.0])
    assert dense.level == "any"
    one, *others = (rbal.solve_multinomial(m, alphas, 0.5, "balanced") for m in (mix, dense, halves))
    for other in others:
        np.testing.assert_allclose(other.means, one.means, atol=1e-5)
        np.testing.assert_allclose(other.overlaps, one.overlaps, atol=1e-5)


@pytest.mark.parametrize("lam", [0.05, 1.0])
def test_quasi_random_points_agree_with_quadrature(monkeypatch, lam):
    mix, alphas = classes(3), [0.3, 0.6, 1.5]
    exact = rbal.solve_multinomial(mix, alphas, lam)
    monkeypatch.setattr(_multinomial, "NODES", {})
    sol = rbal.solve_multinomial(mix, alphas, lam)
    for name, error in (("cluster_means", "means_error"), ("cluster_overlaps", "overlaps_error")):
        gap = np.abs(getattr(sol, name) - getattr(exact, name))
        # a standard error of four sets is uncertain itself: 13 is one in 1,000 of Student's t, the next is rounding
        assert np.all(gap < 13.0 * getattr(sol, error) + 2e-7 + 5.0 * getattr(exact, error))
    assert sol.confusion_error.max() < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("T", "weights", "own"),
    [(3, None, False), (3, "balanced", True), (5, None, False), (4, "balanced", False)],
)
def test_trained_regressions(T, weights, own):
    # every entry of the confusion matrix is the mean over training sets, within five errors and 2/L
    L, lam, alphas = 200, 0.5, np.geomspace(0.3, 1.5, T)
    mix = classes(T, D=L, own=own, seed=5)
    sol = rbal.solve_multinomial(mix, alphas, lam, weights)
    sizes, found = np.rint(alphas * L).astype(int), []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        X = np.concatenate([mix.means[k] + mix._noise(k, n, rng) for k, n in enumerate(sizes)]) / np.sqrt(L)
        clf = LogisticRegression(C=1.0 / lam, class_weight=weights, tol=1e-6, max_iter=1000)
        clf.fit(X, np.repeat(np.arange(T), sizes))
        w = clf.coef_ / np.sqrt(L)
        overlaps = np.stack([w @ mix.covariance(k) @ w.T for k in range(T)])
        found.append(rbal.metrics.ManyMetrics(mix.means @ w.T + clf.intercept_, overlaps).confusion())
    error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    gap = np.abs(sol.metrics.confusion() - np.mean(found, axis=0))
    assert np.all(gap < 5.0 * np.hypot(error, sol.confusion_error) + 2.0 / L)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alphas": [1.0, 2.0]}, "alphas must have one entry for each of the 3 classes"),
        ({"alphas": [1.0, 2.0, 0.0]}, "alphas must be > 0, got 0 for class 2: a class needs rows"),
        ({"alphas": {0: 1.0, 1: 2.0, 3: 1.0}}, r"alphas must have the classes \[0, 1, 2\] of the mixture"),
        ({"weights": "equal"}, "weights must be None, 'balanced' or 3 numbers, one for each class, got 'equal'"),
        ({"weights": np.ones((3, 3))}, r"weights must be None, 'balanced' or 3 numbers.* got shape \(3, 3\)"),
        ({"weights": [1.0, -1.0, 1.0]}, "weights must be > 0"),
        ({"lam": 0.0}, "lam must be >= 1e-09"),
        ({"mixture": classes(6, D=10), "alphas": np.ones(6)}, "mixture must have at most 5 classes"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        rbal.solve_multinomial(**({"mixture": classes(3, D=10), "alphas": [1.0, 2.0, 3.0]} | change))


def test_too_many_directions_are_refused(monkeypatch):
    monkeypatch.setattr(_multinomial, "LARGEST_MATRIX", 15)
    with pytest.raises(ValueError, match=r"mixture must have at most 7 directions .*, got 10: use one covariance"):
        rbal.solve_multinomial(classes(3, D=10, own=True), [1.0, 1.0, 1.0])


def test_what_does_not_converge_says_so():
    with pytest.warns(rbal.ConvergenceWarning, match="did not converge"):
        sol = rbal.solve_multinomial(classes(3, D=10), [1.0, 1.0, 1.0], max_iter=2)
    assert not sol.converged
    assert np.isnan(sol.means).all()


@pytest.mark.parametrize(("lam", "weights"), [(1e300, None), (1.0, np.full(3, 1e200))])
def test_what_cannot_be_solved_is_said_and_nan(lam, weights):
    mixture = rbal.Mixture.gaussian(2.0 * np.eye(3, 50), np.ones(50), ["a", "b", "c"])
    with pytest.warns(rbal.ConvergenceWarning, match="did not converge") as told:
        sol = rbal.solve_multinomial(mixture, np.ones(3), lam, weights)
    assert len(told) == 1
    assert not sol.converged
    assert np.isnan([sol.b.sum(), sol.means.sum(), sol.metrics.ba(), sol.confusion_error.sum()]).all()


def test_what_is_no_mixture_is_named():
    with pytest.raises(TypeError, match=r"mixture must be a rbal.Mixture, got NoneType"):
        rbal.solve_multinomial(None, np.ones(3))
