"""An epoch of persistent contrastive divergence.

Two threads share the work. Where visible units are drawn and weights are changed, each has half of the visible units;
where hidden units are, half of the rows. The halves are the same whatever the number of threads, and so are all digits.
Rows are chains first, then samples. Products of matrices are numpy's, and what has a loop over units is compiled.
"""

from typing import NamedTuple

import numpy as np

from .._support.parallel import in_step
from . import _kernels as kernels
from ._kernels import LANES, ONE
from ._layers import streams

MEMORY = np.float32(0.95)  # of the running mean of the hidden units, from batch to batch
FEW, MANY = 0.25, 32  # up to this share of features that are not 0, and from so many hidden units on, lists are faster


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
    """Arrays that are written to again and again: new ones would cost more than what is written.

    Those of shape (2, …) have a part for each half.
    """

    streams: np.ndarray  # (2, 4, LANES) states of the generators of random bits
    words: np.ndarray  # (2, …) random bits
    first: np.ndarray  # (rows, about D/2) visible features of half of the units
    second: np.ndarray  # those of the other half
    given: np.ndarray  # (2, rows, M) inputs of the hidden units from each half
    z: np.ndarray  # (rows, M) means of the hidden units, each row times its share
    share: np.ndarray  # (2, rows) of each row in the gradient, as each half knows it
    z_data: np.ndarray  # (2, M) two terms of the mean of z in the data
    z_model: np.ndarray  # (2, M) two terms of that in the chains, with the sign it has in the gradient
    dvz: np.ndarray  # (D, M) differences between data and model in the means of vz, v and z
    dv: np.ndarray  # (D,)
    dz: np.ndarray  # (2, M), the same twice
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
        np.stack([share, share]),
        *(np.empty(shape, f32) for shape in ((2, M), (2, M), (width, M), width, (2, M), (2, M))),
    )


def half(h, n):
    """Return the bounds of half h, 0 or 1, of range(n)."""
    return h * n // 2, (h + 1) * n // 2


class Lists:
    """Products of features (rows, D), zeros and a few ones: which these are, and sums over them."""

    def __init__(self, rows, width):
        kind = np.uint16 if max(rows, width) < 1 << 16 else np.uint32
        self.index, self.count = np.empty((rows, width + 1), kind), np.empty(rows, np.int64)
        self.columns, self.many = np.empty((width, rows), kind), np.empty(width, np.int64)

    def forward(self, features, W, out):
        """Write features @ W to out."""
        rows = len(features)
        kernels.list_rows(features, self.index[:rows], self.count[:rows])
        kernels.sum_listed(self.index[:rows], self.count[:rows], W, out)

    def backward(self, share, z, out, total):
        """Write features.T @ z to out, and share @ features to total, for the features that were last seen."""
        rows = len(z)
        kernels.list_columns(self.index[:rows], self.count[:rows], share, self.columns, self.many, total)
        kernels.sum_listed(self.columns, self.many, z, out)


class Products:
    """The same products of features of any kind, by BLAS."""

    def forward(self, features, W, out):
        """Write features @ W to out."""
        self.features = features
        np.dot(features, W, out=out)

    def backward(self, share, z, out, total):
        """Write features.T @ z to out, and share @ features to total, for the features that were last seen."""
        np.dot(self.features.T, z, out=out)
        kernels.weighted_sum(self.features, share, total)


class Half:
    """Half of the work on a machine. What the other one reads is written before both meet, and changed only after."""

    def __init__(self, h, p, work, pace):
        self.h, self.p, self.work, self.pace = h, p, work, pace
        self.per_unit = 1 if p.n_states == 2 else p.n_states
        self.lo, self.hi = half(h, len(p.W) // self.per_unit)
        some = slice(self.per_unit * self.lo, self.per_unit * self.hi)
        self.W, self.b, self.mean = p.W[some], p.b[some], p.mean[some]
        self.dvz, self.dv = work.dvz[some], work.dv[some]
        self.features = (work.first, work.second)[h]
        sparse = p.mean.mean() < FEW and p.W.shape[1] >= MANY
        self.products = Lists(*self.features.shape) if sparse else Products()
        # the same in both halves, so that neither waits for the other
        self.c, self.hidden_mean, self.dz = p.c.copy(), p.hidden_mean.copy(), work.dz[h]

    def bits(self, rows, width, more=0):
        """Return random bits (rows, width), or (rows * width + more,) if some more are wanted."""
        words = kernels.random_bits(self.work.streams[self.h], rows * width + more, self.work.words[self.h])
        return words if more else words.reshape(rows, width)

    def draw_visible(self, states, batch):
        """Draw the visible units of the chains, and compute what they and the batch give to the hidden units."""
        p, n = self.p, len(self.p.chains)
        rows, v = n + len(batch), self.features[:n]
        np.dot(p.chains, self.W.T, out=v)
        words = self.bits(n, self.hi - self.lo)
        if p.n_states == 2:
            kernels.bernoulli_sample(v, self.b, ONE, words)
        else:
            kernels.potts_sample(v, self.b, ONE, p.n_states, words)
        if len(batch):
            self.encode(states[batch, self.lo : self.hi], self.features[n:rows])
        self.products.forward(self.features[:rows], self.W, self.work.given[self.h, :rows])

    def encode(self, states, features):
        """Write the features of states (n, …) of half of the units."""
        if self.per_unit == 1:
            features[...] = states
            return
        features[...] = 0.0
        first = np.arange(len(features))[:, None] * features.shape[1] + np.arange(0, features.shape[1], self.per_unit)
        features.reshape(-1)[first + states] = 1.0

    def draw_hidden(self):
        """Draw the hidden units of the chains."""
        lo, hi = half(self.h, len(self.p.chains))
        z = self.p.chains[lo:hi]
        np.add(self.work.given[0, lo:hi], self.work.given[1, lo:hi], out=z)
        words = self.bits(*z.shape, more=1)  # normal deviates come in pairs
        if self.p.gaussian:
            kernels.normal_sample(z, self.c, words)
        else:
            kernels.bernoulli_sample(z, self.c, ONE, words[:-1].reshape(z.shape))

    def compare(self, n_samples):
        """Compute the means of the hidden units in half of the chains and half of the samples."""
        work, h, n = self.work, self.h, len(self.p.chains)
        lo, hi = half(h, n_samples)
        for (start, stop), total in ((half(h, n), work.z_model[h]), ((n + lo, n + hi), work.z_data[h])):
            z, share = work.z[start:stop], work.share[h, start:stop]
            np.add(work.given[0, start:stop], work.given[1, start:stop], out=z)
            if self.p.gaussian:
                z += self.c
            else:
                kernels.bernoulli_mean(z, self.c, ONE)
            kernels.weighted_sum(z, share, total)
            z *= share[:, None]

    def climb(self, n_samples):
        """Step up the likelihood with half of the weights, given the means of the hidden units of both halves."""
        work, rate = self.work, self.pace.rate
        z_data = work.z_data[0] + work.z_data[1]
        self.dz[...] = z_data + work.z_model[0] + work.z_model[1]
        self.hidden_mean[...] = MEMORY * self.hidden_mean + (ONE - MEMORY) * z_data
        rows = len(self.p.chains) + n_samples
        self.products.backward(work.share[self.h, :rows], work.z[:rows], self.dvz, self.dv)
        visible, hidden = (self.b, self.mean, self.dv), (self.hidden_mean, self.dz, work.back[self.h])
        kernels.climb(self.W, self.dvz, visible, hidden, rate, np.float32(2.0 * self.pace.l2))

    def settle(self):
        """Step with the biases too, when both halves of the weights have done so."""
        self.c += self.pace.rate * (self.dz - self.work.back[0] - self.work.back[1])

    def learn(self, n_samples):
        """Step up the likelihood, given the visible units of all rows and what they give to the hidden ones."""
        self.compare(n_samples)
        yield
        self.climb(n_samples)

    def train(self, states, order, edges):
        """Learn from some batches; each ``yield`` waits for the other half.

        A step with the weights needs no waiting: the next visible units depend on no others than one's own.
        """
        n = len(self.p.chains)
        for k in range(len(edges) - 1):
            batch = order[edges[k] : edges[k + 1]]
            self.work.share[self.h, n : n + len(batch)] = ONE / np.float32(len(batch))
            for left in range(self.pace.n_gibbs - 1, -1, -1):
                self.draw_visible(states, batch[:0] if left else batch)
                yield
                if k and left == self.pace.n_gibbs - 1:
                    self.settle()
                self.draw_hidden()
                if left:
                    yield
            yield from self.learn(len(batch))
        yield
        self.settle()

    def keep(self):
        """Write what both halves know to the parameters."""
        self.p.c[...], self.p.hidden_mean[...] = self.c, self.hidden_mean


def train(p, states, order, edges, work, pace):
    """Learn from some batches: states (n, L), taken in this order (n,), between these edges (batches + 1,)."""
    halves = [Half(h, p, work, pace) for h in range(2)]
    in_step(*(h.train(states, order, edges) for h in halves))
    halves[0].keep()


# ---- how well it goes


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
