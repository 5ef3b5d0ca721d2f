"""Moments in feature space, from Gram matrices: against the linear path, known spectra and trained machines."""

import numpy as np
import pytest
from sklearn.svm import SVC

import rbal
from rbal import strategies
from rbal.kernels import bind, moments
from rbal.learners import order_parameters
from rbal.metrics import evaluate
from rbal.moments import KernelMoments
from rbal.moments._estimate import Fitter, from_covariances, from_rows
from rbal_book.datasets import images

WEIGHTS = {"as is": lambda n_pos, n_neg: (1.0, 1.0), "class weights": strategies.REMEDIES["class weights"].weights}


def rows(D, n_pos, n_neg, rng, shift=0.4):
    lam = np.geomspace(0.1, 3.0, D)
    X = rng.normal(size=(n_pos + n_neg, D)) * np.sqrt(lam)
    y = np.repeat([1, -1], [n_pos, n_neg])
    X[y > 0] += shift * np.sqrt(lam)
    return X, y


def solved(mom, C=1.0, remedy="as is", **options):
    weight_pos, weight_neg = WEIGHTS[remedy](mom.n_pos, mom.n_neg)
    return rbal.sweep(
        mom, mom.alpha_pos, mom.alpha_neg, model="svm", lam=mom.ridge(C), weight_pos=weight_pos, weight_neg=weight_neg,
        **options,
    )  # fmt: skip


def trained(K, y, K_test, y_test, C=1.0, remedy="as is"):
    """Balanced accuracy of a support vector machine on test rows."""
    weight = dict(zip((1, -1), WEIGHTS[remedy](np.sum(y > 0), np.sum(y < 0)), strict=True))
    clf = SVC(kernel="precomputed", C=C, class_weight=weight).fit(K, y)
    return evaluate(clf.decision_function(K_test), y_test, names=["ba"])["ba"]


# ---- the linear kernel, and the unit L


@pytest.mark.parametrize("D", [15, 120])
def test_linear_kernel_is_the_linear_path(D):
    X, y = rows(D, 20, 50, np.random.default_rng(1))
    pos, neg = X[y > 0], X[y < 0]
    if D < 68:
        sample = from_covariances(20, 50, pos.mean(0) - neg.mean(0), np.cov(pos.T), np.cov(neg.T))
    else:
        sample = from_rows(pos, neg)
    mom, C = rbal.Moments.from_kernel(X @ X.T, y, L=D), np.geomspace(1e-2, 1e2, 5)
    linear = rbal.sweep(Fitter(sample).fit(), 20 / D, 50 / D, model="svm", lam=1.0 / (C * D))
    kernel = solved(mom, C)
    for name in ("q", "r", "b"):
        np.testing.assert_allclose(getattr(kernel, name), getattr(linear, name), rtol=1e-9, atol=1e-9)


def test_any_unit_gives_the_same_machine():
    X, y = rows(30, 25, 60, np.random.default_rng(2))
    K, C = bind("rbf", X)(X), np.geomspace(1e-2, 1e2, 5)
    found = [solved(rbal.Moments.from_kernel(K, y, L=L), C, "class weights") for L in (None, 1, 30, 5000)]
    for other in found[1:]:
        for name in ("q", "r", "b", "x"):
            np.testing.assert_allclose(getattr(other, name), getattr(found[0], name), rtol=1e-7)


def test_rows_in_any_order_and_labels_of_any_kind():
    X, y = rows(10, 12, 30, np.random.default_rng(3))
    order = np.random.default_rng(0).permutation(42)
    names = np.where(y > 0, "few", "many")
    one = rbal.Moments.from_kernel(X @ X.T, y)
    two = rbal.Moments.from_kernel((X @ X.T)[np.ix_(order, order)], names[order])
    other = rbal.Moments.from_kernel(X @ X.T, names, positive="many")
    assert (one.positive, two.positive, other.positive) == (1, "few", "many")
    np.testing.assert_allclose(solved(one).r, solved(two).r, rtol=1e-9)
    np.testing.assert_allclose(solved(one).b, -solved(other).b, rtol=1e-7)
    assert (other.n_pos, other.n_neg) == (30, 12)


def test_shift_of_all_rows_changes_nothing():
    """A bias is free, so that only products of differences count."""
    X, y = rows(10, 12, 30, np.random.default_rng(3))
    far = X + 5.0
    a, b = (solved(rbal.Moments.from_kernel(Z @ Z.T, y)) for Z in (X, far))
    np.testing.assert_allclose([a.q, a.r, a.b], [b.q, b.r, b.b], rtol=1e-7)


def test_what_is_measured_is_there_too():
    X, y = rows(10, 12, 30, np.random.default_rng(3))
    mom = rbal.Moments.from_kernel(X @ X.T, y, L=10)
    naive = rbal.Moments.from_data(X[y > 0], X[y < 0])
    assert isinstance(mom, KernelMoments)
    assert isinstance(mom, rbal.Moments)
    np.testing.assert_allclose(mom.delta_sq.sum(), naive.delta_sq.sum(), rtol=1e-9)
    pooled = (11 * np.trace(np.cov(X[y > 0].T)) + 29 * np.trace(np.cov(X[y < 0].T))) / 40
    assert mom.eigenvalues.sum() == pytest.approx(pooled, rel=1e-9)
    assert mom.spectrum.s.sum() < mom.delta_sq.sum() / mom.L  # the noise of the means is taken out
    for call in (lambda: mom.variance(np.ones(10)), lambda: mom.debiased(12, 30)):
        with pytest.raises(NotImplementedError, match="kernel"):
            call()


def test_single_precision_is_enough():
    X, y = rows(10, 30, 60, np.random.default_rng(4))
    K = bind("rbf", X)(X)
    a, b = (solved(rbal.Moments.from_kernel(G, y)).metrics.ba() for G in (K, K.astype(np.float32)))
    assert a == pytest.approx(b, abs=1e-3)


# ---- known spectra


def known(D, decay):
    """Gaussian features with variances that fall off as a power, and the true moments."""
    lam = np.arange(1, D + 1) ** -decay
    shift = np.zeros(D)
    shift[::3] = 1.2 * np.sqrt(lam[::3]) * np.random.default_rng(5).choice([-1, 1], size=shift[::3].size)
    shift *= 2.5 / np.sqrt(np.sum(shift**2 / lam))
    return lam, shift, rbal.Moments.real(shift, np.zeros(D), lam)


@pytest.mark.parametrize(("D", "decay", "C"), [(100, 0.0, 0.1), (100, 1.0, 1.0), (300, 1.5, 30.0), (3000, 0.0, 1.0)])
def test_known_spectrum_in_feature_space(D, decay, C):
    """Predictions from Gram matrices of 150 rows are those of the true moments, with fewer and with more features."""
    n_pos, n_neg = 40, 110
    lam, shift, truth = known(D, decay)
    rng, found = np.random.default_rng(6), []
    for _ in range(12):
        X = rng.normal(size=(n_pos + n_neg, D)) * np.sqrt(lam)
        X[:n_pos] += shift
        mom = rbal.Moments.from_kernel(X @ X.T, np.repeat([1, -1], [n_pos, n_neg]))
        found.append([solved(mom, C, remedy).metrics.ba() for remedy in WEIGHTS])
    found = np.array(found)
    expected = []
    for remedy in WEIGHTS:
        weight_pos, weight_neg = WEIGHTS[remedy](n_pos, n_neg)
        sol = rbal.solve(truth, n_pos / D, n_neg / D, model="svm", lam=1.0 / (C * D), weight_pos=weight_pos,
                         weight_neg=weight_neg)  # fmt: skip
        expected.append(sol.metrics.ba())
    error = found.std(axis=0) / np.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - expected) < 4.0 * error + 0.006)


def test_draws_scatter_as_samples_do():
    lam, shift, _ = known(200, 1.0)
    rng, values, told = np.random.default_rng(7), [], []
    for k in range(24):
        X = rng.normal(size=(150, 200)) * np.sqrt(lam)
        X[:40] += shift
        mom = rbal.Moments.from_kernel(X @ X.T, np.repeat([1, -1], [40, 110]))
        values.append(solved(mom, 1.0, "class weights").metrics.ba())
        if k < 4:
            drawn = mom.draws(32)
            own = WEIGHTS["class weights"](40, 110)
            told.append(np.std([
                rbal.solve(s, mom.alpha_pos, mom.alpha_neg, model="svm", lam=mom.ridge(1.0), weight_pos=own[0],
                           weight_neg=own[1]).metrics.ba() for s in drawn
            ]))  # fmt: skip
    assert np.mean(told) == pytest.approx(np.std(values, ddof=1), rel=0.5)  # of 24 samples it is known to 15 %


# ---- machines that are trained


def test_square_loss_is_the_least_squares_machine():
    """Order parameters of least-squares machines in the dual (one linear system), with the true moments."""
    D, n_pos, n_neg, C = 300, 60, 140, 0.5
    lam, shift, truth = known(D, 0.7)
    y = np.repeat([1.0, -1.0], [n_pos, n_neg])
    rng, measured, predicted = np.random.default_rng(8), [], []
    for _ in range(20):
        X = rng.normal(size=(n_pos + n_neg, D)) * np.sqrt(lam)
        X[:n_pos] += shift
        K = X @ X.T
        # stationary points of ½|w|² + C Σ (y - w·x + b)²
        system = np.block([[K + np.eye(len(y)) / (2.0 * C), -np.ones((len(y), 1))], [np.ones(len(y)), np.zeros(1)]])
        dual = np.linalg.solve(system, np.r_[y, 0.0])
        w, b = X.T @ dual[:-1], dual[-1]
        measured.append([w @ (lam * w), w @ shift, b - 0.5 * w @ shift])
        sol = solved(rbal.Moments.from_kernel(K, y), C, loss="square")
        predicted.append([sol.q, sol.r, sol.b])
    measured, predicted = np.array(measured), np.array(predicted)
    exact = rbal.solve(truth, n_pos / D, n_neg / D, model="svm", loss="square", lam=1.0 / (C * D))
    error = measured.std(axis=0, ddof=1) / np.sqrt(len(measured))
    assert np.all(np.abs(measured.mean(axis=0) - [exact.q, exact.r, exact.b]) < 4.0 * error + 0.005)
    error = predicted.std(axis=0, ddof=1) / np.sqrt(len(predicted))
    assert np.all(np.abs(predicted.mean(axis=0) - [exact.q, exact.r, exact.b]) < 4.0 * error + 0.01)


def test_least_squares_of_many_rows_is_fishers_direction():
    """The classical limit in closed form: w = 2φ₊φ₋ C⁻¹Δ / (1 + φ₊φ₋D²)."""
    phi, distance = 0.3, 2.0
    truth = rbal.Moments.real(np.array([distance, 0.0]), np.zeros(2), np.ones(2))
    sol = rbal.solve(truth, phi * 1e6, (1 - phi) * 1e6, model="svm", loss="square", lam=1e-9)
    product = phi * (1 - phi)
    r = 2 * product * distance**2 / (1 + product * distance**2)
    assert sol.r == pytest.approx(r, rel=1e-5)
    assert sol.q == pytest.approx((r / distance) ** 2, rel=1e-5)
    assert sol.b == pytest.approx((2 * phi - 1) * (0.5 * r - 1.0), rel=1e-5)


@pytest.mark.parametrize("ratio", [0.25, 0.5, 1.0, 2.0, 4.0])
def test_random_features_at_a_fixed_ratio(ratio):
    """Rectified random features of Gaussian rows, p of them for n rows: trained, known moments and Gram matrices.

    Three draws of the features, four training sets each. Known moments are those of 12,000 rows. Gaps of both
    predictions to trained machines are compared with five standard errors, about 0.03: no margin is added.
    """
    D, n_pos, n_neg, C = 60, 60, 180, 0.3
    p, off = int(ratio * 240), []
    for seed in range(3):
        rng = np.random.default_rng([9, seed])
        W = rng.normal(size=(D, p)) * np.sqrt(2.0 / (ratio * D))

        def features(n_pos, n_neg, rng=rng, W=W):
            X = rng.normal(size=(n_pos + n_neg, D))
            X[:n_pos] += 0.3
            return np.maximum(X @ W, 0.0), np.repeat([1, -1], [n_pos, n_neg])

        F, _ = features(6000, 6000)
        cov = (n_pos * np.cov(F[:6000].T) + n_neg * np.cov(F[6000:].T)) / (n_pos + n_neg)
        known = rbal.Moments.real(F[:6000].mean(0) - F[6000:].mean(0), np.zeros(p), cov).debiased(6000, 6000)
        own = WEIGHTS["class weights"](n_pos, n_neg)
        exact = rbal.solve(known, n_pos / p, n_neg / p, model="svm", lam=1.0 / (C * p), weight_pos=own[0],
                           weight_neg=own[1]).metrics.ba()  # fmt: skip
        F_test, y_test = features(2000, 2000)
        for _ in range(4):
            F, y = features(n_pos, n_neg)
            K = F @ F.T
            ba = trained(K, y, F_test @ F.T, y_test, C, "class weights")
            off.append([exact - ba, solved(rbal.Moments.from_kernel(K, y), C, "class weights").metrics.ba() - ba])
    off = np.array(off)
    error = np.hypot(off.std(axis=0, ddof=1) / np.sqrt(len(off)), 0.5 / np.sqrt(3 * 4000))
    assert np.all(np.abs(off.mean(axis=0)) < 5.0 * error)


def test_a_curved_boundary():
    """Spheres of two radii have one mean: nothing for a linear kernel, and much for others."""
    rng = np.random.default_rng(10)

    def spheres(n_pos, n_neg):
        X, y = rng.normal(size=(n_pos + n_neg, 20)), np.repeat([1, -1], [n_pos, n_neg])
        X[y > 0] *= 1.25
        return X, y

    X, y = spheres(100, 300)
    T, y_test = spheres(2000, 2000)
    for name in ("linear", "rbf", "laplacian", "ntk"):
        k = bind(name, X)
        predicted = solved(moments(X, y, k), 1.0, "class weights").metrics.ba()
        ba = trained(k(X), y, k(T, X), y_test, 1.0, "class weights")
        assert (ba > 0.6) == (predicted > 0.6) == (name != "linear")
        assert abs(ba - predicted) < 0.06


def test_order_parameters_from_held_out_scores():
    lam, shift, _ = known(100, 0.5)
    rng = np.random.default_rng(11)
    X = rng.normal(size=(150, 100)) * np.sqrt(lam)
    X[:40] += shift
    T = rng.normal(size=(40_000, 100)) * np.sqrt(lam)
    T[:20_000] += shift
    clf = SVC(kernel="linear", C=0.3).fit(X, np.repeat([1, -1], [40, 110]))
    w, b = clf.coef_[0], -clf.intercept_[0]
    found = order_parameters(clf.decision_function(T), np.repeat([1, -1], 20_000))
    np.testing.assert_allclose(found.q, w @ (lam * w), rtol=0.04)
    np.testing.assert_allclose(found.r, w @ shift, atol=5 * np.sqrt(2 * found.q / 20_000))
    np.testing.assert_allclose(found.b, b - 0.5 * w @ shift, atol=5 * np.sqrt(found.q / 40_000))


def test_order_parameters_of_a_curved_machine():
    """With the kernel (x·x')² weights are a matrix W; rows of variance s² have scores s² tr W ± s²√(2 tr W²)."""
    D, wide, n = 12, np.array([1.4, 1.0]), 20_000
    for seed in range(3):
        rng = np.random.default_rng([15, seed])
        X = rng.normal(size=(200, D)) * np.repeat(wide, [60, 140])[:, None]
        T = rng.normal(size=(2 * n, D)) * np.repeat(wide, n)[:, None]
        clf = SVC(kernel="poly", degree=2, gamma=1.0, coef0=0.0, C=1e-3).fit(X, np.repeat([1, -1], [60, 140]))
        rows = X[clf.support_]
        W = (rows.T * clf.dual_coef_[0]) @ rows
        mean, spread = wide**2 * np.trace(W) + clf.intercept_[0], wide**2 * np.sqrt(2.0 * np.sum(W**2))
        found = order_parameters(clf.decision_function(T), np.repeat([1, -1], n))
        error = np.sqrt(np.sum(spread**2) / n)  # of the difference of two means
        assert abs(found.r - (mean[0] - mean[1])) < 5.0 * error
        assert abs(found.b + 0.5 * np.sum(mean)) < 2.5 * error
        # a quadratic form has the kurtosis 3 + 48 tr W⁴/(2 tr W²)²
        kurtosis = 2.0 + 12.0 * np.trace(W @ W @ W @ W) / np.sum(W**2) ** 2
        error = 0.5 * np.sqrt(kurtosis * np.sum(spread**4) / n)
        assert abs(found.q - 0.5 * np.sum(spread**2)) < 5.0 * error


# ---- many rows


def test_landmarks_stand_for_all_rows():
    """What landmarks leave out, and by how much they miss predictions of the whole matrix, falls with their number.

    On 4,000 rows whose boundary is curved as well they were below the whole matrix by up to 0.04, 0.02 and 0.01 with
    75, 300 and 1,200 landmarks (docstring of rbal.kernels.moments); bounds here are twice that.
    """
    off, missing = [], []
    for seed in (12, 13, 14):
        X, y = rows(8, 300, 900, np.random.default_rng(seed), shift=0.5)
        k = bind("rbf", X)
        told = [moments(X, y, k, landmarks=m, random_state=seed) for m in (1200, 25, 100, 400)]
        assert told[0].missing == 0.0
        missing.append([mom.missing for mom in told[1:]])
        whole, *some = (solved(mom, [0.3, 1.0, 10.0], "class weights").metrics.ba() for mom in told)
        off.append([np.abs(values - whole).max() for values in some])
    assert np.all(np.diff(missing, axis=1) < 0.0)
    off = np.mean(off, axis=0)
    assert np.all(off < [0.08, 0.04, 0.02])
    assert off[0] > off[-1]


def test_landmarks_keep_the_variance():
    X, y = rows(8, 100, 200, np.random.default_rng(13))
    full, some = (moments(X, y, "laplacian", landmarks=m) for m in (None, 60))
    assert some.rest + some.eigenvalues.sum() == pytest.approx(full.eigenvalues.sum(), rel=0.05)
    s = some.spectrum
    assert some.L * (s.g @ s.lam) == pytest.approx(some.rest + some.eigenvalues.sum(), rel=0.02)
    for drawn in some.draws(4):  # a draw has another shift, and the same variance
        assert drawn.g @ drawn.lam == pytest.approx(s.g @ s.lam, rel=1e-12)


# ---- what is refused

X, Y = rows(5, 6, 14, np.random.default_rng(0))
K = X @ X.T


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rbal.Moments.from_kernel(K[:5], Y), ValueError, r"K must be square.*got shape \(5, 20\)"),
        (lambda: rbal.Moments.from_kernel(K + np.triu(K), Y), ValueError, "K must be symmetric, got entries"),
        (lambda: rbal.Moments.from_kernel(-K, Y), ValueError, "K must have no negative eigenvalues"),
        (lambda: rbal.Moments.from_kernel(K - 5 * np.eye(20), Y), ValueError, "K must have no negative eigenvalues"),
        (lambda: rbal.Moments.from_kernel(np.where(K > 3, np.nan, K), Y), ValueError, "K must be finite, got nan"),
        (lambda: rbal.Moments.from_kernel(np.ones((20, 20)), Y), ValueError, "K must vary within the classes"),
        (lambda: rbal.Moments.from_kernel(K, Y[:10]), ValueError, r"y must have one label for each of 20 rows, got"),
        (lambda: rbal.Moments.from_kernel(K, np.ones(20)), ValueError, "y must hold two classes, got 1"),
        (lambda: rbal.Moments.from_kernel(K, np.arange(20) % 3), ValueError, "y must hold two classes, got 3"),
        (lambda: rbal.Moments.from_kernel(K, np.arange(20) == 0), ValueError, "at least 2 rows of each class, got 1"),
        (lambda: rbal.Moments.from_kernel(K, np.array([None, "a"] * 10)), TypeError, "y must hold labels of one kind"),
        (lambda: rbal.Moments.from_kernel(K, np.where(Y > 0, np.nan, 1.0)), ValueError, "y must hold no NaN"),
        (lambda: rbal.Moments.from_kernel(K, Y, positive=7), ValueError, "positive must be one of the labels"),
        (lambda: rbal.Moments.from_kernel(K, Y, L=0), ValueError, "L must be a positive integer, got 0"),
        (lambda: rbal.Moments.from_kernel(K, Y).ridge(0.0), ValueError, "C must be > 0, got 0"),
        (lambda: rbal.Moments.from_kernel("K", Y), TypeError, "K must be numeric"),
        (lambda: moments(X, Y, "rbf", gamma=0), ValueError, "gamma must be > 0, got 0"),
        (lambda: moments(X, Y, landmarks=2), ValueError, "landmarks must be 4 to 10, half of the rows.*got 2"),
        (lambda: moments(X, Y, landmarks=15), ValueError, "landmarks must be 4 to 10, half of the rows.*got 15"),
        (lambda: moments(X, Y, bind("rbf", X), gamma=1.0), TypeError, "kernel has its parameters already, got gamma"),
        (lambda: moments(X, Y, lambda A, B: np.tanh(A @ B.T - 1)), ValueError, "K must have no negative eigenvalues"),
        (lambda: moments(X, Y, lambda A, B: -A @ B.T, landmarks=8), ValueError, "kernel must have no negative"),
        (lambda: moments(K, Y, "precomputed", landmarks=9), ValueError, "landmarks must be None for"),
    ],
)  # fmt: skip
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---- real images


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rbf", "ntk"])
def test_digits_and_clothes(name):
    """Predicted from 400 training images alone, for C over five decades, gamma over two, depths 1 to 3."""
    settings = [{"gamma": g} for g in (3e-4, 3e-3, 3e-2)] if name == "rbf" else [{"depth": d} for d in (1, 3)]
    off = []
    for classes in (images.load_mnist("parity"), images.load_fashion_mnist()):
        F, y = classes.sample(100, 300, np.random.default_rng(14))
        for options in settings:
            k = bind(name, F, **options)
            mom, G, G_test = moments(F, y, k), k(F), k(classes.X_test, F)
            unit = np.mean(np.diag(G))
            for C in np.geomspace(1e-2, 1e3, 6) / unit:
                off += [solved(mom, C, remedy).metrics.ba() - trained(G, y, G_test, classes.y_test, C, remedy)
                        for remedy in WEIGHTS]  # fmt: skip
    assert np.mean(np.abs(off)) < 0.05
