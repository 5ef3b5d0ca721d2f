r"""A face of the perceptron's loss: samples held on their margins, and what weights and multipliers follow from them.

On the face the weights split into a part that is fixed and a part that is free to turn. With samples
:math:`a_0, a_1, \dots` on the margin a move is orthogonal to the differences :math:`x_{a_j} - x_{a_0}`, and the bias
follows from :math:`a_0`; a QR factorisation of these differences is updated as samples come and go.

What is compiled takes few arrays and spells out its loops, and most of it cannot be called from Python: all this
compiles in a fraction of the time.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from .._support.jit import compiled

# Sums may be reordered so that they vectorise.
jit = compiled(fastmath={"reassoc", "contract"})

DEPENDENT = 1e-10  # part of a difference that is left outside the span of the others: less is rounding
LOST = 0.01  # part of a squared norm below which a projection is made once more for the rounding


class Samples(NamedTuple):
    """Training samples."""

    X: np.ndarray  # (n, D)
    y: np.ndarray  # (n,) labels ±1
    pulls: np.ndarray  # (n,) label times weight: the pull of a sample below its margin
    kappa: np.ndarray  # (n,) margins


class Face(NamedTuple):
    """Samples held on their margins, and the QR factorisation of their differences; both change in place."""

    on: np.ndarray  # (D + 1,) indices of the samples, the first m of which count
    basis: np.ndarray  # (D, D) orthonormal rows, m - 1 of which count
    R: np.ndarray  # (D, D) upper triangle


def empty_face(D):
    """Return a face that holds no sample, for D weights."""
    return Face(np.zeros(D + 1, np.int64), np.zeros((D, D)), np.zeros((D, D)))


def hold(X, face, samples):
    """Put samples on an empty face, but for those whose difference lies in the span of others; return how many.

    LAPACK factorises them at once: to add one after the other would take most of the time of a large problem.
    """
    samples = np.asarray(samples, np.int64)[: X.shape[1]]
    while len(samples) > 1:
        differences = X[samples[1:]] - X[samples[0]]
        Q, R = np.linalg.qr(differences.T)
        k = len(R)
        apart = np.abs(np.diag(R)) > DEPENDENT * np.linalg.norm(differences, axis=1)[:k]
        if apart.all():
            face.basis[:k], face.R[:k, :k] = Q.T, R
            break
        samples = samples[: k + 1][np.append(True, apart)]
    face.on[: len(samples)] = samples
    return len(samples)


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
    """Take off v (D,), in place, its parts along the first k rows of the basis, and write their sizes to h (k,)."""
    before = left = dot(v, v)
    for i in range(k):
        h[i] = 0.0
    for _ in range(2):
        for i in range(k):
            part = dot(basis[i], v)
            h[i] += part
            add(v, -part, basis[i])
        left = dot(v, v)
        if left > LOST * before:
            break
    return left


@jit
def join(X, on, basis, R, m, sample):
    """Add a sample to the m of the face; return False where its difference lies in the span of the others."""
    if m > 0:
        k = m - 1
        d, h = basis[k], np.empty(k)
        for j in range(d.shape[0]):
            d[j] = X[sample, j] - X[on[0], j]
        size = dot(d, d)
        left = project(d, basis, k, h)
        if not left > DEPENDENT**2 * size:
            return False
        left = np.sqrt(left)
        for i in range(k):
            R[i, k] = h[i]
        R[k, k] = left
        scale(d, 1.0 / left)
    on[m] = sample
    return True


@jit
def leave(on, basis, R, m, gone):
    """Remove one of the m samples of the face, and bring R back to a triangle by rotations.

    The last of the m - 1 rows of the basis then is the direction that has become free.
    """
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

    Along the rows of the basis these are the parts of k̂J less the pull of all other samples.
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
