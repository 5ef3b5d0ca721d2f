"""The estimator: training, interruptions, files and arguments."""

import inspect
import itertools
import json
import math
import os
import threading

import numba
import numpy as np
import pandas as pd
import pytest
from machines import digits
from numpydoc.docscrape import ClassDoc, FunctionDoc
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import rbal
from rbal.rbm import RBM, LogPartition, _training

# ---- training


def known(Q, L, seed):
    """A distribution with structure, and a sample whose frequencies are close to it."""
    rng = np.random.default_rng(seed)
    v = np.array(list(itertools.product(range(Q), repeat=L)))
    p = softmax(rng.normal(scale=1.5, size=len(v)))
    counts = np.round(20_000 * p).astype(int)
    return v, counts / counts.sum(), np.repeat(v, counts, axis=0)


@pytest.mark.parametrize(
    ("Q", "L", "hidden", "M", "limit"),
    [(2, 4, "bernoulli", 12, 0.01), (3, 2, "bernoulli", 10, 0.01), (2, 4, "gaussian", 4, 0.25)],
)
def test_training_learns_a_known_distribution(Q, L, hidden, M, limit):
    v, p, X = known(Q, L, seed=20)
    rbm = RBM(
        M,
        n_states=Q,
        hidden=hidden,
        n_epochs=60,
        n_chains=500,
        l2=0.0,
        learning_rate=0.1,
        random_state=0,
        progress=False,
    ).fit(X)
    log_p = np.log(np.maximum(p, 1e-300))
    independent = sum(
        np.sum(p * np.log(np.array([p[v[:, i] == s].sum() for s in range(Q)])[v[:, i]])) for i in range(L)
    )
    kl, without = p @ (log_p - rbm.score_samples(v)), p @ log_p - independent
    assert -1e-9 < kl < limit
    assert kl < 0.7 * without  # what independent sites miss


def test_gaussian_hidden_units_learn_pair_correlations():
    """A machine with Gaussian hidden units is a pair model, and can learn any that has positive couplings."""
    v = np.array(list(itertools.product((0, 1), repeat=3)))
    p = softmax([0.3 * a - 0.5 * b + 1.2 * a * b + 0.8 * b * c - 0.4 * c for a, b, c in v])
    X = np.repeat(v, np.round(20_000 * p).astype(int), axis=0)
    rbm = RBM(
        3, hidden="gaussian", n_epochs=60, n_chains=500, learning_rate=0.1, l2=0.0, random_state=0, progress=False
    ).fit(X)
    assert p @ (np.log(p) - rbm.score_samples(v)) < 2e-3


def test_training_starts_at_the_independent_sites():
    X = digits(500, L=8, seed=3) * (np.arange(8) > 2)
    rbm = RBM(5, n_epochs=1, learning_rate=1e-12, random_state=0, progress=False).fit(X)
    n_ones = X.sum(axis=0)
    np.testing.assert_allclose(rbm.fields_, np.log((n_ones + 0.5) / (500 - n_ones + 0.5)), rtol=1e-5)
    assert rbm.weights_.std() == pytest.approx(0.1 / np.sqrt(8), rel=0.5)


def test_constant_sites_do_no_harm():
    X = digits(300, L=8, seed=4)
    X[:, 0], X[:, 1] = 0, 1
    rbm = RBM(4, n_epochs=50, random_state=0, progress=False).fit(X)
    drawn = rbm.sample(2000, random_state=0)
    assert drawn[:, 0].mean() < 0.01
    assert drawn[:, 1].mean() > 0.99
    assert np.isfinite(rbm.score_samples(X)).all()


@pytest.mark.parametrize("hidden", ["bernoulli", "gaussian"])
@pytest.mark.parametrize(
    "params",
    [{"n_chains": 300}, {"n_chains": 1}, {"batch_size": 10_000}, {"batch_size": 1}, {"n_gibbs": 3}, {"n_hidden": 1}],
)
def test_few_samples_chains_or_units(params, hidden):
    X = digits(17)
    rbm = RBM(n_epochs=2, random_state=0, hidden=hidden, progress=False, **{"n_hidden": 3, **params}).fit(X)
    assert np.isfinite(rbm.score(X))
    assert rbm.sample(40, random_state=0).shape == (40, 6)


def test_one_sample():
    rbm = RBM(2, n_epochs=3, random_state=0, progress=False).fit([[0, 1, 1]])
    assert rbm.score_samples([[0, 1, 1]]) > rbm.score_samples([[1, 0, 0]])


@pytest.mark.parametrize("Q", [2, 3])
def test_one_site(Q):
    # one of the two halves has nothing to do
    X = np.repeat(np.arange(Q), [60, 20, 20][:Q])[:, None]
    rbm = RBM(2, n_states=Q, n_epochs=30, batch_size=10, l2=0.0, random_state=0, progress=False).fit(X)
    p = np.exp(rbm.score_samples(np.arange(Q)[:, None]))
    np.testing.assert_allclose(p, np.bincount(X[:, 0]) / len(X), atol=0.1)


def test_history():
    X = digits(200, L=6, seed=5)
    X[:, 1:3] = X[:, :1]
    rbm = RBM(6, n_epochs=60, ais_every=20, l2=0.0, random_state=0, progress=False).fit(X)
    history = rbm.history_
    assert set(history) == {"pseudo_likelihood", "reconstruction_error", "log_likelihood"}
    assert all(len(values) == rbm.n_epochs_ == 60 for values in history.values())
    assert np.flatnonzero(~np.isnan(history["log_likelihood"])).tolist() == [19, 39, 59]
    assert history["log_likelihood"][-1] == pytest.approx(rbm.score(X))
    # sites and reconstructions, one by one
    other = X[:, None] ^ np.eye(6, dtype=int)
    flipped = rbm.score_samples(other.reshape(-1, 6)).reshape(200, 6)
    exact = -np.log1p(np.exp(flipped - rbm.score_samples(X)[:, None])).sum(axis=1).mean()
    assert history["pseudo_likelihood"][-1] == pytest.approx(exact, abs=0.15)
    again = expit(rbm.transform(X) @ rbm.weights_.T + rbm.fields_)
    assert history["reconstruction_error"][-1] == pytest.approx(np.abs(X - again).mean(), rel=1e-5)


# ---- going on


def same(first, second):
    for one, two in zip(first._training.machine[2:], second._training.machine[2:], strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(first.sample(9, random_state=5), second.sample(9, random_state=5))
    for name in first.history_:
        np.testing.assert_array_equal(first.history_[name], second.history_[name])


def small(**params):
    usual = {"n_hidden": 5, "n_epochs": 6, "batch_size": 40, "n_chains": 20, "random_state": 0, "progress": False}
    return RBM(**{**usual, **params})


def test_partial_fit_is_fit_in_pieces():
    X = digits()
    pieces = small()
    for _ in range(6):
        pieces.partial_fit(X)
    same(small().fit(X), pieces)
    assert pieces.partial_fit(X[:50]).n_epochs_ == 7


def test_fit_starts_anew_and_a_warm_start_goes_on():
    X = digits()
    whole = small().fit(X)
    same(whole, clone(whole).fit(X))
    same(whole, whole.fit(X))
    half = small(warm_start=True).partial_fit(X).partial_fit(X)
    same(whole, half.fit(X))
    assert half.fit(X).n_epochs_ == 6


@pytest.mark.parametrize("half", [0, 1])
def test_an_interrupted_fit_goes_on_as_if_nothing_had_happened(monkeypatch, half):
    X, advance, rbm = digits(), _training.advance, small(warm_start=True)

    def interrupted(own, *args):
        if own.h != half or getattr(rbm, "n_epochs_", 0) != 3:
            return advance(own, *args)
        made = advance(own, *args[:-1], min(args[-1], 5))  # of twelve: it may be fewer, where the other half is late
        if made == 5:
            raise KeyboardInterrupt
        return made

    monkeypatch.setattr(_training, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rbm.fit(X)
    monkeypatch.undo()
    assert rbm.n_epochs_ == 3
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")]
    assert np.isfinite(rbm.score(X))
    same(rbm.fit(X), small().fit(X))


@pytest.mark.parametrize("hidden", ["bernoulli", "gaussian"])
@pytest.mark.parametrize("Q", [2, 3])
def test_the_number_of_threads_changes_nothing(Q, hidden):
    X = digits(300, L=40, Q=Q)
    params = {"n_states": Q, "hidden": hidden, "n_hidden": 30, "n_epochs": 2, "batch_size": 100, "n_chains": 60}
    results, most = [], numba.get_num_threads()
    if most == 1:
        pytest.skip("needs two cores")
    for n in (1, most):
        numba.set_num_threads(n)
        try:
            with threadpool_limits(n):
                rbm = small(**params).fit(X)
                results.append((rbm, rbm.sample(700, random_state=1), rbm.log_partition(n_betas=30)))
        finally:
            numba.set_num_threads(most)
    (one, drawn, log_z), (two, drawn_too, log_z_too) = results
    same(one, two)
    np.testing.assert_array_equal(drawn, drawn_too)
    assert log_z == log_z_too


def frozen(X):
    X = X.copy()
    X.flags.writeable = False
    return X


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda X: np.hstack([X, X])[:, : X.shape[1]], frozen])
def test_the_layout_of_the_data_changes_nothing(layout):
    X = digits().astype(np.int8)
    other = layout(X)
    assert not (other.flags.c_contiguous and other.flags.writeable)
    first = small().fit(X)
    same(first, small().fit(other))


def test_a_generator_given_as_seed_is_not_shared():
    rng = np.random.default_rng(3)
    first = small(random_state=rng).fit(digits())
    state = rng.bit_generator.state
    first.partial_fit(digits())
    assert rng.bit_generator.state == state
    same(small(random_state=3).fit(digits()).partial_fit(digits()), first)


def test_training_that_diverges_says_so_and_keeps_the_last_good_machine():
    X = digits()
    rbm = small(hidden="gaussian", learning_rate=1e6, n_epochs=50)
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="learning_rate smaller than 1e\\+06"):
        rbm.fit(X)
    assert np.isfinite(rbm.weights_).all()


@pytest.mark.parametrize(
    ("params", "change"),
    [
        ({"l2": 1e10}, r"a smaller l2 or learning_rate, whose product must be below 1, got 1e\+10 and 0.1"),
        ({"l2": 50.0}, "a smaller l2 or learning_rate, whose product must be below 1, got 50 and 0.1"),
        ({"l2": 1e10, "hidden": "gaussian"}, r"a smaller l2 or learning_rate, .* got 1e\+10 and 0.01"),
        ({"learning_rate": 1e4}, "a learning_rate smaller than"),
        ({"learning_rate": 1e4, "n_states": 3}, "a learning_rate smaller than"),
    ],
)
def test_training_that_diverges_is_seen_while_its_numbers_are_finite(params, change):
    # one batch an epoch: the first weights are multiplied by -2e9 once, and nothing overflows
    rbm = small(**{"batch_size": 1000, "n_epochs": 20, **params})
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match=f"diverged in epoch .*: take {change}"):
        rbm.fit(digits())
    assert np.abs(rbm.weights_).max() < 87.0


def test_strong_penalties_that_converge_are_no_divergence():
    rbm = small(l2=5.0, n_epochs=20).fit(digits())  # rate times l2 is a half: weights vanish at once
    assert np.abs(rbm.weights_).max() < 0.2
    small(learning_rate=1.0, n_epochs=30).fit(digits())


# ---- files


@pytest.mark.parametrize("Q", [2, 3])
def test_a_saved_machine_goes_on(tmp_path, Q):
    X = digits(Q=Q)
    rbm = small(n_states=Q, ais_every=2).fit(X)
    rbm.save(tmp_path / "machine.npz")
    loaded = RBM.load(tmp_path / "machine.npz")
    assert loaded.get_params() == rbm.get_params()
    assert loaded.n_features_in_ == 6
    same(rbm, loaded)
    assert loaded.score(X) == rbm.score(X)
    same(rbm.partial_fit(X), loaded.partial_fit(X))
    assert [path.name for path in tmp_path.iterdir()] == ["machine.npz"]


def test_names_of_columns_are_saved(tmp_path):
    table = pd.DataFrame(digits(), columns=list("abcdef"))
    small(random_state=np.random.default_rng(0)).fit(table).save(tmp_path / "machine.npz")
    loaded = RBM.load(str(tmp_path / "machine.npz"))
    assert loaded.feature_names_in_.tolist() == list("abcdef")
    assert loaded.random_state is None
    with pytest.raises(ValueError, match="feature names"):
        loaded.score_samples(table[list("fedcba")])


@pytest.mark.parametrize("path", [3, True, b"machine.npz", "", ".", "pipe"])
def test_a_machine_is_saved_in_a_file_and_nothing_else(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)  # a pipe of our own: if the check fails, it is this one that is replaced, and no device
    os.mkfifo("pipe")
    rbm = RBM(n_hidden=2, n_epochs=1, progress=False).fit(np.eye(4, dtype=int))
    with pytest.raises(ValueError, match="path must be the path of a file, got "):
        rbm.save(path)
    with pytest.raises(ValueError, match="path must be the path of a file, got "):
        RBM.load(os.devnull if path == "pipe" else path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["pipe"]
    assert not os.path.isfile("pipe")


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    rbm = small().fit(digits())
    rbm.save(tmp_path / "machine.npz")
    before = (tmp_path / "machine.npz").read_bytes()
    rbm.partial_fit(digits())

    def fail(file, **arrays):
        file.write(b"half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(KeyboardInterrupt):
        rbm.save(tmp_path / "machine.npz")
    assert (tmp_path / "machine.npz").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def rewritten(path, **changes):
    with np.load(path) as file:
        arrays = {**file, **changes}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def damage(path, how):
    data = path.read_bytes()
    if how == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "text":
        path.write_text("weights")
    elif how == "flipped":
        at = data.index(b"NUMPY", data.index(b"W.npy")) + 200
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    elif how == "pickled":
        rewritten(path, W=np.array([{}], dtype=object))
    elif how == "array":
        with open(path, "wb") as file:
            np.save(file, np.ones(3))
    elif how == "missing":
        rewritten(path, hidden_chains=None)
    elif how == "shape":
        rewritten(path, W=np.zeros((2, 2), np.float32))
    elif how == "format":
        rewritten(path, header=np.asarray(json.dumps({"format": "another 1"})))
    elif how == "params":
        with np.load(path) as file:
            header = json.loads(str(file["header"]))
        rewritten(path, header=np.asarray(json.dumps({**header, "params": {**header["params"], "colour": 1}})))


@pytest.mark.parametrize(
    "how", ["cut", "empty", "text", "flipped", "pickled", "array", "missing", "shape", "format", "params"]
)
def test_a_damaged_file_is_named(tmp_path, how):
    path = tmp_path / "machine.npz"
    small().fit(digits()).save(path)
    damage(path, how)
    with pytest.raises(ValueError, match=r"machine\.npz' holds no machine saved by rbal, or is damaged"):
        RBM.load(path)


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        RBM.load(tmp_path / "machine.npz")


# ---- the door


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_hidden": 0}, "n_hidden must be a positive integer, got 0"),
        ({"n_states": 1}, "n_states must be at least 2, got 1"),
        ({"n_states": 2.0}, "n_states must be a positive integer, got 2.0"),
        ({"hidden": "relu"}, "hidden must be one of 'bernoulli', 'gaussian', got 'relu'"),
        ({"n_epochs": -1}, "n_epochs must be a positive integer, got -1"),
        ({"batch_size": 0}, "batch_size must be a positive integer, got 0"),
        ({"n_chains": 1.5}, "n_chains must be a positive integer, got 1.5"),
        ({"n_gibbs": 0}, "n_gibbs must be a positive integer, got 0"),
        ({"learning_rate": 0.0}, "learning_rate must be > 0, got 0"),
        ({"learning_rate": math.nan}, "learning_rate must be finite, got nan"),
        ({"l2": -0.1}, "l2 must be >= 0, got -0.1"),
        ({"ais_every": 0}, "ais_every must be a positive integer, got 0"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_parameters_are_named(params, message, method):
    with pytest.raises(ValueError, match=message):
        getattr(small(**params), method)(digits())


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[0, 2], [1, 1]], r"X must hold states 0 … 1 \(n_states=2\), got 2"),
        ([[0, -1], [1, 1]], r"X must hold states 0 … 1 \(n_states=2\), got -1"),
        ([[0, 0.5], [1, 1]], r"X must hold states 0 … 1 \(n_states=2\), got 0.5"),
        ([[0, math.nan], [1, 1]], "contains NaN"),
        ([[0, math.inf], [1, 1]], "contains infinity"),
        ([0, 1], "Expected 2D array, got 1D"),
        (np.zeros((0, 3)), "0 sample"),
        (np.zeros((3, 0)), "0 feature"),
        ([["a", "b"]], "could not convert string|dtype='numeric' is not compatible"),
    ],
)
def test_bad_states_are_named(X, message):
    with pytest.raises(ValueError, match=message):
        small().fit(X)


def test_bad_states_are_named_later_too():
    rbm = small().fit(digits())
    calls = (rbm.score_samples, rbm.free_energy, rbm.transform, rbm.partial_fit, lambda X: rbm.sample(2, init=X))
    for call in calls:
        with pytest.raises(ValueError, match="expecting 6 features"):
            call(digits(L=5))
        with pytest.raises(ValueError, match=r"(X|init) must hold states 0 … 1"):
            call(digits() + 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda rbm: rbm.sample(0), "n must be a positive integer, got 0"),
        (lambda rbm: rbm.sample(3, steps=0), "steps must be a positive integer, got 0"),
        (lambda rbm: rbm.log_partition(n_chains=15), "n_chains must be at least 16 and n_betas 2, got 15 and 500"),
        (lambda rbm: rbm.log_partition(n_betas=1), "n_chains must be at least 16 and n_betas 2, got 200 and 1"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(small().fit(digits()))


def test_an_unfitted_machine_says_so(tmp_path):
    calls = ("score_samples", "free_energy", "transform", "score")
    for call in (*(lambda name=name: getattr(small(), name)(digits()) for name in calls), small().sample):
        with pytest.raises(NotFittedError):
            call()
    with pytest.raises(NotFittedError):
        small().save(tmp_path / "machine.npz")
    assert not hasattr(small(), "weights_")
    assert not hasattr(small(), "history_")


@parametrize_with_checks(
    [RBM(3, n_states=256, n_epochs=2, random_state=0, progress=False)],
    expected_failed_checks=lambda _: {
        "check_positive_only_tag_during_fit": "the error names the states that X must hold, in its own words"
    },
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def test_columns_out_have_names():
    rbm = small().fit(digits())
    assert rbm.get_feature_names_out().tolist() == [f"rbm{i}" for i in range(5)]
    assert rbm.set_output(transform="pandas").transform(digits()).shape == (200, 5)


def test_progress_bar(capsys):
    small(progress=True, n_epochs=2).fit(digits())
    assert "2/2" in capsys.readouterr().err
    small().fit(digits())
    assert capsys.readouterr().err == ""


def test_threads_end_with_the_fit():
    before = threading.active_count()
    small().fit(digits()).sample(600, steps=1)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    "name", [name for name in vars(RBM) if not name.startswith("_") and callable(getattr(RBM, name))]
)
def test_docstrings_document_exactly_the_parameters(name):
    method = getattr(RBM, name)
    lines = FunctionDoc(method, doc=inspect.getdoc(method))["Parameters"]
    assert [line.name for line in lines] == [p for p in inspect.signature(method).parameters if p != "self"]


def test_class_documents_its_parameters():
    lines = ClassDoc(RBM)["Parameters"]
    assert [line.name for line in lines] == list(inspect.signature(RBM).parameters)


def test_public_names():
    assert rbal.RBM is RBM
    assert LogPartition(1.0, 0.0) == (1.0, 0.0, True)
