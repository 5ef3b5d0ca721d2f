"""Exact descent of the spherical perceptron, from face to face of its piecewise linear loss.

Hold the samples that lie on the margin there: then the loss is linear in the weights, the weights are confined to a
smaller sphere, and the best point of the face is found along one arc of it. A sample that meets its margin on the way
either passes or stays; at the best point the multipliers say which sample to let go. Every step lowers the loss.

Few samples come near their margins. The others stay on their sides in the first place, and what they add to the pull is
a constant; where one of them has moved to the other side after all, the descent goes on with more samples.
"""

from typing import NamedTuple

import numpy as np

from ._arcs import (
    ABOVE,
    ACROSS,
    ALONG,
    BEFORE,
    BELOW,
    FORCE,
    FREE,
    ON,
    PARTS,
    PULL,
    PULLED,
    PULLS,
    SCORE,
    TURN,
    WEIGHTS,
    WHERE,
    crossings,
    directions,
    first_stop,
    spread,
)
from ._faces import (
    Samples,
    add,
    dot,
    empty_face,
    free_part,
    held_pulls,
    hold,
    jit,
    join,
    land,
    leave,
    length,
    scale,
    worst_of,
)

TIE = 1e-13  # distance to the margin that is rounding, relative to the largest score
REFRESH = 64  # steps after which scores and forces are computed anew: rounding must not build up
NEAR = 4  # samples that are followed in the first place, for each weight
DONE, STALE, MORE = range(3)  # why the compiled part stops: at the minimum, for fresh numbers, for its number of steps
# bias, summed pull of the samples below, score that is rounding, multiplier, first reach of an arc, norm of the weights
# and of the pulls of all samples
BIAS, BALANCE, ROUNDING, MULTIPLIER, REACH, RADIUS, NORM = range(7)
HELD, ASKED, STEPS = range(3)  # samples on the face, now and when their pulls were asked for; steps


class State(NamedTuple):
    """The samples that are followed, and where the descent stands, which changes in place."""

    X: np.ndarray  # (n, D)
    known: np.ndarray  # (3, n) label, pull and margin of each sample
    table: np.ndarray  # (7, n) what changes of them
    heap: np.ndarray  # (2, 2n)
    on: np.ndarray  # (D + 1,) the face
    basis: np.ndarray  # (D, D)
    R: np.ndarray  # (D, D)
    vectors: np.ndarray  # (7, D)
    numbers: np.ndarray  # (7,) entries BIAS … NORM
    counts: np.ndarray  # (3,) entries HELD … STEPS


def best_bias(scores, y, c, kappa, tie):
    """Return the bias of least loss for scores (n,), and the sample it puts on its margin (-1: a range is best)."""
    kinks = scores - y * kappa  # a sample of class y passes its margin, and the slope grows by c, where b = score - yκ
    order = np.argsort(kinks)
    slope, rounding = np.cumsum(c[order]) - c[y < 0].sum(), 1e-12 * c.sum()
    at = int(np.argmax(slope >= -rounding))
    here = kinks[order[at]]
    if abs(slope[at]) <= rounding and at + 1 < len(order) and kinks[order[at + 1]] > here + tie:
        return 0.6 * here + 0.4 * kinks[order[at + 1]], -1  # the middle would invite ties
    return here, int(order[at])


def gaps(samples, J, b):
    """Return by how much each sample (n,) is beyond its margin."""
    return samples.y * (samples.X @ J - b) - samples.kappa


def descend(samples, J, b, start, max_iter, near_each=NEAR):
    """Minimise the loss from weights J (D,) and bias b, until no sample wants to leave the face.

    The weights first move to where the samples in ``start`` lie on their margins, as many of the first of them as the
    sphere bears. The samples that are followed at first are ``near_each`` for each weight.

    Returns
    -------
    J : (D,) array
    b, multiplier : float
    share : (n,) array
        What part of its weight each sample pulls with.
    held, n_iter : int
        Samples on their margins, and steps.
    """
    n, D = samples.X.shape
    face, vectors, numbers, counts = begin(samples, J, b, start)
    few = near_each * D
    while True:
        gap, on = gaps(samples, vectors[WEIGHTS], numbers[BIAS]), face.on[: counts[HELD]]
        rows = near(gap, on, few)
        share = (gap < 0.0).astype(float)
        share[rows] = 0.0  # of those that are not followed
        on[:] = np.searchsorted(rows, on)
        some = samples if len(rows) == n else Samples(*(part[rows] for part in samples))
        state = State(
            some.X, np.stack(some[1:]), np.zeros((7, len(rows))), np.empty((2, 2 * len(rows))), *face, vectors, numbers,
            counts,
        )  # fmt: skip
        others = share * samples.pulls
        outer = None if len(rows) == n else np.append(others @ samples.X, others.sum())
        outcome = run(state, outer, max_iter)
        moved = (gaps(samples, vectors[WEIGHTS], numbers[BIAS]) < 0.0) != (share > 0.0)
        moved[rows] = False
        share[rows] = shares(state)
        on = face.on[: counts[HELD]]
        on[:] = rows[on]
        if outer is None or outcome == MORE or (outcome == DONE and not moved.any()):
            J, b, multiplier = vectors[WEIGHTS], numbers[BIAS], numbers[MULTIPLIER]
            return J, b, multiplier, share, int(counts[HELD]), int(counts[STEPS])
        few = 4 * few if outcome == DONE else n


def near(gap, on, few):
    """Return the few samples that are nearest to their margins by the gaps (n,), and those on the face, in order.

    Where no sample holds the bias, all of them decide on it.
    """
    if few >= len(gap) or len(on) == 0:
        return np.arange(len(gap))
    chosen = np.zeros(len(gap), bool)
    chosen[np.argpartition(np.abs(gap), few)[:few]] = chosen[on] = True
    return np.flatnonzero(chosen)


def begin(samples, J, b, start):
    """Return face, vectors, numbers and counts at a point near J (D,), with samples of ``start`` on their margins."""
    D, radius = len(J), length(J)
    face, vectors = empty_face(D), np.zeros((7, D))
    m, landed = hold(samples.X, face, start), None
    while m > 1 and landed is None:
        landed = land(samples, face, m, J, radius)
        m = m // 2 if landed is None else m
    if landed is not None:
        lead = face.on[0]
        J, b = landed, samples.X[lead] @ landed - samples.y[lead] * samples.kappa[lead]
    vectors[WEIGHTS] = J
    numbers = np.array([b, 0.0, 0.0, 0.0, 1e-2, radius, length(samples.pulls)])
    return face, vectors, numbers, np.array([0 if landed is None else m, 0, 0])


def run(state, outer, max_iter):
    """Descend until the minimum or for that many steps in all, and return why it stops.

    ``outer`` (D + 1,) is what samples that are not followed add to the pull, and to its sum; None where there are none.
    Where there are, it stops too when no sample is left to hold the bias.
    """
    counts = state.counts
    refresh(state, outer, True)
    while counts[STEPS] < max_iter:  # a few steps to a call, so that Ctrl-C is heard
        outcome = advance(state, min(max_iter, int(counts[STEPS]) + REFRESH))
        if outcome == DONE or (outcome == STALE and outer is not None):
            return outcome
        refresh(state, outer, outcome == STALE)
    return MORE


def refresh(state, outer, sides):
    """Compute the scores and the pull of the samples below anew, and on request on which sides samples are.

    Where no sample holds the bias, it becomes the best one.
    """
    X, (y, pulls, kappa), on = state.X, state.known, state.on
    vectors, numbers, counts = state.vectors, state.numbers, state.counts
    J, where, scores = vectors[WEIGHTS], state.table[WHERE], state.table[SCORE]
    scores[:] = X @ J
    numbers[ROUNDING] = TIE * (np.abs(scores).max() + kappa[0])
    if counts[HELD] > 0:
        numbers[BIAS] = scores[on[0]] - y[on[0]] * kappa[on[0]]
    else:
        numbers[BIAS], sample = best_bias(scores, y, y * pulls, kappa, numbers[ROUNDING])
        if sample >= 0:
            on[0], counts[HELD] = sample, 1
    if sides:
        where[:] = np.where(y * (scores - numbers[BIAS]) < kappa, BELOW, ABOVE)
        where[on[: counts[HELD]]] = ON
    below = np.where(where == BELOW, pulls, 0.0)
    vectors[FORCE], numbers[BALANCE] = below @ X, below.sum()
    if outer is not None:
        vectors[FORCE] += outer[:-1]
        numbers[BALANCE] += outer[-1]
    vectors[FREE] = free_part(J, state.basis[: max(counts[HELD] - 1, 0)])


def shares(state):
    """Return what part of its weight each of the samples that are followed pulls with."""
    share = np.where(state.table[WHERE] == BELOW, 1.0, 0.0)
    known = state.on[: min(state.counts[HELD], state.counts[ASKED])]
    share[known] = state.vectors[PULLED, : len(known)] / state.known[PULLS, known]
    return share


@jit
def advance(state, stop):
    """Make steps until no sample wants to leave the face (DONE), or no sample holds the bias (STALE), or ``stop``."""
    counts, numbers, vectors = state.counts, state.numbers, state.vectors
    pull, free, norm = vectors[PULL], vectors[FREE], numbers[NORM]
    while counts[STEPS] < stop:
        counts[STEPS] += 1
        for j in range(pull.shape[0]):
            pull[j] = vectors[FORCE, j]
        if counts[HELD] > 0:
            add(pull, -numbers[BALANCE], state.X[state.on[0]])
        size, multiplier, strength = directions(vectors, state.basis, max(counts[HELD] - 1, 0))
        numbers[MULTIPLIER] = multiplier
        if counts[HELD] < pull.shape[0] and size > 1e-9 * numbers[RADIUS] and strength > 1e-11 * norm:
            passed = follow(state, -multiplier * size * size, -strength * size)
            # the pull has changed, or a bias that no sample holds: look again for the best point of the face
            if counts[HELD] == 0 and (passed or abs(numbers[BALANCE]) > 1e-12 * norm):
                return STALE
            if passed:
                continue
            numbers[MULTIPLIER] = dot(pull, free) / dot(free, free)
        if counts[HELD] == 0 or not release(state):
            return DONE
        if counts[HELD] == 0:
            return STALE
    return MORE


@jit
def follow(state, cosine, sine):
    """Turn the weights to the best point of an arc, and hold the sample whose kink it is; True where samples passed."""
    X, known, table, vectors, numbers = state.X, state.known, state.table, state.vectors, state.numbers
    m = state.counts[HELD]
    for i in range(table.shape[1]):
        table[BEFORE, i] = table[WHERE, i]
    spread(X, vectors, table)
    lead = state.on[0] if m > 0 else -1
    along, across = crossings(known, table, numbers[BIAS], lead, numbers[ROUNDING])
    t, sample = first_stop(known, table, state.heap, cosine, sine, numbers[REACH])
    numbers[REACH] = 4.0 * t if t < 1e6 else 1e-2
    cos, sin = (2.0 / (1.0 + t * t) - 1.0, 2.0 * t / (1.0 + t * t)) if t < np.inf else (-1.0, 0.0)
    turned(vectors, cos, sin, numbers[RADIUS] if m == 0 else 0.0)
    numbers[BIAS] += (cos - 1.0) * along + sin * across
    passed = sample >= 0
    for i in range(table.shape[1]):
        table[SCORE, i] += (cos - 1.0) * (table[ALONG, i] + along) + sin * (table[ACROSS, i] + across)
        if table[WHERE, i] != table[BEFORE, i]:
            add_pull(X, known, vectors, numbers, i, 1.0 if table[WHERE, i] == BELOW else -1.0)
            passed = True
    if sample >= 0 and join(X, state.on, state.basis, state.R, m, sample):
        state.counts[HELD] += 1
        if table[WHERE, sample] == BELOW:
            add_pull(X, known, vectors, numbers, sample, -1.0)
        table[WHERE, sample] = ON
        if m > 0:
            row = state.basis[m - 1]
            add(vectors[FREE], -dot(row, vectors[FREE]), row)
    return passed


@jit
def turned(vectors, cos, sin, radius):
    """Turn the weights along an arc; where they are free altogether, keep them at this radius (0: they are not)."""
    J, free, turn = vectors[WEIGHTS], vectors[FREE], vectors[TURN]
    for j in range(J.shape[0]):
        moved = cos * free[j] + sin * turn[j]
        J[j] += moved - free[j]
        free[j] = moved
    if radius > 0.0:
        scale(J, radius / np.sqrt(dot(J, J)))
        for j in range(J.shape[0]):
            free[j] = J[j]


@jit
def release(state):
    """Let the sample go whose multiplier is furthest outside [0, 1]; False where there is none."""
    vectors, numbers, basis, on, m = state.vectors, state.numbers, state.basis, state.on, state.counts[HELD]
    J, parts = vectors[WEIGHTS], vectors[PARTS]
    for i in range(m - 1):
        parts[i] = numbers[MULTIPLIER] * dot(basis[i], J) - parts[i]
    held_pulls(parts, numbers[BALANCE], state.R, m, vectors[PULLED])
    state.counts[ASKED] = m
    worst, below = worst_of(vectors[PULLED], state.known[PULLS], on, m)
    if worst < 0:
        return False
    sample = on[worst]
    leave(on, basis, state.R, m, worst)
    state.counts[HELD] = m - 1
    if m > 1:  # one more direction is free
        add(vectors[FREE], dot(basis[m - 2], J), basis[m - 2])
    state.table[WHERE, sample] = BELOW if below else ABOVE
    if below:
        add_pull(state.X, state.known, vectors, numbers, sample, 1.0)
    return True


@jit
def add_pull(X, known, vectors, numbers, sample, sign):
    """Add the pull of a sample to that of the samples below, or take it off."""
    add(vectors[FORCE], sign * known[PULLS, sample], X[sample])
    numbers[BALANCE] += sign * known[PULLS, sample]
