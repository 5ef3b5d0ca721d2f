r"""Faces of the perceptron's loss: samples held on their margins, and the arcs along which the weights move there.

On a face the weights split into a part that is fixed and a part that is free to turn. With samples
:math:`a_0, a_1, \dots` on the margin a move is orthogonal to the differences :math:`x_{a_j} - x_{a_0}`, and the bias
follows from :math:`a_0`; a QR factorisation of these differences is updated as samples come and go.

Along an arc the weights are J + free (cos θ - 1) + turn sin θ, where ``turn`` is orthogonal to their free part and as
long. An angle is given as t = tan(θ/2).

The compiled functions spell out their loops, and most of them cannot be called from Python: so they compile in a
fraction of the time.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from .._support.jit import compiled

# Sums may be reordered so that they vectorise.
jit = compiled(fastmath={"reassoc", "contract"})

BELOW, ABOVE, ON = 1, 0, 2  # sides of a sample: short of its margin, beyond it, held on it
DEPENDENT = 1e-10  # relative part of a difference outside the span of the others below which it is rounding
LOST = 0.01  # part of a squared norm below which a projection is repeated, against rounding
WIDENINGS = 400  # of the searched stretch of an arc: eightfold each, from the smallest double to the largest


class Samples(NamedTuple):
    """Training samples."""

    X: np.ndarray  # (n, D)
    y: np.ndarray  # (n,) labels ±1
    pulls: np.ndarray  # (n,) label times weight: the pull of a sample below its margin
    kappa: np.ndarray  # (n,) margins


class Face(NamedTuple):
    """Samples held on their margins, and the QR factorisation of their differences; all change in place."""

    on: np.ndarray  # (D + 1,) indices of the samples, the first m of which count
    basis: np.ndarray  # (D, D) orthonormal rows, m - 1 of which count
    R: np.ndarray  # (D, D) upper triangle


class Vectors(NamedTuple):
    """Vectors (D,) of the descent, which change in place."""

    J: np.ndarray  # weights
    free: np.ndarray  # their part that is free to turn
    turn: np.ndarray  # direction in which it turns, of the same norm
    force: np.ndarray  # pull of the samples below their margins
    pull: np.ndarray  # the same, with the bias held by a sample
    parts: np.ndarray  # of the pull, along the rows of the basis of the face
    held: np.ndarray  # pulls of the samples on the face, as last computed


class Track(NamedTuple):
    """Values (n,) of each sample along an arc, which change in place."""

    score: np.ndarray
    along: np.ndarray  # score of the free part of the weights, minus that of the sample that holds the bias
    across: np.ndarray  # likewise of the turn
    first: np.ndarray  # t at which the sample meets its margin, infinity where it does not
    second: np.ndarray  # t at which it meets it again
    side: np.ndarray  # BELOW, ABOVE or ON
    side_before: np.ndarray  # before the last arc


class Heap(NamedTuple):
    """Crossings of margins, with the next one first; both arrays are (2n,) and change in place."""

    t: np.ndarray
    sample: np.ndarray


def empty_face(D):
    """Return a face that holds no sample, for D weights."""
    return Face(np.zeros(D + 1, np.int64), np.zeros((D, D)), np.zeros((D, D)))


def empty_vectors(D):
    """Return vectors of zeros, for D weights."""
    return Vectors(*np.zeros((7, D)))


def empty_track(n):
    """Return a track of zeros, for n samples."""
    return Track(*np.zeros((5, n)), *np.zeros((2, n), np.int8))


def empty_heap(n):
    """Return a heap for the crossings of n samples, two each."""
    return Heap(np.empty(2 * n), np.empty(2 * n, np.int64))


def hold(X, face, samples):
    """Put samples on an empty face, except those whose difference lies in the span of others; return their number.

    LAPACK factorises them at once: adding one after the other would take most of the time of a large problem.
    """
    samples = np.asarray(samples, np.int64)[: X.shape[1]]
    while len(samples) > 1:
        differences = X[samples[1:]] - X[samples[0]]
        Q, R = np.linalg.qr(differences.T)
        k = len(R)
        independent = np.abs(np.diag(R)) > DEPENDENT * np.linalg.norm(differences, axis=1)[:k]
        if independent.all():
            face.basis[:k], face.R[:k, :k] = Q.T, R
            break
        samples = samples[: k + 1][np.append(True, independent)]
    face.on[: len(samples)] = samples
    return len(samples)


def land(samples, face, m, J, radius):
    """Return weights (D,) near J that put the m samples of the face on their margins, or None."""
    k, on = m - 1, face.on[:m]
    signed_margins = samples.y[on] * samples.kappa[on]
    z = lapack.dtrtrs(face.R[:k, :k].T, signed_margins[1:] - signed_margins[0], lower=True)[0]
    free = free_part(J, face.basis[:k])
    room, square = radius * radius - z @ z, free @ free
    if not (room > 0.0 and square > 1e-12 * radius * radius):  # less is rounding
        return None
    return z @ face.basis[:k] + np.sqrt(room / square) * free


def length(v):
    """Return the norm of a vector; numpy's function spends longer on checks of its argument."""
    return math.sqrt(v @ v)


def free_part(J, basis):
    """Return the part of weights J (D,) that is orthogonal to the rows of a basis (k, D)."""
    for _ in range(2):  # the second time against rounding
        J = J - (basis @ J) @ basis
    return J


@jit
def dot(a, b):
    """Return the product of two vectors."""
    total = 0.0
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@jit
def add(out, scale, v):
    """Add a multiple of a vector to another one."""
    for j in range(out.shape[0]):
        out[j] += scale * v[j]


@jit
def scale(v, factor):
    """Multiply a vector by a factor."""
    for j in range(v.shape[0]):
        v[j] *= factor


@jit
def project(v, basis, k, h):
    """Subtract from v (D,), in place, its parts along the first k rows of the basis, and write their sizes to h (k,).

    Returned is the squared norm of the rest.
    """
    before = rest = dot(v, v)
    for i in range(k):
        h[i] = 0.0
    for _ in range(2):
        for i in range(k):
            part = dot(basis[i], v)
            h[i] += part
            add(v, -part, basis[i])
        rest = dot(v, v)
        if rest > LOST * before:
            break
    return rest


@jit
def join(X, face, m, sample):
    """Add a sample to the m of the face; return False where its difference lies in the span of the others."""
    on, basis, R = face
    if m > 0:
        k = m - 1
        d, h = basis[k], np.empty(k)
        for j in range(d.shape[0]):
            d[j] = X[sample, j] - X[on[0], j]
        size = dot(d, d)
        rest = project(d, basis, k, h)
        if not rest > DEPENDENT**2 * size:
            return False
        rest = np.sqrt(rest)
        for i in range(k):
            R[i, k] = h[i]
        R[k, k] = rest
        scale(d, 1.0 / rest)
    on[m] = sample
    return True


@jit
def leave(face, m, gone):
    """Remove one of the m samples of the face, and bring R back to a triangle by rotations.

    The last of the m - 1 rows of the basis then is the direction that has become free.
    """
    on, basis, R = face
    k = m - 1  # columns of R
    if gone == 0:  # the differences are now counted from the next sample, which changes the first row only
        for col in range(1, k):
            R[0, col] -= R[0, 0]
    first = max(gone - 1, 0)
    for i in range(k):
        for col in range(max(first, i - 1), k - 1):
            R[i, col] = R[i, col + 1]
    for col in range(first, k - 1):
        a, b = R[col, col], R[col + 1, col]
        size = np.sqrt(a * a + b * b)
        rotate(R[col], R[col + 1], col, a / size, b / size)
        rotate(basis[col], basis[col + 1], k - k, a / size, b / size)
    for i in range(gone, m - 1):
        on[i] = on[i + 1]


@jit
def rotate(one, two, start, cos, sin):
    """Rotate two vectors into each other, from this entry on."""
    for i in range(start, one.shape[0]):
        a, b = one[i], two[i]
        one[i], two[i] = cos * a + sin * b, cos * b - sin * a


@jit
def held_pulls(rest, balance, R, m, pulled):
    """Write the pulls p (m,) of the samples on the face: Σ p (x - x₀) has parts ``rest`` (m - 1,), and Σ p = -balance.

    Along the rows of the basis these are the parts of k̂J minus the pull of all other samples.
    """
    pulled[0] = -balance
    for i in range(m - 2, -1, -1):
        total = rest[i]
        for j in range(i + 1, m - 1):
            total -= R[i, j] * pulled[j + 1]
        pulled[i + 1] = total / R[i, i]
        pulled[0] -= pulled[i + 1]


@jit
def worst_of(pulled, pulls, on, m):
    """Return the index of the worst of m multipliers outside [0, 1], or -1, and whether it is above 1."""
    worst, out, above = -1, 0.5 + 1e-9, False
    for i in range(m):
        share = pulled[i] / pulls[on[i]]
        if abs(share - 0.5) > out:
            worst, out, above = i, abs(share - 0.5), share > 0.5
    return worst, above


@jit
def directions(vectors, basis, k):
    """Write the turn that lowers the loss most, and the parts of the pull along the face.

    The turn has the norm of the free part, and is orthogonal to it and to the first k rows of the basis. Returned are
    this norm, the multiplier of the weights, and the strength, which is the slope of the loss over the norm and
    vanishes at the best point of the face.
    """
    free, pull, turn = vectors.free, vectors.pull, vectors.turn
    square = dot(free, free)
    multiplier = dot(pull, free) / square if square > 0.0 else 0.0
    for j in range(turn.shape[0]):
        turn[j] = pull[j] - multiplier * free[j]
    project(turn, basis, k, vectors.parts)
    add(turn, -dot(turn, free) / square, free)
    strength = np.sqrt(dot(turn, turn))
    scale(turn, np.sqrt(square) / strength)
    return np.sqrt(square), multiplier, strength


@jit
def arc_scores(X, vectors, track):
    """Write the scores of the free part of the weights and of its turn."""
    free, turn, along, across = vectors.free, vectors.turn, track.along, track.across
    for i in range(X.shape[0]):
        row, one, two = X[i], 0.0, 0.0
        for j in range(row.shape[0]):
            one += row[j] * free[j]
            two += row[j] * turn[j]
        along[i], across[i] = one, two


@jit
def crossings(samples, track, b, lead, tie):
    """Write where each sample meets its margin on an arc, with bias b that the sample ``lead`` holds (-1: none does).

    These are the positive roots t of gap + along (cos θ - 1) + across sin θ = 0. A sample that stands on its margin, up
    to a tie, without being held there crosses at once where it moves to the other side. Returned are the two scores of
    the sample ``lead``.
    """
    y, kappa = samples.y, samples.kappa
    score, along, across, first, second, side, _ = track
    lead_along, lead_across = (along[lead], across[lead]) if lead >= 0 else (0.0, 0.0)
    for i in range(y.shape[0]):
        along[i] -= lead_along
        across[i] -= lead_across
        one = two = np.inf
        gap, turn = score[i] - b - y[i] * kappa[i], across[i]
        # (gap - 2 along) t² + 2 across t + gap = 0
        a = gap - 2.0 * along[i]
        disc = turn * turn - a * gap
        if side[i] == ON:
            pass
        elif abs(gap) <= tie:
            if (y[i] * turn > 0.0) == (side[i] == BELOW):
                one = 1e-16
            if a * turn < 0.0:
                two = -2.0 * turn / a
        elif disc > 0.0:
            w = -(turn + np.copysign(np.sqrt(disc), turn))
            if a * w > 0.0:
                one = w / a
            if gap * w > 0.0:
                two = gap / w
        first[i], second[i] = one, two
    return lead_along, lead_across


@jit
def sift(heap, i, n):
    """Move the i-th of n entries of a heap down to its place; the smallest of all comes first."""
    t, sample = heap.t[i], heap.sample[i]
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and heap.t[child + 1] < heap.t[child]:
            child += 1
        if heap.t[child] >= t:
            break
        heap.t[i], heap.sample[i] = heap.t[child], heap.sample[child]
        i = child
    heap.t[i], heap.sample[i] = t, sample


@jit
def gather(track, heap, low, cap):
    """Put the crossings beyond ``low`` and up to ``cap`` on the heap, and return their number."""
    n = 0
    for roots in (track.first, track.second):
        for i in range(roots.shape[0]):
            if low < roots[i] <= cap:
                heap.t[n], heap.sample[n] = roots[i], i
                n += 1
    for i in range(n // 2 - 1, -1, -1):
        sift(heap, i, n)
    return n


@jit
def first_stop(pulls, track, heap, cosine, sine, reach):
    """Return where the loss along the arc is least, and the sample whose kink it is (-1: it is smooth).

    The loss is const + cosine cos θ + sine sin θ until a sample crosses its margin. Samples that pass change sides.
    Crossings are gathered up to ``reach`` first, and further only where the loss still falls there.
    """
    lowest = -sine / (np.sqrt(sine * sine + cosine * cosine) - cosine)
    low, cap = 0.0, min(lowest, reach)
    for _ in range(WIDENINGS):
        for left in range(gather(track, heap, low, cap) - 1, -1, -1):
            t, sample = heap.t[0], heap.sample[0]
            if lowest <= t:
                return lowest, -1
            heap.t[0], heap.sample[0] = heap.t[left], heap.sample[left]
            sift(heap, left - left, left)
            below = track.side[sample] == BELOW
            change = -pulls[sample] if below else pulls[sample]
            cosine -= change * track.along[sample]
            sine -= change * track.across[sample]
            track.side[sample] = ABOVE if below else BELOW
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
