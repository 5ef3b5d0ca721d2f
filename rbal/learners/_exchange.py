"""Exact solution of a convex problem from a good guess: all samples that are on the wrong side change it at once.

Hold the samples that are thought to lie on their margins. On their face the best point, with a positive multiplier, is
known in closed form. There some of them pull the wrong way, or with more than their weight, and some of the others are on the other
side of their margins. All of these change places, as in Newton's method for equations with kinks, and a few rounds lead to the
minimum from a guess that is close to it; or they do not, and say so.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from ._faces import DEPENDENT, length

ROUNDS = 12
WORSE = 2  # rounds in which the number of samples on wrong sides may fail to fall
OUTSIDE = 1e-9  # share of its weight by which a sample may pull too much, or the wrong way
TIE = 1e-13  # distance to the margin that is rounding, relative to the largest score


class Point(NamedTuple):
    """The best point of a face."""

    J: np.ndarray  # (D,)
    b: float
    multiplier: float
    pulled: np.ndarray  # (m,) pulls of the samples on the face
    gap: np.ndarray  # (n,) by how much samples are beyond their margins


def best_of_face(samples, on, force, balance, radius):
    """Return the best point of the face that holds the samples ``on`` (m,), or None where there is none.

    The samples below their margins have the pull ``force`` (D,), which sums up to ``balance``.
    """
    X, y, _, kappa = samples
    k, D = len(on) - 1, X.shape[1]
    if not 0 < k < D - 1:
        return None
    differences = X[on[1:]] - X[on[0]]
    sizes = np.sqrt(np.einsum("ij,ij->i", differences, differences))
    factor, tau, _, _ = lapack.dgeqrf(differences.T, overwrite_a=True)
    if not (np.abs(factor.diagonal()) > DEPENDENT * sizes).all():
        return None
    at = y[on] * kappa[on]
    z = lapack.dtrtrs(factor[:k], at[1:] - at[0], trans=1)[0]
    parts = reflected("T", factor, tau, force - balance * X[on[0]])
    room, size = radius * radius - z @ z, length(parts[k:])
    if not (room > 1e-12 * radius * radius and size > 1e-12 * length(parts)):
        return None
    multiplier = size / math.sqrt(room)
    rest = lapack.dtrtrs(factor[:k], multiplier * z - parts[:k])[0]
    J = reflected("N", factor, tau, np.append(z, parts[k:] / multiplier))
    b = X[on[0]] @ J - at[0]
    return Point(J, b, multiplier, np.append(-balance - rest.sum(), rest), y * (X @ J - b) - kappa)


def reflected(way, factor, tau, v):
    """Return Q v or, transposed, Qᵀ v (D,) for the factor Q of a QR factorisation, which stays a product."""
    return lapack.dormqr("L", way, factor, tau, v[:, None], lwork=64 * 65)[0][:, 0]


def exchange(samples, radius, J, b, on):
    """Return the minimum near weights J (D,) and bias b with samples ``on`` on their margins, or None.

    Returns
    -------
    J : (D,) array
    b, multiplier : float
    share : (n,) array
        What part of its weight each sample pulls with.
    held, n_iter : int
        Samples on their margins, and rounds.
    """
    X, y, pulls, kappa = samples
    below, held = y * (X @ J - b) < kappa, np.zeros(len(y), bool)
    held[on] = True
    below[on] = False
    full = np.where(below, pulls, 0.0)
    force, fewest, worse = full @ X, len(y), 0
    for n_iter in range(1, ROUNDS + 1):
        on = np.flatnonzero(held)
        point = best_of_face(samples, on, force, full.sum(), radius)
        if point is None:
            return None
        share, tie = point.pulled / pulls[on], TIE * (radius + kappa[0])
        wrong = np.where(below, point.gap > tie, point.gap < -tie) & ~held
        off = np.abs(share - 0.5) > 0.5 + OUTSIDE
        count = np.count_nonzero(wrong) + np.count_nonzero(off)
        if count == 0:
            part = below.astype(float)
            part[on] = share
            return point.J, point.b, point.multiplier, part, len(on), n_iter
        worse = 0 if count < fewest else worse + 1
        fewest = min(count, fewest)
        if worse > WORSE:
            return None
        below &= ~wrong
        held |= wrong
        held[on[off]] = False
        below[on[off]] = share[off] > 0.5
        changed = np.flatnonzero(below != (full != 0.0))
        before = full[changed]
        full[changed] = np.where(below[changed], pulls[changed], 0.0)
        force = force + (full[changed] - before) @ X[changed]
    return None
