"""Persistent contrastive divergence, an epoch at a time.

Two threads share the work. Where visible units are drawn and weights are changed, each has half of the visible units;
where hidden units are, half of the rows. The halves, and so all digits, are the same for any number of threads.
Rows are chains first, then samples.

A thread processes several batches in one compiled call, in which it waits for the other one twice a batch.
"""

import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  numba's products of matrices; its threads are to be limited too

from .._support.jit import look, tell, wait
from .._support.parallel import in_step
from . import _unit_kernels as kernels
from ._machine import Machine, in_pieces, streams
from ._unit_kernels import (
    LANES,
    ONE,
    ZERO,
    bernoulli_sample,
    hidden_means,
    jit,
    list_columns,
    list_subsets,
    normal_sample,
    potts_sample,
    random_bits,
    sum_listed,
    tabulate,
    weighted_sum,
)

MEMORY = np.float32(0.95)  # of the running mean of the hidden units, from batch to batch
STRIDE = 16  # entries between two counters, so that they are on different cache lines

PSEUDOCOUNT = 0.5  # of each state at each site
SPREAD = 0.1  # √L times the standard deviation of the first weights
MONITORED = 500  # samples that an epoch is judged by
SITES = 4  # of each of them
LARGEST = 87.0  # weight: one unit of such a weight decides another beyond the range of single precision
WORSE = 2.0  # times the pseudo-likelihood of uniform guesses: a training below it has failed


class Parameters(NamedTuple):
    """Parameters that are learned, and the layers they belong to: D visible features and M hidden units."""

    n_states: int
    gaussian: bool
    W: np.ndarray  # (D, M)
    b: np.ndarray  # (D,)
    c: np.ndarray  # (M,)
    mean: np.ndarray  # (D,) of the visible features, in the data
    hidden_mean: np.ndarray  # (M,) of the hidden units, given data
    chains: np.ndarray  # (n_chains, M) hidden units


class Pace(NamedTuple):
    """How far the chains and the parameters move from batch to batch."""

    n_gibbs: int  # steps of each chain
    rate: np.float32  # of learning
    l2: float  # strength of the penalty on the weights


class Batches(NamedTuple):
    """The data, in the order they are learned from."""

    states: np.ndarray  # (n, L)
    order: np.ndarray  # (n,)
    edges: np.ndarray  # (batches + 1,)


class Shared(NamedTuple):
    """Arrays that both halves read. Each writes its part before both meet, and changes it only after."""

    chains: np.ndarray  # (n_chains, M) hidden units
    given: np.ndarray  # (2, rows, M) inputs of the hidden units from each half
    z: np.ndarray  # (rows, M) means of the hidden units, each row times its share
    data_mean: np.ndarray  # (2, M) terms, one from each half, of the mean of z in the data
    model_mean: np.ndarray  # (2, M) likewise of minus the mean of z in the chains
    back: np.ndarray  # (2, M) decrease of the biases due to the change of each half of the weights
    steps: np.ndarray  # (2 STRIDE,) steps that each half has made, entries 0 and STRIDE


class Half(NamedTuple):
    """Half of the visible units, with D features, and the arrays of one thread."""

    h: int  # 0 or 1
    first: int  # of the visible units
    W: np.ndarray  # (D, M) weights, a part of all
    b: np.ndarray  # (D,)
    mean: np.ndarray  # (D,)
    # of the hidden units, the same in both halves, so that neither waits for the other
    c: np.ndarray  # (M,)
    hidden_mean: np.ndarray  # (M,) in the data
    gradient: np.ndarray  # (M,)
    share: np.ndarray  # (rows,) of each row in the gradient
    v: np.ndarray  # (n_chains, D) visible features of the chains
    bits: np.ndarray  # (4 ⌈rows/4⌉, 4 ⌈D/4⌉) features of all rows, 0 and 1
    # arrays that are used again and again: allocating new ones would take longer than filling them
    streams: np.ndarray  # (4, LANES) state of the generator of random bits
    words: np.ndarray  # random bits
    index: np.ndarray  # (rows, ⌈D/4⌉ + 1) entries of a table for each row
    columns: np.ndarray  # (D, ⌈rows/4⌉ + 1) and for each feature
    count: np.ndarray  # (rows or D,) how many they are
    subsets: np.ndarray  # (⌈rows/4⌉, D)
    table: np.ndarray  # (…, M) sums over subsets of rows
    dvz: np.ndarray  # (D, M) differences between data and model in the means of vz and v
    dv: np.ndarray  # (D,)


def halves(p, n_batch, rng):
    """Return both halves and their shared arrays, for batches of up to ``n_batch`` samples, seeded by ``rng``."""
    width, M = p.W.shape
    n, each = len(p.chains), 1 if p.n_states == 2 else p.n_states
    rows, f32 = n + n_batch, np.float32
    share = np.concatenate([np.full(n, -1.0 / n, f32), np.full(n_batch, np.nan, f32)])
    fours, bits = -(-rows // 4), streams(rng, 2)

    def one(h):
        lo, hi = half(h, width // each)
        D = each * (hi - lo)
        own, groups = slice(each * lo, each * hi), -(-D // 4)
        return Half(
            h, lo, p.W[own], p.b[own], p.mean[own], p.c.copy(), p.hidden_mean.copy(), p.c.copy(), share.copy(),
            np.empty((n, D), f32), np.zeros((4 * fours, 4 * groups), np.uint8), bits[h],
            np.empty(n * max(hi - lo, M) + 1 + LANES, np.uint32), np.empty((rows, groups + 1), np.int32),
            np.empty((D, fours + 1), np.int32), np.empty(max(rows, D), np.int64), np.empty((fours, D), np.uint8),
            np.empty((16 * max(groups, fours), M), f32), np.empty((D, M), f32), np.empty(D, f32),
        )  # fmt: skip

    shapes = (2, rows, M), (rows, M), (2, M), (2, M), (2, M)
    shared = Shared(p.chains, *(np.zeros(shape, f32) for shape in shapes), np.zeros(2 * STRIDE, np.int64))
    return [one(0), one(1)], shared


def half(h, n):
    """Return the bounds of half h, 0 or 1, of range(n)."""
    return h * n // 2, (h + 1) * n // 2


half_of = jit(half)


@jit
def draw_visible(own, shared, Q):
    """Draw the visible units of the chains."""
    n, D = own.v.shape
    if D > 0:
        np.dot(shared.chains, own.W.T, own.v)
    if Q is None:
        bernoulli_sample(own.v, own.b, ONE, random_bits(own.streams, n * D, own.words).reshape((n, D)))
    else:
        units = D // Q
        potts_sample(own.v, own.b, ONE, Q, random_bits(own.streams, n * units, own.words).reshape((n, units)))
    for k in range(n):
        for i in range(D):
            own.bits[k, i] = own.v[k, i] != ZERO


@jit
def encode(own, Q, states, order, start, stop):
    """Write the features of samples after those of the chains, and their shares."""
    n, D = own.v.shape
    for k in range(n + stop - start, own.bits.shape[0]):
        for i in range(D):
            own.bits[k, i] = 0
    for k in range(stop - start):
        row, state = own.bits[n + k], states[order[start + k], own.first :]
        own.share[n + k] = ONE / np.float32(stop - start)
        for i in range(D):
            row[i] = state[i] if Q is None else 0
        if Q is not None:
            for unit in range(D // Q):
                row[unit * Q + state[unit]] = 1


@jit
def to_hidden(own, shared, rows):
    """Compute the inputs of the hidden units from the visible units of the first rows."""
    list_subsets(own.bits[:rows], own.index, own.count)
    tabulate(own.W, own.table)
    sum_listed(own.index, own.count, own.table, shared.given[own.h, :rows])


@jit
def draw_hidden(own, shared, gaussian):
    """Draw the hidden units of half of the chains."""
    lo, hi = half_of(own.h, shared.chains.shape[0])
    z = shared.chains[lo:hi]
    for k in range(z.shape[0]):
        for j in range(z.shape[1]):
            z[k, j] = shared.given[0, lo + k, j] + shared.given[1, lo + k, j]
    words = random_bits(own.streams, z.size + 1, own.words)  # one more: normal deviates come in pairs
    if gaussian is not None:
        normal_sample(z, own.c, words)
    else:
        bernoulli_sample(z, own.c, ONE, words[: z.size].reshape(z.shape))


@jit
def compare(own, shared, gaussian, rows):
    """Compute the means of the hidden units in half of the samples and half of the chains."""
    n = shared.chains.shape[0]
    for in_data in (True, False):
        lo, hi = half_of(own.h, rows - n if in_data else n)
        if in_data:
            lo, hi = lo + n, hi + n
        total = shared.data_mean[own.h] if in_data else shared.model_mean[own.h]
        hidden_means(shared.given[:, lo:hi], own.c, gaussian is not None, own.share[lo:hi], shared.z[lo:hi], total)


@jit
def climb(own, shared, rows, pace):
    """Step up the likelihood with half of the weights, given the means of the hidden units of both halves."""
    mean, gradient, data_mean, model_mean = own.hidden_mean, own.gradient, shared.data_mean, shared.model_mean
    for j in range(mean.shape[0]):
        data = data_mean[0, j] + data_mean[1, j]
        gradient[j] = data + model_mean[0, j] + model_mean[1, j]
        mean[j] = MEMORY * mean[j] + (ONE - MEMORY) * data
    list_columns(own.bits, own.subsets[: (rows + 3) // 4], own.columns, own.count)
    tabulate(shared.z[:rows], own.table)
    sum_listed(own.columns, own.count, own.table, own.dvz)
    weighted_sum(own.bits, own.share[:rows], own.dv)
    visible, hidden = (own.b, own.mean, own.dv), (mean, gradient, shared.back[own.h])
    kernels.climb(own.W, own.dvz, visible, hidden, pace.rate, np.float32(2.0 * pace.l2))


@jit
def settle(own, shared, pace):
    """Step with the biases too, after both halves of the weights."""
    c, gradient, back = own.c, own.gradient, shared.back
    for j in range(c.shape[0]):
        c[j] += pace.rate * (gradient[j] - back[0, j] - back[1, j])


@jit
def advance(own, shared, Q, gaussian, batches, pace, stop):
    """Make steps of half of the work, up to that number, and return how many are made; the other half makes its own.

    Visible and hidden units take turns. A step with the weights needs no waiting: the next visible units depend on the
    weights of their own half only. Q is the number of states of visible units, None where they are binary; ``gaussian``
    is None where hidden units are binary. None has a type of its own, so that only the branches in use are compiled.
    """
    states, order, edges = batches
    n, per_batch = shared.chains.shape[0], 2 * pace.n_gibbs
    made = look(shared.steps, own.h * STRIDE)
    while made < stop and wait(shared.steps, (1 - own.h) * STRIDE, made):
        k, part = made // per_batch, made % per_batch
        rows_before = n + edges[k] - edges[k - 1] if k > 0 else 0  # of the batch before
        if part == 0 and k > 0:
            climb(own, shared, rows_before, pace)
        if part == 1 and k > 0:
            settle(own, shared, pace)
        if k < edges.shape[0] - 1:
            rows = n + edges[k + 1] - edges[k] if part >= per_batch - 2 else n
            if part % 2 == 0:
                draw_visible(own, shared, Q)
                if rows > n:
                    encode(own, Q, states, order, edges[k], edges[k + 1])
                to_hidden(own, shared, rows)
            else:
                draw_hidden(own, shared, gaussian)
                if rows > n:
                    compare(own, shared, gaussian, rows)
        made += 1
        tell(shared.steps, own.h * STRIDE, made)
    return made


def train(p, parts, shared, batches, pace):
    """Learn from some batches: the parameters change in place, and both halves with them."""
    shared.steps[...] = 0
    steps = 2 * pace.n_gibbs * (len(batches.edges) - 1) + 2
    kind = None if p.n_states == 2 else p.n_states, True if p.gaussian else None
    in_step(lambda h, stop: advance(parts[h], shared, *kind, batches, pace, stop), steps)
    p.c[...], p.hidden_mean[...] = parts[0].c, parts[0].hidden_mean


# ---- measures of the training


class ByState(NamedTuple):
    """Parameters of a machine, with those of the visible units for each of their states."""

    gaussian: bool  # whether the hidden units are
    W: np.ndarray  # (L, Q, M)
    b: np.ndarray  # (L, Q)
    c: np.ndarray  # (M,)


def conditionals(by_state, states, sites, inputs):
    """Return log p(v_i | the other sites) (n, k), for sites i (n, k) of states v (n, L) with inputs Wᵀv (n, M)."""
    gaussian, W, b, c = by_state
    c, Q = c.astype(float), W.shape[1]
    now = np.take_along_axis(states, sites, axis=1).astype(int)
    own, logs = W[sites, now], np.empty((Q, *sites.shape))
    logs[0] = b[sites, now] + kernels.log_norms(gaussian, inputs, c, 1.0)[:, None]
    for k in range(1, Q):
        other = (now + k) % Q
        x = W[sites, other] - own
        x += inputs[:, None]
        logs[k] = b[sites, other] + kernels.log_norms(gaussian, x.reshape(-1, len(c)), c, 1.0).reshape(sites.shape)
    top = logs.max(axis=0)
    return logs[0] - top - np.log(np.exp(logs - top).sum(axis=0))


def judge(machine, by_state, states, sites, logs):
    """Write log p(v_i | the other sites) to logs, and return how many sites a reconstruction gets wrong on average.

    ``states`` is (n, L), sites and logs are (n, k).
    """
    visible, hidden, W, b, c = machine
    features = visible.encode(states, np.float32)
    inputs = features @ W
    logs[...] = conditionals(by_state, states, sites, inputs)
    if hidden.gaussian:
        inputs += c
    else:
        kernels.bernoulli_mean(inputs, c, ONE)
    again = inputs @ W.T
    if visible.n_states == 2:
        kernels.bernoulli_mean(again, b, ONE)
    else:
        kernels.potts_mean(again, b, ONE, visible.n_states)
    again -= features
    wrong = np.abs(again, out=again).sum(axis=1).sum(dtype=float)
    return wrong if visible.n_states == 2 else 0.5 * wrong  # one-hot: both states count


# ---- trainings


@dataclass
class Training:
    """All that the next epoch depends on, for D visible features and M hidden units."""

    machine: Machine
    base: np.ndarray  # (D,) inputs of independent visible units with the means of the data
    mean: np.ndarray  # (D,) of the visible features, in the data
    hidden_mean: np.ndarray  # (M,) of the hidden units, given data
    visible_chains: np.ndarray  # (n_chains, D)
    hidden_chains: np.ndarray  # (n_chains, M)
    rng: np.random.Generator
    history: tuple = ()  # a dict for each epoch


def start(states, visible, hidden, n_chains, rng):
    """Begin a training on states (n, L).

    The visible fields reproduce the means of the data, with half a count added to each state, so that a site that never
    changes has finite fields. The chains start as samples of these independent sites.
    """
    n = len(states)
    counts = sum(visible.encode(states[i : i + 1000], np.float32).sum(axis=0) for i in range(0, n, 1000))
    mean = (counts.astype(np.float64) + PSEUDOCOUNT) / (n + visible.n_states * PSEUDOCOUNT)
    base = visible.inputs_of(mean)
    W = visible.in_gauge(rng.normal(0.0, SPREAD / np.sqrt(visible.n), (visible.width, hidden.width)))
    machine = Machine(visible, hidden, W, base, -mean @ W).astype(np.float32)
    features = visible.sample(np.tile(machine.b, (n_chains, 1)), 0 * machine.b, visible.draw(n_chains, rng))
    z = hidden.sample(features @ machine.W, machine.c, hidden.draw(n_chains, rng))
    hidden_mean = hidden.mean(np.zeros((1, hidden.width), np.float32))[0]
    return Training(machine, machine.b.copy(), mean.astype(np.float32), hidden_mean, features, z, rng)


def epoch(training, states, batch_size, n_gibbs, rate, l2):
    """Return the training after one more epoch over states (n, L); the one given is not changed."""
    t = copy.deepcopy(training)
    p, pace = _parameters(t), Pace(n_gibbs, np.float32(rate), float(l2))
    n = len(states)
    n_batches = max(1, round(n / batch_size))
    edges = np.arange(n_batches + 1) * n // n_batches
    parts, shared = halves(p, -(-n // n_batches), t.rng)
    train(p, parts, shared, Batches(states, t.rng.permutation(n), edges), pace)
    t.visible_chains = np.concatenate([part.v for part in parts], axis=1)
    finite = all(np.isfinite(parameters).all() for parameters in (p.W, p.b, p.c))
    if not (finite and np.abs(p.W).max() < LARGEST):
        raise _diverged(t, pace, "weights have no bound")
    judged = monitor(t, states)
    guessed = -t.machine.visible.n * np.log(t.machine.visible.n_states)
    if not judged["pseudo_likelihood"] > WORSE * guessed:
        symptom = f"the pseudo-likelihood is {judged['pseudo_likelihood']:.3g}, that of guesses {guessed:.3g}"
        raise _diverged(t, pace, symptom)
    t.history += (judged,)
    return t


def _diverged(t, pace, symptom):
    """Return the error for a training that diverges."""
    _, rate, l2 = pace
    change = f"a learning_rate smaller than {rate:g}"
    if rate * l2 >= 1.0 and l2 > rate:  # each step then turns the weights round, and makes them larger
        change = f"a smaller l2 or learning_rate, whose product must be below 1, got {l2:g} and {rate:g}"
    return FloatingPointError(f"training diverged in epoch {len(t.history) + 1}, {symptom}: take {change}")


def monitored(states):
    """Return the samples that an epoch is judged by, at equal distances in states (n, L)."""
    return states[np.linspace(0, len(states) - 1, min(len(states), MONITORED)).astype(int)]


def monitor(t, states):
    """Measure the pseudo-likelihood of a sample, and how often a reconstruction gets a site wrong.

    Both are means over some hundred samples; the first takes a few sites of each, drawn at random.
    """
    visible, hidden, W, b, c = t.machine
    some = monitored(states)
    sites = np.random.default_rng(len(t.history)).integers(0, visible.n, (len(some), SITES))
    by_state = ByState(hidden.gaussian, *(np.ascontiguousarray(visible.by_state(q)) for q in (W, b)), c)
    logs = np.empty(sites.shape)

    def work(h):
        rows = slice(*half(h, len(some)))
        return judge(t.machine, by_state, some[rows], sites[rows], logs[rows])

    wrong = sum(in_pieces(work, range(2)))
    return {"pseudo_likelihood": float(visible.n * logs.mean()), "reconstruction_error": float(wrong / some.size)}


def _parameters(t):
    visible, hidden, *arrays = t.machine
    return Parameters(visible.n_states, hidden.gaussian, *arrays, t.mean, t.hidden_mean, t.hidden_chains)
