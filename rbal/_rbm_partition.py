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
CHAINS_AT_ONCE = 50
FEWEST = 2.0  # chains that must carry the mean, for its error to be known


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

    All parameters go in a straight line from those of independent units to those of the machine. The hidden units
    start with the inputs that they have at the mean of the visible ones, which keeps both layers near their means.
    """
    visible, hidden = machine.visible, machine.hidden
    base = base.astype(np.float64)
    machine = machine.astype(np.float32)
    start = visible.mean(base[None])[0] @ machine.W + machine.c
    sizes = [min(CHAINS_AT_ONCE, n_chains - i) for i in range(0, n_chains, CHAINS_AT_ONCE)]
    ways = in_pieces(lambda n, own: _anneal(machine, base, start, n, n_betas, own), sizes, seeds(rng, len(sizes)))
    log_z0 = visible.log_norm(base[None])[0] + hidden.log_norm(start[None])[0]
    return _mean(log_z0 + np.concatenate(ways))


def _anneal(machine, base, start, n, n_betas, rng):
    """Log weights of n chains."""
    visible, hidden, W = machine.visible, machine.hidden, machine.W
    b, c, f32 = machine.b.astype(np.float64), machine.c.astype(np.float64), np.float32
    extra = (b - base).astype(f32)
    features = visible.sample(np.zeros((n, visible.width), f32), base.astype(f32), visible.draw(n, rng))
    log_w, before, after = np.zeros(n), np.empty(n), np.empty(n)
    for old, new in pairwise(np.linspace(0.0, 1.0, n_betas)):
        inputs = features @ W
        c_old, c_new = (start + beta * (c - start) for beta in (old, new))
        kernels.log_norms(hidden.gaussian, inputs, c_old, old, before)
        kernels.log_norms(hidden.gaussian, inputs, c_new, new, after)
        log_w += after - before + (new - old) * (features @ extra)
        z = hidden.sample(inputs, c_new.astype(f32), hidden.draw(n, rng), f32(new))
        features = visible.sample(z @ W.T, (base + new * (b - base)).astype(f32), visible.draw(n, rng), f32(new))
    return log_w


def _mean(log_w):
    """Log of the mean of the weights, with the error that their scatter gives it."""
    n = len(log_w)
    weights = np.exp(log_w - log_w.max())
    value = float(log_w.max() + np.log(weights.mean()))
    effective = weights.sum() ** 2 / (weights @ weights)
    if effective < FEWEST:
        warnings.warn(
            f"log Z rests on {effective:.1f} of {n} annealed chains and is likely too small: its error is unknown; "
            "take more n_betas",
            ConvergenceWarning,
            stacklevel=4,
        )
        return LogPartition(value, math.nan)
    return LogPartition(value, float(weights.std(ddof=1) / weights.mean() / np.sqrt(n)))
