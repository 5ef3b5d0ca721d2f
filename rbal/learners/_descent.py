r"""Exact descent of the spherical perceptron, from face to face of its piecewise linear loss.

Hold the samples that lie on the margin there: then the loss is linear in the weights, the weights are confined to a
smaller sphere, and the best point of the face is found along one arc of it. A sample that meets its margin on the way
either passes or stays; at the best point the multipliers say which sample to let go. Every step lowers the loss.

On the face the weights split into a part that is fixed and a part that is free to turn. With samples
:math:`a_0, a_1, \dots` on the margin a move is orthogonal to the differences :math:`x_{a_j} - x_{a_0}`, and the bias
follows from :math:`a_0`; a QR factorisation of these differences is updated as samples come and go.
"""

from typing import NamedTuple

import numpy as np

from .._support import parallel
from .._support.gauss import jit

BELOW, ABOVE, ON = 1, 0, 2  # where a sample is: short of its margin, beyond it, held on it
TIE = 1e-13  # distance to the margin that is rounding, relative to the largest score
REFRESH = 64  # steps after which what is updated is computed anew
WIDENINGS = 400  # of the stretch of an arc that is looked at: eightfold each, from the smallest double to the largest


@jit
def orthogonal(v, basis, k):
    """v without its part along the first k rows of the basis, and that part's coefficients."""
    h = np.zeros(k)
    if k > 0:  # an empty product is not zero to BLAS, but whatever was in memory
        for _ in range(2):  # once more for the rounding
            part = basis[:k] @ v
            v = v - part @ basis[:k]
            h += part
    return v, h


@jit
def join(X, on, m, basis, R, sample):
    """Take one more sample onto the face; False where its difference lies in the span of the others."""
    if m == 0:
        on[0] = sample
        return True
    k = m - 1
    d = X[sample] - X[on[0]]
    size = np.sqrt(d @ d)
    d, h = orthogonal(d, basis, k)
    left = np.sqrt(d @ d)
    if not left > 1e-10 * size:
        return False
    R[:k, k] = h
    R[k, k] = left
    basis[k] = d / left
    on[m] = sample
    return True


@jit
def leave(on, m, basis, R, j):
    """Let the j-th sample of the face go, and bring R back to a triangle by rotations."""
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
def land(X, y, kappa, J, radius, on, m, basis, R):
    """Weights near J with the m samples of the face exactly on their margins, and whether the sphere has any."""
    k = m - 1
    z = np.zeros(k)
    for i in range(k):
        z[i] = y[on[i + 1]] * kappa[on[i + 1]] - y[on[0]] * kappa[on[0]]
        for j in range(i):
            z[i] -= R[j, i] * z[j]
        z[i] /= R[i, i]
    free, _ = orthogonal(J, basis, k)
    room, square = radius * radius - z @ z, free @ free
    if not (room > 0.0 and square > 1e-12 * radius * radius):  # less is rounding
        return J, False
    return z @ basis[:k] + np.sqrt(room / square) * free, True


@jit
def best_bias(scores, y, c, kappa, tie):
    """Bias of least loss for these scores, and the sample it puts on its margin (-1 where a whole range is best)."""
    kinks = scores - y * kappa  # a sample of class y passes its margin, and the slope grows by c, where b = score - yκ
    order = np.argsort(kinks)
    slope, total = 0.0, c.sum()
    for i in range(len(y)):
        if y[i] < 0:
            slope -= c[i]
    for at in range(len(order)):
        slope += c[order[at]]
        if slope >= -1e-12 * total:
            break
    if abs(slope) <= 1e-12 * total and at + 1 < len(order) and kinks[order[at + 1]] > kinks[order[at]] + tie:
        return 0.6 * kinks[order[at]] + 0.4 * kinks[order[at + 1]], -1  # the middle would invite ties
    return kinks[order[at]], order[at]


@jit
def crossings(gap, along, across, y, where, tie, first, second):
    """Positive roots t = tan(θ/2) of gap + along (cos θ - 1) + across sin θ = 0, at most two a sample.

    A sample that stands on its margin without being held there crosses at once where it moves to the other side.
    """
    for i in range(len(gap)):
        first[i] = second[i] = np.inf
        if where[i] == ON:
            continue
        # (gap - 2 along) t² + 2 across t + gap = 0
        a, b, g = gap[i] - 2.0 * along[i], across[i], gap[i]
        if abs(g) <= tie:
            if (y[i] * b > 0.0) == (where[i] == BELOW):
                first[i] = 1e-16
            if a * b < 0.0:
                second[i] = -2.0 * b / a
            continue
        disc = b * b - a * g
        if disc > 0.0:
            w = -(b + np.copysign(np.sqrt(disc), b))
            if a * w > 0.0:
                first[i] = w / a
            if g * w > 0.0:
                second[i] = g / w


@jit
def first_stop(y, c, where, along, across, first, second, cosine, sine, reach):
    """Where the loss along the arc is least, as tan(θ/2), and the sample whose kink it is (-1 where it is smooth).

    The loss is const + cosine cos θ + sine sin θ until a sample crosses its margin. Samples that pass change sides.
    """
    lowest = -sine / (np.hypot(sine, cosine) - cosine)
    low, cap = 0.0, min(lowest, reach)
    for _ in range(WIDENINGS):
        near = np.flatnonzero((first > low) & (first <= cap))
        nearer = np.flatnonzero((second > low) & (second <= cap))
        at = np.concatenate((first[near], second[nearer]))
        who = np.concatenate((near, nearer))
        for i in np.argsort(at):
            t, sample = at[i], who[i]
            if lowest <= t:
                return lowest, -1
            pull = c[sample] * y[sample]
            change = -pull if where[sample] == BELOW else pull
            cosine -= change * along[sample]
            sine -= change * across[sample]
            where[sample] = ABOVE if where[sample] == BELOW else BELOW
            cos, sin = (1.0 - t * t) / (1.0 + t * t), 2.0 * t / (1.0 + t * t)
            if sine * cos - cosine * sin >= 0.0:
                return t, sample
            room = np.hypot(sine, cosine) - cosine
            lowest = -sine / room if sine < 0.0 and room > 0.0 else np.inf
        if lowest <= cap:
            return lowest, -1
        if cap == np.inf:
            return np.inf, -1
        low, cap = cap, min(lowest, 8.0 * cap)
    return np.inf, -1


@jit
def directions(J, pull, basis, k):
    """The free part of the weights, its norm, their multiplier, and the way to turn it that lowers the loss most.

    The turn has the norm of the free part, and is orthogonal to it and to the first k rows of the basis. Its strength,
    the slope of the loss over the norm, vanishes at the best point of the face.
    """
    free, _ = orthogonal(J, basis, k)
    square = free @ free
    multiplier = (pull @ free) / square if square > 0.0 else 0.0
    turn, _ = orthogonal(pull - multiplier * free, basis, k)
    turn -= free * (turn @ free) / square
    strength = np.sqrt(turn @ turn)
    return free, np.sqrt(square), multiplier, turn * (np.sqrt(square) / strength), strength


@jit
def held_pulls(J, pull, balance, multiplier, basis, R, m):
    """Pulls p of the samples on the margin that balance the rest: k̂J - pull = Σ p (x - x₀), and all sum to zero."""
    pulled = np.zeros(m)
    _, rest = orthogonal(multiplier * J - pull, basis, m - 1)
    for i in range(m - 2, -1, -1):
        pulled[i + 1] = rest[i]
        for j in range(i + 1, m - 1):
            pulled[i + 1] -= R[i, j] * pulled[j + 1]
        pulled[i + 1] /= R[i, i]
    pulled[0] = -balance - pulled.sum()
    return pulled


@jit
def worst_of(pulled, pulls, on):
    """Index of the worst multiplier outside [0, 1], or -1, and whether it is above 1."""
    worst, out = -1, 0.5 + 1e-9
    for i in range(len(pulled)):
        excess = abs(pulled[i] / pulls[on[i]] - 0.5)
        if excess > out:
            worst, out = i, excess
    return worst, worst >= 0 and pulled[worst] / pulls[on[worst]] > 0.5


class State(NamedTuple):
    """Where the descent stands; it changes in place."""

    J: np.ndarray  # (D,) weights
    basis: np.ndarray  # (D, D) orthonormal rows, and R with them, of the differences between the samples on the face
    R: np.ndarray
    on: np.ndarray  # samples on the face
    where: np.ndarray  # (n,) BELOW, ABOVE or ON
    scores: np.ndarray  # (n,)
    force: np.ndarray  # (D,) pull of the samples below
    pulled: np.ndarray  # pulls of the samples on the face, as they were last asked for
    numbers: np.ndarray  # bias, summed pull of the samples below, what is a tie, multiplier, reach of an arc, radius
    counts: np.ndarray  # samples on the face, now and when their pulls were asked for; steps; whether sums are fresh


HELD, ASKED, STEPS, FRESH = range(4)


def descend(X, y, c, kappa, J, b, start, max_iter):
    """Weights, bias, multiplier, shares of the samples in the pull, how many are held on the margin, and steps.

    From a point on the sphere it first moves to where the samples in ``start`` lie on their margins, as many of the
    first of them as the sphere bears. It stops where no sample wants to leave the face.
    """
    state = begin(X, y, kappa, J, b, start)
    for _, stop in parallel.pieces(max_iter):
        if advance(X, y, c, kappa, state, stop):
            break
    share = np.where(state.where == BELOW, 1.0, 0.0)
    m, n_iter = int(state.counts[HELD]), int(state.counts[STEPS])
    known = state.on[: min(m, state.counts[ASKED])]
    share[known] = state.pulled[: len(known)] / (c * y)[known]
    return state.J, state.numbers[0], state.numbers[3], share, m, n_iter


@jit
def begin(X, y, kappa, J, b, start):
    """The state at a point of the sphere near J, with samples of ``start`` on their margins."""
    n, D = X.shape
    radius = np.sqrt(J @ J)
    basis, R = np.zeros((D, D)), np.zeros((D, D))
    on, m = np.zeros(D + 1, np.int64), 0
    for sample in start:
        if m < D and join(X, on, m, basis, R, sample):
            m += 1
    landed = False
    while m > 1 and not landed:
        J, landed = land(X, y, kappa, J, radius, on, m, basis, R)
        if not landed:
            m //= 2
    if landed:
        b = X[on[0]] @ J - y[on[0]] * kappa[on[0]]
    else:
        m = 0
    numbers, counts = np.array([b, 0.0, 0.0, 0.0, 1e-2, radius]), np.array([m, m, 0, 0])
    return State(
        J.copy(), basis, R, on, np.zeros(n, np.int8), np.empty(n), np.zeros(D), np.zeros(D + 1), numbers, counts
    )


@jit
def advance(X, y, c, kappa, state, max_iter):
    """Descend until no sample wants to leave the face, or that many steps are made in all; True where it is done."""
    n, D = X.shape
    basis, R, on, where, numbers, counts = state.basis, state.R, state.on, state.where, state.numbers, state.counts
    J, scores, force = state.J, state.scores, state.force
    b, balance, tie, multiplier, reach, radius = numbers
    m, n_iter, fresh, done = counts[HELD], counts[STEPS], counts[FRESH] > 0, False
    norm, pulls = np.sqrt(c @ c), c * y
    first, second = np.empty(n), np.empty(n)
    while n_iter < max_iter:
        n_iter += 1
        if not fresh or n_iter % REFRESH == 0:
            scores = X @ J
            tie = TIE * (np.abs(scores).max() + kappa[0])
            if m == 0:
                b, sample = best_bias(scores, y, c, kappa, tie)
                m = 1 if sample >= 0 and join(X, on, 0, basis, R, sample) else 0
                fresh = False
            if not fresh:
                where[:] = np.where(y * (scores - b) < kappa, BELOW, ABOVE)
                where[on[:m]] = ON
            below_pulls = np.where(where == BELOW, pulls, 0.0)
            force, balance, fresh = below_pulls @ X, below_pulls.sum(), True
        anchor = X[on[0]] if m > 0 else np.zeros(D)
        pull = force - balance * anchor
        free, size, multiplier, turn, strength = directions(J, pull, basis, max(m - 1, 0))
        if m < D and size > 1e-9 * radius and strength > 1e-11 * norm:
            along, across = X @ free - anchor @ free, X @ turn - anchor @ turn
            crossings(scores - b - y * kappa, along, across, y, where, tie, first, second)
            before = where.copy()
            cosine, sine = -multiplier * size * size, -strength * size
            t, sample = first_stop(y, c, where, along, across, first, second, cosine, sine, reach)
            reach = 4.0 * t if t < 1e6 else 1e-2
            cos, sin = (2.0 / (1.0 + t * t) - 1.0, 2.0 * t / (1.0 + t * t)) if t < np.inf else (-1.0, 0.0)
            J = J + (cos - 1.0) * free + sin * turn
            J *= radius / np.sqrt(J @ J) if m == 0 else 1.0
            b = anchor @ J - y[on[0]] * kappa[on[0]] if m > 0 else b
            scores += (cos - 1.0) * (along + anchor @ free) + sin * (across + anchor @ turn)
            passed = np.flatnonzero(where != before)
            for i in passed:
                change = pulls[i] if where[i] == BELOW else -pulls[i]
                force += change * X[i]
                balance += change
            if sample >= 0 and join(X, on, m, basis, R, sample):
                m += 1
                if where[sample] == BELOW:
                    force -= pulls[sample] * X[sample]
                    balance -= pulls[sample]
                where[sample] = ON
            # the pull has changed, or a bias that no sample holds: look again for the best point of the face
            if len(passed) > 0 or (m == 0 and abs(balance) > 1e-12 * norm):
                fresh = m > 0
                continue
            pull = force - balance * anchor
            free, _ = orthogonal(J, basis, max(m - 1, 0))
            multiplier = (pull @ free) / (free @ free)
        if m == 0:
            done = True
            break
        pulled = held_pulls(J, pull, balance, multiplier, basis, R, m)
        worst, below = worst_of(pulled, pulls, on)
        counts[ASKED] = m
        state.pulled[:m] = pulled
        if worst < 0:
            done = True
            break
        sample = on[worst]
        leave(on, m, basis, R, worst)
        m -= 1
        fresh = m > 0
        where[sample] = BELOW if below else ABOVE
        if below:
            force += pulls[sample] * X[sample]
            balance += pulls[sample]
    state.J[:], state.scores[:], state.force[:] = J, scores, force
    numbers[:] = b, balance, tie, multiplier, reach, radius
    counts[HELD], counts[STEPS], counts[FRESH] = m, n_iter, fresh
    return done
