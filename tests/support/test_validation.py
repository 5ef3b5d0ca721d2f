"""Strictness at every door: text is no number and no truth value, a mask hides no number, a seed is not negative."""

import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

import rbal
import rbal.advice
import rbal.metrics
import rbal_book.plotting
import rbal_book.studies
from rbal import experiments, strategies
from rbal._support.validation import MOST_FLOATS, flag, in_range, number, one_hot_room, real_array, seeded, unmasked
from rbal.datasets import synthetic
from rbal_book.datasets import images, lattice

CLASSES = rbal.Moments.ising(m=0.4, delta=1.0, L=20)
Y = np.repeat([1, 0], [8, 24])
X = np.random.default_rng(0).normal(size=(32, 5)) + 0.5 * Y[:, None]
BITS = (X > 0).astype(int)
MASKED = np.ma.array(X, mask=X > 1.0)


def trial(rng, n):
    return {"first": rng.random()}


@pytest.mark.parametrize(
    "call",
    [
        lambda value: rbal.solve(CLASSES, 1.0, 2.0, fit_bias=value),
        lambda value: rbal.sweep(CLASSES, 1.0, np.array([2.0, 3.0]), fit_bias=value),
        lambda value: rbal.critical_margin(CLASSES, 1.0, 2.0, fit_bias=value),
        lambda value: strategies.mix(CLASSES, 1.0, 2.0, 0.5, fit_bias=value),
        lambda value: strategies.compare(CLASSES, 1.0, 2.0, fit_bias=value),
        lambda value: rbal.LinearSVM(fit_bias=value).fit(X, Y),
        lambda value: rbal.RBM(2, warm_start=value).fit(BITS),
        lambda value: rbal.RBM(2, progress=value).fit(BITS),
        lambda value: experiments.run(trial, {"n": [1]}, progress=value),
        lambda value: images.load_cifar10(download=value),
        lambda value: images.load_fashion_mnist(download=value),
    ],
)
@pytest.mark.parametrize("value", ["no", "False", 0, None])
def test_only_a_truth_value_is_one(call, value):
    with pytest.raises(TypeError, match=f"must be True or False, got {value!r}"):
        call(value)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("alpha_pos", lambda value: rbal.solve(CLASSES, value, 2.0)),
        ("alpha_neg", lambda value: rbal.sweep(CLASSES, 1.0, value)),
        ("kappa", lambda value: rbal.solve(CLASSES, 1.0, 2.0, value)),
        ("weight_pos", lambda value: rbal.solve(CLASSES, 1.0, 2.0, weight_pos=value)),
        ("lam", lambda value: rbal.solve(CLASSES, 1.0, 2.0, model="svm", lam=value)),
        ("tol", lambda value: rbal.solve(CLASSES, 1.0, 2.0, tol=value)),
        ("alpha_pos", lambda value: rbal.critical_margin(CLASSES, value, 2.0)),
        ("kappa", lambda value: strategies.mix(CLASSES, 1.0, 2.0, 0.5, kappa=value)),
        ("mixing", lambda value: strategies.mix(CLASSES, 1.0, 2.0, value)),
        ("alpha_pos", lambda value: strategies.compare(CLASSES, value, 2.0)),
        ("tolerance", lambda value: strategies.best_mixing(CLASSES, 1.0, 2.0, tolerance=value)),
        ("lam", lambda value: rbal.LinearSVM(lam=value).fit(X, Y)),
        ("tol", lambda value: rbal.LinearSVM(tol=value).fit(X, Y)),
        ("kappa", lambda value: rbal.SphericalPerceptron(kappa=value).fit(X, Y)),
        ("l2", lambda value: rbal.RBM(2, l2=value).fit(BITS)),
        ("learning_rate", lambda value: rbal.RBM(2, learning_rate=value).fit(BITS)),
        (
            "alpha_pos",
            lambda value: experiments.train(
                np.random.default_rng(0), classes=synthetic.ising(L=4), alpha_pos=value, alpha_neg=1
            ),
        ),
    ],
)
@pytest.mark.parametrize("value", ["1", True])
def test_only_a_number_is_one(name, call, value):
    with pytest.raises((TypeError, ValueError), match=f"{name}.* must be .*[Gg]ot {value!r}"):
        call(value)


def test_arrays_of_text_and_of_truth_values_are_not_numbers():
    for value in (np.array(["1", "2"]), ["1", 2.0], np.array(["1", 2.0], object), np.array([1 + 2j])):
        with pytest.raises(TypeError, match=r"^x must be numeric"):
            real_array("x", value)
    with pytest.raises(TypeError, match=r"^x must be a number"):
        in_range("x", np.array([True]), 0.0)
    assert number("x", np.float32(2.0), 0.0) == number("x", np.int8(2), 0.0) == number("x", np.array(2), 0.0) == 2.0
    assert flag("x", np.True_) is True


@pytest.mark.parametrize(
    "call",
    [
        lambda: rbal.Moments.from_data(MASKED[:8], X[8:]),
        lambda: rbal.LinearSVM().fit(MASKED, Y),
        lambda: rbal.LinearSVM().fit(X, np.ma.array(Y, mask=Y > 0)),
        lambda: rbal.LinearSVM().fit(X, Y).predict(MASKED),
        lambda: rbal.SphericalPerceptron().fit(MASKED, Y),
        lambda: rbal.RBM(2).fit(np.ma.array(BITS, mask=BITS > 0)),
        lambda: rbal.RandomMixSampler().fit_resample(MASKED, Y),
        lambda: rbal.RandomMixSampler().fit_resample(X, np.ma.array(Y, mask=Y > 0)),
        lambda: rbal.LikelihoodInformedSampler().fit_resample(np.ma.array(BITS, mask=BITS > 0), Y),
        lambda: rbal.RBMSMOTE().fit_resample(np.ma.array(BITS, mask=BITS > 0), Y),
        lambda: rbal.sweep(CLASSES, np.ma.array([1.0, 2.0], mask=[True, False]), 2.0),
    ],
)
def test_a_mask_hides_no_number(call):
    with pytest.raises(ValueError, match=r"must hold no masked values, got \d+: fill them in"):
        call()


def test_a_mask_of_nothing_does_no_harm():
    found = rbal.LinearSVM().fit(np.ma.array(X, mask=False), Y)
    np.testing.assert_array_equal(found.J_, rbal.LinearSVM().fit(X, Y).J_)
    assert unmasked("x", [1, 2]) == [1, 2]


@pytest.mark.parametrize(
    "call",
    [
        lambda seed: rbal.SphericalPerceptron(random_state=seed).fit(X, Y),
        lambda seed: rbal.RBM(2, random_state=seed, progress=False).fit(BITS),
        lambda seed: images.load_mnist(random_state=seed),
        lambda seed: images.load_mnist().sample(2, 2, seed),
        lambda seed: synthetic.random_gaussian(seed, L=4),
        lambda seed: experiments.run(trial, {"n": [1]}, seed=seed, progress=False),
        lambda seed: rbal.RandomMixSampler(random_state=seed).fit_resample(X, Y),
    ],
)
def test_a_seed_is_not_negative(call):
    with pytest.raises((TypeError, ValueError), match=r"(rng|seed|random_state).* must be .*[Gg]ot -1"):
        call(-1)


def test_what_a_seed_may_be():
    for value in (0, np.int64(3), None, np.random.default_rng(1), np.random.SeedSequence(2)):
        assert isinstance(seeded("rng", value), np.random.Generator)
    for value in (1.5, "1", True, -3):
        with pytest.raises(ValueError, match=r"^rng must be an integer >= 0, a Generator or None, got"):
            seeded("rng", value)


def test_one_hot_states_that_do_not_fit_in_memory():
    assert one_hot_room("n_states", 1000, 100, 20) is None
    with pytest.raises(ValueError, match="n_states must leave arrays of at most 268,435,456 numbers, got 20000"):
        one_hot_room("n_states", 4, 3, 20_000)
    with pytest.raises(ValueError, match="merge rare states"):
        one_hot_room("n_states", MOST_FLOATS, 1, 2)
    for learner in (rbal.LinearSVM, rbal.SphericalPerceptron):
        with pytest.raises(ValueError, match="n_states must leave arrays of at most"):
            learner(n_states=20_000).fit(BITS, Y)


@pytest.mark.parametrize("learner", [rbal.LinearSVM, rbal.SphericalPerceptron])
def test_features_whose_squares_overflow(learner):
    with pytest.raises(ValueError, match=r"X must hold numbers of size <= 1e\+75, got 1e\+300 in column 2: correct it"):
        learner().fit(np.where(np.arange(5) == 2, 1e300, X), Y)


# ---- what the fuzz suite found: each call below answered NaN, ran out of memory or time, or raised in other words

METRICS = rbal.Metrics([0.5, 1.0], [1.2, 0.4], [0.3, -0.2])
PARTS = rbal.metrics.MixtureMetrics([0.5, 2.2, -1.0], [1.0, 0.2, 0.7], [1, 1, -1], [0.7, 0.3, 1.0])
KERNEL = rbal.Moments.from_kernel(X @ X.T, Y)
SPINS = synthetic.ising(m=0.3, delta=1.0, L=8)
PARTED = rbal.Mixture.gaussian(np.eye(4), np.eye(4), [1, 1, -1, -1], [0.5, 0.5, 0.5, 0.5])
MANY = rbal.metrics.ManyMetrics(np.eye(3), np.tile(np.eye(3), (3, 1, 1)), [0, 1, 2], [1.0, 1.0, 1.0])
RIDGE = rbal.solve(CLASSES, 1.0, 2.0, model="svm", lam=1.0)
RNG = np.random.default_rng(0)
REFUSED = {
    "X must have finite products": lambda: rbal.kernels.bind("poly", X).diagonal(1e300 * X),
    "lam must be numeric, got lists of": lambda: strategies.compare(PARTED, 0.5, 3.0, lam=[[1], [1, 2]]),
    "kappa and the like must be numbers": lambda: rbal.solve(CLASSES, [1.0, 2.0], 1.0),
    "got lists of several lengths": lambda: rbal.Moments.from_kernel(X @ X.T, [[1], [1, 2]]),
    "phi must leave samples of another class": lambda: MANY.auc([1.0, 0.0, 0.0]),
    "alpha_neg must leave arrays": lambda: experiments.train(RNG, classes=SPINS, alpha_pos=1.0, alpha_neg=1e16),
    "n_test must leave arrays": lambda: experiments.train(RNG, classes=SPINS, alpha_pos=1, alpha_neg=1, n_test=10**400),
    "inconsistent numbers of samples": lambda: rbal.RandomMixSampler().fit_resample(X[:2], Y),
    "source must be names of one kind": lambda: rbal_book.studies.clustered([1.0, 2.0], [[1], [1, 2]]),
    "X must have columns of different names": lambda: (
        rbal.LinearSVM().fit(X, Y).predict(pd.DataFrame(X, columns=[*"aabcd"]))
    ),
    "alpha_neg must be >= 1e-150": lambda: rbal.critical_margin(CLASSES, 0.3, 5e-324),
    "rho_pos must be >= 1e-20": lambda: rbal.critical_alpha(CLASSES, rho_pos=5e-324),
    "estimator must have a penalty": lambda: rbal.calibrated(LogisticRegression(C=1e-300)).fit(X, Y),
    "estimator must be a classifier": lambda: rbal.calibrated(LogisticRegression).fit(X, Y),
    "sample_weight must be numeric": lambda: rbal.calibrated(LogisticRegression()).fit(X, Y, "abc"),
    "lam must be >= 1e-50": lambda: rbal.LinearSVM(lam=1e-100, loss="squared_hinge").fit(X, Y),
    "X must hold numbers up to 1e308": lambda: rbal.LinearSVM().fit(10**400, Y),
    "L must leave arrays": lambda: synthetic.d1(L=10**12),
    "Q must leave arrays": lambda: synthetic.d2(0, L=5, Q=10**9),
    "ratio must leave arrays": lambda: synthetic.random_gaussian(0, L=5, ratio=1e12),
    "n_pos must leave arrays": lambda: SPINS.sample(10**12, 0, 0),
    "solution must be a Solution": lambda: KERNEL.widths(np.zeros((0, 3))),
    "C must leave a ridge": lambda: KERNEL.ridge(5e-324),
    "positive must be one of the labels": lambda: rbal.Moments.from_kernel(X @ X.T, Y, positive=np.zeros((2, 3, 4))),
    "remedies must be a list": lambda: strategies.best_classifier(X, Y, remedies=-1.0),
    "trials must be numeric": lambda: rbal_book.plotting.dots(Figure().subplots(), np.arange(3), object()),
    "x must be numeric": lambda: rbal_book.plotting.dots(Figure().subplots(), [[1], [1, 2]], np.ones((2, 2))),
    "folder must be a path": lambda: rbal_book.studies.stored("sampling", 1.5),
    "path must be a path": lambda: rbal.advice.read_table(b"x", "y"),
    "structures must be a Structures": lambda: lattice.sample_dimers(1.0, 0, 1, chi=1.0, n_samples=2, n_chains=2),
    "costs must be two numbers": lambda: rbal.metrics.evaluate(X[:, 0], 2 * Y - 1, costs=1e5),
    "n_pos must be at most": lambda: METRICS.tuning_cost(0.2, n_pos=10**400, n_neg=10),
    "threshold must be a number": lambda: METRICS.cost_curve(threshold=[-1.0, 1.0]),
    "threshold must be numeric": lambda: METRICS.tpr([None]),
    "train_share must be > 0": lambda: rbal.metrics.Link().corrected(1.0, 1.0),
    "delta must be within 1e150 deviations": lambda: PARTS.log_odds(1e300, 0.2),
    r"phi_pos \(3,\)": lambda: METRICS.acc(np.ones(3)),
    r"threshold \(0,\)": lambda: rbal.Metrics(1.0, 1.0, 0.0).mcc([0.1, 0.2], []),
    r"phi_pos \(2, 3, 4\)": lambda: METRICS.fm(np.zeros((2, 3, 4))),
    r"phi_pos \(0,\)": lambda: METRICS.reliability((), 3),
    r"test_share \(0,\)": lambda: rbal.metrics.Link().corrected((0.5, 0.5), []),
    "kappa must be a number": lambda: strategies.compare(CLASSES, 2.0, 0.5, [1.0, 2.0]),
    "lam must be a number": lambda: strategies.compare(CLASSES, 2.0, 0.5, model="svm", lam=[1.0, 2.0]),
    "alpha_pos and alpha_neg must have a finite ratio": lambda: strategies.compare(CLASSES, 1e-300, 1e99, 0.5),
    "model must be numeric, got lists": lambda: strategies.balanced(CLASSES, 1.0, 1.0, 1.0, model=[[1], [1, 2]]),
    "strength must leave positive weights": lambda: strategies.adjust(CLASSES, 0.5, 3.0, "class weights", -1e8),
    "metric must be a function of Metrics, got <": lambda: strategies.best_mixing(CLASSES, 0.5, 3.0, 0.5, metric=len),
    "metric must be a function of confusion": lambda: MANY.best_offsets(metric=len),
    "the value of metric must be numeric": lambda: MANY.best_offsets(metric=lambda confusions, phi: "high"),
    "g must be a function of a score and a label": lambda: METRICS.test_loss(len, 0.1),
    "weights must be numeric, got lists": lambda: rbal.solve_multinomial(PARTED, [1.0, 1.0], weights=[[1], [1, 2]]),
    "kappa_neg must be >=": lambda: rbal.LinearSVM(kappa_neg=2.0**63).fit(X, Y),
    "the largest sample_weight must be": lambda: rbal.LinearSVM().fit(X, Y, np.full(len(Y), 1.7e308)),
    "weight_pos must be > 0 and <=": lambda: experiments.train(
        RNG, classes=SPINS, alpha_pos=1.0, alpha_neg=2.0, weight_pos=1.7e308
    ),
    "answers must be True or False": lambda: experiments.train(
        RNG, classes=SPINS, alpha_pos=1.0, alpha_neg=2.0, answers=pd.DataFrame({"a": [1.0]})
    ),
    "sat must be one of": lambda: experiments.train(
        RNG, classes=SPINS, alpha_pos=1.0, alpha_neg=2.0, sat=pd.Series([1.0, 2.0])
    ),
    "X must be numeric: could not convert": lambda: (
        rbal.RBM(2, n_epochs=1, progress=False).fit(BITS).score_samples(pd.DataFrame(BITS).astype(str) + "x")
    ),
    r"numbers of samples: \[32, 31\]": lambda: rbal.RBMSMOTE(
        rbm=rbal.RBM(n_hidden=2, n_epochs=1, progress=False)
    ).fit_resample(BITS, Y[:31]),
    "kappa must be finite, got an integer": lambda: rbal_book.plotting.margin_color(10**400),
    "states must be written in the letters": lambda: lattice.p_int("\x00", np.zeros((144, 1, 2), int)),
    "cov must be numeric": lambda: synthetic.ising(m=0.3, delta=1.0, L=8, cov=csr_array(X)),
    "shares must add up to 1 in each class": lambda: rbal.metrics.MixtureMetrics(
        [1.0, 2.0, -1.0], 1.0, [1, 1, -1], range(3)
    ),
    "n must leave arrays": lambda: rbal.RBM(2, n_epochs=1, progress=False).fit(BITS).sample(10**9),
    "rng must be a Generator": lambda: experiments.train(2**63, classes=SPINS, alpha_pos=0.5, alpha_neg=2.0),
    "bias must be >= 0 and <=": lambda: rbal.kernels.ntk(X, X, bias=1.7e308),
    "shared must be a pair": lambda: rbal.overlap(CLASSES, RIDGE, RIDGE, shared=np.array(0.5)),
    "y must be numeric, got lists": lambda: experiments.shared_test(np.ones((3, 2)), [[1], [1, 2]]),
    "n_pos must leave arrays of": lambda: PARTED.sample(10**400, 1),
    "L must be at most": lambda: rbal.moments.Spectrum.of(np.ones(5), np.ones(5), L=10**400, Q=1),
    "places must be numeric, got lists": lambda: rbal.metrics.ManyMetrics(
        np.eye(3), np.tile(np.eye(3), (3, 1, 1)), [[1], [1, 2]]
    ),
    "of_theory must be a function or None": lambda: rbal.metrics.Metric("mine", "M", "m", of_theory=np.ones(3)),
    "goal must be True or False": lambda: rbal.metrics.Metric("mine", "M", "m", goal=np.array([])),
    "X must have columns of different": lambda: rbal.RandomMixSampler().fit_resample(
        pd.DataFrame(X, columns=[*"aabcd"]), Y
    ),
    "lam must be >= 1e-09": lambda: rbal.solve_multinomial(PARTED, [1.0, 1.0], lam=1e-300),
    "keep must be a list": lambda: rbal.advise(X, Y, C=1.0, keep=np.datetime64("2020-01-01")),
    "C must be numeric, got lists": lambda: rbal.advise(X, Y, C=[[1], [1, 2]]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_served_is_refused_by_name(message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rbal.ConvergenceWarning)
        with pytest.raises((TypeError, ValueError), match=message):
            REFUSED[message]()


@pytest.mark.parametrize("name", ["drop", "na", "sep", "encoding", "categorical"])
def test_a_number_is_no_option_of_a_file(tmp_path, name):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,no\n2,yes\n")
    with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
        rbal.advice.read_table(path, "y", **{name: -1.5})


def test_nothing_that_converges_is_told_soon():
    """Where no solution converges, as of a hinge loss under so large a ridge, few are tried."""
    with pytest.warns(rbal.ConvergenceWarning, match="not converge"):
        table = strategies.compare(PARTED, 0.5, 3.0, model="svm", lam=1e27)
    assert np.isnan(table.loc[[("undersampling", "trained"), ("best mix", "trained")], "ba"]).all()


def test_far_out_nothing_overflows():
    assert rbal_book.plotting.margin_color(5e-324) == rbal_book.plotting.margin_color(0.3)
    assert rbal.Metrics(1.0, 0.4, 0.0).ppv(0.3, 1.7e308) == 1.0
    assert rbal.metrics.MixtureMetrics([1.0, -1.0], 1.7e308, [1, -1], [1.0, 1.0]).auc() == pytest.approx(0.5)
    np.testing.assert_allclose(MANY.auc([0.0, 1.0, 2.0]), MANY.auc([1.0, 1.0, 2.0]))
    assert METRICS.uncertain_cost([1.0] * 40).threshold.tolist() == [-np.inf, -np.inf]
    sat = rbal.solve(CLASSES, 0.2, 0.2, 0.1)
    assert rbal.train_density(sat, 1e300, 1)[0] == 0.0
    assert PARTS.cluster_density(1e300).tolist() == [0.0, 0.0, 0.0]
    logistic = rbal.solve(CLASSES, 1.0, 3.0, model="svm", lam=0.5, loss="logistic")
    assert rbal.train_density(logistic, 1e300, 1)[0] == 0.0
