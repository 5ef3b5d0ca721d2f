"""The partition function: by enumeration of the smaller layer, or by annealing in both directions.

*Forward*, independent units are annealed into the machine; the mean of e^{w}, with w the log weight that a path picks
up, is Z over that of independent units. *In reverse*, states of the machine are annealed into independent units, and
the mean of e^{w} is the inverse ratio. The first includes only the modes that annealing reaches, the second only those
of the states, so that mass missing from one of them shows as a disagreement. Bennett's acceptance ratio combines the
two.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logsumexp
from scipy.stats import t

from . import _unit_kernels as kernels
from ._machine import go_on, in_pieces, seeds

MAX_BITS = 20  # of a layer that is enumerated
CONFIGURATIONS_AT_ONCE = 1 << 12
PIECES = 4  # of work, whatever the number of threads
ROUNDS = 4  # of both directions, at each effort
FEWEST = 40.0  # paths that either direction could have made, for the error to be known
# Expected number of paths forward that take the place of a state: with 3 the probability of none is 5 %.
LEAST_ARRIVALS = 3.0
SHIFTS = (2.0, 6.0)  # log Z by bridges so far from the best one, to either side, must agree
TOLERANCE = 3.0  # standard errors
LOST = 0.02  # share of states with less than one arrival, after one round, above which an effort is given up


class LogPartition(NamedTuple):
    """Logarithm of a partition function.

    ``value ± 1.96 error`` is an interval of 95 %. The error is 0 where the value is exact. Where ``reliable`` is False
    the directions of annealing disagree, hardly meet, or do not find the same states: the error then is about how far
    off the value may be, no interval.
    """

    value: float
    error: float
    reliable: bool = True


def bits(layer):
    """Return the logarithm to base 2 of the number of states of a layer."""
    return math.inf if layer.gaussian else layer.n * math.log2(layer.n_states)


def enumerable(machine):
    """Tell whether log Z can be summed up exactly."""
    return min(bits(machine.visible), bits(machine.hidden)) <= MAX_BITS


def configurations(layer):
    """Yield the features (n, width) of all states of a layer, some thousands at a time."""
    total, Q = layer.n_states**layer.n, layer.n_states
    for start in range(0, total, CONFIGURATIONS_AT_ONCE):
        numbers = np.arange(start, min(start + CONFIGURATIONS_AT_ONCE, total))
        yield layer.encode(numbers[:, None] // Q ** np.arange(layer.n) % Q)


def enumerated(machine):
    """Compute log Z exactly, by a sum over all states of the smaller layer."""
    machine = machine.astype(np.float64)
    if bits(machine.visible) <= bits(machine.hidden):
        parts = [logsumexp(-machine.free_energy(f)) for f in configurations(machine.visible)]
    else:
        parts = [
            logsumexp(z @ machine.c + machine.visible.log_norm(machine.to_visible(z)))
            for z in configurations(machine.hidden)
        ]
    return LogPartition(float(logsumexp(parts)), 0.0)


class Path(NamedTuple):
    """A straight line from independent units to a machine, in the space of all parameters."""

    machine: object  # in single precision
    base: np.ndarray  # (D,) inputs of independent visible units
    start: np.ndarray  # (M,) inputs of independent hidden units

    def log_z(self):
        """Return log Z where the line begins."""
        return self.machine.visible.log_norm(self.base[None])[0] + self.machine.hidden.log_norm(self.start[None])[0]

    def first(self, n, rng):
        """Draw the visible features (n, D) of independent units."""
        visible = self.machine.visible
        return visible.sample(np.zeros((n, visible.width), np.float32), _single(self.base), visible.draw(n, rng))

    def follow(self, features, betas, rng):
        """Move features (n, D) along inverse temperatures; return them and the log weights (n,) of their paths."""
        visible, hidden, W, b, c = self.machine
        n, extra, more = len(features), b - self.base, c - self.start
        log_w = np.zeros(n)
        for old, new in pairwise(betas):
            go_on()
            inputs, bias = features @ W, self.start + new * more
            before = kernels.log_norms(hidden.gaussian, inputs, self.start + old * more, old)
            after = kernels.log_norms(hidden.gaussian, inputs, bias, new)
            log_w += after - before + (new - old) * (features @ _single(extra))
            z = hidden.sample(inputs, _single(bias), hidden.draw(n, rng), np.float32(new))
            bias = _single(self.base + new * extra)
            features = visible.sample(z @ W.T, bias, visible.draw(n, rng), np.float32(new))
        return features, log_w


def _single(array):
    return array.astype(np.float32)


def path_to(machine, base):
    """Return the line from independent visible units of inputs ``base`` (D,) to a machine."""
    machine, base = machine.astype(np.float32), base.astype(np.float64)
    start = np.zeros(machine.hidden.width)
    if machine.hidden.gaussian:  # whose mean is as large as their input: it stays where the means of the data put it
        start = machine.visible.mean(base[None])[0] @ machine.W + machine.c
    return Path(machine, base, start)


def annealed(machine, base, starts, n_chains, n_betas, max_betas, rng):
    """Estimate log Z by annealing from independent visible units of inputs ``base`` (D,) to the machine and back.

    Chains on the side of the machine begin at the states ``starts`` (k, L), one after the other and again from the
    first, and make ``n_betas`` Gibbs steps. Inverse temperatures are doubled until the estimate is reliable or there
    would be more than ``max_betas``.
    """
    path, visible = path_to(machine, base), machine.visible
    generators, group = seeds(rng, PIECES), np.arange(n_chains) % len(starts)
    pieces = [visible.encode(starts[some], np.float32) for some in np.array_split(group, PIECES)]
    pieces = in_pieces(lambda features, own: path.machine.gibbs(features, n_betas, own), pieces, generators)

    def run(rounds):
        nonlocal pieces
        runs = in_pieces(lambda f, own: both_directions(path, f, n_betas, own, rounds), pieces, generators)
        pieces = [features for features, _, _ in runs]
        return tuple(np.concatenate([run[k] for run in runs], axis=1) for k in (1, 2))

    while True:
        forward, reverse = run(1)
        if np.mean(ROUNDS * arrivals(forward, reverse) < 1.0) <= LOST:  # else more rounds would not help
            forward, reverse = map(np.concatenate, zip((forward, reverse), run(ROUNDS - 1), strict=True))
        estimate = bridged(forward, reverse, group)
        if estimate.reliable or 2 * n_betas > max_betas:
            return estimate._replace(value=estimate.value + float(path.log_z()))
        n_betas *= 2


def both_directions(path, features, n_betas, rng, rounds=ROUNDS):
    """Anneal in both directions, and move the states on the side of the machine.

    After a round the end of a path forward takes the place of a state, with the probability that leaves the machine's
    distribution unchanged (tempered transitions; Neal 1996). So states reach modes other than those they started in.

    Returns
    -------
    features : (n, width) array
    forward, reverse : (rounds, n) arrays
        Log weights.
    """
    betas, n = np.linspace(0.0, 1.0, n_betas), len(features)
    forward, reverse = np.empty((rounds, n)), np.empty((rounds, n))
    for k in range(rounds):
        _, reverse[k] = path.follow(features, betas[::-1], rng)
        new, forward[k] = path.follow(path.first(n, rng), betas, rng)
        taken = np.log(rng.random(n)) < forward[k] + reverse[k]
        features = path.machine.gibbs(np.where(taken[:, None], new, features), 1, rng)
    return features, forward, reverse


def bridged(forward, reverse, group):
    """Estimate the log of the ratio of two partition functions from the log weights of paths in both directions.

    Parameters
    ----------
    forward, reverse : (rounds, n) arrays
        Log weights. Columns are chains.
    group : (n,) array of int
        Chains of one number have begun at one state, and do not count as independent.

    Returns
    -------
    LogPartition
    """
    if not (np.isfinite(forward).all() and np.isfinite(reverse).all()):
        return LogPartition(math.nan, math.nan, False)
    value = bennett(forward, reverse)
    forward_share, reverse_share = expit(forward - value), expit(reverse + value)
    meeting = np.sum(forward_share * (1.0 - forward_share)) + np.sum(reverse_share * (1.0 - reverse_share))
    groups = len(np.unique(group))
    wide = t.ppf(0.975, groups - 1) / 1.96  # so that an interval of few groups is as wide as it must be
    others = [_others(forward, reverse, value, shift, group) for shift in SHIFTS]
    agree = all(abs(gap) <= TOLERANCE * gap_error for gap, gap_error, _ in others)
    fewest = arrivals(forward, reverse).min()
    # If states like the one with the fewest arrivals weighed as much as all others, that many paths would have arrived.
    # Possibly none did, which bounds their weight by the inverse: a standard deviation for a count of zero.
    unseen = np.log1p(1.0 / max(fewest, 1e-300))
    shares = max(off for _, _, off in others)  # error of the states' shares of modes, perhaps those of the start
    error = np.linalg.norm([wide * _scatter(forward_share - reverse_share, group) / meeting, shares, unseen])
    if agree and fewest >= LEAST_ARRIVALS and meeting >= FEWEST and math.isfinite(error):
        return LogPartition(value, float(error))
    return LogPartition(value, float(np.fmax(error, max(abs(gap) for gap, _, _ in others))), False)


def bennett(forward, reverse):
    """Return the log ratio at which as many paths of either direction could be of the other one (Bennett 1976)."""
    ends = np.concatenate([forward.ravel(), -reverse.ravel()])
    return float(
        brentq(lambda x: expit(forward - x).sum() - expit(reverse + x).sum(), ends.min() - 1.0, ends.max() + 1.0)
    )


def _scatter(terms, group):
    """Return the standard error of a sum of terms (rounds, n) of mean zero, where groups of chains are independent."""
    sums = np.bincount(group, terms.sum(axis=0))
    return np.sqrt(np.sum(sums**2))


def _others(forward, reverse, value, shift, group):
    """Compare two estimates by bridges on either side of the best one, which rest more on paths forward or in reverse.

    Returns
    -------
    gap, gap_error : float
        Their difference, and its standard error.
    off : float
        How far from the best one the farther is.
    """
    estimates, terms = [], []
    for bridge in (value + shift, value - shift):
        forward_share, reverse_share = expit(forward - bridge), expit(reverse + bridge)
        estimates.append(bridge + np.log(forward_share.sum()) - np.log(reverse_share.sum()))
        terms.append(forward_share / forward_share.sum() - reverse_share / reverse_share.sum())
    off = max(abs(estimate - value) for estimate in estimates)
    return estimates[0] - estimates[1], _scatter(terms[0] - terms[1], group), off


def arrivals(forward, reverse):
    """Count how many of all paths forward could take the place of a state of each chain (n,), as a mean over rounds."""
    paths = forward.ravel()
    return np.mean([[np.exp(np.minimum(paths + w, 0.0)).sum() for w in row] for row in reverse], axis=0)
