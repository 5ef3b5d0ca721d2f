"""An epoch of persistent contrastive divergence, compiled as a whole.

Two threads share the work. Where visible units are drawn and weights are changed, each has half of the visible units;
where hidden units are, half of the rows. The halves are the same whatever the number of threads, and so are all digits.
Rows are chains first, then samples.
"""

from typing import NamedTuple

import numpy as np
from numba import prange

from .._support.jit import compiled
from ._kernels import (
    LANES,
    ONE,
    ZERO,
    bernoulli_mean,
    bernoulli_sample,
    conditionals,
    jit,
    jit_fused,
    jit_sum,
    normal_sample,
    potts_mean,
    potts_sample,
    random_bits,
)
from ._layers import streams

jit_halves = compiled(nogil=True, parallel=True)

MEMORY = np.float32(0.95)  # of the running mean of the hidden units, from batch to batch
VISIBLE, HIDDEN, COMPARE, CLIMB = np.arange(4)  # tasks; for constants of Python numba would compile each by itself


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


class Work(NamedTuple):
    """Arrays that are written to again and again: new ones would cost more than what is written."""

    streams: np.ndarray  # (2, 4, LANES) states of the generators of random bits, one for each half
    words: np.ndarray  # (2, …) random bits
    first: np.ndarray  # (rows, about D/2) visible features of half of the units
    second: np.ndarray  # those of the other half
    given: np.ndarray  # (2, rows, M) inputs of the hidden units from each half
    z: np.ndarray  # (rows, M) means of the hidden units, each row times its share
    share: np.ndarray  # (rows,) of each row in the gradient
    z_data: np.ndarray  # (2, M) two terms of the mean of z in the data
    z_model: np.ndarray  # (2, M) two terms of that in the chains, with the sign it has in the gradient
    dvz: np.ndarray  # (D, M) differences between data and model in the means of vz, v and z
    dv: np.ndarray  # (D,)
    dz: np.ndarray  # (M,)
    back: np.ndarray  # (2, M) what the change of each half of the weights takes off the biases


def workspace(p, n_batch, rng):
    """Allocate arrays for batches of up to ``n_batch`` samples, with streams of random bits that a generator seeds."""
    width, M = p.W.shape
    n, features = len(p.chains), 1 if p.n_states == 2 else p.n_states
    rows, units = n + n_batch, width // features
    sizes = [features * (hi - lo) for lo, hi in (half(0, units), half(1, units))]
    f32 = np.float32
    share = np.concatenate([np.full(n, -1.0 / n, f32), np.full(n_batch, np.nan, f32)])
    return Work(
        streams(rng, 2),
        np.empty((2, n * max((units + 1) // 2, M) + LANES), np.uint32),
        *(np.empty((rows, size), f32) for size in sizes),
        *(np.zeros(shape, f32) for shape in ((2, rows, M), (rows, M))),
        share,
        *(np.empty(shape, f32) for shape in ((2, M), (2, M), (width, M), width, M, (2, M))),
    )


@jit
def half(h, n):
    """Return the bounds of half h, 0 or 1, of range(n)."""
    return h * n // 2, (h + 1) * n // 2


@jit_fused
def encode(n_states, states, batch, lo, features):
    """Write the features (batch, …) of units ``lo`` and on, for the samples of a batch (batch,) of states (n, L)."""
    for k in range(batch.shape[0]):
        row, f = states[batch[k]][lo:], features[k]
        if n_states == 2:
            for i in range(f.shape[0]):
                f[i] = row[i]
        else:
            for i in range(f.shape[0]):
                f[i] = ZERO
            for i in range(f.shape[0] // n_states):
                f[i * n_states + row[i]] = ONE


@jit
def draw_visible(h, p, states, batch, work):
    """Draw half of the visible units of the chains, and compute what they and the batch give to the hidden units."""
    lo, hi = half(h, states.shape[1])
    if lo == hi:  # there is but one unit
        return
    per_unit = 1 if p.n_states == 2 else p.n_states
    W, b = p.W[per_unit * lo : per_unit * hi], p.b[per_unit * lo : per_unit * hi]
    features = work.first if h == 0 else work.second
    n, rows = p.chains.shape[0], p.chains.shape[0] + batch.shape[0]
    v = features[:n]
    np.dot(p.chains, W.T, v)
    words = random_bits(work.streams[h], n * (hi - lo), work.words[h]).reshape((n, hi - lo))
    if p.n_states == 2:
        bernoulli_sample(v, b, ONE, words)
    else:
        potts_sample(v, b, ONE, p.n_states, words)
    encode(p.n_states, states, batch, lo, features[n:rows])
    np.dot(features[:rows], W, work.given[h][:rows])


@jit
def take(given, lo, z):
    """Write to z (n, M) the inputs of the hidden units, but for their biases, of rows ``lo`` and on."""
    for i in range(z.shape[0]):
        one, two, row = given[0, lo + i], given[1, lo + i], z[i]
        for j in range(row.shape[0]):
            row[j] = one[j] + two[j]


@jit
def mean(p, z):
    """Replace the inputs z (n, M) of hidden units by their means."""
    if not p.gaussian:
        bernoulli_mean(z, p.c, ONE)
        return
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            z[i, j] += p.c[j]


@jit
def draw_hidden(h, p, work):
    """Draw the hidden units of half of the chains."""
    lo, hi = half(h, p.chains.shape[0])
    z = p.chains[lo:hi]
    take(work.given, lo, z)
    words = random_bits(work.streams[h], z.size + 1, work.words[h])  # one more: normal deviates come in pairs
    if p.gaussian:
        normal_sample(z, p.c, words)
    else:
        bernoulli_sample(z, p.c, ONE, words[: z.size].reshape(z.shape))


@jit_fused
def mean_hidden(p, lo, hi, work, total):
    """Compute the means of the hidden units in rows lo … hi - 1, times their shares, and their sum ``total`` (M,)."""
    z = work.z[lo:hi]
    take(work.given, lo, z)
    mean(p, z)
    for j in range(total.shape[0]):
        total[j] = ZERO
    for i in range(hi - lo):
        row, s = z[i], work.share[lo + i]
        for j in range(row.shape[0]):
            row[j] *= s
            total[j] += row[j]


@jit
def compare(h, p, n_samples, work):
    """Compute the means of the hidden units in half of the chains and half of the samples."""
    n = p.chains.shape[0]
    lo, hi = half(h, n)
    mean_hidden(p, lo, hi, work, work.z_model[h])
    lo, hi = half(h, n_samples)
    mean_hidden(p, n + lo, n + hi, work, work.z_data[h])


@jit_sum
def climb(h, p, rows, work, pace):
    """Step up the likelihood with half of the weights, in coordinates where the means are taken off the units.

    There the weights multiply (v - mean)(z - hidden_mean), and the penalty leaves the inputs at the means alone.
    """
    features = (work.first if h == 0 else work.second)[:rows]
    lo, M = 0 if h == 0 else work.first.shape[1], p.W.shape[1]
    dvz, dv, dz, back = work.dvz[lo : lo + features.shape[1]], work.dv[lo:], work.dz, work.back[h]
    hidden_mean, rate, shrink = p.hidden_mean, pace.rate, np.float32(2.0 * pace.l2)
    for j in range(M):
        back[j] = ZERO
    if features.shape[1] == 0:
        return
    np.dot(features.T, work.z[:rows], dvz)
    mean_features(features, work.share, dv)
    for i in range(features.shape[1]):
        w, product, m, d = p.W[lo + i], dvz[i], p.mean[lo + i], dv[i]
        along = ZERO
        for j in range(M):
            step = product[j] - m * dz[j] - d * hidden_mean[j] - shrink * w[j]
            w[j] += rate * step
            along += step * hidden_mean[j]
            back[j] += m * step
        p.b[lo + i] += rate * (d - along)


@jit_fused
def mean_features(features, share, out):
    """Write to out (D,) the sum of the rows of features (n, D), each times its share."""
    width = features.shape[1]
    for i in range(width):
        out[i] = ZERO
    for k in range(features.shape[0]):
        f, s = features[k], share[k]
        for i in range(width):
            out[i] += s * f[i]


@jit
def do(task, h, p, states, batch, work, pace):
    """Do half of a task."""
    if task == VISIBLE:
        draw_visible(h, p, states, batch, work)
    elif task == HIDDEN:
        draw_hidden(h, p, work)
    elif task == COMPARE:
        compare(h, p, batch.shape[0], work)
    else:
        climb(h, p, p.chains.shape[0] + batch.shape[0], work, pace)


@jit_halves
def side_by_side(task, p, states, batch, work, pace, alone):
    """Do both halves of a task. All tasks are called here, since each place would take seconds to compile."""
    if alone:
        for h in range(2):
            do(task, h, p, states, batch, work, pace)
    else:
        for h in prange(2):
            do(task, np.int64(h), p, states, batch, work, pace)


@jit
def learn(p, states, batch, work, pace, alone):
    """Step up the likelihood, given the visible units of all rows and what they give to the hidden ones."""
    side_by_side(COMPARE, p, states, batch, work, pace, alone)
    for j in range(p.c.shape[0]):
        z_data = work.z_data[0, j] + work.z_data[1, j]
        work.dz[j] = z_data + work.z_model[0, j] + work.z_model[1, j]
        p.hidden_mean[j] = MEMORY * p.hidden_mean[j] + (ONE - MEMORY) * z_data
    side_by_side(CLIMB, p, states, batch, work, pace, alone)
    for j in range(p.c.shape[0]):
        p.c[j] += pace.rate * (work.dz[j] - work.back[0, j] - work.back[1, j])


@jit
def train(p, states, order, edges, work, pace, alone):
    """Learn from some batches: states (n, L), taken in this order (n,), between these edges (batches + 1,)."""
    n = p.chains.shape[0]
    for k in range(edges.shape[0] - 1):
        batch = order[edges[k] : edges[k + 1]]
        for i in range(batch.shape[0]):
            work.share[n + i] = ONE / np.float32(batch.shape[0])
        for left in range(pace.n_gibbs - 1, -1, -1):
            side_by_side(VISIBLE, p, states, batch[:0] if left else batch, work, pace, alone)
            side_by_side(HIDDEN, p, states, batch, work, pace, alone)
        learn(p, states, batch, work, pace, alone)


@jit
def judge_half(h, p, by_state, states, sites, logs):
    """Write log p(v_i | the other sites) to logs, and return how many sites a reconstruction gets wrong on average.

    Both are for half of the samples: of states (n, L), and of sites and logs (n, k).
    """
    lo, hi = half(h, states.shape[0])
    states, n = states[lo:hi], hi - lo
    features, inputs = np.empty((n, p.W.shape[0]), np.float32), np.empty((n, p.W.shape[1]), np.float32)
    encode(p.n_states, states, np.arange(n), 0, features)
    np.dot(features, p.W, inputs)
    conditionals(by_state, states, sites[lo:hi], inputs, logs[lo:hi])
    mean(p, inputs)
    again = np.empty_like(features)
    np.dot(inputs, p.W.T, again)
    if p.n_states == 2:
        bernoulli_mean(again, p.b, ONE)
        return distance(again, features)
    potts_mean(again, p.b, ONE, p.n_states)
    return 0.5 * distance(again, features)  # one-hot: both states count


@jit_sum
def distance(one, two):
    """Return the sum of absolute differences between two arrays (n, D)."""
    total = 0.0
    for i in range(one.shape[0]):
        for j in range(one.shape[1]):
            total += abs(one[i, j] - two[i, j])
    return total


@jit_halves
def judge(p, by_state, states, sites, logs, wrong, alone):
    """Judge all samples in two halves, as ``judge_half`` does; its results go to wrong (2,)."""
    if alone:
        for h in range(2):
            wrong[h] = judge_half(h, p, by_state, states, sites, logs)
    else:
        for h in prange(2):
            wrong[h] = judge_half(np.int64(h), p, by_state, states, sites, logs)
