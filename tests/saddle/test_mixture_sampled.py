"""Saddle points of the population from few rows: resolvents against true ones, predictions without optimism, limits."""

import numpy as np
import pytest

import rbal
from rbal.saddle._population import Samples, samples_of, weight_side

SVM, TRIALS = {"model": "svm", "lam": 0.3}, 48


def truth(D=40, seed=1):
    """Two classes whose covariances do not commute."""
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.normal(size=(D, D)))[0] for _ in range(2))
    lam = np.geomspace(0.05, 5.0, D)
    half = 1.25 * rng.normal(size=D) / np.sqrt(D)
    covs = np.stack([U @ np.diag(lam) @ U.T, V @ np.diag(lam[::-1] * 1.5) @ V.T])
    return rbal.Mixture.gaussian(np.stack([half, -half]), covs, [1, -1])


def test_resolvents_against_the_true_ones():
    # as many rows as columns, and twice as many: plugging the sample in would be off by tens of per cent
    mix, counts, ridge, rng = truth(D=60), np.array([60, 120]), 0.4, np.random.default_rng(2)
    L, X, q_hat, m_hat = 60, np.array([0.3, 0.5]), np.array([0.6, 0.8]), np.array([0.4, -0.4])
    C, v = np.stack([mix.covariance(c) for c in range(2)]), mix.means - mix.M
    gaps, plain = [], []
    for _ in range(60):
        Z, y = mix.sample(*counts, rng)
        rows = [Z[y == label] for label in (1, -1)]
        S, seen = np.stack([np.cov(r.T) for r in rows]), np.stack([r.mean(axis=0) for r in rows])
        samples = Samples(S, seen - seen.mean(axis=0), np.eye(2), counts - 1.0, counts, np.full(2, 0.5), L)
        found = weight_side(samples, ridge, X, q_hat, m_hat)
        inverse = np.linalg.inv(ridge * np.eye(L) + np.tensordot(X, S, 1))
        t = np.trace(S @ inverse, axis1=1, axis2=2)
        A = np.linalg.inv(ridge * np.eye(L) + np.tensordot(X * (1.0 - X * t / (counts - 1.0)), C, 1))
        B = A @ np.tensordot(q_hat, C, 1) @ A / L + np.outer(A @ (m_hat @ v), A @ (m_hat @ v))
        q, x = np.einsum("kij,ji->k", C, B), np.trace(C @ A, axis1=1, axis2=2) / L
        m = v @ A @ (m_hat @ v)
        norm = found.norm / np.trace(B), found.entropy / (np.trace(A) / L)
        gaps.append(np.r_[found.q / q, found.x / x, found.m / m, norm] - 1.0)
        plain.append(t / L / x - 1.0)
    gaps = np.array(gaps)
    assert np.abs(np.mean(plain, axis=0)).max() > 0.2
    error = gaps.std(axis=0, ddof=1) / np.sqrt(len(gaps))
    np.testing.assert_array_less(np.abs(gaps.mean(axis=0)), 5.0 * error + 3.0 / L)


@pytest.mark.parametrize("covariance", ["own", "shrunk"])
@pytest.mark.parametrize("n", [20, 80])
def test_predictions_without_optimism(covariance, n):
    # half as many positives as features, or twice as many
    mix, off, better = truth(), [], []
    exact = rbal.solve(mix, 0.4, 0.8, **SVM).metrics.ba()
    for seed in range(12):
        X, y = mix.sample(n, 2 * n, seed)
        sol = rbal.solve(rbal.Mixture.from_data(X, y, covariance=covariance, positive=1), 0.4, 0.8, **SVM)
        off.append(sol.metrics.ba() - exact)
        found = sol.unbiased()
        assert found.converged
        better.append(found.metrics.ba() - exact)
    error = np.std(better, ddof=1) / np.sqrt(12)
    assert np.mean(off) > 5.0 * np.std(off, ddof=1) / np.sqrt(12)  # optimistic
    assert abs(np.mean(better)) < 4.0 * error + 0.5 / n
    assert abs(np.mean(better)) < np.mean(off)


SPHERES = {  # sizes, margin and rows of the rare class; phase and sign of k̂
    "norm held back": (0.4, 0.8, 2.0, 20, "UNSAT", 1.0),
    "some look separable": (0.4, 0.8, 1.0, 40, "UNSAT", 1.0),
    "norm pushed up": (5.0, 8.0, 0.02, 200, "UNSAT", -1.0),
    "separable": (0.3, 0.5, 0.2, 20, "SAT", 1.0),
}


@pytest.mark.parametrize("case", SPHERES.values(), ids=SPHERES.keys())
def test_spheres_without_optimism(case):
    *point, n, phase, sign = case
    mix, off, better = truth(), [], []
    exact = rbal.solve(mix, *point)
    assert (exact.phase, np.sign(exact.k_hat)) == (phase, sign)
    for seed in range(TRIALS):
        X, y = mix.sample(n, 2 * n, seed)
        sol = rbal.solve(rbal.Mixture.from_data(X, y, covariance="shrunk", positive=1), *point)
        found = sol.unbiased()
        assert (found.converged, found.phase) == (True, phase)
        off.append(sol.metrics.ba() - exact.metrics.ba())
        better.append([found.metrics.ba() - exact.metrics.ba(), found.b - exact.b, found.k_hat / exact.k_hat - 1.0])
    error = np.std(better, axis=0, ddof=1) / np.sqrt(TRIALS)
    assert np.mean(off) > 3.0 * np.std(off, ddof=1) / np.sqrt(TRIALS)  # optimistic
    np.testing.assert_array_less(np.abs(np.mean(better, axis=0)), 4.0 * error + [0.5 / n, 1.0 / n, 2.0 / n])
    assert abs(np.mean(better, axis=0)[0]) < 0.5 * np.mean(off)


@pytest.mark.parametrize("point", [SVM, {"kappa": 1.5}, {"kappa": 0.05, "weight_neg": 2.0}, {"kappa": 0.0}])
def test_infinitely_many_rows_change_nothing(point):
    X, y = truth(D=12).sample(40, 60, 3)
    mix = rbal.Mixture.from_data(X, y, positive=1)
    sizes = (0.2, 0.3) if point.get("kappa") == 0.0 else (4.0, 9.0) if "weight_neg" in point else (0.5, 2.0)
    sol = rbal.solve(mix, *sizes, **point, weight_pos=2.0)
    mix.counts = np.array([10**12, 10**12])
    same = sol.unbiased()
    assert same.phase == sol.phase
    for name in ("q", "x", "m", "b", "k_hat", "q_hat", "x_hat", "m_hat", "train_loss"):
        np.testing.assert_allclose(getattr(same, name), getattr(sol, name), rtol=1e-7, atol=1e-8)


def test_fewer_rows_than_columns():
    # within the span of the rows and centres, and in all directions
    X, y = truth(D=60).sample(12, 20, 4)
    mix = rbal.Mixture.from_data(X, y, covariance="shrunk", positive=1)
    few = samples_of(mix)
    assert few.S.shape[1] < 60
    full = few._replace(S=np.stack([F.T @ F for F in mix._sampled[0]]), v=mix.means - mix.M, outside=0)
    args = 0.3, np.array([0.2, 0.4]), np.array([0.5, 0.7]), np.array([0.3, -0.2])
    for a, b in zip(weight_side(few, *args), weight_side(full, *args), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    assert rbal.solve(mix, 0.2, 0.3, **SVM).unbiased().converged


def test_sweeps_are_loops():
    X, y = truth(D=12).sample(60, 90, 5)
    mix = rbal.Mixture.from_data(X, y, positive=1)
    many = rbal.sweep(mix, 0.5, [1.0, 3.0], **SVM).unbiased()
    for k, alpha in enumerate((1.0, 3.0)):
        one = rbal.solve(mix, 0.5, alpha, **SVM).unbiased()
        np.testing.assert_allclose(many[k].q, one.q, rtol=1e-6)
        assert many[k].metrics.ba() == pytest.approx(one.metrics.ba(), abs=1e-6)


def test_a_failure_is_said():
    X, y = truth(D=12).sample(30, 60, 6)
    sol = rbal.solve(rbal.Mixture.from_data(X, y, positive=1), 0.5, 1.0, **SVM)
    with pytest.warns(rbal.ConvergenceWarning, match="1 of 1 saddle points did not converge"):
        found = sol.unbiased(max_iter=1)
    assert not found.converged
    assert np.isnan(found.q).all()


def test_what_has_no_population():
    X, y = truth(D=12).sample(60, 90, 7)
    mix = rbal.Mixture.from_data(X, y, positive=1)
    for given in (truth(D=12), mix.debiased()):
        with pytest.raises(ValueError, match="mixture must be estimated from rows, and not debiased"):
            rbal.solve(given, 1.0, 1.0, **SVM).unbiased()


@pytest.mark.parametrize("bad", [{"max_iter": 0}, {"tol": 0.0}])
def test_limits_of_the_iteration_are_checked(bad):
    rows, labels = np.random.default_rng(0).normal(size=(60, 4)), np.repeat([1, 0], [20, 40])
    sol = rbal.solve(rbal.Mixture.from_data(rows, labels), 2.0, 4.0, **SVM)
    with pytest.raises(ValueError, match=f"{next(iter(bad))} must be"):
        sol.unbiased(**bad)
