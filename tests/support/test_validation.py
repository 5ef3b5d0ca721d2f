"""Strictness at every door: text is no number and no truth value, a mask hides no number, a seed is not negative."""

import numpy as np
import pytest

import rbal
from rbal import experiments, strategies
from rbal._support.validation import MOST_FLOATS, flag, in_range, number, one_hot_room, real_array, seeded, unmasked
from rbal.datasets import images, synthetic

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
            lambda value: experiments.train(None, classes=synthetic.ising(L=4), alpha_pos=value, alpha_neg=1),
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
