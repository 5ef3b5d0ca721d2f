"""Persistent contrastive divergence, an epoch at a time."""

import copy
from dataclasses import dataclass

import numpy as np

from . import _rbm_kernels as kernels
from ._rbm_layers import visible_layer
from ._rbm_machine import Machine, seeds, side_by_side, start_work

PSEUDOCOUNT = 0.5  # of each state at each site
SPREAD = 0.1  # √L times the standard deviation of the first weights
MEMORY = 0.95  # of the running mean of the hidden units, from batch to batch
MONITORED = 500  # samples that an epoch is judged by
SITES = 4  # of each of them


@dataclass
class Training:
    """All that the next epoch depends on."""

    machine: Machine
    base: np.ndarray  # inputs of independent visible units with the means of the data
    mean: np.ndarray  # of the visible features, in the data
    hidden_mean: np.ndarray  # of the hidden units, given data
    visible_chains: np.ndarray
    hidden_chains: np.ndarray
    rng: np.random.Generator
    history: tuple = ()  # one dict an epoch


def start(states, visible, hidden, n_chains, rng):
    """Training before its first epoch.

    The visible fields reproduce the means of the data, each state counted half a time more than it is seen, so that a
    site that never changes has fields too. The chains start as samples of that.
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


class Half:
    """Half of the visible units with their weights, and all hidden units: what one thread works on.

    Each half draws the same hidden units, with a generator of its own in the same state. So all that goes from one to
    the other is what its visible units give to the hidden ones. Rows are chains first, then samples. Arrays are written
    to again and again: new ones would cost more than what is written.
    """

    def __init__(self, t, units, n_batch, rng, hidden_rng):
        layer, self.hidden, W, b, c = t.machine
        self.visible, self.units = visible_layer(units.stop - units.start, layer.n_states), units
        features = layer.width // layer.n
        self.columns = slice(features * units.start, features * units.stop)
        self.W, self.b, self.mean = W[self.columns], b[self.columns], t.mean[self.columns]  # views
        self.c = c.copy() if units.start == 0 else np.zeros_like(c)  # to be added to that of the other half
        self.rng, self.hidden_rng = rng, hidden_rng
        self.n_chains = len(t.hidden_chains)
        rows, f32 = self.n_chains + n_batch, np.float32
        self.share = np.full(rows, -1.0 / self.n_chains, f32)
        self.features, self.product = np.empty((rows, self.visible.width), f32), np.empty_like(self.W)
        self.z, self.given = np.empty((rows, len(c)), f32), np.empty((2, rows, len(c)), f32)
        self.chains, self.hidden_mean, self.nothing = t.hidden_chains.copy(), t.hidden_mean.copy(), np.zeros_like(c)
        self.sums = np.empty(self.visible.width, f32), np.empty_like(c), np.empty_like(c)

    def train(self, other, states, batches, n_gibbs, rate, l2):
        """An epoch; yields where it has to wait for what the other half gives."""
        states, n, turn = states[:, self.units], self.n_chains, 0
        for batch in batches:
            rows = n + len(batch)
            self.visible.encode_into(states[batch], self.features[n:rows])
            self.share[n:rows] = 1.0 / len(batch)
            for left in reversed(range(n_gibbs)):
                turn = 1 - turn  # the other half may still read what was given before
                self.draw_visible()
                self.give(n if left else rows, turn)
                yield
                self.take(other, n if left else rows, turn)
                self.draw_hidden()
            self.climb(rows, rate, l2)

    def draw_visible(self):
        """The visible units of the chains, given the hidden ones."""
        v, n = self.features[: self.n_chains], self.n_chains
        self.visible.sample(np.matmul(self.chains, self.W.T, out=v), self.b, self.visible.draw(n, self.rng))

    def give(self, rows, turn):
        """Write what these visible units, in the first rows, add to the inputs of the hidden units."""
        given = self.given[turn, :rows]
        np.matmul(self.features[:rows], self.W, out=given)
        given += self.c

    def take(self, other, rows, turn):
        """Inputs of the hidden units, in the first rows."""
        np.add(self.given[turn, :rows], other.given[turn, :rows], out=self.z[:rows])

    def draw_hidden(self):
        """The hidden units of the chains, given their inputs."""
        np.copyto(self.chains, self.z[: self.n_chains])
        self.hidden.sample(self.chains, self.nothing, self.hidden.draw(self.n_chains, self.hidden_rng))

    def climb(self, rows, rate, l2):
        """One step up the likelihood."""
        features, z, (db, dc, z_data) = self.features[:rows], self.z[:rows], self.sums
        self.hidden.mean32(z, self.nothing)
        kernels.weighted(features, z, self.share[:rows], self.n_chains, *self.sums)
        np.matmul(features.T, z, out=self.product)
        self.hidden_mean += np.float32(1.0 - MEMORY) * (z_data - self.hidden_mean)
        kernels.update(self.W, self.b, self.c, self.mean, self.hidden_mean, self.product, db, dc, rate, l2)
        if self.units.start == 0:
            self.c += rate * dc


def halves(t, n_batch):
    """Both halves, with generators that come from that of the training."""
    n = t.machine.visible.n
    middle = (n + 1) // 2
    first, second, hidden = seeds(t.rng, 3)
    one = Half(t, slice(0, middle), n_batch, first, hidden)
    return one, Half(t, slice(middle, n), n_batch, second, copy.deepcopy(hidden))


def collect(t, one, two):
    """Bring home what the halves have of their own."""
    t.machine.c[...] = one.c + two.c
    t.hidden_mean, t.hidden_chains = one.hidden_mean, one.chains
    for half in (one, two):
        t.visible_chains[:, half.columns] = half.features[: half.n_chains]


def epoch(training, states, batch_size, n_gibbs, rate, l2, pool):
    """Training after one more epoch; what it was before is left as it is.

    Half of the visible units are the work of a second thread, if there is one.
    """
    t = copy.deepcopy(training)
    n, rate = len(states), np.float32(rate)
    batches = np.array_split(t.rng.permutation(n), max(1, round(n / batch_size)))
    one, two = halves(t, len(batches[0]))
    work = states, batches, n_gibbs, rate, l2
    side_by_side(pool, one.train(two, *work), two.train(one, *work))
    collect(t, one, two)
    if not all(np.isfinite(parameters).all() for parameters in t.machine[2:]):
        raise FloatingPointError(
            f"training diverged in epoch {len(t.history) + 1}: take a learning_rate smaller than {rate:g}"
        )
    t.history += (monitor(t, states, pool),)
    return t


def monitored(states):
    """The samples that an epoch is judged by, at equal distances."""
    return states[np.linspace(0, len(states) - 1, min(len(states), MONITORED)).astype(int)]


def monitor(t, states, pool):
    """Pseudo-likelihood of a sample, and how often a reconstruction gets a site wrong.

    Both are means over some hundred samples; the first takes a few sites of each, drawn at random.
    """
    some = monitored(states)
    sites = np.random.default_rng(len(t.history)).integers(0, t.machine.visible.n, (len(some), SITES))
    middle = (len(some) + 1) // 2
    ahead = start_work(pool, _judge, t.machine, some[middle:], sites[middle:])
    logs, wrong = np.add(_judge(t.machine, some[:middle], sites[:middle]), ahead()).tolist()
    return {
        "pseudo_likelihood": t.machine.visible.n * logs / sites.size,
        "reconstruction_error": wrong / some.size,
    }


def _judge(machine, states, sites):
    """Sum of log p(v_i | the other sites), and the expected number of sites that a reconstruction gets wrong."""
    visible, hidden, W, b, c = machine
    features = visible.encode(states, np.float32)
    inputs = features @ W
    logs = np.empty(sites.shape)
    by_state = (np.ascontiguousarray(visible.by_state(p)) for p in (W, b))
    kernels.conditionals(hidden.gaussian, states, sites, inputs, *by_state, c, logs)
    again = visible.mean32(hidden.mean32(inputs, c) @ W.T, b)
    again -= features
    wrong = float(np.abs(again, out=again).sum())
    return logs.sum(), wrong if visible.width == visible.n else 0.5 * wrong  # one-hot: both states count
