import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.covariance import LedoitWolf

import rbal

# One point in each phase of the perceptron, and an SVM.
PROBLEMS = (
    {"alpha_pos": 2.0, "alpha_neg": 5.0, "kappa": 0.5},
    {"alpha_pos": 0.2, "alpha_neg": 0.3, "kappa": 0.1},
    {"alpha_pos": 1.0, "alpha_neg": 3.0, "model": "svm", "lam": 0.1, "weight_pos": 2.0},
)


def assert_same_solutions(a, b, ridge_ratio=1.0, problems=PROBLEMS, rtol=1e-9):
    """Same q, r and b; the ridge of b is that of a times ``ridge_ratio``."""
    for problem in problems:
        other = problem | {"lam": problem["lam"] * ridge_ratio} if "lam" in problem else problem
        one, two = rbal.solve(a, **problem), rbal.solve(b, **other)
        assert one.phase == two.phase
        np.testing.assert_allclose([two.q, two.r, two.b], [one.q, one.r, one.b], rtol=rtol, atol=rtol)


def resolvent(moments, z):
    """Σ d²/(λ + z): δᵀ(C + z)⁻¹δ in any basis, degenerate or not."""
    return np.array([(moments.delta_sq / (moments.eigenvalues + s)).sum() for s in z])


def assert_same_spectrum(moments, cov, delta, n_null=0):
    """The spectrum against a dense matrix with ``n_null`` directions that the encoding rules out."""
    z = np.array([0.03, 0.3, 3.0]) * np.abs(cov).max()
    values = np.linalg.eigvalsh(cov)
    np.testing.assert_allclose(moments.eigenvalues, values[n_null:], atol=1e-12 * values[-1])
    expected = [delta @ np.linalg.solve(cov + s * np.eye(len(cov)), delta) for s in z]
    np.testing.assert_allclose(resolvent(moments, z), expected, rtol=1e-10)
    np.testing.assert_allclose(moments.delta_sq.sum(), delta @ delta, rtol=1e-12)


def random_covariance(rng, D):
    A = rng.normal(size=(D, 2 * D))
    return A @ A.T / (2 * D)


def random_potts(rng, L, Q):
    M = rng.dirichlet(np.ones(Q), size=L)
    delta = rng.normal(size=(L, Q))
    return M, delta - delta.mean(axis=1, keepdims=True)


def one_hot(X, Q):
    return (X[:, :, None] == np.arange(Q)).reshape(len(X), -1).astype(float)


def pooled(X_pos, X_neg):
    """(C⁺ + C⁻)/2, each unbiased."""
    return 0.5 * (np.cov(X_pos, rowvar=False) + np.cov(X_neg, rowvar=False))


def zero_sum(L, Q):
    """Projector onto weights that sum to zero at each site."""
    return np.kron(np.eye(L), np.eye(Q) - 1.0 / Q)


# ---- one problem in three languages


def test_ising_is_potts_with_two_states_is_real_independent():
    rng = np.random.default_rng(1)
    m, delta = rng.uniform(-0.9, 0.9, 30), rng.normal(size=30)
    ising = rbal.Moments.ising(m=m, delta=delta)
    potts = rbal.Moments.potts(np.stack([1 + m, 1 - m], axis=1) / 2, np.stack([delta, -delta], axis=1) / 2)
    shift = delta / (2 * np.sqrt(30))
    real = rbal.Moments.real(m + shift, m - shift, 1 - m**2)
    assert (ising.L, ising.Q, potts.L, potts.Q, real.L, real.Q) == (30, 1, 30, 2, 30, 1)
    np.testing.assert_allclose(2 * potts.eigenvalues, ising.eigenvalues, rtol=1e-13)
    assert_same_solutions(ising, real)
    # J(σ) = ±J has twice the squared norm, on the sphere as in the ridge
    assert_same_solutions(ising, potts, ridge_ratio=0.5)


def test_ising_is_potts_with_two_states_is_real_full_covariance():
    rng = np.random.default_rng(2)
    m, delta, C = rng.uniform(-0.5, 0.5, 12), rng.normal(size=12), random_covariance(rng, 12)
    ising = rbal.Moments.ising(m=m, delta=delta, cov=C)
    spin = np.array([1.0, -1.0])
    potts = rbal.Moments.potts(
        0.5 * (1 + np.outer(m, spin)), 0.5 * np.outer(delta, spin), cov=np.kron(C, np.outer(spin, spin) / 4)
    )
    shift = delta / (2 * np.sqrt(12))
    assert_same_solutions(ising, rbal.Moments.real(m + shift, m - shift, C))
    assert_same_solutions(ising, potts, ridge_ratio=0.5)


def test_two_states_from_data_are_spins_from_data():
    rng = np.random.default_rng(3)
    X_pos, X_neg = rng.integers(0, 2, (60, 8)), (rng.random((90, 8)) < 0.3).astype(int)
    states = rbal.Moments.from_data(X_pos, X_neg, n_states=2)
    spins = rbal.Moments.from_data(2 * X_pos - 1, 2 * X_neg - 1)
    assert_same_solutions(spins, states, ridge_ratio=0.5)


def test_scalars_are_constant_arrays():
    a = rbal.Moments.ising(m=0.4, delta=1.0, L=7)
    b = rbal.Moments.ising(m=np.full(7, 0.4), delta=np.ones(7), cov=np.full(7, 0.84))
    np.testing.assert_array_equal(a.eigenvalues, b.eigenvalues)
    np.testing.assert_array_equal(a.delta_sq, b.delta_sq)


# ---- spectra against dense linear algebra


@given(L=st.integers(1, 5), Q=st.integers(2, 6), seed=st.integers(0, 2**32 - 1))
def test_potts_sites_against_dense_matrix(L, Q, seed):
    # C_ij(t, u) = [M_i(t) δ_tu - M_i(t) M_i(u)] δ_ij (errata 6), written entry by entry
    M, delta = random_potts(np.random.default_rng(seed), L, Q)
    C = np.zeros((L, Q, L, Q))
    for i in range(L):
        for t in range(Q):
            for u in range(Q):
                C[i, t, i, u] = M[i, t] * (t == u) - M[i, t] * M[i, u]
    P = zero_sum(L, Q)
    C = P @ C.reshape(L * Q, L * Q) @ P
    moments = rbal.Moments.potts(M, delta)
    assert moments.eigenvalues.size == L * (Q - 1)
    assert_same_spectrum(moments, C, delta.ravel(), n_null=L)


@pytest.mark.parametrize("Q", [2, 3, 5])
def test_site_diagonal_full_covariance_is_the_block_route(Q):
    M, delta = random_potts(np.random.default_rng(4), 9, Q)
    C = np.zeros((9, Q, 9, Q))
    for i in range(9):
        C[i, :, i, :] = np.diag(M[i]) - np.outer(M[i], M[i])
    blocks, full = rbal.Moments.potts(M, delta), rbal.Moments.potts(M, delta, cov=C.reshape(9 * Q, 9 * Q))
    np.testing.assert_allclose(full.eigenvalues, blocks.eigenvalues, atol=1e-14)
    assert_same_solutions(blocks, full)


def test_potts_full_covariance_against_dense_matrix():
    rng = np.random.default_rng(5)
    M, delta = random_potts(rng, 4, 3)
    P = zero_sum(4, 3)
    C = P @ random_covariance(rng, 12) @ P
    assert_same_spectrum(rbal.Moments.potts(M, delta, cov=C), C, delta.ravel(), n_null=4)


def test_many_blocks_of_sites(monkeypatch):
    # the last batch of sites is not full
    M, delta = random_potts(np.random.default_rng(6), 25, 4)
    whole = rbal.Moments.potts(M, delta)
    expected = whole.eigenvalues, whole.delta_sq
    monkeypatch.setattr("rbal.moments._moments.SITES_AT_ONCE", 7)
    parts = rbal.Moments.potts(M, delta)
    # how many sites go together changes the last digits: the BLAS of some processors adds in another order
    np.testing.assert_allclose(parts.eigenvalues, expected[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(parts.delta_sq, expected[1], rtol=1e-10, atol=1e-12)


def test_frozen_site_has_no_variance():
    # a site always in one state, in both classes: Q-1 null directions without shift, and nothing else changes
    M, delta = random_potts(np.random.default_rng(7), 5, 3)
    M[2], delta[2] = [0.0, 1.0, 0.0], 0.0
    moments = rbal.Moments.potts(M, delta)
    assert (moments.eigenvalues[:2] == 0.0).all()
    assert (moments.eigenvalues[2:] > 1e-6).all()
    np.testing.assert_allclose(moments.delta_sq[:2], 0.0, atol=1e-30)
    for problem in PROBLEMS:
        assert rbal.solve(moments, **problem).converged


@given(D=st.integers(2, 12), seed=st.integers(0, 2**32 - 1))
def test_rotating_the_basis_changes_nothing(D, seed):
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.normal(size=(D, D)))[0]
    mean_pos, mean_neg, C = rng.normal(size=D) / np.sqrt(D), rng.normal(size=D) / np.sqrt(D), random_covariance(rng, D)
    assert_same_solutions(
        rbal.Moments.real(mean_pos, mean_neg, C), rbal.Moments.real(U @ mean_pos, U @ mean_neg, U @ C @ U.T)
    )


@pytest.mark.parametrize("scales", [[1e-6, 1.0, 1e6], [1e-16, 1.0], [0.0, 1e-9, 1.0]])
def test_given_variances_are_the_eigenvalues(scales):
    # nothing is rounded where the covariance is diagonal: features in small units stay, and only 0 is 0
    variances = np.repeat(scales, 400)
    moments = rbal.Moments.real(np.ones(variances.size), np.zeros(variances.size), variances)
    np.testing.assert_array_equal(moments.eigenvalues, variances)
    np.testing.assert_allclose(moments.delta_sq, variances.size, rtol=1e-13)


def test_scale_of_independent_features_is_a_choice_of_units():
    # x → s x with weights J → J/s: at one common s the SVM's ridge takes the factor
    rng = np.random.default_rng(8)
    mean, variances = rng.normal(size=20) / 4, rng.uniform(0.5, 2, 20)
    a, b = rbal.Moments.real(mean, -mean, variances), rbal.Moments.real(1e3 * mean, -1e3 * mean, 1e6 * variances)
    one = rbal.solve(a, 1.0, 3.0, model="svm", lam=0.1)
    two = rbal.solve(b, 1.0, 3.0, model="svm", lam=0.1e6)
    np.testing.assert_allclose([two.q, two.r, two.b], [one.q, one.r, one.b], rtol=1e-9)


# ---- from data


def gaussian_classes(seed=9, n_pos=40, n_neg=70, D=6):
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(D, D))
    return rng.normal(size=(n_pos, D)) @ mix + 0.5, rng.normal(size=(n_neg, D)) @ mix.T


def potts_classes(Q, seed=10, n_pos=50, n_neg=80, L=6):
    rng = np.random.default_rng(seed)
    latent = rng.random((n_pos + n_neg, L)) * 0.6 + 0.4 * rng.random((n_pos + n_neg, 1))  # correlated sites
    X = np.minimum((latent * Q).astype(int), Q - 1)
    return X[:n_pos], (X[n_pos:] ** 2) % Q


def test_pooled_covariance_of_real_data():
    X_pos, X_neg = gaussian_classes()
    moments = rbal.Moments.from_data(X_pos, X_neg)
    shift = np.sqrt(6) * (X_pos.mean(axis=0) - X_neg.mean(axis=0))
    np.testing.assert_allclose(moments.delta, shift, rtol=1e-12)
    np.testing.assert_allclose(moments.M, 0.5 * (X_pos.mean(axis=0) + X_neg.mean(axis=0)), rtol=1e-12)
    assert_same_spectrum(moments, pooled(X_pos, X_neg), shift)


@pytest.mark.parametrize("Q", [2, 3])
def test_pooled_covariance_of_states(Q):
    X_pos, X_neg = potts_classes(Q)
    moments = rbal.Moments.from_data(X_pos, X_neg, n_states=Q)
    H_pos, H_neg = one_hot(X_pos, Q), one_hot(X_neg, Q)
    shift = np.sqrt(6) * (H_pos.mean(axis=0) - H_neg.mean(axis=0))
    np.testing.assert_allclose(moments.delta.ravel(), shift, atol=1e-13)
    np.testing.assert_allclose(moments.M.ravel(), 0.5 * (H_pos.mean(axis=0) + H_neg.mean(axis=0)), rtol=1e-13)
    assert (moments.L, moments.Q) == (6, Q)
    assert_same_spectrum(moments, pooled(H_pos, H_neg), shift, n_null=6)
    assert_same_solutions(moments, rbal.Moments.potts(moments.M, moments.delta, cov=pooled(H_pos, H_neg)))


@pytest.mark.parametrize("Q", [None, 2, 3])
def test_sites_keep_the_blocks_of_the_pooled_covariance(Q):
    X_pos, X_neg = gaussian_classes() if Q is None else potts_classes(Q)
    moments = rbal.Moments.from_data(X_pos, X_neg, n_states=Q, covariance="sites")
    H_pos, H_neg = (X_pos, X_neg) if Q is None else (one_hot(X_pos, Q), one_hot(X_neg, Q))
    blocks = np.kron(np.eye(6), np.ones((Q or 1, Q or 1))) * pooled(H_pos, H_neg)
    shift = np.sqrt(6) * (H_pos.mean(axis=0) - H_neg.mean(axis=0))
    assert_same_spectrum(moments, blocks, shift, n_null=0 if Q is None else 6)


def test_shrunk_covariance_of_real_data_is_ledoit_and_wolfs():
    # classes of one size n: the pooled covariance is the second moment of centred rows times √(n/(n-1))
    X_pos, X_neg = gaussian_classes(n_pos=15, n_neg=15)
    rows = np.concatenate([X - X.mean(axis=0) for X in (X_pos, X_neg)]) * np.sqrt(15 / 14)
    fit = LedoitWolf(assume_centered=True).fit(rows)
    assert 0.01 < fit.shrinkage_ < 0.99
    C = pooled(X_pos, X_neg)
    shrunk = (1 - fit.shrinkage_) * C + fit.shrinkage_ * np.trace(C) / 6 * np.eye(6)
    np.testing.assert_allclose(fit.covariance_, shrunk, rtol=1e-12)
    moments = rbal.Moments.from_data(X_pos, X_neg, covariance="shrunk")
    assert_same_spectrum(moments, shrunk, np.sqrt(6) * (X_pos.mean(axis=0) - X_neg.mean(axis=0)))


def test_shrunk_covariance_of_states_shrinks_the_zero_sum_space_alone():
    X_pos, X_neg = potts_classes(3, n_pos=12, n_neg=12)
    H_pos, H_neg = one_hot(X_pos, 3), one_hot(X_neg, 3)
    C, P = pooled(H_pos, H_neg), zero_sum(6, 3)
    moments = rbal.Moments.from_data(X_pos, X_neg, n_states=3, covariance="shrunk")
    # one intensity s takes every eigenvalue λ to (1-s)λ + s tr(C)/D, D = L(Q-1), and keeps the eigenvectors
    raw, target = np.linalg.eigvalsh(C)[6:], np.trace(C) / 12
    s = 1 - np.ptp(moments.eigenvalues) / np.ptp(raw)
    assert 0.01 < s < 0.99
    shift = np.sqrt(6) * (H_pos.mean(axis=0) - H_neg.mean(axis=0))
    assert_same_spectrum(moments, (1 - s) * C + s * target * P, shift, n_null=6)


@pytest.mark.parametrize("Q", [None, 3])
def test_fewer_rows_than_columns_is_the_dense_route(Q):
    X_pos, X_neg = gaussian_classes(n_pos=7, n_neg=9, D=40) if Q is None else potts_classes(3, n_pos=7, n_neg=9, L=30)
    moments = rbal.Moments.from_data(X_pos, X_neg, n_states=Q)
    if Q is None:
        C, shift, n_null = pooled(X_pos, X_neg), moments.delta, 0
        dense = rbal.Moments.real(X_pos.mean(axis=0), X_neg.mean(axis=0), C)
    else:
        C, shift, n_null = pooled(one_hot(X_pos, 3), one_hot(X_neg, 3)), moments.delta.ravel(), 30
        dense = rbal.Moments.potts(moments.M, moments.delta, cov=C)
    assert np.count_nonzero(moments.eigenvalues) == np.linalg.matrix_rank(C) <= 7 + 9 - 2
    assert_same_spectrum(moments, C, shift, n_null)
    assert_same_solutions(dense, moments, problems=PROBLEMS[:2])


# ---- directions without variance


@pytest.mark.parametrize("n", [6, 60], ids=["fewer rows than columns", "more rows than columns"])
@pytest.mark.parametrize("seed", [11, 12, 13, 14, 198])
def test_constant_columns_carry_no_shift(n, seed):
    # 3 columns that vary and 20 that never do (and are the same in both classes), by either route
    rng = np.random.default_rng(seed)
    X_pos, X_neg = np.ones((n, 23)), np.ones((n, 23))
    X_pos[:, :3], X_neg[:, :3] = rng.normal(size=(n, 3)) + 0.3, rng.normal(size=(n, 3))
    moments = rbal.Moments.from_data(X_pos, X_neg)
    assert np.count_nonzero(moments.eigenvalues == 0.0) == 20
    assert moments.delta_sq[:20].sum() <= 1e-25 * moments.delta_sq.sum()  # the square of rounding, not rounding
    assert_same_spectrum(moments, pooled(X_pos, X_neg), moments.delta)
    cov = np.zeros((23, 23))
    cov[:3, :3] = pooled(X_pos[:, :3], X_neg[:, :3])
    exact = rbal.Moments.real(X_pos.mean(axis=0), X_neg.mean(axis=0), cov)
    assert_same_solutions(exact, moments)


@pytest.fixture(scope="module")
def noiseless():
    """Four features; the first is ±1 with the class and never errs."""
    rng = np.random.default_rng(12)
    X_pos, X_neg = rng.normal(size=(50, 4)), rng.normal(size=(50, 4))
    X_pos[:, 0], X_neg[:, 0] = 1.0, -1.0
    return rbal.Moments.from_data(X_pos, X_neg)


def test_column_that_separates_without_noise(noiseless):
    # alone it gives the margin ½√(d²/L) = 1, whatever the number of samples
    assert noiseless.eigenvalues[0] == 0.0
    np.testing.assert_allclose(noiseless.delta_sq[0], 4 * 2.0**2, rtol=1e-12)
    assert rbal.solve(noiseless, 1e3, 1e3, kappa=0.5).phase == "SAT"
    assert rbal.solve(noiseless, 1e3, 1e3, kappa=2.5).phase == "UNSAT"


def test_critical_margin_of_a_noiseless_column(noiseless):
    # beyond two samples a dimension the noisy columns cannot help: κ_c = 1 with q = 0
    assert rbal.critical_margin(noiseless, 0.2, 0.2) > 1.0
    assert rbal.critical_margin(noiseless, 2.0, 5.0) == pytest.approx(1.0, abs=1e-6)


def test_svm_on_a_noiseless_column_alone_is_not_solved_and_says_so(noiseless):
    # the optimum has all samples on their margin (r = 2κ, q = 0), a corner that the equations for q > 0 do not hold
    with pytest.warns(rbal.ConvergenceWarning, match="did not converge"):
        sol = rbal.solve(noiseless, 2.0, 5.0, model="svm", lam=0.01)
    assert not sol.converged
    assert np.isnan([sol.q, sol.r, sol.b]).all()


# ---- noise in the shift


def test_debiased_shift_is_right_on_average():
    # known classes, means of 60 + 90 samples each time: Σ d²/(Lλ) and ‖δ‖² lose their bias, all the rest stays
    rng = np.random.default_rng(5)
    lam, side = np.repeat([0.5, 2.0], 50), rng.normal(size=100) / 4
    true, n_pos, n_neg = rbal.Moments.real(side, -side, lam), 60, 90
    found = []
    for _ in range(200):
        noise = rng.normal(size=(2, 100)) * np.sqrt(lam / np.array([[n_pos], [n_neg]]))
        seen = rbal.Moments.real(side + noise[0], -side + noise[1], lam)
        better = seen.debiased(n_pos, n_neg)
        found.append([(m.delta_sq / m.eigenvalues).sum() for m in (seen, better)] + [better.delta_sq.sum()])
    mean, se = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(200)
    distance = (true.delta_sq / lam).sum()
    assert mean[0] - distance == pytest.approx(100 * 100 * (1 / 60 + 1 / 90), abs=4 * se[0])
    assert mean[1] == pytest.approx(distance, abs=4 * se[1])
    assert mean[2] == pytest.approx(true.delta_sq.sum(), abs=4 * se[2])


@pytest.mark.parametrize("covariance", ["pooled", "sites", "shrunk"])
@pytest.mark.parametrize("Q", [None, 4])
@pytest.mark.parametrize("n", [12, 60])
def test_debiased_shift_is_the_same_in_any_basis(Q, covariance, n):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(2 * n, 10)) if Q is None else rng.integers(Q, size=(2 * n, 10))
    seen = rbal.Moments.from_data(X[:n], X[n:], Q, covariance)
    better = seen.debiased(n, n, band=5)
    np.testing.assert_allclose(better.eigenvalues, seen.eigenvalues, rtol=1e-12)
    np.testing.assert_allclose(np.sum(better.delta**2), better.delta_sq.sum(), rtol=1e-10, atol=1e-12)
    used = seen.eigenvalues > 1e-12
    assert np.all(better.delta_sq[used] <= seen.delta_sq[used] * (1 + 1e-9) + 1e-12)
    assert better.delta.shape == seen.delta.shape
    if Q is not None:
        np.testing.assert_allclose(better.delta.sum(axis=1), 0.0, atol=1e-12)


def test_debiased_frequencies_without_a_covariance():
    rng = np.random.default_rng(8)
    M = rng.dirichlet(np.ones(3), size=7)
    delta = rng.normal(size=(7, 3))
    delta -= delta.mean(axis=1, keepdims=True)
    mom = rbal.Moments.potts(M, delta)
    many, few = mom.debiased(10**12, 10**12), mom.debiased(1, 1)
    np.testing.assert_allclose(many.delta, delta, rtol=1e-9)
    assert np.abs(few.delta).max() < np.abs(delta).max()


@pytest.mark.parametrize("name", ["n_pos", "n_neg", "band"])
def test_debiased_sizes_are_positive(name):
    sizes = {"n_pos": 10, "n_neg": 10, "band": 5} | {name: 0}
    with pytest.raises(ValueError, match=name):
        rbal.Moments.ising(delta=1.0, L=10).debiased(**sizes)


# ---- cost


def count_calls(monkeypatch, name):
    calls, original = [], getattr(np.linalg, name)
    monkeypatch.setattr(np.linalg, name, lambda *args, **kwargs: calls.append(name) or original(*args, **kwargs))
    return calls


def test_one_eigendecomposition(monkeypatch):
    rng = np.random.default_rng(13)
    moments = rbal.Moments.real(rng.normal(size=10) / 3, rng.normal(size=10) / 3, random_covariance(rng, 10))
    calls = count_calls(monkeypatch, "eigh")
    rbal.solve(moments, 2.0, 5.0, kappa=0.5)
    rbal.solve(moments, 1.0, 5.0, kappa=0.1)
    assert moments.eigenvalues is moments.eigenvalues
    assert moments.delta_sq is moments.delta_sq
    assert calls == ["eigh"]


def test_one_singular_value_decomposition_of_few_rows(monkeypatch):
    moments = rbal.Moments.from_data(*gaussian_classes(n_pos=5, n_neg=5, D=30))
    svd, eigh = count_calls(monkeypatch, "svd"), count_calls(monkeypatch, "eigh")
    rbal.solve(moments, 2.0, 5.0, kappa=0.5)
    assert moments.delta_sq.size == 30
    assert (svd, eigh) == (["svd"], [])


def test_spectrum_is_read_only():
    moments = rbal.Moments.ising(m=0.4, L=5)
    for array in (moments.eigenvalues, moments.delta_sq):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    assert repr(moments) == "Moments(L=5, Q=1, D=5)"


@pytest.mark.slow
def test_many_sites_without_a_dense_matrix():
    # L = 10⁵ and Q = 20: the dense covariance would take 32 TB
    rng = np.random.default_rng(14)
    M, delta = random_potts(rng, 10**5, 20)
    moments = rbal.Moments.potts(M, delta)
    assert moments.eigenvalues.shape == (19 * 10**5,)
    np.testing.assert_allclose(moments.eigenvalues.sum(), (1 - (M**2).sum(axis=1)).sum(), rtol=1e-11)
    np.testing.assert_allclose(moments.delta_sq.sum(), (delta**2).sum(), rtol=1e-11)
    # tr C² site by site: Σ_t M² - 2 Σ_t M³ + (Σ_t M²)²
    trace2 = (M**2).sum() - 2 * (M**3).sum() + ((M**2).sum(axis=1) ** 2).sum()
    np.testing.assert_allclose((moments.eigenvalues**2).sum(), trace2, rtol=1e-11)
    assert rbal.solve(moments, 2.0, 5.0, kappa=0.5).converged


# ---- bad input: the message names the argument

EYE = np.eye(3)
FLAT = np.full((3, 2), 0.5)
ROWS = np.arange(12.0).reshape(4, 3)
FRAME = pd.DataFrame(ROWS, columns=list("abc"))
CODES = np.array([[0, 1, 1], [1, 0, 1], [0, 0, 1]])


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: rbal.Moments.ising(m=np.nan, L=3), "^m must be finite"),
        (lambda: rbal.Moments.ising(m=[0.1, np.nan, 0.2]), "^m must be finite"),
        (lambda: rbal.Moments.ising(m=1.5, L=3), "^m must be .*got 1.5"),
        (lambda: rbal.Moments.ising(m=np.zeros((3, 3))), "^m must .*shape"),
        (lambda: rbal.Moments.ising(m=[]), "must"),
        (lambda: rbal.Moments.ising(delta=np.inf, L=3), "^delta must be finite"),
        (lambda: rbal.Moments.ising(m=0.4, delta=1.0), "L must agree"),
        (lambda: rbal.Moments.ising(m=np.zeros(4), L=3), r"L must agree.*\[3, 4\]"),
        (lambda: rbal.Moments.ising(m=np.zeros(4), delta=np.zeros(3)), r"delta.* must agree.*\[3, 4\]"),
        (lambda: rbal.Moments.ising(L=0), "^L must be a positive integer, got 0"),
        (lambda: rbal.Moments.ising(L=3.0), "^L must be a positive integer"),
        (lambda: rbal.Moments.ising(cov=np.ones((3, 2))), "^cov must have shape"),
        (lambda: rbal.Moments.ising(cov=np.ones((3, 3, 3))), "^cov must have 1 or 2 dimensions"),
        (lambda: rbal.Moments.ising(cov=EYE * np.nan), "^cov must be finite"),
        (lambda: rbal.Moments.ising(cov=EYE + np.diag([0.1, 0.1], 1)), "^cov must be symmetric"),
        (lambda: rbal.Moments.ising(cov=[1.0, -1.0, 1.0]), "^cov must be >= 0"),
        (lambda: rbal.Moments.ising(cov=EYE - 0.5).eigenvalues, "^cov must have no negative eigenvalue, got -0.5"),
        (lambda: rbal.Moments.ising(cov=np.diag([1.0, 1.0, -1e-10])).eigenvalues, "^cov must have no negative eig"),
        (lambda: rbal.Moments.ising(cov=0 * EYE).eigenvalues, "^cov must not be zero"),
        (lambda: rbal.Moments.ising(cov=np.zeros(3)).eigenvalues, "^cov must not be zero"),
        (lambda: rbal.Moments.potts(FLAT[0], FLAT), "^M must have 2 dimensions"),
        (lambda: rbal.Moments.potts(FLAT * np.nan, 0 * FLAT), "^M must be finite"),
        (lambda: rbal.Moments.potts([[1.5, -0.5]], [[0.0, 0.0]]), "^M must be >= 0"),
        (
            lambda: rbal.Moments.potts(np.ones((3, 1)), np.zeros((3, 1))),
            "^M must have at least 1 site and 2 states, got shape \\(3, 1\\)",
        ),
        (lambda: rbal.Moments.potts(np.empty((0, 2)), np.empty((0, 2))), "^M must"),
        (lambda: rbal.Moments.potts(0.9 * FLAT, 0 * FLAT), "^M must sum to 1 .*got 0.9"),
        (lambda: rbal.Moments.potts(FLAT, FLAT[:2]), "^delta must have the shape of M"),
        (lambda: rbal.Moments.potts(FLAT, FLAT), "^delta must sum to 0 .*got 1"),
        (lambda: rbal.Moments.potts(FLAT, np.nan * FLAT), "^delta must be finite"),
        (lambda: rbal.Moments.potts(FLAT, 0 * FLAT, cov=EYE), r"^cov must have shape \(6, 6\)"),
        (lambda: rbal.Moments.potts(FLAT, 0 * FLAT, cov=np.ones(6)), "^cov must have 2 dimensions"),
        (lambda: rbal.Moments.potts(FLAT, 0 * FLAT, cov=np.eye(6)), "^cov must sum to 0"),
        (lambda: rbal.Moments.potts(FLAT, 0 * FLAT, cov=np.zeros((6, 6))).eigenvalues, "^cov must not be zero"),
        (lambda: rbal.Moments.real(np.zeros((3, 1)), np.zeros(3), EYE), "^mean_pos must have 1 dimension"),
        (lambda: rbal.Moments.real([0.0, np.nan, 0.0], np.zeros(3), EYE), "^mean_pos must be finite"),
        (lambda: rbal.Moments.real(np.zeros(3), np.zeros(2), EYE), "^mean_neg must have the shape of mean_pos"),
        (lambda: rbal.Moments.real([], [], []), "^mean_"),
        (lambda: rbal.Moments.real(np.zeros(3), np.zeros(3), np.eye(2)), "^cov must have shape"),
        (lambda: rbal.Moments.real(np.zeros(3), np.zeros(3), EYE * [1, 1, -1]).eigenvalues, "^cov must have no neg"),
        (lambda: rbal.Moments.from_data(ROWS[0], ROWS), "^X_pos must have 2 dimensions"),
        (lambda: rbal.Moments.from_data(ROWS * np.nan, ROWS), "^X_pos must be finite"),
        (lambda: rbal.Moments.from_data(ROWS, ROWS + np.inf), "^X_neg must be finite"),
        (lambda: rbal.Moments.from_data(ROWS[:1], ROWS), "^X_pos must have at least 2 rows"),
        (lambda: rbal.Moments.from_data(ROWS, ROWS[:1]), "^X_neg must have at least 2 rows"),
        (lambda: rbal.Moments.from_data(ROWS[:, :0], ROWS), "^X_pos must have .* 1 column"),
        (lambda: rbal.Moments.from_data(ROWS, ROWS[:, :2]), "^X_neg must have the 3 columns of X_pos, got 2"),
        (lambda: rbal.Moments.from_data(CODES, CODES, n_states=1), "^n_states must be at least 2, got 1"),
        (lambda: rbal.Moments.from_data(CODES, CODES, n_states=2.0), "^n_states must be a positive integer"),
        (lambda: rbal.Moments.from_data(CODES, 2 * CODES, n_states=2), "^X_neg must hold states .*got 2"),
        (lambda: rbal.Moments.from_data(-CODES, CODES, n_states=2), "^X_pos must hold states .*got -1"),
        (lambda: rbal.Moments.from_data(0.5 * CODES, CODES, n_states=2), "^X_pos must hold states .*got 0.5"),
        (lambda: rbal.Moments.from_data(ROWS, ROWS, covariance="full"), "^covariance must be one of .*got 'full'"),
        (lambda: rbal.Moments.from_data(0 * ROWS, 0 * ROWS).eigenvalues, "must not be zero"),
        (lambda: rbal.Moments.from_data(np.ma.array(ROWS, mask=ROWS > 9), ROWS), "^X_pos must hold no masked .*got 2"),
        (
            lambda: rbal.Moments.from_data(ROWS, ROWS * [1, 1e300, 1]),
            r"^X_neg must hold numbers of size <= 1e\+75, got 1",
        ),
        (lambda: rbal.Moments.from_data(FRAME, FRAME * [1, 1, 1e300]), "in column 'c': correct it"),
        (lambda: rbal.Moments.from_data(FRAME, FRAME[["a", "b"]]), "same columns, got 'c' in X_pos alone"),
        (lambda: rbal.Moments.from_data(FRAME, FRAME.set_axis(list("abd"), axis=1)), "got 'c' in X_pos alone"),
        (
            lambda: rbal.Moments.from_data(FRAME.set_axis(list("aab"), axis=1), FRAME.set_axis(list("aba"), axis=1)),
            "each column once",
        ),
        (
            lambda: rbal.Moments.from_data(CODES, CODES, n_states=20_000),
            "^n_states must leave arrays of at most .*20000",
        ),
    ],
)
def test_bad_input_names_the_argument(build, match):
    with pytest.raises(ValueError, match=match):
        build()


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: rbal.Moments.ising(m="much", L=3), "^m must be numeric"),
        (lambda: rbal.Moments.ising(m="0.4", L=3), "^m must be numeric, got '0.4'"),
        (lambda: rbal.Moments.ising(m=True, L=3), "^m must be a number, got True"),
        (lambda: rbal.Moments.from_data(ROWS.astype(str), ROWS), "^X_pos must be numeric"),
        (lambda: rbal.Moments.from_data(ROWS, ROWS.astype(str).astype(object)), "^X_neg must be numeric"),
        (lambda: rbal.Moments.potts([["a", "b"]], [[0, 0]]), "^M must be numeric"),
        (lambda: rbal.Moments.from_data([["a", "b"]] * 3, ROWS), "^X_pos must be numeric"),
    ],
)
def test_words_are_not_numbers(build, match):
    with pytest.raises(TypeError, match=match):
        build()


def test_columns_of_two_frames_are_matched_by_name():
    rng = np.random.default_rng(0)
    pos, neg = (pd.DataFrame(rng.normal(size=(20, 3)) * [1, 2, 5] + shift, columns=list("abc")) for shift in (0, 1))
    expected = rbal.Moments.from_data(pos.to_numpy(), neg.to_numpy())
    for found in (rbal.Moments.from_data(pos, neg), rbal.Moments.from_data(pos, neg[["c", "a", "b"]])):
        np.testing.assert_array_equal(found.delta, expected.delta)
        np.testing.assert_array_equal(found.eigenvalues, expected.eigenvalues)
    mixed = rbal.Moments.from_data(pos, neg[["c", "a", "b"]].to_numpy())  # without names, by place
    assert not np.array_equal(mixed.delta, expected.delta)


def test_rounding_is_forgiven():
    # a covariance of rank 2 whose smallest eigenvalue rounds below zero
    rng = np.random.default_rng(15)
    F = rng.normal(size=(2, 30))
    moments = rbal.Moments.real(rng.normal(size=30), rng.normal(size=30), F.T @ F)
    assert np.linalg.eigvalsh(F.T @ F)[0] < 0.0
    assert np.count_nonzero(moments.eigenvalues) == 2
    assert (moments.eigenvalues >= 0.0).all()
