"""Class weights, margins, shifts and temperatures: known cases, trained machines, and the best strength."""

import numpy as np
import pytest
from scipy.optimize import minimize

import rbal
from rbal import losses, strategies
from rbal.datasets import synthetic
from rbal.strategies import ADJUSTMENTS, Adjustment, Change, adjust, best_adjustment

CLASSES = rbal.Moments.ising(m=0.4, delta=np.linspace(-0.5, 2.0, 20))
SVM = {"model": "svm", "lam": 0.5}
SAME = ("q", "r", "b", "x", "train_loss")


def assert_same(left, right, names=SAME):
    for name in names:
        np.testing.assert_allclose(getattr(left, name), getattr(right, name), rtol=1e-8, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("name", ADJUSTMENTS)
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_no_strength_is_no_adjustment(name, loss):
    assert_same(adjust(CLASSES, 0.5, 3.0, name, 0.0, loss=loss, **SVM), rbal.solve(CLASSES, 0.5, 3.0, loss=loss, **SVM))


@pytest.mark.parametrize("name", ADJUSTMENTS)
def test_equal_classes_are_not_adjusted(name):
    assert_same(adjust(CLASSES, 1.0, 1.0, name, 0.7, **SVM), rbal.solve(CLASSES, 1.0, 1.0, **SVM))


@pytest.mark.parametrize("name", ADJUSTMENTS)
def test_exchanging_the_classes_turns_the_bias(name):
    one, two = (adjust(CLASSES, *sizes, name, 0.3, **SVM) for sizes in ((0.5, 3.0), (3.0, 0.5)))
    assert_same(one, two, ("q", "r", "x", "train_loss"))
    assert one.b == pytest.approx(-two.b, abs=1e-9)


def test_class_weights_are_those_of_the_remedy():
    design = strategies.REMEDIES["class weights"].design(0.5, 3.0)
    sol = adjust(CLASSES, 0.5, 3.0, "class weights", **SVM)
    assert (sol.weight_pos, sol.weight_neg) == pytest.approx((design.weight_pos, design.weight_neg))


def test_logit_adjustment_is_a_moved_threshold():
    plain = rbal.solve(CLASSES, 0.5, 3.0, loss="logistic", **SVM)
    sol = adjust(CLASSES, 0.5, 3.0, "logit adjustment", 0.8, loss="logistic", **SVM)
    assert (sol.q, sol.r) == (plain.q, plain.r)
    assert sol.metrics.tpr() == pytest.approx(plain.metrics.tpr(threshold=-0.8 * np.log(6.0)), abs=1e-12)


def test_margins_are_those_of_the_rule():
    sol = adjust(CLASSES, 0.5, 8.0, "LDAM margins", kappa=1.2, **SVM)
    assert (sol.kappa, sol.kappa_neg) == pytest.approx((1.2, 1.2 * (0.5 / 8.0) ** 0.25))
    # a hinge with margin κ and ridge λ is one with margin 1 and ridge λκ, in units of κ
    mean = 0.5 * (sol.kappa + sol.kappa_neg)
    other = rbal.solve(CLASSES, 0.5, 8.0, model="svm", lam=0.5 * mean)
    assert np.sqrt(sol.q) == pytest.approx(mean * np.sqrt(other.q), rel=1e-8)
    assert sol.r == pytest.approx(mean * other.r, rel=1e-8)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "square"])
def test_a_temperature_of_a_homogeneous_loss_is_a_weight_and_a_margin(loss):
    t, degree = (0.5 / 3.0) ** 0.4, losses.homogeneity(losses.LOSSES[loss])
    sol = adjust(CLASSES, 0.5, 3.0, "class temperature", 0.4, loss=loss, **SVM)
    assert (sol.kappa, sol.kappa_neg) == pytest.approx((1 / t, 1.0))
    assert (sol.weight_pos, sol.weight_neg) == pytest.approx((t**degree, 1.0))


def test_tempered_expectations_against_those_of_the_rescaled_score():
    record, c, kappa, x, mu, q = losses.tempered(losses.LOGISTIC), 0.6, 0.4, 0.8, 0.3, 1.2
    rng = np.random.default_rng(0)
    u0 = mu + np.sqrt(q) * np.r_[z := rng.normal(size=20_000), -z]

    def force(u0):  # root of u - u0 = x c σ(κ - c u), by bisection
        lo, hi = np.zeros_like(u0), np.full_like(u0, c)
        for _ in range(60):
            f = 0.5 * (lo + hi)
            high = f > c / (1 + np.exp(c * (u0 + x * f) - kappa))
            lo, hi = np.where(high, lo, f), np.where(high, f, hi)
        return f

    f, h = force(u0), 1e-6
    slope = (force(u0 + h) - force(u0 - h)) / (2 * h)
    sample = np.stack([f, f * f, -slope])
    got = np.array(losses.expectations(record, kappa, c, x, mu, q))
    error = sample.std(axis=1) / np.sqrt(sample.shape[1] / 2)
    assert (np.abs(got[:3] - sample.mean(axis=1)) <= 4 * error).all()
    for j, name in enumerate(("mu", "q", "x")):
        point = {"mu": mu, "q": q, "x": x}
        up, down = (losses.expectations(record, kappa, c, **{**point, name: point[name] + s}) for s in (1e-5, -1e-5))
        np.testing.assert_allclose(
            got[3 + 3 * j : 6 + 3 * j], (np.array(up[:3]) - down[:3]) / 2e-5, rtol=1e-6, atol=1e-9
        )
    assert record.force(kappa, c, 0.2) == pytest.approx(c / (1 + np.exp(c * 0.2 - kappa)))


@pytest.mark.slow
def test_trained_temperatures_land_on_the_theory():
    # logistic loss of a rescaled score, minimised as it is written
    rng = np.random.default_rng(5)
    L, trials, sizes = 120, 12, (0.5, 3.0)
    data = synthetic.random_gaussian(rng, L=L, ratio=3.0, scale=2.0)
    sol = adjust(data.moments, *sizes, "class temperature", 0.5, loss="logistic", **SVM)
    found = []
    for _ in range(trials):
        X, y = data.sample(int(sizes[0] * L), int(sizes[1] * L), rng)
        t = np.where(y > 0, (sizes[0] / sizes[1]) ** 0.5, 1.0)

        def objective(w, X=X, y=y, t=t):
            u = y * (X @ w[:-1] / np.sqrt(L) - w[-1])
            pull = -y * t / (1 + np.exp(t * u))
            slope = np.append(X.T @ pull / np.sqrt(L) + 0.5 * w[:-1], -pull.sum())
            return np.logaddexp(0.0, -t * u).sum() + 0.25 * w[:-1] @ w[:-1], slope

        w = minimize(objective, np.zeros(L + 1), jac=True, options={"gtol": 1e-6}).x
        J, M = w[:-1], data.moments.M
        found.append((data.moments.variance(J) / L, J @ data.moments.delta / L, w[-1] - J @ M / np.sqrt(L)))
    error = np.std(found, axis=0, ddof=1) / np.sqrt(trials)
    assert (np.abs(np.mean(found, axis=0) - [sol.q, sol.r, sol.b]) <= 4 * error + 2 / L).all()


@pytest.mark.parametrize("name", ADJUSTMENTS)
@pytest.mark.parametrize("metric", ["ba", "f1"])
def test_best_strength_against_brute_force(name, metric):
    between = (-0.5, 2.0)
    best = best_adjustment(CLASSES, 0.5, 3.0, name, metric=metric, between=between, tolerance=2e-3, **SVM)
    strengths = np.linspace(*between, 501)
    metrics = adjust(CLASSES, 0.5, 3.0, name, strengths, **SVM).metrics
    values = metrics.ba() if metric == "ba" else metrics.f1(0.5 / 3.5)
    corner = name == "class temperature"  # at 0, where another class has the largest score: found as well as its place
    assert best.value >= np.nanmax(values) - (1e-6 if corner else 1e-9)
    if best.edge == "inside":
        assert best.strength == pytest.approx(strengths[np.nanargmax(values)], abs=0.02)
    good = strengths[values >= np.nanmax(values) - 2e-3]
    assert (best.low, best.high) == pytest.approx((good[0], good[-1]), abs=0.01)


def test_best_strength_of_arrays_is_that_of_each():
    lam = np.array([0.1, 3.0])
    many = best_adjustment(CLASSES, np.array([[0.5], [1.5]]), 3.0, model="svm", lam=lam)
    assert many.strength.shape == many.edge.shape == (2, 2)
    one = best_adjustment(CLASSES, 1.5, 3.0, model="svm", lam=3.0)
    assert one.value == pytest.approx(many.value[1, 1], abs=1e-8)
    assert one.strength == pytest.approx(many.strength[1, 1], abs=1e-2)


def test_exact_balance_is_not_missed_under_a_strong_ridge():
    # all samples are below their margins, and the bias runs away as soon as one class pulls harder
    balanced = adjust(CLASSES, 0.2, 0.5, "class weights", model="svm", lam=50.0).metrics.ba()
    nearly = adjust(CLASSES, 0.2, 0.5, "class weights", 0.99, model="svm", lam=50.0).metrics.ba()
    best = best_adjustment(CLASSES, 0.2, 0.5, model="svm", lam=50.0)
    assert balanced > nearly + 0.02
    assert best.strength == 1.0
    assert best.value == pytest.approx(balanced)


def test_a_registered_adjustment_is_known_by_its_name():
    record = strategies.register_adjustment(
        Adjustment("twice", "Count the positives twice", lambda pos, neg, s: Change(weight=(1.0 + s, 1.0)))
    )
    try:
        assert_same(adjust(CLASSES, 0.5, 3.0, "twice", **SVM), rbal.solve(CLASSES, 0.5, 3.0, weight_pos=2.0, **SVM))
        with pytest.raises(ValueError, match="twice"):
            strategies.register_adjustment(record)
    finally:
        del ADJUSTMENTS["twice"]


def test_what_is_not_taken():
    with pytest.raises(ValueError, match="adjustment must be one of"):
        adjust(CLASSES, 1.0, 2.0, "nothing", **SVM)
    with pytest.raises(ValueError, match="between must ascend"):
        best_adjustment(CLASSES, 1.0, 2.0, between=(1.0, 0.0), **SVM)
    both = Adjustment("both", "", lambda pos, neg, s: Change(weight=(2.0, 1.0), temperature=(0.5, 1.0)))
    with pytest.raises(ValueError, match="must have temperatures and nothing else"):
        adjust(CLASSES, 1.0, 2.0, both, loss="logistic", **SVM)
    with pytest.raises(ValueError, match="kappa_neg goes with a loss of κ - u, not with 'tempered logistic'"):
        rbal.solve(CLASSES, 1.0, 2.0, 1.0, kappa_neg=0.5, loss=losses.tempered(losses.LOGISTIC), **SVM)
    with pytest.raises(ValueError, match="not homogeneous, got 'hinge'"):
        losses.tempered(losses.HINGE)
