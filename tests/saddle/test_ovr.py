"""One classifier of each class against the rest."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

import rbal
from rbal.losses import LOSSES


def classes(T=3, D=100, distance=2.0, own=False, seed=0):
    """T classes at random centres, with one covariance or their own."""
    rng = np.random.default_rng(seed)
    means = distance * rng.normal(size=(T, D)) / np.sqrt(D)
    shapes = T if own else 1
    F = rng.normal(size=(shapes, D, 3 * D)) / np.sqrt(3 * D)
    covs = F @ np.swapaxes(F, 1, 2)
    return rbal.Mixture.gaussian(means, covs if own else covs[0], np.arange(T))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weights", [None, "balanced"])
def test_two_classes_are_the_usual_classifier(loss, weights):
    mix, alphas, lam = classes(2), [0.8, 3.0], 0.5
    sol = rbal.solve_ovr(mix, alphas, lam, loss, weights)
    balanced = {} if weights is None else {"weight_pos": 3.8 / 1.6, "weight_neg": 3.8 / 6.0}
    moments = rbal.Moments.real(mix.means[0], mix.means[1], mix.covariance(0))
    usual = rbal.solve(moments, *alphas, model="svm", loss=loss, lam=lam, **balanced).metrics
    expected = [[usual.tpr(), usual.fnr()], [usual.fpr(), usual.tnr()]]
    np.testing.assert_allclose(sol.metrics.confusion(), expected, rtol=1e-9)
    np.testing.assert_allclose(sol.overlaps[0, 0, 1], -sol.overlaps[0, 0, 0], rtol=1e-9)
    assert sol.converged


@pytest.mark.parametrize("own", [False, True])
def test_permuting_classes_permutes_everything(own):
    mix, order = classes(3, D=40, own=own), [2, 0, 1]
    alphas = np.array([0.3, 1.0, 2.0])
    sol = rbal.solve_ovr(mix, alphas, 0.7)
    covs = np.stack([mix.covariance(c) for c in order]) if own else mix.covariance(0)
    other = rbal.solve_ovr(rbal.Mixture.gaussian(mix.means[order], covs, [0, 1, 2]), alphas[order], 0.7)
    np.testing.assert_allclose(other.means, sol.means[np.ix_(order, order)], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(other.overlaps, sol.overlaps[np.ix_(order, order, order)], rtol=1e-7, atol=1e-9)


def test_levels_of_covariances_agree():
    # one covariance, given once or for every class with a change that is lost in rounding of the answer
    mix = classes(3, D=30)
    C = mix.covariance(0)
    covs = np.stack([C, C + 1e-9 * np.diag(np.arange(30.0)), C])
    other = rbal.Mixture.gaussian(mix.means, covs, [0, 1, 2])
    assert (mix.level, other.level) == ("one covariance", "any")
    one, any_ = (rbal.solve_ovr(m, [0.5, 1.0, 3.0], 0.5, weights="balanced") for m in (mix, other))
    np.testing.assert_allclose(any_.overlaps, one.overlaps, rtol=1e-6)
    np.testing.assert_allclose(any_.metrics.confusion(), one.metrics.confusion(), atol=1e-6)


def test_split_clusters_change_nothing():
    mix = classes(3, D=30)
    halves = rbal.Mixture.gaussian(
        mix.means[[0, 1, 1, 2]], mix.covariance(0), [0, 1, 1, 2], shares=[1.0, 0.3, 0.7, 1.0]
    )
    one, two = (rbal.solve_ovr(m, [0.5, 1.0, 3.0], 0.5) for m in (mix, halves))
    np.testing.assert_allclose(two.means, one.means, rtol=1e-8)
    np.testing.assert_allclose(two.overlaps, one.overlaps, rtol=1e-8)


def trained(mix, alphas, make, L, seed):
    """Confusion matrix of machines against the rest, trained on a random set, with true moments of their scores."""
    rng = np.random.default_rng(seed)
    sizes = np.rint(np.asarray(alphas) * L).astype(int)
    X = np.concatenate([mix._centres[k] + mix._noise(k, n, rng) for k, n in enumerate(sizes)])
    y = np.repeat(np.arange(sizes.size), sizes)
    w, b = [], []
    for t in range(sizes.size):
        machine = make().fit(X / np.sqrt(L), y == t)
        w.append(machine.coef_[0] / np.sqrt(L))
        b.append(machine.intercept_[0])
    w = np.array(w)
    means = mix.means @ w.T + b
    overlaps = np.stack([w @ mix.covariance(k) @ w.T for k in range(sizes.size)])
    return rbal.metrics.ManyMetrics(means, overlaps).confusion()


MACHINES = {
    "hinge": lambda lam, weight: SVC(kernel="linear", C=1.0 / lam, class_weight=weight, tol=1e-5),
    "logistic": lambda lam, weight: LogisticRegression(C=1.0 / lam, class_weight=weight, tol=1e-8, max_iter=2000),
}


@pytest.mark.slow
@pytest.mark.parametrize("loss", MACHINES)
@pytest.mark.parametrize("weights", [None, "balanced"])
@pytest.mark.parametrize("own", [False, True])
def test_trained_machines(loss, weights, own):
    # every entry of the confusion matrix is the mean over training sets, within five errors and 1/L
    L, lam, alphas = 200, 0.5, [0.3, 0.6, 1.5]
    mix = classes(3, D=L, own=own, seed=5)
    sol = rbal.solve_ovr(mix, alphas, lam, loss, weights)
    found = np.stack([trained(mix, alphas, lambda: MACHINES[loss](lam, weights), L, seed) for seed in range(24)])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    gap = np.abs(sol.metrics.confusion() - found.mean(axis=0))
    assert np.all(gap < 5 * error + 2.0 / L)


def test_sizes_by_class_and_one_weight_a_class():
    mix, alphas = classes(3, D=20), [0.5, 1.0, 3.0]
    one = rbal.solve_ovr(mix, alphas, weights=np.tile([3.0, 2.0, 1.0], (3, 1)))
    other = rbal.solve_ovr(mix, {2: 3.0, 0: 0.5, 1: 1.0}, weights=[3.0, 2.0, 1.0])
    np.testing.assert_array_equal(other.means, one.means)
    np.testing.assert_array_equal(other.overlaps, one.overlaps)


LONG_TAILS = {
    "LinearSVC, 10 classes": (10, "squared_hinge", None),
    "SVC, 5 classes": (5, "hinge", "balanced"),
    "LogisticRegression, 3 classes": (3, "logistic", "balanced"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG_TAILS)
def test_trained_machines_of_a_long_tail(name):
    """Sizes from 1,000 down to 10 at L = 250, the smallest class with 0.04 samples a feature."""
    T, loss, weights = LONG_TAILS[name]
    L, lam = 250, 0.5
    alphas = np.geomspace(4.0, 0.04, T)
    mix = classes(T, D=L, distance=3.0, seed=7)
    sol = rbal.solve_ovr(mix, alphas, lam, loss, weights)
    makers = MACHINES | {  # liblinear penalises the bias, less so the larger its constant feature is
        "squared_hinge": lambda lam, weight: LinearSVC(
            C=1.0 / lam, class_weight=weight, dual=False, intercept_scaling=30.0, tol=1e-6
        )
    }
    found = np.stack([trained(mix, alphas, lambda: makers[loss](lam, weights), L, seed) for seed in range(10)])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    gap = np.abs(sol.metrics.confusion() - found.mean(axis=0))
    assert np.all(gap < 5.0 * np.hypot(error, sol.metrics.error()) + 2.0 / L)


def test_long_tail_collapses_first():
    # with one in a hundred the machine of the rarest class answers no to all, and says so
    mix, alphas = classes(4, D=60, distance=1.0, seed=2), [1.0, 4.0, 20.0, 100.0]
    sol = rbal.solve_ovr(mix, alphas, 1.0)
    assert sol.phases == ("COLLAPSED", "COLLAPSED", "UNSAT", "UNSAT")
    np.testing.assert_allclose(sol.metrics.recall()[:2], 0.0, atol=1e-3)
    balanced = rbal.solve_ovr(mix, alphas, 1.0, weights="balanced")
    assert set(balanced.phases) == {"UNSAT"}
    assert balanced.metrics.ba() > sol.metrics.ba() + 0.1


@pytest.mark.parametrize(("alpha", "error", "tol"), [(0.2, 0.5377, 6e-5), (0.5, 0.5168, 6e-5), (1.0, 0.5907, 1e-3)])
def test_published_errors_of_the_square_loss(alpha, error, tol):
    """Stored results of GaussMixtureProject, whose sizes are given to two digits: at α = 1 the error changes fast.

    Three orthonormal means, variance 1/2, loss (y - z)²/2 with ridge 0.001, which is (1 - u)² with twice that ridge.
    """
    mix = rbal.Mixture.gaussian(np.eye(3, 100), np.full(100, 0.5), [0, 1, 2])
    sol = rbal.solve_ovr(mix, [alpha / 3] * 3, 0.002, "square")
    assert 1.0 - sol.metrics.ba() == pytest.approx(error, abs=tol)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alphas": [1.0, 2.0]}, "alphas must have one entry for each of the 3 classes"),
        ({"alphas": [1.0, 2.0, 0.0]}, "alphas must be > 0, got 0 for class 2: a class needs rows to have a machine"),
        ({"alphas": [1.0, 2.0, -1.0]}, "alphas must be > 0, got -1"),
        (
            {"alphas": {0: 1.0, 1: 2.0, "c": 3.0}},
            r"alphas must have the classes \[0, 1, 2\] of the mixture, got \[0, 1, 'c'",
        ),
        ({"alphas": {0: 1.0, 1: 2.0}}, r"alphas must have the classes \[0, 1, 2\] of the mixture, got \[0, 1\]"),
        ({"weights": np.ones(2)}, r"weights must be None, 'balanced', \(3,\) or \(3, 3\) numbers, got shape \(2,\)"),
        ({"weights": [1.0, 0.0, 1.0]}, "weights must be > 0"),
        ({"weights": "equal"}, "weights must be None, 'balanced'"),
        ({"weights": np.ones((2, 3))}, "weights must be None, 'balanced'"),
        ({"lam": 0.0}, "lam must be"),
        ({"loss": "cubic"}, "loss must be"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        rbal.solve_ovr(**({"mixture": classes(3, D=10), "alphas": [1.0, 2.0, 3.0]} | change))
    with pytest.raises(TypeError, match=r"mixture must be a rbal\.Mixture"):
        rbal.solve_ovr(rbal.Moments.ising(m=0.4, delta=1.0, L=10), [1.0, 1.0])


def test_what_is_no_mixture_is_named():
    with pytest.raises(TypeError, match=r"mixture must be a rbal.Mixture, got NoneType"):
        rbal.solve_ovr(None, np.ones(3))


def test_what_does_not_converge_has_no_number():
    mixture = rbal.Mixture.gaussian(2.0 * np.eye(3, 50), np.ones(50), ["a", "b", "c"])
    with pytest.warns(rbal.ConvergenceWarning, match="did not converge"):
        sol = rbal.solve_ovr(mixture, np.ones(3), lam=1e-300)
    assert np.isnan(sol.b).all()
    assert np.isnan(sol.metrics.ba())
