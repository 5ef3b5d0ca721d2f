"""Two classifiers on shared samples: against quadrature in two dimensions, known cases, and trained machines."""

import itertools

import naive
import numpy as np
import pytest

import rbal
from rbal.datasets import synthetic
from rbal.losses import LOSSES
from rbal.saddle import _overlap

CLASSES = rbal.Moments.ising(m=0.4, delta=np.linspace(-0.5, 2.0, 20))
SVM = {"model": "svm", "lam": 0.3}
MACHINES = {
    "perceptron": {"kappa": 0.5},
    "svm": SVM,
    "squared hinge": {**SVM, "loss": "squared_hinge"},
    "square": {**SVM, "loss": "square"},
    "logistic": {**SVM, "loss": "logistic"},
    "weighted": {**SVM, "weight_pos": 3.0, "kappa": 1.3, "kappa_neg": 0.4},
}
machines = pytest.mark.parametrize("options", MACHINES.values(), ids=MACHINES.keys())


@machines
def test_a_machine_and_itself_have_the_variance_as_overlap(options):
    sol = rbal.solve(CLASSES, 1.5, 4.0, **options)
    found = rbal.overlap(CLASSES, sol, sol)
    assert found.q == pytest.approx(sol.q, rel=1e-8)
    assert found.correlation == pytest.approx(1.0, abs=1e-8)
    assert found.q_hat == pytest.approx(sol.q_hat, rel=1e-7)
    assert found.residual < 1e-9


def test_two_typical_solutions_without_loss_overlap_by_q():
    sol = rbal.solve(CLASSES, 0.3, 0.4, kappa=0.1)
    assert sol.phase == "SAT"
    found = rbal.overlap(CLASSES, sol, sol)
    assert found.q == pytest.approx(sol.q, rel=1e-8)
    assert found.correlation == pytest.approx(sol.q / (sol.q + sol.x), rel=1e-8)


def test_without_shared_samples_only_the_shift_is_common():
    # the two weights are A⁻¹(r̂ δ/L + independent noise): by hand, with the moments and not the spectrum
    sol = rbal.solve(CLASSES, 1.5, 4.0, **SVM)
    found = rbal.overlap(CLASSES, sol, sol, shared=(0.0, 0.0))
    A = sol.k_hat + sol.x_hat * CLASSES.eigenvalues
    by_hand = sol.r_hat**2 * np.mean(CLASSES.eigenvalues * CLASSES.delta_sq / A**2)
    assert found.q == pytest.approx(by_hand, rel=1e-12)
    assert found.q_hat == 0.0


@pytest.mark.parametrize(("first", "second"), [*itertools.combinations_with_replacement(LOSSES, 2)])
@pytest.mark.parametrize("rho", [-0.7, 0.0, 0.35, 0.96])
def test_shared_forces_against_quadrature_in_two_dimensions(first, second, rho):
    a, b = (0.8, 1.5, 0.7, 0.3, 1.2), (1.1, 0.6, 1.9, -0.2, 0.5)
    sides = [
        _overlap.Side(LOSSES[loss].laws[0].expectations, *point, LOSSES[loss].unit)
        for loss, point in ((first, a), (second, b))
    ]
    expected = naive.shared_force((first, *a), (second, *b), rho)
    assert _overlap.shared_force(*sides, rho)[0] == pytest.approx(expected, rel=1e-8, abs=1e-10)


def test_the_fixed_point_against_iteration():
    one, two = rbal.solve(CLASSES, 1.5, 4.0, **SVM), rbal.solve(CLASSES, 2.0, 2.0, **SVM, weight_neg=2.0)
    shared, lam = (0.8, 1.1), CLASSES.eigenvalues
    both = (one.k_hat + one.x_hat * lam) * (two.k_hat + two.x_hat * lam)
    q12 = 0.0
    for _ in range(60):
        q_hat = 0.0
        for y, size in zip((1, -1), shared, strict=True):
            sides = [
                ("hinge", 1.0, w, sol.x, sol.r / 2 - y * sol.b, sol.q)
                for sol, w in ((one, 1.0), (two, two.weight_pos if y > 0 else two.weight_neg))
            ]
            points = [_overlap.Side(LOSSES["hinge"].laws[0].expectations, *side[1:], 0.0) for side in sides]
            q_hat += size * _overlap.shared_force(*points, q12 / np.sqrt(one.q * two.q))[0]
        q12 = np.mean(lam * (q_hat * lam + one.r_hat * two.r_hat * CLASSES.delta_sq) / both)
    found = rbal.overlap(CLASSES, one, two, shared)
    assert found.q == pytest.approx(q12, rel=1e-9)
    assert rbal.overlap(CLASSES, two, one, shared).q == pytest.approx(found.q, rel=1e-10)


def test_sweeps_broadcast_like_single_points():
    sols = rbal.sweep(CLASSES, 1.5, np.array([2.0, 4.0]), **SVM)
    other = rbal.solve(CLASSES, 1.5, 3.0, **SVM)
    share = np.array([0.0, 0.5, 1.0])[:, None]
    found = rbal.overlap(CLASSES, sols, other, shared=(1.5 * share, 2.0 * share))
    assert found.q.shape == (3, 2)
    single = rbal.overlap(CLASSES, rbal.solve(CLASSES, 1.5, 4.0, **SVM), other, shared=(0.75, 1.0))
    assert found.q[1, 1] == pytest.approx(single.q, rel=1e-9)
    assert np.all(np.diff(found.correlation, axis=0) > 0.0)  # the more is shared, the more alike


def test_collapsed_machines_have_no_score_to_share():
    close = rbal.Moments.ising(m=0.4, delta=0.3, L=20)
    sol = rbal.solve(close, 0.5, 50.0, model="svm", lam=5.0)
    assert sol.phase == "COLLAPSED"
    assert rbal.overlap(close, sol, sol).q == 0.0


def test_what_is_not_taken():
    sol, other = rbal.solve(CLASSES, 1.0, 2.0, **SVM), rbal.solve(CLASSES, 1.0, 3.0, **SVM)
    with pytest.raises(ValueError, match="shared must be given for training sets of different sizes"):
        rbal.overlap(CLASSES, sol, other)
    with pytest.raises(ValueError, match=r"shared must not be more than alpha_neg of either, 2, got 2\.5"):
        rbal.overlap(CLASSES, sol, other, shared=(1.0, 2.5))
    with pytest.raises(ValueError, match="shared must be a pair"):
        rbal.overlap(CLASSES, sol, other, shared=1.0)
    with pytest.raises(TypeError, match="first must be a Solution"):
        rbal.overlap(CLASSES, 0.5, other)


@pytest.mark.parametrize(
    ("loss", "lam"),
    [(("hinge", "hinge"), (0.3, 0.3)), (("hinge", "logistic"), (0.3, 0.05))],
    ids=["same", "other loss"],
)
def test_trained_machines_land_on_the_theory(loss, lam):
    rng = np.random.default_rng(3)
    L, trials, sizes = 150, 16, ((1.0, 2.0), (1.0, 1.0))
    data = synthetic.random_gaussian(rng, L=L, ratio=3.0, scale=1.5)
    kinds = list(zip(loss, lam, strict=True))
    sols = [
        rbal.solve(data.moments, *size, model="svm", lam=k, loss=name)
        for (name, k), size in zip(kinds, sizes, strict=True)
    ]
    expected = rbal.overlap(data.moments, *sols, shared=(1.0, 0.5)).q
    variance, found = data.moments.variance, []
    for _ in range(trials):
        X, y = data.sample(L, int(2.5 * L), rng)
        pos, neg = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
        rows = np.r_[pos, neg[: 2 * L]], np.r_[pos, neg[int(1.5 * L) :]]  # L/2 negatives are in both
        J = [rbal.LinearSVM(lam=k, loss=name).fit(X[i], y[i]).J_ for (name, k), i in zip(kinds, rows, strict=True)]
        found.append((variance(J[0] + J[1]) - variance(J[0] - J[1])) / (4 * L))
    error = np.std(found, ddof=1) / np.sqrt(trials)
    assert abs(np.mean(found) - expected) <= 4 * error
    assert 4 * error < 0.2 * expected
