"""Persistent contrastive divergence, an epoch at a time."""

import copy
from dataclasses import dataclass

import numpy as np

from ._epoch import Batches, ByState, Pace, Parameters, half, halves, judge, train
from ._machine import Machine, in_pieces

PSEUDOCOUNT = 0.5  # of each state at each site
SPREAD = 0.1  # √L times the standard deviation of the first weights
MONITORED = 500  # samples that an epoch is judged by
SITES = 4  # of each of them
LARGEST = 87.0  # weight: one unit of such a weight decides another beyond the range of single precision
WORSE = 2.0  # times the pseudo-likelihood of guesses, all states alike, is that of no training that goes well


@dataclass
class Training:
    """All that the next epoch depends on, for D visible features and M hidden units."""

    machine: Machine
    base: np.ndarray  # (D,) inputs of independent visible units with the means of the data
    mean: np.ndarray  # (D,) of the visible features, in the data
    hidden_mean: np.ndarray  # (M,) of the hidden units, given data
    visible_chains: np.ndarray  # (n_chains, D)
    hidden_chains: np.ndarray  # (n_chains, M)
    rng: np.random.Generator
    history: tuple = ()  # a dict for each epoch


def start(states, visible, hidden, n_chains, rng):
    """Begin a training on states (n, L).

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


def epoch(training, states, batch_size, n_gibbs, rate, l2):
    """Return the training after one more epoch over states (n, L); the one given is not changed."""
    t = copy.deepcopy(training)
    p, pace = _parameters(t), Pace(n_gibbs, np.float32(rate), float(l2))
    n = len(states)
    n_batches = max(1, round(n / batch_size))
    edges = np.arange(n_batches + 1) * n // n_batches
    parts, shared = halves(p, -(-n // n_batches), t.rng)
    train(p, parts, shared, Batches(states, t.rng.permutation(n), edges), pace)
    t.visible_chains = np.concatenate([part.v for part in parts], axis=1)
    finite = all(np.isfinite(parameters).all() for parameters in (p.W, p.b, p.c))
    if not (finite and np.abs(p.W).max() < LARGEST):
        raise _diverged(t, pace, "weights have no bound")
    judged = monitor(t, states)
    guessed = -t.machine.visible.n * np.log(t.machine.visible.n_states)
    if not judged["pseudo_likelihood"] > WORSE * guessed:
        symptom = f"the pseudo-likelihood is {judged['pseudo_likelihood']:.3g}, that of guesses {guessed:.3g}"
        raise _diverged(t, pace, symptom)
    t.history += (judged,)
    return t


def _diverged(t, pace, symptom):
    """Return the error for a training that diverges."""
    _, rate, l2 = pace
    change = f"a learning_rate smaller than {rate:g}"
    if rate * l2 >= 1.0 and l2 > rate:  # each step then turns the weights round, and makes them larger
        change = f"a smaller l2 or learning_rate, whose product must be below 1, got {l2:g} and {rate:g}"
    return FloatingPointError(f"training diverged in epoch {len(t.history) + 1}, {symptom}: take {change}")


def monitored(states):
    """Return the samples that an epoch is judged by, at equal distances in states (n, L)."""
    return states[np.linspace(0, len(states) - 1, min(len(states), MONITORED)).astype(int)]


def monitor(t, states):
    """Measure the pseudo-likelihood of a sample, and how often a reconstruction gets a site wrong.

    Both are means over some hundred samples; the first takes a few sites of each, drawn at random.
    """
    visible, hidden, W, b, c = t.machine
    some = monitored(states)
    sites = np.random.default_rng(len(t.history)).integers(0, visible.n, (len(some), SITES))
    by_state = ByState(hidden.gaussian, *(np.ascontiguousarray(visible.by_state(q)) for q in (W, b)), c)
    logs = np.empty(sites.shape)

    def work(h):
        rows = slice(*half(h, len(some)))
        return judge(t.machine, by_state, some[rows], sites[rows], logs[rows])

    wrong = sum(in_pieces(work, range(2)))
    return {"pseudo_likelihood": float(visible.n * logs.mean()), "reconstruction_error": float(wrong / some.size)}


def _parameters(t):
    visible, hidden, *arrays = t.machine
    return Parameters(visible.n_states, hidden.gaussian, *arrays, t.mean, t.hidden_mean, t.hidden_chains)
