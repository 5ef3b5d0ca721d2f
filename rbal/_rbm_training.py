"""Persistent contrastive divergence, an epoch at a time."""

import copy
from dataclasses import dataclass, field

import numpy as np

from ._rbm_machine import Machine

PSEUDOCOUNT = 0.5  # of each state at each site
MEMORY = 0.95  # of the running mean of the hidden units
MONITORED = 500  # samples that an epoch is judged by


@dataclass
class Training:
    """All that the next epoch depends on."""

    machine: Machine
    base: np.ndarray  # inputs of independent visible units with the means of the data
    mean: np.ndarray  # of the visible features
    hidden_mean: np.ndarray
    chains: np.ndarray  # hidden units
    visible_chains: np.ndarray
    rng: np.random.Generator
    history: dict = field(default_factory=lambda: {"pseudo_likelihood": [], "reconstruction_error": []})


def start(states, visible, hidden, n_chains, rng):
    """Training before its first epoch."""
    n = len(states)
    counts = sum(visible.encode(states[i : i + 1000]).sum(axis=0) for i in range(0, n, 1000))
    mean = (counts + PSEUDOCOUNT) / (n + visible.n_states * PSEUDOCOUNT)
    if visible.width == visible.n:
        base = np.log(mean / (1.0 - mean))
    else:
        base = np.log(mean).reshape(visible.n, -1)
        base = (base - base.mean(axis=1, keepdims=True)).ravel()
    W = rng.normal(0.0, 0.1 / np.sqrt(visible.n), (visible.width, hidden.width))
    if visible.width != visible.n:
        by_unit = W.reshape(visible.n, visible.n_states, -1)
        by_unit -= by_unit.mean(axis=1, keepdims=True)
    c = -mean @ W
    machine = Machine(visible, hidden, W, base.copy(), c).astype(np.float32)
    features = visible.sample(np.tile(machine.b, (n_chains, 1)), rng)
    chains = hidden.sample(machine.to_hidden(features), rng)
    hidden_mean = hidden.mean(np.zeros((1, hidden.width), np.float32))[0]
    return Training(machine, machine.b.copy(), mean.astype(np.float32), hidden_mean, chains, features, rng)


def gradient(machine, data, model):
    """Gradient of the mean log-likelihood of data features, with the model's mean taken over other features."""
    z_data, z_model = (machine.hidden.mean(machine.to_hidden(f)) for f in (data, model))
    return (
        data.T @ z_data / len(data) - model.T @ z_model / len(model),
        data.mean(axis=0) - model.mean(axis=0),
        z_data.mean(axis=0) - z_model.mean(axis=0),
    )


def epoch(training, states, batch_size, n_gibbs, rate, l2):
    """Training after one more epoch, with a copy of its own of everything."""
    t = copy.deepcopy(training)
    machine, rng = t.machine, t.rng
    n_batches = max(1, round(len(states) / batch_size))
    for rows in np.array_split(rng.permutation(len(states)), n_batches):
        data = machine.visible.encode(states[rows], np.float32)
        for _ in range(n_gibbs):
            t.visible_chains = machine.visible.sample(machine.to_visible(t.chains), rng)
            inputs = machine.to_hidden(t.visible_chains)
            t.chains = machine.hidden.sample(inputs, rng)
        dW, db, dc = gradient(machine, data, t.visible_chains)
        t.hidden_mean = MEMORY * t.hidden_mean + (1.0 - MEMORY) * machine.hidden.mean(machine.to_hidden(data)).mean(0)
        # the same gradient in coordinates where the means are taken off
        dW = dW - np.outer(t.mean, dc) - np.outer(db, t.hidden_mean)
        db, dc = db - dW @ t.hidden_mean, dc - t.mean @ dW
        machine.W[...] += np.float32(rate) * (dW - np.float32(2.0 * l2) * machine.W)
        machine.b[...] += np.float32(rate) * db
        machine.c[...] += np.float32(rate) * dc
    return t
