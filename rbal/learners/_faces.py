r"""A face of the perceptron's loss: samples held on their margins, and what weights and multipliers follow from them.

On the face the weights split into a part that is fixed and a part that is free to turn. With samples
:math:`a_0, a_1, \dots` on the margin a move is orthogonal to the differences :math:`x_{a_j} - x_{a_0}`, and the bias
follows from :math:`a_0`; a QR factorisation of these differences is updated as samples come and go. Its orthonormal
basis is a complete one for few weights, and for faces that hold many samples: then few rows of it are free, and what is
projected onto them costs little.

What is compiled takes few arrays and spells out its loops, and most of it cannot be called from Python: all this
compiles in a fraction of the time. Samples, basis, triangle and vectors are rows of one array, told by their number, so
that no function takes a part of an array.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from .._support.jit import compiled

# Sums may be reordered so that they vectorise.
jit = compiled(fastmath={"reassoc", "contract"}, _nrt=False)

DEPENDENT = 1e-10  # part of a difference that is left outside the span of the others: less is rounding
LOST = 0.01  # part of a squared norm below which a projection is made once more for the rounding
SMALL = 200  # weights up to which the basis is always complete
MANY = 0.8  # samples on the face, for each weight, from which on it is
WIDE = 16  # rows are as long as a multiple of it, with zeros at the end: loops over them then have no remainder

# Vectors: weights; their part that is free to turn; where it turns to; pull of the samples below, and that with the
# bias held; pulls of the samples on the face but for the first, as they were last asked for; and room for parts along
# the rows of the basis
WEIGHTS, FREE, TURN, FORCE, PULL, PULLED, PARTS = range(7)


class Samples(NamedTuple):
    """Training samples."""

    X: np.ndarray  # (n, D)
    y: np.ndarray  # (n,) labels ±1
    pulls: np.ndarray  # (n,) label times weight: the pull of a sample below its margin
    kappa: np.ndarray  # (n,) margins


class Face(NamedTuple):
    """Samples held on their margins, the QR factorisation of their differences, and vectors; all change in place."""

    on: np.ndarray  # (D + 1,) indices of the samples, the first m of which count
    rows: np.ndarray  # (2D + 7, W): rows of the basis, of the triangle, and vectors, with zeros after D entries

    @property
    def basis(self):
        """Orthonormal rows (D, D), the first m - 1 of which span the differences."""
        D = len(self.on) - 1
        return self.rows[:D, :D]

    @property
    def R(self):
        """Upper triangle (D, D), m - 1 rows and columns of which count."""
        D = len(self.on) - 1
        return self.rows[D : 2 * D, :D]

    @property
    def vectors(self):
        """The vectors (7, D)."""
        D = len(self.on) - 1
        return self.rows[2 * D :, :D]


def empty_face(D):
    """Return a face that holds no sample, for D weights."""
    face = Face(np.zeros(D + 1, np.int64), np.zeros((2 * D + 7, -(-D // WIDE) * WIDE)))
    face.basis.flat[:: D + 1] = 1.0
    return face


def stacked(X, face):
    """Return samples (n, D) and the rows of a face in one array (n + 2D + 7, W)."""
    rows = np.zeros((len(X) + len(face.rows), face.rows.shape[1]))
    rows[: len(X), : X.shape[1]] = X
    rows[len(X) :] = face.rows
    return rows


def hold(X, face, samples):
    """Put samples on an empty face, but for those whose difference lies in the span of others.

    Returned are how many there are, and whether the basis is complete. LAPACK factorises them at once: to add one after
    the other would take most of the time of a large problem.
    """
    D = X.shape[1]
    samples, full = np.asarray(samples, np.int64)[:D], D < SMALL
    while len(samples) > 1:
        differences = X[samples[1:]] - X[samples[0]]
        k = len(differences)
        full = D < SMALL or k > MANY * D
        Q, R = np.linalg.qr(differences.T, mode="complete" if full else "reduced")
        apart = np.abs(np.diag(R)) > DEPENDENT * np.linalg.norm(differences, axis=1)
        if apart.all():
            face.basis[: Q.shape[1]], face.R[:k, :k] = Q.T, R[:k]
            break
        samples = samples[np.append(True, apart)]
    face.on[: len(samples)] = samples
    return len(samples), full


def land(samples, face, m, J, radius):
    """Return weights (D,) near J that put the m samples of the face on their margins, or None."""
    k, on = m - 1, face.on[:m]
    at = samples.y[on] * samples.kappa[on]
    z = lapack.dtrtrs(face.R[:k, :k].T, at[1:] - at[0], lower=True)[0]
    free = free_part(J, face.basis[:k])
    room, square = radius * radius - z @ z, free @ free
    if not (room > 0.0 and square > 1e-12 * radius * radius):  # less is rounding
        return None
    return z @ face.basis[:k] + np.sqrt(room / square) * free


def length(v):
    """Return the norm of a vector; numpy's own takes longer to find out what it was given."""
    return math.sqrt(v @ v)


def free_part(J, basis):
    """Return the part of weights J (D,) that is orthogonal to the rows of a basis (k, D)."""
    for _ in range(2):  # once more for the rounding
        J = J - (basis @ J) @ basis
    return J


@jit
def dot(rows, a, b):
    """Return the product of two rows."""
    total = 0.0
    for j in range(rows.shape[1]):
        total += rows[a, j] * rows[b, j]
    return total


@jit
def add(rows, out, scale, v):
    """Add a multiple of a row to another one."""
    for j in range(rows.shape[1]):
        rows[out, j] += scale * rows[v, j]


@jit
def rotate(rows, one, cos, sin):
    """Rotate a row and the next one into each other."""
    two = one + 1
    for j in range(rows.shape[1]):
        a, b = rows[one, j], rows[two, j]
        rows[one, j], rows[two, j] = cos * a + sin * b, cos * b - sin * a


@jit
def join(rows, on, n, m, sample, full):
    """Add one of n samples to the m of the face; return False where its difference lies in the span of the others."""
    if m > 0:
        D, k = on.shape[0] - 1, m - 1
        d, parts = n + 2 * D + TURN, n + 2 * D + PARTS
        for j in range(rows.shape[1]):
            rows[d, j], rows[parts, j] = rows[sample, j] - rows[on[0], j], 0.0
        size = dot(rows, d, d)
        for _ in range(1 if full else 2):
            for i in range(D if full else k):
                part = dot(rows, n + i, d)
                rows[parts, i] += part
                if not full:
                    add(rows, d, -part, n + i)
            if dot(rows, d, d) > LOST * size:
                break
        left = 0.0 if full else dot(rows, d, d)
        for i in range(k, D):  # nothing yet where the basis is not complete
            left += rows[parts, i] * rows[parts, i]
        if not left > DEPENDENT**2 * size:
            return False
        if full:
            turn_free(rows, n, k, D, parts)
        else:
            rows[parts, k] = math.sqrt(left)
            for j in range(rows.shape[1]):
                rows[n + k, j] = rows[d, j] / rows[parts, k]
        for i in range(m):
            rows[n + D + i, k] = rows[parts, i]
    on[m] = sample
    return True


@jit
def turn_free(rows, n, k, D, parts):
    """Turn the free rows of a basis, until the first of them has all of a vector with these parts along the rows."""
    for i in range(D - 2, k - 1, -1):
        a, b = rows[parts, i], rows[parts, i + 1]
        if b != 0.0:
            size = math.sqrt(a * a + b * b)
            rotate(rows, n + i, a / size, b / size)
            rows[parts, i] = size


@jit
def leave(rows, on, n, m, gone):
    """Remove one of the m samples of the face, and bring R back to a triangle by rotations.

    Row m - 2 of the basis then is the direction that has become free.
    """
    k, basis, R = m - 1, n, n + on.shape[0] - 1  # columns of R, and where rows begin
    if gone == 0:  # the differences are now counted from the next sample, which changes the first row only
        for col in range(1, k):
            rows[R, col] -= rows[R, 0]
    first = gone - 1 if gone > 0 else gone
    for i in range(k):
        for col in range(first, k - 1):  # what comes below the diagonal this way is never read
            rows[R + i, col] = rows[R + i, col + 1]
    for col in range(first, k - 1):
        a, b = rows[R + col, col], rows[R + col + 1, col]
        size = math.sqrt(a * a + b * b)
        rotate(rows, R + col, a / size, b / size)
        rotate(rows, basis + col, a / size, b / size)
    for i in range(gone, m - 1):
        on[i] = on[i + 1]
