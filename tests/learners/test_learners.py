"""The perceptron is trained to optimality, on either side of a vanishing multiplier, and lands on the theory."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.utils.estimator_checks import parametrize_with_checks

import rbal
from rbal.datasets import synthetic
from rbal_book.datasets import lattice


@parametrize_with_checks([rbal.SphericalPerceptron(kappa=0.5)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def sample(rng, P, N, D, shift=1.0):
    y = np.repeat([1, -1], [P, N])
    delta = shift * rng.normal(size=D)
    return rng.normal(size=(P + N, D)) + np.outer(y, delta) / (2 * np.sqrt(D)), y, delta


def loss(J, b, X, y, c, kappa):
    return c @ np.maximum(kappa - y * (X @ J / np.sqrt(len(J)) - b), 0.0)


# κ = 0 and 0.3 have negative multipliers, 1 and 3 positive ones
@pytest.mark.parametrize("kappa", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("weight", [1.0, 4.0])
def test_optimality_conditions_and_local_minimum(kappa, weight):
    rng = np.random.default_rng(1)
    X, y, _ = sample(rng, 40, 120, 20)
    c = np.where(y > 0, weight, 1.0)
    clf = rbal.SphericalPerceptron(kappa=kappa).fit(X, y, sample_weight=c)
    assert clf.kkt_residual_ < 1e-9
    assert np.sum(clf.J_**2) == pytest.approx(20, rel=1e-12)
    best = loss(clf.J_, clf.b_, X, y, c, kappa)
    assert clf.objective_ == pytest.approx(best, rel=1e-12)
    for size in (1e-6, 1e-4, 1e-3):  # no small step on the sphere goes lower
        for _ in range(50):
            J = clf.J_ + size * rng.normal(size=20)
            J *= np.sqrt(20) / np.linalg.norm(J)
            assert loss(J, clf.b_ + size * rng.normal(), X, y, c, kappa) >= best - 1e-9


@pytest.mark.parametrize("kappa", [0.2, 1.0, 2.5])
def test_published_penalty_method_gets_no_lower(kappa):
    # the paper's way: L-BFGS on the loss plus λ(‖J‖² - L)², then scaled to the sphere and given its best bias
    rng = np.random.default_rng(2)
    X, y, _ = sample(rng, 60, 100, 15)
    c = np.ones(len(y))

    def cost(v):
        J, b = v[:-1], v[-1]
        u = y * (X @ J / np.sqrt(15) - b)
        active = (u < kappa).astype(float)
        excess = J @ J - 15
        grad = np.append(-(active * y) @ X / np.sqrt(15) + 4.0 * excess * J, active @ y)
        return np.sum(active * (kappa - u)) + excess**2, grad

    clf = rbal.SphericalPerceptron(kappa=kappa).fit(X, y)
    reached = []
    for _ in range(7):
        v = minimize(cost, rng.normal(size=16), jac=True, method="L-BFGS-B").x
        J = v[:-1] * np.sqrt(15) / np.linalg.norm(v[:-1])
        reached.append(min(loss(J, b, X, y, c, kappa) for b in X @ J / np.sqrt(15) - y * kappa))
    # with a negative multiplier there are many minima, and another start may find a lower one
    assert clf.objective_ <= (np.min(reached) if clf.multiplier_ > 0 else np.median(reached)) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("kappa", "alpha_pos", "alpha_neg"), [(0.3, 2.0, 5.0), (1.5, 1.0, 3.0)])
def test_lands_on_the_theory(kappa, alpha_pos, alpha_neg):
    rng = np.random.default_rng(3)
    D, trials = 100, 12
    delta = 1.5 * rng.normal(size=D)
    classes = rbal.Moments.real(delta / (2 * np.sqrt(D)), -delta / (2 * np.sqrt(D)), np.ones(D))
    found = []
    for _ in range(trials):
        y = np.repeat([1, -1], [round(alpha_pos * D), round(alpha_neg * D)])
        X = rng.normal(size=(len(y), D)) + np.outer(y, delta) / (2 * np.sqrt(D))
        clf = rbal.SphericalPerceptron(kappa=kappa).fit(X, y)
        found.append([clf.J_ @ delta / D, clf.b_, clf.objective_ / len(y)])
    sol = rbal.solve(classes, alpha_pos, alpha_neg, kappa)
    error = np.std(found, axis=0, ddof=1) / np.sqrt(trials)
    # four standard errors, and 1/D for the finite size
    assert (np.abs(np.mean(found, axis=0) - [sol.r, sol.b, sol.train_loss]) <= 4 * error + 1 / D).all()


def test_separable_data_get_the_largest_margin():
    rng = np.random.default_rng(4)
    X, y, _ = sample(rng, 5, 6, 40, shift=4.0)
    clf = rbal.SphericalPerceptron(kappa=0.1).fit(X, y)
    margins = y * clf.decision_function(X)
    assert clf.objective_ == 0.0
    assert np.sum(margins < margins.min() + 1e-5) >= 2
    for _ in range(200):  # no other weights do better
        J = clf.J_ + 0.1 * rng.normal(size=40)
        scores = X @ (J * np.sqrt(40) / np.linalg.norm(J)) / np.sqrt(40)
        assert 0.5 * (scores[y > 0].min() - scores[y < 0].max()) <= margins.min() + 1e-6


def test_classes_that_only_a_margin_of_zero_separates():
    """The search for the largest margin comes to an end, and what has zero loss at κ = 0 is kept."""
    classes = synthetic.ising(m=0.3, delta=1.0, L=8)
    X, y = classes.sample(8, 16, np.random.default_rng(0))
    clf = rbal.SphericalPerceptron(kappa=0.0).fit(X, y, sample_weight=np.where(y > 0, 2.0, 1.0))
    margins = y * clf.decision_function(X)
    assert clf.objective_ <= 1e-12
    assert margins.min() == pytest.approx(0.0, abs=1e-8)


def test_states_are_the_spins_in_disguise():
    # one-hot with two states in the zero-sum gauge is the ±1 perceptron
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 2, size=(120, 10))
    y = np.where(rng.random(120) < 0.3, 1, -1)
    potts = rbal.SphericalPerceptron(kappa=0.8, n_states=2).fit(codes, y)
    spins = rbal.SphericalPerceptron(kappa=0.8).fit(2 * codes - 1, y)
    assert np.abs(potts.J_.sum(axis=1)).max() < 1e-12
    assert np.sum(potts.J_**2) == pytest.approx(20)
    np.testing.assert_allclose(potts.decision_function(codes), spins.decision_function(2 * codes - 1), atol=1e-8)


def hard_draw(seed):
    """Training sets that a solver may stumble over: ties, constant and repeated features, few samples, any margin."""
    rng = np.random.default_rng(seed)
    D = int(np.exp(rng.uniform(0, np.log(80))))
    n = int(D * np.exp(rng.uniform(np.log(0.3), np.log(15)))) + 4
    P = min(max(2, int(n * 10 ** rng.uniform(-2.5, -0.3))), n - 2)
    y = np.repeat([1, -1], [P, n - P])
    X = rng.normal(size=(n, D)) + np.outer(y, rng.choice([0.0, 0.5, 4.0]) * rng.normal(size=D)) / (2 * np.sqrt(D))
    kind = seed % 4
    if kind == 1:
        X = np.where(rng.random((n, D)) < 0.7, 1.0, -1.0)
    elif kind == 2:
        X[:, : D // 4] = 0.0
    elif kind == 3:
        X = X[rng.integers(0, n // 2 + 1, size=n)]
    weight = rng.exponential(size=n) + 0.01 if rng.random() < 0.5 else np.where(y > 0, 3.5, 1.0)
    return X, y, weight, rng.choice([0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0])


@pytest.mark.parametrize("seed", range(60))
def test_hard_draws_are_solved(seed):
    X, y, weight, kappa = hard_draw(seed)
    clf = rbal.SphericalPerceptron(kappa=kappa).fit(X, y, sample_weight=weight)
    assert clf.kkt_residual_ <= 1e-6
    assert np.sum(clf.J_**2) == pytest.approx(X.shape[1], rel=1e-10)
    assert clf.objective_ == pytest.approx(loss(clf.J_, clf.b_, X, y, weight, kappa), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kappa", [0.5, 3.0])
def test_projected_descent_from_many_starts_gets_no_lower(kappa):
    # the slow twin: plain subgradient steps on the sphere, the bias by its own best choice at the end
    rng = np.random.default_rng(9)
    X, y, _ = sample(rng, 40, 90, 12)
    c = np.where(y > 0, 2.0, 1.0)
    clf = rbal.SphericalPerceptron(kappa=kappa).fit(X, y, sample_weight=c)
    best = np.inf
    for _ in range(5):
        J, b = rng.normal(size=12), 0.0
        for step in 1.0 / np.sqrt(np.arange(1, 4001)):
            pulls = c * y * (y * (X @ J / np.sqrt(12) - b) < kappa)
            J = J + 0.02 * step * pulls @ X
            b -= 0.02 * step * pulls.sum()
            J *= np.sqrt(12) / np.linalg.norm(J)
            best = min(best, loss(J, b, X, y, c, kappa))
    assert clf.objective_ <= best + 1e-9
    assert best <= clf.objective_ * 1.01  # and the twin comes close


def test_small_systems_at_unit_margin():
    # a report of an early version that failed at L = 24, κ = 1, α = (1, 2)
    for seed in range(30):
        X, y, _ = sample(np.random.default_rng(seed), 24, 48, 24)
        assert rbal.SphericalPerceptron(kappa=1.0).fit(X, y).kkt_residual_ < 1e-9


def test_repeating_a_sample_is_weighing_it():
    rng = np.random.default_rng(10)
    X, y, _ = sample(rng, 15, 60, 10)
    times = np.where(y > 0, 4, 1)
    weighed = rbal.SphericalPerceptron(kappa=1.0).fit(X, y, sample_weight=times)
    repeated = rbal.SphericalPerceptron(kappa=1.0).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(repeated.J_, weighed.J_, atol=1e-9)
    assert repeated.b_ == pytest.approx(weighed.b_, abs=1e-9)


@pytest.mark.parametrize(("P", "N", "D"), [(60, 180, 25), (30, 40, 90)], ids=["many samples", "few samples"])
def test_a_warm_start_leads_to_the_same_minimum(P, N, D):
    X, y, _ = sample(np.random.default_rng(18), P, N, D)
    warm = rbal.SphericalPerceptron(warm_start=True)
    for kappa in (3.0, 3.05, 3.1, 4.0):  # positive multipliers: there is one minimum
        warm.set_params(kappa=kappa).fit(X, y)
        cold = rbal.SphericalPerceptron(kappa=kappa).fit(X, y)
        assert warm.multiplier_ > 0.0
        assert warm.kkt_residual_ < 1e-9
        assert warm.objective_ == pytest.approx(cold.objective_, rel=1e-10)
        np.testing.assert_allclose(warm.J_, cold.J_, atol=1e-6)
    assert warm.fit(X, y).n_iter_ <= 2  # it is there already
    weight = np.where(y > 0, 2.0, 1.0)
    assert warm.fit(X, y, weight).objective_ == pytest.approx(cold.fit(X, y, weight).objective_, rel=1e-10)
    assert warm.fit(X[:, :-1], y).kkt_residual_ < 1e-9  # another number of features: from the beginning


@pytest.mark.parametrize(("P", "N", "D"), [(20, 40, 10_000), (3, 3000, 50)], ids=["ten thousand features", "1:1000"])
def test_extreme_shapes(P, N, D):
    X, y, _ = sample(np.random.default_rng(11), P, N, D)
    clf = rbal.SphericalPerceptron(kappa=5.0).fit(X, y)
    assert clf.kkt_residual_ < 1e-9
    assert np.sum(clf.J_**2) == pytest.approx(D)


def test_typical_solutions_have_zero_loss_and_differ():
    X, y, _ = sample(np.random.default_rng(12), 10, 20, 60, shift=2.0)
    fits = [rbal.SphericalPerceptron(kappa=0.1, sat="typical", random_state=seed).fit(X, y) for seed in (0, 0, 1)]
    for clf in fits:
        assert clf.objective_ == 0.0
        assert (y * clf.decision_function(X) >= 0.1).all()
    np.testing.assert_array_equal(fits[0].J_, fits[1].J_)
    assert np.abs(fits[0].J_ - fits[2].J_).max() > 0.1
    widest = rbal.SphericalPerceptron(kappa=0.1).fit(X, y)
    assert (y * widest.decision_function(X)).min() > (y * fits[0].decision_function(X)).min()


@pytest.mark.slow
def test_typical_solutions_land_on_the_theory_of_the_sat_phase():
    rng = np.random.default_rng(13)
    D, trials = 100, 40
    delta = 1.5 * rng.normal(size=D)
    classes = rbal.Moments.real(delta / (2 * np.sqrt(D)), -delta / (2 * np.sqrt(D)), np.ones(D))
    sol = rbal.solve(classes, 0.3, 0.7, 0.1)
    assert sol.phase == "SAT"
    found, widest = [], []
    for seed in range(trials):
        y = np.repeat([1, -1], [30, 70])
        X = rng.normal(size=(100, D)) + np.outer(y, delta) / (2 * np.sqrt(D))
        clf = rbal.SphericalPerceptron(kappa=0.1, sat="typical", random_state=seed).fit(X, y)
        found.append(clf.order_parameters(classes)[1:])
        widest.append(rbal.SphericalPerceptron(kappa=0.1).fit(X, y).order_parameters(classes).r)
    error = np.std(found, axis=0, ddof=1) / np.sqrt(trials)
    assert (np.abs(np.mean(found, axis=0) - [sol.r, sol.b]) <= 4 * error + 2 / D).all()
    assert np.mean(widest) - sol.r > 5 * error[0]  # the largest margin is not typical


# ---- support vector machine


LOSSES = ("hinge", "squared_hinge", "square", "logistic")


@parametrize_with_checks(
    [rbal.LinearSVM(loss=loss) for loss in ("hinge", "squared_hinge", "square")]
    + [rbal.LinearSVM(loss=loss, fit_bias=False) for loss in ("hinge", "logistic")]
)
def test_scikit_learn_accepts_the_svm(estimator, check):
    check(estimator)


@pytest.mark.parametrize("loss_name", LOSSES)
@pytest.mark.parametrize("fit_bias", [True, False])
@pytest.mark.parametrize("n_states", [None, 3])
def test_svm_minimises_its_objective(loss_name, fit_bias, n_states):
    rng = np.random.default_rng(14)
    X, y, _ = sample(rng, 40, 80, 12)
    X = X if n_states is None else rng.integers(0, 3, size=X.shape)
    c = np.where(y > 0, 2.0, 1.0)
    clf = rbal.LinearSVM(lam=0.3, loss=loss_name, fit_bias=fit_bias, n_states=n_states, tol=1e-7)
    clf.fit(X, y, sample_weight=c)

    def objective(J, b):
        onehot = X if n_states is None else (X[:, :, None] == np.arange(3)).reshape(len(X), -1)
        u = y * (onehot @ J.ravel() / np.sqrt(12) - b)
        return c @ LOSS_OF_MARGIN[loss_name](u) + 0.15 * np.sum(J**2)

    best = objective(clf.J_, clf.b_)
    assert clf.objective_ == pytest.approx(best, rel=1e-10)
    for size in (1e-4, 1e-3, 1e-2):
        for _ in range(20):
            step = size * rng.normal(size=clf.J_.shape)
            step -= 0.0 if n_states is None else step.mean(axis=1, keepdims=True)  # in the zero-sum gauge
            assert objective(clf.J_ + step, clf.b_ + fit_bias * size * rng.normal()) >= best - 1e-5 * size


LOSS_OF_MARGIN = {
    "hinge": lambda u: np.clip(1 - u, 0, None),
    "squared_hinge": lambda u: np.clip(1 - u, 0, None) ** 2,
    "square": lambda u: (u - 1) ** 2,
    "logistic": lambda u: np.log1p(np.exp(-u)),
}


@pytest.mark.slow
@pytest.mark.parametrize("loss_name", LOSSES)
@pytest.mark.parametrize("fit_bias", [True, False])
def test_svm_lands_on_the_theory(loss_name, fit_bias):
    rng = np.random.default_rng(15)
    D, trials = 100, 12
    delta = 1.5 * rng.normal(size=D)
    classes = rbal.Moments.real(delta / (2 * np.sqrt(D)), -delta / (2 * np.sqrt(D)), np.ones(D))
    sol = rbal.solve(classes, 2.0, 4.0, model="svm", lam=0.5, loss=loss_name, fit_bias=fit_bias)
    found = []
    for _ in range(trials):
        y = np.repeat([1, -1], [200, 400])
        X = rng.normal(size=(600, D)) + np.outer(y, delta) / (2 * np.sqrt(D))
        clf = rbal.LinearSVM(lam=0.5, loss=loss_name, fit_bias=fit_bias, tol=1e-6).fit(X, y)
        found.append(clf.order_parameters(classes))
    error = np.std(found, axis=0, ddof=1) / np.sqrt(trials)
    assert (np.abs(np.mean(found, axis=0) - [sol.q, sol.r, sol.b]) <= 4 * error + 2 / D).all()


# ---- no intercept, on data that are not centred


def orthogonal_to(vector):
    """Projection that takes away what lies along a vector."""
    return np.eye(len(vector)) - np.outer(vector, vector) / (vector @ vector)


@pytest.mark.parametrize("loss_name", ["hinge", "logistic"])
@pytest.mark.parametrize("seed", range(3))
def test_without_a_bias_the_minimum_is_that_of_projected_data_with_one(loss_name, seed):
    # the two inequalities of Prop. "Weights that play the bias", which hold for any data set
    rng = np.random.default_rng(seed)
    L, lam = 40, 0.3
    M, delta = rng.normal(size=L), rng.normal(size=L)
    y = np.repeat([1, -1], [L, 3 * L])
    X = M + np.outer(y, delta) / (2 * np.sqrt(L)) + rng.normal(size=(4 * L, L))
    P, mu = orthogonal_to(M), M @ M / L
    bare = rbal.LinearSVM(lam=lam, loss=loss_name, fit_bias=False, tol=1e-7).fit(X, y)
    free = rbal.LinearSVM(lam=lam, loss=loss_name, tol=1e-7).fit(X @ P, y)
    b = np.array([-bare.J_ @ M / np.sqrt(L), free.b_])
    bound = np.abs(b) * np.abs((X - M) @ M / (M @ M)).sum() + lam * b**2 / (2 * mu)
    assert free.objective_ <= bare.objective_ + bound[0] + 1e-4
    assert bare.objective_ <= free.objective_ + bound[1] + 1e-4
    apart = np.sum((P @ bare.J_ - free.J_) ** 2)
    assert 0.5 * lam * apart <= bare.objective_ + bound[0] - free.objective_ + 1e-4


@pytest.mark.parametrize("angle", [0, 45, 90, None])
def test_without_a_bias_what_lies_along_the_midpoint_is_lost(angle):
    # M parallel to δ, at 45°, orthogonal; None: orthogonal, but no eigenvector of C
    rng = np.random.default_rng(17)
    L, trials = 300, 8
    even, odd = np.ones(L), np.resize([1.0, -1.0], L)
    turn = np.deg2rad(90 if angle is None else angle)
    M, delta = even, np.cos(turn) * even + np.sin(turn) * odd
    var = np.full(L, 0.84) if angle is not None else np.resize([0.2, 1.48], L)
    options = {"model": "svm", "lam": 0.3, "loss": "logistic"}
    r = []
    for P in (orthogonal_to(M), np.eye(L)):
        half = P @ delta / (2 * np.sqrt(L))
        r.append(rbal.solve(rbal.Moments.real(half, -half, P @ np.diag(var) @ P), 1.0, 3.0, **options).r)
    y = np.repeat([1, -1], [L, 3 * L])
    found = []
    for _ in range(trials):
        X = M + np.outer(y, delta) / (2 * np.sqrt(L)) + np.sqrt(var) * rng.normal(size=(4 * L, L))
        found.append(rbal.LinearSVM(lam=0.3, loss="logistic", fit_bias=False).fit(X, y).J_ @ delta / L)
    allowed = 4 * np.std(found, ddof=1) / np.sqrt(trials) + 1.5 / np.sqrt(L)
    assert abs(np.mean(found) - r[0]) < allowed
    if angle != 90:
        assert abs(np.mean(found) - r[1]) > allowed


# ---- empirical order parameters


@pytest.mark.parametrize("kind", ["real", "potts", "blocks", "few rows"])
def test_order_parameters_are_moments_of_the_scores(kind):
    rng = np.random.default_rng(16)
    L = 8
    if kind == "real":
        mix = rng.normal(size=(L, L))
        moments = rbal.Moments.real(rng.normal(size=L), rng.normal(size=L), mix @ mix.T)
        X, y = rng.normal(size=(60, L)), np.repeat([1, -1], 30)
        clf = rbal.LinearSVM(lam=1.0).fit(X, y)
        means, cov = (
            (moments.M + moments.delta / (2 * np.sqrt(L)), moments.M - moments.delta / (2 * np.sqrt(L))),
            mix @ mix.T,
        )
        weights = clf.J_
    else:
        X, y = (
            rng.integers(0, 3, size=(40 if kind == "few rows" else 60, L)),
            np.arange(40 if kind == "few rows" else 60) % 2,
        )
        X = X if kind != "few rows" else X[:12]
        y = y[: len(X)]
        covariance = "sites" if kind == "blocks" else "pooled"
        moments = rbal.Moments.from_data(X[y == 1], X[y == 0], n_states=3, covariance=covariance)
        clf = rbal.LinearSVM(lam=1.0, n_states=3).fit(X, y)
        onehot = (X[:, :, None] == np.arange(3)).reshape(len(X), -1).astype(float)
        means = onehot[y == 1].mean(axis=0), onehot[y == 0].mean(axis=0)
        cov = 0.5 * (np.cov(onehot[y == 1].T) + np.cov(onehot[y == 0].T))
        if kind == "blocks":
            cov *= np.kron(np.eye(L), np.ones((3, 3)))
        weights = clf.J_.ravel()
    found = clf.order_parameters(moments)
    scores = [mean @ weights / np.sqrt(L) - clf.b_ for mean in means]
    assert found.q == pytest.approx(weights @ cov @ weights / L)
    assert found.r == pytest.approx(scores[0] - scores[1])
    assert found.b == pytest.approx(-0.5 * (scores[0] + scores[1]))


def test_order_parameters_need_moments_of_the_same_data():
    X, y, _ = sample(np.random.default_rng(17), 10, 10, 4)
    clf = rbal.LinearSVM().fit(X, y)
    with pytest.raises(ValueError, match="moments must be of data with weights of shape"):
        clf.order_parameters(rbal.Moments.ising(m=0.0, delta=1.0, L=5))
    with pytest.raises(ValueError, match="J must have the shape of M"):
        rbal.Moments.ising(m=0.0, delta=1.0, L=5).variance(np.ones(4))


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda X, y: rbal.SphericalPerceptron(kappa=-1.0).fit(X, y), "kappa must be >= 0"),
        (lambda X, y: rbal.SphericalPerceptron().fit(X, np.ones(len(y))), "two classes"),
        (lambda X, y: rbal.SphericalPerceptron().fit(X, np.arange(len(y)) % 3), "Only binary"),
        (lambda X, y: rbal.SphericalPerceptron().fit(X, y, sample_weight=-np.ones(len(y))), "[Nn]egative"),
        (lambda X, y: rbal.SphericalPerceptron().fit(X, y, sample_weight=(y > 0)), "both classes"),
        (lambda X, y: rbal.SphericalPerceptron(n_states=2).fit(X, y), "states 0 … 1"),
        (lambda X, y: rbal.SphericalPerceptron(n_states=1).fit(X, y), "n_states must be at least 2"),
        (lambda X, y: rbal.SphericalPerceptron(sat="any").fit(X, y), "sat must be one of"),
        (lambda X, y: rbal.SphericalPerceptron(kappa=[1.0]).fit(X, y), "kappa must be a number"),
        (lambda X, y: rbal.SphericalPerceptron().fit(X[:0], y[:0]), "0 sample"),
        (lambda X, y: rbal.SphericalPerceptron().fit(X * np.nan, y), "NaN"),
        (lambda X, y: rbal.LinearSVM(lam=0.0).fit(X, y), "lam must be > 0"),
        (lambda X, y: rbal.LinearSVM(loss="huber").fit(X, y), "loss must be one of"),
        (lambda X, y: rbal.LinearSVM(n_states=3).fit(X, y), "states 0 … 2"),
        (lambda X, y: rbal.LinearSVM().fit(X, np.ones(len(y))), "two classes"),
        (lambda X, y: rbal.SphericalPerceptron(tol=0.0).fit(X, y), "tol must be > 0"),
        (lambda X, y: rbal.SphericalPerceptron(max_iter=0).fit(X, y), "max_iter must be a positive integer"),
    ],
)
def test_bad_input_names_the_argument(build, match):
    X, y, _ = sample(np.random.default_rng(7), 6, 9, 4)
    with pytest.raises(ValueError, match=match):
        build(X, y)


def test_too_few_steps_warn():
    X, y, _ = sample(np.random.default_rng(8), 40, 80, 20)
    with pytest.warns(rbal.ConvergenceWarning, match="did not converge"):
        rbal.SphericalPerceptron(kappa=0.0, max_iter=1).fit(X, y)


# ---- margins of each class


def with_margins(X, y, J, b, kappas):
    """κ - u of each sample."""
    return np.where(y > 0, *kappas) - y * (X @ J / np.sqrt(X.shape[1]) - b)


@pytest.mark.parametrize("loss_name", LOSSES)
def test_svm_with_margins_of_each_class_minimises_its_objective(loss_name):
    rng = np.random.default_rng(21)
    X, y, _ = sample(rng, 40, 80, 12)
    kappas = (1.2, -1.2) if loss_name == "logistic" else (2.0, 0.6)
    clf = rbal.LinearSVM(lam=0.3, loss=loss_name, kappa=kappas[0], kappa_neg=kappas[1], tol=1e-8).fit(X, y)

    def objective(J, b):  # LOSS_OF_MARGIN is at margin 1, or 0
        gap = with_margins(X, y, J, b, kappas) - (0.0 if loss_name == "logistic" else 1.0)
        return LOSS_OF_MARGIN[loss_name](-gap).sum() + 0.15 * J @ J

    best = objective(clf.J_, clf.b_)
    assert clf.objective_ == pytest.approx(best, rel=1e-10)
    for size in (1e-4, 1e-3, 1e-2, 0.1):
        for _ in range(20):
            assert objective(clf.J_ + size * rng.normal(size=12), clf.b_ + size * rng.normal()) >= best - 1e-5 * size


def test_perceptron_with_margins_of_each_class_minimises_its_objective():
    rng = np.random.default_rng(22)
    X, y, _ = sample(rng, 60, 120, 12)
    kappas = 1.5, 0.4
    clf = rbal.SphericalPerceptron(kappa=kappas[0], kappa_neg=kappas[1]).fit(X, y)

    def objective(J, b):
        return np.clip(with_margins(X, y, J * np.sqrt(12 / (J @ J)), b, kappas), 0, None).sum()

    best = objective(clf.J_, clf.b_)
    assert clf.objective_ == pytest.approx(best, rel=1e-10)
    for size in (1e-4, 1e-3, 1e-2):
        for _ in range(20):
            assert objective(clf.J_ + size * rng.normal(size=12), clf.b_ + size * rng.normal()) >= best - 1e-6 * size


def test_margins_of_each_class_that_are_not_taken():
    X, y, _ = sample(np.random.default_rng(23), 20, 40, 6)
    with pytest.raises(ValueError, match="kappa_neg must be kappa, or left out, with fit_bias=False"):
        rbal.LinearSVM(kappa=1.0, kappa_neg=0.5, fit_bias=False).fit(X, y)
    with pytest.raises(ValueError, match="the mean margin must be 0 for loss='logistic', got 1"):
        rbal.LinearSVM(kappa=1.0, loss="logistic").fit(X, y)
    with pytest.raises(ValueError, match=r"must be > 0, got 0"):
        rbal.LinearSVM(kappa=1.0, kappa_neg=-1.0).fit(X, y)
    with pytest.raises(ValueError, match="the mean of kappa and kappa_neg must be >= 0"):
        rbal.SphericalPerceptron(kappa=0.1, kappa_neg=-0.3).fit(X, y)


def test_arrays_that_skip_the_checks_are_treated_as_any_other():
    rng = np.random.default_rng(21)
    X, y, _ = sample(rng, 30, 50, 8)
    X = np.round(4 * X)
    plain = rbal.SphericalPerceptron().fit(X, y)
    for same in (X.astype(int), X.astype(np.float32), np.asfortranarray(X), X.tolist()):
        np.testing.assert_allclose(rbal.SphericalPerceptron().fit(same, y).J_, plain.J_, rtol=1e-12)
    for labels in (y.astype(float), y.astype(str), y > 0):
        np.testing.assert_allclose(np.abs(rbal.SphericalPerceptron().fit(X, labels).J_), np.abs(plain.J_), rtol=1e-12)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.array([[1.0, np.nan], [0.0, 1.0]]), np.array([0, 1]), "NaN"),
        (np.array([[1.0, np.inf], [0.0, 1.0]]), np.array([0, 1]), "infinity"),
        (np.array([[1.0, 1e80], [0.0, 1.0]]), np.array([0, 1]), "X must hold numbers of size"),
        (np.zeros((3, 2)), np.array([0, 1]), "inconsistent numbers of samples"),
        (np.zeros((2, 0)), np.array([0, 1]), "0 feature"),
        (np.zeros((2, 2)), np.array([0.5, 1.5]), "Unknown label type"),
    ],
)
def test_arrays_that_do_not_pass_are_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        rbal.SphericalPerceptron().fit(X, y)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_long_descent_where_the_first_weight_steps_overshoot(seed):
    """Of real sequences with more negatives than positives: the guess was off by hundreds of samples, 3,600 steps."""
    rng = np.random.default_rng(seed)
    pos, neg = (rng.permutation(lattice.load_dimers(name)) for name in ("bounded", "unbounded"))
    X, y = np.concatenate([pos[:1026], neg[:1905]]), np.repeat([1, -1], [1026, 1905])
    clf = rbal.SphericalPerceptron(kappa=5.0, n_states=20).fit(X, y)
    assert clf.kkt_residual_ < 1e-12
    assert clf.n_iter_ < clf.J_.size / 5
