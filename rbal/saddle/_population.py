r"""Saddle points of the population behind a sample, from the covariances and centres of its rows.

Let :math:`S_k` be the sample covariance of cluster k with :math:`\nu_k` degrees of freedom, and :math:`\Sigma_k` the
true one. Their resolvents are the same matrix at other arguments,

.. math:: \Bigl(\hat k + \sum_k\hat X_kS_k\Bigr)^{-1} \simeq \Bigl(\hat k + \sum_kX_k\Sigma_k\Bigr)^{-1},\qquad
          X_k = \hat X_k(1-u_k),\quad \operatorname{tr}\Sigma_kA^{-1} = \frac{t_k}{1-u_k},

with :math:`t_k=\operatorname{tr}S_kA^{-1}` and :math:`u_k=\hat X_kt_k/\nu_k`. So the first-order quantities of the
population follow from the sample. Those of second order are derivatives in :math:`X`, by the chain rule with
:math:`J = \partial X/\partial\hat X`. A centre is the mean of :math:`n_c` rows: its noise adds
:math:`\hat m_c^2L/n_c` to :math:`\hat q_c`, and :math:`\hat m_cx_cL/n_c` to :math:`m_c`, and is taken out of both.

On the sphere :math:`\hat k` is unknown, and the norm of the weights decides. It is a derivative in :math:`\hat k` at
fixed :math:`X`, so that :math:`\partial\hat X/\partial\hat k` enters as well.

The solution exists as long as the training sets have no more rows than the sample.
"""

from typing import NamedTuple

import numpy as np

from ._equations import RIDGE
from ._mixture_data import data_side
from ._mixture_weights import inverse_of

MEMORY = 6  # earlier steps that Anderson's acceleration mixes
DAMPING = 0.5


class Samples(NamedTuple):
    """Covariances and centres of the rows of K clusters, in the smallest basis that holds them, of k directions."""

    S: np.ndarray  # (K, k, k) covariance of the rows of each cluster
    v: np.ndarray  # (K, k) centres less their mean
    mixing: np.ndarray  # (K, K): the covariance of cluster c is Σ mixing[c, k] S[k]
    freedom: np.ndarray  # (K,)
    counts: np.ndarray  # (K,)
    weights: np.ndarray  # (K,) of the clusters in the mean, which centres are counted from
    L: int
    outside: int = 0  # directions without rows and centres


class Sphere(NamedTuple):
    """The given norm of the weights, per site; typical weights share it with their entropy."""

    norm: float
    typical: bool


def samples_of(mixture):
    """Return the samples behind an estimated mixture."""
    if mixture._sampled is None:
        raise ValueError("mixture must be estimated from rows, and not debiased, got one that is given")
    roots, mixing = mixture._sampled
    v = mixture._centres - mixture._balanced @ mixture._centres
    D = v.shape[1]
    if sum(map(len, roots)) + len(v) < v.shape[1]:
        _, singular, basis = np.linalg.svd(np.concatenate([*roots, v]), full_matrices=False)
        basis = basis[singular > 1e-11 * singular[0]]
        roots, v = [F @ basis.T for F in roots], v @ basis.T
    S = np.stack([F.T @ F for F in roots])
    counts = mixture.counts.astype(float)
    return Samples(S, v, mixing, counts - 1.0, counts, mixture._balanced, mixture.L, D - v.shape[1])


class WeightSide(NamedTuple):
    """The weight side at a state. Arrays are (K,)."""

    q: np.ndarray
    x: np.ndarray
    m: np.ndarray
    norm: float
    entropy: float  # 1/L tr A⁻¹


def weight_side(samples, ridge, X, q_hat, m_hat):
    """Return q and x of each sample, m of each cluster and the norm, of the population; None out of the domain.

    Parameters
    ----------
    samples : Samples
    ridge : float
        Or k̂ of the sphere.
    X : (K,) array
        Arguments X̂ of the sample's resolvent.
    q_hat, m_hat : (K,) arrays
        Of the clusters.
    """
    S, L, nu = samples.S, samples.L, samples.freedom
    A = inverse_of(np.tensordot(X, S, 1), ridge)
    if A is None or (samples.outside and not ridge > 0.0):
        return None
    SA = S @ A
    t = np.trace(SA, axis1=1, axis2=2)
    T = SA.reshape(len(S), -1) @ np.swapaxes(SA, 1, 2).reshape(len(S), -1).T
    u = X * t / nu
    if not np.all(u < 1.0):
        return None
    x = t / (1.0 - u) / L
    pull = m_hat - samples.weights * m_hat.sum()  # on each centre, which is also in the mean they are counted from
    Q = samples.mixing.T @ (q_hat - pull**2 * L / samples.counts) / (1.0 - u) ** 2
    p = A @ (m_hat @ samples.v)
    along = np.einsum("i,kij,j->k", p, S, p)
    J = np.diag(1.0 - 2.0 * u) + (X**2 / nu)[:, None] * T
    q = np.linalg.solve(J.T, (T @ Q - t**2 * Q / nu) / L + along)
    noise = pull * (samples.mixing @ x) * L / samples.counts
    by_ridge = np.einsum("kij,ji->k", SA, A)
    norm = by_ridge @ Q / L + p @ p - q @ (X**2 * by_ridge / nu)
    entropy = (np.trace(A) + samples.outside / ridge if samples.outside else np.trace(A)) / L
    return WeightSide(q, x, samples.v @ p - noise + samples.weights @ noise, float(norm), float(entropy))


def evaluate(samples, problem, state, guess):
    """Return the weight side at a state, and the y of the clusters; None out of the domain.

    state is log q and log x of each sample, m of each cluster, and k̂, (3K + 1,).
    """
    K = problem.alpha.size
    y = np.empty(3 * K + 2)
    q, x = np.exp(state[:K]), np.exp(state[K : 2 * K])
    y[:K], y[K : 2 * K], y[2 * K : 3 * K] = np.log(samples.mixing @ q), np.log(samples.mixing @ x), state[2 * K : -1]
    y[3 * K], y[3 * K + 1] = guess, state[-1]
    hats = np.empty(3 * K)
    data_side(problem, y, hats, np.empty((3 * K + 1, 3 * K)))
    if not np.isfinite(hats).all():
        return None
    X = samples.mixing.T @ hats[K : 2 * K]
    room = 1.0 - X * x * samples.L / samples.freedom
    if not np.all(room > 0.0):
        return None
    new = weight_side(samples, state[-1], X / room, hats[:K], hats[2 * K :])
    return None if new is None or not (np.all(new.q > 0.0) and new.norm > 0.0) else (new, y)


def norm_gap(samples, sphere, new):
    """Return about the change of k̂ that brings the norm to the sphere's, and half the logarithm of their ratio."""
    norm = new.norm + (new.entropy if sphere.typical else 0.0)
    half_log = 0.5 * np.log(norm / sphere.norm)
    directions = samples.S.shape[1] + samples.outside
    return half_log * directions / (samples.L * new.entropy), half_log


def solve_population(samples, problem, sphere, start, tol, max_iter):
    """Return (residual, iterations, y) of the population; y holds log q, log x, m of clusters, b and k̂.

    Anderson's acceleration from ``start``, the y of the sample's own solution. sphere is None under a ridge. A residual
    of infinity means that there is none: the sample is too small.
    """
    K = problem.alpha.size
    b = start[3 * K]
    # the start takes clusters for samples, although their covariances are mixtures of those of the samples
    state, states, gaps = np.delete(start, 3 * K), [], []
    y = start
    for n in range(1, max_iter + 1):
        evaluation = evaluate(samples, problem, state, b)
        if evaluation is None:
            if not states:
                return np.inf, n, y
            state, states, gaps = 0.5 * (state + states[-1]), states[-1:], gaps[-1:]
            if n > max_iter // 2:
                return np.inf, n, y
            continue
        new, y = evaluation
        b = y[3 * K]
        scale = np.exp(-0.5 * y[:K])
        k_gap, half_log = (0.0, 0.0) if sphere is None else norm_gap(samples, sphere, new)
        gap = np.r_[np.log(new.q) - state[:K], np.log(new.x) - state[K : 2 * K], new.m - state[2 * K : -1], k_gap]
        residual = max(np.abs(gap[: 2 * K]).max(), np.abs(gap[2 * K : -1] * scale).max(), abs(half_log))
        if residual <= tol:
            return residual, n, y
        states, gaps = [*states[-MEMORY:], state], [*gaps[-MEMORY:], gap]
        state = next_state(states, gaps)
    return residual, max_iter, y


def next_state(states, gaps):
    """Return the next state, by Anderson's mixing with a limited step."""
    if len(states) == 1:
        return states[0] + DAMPING * np.clip(gaps[0], -1.0, 1.0)
    return states[-1] + np.clip(anderson_step(states, gaps, DAMPING), -1.5, 1.5)


def anderson_step(states, gaps, damping):
    """Return the step from the last of several states that Anderson's mixing takes for a fixed point.

    Parameters
    ----------
    states, gaps : lists of (n,) arrays
        Earlier states, and the map of each minus the state.
    damping : float
        Share of the gap to go.
    """
    dx, dg = np.diff(states, axis=0).T, np.diff(gaps, axis=0).T
    gamma = np.linalg.lstsq(dg, gaps[-1], rcond=1e-10)[0]
    return damping * gaps[-1] - (dx + damping * dg) @ gamma


def as_ridge(problem):
    """Return the problem with a shape for each cluster."""
    K = problem.alpha.size
    return problem._replace(mode=RIDGE, shape=np.arange(K), width=np.ones(K), n_shapes=K)
