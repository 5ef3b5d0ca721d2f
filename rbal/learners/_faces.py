r"""A face of the perceptron's loss: samples held on their margins, and what weights and multipliers follow from them.

On the face the weights split into a part that is fixed and a part that is free to turn. With samples
:math:`a_0, a_1, \dots` on the margin a move is orthogonal to the differences :math:`x_{a_j} - x_{a_0}`, and the bias
follows from :math:`a_0`; a QR factorisation of these differences is updated as samples come and go.
"""

from typing import NamedTuple

import numpy as np

from .._support.gauss import jit


class Samples(NamedTuple):
    """Training samples, as the compiled functions take them."""

    X: np.ndarray  # (n, D)
    y: np.ndarray  # (n,) labels ±1
    pulls: np.ndarray  # (n,) label times weight: the pull of a sample below its margin
    kappa: np.ndarray  # (n,) margins


class Face(NamedTuple):
    """Samples held on their margins, and the QR factorisation of their differences; both change in place."""

    on: np.ndarray  # (D + 1,) indices of the samples, the first m of which count
    basis: np.ndarray  # (D, D) orthonormal rows
    R: np.ndarray  # (D, D) upper triangle


@jit
def orthogonal(v, basis, k):
    """Split v (D,) into what is orthogonal to the first k rows of the basis and its k coefficients along them."""
    h = np.zeros(k)
    if k > 0:  # an empty product is not zero to BLAS, but whatever was in memory
        for _ in range(2):  # once more for the rounding
            part = basis[:k] @ v
            v = v - part @ basis[:k]
            h += part
    return v, h


@jit
def join(X, face, m, sample):
    """Add a sample to the m of the face; return False where its difference lies in the span of the others."""
    if m == 0:
        face.on[0] = sample
        return True
    k = m - 1
    d = X[sample] - X[face.on[0]]
    size = np.sqrt(d @ d)
    d, h = orthogonal(d, face.basis, k)
    left = np.sqrt(d @ d)
    if not left > 1e-10 * size:
        return False
    face.R[:k, k] = h
    face.R[k, k] = left
    face.basis[k] = d / left
    face.on[m] = sample
    return True


@jit
def leave(face, m, j):
    """Remove the j-th of the m samples of the face, and bring R back to a triangle by rotations."""
    on, basis, R = face
    k = m - 1  # columns of R
    if k > 0:
        if j == 0:  # the differences are now counted from the next sample, which changes the first row only
            R[0, 1:k] -= R[0, 0]
        first = max(j - 1, 0)
        for col in range(first, k - 1):
            R[: col + 2, col] = R[: col + 2, col + 1]
            a, b = R[col, col], R[col + 1, col]
            size = np.hypot(a, b)
            cos, sin = a / size, b / size
            R[col, col], R[col + 1, col] = size, 0.0
            for other in range(col + 2, k):
                a, b = R[col, other], R[col + 1, other]
                R[col, other], R[col + 1, other] = cos * a + sin * b, cos * b - sin * a
            for i in range(basis.shape[1]):
                a, b = basis[col, i], basis[col + 1, i]
                basis[col, i], basis[col + 1, i] = cos * a + sin * b, cos * b - sin * a
    for i in range(j, m - 1):
        on[i] = on[i + 1]


@jit
def land(samples, face, m, J, radius):
    """Return weights (D,) near J that put the m samples of the face on their margins, and whether there are any."""
    k, lead = m - 1, face.on[0]
    z = np.zeros(k)
    for i in range(k):
        held = face.on[i + 1]
        z[i] = samples.y[held] * samples.kappa[held] - samples.y[lead] * samples.kappa[lead]
        for j in range(i):
            z[i] -= face.R[j, i] * z[j]
        z[i] /= face.R[i, i]
    free, _ = orthogonal(J, face.basis, k)
    room, square = radius * radius - z @ z, free @ free
    if not (room > 0.0 and square > 1e-12 * radius * radius):  # less is rounding
        return J, False
    return z @ face.basis[:k] + np.sqrt(room / square) * free, True


@jit
def directions(J, pull, basis, k):
    """Return the free part of the weights J (D,), its norm, their multiplier, and the turn that lowers the loss most.

    The turn has the norm of the free part, and is orthogonal to it and to the first k rows of the basis. Its strength,
    the slope of the loss over the norm, is returned last and vanishes at the best point of the face.
    """
    free, _ = orthogonal(J, basis, k)
    square = free @ free
    multiplier = (pull @ free) / square if square > 0.0 else 0.0
    turn, _ = orthogonal(pull - multiplier * free, basis, k)
    turn -= free * (turn @ free) / square
    strength = np.sqrt(turn @ turn)
    return free, np.sqrt(square), multiplier, turn * (np.sqrt(square) / strength), strength


@jit
def held_pulls(J, pull, balance, multiplier, face, m):
    """Return the pulls p (m,) of the samples on the face: k̂J - pull = Σ p (x - x₀), and balance + Σ p = 0."""
    pulled = np.zeros(m)
    _, rest = orthogonal(multiplier * J - pull, face.basis, m - 1)
    for i in range(m - 2, -1, -1):
        pulled[i + 1] = rest[i]
        for j in range(i + 1, m - 1):
            pulled[i + 1] -= face.R[i, j] * pulled[j + 1]
        pulled[i + 1] /= face.R[i, i]
    pulled[0] = -balance - pulled.sum()
    return pulled


@jit
def worst_of(pulled, pulls, on):
    """Return the index of the worst multiplier outside [0, 1], or -1, and whether it is above 1."""
    worst, out = -1, 0.5 + 1e-9
    for i in range(len(pulled)):
        excess = abs(pulled[i] / pulls[on[i]] - 0.5)
        if excess > out:
            worst, out = i, excess
    return worst, worst >= 0 and pulled[worst] / pulls[on[worst]] > 0.5
