"""Compiled kernels against their naive twins. This file also runs with NUMBA_DISABLE_JIT=1: keep it small."""

import math

import naive
import numpy as np
import pytest
from scipy.special import erfcx, log_ndtr, ndtr

from rbal._support import gauss
from rbal.losses import EQUALITY, HINGE, INEQUALITY, LOGISTIC, LOSSES, SQUARE, SQUARED_HINGE
from rbal.moments import Spectrum
from rbal.saddle import _continuation, _equations, _fallback, _newton
from rbal.saddle._equations import EDGE, LOG_Q, LOG_X, RIDGE, SAT, UNSAT, ZETA, B, Problem, R, Settings


def system(n=5, seed=0, constant=0):
    """Spectrum of a random covariance and shift, with some constant features; then (C, δ, L) of the same."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n, 2 * n)) / np.sqrt(2 * n)
    C, delta, L = F @ F.T, rng.normal(size=n), n + constant
    lam, U = np.linalg.eigh(C)
    spectrum = Spectrum(
        lam, np.full(n, 1.0 / L), (U.T @ delta) ** 2 / L, constant / L, 0.0 if constant else lam[0], L, 1
    )
    C, delta = np.pad(C, (0, constant)), np.pad(delta, (0, constant))
    return spectrum, C, delta, L


def problem(
    mode=UNSAT, loss=HINGE, kappa=0.5, alpha=(1.0, 3.0), weight=(2.0, 1.0), norm=1.0, ridge=0.3, fit_bias=True,
    width=(1.0, 1.0),
):  # fmt: skip
    law = loss.law if loss in LOSSES.values() else loss.laws[int(mode == EDGE)]  # or a constraint
    return Problem(mode, law, (kappa, kappa), alpha, weight, width, norm, ridge, fit_bias)


def settings(mode, tol=1e-10, max_iter=100):
    """Settings for the hinge, with the fallback."""
    calls, traits, fallback = _fallback.tables_and_fallback(HINGE, mode, needed=True)
    return Settings(mode, calls, traits, 1.0, True, tol, max_iter, _newton.newton_address(), fallback)


# _gauss


@pytest.mark.parametrize("t", [-38.0, -8.0, -1.0, 0.0, 0.5, 4.99, 5.01, 12.0, 300.0, 1e6])
def test_log_sf(t):
    assert gauss.log_sf(t) == pytest.approx(log_ndtr(-t), rel=2e-15, abs=2e-16)


@pytest.mark.parametrize("t", [-38.0, -8.0, -1.0, 0.0, 0.5, 4.99, 5.0, 5.01, 7.0, 12.0, 49.0])
def test_mills(t):
    # h = φ/H = √(2/π)/erfcx(t/√2), and h - t with an absolute error of rounding in h
    h, excess = gauss.mills(t)
    expected = np.sqrt(2.0 / np.pi) / erfcx(t / np.sqrt(2.0))
    assert h == pytest.approx(expected, rel=1e-14)
    assert excess == pytest.approx(expected - t, abs=4e-16 * max(abs(t), 1.0) + 1e-14 * expected)


@pytest.mark.parametrize("t", [100.0, 1e4, 1e8])
def test_mills_asymptotically(t):
    h, excess = gauss.mills(t)
    np.testing.assert_allclose([h, excess], naive.inverse_mills(np.array(t)), rtol=1e-14)


@pytest.mark.parametrize("t", [5.0, 5.5, 8.0, 20.0])
def test_mills_derivative(t):
    # h' = h (h - t): the continued fraction agrees with itself
    h, excess = gauss.mills(t)
    assert naive.central(lambda v: gauss.mills(v)[1], t, 0.02) == pytest.approx(h * excess - 1.0, rel=1e-9)


@pytest.mark.parametrize(("t1", "t2"), [(-9.0, -8.0), (-1.0, 2.0), (8.0, 9.0), (30.0, 31.0), (-2.0, 40.0)])
def test_interval(t1, t2):
    expected = ndtr(t2) - ndtr(t1) if t1 < 0 else ndtr(-t1) - ndtr(-t2)
    assert gauss.interval(t1, t2) == pytest.approx(expected, rel=1e-13)
    assert gauss.interval(-t2, -t1) == pytest.approx(gauss.interval(t1, t2), rel=1e-13)


def test_gauss_nodes():
    # twelve nodes on [0, 1] are exact for polynomials up to degree 23
    for degree in (0, 1, 12, 23):
        assert gauss.GL_WEIGHTS @ gauss.GL_NODES**degree == pytest.approx(1.0 / (degree + 1), rel=1e-14)


# the weight side


@pytest.mark.parametrize("constant", [0, 2])
@pytest.mark.parametrize("mode", [UNSAT, SAT])
@pytest.mark.parametrize("k_hat", [0.7, -0.01])
def test_weight_side(mode, k_hat, constant):
    # Values against dense matrices, Jacobian against their complex steps; A = k̂ + x̂λ = ζ + x̂(λ - shift).
    if constant and k_hat < 0:
        k_hat = 0.05  # beside constant features k̂ stays positive
    spectrum, C, delta, L = system(constant=constant)
    hats = (k_hat, 1.3, 0.8, 0.6)
    zeta = k_hat + hats[1] * spectrum.shift
    value, jac = np.empty(4), np.empty((4, 4))
    _equations.weight_side(mode, spectrum, spectrum.shift, zeta, tuple(hats[1:]), value, jac)

    def dense(z, x_hat, q_hat, r_hat):
        return naive.weight_side(C, delta, L, z - x_hat * spectrum.shift, x_hat, q_hat, r_hat, mode == SAT)

    np.testing.assert_allclose(value, dense(zeta, *hats[1:]), rtol=1e-12)
    expected = np.stack([naive.complex_step(dense, (zeta, *hats[1:]), i) for i in range(4)], axis=1)
    np.testing.assert_allclose(jac, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("mode", [UNSAT, SAT])
def test_norm_and_slope(mode):
    spectrum, *_ = system(constant=1)
    value, jac = np.empty(4), np.empty((4, 4))
    _equations.weight_side(mode, spectrum, spectrum.shift, 0.4, (1.3, 0.8, 0.6), value, jac)
    got = _equations.norm_and_slope(mode, spectrum, 0.4, 1.3, 0.8, 0.36)
    np.testing.assert_allclose(got, (value[0], jac[0, 0]), rtol=1e-13)


@pytest.mark.parametrize("guess", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize(("norm", "mode"), [(1e-3, UNSAT), (1.0, UNSAT), (1e4, UNSAT), (1.0, SAT), (3.0, SAT)])
def test_solve_norm(norm, mode, guess):
    # The larger the norm, the closer k̂ to -x̂ λ_min: from any guess, the root that brentq finds.
    spectrum, C, delta, L = system()
    zeta = _equations.solve_norm(mode, spectrum, norm, 1.3, 0.8, 0.6, guess)
    k_hat = naive.solve_norm(C, delta, L, norm, 1.3, 0.8, 0.6, mode == SAT)
    assert zeta == pytest.approx(k_hat + 1.3 * spectrum.shift, rel=1e-10)


def test_solve_norm_beside_constant_features():
    # Weight on constant features is free: the norm is an upper bound, and k̂ = 0 where it is slack.
    spectrum, C, delta, L = system(constant=2)
    slack = naive.weight_side(C[:5, :5], delta[:5], L, 0.0, 1.3, 0.8, 0.6)[0]
    assert _equations.solve_norm(UNSAT, spectrum, 1.01 * slack, 1.3, 0.8, 0.6, 1.0) == 0.0
    zeta = _equations.solve_norm(UNSAT, spectrum, 0.5 * slack, 1.3, 0.8, 0.6, 1.0)
    assert zeta == pytest.approx(naive.solve_norm(C, delta, L, 0.5 * slack, 1.3, 0.8, 0.6), rel=1e-10)


# the data side

LOSS_POINTS = [
    (UNSAT, HINGE, 0.6),
    (UNSAT, SQUARED_HINGE, 0.6),
    (UNSAT, SQUARE, 0.6),
    (UNSAT, LOGISTIC, 0.6),
    (SAT, INEQUALITY, 0.3),
    (SAT, EQUALITY, 0.3),
    (EDGE, INEQUALITY, 1.0),
]


def naive_force(loss, p, k, q, x, r, b):
    """(E[f], E[f²], E[-f']) of class k by quadrature, whose scores have q and x times its width."""
    mu, q, x = 0.5 * r - (1.0 - 2.0 * k) * b, p.width[k] * q, p.width[k] * x
    if loss is INEQUALITY:
        return naive.sat_expectations(p.kappa[k], x, mu, q)
    return naive.expectations(loss.name, p.kappa[k], p.weight[k], x, mu, q)


@pytest.mark.parametrize("width", [(1.0, 1.0), (2.5, 0.4)])
@pytest.mark.parametrize("loss", [HINGE, LOGISTIC, INEQUALITY])
def test_data_side_values(loss, width):
    p = problem(loss=loss, width=width)
    hats = np.empty((6, 4))
    _equations.data_side(p.law, p, 0.0, (0.8, 0.6, 0.7, 0.2), hats)
    plus, minus = (p.alpha[k] * naive_force(loss, p, k, 0.8, 0.6, 0.7, 0.2) for k in range(2))
    x_hat, q_hat = (width[0] * plus[j] + width[1] * minus[j] for j in (2, 1))
    expected = [x_hat, q_hat, 0.5 * (plus[0] + minus[0]), plus[0] - minus[0]]
    np.testing.assert_allclose(hats[0], expected, rtol=1e-10)


@pytest.mark.parametrize("width", [(1.0, 1.0), (2.5, 0.4)])
@pytest.mark.parametrize(("mode", "loss", "x"), LOSS_POINTS)
def test_data_side_derivatives(mode, loss, x, width):
    p, at = problem(mode, loss, width=width), {"q": 0.8, "x": x, "r": 0.7, "b": 0.2, "kappa_shift": 0.1}

    def values(**changed):
        hats = np.empty((6, 4))
        q, x, r, b, kappa_shift = (at | changed).values()
        _equations.data_side(p.law, p, kappa_shift, (q, x, r, b), hats)
        return hats

    got = values()
    for row, name in enumerate(("q", "x", "r", "b", "kappa_shift"), start=1):
        if mode == EDGE and name == "x":
            continue  # on the edge x is not an argument
        expected = naive.central(lambda v, name=name: values(**{name: v})[0], at[name], 0.004)
        np.testing.assert_allclose(got[row], expected, rtol=1e-7, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("guess", [-30.0, 0.0, 30.0])
@pytest.mark.parametrize("alpha", [(1.0, 1.0), (0.01, 10.0), (40.0, 1.0)])
@pytest.mark.parametrize("loss", [HINGE, SQUARE, INEQUALITY])
def test_solve_bias(loss, alpha, guess):
    p = problem(loss=loss, alpha=alpha, width=(1.5, 0.6) if loss is HINGE else (1.0, 1.0))
    got = _equations.solve_bias(p, 0.0, 0.8, 0.6, 0.7, guess)
    gap, slope, size = _equations.bias_gap(p, 0.0, 0.8, 0.6, 0.7, got)
    assert abs(gap) <= 1e-14 * size + 1e-14 * slope
    assert slope >= 0.0
    if guess == 0.0:
        expected = naive.solve_bias(lambda k, b: naive_force(loss, p, k, 0.8, 0.6, 0.7, b)[0], alpha)
        assert got == pytest.approx(expected, rel=1e-9, abs=1e-11)


def test_bias_gap_slope():
    p = problem()
    _, slope, size = _equations.bias_gap(p, 0.0, 0.8, 0.6, 0.7, 0.2)
    assert slope == pytest.approx(naive.central(lambda b: _equations.bias_gap(p, 0.0, 0.8, 0.6, 0.7, b)[0], 0.2, 0.01))
    forces = [p.alpha[k] * naive_force(HINGE, p, k, 0.8, 0.6, 0.7, 0.2)[0] for k in range(2)]
    assert size == pytest.approx(sum(forces))


@pytest.mark.parametrize(
    ("t1", "t2"), [(-3.0, 2.0), (0.5, 0.6), (4.0, 9.0), (20.0, 50.0), (30.0, 30.5), (100.0, 500.0)]
)
def test_log_deficit(t1, t2):
    # log ∫ H, scaled by H(t1) so that nothing underflows
    end = min(t2, t1 + 60.0 / max(t1, 1.0))
    top = log_ndtr(-t1)
    area = naive.quadrature(lambda t: np.exp(log_ndtr(-t) - top), np.linspace(t1, end, 20))[0]
    assert _equations.log_deficit(t1, t2) == pytest.approx(top + np.log(area), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("width", [(1.0, 1.0), (1.5, 0.6)])
@pytest.mark.parametrize(("alpha", "weight"), [((2.0, 2.0), (1.0, 1.0)), ((0.5, 3.0), (6.0, 1.0))])
def test_saturated_bias(alpha, weight, width):
    # Where the forces are not yet saturated the usual equation has a root, and this is it.
    p = problem(alpha=alpha, weight=weight, kappa=3.0, width=width)
    got = _equations.saturated_bias(p, 0.8, 0.6, 0.4, 0.0)
    expected = naive.solve_bias(lambda k, b: naive_force(HINGE, p, k, 0.8, 0.6, 0.4, b)[0], alpha)
    assert got == pytest.approx(expected, abs=1e-9)


def test_saturated_bias_where_nothing_else_works():
    # κ = 40 standard deviations: E[f] = c to all digits; with equal weights the classes are mirror images, b = 0.
    p = problem(alpha=(2.0, 2.0), weight=(1.0, 1.0), kappa=40.0)
    assert _equations.saturated_bias(p, 0.8, 0.6, 0.4, 0.0) == pytest.approx(0.0, abs=1e-12)
    assert _equations.solve_bias(p, 0.0, 0.8, 0.6, 0.4, 3.0) == pytest.approx(0.0, abs=1e-12)
    # with c = (6, 1) both classes end as far above their bands: b is near (c₊ - c₋)x/2, off by log(6)·s/40-ish
    p = problem(alpha=(0.5, 3.0), weight=(6.0, 1.0), kappa=40.0)
    b = _equations.saturated_bias(p, 0.8, 0.6, 0.4, 0.0)
    s, deficits = math.sqrt(0.8), []
    for k, y in enumerate((1.0, -1.0)):
        t = (40.0 - 0.2 + y * b) / s
        deficits.append(math.log(p.alpha[k]) + _equations.log_deficit(t - p.weight[k] * 0.6 / s, t))
    assert deficits[0] == pytest.approx(deficits[1], abs=1e-9)
    assert abs(b - 0.5 * 5.0 * 0.6) < 0.1


# Newton


def state(p, spectrum, q=0.7, second=0.5, r=0.4):
    """A state y and what evaluate makes of it: its residual, its step, and whether it stayed in the domain."""
    y = np.array([math.log(q), second, r, 0.0, 1.0])
    res, step = np.empty(3), np.empty(3)
    ok = _newton.evaluate(p, spectrum, y, _newton.workspace(), res, step)
    return y, res, step, ok


MODES = [
    (UNSAT, HINGE, {}),
    (UNSAT, HINGE, {"fit_bias": False}),
    (UNSAT, LOGISTIC, {}),
    (UNSAT, SQUARED_HINGE, {}),
    (SAT, INEQUALITY, {"alpha": (0.1, 0.2)}),
    (SAT, EQUALITY, {"alpha": (0.1, 0.2)}),
    (EDGE, INEQUALITY, {}),
    (RIDGE, HINGE, {}),
    (RIDGE, SQUARE, {"fit_bias": False}),
]


@pytest.mark.parametrize("constant", [0, 1])
@pytest.mark.parametrize(("mode", "loss", "options"), MODES)
def test_newton_step(mode, loss, options, constant):
    # step = -J⁻¹ res with J by finite differences of the residual, bias and ζ re-solved at every point.
    spectrum, *_ = system(constant=constant)
    p, at = problem(mode, loss, **options), (0.7, 0.2, 0.4)
    _, res, step, ok = state(p, spectrum, *at)
    assert ok
    jac = np.empty((3, 3))
    for j in range(3):

        def moved(t, j=j):
            point = [at[0] * math.exp(t * (j == 0)), at[1] + t * (j == 1), at[2] + t * (j == 2)]
            return state(p, spectrum, *point)[1]

        jac[:, j] = naive.central(moved, 0.0, 0.01)
    np.testing.assert_allclose(jac @ step, -res, rtol=1e-6, atol=1e-6 * np.abs(res).max())


@pytest.mark.parametrize(("mode", "loss", "options"), [row for row in MODES if row[0] != EDGE])
def test_residual(mode, loss, options):
    # evaluate's residual is the fixed-point map of the dense system, by quadrature.
    spectrum, C, delta, L = system()
    p = problem(mode, loss, **options)
    y, res, _, _ = state(p, spectrum)
    q, x, r, b = math.exp(y[LOG_Q]), math.exp(y[LOG_X]), y[R], y[B]
    if loss is EQUALITY:
        side = [((0.5 - m) / x, ((0.5 - m) ** 2 + q) / x**2, 1.0 / x) for m in (0.5 * r - b, 0.5 * r + b)]
    else:
        side = [naive_force(loss, p, k, q, x, r, b) for k in range(2)]
    f, f2, slope = np.tensordot(p.alpha, side, 1)
    if p.fit_bias:
        assert p.alpha[0] * side[0][0] == pytest.approx(p.alpha[1] * side[1][0], rel=1e-9)
    else:
        assert b == 0.0
    sat = p.mode == SAT
    k_hat = p.ridge if p.mode == RIDGE else naive.solve_norm(C, delta, L, p.norm, slope, f2, 0.5 * f, sat)
    _, q_new, x_new, r_new = naive.weight_side(C, delta, L, k_hat, slope, f2, 0.5 * f, sat)
    expected = [math.log(q_new / q), math.log(x_new / x), (r_new - r) / math.sqrt(q)]
    np.testing.assert_allclose(res, expected, rtol=1e-8, atol=1e-9)


def test_solve3():
    rng = np.random.default_rng(1)
    m, res, step = rng.normal(size=(3, 3)), rng.normal(size=3), np.empty(3)
    _newton.solve3(m, res, step)
    np.testing.assert_allclose(m @ step, -res, rtol=1e-12)
    m[2] = 0.0  # singular: take the residual itself, a step of the fixed point
    _newton.solve3(m, res, step)
    np.testing.assert_array_equal(step, res)


@pytest.mark.parametrize(("mode", "loss", "options"), MODES)
def test_newton(mode, loss, options):
    # From a distance it reaches rounding, and its y has b and ζ of the solution; sphere_start is where solve begins.
    spectrum, *_ = system()
    p, y = problem(mode, loss, **options), np.empty(5)
    _newton.sphere_start(p, spectrum, y)
    residual, n_iter = _newton.newton(p, spectrum, 1e-11, 100, 1e300, y)
    assert residual <= 1e-11
    assert 1 < n_iter <= 40
    again, res, _, _ = state(p, spectrum, math.exp(y[LOG_Q]), y[LOG_X], y[R])
    assert np.abs(res).max() <= 1e-10
    np.testing.assert_allclose(again[[B, ZETA]], y[[B, ZETA]], rtol=1e-9, atol=1e-12)


def test_newton_stops_at_the_limits():
    spectrum, *_ = system()
    y = np.empty(5)
    # separable: x runs away, and the limit on x/√q turns that into an infinite residual
    p = problem(alpha=(0.1, 0.1), kappa=0.0)
    _newton.sphere_start(p, spectrum, y)
    residual, n_iter = _newton.newton(p, spectrum, 1e-11, 200, 1e7, y)
    assert residual == math.inf
    assert n_iter < 200
    # too few iterations: the residual says so
    p = problem()
    _newton.sphere_start(p, spectrum, y)
    residual, n_iter = _newton.newton(p, spectrum, 1e-13, 2, 1e7, y)
    assert 1e-13 < residual < math.inf
    assert n_iter == 2


# the strategy


def test_with_mode_keeps_the_data():
    p, tools = problem(), _fallback.tools_of(settings(UNSAT), 100)
    other = _fallback.with_mode(p, tools, SAT, (0.1, 0.2), 0.0)
    assert (other.mode, other.law, other.kappa, other.ridge) == (SAT, INEQUALITY.laws[0], (0.1, 0.2), 0.0)
    assert (other.alpha, other.weight, other.norm, other.fit_bias) == (p.alpha, p.weight, p.norm, p.fit_bias)
    assert other.width == p.width


@pytest.mark.parametrize(
    ("alpha", "weight", "fit_bias", "side"),
    [((1, 2), (1, 1), True, -1), ((1, 2), (3, 1), True, 1), ((1, 2), (2, 1), True, 0), ((1, 2), (1, 1), False, 0)],
)
def test_major(alpha, weight, fit_bias, side):
    p = problem(alpha=tuple(map(float, alpha)), weight=tuple(map(float, weight)), fit_bias=fit_bias)
    assert _fallback.major(p) == side


def test_from_major_only_shifts_the_bias():
    spectrum, *_ = system()
    p = problem(kappa=1.5)
    moved = _fallback.from_major(p, _fallback.tools_of(settings(UNSAT), 100))
    y, other = np.empty(5), np.empty(5)
    for q, out in ((p, y), (moved, other)):
        _newton.sphere_start(p, spectrum, out)
        assert _newton.newton(q, spectrum, 1e-12, 100, 1e300, out)[0] <= 1e-12
    other[B] -= _fallback.major(p) * p.kappa[0]
    np.testing.assert_allclose(other, y, rtol=1e-9)


@pytest.mark.parametrize("weight", [(3.0, 1.0), (1.0, 1.0)])
def test_vanishing_weights_are_the_limit_of_a_strong_ridge(weight):
    # As λ̃ → ∞ the weights of a hinge SVM shrink like 1/λ̃ towards a direction, with q, x, r of solve_vanishing.
    spectrum, *_ = system()
    p = problem(RIDGE, HINGE, kappa=1.0, weight=weight)  # α = (1, 3): even, then uneven
    tools = _fallback.tools_of(settings(RIDGE, tol=1e-11), 100)
    y, z = np.empty(5), np.empty(5)
    residual, _, k_hat = _fallback.solve_vanishing(p, tools, spectrum, y)
    assert residual <= 1e-11
    assert k_hat > 0.0
    strong = _fallback.with_mode(p, tools, RIDGE, p.kappa, 1e5)
    assert _fallback.follow_ridge(strong, tools, spectrum, z)[0] <= 1e-10
    scale = k_hat / 1e5
    expected = [y[LOG_Q] + 2 * math.log(scale), y[LOG_X] + math.log(scale), y[R] * scale]
    np.testing.assert_allclose(z[:3], expected, rtol=1e-3)


def test_walk_solves_point_after_point():
    # the whole strategy, pure Python included: SAT, UNSAT and an SVM
    spectrum, C, delta, L = system()
    points = np.array([[0.0, 0.1, 0.2, 1.0, 1.0, 0.0], [1.0, 2.0, 3.0, 1.0, 1.0, 0.0], [1.0, 2.0, 3.0, 2.0, 1.0, 0.5]])
    points = np.hstack([points, np.ones((3, 2))])  # with widths of 1
    out = np.empty((3, _continuation.N_COLUMNS))
    y = np.empty(5)
    phase, n = _continuation.walk(settings(UNSAT), spectrum, points[:2], y, -1, out[:2])
    _continuation.walk(settings(RIDGE), spectrum, points[2:], np.empty(5), -1, out[2:])
    assert (phase, n) == (UNSAT, 2)
    assert math.exp(y[LOG_Q]) == out[1, 0]
    np.testing.assert_array_equal(out[:, 12:], [[SAT, 1], [UNSAT, 1], [UNSAT, 1]])
    for q, r, _, x, *hats in out[1:, :8]:
        norm, *expected = naive.weight_side(C, delta, L, *hats)
        np.testing.assert_allclose([q, x, r], expected, rtol=1e-9)
        assert norm == pytest.approx(1.0, rel=1e-9) or hats[0] == 0.5


def test_walk_waits_for_the_fallback():
    # without one it stops before the first point that needs it, in the state it was in, and goes on from there
    spectrum, *_ = system()
    points = np.array([[1.0, 2.0, 3.0, 1.0, 1.0, 0.0], [0.0, 0.1, 0.2, 1.0, 1.0, 0.0], [1.0, 2.0, 3.0, 1.0, 1.0, 0.0]])
    points = np.hstack([points, np.ones((3, 2))])  # with widths of 1
    out, expected = np.empty((2, 3, _continuation.N_COLUMNS))
    y, at_once = np.empty(5), np.empty(5)
    phase, n = _continuation.walk(settings(UNSAT)._replace(fallback=0), spectrum, points, y, -1, out)
    assert (phase, n) == (UNSAT, 1)
    assert math.exp(y[LOG_Q]) == out[0, 0]
    assert _continuation.walk(settings(UNSAT), spectrum, points[1:], y, phase, out[1:]) == (UNSAT, 2)
    _continuation.walk(settings(UNSAT), spectrum, points, at_once, -1, expected)
    np.testing.assert_array_equal(out, expected)
