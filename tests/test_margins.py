import numpy as np
import pytest
from scipy.stats import norm

import rbal

# loss(u) of one sample at margin κ, without its weight
LOSS = {
    "hinge": lambda u, kappa: np.maximum(kappa - u, 0),
    "squared_hinge": lambda u, kappa: np.maximum(kappa - u, 0) ** 2,
    "square": lambda u, kappa: (kappa - u) ** 2,
    "logistic": lambda u, kappa: np.logaddexp(0, kappa - u),
}
ALPHA = {+1: 2.0, -1: 5.0}
CLASSES = rbal.Moments.ising(m=0.4, delta=1.0, L=50)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


def solve(loss="hinge", alpha=ALPHA, **options):
    return rbal.solve(CLASSES, alpha[+1], alpha[-1], loss=loss, **({"kappa": 0.5} | options))


UNSAT = {
    "hinge": lambda: solve(),
    "hinge weighted": lambda: solve(weight_pos=2.5, weight_neg=0.5),
    "squared hinge weighted": lambda: solve("squared_hinge", weight_pos=3.0),
    "square weighted": lambda: solve("square", weight_pos=2.0),
    "logistic weighted": lambda: solve("logistic", weight_pos=2.5),
    "hinge svm": lambda: solve(model="svm", lam=0.5, kappa=1.0, weight_pos=2.5),
    "logistic svm": lambda: solve("logistic", model="svm", lam=0.5, kappa=0.0, weight_pos=2.0),
}
SMALL = {+1: 0.3, -1: 0.2}
SAT = {
    "hinge": lambda: solve(alpha=SMALL, kappa=0.2),
    "hinge at zero margin": lambda: solve(alpha={+1: 0.5, -1: 0.5}, kappa=0.0),
    "squared hinge": lambda: solve("squared_hinge", alpha=SMALL, kappa=0.2),
    # just below the critical margin, where w ≪ q
    "near the edge": lambda: solve(alpha=SMALL, kappa=0.999 * rbal.critical_margin(CLASSES, SMALL[+1], SMALL[-1])),
}


@pytest.fixture(scope="module", params=UNSAT)
def unsat(request):
    sol = UNSAT[request.param]()
    assert sol.phase == "UNSAT"
    return sol


@pytest.fixture(scope="module", params=SAT)
def sat(request):
    sol = SAT[request.param]()
    assert sol.phase == "SAT"
    return sol


def near(kappa):
    """Cuts at a margin and ever closer above it: the SAT density falls off there on the scale w."""
    return [kappa, *(kappa + np.geomspace(1e-7, 1.0, 50))]


def integrate(function, low, high, cuts=()):
    """∫ by panels of 40 Gauss nodes that do not straddle a cut."""
    edges = np.unique(np.r_[np.arange(low, high, 0.5), high, [c for c in cuts if low < c < high]])
    half, middle = np.diff(edges)[:, None] / 2, (edges[1:] + edges[:-1])[:, None] / 2
    u = middle + half * NODES
    return (function(u) * WEIGHTS * half).sum()


def mean_on_train(sol, label, function=lambda u: np.ones_like(u), low=-30.0, high=30.0):
    """E[function(u)] over the margins u = yΔ of training samples of one class, atom included."""
    atom = rbal.train_density(sol, np.array([0.0]), label)[1]
    smooth = integrate(
        lambda u: function(u) * rbal.train_density(sol, label * u, label)[0], low, high, [0.0, *near(sol.kappa)]
    )
    on_margin = function(np.array(sol.kappa)) if low < sol.kappa < high else 0.0
    return smooth + atom * on_margin


def weighted_mean(sol, values, alpha=ALPHA):
    """Over the training set with its weights; values already carry theirs."""
    c = {+1: sol.weight_pos, -1: sol.weight_neg}
    return sum(alpha[y] * values[y] for y in alpha) / sum(alpha[y] * c[y] for y in alpha)


# ---- training scores, UNSAT


@pytest.mark.parametrize("label", [+1, -1])
def test_train_density_is_normalised(unsat, label):
    assert mean_on_train(unsat, label) == pytest.approx(1.0, abs=1e-10)


def test_train_loss_is_the_mean_over_the_density(unsat):
    c = {+1: unsat.weight_pos, -1: unsat.weight_neg}
    losses = {y: c[y] * mean_on_train(unsat, y, lambda u: LOSS[unsat.loss](u, unsat.kappa)) for y in ALPHA}
    assert weighted_mean(unsat, losses) == pytest.approx(unsat.train_loss, rel=1e-9)


def test_train_error_is_the_mass_below_zero(unsat):
    c = {+1: unsat.weight_pos, -1: unsat.weight_neg}
    errors = {y: c[y] * mean_on_train(unsat, y, high=0.0) for y in ALPHA}
    assert weighted_mean(unsat, errors) == pytest.approx(unsat.train_error, rel=1e-9)


def assert_training_moves_the_mean(sol, alpha, low):
    # u = u0 + xf, so that α E[u - u0] = x α E[f]: the two classes add up to 2xr̂, and the bias makes them equal
    moved = [alpha[y] * (mean_on_train(sol, y, lambda u: u, low) - (sol.r / 2 - y * sol.b)) for y in (+1, -1)]
    np.testing.assert_allclose(moved, sol.x * sol.r_hat, rtol=1e-8)


def test_training_moves_the_mean_by_the_force(unsat):
    assert_training_moves_the_mean(unsat, ALPHA, low=-30.0)


def test_second_moment_of_the_force(unsat):
    # q̂ = Σ α E[f²], f = -ℓ'(u): only where the density alone knows f (the hinge's atom hides a range of it)
    derivative = {
        "squared_hinge": lambda u: 2 * np.maximum(unsat.kappa - u, 0),
        "square": lambda u: 2 * (unsat.kappa - u),
        "logistic": lambda u: 1 / (1 + np.exp(u - unsat.kappa)),
    }
    c = {+1: unsat.weight_pos, -1: unsat.weight_neg}
    if unsat.loss == "hinge":
        # its bulk below the margin pulls with c, the atom with less
        bulk = sum(ALPHA[y] * c[y] ** 2 * mean_on_train(unsat, y, high=unsat.kappa) for y in ALPHA)
        atoms = sum(ALPHA[y] * c[y] ** 2 * rbal.train_density(unsat, 0.0, y)[1] for y in ALPHA)
        assert bulk < unsat.q_hat < bulk + atoms
    else:
        force = derivative[unsat.loss]
        total = sum(ALPHA[y] * c[y] ** 2 * mean_on_train(unsat, y, lambda u: force(u) ** 2) for y in ALPHA)
        assert total == pytest.approx(unsat.q_hat, rel=1e-9)


@pytest.mark.parametrize("name", ["hinge", "hinge weighted", "hinge svm"])
def test_atoms_of_the_hinge(name):
    # -f' is 1/x on the samples that end on the margin and 0 elsewhere: x x̂ = Σ α · atom
    sol = UNSAT[name]()
    atoms = {y: rbal.train_density(sol, 0.0, y)[1] for y in ALPHA}
    assert all(0 < atom < 1 for atom in atoms.values())
    assert sum(ALPHA[y] * atoms[y] for y in ALPHA) == pytest.approx(sol.x * sol.x_hat, rel=1e-10)


@pytest.mark.parametrize("name", ["squared hinge weighted", "square weighted", "logistic weighted"])
def test_smooth_losses_have_no_atom(name):
    assert rbal.train_density(UNSAT[name](), 0.0, 1)[1] == 0.0


# ---- training scores, SAT


@pytest.mark.parametrize("label", [+1, -1])
def test_sat_density_is_normalised(sat, label):
    assert mean_on_train(sat, label, low=sat.kappa, high=sat.kappa + 20) == pytest.approx(1.0, abs=1e-8)
    assert (sat.train_loss, sat.train_error) == (0.0, 0.0)


@pytest.mark.parametrize("label", [+1, -1])
def test_sat_density_is_zero_below_the_margin(sat, label):
    below = sat.kappa - np.array([1e-9, 1e-3, 0.1, 1.0, 10.0, 100.0])
    density, atom = rbal.train_density(sat, label * below, label)
    np.testing.assert_array_equal(density, 0.0)
    assert atom == 0.0
    above = rbal.train_density(sat, label * (sat.kappa + np.linspace(0, 100, 50)), label)[0]
    assert np.isfinite(above).all()
    assert above[0] > 0


@pytest.mark.parametrize("name", ["hinge", "squared hinge", "near the edge"])
def test_sat_training_moves_the_mean_by_the_force(name):
    sol = SAT[name]()
    assert_training_moves_the_mean(sol, SMALL, low=sol.kappa)


@pytest.mark.parametrize("label", [+1, -1])
def test_sat_density_against_its_definition(sat, label):
    # ∫ Dξ N(u; u0, w) θ(u - κ)/H((κ - u0)/√w) with u0 = r/2 - yb + √q ξ, on a plain fine grid in ξ
    xi = np.linspace(-10, 10, 200_001)
    u0, sw = sat.r / 2 - label * sat.b + np.sqrt(sat.q) * xi, np.sqrt(sat.x)
    for u in sat.kappa + np.array([1e-6, 1e-3, 0.1, 1.0]):
        log_density = norm.logpdf(xi) + norm.logpdf(u, u0, sw) - norm.logsf((sat.kappa - u0) / sw)
        expected = np.trapezoid(np.exp(log_density), xi)
        assert rbal.train_density(sat, label * u, label)[0] == pytest.approx(expected, rel=1e-6)


def test_square_loss_without_loss_sits_on_the_margin():
    sol = solve("square", alpha=SMALL, kappa=0.2)
    assert sol.phase == "SAT"
    density, atom = rbal.train_density(sol, np.linspace(-1, 1, 11), -1)
    np.testing.assert_array_equal(density, 0.0)
    assert atom == 1.0


def test_phases_meet_in_their_densities():
    # across the critical margin the atom of one side is the peak of the other, whose width is of order √w
    kappa = rbal.critical_margin(CLASSES, SMALL[+1], SMALL[-1])
    above, below = (solve(alpha=SMALL, kappa=factor * kappa) for factor in (1 + 1e-6, 1 - 1e-6))
    assert (above.phase, below.phase) == ("UNSAT", "SAT")
    atom = rbal.train_density(above, 0.0, 1)[1]
    reach = 10 * np.sqrt(below.x)
    peak = mean_on_train(below, 1, low=below.kappa, high=below.kappa + reach)
    bulk = mean_on_train(above, 1, low=above.kappa, high=above.kappa + reach)
    assert peak - bulk == pytest.approx(atom, abs=1e-3)


# ---- test scores


@pytest.mark.parametrize("build", [UNSAT["hinge weighted"], SAT["hinge"]], ids=["UNSAT", "SAT"])
def test_test_density_gives_the_rates(build):
    sol = build()
    for label, rate in ((+1, sol.metrics.tpr()), (-1, sol.metrics.fpr())):
        above = integrate(lambda d, y=label: rbal.test_density(sol, d, y), 0.0, 20.0)
        below = integrate(lambda d, y=label: rbal.test_density(sol, d, y), -20.0, 0.0)
        assert above == pytest.approx(rate, abs=1e-12)
        assert above + below == pytest.approx(1.0, abs=1e-12)


def test_test_density_moments():
    # Δ ~ N(y r/2 - b, variance), where the SAT phase adds w to q
    sol = SAT["hinge"]()
    mean = integrate(lambda d: d * rbal.test_density(sol, d, -1), -20.0, 20.0)
    square = integrate(lambda d: d * d * rbal.test_density(sol, d, -1), -20.0, 20.0)
    assert mean == pytest.approx(-sol.r / 2 - sol.b, abs=1e-12)
    assert square - mean**2 == pytest.approx(sol.q + sol.x, abs=1e-12)


# ---- bad input


@pytest.mark.parametrize("density", [rbal.train_density, rbal.test_density])
def test_bad_input_names_the_argument(density):
    sol = solve()
    sweep = rbal.sweep(CLASSES, 2.0, np.array([1.0, 5.0]), 0.5)
    with pytest.raises(TypeError, match=r"^solution must be the Solution of one problem"):
        density(sweep, 0.0, 1)
    with pytest.raises(TypeError, match=r"^solution must be the Solution of one problem"):
        density("sol", 0.0, 1)
    for label in (0, 2, "pos"):
        with pytest.raises(ValueError, match=r"^label must be one of 1, -1, got"):
            density(sol, 0.0, label)
    with pytest.raises(ValueError, match=r"^delta must be finite"):
        density(sol, np.nan, 1)
    np.testing.assert_allclose(density(sweep[1], 0.3, 1), density(sol, 0.3, 1), rtol=1e-8)


@pytest.mark.parametrize("density", [rbal.train_density, rbal.test_density])
def test_collapsed_solution_has_no_density(density):
    sol = rbal.solve(rbal.Moments.ising(m=0.0, delta=0.5, L=10), 1.0, 10.0, model="svm", lam=1.0)
    with pytest.raises(ValueError, match=r"^solution must have a score that varies, got phase 'COLLAPSED'"):
        density(sol, 0.0, 1)
