r"""The two sides of the equations of multinomial regression, in coordinates without what the softmax does not see.

The T scores of a sample are h = Hᵀu: rows of H (T-1, T) are orthonormal, and orthogonal to (1, …, 1), since softmax is
the same for scores that differ by a constant and the ridge then makes their sum zero. With d = T-1 the order parameters
are matrices: V, Q (d, d) of each covariance, m (d,) of each cluster.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import softmax

STEPS = 60  # of Newton's method for the proximal points, which takes about five, or two from the last ones


class Unknowns(NamedTuple):
    """Order parameters: of G covariances and K clusters."""

    V: np.ndarray  # (G, d, d) response of a score to its field
    Q: np.ndarray  # (G, d, d) covariance of the scores
    m: np.ndarray  # (K, d) mean scores
    b: np.ndarray  # (d,)


class Hats(NamedTuple):
    """What the data do to the weights."""

    V: np.ndarray  # (G, d, d)
    Q: np.ndarray  # (G, d, d)
    m: np.ndarray  # (K, d)
    slope: np.ndarray  # (d, d) of the mean force, by the bias


def proximal(fields, start, V, weight, y, H):
    """Return points u (n, d) that minimise weight · ℓ(u) + ½ (u-ω)ᵀV⁻¹(u-ω), with p (n, T) there.

    Newton's method, on u + V∇ = ω, with steps that are damped like those of self-concordant functions: no line search.

    Parameters
    ----------
    fields : (n, d) array
        ω.
    start : (n, d) array
    V : (d, d) array
    weight : float
    y : int
        Class of the sample.
    H : (d, T) array

    Returns
    -------
    u : (n, d) array
    p : (n, T) array
        Probabilities of the classes.
    """
    u, eye = start, np.eye(len(V))
    for _ in range(STEPS):
        p = softmax(u @ H, axis=1)
        gap = u - fields + weight * (p @ H.T - H[:, y]) @ V
        step = np.linalg.solve(eye + V @ (weight * curvature(p, H)), -gap[..., None])[..., 0]
        size = np.abs(step @ H).max(axis=1, keepdims=True)
        u = u + step * np.where(size > 1e-4, np.log1p(2.0 * size) / np.maximum(2.0 * size, 1e-300), 1.0)
        if size.max() < 1e-11:
            break
    return u, softmax(u @ H, axis=1)


def curvature(p, H):
    """Return the second derivatives (n, d, d) of the loss by u."""
    mean = p @ H.T
    return np.einsum("at,nt,bt->nab", H, p, H, optimize=True) - mean[:, :, None] * mean[:, None, :]


def data_side(problem, rule, at, starts):
    """Return the Hats of order parameters, and the proximal points (K entries) to start from next time."""
    (nodes, mass), (G, d, _) = rule, at.V.shape
    hats = Hats(np.zeros((G, d, d)), np.zeros((G, d, d)), np.zeros_like(at.m), np.zeros((d, d)))
    points = []
    for c, g in enumerate(problem.shape):
        width, weight, alpha = problem.width[c], problem.weight[c], problem.alpha[c]
        values, basis = np.linalg.eigh(width * at.Q[g])
        fields = at.m[c] - at.b + (nodes * np.sqrt(np.maximum(values, 0.0))) @ basis.T
        V = width * at.V[g]
        u, p = proximal(fields, fields if starts is None else starts[c], V, weight, problem.place[c], problem.H)
        points.append(u)
        force = -weight * (p @ problem.H.T - problem.H[:, problem.place[c]])
        S = weight * curvature(p, problem.H)
        slope = np.einsum("n,nab->ab", mass, S @ np.linalg.inv(np.eye(d) + V @ S))
        slope = 0.5 * alpha * (slope + slope.T)
        hats.V[g] += width * slope
        hats.Q[g] += width * alpha * (force.T * mass) @ force
        hats.m[c] = alpha * (mass @ force)
        hats.slope[...] += slope
    return hats, points


def weight_side(block, hats, ridge):
    """Return V, Q (G, d, d) and m (K, d) of weights under these hats, with A = ridge + Σ V̂ ⊗ C."""
    if not hasattr(block, "C"):
        V, Q, pull = _sums(block.lam, block.g, block.v, hats, ridge)
        return V, Q, block.v @ pull
    k, d = block.C.shape[1], hats.V.shape[1]
    A = ridge * np.eye(d * k) + np.einsum("gab,gij->aibj", hats.V, block.C).reshape(d * k, d * k)
    B = np.linalg.inv(A)
    second = B @ np.einsum("gab,gij->aibj", hats.Q, block.C).reshape(d * k, d * k) @ B
    pull = (B @ np.einsum("ca,ci->ai", hats.m, block.v).ravel()).reshape(d, k)
    V, Q = (np.einsum("gij,ajbi->gab", block.C, part.reshape(d, k, d, k)) / block.L for part in (B, second))
    Q += np.einsum("ai,gij,bj->gab", pull, block.C, pull)
    if block.g_out.size:
        outside = _sums(block.lam_out, block.g_out, np.zeros((hats.m.shape[0], block.g_out.size)), hats, ridge)
        V, Q = V + outside[0], Q + outside[1]
    return V, Q, block.v @ pull.T


def _sums(lam, g, v, hats, ridge):
    """Return V, Q and A⁻¹W (n, d), as sums over directions that all covariances share."""
    d = hats.V.shape[1]
    inverse = np.linalg.inv(ridge * np.eye(d) + np.einsum("gi,gab->iab", lam, hats.V))
    pull = np.einsum("iab,ib->ia", inverse, v.T @ hats.m)
    second = inverse @ np.einsum("i,gi,gab->iab", g, lam, hats.Q) @ inverse + pull[:, :, None] * pull[:, None, :]
    return np.einsum("gi,i,iab->gab", lam, g, inverse), np.einsum("gi,iab->gab", lam, second), pull
