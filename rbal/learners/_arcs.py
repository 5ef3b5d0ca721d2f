"""Arcs of a face: how the weights turn, where samples meet their margins on the way, and where the loss is least.

The weights move as J + free (cos θ - 1) + turn sin θ, where the turn is orthogonal to their free part and as long. An
angle is told by t = tan(θ/2).
"""

import math

import numpy as np

from ._faces import FREE, LOST, PARTS, PULL, TURN, add, dot, jit

BELOW, ABOVE, ON = 1, 0, 2  # where a sample is: short of its margin, beyond it, held on it
WIDENINGS = 400  # of the stretch of an arc that is looked at: eightfold each, from the smallest double to the farthest
FAR = 1e100  # beyond it an arc has come to its end, θ = π

# Rows of what is known of the samples and what changes of them, (7, n): labels, pulls and margins; how far scores are
# from margins; scores of the free part and of the turn, less those of the sample that holds the bias; where samples are
LABEL, PULLS, MARGIN, GAP, ALONG, ACROSS, WHERE = range(7)
AT, WHO = range(2)  # rows of a heap of crossings, (2, 2n)
# bias, summed pull of the samples below, gap that is rounding, multiplier, first reach of an arc, norm of the weights
# and of the pulls of all samples, pulls of the first sample on the face and of the one furthest outside its range
BIAS, BALANCE, ROUNDING, MULTIPLIER, REACH, RADIUS, NORM, LEAD, WORST = range(9)


@jit
def directions(rows, n, D, k, full):
    """Write how the free part of the weights turns to lower the loss most.

    The turn has the norm of the free part, and is orthogonal to it and to the first k rows of the basis. Returned are
    this norm, the multiplier of the weights, and the strength, which is the slope of the loss over the norm and
    vanishes at the best point of the face.
    """
    free, turn, pull, rest = n + 2 * D + FREE, n + 2 * D + TURN, n + 2 * D + PULL, n + 2 * D + PARTS
    square = dot(rows, free, free)
    multiplier = dot(rows, pull, free) / square if square > 0.0 else 0.0
    # Rows that are free, where there are all, or else all others. What cancels does so before:
    # the turn stays among these rows to rounding.
    first, end, sign, source, times = n + k, n + D, 1.0, rest, 1
    if not full:
        first, end, sign, source, times = n, n + k, -1.0, turn, 2
    for j in range(rows.shape[1]):
        rows[rest, j] = rows[pull, j] - multiplier * rows[free, j]
        rows[turn, j] = 0.0 if full else rows[rest, j]
    for _ in range(times):
        for i in range(first, end):
            add(rows, turn, sign * dot(rows, i, source), i)
        if dot(rows, turn, turn) > LOST * dot(rows, rest, rest):
            break
    add(rows, turn, -dot(rows, turn, free) / square, free)
    strength, size = math.sqrt(dot(rows, turn, turn)), math.sqrt(square)
    factor = size / strength if strength > 0.0 else 0.0
    for j in range(rows.shape[1]):
        rows[turn, j] *= factor
    return size, multiplier, strength


@jit
def spread(rows, columns, table, free, lead):
    """Write the scores of the free part of the weights and of its turn, the next row, less those of a sample ``lead``.

    It is the one that holds the bias (-1: none does). Its own scores are returned.
    """
    along = across = 0.0
    if lead >= 0:
        along, across = dot(rows, lead, free), dot(rows, lead, free + 1)
    for i in range(table.shape[1]):
        table[ALONG, i] = -along
        table[ACROSS, i] = -across
    for j in range(0, columns.shape[0], 2):  # two columns at a time: half as many numbers are stored
        a, b, c, d = rows[free, j], rows[free, j + 1], rows[free + 1, j], rows[free + 1, j + 1]
        for i in range(table.shape[1]):
            one, two = columns[j, i], columns[j + 1, i]
            table[ALONG, i] += a * one + b * two
            table[ACROSS, i] += c * one + d * two
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
def gather(table, heap, low, cap, tie):
    """Put where samples meet their margins, beyond ``low`` and up to ``cap``, on the heap; return how many there are.

    These are roots t of gap + along (cos θ - 1) + across sin θ = 0, at most two a sample. A sample that stands on its
    margin, up to a tie, without being held there crosses at once where it moves to the other side.
    """
    n = table.shape[0] - table.shape[0]  # a literal 0 would have functions compiled a second time
    for i in range(table.shape[1]):
        gap, turn, below = table[GAP, i], table[ACROSS, i], table[WHERE, i] == BELOW
        a = gap - 2.0 * table[ALONG, i]  # a t² + 2 across t + gap = 0
        off, first, second = abs(gap), np.inf, np.inf
        # most samples are so far away that up to the cap nothing makes up for their gap
        if table[WHERE, i] == ON or (off > tie and off > cap * (2.0 * abs(turn) + cap * abs(a))):
            continue
        disc = turn * turn - a * gap
        if off <= tie:
            if (table[LABEL, i] * turn > 0.0) == below:
                first = 1e-16
            if a * turn < 0.0:
                second = -2.0 * turn / a
        elif disc > 0.0:
            w = -(turn + math.copysign(math.sqrt(disc), turn))
            if a * w > 0.0:
                first = w / a
            if gap * w > 0.0:
                second = gap / w
        for _ in range(2):
            if low < first <= cap:
                heap[AT, n], heap[WHO, n] = first, i
                n += 1
            first = second
    for i in range(n // 2 - 1, -1, -1):
        sift(heap, i, n)
    return n


@jit
def first_stop(rows, table, heap, numbers, force, cosine, sine):
    """Return where the loss along the arc is least, the sample whose kink it is (-1: it is smooth), and how many pass.

    The loss is const + cosine cos θ + sine sin θ until a sample crosses its margin. Samples that pass change sides, and
    the row ``force`` with them. Crossings are gathered up to a reach first, and further only where the loss still falls
    there.
    """
    lowest, passed = -sine / (math.sqrt(sine * sine + cosine * cosine) - cosine), 0
    low, cap = 0.0, lowest if lowest < numbers[REACH] else numbers[REACH]
    for _ in range(WIDENINGS):
        for left in range(gather(table, heap, low, cap, numbers[ROUNDING]) - 1, -1, -1):
            t, sample = heap[AT, 0], int(heap[WHO, 0])
            if lowest <= t:
                return lowest, -1, passed
            heap[AT, 0], heap[WHO, 0] = heap[AT, left], heap[WHO, left]
            sift(heap, left - left, left)
            passed += 1
            change = table[PULLS, sample]
            if table[WHERE, sample] == BELOW:
                change, table[WHERE, sample] = -change, ABOVE
            else:
                table[WHERE, sample] = BELOW
            add(rows, force, change, sample)
            numbers[BALANCE] += change
            cosine -= change * table[ALONG, sample]
            sine -= change * table[ACROSS, sample]
            if sine * (1.0 - t * t) - cosine * 2.0 * t >= 0.0:  # 1 + t² times the slope
                return t, sample, passed
            room = math.sqrt(sine * sine + cosine * cosine) - cosine
            lowest = -sine / room if sine < 0.0 and room > 0.0 else np.inf
        if lowest <= cap:
            return lowest, -1, passed
        if cap >= FAR:
            break
        low, cap = cap, lowest if lowest < 8.0 * cap else 8.0 * cap
    return np.inf, -1, passed
