"""The SAT/UNSAT surface: Gardner's capacity, both phases meeting on it, an independent route, a simulation."""

import naive
import numpy as np
import pytest
from sklearn.svm import SVC

import rbal

NOISE = rbal.Moments.ising(m=0.0, delta=0.0, L=10)


def correlated(D=6, seed=0, scale=1.0):
    """Real features with a dense covariance: (moments, C, δ, L)."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(D, 2 * D)) / np.sqrt(2 * D)
    C, delta = F @ F.T, scale * rng.normal(size=D)
    half = 0.5 * delta / np.sqrt(D)
    return rbal.Moments.real(half, -half, C), C, delta, D


# Gardner


@pytest.mark.parametrize("fit_bias", [True, False])
@pytest.mark.parametrize("kappa", [0.0, 0.3, 1.0, 2.5, 10.0])
def test_gardner(kappa, fit_bias):
    # δ = 0, C = 1, balanced: α_c(κ) = 1/∫_{-κ}^∞ (t + κ)² Dt, with a bias or without.
    capacity = 1.0 / naive.quadrature(
        lambda t: (t + kappa) ** 2 * np.exp(-0.5 * t * t) / np.sqrt(2 * np.pi), np.linspace(-kappa, 14.0, 20)
    )
    got = rbal.critical_alpha(NOISE, kappa, fit_bias=fit_bias)
    assert got == pytest.approx(capacity[0], rel=1e-6)
    assert rbal.gardner_capacity(kappa) == pytest.approx(capacity[0], rel=1e-12)


@pytest.mark.parametrize("rho_pos", [0.05, 0.3, 0.9])
def test_composition_and_capacity(rho_pos):
    # Without a bias random labels are random labels, whatever their composition; a bias profits from imbalance.
    assert rbal.critical_alpha(NOISE, 0.4, rho_pos=rho_pos, fit_bias=False) == pytest.approx(
        rbal.gardner_capacity(0.4), rel=1e-6
    )
    assert rbal.critical_alpha(NOISE, 0.4, rho_pos=rho_pos) > 1.02 * rbal.gardner_capacity(0.4)
    # and knows no difference between the labels
    assert rbal.critical_alpha(NOISE, 0.4, rho_pos=1.0 - rho_pos) == pytest.approx(
        rbal.critical_alpha(NOISE, 0.4, rho_pos=rho_pos), rel=1e-9
    )


def test_separation_raises_the_capacity():
    capacity = [rbal.critical_alpha(rbal.Moments.ising(delta=d, L=10), 0.2) for d in (0.0, 1.0, 2.0)]
    assert capacity[0] == pytest.approx(rbal.gardner_capacity(0.2), rel=1e-6)
    assert 1.1 * capacity[0] < capacity[1] < 0.9 * capacity[2]


@pytest.mark.parametrize("rho_pos", [0.2, 0.5])
def test_critical_alpha_inverts_critical_margin(rho_pos):
    mom, *_ = correlated()
    alpha = rbal.critical_alpha(mom, 0.3, rho_pos=rho_pos)
    assert rbal.critical_margin(mom, rho_pos * alpha, (1.0 - rho_pos) * alpha) == pytest.approx(0.3, abs=1e-9)


# an independent route


@pytest.mark.parametrize("fit_bias", [True, False])
@pytest.mark.parametrize("alpha", [(0.3, 0.5), (0.1, 1.5), (2.0, 3.0)])
def test_critical_margin(alpha, fit_bias):
    mom, C, delta, L = correlated()
    expected = naive.critical_margin(C, delta, L, alpha, fit_bias=fit_bias)
    assert rbal.critical_margin(mom, *alpha, fit_bias=fit_bias) == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_critical_margin_of_one_hot_data():
    # Spins and one-hot sites with Q = 2 are one problem: ‖J‖² = 2L and half the shift in each of two states.
    m, delta = np.array([0.1, 0.5, -0.3]), np.array([1.0, -0.5, 0.7])
    M = 0.5 * np.stack([1.0 + m, 1.0 - m], axis=1)
    one_hot = rbal.Moments.potts(M, 0.5 * np.stack([delta, -delta], axis=1))
    spins = rbal.Moments.ising(m=m, delta=delta)
    assert rbal.critical_margin(one_hot, 0.3, 0.6) == pytest.approx(rbal.critical_margin(spins, 0.3, 0.6), rel=1e-10)


@pytest.mark.slow
def test_critical_margin_simulated():
    # The hard-margin SVM finds the largest margin of a sample: κ_c = √L/‖J‖ in its units.
    D, alpha, rng = 200, (0.25, 0.5), np.random.default_rng(5)
    lam, delta = rng.uniform(0.3, 1.5, D), 1.5 * rng.normal(size=D)
    y = np.repeat([1.0, -1.0], [round(a * D) for a in alpha])
    found = []
    for _ in range(20):
        X = np.sqrt(lam) * rng.normal(size=(y.size, D)) + 0.5 * y[:, None] * delta / np.sqrt(D)
        J = SVC(kernel="linear", C=1e6, tol=1e-5).fit(X / np.sqrt(D), y).coef_[0]
        found.append(np.sqrt(D / (J @ J)))
    expected = rbal.critical_margin(rbal.Moments.real(0.5 * delta / np.sqrt(D), -0.5 * delta / np.sqrt(D), lam), *alpha)
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert error < 0.02 * expected
    assert np.mean(found) == pytest.approx(expected, abs=4.0 * error + expected / D)


# both phases meet

ALPHAS = [(0.3, 0.5), (0.1, 1.5)]
EPSILONS = np.array([1e-3, 1e-4, 1e-5])


def sides(mom, alpha, loss="hinge", **options):
    """Solutions at κ_c(1 - ε) and κ_c(1 + ε)."""
    kappa = rbal.critical_margin(mom, *alpha)
    below = rbal.sweep(mom, *alpha, kappa * (1.0 - EPSILONS), loss=loss, **options)
    above = rbal.sweep(mom, *alpha, kappa * (1.0 + EPSILONS), loss=loss, **options)
    assert (below.phase == "SAT").all()
    assert (above.phase == "UNSAT").all()
    return below, above


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_phases_meet(alpha, loss):
    # q, r, b are continuous: from either side they reach the values on the surface, like ε up to a logarithm.
    mom, C, delta, L = correlated()
    *expected, excess = naive.on_the_surface(C, delta, L, alpha, rbal.critical_margin(mom, *alpha))
    assert abs(excess) < 1e-9
    for side in sides(mom, alpha, loss):
        gap = np.array([side.variance, side.r, side.b]) - np.array(expected)[:, None]
        assert (np.abs(gap) < EPSILONS * np.abs(np.log(EPSILONS))).all()
        if loss == "squared_hinge" and side.phase[0] == "UNSAT":  # no logarithm here
            np.testing.assert_allclose(gap[:, 1:] / gap[:, :-1], 0.1, rtol=0.01)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_solution_space_closes(alpha):
    # w → 0 like κ_c - κ from below.
    mom, *_ = correlated()
    below, _ = sides(mom, alpha)
    np.testing.assert_allclose(below.x[1:] / below.x[:-1], 0.1, rtol=0.05)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_susceptibility_diverges(alpha):
    # x → ∞ from above: like 1/(κ - κ_c) for the squared hinge. The force of the hinge is bounded, and the few samples
    # below κ - x that carry it are a Gaussian tail: exp(-x²/2q) ~ ε, so that x grows like √log.
    mom, *_ = correlated()
    _, above = sides(mom, alpha, "squared_hinge")
    np.testing.assert_allclose(above.x[1:] / above.x[:-1], 10.0, rtol=0.05)
    _, above = sides(mom, alpha)
    assert (np.diff(above.x) > 0.0).all()
    assert above.train_loss[-1] < 1e-4
    exponent = np.diff(above.x**2 / (2.0 * above.q))
    assert (exponent > 0.3 * np.log(10.0)).all()


@pytest.mark.parametrize("weight", [(1.0, 20.0), (7.0, 1.0)])
def test_weights_do_not_move_the_surface(weight):
    mom, *_ = correlated()
    alpha = (0.3, 0.5)
    options = {"weight_pos": weight[0], "weight_neg": weight[1]}
    weighted, _ = sides(mom, alpha, **options)  # both phases where they were
    plain, _ = sides(mom, alpha)
    np.testing.assert_allclose(weighted.q, plain.q, rtol=1e-9)
    np.testing.assert_allclose(weighted.b, plain.b, rtol=1e-8)


def test_phase_of_solve_agrees_with_the_surface():
    rng, seen = np.random.default_rng(2), []
    for seed in range(60):
        mom, *_ = correlated(D=int(rng.integers(2, 20)), seed=seed, scale=rng.uniform(0, 2))
        alpha, fit_bias = 10.0 ** rng.uniform(-2, 0.5, 2), bool(rng.integers(2))
        critical = rbal.critical_margin(mom, *alpha, fit_bias=fit_bias)
        kappa = abs(critical * rng.uniform(0.5, 1.5))
        sol = rbal.solve(mom, *alpha, kappa, fit_bias=fit_bias)
        assert sol.phase == ("SAT" if kappa < critical else "UNSAT")
        seen.append(sol.phase)
    assert min(seen.count("SAT"), seen.count("UNSAT")) > 10


# shape of the surface


def test_surface_broadcasts_and_falls():
    # More samples of either class can only lower the margin.
    mom, *_ = correlated()
    sizes = np.geomspace(0.01, 100.0, 12)
    surface = rbal.critical_margin(mom, sizes[:, None], sizes)
    assert surface.shape == (12, 12)
    assert (np.diff(surface, axis=0) < 0.0).all()
    assert (np.diff(surface, axis=1) < 0.0).all()
    np.testing.assert_allclose(surface, surface.T, rtol=1e-9, atol=1e-9)
    assert surface[3, 5] == pytest.approx(rbal.critical_margin(mom, sizes[3], sizes[5]), rel=1e-10)
    assert isinstance(rbal.critical_margin(mom, 1.0, 2.0), float)


def test_a_bias_can_only_help():
    mom, *_ = correlated()
    alpha = np.geomspace(0.05, 5.0, 6)
    assert (rbal.critical_margin(mom, 0.2, alpha) >= rbal.critical_margin(mom, 0.2, alpha, fit_bias=False)).all()
    alphas = rbal.critical_alpha(mom, np.array([0.0, 0.5]), rho_pos=np.array([[0.2], [0.5]]))
    assert alphas.shape == (2, 2)
    assert (alphas[:, 0] > alphas[:, 1]).all()


def test_a_direction_without_noise():
    # One feature tells the classes apart exactly, by 0.8: any number of samples leaves half of it as margin.
    D = 5
    half = np.r_[0.4, np.zeros(D - 1)]
    mom = rbal.Moments.real(half, -half, np.r_[0.0, np.ones(D - 1)])
    assert rbal.critical_alpha(mom, 0.39) == np.inf
    assert np.isfinite(rbal.critical_alpha(mom, 0.5))
    assert rbal.critical_margin(mom, 1e6, 1e6) == pytest.approx(0.4, rel=1e-3)
    np.testing.assert_array_equal(np.isinf(rbal.critical_alpha(mom, np.array([0.1, 1.0]))), [True, False])


# bad input


@pytest.mark.parametrize("name", ["alpha_pos", "alpha_neg"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, "many"])
def test_bad_sizes(name, value):
    with pytest.raises((ValueError, TypeError), match=name):
        rbal.critical_margin(**{"moments": NOISE, "alpha_pos": 1.0, "alpha_neg": 1.0, name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("kappa", -0.1), ("kappa", np.nan), ("rho_pos", 0.0), ("rho_pos", 1.0), ("rho_pos", 1.5)]
)
def test_bad_compositions(name, value):
    with pytest.raises(ValueError, match=name):
        rbal.critical_alpha(NOISE, **{name: value})


@pytest.mark.parametrize("function", [rbal.critical_margin, rbal.critical_alpha])
def test_bad_moments(function):
    arguments = (1.0, 1.0) if function is rbal.critical_margin else (0.5,)
    with pytest.raises(TypeError, match="moments"):
        function([1.0, 2.0], *arguments)


@pytest.mark.parametrize("tol", [0.0, -1.0, np.nan, "small"])
def test_bad_tolerance(tol):
    with pytest.raises((ValueError, TypeError), match="tol"):
        rbal.critical_margin(NOISE, 1.0, 1.0, tol=tol)


def test_sizes_that_do_not_broadcast():
    with pytest.raises(ValueError, match="alpha_pos"):
        rbal.critical_margin(NOISE, np.ones(2), np.ones(3))


def test_features_that_never_vary_bound_the_margin_from_below():
    # half of the features are constant: weights on them score 0, and no margin is negative
    mom = rbal.Moments.real(np.zeros(20), np.zeros(20), np.repeat([0.0, 1.0], 10))
    assert rbal.critical_margin(mom, 0.3, 0.3) > 0.0  # below Gardner's two samples a feature that varies
    np.testing.assert_array_equal(rbal.critical_margin(mom, [0.6, 5.0], [0.6, 1.0]), 0.0)
    assert rbal.solve(mom, 0.6, 0.6, kappa=0.0).phase == "COLLAPSED"
    assert rbal.critical_alpha(mom, kappa=0.1) < 1.0
