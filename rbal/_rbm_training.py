"""Persistent contrastive divergence, an epoch at a time."""

import copy
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from . import _rbm_kernels as kernels
from ._rbm_machine import Machine, seeds, start_work

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
    """One of two halves of the chains and of each batch, which go on side by side: chains above data, in one array.

    Its arrays are written to again and again: new ones would cost more than what is written.
    """

    def __init__(self, t, chains, n_data, n_gibbs, rng):
        visible, hidden, W, *_ = t.machine
        self.chains, self.n, self.n_gibbs, self.rng = chains, chains.stop - chains.start, n_gibbs, rng
        rows, f32 = self.n + n_data, np.float32
        self.features, self.z = np.empty((rows, visible.width), f32), np.empty((rows, hidden.n), f32)
        self.hidden_chains = t.hidden_chains[chains]  # a view
        self.product = np.empty_like(W)
        self.means = np.empty(visible.width, f32), np.empty(hidden.n, f32), np.empty(hidden.n, f32)
        self.share = np.full(rows, -1.0 / len(t.hidden_chains), f32)

    def step(self, machine, states, n_batch):
        """What an update needs from these samples of a batch, and from the chains after their next steps."""
        data = slice(self.n, self.n + len(states))
        machine.visible.encode_into(states, self.features[data])
        self.share[data] = 1.0 / n_batch
        self.move(machine)
        return self.sums(machine, data.stop)

    def move(self, machine):
        """Steps of the chains, up to their visible units."""
        visible, _, W, b, _ = machine
        v = self.features[: self.n]
        for k in range(self.n_gibbs):
            if k > 0:
                np.matmul(v, W, out=self.hidden_chains)
                self._hide(machine)
            np.matmul(self.hidden_chains, W.T, out=v)
            visible.sample(v, b, visible.draw(self.n, self.rng))

    def _hide(self, machine):
        hidden = machine.hidden
        hidden.sample(self.hidden_chains, machine.c, hidden.draw(self.n, self.rng))

    def sums(self, machine, rows):
        """Sums over rows, each with its share: of features times hidden means, of features, of hidden means.

        Shares of data are positive, those of chains negative, so that sums are differences between data and model; the
        last sum is that of the hidden means of the data alone. The hidden units of the chains are drawn on the way.
        """
        features, z, share, n = self.features[:rows], self.z[:rows], self.share[:rows], self.n
        np.matmul(features, machine.W, out=z)
        np.copyto(self.hidden_chains, z[:n])
        self._hide(machine)
        machine.hidden.mean32(z, machine.c)
        kernels.weighted(features, z, share, n, *self.means)
        np.matmul(features.T, z, out=self.product)
        return self.product, *self.means


def halves(t, n_batch, n_gibbs):
    """Both halves, each with a generator of its own: what comes out does not depend on which thread works on which."""
    ends = 0, (len(t.hidden_chains) + 1) // 2, len(t.hidden_chains)
    return [
        Half(t, slice(*chains), (n_batch + 1) // 2, n_gibbs, rng)
        for chains, rng in zip(pairwise(ends), seeds(t.rng, 2), strict=True)
    ]


def epoch(training, states, batch_size, n_gibbs, rate, l2, pool):
    """Training after one more epoch; what it was before is left as it is.

    Half of the chains and of each batch are the work of a second thread, if there is one.
    """
    t = copy.deepcopy(training)
    n, rate = len(states), np.float32(rate)
    batches = np.array_split(t.rng.permutation(n), max(1, round(n / batch_size)))
    one, two = halves(t, len(batches[0]), n_gibbs)
    for rows in batches:
        middle = (len(rows) + 1) // 2
        ahead = start_work(pool, two.step, t.machine, states[rows[middle:]], len(rows))
        mine = one.step(t.machine, states[rows[:middle]], len(rows))
        _update(t, mine, ahead(), rate, l2)
    for half in (one, two):
        t.visible_chains[half.chains] = half.features[: half.n]
    if not all(np.isfinite(parameters).all() for parameters in t.machine[2:]):
        raise FloatingPointError(
            f"training diverged in epoch {len(t.history) + 1}: take a learning_rate smaller than {rate:g}"
        )
    t.history += (monitor(t, states, pool),)
    return t


def _update(t, one, two, rate, l2):
    (product, *sums), (other, *more) = one, two
    db, dc, z_data = (a + b for a, b in zip(sums, more, strict=True))
    t.hidden_mean += np.float32(1.0 - MEMORY) * (z_data - t.hidden_mean)
    kernels.update(*t.machine[2:], t.mean, t.hidden_mean, product, other, db, dc, rate, l2)


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
    wrong = np.abs(again, out=again).sum(dtype=np.float64)
    return logs.sum(), wrong if visible.width == visible.n else 0.5 * wrong  # one-hot: both states count
