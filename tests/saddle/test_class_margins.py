"""Margins of each class: the weights are those of the mean margin, and only the bias moves."""

import numpy as np
import pytest
from scipy.optimize import brentq, root
from scipy.special import ndtr

import rbal
from rbal.losses import LOSSES
from rbal.moments import spectrum_of
from rbal.saddle import _newton
from rbal.saddle._equations import LOG_Q, LOG_X, RIDGE, UNSAT, B, Problem, R

CLASSES = rbal.Moments.ising(m=0.4, delta=np.linspace(-0.5, 2.0, 20))
SAME = ("q", "r", "x", "k_hat", "x_hat", "q_hat", "r_hat", "train_loss")
any_loss = pytest.mark.parametrize("loss", LOSSES)


def direct(loss, kappas, alpha, weight=(1.0, 1.0), ridge=None):
    """Newton's method on the problem with two margins as it stands: q, r, b, x."""
    spectrum, y = spectrum_of(CLASSES), np.empty(5)
    mode = UNSAT if ridge is None else RIDGE
    problem = Problem(mode, LOSSES[loss].law, kappas, alpha, weight, (1.0, 1.0), float(spectrum.Q), ridge or 0.0, True)
    if ridge is None:
        _newton.sphere_start(problem, spectrum, y)
    else:
        _newton.ridge_start(problem, spectrum, ridge, y)
    residual, _ = _newton.newton(problem, spectrum, 1e-12, 200, 1e300, y)
    assert residual <= 1e-12
    return np.exp(y[LOG_Q]), y[R], y[B], np.exp(y[LOG_X])


@any_loss
@pytest.mark.parametrize("ridge", [None, 0.2])
def test_margins_of_each_class_against_the_equations_as_they_stand(loss, ridge):
    kappas, alpha, weight = (1.4, 0.5), (1.5, 4.0), (2.0, 0.7)
    model = {} if ridge is None else {"model": "svm", "lam": ridge}
    sol = rbal.solve(
        CLASSES, *alpha, kappas[0], kappa_neg=kappas[1], loss=loss, weight_pos=weight[0], weight_neg=weight[1], **model
    )
    expected = direct(loss, kappas, alpha, weight, ridge)
    np.testing.assert_allclose([sol.q, sol.r, sol.b, sol.x], expected, rtol=1e-8, atol=1e-9)
    assert (sol.kappa, sol.kappa_neg) == kappas


@any_loss
def test_only_the_bias_moves(loss):
    options = {"model": "svm", "lam": 0.3, "loss": loss}
    plain = rbal.solve(CLASSES, 1.5, 4.0, 0.875, **options)
    own = rbal.solve(CLASSES, 1.5, 4.0, 1.5, kappa_neg=0.25, **options)
    for name in SAME:
        assert getattr(own, name) == getattr(plain, name)
    assert own.b == pytest.approx(plain.b - 0.625, abs=1e-14)
    assert rbal.solve(CLASSES, 1.5, 4.0, 0.875, kappa_neg=0.875, **options).train_error == pytest.approx(
        plain.train_error, rel=1e-12
    )


def test_training_error_is_that_of_the_moved_bias():
    # from the density of the training scores, whose margin is that of the class
    sol = rbal.solve(CLASSES, 1.5, 4.0, 1.4, kappa_neg=0.4, model="svm", lam=0.3)
    scores = np.linspace(-12.0, 12.0, 480_001)
    wrong = 0.0
    for label, alpha in ((1, 1.5), (-1, 4.0)):
        density, atom = rbal.train_density(sol, scores, label)
        total = np.trapezoid(density, scores) + atom
        assert total == pytest.approx(1.0, abs=1e-4)
        wrong += alpha * np.trapezoid(np.where(label * scores < 0.0, density, 0.0), scores)
    assert sol.train_error == pytest.approx(wrong / 5.5, abs=1e-4)


def test_shifts_of_a_logistic_regression_may_have_any_sign():
    plain = rbal.solve(CLASSES, 1.5, 4.0, model="svm", lam=0.3, loss="logistic")
    own = rbal.solve(CLASSES, 1.5, 4.0, -2.0, kappa_neg=2.0, model="svm", lam=0.3, loss="logistic")
    assert (own.q, own.r) == (plain.q, plain.r)
    assert own.b == plain.b + 2.0
    low = rbal.solve(CLASSES, 1.5, 4.0, 2.0, kappa_neg=-1.0, model="svm", lam=0.3, loss="logistic")
    expected = direct("logistic", (2.0, -1.0), (1.5, 4.0), ridge=0.3)
    np.testing.assert_allclose([low.q, low.r, low.b, low.x], expected, rtol=1e-8)


def test_collapsed_and_separable_solutions_follow():
    close = rbal.Moments.ising(m=0.4, delta=0.3, L=20)
    collapsed = rbal.solve(close, 0.5, 50.0, 1.5, kappa_neg=0.5, model="svm", lam=5.0)
    assert collapsed.phase == "COLLAPSED"
    assert collapsed.b == pytest.approx(0.5)  # all scores sit at the margin of the negatives
    assert collapsed.train_error == pytest.approx(0.5 / 50.5)
    separable = rbal.solve(CLASSES, 0.3, 0.4, 0.2, kappa_neg=0.0)
    assert (separable.phase, separable.train_error) == ("SAT", 0.0)
    assert np.isnan(rbal.solve(CLASSES, 0.3, 0.4, 0.3, kappa_neg=-0.1).train_error)


def test_sweep_takes_margins_as_arrays():
    kappa, neg = np.array([0.5, 1.0])[:, None], np.array([0.2, 0.8, 1.5])
    sols = rbal.sweep(CLASSES, 1.5, 4.0, kappa, kappa_neg=neg)
    assert sols.b.shape == sols.kappa_neg.shape == (2, 3)
    one = rbal.solve(CLASSES, 1.5, 4.0, 1.0, kappa_neg=0.2)
    point = sols[1, 0]
    assert (point.kappa, point.kappa_neg) == (1.0, 0.2)
    np.testing.assert_allclose([point.q, point.b, point.train_error], [one.q, one.b, one.train_error], rtol=1e-7)


def test_what_is_not_taken():
    with pytest.raises(ValueError, match="kappa_neg must be kappa, or left out, with fit_bias=False"):
        rbal.solve(CLASSES, 1.0, 2.0, 1.0, kappa_neg=0.5, fit_bias=False)
    with pytest.raises(ValueError, match=r"the mean of kappa and kappa_neg must be > 0, got -0\.5"):
        rbal.solve(CLASSES, 1.0, 2.0, 1.0, kappa_neg=-2.0, model="svm", lam=1.0)
    with pytest.raises(TypeError, match="kappa_neg must be numeric"):
        rbal.solve(CLASSES, 1.0, 2.0, 1.0, kappa_neg="low")
    with pytest.raises(ValueError, match="loss must be one of"):
        rbal.solve(CLASSES, 1.0, 2.0, 1.0, loss="nothing")


# ---- identity covariance, in closed form


def pdf(t):
    return np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)


def largest_margins(shift_sq, alpha, ratio):
    """(κ₊, κ₋, r, b) of the separable machine with κ₊ = ratio·κ₋ as large as possible, at C = 1 and ‖J‖² = L.

    With g = κ - u0 of a class, u0 ~ N(r/2 - y b, 1): Σ α E[g₊²] = 1 - r²/s, r/s = ½ Σ α E[g₊], α₊E₊[g₊] = α₋E₋[g₊].
    """

    def gaps(unknown):
        kappa, r, b = unknown
        first, second = [], []
        for y, k in ((1, ratio * kappa), (-1, kappa)):
            t = k - 0.5 * r + y * b
            first.append(pdf(t) + t * ndtr(t))
            second.append((1.0 + t * t) * ndtr(t) + t * pdf(t))
        pull = np.array(alpha) * first
        return np.array(alpha) @ second - 1.0 + r * r / shift_sq, r / shift_sq - 0.5 * pull.sum(), pull[0] - pull[1]

    found = root(gaps, [0.3, 0.5 * np.sqrt(shift_sq), 0.0], tol=1e-14)
    assert np.abs(found.fun).max() < 1e-12
    kappa, r, b = found.x
    return ratio * kappa, kappa, r, b


@pytest.mark.parametrize("alpha", [(0.3, 0.3), (0.2, 0.9), (0.05, 1.2)])
def test_identity_covariance_in_closed_form(alpha):
    # a ratio of margins moves the bias by a fixed part of the margin, and nothing else
    shift_sq = 2.25
    delta = np.full(40, 1.5)
    classes = rbal.Moments.real(delta / (2 * np.sqrt(40)), -delta / (2 * np.sqrt(40)), np.ones(40))
    common = largest_margins(shift_sq, alpha, 1.0)
    assert rbal.critical_margin(classes, *alpha) == pytest.approx(common[0], abs=1e-8)
    for ratio in (0.5, 2.0, 5.0):
        pos, neg, r, b = largest_margins(shift_sq, alpha, ratio)
        assert (pos + neg) / 2 == pytest.approx(common[0], abs=1e-8)
        assert r == pytest.approx(common[2], abs=1e-8)
        assert b == pytest.approx(common[3] - (ratio - 1) / (ratio + 1) * common[0], abs=1e-8)
        # the machine with some loss left meets it on the surface, where x grows beyond bounds
        outside = rbal.solve(classes, *alpha, pos * (1 + 1e-7), kappa_neg=neg * (1 + 1e-7))
        assert outside.phase == "UNSAT"
        np.testing.assert_allclose([outside.q, outside.r, outside.b], [1.0, r, b], atol=1e-5)


@pytest.mark.parametrize("alpha", [(0.6, 3.0), (2.0, 5.0)])
def test_identity_covariance_with_some_loss_left(alpha):
    # q = 1 on the sphere, and three equations of x, r and b remain; the expectations of the hinge by hand
    shift_sq, kappas = 2.25, (1.6, 0.7)
    delta = np.full(40, 1.5)
    classes = rbal.Moments.real(delta / (2 * np.sqrt(40)), -delta / (2 * np.sqrt(40)), np.ones(40))
    sol = rbal.solve(classes, *alpha, kappas[0], kappa_neg=kappas[1], tol=1e-12)

    def ramps(t):  # E[(t - z)₊] and E[(t - z)₊²]
        return pdf(t) + t * ndtr(t), (1.0 + t * t) * ndtr(t) + t * pdf(t)

    force, square = [], []
    for y, k in ((1, kappas[0]), (-1, kappas[1])):
        t = k - 0.5 * sol.r + y * sol.b
        (near, near2), (far, far2) = ramps(t), ramps(t - sol.x)
        force.append((near - far) / sol.x)
        square.append((near2 - far2 - 2 * sol.x * far) / sol.x**2)
    pull = np.array(alpha) * force
    assert sol.q == pytest.approx(1.0, abs=1e-8)
    assert pull[0] == pytest.approx(pull[1], abs=1e-8)
    assert sol.r == pytest.approx(0.5 * shift_sq * sol.x * pull.sum(), abs=1e-8)
    assert sol.x**2 * (np.array(alpha) @ square) + sol.r**2 / shift_sq == pytest.approx(1.0, abs=1e-8)


# ---- separable data, as the ridge vanishes


def test_a_shift_is_forgotten_as_the_ridge_vanishes_and_a_temperature_is_not():
    classes = rbal.Moments.real(np.full(40, 0.3), np.full(40, -0.3), np.ones(40))
    alpha, lam = (0.2, 0.6), 10.0 ** -np.arange(1, 9)
    assert rbal.critical_margin(classes, *alpha) > 0.0
    options = {"model": "svm", "lam": lam, "loss": "logistic"}
    plain = rbal.sweep(classes, *alpha, **options)
    shifted = rbal.sweep(classes, *alpha, 1.0, kappa_neg=-1.0, **options)
    np.testing.assert_array_equal(shifted.b, plain.b - 1.0)
    assert np.all(np.diff(np.sqrt(plain.q)) > 0.0)  # the scores grow, and the shift of 1 does not
    assert 1.0 / np.sqrt(plain.q[-1]) < 0.2 / np.sqrt(plain.q[0])
    tempered = rbal.strategies.adjust(classes, *alpha, "class temperature", 0.5, **options)
    moved = (tempered.b - plain.b) / np.sqrt(plain.q)
    assert np.all(moved[3:] < -0.1)
    # the limit: margins in the ratio of the inverse temperatures
    t = (0.2 / 0.6) ** 0.5
    critical = rbal.critical_margin(classes, *alpha)
    edge = -(1 / t - 1) / (1 / t + 1) * critical
    away = np.abs(tempered.b / np.sqrt(tempered.q) - (plain.b / np.sqrt(plain.q) + edge))
    assert np.all(np.diff(away[3:]) < 0.0)
    assert away[-1] < 0.1
    # with a ridge a temperature changes the weights, a shift does not; in the limit both have those of largest margin
    sphere = rbal.solve(classes, *alpha, critical * (1 + 1e-6))
    kinds = (plain, shifted, tempered, rbal.strategies.adjust(classes, *alpha, "vector scaling", **options))
    quality = [sol.r / np.sqrt(sol.q) for sol in kinds]
    np.testing.assert_array_equal(quality[1], quality[0])
    assert min(abs(other[0] - quality[0][0]) for other in quality[2:]) > 1e-3
    for sol, values in zip(kinds, quality, strict=True):
        assert np.all(np.diff(values[3:]) < 0.0)  # all from above, and off by a number over the size of the scores
        size = np.sqrt(sol.q[-2:])
        assert np.diff(size * values[-2:])[0] / np.diff(size)[0] == pytest.approx(
            sphere.r / np.sqrt(sphere.q), abs=0.01
        )


def test_the_phase_is_that_of_the_mean_margin():
    # the mean margin of a perceptron without loss is the critical one, found here by bisection of the phase
    classes = rbal.Moments.real(np.full(40, 0.2), np.full(40, -0.2), np.ones(40))

    def separable(kappa):
        return 1.0 if rbal.solve(classes, 0.3, 0.6, 1.5 * kappa, kappa_neg=0.5 * kappa).phase == "SAT" else -1.0

    found = brentq(separable, 1e-3, 2.0, xtol=1e-4)
    assert found == pytest.approx(rbal.critical_margin(classes, 0.3, 0.6), abs=2e-4)
