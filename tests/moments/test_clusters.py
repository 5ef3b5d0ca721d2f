"""Mixtures: what is given, what is estimated, which level it is, and what bad input is told."""

import numpy as np
import pytest

import rbal
from rbal.moments._blocks import Dense, Diagonal, LowRank, check_room, reduced

RNG = np.random.default_rng(0)
MEANS = RNG.normal(size=(3, 4))
F = RNG.normal(size=(3, 4, 8))
COVS = F @ F.transpose(0, 2, 1) / 8
LABELS = [1, 1, -1]


def test_levels():
    def level(covs, **options):
        return rbal.Mixture.gaussian(MEANS, covs, LABELS, **options).level

    U = np.linalg.qr(RNG.normal(size=(4, 4)))[0]
    assert level(COVS[0]) == level(np.ones(4)) == level(np.stack([COVS[0]] * 3)) == "one covariance"
    assert level(COVS[0], widths=[1.0, 2.0, 3.0]) == "widths"
    assert level(np.stack([COVS[0], 2.0 * COVS[0], 0.3 * COVS[0]])) == "widths"
    assert level(RNG.uniform(0.5, 1.0, (3, 4))) == "commuting"
    assert level(U @ (RNG.uniform(0.5, 1.0, (3, 4, 1)) * U.T)) == "commuting"
    assert level(COVS) == "any"


def test_commuting_matrices_with_equal_eigenvalues():
    # a basis for both: neither matrix alone has one
    U = np.linalg.qr(RNG.normal(size=(4, 4)))[0]
    spectra = np.array([[1.0, 1.0, 2.0, 2.0], [1.0, 3.0, 1.0, 3.0]])
    block = reduced([U @ np.diag(lam) @ U.T for lam in spectra], np.zeros((2, 4)), 4)
    assert isinstance(block, Diagonal)
    assert {tuple(lam) for lam in block.lam.T.round(9)} == {tuple(lam) for lam in spectra.T}


def test_attributes():
    mix = rbal.Mixture.gaussian(MEANS, COVS, ["a", "a", "b"], shares=[0.25, 0.75, 1.0])
    assert (mix.L, mix.Q, mix.positive, mix.classes.tolist()) == (4, 1, "b", ["a", "b"])
    assert mix.signs.tolist() == [-1.0, -1.0, 1.0]
    np.testing.assert_allclose(mix.M, 0.5 * (0.25 * MEANS[0] + 0.75 * MEANS[1] + MEANS[2]))
    np.testing.assert_allclose(mix.covariance(1), COVS[1])
    assert rbal.Mixture.gaussian(MEANS, COVS, ["a", "a", "b"], positive="a").signs.tolist() == [1.0, 1.0, -1.0]


def test_three_classes_are_not_for_one_classifier():
    mix = rbal.Mixture.gaussian(MEANS, COVS, [0, 1, 2])
    assert (mix.classes.size, mix.positive) == (3, None)
    with pytest.raises(ValueError, match=r"labels must be two for one classifier, got 3: \[0, 1, 2\]"):
        rbal.solve(mix, 1.0, 1.0, model="svm", lam=1.0)


def test_equal_directions_are_merged():
    # isotropic clusters: only the inner products of the centres matter
    centres = np.random.default_rng(1).normal(size=(3, 50))
    block = reduced([np.ones(50)], centres, 50)
    assert block.lam.shape == (1, 3)
    assert block.g.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(block.v @ block.v.T, centres @ centres.T)


def test_directions_that_never_vary_are_counted():
    lam, v = np.r_[np.ones(3), np.zeros(4)], np.zeros((2, 7))
    v[0, 3], v[1, 3] = 1.0, -1.0  # one of them separates
    block = reduced([lam, 2.0 * lam + np.r_[1.0, np.zeros(6)]], v, 7)
    assert block.g_null == pytest.approx(3 / 7)
    U = np.linalg.qr(np.random.default_rng(1).normal(size=(7, 7)))[0]
    A, B = (F @ F.T for F in np.random.default_rng(2).normal(size=(2, 3, 5)))
    inside = U[:, :3]
    dense = reduced([inside @ A @ inside.T, inside @ B @ inside.T], v @ U.T, 7)
    assert isinstance(dense, Dense)
    assert dense.g_null == pytest.approx(3 / 7)
    np.testing.assert_allclose(dense.v @ dense.v.T, v @ v.T, atol=1e-12)


@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_few_rows(floor):
    # within the span of rows and centres, and the same outside of it
    rng = np.random.default_rng(3)
    D, v = 40, rng.normal(size=(2, 40))
    covs = [LowRank(rng.normal(size=(6, D)), floor), LowRank(rng.normal(size=(5, D)), 2.0 * floor)]
    few = reduced(covs, v, D)
    assert few.C.shape[1] == 13
    full = Dense(np.stack([c.rows.T @ c.rows + c.floor * np.eye(D) for c in covs]), v, D)
    np.testing.assert_allclose(few.traces(), full.traces())
    q_hat, m_hat = np.array([0.7, 1.3]), np.array([0.5, -0.5])
    for a, b in zip(few.under_ridge(q_hat, m_hat, 0.5), full.under_ridge(q_hat, m_hat, 0.5), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


@pytest.mark.parametrize("model", [{"model": "svm", "lam": 0.2}, {"kappa": 0.5}])
def test_few_rows_solve_as_many_columns(model):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(24, 40)) * np.linspace(0.5, 1.5, 40), np.repeat([1, -1], [10, 14])
    X[y > 0] += 0.4
    mix = rbal.Mixture.from_data(X, y)
    assert mix.blocks.C.shape[1] < 40
    covs = np.stack([mix.covariance(c) for c in range(2)])
    sizes = {"alpha_pos": 0.5, "alpha_neg": 0.7}
    a = rbal.solve(mix, **sizes, **model)
    b = rbal.solve(rbal.Mixture.gaussian(mix.means, covs, mix.labels), **sizes, **model)
    assert (a.phase, a.converged) == (b.phase, b.converged)
    np.testing.assert_allclose([*a.q, *a.m, a.b], [*b.q, *b.m, b.b], rtol=1e-7, atol=1e-9)


# ---- estimates


def test_shared_covariance_is_that_of_moments():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(50, 6)), np.repeat([1, 0], [20, 30])
    mix = rbal.Mixture.from_data(X, y, covariance="shared")
    mom = rbal.Moments.from_data(X[y == 1], X[y == 0])
    np.testing.assert_allclose(mix.covariance(0), mom._covariance)
    for model in ({"model": "svm", "lam": 0.3}, {"kappa": 0.5}):
        a, b = rbal.solve(mix, 2.0, 3.0, **model), rbal.solve(mom, 2.0, 3.0, **model)
        assert (a.r, a.b) == (pytest.approx(b.r, rel=1e-9), pytest.approx(b.b, rel=1e-9))


def test_own_covariances_and_widths():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(300, 5)), np.repeat(["rare", "many"], [100, 200])
    X[y == "rare"] *= 2.0
    own = rbal.Mixture.from_data(X, y)
    assert (own.positive, own.level) == ("rare", "any")
    for c, label in enumerate(own.labels):
        np.testing.assert_allclose(own.covariance(c), np.cov(X[y == label].T))
        np.testing.assert_allclose(own.means[c], X[y == label].mean(axis=0))
    width = rbal.Mixture.from_data(X, y, covariance="width")
    assert width.level == "widths"
    for c in range(2):
        assert np.trace(width.covariance(c)) == pytest.approx(np.trace(own.covariance(c)))


def test_parts_of_a_class():
    rng = np.random.default_rng(7)
    part = rng.integers(0, 3, 400)
    y = np.repeat([1, 0], 200)
    X = rng.normal(size=(400, 4)) + 8.0 * np.eye(4)[part]
    given = rbal.Mixture.from_data(X, y, clusters=part)
    found = rbal.Mixture.from_data(X, y, clusters=3)
    assert given.labels.tolist() == found.labels.tolist() == [0, 0, 0, 1, 1, 1]
    for label in (0, 1):
        a, b = (np.sort(mix.shares[mix.labels == label]) for mix in (given, found))
        np.testing.assert_allclose(a, b)
        assert a.sum() == pytest.approx(1.0)


def test_one_hot_data():
    rng = np.random.default_rng(8)
    X, y = rng.integers(0, 3, (90, 5)), np.repeat([1, 0], [40, 50])
    mix = rbal.Mixture.from_data(X, y, n_states=3, covariance="shared")
    mom = rbal.Moments.from_data(X[y == 1], X[y == 0], n_states=3)
    assert (mix.L, mix.Q, mix.means.shape) == (5, 3, (2, 5, 3))
    np.testing.assert_allclose(mix.M, mom.M)
    a, b = rbal.solve(mix, 2.0, 3.0, 0.5), rbal.solve(mom, 2.0, 3.0, 0.5)
    assert (a.r, a.q[0]) == (pytest.approx(b.r, rel=1e-9), pytest.approx(b.q, rel=1e-9))


def test_sample_has_the_moments():
    mix = rbal.Mixture.gaussian(MEANS, COVS, LABELS, shares=[0.25, 0.75, 1.0])
    X, y = mix.sample(40_000, 10_000, random_state=0)
    assert (np.sum(y == 1), np.sum(y == -1)) == (40_000, 10_000)
    error = 5.0 * np.sqrt(np.abs(COVS[2]).max() / 10_000)
    np.testing.assert_allclose(X[y == -1].mean(axis=0), MEANS[2], atol=error)
    np.testing.assert_allclose(np.cov(X[:10_000].T), COVS[0], atol=0.1)


# ---- bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"covs": np.ones((2, 4))}, r"covs must have shape \(4,\), \(4, 4\), \(3, 4\) or \(3, 4, 4\), got \(2, 4\)"),
        ({"covs": COVS - 2.0 * np.eye(4)}, "covs must have no negative eigenvalue, got -.* in cluster 0"),
        ({"covs": -np.ones(4)}, "covs must be >= 0, got -1"),
        ({"covs": np.zeros((3, 4))}, "covs must not be zero, got nothing that varies in cluster 0"),
        ({"covs": COVS + np.triu(np.ones((4, 4)))}, "covs must be symmetric"),
        ({"labels": [1, -1]}, r"labels must have one entry for each of the 3 clusters, got shape \(2,\)"),
        ({"labels": [1.0, np.nan, -1.0]}, "labels must not be missing, got nan"),
        ({"shares": [0.5, 0.6, 1.0]}, "shares must sum to 1 in each class, got 1.1 in class"),
        ({"shares": [1.0, 0.0, 1.0]}, "shares must be > 0, got 0"),
        ({"widths": [1.0, 2.0, 3.0]}, "widths must go with one covariance for all clusters, got 3 covariances"),
        ({"positive": 7}, "positive must be one of -1, 1, got 7"),
        ({"means": MEANS[0]}, "means must have 2 dimensions, got 1"),
    ],
)
def test_what_is_given_wrongly(change, message):
    given = {"means": MEANS, "covs": COVS, "labels": LABELS, **change}
    with pytest.raises(ValueError, match=message):
        rbal.Mixture.gaussian(**given)


def test_covariances_too_large_for_memory():
    with pytest.raises(ValueError, match="must leave arrays of at most 268,435,456 numbers, got 10 covariances of 9,0"):
        check_room("covs", 10, 9_000)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clusters": [0] * 9 + [1]}, "clusters must have at least 2 rows each, got 1 in one of class 1"),
        ({"clusters": 4}, "clusters must leave at least 2 rows each, got 4 for 5 rows of class 0"),
        ({"clusters": 0}, "clusters must be a positive integer, got 0"),
        ({"covariance": "full"}, "covariance must be one of 'own', 'shrunk', 'width', 'shared', got 'full'"),
        ({"y": [0, 1]}, r"y must have one entry for each of the 10 rows, got shape \(2,\)"),
        ({"X": np.ones((10, 3))}, "X must vary within every cluster, got equal rows in one of class 0"),
    ],
)
def test_what_is_estimated_wrongly(change, message):
    given = {"X": np.random.default_rng(9).normal(size=(10, 3)), "y": np.repeat([0, 1], 5), **change}
    with pytest.raises(ValueError, match=message):
        rbal.Mixture.from_data(**given)


@pytest.mark.parametrize(
    ("labels", "message"),
    [([1, "a"], "y must hold labels of one kind, got int and str"), ([1, None], "y must not be missing, got None")],
)
def test_labels_that_cannot_be_told_apart_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        rbal.Mixture.from_data(RNG.normal(size=(40, 3)), np.array(labels * 20, object))


@pytest.mark.parametrize("covariance", ["own", "shrunk", "width", "shared"])
def test_rows_whose_squares_are_lost_are_refused(covariance):
    with pytest.raises(ValueError, match="X must vary by 1e-75 or more"):
        rbal.Mixture.from_data(1e-300 * RNG.normal(size=(40, 3)), [0, 1] * 20, covariance=covariance)
