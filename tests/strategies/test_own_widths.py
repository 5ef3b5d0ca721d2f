"""Kernel machines of classes that differ in width: against one covariance, the exact mixture and trained machines."""

import numpy as np
import pytest
from sklearn.svm import SVC

import rbal
from rbal import kernels
from rbal.moments._kernel import seen_at
from rbal.strategies import REMEDIES, own_widths

D, N_POS, N_NEG, C = 150, 60, 180, 0.1
LAM = np.arange(1, D + 1) ** -0.5
SHIFT = np.where(np.arange(D) % 2 == 0, 0.35, 0.0) * np.sqrt(LAM)
WEIGHTS = REMEDIES["class weights"].weights(N_POS, N_NEG)
OPTIONS = {"weight_pos": WEIGHTS[0], "weight_neg": WEIGHTS[1]}


def drawn(rng, wider, n_pos=N_POS, n_neg=N_NEG):
    """Rows of two Gaussian classes, the positive one with standard deviations ``wider`` times as large."""
    y = np.repeat([1, -1], [n_pos, n_neg])
    X = rng.normal(size=(y.size, D)) * np.sqrt(LAM) * np.where(y > 0, wider, 1.0)[:, None]
    X[y > 0] += SHIFT
    return X, y


def told(X, y, leverages):
    mom = rbal.Moments.from_kernel(X @ X.T, y)
    return own_widths(mom, mom.alpha_pos, mom.alpha_neg, lam=mom.ridge(C), leverages=leverages, **OPTIONS)


def test_equal_widths_are_one_covariance():
    X, y = drawn(np.random.default_rng(1), 1.0)
    mom = rbal.Moments.from_kernel(X @ X.T, y)
    lam = mom.ridge(C)
    one = rbal.solve(mom, mom.alpha_pos, mom.alpha_neg, model="svm", lam=lam, **OPTIONS)
    two = rbal.solve(mom.mixture(), mom.alpha_pos, mom.alpha_neg, model="svm", lam=lam, **OPTIONS)
    np.testing.assert_allclose([two.q[0], two.q[1], two.r, two.b], [one.q, one.q, one.r, one.b], rtol=1e-7)
    assert mom.mixture().level == "one covariance"
    np.testing.assert_allclose(mom.widths(one), mom.widths(two), rtol=1e-6)
    pooled = ((N_POS - 1) * mom.widths(one)[0] + (N_NEG - 1) * mom.widths(one)[1]) / (N_POS + N_NEG - 2)
    assert pooled == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("wider", [0.6, 1.0, 1.8])
def test_gaussian_classes_of_two_widths(wider):
    """Gram matrices give what the true mixture gives; and that is what trained machines do."""
    means = np.array([SHIFT, np.zeros(D)])
    truth = rbal.Mixture.gaussian(means, LAM, [1, -1], widths=[wider**2, 1.0])
    exact = rbal.solve(truth, N_POS / D, N_NEG / D, model="svm", lam=1.0 / (C * D), **OPTIONS)
    found = []
    for seed in (2, 3, 4):
        rng = np.random.default_rng(seed)
        T, y_test = drawn(rng, wider, 2000, 2000)
        for _ in range(6):
            X, y = drawn(rng, wider)
            sol, other = (told(X, y, leverages) for leverages in ("rows", "class"))
            clf = SVC(kernel="linear", C=C, class_weight="balanced").fit(X, y)
            right = clf.predict(T) == y_test
            found.append((sol.metrics.ba(), right.mean(), other.metrics.ba(), np.log(sol.q[0] / sol.q[1])))
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    ba = exact.metrics.ba()
    assert abs(mean[0] - ba) < 5.0 * error[0]
    assert abs(mean[1] - ba) < 5.0 * np.hypot(error[1], 0.5 / np.sqrt(3 * 4000))
    assert abs(mean[2] - ba) < 5.0 * error[2]
    assert abs(mean[3] - 2.0 * np.log(wider)) < 5.0 * error[3]


@pytest.mark.parametrize("z", [0.05, 0.5, 5.0])
@pytest.mark.parametrize("features", [100, 400])
def test_argument_of_a_sample(features, z):
    """ẑ(ẑ + Ĉ)⁻¹ is z(z + C)⁻¹ on average, z/(1 + z) for C = 1."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(300, features)), np.repeat([1, -1], [100, 200])
    sample = rbal.Moments.from_kernel(X @ X.T, y).sample
    z_hat = seen_at(sample, z)
    part = (z_hat / (z_hat + sample.values)).sum() + features - sample.values.size  # ẑ/ẑ where the sample has nothing
    if z_hat > 1e-5 * sample.values[-1]:
        assert part / features == pytest.approx(z / (1.0 + z), rel=0.02)
    else:  # fewer rows than features: below this z the resolvents of samples are those of ẑ = 0
        assert features > 298
        assert part / features > z / (1.0 + z)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3, 1e6])
def test_a_narrow_kernel_and_a_large_C_do_no_harm(C):
    X, y = drawn(np.random.default_rng(6), 1.5, 8, 40)
    mom = kernels.moments(X, y, "rbf", gamma=0.1)
    sol = own_widths(mom, mom.alpha_pos, mom.alpha_neg, lam=mom.ridge(C), **OPTIONS)
    assert sol.converged
    assert 0.4 < sol.metrics.ba() < 1.0


def test_widths_where_no_row_is_beyond_its_margin():
    """There the weights are the difference of the means, and no row has a leverage: nothing to correct but noise."""
    found = []
    for seed in range(8):
        X, y = drawn(np.random.default_rng([7, seed]), 1.8)
        mom = rbal.Moments.from_kernel(X @ X.T, y)
        for ridge in (mom.ridge(1e-6), mom.ridge(1e-9)):
            sol = own_widths(mom, mom.alpha_pos, mom.alpha_neg, lam=ridge, leverages="rows", **OPTIONS)
            assert sol.converged
            found.append(np.log(sol.q[0] / sol.q[1]))
    found = np.reshape(found, (8, 2))
    np.testing.assert_allclose(found[:, 0], found[:, 1], atol=1e-3)
    error = found[:, 0].std(ddof=1) / np.sqrt(8)
    assert abs(found[:, 0].mean() - 2.0 * np.log(1.8)) < 5.0 * error


def test_a_collapsed_machine_has_no_widths():
    X, y = drawn(np.random.default_rng(3), 1.5)
    mom = rbal.Moments.from_kernel(X @ X.T, y)
    sol = own_widths(mom, mom.alpha_pos, mom.alpha_neg, lam=mom.ridge(1e-5))
    if sol.phase == "COLLAPSED":
        assert mom.widths(sol) == (1.0, 1.0)
    assert sol.metrics.ba() == pytest.approx(0.5, abs=0.02)


def test_bad_input():
    X, y = drawn(np.random.default_rng(4), 1.0)
    mom = rbal.Moments.from_kernel(X @ X.T, y)
    with pytest.raises(TypeError, match="moments must be KernelMoments, got Moments"):
        own_widths(rbal.Moments.ising(L=10), 1.0, 1.0, lam=0.1)
    with pytest.raises(ValueError, match="rounds must be a positive integer, got 0"):
        own_widths(mom, 0.2, 0.8, lam=0.1, rounds=0)
    with pytest.raises(ValueError, match="leverages must be one of 'class', 'rows', got 'mean'"):
        own_widths(mom, 0.2, 0.8, lam=0.1, leverages="mean")
    some = kernels.moments(X, y, "rbf", landmarks=40)
    with pytest.raises(ValueError, match="leverages must be 'class' for moments by landmarks"):
        own_widths(some, 0.2, 0.8, lam=0.1, leverages="rows")
    with pytest.raises(ValueError, match="width_pos must be > 0, got 0"):
        mom.mixture(0.0, 1.0)
    many = rbal.sweep(mom, 0.2, 0.8, model="svm", lam=[0.1, 0.2])
    with pytest.raises(ValueError, match=r"solution must be of one point, got shape \(2,\)"):
        mom.widths(many)
    with pytest.raises(NotImplementedError, match="features of a kernel have none"):
        mom.mixture().sample(3, 3)
