"""Potts models: configurations by heat bath, moments by enumeration or by a long run, parameters by Boltzmann learning.

A configuration s has probability ∝ exp(Σᵢ hᵢ(sᵢ) + Σ_{i<j} J_ij(sᵢ, sⱼ)), with fields h of shape (L, Q) and couplings J
of shape (L, Q, L, Q) that are symmetric and vanish within a site.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import helmert
from tqdm.auto import tqdm

from .._support.gauss import jit
from .._support.validation import positive_int, real_array
from ._latent import search

AT_ONCE = 5 * 10**7  # terms that a compiled call adds up, in some tenths of a second: after it Ctrl-C is heard
ENUMERABLE = 2**18  # configurations that are summed over one by one


class Chains(NamedTuple):
    """How a Potts model is sampled: chains run at once, sweeps before the first sample and between two samples."""

    n_chains: int
    burn_in: int
    thin: int


def checked_chains(n_chains, burn_in, thin, names=("n_chains", "burn_in", "thin")):
    """Return how a model is sampled, when all are positive integers."""
    return Chains(*(positive_int(name, n) for name, n in zip(names, (n_chains, burn_in, thin), strict=True)))


def checked_couplings(name, value, L, Q):
    """Return a copy of the value as couplings (L, Q, L, Q), when they are symmetric and 0 within a site."""
    J = real_array(name, value, (2, 4))
    if J.shape not in ((L, Q, L, Q), (L * Q, L * Q)):
        raise ValueError(f"{name} must have shape ({L}, {Q}, {L}, {Q}) or ({L * Q}, {L * Q}), got {J.shape}")
    J = J.reshape(L, Q, L, Q)
    off = np.abs(J - J.transpose(2, 3, 0, 1)).max()
    own = np.abs(J[np.arange(L), :, np.arange(L), :]).max()
    if max(off, own) > 1e-10 * np.abs(J).max():
        raise ValueError(f"{name} must be symmetric and 0 within a site, got a deviation of {max(off, own):.3g}")
    return J.copy()


@jit
def add(total, part, sign):
    """Add sign * part to total, two (L, Q) arrays, without a temporary."""
    total, part = total.ravel(), part.ravel()  # views: both are contiguous
    for k in range(total.size):
        total[k] += sign * part[k]


@jit
def local_fields(X, fields, couplings):
    """Return the log-weights (n, L, Q) of every state of every site, given the other sites of its chain X (n, L)."""
    n, L = X.shape
    local = np.empty((n, *fields.shape))
    for c in range(n):
        local[c] = fields
        for j in range(L):
            add(local[c], couplings[j, X[c, j]], 1.0)
    return local


@jit
def sweep(X, local, couplings, uniforms):
    """Draw each site of each chain X (n, L) in turn, given all others; X and its local fields change in place."""
    n, L, Q = local.shape
    p = np.empty(Q)
    for c in range(n):
        for i in range(L):
            top, total = local[c, i].max(), 0.0
            for t in range(Q):
                total += math.exp(local[c, i, t] - top)
                p[t] = total
            new, old = 0, X[c, i]
            while new < Q - 1 and uniforms[c, i] * total >= p[new]:
                new += 1
            if new != old:
                X[c, i] = new
                add(local[c], couplings[i, new], 1.0)
                add(local[c], couplings[i, old], -1.0)


def advance(X, fields, couplings, n_sweeps, rng):
    """Let all chains X (n, L) run, in place."""
    some = max(1, AT_ONCE // (X.shape[1] * fields.size))
    parts = [slice(first, first + some) for first in range(0, len(X), some)]
    local = [local_fields(X[part], fields, couplings) for part in parts]
    for _ in range(n_sweeps):
        uniforms = rng.random(X.shape)
        for part, own in zip(parts, local, strict=True):
            sweep(X[part], own, couplings, uniforms[part])


@jit
def enumerate_moments(fields, couplings):
    """Return frequencies (L, Q) and joint frequencies (L, Q, L, Q), summed over every configuration."""
    L, Q = fields.shape
    n = Q**L
    s, weights = np.zeros(L, dtype=np.int64), np.empty(n)
    f, joint = np.zeros((L, Q)), np.zeros((L, Q, L, Q))
    for measuring in range(2):
        s[:] = 0
        for c in range(n):
            if measuring:
                for i in range(L):
                    f[i, s[i]] += weights[c]
                    for j in range(L):
                        joint[i, s[i], j, s[j]] += weights[c]
            else:
                weights[c] = 0.0
                for i in range(L):
                    weights[c] += fields[i, s[i]]
                    for j in range(i):
                        weights[c] += couplings[i, s[i], j, s[j]]
            for i in range(L):  # the next number with L digits
                s[i] += 1
                if s[i] < Q:
                    break
                s[i] = 0
        if not measuring:
            weights[:] = np.exp(weights - weights.max())
            weights /= weights.sum()
    return f, joint


def run(fields, couplings, chains, n, rng, progress=False):
    """Yield blocks (chains, L) of samples, n in all, from chains started at random."""
    L, Q = fields.shape
    X = rng.integers(Q, size=(min(n, chains.n_chains), L))
    rounds = math.ceil(n / len(X)) if n else 0
    for k in tqdm(range(rounds), desc="Gibbs sampling", disable=not progress, delay=1.0):
        advance(X, fields, couplings, chains.thin if k else chains.burn_in, rng)
        yield X[: n - k * len(X)]


def draw(fields, couplings, chains, n, rng):
    """Draw samples (n, L) of a model."""
    blocks = [block.copy() for block in run(fields, couplings, chains, n, rng)]
    return np.concatenate(blocks) if blocks else np.empty((0, len(fields)), dtype=np.int64)


def model_moments(fields, couplings, chains, n, rng, progress=False):
    """Return frequencies (L, Q), covariance (LQ, LQ), and whether they are exact or estimated from n samples."""
    L, Q = fields.shape
    if L * math.log(Q) <= math.log(ENUMERABLE):
        f, joint = enumerate_moments(fields, couplings)
        exact, joint = True, joint.reshape(L * Q, L * Q)
    else:
        exact, joint, one_hot = False, np.zeros((L * Q, L * Q)), np.eye(Q)
        for X in run(fields, couplings, chains, n, rng, progress):
            features = one_hot[X].reshape(len(X), L * Q)
            joint += features.T @ features
        joint /= n
        f = np.diagonal(joint).reshape(L, Q).copy()
    return f, joint - np.outer(f, f), exact


class PottsFit(NamedTuple):
    """Potts model found by Boltzmann learning."""

    fields: np.ndarray  # (L, Q), zero-sum over the states
    couplings: np.ndarray  # (L, Q, L, Q), zero-sum over the states of either site
    residual: float  # largest deviation of a frequency or a covariance between sites from what was asked
    exact: bool  # whether the residual is exact, or measured on samples


def boltzmann_learning(M, cov, chains, n_iter, n_samples, rng, progress):
    """Find fields and couplings with frequencies M (L, Q) and covariance (LQ, LQ) between sites, by persistent chains.

    The likelihood's gradient is what the chains' moments miss. It is followed in coordinates that have mean 0 and
    unit covariance at each site, where fields and couplings hardly interfere, and each component is divided by the
    variance of its statistic, which is large where rare states go together. After a third of the iterations the step
    falls off as 1/t, which averages the chains' noise out.
    """
    L, Q = M.shape
    white, target = _whitened(M, cov)
    D = len(target)
    between = np.kron(1.0 - np.eye(L), np.ones((Q - 1, Q - 1)))
    h, J = np.zeros(D), np.zeros((D, D))
    X = search(rng.random((chains.n_chains, L)), np.cumsum(M, axis=1)[:, :-1])
    for k in tqdm(range(n_iter), desc="Boltzmann learning", disable=not progress, delay=1.0):
        advance(X, *_on_states(M, white, h, J), chains.thin, rng)
        x = white[np.arange(L), X].reshape(len(X), D)
        second, fourth = x.T @ x / len(X), (x * x).T @ (x * x) / len(X)
        step = 0.2 / (1.0 + max(0.0, k - n_iter / 3) / 10)
        h -= step * x.mean(axis=0) / np.maximum(x.var(axis=0), 1.0)
        J += step * between * (target - second) / np.maximum(fourth - second**2, 1.0)
    fields, couplings = _on_states(M, white, h, J)
    f, found, exact = model_moments(fields, couplings, chains, n_samples, rng, progress)
    sites = np.kron(1.0 - np.eye(L), np.ones((Q, Q)))
    residual = max(np.abs(f - M).max(), np.abs((found - cov) * sites).max())
    return PottsFit(*zero_sum(fields, couplings), float(residual), exact)


def _whitened(M, cov):
    """Return coordinates (L, Q, Q-1) of the states with mean 0 and unit covariance at each site, and cov in them."""
    L, Q = M.shape
    basis = helmert(Q).T
    blocks = np.einsum("ta,it,tb->iab", basis, M, basis) - (M @ basis)[:, :, None] * (M @ basis)[:, None, :]
    values, vectors = np.linalg.eigh(blocks)
    scale = vectors / np.sqrt(values)[:, None, :]
    white = (basis - (M @ basis)[:, None, :]) @ scale
    dual = basis @ scale
    target = np.einsum("itc,itju,jud->icjd", dual, cov.reshape(L, Q, L, Q), dual, optimize=True)
    return white, target.reshape(L * (Q - 1), -1)


def _on_states(M, white, h, J):
    """Return fields and couplings on the states; those of independent sites where h = J = 0."""
    L, _, k = white.shape
    fields = np.log(M) + np.einsum("itc,ic->it", white, h.reshape(L, k))
    couplings = np.einsum("itc,icjd,jud->itju", white, J.reshape(L, k, L, k), white, optimize=True)
    return fields, np.ascontiguousarray(couplings)


def zero_sum(fields, couplings):
    """Move the model to the gauge where fields and couplings sum to 0 over the states of a site."""
    fields = fields + couplings.mean(axis=3).sum(axis=2)  # Σⱼ of what J_ij(s, ·) has in common for all sⱼ
    couplings = couplings - couplings.mean(axis=1, keepdims=True)
    couplings = couplings - couplings.mean(axis=3, keepdims=True)
    return fields - fields.mean(axis=1, keepdims=True), couplings
