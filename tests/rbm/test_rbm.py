"""Restricted Boltzmann machines against brute force on machines small enough to be summed over."""

import inspect
import itertools
import json
import math
import os
import threading

import naive
import numba
import numpy as np
import pandas as pd
import pytest
from numpydoc.docscrape import ClassDoc, FunctionDoc
from scipy import stats
from scipy.special import expit, logsumexp, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import rbal
from rbal.rbm import RBM, LogPartition, _epoch, _training
from rbal.rbm import _kernels as kernels
from rbal.rbm._epoch import Batches, ByState, Pace, conditionals, halves, judge, train
from rbal.rbm._layers import Bernoulli, Gaussian, Potts, random_words
from rbal.rbm._machine import Machine
from rbal.rbm._partition import annealed, bridged, configurations, enumerated, path_to

KINDS = {
    "binary-bernoulli": (Bernoulli(5), Bernoulli(4)),
    "binary-gaussian": (Bernoulli(5), Gaussian(3)),
    "potts-bernoulli": (Potts(4, 3), Bernoulli(3)),
    "potts-gaussian": (Potts(3, 4), Gaussian(2)),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def machine_of(kind, seed=0, scale=0.7):
    """A machine with couplings of order one."""
    visible, hidden = KINDS[kind]
    rng = np.random.default_rng(seed)
    shapes = (visible.width, hidden.width), visible.width, hidden.width
    return Machine(visible, hidden, *(rng.normal(scale=scale, size=shape).astype(np.float32) for shape in shapes))


def all_states(layer):
    return np.array(list(itertools.product(range(layer.n_states), repeat=layer.n)), np.int8)


def by_hand(machine, v):
    """Log of the weight of visible states v, summed over hidden states one by one or integrated on a grid."""
    features = np.concatenate([np.ravel(row) for row in machine.visible.encode(v[None])])
    hidden_inputs = features @ machine.W.astype(float) + machine.c
    if machine.hidden.gaussian:
        z = np.linspace(-30.0, 30.0, 6001)
        weights = np.exp(hidden_inputs[:, None] * z - 0.5 * z**2) / np.sqrt(2 * np.pi)
        return features @ machine.b + np.log(weights.sum(axis=1) * (z[1] - z[0])).sum()
    terms = [hidden_inputs @ z for z in itertools.product((0, 1), repeat=machine.hidden.n)]
    return features @ machine.b + logsumexp(terms)


def probabilities(machine):
    """Exact p(v) of all visible states."""
    v = all_states(machine.visible)
    return v, softmax([by_hand(machine, row) for row in v])


def fitted(machine, **params):
    """An estimator that holds this machine."""
    visible, hidden = machine.visible, machine.hidden
    name = "gaussian" if hidden.gaussian else "bernoulli"
    rbm = RBM(hidden.n, n_states=visible.n_states, hidden=name, n_epochs=1, random_state=0, progress=False, **params)
    rbm.fit(np.random.default_rng(0).integers(0, visible.n_states, (30, visible.n)))
    for mine, theirs in zip(rbm._training.machine[2:], machine[2:], strict=True):
        mine[...] = theirs
    rbm._log_partition = None
    return rbm


def index_of(v, Q):
    return v @ Q ** np.arange(v.shape[1])[::-1]


def digits(n=200, L=6, Q=2, seed=0):
    return np.random.default_rng(seed).integers(0, Q, (n, L))


# ---- kernels and their twins


def test_exponential():
    x = np.linspace(-80.0, 80.0, 2001).astype(np.float32)
    np.testing.assert_allclose([kernels.exp32(t) for t in x], np.exp(x.astype(float)), rtol=3e-7)
    assert kernels.exp32(np.float32(1e30)) == kernels.exp32(np.float32(87.0))


def numbers(rng, *shape):
    return rng.normal(size=shape, scale=2.0).astype(np.float32)


def uniforms(words):
    return (words >> 8) / 2**24


def test_random_bits_are_those_of_the_authors():
    """The first numbers of xoshiro128++ from the state 1, 2, 3, 4, which other implementations are tested with."""
    first = [641, 1573767, 3222811527, 3517856514, 836907274, 4247214768, 3867114732, 1355841295, 495546011, 621204420]
    state = np.tile(np.uint32([[1], [2], [3], [4]]), (1, kernels.LANES))
    words = np.empty(11 * kernels.LANES, np.uint32)
    for k in range(0, 10, 2):  # two numbers of each stream at a time: they go on where they were
        found = kernels.random_bits(state, 2 * kernels.LANES, words).reshape(2, kernels.LANES)
        np.testing.assert_array_equal(found.T, np.tile(first[k : k + 2], (kernels.LANES, 1)))


@pytest.mark.parametrize("shape", [(6, 4), (5, 7), (0, 3), (4, 8), (3, 11)])
def test_random_words(shape):
    rng = np.random.default_rng(4)
    words = random_words(*shape, rng)
    assert words.shape == shape
    assert words.dtype == np.uint32
    np.testing.assert_array_equal(words, random_words(*shape, np.random.default_rng(4)))
    assert words.size == 0 or (words != random_words(*shape, rng)).all()
    np.testing.assert_array_equal([kernels.uniform(w) for w in words.ravel()], uniforms(words).ravel())


def test_random_words_are_uniform_and_independent():
    words = random_words(2000, 100, np.random.default_rng(5))
    u = (words + 0.5) / 2**32
    assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-3
    for lag in (1, 31, 32, 33, 64):  # within a stream of 32, and from one to the next
        r = np.corrcoef(u.ravel()[:-lag], u.ravel()[lag:])[0, 1]
        assert abs(r) < 4.0 / np.sqrt(u.size)
    bits = np.unpackbits(words.view(np.uint8).reshape(-1, 4), axis=1).mean(axis=0)
    assert np.all(np.abs(bits - 0.5) < 4.5 * 0.5 / np.sqrt(words.size))


def test_normal_kernel():
    rng = np.random.default_rng(6)
    inputs, bias = numbers(rng, 401, 25), numbers(rng, 25)
    words = random_words(1, inputs.size + 1, rng)[0]
    drawn = inputs.copy()
    kernels.normal_sample(drawn, bias, words)
    z = (drawn - inputs - bias).ravel()
    assert stats.kstest(z, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(z[:-1:2], z[1::2])[0, 1]) < 4.0 / np.sqrt(z.size / 2)
    u = uniforms(words).astype(float)
    expected = np.sqrt(-2.0 * np.log(u[0] + 2**-25)) * np.array([np.cos(2 * np.pi * u[1]), np.sin(2 * np.pi * u[1])])
    np.testing.assert_allclose(z[:2], expected, atol=2e-6)


def test_bernoulli_kernels():
    rng = np.random.default_rng(1)
    inputs, bias, words = numbers(rng, 30, 7), numbers(rng, 7), random_words(30, 7, rng)
    out, scale = inputs.copy(), np.float32(0.3)
    p = expit(0.3 * inputs.astype(float) + bias)
    kernels.bernoulli_mean(out, bias, scale)
    np.testing.assert_allclose(out, p, rtol=2e-6)
    out = inputs.copy()
    kernels.bernoulli_sample(out, bias, scale, words)
    np.testing.assert_array_equal(out, uniforms(words) < p)


def test_bernoulli_units_that_are_all_but_certain():
    # a uniform of 0 stands for its interval of width 2⁻²⁴, not for the event that always happens
    inputs, words = np.float32([[-200.0, -20.0, 20.0, 200.0]]), np.uint32([[0, 0, 2**32 - 1, 2**32 - 1]])
    kernels.bernoulli_sample(inputs, np.zeros(4, np.float32), np.float32(1.0), words)
    np.testing.assert_array_equal(inputs, [[0.0, 0.0, 1.0, 1.0]])


def test_potts_kernel():
    rng = np.random.default_rng(2)
    layer, scale = Potts(5, 4), np.float32(0.6)
    inputs, bias, words = numbers(rng, 30, 20), numbers(rng, 20), random_words(30, 5, rng)
    steps = layer.mean(0.6 * inputs.astype(float) + bias).reshape(30, 5, 4).cumsum(axis=2)
    expected = (uniforms(words)[:, :, None] >= steps[:, :, :-1]).sum(axis=2)
    drawn = layer.sample(inputs, bias, words, scale)
    np.testing.assert_array_equal(layer.decode(drawn), expected)
    np.testing.assert_array_equal(drawn, layer.encode(expected))


def test_potts_means():
    rng = np.random.default_rng(4)
    layer, inputs, bias = Potts(5, 4), 20.0 * numbers(rng, 30, 20), numbers(rng, 20)
    expected = layer.mean(0.6 * inputs.astype(float) + bias)
    kernels.potts_mean(inputs, bias, np.float32(0.6), 4)
    np.testing.assert_allclose(inputs, expected, rtol=2e-5, atol=1e-30)


@pytest.mark.parametrize("layer", [Bernoulli(700), Gaussian(5)], ids=["bernoulli", "gaussian"])
def test_log_norm_kernel(layer):
    rng = np.random.default_rng(3)
    inputs, bias = 5 * numbers(rng, 10, layer.n), numbers(rng, layer.n).astype(float)
    out = kernels.log_norms(layer.gaussian, inputs, bias, 0.3)
    np.testing.assert_allclose(out, layer.log_norm(0.3 * inputs.astype(float) + bias), rtol=1e-8)


@kinds
def test_conditionals(kind):
    machine = machine_of(kind)
    visible, hidden, W, b, c = machine
    v, p = probabilities(machine)
    sites = np.tile(np.arange(visible.n), (len(v), 1))
    inputs = visible.encode(v, np.float32) @ W
    out = conditionals(ByState(hidden.gaussian, visible.by_state(W), visible.by_state(b), c), v, sites, inputs)
    Q = visible.n_states
    for i in range(visible.n):
        rest = p.reshape([Q] * visible.n).sum(axis=i, keepdims=True)
        expected = np.log(p.reshape([Q] * visible.n) / rest).ravel()
        np.testing.assert_allclose(out[:, i], expected, atol=2e-6)


@pytest.mark.parametrize("shape", [(3, 5), (64,)])
def test_random_bits_against_their_twin(shape):
    streams = np.random.default_rng(8).integers(0, 1 << 32, (4, kernels.LANES), dtype=np.uint32)
    expected = naive.Uniforms(streams).draw(*shape)
    size = math.prod(shape)
    words = kernels.random_bits(streams, size, np.empty(size + kernels.LANES, np.uint32))
    np.testing.assert_array_equal(uniforms(words).reshape(shape) + 2.0**-25, expected)


@pytest.mark.parametrize("shape", [(8, 12, 5), (7, 10, 3), (1, 1, 1), (9, 3, 16)])
def test_products_by_tables_are_those_of_matrices(shape):
    rng = np.random.default_rng(13)
    n, D, M = shape
    W, z, bits = numbers(rng, D, M), numbers(rng, n, M), (rng.random(shape[:2]) < 0.4).astype(np.uint8)
    rows, groups = -(-n // 4), -(-D // 4)
    padded = np.zeros((4 * rows, 4 * groups), np.uint8)
    padded[:n, :D] = bits
    table, out = np.full((16 * groups, M), np.nan, np.float32), np.empty((n, M), np.float32)
    index, count = np.empty((n, groups + 1), np.int32), np.empty(n, np.int64)
    kernels.tabulate(W, table)
    kernels.list_subsets(padded[:n], index, count)
    kernels.sum_listed(index, count, table, out)
    np.testing.assert_allclose(out, bits.astype(float) @ W, atol=1e-5)
    table, out = np.full((16 * rows, M), np.nan, np.float32), np.empty((D, M), np.float32)
    index, count = np.empty((D, rows + 1), np.int32), np.empty(D, np.int64)
    kernels.tabulate(z, table)
    kernels.list_columns(padded, np.empty((rows, D), np.uint8), index, count)
    kernels.sum_listed(index, count, table, out)
    np.testing.assert_allclose(out, bits.T.astype(float) @ z, atol=1e-5)


@kinds
def test_training_against_its_twin(kind):
    machine = machine_of(kind, seed=3)
    visible, hidden = machine.visible, machine.hidden
    rng = np.random.default_rng(9)
    data = rng.integers(0, visible.n_states, (25, visible.n)).astype(np.int8)  # as RBM gives them
    training = _training.start(data, visible, hidden, 16, rng)
    training.machine = machine
    given = _training._parameters(training)
    (parts, shared), order, edges = halves(given, 9, rng), rng.permutation(25), np.array([0, 8, 16, 25])
    batches = [visible.encode(data[order[lo:hi]]) for lo, hi in itertools.pairwise(edges)]
    seeds = np.stack([part.streams for part in parts])
    expected = naive.contrastive_divergence(given, batches, 2, 0.3, 0.02, seeds)
    train(given, parts, shared, Batches(data, order, edges), Pace(2, np.float32(0.3), 0.02))
    found = given.W, given.b, given.c, given.hidden_mean, given.chains
    for ours, twin in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, twin, atol=2e-5)


@kinds
def test_reconstruction_errors_against_their_twin(kind):
    machine = machine_of(kind, seed=4)
    visible, hidden, W, b, c = machine
    rng = np.random.default_rng(10)
    v = rng.integers(0, visible.n_states, (11, visible.n))
    by_state, sites = ByState(hidden.gaussian, visible.by_state(W), visible.by_state(b), c), np.zeros((11, 1), int)
    wrong = judge(machine, by_state, v, sites, np.empty(sites.shape))
    assert wrong == pytest.approx(naive.sites_missed(machine, v), rel=1e-5)


# ---- what is known exactly


@kinds
def test_free_energy_is_the_sum_over_hidden_units(kind):
    machine = machine_of(kind)
    v = all_states(machine.visible)
    expected = [-by_hand(machine, row) for row in v]
    np.testing.assert_allclose(fitted(machine).free_energy(v), expected, rtol=1e-10, atol=1e-10)


@kinds
def test_probabilities_sum_to_one(kind):
    machine = machine_of(kind)
    rbm = fitted(machine)
    v, p = probabilities(machine)
    np.testing.assert_allclose(np.exp(rbm.score_samples(v)), p, rtol=1e-9)
    assert rbm.log_partition().error == 0.0
    assert rbm.score(v) == pytest.approx(np.log(p).mean())


def test_either_layer_can_be_summed_over():
    # five visible sites against four hidden units, and the other way round
    machine = machine_of("binary-bernoulli")
    other = Machine(machine.hidden, machine.visible, machine.W.T, machine.c, machine.b)
    assert enumerated(machine).value == pytest.approx(enumerated(other).value, rel=1e-12)
    by_visible = logsumexp([by_hand(machine, row) for row in all_states(machine.visible)])
    assert enumerated(machine).value == pytest.approx(by_visible, rel=1e-12)


def test_enumeration_in_blocks():
    layer = Potts(9, 3)  # 19,683 states
    states = np.concatenate([layer.decode(block) for block in configurations(layer)])
    assert len(np.unique(states, axis=0)) == 3**9


@kinds
def test_hidden_means(kind):
    machine = machine_of(kind)
    v = all_states(machine.visible)
    inputs = machine.visible.encode(v) @ machine.W + machine.c
    expected = inputs if machine.hidden.gaussian else expit(inputs)
    np.testing.assert_allclose(fitted(machine).transform(v), expected, rtol=1e-12)


@kinds
@pytest.mark.parametrize("l2", [0.0, 0.03])
def test_update_climbs_the_exact_likelihood(kind, l2):
    """A step is the gradient, by finite differences, of the penalised likelihood in centred coordinates."""
    machine = machine_of(kind, scale=0.4)
    visible, hidden = machine.visible, machine.hidden
    rng = np.random.default_rng(5)
    data = rng.integers(0, visible.n_states, (12, visible.n)).astype(np.int8)  # as RBM gives them
    every, p = probabilities(machine)
    training = _training.start(data, visible, hidden, len(every), rng)
    training.machine = machine.astype(np.float32)
    training.hidden_mean = rng.random(hidden.n).astype(np.float32)
    mu, nu = training.mean.astype(float), training.hidden_mean.astype(float)

    # the chains are all states of the model, with their probabilities for shares
    before, features = training.machine.astype(np.float64), visible.encode(np.concatenate([every, data]))
    z_data = hidden.mean(before.to_hidden(visible.encode(data))).mean(axis=0)
    training.hidden_mean -= (z_data - training.hidden_mean).astype(np.float32) / 19  # what the running mean undoes
    given = _training._parameters(training)
    (parts, shared), pace, rows = halves(given, len(data), rng), Pace(1, np.float32(1.0), l2), len(features)
    gaussian, middle = True if hidden.gaussian else None, len(parts[0].b)
    for part, own in zip(parts, (features[:, :middle], features[:, middle:]), strict=True):
        part.bits[:rows, : own.shape[1]] = own
        part.share[...] = np.concatenate([-p, np.full(12, 1 / 12)])
        _epoch.to_hidden(part, shared, rows)
    for part in parts:
        _epoch.compare(part, shared, gaussian, rows)
    for part in parts:
        _epoch.climb(part, shared, rows, pace)
    _epoch.settle(parts[0], shared, pace)
    training.machine.c[...] = parts[0].c
    np.testing.assert_allclose(parts[0].hidden_mean, nu, atol=1e-6)
    W, b, c = (after - old for after, old in zip(training.machine[2:], before[2:], strict=True))
    new = training.machine
    step = np.concatenate([W.ravel(), b + new.W @ nu - before.W @ nu, c + mu @ new.W - mu @ before.W])

    def objective(theta):
        W = theta[: before.W.size].reshape(before.W.shape)
        b, c = np.split(theta[before.W.size :], [visible.width])
        shifted = before._replace(W=W, b=b - W @ nu, c=c - mu @ W)
        mean = -shifted.free_energy(visible.encode(data)).mean() - enumerated(shifted).value
        return mean - l2 * np.sum(W**2)

    at = np.concatenate([before.W.ravel(), before.b + before.W @ nu, before.c + mu @ before.W])
    eye = 1e-5 * np.eye(len(at))
    expected = [(objective(at + e) - objective(at - e)) / 2e-5 for e in eye]
    np.testing.assert_allclose(step, expected, atol=3e-6)
    assert np.abs(expected).max() > 0.1


def test_potts_weights_stay_in_the_zero_sum_gauge():
    rbm = RBM(4, n_states=3, n_epochs=20, random_state=0, progress=False).fit(digits(Q=3))
    np.testing.assert_allclose(rbm.weights_.sum(axis=1), 0.0, atol=1e-6)
    np.testing.assert_allclose(rbm.fields_.sum(axis=1), 0.0, atol=1e-6)


@pytest.mark.parametrize("hidden", [Bernoulli(4), Gaussian(3)], ids=["bernoulli", "gaussian"])
def test_potts_with_two_states_is_binary(hidden):
    machine = machine_of("binary-bernoulli" if not hidden.gaussian else "binary-gaussian")
    binary, potts = machine.visible, Potts(machine.visible.n, 2)
    W, b = (np.ascontiguousarray(binary.by_state(q)).reshape(potts.width, *q.shape[1:]) for q in machine[2:4])
    same = [Machine(potts, hidden, W, b, machine.c)]
    same.append(same[0]._replace(W=potts.in_gauge(W), b=potts.in_gauge(b), c=machine.c + 0.5 * machine.W.sum(axis=0)))
    v = all_states(binary)
    expected = -machine.free_energy(binary.encode(v)) - enumerated(machine).value
    for other in same:
        found = -other.free_energy(potts.encode(v)) - enumerated(other).value
        np.testing.assert_allclose(found, expected, atol=2e-6)
    inputs = numbers(np.random.default_rng(6), 50, hidden.n)
    words = random_words(50, 5, np.random.default_rng(7))
    ours = binary.sample(inputs @ machine.W.T, machine.b, words)
    theirs = potts.sample(inputs @ W.T, b, ~words)
    np.testing.assert_array_equal(binary.decode(ours), potts.decode(theirs))


# ---- annealing there and back


def drawn(machine, n, rng):
    """Exact samples of a machine small enough to be summed over."""
    v, p = probabilities(machine)
    return v[rng.choice(len(v), n, p=p)]


def covers(estimate, exact, widths=1.96):
    return abs(estimate.value - exact) <= widths * estimate.error


@kinds
def test_annealing_finds_the_partition_function(kind):
    machine, rng = machine_of(kind, seed=8, scale=1.0), np.random.default_rng(10)
    base = np.random.default_rng(9).normal(size=machine.visible.width)
    estimate = annealed(machine, base, drawn(machine, 200, rng), 200, 200, 200, rng)
    assert estimate.reliable
    assert 0.0 < estimate.error < 0.03
    assert covers(estimate, enumerated(machine).value, 4.0)


@kinds
def test_weights_of_paths_have_the_right_means_where_annealing_is_rough(kind):
    """In either direction, as Jarzynski has it; forward it is annealed importance sampling."""
    machine, rng, n = machine_of(kind, seed=11, scale=0.8), np.random.default_rng(12), 40_000
    path = path_to(machine, np.zeros(machine.visible.width))
    ratio, betas = enumerated(machine).value - path.log_z(), np.linspace(0.0, 1.0, 6)
    forward = path.follow(path.first(n, rng), betas, rng)[1]
    reverse = path.follow(machine.visible.encode(drawn(machine, n, rng), np.float32), betas[::-1], rng)[1]
    for log_w in (forward - ratio, reverse + ratio):
        w = np.exp(log_w)
        assert abs(w.mean() - 1.0) < 4.0 * w.std() / np.sqrt(n)
        assert w.std() > 0.1


def test_the_bridge_is_that_of_bennett():
    """Log weights of normal deviates, for which the two directions have one known ratio; and the error has its size."""
    rng, ratio, sd = np.random.default_rng(13), 3.0, 0.5
    pulls, group = [], np.arange(100)
    for _ in range(300):
        forward, reverse = (sign * ratio - 0.5 * sd**2 + sd * rng.normal(size=(4, 100)) for sign in (1.0, -1.0))
        estimate = bridged(forward, reverse, group)
        x = estimate.value  # as many of one direction as of the other are taken for the other
        assert expit(forward - x).sum() == pytest.approx(expit(reverse + x).sum(), rel=1e-9)
        pulls.append((x - ratio) / estimate.error)
    assert abs(np.mean(pulls)) < 4.0 / np.sqrt(300)
    assert 0.6 < np.std(pulls) < 1.1  # some room is left for shares of modes, of which there are none here
    one = bridged(forward, reverse, np.zeros(100, int))
    assert not one.reliable  # chains that have begun at one state say nothing of each other


def test_a_shared_start_is_no_second_chain():
    rng = np.random.default_rng(14)
    forward, reverse = (-0.5 + rng.normal(size=(4, 50)) for _ in range(2))
    twice = [np.concatenate([w, w], axis=1) for w in (forward, reverse)]
    once, doubled = bridged(forward, reverse, np.arange(50)), bridged(*twice, np.arange(100) % 50)
    assert doubled.value == pytest.approx(once.value)
    assert 0.9 * once.error < doubled.error <= once.error  # twice as many paths forward might have found more


def test_states_that_no_path_forward_finds_make_the_error_as_large_as_their_room():
    """However few they are: what they weigh is not known from how many there are."""
    rng = np.random.default_rng(16)
    forward, reverse = (-0.5 + rng.normal(size=(4, 100)) for _ in range(2))
    before = bridged(forward, reverse, np.arange(100))
    assert before.reliable
    found = []
    for depth in (6.0, 9.0):
        reverse[:, 7] = -depth  # one chain, in every round: about 400 e^-depth paths would come there
        estimate = bridged(forward, reverse, np.arange(100))
        found.append(np.exp(np.minimum(forward - depth, 0.0)).sum())
        assert abs(estimate.value - before.value) < 0.03
        assert not estimate.reliable
        assert estimate.error == pytest.approx(np.log1p(1.0 / found[-1]), rel=0.05)
    assert found[1] < 0.1 < 0.5 < found[0] < 3.0
    reverse[1:, 7] = 0.0  # in one round only: the path was slow, and the state is no such one
    assert bridged(forward, reverse, np.arange(100)).reliable


def prototypes(Q, L, n_modes, flips, seed, n=600):
    """States around a few random ones, modes of unequal weight."""
    rng = np.random.default_rng(seed)
    modes = rng.integers(0, Q, (n_modes, L))
    X = modes[rng.choice(n_modes, n, p=np.arange(1, n_modes + 1) / (n_modes * (n_modes + 1) / 2))]
    return np.where(rng.random(X.shape) < flips, rng.integers(0, Q, X.shape), X)


TRAINED = {
    "binary": ({"Q": 2, "L": 120, "n_modes": 6, "flips": 0.2, "seed": 1}, {"n_hidden": 12}),
    "few samples": ({"Q": 2, "L": 120, "n_modes": 4, "flips": 0.1, "seed": 2, "n": 60}, {"n_hidden": 12}),
    "potts": ({"Q": 5, "L": 30, "n_modes": 5, "flips": 0.3, "seed": 3}, {"n_hidden": 12}),
    "gaussian": ({"Q": 2, "L": 15, "n_modes": 3, "flips": 0.3, "seed": 4}, {"n_hidden": 6, "hidden": "gaussian"}),
}


@pytest.mark.slow
def test_intervals_of_log_z_hold():
    """Four trained machines whose log Z is known; the stored study has ten seeds of six larger ones."""
    held, reliable = {}, {}
    for name, (data, params) in TRAINED.items():
        X = prototypes(**data)
        rbm = RBM(n_states=data["Q"], n_epochs=150, random_state=0, progress=False, **params).fit(X)
        t, exact = rbm._training, enumerated(rbm._training.machine).value
        starts = t.machine.visible.decode(t.visible_chains)
        runs = [annealed(t.machine, t.base, starts, 100, 200, 1600, np.random.default_rng(seed)) for seed in range(4)]
        held[name] = [covers(run, exact) for run in runs]
        reliable[name] = [run.reliable for run in runs]
        assert all(covers(run, exact, 4.0) for run in runs), name
    assert np.mean(list(held.values())) >= 0.9, held
    assert np.mean(list(reliable.values())) >= 0.9, reliable


def hiding():
    """A machine with most of its mass where annealing from independent units does not come: all units on at once."""
    L, w, b = 60, 8.0, -3.0
    here, there = L * np.logaddexp(0.0, b), L * np.logaddexp(0.0, b + w)
    f32 = np.float32
    c = here - there + 2.0
    machine = Machine(Bernoulli(L), Bernoulli(1), np.full((L, 1), w, f32), np.full(L, b, f32), np.array([c], f32))
    return machine, np.repeat([[0], [1]], 30, axis=0) * np.ones(L, int)


def test_mass_that_annealing_misses_is_seen_from_the_other_side():
    machine, both = hiding()
    rng, exact, betas = np.random.default_rng(15), enumerated(machine).value, np.linspace(0.0, 1.0, 200)
    path = path_to(machine, machine.b)
    alone = path.log_z() + path.follow(path.first(400, rng), betas, rng)[1]
    assert alone.std() < 0.5  # all chains agree on a value that
    assert logsumexp(alone) - np.log(400) < exact - 1.5  # misses most of the mass
    for starts in (both, both[30:]):
        estimate = annealed(machine, machine.b, starts, 100, 50, 100, rng)
        assert not estimate.reliable
        assert estimate.error > 0.5


def test_an_unreliable_log_z_warns_once():
    machine, both = hiding()
    rest = Machine(
        Bernoulli(60), Bernoulli(21), np.pad(machine.W, ((0, 0), (0, 20))), machine.b, np.pad(machine.c, (0, 20))
    )
    rbm, quick = fitted(rest), {"n_chains": 40, "n_betas": 20, "max_betas": 40}
    rbm._training.base, rbm._training.visible_chains = rest.b, both.astype(np.float32)
    with pytest.warns(ConvergenceWarning, match="is not reliable: annealing forward and in reverse disagree") as seen:
        first = rbm.log_partition(**quick)
    assert len(seen) == 1
    assert not first.reliable
    assert rbm.log_partition(**quick) == first  # and no second warning, which would be an error here
    assert rbm.log_partition(both, **quick).reliable is False
    rbm.partial_fit(both)
    rbm._training.machine = rest
    rbm.log_partition(**quick)
    rbm.fit(both)  # a new training, a new machine
    rbm._training.machine, rbm._training.base = rest, rest.b
    with pytest.warns(ConvergenceWarning, match="said once"):
        rbm.log_partition(both, **quick)


def test_weights_that_overflow_are_not_reliable():
    nothing = bridged(np.full((4, 20), np.inf), np.zeros((4, 20)), np.arange(20))
    assert math.isnan(nothing.value)
    assert not nothing.reliable


def test_a_machine_too_large_to_enumerate_is_annealed():
    X = digits(300, L=30, seed=1)
    X[:, 1:15] = X[:, :1]  # half of the sites are copies of one
    rbm = RBM(25, n_epochs=30, random_state=0, progress=False).fit(X)
    first, second = rbm.log_partition(), rbm.log_partition(X, n_betas=100, random_state=3)
    assert first.reliable
    assert 0.0 < first.error < 0.2
    assert abs(first.value - second.value) < 4.0 * np.hypot(first.error, second.error)
    assert rbm.score(X) == pytest.approx(-rbm.free_energy(X).mean() - first.value)  # the same, again
    with pytest.raises(ValueError, match="X must hold states"):
        rbm.log_partition(X + 1)


# ---- chains


def chi_square(counts, p):
    """P-value of counts against probabilities, with rare states put together."""
    order = np.argsort(p)
    group = np.minimum(np.cumsum(p[order]) * counts.sum() // 10, 10**9).astype(int)
    _, group = np.unique(group, return_inverse=True)
    observed, expected = (np.bincount(group, x[order]) for x in (counts, p * counts.sum()))
    keep = expected > 0
    return stats.chisquare(observed[keep], expected[keep] * observed[keep].sum() / expected[keep].sum()).pvalue


@kinds
def test_equilibrium_is_stationary(kind):
    machine = machine_of(kind, seed=12)
    v, p = probabilities(machine)
    Q, n = machine.visible.n_states, 40_000
    start = v[np.random.default_rng(13).choice(len(v), n, p=p)]
    drawn = fitted(machine).sample(n, init=start, steps=3, random_state=14)
    assert chi_square(np.bincount(index_of(drawn, Q), minlength=len(v)), p) > 1e-3
    assert (drawn != start).any(axis=1).mean() > 0.5


@kinds
def test_chains_forget_where_they_began(kind):
    machine = machine_of(kind, seed=15, scale=0.5)
    v, p = probabilities(machine)
    drawn = fitted(machine).sample(40_000, init=v[:1], steps=60, random_state=16)
    assert chi_square(np.bincount(index_of(drawn, machine.visible.n_states), minlength=len(v)), p) > 1e-3


@kinds
def test_persistent_chains_are_stationary(kind):
    """The chains of training, while the machine is held: joint states of both layers stay in equilibrium."""
    machine = machine_of(kind, seed=17)
    visible, hidden = machine.visible, machine.hidden
    v, p = probabilities(machine)
    rng = np.random.default_rng(18)
    training = _training.start(v, visible, hidden, 40_000, rng)
    training.machine = machine
    features = visible.encode(v[rng.choice(len(v), 40_000, p=p)], np.float32)
    training.hidden_chains = hidden.sample(features @ machine.W, machine.c, hidden.draw(40_000, rng))
    given = _training._parameters(training)
    parts, shared = halves(given, 1, rng)
    train(given, parts, shared, Batches(v[-1:], np.zeros(2, int), np.arange(3)), Pace(2, np.float32(0.0), 0.0))
    chains = np.concatenate([part.v for part in parts], axis=1)
    assert chi_square(np.bincount(index_of(visible.decode(chains), visible.n_states), minlength=len(v)), p) > 1e-3
    every = visible.encode(v)
    means = hidden.mean(every @ machine.W + machine.c)
    # sums are those of the one sample less those of the chains
    dv, dvz = (np.concatenate(own) for own in zip(*((part.dv, part.dvz) for part in parts), strict=True))
    mean, z = every[-1] - dv, means[-1] - parts[0].gradient
    spread = [0.5, np.sqrt(p @ (means - p @ means) ** 2)]
    for found, exact, sd in zip((mean, z), (p @ every, p @ means), spread, strict=True):
        assert np.all(np.abs(found - exact) < 4.5 * sd / np.sqrt(40_000))
    again = hidden.mean(chains.astype(float) @ machine.W + machine.c)
    product = np.outer(every[-1], means[-1]) - chains.T @ again / 40_000
    np.testing.assert_allclose(dvz, product, atol=1e-3)  # 40,000 terms


def test_samples_start_where_they_are_told():
    machine = machine_of("binary-bernoulli")
    machine.W[...], machine.b[...] = 40.0 * np.eye(5, 4), -20.0
    machine.c[...] = -20.0  # every site copies itself through its own hidden unit
    rbm, init = fitted(machine), np.array([[1, 0, 0, 1, 0], [0, 1, 1, 0, 0]])
    np.testing.assert_array_equal(rbm.sample(5, init=init, steps=3, random_state=0), init[[0, 1, 0, 1, 0]])


def test_samples_are_reproducible_and_those_of_a_generator_go_on():
    rbm = RBM(3, n_epochs=2, random_state=0, progress=False).fit(digits())
    first = rbm.sample(600, steps=2, random_state=1)
    np.testing.assert_array_equal(first, rbm.sample(600, steps=2, random_state=1))
    assert first.dtype == np.int8
    rng = np.random.default_rng(1)
    np.testing.assert_array_equal(first, rbm.sample(600, steps=2, random_state=rng))
    assert (first != rbm.sample(600, steps=2, random_state=rng)).any()
    assert (first != rbm.sample(600, steps=2)).any()


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
    X, advance, rbm = digits(), _epoch.advance, small(warm_start=True)

    def interrupted(own, *args):
        if own.h != half or getattr(rbm, "n_epochs_", 0) != 3:
            return advance(own, *args)
        made = advance(own, *args[:-1], min(args[-1], 5))  # of twelve: it may be fewer, where the other half is late
        if made == 5:
            raise KeyboardInterrupt
        return made

    monkeypatch.setattr(_epoch, "advance", interrupted)
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
