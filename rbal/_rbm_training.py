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
SITES = 8  # of each of them


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


def epoch(training, states, batch_size, n_gibbs, rate, l2, pool):
    """Training after one more epoch; what it was before is left as it is.

    While one thread moves the chains, another, if there is one, looks at the data and draws the next random numbers.
    """
    t = copy.deepcopy(training)
    rng, n, rate = t.rng, len(states), np.float32(rate)
    batches = np.array_split(rng.permutation(n), max(1, round(n / batch_size)))
    draws = _draw(t, n_gibbs)
    for k, rows in enumerate(batches):
        last = k + 1 == len(batches)
        if pool is None:
            from_data, after = _data_phase(t, states[rows]), None if last else _draw(t, n_gibbs)
            from_model = _model_phase(t, draws)
        else:
            ahead = pool.submit(_data_phase_and_draw, t, states[rows], 0 if last else n_gibbs)
            from_model = _model_phase(t, draws)
            from_data, after = ahead.result()
        _update(t, from_data, from_model, len(rows), rate, l2)
        draws = after
    if not all(np.isfinite(parameters).all() for parameters in t.machine[2:]):
        raise FloatingPointError(
            f"training diverged in epoch {len(t.history) + 1}: take a learning_rate smaller than {rate:g}"
        )
    t.history += (monitor(t, states),)
    return t


def _draw(t, n_gibbs):
    """Random numbers of the chains' next steps."""
    rows = len(t.visible_chains)
    return [(t.machine.visible.draw(rows, t.rng), t.machine.hidden.draw(rows, t.rng)) for _ in range(n_gibbs)]


def _data_phase_and_draw(t, states, n_gibbs):
    return _data_phase(t, states), _draw(t, n_gibbs)


def _data_phase(t, states):
    """Summed products of features and hidden units, and the means of both."""
    features = t.machine.visible.encode(states, np.float32)
    z = t.machine.hidden.mean32(features @ t.machine.W, t.machine.c)
    return features.T @ z, features.mean(axis=0), z.mean(axis=0)


def _model_phase(t, draws):
    """The same of the chains, after steps that these random numbers decide."""
    visible, hidden, W, b, c = t.machine
    for to_visible, to_hidden in draws:
        t.visible_chains = visible.sample(t.hidden_chains @ W.T, b, to_visible)
        inputs = t.visible_chains @ W
        t.hidden_chains = hidden.sample(inputs.copy(), c, to_hidden)
    z = hidden.mean32(inputs, c)
    return t.visible_chains.T @ z, t.visible_chains.mean(axis=0), z.mean(axis=0)


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
    again = visible.mean(machine.to_visible(hidden.mean(inputs + machine.c)))
    right = np.abs(1.0 - features - again) if visible.width == visible.n else features * again
    return {
        "pseudo_likelihood": visible.n * float(logs.mean()),
        "reconstruction_error": 1.0 - float(right.sum()) / some.size,
    }
