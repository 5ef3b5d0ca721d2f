"""Persistent contrastive divergence, an epoch at a time."""

import copy
from dataclasses import dataclass

import numpy as np

from . import _rbm_kernels as kernels
from ._rbm_machine import Machine

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


class Room:
    """Arrays that an epoch writes to again and again: new ones would cost more than what is written."""

    def __init__(self, t, batch, n_gibbs):
        visible, hidden, W, *_ = t.machine
        chains, f32 = len(t.visible_chains), np.float32
        self.draws = [
            [(np.empty((chains, visible.n), f32), np.empty((chains, hidden.n), f32)) for _ in range(n_gibbs)]
            for _ in range(2)
        ]
        self.features, self.z_data = np.empty((batch, visible.width), f32), np.empty((batch, hidden.n), f32)
        self.z_model = np.empty((chains, hidden.n), f32)
        self.data, self.model = np.empty_like(W), np.empty_like(W)


def epoch(training, states, batch_size, n_gibbs, rate, l2, pool):
    """Training after one more epoch; what it was before is left as it is.

    While one thread moves the chains, another, if there is one, looks at the data and draws the next random numbers.
    """
    t = copy.deepcopy(training)
    n, rate = len(states), np.float32(rate)
    batches = np.array_split(t.rng.permutation(n), max(1, round(n / batch_size)))
    room = Room(t, len(batches[0]), n_gibbs)
    _draw(t, room.draws[0])
    for k, rows in enumerate(batches):
        draws, after = room.draws[k % 2], room.draws[(k + 1) % 2] if k + 1 < len(batches) else ()
        if pool is None:
            from_data = _data_phase(t, states[rows], room, after)
            from_model = _model_phase(t, draws, room)
        else:
            ahead = pool.submit(_data_phase, t, states[rows], room, after)
            from_model = _model_phase(t, draws, room)
            from_data = ahead.result()
        _update(t, from_data, from_model, len(rows), rate, l2)
    if not all(np.isfinite(parameters).all() for parameters in t.machine[2:]):
        raise FloatingPointError(
            f"training diverged in epoch {len(t.history) + 1}: take a learning_rate smaller than {rate:g}"
        )
    t.history += (monitor(t, states),)
    return t


def _draw(t, draws):
    """Random numbers of the chains' next steps."""
    for to_visible, to_hidden in draws:
        t.machine.visible.draw(len(to_visible), t.rng, to_visible)
        t.machine.hidden.draw(len(to_hidden), t.rng, to_hidden)


def _data_phase(t, states, room, draws=()):
    """Summed products of features and hidden units, and the means of both; then random numbers for what comes next."""
    _, hidden, W, _, c = t.machine
    features, z = room.features[: len(states)], room.z_data[: len(states)]
    t.machine.visible.encode_into(states, features)
    hidden.mean32(np.matmul(features, W, out=z), c)
    np.matmul(features.T, z, out=room.data)
    _draw(t, draws)
    share = np.full(len(states), 1.0 / len(states), np.float32)
    return room.data, share @ features, share @ z


def _model_phase(t, draws, room):
    """The same of the chains, after steps that these random numbers decide."""
    visible, hidden, W, b, c = t.machine
    v, z = t.visible_chains, room.z_model
    for to_visible, to_hidden in draws:
        visible.sample(np.matmul(t.hidden_chains, W.T, out=v), b, to_visible)
        np.matmul(v, W, out=z)
        np.copyto(t.hidden_chains, z)
        hidden.sample(t.hidden_chains, c, to_hidden)
    hidden.mean32(z, c)
    np.matmul(v.T, z, out=room.model)
    share = np.full(len(v), 1.0 / len(v), np.float32)
    return room.model, share @ v, share @ z


def _update(t, from_data, from_model, n_data, rate, l2):
    (data, v_data, z_data), (model, v_model, z_model) = from_data, from_model
    t.hidden_mean += np.float32(1.0 - MEMORY) * (z_data - t.hidden_mean)
    kernels.update(
        *t.machine[2:],
        t.mean,
        t.hidden_mean,
        data,
        model,
        n_data,
        len(t.visible_chains),
        v_data - v_model,
        z_data - z_model,
        rate,
        l2,
    )


def monitored(states):
    """The samples that an epoch is judged by, at equal distances."""
    return states[np.linspace(0, len(states) - 1, min(len(states), MONITORED)).astype(int)]


def monitor(t, states):
    """Pseudo-likelihood of a sample, and how often a reconstruction gets a site wrong.

    Both are means over some hundred samples; the first takes a few sites of each, drawn at random.
    """
    machine = t.machine
    visible, hidden = machine.visible, machine.hidden
    some = monitored(states)
    sites = np.random.default_rng(len(t.history)).integers(0, visible.n, (len(some), SITES))
    features = visible.encode(some, np.float32)
    inputs = features @ machine.W
    logs = np.empty(sites.shape)
    by_state = (np.ascontiguousarray(visible.by_state(p)) for p in (machine.W, machine.b))
    kernels.conditionals(hidden.gaussian, some, sites, inputs, *by_state, machine.c, logs)
    again = visible.mean32(hidden.mean32(inputs, machine.c) @ machine.W.T, machine.b)
    right = np.abs(1.0 - features - again) if visible.width == visible.n else features * again
    return {
        "pseudo_likelihood": visible.n * float(logs.mean()),
        "reconstruction_error": 1.0 - float(right.sum()) / some.size,
    }
