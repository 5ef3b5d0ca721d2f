r"""How the scores are distributed, on test data and on the training set.

A test score is Gaussian. A training score has been moved by the training: :math:`u = y\Delta` is the proximal step of
a Gaussian :math:`u_0\sim\mathcal N(r/2 - yb, q)`, which shifts the hinge's violators towards the margin and leaves an
atom on it. In the SAT phase it is a Gaussian cut at the margin, averaged over the solutions.
"""

import numpy as np
from scipy.special import log_ndtr, ndtr

from ._support.gauss import GL_NODES, GL_WEIGHTS, Z_MAX
from ._support.validation import one_of, real_array
from .losses import EQUALITY, record_of
from .losses.internal import MAX_PANELS, NARROW
from .saddle import MixtureSolution, Solution


def test_density(solution, delta, label, cluster=None):  # noqa: PT028 - not a test
    """Density of the score of a new sample.

    Parameters
    ----------
    solution : Solution
        Of one problem.
    delta : array
        Scores.
    label : {+1, -1}
    cluster : int, optional
        Cluster of a mixture, which must be of this class; by default all of the class.

    Returns
    -------
    ndarray
    """
    _check(solution, label)
    if cluster is not None:
        cluster = _checked_cluster(solution, label, cluster)
        return solution.metrics.cluster_density(real_array("delta", delta))[..., cluster]
    return solution.metrics.density(real_array("delta", delta), label)


test_density.__test__ = False  # not a test, whatever pytest thinks


def train_density(solution, delta, label, cluster=None):
    """Density of the score of a training sample, and the mass that sits exactly on the margin.

    Parameters
    ----------
    solution : Solution
        Of one problem.
    delta : array
        Scores.
    label : {+1, -1}
    cluster : int, optional
        Cluster of a mixture, which must be of this class; by default all of the class.

    Returns
    -------
    density : ndarray
        The continuous part.
    atom : float
        Probability of yΔ = κ.
    """
    _check(solution, label)
    if cluster is not None:
        cluster = _checked_cluster(solution, label, cluster)
        return train_density(solution.of_cluster(cluster), delta, label)
    if isinstance(solution, MixtureSolution):
        clusters = np.flatnonzero(solution.mixture.signs == label)
        densities, atoms = zip(*(train_density(solution.of_cluster(c), delta, label) for c in clusters), strict=True)
        shares = solution.mixture.shares[clusters]
        density = sum(share * one for share, one in zip(shares, densities, strict=True))
        return density, float(sum(share * atom for share, atom in zip(shares, atoms, strict=True)))
    u = label * real_array("delta", delta)
    mu, kappa = 0.5 * solution.r - label * solution.b, solution.kappa if label > 0 else solution.kappa_neg
    c = solution.weight_pos if label > 0 else solution.weight_neg
    s, x = np.sqrt(solution.q), solution.x
    loss = record_of(solution.loss)
    if solution.phase == "SAT":
        if loss.constraint is EQUALITY:
            return np.zeros_like(u), 1.0
        return _cut_gaussian(u, mu, s, np.sqrt(x), kappa), 0.0
    # u0 = u - x f(u), with density scaled by du0/du = 1 + x ℓ''(u); where the force jumps, all u0 between end on κ
    with np.errstate(over="ignore"):  # far out a logistic force is the whole weight, or nothing
        force, curvature = (np.vectorize(fun, otypes=[float])(kappa, c, u) for fun in (loss.force, loss.curvature))
    atom = ndtr((kappa - mu) / s) - ndtr((kappa - c * x - mu) / s) if loss.kinked else 0.0
    return _normal(u - x * force, mu, s) * (1.0 + x * curvature), float(atom)


def _cut_gaussian(u, mu, s, sw, kappa):
    """Return ∫ Dξ N(u; μ + sξ, w) θ(u - κ) / H((κ - μ - sξ)/√w), eq. (DeltaDistrTrain) at zero loss.

    1/H = 1 + Φ/H: the first part is a Gaussian, the second lives where t = (κ - μ - sξ)/√w is not very negative, and
    is integrated over t on panels that follow both the Gaussian and the corner at t = 0; counted from the mean of t
    where u0 hardly varies, as ``losses.panels`` does.
    """
    middle = kappa - mu
    origin = 0.0
    if s < NARROW * max(sw, middle):
        origin, middle = middle / sw, 0.0
    t_end = min((middle + Z_MAX * s) / sw, 1e12)
    edges = [max((middle - Z_MAX * s) / sw, -9.0 - origin)]
    while edges[-1] < t_end and len(edges) < MAX_PANELS:
        edges.append(min(edges[-1] + min(max(1.0, 0.3 * (origin + edges[-1])), 1.2 * s / sw), t_end))
    edges = np.array(edges)
    t = (edges[:-1, None] + np.diff(edges)[:, None] * GL_NODES).ravel()
    weight = (np.diff(edges)[:, None] * GL_WEIGHTS).ravel() * _normal(middle - sw * t, 0.0, s) * sw
    t += origin
    density = np.zeros(u.shape)
    above = u >= kappa
    v = (u[above] - kappa) / sw
    # N(u; u0, w) Φ/H in logs, since both factors may be huge
    with np.errstate(over="ignore"):
        log_rest = -0.5 * (v[..., None] + t) ** 2 + log_ndtr(t) - log_ndtr(-t)
    rest = np.exp(log_rest) @ weight / (np.sqrt(2.0 * np.pi) * sw)
    density[above] = _normal(u[above], mu, np.hypot(s, sw)) + rest
    return density


def _normal(u, mu, s):
    with np.errstate(over="ignore"):  # infinitely far out the density is 0
        return np.exp(-0.5 * ((u - mu) / s) ** 2) / (np.sqrt(2.0 * np.pi) * s)


def _checked_cluster(solution, label, cluster):
    """Return the index of a cluster, if it belongs to this class."""
    if not isinstance(solution, MixtureSolution):
        raise ValueError(f"cluster goes with the solution of a rbal.Mixture, got {type(solution).__name__}")
    return int(one_of("cluster", cluster, np.flatnonzero(solution.mixture.signs == label).tolist()))


def _check(solution, label):
    """Refuse solutions without a density, and labels that are not ±1."""
    one_of("label", label, (1, -1))
    if not isinstance(solution, Solution) or np.ndim(solution.b):
        raise TypeError("solution must be the Solution of one problem: index a sweep to pick a point")
    if not solution.converged or solution.phase == "COLLAPSED":
        raise ValueError(f"solution must have a score that varies, got phase {solution.phase!r}")
