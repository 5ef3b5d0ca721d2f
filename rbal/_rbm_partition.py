"""The partition function: by enumeration of the smaller layer, or by annealed importance sampling."""

import math
import warnings
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from . import _rbm_kernels as kernels
from ._rbm_machine import in_pieces, seeds

MAX_BITS = 20  # of a layer that is enumerated
CONFIGURATIONS_AT_ONCE = 1 << 12
POPULATIONS = 8  # of annealed chains
FEWEST = 2.0  # populations that must carry the mean, for its error to be known


class LogPartition(NamedTuple):
    """Logarithm of a partition function."""

    value: float
    error: float  # one standard error; 0 where the value is exact, NaN where it cannot be trusted


def bits(layer):
    """Logarithm to base 2 of the number of states of a layer."""
    return math.inf if layer.gaussian else layer.n * math.log2(layer.n_states)


def enumerable(machine):
    """Whether log Z can be had exactly."""
    return min(bits(machine.visible), bits(machine.hidden)) <= MAX_BITS


def configurations(layer):
    """Features of all states of a layer, some thousands at a time."""
    total, Q = layer.n_states**layer.n, layer.n_states
    for start in range(0, total, CONFIGURATIONS_AT_ONCE):
        numbers = np.arange(start, min(start + CONFIGURATIONS_AT_ONCE, total))
        yield layer.encode(numbers[:, None] // Q ** np.arange(layer.n) % Q)


def enumerated(machine):
    """Exact log Z, by a sum over all states of the smaller layer."""
    machine = machine.astype(np.float64)
    if bits(machine.visible) <= bits(machine.hidden):
        parts = [logsumexp(-machine.free_energy(f)) for f in configurations(machine.visible)]
    else:
        parts = [
            logsumexp(z @ machine.c + machine.visible.log_norm(machine.to_visible(z)))
            for z in configurations(machine.hidden)
        ]
    return LogPartition(float(logsumexp(parts)), 0.0)


def annealed(machine, base, n_chains, n_betas, rng):
    """Estimate of log Z, by annealing independent visible units of inputs ``base`` into the machine.

    All parameters go in a straight line from those of independent units to those of the machine. The chains go in a few
    populations, each with an estimate of its own: from their scatter comes the error.
    """
    machine, base = machine.astype(np.float32), base.astype(np.float64)
    start = np.zeros(machine.hidden.width)  # inputs of the hidden units
    if machine.hidden.gaussian:  # whose mean is as large as their input: it stays where the means of the data put it
        start = machine.visible.mean(base[None])[0] @ machine.W + machine.c
    sizes = [len(part) for part in np.array_split(np.arange(n_chains), POPULATIONS)]
    logs = in_pieces(lambda n, own: _anneal(machine, base, start, n, n_betas, own), sizes, seeds(rng, POPULATIONS))
    return _mean(np.array(logs))


def _anneal(machine, base, start, n, n_betas, rng):
    """Estimate of one population, whose chains are drawn anew by their weights when few of them carry the mean."""
    visible, hidden, W, b, c = machine
    f32, extra, more = np.float32, b - base, c - start
    log_z = visible.log_norm(base[None])[0] + hidden.log_norm(start[None])[0]
    features = visible.sample(np.zeros((n, visible.width), f32), base.astype(f32), visible.draw(n, rng))
    log_w, before, after = np.zeros(n), np.empty(n), np.empty(n)
    for old, new in pairwise(np.linspace(0.0, 1.0, n_betas)):
        inputs = features @ W
        kernels.log_norms(hidden.gaussian, inputs, start + old * more, old, before)
        kernels.log_norms(hidden.gaussian, inputs, start + new * more, new, after)
        log_w += after - before + (new - old) * (features @ extra.astype(f32))
        weights = np.exp(log_w - log_w.max())
        if weights.sum() ** 2 < 0.5 * n * (weights @ weights):
            log_z += log_w.max() + np.log(weights.mean())
            inputs, log_w = inputs[_chosen(weights, rng)], np.zeros(n)
        z = hidden.sample(inputs, (start + new * more).astype(f32), hidden.draw(n, rng), f32(new))
        features = visible.sample(z @ W.T, (base + new * extra).astype(f32), visible.draw(n, rng), f32(new))
    return log_z + log_w.max() + np.log(np.exp(log_w - log_w.max()).mean())


def _chosen(weights, rng):
    """Numbers of the chains that go on, each as often as its weight says, up to rounding."""
    n = len(weights)
    steps = np.cumsum(weights)
    return np.minimum(np.searchsorted(steps, (rng.random() + np.arange(n)) * (steps[-1] / n), side="right"), n - 1)


def _mean(logs):
    """Log of the mean of the estimates, with the error that their scatter gives it."""
    n = len(logs)
    estimates = np.exp(logs - logs.max())
    value = float(logs.max() + np.log(estimates.mean()))
    effective = estimates.sum() ** 2 / (estimates @ estimates)
    if effective < FEWEST:
        warnings.warn(
            f"log Z rests on {effective:.1f} of {n} populations of annealed chains and is likely too small: its error "
            "is unknown; take more n_chains or n_betas",
            ConvergenceWarning,
            stacklevel=4,
        )
        return LogPartition(value, math.nan)
    return LogPartition(value, float(estimates.std(ddof=1) / estimates.mean() / np.sqrt(n)))
