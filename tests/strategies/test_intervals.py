"""Intervals of kernel machines: left-out scores against refits, and coverage on classes that are known."""

import numpy as np
import pytest
from sklearn.svm import SVC

import rbal
from rbal import kernels
from rbal.metrics import evaluate
from rbal.strategies import interval, own_widths
from rbal.strategies._intervals import left_out
from rbal.strategies.internal import interval_ends, theory_error


def skewed(rng, n_pos, n_neg, D=8):
    """Rows of log-normal columns."""
    y = np.repeat([1, -1], [n_pos, n_neg])
    return np.exp(0.6 * rng.normal(size=(y.size, D)) + 0.4 * (y > 0)[:, None]), y


def refitted(K, y, C, weight, i):
    """Score of row i by the machine of least squares that is fitted to the others, from its normal equations."""
    rows = np.delete(np.arange(len(y)), i)
    values, vectors = np.linalg.eigh(K)
    F = vectors * np.sqrt(np.maximum(values, 0.0))  # features
    A = np.hstack([F[rows], np.ones((len(rows), 1))])
    ridge = np.diag(np.r_[np.ones(F.shape[1]), 0.0])
    c = 2.0 * C * weight[rows]
    w = np.linalg.solve(ridge + A.T @ (c[:, None] * A), A.T @ (c * y[rows]))
    return np.r_[F[i], 1.0] @ w


@pytest.mark.parametrize("C", [0.03, 1.0, 30.0])
def test_left_out_scores_are_those_of_refits(C):
    X, y = skewed(np.random.default_rng(1), 8, 17)
    K, weight = kernels.bind("rbf", X)(X), np.where(y > 0, 2.0, 0.5)
    found = left_out(K, y.astype(float), C, weight)
    np.testing.assert_allclose(found, [refitted(K, y, C, weight, i) for i in range(len(y))], rtol=1e-7, atol=1e-9)


def test_the_theory_is_not_far_off_for_gaussian_classes():
    """What is found there is the noise of two rates: Φ⁻¹ of a share p of n has the error √(p(1 - p)/n)/φ."""
    rng, found = np.random.default_rng(2), []
    y = np.repeat([1, -1], [150, 350])
    for _ in range(8):
        X = rng.normal(size=(500, 40)) + 0.35 * (y > 0)[:, None]
        K = X @ X.T
        found.append(theory_error(rbal.Moments.from_kernel(K, y), K, y > 0, 0.01, "class weights"))
    # rates of 0.84: 0.12 and 0.08 in a distance of 2, and as much again from the shift of the sample
    assert np.sqrt(np.mean(np.square(found))) < 0.15


def test_the_parts_of_an_interval():
    X, y = skewed(np.random.default_rng(3), 40, 120)
    K = kernels.bind("rbf", X)(X)
    mom = rbal.Moments.from_kernel(K, y)
    weights = {"weight_pos": 2.0, "weight_neg": 2.0 / 3.0}
    wide = own_widths(mom, mom.alpha_pos, mom.alpha_neg, lam=mom.ridge(1.0), leverages="rows", **weights)
    plain = interval(K, y, 1.0, draws=32, model_error=0.0)
    whole = interval(K, y, 1.0, draws=32)
    assert plain.value == whole.value == pytest.approx(wide.metrics.ba(), abs=1e-9)
    assert whole.model_error == pytest.approx(theory_error(mom, K, y > 0, 1.0, "class weights"))
    assert whole.model_error > 0.0
    wider = interval(K, y, 1.0, draws=32, model_error=0.5)
    assert wider.low < plain.low <= plain.value <= plain.high < wider.high
    narrow = interval(K, y, 1.0, draws=32, level=0.5, model_error=0.5)
    assert wider.low < narrow.low
    assert narrow.high < wider.high
    assert interval(K, y, 1.0, "as is", "tpr", draws=16, model_error=0.1).value < plain.value
    assert interval(K, y, 1.0, "undersampling", draws=16).low < interval(K, y, 1.0, "undersampling", draws=16).high


def test_ends_are_moved_and_rates_stay_rates():
    others = np.linspace(0.6, 0.9, 31)
    assert interval_ends(0.8, 0.75, others, 0.8) == pytest.approx((0.68, 0.92))
    assert interval_ends(0.98, 0.75, others, 0.8) == pytest.approx((0.86, 1.0))
    assert interval_ends(-2.0, -1.0, -others, 0.8) == pytest.approx((-2.0, -1.63))  # a cost


def test_bad_input():
    X, y = skewed(np.random.default_rng(4), 6, 14)
    K = X @ X.T
    for options, message in (
        ({"C": 0.0}, "C must be > 0, got 0"),
        ({"remedy": "luck"}, "remedy must be one of .*got 'luck'"),
        ({"remedy": "best mix"}, "remedy must be one whose mixing is not searched, got 'best mix'"),
        ({"metric": "luck"}, "metric must be one of .*got 'luck'"),
        ({"level": 0.0}, "level must be > 0"),
        ({"model_error": -1.0}, "model_error must be >= 0 and <= 20, got -1"),
        ({"draws": 0}, "draws must be a positive integer, got 0"),
        ({"positive": 7}, "positive must be one of the labels"),
    ):
        with pytest.raises(ValueError, match=message):
            interval(K, y, **options)
    with pytest.raises(ValueError, match="K must be square"):
        interval(K[:5], y)


def crossed(rng, n_pos, n_neg, D=12):
    """Two clusters for each class, on two axes."""
    y = np.repeat([1, -1], [n_pos, n_neg])
    X, side = rng.normal(size=(y.size, D)), rng.choice([-2.2, 2.2], size=y.size)
    X[np.arange(y.size), np.where(y > 0, 0, 1)] += side
    return X, y


@pytest.mark.slow
def test_intervals_hold_what_is_trained_on_classes_that_are_not_gaussian():
    """Of 24 intervals of 90 % at least 16, four standard errors below; and more than with the noise of the sample."""
    plain, whole = [], []
    for classes in (skewed, crossed):
        rng = np.random.default_rng(5)
        T, y_test = classes(rng, 1000, 1000)
        for _ in range(6):
            X, y = classes(rng, 60, 240)
            k = kernels.bind("rbf", X)
            K, K_test = k(X), k(T, X)
            for C in (1.0, 10.0):
                scores = SVC(kernel="precomputed", C=C, class_weight="balanced").fit(K, y).decision_function(K_test)
                ba = evaluate(scores, y_test, names=["ba"])["ba"]
                for held, error in ((plain, 0.0), (whole, None)):
                    told = interval(K, y, C, draws=32, model_error=error)
                    held.append(told.low <= ba <= told.high)
    assert np.sum(whole) >= 16
    assert np.sum(whole) > np.sum(plain)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 1}, "draws must be at least 10 for level=0.9, got 1"),
        ({"draws": 64, "level": 0.99}, "draws must be at least 100 for level=0.99, got 64"),
        ({"draws": 10**7}, "draws must be at most 16,384, got 10,000,000"),
        ({"level": 1.0}, "level must be < 1, got 1"),
    ],
)
def test_draws_have_quantiles_at_both_ends_and_an_end(options, message):
    X, y = skewed(np.random.default_rng(0), 20, 40)
    with pytest.raises(ValueError, match=message):
        interval(X @ X.T, y, **options)
    if options.get("draws") == 10**7:
        with pytest.raises(ValueError, match=message):
            rbal.advise(X, y, **options)
        with pytest.raises(ValueError, match=message.replace("draws", "n")):
            rbal.Moments.from_kernel(X @ X.T, y).draws(10**7)


def test_an_interval_of_what_did_not_converge_is_nan_with_one_warning():
    X, y = skewed(np.random.default_rng(0), 20, 40)
    with pytest.warns(rbal.ConvergenceWarning, match="did not converge") as told:
        found = interval(X @ X.T, y, C=1e-300)
    assert len(told) == 1
    assert np.isnan(found).all()
