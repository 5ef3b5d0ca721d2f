"""The interior-point SVM against libsvm, its own duality gap, and what is known exactly."""

import numpy as np
import pytest
from sklearn.svm import SVC

from rbal.learners._interior import best_bias, fit_svm


def problem(n, D, seed, apart=1.5):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < n // 4, 1.0, -1.0)
    return rng.normal(size=(n, D)) + apart * y[:, None] / np.sqrt(D), y, rng


def objective(X, y, c, w, b):
    return 0.5 * w @ w + c @ np.maximum(1.0 - y * (X @ w - b), 0.0)


@pytest.mark.parametrize(("n", "D"), [(200, 5), (60, 59), (40, 150), (4, 1)])
@pytest.mark.parametrize("C", [1e-3, 1.0, 30.0])
def test_it_finds_the_minimum_that_libsvm_finds(n, D, C):
    X, y, rng = problem(n, D, n)
    weights = rng.uniform(0.2, 3.0, n)
    svm = SVC(kernel="linear", C=C, tol=1e-7).fit(X, y, sample_weight=weights)
    fit = fit_svm(X, y, C * weights)
    known = objective(X, y, C * weights, svm.coef_[0], -svm.intercept_[0])
    assert fit.gap < 1e-8
    assert objective(X, y, C * weights, fit.w, fit.b) <= known * (1.0 + 1e-8)
    assert fit.w == pytest.approx(svm.coef_[0], abs=2e-4 * np.linalg.norm(fit.w) + 1e-6)


@pytest.mark.parametrize("C", [1e3, 1e6])
def test_a_large_C_takes_few_steps(C):
    """Where libsvm needs steps in proportion to C."""
    X, y, _ = problem(500, 10, 1)
    fit = fit_svm(X, y, np.full(len(y), C))
    assert fit.gap < 1e-8
    assert fit.n_iter < 60


def test_without_a_bias_the_origin_has_score_zero():
    X, y, _ = problem(300, 4, 2)
    c = np.full(len(y), 0.5)
    fit = fit_svm(X, y, c, fit_bias=False)
    mirrored = SVC(kernel="linear", C=0.25, tol=1e-7).fit(np.concatenate([X, -X]), np.concatenate([y, -y]))
    assert fit.b == 0.0
    assert fit.gap < 1e-8
    assert fit.w == pytest.approx(mirrored.coef_[0], abs=1e-4)


def test_rows_that_count_twice_are_rows_of_twice_the_cost():
    X, y, _ = problem(80, 6, 3)
    twice = fit_svm(np.repeat(X, 2, axis=0), np.repeat(y, 2), np.full(2 * len(y), 0.7))
    once = fit_svm(X, y, np.full(len(y), 1.4))
    assert twice.w == pytest.approx(once.w, abs=1e-6)
    assert twice.b == pytest.approx(once.b, abs=1e-5)


def test_the_bias_is_in_the_middle_of_the_best_ones():
    scores, y = np.array([-2.0, -1.5, 1.5, 2.0]), np.array([-1.0, -1.0, 1.0, 1.0])
    # no loss for -0.5 <= b <= 0.5
    assert best_bias(scores, y, np.ones(4)) == 0.0
    rng = np.random.default_rng(4)
    scores, y, c = rng.normal(size=41), np.where(rng.random(41) < 0.3, 1.0, -1.0), rng.uniform(0.1, 2.0, 41)
    loss = [c @ np.maximum(1.0 - y * (scores - b), 0.0) for b in scores - y]
    assert c @ np.maximum(1.0 - y * (scores - best_bias(scores, y, c)), 0.0) == pytest.approx(min(loss), rel=1e-12)
