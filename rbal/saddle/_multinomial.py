r"""Multinomial logistic regression of more than two classes.

One set of weights for each class, trained together by the cross-entropy of their softmax. The data side of the saddle
point is an expectation over T-1 Gaussian numbers, of a proximal point in as many dimensions: by Gauss's rule for up to
three classes, and beyond that by several sets of quasi-random points, whose scatter is the error of the result.

The equations are in coordinates without the direction (1, …, 1). The T scores of a sample are h = Hᵀu: rows of H
(T-1, T) are orthonormal and orthogonal to (1, …, 1), since softmax is the same for scores that differ by a constant,
and the ridge then makes their sum zero. With d = T-1 the order parameters are matrices: V, Q (d, d) of each covariance,
and m (d,) of each cluster.
"""

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import helmert
from scipy.special import ndtri, softmax

from .._support.validation import in_range, number, positive_int, real_array
from .._support.warnings import convergence_warning
from ..metrics import ManyMetrics
from ..moments import Mixture
from ._ovr import a_mixture, by_class, checked_alphas, places_of
from ._population import anderson_step

STEPS = 60  # of Newton's method for the proximal points; it takes about five, or two from the previous points


class Unknowns(NamedTuple):
    """Order parameters: of G covariances and K clusters."""

    V: np.ndarray  # (G, d, d) response of a score to its field
    Q: np.ndarray  # (G, d, d) covariance of the scores
    m: np.ndarray  # (K, d) mean scores
    b: np.ndarray  # (d,)


class Hats(NamedTuple):
    """Conjugates of the order parameters: the pull of the data on the weights."""

    V: np.ndarray  # (G, d, d)
    Q: np.ndarray  # (G, d, d)
    m: np.ndarray  # (K, d)
    slope: np.ndarray  # (d, d) of the mean force, by the bias


def proximal(fields, start, V, weight, y, H):
    """Return points u (n, d) that minimise weight · ℓ(u) + ½ (u-ω)ᵀV⁻¹(u-ω), with p (n, T) there.

    Newton's method on u + V∇ = ω, with steps damped as for self-concordant functions, so that no line search is needed.

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


def data_side(problem, rule, unknowns, starts):
    """Return the Hats of order parameters, and the proximal points (K entries) for the next start."""
    (nodes, mass), (G, d, _) = rule, unknowns.V.shape
    hats = Hats(np.zeros((G, d, d)), np.zeros((G, d, d)), np.zeros_like(unknowns.m), np.zeros((d, d)))
    points = []
    for c, g in enumerate(problem.shape):
        width, weight, alpha = problem.width[c], problem.weight[c], problem.alpha[c]
        values, basis = np.linalg.eigh(width * unknowns.Q[g])
        fields = unknowns.m[c] - unknowns.b + (nodes * np.sqrt(np.maximum(values, 0.0))) @ basis.T
        V = width * unknowns.V[g]
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


MOST_CLASSES = 5
LARGEST_MATRIX = 3000  # (T-1) times the directions of covariances that share no basis
NODES = {1: (81, 61), 2: (30, 24)}  # of Gauss's rule in each dimension: one to solve with, one for the error
SETS, POINTS = 4, 1024  # of quasi-random points
SMALLEST_RIDGE = 1e-9  # below it, weights of separable classes grow too large for the iteration
MEMORY = 8  # steps that Anderson's acceleration combines


@dataclass(frozen=True)
class MultinomialSolution:
    """Multinomial regression of T classes, for a mixture of K clusters.

    Attributes
    ----------
    means : (T, T) array
        Mean score of each class (column) in the samples of a class (row), bias included; scores sum to zero.
    overlaps : (T, T, T) array
        Covariances of the T scores within each class; the first axis is the class.
    cluster_means, cluster_overlaps : (K, T) and (K, T, T) array
        The same of each cluster.
    b : (T,) array
        Biases, which are subtracted, counted from ``mixture.M``.
    means_error, overlaps_error : (K, T) and (K, T, T) array
        Errors of the integration in ``cluster_means`` and ``cluster_overlaps``: standard errors where points are
        quasi-random, differences of two rules otherwise.
    converged : bool
        Whether the saddle point was found to the tolerance. Where it is False, numbers are NaN.
    residual : float
        Largest relative violation of the equations.
    alphas, weights, lam
        The arguments; ``weights`` is (T,).
    mixture : Mixture
    """

    means: np.ndarray
    overlaps: np.ndarray
    cluster_means: np.ndarray
    cluster_overlaps: np.ndarray
    b: np.ndarray
    means_error: np.ndarray
    overlaps_error: np.ndarray
    converged: bool
    residual: float
    alphas: np.ndarray
    weights: np.ndarray
    lam: float
    mixture: Mixture
    _sets: tuple = field(repr=False)  # (means, overlaps) of each rule

    @property
    def metrics(self):
        """Test metrics where the largest score decides, as :class:`rbal.metrics.ManyMetrics`."""
        return self._metrics(self.cluster_means, self.cluster_overlaps)

    @cached_property
    def confusion_error(self):
        """Error (T, T) of ``metrics.confusion()`` by the integration in the saddle point."""
        return _error(np.stack([self._metrics(*one).confusion() for one in self._sets]), self.means.shape[0])

    def _metrics(self, means, overlaps):
        return ManyMetrics(means, overlaps, places_of(self.mixture), self.mixture.shares)


class Regression(NamedTuple):
    """One regression to solve."""

    alpha: np.ndarray  # (K,) sizes of the clusters over L
    weight: np.ndarray  # (K,)
    place: np.ndarray  # (K,) class of each cluster
    shape: np.ndarray  # (K,) covariance of each cluster
    width: np.ndarray  # (K,) factor on it
    H: np.ndarray  # (T-1, T)
    block: object
    lam: float


def solve_multinomial(mixture, alphas, lam=1.0, weights=None, *, tol=1e-8, max_iter=300):
    """Solve for multinomial logistic regression, and the joint law of its scores.

    Parameters
    ----------
    mixture : Mixture
        Clusters of two to five classes.
    alphas : (T,) array or mapping
        Class sizes over L, in the order of ``mixture.classes`` or by class.
    lam : float
        Ridge of all weights; scikit-learn's C is 1/lam, on inputs divided by √L. With two classes this is the logistic
        regression of :func:`rbal.solve` at half the ridge, since two sets of weights share one direction.
    weights : None, "balanced" or (T,) array
        Factors on the loss of each class: all 1; inverse to the class sizes with mean 1 over the samples; or any.
    tol : float
        Residual at which to stop.
    max_iter : int
        Iterations for each rule of integration.

    Returns
    -------
    MultinomialSolution
        With the errors of its integrals.

    Warns
    -----
    ConvergenceWarning
        When the saddle point is not found; then everything is NaN.

    Examples
    --------
    >>> import numpy as np, rbal
    >>> mix = rbal.Mixture.gaussian(2.0 * np.eye(3, 50), np.ones(50), ["a", "b", "c"])
    >>> sol = rbal.solve_multinomial(mix, [0.4, 1.0, 4.0], weights="balanced")
    >>> print(sol.metrics.confusion().round(3))
    [[0.694 0.138 0.168]
     [0.068 0.819 0.114]
     [0.051 0.07  0.878]]
    """
    problem, alphas, weights = _checked(mixture, alphas, lam, weights)
    tol, max_iter = number("tol", tol, 1e-13), positive_int("max_iter", max_iter)
    T, solutions, current, residual = alphas.size, [], _start(problem), 0.0
    for rule in _rules(T - 1):
        with np.errstate(all="ignore"):  # an overflow ends in a warning that nothing converged
            current, gap = _fixed_point(problem, rule, current, tol, max_iter)
        solutions.append(current)
        residual = max(residual, gap)
    converged = bool(residual <= tol)
    if not converged:
        warnings.warn("the regression did not converge: all values are NaN", convergence_warning(), stacklevel=2)
    H, shape, width = problem.H, problem.shape, problem.width
    sets = tuple(
        (
            (one.m - one.b) @ H + (0.0 if converged else np.nan),
            np.einsum("at,cab,bs->cts", H, width[:, None, None] * one.Q[shape], H) + (0.0 if converged else np.nan),
        )
        for one in solutions
    )
    several = T - 1 not in NODES
    means, overlaps = (np.mean(part, axis=0) if several else part[0] for part in zip(*sets, strict=True))
    b = np.mean([one.b for one in solutions], axis=0) if several else solutions[0].b
    b = b if converged else np.full_like(b, np.nan)
    errors = (_error(np.stack(part), T) for part in zip(*sets, strict=True))
    return MultinomialSolution(
        *by_class(mixture, means, overlaps), means, overlaps, b @ H, *errors, converged, float(residual), alphas,
        weights, problem.lam, mixture, sets,
    )  # fmt: skip


def _checked(mixture, alphas, lam, weights):
    """Return the regression, and the checked sizes and weights (T,) of the classes."""
    alphas = checked_alphas(alphas, a_mixture(mixture))
    T = alphas.size
    if T > MOST_CLASSES:
        raise ValueError(
            f"mixture must have at most {MOST_CLASSES} classes for multinomial regression, got {T}: "
            "rbal.solve_ovr takes any number"
        )
    if isinstance(weights, str) and weights == "balanced":
        weights = alphas.sum() / (T * alphas)
    elif weights is None:
        weights = np.ones(T)
    elif isinstance(weights, str) or (weights := real_array("weights", weights)).shape != (T,):
        got = repr(weights) if isinstance(weights, str) else f"shape {weights.shape}"
        raise ValueError(f"weights must be None, 'balanced' or {T} numbers, one for each class, got {got}")
    weights = in_range("weights", weights, 0.0, open_low=True)
    block, place = mixture.blocks, places_of(mixture)
    if hasattr(block, "C") and (T - 1) * block.C.shape[1] > LARGEST_MATRIX:
        raise ValueError(
            f"mixture must have at most {LARGEST_MATRIX // (T - 1)} directions where covariances of {T} classes share "
            f"no basis, got {block.C.shape[1]}: use one covariance for all, or rbal.solve_ovr"
        )
    lam = number("lam", lam, SMALLEST_RIDGE)
    problem = Regression(
        alphas[place] * mixture.shares, weights[place], place, mixture._shape, mixture._width, helmert(T), block, lam
    )
    return problem, alphas, weights


def _rules(d):
    """Return the rules of integration over d standard normals: nodes (n, d) and weights (n,) each."""
    if d in NODES:
        for n in NODES[d]:
            x, w = np.polynomial.hermite_e.hermegauss(n)
            grids = np.meshgrid(*[x] * d, indexing="ij")
            mass = np.prod(np.meshgrid(*[w / w.sum()] * d, indexing="ij"), axis=0).ravel()
            keep = mass > 1e-20
            yield np.stack([grid.ravel() for grid in grids], axis=1)[keep], mass[keep]
        return
    from scipy.stats import qmc

    for seed in range(SETS):
        x = ndtri(np.clip(qmc.Sobol(d, scramble=True, rng=seed).random(POINTS // 2), 1e-16, 1.0 - 1e-16))
        x = np.concatenate([x, -x])
        root = np.linalg.cholesky(x.T @ x / len(x))  # the second moments are exact, as the first are
        yield np.linalg.solve(root, x.T).T, np.full(len(x), 1.0 / len(x))


def _error(sets, T):
    """Return the error of the results of several rules, along the first axis."""
    if T - 1 in NODES:
        return np.abs(sets[1] - sets[0])
    return sets.std(axis=0, ddof=1) / np.sqrt(len(sets))


def _start(problem):
    """Return the order parameters to start from."""
    d, traces = len(problem.H), problem.block.traces()[:, None, None]
    force = problem.alpha @ problem.weight
    V = np.eye(d) * traces / (problem.lam + 0.2 * force * traces.mean())
    return Unknowns(V, np.eye(d) * traces, np.zeros((problem.alpha.size, d)), np.zeros(d))


def _fixed_point(problem, rule, start, tol, max_iter):
    """Return order parameters and their residual, by a fixed point with Anderson's acceleration."""
    points, states, gaps, current, best = None, [], [], start, (np.inf, start)
    for step in range(max_iter):
        try:
            hats, points = data_side(problem, rule, current, points)
            V, Q, m = weight_side(problem.block, hats, problem.lam)
            new = Unknowns(V, Q, m, current.b - np.linalg.solve(hats.slope, hats.m.sum(axis=0)))
        except np.linalg.LinAlgError:  # a curvature that underflows: there is no next step
            break
        residual = _distance(new, current)
        best = min(best, (residual, current), key=lambda one: one[0])
        if (residual <= tol and step) or not np.isfinite(residual):  # at least one step, so that rules differ at all
            break
        flat = _flat(current)
        states, gaps = [*states, flat][-MEMORY:], [*gaps, _flat(new) - flat][-MEMORY:]
        mixed = _mixed(states, gaps, new)
        if mixed is None:
            states, gaps = states[-1:], gaps[-1:]
            mixed = Unknowns(*(0.5 * (a + b) for a, b in zip(current, new, strict=True)))
        current = mixed
    return best[1], best[0]


def _distance(new, old):
    """Return the largest change of order parameters, relative to their scales."""
    size = np.linalg.norm(new.V, axis=(1, 2)).max(), np.linalg.norm(new.Q, axis=(1, 2)).max()
    gaps = np.abs(new.V - old.V).max() / size[0], np.abs(new.Q - old.Q).max() / size[1]
    return max(*gaps, max(np.abs(new.m - old.m).max(), np.abs(new.b - old.b).max()) / np.sqrt(size[1]))


def _flat(unknowns):
    return np.concatenate([part.ravel() for part in unknowns])


def _mixed(states, gaps, new):
    """Return Anderson's combination of the last steps; None if it is no covariance, or if there is one step only."""
    if len(states) == 1:
        return None
    flat = states[-1] + anderson_step(states, gaps, 1.0)
    ends = np.cumsum([part.size for part in new])[:-1]
    mixed = Unknowns(*(part.reshape(old.shape) for part, old in zip(np.split(flat, ends), new, strict=True)))
    lowest = [np.linalg.eigvalsh(part).min(axis=1) for part in (mixed.V, mixed.Q)]
    unmixed = [np.linalg.eigvalsh(part).min(axis=1) for part in (new.V, new.Q)]
    return mixed if all(np.all(a > 0.1 * b) for a, b in zip(lowest, unmixed, strict=True)) else None
