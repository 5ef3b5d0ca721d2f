"""Covariances of clusters: as users give them, and with the centres in the smallest basis that holds them."""

import itertools
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, eigh, eigvalsh

from .._support.validation import MOST_FLOATS, in_range

EPS = np.finfo(float).eps
EXACT = 200  # directions up to which the derivatives of traces are computed in full, and beyond it from probes
PROBES = 16  # random vectors for these derivatives, which only set the pace of Newton's method


class LowRank(NamedTuple):
    """A covariance FᵀF + floor · 1 with fewer rows than columns."""

    rows: np.ndarray  # (n, D)
    floor: float


class Diagonal(NamedTuple):
    """Covariances that share a basis, with everything divided by L so that each 1/L Σᵢ is a plain sum.

    Attributes
    ----------
    lam : (G, n) array
        Eigenvalues of each covariance.
    g : (n,) array
        Number of directions that have them, per site.
    v : (K, n) array
        Centres of the clusters along them.
    g_null : float
        Directions in which nothing varies and no centres differ, per site.
    """

    lam: np.ndarray
    g: np.ndarray
    v: np.ndarray
    g_null: float

    def traces(self):
        """Return 1/L tr C (G,)."""
        return self.lam @ self.g

    def lowest(self, x_hat, visible=False):
        """Return the smallest eigenvalue of Σ x̂ C, without free directions if ``visible``."""
        low = float((x_hat @ self.lam).min())
        return low if visible or self.g_null == 0.0 else min(low, 0.0)

    def visible(self):
        """Return a copy without free directions."""
        return self._replace(g_null=0.0)


class Dense:
    """Covariances C (G, k, k) that share no basis, and centres v (K, k) within these k directions.

    There may be directions outside, where the covariances are lam_out (G, n) with multiplicities g_out (n,), and
    free ones, g_null; multiplicities are divided by L.
    """

    def __init__(self, C, v, L, lam_out=None, g_out=None, g_null=0.0):
        self.C, self.v, self.L, self.g_null = C, v, L, g_null
        self.flat = C.reshape(len(C), -1)
        self.lam_out = np.zeros((len(C), 0)) if lam_out is None else lam_out
        self.g_out = np.zeros(0) if g_out is None else g_out
        self.g = np.r_[np.full(C.shape[1], 1.0 / L), self.g_out]
        self.probes = self.probed = None
        if C.shape[1] > EXACT:
            signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(C.shape[1], PROBES))
            self.probes = signs / np.sqrt(PROBES)
            self.probed = C @ self.probes

    @cached_property
    def commuting(self):
        """A Diagonal block with the variances along the eigenvectors of the sum of all covariances."""
        _, basis = eigh(self.C.sum(axis=0), driver="evd", check_finite=False)
        lam = np.stack([np.einsum("ij,ij->j", basis, cov @ basis) for cov in self.C])
        outside = np.zeros((len(self.v), self.g_out.size))
        return Diagonal(np.c_[np.maximum(lam, 0.0), self.lam_out], self.g, np.c_[self.v @ basis, outside], self.g_null)

    def traces(self):
        """Return 1/L tr C (G,)."""
        return np.trace(self.C, axis1=1, axis2=2) / self.L + self.lam_out @ self.g_out

    def lowest(self, x_hat, visible=False):
        """Return the smallest eigenvalue of Σ x̂ C, without free directions if ``visible``."""
        inside = eigh((x_hat @ self.flat).reshape(self.C.shape[1:]), eigvals_only=True, subset_by_index=[0, 0])[0]
        low = float(min(np.r_[inside, x_hat @ self.lam_out]))
        return low if visible or self.g_null == 0.0 else min(low, 0.0)

    def visible(self):
        """Return a copy without free directions."""
        return Dense(self.C, self.v, self.L, self.lam_out, self.g_out)

    def under_ridge(self, q_hat, m_hat, ridge):
        """Return q (G,), x (G,) and m (K,) where A is the ridge alone."""
        W = m_hat @ self.v
        second = (q_hat @ self.flat) / self.L + np.outer(W, W).ravel()
        out = self.lam_out @ ((q_hat @ self.lam_out) * self.g_out)
        return (self.flat @ second + out) / ridge**2, self.traces() / ridge, self.v @ W / ridge


def reduced(covs, v, L):
    """Return the Diagonal or Dense block of covariances and centres.

    Parameters
    ----------
    covs : list of G entries
        Variances (D,), matrices (D, D) or LowRank.
    v : (K, D) array
        Centres, counted from the midpoint.
    L : int
    """
    if all(isinstance(cov, np.ndarray) and cov.ndim == 1 for cov in covs):
        return _diagonal(np.stack(covs), v, L, v.shape[1])
    if len(covs) == 1:
        return _one(covs[0], v, L)
    if any(isinstance(cov, LowRank) for cov in covs):
        span = np.concatenate([cov.rows for cov in covs if isinstance(cov, LowRank)] + [v])
        if len(span) < v.shape[1] and all(isinstance(cov, LowRank) for cov in covs):
            return _low_rank(covs, span, v, L)
    C = np.stack([as_matrix(cov) for cov in covs])
    if commute(C):
        _, basis = eigh(np.einsum("h,hij->ij", np.linspace(1.0, 1.7, len(C)) / np.trace(C, axis1=1, axis2=2), C))
        lam = np.stack([np.einsum("ij,ij->j", basis, cov @ basis) for cov in C])
        return _diagonal(_floored(lam), v @ basis, L, v.shape[1])
    return _dense(C, v, L)


def commute(C):
    """Whether the matrices (G, D, D) commute, as seen on two random vectors."""
    z = np.random.default_rng(1).normal(size=(C.shape[1], 2))
    once = C @ z
    size = np.abs(C).max(axis=(1, 2))
    for a in range(len(C)):
        for b in range(a):
            gap = np.abs(C[a] @ once[b] - C[b] @ once[a]).max()
            if gap > 1e-12 * C.shape[1] * size[a] * size[b]:
                return False
    return True


def as_matrix(cov):
    """Return a covariance of any kind as a matrix (D, D)."""
    if isinstance(cov, LowRank):
        return cov.rows.T @ cov.rows + cov.floor * np.eye(cov.rows.shape[1])
    return np.diag(cov) if cov.ndim == 1 else cov


def check_room(name, K, D):
    """Refuse K matrices (D, D) that would not fit in memory."""
    if K * D * D > MOST_FLOATS:
        raise ValueError(
            f"{name} must leave arrays of at most {MOST_FLOATS:,} numbers, got {K} covariances of {D:,} features, "
            f"which are {K * D * D:,}: use fewer features, or one covariance for all"
        )


def _floored(lam):
    """Set eigenvalues to 0 that are rounding of an eigensolver."""
    return np.where(lam < 10 * lam.shape[1] * EPS * lam.max(axis=1, keepdims=True), 0.0, lam)


def _one(cov, v, L):
    """Reduce a single covariance, in its eigenbasis."""
    if not isinstance(cov, LowRank):
        values, basis = eigh(cov, driver="evd")
        return _diagonal(_floored(values[None]), v @ basis, L, v.shape[1])
    D = v.shape[1]
    if len(cov.rows) + len(v) >= D:
        return _one(as_matrix(cov), v, L)
    _, singular, basis = np.linalg.svd(cov.rows, full_matrices=False)
    along = v @ basis.T
    rest = v - along @ basis  # centres outside of the sampled directions, where only the floor varies
    outside = np.linalg.svd(rest, full_matrices=False)
    lam = np.r_[singular**2 + cov.floor, np.full(len(v), cov.floor)]
    return _diagonal(_floored(lam[None]), np.c_[along, outside[0] * outside[1]], L, D, cov.floor)


def _diagonal(lam, v, L, D, outside=0.0):
    """Make the block: equal columns merged, free directions counted apart.

    lam (G, n) and v (K, n) may hold fewer than D directions; in the others lam is ``outside`` and v is 0.
    """
    g = np.full(lam.shape[1], 1.0 / L)
    if outside > 0.0 and lam.shape[1] < D:
        lam, v = np.c_[lam, np.full((len(lam), 1), outside)], np.c_[v, np.zeros((len(v), 1))]
        g = np.r_[g, (D - g.size) / L]
    null = ~lam.any(axis=0)
    free = D - round(g.sum() * L) if outside == 0.0 else 0
    if null.any():
        left, singular, _ = np.linalg.svd(v[:, null], full_matrices=False)
        kept = singular > 1e-11 * np.linalg.norm(v)  # the rest is rounding of the eigenvectors, not a shift
        free += int(null.sum()) - int(kept.sum())
        lam = np.c_[lam[:, ~null], np.zeros((len(lam), kept.sum()))]
        v, g = np.c_[v[:, ~null], left[:, kept] * singular[kept]], np.r_[g[~null], np.full(kept.sum(), 1.0 / L)]
    lam, g, v = _merged(lam, g, v)
    return Diagonal(np.ascontiguousarray(lam), g, np.ascontiguousarray(v), free / L)


def _merged(lam, g, v):
    """Merge directions in which all covariances are the same: then only the centres' inner products matter."""
    order = np.lexsort(lam[::-1])
    lam, g, v = lam[:, order], g[order], v[:, order]
    new = (np.diff(lam, axis=1) > 4 * EPS * np.abs(lam[:, 1:])).any(axis=0)
    new |= (np.diff(lam, axis=1) < -4 * EPS * np.abs(lam[:, 1:])).any(axis=0)
    starts = np.r_[0, np.flatnonzero(new) + 1, lam.shape[1]]
    if np.diff(starts).max() <= len(v):
        return lam, g, v
    parts = []
    for lo, hi in itertools.pairwise(starts):
        some = v[:, lo:hi]
        if hi - lo > len(v):
            some = np.linalg.qr(some.T, mode="r").T
        n = some.shape[1]
        parts.append((np.repeat(lam[:, lo : lo + 1], n, axis=1), np.full(n, g[lo:hi].sum() / n), some))
    return tuple(np.concatenate(arrays, axis=-1) for arrays in zip(*parts, strict=True))


def _dense(C, v, L):
    """Make the dense block, without the directions in which nothing varies."""
    D = v.shape[1]
    values, basis = eigh(C.sum(axis=0), driver="evd")
    null = values <= 10 * D * EPS * values[-1]
    if not null.any():
        return Dense(C, v, L)
    outside = v @ basis[:, null]
    _left, singular, right = np.linalg.svd(outside, full_matrices=False)
    kept = singular > 1e-11 * np.linalg.norm(v)
    basis = np.c_[basis[:, ~null], basis[:, null] @ right[kept].T]
    C = np.stack([basis.T @ cov @ basis for cov in C])
    return Dense(C, v @ basis, L, g_null=(D - basis.shape[1]) / L)


def _low_rank(covs, span, v, L):
    """Make the dense block of covariances FᵀF + floor within the span of all rows and centres."""
    D = v.shape[1]
    _, singular, basis = np.linalg.svd(span, full_matrices=False)
    basis = basis[singular > 1e-11 * singular[0]]
    rows = [cov.rows @ basis.T for cov in covs]
    floors = np.array([cov.floor for cov in covs])
    C = np.stack([F.T @ F + floor * np.eye(len(basis)) for F, floor in zip(rows, floors, strict=True)])
    outside = (D - len(basis)) / L
    if floors.any():
        return Dense(C, v @ basis.T, L, floors[:, None], np.array([outside]))
    return Dense(C, v @ basis.T, L, g_null=outside)


# ---- covariances as users give them: checked, and each kept once


def given(covs, K, D):
    """Return a list of one covariance, or of K, each checked."""
    if covs.shape == (D,) or covs.shape == (D, D):
        covs = covs[None]
    if covs.shape not in ((1, D), (1, D, D), (K, D), (K, D, D)):
        takes = f"({D},), ({D}, {D}), ({K}, {D}) or ({K}, {D}, {D})"
        raise ValueError(f"covs must have shape {takes}, got {covs.shape}")
    if covs.ndim == 2:
        in_range("covs", covs, 0.0)
    else:
        check_room("covs", *covs.shape[:2])
    checked = []
    for c, cov in enumerate(covs):
        if cov.ndim == 2:
            off = np.abs(cov - cov.T).max()
            if off > 1e-10 * np.abs(cov).max():
                raise ValueError(f"covs must be symmetric, got entries that differ by {off:g} in cluster {c}")
            cov = 0.5 * (cov + cov.T)
            _check_positive(cov, c)
        if not cov.any():
            raise ValueError(f"covs must not be zero, got nothing that varies in cluster {c}")
        checked.append(cov)
    return checked


def _check_positive(cov, c):
    """Refuse negative eigenvalues, by Cholesky's factorisation of the matrix raised by rounding."""
    floor = 10 * len(cov) * EPS * np.abs(cov).max()
    try:
        cholesky(cov + 2.0 * floor * np.eye(len(cov)), check_finite=False)
    except np.linalg.LinAlgError:
        low = eigvalsh(cov)[0]
        if low < -floor:
            raise ValueError(f"covs must have no negative eigenvalue, got {low:g} in cluster {c}") from None


def distinct(covs, K):
    """Return the index (K,) and factor (K,) of each cluster's covariance among the different ones, and these."""
    if len(covs) == 1:
        return np.zeros(K, np.int64), np.ones(K), covs
    shape, width, different = np.empty(K, np.int64), np.empty(K), []
    for c, cov in enumerate(covs):
        for h, other in enumerate(different):
            ratio = cov.sum() / other.sum() if cov.ndim == 1 else np.trace(cov) / np.trace(other)
            ratio = 1.0 if abs(ratio - 1.0) < 4 * EPS else ratio
            if np.abs(cov - ratio * other).max() <= 1e-14 * np.abs(cov).max():
                shape[c], width[c] = h, ratio
                break
        else:
            shape[c], width[c] = len(different), 1.0
            different.append(cov)
    return shape, width, different
