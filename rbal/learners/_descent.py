"""Exact descent of the spherical perceptron, from face to face of its piecewise linear loss.

Hold the samples that lie on the margin there: then the loss is linear in the weights, the weights are confined to a
smaller sphere, and the best point of the face is found along one arc of it. A sample that meets its margin on the way
either passes or stays; at the best point the multipliers say which sample to let go. Every step lowers the loss.

Few samples come near their margins, and only those are followed at first. The others are assumed to stay on their
sides, so that their pull is a constant; where one of them has moved to the other side, the descent continues with more
samples.
"""

from typing import NamedTuple

import numpy as np

from ._faces import (
    ABOVE,
    BELOW,
    ON,
    Face,
    Heap,
    Samples,
    Track,
    Vectors,
    add,
    arc_scores,
    crossings,
    directions,
    dot,
    empty_face,
    empty_heap,
    empty_track,
    empty_vectors,
    first_stop,
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
NEAR = 4  # samples per weight that are followed at first
# Why the compiled part stops: at the minimum; with no sample that holds the bias; at its number of steps.
DONE, STALE, MORE = range(3)

# Where the descent stands: numbers that change in place, as fields of a numpy record.
POINT = np.dtype(
    [
        ("b", float),  # bias
        ("balance", float),  # summed pull of the samples below their margins
        ("rounding", float),  # difference of scores that is rounding
        ("multiplier", float),
        ("reach", float),  # stretch of an arc that is searched first
        ("radius", float),  # norm of the weights
        ("norm", float),  # of the pulls of all samples
        ("held", np.int64),  # samples on the face
        ("held_before", np.int64),  # when their pulls were last computed
        ("steps", np.int64),
    ]
)


class State(NamedTuple):
    """The samples that are followed, and the state of the descent, which changes in place."""

    samples: Samples
    track: Track
    heap: Heap
    face: Face
    vectors: Vectors
    point: np.void  # a record of type POINT


class Minimum(NamedTuple):
    """Where a descent ends."""

    J: np.ndarray  # (D,) weights
    b: float
    multiplier: float
    share: np.ndarray  # (n,) part of its weight that each sample pulls with
    held: int  # samples on their margins
    n_iter: int


def best_bias(scores, y, c, kappa, tie):
    """Return the bias of least loss for scores (n,), and the sample it puts on its margin (-1: a range is best)."""
    kinks = scores - y * kappa  # a sample of class y passes its margin, and the slope grows by c, where b = score - yκ
    order = np.argsort(kinks)
    slope, rounding = np.cumsum(c[order]) - c[y < 0].sum(), 1e-12 * c.sum()
    k = int(np.argmax(slope >= -rounding))
    b = kinks[order[k]]
    if abs(slope[k]) <= rounding and k + 1 < len(order) and kinks[order[k + 1]] > b + tie:
        return 0.6 * b + 0.4 * kinks[order[k + 1]], -1  # the middle would invite ties
    return b, int(order[k])


def gaps(samples, J, b):
    """Return by how much each sample (n,) is beyond its margin."""
    return samples.y * (samples.X @ J - b) - samples.kappa


def descend(samples, J, b, start, max_iter, near_each=NEAR):
    """Minimise the loss from weights J (D,) and bias b, until no sample leaves the face; return the Minimum.

    The weights first move to where the samples in ``start`` lie on their margins, as many of the first of them as the
    sphere allows. At first ``near_each`` samples per weight are followed.
    """
    n, D = samples.X.shape
    face, vectors, point = begin(samples, J, b, start)
    followed = near_each * D
    while True:
        gap, on = gaps(samples, vectors.J, point["b"]), face.on[: point["held"]]
        rows = near(gap, on, followed)
        share = (gap < 0.0).astype(float)
        share[rows] = 0.0  # the constant pull is that of the other samples
        on[:] = np.searchsorted(rows, on)
        subset = samples if len(rows) == n else Samples(*(part[rows] for part in samples))
        state = State(subset, empty_track(len(rows)), empty_heap(len(rows)), face, vectors, point)
        others = share * samples.pulls
        outer = None if len(rows) == n else np.append(others @ samples.X, others.sum())
        outcome = run(state, outer, max_iter)
        moved = (gaps(samples, vectors.J, point["b"]) < 0.0) != (share > 0.0)
        moved[rows] = False
        share[rows] = shares(state)
        on = face.on[: point["held"]]
        on[:] = rows[on]
        if outer is None or outcome == MORE or (outcome == DONE and not moved.any()):
            return Minimum(vectors.J, point["b"], point["multiplier"], share, int(point["held"]), int(point["steps"]))
        followed = 4 * followed if outcome == DONE else n


def near(gap, on, n_near):
    """Return the samples that are nearest to their margins by the gaps (n,), and those on the face, in order.

    Where no sample holds the bias, all samples are returned, since all decide on it.
    """
    if n_near >= len(gap) or len(on) == 0:
        return np.arange(len(gap))
    chosen = np.zeros(len(gap), bool)
    chosen[np.argpartition(np.abs(gap), n_near)[:n_near]] = chosen[on] = True
    return np.flatnonzero(chosen)


def begin(samples, J, b, start):
    """Return face, vectors and point of a descent that starts near J (D,), with samples of ``start`` on their margins.

    The number of samples is halved until weights of this norm can have all of them on their margins.
    """
    D, radius = len(J), length(J)
    face, vectors = empty_face(D), empty_vectors(D)
    m, landed = hold(samples.X, face, start), None
    while m > 1 and landed is None:
        landed = land(samples, face, m, J, radius)
        m = m // 2 if landed is None else m
    if landed is not None:
        lead = face.on[0]
        J, b = landed, samples.X[lead] @ landed - samples.y[lead] * samples.kappa[lead]
    vectors.J[:] = J
    point = np.zeros(1, POINT)[0]
    point["b"], point["reach"], point["radius"], point["norm"] = b, 1e-2, radius, length(samples.pulls)
    point["held"] = 0 if landed is None else m
    return face, vectors, point


def run(state, outer, max_iter):
    """Descend to the minimum, or until the point has made this number of steps, and return why it stops.

    ``outer`` (D + 1,) is the pull of the samples that are not followed, and its sum; None where all are followed. With
    it, the descent also stops when no sample is left to hold the bias.
    """
    point = state.point
    refresh(state, outer, True)
    while point["steps"] < max_iter:  # a few steps to a call, so that Ctrl-C takes effect
        outcome = advance(state, min(max_iter, int(point["steps"]) + REFRESH))
        if outcome == DONE or (outcome == STALE and outer is not None):
            return outcome
        refresh(state, outer, outcome == STALE)
    return MORE


def refresh(state, outer, sides):
    """Compute the scores and the pull of the samples below anew, and on request the sides of all samples.

    Where no sample holds the bias, it becomes the best one.
    """
    (X, y, pulls, kappa), on = state.samples, state.face.on
    vectors, point, scores, side = state.vectors, state.point, state.track.score, state.track.side
    scores[:] = X @ vectors.J
    point["rounding"] = TIE * (np.abs(scores).max() + kappa[0])
    if point["held"] > 0:
        point["b"] = scores[on[0]] - y[on[0]] * kappa[on[0]]
    else:
        point["b"], sample = best_bias(scores, y, y * pulls, kappa, point["rounding"])
        if sample >= 0:
            on[0], point["held"] = sample, 1
    if sides:
        side[:] = np.where(y * (scores - point["b"]) < kappa, BELOW, ABOVE)
        side[on[: point["held"]]] = ON
    below = np.where(side == BELOW, pulls, 0.0)
    vectors.force[:], point["balance"] = below @ X, below.sum()
    if outer is not None:
        vectors.force[:] += outer[:-1]
        point["balance"] += outer[-1]
    vectors.free[:] = free_part(vectors.J, state.face.basis[: max(point["held"] - 1, 0)])


def shares(state):
    """Return what part of its weight each of the samples that are followed pulls with."""
    share = np.where(state.track.side == BELOW, 1.0, 0.0)
    computed = state.face.on[: min(state.point["held"], state.point["held_before"])]
    share[computed] = state.vectors.held[: len(computed)] / state.samples.pulls[computed]
    return share


@jit
def advance(state, stop):
    """Make steps until no sample leaves the face (DONE), no sample holds the bias (STALE), or ``stop`` are made."""
    point, vectors, face = state.point, state.vectors, state.face
    # Fields are unpacked outside of loops, where numba would count a reference at each access.
    force, pull, free, X, on = vectors.force, vectors.pull, vectors.free, state.samples.X, face.on
    while point["steps"] < stop:
        point["steps"] += 1
        for j in range(pull.shape[0]):
            pull[j] = force[j]
        if point["held"] > 0:
            add(pull, -point["balance"], X[on[0]])
        size, multiplier, strength = directions(vectors, face.basis, max(point["held"] - 1, 0))
        point["multiplier"] = multiplier
        if point["held"] < pull.shape[0] and size > 1e-9 * point["radius"] and strength > 1e-11 * point["norm"]:
            passed = follow(state, -multiplier * size * size, -strength * size)
            # the pull has changed, or a bias that no sample holds: look again for the best point of the face
            if point["held"] == 0 and (passed or abs(point["balance"]) > 1e-12 * point["norm"]):
                return STALE
            if passed:
                continue
            point["multiplier"] = dot(pull, free) / dot(free, free)
        if point["held"] == 0 or not release(state):
            return DONE
        if point["held"] == 0:
            return STALE
    return MORE


@jit
def follow(state, cosine, sine):
    """Turn the weights to the best point of an arc, and hold the sample whose kink it is; True where samples passed."""
    samples, track, face, vectors, point = state.samples, state.track, state.face, state.vectors, state.point
    score, along, across, _, _, side, side_before = track
    m = point["held"]
    for i in range(side.shape[0]):
        side_before[i] = side[i]
    arc_scores(samples.X, vectors, track)
    lead = face.on[0] if m > 0 else -1
    lead_along, lead_across = crossings(samples, track, point["b"], lead, point["rounding"])
    t, sample = first_stop(samples.pulls, track, state.heap, cosine, sine, point["reach"])
    point["reach"] = 4.0 * t if t < 1e6 else 1e-2
    cos, sin = (2.0 / (1.0 + t * t) - 1.0, 2.0 * t / (1.0 + t * t)) if t < np.inf else (-1.0, 0.0)
    rotate_weights(vectors, cos, sin, point["radius"] if m == 0 else 0.0)
    point["b"] += (cos - 1.0) * lead_along + sin * lead_across
    passed = sample >= 0
    for i in range(side.shape[0]):
        score[i] += (cos - 1.0) * (along[i] + lead_along) + sin * (across[i] + lead_across)
        if side[i] != side_before[i]:
            add_pull(samples, vectors.force, point, i, 1.0 if side[i] == BELOW else -1.0)
            passed = True
    if sample >= 0 and join(samples.X, face, m, sample):
        point["held"] += 1
        if side[sample] == BELOW:
            add_pull(samples, vectors.force, point, sample, -1.0)
        side[sample] = ON
        if m > 0:
            row = face.basis[m - 1]
            add(vectors.free, -dot(row, vectors.free), row)
    return passed


@jit
def rotate_weights(vectors, cos, sin, radius):
    """Turn the weights along an arc; where no sample confines them, rescale them to this radius (0: one does)."""
    J, free, turn = vectors.J, vectors.free, vectors.turn
    for j in range(J.shape[0]):
        turned = cos * free[j] + sin * turn[j]
        J[j] += turned - free[j]
        free[j] = turned
    if radius > 0.0:
        scale(J, radius / np.sqrt(dot(J, J)))
        for j in range(J.shape[0]):
            free[j] = J[j]


@jit
def release(state):
    """Let the sample go whose multiplier is furthest outside [0, 1]; False where there is none."""
    vectors, point, face, m = state.vectors, state.point, state.face, state.point["held"]
    J, free, parts, basis = vectors.J, vectors.free, vectors.parts, face.basis
    for i in range(m - 1):
        parts[i] = point["multiplier"] * dot(basis[i], J) - parts[i]
    held_pulls(parts, point["balance"], face.R, m, vectors.held)
    point["held_before"] = m
    worst, above = worst_of(vectors.held, state.samples.pulls, face.on, m)
    if worst < 0:
        return False
    sample = face.on[worst]
    leave(face, m, worst)
    point["held"] = m - 1
    if m > 1:  # one more direction is free
        add(free, dot(basis[m - 2], J), basis[m - 2])
    state.track.side[sample] = BELOW if above else ABOVE
    if above:
        add_pull(state.samples, vectors.force, point, sample, 1.0)
    return True


@jit
def add_pull(samples, force, point, sample, sign):
    """Add the pull of a sample, times a sign, to the force of the samples below."""
    pull = sign * samples.pulls[sample]
    add(force, pull, samples.X[sample])
    point["balance"] += pull
