import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import rbal


def ising(u=1.0, m=0.4, L=50):
    return rbal.Moments.ising(m=m, delta=u, L=L)


def correlated(D=12):
    A = np.random.default_rng(21).normal(size=(D, 3 * D))
    mean = np.random.default_rng(22).normal(size=D) / D
    return rbal.Moments.real(mean, -mean, A @ A.T / (3 * D))


def potts():
    rng = np.random.default_rng(23)
    delta = rng.normal(size=(20, 4))
    return rbal.Moments.potts(rng.dirichlet(np.ones(4), 20), delta - delta.mean(axis=1, keepdims=True))


# ---- the large margin at balance


@pytest.mark.parametrize(
    "moments", [ising(), ising(u=3.0, m=0.0), correlated(), potts()], ids=["ising", "far", "real", "potts"]
)
@pytest.mark.parametrize(
    ("alphas", "weights"), [((5.0, 5.0), (1.0, 1.0)), ((0.5, 2.0), (4.0, 1.0)), ((30.0, 3.0), (1.0, 10.0))]
)
def test_large_margin_is_the_solution_at_kappa_100(moments, alphas, weights):
    named = {"weight_pos": weights[0], "weight_neg": weights[1]}
    limit = rbal.large_margin(moments, *alphas, **named)
    sol = rbal.solve(moments, *alphas, kappa=100.0, **named)
    assert sol.phase == "UNSAT"
    names = ("q", "r", "x", "k_hat", "q_hat", "r_hat")
    np.testing.assert_allclose([getattr(sol, n) for n in names], [getattr(limit, n) for n in names], rtol=1e-8)
    assert abs(sol.x_hat) < 1e-8
    if weights[0] == weights[1]:
        assert abs(sol.b) < 1e-8


@pytest.mark.parametrize(("alphas", "weights"), [((0.5, 2.0), (4.0, 1.0)), ((30.0, 3.0), (1.0, 10.0))])
def test_large_margin_bias_of_unequal_weights(alphas, weights):
    # The bias hangs on the few samples near the margin, at u0 ≈ κ - cx: their tails balance where
    # r/2 - b + c⁺x = r/2 + b + c⁻x, up to O(1/κ). So b → (c⁺ - c⁻)x/2, and not 0.
    limit = rbal.large_margin(ising(), *alphas, weight_pos=weights[0], weight_neg=weights[1])
    expected = 0.5 * (weights[0] - weights[1]) * limit.x
    kappas = np.array([30.0, 100.0, 300.0, 1000.0])
    b = [rbal.solve(ising(), *alphas, kappa, weight_pos=weights[0], weight_neg=weights[1]).b for kappa in kappas]
    gap = np.abs(np.array(b) - expected)
    assert (gap * kappas < 5.0).all()
    assert (np.diff(gap) < 0).all()
    assert gap[-1] < 0.02 * abs(expected)


@pytest.mark.parametrize(("u", "m", "alpha"), [(1.0, 0.4, 10.0), (0.3, 0.0, 2.0), (2.0, 0.9, 50.0)])
def test_large_margin_of_independent_spins_is_the_papers(u, m, alpha):
    # r* = u √(αu²/(4q* + αu²)), x* = √(q*(u² - r*²)/α)/u, q* = 1 - m²
    limit = rbal.large_margin(ising(u, m), alpha / 2, alpha / 2)
    q = 1 - m**2
    r = u * np.sqrt(alpha * u**2 / (4 * q + alpha * u**2))
    np.testing.assert_allclose([limit.q, limit.r], [q, r], rtol=1e-12)
    np.testing.assert_allclose(limit.x, np.sqrt(q * (u**2 - r**2) / alpha) / u, rtol=1e-10)


def test_large_margin_fills_the_sphere():
    # norm Q = 1/L Σ (q̂λ + r̂²d²)/k̂², A = k̂
    for moments in (correlated(), potts()):
        limit = rbal.large_margin(moments, 2.0, 2.0)
        pull = limit.q_hat * moments.eigenvalues.sum() + limit.r_hat**2 * moments.delta_sq.sum()
        assert pull / (moments.L * limit.k_hat**2) == pytest.approx(moments.Q, rel=1e-12)


# ---- how it converges in the number of samples


def test_rate_constant_by_extrapolation():
    # errata 3: 𝒞 = √q/(√(2π) u) exp(-u²/(8q)) and not √q exp(-u²/(8q))
    u, q = 1.0, 0.84
    limit, constant = rbal.large_margin_error(u, q)
    total = np.array([10.0, 40.0, 160.0])
    error = np.array([1 - rbal.solve(ising(), a / 2, a / 2, kappa=50.0).metrics.ba() for a in total])
    scaled = (error - limit) * total
    np.testing.assert_allclose(scaled, [0.2578, 0.2983, 0.3107], atol=5e-5)
    # the parabola in 1/α through the three points, at 1/α = 0
    extrapolated = np.polyval(np.polyfit(1 / total, scaled, 2), 0.0)
    assert extrapolated == pytest.approx(constant, abs=2e-4)
    assert constant == pytest.approx(0.3151, abs=5e-5)
    printed = np.sqrt(q) * np.exp(-(u**2) / (8 * q))
    assert printed == pytest.approx(0.7898, abs=5e-5)
    assert abs(extrapolated - printed) > 0.4


@pytest.mark.parametrize(("u", "m"), [(0.5, 0.0), (1.0, 0.4), (3.0, 0.8)])
def test_rate_constant_from_the_closed_form(u, m):
    def error(alpha):
        limit = rbal.large_margin(ising(u, m), alpha / 2, alpha / 2)
        return rbal.Metrics(limit.q, limit.r, 0.0).gen_error(0.5)

    limit, constant = rbal.large_margin_error(u, 1 - m**2)
    assert error(1e14) == pytest.approx(limit, rel=1e-10)
    assert (error(1e6) - limit) * 1e6 == pytest.approx(constant, rel=1e-3)


def test_balanced_accuracy_approaches_its_limit_from_below():
    limit, _ = rbal.large_margin_error(1.0, 0.84)
    ba = np.array([rbal.solve(ising(), a, a, kappa=50.0).metrics.ba() for a in (1.0, 5.0, 20.0, 80.0, 320.0)])
    assert (ba < 1 - limit).all()
    assert (np.diff(ba) > 0).all()


@pytest.mark.parametrize("alphas", [(2.0, 5.0), (5.0, 2.0), (2.0, 2.2)])
def test_away_from_balance_large_margins_are_chance(alphas):
    # errata 4: BA → 1/2, not 0; the bias follows the margin towards the larger class
    kappas = [3.0, 10.0, 30.0, 100.0]
    sols = [rbal.solve(ising(), *alphas, kappa=kappa) for kappa in kappas]
    ba = np.array([sol.metrics.ba() for sol in sols])
    assert (np.diff(ba) <= 0).all()
    assert (ba >= 0.5).all()
    assert ba[-1] - 0.5 < 1e-6
    side = np.sign(alphas[1] - alphas[0])
    assert (side * np.diff([sol.b for sol in sols]) > 0).all()
    assert sols[-1].b / kappas[-1] == pytest.approx(side, abs=0.05)


# ---- Gardner's capacity


@pytest.mark.parametrize("kappa", [-4.0, -1.0, 0.0, 0.5, 1.0, 3.0, 30.0])
def test_gardner_capacity_against_quadrature(kappa):
    integral = quad(lambda t: (t + kappa) ** 2 * norm.pdf(t), max(-kappa, -12.0), 12.0, points=[0.0], epsabs=1e-15)[0]
    assert rbal.gardner_capacity(kappa) == pytest.approx(1 / integral, rel=1e-9)


def test_gardner_capacity_at_zero_margin():
    assert rbal.gardner_capacity(0.0) == pytest.approx(2.0, rel=1e-15)


def test_closed_forms_take_arrays():
    kappas = np.array([[0.0, 0.5], [1.0, 2.0]])
    np.testing.assert_array_equal(rbal.gardner_capacity(kappas), np.vectorize(rbal.gardner_capacity)(kappas))
    limit, constant = rbal.large_margin_error(np.array([1.0, 2.0]), 0.84)
    assert limit.shape == constant.shape == (2,)
    assert (limit[1], constant[1]) == pytest.approx(rbal.large_margin_error(2.0, 0.84), rel=1e-14)


# ---- bad input


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: rbal.large_margin("moments", 1.0, 1.0), TypeError, "^moments must be a rbal.Moments, got str"),
        (lambda: rbal.large_margin(ising(), 0.0, 1.0), ValueError, "^alpha_pos must be > 0, got 0"),
        (lambda: rbal.large_margin(ising(), 1.0, -1.0), ValueError, "^alpha_neg must be > 0, got -1"),
        (lambda: rbal.large_margin(ising(), 1.0, np.nan), ValueError, "^alpha_neg must be finite"),
        (lambda: rbal.large_margin(ising(), 1.0, 1.0, weight_pos=0.0), ValueError, "^weight_pos must be > 0"),
        (lambda: rbal.large_margin(ising(), 1.0, 1.0, weight_neg=-2.0), ValueError, "^weight_neg must be > 0"),
        (lambda: rbal.large_margin(ising(), 1.0, 2.0), ValueError, r"^alpha_pos\*weight_pos must equal .*1 and 2"),
        (lambda: rbal.large_margin_error(0.0, 1.0), ValueError, "^shift must be > 0"),
        (lambda: rbal.large_margin_error(1.0, 0.0), ValueError, "^q must be > 0"),
        (lambda: rbal.large_margin_error([1.0, np.inf], 1.0), ValueError, "^shift must be finite"),
        (lambda: rbal.gardner_capacity(np.nan), ValueError, "^kappa must be finite"),
        (lambda: rbal.gardner_capacity("wide"), TypeError, "^kappa must be numeric"),
    ],
)
def test_bad_input_names_the_argument(call, error, match):
    with pytest.raises(error, match=match):
        call()
