"""Exact descent of the spherical perceptron, from face to face of its piecewise linear loss.

Hold the samples that lie on the margin there: then the loss is linear in the weights, the weights are confined to a
smaller sphere, and the best point of the face is found along one arc of it. A sample that meets its margin on the way
either passes or stays; at the best point the multipliers say which sample to let go. Every step lowers the loss.
"""

from typing import NamedTuple

import numpy as np

from .._support import parallel
from .._support.gauss import jit
from ._faces import Face, directions, held_pulls, join, land, leave, orthogonal, worst_of

BELOW, ABOVE, ON = 1, 0, 2  # where a sample is: short of its margin, beyond it, held on it
TIE = 1e-13  # distance to the margin that is rounding, relative to the largest score
REFRESH = 64  # steps after which scores and forces are computed anew: rounding must not build up
WIDENINGS = 400  # of the stretch of an arc that is looked at: eightfold each, from the smallest double to the largest


@jit
def best_bias(scores, y, c, kappa, tie):
    """Return the bias of least loss for scores (n,), and the sample it puts on its margin (-1: a range is best)."""
    kinks = scores - y * kappa  # a sample of class y passes its margin, and the slope grows by c, where b = score - yκ
    order = np.argsort(kinks)
    slope, total = 0.0, c.sum()
    for i in range(len(y)):
        if y[i] < 0:
            slope -= c[i]
    for at in range(len(order)):
        slope += c[order[at]]
        if slope >= -1e-12 * total:
            break
    if abs(slope) <= 1e-12 * total and at + 1 < len(order) and kinks[order[at + 1]] > kinks[order[at]] + tie:
        return 0.6 * kinks[order[at]] + 0.4 * kinks[order[at + 1]], -1  # the middle would invite ties
    return kinks[order[at]], order[at]


class Arc(NamedTuple):
    """What an arc of weights J + along (cos θ - 1) + across sin θ does to the scores of the samples."""

    along: np.ndarray  # (n,) scores of the part of the weights that turns
    across: np.ndarray  # (n,) scores of the direction it turns to
    first: np.ndarray  # (n,) where a sample meets its margin, as tan(θ/2): at most twice, infinity where it does not
    second: np.ndarray


@jit
def crossings(gap, along, across, y, where, tie):
    """Return the arc with the positive roots t = tan(θ/2) of gap + along (cos θ - 1) + across sin θ = 0.

    All arguments but the last, the rounding of a gap, are (n,) arrays. A sample that stands on its margin without being
    held there crosses at once where it moves to the other side.
    """
    first, second = np.full(len(gap), np.inf), np.full(len(gap), np.inf)
    for i in range(len(gap)):
        if where[i] == ON:
            continue
        # (gap - 2 along) t² + 2 across t + gap = 0
        a, b, g = gap[i] - 2.0 * along[i], across[i], gap[i]
        if abs(g) <= tie:
            if (y[i] * b > 0.0) == (where[i] == BELOW):
                first[i] = 1e-16
            if a * b < 0.0:
                second[i] = -2.0 * b / a
            continue
        disc = b * b - a * g
        if disc > 0.0:
            w = -(b + np.copysign(np.sqrt(disc), b))
            if a * w > 0.0:
                first[i] = w / a
            if g * w > 0.0:
                second[i] = g / w
    return Arc(along, across, first, second)


@jit
def first_stop(arc, pulls, where, cosine, sine, reach):
    """Return where the loss along the arc is least, as tan(θ/2), and the sample whose kink it is (-1: it is smooth).

    The loss is const + cosine cos θ + sine sin θ until a sample crosses its margin. Samples that pass change sides in
    ``where`` (n,). Crossings are sorted up to ``reach`` first, and further only where the loss still falls there.
    """
    along, across, first, second = arc
    lowest = -sine / (np.hypot(sine, cosine) - cosine)
    low, cap = 0.0, min(lowest, reach)
    for _ in range(WIDENINGS):
        near = np.flatnonzero((first > low) & (first <= cap))
        nearer = np.flatnonzero((second > low) & (second <= cap))
        at = np.concatenate((first[near], second[nearer]))
        who = np.concatenate((near, nearer))
        for i in np.argsort(at):
            t, sample = at[i], who[i]
            if lowest <= t:
                return lowest, -1
            change = -pulls[sample] if where[sample] == BELOW else pulls[sample]
            cosine -= change * along[sample]
            sine -= change * across[sample]
            where[sample] = ABOVE if where[sample] == BELOW else BELOW
            cos, sin = (1.0 - t * t) / (1.0 + t * t), 2.0 * t / (1.0 + t * t)
            if sine * cos - cosine * sin >= 0.0:
                return t, sample
            room = np.hypot(sine, cosine) - cosine
            lowest = -sine / room if sine < 0.0 and room > 0.0 else np.inf
        if lowest <= cap:
            return lowest, -1
        if cap == np.inf:
            return np.inf, -1
        low, cap = cap, min(lowest, 8.0 * cap)
    return np.inf, -1


class State(NamedTuple):
    """Where the descent stands; it changes in place."""

    J: np.ndarray  # (D,) weights
    face: Face
    where: np.ndarray  # (n,) BELOW, ABOVE or ON
    scores: np.ndarray  # (n,)
    force: np.ndarray  # (D,) pull of the samples below
    pulled: np.ndarray  # (D + 1,) pulls of the samples on the face, as they were last asked for
    numbers: np.ndarray  # entries BIAS … RADIUS
    counts: np.ndarray  # entries HELD … FRESH


# bias, summed pull of the samples below, score that is rounding, multiplier, first reach of an arc, norm of the weights
BIAS, BALANCE, ROUNDING, MULTIPLIER, REACH, RADIUS = range(6)
# samples on the face, now and when their pulls were asked for; steps; whether scores and pulls are up to date
HELD, ASKED, STEPS, FRESH = range(4)


def descend(samples, J, b, start, max_iter):
    """Minimise the loss from weights J (D,) and bias b, until no sample wants to leave the face.

    The weights first move to where the samples in ``start`` lie on their margins, as many of the first of them as the
    sphere bears.

    Returns
    -------
    J : (D,) array
    b, multiplier : float
    share : (n,) array
        What part of its weight each sample pulls with.
    held, n_iter : int
        Samples on their margins, and steps.
    """
    state = begin(samples, J, b, start)
    for _, stop in parallel.pieces(max_iter):
        if advance(samples, state, stop):
            break
    share = np.where(state.where == BELOW, 1.0, 0.0)
    held, n_iter = int(state.counts[HELD]), int(state.counts[STEPS])
    known = state.face.on[: min(held, state.counts[ASKED])]
    share[known] = state.pulled[: len(known)] / samples.pulls[known]
    return state.J, state.numbers[BIAS], state.numbers[MULTIPLIER], share, held, n_iter


@jit
def begin(samples, J, b, start):
    """Return the state at a point of the sphere near J (D,), with samples of ``start`` on their margins."""
    n, D = samples.X.shape
    radius = np.sqrt(J @ J)
    face, m = Face(np.zeros(D + 1, np.int64), np.zeros((D, D)), np.zeros((D, D))), 0
    for sample in start:
        if m < D and join(samples.X, face, m, sample):
            m += 1
    landed = False
    while m > 1 and not landed:
        J, landed = land(samples, face, m, J, radius)
        if not landed:
            m //= 2
    if landed:
        lead = face.on[0]
        b = samples.X[lead] @ J - samples.y[lead] * samples.kappa[lead]
    else:
        m = 0
    numbers, counts = np.array([b, 0.0, 0.0, 0.0, 1e-2, radius]), np.array([m, m, 0, 0])
    return State(J.copy(), face, np.zeros(n, np.int8), np.empty(n), np.zeros(D), np.zeros(D + 1), numbers, counts)


@jit
def advance(samples, state, max_iter):
    """Descend until no sample wants to leave the face, or that many steps are made in all; True where it is done."""
    X, D = samples.X, samples.X.shape[1]
    numbers, counts = state.numbers, state.counts
    norm = np.sqrt(samples.pulls @ samples.pulls)
    while counts[STEPS] < max_iter:
        counts[STEPS] += 1
        if not counts[FRESH] or counts[STEPS] % REFRESH == 0:
            refresh(samples, state)
        m = counts[HELD]
        anchor = X[state.face.on[0]] if m > 0 else np.zeros(D)
        pull = state.force - numbers[BALANCE] * anchor
        way = directions(state.J, pull, state.face.basis, max(m - 1, 0))
        _, size, numbers[MULTIPLIER], _, strength = way
        if m < D and size > 1e-9 * numbers[RADIUS] and strength > 1e-11 * norm:
            passed = follow(samples, state, way, anchor)
            m = counts[HELD]
            # the pull has changed, or a bias that no sample holds: look again for the best point of the face
            if passed or (m == 0 and abs(numbers[BALANCE]) > 1e-12 * norm):
                counts[FRESH] = m > 0
                continue
            pull = state.force - numbers[BALANCE] * anchor
            free, _ = orthogonal(state.J, state.face.basis, max(m - 1, 0))
            numbers[MULTIPLIER] = (pull @ free) / (free @ free)
        if m == 0 or not release(samples, state, pull):
            return True
    return False


@jit
def refresh(samples, state):
    """Compute the scores and the pull of the samples below anew, and the best bias where no sample holds it."""
    X, y, pulls, kappa = samples
    face, where, numbers, counts = state.face, state.where, state.numbers, state.counts
    scores = X @ state.J
    state.scores[:] = scores
    numbers[ROUNDING] = TIE * (np.abs(scores).max() + kappa[0])
    if counts[HELD] == 0:
        numbers[BIAS], sample = best_bias(scores, y, y * pulls, kappa, numbers[ROUNDING])
        counts[HELD] = 1 if sample >= 0 and join(X, face, 0, sample) else 0
        counts[FRESH] = 0
    if not counts[FRESH]:
        where[:] = np.where(y * (scores - numbers[BIAS]) < kappa, BELOW, ABOVE)
        where[face.on[: counts[HELD]]] = ON
    below_pulls = np.where(where == BELOW, pulls, 0.0)
    state.force[:] = below_pulls @ X
    numbers[BALANCE], counts[FRESH] = below_pulls.sum(), 1


@jit
def follow(samples, state, way, anchor):
    """Turn the weights to the best point of an arc, and hold the sample whose kink it is; True where samples passed."""
    X, y, pulls, kappa = samples
    J, face, where, scores = state.J, state.face, state.where, state.scores
    numbers, m = state.numbers, state.counts[HELD]
    free, size, multiplier, turn, strength = way
    along, across = X @ free - anchor @ free, X @ turn - anchor @ turn
    arc = crossings(scores - numbers[BIAS] - y * kappa, along, across, y, where, numbers[ROUNDING])
    before = where.copy()
    t, sample = first_stop(arc, pulls, where, -multiplier * size * size, -strength * size, numbers[REACH])
    numbers[REACH] = 4.0 * t if t < 1e6 else 1e-2
    cos, sin = (2.0 / (1.0 + t * t) - 1.0, 2.0 * t / (1.0 + t * t)) if t < np.inf else (-1.0, 0.0)
    # free may be J itself: it is read for the last time here
    scores += (cos - 1.0) * (along + anchor @ free) + sin * (across + anchor @ turn)
    J[:] = J + (cos - 1.0) * free + sin * turn
    if m == 0:
        J *= numbers[RADIUS] / np.sqrt(J @ J)
    else:
        numbers[BIAS] = anchor @ J - y[face.on[0]] * kappa[face.on[0]]
    passed = np.flatnonzero(where != before)
    for i in passed:
        add_pull(samples, state, i, 1.0 if where[i] == BELOW else -1.0)
    if sample >= 0 and join(X, face, m, sample):
        state.counts[HELD] += 1
        if where[sample] == BELOW:
            add_pull(samples, state, sample, -1.0)
        where[sample] = ON
    return len(passed) > 0


@jit
def release(samples, state, pull):
    """Let the sample go whose multiplier is furthest outside [0, 1]; False where there is none."""
    face, m = state.face, state.counts[HELD]
    pulled = held_pulls(state.J, pull, state.numbers[BALANCE], state.numbers[MULTIPLIER], face, m)
    state.counts[ASKED] = m
    state.pulled[:m] = pulled
    worst, below = worst_of(pulled, samples.pulls, face.on)
    if worst < 0:
        return False
    sample = face.on[worst]
    leave(face, m, worst)
    state.counts[HELD] = m - 1
    state.counts[FRESH] = m > 1
    state.where[sample] = BELOW if below else ABOVE
    if below:
        add_pull(samples, state, sample, 1.0)
    return True


@jit
def add_pull(samples, state, sample, sign):
    """Add the pull of a sample to that of the samples below, or take it off."""
    force, pull = state.force, sign * samples.pulls[sample]
    force += pull * samples.X[sample]
    state.numbers[BALANCE] += pull
