"""What must not change an answer: rotations, scales, the order of rows and columns, and duplicates in place of weights."""

from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group

import rbal

pytestmark = pytest.mark.fuzz
SOLVER = 2e-3  # of the largest score: scikit-learn's solvers stop at tol=1e-5 of their own measure
EXACT = 1e-6  # of the largest score, or of a rate: the descent of the perceptron and Newton's steps end at rounding


@st.composite
def problems(draw):
    """Rows, labels and whole weights, a rotation, a scale, and orders of rows and columns."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    L, n_pos, n_neg = draw(st.integers(2, 8)), draw(st.integers(6, 15)), draw(st.integers(6, 30))
    y = np.repeat([1, -1], [n_pos, n_neg])
    X = rng.normal(size=(len(y), L)) * rng.uniform(0.5, 2.0, L) + draw(st.floats(0.0, 1.0)) * y[:, None]
    turn, scale = ortho_group.rvs(L, random_state=rng), 2.0 ** draw(st.integers(-6, 6))
    return X, y, rng.integers(1, 4, len(y)), turn, scale, rng.permutation(len(y)), rng.permutation(L)


def same(found, expected, tolerance):
    np.testing.assert_allclose(found, expected, atol=tolerance * max(np.abs(expected).max(), 1.0), rtol=0.0)


def hold_for_learner(made, scaled, unit, problem, tolerance):
    """Compare the scores of all rows, whatever the bias, which whole weights may leave free within an interval."""
    X, y, weight, turn, scale, rows, columns = problem

    def scores(learner, X_train, X_all, *labels):
        found = learner.fit(X_train, *labels).decision_function(X_all)
        assume(getattr(learner, "multiplier_", 1.0) > 0.0)  # a perceptron's problem is convex, with one minimum
        return found - found.mean()

    here = scores(made(), X, X, y, weight)
    for new in (X @ turn, X[:, columns]):
        same(scores(made(), new, new, y, weight), here, tolerance)
    same(scores(made(), X[rows], X, y[rows], weight[rows]), here, tolerance)
    same(scores(made(), X.repeat(weight, axis=0), X, y.repeat(weight)), here, tolerance)
    same(scores(scaled(scale), scale * X, scale * X, y, weight) / unit(scale), here, tolerance)


@settings(max_examples=20)
@given(problems(), st.sampled_from(["hinge", "square", "logistic"]), st.sampled_from([0.1, 1.0, 10.0]))
def test_support_vector_machines(problem, loss, lam):
    made = partial(rbal.LinearSVM, lam=lam, loss=loss, tol=1e-8)
    hold_for_learner(made, lambda s: made(lam=lam * s * s), lambda s: 1.0, problem, SOLVER)


@settings(max_examples=20)
@given(problems(), st.sampled_from([1.0, 10.0]))
def test_perceptrons(problem, kappa):
    made = partial(rbal.SphericalPerceptron, kappa=kappa)
    hold_for_learner(made, lambda s: made(kappa=s * kappa), lambda s: s, problem, EXACT)


@settings(max_examples=20)
@given(problems(), st.sampled_from([0.3, 1.0, 3.0]), st.sampled_from([0.0, 0.5]))
def test_the_theory(problem, alpha, kappa):
    X, y, _, turn, scale, _, _ = problem
    pos, neg, cov = X[y > 0].mean(axis=0), X[y < 0].mean(axis=0), np.cov(X.T)
    here = rbal.solve(rbal.Moments.real(pos, neg, cov), alpha, 2.0, kappa)
    turned = rbal.solve(rbal.Moments.real(pos @ turn, neg @ turn, turn.T @ cov @ turn), alpha, 2.0, kappa)
    scaled = rbal.solve(rbal.Moments.real(scale * pos, scale * neg, scale**2 * cov), alpha, 2.0, scale * kappa)
    same([turned.metrics.tpr(), scaled.metrics.tpr()], here.metrics.tpr(), EXACT)


@settings(max_examples=4)
@given(problems())
def test_advice(problem):
    X, y, _, _, scale, rows, columns = problem
    fixed = {"C": 1.0, "kernel": "linear", "moments": "pooled", "train": "none", "progress": False, "check": False}
    here = rbal.advise(X, y, **fixed).table["predicted"]
    for X_new, y_new in ((X[rows], y[rows]), (X[:, columns], y), (scale * X + 1.0, y)):
        np.testing.assert_allclose(rbal.advise(X_new, y_new, **fixed).table["predicted"], here, atol=EXACT)
