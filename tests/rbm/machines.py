"""Machines that are small enough to be summed over by brute force, for the tests of this folder."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from rbal.rbm import RBM
from rbal.rbm._machine import Bernoulli, Gaussian, Machine, Potts

KINDS = {
    "binary-bernoulli": (Bernoulli(5), Bernoulli(4)),
    "binary-gaussian": (Bernoulli(5), Gaussian(3)),
    "potts-bernoulli": (Potts(4, 3), Bernoulli(3)),
    "potts-gaussian": (Potts(3, 4), Gaussian(2)),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def machine_of(kind, seed=0, scale=0.7):
    """A machine with couplings of order one."""
    visible, hidden = KINDS[kind]
    rng = np.random.default_rng(seed)
    shapes = (visible.width, hidden.width), visible.width, hidden.width
    return Machine(visible, hidden, *(rng.normal(scale=scale, size=shape).astype(np.float32) for shape in shapes))


def all_states(layer):
    return np.array(list(itertools.product(range(layer.n_states), repeat=layer.n)), np.int8)


def by_hand(machine, v):
    """Log of the weight of visible states v, summed over hidden states one by one or integrated on a grid."""
    features = np.concatenate([np.ravel(row) for row in machine.visible.encode(v[None])])
    hidden_inputs = features @ machine.W.astype(float) + machine.c
    if machine.hidden.gaussian:
        z = np.linspace(-30.0, 30.0, 6001)
        weights = np.exp(hidden_inputs[:, None] * z - 0.5 * z**2) / np.sqrt(2 * np.pi)
        return features @ machine.b + np.log(weights.sum(axis=1) * (z[1] - z[0])).sum()
    terms = [hidden_inputs @ z for z in itertools.product((0, 1), repeat=machine.hidden.n)]
    return features @ machine.b + logsumexp(terms)


def probabilities(machine):
    """Exact p(v) of all visible states."""
    v = all_states(machine.visible)
    return v, softmax([by_hand(machine, row) for row in v])


def fitted(machine, **params):
    """An estimator that holds this machine."""
    visible, hidden = machine.visible, machine.hidden
    name = "gaussian" if hidden.gaussian else "bernoulli"
    rbm = RBM(hidden.n, n_states=visible.n_states, hidden=name, n_epochs=1, random_state=0, progress=False, **params)
    rbm.fit(np.random.default_rng(0).integers(0, visible.n_states, (30, visible.n)))
    for mine, theirs in zip(rbm._training.machine[2:], machine[2:], strict=True):
        mine[...] = theirs
    rbm._log_partition = None
    return rbm


def index_of(v, Q):
    return v @ Q ** np.arange(v.shape[1])[::-1]


def digits(n=200, L=6, Q=2, seed=0):
    return np.random.default_rng(seed).integers(0, Q, (n, L))
