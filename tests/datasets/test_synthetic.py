"""Samples have the moments they come with; latent Gaussians and Gibbs chains are what they claim to be."""

import inspect
import itertools
import math
import os
import pickle
import time

import numpy as np
import pytest
from numpydoc.docscrape import FunctionDoc
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import multivariate_normal, norm

import rbal
from rbal.datasets import _gibbs, _latent, synthetic

compiled = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="needs the compiled kernels")


def features(X, n_states):
    """Samples as the theory sees them: (n, D), one-hot where there are states."""
    return X if n_states is None else np.eye(n_states)[X].reshape(len(X), -1)


def covariance(moments):
    """C, entry by entry, from variances of sums."""
    D = moments.M.size
    unit = np.eye(D).reshape(D, *moments.M.shape)
    own = np.array([moments.variance(e) for e in unit])
    both = np.array([[moments.variance(a + b) for b in unit] for a in unit])
    return 0.5 * (both - own - own[:, None])


def deviation(values, expected):
    """Largest distance of a mean over the first axis from what is expected, in standard errors."""
    error = values.std(axis=0) / np.sqrt(len(values))
    miss = np.abs(values.mean(axis=0) - expected)
    assert miss[error < 1e-12].max(initial=0.0) < 1e-9  # what does not vary has to be right
    return (miss / np.maximum(error, 1e-12))[error >= 1e-12].max()


def check_moments(classes, n=20_000, seed=0):
    """Means of either class and the average of their covariances, within 4 standard errors."""
    mom, cov = classes.moments, covariance(classes.moments)
    X, y = classes.sample(n, n, np.random.default_rng(seed))
    F, products = features(X, classes.n_states), []
    for sign in (1, -1):
        mean = (mom.M + sign * mom.delta / (2 * np.sqrt(mom.L))).ravel()
        assert deviation(F[y == sign], mean) < 4.0
        centred = F[y == sign] - mean
        products.append(centred[:, :, None] * centred[:, None, :])
    average = 0.5 * (products[0] + products[1])  # paired at random: independent
    assert deviation(average, cov) < 4.0


def spin_covariance(rng, m, samples=3):
    """A covariance within reach of signs of a Gaussian, by the sine law for even spins, and its variances 1 - m²."""
    scale = np.sqrt(1 - np.asarray(m) ** 2)
    cov = (
        0.9 * (2 / np.pi) * np.arcsin(np.clip(random_correlation(rng, len(m), samples), -1, 1)) * np.outer(scale, scale)
    )
    np.fill_diagonal(cov, scale**2)
    return cov


def random_correlation(rng, L, samples=3):
    return np.corrcoef(rng.normal(size=(L, samples * L)))


# ---- the bivariate Gaussian


def naive_excess(h, k, rho):
    """By one-dimensional quadrature of the conditional probability, with the step where it has one."""
    c = math.sqrt(1 - rho**2)
    steps = [(k + e * c) / rho for e in (-9, -3, 0, 3, 9)] if rho else []
    points = [s for s in steps if -9 < s < h] or None
    both = quad(
        lambda x: norm.pdf(x) * norm.cdf((k - rho * x) / c), -9, h, points=points, epsabs=1e-14, epsrel=1e-13, limit=500
    )[0]
    return both - norm.cdf(h) * norm.cdf(k)


@pytest.mark.parametrize("rho", [-0.9999999, -0.97, -0.9, -0.3, 0.0, 1e-9, 0.5, 0.9, 0.9001, 0.999, 1 - 1e-8])
@pytest.mark.parametrize(
    ("h", "k"), [(0.0, 0.0), (0.0, 1.2), (-0.7, 0.0), (0.4, 0.4), (-2.5, 1.0), (1.5, -1.5), (3, 3)]
)
def test_bivariate_gaussian_by_quadrature(h, k, rho):
    found = _latent.excess(float(h), float(k), math.asin(rho))
    assert found == pytest.approx(naive_excess(h, k, rho), abs=2e-13)
    assert found == pytest.approx(_latent.excess(float(k), float(h), math.asin(rho)), abs=1e-15)


def test_bivariate_gaussian_against_scipy():
    rng = np.random.default_rng(0)
    for _ in range(20):
        h, k, rho = *rng.normal(size=2), rng.uniform(-0.99, 0.99)
        joint = multivariate_normal(cov=[[1, rho], [rho, 1]]).cdf([h, k])
        assert _latent.excess(h, k, math.asin(rho)) == pytest.approx(joint - norm.cdf(h) * norm.cdf(k), abs=1e-7)


def test_bivariate_gaussian_at_the_ends():
    p, q = norm.cdf(0.3), norm.cdf(-0.2)
    assert _latent.excess(0.3, -0.2, math.pi / 2) == pytest.approx(min(p, q) - p * q, abs=1e-15)
    assert _latent.excess(0.3, -0.2, -math.pi / 2) == pytest.approx(max(0, p + q - 1) - p * q, abs=1e-15)
    assert _latent.excess(math.inf, 0.3, 0.5) == _latent.excess(0.3, -math.inf, 1.5) == 0.0
    # continuous where one integral takes over from the other
    below, above = (_latent.excess(0.4, -1.1, _latent.DIRECT + step) for step in (-1e-13, 1e-13))
    assert above == pytest.approx(below, abs=1e-14)


def test_latent_correlation_against_brent():
    rng = np.random.default_rng(1)
    for _ in range(50):
        h, k = rng.normal(size=2)
        p, q = norm.cdf(h), norm.cdf(k)
        share = rng.uniform(-0.999, 0.999)
        target = share * (min(p, q) - p * q if share > 0 else p * q - max(0.0, p + q - 1))
        theta = _latent.latent_angle(h, k, target)
        slow = brentq(lambda t: _latent.excess(h, k, t) - target, -math.pi / 2, math.pi / 2, xtol=1e-15)  # noqa: B023
        assert _latent.excess(h, k, theta) == pytest.approx(target, abs=1e-15)
        assert theta == pytest.approx(slow, abs=1e-11)


def test_tetrachoric_correlation_of_even_spins_is_known():
    # Sheppard: signs of a Gaussian with correlation ρ have covariance (2/π) asin ρ
    R = _latent.latent_correlation(np.zeros(2), np.array([[1.0, 0.3], [0.3, 1.0]]))
    assert R[0, 1] == pytest.approx(math.sin(0.3 * math.pi / 2), abs=1e-15)


def test_site_covariance_against_rectangles():
    rng = np.random.default_rng(2)
    R, edges = random_correlation(rng, 3), np.sort(rng.normal(size=(3, 2)), axis=1)
    edges[1, 1] = np.inf  # a state that never occurs
    cov = _latent.site_covariance(edges, R)
    bounds = np.c_[np.full(3, -np.inf), edges, np.full(3, np.inf)]
    for i, j in itertools.permutations(range(3), 2):
        joint = multivariate_normal(cov=[[1, R[i, j]], [R[i, j], 1]])
        for t, u in itertools.product(range(3), repeat=2):
            low, high = (bounds[i, t], bounds[j, u]), (bounds[i, t + 1], bounds[j, u + 1])
            p, q = (norm.cdf(b) - norm.cdf(a) for a, b in zip(low, high, strict=True))
            inside = joint.cdf(high, lower_limit=low) if p * q > 0 else 0.0
            assert cov[i, t, j, u] == pytest.approx(inside - p * q, abs=1e-7)
    assert np.abs(cov.sum(axis=1)).max() < 1e-15
    assert not any(cov[i, :, i].any() for i in range(3))


def test_search_counts_edges():
    rng = np.random.default_rng(3)
    values, edges = rng.random((7, 4)), np.sort(rng.random((4, 5)), axis=1)
    naive = [[np.searchsorted(edges[i], v, side="right") for i, v in enumerate(row)] for row in values]
    assert np.array_equal(_latent.search(values, edges), naive)


# ---- spins


def test_independent_spins():
    m, delta = np.array([-0.5, 0.0, 0.3, 0.6]), np.array([0.4, -1.0, 1.0, 1.5])
    classes = synthetic.ising(m, delta)
    check_moments(classes)
    assert classes.exact
    assert classes.n_states is None
    means = m + delta / 4, m - delta / 4
    average = 1 - 0.5 * (means[0] ** 2 + means[1] ** 2)
    assert np.allclose(covariance(classes.moments), np.diag(average), atol=1e-15)
    assert np.abs(average - (1 - m**2)).max() <= (delta**2 / 16).max()  # O(1/L) from the midpoint


def test_spins_that_never_flip():
    X, y = synthetic.ising(m=0.75, delta=1.0, L=4).sample(50, 50, 0)
    assert (X[y > 0] == 1).all()
    assert (X[y < 0] == -1).any()


@pytest.fixture
def spins():
    """Correlated spins with different means: m, δ, and a covariance that signs of a Gaussian can have."""
    rng = np.random.default_rng(4)
    m, delta = rng.uniform(-0.5, 0.5, size=5), 0.5 * rng.normal(size=5)
    return m, delta, spin_covariance(rng, m)


def test_correlated_spins(spins):
    m, delta, cov = spins
    classes = synthetic.ising(m, delta, cov=cov)
    check_moments(classes)
    found = covariance(classes.moments)
    off = ~np.eye(5, dtype=bool)
    assert np.abs(found - cov)[off].max() < 1e-15
    assert np.allclose(np.diagonal(found), 1 - m**2 - delta**2 / 20, atol=1e-15)
    assert classes.exact


@pytest.mark.parametrize("sign", [1, -1])
def test_covariance_between_spins_is_exact_in_either_class(spins, sign):
    m, delta, cov = spins
    mean = m + sign * delta / (2 * np.sqrt(5))
    h = norm.ppf((1 + mean) / 2)
    R = _latent.latent_correlation(h, cov)
    for i, j in itertools.combinations(range(5), 2):
        joint = multivariate_normal(cov=[[1, R[i, j]], [R[i, j], 1]]).cdf([h[i], h[j]])
        assert 4 * joint - (1 + mean[i]) * (1 + mean[j]) == pytest.approx(cov[i, j], abs=1e-6)
    X, y = synthetic.ising(m, delta, cov=cov).sample(20_000, 20_000, 5)
    centred = X[y == sign] - mean
    i, j = np.triu_indices(5, 1)
    assert deviation(centred[:, i] * centred[:, j], cov[i, j]) < 4.0


def test_both_conventions_of_the_diagonal_give_the_same_classes(spins):
    m, delta, cov = spins
    other = cov.copy()
    np.fill_diagonal(other, 1 - m**2 - delta**2 / 20)
    a, b = (synthetic.ising(m, delta, cov=c) for c in (cov, other))
    assert np.array_equal(covariance(a.moments), covariance(b.moments))
    assert np.array_equal(a.sample(10, 10, 0)[0], b.sample(10, 10, 0)[0])


def test_tied_spins():
    # correlation ±1 is on Fréchet's bound and on the edge of what a Gaussian can do
    cov = np.array([[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]])
    X, _ = synthetic.ising(m=0.0, delta=0.0, cov=cov).sample(100, 100, 0)
    assert (X[:, 0] == X[:, 1]).all()
    assert (X[:, 0] == -X[:, 2]).all()
    assert abs(X[:, 0].mean()) < 0.4


def test_correlated_with_a_spin_that_never_flips():
    cov = np.array([[0.84, 1e-17, 0.3], [1e-17, 0.0, 0.0], [0.3, 0.0, 0.84]])
    classes = synthetic.ising(m=[0.4, 1.0, 0.4], delta=0.0, cov=cov)
    check_moments(classes)
    assert (classes.sample(50, 50, 0)[0][:, 1] == 1.0).all()


def test_spins_beyond_reach():
    with pytest.raises(
        ValueError, match=r"m ± delta/\(2√L\) must be >= -1 and <= 1 in both classes, got values 0\.05 "
    ):
        synthetic.ising(m=0.8, delta=2.5, L=25)
    with pytest.raises(ValueError, match=r"cov must have the variances .* 0\.84 at spin 1, got 0\.9"):
        synthetic.ising(m=0.4, delta=0.0, cov=np.diag([0.84, 0.9, 0.84]))
    cov = np.eye(2) * [0.19, 1.0]
    cov[0, 1] = cov[1, 0] = -0.2
    with pytest.raises(ValueError, match=r"cov must be >= -0\.1 and <= 0\.1 for spins 0 and 1, .*Fréchet.*got -0\.2"):
        synthetic.ising(m=[0.9, 0.0], delta=0.0, cov=cov)
    cov = np.full((3, 3), -0.45) + 1.45 * np.eye(3)
    with pytest.raises(ValueError, match=r"cov must .* positive class must have no negative eigenvalue, got -0\.29"):
        synthetic.ising(m=0.0, delta=0.0, cov=cov)


# ---- states


def frequencies(rng, L, Q, shift=0.2):
    M = rng.dirichlet(3 * np.ones(Q), size=L)
    delta = rng.normal(size=(L, Q)) * shift * M
    return M, delta - M * delta.sum(axis=1, keepdims=True)


def test_independent_states():
    M, delta = frequencies(np.random.default_rng(6), 3, 4)
    classes = synthetic.potts(M, delta)
    check_moments(classes)
    assert classes.n_states == 4
    # block by block, as with a whole matrix
    cov = covariance(classes.moments)
    whole = rbal.Moments.potts(M, delta, cov=cov)
    assert np.allclose(classes.moments.eigenvalues, whole.eigenvalues, atol=1e-14)
    assert classes.moments.delta_sq.sum() == pytest.approx(np.sum(delta**2))


def test_states_tied_by_a_gaussian():
    rng = np.random.default_rng(7)
    classes = synthetic.potts(*frequencies(rng, 3, 3), correlation=random_correlation(rng, 3, 1))
    check_moments(classes, seed=1)
    assert classes.exact


def test_correlation_zero_is_independence():
    M, delta = frequencies(np.random.default_rng(8), 3, 4)
    tied = synthetic.potts(M, delta, correlation=np.eye(3))
    assert np.allclose(covariance(tied.moments), covariance(synthetic.potts(M, delta).moments), atol=1e-15)


def test_two_tied_states_are_spins():
    # s = 1 - 2·state, so that covariances are four times those of a state
    M, R = np.array([[0.7, 0.3], [0.5, 0.5]]), np.array([[1.0, 0.6], [0.6, 1.0]])
    tied = covariance(synthetic.potts(M, np.zeros((2, 2)), correlation=R).moments)
    m, cov = M[:, 0] - M[:, 1], 4 * tied[::2, ::2]
    found = _latent.latent_correlation(norm.ppf(M[:, 0]), cov)
    assert found == pytest.approx(R, abs=1e-13)
    spins = synthetic.ising(m, 0.0, cov=cov)
    assert np.allclose(covariance(spins.moments), cov, atol=1e-14)


def test_identical_sites():
    # a singular correlation, and a state that never occurs
    M = np.array([[0.2, 0.0, 0.8, 0.0]] * 2)
    classes = synthetic.potts(M, np.zeros_like(M), correlation=np.ones((2, 2)))
    X, _ = classes.sample(200, 200, 0)
    assert np.array_equal(X[:, 0], X[:, 1])
    assert set(np.unique(X)) == {0, 2}
    cov = covariance(classes.moments).reshape(2, 4, 2, 4)
    assert np.allclose(cov[0, :, 1], cov[0, :, 0], atol=1e-15)
    assert set(np.unique(synthetic.potts(M, np.zeros_like(M)).sample(500, 0, 0)[0])) == {0, 2}


# ---- Potts models


def potts_parameters(rng, L, Q, strength=0.5):
    fields, J = 0.5 * rng.normal(size=(L, Q)), strength * rng.normal(size=(L, Q, L, Q)) / np.sqrt(L)
    J = J + J.transpose(2, 3, 0, 1)
    J[np.arange(L), :, np.arange(L), :] = 0.0
    return fields, J


def naive_log_weight(s, fields, J):
    pairs = itertools.combinations(range(len(s)), 2)
    return sum(fields[i, s[i]] for i in range(len(s))) + sum(J[i, s[i], j, s[j]] for i, j in pairs)


def naive_distribution(fields, J):
    """Every configuration and its probability."""
    L, Q = fields.shape
    configurations = np.array(list(itertools.product(range(Q), repeat=L)))
    weights = np.exp([naive_log_weight(s, fields, J) for s in configurations])
    return configurations, weights / weights.sum()


def naive_sweep(X, fields, J, uniforms):
    """Each site from the ratio of the weights of whole configurations."""
    Q = fields.shape[1]
    for s, row in zip(X, uniforms, strict=True):
        for i, u in enumerate(row):
            trials = [np.r_[s[:i], t, s[i + 1 :]] for t in range(Q)]
            weights = np.exp([naive_log_weight(trial, fields, J) for trial in trials])
            s[i] = np.searchsorted(np.cumsum(weights) / weights.sum(), u, side="right")
    return X


def test_enumeration_against_a_list_of_all_configurations():
    fields, J = potts_parameters(np.random.default_rng(9), 3, 3)
    s, p = naive_distribution(fields, J)
    one_hot = np.eye(3)[s].reshape(len(s), -1)
    f, cov, exact = _gibbs.model_moments(fields, J, None, 0, None)
    assert exact
    assert np.allclose(f.ravel(), p @ one_hot, atol=1e-14)
    assert np.allclose(cov, one_hot.T * p @ one_hot - np.outer(f, f), atol=1e-14)


def test_sweep_against_its_twin():
    rng = np.random.default_rng(10)
    fields, J = potts_parameters(rng, 4, 3)
    X = rng.integers(3, size=(6, 4))
    twin, local = X.copy(), _gibbs.local_fields(X, fields, J)
    for _ in range(5):
        uniforms = rng.random((6, 4))
        _gibbs.sweep(X, local, J, uniforms)
        assert np.array_equal(X, naive_sweep(twin, fields, J, uniforms))
    assert np.allclose(local, _gibbs.local_fields(X, fields, J), atol=1e-13)


def test_equilibrium_does_not_drift():
    rng = np.random.default_rng(11)
    fields, J = potts_parameters(rng, 4, 3, strength=1.0)
    s, p = naive_distribution(fields, J)
    X = s[rng.choice(len(s), p=p, size=20_000)]
    _gibbs.advance(X, fields, J, 2, rng)
    code = X @ 3 ** np.arange(3, -1, -1)
    seen = np.eye(81)[code]
    assert deviation(seen, p) < 4.0


def test_potts_model_by_enumeration():
    rng = np.random.default_rng(12)
    fields, J = potts_parameters(rng, 4, 3)
    classes = synthetic.potts_model(fields, fields + 0.2 * rng.normal(size=(4, 3)), J, n_chains=20_000, burn_in=20)
    assert classes.exact
    assert classes.n_states == 3
    check_moments(classes)


def test_potts_model_with_two_sets_of_couplings_and_thinning():
    rng = np.random.default_rng(13)
    fields, J = potts_parameters(rng, 3, 2)
    classes = synthetic.potts_model(fields, fields, J, couplings_neg=np.zeros((6, 6)), n_chains=4000, burn_in=20)
    check_moments(classes)  # five samples a chain, far enough apart
    cov = 0.5 * sum(_gibbs.model_moments(fields, c, None, 0, None)[1] for c in (J, 0 * J))
    assert np.allclose(covariance(classes.moments), cov, atol=1e-14)


def test_moments_of_a_large_model_are_estimated(monkeypatch):
    fields, J = potts_parameters(np.random.default_rng(14), 4, 3)
    f, cov, _ = _gibbs.model_moments(fields, J, None, 0, None)
    monkeypatch.setattr(_gibbs, "ENUMERABLE", 80)
    classes = synthetic.potts_model(
        fields, fields, J, n_chains=2000, burn_in=20, n_moments=20_000, rng=1, progress=False
    )
    assert not classes.exact
    # 40,000 samples in all; a frequency has a standard error of at most 0.0025
    assert np.abs(classes.moments.M - f).max() < 0.01
    assert np.abs(covariance(classes.moments) - cov).max() < 0.01


def test_zero_sum_gauge_is_the_same_model():
    fields, J = potts_parameters(np.random.default_rng(15), 3, 3)
    gauged = _gibbs.zero_sum(fields, J)
    assert np.abs(gauged[0].sum(axis=1)).max() < 1e-14
    assert max(np.abs(gauged[1].sum(axis=axis)).max() for axis in (1, 3)) < 1e-14
    assert np.allclose(naive_distribution(*gauged)[1], naive_distribution(fields, J)[1], atol=1e-15)


@compiled
@pytest.mark.parametrize(("L", "Q", "strength"), [(6, 2, 1.0), pytest.param(4, 3, 0.6, marks=pytest.mark.slow)])
def test_boltzmann_learning_finds_the_model(L, Q, strength):
    fields, J = potts_parameters(np.random.default_rng(16), L, Q, strength)
    f, cov, _ = _gibbs.model_moments(fields, J, None, 0, None)
    between = np.kron(1 - np.eye(L), np.ones((Q, Q)))
    fit = synthetic.fit_potts_model(f, cov, n_chains=2000, n_iter=300, progress=False)
    assert fit.exact
    assert fit.residual < 0.005
    assert np.abs(cov * between).max() > 0.05  # there was something to find
    again, found, _ = _gibbs.model_moments(fit.fields, fit.couplings, None, 0, None)
    assert max(np.abs(again - f).max(), np.abs((found - cov) * between).max()) == pytest.approx(fit.residual, abs=1e-12)
    # the model with given moments is unique, up to a gauge
    true_fields, true_J = _gibbs.zero_sum(fields, J)
    assert np.abs(fit.couplings - true_J).max() < 0.1 * np.abs(true_J).max()
    assert np.abs(fit.fields - true_fields).max() < 0.1


@compiled
@pytest.mark.slow
def test_two_classes_with_prescribed_moments():
    rng = np.random.default_rng(17)
    M, delta = frequencies(rng, 3, 3)
    wanted = synthetic.potts(M, delta, correlation=random_correlation(rng, 3, 1))
    cov = covariance(wanted.moments)
    half = delta / (2 * np.sqrt(3))
    pos, neg = (synthetic.fit_potts_model(M + s * half, cov, n_iter=200, progress=False) for s in (1, -1))
    classes = synthetic.potts_model(pos.fields, neg.fields, pos.couplings, neg.couplings)
    residual = max(pos.residual, neg.residual)
    assert residual < 0.01
    assert np.abs(classes.moments.M - M).max() < residual + 1e-12
    between = np.kron(1 - np.eye(3), np.ones((3, 3)))
    assert np.abs((covariance(classes.moments) - cov) * between).max() < residual + 1e-12


def test_boltzmann_learning_says_when_it_fails():
    fields, J = potts_parameters(np.random.default_rng(18), 3, 2)
    f, cov, _ = _gibbs.model_moments(fields, J, None, 0, None)
    with pytest.warns(rbal.ConvergenceWarning, match=r"reached a residual of 0\.\d+ > tol = 1e-06"):
        synthetic.fit_potts_model(f, cov, n_chains=50, n_iter=2, tol=1e-6, progress=False)
    # two states cannot covary more than this: 0.25 at M = 0.5
    impossible = np.kron([[0.25, 0.4], [0.4, 0.25]], [[1, -1], [-1, 1]])
    with pytest.warns(rbal.ConvergenceWarning, match="unless no Potts model has these moments"):
        fit = synthetic.fit_potts_model(np.full((2, 2), 0.5), impossible, n_chains=100, n_iter=50)
    assert 0.15 <= fit.residual < 0.4


# ---- Gaussians, and the data of the paper


def test_gaussian_classes():
    rng = np.random.default_rng(19)
    F = rng.normal(size=(3, 3))
    check_moments(synthetic.gaussian(rng.normal(size=3), rng.normal(size=3), F @ F.T))
    check_moments(synthetic.gaussian(np.ones(2), np.zeros(2), np.array([0.5, 2.0])))


def test_singular_gaussian():
    rng = np.random.default_rng(20)
    F = rng.normal(size=(4, 2))
    classes = synthetic.gaussian(np.zeros(4), np.ones(4), F @ F.T)
    check_moments(classes)
    X, _ = classes.sample(50, 0, 0)
    assert np.linalg.matrix_rank(X, tol=1e-6) == 2
    with pytest.raises(ValueError, match=r"cov must have no negative eigenvalue, got -1"):
        synthetic.gaussian(np.zeros(2), np.ones(2), np.array([[0.0, 1.0], [1.0, 0.0]]))


def test_random_gaussian_is_that_of_the_book():
    classes = synthetic.random_gaussian(np.random.default_rng(4), L=10)
    rng = np.random.default_rng(4)  # as the chapter on solving the equations does it
    noise = rng.normal(size=(10, 20))
    assert np.allclose(covariance(classes.moments), noise @ noise.T / 20, atol=1e-12)
    assert np.allclose(classes.moments.delta, rng.normal(size=10), atol=1e-14)
    wide = synthetic.random_gaussian(0, L=200, ratio=3.0, scale=1.2).moments
    assert wide.delta.std() == pytest.approx(1.2, rel=0.2)
    edges = (1 - 3**-0.5) ** 2, (1 + 3**-0.5) ** 2
    assert wide.eigenvalues[[0, -1]] == pytest.approx(edges, abs=0.1)


def test_first_data_set_of_the_paper():
    classes = synthetic.d1()
    assert classes.L == 100
    assert (classes.moments.M == 0.4).all()
    assert (classes.moments.delta == 1.0).all()
    assert classes.moments.eigenvalues == pytest.approx(0.84 - 1 / 400)


def test_second_data_set_of_the_paper():
    mom = synthetic.d2(np.random.default_rng(0)).moments
    assert mom.M.shape == (200, 10)
    assert (mom.M.max(axis=1) / mom.M.min(axis=1)).max() <= 3.0
    assert np.allclose(mom.M.sum(axis=1), 1.0, atol=1e-14)
    first = mom.delta[:, :-1]
    assert first.min() >= 0.0
    assert first.max() <= 0.1
    assert abs(first.mean() - 0.05) < 4 * 0.1 / np.sqrt(12 * first.size)
    assert np.abs(mom.delta.sum(axis=1)).max() < 1e-14


def test_third_data_set_of_the_paper():
    mom = synthetic.d3(np.random.default_rng(0)).moments
    means = [10 * (mom.M + sign * mom.delta / (2 * np.sqrt(200))) for sign in (1, -1)]
    for mean, spread in zip(means, (0.1, 0.1 / 0.6), strict=True):
        assert np.allclose(mean.sum(axis=1), 10.0, atol=1e-12)
        # normalisation takes a tenth of the variance
        assert mean.std() == pytest.approx(spread * np.sqrt(0.9), rel=4 / np.sqrt(2 * 2000))


# ---- what all have in common

BUILDERS = {
    "ising": lambda: synthetic.ising(m=0.2, L=6),
    "correlated ising": lambda: synthetic.ising(m=0.0, delta=0.5, cov=0.8 * np.eye(6) + 0.2),
    "potts": lambda: synthetic.potts(np.full((6, 4), 0.25), np.zeros((6, 4))),
    "tied potts": lambda: synthetic.potts(np.full((6, 4), 0.25), np.zeros((6, 4)), 0.8 * np.eye(6) + 0.2),
    "potts model": lambda: synthetic.potts_model(*2 * [np.zeros((6, 2))], np.zeros((6, 2, 6, 2)), burn_in=2, thin=1),
    "gaussian": lambda: synthetic.gaussian(np.zeros(6), np.ones(6), np.eye(6)),
    "d1": synthetic.d1,
    "d2": lambda: synthetic.d2(0),
    "d3": lambda: synthetic.d3(0, L=6),
    "random gaussian": lambda: synthetic.random_gaussian(0, L=6),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_contract(name):
    classes = BUILDERS[name]()
    X, y = classes.sample(5, 8, np.random.default_rng(1))
    assert X.shape == (13, classes.L)
    assert np.array_equal(y, [1] * 5 + [-1] * 8)
    assert isinstance(classes.moments, rbal.Moments)
    assert classes.L == classes.moments.L
    if classes.n_states is None:
        assert X.dtype == float
        assert classes.moments.Q == 1
    else:
        assert np.issubdtype(X.dtype, np.integer)
        assert X.min() >= 0
        assert X.max() < classes.n_states == classes.moments.Q
    same, _ = pickle.loads(pickle.dumps(BUILDERS[name]())).sample(5, 8, 1)  # also a seed, and after a journey
    assert np.array_equal(X, same)
    assert not np.array_equal(X, classes.sample(5, 8, 2)[0])
    assert classes.sample(0, 3, 0)[0].shape == (3, classes.L)
    assert classes.sample(3, 0, 0)[0].shape == (3, classes.L)
    fitted = rbal.LinearSVM(n_states=classes.n_states).fit(X, y)
    assert fitted.order_parameters(classes.moments).q > 0.0


@pytest.mark.parametrize("name", synthetic.__all__)
def test_docstring_documents_exactly_the_parameters(name):
    function = getattr(synthetic, name)
    if name == "PottsFit":
        assert inspect.getdoc(function)
        return
    lines = FunctionDoc(function, doc=inspect.getdoc(function))["Parameters"]
    documented = [part.strip() for line in lines for part in line.name.split(",")]
    assert sorted(documented) == sorted(inspect.signature(function).parameters)


@pytest.mark.parametrize(
    ("n_pos", "n_neg", "rng", "error"),
    [
        (-1, 5, 0, "n_pos must be an integer >= 0, got -1"),
        (5, 2.0, 0, "n_neg must be an integer >= 0, got 2.0"),
        (True, 5, 0, "n_pos must be an integer >= 0, got True"),
        (0, 0, 0, "n_pos \\+ n_neg must be at least 1, got 0"),
        (1, 1, None, "rng must be a numpy.random.Generator or a seed .*, got None"),
        (1, 1, -3, "rng must be a numpy.random.Generator or a seed .*, got -3"),
    ],
)
def test_bad_sample(n_pos, n_neg, rng, error):
    with pytest.raises((ValueError, TypeError), match=error):
        synthetic.ising(L=5).sample(n_pos, n_neg, rng)


HALF, NONE = np.full((2, 2), 0.5), np.zeros((2, 2))
BAD = [
    (lambda: synthetic.ising(), "m, delta, cov and L must agree"),
    (lambda: synthetic.ising(L=0), "L must be a positive integer, got 0"),
    (lambda: synthetic.ising(m=np.nan, L=3), "m must be finite, got nan"),
    (lambda: synthetic.ising(m=1.5, L=3), "m must be >= -1 and <= 1, got 1.5"),
    (lambda: synthetic.ising(delta=np.inf, L=3), "delta must be finite, got inf"),
    (lambda: synthetic.ising(L=3, cov=np.eye(2)), "m, delta, cov and L must agree"),
    (lambda: synthetic.ising(L=2, cov=np.ones(2)), "cov must have 2 dimensions, got 1"),
    (lambda: synthetic.ising(cov=np.array([[1.0, 0.5], [0.0, 1.0]])), "cov must be symmetric"),
    (lambda: synthetic.ising(cov=np.array([[1.0, np.nan], [np.nan, 1.0]])), "cov must be finite, got nan"),
    (lambda: synthetic.potts(HALF - 0.1, NONE), "M must sum to 1 at each site, got 0.8"),
    (lambda: synthetic.potts([[1.2, -0.2]], [[0, 0]]), "M must be >= 0, got -0.2"),
    (lambda: synthetic.potts(HALF, np.zeros((2, 3))), r"delta must have the shape of M \(2, 2\), got \(2, 3\)"),
    (lambda: synthetic.potts(HALF, NONE + 0.1), "delta must sum to 0 at each site, got 0.2"),
    (lambda: synthetic.potts([[0.9, 0.1]], [[0.6, -0.6]]), r"M ± delta/\(2√L\) must be >= 0 and <= 1 .* 0.2 outside"),
    (lambda: synthetic.potts(HALF, NONE, np.eye(3)), r"correlation must have shape \(2, 2\), got \(3, 3\)"),
    (lambda: synthetic.potts(HALF, NONE, np.diag([1, 0.9])), "correlation must be symmetric with 1 on its diagonal"),
    (lambda: synthetic.potts(HALF, NONE, 3 * np.ones((2, 2)) - 2 * np.eye(2)), "correlation must be .* <= 1, got 3"),
    (
        lambda: synthetic.potts(np.full((3, 2), 0.5), np.zeros((3, 2)), 1.7 * np.eye(3) - 0.7),
        "correlation must have no negative eigenvalue, got -0.4",
    ),
    (lambda: synthetic.potts_model(NONE, np.zeros((3, 2)), np.eye(4)), "fields_neg must have the shape of fields_pos"),
    (lambda: synthetic.potts_model(NONE, NONE, np.eye(4)), "couplings must be symmetric and 0 within a site"),
    (
        lambda: synthetic.potts_model(NONE, NONE, np.eye(5)),
        r"couplings must have shape \(2, 2, 2, 2\) or \(4, 4\), got",
    ),
    (lambda: synthetic.potts_model(NONE, NONE * np.nan, np.eye(4)), "fields_neg must be finite, got nan"),
    (lambda: synthetic.potts_model(NONE[:, :1], NONE[:, :1], np.eye(2)), "fields_pos must have .* 2 states"),
    (lambda: synthetic.potts_model(NONE, NONE, np.zeros((4, 4)), n_chains=0), "n_chains must be a positive integer"),
    (lambda: synthetic.potts_model(NONE, NONE, np.zeros((4, 4)), thin=-1), "thin must be a positive integer"),
    (lambda: synthetic.potts_model(NONE, NONE, np.zeros((4, 4)), n_moments=0), "n_moments must be a positive integer"),
    (lambda: synthetic.fit_potts_model([[1.0, 0.0]] * 2, np.zeros((4, 4))), "M must be > 0 and <= 1, got 0"),
    (lambda: synthetic.fit_potts_model(HALF, np.zeros((3, 3))), r"cov must have shape \(4, 4\), got \(3, 3\)"),
    (lambda: synthetic.fit_potts_model(HALF, np.eye(4)), "cov must sum to 0 over the states"),
    (lambda: synthetic.fit_potts_model(HALF, np.zeros((4, 4)), sweeps=0), "sweeps must be a positive integer"),
    (lambda: synthetic.fit_potts_model(HALF, np.zeros((4, 4)), tol=0.0), "tol must be > 0, got 0"),
    (lambda: synthetic.gaussian([0.0], [1.0, 2.0], [1.0]), "mean_neg must have the shape of mean_pos"),
    (lambda: synthetic.gaussian([0.0], [1.0], [-1.0]), "cov must be >= 0, got -1"),
    (lambda: synthetic.d1(L=-5), "L must be a positive integer, got -5"),
    (lambda: synthetic.d2(0, Q=1), "at least 1 site and 2 states"),
    (lambda: synthetic.d3("seed"), "rng must be a numpy.random.Generator or a seed .*, got 'seed'"),
    (lambda: synthetic.random_gaussian(0, L=2.5), "L must be a positive integer, got 2.5"),
    (lambda: synthetic.random_gaussian(0, ratio=0.0), "ratio must be > 0, got 0"),
]


@pytest.mark.parametrize(("build", "error"), BAD, ids=[error for _, error in BAD])
def test_bad_input(build, error):
    with pytest.raises((ValueError, TypeError), match=error):
        build()


@compiled
def test_speed():
    rng = np.random.default_rng(0)
    m = rng.uniform(-0.3, 0.3, size=100)
    cov = spin_covariance(rng, m)
    data = synthetic.d2(rng)
    synthetic.ising(m[:2], 1.0, cov=cov[:2, :2]), data.sample(1, 1, rng)  # compile
    start = time.process_time()
    synthetic.ising(m, 1.0, cov=cov)
    latent = time.process_time()
    data.sample(2500, 2500, rng)
    assert latent - start < 0.5
    assert time.process_time() - latent < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(("alpha_pos", "alpha_neg"), [(2.0, 2.0), (1.0, 4.0)])
def test_trained_on_correlated_spins_it_lands_on_the_theory(alpha_pos, alpha_neg):
    rng = np.random.default_rng(21)
    L, kappa = 100, 1.0
    m, delta = np.full(L, 0.2), rng.normal(1.0, 0.5, size=L)
    classes = synthetic.ising(m, delta, cov=spin_covariance(rng, m, samples=2))
    sol = rbal.solve(classes.moments, alpha_pos, alpha_neg, kappa)
    found = []
    for _ in range(10):
        X, y = classes.sample(round(alpha_pos * L), round(alpha_neg * L), rng)
        found.append(rbal.SphericalPerceptron(kappa=kappa).fit(X, y).order_parameters(classes.moments))
    # beyond the error of ten trials, finite size shifts them by O(1/L)
    error = np.std(found, axis=0, ddof=1) / np.sqrt(10)
    miss = np.mean(found, axis=0) - [sol.q, sol.r, sol.b]
    assert (np.abs(miss) < 4 * error + 2 / L).all()
    # and the correlations matter: independent spins are predicted elsewhere
    plain = rbal.solve(rbal.Moments.ising(m, delta), alpha_pos, alpha_neg, kappa)
    assert abs(np.mean(found, axis=0)[0] - plain.q) > 4 * error[0] + 2 / L
