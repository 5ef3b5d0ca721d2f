"""Arguments of the solver and fields of its result: what is refused, and what a solution tells."""

import tracemalloc
from dataclasses import fields

import numpy as np
import pytest

import rbal
from rbal.saddle import _solve
from rbal.saddle.internal import COLUMNS


def correlated(D=6):
    """Moments of real features with a dense covariance."""
    rng = np.random.default_rng(0)
    F = rng.normal(size=(D, 2 * D)) / np.sqrt(2 * D)
    half = 0.5 * rng.normal(size=D) / np.sqrt(D)
    return rbal.Moments.real(half, -half, F @ F.T)


@pytest.mark.parametrize("function", [rbal.solve, rbal.sweep])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[(name, v) for name in ("alpha_pos", "alpha_neg", "weight_pos", "weight_neg") for v in (0.0, -1.0, np.nan)],
        *[(name, np.inf) for name in ("alpha_pos", "alpha_neg", "kappa", "weight_pos", "weight_neg")],
        *[(name, "many") for name in ("alpha_pos", "alpha_neg", "kappa", "weight_pos", "weight_neg", "tol")],
        ("alpha_pos", None),
        ("kappa", -0.1),
        ("kappa", np.nan),
        ("model", "tree"),
        ("loss", "zero-one"),
        ("lam", 0.1),
        ("tol", 0.0),
        ("tol", -1e-10),
        ("tol", np.nan),
        ("tol", [1e-10, 1e-8]),
        ("max_iter", 0),
        ("max_iter", 10.5),
        ("max_iter", "many"),
        ("moments", None),
        ("moments", [1.0, 2.0]),
    ],
)
def test_bad_arguments_are_named(function, name, value):
    arguments = {"moments": correlated(), "alpha_pos": 1.0, "alpha_neg": 2.0, "kappa": 0.5, name: value}
    with pytest.raises((ValueError, TypeError), match=name):
        function(**arguments)


@pytest.mark.parametrize("function", [rbal.solve, rbal.sweep])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("lam", {"model": "svm"}),
        ("lam", {"model": "svm", "lam": 0.0}),
        ("lam", {"model": "svm", "lam": -1.0}),
        ("lam", {"model": "svm", "lam": np.nan}),
        ("kappa", {"model": "svm", "lam": 1.0, "kappa": 0.0}),
        ("kappa", {"loss": "square", "kappa": 0.0}),
    ],
)
def test_bad_combinations_are_named(function, name, options):
    with pytest.raises(ValueError, match=name):
        function(correlated(), 1.0, 2.0, **options)


@pytest.mark.parametrize("value", [np.array([1.0, 2.0]), [1.0]])
@pytest.mark.parametrize("name", ["alpha_pos", "kappa", "weight_neg"])
def test_arrays_belong_to_sweep(name, value):
    arguments = {"alpha_pos": 1.0, "alpha_neg": 2.0, "kappa": 0.5, name: value}
    with pytest.raises(ValueError, match="sweep"):
        rbal.solve(correlated(), **arguments)


def test_shapes_that_do_not_broadcast():
    with pytest.raises(ValueError, match=r"alpha_pos \(2,\), alpha_neg \(3,\)"):
        rbal.sweep(correlated(), np.ones(2), np.ones(3), 0.5)


def test_too_few_iterations_say_so():
    mom = correlated()
    with pytest.warns(rbal.ConvergenceWarning, match="1 of 1"):
        sol = rbal.solve(mom, 2.0, 5.0, 0.5, max_iter=1)
    assert not sol.converged
    assert np.isnan([getattr(sol, name) for name in COLUMNS[:10]]).all()
    with pytest.warns(rbal.ConvergenceWarning, match="2 of 2"):
        sols = rbal.sweep(mom, [2.0, 3.0], 5.0, 0.5, max_iter=1)
    assert np.isnan([getattr(sols, name) for name in COLUMNS[:10]]).all()
    assert rbal.solve(mom, 2.0, 5.0, 0.5, max_iter=20).converged


@pytest.mark.parametrize("kappa", [0.0, 0.1, 1.0, 2.1])
def test_classes_ninety_deviations_apart(kappa):
    # separable by far (κ_c = 2.155): forces underflow at most starts, and the solution is followed from the surface
    mom = rbal.Moments.ising(m=np.sqrt(1 - 0.0026163), delta=np.sqrt(22.2057), L=8)
    sol = rbal.solve(mom, 80.417, 762.599, kappa, fit_bias=False)
    assert sol.phase == "SAT"
    assert sol.residual <= 1e-10
    assert 2 * kappa < sol.r < 2 * 2.4  # beyond the margin, within full alignment


def test_a_result_row_is_a_solution_in_order():
    assert tuple(f.name for f in fields(rbal.Solution))[: len(COLUMNS)] == COLUMNS


@pytest.mark.parametrize("weight", [1.0, 5.0])
def test_training_error_has_no_jump_at_zero_margin(weight):
    # samples that the training pins at u = κ = 0 are on the margin, not beyond it
    mom = correlated()
    at, near = (rbal.solve(mom, 2.0, 5.0, kappa, weight_pos=weight) for kappa in (0.0, 1e-9))
    assert at.train_error == pytest.approx(near.train_error, abs=1e-7)


# ---- what a solution knows, and how it is reached


def test_a_solution_knows_what_was_asked():
    moments = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    sphere = rbal.solve(moments, 2.0, 5.0, 0.5, weight_pos=3.0, fit_bias=False)
    assert (sphere.alpha_pos, sphere.alpha_neg, sphere.kappa, sphere.lam) == (2.0, 5.0, 0.5, None)
    assert (sphere.weight_pos, sphere.model, sphere.loss, sphere.fit_bias) == (3.0, "perceptron", "hinge", False)
    many = rbal.sweep(moments, 2.0, np.array([4.0, 5.0]), model="svm", lam=np.array([[0.1], [0.3]]))
    one = many[1, 0]
    assert (one.alpha_pos, one.alpha_neg, one.kappa, one.lam, one.model) == (2.0, 4.0, 1.0, 0.3, "svm")
    assert one.q == pytest.approx(rbal.solve(moments, 2.0, 4.0, model="svm", lam=0.3).q)
    assert many[0].alpha_neg.tolist() == [4.0, 5.0]
    assert rbal.sweep(moments, 2.0, np.array([4.0, 5.0]))[0].lam is None
    with pytest.raises(IndexError, match="one point"):
        one[0]


def test_residuals_fall_by_both_methods():
    moments = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    kappa = rbal.critical_margin(moments, 0.5, 1.0) + 0.1
    found = rbal.saddle.residuals(moments, 0.5, 1.0, kappa, n_newton=12, n_damped=80)
    assert (found.newton.shape, found.damped.shape) == ((13,), (80,))
    assert found.newton[0] == found.damped[0]
    assert found.newton[-1] < 1e-13  # quadratically
    rate = found.damped[31:61] / found.damped[30:60]  # by one factor each time
    assert np.ptp(rate) < 0.005
    assert 0.5 < rate[0] < 1.0
    with pytest.raises(ValueError, match="n_newton must be"):
        rbal.saddle.residuals(moments, 0.5, 1.0, kappa, n_newton=0)
    with pytest.raises(TypeError, match="moments must be"):
        rbal.saddle.residuals([1.0], 0.5, 1.0, kappa)


def test_sweeps_take_little_memory_beside_their_result(monkeypatch):
    classes, sizes = rbal.Moments.ising(m=0.4, delta=1.0, L=100), np.linspace(1.0, 5.0, 3000).reshape(30, 100)
    whole = rbal.sweep(classes, 2.0, sizes, 0.5)
    monkeypatch.setattr(_solve, "BLOCK", 2 * _solve.CHUNK)
    tracemalloc.start()
    found = rbal.sweep(classes, 2.0, sizes, 0.5)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak - kept < 16 * sizes.nbytes / 8  # 16 bytes a point, and 64 if all points were laid out at once
    for name in ("q", "r", "b", "x", "phase", "converged", "n_iter"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))


@pytest.mark.parametrize("alpha", [10.0, 100.0])
def test_a_direction_without_variance_that_separates_is_named(alpha):
    shift = np.array([0.3, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])

    def solved(variance, **options):
        cov = np.r_[variance, np.ones(9)]
        classes = rbal.Moments.real(0.5 * shift, -0.5 * shift, cov)
        return rbal.solve(classes, alpha, alpha, model="svm", lam=0.1, **options)

    with pytest.warns(rbal.ConvergenceWarning, match="along directions without variance.* q = 0"):
        assert np.isnan(solved(0.0).metrics.ba())
    # the limit of small variances: the margin is met by all samples along that direction alone
    near = [solved(variance) for variance in (1e-4, 1e-5, 1e-6)]
    assert all(sol.converged and sol.metrics.ba() == pytest.approx(1.0) for sol in near)
    assert [sol.q for sol in near] == sorted((sol.q for sol in near), reverse=True)
    assert near[-1].q < 1e-4
    assert near[-1].r == pytest.approx(2.0, abs=0.03)
    # a loss without a kink has a solution there, the limit of its own
    np.testing.assert_allclose(solved(0.0, loss="logistic").r, solved(1e-9, loss="logistic").r, rtol=1e-5)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"alpha_pos": 10**400}, "alpha_pos must be finite, got an integer beyond 1e308"),
        ({"max_iter": 10**400}, "max_iter must be at most"),
        ({"model": np.array(["svm", "perceptron"])}, "model must be one of"),
        ({"loss": np.ones((2, 2))}, "loss must be one of"),
    ],
)
def test_numbers_beyond_floats_and_arrays_for_names_are_named(bad, message):
    with pytest.raises(ValueError, match=message):
        rbal.solve(**{"moments": rbal.Moments.ising(m=0.4, delta=1.0, L=100), "alpha_pos": 1.0, "alpha_neg": 1.0} | bad)
