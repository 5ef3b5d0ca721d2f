"""Exact descent of the spherical perceptron, from face to face of its piecewise linear loss.

Hold the samples that lie on the margin there: then the loss is linear in the weights, the weights are confined to a
smaller sphere, and the best point of the face is found along one arc of it. A sample that meets its margin on the way
either passes or stays; at the best point the multipliers say which sample to let go. Every step lowers the loss.

Few samples come near their margins. The others stay on their sides in the first place, and what they add to the pull is
a constant; where one of them has moved to the other side after all, the descent goes on with more samples.
"""

import math
from typing import NamedTuple

import numpy as np

from ._arcs import (
    ABOVE,
    ACROSS,
    ALONG,
    BALANCE,
    BELOW,
    BIAS,
    GAP,
    LABEL,
    LEAD,
    MARGIN,
    MULTIPLIER,
    NORM,
    ON,
    PULLS,
    RADIUS,
    REACH,
    ROUNDING,
    WHERE,
    WORST,
    directions,
    first_stop,
    spread,
)
from ._faces import (
    FORCE,
    FREE,
    PULL,
    PULLED,
    TURN,
    WEIGHTS,
    Face,
    Samples,
    add,
    dot,
    empty_face,
    free_part,
    hold,
    jit,
    join,
    land,
    leave,
    length,
    stacked,
)

TIE = 1e-13  # distance to the margin that is rounding, relative to the largest score
REFRESH = 64  # steps after which scores and forces are computed anew: rounding must not build up
NEAR = 4  # samples that are followed in the first place, for each weight
DONE, STALE, MORE = range(3)  # why the compiled part stops: at the minimum, for fresh numbers, for its number of steps
# samples on the face, now and when their pulls were asked for; steps; whether the basis is complete
HELD, ASKED, STEPS, FULL = range(4)


class State(NamedTuple):
    """The samples that are followed, and where the descent stands, which changes in place."""

    rows: np.ndarray  # (n + 2D + 7, W) samples and the rows of a face
    columns: np.ndarray  # (D or D + 1, n) the samples once more, as columns of an even number of features
    table: np.ndarray  # (7, n) rows LABEL … WHERE
    heap: np.ndarray  # (2, 2n)
    on: np.ndarray  # (D + 1,) the face
    numbers: np.ndarray  # (9,) entries BIAS … WORST
    counts: np.ndarray  # (4,) entries HELD … FULL

    @property
    def face(self):
        """The face, as part of the rows."""
        return Face(self.on, self.rows[self.table.shape[1] :])


def begun(samples, face, numbers, counts):
    """Return the state of a descent that follows these samples."""
    n, D = samples.X.shape
    columns, table = np.zeros((D + D % 2, n)), np.zeros((7, n))
    columns[:D] = samples.X.T
    table[LABEL], table[PULLS], table[MARGIN] = samples[1:]
    return State(stacked(samples.X, face), columns, table, np.empty((2, 2 * n)), face.on, numbers, counts)


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
    face, numbers, counts = begin(samples, J, b, start)
    few = near_each * D
    while True:
        gap, on = gaps(samples, face.vectors[WEIGHTS], numbers[BIAS]), face.on[: counts[HELD]]
        rows = near(gap, on, few)
        share = (gap < 0.0).astype(float)
        share[rows] = 0.0  # of those that are not followed
        on[:] = np.searchsorted(rows, on)
        state = begun(samples if len(rows) == n else Samples(*(part[rows] for part in samples)), face, numbers, counts)
        others = share * samples.pulls
        outer = None if len(rows) == n else np.append(others @ samples.X, others.sum())
        outcome, face = run(state, outer, max_iter), state.face
        J, b, on = face.vectors[WEIGHTS], numbers[BIAS], face.on[: counts[HELD]]
        moved = (gaps(samples, J, b) < 0.0) != (share > 0.0)
        moved[rows] = False
        share[rows] = shares(state)
        on[:] = rows[on]
        if outer is None or outcome == MORE or (outcome == DONE and not moved.any()):
            return J.copy(), b, numbers[MULTIPLIER], share, int(counts[HELD]), int(counts[STEPS])
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
    """Return face, numbers and counts at a point near J (D,), with samples of ``start`` on their margins."""
    radius, face = length(J), empty_face(len(J))
    (m, full), landed = hold(samples.X, face, start), None
    while m > 1 and landed is None:
        landed = land(samples, face, m, J, radius)
        m = m // 2 if landed is None else m
    if landed is not None:
        lead = face.on[0]
        J, b = landed, samples.X[lead] @ landed - samples.y[lead] * samples.kappa[lead]
    face.vectors[WEIGHTS] = J
    numbers = np.array([b, 0.0, 0.0, 0.0, 1e-2, radius, length(samples.pulls), 0.0, 0.0])
    return face, numbers, np.array([0 if landed is None else m, 0, 0, full])


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
    face, table, on, numbers, counts = state.face, state.table, state.on, state.numbers, state.counts
    y, pulls, kappa, where = table[LABEL], table[PULLS], table[MARGIN], table[WHERE]
    vectors, X = face.vectors, state.rows[: len(y), : len(on) - 1]
    J, scores = vectors[WEIGHTS], X @ vectors[WEIGHTS]
    numbers[ROUNDING] = TIE * (np.abs(scores).max() + kappa[0])
    if counts[HELD] > 0:
        numbers[BIAS] = scores[on[0]] - y[on[0]] * kappa[on[0]]
    else:
        numbers[BIAS], sample = best_bias(scores, y, y * pulls, kappa, numbers[ROUNDING])
        if sample >= 0:
            on[0], counts[HELD] = sample, 1
    table[GAP] = scores - numbers[BIAS] - y * kappa
    if sides:
        where[:] = np.where(y * table[GAP] < 0.0, BELOW, ABOVE)
        where[on[: counts[HELD]]] = ON
    below = np.where(where == BELOW, pulls, 0.0)
    vectors[FORCE], numbers[BALANCE] = below @ X, below.sum()
    if outer is not None:
        vectors[FORCE] += outer[:-1]
        numbers[BALANCE] += outer[-1]
    vectors[FREE] = free_part(J, face.basis[: max(counts[HELD] - 1, 0)])


def shares(state):
    """Return what part of its weight each of the samples that are followed pulls with."""
    share = np.where(state.table[WHERE] == BELOW, 1.0, 0.0)
    known = state.on[: min(state.counts[HELD], state.counts[ASKED])]
    pulled = np.append(state.numbers[LEAD], state.face.vectors[PULLED])
    share[known] = pulled[: len(known)] / state.table[PULLS, known]
    return share


@jit
def advance(state, stop):
    """Make steps until no sample wants to leave the face (DONE), or no sample holds the bias (STALE), or ``stop``."""
    rows, on, counts, numbers, norm = state.rows, state.on, state.counts, state.numbers, state.numbers[NORM]
    n, D = state.table.shape[1], on.shape[0] - 1
    force, pull, free = n + 2 * D + FORCE, n + 2 * D + PULL, n + 2 * D + FREE
    while counts[STEPS] < stop:
        counts[STEPS] += 1
        for j in range(rows.shape[1]):
            rows[pull, j] = rows[force, j]
        if counts[HELD] > 0:
            add(rows, pull, -numbers[BALANCE], on[0])
        k = counts[HELD] - 1 if counts[HELD] > 0 else counts[HELD]
        size, multiplier, strength = directions(rows, n, D, k, counts[FULL] > 0)
        numbers[MULTIPLIER] = multiplier
        if counts[HELD] < D and size > 1e-9 * numbers[RADIUS] and strength > 1e-11 * norm:
            passed = follow(state, -multiplier * size * size, -strength * size)
            # the pull has changed, or a bias that no sample holds: look again for the best point of the face
            if counts[HELD] == 0 and (passed > 0 or abs(numbers[BALANCE]) > 1e-12 * norm):
                return STALE
            if passed > 0:
                continue
            numbers[MULTIPLIER] = dot(rows, pull, free) / dot(rows, free, free)
        if counts[HELD] == 0 or not release(state):
            return DONE
        if counts[HELD] == 0:
            return STALE
    return MORE


@jit
def follow(state, cosine, sine):
    """Turn the weights to the best point of an arc, and hold the sample whose kink it is; return how many pass."""
    rows, table, on, numbers, m = state.rows, state.table, state.on, state.numbers, state.counts[HELD]
    n, vectors = table.shape[1], state.table.shape[1] + 2 * on.shape[0] - 2
    free, force = vectors + FREE, vectors + FORCE
    along, across = spread(rows, state.columns, table, free, on[0] if m > 0 else -1)
    t, sample, passed = first_stop(rows, table, state.heap, numbers, force, cosine, sine)
    numbers[REACH] = 4.0 * t if t < 1e6 else 1e-2
    cos, sin = -1.0, 0.0
    if t < np.inf:
        cos, sin = 2.0 / (1.0 + t * t) - 1.0, 2.0 * t / (1.0 + t * t)
    for j in range(rows.shape[1]):
        moved = cos * rows[free, j] + sin * rows[free + 1, j]
        rows[vectors, j] += moved - rows[free, j]
        rows[free, j] = moved
    if m == 0:  # the weights are free altogether: keep their norm
        factor = numbers[RADIUS] / math.sqrt(dot(rows, free, free))
        for j in range(rows.shape[1]):
            rows[free, j] *= factor
            rows[vectors, j] = rows[free, j]
    numbers[BIAS] += (cos - 1.0) * along + sin * across
    for i in range(n):
        table[GAP, i] += (cos - 1.0) * table[ALONG, i] + sin * table[ACROSS, i]
    if sample >= 0 and join(rows, on, n, m, sample, state.counts[FULL] > 0):
        state.counts[HELD] += 1
        if table[WHERE, sample] == BELOW:
            add(rows, force, -table[PULLS, sample], sample)
            numbers[BALANCE] -= table[PULLS, sample]
        table[WHERE, sample] = ON
        if m > 0:
            add(rows, free, -dot(rows, n + m - 1, free), n + m - 1)
    return passed


@jit
def release(state):
    """Let the sample go whose multiplier is furthest outside [0, 1]; False where there is none."""
    rows, table, on, numbers, m = state.rows, state.table, state.on, state.numbers, state.counts[HELD]
    n, D = table.shape[1], on.shape[0] - 1
    vectors, worst, out, first = n + 2 * D, m, 0.5 + 1e-9, -numbers[BALANCE]
    rest, pulled = vectors + TURN, vectors + PULLED
    for j in range(rows.shape[1]):
        rows[rest, j] = numbers[MULTIPLIER] * rows[vectors, j] - rows[vectors + PULL, j]
        rows[pulled, j] = 0.0
    for i in range(n + m - 2, n - 1, -1):  # coefficients of the differences, from the last row of R on
        p = (dot(rows, i, rest) - dot(rows, i + D, pulled)) / rows[i + D, i - n]
        rows[pulled, i - n] = p
        first -= p
    numbers[LEAD], state.counts[ASKED] = first, m
    for i in range(m):
        share = abs(first / table[PULLS, on[i]] - 0.5)
        if share > out:
            worst, out, numbers[WORST] = i, share, first
        first = rows[pulled, i]
    if worst == m:
        return False
    sample = on[worst]
    leave(rows, on, n, m, worst)
    state.counts[HELD] = m - 1
    if m > 1:  # one more direction is free
        add(rows, vectors + FREE, dot(rows, n + m - 2, vectors), n + m - 2)
    table[WHERE, sample] = ABOVE
    if numbers[WORST] * table[PULLS, sample] > 0.0:  # it would pull with more than its weight
        table[WHERE, sample] = BELOW
        add(rows, vectors + FORCE, table[PULLS, sample], sample)
        numbers[BALANCE] += table[PULLS, sample]
    return True
