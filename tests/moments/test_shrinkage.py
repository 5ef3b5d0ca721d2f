"""Mixtures from few rows: covariances drawn to the pooled one, centres without their noise, the number of parts."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

import rbal
from rbal.moments._few_rows import half_seen, intensities, shrunk, units_of, units_of_rows
from rbal.moments._parts import number_of_parts

SVM = {"alpha_pos": 0.5, "alpha_neg": 2.0, "model": "svm", "lam": 0.3}


def truth(kind, D=40, seed=1):
    """Two classes with covariances that are equal, multiples of each other, or turned."""
    rng = np.random.default_rng(seed)
    lam, turn = np.geomspace(0.05, 5.0, D), rng.normal(size=(D, D)) / np.sqrt(D)
    U = np.linalg.qr(rng.normal(size=(D, D)))[0]
    V = expm(0.5 * (turn - turn.T)) @ U
    C = U @ np.diag(lam) @ U.T
    covs = {"equal": C, "widths": 2.0 * C, "own": V @ np.diag(lam * np.exp(0.5 * rng.normal(size=D))) @ V.T}
    half = 1.25 * rng.normal(size=D) / np.sqrt(D)
    return rbal.Mixture.gaussian(np.stack([half, -half]), np.stack([covs[kind], C]), [1, -1])


def roots_of(X, y):
    return [(X[y == k] - X[y == k].mean(axis=0)) / np.sqrt(np.sum(y == k) - 1.0) for k in np.unique(y)]


# ---- intensities


def test_half_of_the_directions_are_seen():
    values = np.sort(np.random.default_rng(0).lognormal(size=30) ** 3)
    expected = brentq(lambda z: np.mean(values / (z + values)) - 0.5, 1e-9, 1e9, xtol=1e-14)
    assert half_seen(values) == pytest.approx(expected, rel=1e-9)
    assert half_seen(np.full(5, 2.0)) == pytest.approx(2.0)


def test_intensity_is_the_best_one():
    # the oracle knows the true covariances, and minimises the mean squared distance from them over many draws
    mix, draws = truth("own", D=12), 400
    C = [mix.covariance(1), mix.covariance(0)]  # in the order of the sorted labels
    n = np.array([60, 30])
    pool = (n - 1) / (n - 1).sum()
    units = units_of(*np.linalg.eigh(pool[0] * C[0] + pool[1] * C[1]))
    rng, above, below, found = np.random.default_rng(3), np.zeros(2), np.zeros(2), np.zeros((draws, 2))
    for k in range(draws):
        roots = roots_of(*mix.sample(30, 60, rng))
        S = [units.T @ F.T @ F @ units for F in roots]
        P = pool[0] * S[0] + pool[1] * S[1]
        how = intensities(roots, pool, units)
        found[k] = how.intensity
        for c in range(2):
            gap = S[c] - how.width[c] * P
            above[c] += np.sum((S[c] - units.T @ C[c] @ units) * gap)
            below[c] += np.sum(gap**2)
    np.testing.assert_allclose(found.mean(axis=0), above / below, rtol=0.15)  # a ratio of means, and the mean of ratios


def test_equal_covariances_are_pooled():
    mix, rng = truth("equal"), np.random.default_rng(4)
    how = [shrunk(roots_of(*mix.sample(30, 60, rng)))[1] for _ in range(30)]
    assert np.mean([h.intensity for h in how]) > 0.9
    np.testing.assert_allclose(np.mean([h.width for h in how], axis=0), 1.0, atol=0.05)


def test_many_rows_keep_their_own():
    # what is left of the pooled covariance falls like 1/n
    mix, rng = truth("own"), np.random.default_rng(5)
    few, many = (shrunk(roots_of(*mix.sample(n, n, rng)))[1].intensity for n in (500, 5_000))
    np.testing.assert_allclose(many, 0.1 * few, rtol=0.25)
    assert many.max() < 0.05


def test_widths_are_seen_before_shapes():
    mix, rng = truth("widths"), np.random.default_rng(6)
    how = [shrunk(roots_of(*mix.sample(30, 60, rng)))[1] for _ in range(20)]
    ratio = np.mean([h.width[1] / h.width[0] for h in how])
    assert 1.4 < ratio < 2.0  # drawn to 1, by the noise of 30 rows


def test_few_rows_are_the_same_numbers():
    # fewer rows than columns: the same covariances as by matrices
    X, y = truth("own", D=60).sample(12, 20, np.random.default_rng(7))
    mix = rbal.Mixture.from_data(X, y, covariance="shrunk")
    roots = roots_of(X, y)
    own, pool = [F.T @ F for F in roots], np.array([19, 11]) / 30
    pooled = pool[0] * own[0] + pool[1] * own[1]
    how = intensities(roots, pool, units_of(*np.linalg.eigh(pooled)))
    np.testing.assert_allclose(mix.intensity, how.intensity, rtol=1e-9)
    rows = np.concatenate([np.sqrt(p) * F for p, F in zip(pool, roots, strict=True)])
    np.testing.assert_allclose(intensities(roots, pool, units_of_rows(rows)).width, how.width, rtol=1e-9)
    for c, (rho, w) in enumerate(zip(*how, strict=True)):
        np.testing.assert_allclose(mix.covariance(c), (1.0 - rho) * own[c] + rho * w * pooled, atol=1e-12)
    assert mix.counts.tolist() == [20, 12]


@pytest.mark.parametrize("kind", ["equal", "widths", "own"])
def test_nothing_is_lost_against_pooled(kind):
    # error of the predicted balanced accuracy, from the exact solution of the true mixture; both see the same rows
    mix = truth(kind)
    exact = rbal.solve(mix, **SVM).metrics.ba()
    for n, draws in ((20, 60), (80, 40), (400, 24)):
        off = {"shared": [], "shrunk": []}
        for seed in range(draws):
            X, y = mix.sample(n, 2 * n, seed)
            for covariance, errors in off.items():
                found = rbal.Mixture.from_data(X, y, covariance=covariance, positive=1).debiased()
                errors.append(abs(rbal.solve(found, **SVM).metrics.ba() - exact))
        loss = np.subtract(off["shrunk"], off["shared"])
        error = loss.std(ddof=1) / np.sqrt(draws)
        assert error < 0.002  # a loss of a hundredth would be seen
        assert loss.mean() < 0.001 + 3.0 * error
        if kind == "widths":  # the first rows show that one class is wider
            assert np.mean(off["shrunk"]) < np.mean(off["shared"]) - 0.005


# ---- centres


@pytest.mark.parametrize("n", [(30, 50), (300, 500)])
def test_two_classes_lose_what_moments_lose(n):
    X, y = truth("equal").sample(*n, np.random.default_rng(8))
    mix = rbal.Mixture.from_data(X, y, covariance="shared", positive=1).debiased(band=10)
    mom = rbal.Moments.from_data(X[y == 1], X[y == -1]).debiased(*n, band=10)
    np.testing.assert_allclose(mix.means[1] - mix.means[0], mom.delta / np.sqrt(mom.L), atol=1e-9)
    np.testing.assert_allclose(mix.M, mom.M, atol=1e-12)


def test_centres_of_one_cloud_come_together():
    rng, D = np.random.default_rng(9), 60
    scale, before, after = np.geomspace(0.3, 3.0, D), [], []
    for _ in range(20):
        X, part = scale * rng.normal(size=(2000, D)), np.repeat([0, 1, 2, 3], 500)
        mix = rbal.Mixture.from_data(X, part % 2, part, "shared")
        for out, m in ((before, mix), (after, mix.debiased(band=60))):
            out.append(np.sum(((m.means - m.M) / scale) ** 2))
    assert np.mean(before) == pytest.approx(60 * 3 / 500, rel=0.1)  # K - 1 differences of means of 500 rows
    assert np.mean(after) < 0.15 * np.mean(before)


def test_centres_far_apart_stay():
    rng = np.random.default_rng(10)
    centres = 5.0 * rng.normal(size=(3, 20))
    mix = rbal.Mixture.gaussian(centres, np.ones(20), [1, 1, -1])
    found = mix.debiased([100, 100, 200])
    np.testing.assert_allclose(found.means, centres, atol=0.1)
    np.testing.assert_array_equal(found.covariance(0), mix.covariance(0))
    with pytest.raises(ValueError, match="counts must be given for a mixture that was not estimated from rows"):
        mix.debiased()
    with pytest.raises(ValueError, match="counts must have one entry for each of the 3 clusters"):
        mix.debiased([100, 200])


def test_one_hot_centres_keep_their_sums():
    rng = np.random.default_rng(11)
    X, y = rng.integers(0, 3, (60, 5)), np.repeat([1, 0], [20, 40])
    mix = rbal.Mixture.from_data(X, y, n_states=3, covariance="shrunk").debiased()
    np.testing.assert_allclose(mix.means.sum(axis=2), 1.0)
    plain = rbal.Mixture.from_data(X, y, n_states=3, covariance="shared")
    mom = rbal.Moments.from_data(X[y == 1], X[y == 0], n_states=3).debiased(20, 40)
    delta = plain.debiased().means
    np.testing.assert_allclose(np.sqrt(5) * (delta[1] - delta[0]), mom.delta, atol=1e-9)


# ---- parts


def test_as_many_parts_as_there_are():
    rng, D = np.random.default_rng(12), 15
    one = rng.normal(size=(400, D)) * np.geomspace(0.3, 3.0, D)
    centres = 6.0 * rng.normal(size=(4, D)) / np.sqrt(D)
    four = centres[rng.integers(0, 4, 400)] + 0.7 * rng.normal(size=(400, D))
    assert number_of_parts(one, 0) == 1
    assert number_of_parts(four, 0) == 4
    mix = rbal.Mixture.from_data(np.r_[one, four], np.repeat([0, 1], 400), "auto", "shrunk")
    assert mix.labels.tolist() == [0, 1, 1, 1, 1]


def test_few_rows_are_one_part():
    rng = np.random.default_rng(13)
    assert number_of_parts(rng.normal(size=(6, 50)), 0) == 1
    assert number_of_parts(rng.normal(size=(90, 200)), 0) == 1  # more columns than rows
    mix = rbal.Mixture.from_data(rng.normal(size=(7, 4)), np.repeat([0, 1], [3, 4]), "auto")
    assert mix.labels.tolist() == [0, 1]
    with pytest.raises(ValueError, match="clusters must be a number, 'auto' or the part of each row, got 'many'"):
        rbal.Mixture.from_data(rng.normal(size=(7, 4)), np.repeat([0, 1], [3, 4]), "many")
