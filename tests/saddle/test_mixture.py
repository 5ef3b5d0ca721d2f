"""Mixtures: against two classes with one covariance, level by level, the functional, naive twins, trained machines."""

import naive
import numpy as np
import pytest
from sklearn.svm import SVC

import rbal

LOSSES = ("hinge", "squared_hinge", "square", "logistic")
ONE = ("r", "b", "k_hat", "r_hat", "train_loss", "train_error")
EACH = ("m", "q", "x", "x_hat", "q_hat", "m_hat")


def own(K=4, D=7, seed=0, spread=2.0):
    """K clusters, the first half positive, with covariances that do not commute and unequal shares."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(K, D, 2 * D)) / np.sqrt(2 * D) * rng.uniform(0.5, 1.5, (K, D, 1))
    covs = F @ F.transpose(0, 2, 1)
    means = spread * rng.normal(size=(K, D)) / np.sqrt(D)
    labels = np.where(np.arange(K) < (K + 1) // 2, 1, -1)
    shares = rng.uniform(0.5, 1.5, K)
    for label in (1, -1):
        shares[labels == label] /= shares[labels == label].sum()
    return means, covs, labels, shares


def state(sol):
    """All order parameters of one solution, as a flat array."""
    return np.concatenate([*(getattr(sol, name) for name in EACH), [getattr(sol, name) for name in ONE]])


def arguments(mix, sol):
    """α, label, margin and weight of each cluster."""
    y = mix.signs
    alpha = mix.shares * np.where(y > 0, sol.alpha_pos, sol.alpha_neg)
    return alpha, y, np.where(y > 0, sol.kappa, sol.kappa_neg), np.where(y > 0, sol.weight_pos, sol.weight_neg)


def centred(mix):
    """Centres counted from M, times √L."""
    return np.sqrt(mix.L) * (mix.means - mix.M)


def flat(sol):
    return np.concatenate([sol.x, sol.q, sol.m, [sol.b, sol.k_hat], sol.x_hat, sol.q_hat, sol.m_hat])


def scales(sol, norm):
    """Size of the two sides of each equation, in the order of the functional's arguments.

    x̂ of a cluster may be that of very few samples, and then be lost in the rounding of all others.
    """
    force = np.abs(sol.m_hat)
    whole = np.array([force.sum(), norm])
    few = 1e-6 * sol.q_hat / sol.q
    return np.concatenate([sol.q_hat, sol.x_hat + few, force, whole, sol.q, sol.x, 2.0 * np.sqrt(sol.q)])


POINTS = {
    "svm": {"alpha_pos": 2.0, "alpha_neg": 5.0, "model": "svm", "lam": 0.4},
    "weighted svm": {"alpha_pos": 0.5, "alpha_neg": 5.0, "model": "svm", "lam": 0.05, "weight_pos": 10.0},
    "own margins": {"alpha_pos": 1.0, "alpha_neg": 3.0, "model": "svm", "lam": 0.4, "kappa": 2.0, "kappa_neg": 0.7},
    "no bias": {"alpha_pos": 1.0, "alpha_neg": 3.0, "model": "svm", "lam": 0.4, "fit_bias": False},
    "sphere": {"alpha_pos": 2.0, "alpha_neg": 5.0, "kappa": 0.5},
    "norm pushed up": {"alpha_pos": 30.0, "alpha_neg": 40.0, "kappa": 0.05},  # k̂ < 0
    "large margin": {"alpha_pos": 3.0, "alpha_neg": 3.5, "kappa": 4.0, "weight_neg": 0.8},
}
SAT_POINTS = {
    "sat": {"alpha_pos": 0.2, "alpha_neg": 0.3, "kappa": 0.1},
    "sat, own margins": {"alpha_pos": 0.1, "alpha_neg": 0.5, "kappa": 0.3, "kappa_neg": 0.0},
}
points = pytest.mark.parametrize("point", POINTS.values(), ids=POINTS.keys())
all_points = pytest.mark.parametrize("point", [*POINTS.values(), *SAT_POINTS.values()], ids=[*POINTS, *SAT_POINTS])


# (a) two classes with one covariance, as they always were


def two_classes(D=9, seed=3):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(D, 2 * D)) / np.sqrt(2 * D)
    half = 0.8 * rng.normal(size=D) / np.sqrt(D)
    return half, F @ F.T


def cut_in_parts(half, C):
    """The same two classes as five identical clusters."""
    means = np.stack([half, half, half, -half, -half])
    return rbal.Mixture.gaussian(means, C, [1, 1, 1, 0, 0], shares=[0.5, 0.3, 0.2, 0.6, 0.4])


ANYWHERE = [
    {"alpha_pos": 2.0, "alpha_neg": 5.0, "kappa": 0.5, "weight_pos": 3.0},
    {"alpha_pos": 2.0, "alpha_neg": 5.0, "kappa": 0.5, "fit_bias": False},
    {"alpha_pos": 30.0, "alpha_neg": 40.0, "kappa": 0.05},
    {"alpha_pos": 0.1, "alpha_neg": 0.3, "kappa": 0.05},
    {"alpha_pos": 2.0, "alpha_neg": 2.0, "model": "svm", "lam": 300.0},  # saturated: the few above the margin set b
    {"alpha_pos": 0.1, "alpha_neg": 3.0, "model": "svm", "lam": 1.0},
    *({"alpha_pos": 2.0, "alpha_neg": 5.0, "model": "svm", "lam": 0.2, "loss": loss} for loss in LOSSES),
    *({"alpha_pos": 2.0, "alpha_neg": 5.0, "loss": loss, "kappa": 0.7} for loss in LOSSES),
]


@pytest.mark.parametrize("options", ANYWHERE)
def test_identical_clusters_are_two_classes(options):
    half, C = two_classes()
    expected = rbal.solve(rbal.Moments.real(half, -half, C), **options, tol=1e-12)
    sol = rbal.solve(cut_in_parts(half, C), **options, tol=1e-12)
    assert (sol.phase, sol.converged) == (expected.phase, True)
    for name in ("b", "r", "k_hat", "r_hat", "train_loss", "train_error"):
        assert getattr(sol, name) == pytest.approx(getattr(expected, name), rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(sol.q, expected.q, rtol=1e-10)
    np.testing.assert_allclose(sol.x, expected.x, rtol=1e-10)
    np.testing.assert_allclose(sol.m, 0.5 * expected.r * np.array([1, 1, 1, -1, -1]), rtol=1e-10)
    assert sol.x_hat.sum() == pytest.approx(expected.x_hat, rel=1e-10)
    assert sol.q_hat.sum() == pytest.approx(expected.q_hat, rel=1e-10)
    assert sol.metrics.ba() == pytest.approx(expected.metrics.ba(), abs=1e-10)


# (b) each level is the next one in a special case


def levels():
    """Pairs of mixtures that are the same, solved in two ways."""
    rng = np.random.default_rng(5)
    means, covs, *_ = own()
    D = means.shape[1]
    U = np.linalg.qr(rng.normal(size=(D, D)))[0]
    widths, lam = np.array([1.0, 1.7, 0.6, 1.2]), rng.uniform(0.3, 2.0, (4, D))
    wide = widths[:, None, None] * covs[0]
    yield "widths", (means, covs[0], {"widths": widths}), (means, wide, {})
    yield "commuting", (means, lam, {}), (means @ U.T, np.stack([U @ np.diag(d) @ U.T for d in lam]), {})


@all_points
@pytest.mark.parametrize("level", ["widths", "commuting"])
def test_a_level_is_a_special_case_of_the_next(level, point):
    _, _, labels, shares = own()
    simple, general = next(pair for name, *pair in levels() if name == level)
    a = rbal.Mixture.gaussian(*simple[:2], labels, shares, **simple[2])
    b = rbal.Mixture.gaussian(*general[:2], labels, shares, **general[2])
    assert (a.level, b.level) == (level, level)
    # the general way, with one dense matrix a cluster
    from rbal.moments import _blocks

    covs = np.stack([b.covariance(c) for c in range(4)])
    b._covs, b._shape, b._width = list(covs), np.arange(4), np.ones(4)
    b.__dict__["blocks"] = _blocks._dense(covs, b._centres - b._balanced @ b._centres, b.L)
    np.testing.assert_allclose(
        state(rbal.solve(b, **point, tol=1e-12)), state(rbal.solve(a, **point, tol=1e-12)), rtol=1e-9, atol=1e-9
    )


@all_points
def test_a_rotation_changes_nothing(point):
    means, covs, labels, shares = own()
    U = np.linalg.qr(np.random.default_rng(1).normal(size=covs.shape[1:]))[0]
    a = rbal.solve(rbal.Mixture.gaussian(means, covs, labels, shares), **point, tol=1e-12)
    b = rbal.solve(rbal.Mixture.gaussian(means @ U.T, U @ covs @ U.T, labels, shares), **point, tol=1e-12)
    np.testing.assert_allclose(state(b), state(a), rtol=1e-9, atol=1e-9)


def test_own_margins_move_the_bias_alone():
    # y (score - b) - κ_y is the same with the mean margin and the bias moved by half the difference
    mix = rbal.Mixture.gaussian(*own())
    a = rbal.solve(mix, 2.0, 5.0, 1.5, kappa_neg=0.5, model="svm", lam=0.4)
    b = rbal.solve(mix, 2.0, 5.0, 1.0, model="svm", lam=0.4)
    np.testing.assert_allclose(a.q, b.q, rtol=1e-9)
    np.testing.assert_allclose(a.m, b.m, rtol=1e-8, atol=1e-9)
    assert a.b == pytest.approx(b.b - 0.5, abs=1e-9)


def test_exchanging_the_classes_flips_the_bias():
    means, covs, labels, shares = own()
    a = rbal.solve(rbal.Mixture.gaussian(means, covs, labels, shares), 2.0, 5.0, 0.5, weight_pos=2.0)
    b = rbal.solve(rbal.Mixture.gaussian(means, covs, -labels, shares), 5.0, 2.0, 0.5, weight_neg=2.0)
    np.testing.assert_allclose(b.q, a.q, rtol=1e-9)
    np.testing.assert_allclose(b.m, -a.m, rtol=1e-8, atol=1e-9)
    assert b.b == pytest.approx(-a.b, abs=1e-9)


# (c) the functional


@points
def test_stationarity(point):
    mix = rbal.Mixture.gaussian(*own())
    sol = rbal.solve(mix, **point)
    assert (mix.level, sol.phase, sol.converged) == ("any", "UNSAT", True)
    G = naive.mixture_functional(own()[1], centred(mix), mix.L, 1.0, *arguments(mix, sol), ridge=point.get("lam"))
    at = flat(sol)
    fixed = {3 * 4} if not sol.fit_bias else set()
    fixed |= {3 * 4 + 1} if "lam" in point else set()
    varied = [i for i in range(at.size) if i not in fixed]
    gradient = np.array([naive.complex_step(G, at, i) for i in varied])
    np.testing.assert_allclose(gradient / scales(sol, 1.0)[varied], 0.0, atol=1e-9)
    moved = np.array([naive.complex_step(G, at * 1.001, i) for i in varied])
    assert np.abs(moved / scales(sol, 1.0)[varied]).max() > 1e-5


@pytest.mark.parametrize("point", SAT_POINTS.values(), ids=SAT_POINTS.keys())
def test_stationarity_sat(point):
    mix = rbal.Mixture.gaussian(*own(K=3, D=5))
    sol = rbal.solve(mix, **point)
    assert (sol.phase, sol.train_loss, sol.train_error) == ("SAT", 0.0, 0.0)
    G = naive.mixture_functional_sat(own(K=3, D=5)[1], centred(mix), mix.L, 1.0, *arguments(mix, sol)[:3])
    at, gradient = flat(sol), []
    steps = 0.01 * np.abs(at)
    steps[6:10] = 0.01 * np.sqrt(sol.q.min())  # m and b may be small
    for i in range(at.size):

        def along(value, i=i):
            return G(*at[:i], value, *at[i + 1 :])

        gradient.append(naive.central(along, at[i], steps[i]))
    np.testing.assert_allclose(np.array(gradient) / scales(sol, 1.0), 0.0, atol=1e-7)


def test_train_loss_is_the_functional():
    mix = rbal.Mixture.gaussian(*own())
    sol = rbal.solve(mix, 2.0, 5.0, 0.5, weight_pos=2.0)
    G = naive.mixture_functional(own()[1], centred(mix), mix.L, 1.0, *arguments(mix, sol))(*flat(sol)).real
    assert sol.train_loss == pytest.approx(-G / (2.0 * 9.0), rel=1e-9)


# (d) independent routes

TWINS = [
    {"loss": "hinge", "ridge": 0.3},
    {"loss": "hinge", "norm": 1.0},
    {"loss": "squared_hinge", "ridge": 0.3, "fit_bias": False},
    {"loss": "square", "ridge": 0.3},
    {"loss": "logistic", "ridge": 0.3},
]


@pytest.mark.slow
@pytest.mark.parametrize("case", TWINS)
def test_damped_fixed_point(case):
    mix = rbal.Mixture.gaussian(*own(K=3, D=5))
    options = {"loss": case["loss"], "fit_bias": case.get("fit_bias", True)}
    options |= {"model": "svm", "lam": 0.3} if "ridge" in case else {}
    sol = rbal.solve(mix, 1.5, 3.0, 0.8, kappa_neg=1.1, weight_pos=2.0, **options)
    q, x, m, b, k_hat = naive.mixture_fixed_point(own(K=3, D=5)[1], centred(mix), mix.L, *arguments(mix, sol), **case)
    np.testing.assert_allclose(sol.q, q, rtol=1e-8)
    np.testing.assert_allclose(sol.x, x, rtol=1e-8)
    np.testing.assert_allclose([*sol.m, sol.b, sol.k_hat], [*m, b, k_hat], rtol=1e-8, atol=1e-8)


def test_both_sides_of_the_surface_meet():
    # w → 0 from below, and above a loss that starts from nothing (x, in units of c, grows like √log of the distance)
    mix = rbal.Mixture.gaussian(*own(K=3, D=6))
    margin = rbal.critical_margin(mix, 0.3, 0.5)
    below, above = (rbal.solve(mix, 0.3, 0.5, margin * (1 + e)) for e in (-1e-4, 1e-4))
    assert (below.phase, above.phase) == ("SAT", "UNSAT")
    assert below.x.max() < 1e-3
    np.testing.assert_allclose(below.q, above.q, rtol=1e-3)
    np.testing.assert_allclose(below.m, above.m, rtol=1e-3, atol=1e-3)
    assert below.b == pytest.approx(above.b, abs=1e-3)
    assert 0.0 < above.train_loss < 1e-4


def test_the_surface_of_two_classes():
    half, C = two_classes()
    expected = rbal.critical_margin(rbal.Moments.real(half, -half, C), 0.3, [0.2, 0.5])
    np.testing.assert_allclose(rbal.critical_margin(cut_in_parts(half, C), 0.3, [0.2, 0.5]), expected, rtol=1e-10)


@pytest.mark.parametrize("point", [{"kappa": 0.5}, {"model": "svm", "lam": 0.4, "kappa_neg": 0.7}])
def test_training_scores_of_clusters(point):
    # mass 1 with the atom on the margin, and as much loss as the solution says
    mix = rbal.Mixture.gaussian(*own())
    sol = rbal.solve(mix, 2.0, 5.0, **point)
    grid = np.linspace(-12.0, 12.0, 24_001)
    loss = 0.0
    for label, size, kappa in ((1, 2.0, sol.kappa), (-1, 5.0, sol.kappa_neg)):
        density, atom = rbal.train_density(sol, grid, label)
        assert np.trapezoid(density, grid) + atom == pytest.approx(1.0, abs=2e-3)  # half a step at each jump
        loss += size * np.trapezoid(density * np.maximum(kappa - label * grid, 0.0), grid) / 7.0
        mine = np.flatnonzero(mix.signs == label)
        parts = [rbal.train_density(sol, grid, label, cluster=c) for c in mine.tolist()]
        assert atom == pytest.approx(mix.shares[mine] @ [a for _, a in parts])
        tests = [rbal.test_density(sol, grid, label, cluster=c) for c in mine.tolist()]
        np.testing.assert_allclose(rbal.test_density(sol, grid, label), mix.shares[mine] @ tests, rtol=1e-10)
    assert loss == pytest.approx(sol.train_loss, abs=2e-3)
    with pytest.raises(ValueError, match="cluster must be one of 0, 1, got 2"):
        rbal.train_density(sol, grid, 1, cluster=2)


# (e) trained machines


def assert_simulated(mix, sol, trials):
    """Within four standard errors and a correction of order 1/L."""
    assert len(trials) >= 20  # fewer, and four standard errors of so small a sample mean little
    trials = np.array([np.concatenate([t.m, t.q, [t.b]]) for t in trials])
    error = trials.std(axis=0, ddof=1) / np.sqrt(len(trials))
    expected = np.concatenate([sol.m, sol.variance, [sol.b]])
    size = np.sqrt(sol.variance.max())
    assert (error < 0.1 * size).all()  # else the test says nothing
    np.testing.assert_array_less(np.abs(trials.mean(axis=0) - expected), 4.0 * error + 2.0 * size / mix.L)


@pytest.mark.slow
@pytest.mark.parametrize(("K", "L"), [(2, 200), (5, 200), (10, 400)])
def test_svm_simulated(K, L):
    # scikit-learn's C is 1/λ̃ on inputs divided by √L, and its intercept is -b
    mix, rng = rbal.Mixture.gaussian(*own(K=K, D=L, seed=K, spread=3.0)), np.random.default_rng(L + K)
    sol = rbal.solve(mix, 0.6, 1.8, model="svm", lam=0.3, weight_pos=2.0)
    trials = []
    for _ in range(20):
        X, y = mix.sample(round(0.6 * L), round(1.8 * L), rng)
        svc = SVC(kernel="linear", C=1.0 / 0.3, class_weight={1: 2.0, -1: 1.0}, tol=1e-5).fit(X / np.sqrt(L), y)
        trials.append(mix.order_parameters(svc.coef_[0], -svc.intercept_[0]))
    assert (mix.level, sol.phase) == ("any", "UNSAT")
    assert_simulated(mix, sol, trials)


SPHERES = {
    "norm held back": (0.5, 1.0, 1.5, 1.0),  # k̂ > 0
    "norm pushed up": (2.0, 4.0, 0.05, -1.0),  # k̂ < 0
}


@pytest.mark.slow
@pytest.mark.parametrize("case", SPHERES.values(), ids=SPHERES.keys())
@pytest.mark.parametrize(("K", "L"), [(3, 200), (4, 400)])
def test_sphere_simulated(case, K, L):
    alpha_pos, alpha_neg, kappa, sign = case
    mix, rng = rbal.Mixture.gaussian(*own(K=K, D=L, seed=K, spread=1.0)), np.random.default_rng(L + K)
    sol = rbal.solve(mix, alpha_pos, alpha_neg, kappa)
    assert (sol.phase, np.sign(sol.k_hat)) == ("UNSAT", sign)
    trials = []
    for _ in range(20):
        clf = rbal.SphericalPerceptron(kappa=kappa).fit(*mix.sample(round(alpha_pos * L), round(alpha_neg * L), rng))
        trials.append(mix.order_parameters(clf.J_, clf.b_))
    assert_simulated(mix, sol, trials)


@pytest.mark.slow
def test_sat_simulated():
    # a typical solution of zero loss: its variance is q + w
    L, rng = 100, np.random.default_rng(11)
    mix = rbal.Mixture.gaussian(*own(K=3, D=L, seed=3))
    sol = rbal.solve(mix, 0.3, 0.5, 0.1)
    assert sol.phase == "SAT"
    trials = []
    for seed in range(20):
        X, y = mix.sample(round(0.3 * L), round(0.5 * L), rng)
        clf = rbal.SphericalPerceptron(kappa=0.1, sat="typical", random_state=seed).fit(X, y)
        trials.append(mix.order_parameters(clf.J_, clf.b_))
    assert_simulated(mix, sol, trials)


@pytest.mark.slow
def test_a_heavy_tailed_class_is_a_scale_mixture():
    # positives with three scales of noise around one centre: clusters that differ in nothing but their width
    L, rng, scales_of = 300, np.random.default_rng(12), np.array([0.4, 1.0, 3.0])
    half = 1.5 * rng.normal(size=L) / np.sqrt(L)
    F = rng.normal(size=(L, 2 * L)) / np.sqrt(2 * L)
    shares = np.array([0.5, 0.3, 0.2])
    mix = rbal.Mixture.gaussian(
        np.stack([half, half, half, -half]), F @ F.T, [1, 1, 1, -1], [*shares, 1.0], widths=[*scales_of**2, 1.0]
    )
    sol = rbal.solve(mix, 0.8, 1.6, model="svm", lam=0.5)
    trials, recalls = [], []
    for _ in range(20):
        X, y = mix.sample(round(0.8 * L), round(1.6 * L), rng)
        svc = SVC(kernel="linear", C=2.0, tol=1e-5).fit(X / np.sqrt(L), y)
        trials.append(mix.order_parameters(svc.coef_[0], -svc.intercept_[0]))
        X, y = mix.sample(2_000, 2_000, rng)
        recalls.append([np.mean(svc.predict(X[y == label] / np.sqrt(L)) == label) for label in (1, -1)])
    assert mix.level == "widths"
    assert_simulated(mix, sol, trials)
    error = np.std(recalls, axis=0, ddof=1) / np.sqrt(20)
    expected = [sol.metrics.tpr(), sol.metrics.tnr()]
    np.testing.assert_array_less(np.abs(np.mean(recalls, axis=0) - expected), 4.0 * error + 1.0 / L)


# (f) sweeps, failures, bad input


@pytest.mark.parametrize("options", [{"kappa": 0.5}, {"model": "svm", "lam": 0.1}, {"loss": "logistic", "kappa": 0.0}])
def test_sweep_is_a_loop_of_solves(options):
    mix = rbal.Mixture.gaussian(*own(K=3, D=5))
    alpha_neg = np.array([[0.1, 0.4, 1.0], [3.0, 6.0, 20.0]])
    sols = rbal.sweep(mix, 0.3, alpha_neg, **options, tol=1e-12)
    assert (sols.q.shape, sols.b.shape, sols.metrics.ba().shape) == ((2, 3, 3), (2, 3), (2, 3))
    for at in np.ndindex(2, 3):
        one = rbal.solve(mix, 0.3, alpha_neg[at], **options, tol=1e-12)
        assert sols.phase[at] == one.phase
        np.testing.assert_allclose(state(sols[at]), state(one), rtol=1e-8, atol=1e-9)
    assert sols[0].b.shape == (3,)
    np.testing.assert_array_equal(sols[..., 1].q, sols.q[:, 1])
    with pytest.raises(IndexError):
        sols[0, 0][0]


def test_collapse_is_that_of_two_classes():
    # many samples of little distance: no weights lower the loss
    rng = np.random.default_rng(2)
    half = 0.05 * rng.normal(size=20) / np.sqrt(20)
    mix = rbal.Mixture.gaussian(np.stack([half, half, -half]), np.ones((3, 20)), [1, 1, -1])
    mom = rbal.Moments.real(half, -half, np.ones(20))
    point = {"alpha_pos": 2.0, "alpha_neg": 40.0, "model": "svm", "lam": 1.0}
    a, b = rbal.solve(mix, **point), rbal.solve(mom, **point)
    assert a.phase == b.phase == "COLLAPSED"
    assert (a.b, a.train_loss, a.train_error) == pytest.approx((b.b, b.train_loss, b.train_error))
    assert (a.metrics.ba(), a.metrics.auc()) == (0.5, 0.5)


def test_collapse_with_own_covariances():
    # just on either side of the size at which the weights vanish, they are small or there are none
    mix = rbal.Mixture.gaussian(*own(K=3, D=6, spread=0.2))

    def solved(alpha_pos, lam=1e-3):
        return rbal.solve(mix, alpha_pos, 100.0, model="svm", lam=lam)

    lo, hi = 0.1, 0.5
    assert (solved(lo).phase, solved(hi).phase) == ("UNSAT", "COLLAPSED")
    for _ in range(14):
        middle = np.sqrt(lo * hi)
        lo, hi = (lo, middle) if solved(middle).phase == "COLLAPSED" else (middle, hi)
    assert solved(lo).q.max() < 1e-3
    # there little but the ridge fixes the size of weights, and Newton's method alone does not always find it
    for below in np.linspace(1e-5, 1e-4, 7):
        near = solved(lo * (1.0 - below))
        assert near.converged
        assert 0.0 < near.q.max() < 1e-2
    # the ridge does not matter to whether weights pay
    assert (solved(0.999 * lo, 50.0).phase, solved(1.001 * hi, 50.0).phase) == ("UNSAT", "COLLAPSED")


def test_probes_set_the_pace_alone(monkeypatch):
    # derivatives of traces from random vectors: other steps, the same solution
    mix = rbal.Mixture.gaussian(*own(K=3, D=60, spread=3.0))
    exact = rbal.solve(mix, 1.0, 2.0, model="svm", lam=0.3, tol=1e-12)
    monkeypatch.setattr("rbal.moments._blocks.EXACT", 10)
    again = rbal.Mixture.gaussian(*own(K=3, D=60, spread=3.0))
    assert again.blocks.probes is not None
    probed = rbal.solve(again, 1.0, 2.0, model="svm", lam=0.3, tol=1e-12)
    assert probed.converged
    np.testing.assert_allclose(state(probed), state(exact), rtol=1e-9, atol=1e-10)
    sphere = [rbal.solve(m, 1.0, 2.0, 1.5, tol=1e-12) for m in (mix, again)]
    np.testing.assert_allclose(state(sphere[0]), state(sphere[1]), rtol=1e-9, atol=1e-10)


def test_a_failure_is_said():
    mix = rbal.Mixture.gaussian(*own())
    with pytest.warns(rbal.ConvergenceWarning, match="1 of 1 saddle points did not converge"):
        sol = rbal.solve(mix, 2.0, 5.0, 0.5, max_iter=1)
    assert not sol.converged
    assert np.isnan(sol.q).all()
    assert np.isnan(sol.b)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha_pos": -1.0}, "alpha_pos must be > 0, got -1"),
        ({"kappa": -0.1}, "kappa must be >= 0, got -0.1"),
        ({"kappa_neg": -0.1}, "kappa_neg must be >= 0, got -0.1"),
        ({"lam": 1.0}, "lam goes with model='svm'"),
        ({"model": "svm"}, "lam must be given for model='svm'"),
        ({"loss": "huber"}, "loss must be one of"),
        ({"alpha_neg": np.array([1.0, 2.0])}, "must be numbers in solve, which takes one point"),
    ],
)
def test_bad_input(options, message):
    mix = rbal.Mixture.gaussian(*own())
    with pytest.raises(ValueError, match=message):
        rbal.solve(mix, **{"alpha_pos": 1.0, "alpha_neg": 2.0, **options})
