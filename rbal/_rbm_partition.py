"""The partition function: by enumeration of the smaller layer, or by annealed importance sampling."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from ._rbm_layers import Bernoulli

MAX_BITS = 20  # of a layer that is enumerated
BLOCK = 1 << 12


class LogPartition(NamedTuple):
    """Logarithm of a partition function."""

    value: float
    error: float  # one standard error; 0 where the value is exact


def bits(layer):
    """Logarithm to base 2 of the number of states of a layer."""
    n_states = getattr(layer, "n_states", None)
    return math.inf if n_states is None else layer.n * math.log2(n_states)


def configurations(layer):
    """Features of all states of a layer, in blocks."""
    total = layer.n_states**layer.n
    for start in range(0, total, BLOCK):
        number = np.arange(start, min(start + BLOCK, total))
        yield layer.encode(number[:, None] // layer.n_states ** np.arange(layer.n) % layer.n_states)


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
    """Estimate of log Z by annealing independent visible units, of inputs ``base``, into the machine."""
    visible, hidden = machine.visible, machine.hidden
    inputs = np.broadcast_to(base, (n_chains, len(base)))
    features = visible.sample(np.ascontiguousarray(inputs, np.float32), rng)
    mean = visible.mean(base[None].astype(np.float64))
    c0 = (mean @ machine.W + machine.c)[0].astype(np.float32)
    log_w = np.zeros(n_chains)

    def log_weight(beta, features, drive):
        field = (1.0 - beta) * base + beta * machine.b
        return features @ field.astype(np.float64) + hidden.log_norm(
            ((1.0 - beta) * c0 + beta * machine.c + beta * drive).astype(np.float64)
        )

    betas = np.linspace(0.0, 1.0, n_betas)
    for old, new in zip(betas[:-1], betas[1:], strict=True):
        drive = features @ machine.W
        log_w += log_weight(new, features, drive) - log_weight(old, features, drive)
        z = hidden.sample(((1.0 - new) * c0 + new * (machine.c + drive)).astype(np.float32), rng)
        features = visible.sample(((1.0 - new) * base + new * (machine.b + z @ machine.W.T)).astype(np.float32), rng)
    start = float(visible.log_norm(base[None].astype(float))[0] + hidden.log_norm(c0[None].astype(float))[0])
    weights = np.exp(log_w - log_w.max())
    value = start + float(log_w.max() + np.log(weights.mean()))
    return LogPartition(value, float(weights.std(ddof=1) / weights.mean() / np.sqrt(n_chains)))


def enumerable(machine):
    """Whether log Z can be had exactly."""
    return min(bits(machine.visible), bits(machine.hidden)) <= MAX_BITS


__all__ = ["Bernoulli", "LogPartition", "annealed", "bits", "configurations", "enumerable", "enumerated"]
