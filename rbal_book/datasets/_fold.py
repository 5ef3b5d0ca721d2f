"""Sequences on lattice structures: Boltzmann sums and Markov chains over sequences, compiled.

Everything works with products of the factors ``X[a, b] = exp(-E(a, b))`` of contacts, so that no exponential is taken
in a loop. Partners of a monomer are summed by *pattern*: the monomers it touches in a structure. A monomer of the 3×3×3
cube has a few hundred patterns over ten thousand structures; one pass over the structures then serves all letters of
the alphabet at once.
"""

import math
from typing import NamedTuple

import numpy as np

from rbal._support.jit import compiled

# Without the GIL, chains run in threads of one process and share the tables.
jit = compiled(nogil=True)

MAX_PARTNERS = 5  # a chain end in the middle of the cube: six neighbours, one of them bonded
N_EXCHANGES = 4  # in a sweep


class Tables(NamedTuple):
    """Contacts of R structures of N monomers, P pairs of which touch somewhere."""

    pairs: np.ndarray  # (P, 2) all pairs of monomers i < j that touch in some structure
    contacts: np.ndarray  # (R, C) the pairs of each structure
    pattern: np.ndarray  # (N, R) which pattern monomer i has in structure s
    partners: np.ndarray  # (N, K, MAX_PARTNERS) monomers of each pattern, padded with -1
    n_patterns: np.ndarray  # (N,) how many patterns monomer i has


class Target(NamedTuple):
    """The distribution p_int^χ on pairs of sequences with p_nat > p_min."""

    X: np.ndarray  # (Q, Q) exp(-E)
    natives: np.ndarray  # (2,) structures of the two sequences
    docks: np.ndarray  # (orientations, contacts, 2) monomers of the first and of the second that touch
    touch: np.ndarray  # (2, N, orientations) partner of a monomer across the interface, or -1
    chi: float
    p_min: float
    swap: np.ndarray  # (Q,) an involution of the letters
    swapping: bool  # whether it is more than the identity


class Pair(NamedTuple):
    """Two sequences, and the weights that follow from them; all change in place."""

    V: np.ndarray  # (2, N) letters
    w: np.ndarray  # (2, R) of each structure for either sequence, 1 for its native one
    b: np.ndarray  # (orientations,) of each orientation


def tables(contacts):
    """Make the tables of an (R, C, 2) array of contacts."""
    R, i, j = len(contacts), contacts[..., 0].astype(np.int64), contacts[..., 1].astype(np.int64)
    N = int(j.max()) + 1
    keys, inverse = np.unique(i * N + j, return_inverse=True)
    touching = np.zeros((N, R), np.int64)  # bit j of entry [i, s]: i touches j in s
    s = np.broadcast_to(np.arange(R)[:, None], i.shape)
    np.bitwise_or.at(touching, (i, s), 1 << j)
    np.bitwise_or.at(touching, (j, s), 1 << i)
    found = [np.unique(row, return_inverse=True) for row in touching]
    n_patterns = np.array([len(masks) for masks, _ in found])
    partners = np.full((N, n_patterns.max(), MAX_PARTNERS), -1, np.int8)
    for monomer, (masks, _) in enumerate(found):
        for k, mask in enumerate(masks):
            members = [m for m in range(N) if mask >> m & 1]
            partners[monomer, k, : len(members)] = members
    return Tables(
        np.stack([keys // N, keys % N], axis=1).astype(np.int8),
        inverse.reshape(i.shape).astype(np.int16),
        np.array([index for _, index in found]).astype(np.int16),
        partners,
        n_patterns,
    )


def interface(docks, n_monomers):
    """Return the partner (2, N, orientations) of each monomer across the interface, or -1."""
    touch = np.full((2, n_monomers, len(docks)), -1, np.int8)
    orientation = np.arange(len(docks))[:, None]
    touch[0, docks[..., 0], orientation] = docks[..., 1]
    touch[1, docks[..., 1], orientation] = docks[..., 0]
    return touch


@jit
def energies(v, E, pairs, contacts, out):
    """Write to out (R,) the energy E(v|S) of one sequence (N,) in every structure."""
    e = np.empty(pairs.shape[0])
    for p in range(e.size):
        e[p] = E[v[pairs[p, 0]], v[pairs[p, 1]]]
    for s in range(out.size):
        total = 0.0
        for c in range(contacts.shape[1]):
            total += e[contacts[s, c]]
        out[s] = total


@jit
def log_p(V, E, pairs, contacts, native):
    """Return log p_nat of sequences V (n, N), by a log-sum-exp."""
    out, e = np.empty(V.shape[0]), np.empty(contacts.shape[0])
    for n in range(V.shape[0]):
        energies(V[n], E, pairs, contacts, e)
        least, total = e.min(), 0.0
        for s in range(e.size):
            total += math.exp(least - e[s])
        out[n] = least - e[native] - math.log(total)
    return out


@jit
def relative_weights(v, X, pairs, contacts, native, limit, w):
    """Fill w (R,) with exp(E(v|native) - E(v|S)); return Σw = 1/p_nat, or infinity once it is above the limit."""
    x = np.empty(pairs.shape[0])
    for p in range(x.size):
        x[p] = X[v[pairs[p, 0]], v[pairs[p, 1]]]
    norm, total = 1.0, 0.0
    for c in range(contacts.shape[1]):
        norm /= x[contacts[native, c]]
    for s in range(w.size):
        f = norm
        for c in range(contacts.shape[1]):
            f *= x[contacts[s, c]]
        w[s] = f
        total += f
        if total > limit:
            return math.inf
    return total


@jit
def factor(k, a, a0, v, X, partners):
    """Return the factor by which a weight with pattern k changes when the letter a0 becomes a."""
    f = 1.0
    for m in range(MAX_PARTNERS):
        j = partners[k, m]
        if j < 0:
            break
        f *= X[v[j], a] / X[v[j], a0]
    return f


@jit
def fold_probabilities(i, v, X, w, native, tables, p):
    """Write to p (Q,) the p_nat of each letter at monomer i, given the rest of the sequence v and its weights w."""
    pattern, partners, n_patterns = tables.pattern[i], tables.partners[i], tables.n_patterns[i]
    sums, row, a0 = np.zeros(n_patterns), np.empty(p.size), v[i]
    for s in range(w.size):
        sums[pattern[s]] += w[s]
    p[:] = 0.0
    for k in range(n_patterns):
        row[:] = sums[k]
        for m in range(MAX_PARTNERS):
            j = partners[k, m]
            if j < 0:
                break
            x = X[v[j]]
            f = 1.0 / x[a0]
            for a in range(p.size):  # letters inside: the loop that vectorises
                row[a] *= f * x[a]
        for a in range(p.size):
            p[a] += row[a]
    for a in range(p.size):
        p[a] = factor(pattern[native], a, a0, v, X, partners) / p[a]


@jit
def mutate(i, a, v, X, w, native, tables):
    """Put letter a at monomer i, and change the weights w (R,) accordingly; that of the native structure stays 1."""
    pattern, partners, n_patterns = tables.pattern[i], tables.partners[i], tables.n_patterns[i]
    ratio, change = np.empty(v.size), np.empty(n_patterns)
    for j in range(v.size):
        ratio[j] = X[v[j], a] / X[v[j], v[i]]
    norm = 1.0 / factor(pattern[native], a, v[i], v, X, partners)
    for k in range(n_patterns):
        f = norm
        for m in range(MAX_PARTNERS):
            j = partners[k, m]
            if j < 0:
                break
            f *= ratio[j]
        change[k] = f
    for s in range(w.size):
        w[s] *= change[pattern[s]]
    v[i] = a


@jit
def docking_weights(V, X, docks, b):
    """Fill b with exp(-I) of each orientation; return the share of the first, which is p_int without its exponent."""
    for o in range(docks.shape[0]):
        b[o] = 1.0
        for c in range(docks.shape[1]):
            b[o] *= X[V[0, docks[o, c, 0]], V[1, docks[o, c, 1]]]
    return b[0] / b.sum()


@jit
def docking_probabilities(i, v, other, X, b, partner, p):
    """Write to p (Q,) the p_int, without exponent, of each letter at monomer i, which touches partner[o] (or -1)."""
    rest = 0.0
    p[:] = 0.0
    for o in range(b.size):
        j = partner[o]
        if j < 0:
            rest += b[o]
        else:
            x = X[other[j]]
            f = b[o] / x[v[i]]
            for a in range(p.size):
                p[a] += f * x[a]
    j = partner[0]
    for a in range(p.size):
        native = b[0] if j < 0 else b[0] * X[other[j], a] / X[other[j], v[i]]
        p[a] = native / (rest + p[a])


@jit
def choose(weight, u):
    """Draw an index with probability proportional to the weights, from one uniform number."""
    left, last = u * weight.sum(), 0
    for a in range(weight.size):
        if weight[a] > 0.0:
            last = a
            left -= weight[a]
            if left < 0.0:
                break
    return last


@jit
def heat_bath(k, pair, uniforms, tables, target):
    """Draw each monomer of sequence k in turn from its conditional distribution; uniforms (N,) decide.

    Before a sequence has p_nat > p_min, p_nat must not fall: one rule finds the set, and then stays in it.
    """
    V, w, b = pair
    v, other, native, X = V[k], V[1 - k], target.natives[k], target.X
    p, q = np.empty(X.shape[0]), np.ones(X.shape[0])
    for i in range(v.size):
        fold_probabilities(i, v, X, w[k], native, tables, p)
        if target.chi > 0.0:
            docking_probabilities(i, v, other, X, b, target.touch[k, i], q)
        now = p[v[i]]
        for a in range(p.size):
            p[a] = q[a] ** target.chi if p[a] > target.p_min or p[a] >= now else 0.0
        a = choose(p, uniforms[i])
        if a == v[i]:
            continue
        for o in range(b.size):
            j = target.touch[k, i, o]
            if j >= 0:
                b[o] *= X[other[j], a] / X[other[j], v[i]]
        mutate(i, a, v, X, w[k], native, tables)


@jit
def cluster(k, seed, V, tables, target, member):
    """Mark in member (2, N) the monomers of sequence k that native contacts of letters that swap join to the seed."""
    native, v = target.natives[k], V[k]
    member[:] = False
    member[k, seed] = target.swap[v[seed]] != v[seed]
    grown = True
    while grown:
        grown = False
        for c in range(tables.contacts.shape[1]):
            i, j = tables.pairs[tables.contacts[native, c]]
            if member[k, i] != member[k, j] and target.swap[v[i]] != v[i] and target.swap[v[j]] != v[j]:
                member[k, i] = member[k, j] = grown = True


@jit
def exchange(member, pair, u, tables, target):
    """Try to swap the letters of the members (2, N), by Metropolis. A second swap undoes one: the move is symmetric."""
    V, w, b = pair
    W, w_new, b_new = V.copy(), w.copy(), b.copy()
    for k in range(2):
        if not member[k].any():
            continue
        for i in range(V.shape[1]):
            if member[k, i]:
                W[k, i] = target.swap[V[k, i]]
        limit = max(1.0 / target.p_min, w[k].sum())
        total = relative_weights(W[k], target.X, tables.pairs, tables.contacts, target.natives[k], limit, w_new[k])
        if total > limit:
            return
    p = docking_weights(W, target.X, target.docks, b_new)
    if u >= (p * b.sum() / b[0]) ** target.chi:
        return
    V[:], w[:], b[:] = W, w_new, b_new


@jit
def exchanges(pair, uniforms, tables, target):
    """Try to swap all letters of the first sequence, of the second, or of both, twice; then a cluster of each."""
    V = pair.V
    member = np.empty(V.shape, np.bool_)
    for move in range(N_EXCHANGES):
        if move < 2:  # at random: all three in turn would undo each other where every swap is accepted
            which = int(3.0 * uniforms[move, 0])
            member[0], member[1] = which != 1, which != 0
        else:
            cluster(move - 2, int(uniforms[move, 0] * V.shape[1]), V, tables, target, member)
        if member.any():
            exchange(member, pair, uniforms[move, 1], tables, target)


@jit
def weigh(V, tables, target):
    """Return sequences V (2, N) with the weights of all structures and orientations."""
    w, b = np.empty((2, tables.contacts.shape[0])), np.empty(target.docks.shape[0])
    for k in range(2):
        relative_weights(V[k], target.X, tables.pairs, tables.contacts, target.natives[k], math.inf, w[k])
    docking_weights(V, target.X, target.docks, b)
    return Pair(V, w, b)


@jit
def run(pair, uniforms, swaps, tables, target, trace):
    """Make sweeps of heat bath and exchanges over a pair, in place.

    uniforms (sweeps, 2, N) and swaps (sweeps, N_EXCHANGES, 2) are uniform on [0, 1); trace (sweeps, 5) receives the
    energies of both sequences, log p_nat of both, and log p_int without its exponent.
    """
    V, w, b = pair
    X, pairs, contacts = target.X, tables.pairs, tables.contacts
    for t in range(uniforms.shape[0]):
        for k in range(2):
            heat_bath(k, pair, uniforms[t, k], tables, target)
        if target.swapping:
            exchanges(pair, swaps[t], tables, target)
        for k in range(2):
            trace[t, k] = 0.0
            for c in contacts[target.natives[k]]:
                trace[t, k] -= math.log(X[V[k, pairs[c, 0]], V[k, pairs[c, 1]]])
            trace[t, 2 + k] = -math.log(w[k].sum())
        trace[t, 4] = math.log(b[0] / b.sum())
