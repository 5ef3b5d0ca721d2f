"""The compiled parts of a restricted Boltzmann machine against their twins, sums over all states, and chains."""

import itertools
import math

import naive
import numpy as np
import pytest
from machines import all_states, by_hand, digits, fitted, index_of, kinds, machine_of, probabilities
from scipy import stats
from scipy.special import expit, logsumexp

from rbal.rbm import RBM, _training
from rbal.rbm import _unit_kernels as kernels
from rbal.rbm._machine import Bernoulli, Gaussian, Machine, Potts, random_words
from rbal.rbm._partition import configurations, enumerated
from rbal.rbm._training import Batches, ByState, Pace, conditionals, halves, judge, train

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
        _training.to_hidden(part, shared, rows)
    for part in parts:
        _training.compare(part, shared, gaussian, rows)
    for part in parts:
        _training.climb(part, shared, rows, pace)
    _training.settle(parts[0], shared, pace)
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
