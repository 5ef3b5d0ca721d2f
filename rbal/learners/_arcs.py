"""Arcs of a face: how the weights turn, where samples meet their margins on the way, and where the loss is least.

The weights move as J + free (cos θ - 1) + turn sin θ, where the turn is orthogonal to their free part and as long. An
angle is told by t = tan(θ/2).
"""

import numpy as np

from ._faces import add, dot, jit, project, scale

BELOW, ABOVE, ON = 1, 0, 2  # where a sample is: short of its margin, beyond it, held on it
WIDENINGS = 400  # of the stretch of an arc that is looked at: eightfold each, from the smallest double to the largest

# Rows of the vectors (7, D): weights; their part that is free to turn; where it turns to; pull of the samples below,
# and that with the bias held; its parts along the face; pulls of the samples on the face, as they were last asked for
WEIGHTS, FREE, TURN, FORCE, PULL, PARTS, PULLED = range(7)
LABEL, PULLS, MARGIN = range(3)  # rows of what is known of the samples, (3, n)
# Rows of what changes, (7, n): scores; those of the free part and of the turn; where a sample meets its margin, at most
# twice, infinity where it does not; and where a sample is, now and before the last arc
SCORE, ALONG, ACROSS, FIRST, SECOND, WHERE, BEFORE = range(7)
AT, WHO = range(2)  # rows of a heap of crossings, (2, 2n)


@jit
def directions(vectors, basis, k):
    """Write how the free part of the weights turns to lower the loss most, and the parts of the pull along the face.

    The turn has the norm of the free part, and is orthogonal to it and to the first k rows of the basis. Returned are
    this norm, the multiplier of the weights, and the strength, which is the slope of the loss over the norm and
    vanishes at the best point of the face.
    """
    free, pull, turn = vectors[FREE], vectors[PULL], vectors[TURN]
    square = dot(free, free)
    multiplier = dot(pull, free) / square if square > 0.0 else 0.0
    for j in range(turn.shape[0]):
        turn[j] = pull[j] - multiplier * free[j]
    project(turn, basis, k, vectors[PARTS])
    add(turn, -dot(turn, free) / square, free)
    strength = np.sqrt(dot(turn, turn))
    scale(turn, np.sqrt(square) / strength)
    return np.sqrt(square), multiplier, strength


@jit
def spread(X, vectors, table):
    """Write the scores of the free part of the weights and of its turn."""
    free, turn, along, across = vectors[FREE], vectors[TURN], table[ALONG], table[ACROSS]
    for i in range(X.shape[0]):
        row, one, two = X[i], 0.0, 0.0
        for j in range(row.shape[0]):
            one += row[j] * free[j]
            two += row[j] * turn[j]
        along[i], across[i] = one, two


@jit
def crossings(known, table, b, lead, tie):
    """Write where each sample meets its margin on an arc, with bias b that the sample ``lead`` holds (-1: none does).

    These are the positive roots t of gap + along (cos θ - 1) + across sin θ = 0. A sample that stands on its margin, up
    to a tie, without being held there crosses at once where it moves to the other side.
    """
    along, across = (table[ALONG, lead], table[ACROSS, lead]) if lead >= 0 else (0.0, 0.0)
    for i in range(table.shape[1]):
        table[ALONG, i] -= along
        table[ACROSS, i] -= across
        first = second = np.inf
        y, gap, turn = known[LABEL, i], table[SCORE, i] - b - known[LABEL, i] * known[MARGIN, i], table[ACROSS, i]
        # (gap - 2 along) t² + 2 across t + gap = 0
        a = gap - 2.0 * table[ALONG, i]
        disc = turn * turn - a * gap
        if table[WHERE, i] == ON:
            pass
        elif abs(gap) <= tie:
            if (y * turn > 0.0) == (table[WHERE, i] == BELOW):
                first = 1e-16
            if a * turn < 0.0:
                second = -2.0 * turn / a
        elif disc > 0.0:
            w = -(turn + np.copysign(np.sqrt(disc), turn))
            if a * w > 0.0:
                first = w / a
            if gap * w > 0.0:
                second = gap / w
        table[FIRST, i], table[SECOND, i] = first, second
    return along, across


@jit
def sift(heap, i, n):
    """Move the i-th of n entries of a heap down to its place; the smallest of all stands first."""
    t, sample = heap[AT, i], heap[WHO, i]
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and heap[AT, child + 1] < heap[AT, child]:
            child += 1
        if heap[AT, child] >= t:
            break
        heap[AT, i], heap[WHO, i] = heap[AT, child], heap[WHO, child]
        i = child
    heap[AT, i], heap[WHO, i] = t, sample


@jit
def gather(table, heap, low, cap):
    """Put the crossings beyond ``low`` and up to ``cap`` on the heap, and return how many there are."""
    n = 0
    for row in range(FIRST, SECOND + 1):
        for i in range(table.shape[1]):
            if low < table[row, i] <= cap:
                heap[AT, n], heap[WHO, n] = table[row, i], i
                n += 1
    for i in range(n // 2 - 1, -1, -1):
        sift(heap, i, n)
    return n


@jit
def first_stop(known, table, heap, cosine, sine, reach):
    """Return where the loss along the arc is least, and the sample whose kink it is (-1: it is smooth).

    The loss is const + cosine cos θ + sine sin θ until a sample crosses its margin. Samples that pass change sides.
    Crossings are gathered up to ``reach`` first, and further only where the loss still falls there.
    """
    lowest = -sine / (np.sqrt(sine * sine + cosine * cosine) - cosine)
    low, cap = 0.0, min(lowest, reach)
    for _ in range(WIDENINGS):
        for left in range(gather(table, heap, low, cap) - 1, -1, -1):
            t, sample = heap[AT, 0], int(heap[WHO, 0])
            if lowest <= t:
                return lowest, -1
            heap[AT, 0], heap[WHO, 0] = heap[AT, left], heap[WHO, left]
            sift(heap, left - left, left)
            below = table[WHERE, sample] == BELOW
            change = -known[PULLS, sample] if below else known[PULLS, sample]
            cosine -= change * table[ALONG, sample]
            sine -= change * table[ACROSS, sample]
            table[WHERE, sample] = ABOVE if below else BELOW
            if sine * (1.0 - t * t) - cosine * 2.0 * t >= 0.0:  # 1 + t² times the slope
                return t, sample
            room = np.sqrt(sine * sine + cosine * cosine) - cosine
            lowest = -sine / room if sine < 0.0 and room > 0.0 else np.inf
        if lowest <= cap:
            return lowest, -1
        if cap == np.inf:
            return np.inf, -1
        low, cap = cap, min(lowest, 8.0 * cap)
    return np.inf, -1
