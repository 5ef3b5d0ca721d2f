"""The perceptron is trained to optimality, on either side of a vanishing multiplier, and lands on the theory."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.utils.estimator_checks import parametrize_with_checks

import rbal
from rbal._perceptron import sphere_least_squares


@parametrize_with_checks([rbal.SphericalPerceptron(kappa=0.5)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def sample(rng, P, N, D, shift=1.0):
    y = np.repeat([1, -1], [P, N])
    delta = shift * rng.normal(size=D)
    return rng.normal(size=(P + N, D)) + np.outer(y, delta) / (2 * np.sqrt(D)), y, delta


def loss(J, b, X, y, c, kappa):
    return c @ np.maximum(kappa - y * (X @ J / np.sqrt(len(J)) - b), 0.0)


# κ = 0 and 0.3 have negative multipliers, 1 and 3 positive ones
@pytest.mark.parametrize("kappa", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("weight", [1.0, 4.0])
def test_optimality_conditions_and_local_minimum(kappa, weight):
    rng = np.random.default_rng(1)
    X, y, _ = sample(rng, 40, 120, 20)
    c = np.where(y > 0, weight, 1.0)
    clf = rbal.SphericalPerceptron(kappa=kappa).fit(X, y, sample_weight=c)
    assert clf.kkt_residual_ < 1e-9
    assert np.sum(clf.J_**2) == pytest.approx(20, rel=1e-12)
    best = loss(clf.J_, clf.b_, X, y, c, kappa)
    assert clf.objective_ == pytest.approx(best, rel=1e-12)
    for size in (1e-6, 1e-4, 1e-3):  # no small step on the sphere goes lower
        for _ in range(50):
            J = clf.J_ + size * rng.normal(size=20)
            J *= np.sqrt(20) / np.linalg.norm(J)
            assert loss(J, clf.b_ + size * rng.normal(), X, y, c, kappa) >= best - 1e-9


@pytest.mark.parametrize("kappa", [0.2, 1.0, 2.5])
def test_published_penalty_method_gets_no_lower(kappa):
    # the paper's way: L-BFGS on the loss plus λ(‖J‖² - L)², then scaled to the sphere and given its best bias
    rng = np.random.default_rng(2)
    X, y, _ = sample(rng, 60, 100, 15)
    c = np.ones(len(y))

    def cost(v):
        J, b = v[:-1], v[-1]
        u = y * (X @ J / np.sqrt(15) - b)
        active = (u < kappa).astype(float)
        excess = J @ J - 15
        grad = np.append(-(active * y) @ X / np.sqrt(15) + 4.0 * excess * J, active @ y)
        return np.sum(active * (kappa - u)) + excess**2, grad

    clf = rbal.SphericalPerceptron(kappa=kappa).fit(X, y)
    for _ in range(5):
        v = minimize(cost, rng.normal(size=16), jac=True, method="L-BFGS-B").x
        J = v[:-1] * np.sqrt(15) / np.linalg.norm(v[:-1])
        b = min((X @ J / np.sqrt(15) - y * kappa), key=lambda b: loss(J, b, X, y, c, kappa))
        assert clf.objective_ <= loss(J, b, X, y, c, kappa) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("kappa", "alpha_pos", "alpha_neg"), [(0.3, 2.0, 5.0), (1.5, 1.0, 3.0)])
def test_lands_on_the_theory(kappa, alpha_pos, alpha_neg):
    rng = np.random.default_rng(3)
    D, trials = 100, 12
    delta = 1.5 * rng.normal(size=D)
    classes = rbal.Moments.real(delta / (2 * np.sqrt(D)), -delta / (2 * np.sqrt(D)), np.ones(D))
    found = []
    for _ in range(trials):
        y = np.repeat([1, -1], [round(alpha_pos * D), round(alpha_neg * D)])
        X = rng.normal(size=(len(y), D)) + np.outer(y, delta) / (2 * np.sqrt(D))
        clf = rbal.SphericalPerceptron(kappa=kappa).fit(X, y)
        found.append([clf.J_ @ delta / D, clf.b_, clf.objective_ / len(y)])
    sol = rbal.solve(classes, alpha_pos, alpha_neg, kappa)
    error = np.std(found, axis=0, ddof=1) / np.sqrt(trials)
    # four standard errors, and 1/D for the finite size
    assert (np.abs(np.mean(found, axis=0) - [sol.r, sol.b, sol.train_loss]) <= 4 * error + 1 / D).all()


def test_separable_data_get_the_largest_margin():
    rng = np.random.default_rng(4)
    X, y, _ = sample(rng, 5, 6, 40, shift=4.0)
    clf = rbal.SphericalPerceptron(kappa=0.1).fit(X, y)
    margins = y * clf.decision_function(X)
    assert clf.objective_ == 0.0
    assert np.sum(margins < margins.min() + 1e-5) >= 2
    for _ in range(200):  # no other weights do better
        J = clf.J_ + 0.1 * rng.normal(size=40)
        scores = X @ (J * np.sqrt(40) / np.linalg.norm(J)) / np.sqrt(40)
        assert 0.5 * (scores[y > 0].min() - scores[y < 0].max()) <= margins.min() + 1e-6


def test_states_are_the_spins_in_disguise():
    # one-hot with two states in the zero-sum gauge is the ±1 perceptron
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 2, size=(120, 10))
    y = np.where(rng.random(120) < 0.3, 1, -1)
    potts = rbal.SphericalPerceptron(kappa=0.8, n_states=2).fit(codes, y)
    spins = rbal.SphericalPerceptron(kappa=0.8).fit(2 * codes - 1, y)
    assert np.abs(potts.J_.sum(axis=1)).max() < 1e-12
    assert np.sum(potts.J_**2) == pytest.approx(20)
    np.testing.assert_allclose(potts.decision_function(codes), spins.decision_function(2 * codes - 1), atol=1e-8)


def test_sphere_least_squares_against_brute_force():
    rng = np.random.default_rng(6)
    gram, h = np.sort(rng.random(4)), rng.normal(size=4)
    a = sphere_least_squares(gram, h, 2.0)
    assert a @ a == pytest.approx(4.0)
    trials = rng.normal(size=(200_000, 4))
    trials *= 2.0 / np.linalg.norm(trials, axis=1, keepdims=True)
    assert 0.5 * gram @ a**2 - h @ a <= (0.5 * trials**2 @ gram - trials @ h).min() + 1e-12


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda X, y: rbal.SphericalPerceptron(kappa=-1.0).fit(X, y), "kappa must be >= 0"),
        (lambda X, y: rbal.SphericalPerceptron().fit(X, np.ones(len(y))), "two classes"),
        (lambda X, y: rbal.SphericalPerceptron().fit(X, np.arange(len(y)) % 3), "Only binary"),
        (lambda X, y: rbal.SphericalPerceptron().fit(X, y, sample_weight=-np.ones(len(y))), "[Nn]egative"),
        (lambda X, y: rbal.SphericalPerceptron().fit(X, y, sample_weight=(y > 0)), "both classes"),
        (lambda X, y: rbal.SphericalPerceptron(n_states=2).fit(X, y), "states 0 … 1"),
        (lambda X, y: rbal.SphericalPerceptron(n_states=1).fit(X, y), "n_states must be at least 2"),
        (lambda X, y: rbal.SphericalPerceptron(tol=0.0).fit(X, y), "tol must be > 0"),
        (lambda X, y: rbal.SphericalPerceptron(max_iter=0).fit(X, y), "max_iter must be a positive integer"),
    ],
)
def test_bad_input_names_the_argument(build, match):
    X, y, _ = sample(np.random.default_rng(7), 6, 9, 4)
    with pytest.raises(ValueError, match=match):
        build(X, y)


def test_too_few_steps_warn():
    X, y, _ = sample(np.random.default_rng(8), 40, 80, 20)
    with pytest.warns(rbal.ConvergenceWarning, match="did not converge"):
        rbal.SphericalPerceptron(kappa=0.0, max_iter=1).fit(X, y)
