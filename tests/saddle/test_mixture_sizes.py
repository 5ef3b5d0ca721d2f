"""Mixtures: how trained machines approach the theory as they grow, and one covariance with many centres."""

import numpy as np
import pytest

import rbal
from rbal.moments import _blocks

LAM, SIZES = 0.4, (1.5, 3.0)


def repeated(L):
    """Three clusters whose covariances do not commute, made of L/2 equal blocks: the theory is the same at every L."""
    B = np.array([[[1.0, 0.5], [0.5, 0.6]], [[0.4, -0.2], [-0.2, 1.2]], [[1.0, 0.0], [0.0, 0.3]]])
    centres = 2.0 * np.array([[0.8, 0.1], [-0.2, 0.9], [-0.3, -0.4]]) / np.sqrt(L / 2)
    covs = np.stack([np.kron(np.eye(L // 2), block) for block in B])
    return rbal.Mixture.gaussian(np.tile(centres, L // 2), covs, [1, 1, -1], [0.6, 0.4, 1.0])


def ridge_machine(X, y, L):
    """Minimise Σ(y - F·J + b)² + λ̃/2 ‖J‖² in closed form."""
    F = X / np.sqrt(L)
    centred, signs = F - F.mean(axis=0), y - y.mean()
    J = np.linalg.solve(centred.T @ centred + 0.5 * LAM * np.eye(L), centred.T @ signs)
    return J, float(F.mean(axis=0) @ J - y.mean())


def residuals(L, trials, seed):
    """Mean of m, q and b of trained machines less the theory, and its error."""
    mix, rng = repeated(L), np.random.default_rng(seed)
    sol = rbal.solve(mix, *SIZES, model="svm", lam=LAM, loss="square")
    found = []
    for _ in range(trials):
        X, y = mix.sample(round(SIZES[0] * L), round(SIZES[1] * L), rng)
        m, q, b = mix.order_parameters(*ridge_machine(X, y, L))
        found.append([*m, *q, b])
    found = np.array(found) - np.array([*sol.m, *sol.q, sol.b])
    return found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(trials), sol


def test_the_theory_does_not_know_the_size():
    a, b = (rbal.solve(repeated(L), *SIZES, model="svm", lam=LAM, loss="square") for L in (20, 80))
    assert repeated(20).level == "any"
    np.testing.assert_allclose([*a.m, *a.q, a.b], [*b.m, *b.q, b.b], rtol=1e-9)


@pytest.mark.slow
def test_the_residual_falls_like_one_over_the_size():
    small, error_small, _ = residuals(20, 3000, 1)
    large, error_large, _ = residuals(80, 600, 2)
    # what is left at L = 20 is there, and a quarter of it at L = 80
    assert np.abs(small / error_small).max() > 5.0
    np.testing.assert_array_less(
        np.abs(large - small / 4.0), 5.0 * np.hypot(error_large, error_small / 4.0) + 4.0 / 80**2
    )
    far, error_far, sol = residuals(400, 10, 3)
    np.testing.assert_array_less(np.abs(far), 5.0 * error_far + 2.0 * np.sqrt(sol.q.max()) / 400)


@pytest.mark.parametrize("point", [{"model": "svm", "lam": 0.4}, {"kappa": 0.5}, {"kappa": 0.05}])
@pytest.mark.parametrize("K", [2, 5, 10])
def test_one_covariance_is_a_special_case_of_any(K, point):
    rng = np.random.default_rng(K)
    F, means = rng.normal(size=(8, 16)) / 4.0, 2.0 * rng.normal(size=(K, 8)) / np.sqrt(8)
    labels = np.where(np.arange(K) < (K + 1) // 2, 1, -1)
    a, b = (rbal.Mixture.gaussian(means, F @ F.T, labels) for _ in range(2))
    assert a.level == "one covariance"
    b._covs, b._shape, b._width = [F @ F.T] * K, np.arange(K), np.ones(K)
    b.__dict__["blocks"] = _blocks._dense(np.stack([F @ F.T] * K), b._centres - b._balanced @ b._centres, 8)
    one, any_ = (rbal.solve(mix, 1.0, 2.0, **point, tol=1e-12) for mix in (a, b))
    assert one.phase == any_.phase
    np.testing.assert_allclose([*any_.m, *any_.q, any_.b], [*one.m, *one.q, one.b], rtol=1e-9, atol=1e-9)
