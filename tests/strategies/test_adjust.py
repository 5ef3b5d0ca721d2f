"""Class weights, margins, shifts and temperatures: known cases, trained machines, and the best strength."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import SVC

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


def scaled(X, y, shift, t, lam):
    """Weights and bias of Σ log(1 + exp(ι - t u)) + λ/2 ‖J‖² with ι and t of each class, minimised as it is written."""
    L = X.shape[1]
    shift, t = (np.where(y > 0, *pair) for pair in (shift, t))

    def objective(w):
        u = y * (X @ w[:-1] / np.sqrt(L) - w[-1])
        pull = -y * t / (1 + np.exp(t * u - shift))
        slope = np.append(X.T @ pull / np.sqrt(L) + lam * w[:-1], -pull.sum())
        return np.logaddexp(0.0, shift - t * u).sum() + 0.5 * lam * w[:-1] @ w[:-1], slope

    w = minimize(objective, np.zeros(L + 1), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-7}).x
    return w[:-1], w[-1]


def test_shifts_beside_temperatures_are_one_shift_and_a_bias_on_every_data_set():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 8)), np.repeat([1, -1], [15, 45])
    (up, down), t = (1.3, -0.4), (0.6, 0.9)
    J, b = scaled(X, y, (up, down), t, 0.4)
    common = (up * t[1] + down * t[0]) / (t[0] + t[1])
    J_common, b_common = scaled(X, y, (common, common), t, 0.4)
    np.testing.assert_allclose(J, J_common, atol=1e-5)
    assert b == pytest.approx(b_common - (up - down) / (t[0] + t[1]), abs=1e-5)


@pytest.mark.parametrize("shift", [(0.0, 0.0), (3.0, -1.0)])
@pytest.mark.parametrize("t", [(1.0, 1.0), (0.5, 1.0)])
def test_a_vanishing_ridge_leaves_the_ratio_of_temperatures_and_no_shift(shift, t):
    # the bound that chapter "Margins and ensembles" proves, on one separable data set; the limit by libsvm
    rng = np.random.default_rng(3)
    y = np.repeat([1, -1], [8, 16])
    X = rng.normal(size=(24, 12)) + 0.8 * y[:, None]
    hard = SVC(kernel="linear", C=1e9, tol=1e-8).fit(X, y)
    norm = np.linalg.norm(hard.coef_)
    assert (y * hard.decision_function(X) > 0.999).all()
    largest = 2 * t[0] * t[1] / (t[0] + t[1]) / norm  # of the smallest t u, at weights of norm 1
    limit = hard.intercept_[0] / norm + (t[1] - t[0]) / (t[1] + t[0]) / norm  # - b, moved by a part of the margin
    sizes, turns, places = [], [], []
    for lam in (1e-2, 1e-3, 1e-4, 1e-5):
        J, b = scaled(np.sqrt(12) * X, y, shift, t, lam)
        size = np.linalg.norm(J)
        smallest = np.min(np.where(y > 0, *t) * y * (X @ J - b)) / size
        assert largest - (np.log(2 * 24) + shift[0] - shift[1]) / size <= smallest <= largest + 1e-6
        sizes.append(size)
        turns.append(1.0 - J @ hard.coef_[0] / (size * norm))
        places.append(-b / size)
    assert (np.diff(turns) < 0.0).all()
    # both are off by a number over the size, which grows like a logarithm: a line through the first and the last
    found = (sizes[-1] * places[-1] - sizes[0] * places[0]) / (sizes[-1] - sizes[0])
    assert found == pytest.approx(limit, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "strength"), [("class temperature", 0.5), ("vector scaling", 1.25)])
def test_trained_temperatures_land_on_the_theory(name, strength):
    rng = np.random.default_rng(5)
    L, trials, sizes = 120, 12, (0.5, 3.0)
    data = synthetic.random_gaussian(rng, L=L, ratio=3.0, scale=2.0)
    sol = adjust(data.moments, *sizes, name, strength, loss="logistic", **SVM)
    shift, t = (sol.kappa, sol.kappa_neg), (sol.weight_pos, sol.weight_neg)
    power = strength if name == "class temperature" else 0.15 * strength
    assert t == pytest.approx(((1 / 6) ** power, 1.0))
    assert shift == pytest.approx(
        (0.0, 0.0) if name == "class temperature" else np.log(6) * strength * np.array([1, -1])
    )
    found = []
    for _ in range(trials):
        X, y = data.sample(int(sizes[0] * L), int(sizes[1] * L), rng)
        J, b = scaled(X, y, shift, t, 0.5)
        wrong = np.mean(y * (X @ J / np.sqrt(L) - b) < 0)
        found.append(
            (data.moments.variance(J) / L, J @ data.moments.delta / L, b - J @ data.moments.M / np.sqrt(L), wrong)
        )
    error = np.std(found, axis=0, ddof=1) / np.sqrt(trials)
    expected = [sol.q, sol.r, sol.b, sol.train_error]
    assert (np.abs(np.mean(found, axis=0) - expected) <= 4 * error + [2 / L, 2 / L, 2 / L, 0.5 / L]).all()


def test_vector_scaling_of_arrays_is_that_of_each():
    strength = np.array([-0.5, 0.0, 1.0])
    many = adjust(CLASSES, 0.5, 3.0, "vector scaling", strength, loss="logistic", **SVM)
    for k, s in enumerate(strength):
        one = adjust(CLASSES, 0.5, 3.0, "vector scaling", s, loss="logistic", **SVM)
        for name in (*SAME, "kappa", "kappa_neg", "train_error"):
            assert getattr(many, name)[k] == pytest.approx(getattr(one, name), rel=1e-7, abs=1e-9), name


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
    with pytest.raises(ValueError, match="must have no weights beside temperatures for the loss 'logistic'"):
        adjust(CLASSES, 1.0, 2.0, both, loss="logistic", **SVM)
    two = rbal.Mixture.gaussian([np.full(4, 0.2), np.full(4, -0.2)], [np.eye(4), 2 * np.eye(4)], [1, -1])
    for classes, fit_bias in ((CLASSES, False), (two, True)):
        with pytest.raises(ValueError, match="must have no shifts beside temperatures for a Mixture, or with fit_bias"):
            adjust(classes, 1.0, 2.0, "vector scaling", loss="logistic", fit_bias=fit_bias, **SVM)
    assert np.isfinite(adjust(two, 1.0, 2.0, "class temperature", 0.5, loss="logistic", **SVM).metrics.ba())
    down = Adjustment("down", "", lambda pos, neg, s: Change(shift=(-1.0, 0.0), temperature=(0.5, 1.0)))
    with pytest.raises(ValueError, match=r"the common shift of the classes must be >= 0, got -0\.66"):
        adjust(CLASSES, 1.0, 2.0, down, loss="logistic", **SVM)
    with pytest.raises(ValueError, match="kappa_neg goes with a loss of κ - u, not with 'tempered logistic'"):
        rbal.solve(CLASSES, 1.0, 2.0, 1.0, kappa_neg=0.5, loss=losses.tempered(losses.LOGISTIC), **SVM)
    with pytest.raises(ValueError, match="not homogeneous, got 'hinge'"):
        losses.tempered(losses.HINGE)
