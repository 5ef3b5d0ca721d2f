r"""One classifier for each class against all others, and the joint law of their scores.

Machine t has label +1 for class t and -1 for the rest. Each has its own saddle point, that of a mixture. All were
trained on the same samples, so that their scores are correlated: the covariance :math:`q^{tt'}` of two of them within a
cluster follows from a fixed point in one number for each shape of covariance.

.. math::

   \hat q^{tt'}_c = \alpha_c\,y_ty_{t'}\,\mathbb E[f_t f_{t'}] ,\qquad
   q^{tt'}_c = \frac1L\operatorname{tr} C_cA_t^{-1}\Big(\sum_{c'} \hat q^{tt'}_{c'}C_{c'}\Big)A_{t'}^{-1}
             + W_t^\top A_t^{-1}C_cA_{t'}^{-1}W_{t'} .
"""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._support.validation import flag, in_range, instance, number, positive_int, real_array
from .._support.warnings import convergence_warning
from ..losses import record_of
from ..losses.internal import NO_LAW
from ..metrics import ManyMetrics
from ..moments import Mixture
from ._equations import COLLAPSED, RIDGE, UNSAT
from ._mixture_data import Clusters
from ._mixture_fallback import Task, solve_ridge
from ._mixture_solve import report
from ._overlap import CLOSEST, Side, shared_force
from ._solve import LARGEST_SIZE, PHASES

STEPS = 60  # of Newton's method for one overlap, which takes about four


@dataclass(frozen=True, slots=True)
class OvrSolution:
    """Classifiers of each class against the rest, T of them, for a mixture of K clusters in T classes.

    Attributes
    ----------
    means : (T, T) array
        Mean score in a class (row) of the machine of a class (column), bias subtracted.
    overlaps : (T, T, T) array
        Covariances of the T scores within each class; the first axis is the class.
    cluster_means, cluster_overlaps : (K, T) and (K, T, T) array
        The same of each cluster.
    b : (T,) array
        Biases, counted from ``mixture.M``.
    phases : tuple of str
        Phase of each machine: "UNSAT", or "COLLAPSED" where it answers "another class" to all.
    converged : bool
        Whether all saddle points and overlaps were found to the tolerance. Where it is False, numbers are NaN.
    residual : float
        Largest relative violation of all equations.
    alphas, weights, lam, loss, fit_bias
        The arguments; ``weights`` is (T, T).
    mixture : Mixture
    """

    means: np.ndarray
    overlaps: np.ndarray
    cluster_means: np.ndarray
    cluster_overlaps: np.ndarray
    b: np.ndarray
    phases: tuple
    converged: bool
    residual: float
    alphas: np.ndarray
    weights: np.ndarray
    lam: float
    loss: str
    fit_bias: bool
    mixture: Mixture

    @property
    def metrics(self):
        """Test metrics where the largest score decides, as :class:`rbal.metrics.ManyMetrics`."""
        return ManyMetrics(self.cluster_means, self.cluster_overlaps, places_of(self.mixture), self.mixture.shares)


class Machine(NamedTuple):
    """One machine: its labels, laws of u0, and resolvent, which the overlaps need."""

    label: np.ndarray  # (K,)
    sides: list  # of K, a Side each; None if it collapsed
    m: np.ndarray  # (K,)
    q: np.ndarray  # (K,)
    b: float
    k_hat: float
    x_hat: np.ndarray  # (K,)
    m_hat: np.ndarray  # (K,)
    phase: int
    residual: float


def solve_ovr(
    mixture, alphas, lam=1.0, loss="hinge", weights=None, *, kappa=None, fit_bias=True, tol=1e-10, max_iter=200
):
    """Solve for one classifier of each class against the rest, and the joint law of their scores.

    Parameters
    ----------
    mixture : Mixture
        Clusters of two classes or more.
    alphas : (T,) array or mapping
        Class sizes over L, in the order of ``mixture.classes`` or by class.
    lam : float
        Ridge of every machine; scikit-learn's C is 1/lam, on inputs divided by √L.
    loss : {"hinge", "squared_hinge", "square", "logistic"} or Loss
        Loss of the machines.
    weights : None, "balanced", (T,) or (T, T) array
        Factors on the loss of each class (column) in the machine of each class (row): all 1; or such that in every
        machine its class weighs as much as the rest; or any, the same in all machines if there is one row.
    kappa : float, optional
        Margin; 1 by default, and 0 for the logistic loss.
    fit_bias : bool
        Whether biases are trained.
    tol : float
        Residual at which to stop.
    max_iter : int
        Newton iterations per attempt.

    Returns
    -------
    OvrSolution

    Warns
    -----
    ConvergenceWarning
        When a machine or an overlap is not found; then everything is NaN.

    Examples
    --------
    Three classes of unequal sizes:

    >>> import numpy as np, rbal
    >>> means = np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]) @ np.eye(3, 50)
    >>> mix = rbal.Mixture.gaussian(means, np.ones(50), ["a", "b", "c"])
    >>> sol = rbal.solve_ovr(mix, [0.4, 1.0, 4.0], weights="balanced")
    >>> print(sol.metrics.confusion().round(3))
    [[0.59  0.195 0.215]
     [0.056 0.813 0.131]
     [0.04  0.077 0.883]]
    """
    alphas = checked_alphas(alphas, a_mixture(mixture))
    T = alphas.size
    law, lam, fit_bias = record_of(loss), number("lam", lam, 0.0, open_low=True), flag("fit_bias", fit_bias)
    kappa = number("kappa", law.margin if kappa is None else kappa, 0.0, 1e100, open_low=law.margin > 0.0)
    weights = _weights(weights, alphas)
    tol, max_iter = number("tol", tol, 1e-14), positive_int("max_iter", max_iter)
    max_iter = min(max_iter, 40) if law.widest < math.inf else max_iter
    task = Task((law.law, NO_LAW, NO_LAW), mixture.blocks, tol, max_iter)
    places = places_of(mixture)
    clusters = Clusters(
        RIDGE, law.law, alphas[places] * mixture.shares, np.empty(0), np.full(places.size, kappa), np.empty(0),
        mixture._shape, mixture._width, len(mixture._covs), float(mixture.Q), lam, fit_bias,
    )  # fmt: skip
    machines = [
        _machine(task, clusters._replace(label=np.where(places == t, 1.0, -1.0), weight=weights[t][places]))
        for t in range(T)
    ]
    means = np.stack([machine.m - machine.b for machine in machines], axis=1)
    overlaps, residual = _overlaps(mixture, clusters.alpha, machines, tol)
    residual = max(residual, *(machine.residual for machine in machines))
    converged = bool(residual <= tol)
    if not converged:
        warnings.warn(
            "machines of some classes did not converge: all values are NaN", convergence_warning(), stacklevel=2
        )
        means, overlaps = np.full_like(means, np.nan), np.full_like(overlaps, np.nan)
    b = np.array([machine.b if converged else math.nan for machine in machines])
    return OvrSolution(
        *by_class(mixture, means, overlaps), means, overlaps, b,
        tuple(PHASES[machine.phase] for machine in machines), converged, float(residual), alphas,
        weights, lam, law.name, fit_bias, mixture,
    )  # fmt: skip


def a_mixture(mixture):
    """Return the mixture, when it is one."""
    if not isinstance(mixture, Mixture):
        raise TypeError(f"mixture must be a rbal.Mixture, got {type(mixture).__name__}")
    return mixture


def checked_alphas(alphas, mixture=None):
    """Return class sizes (T,), given in the order of the classes or by class; of T classes if there is no mixture."""
    classes = None if mixture is None else instance("mixture", mixture, Mixture).classes.tolist()
    if isinstance(alphas, Mapping):
        if classes is None or set(alphas) != set(classes):
            raise ValueError(f"alphas must have the classes {classes} of the mixture, got {list(alphas)}")
        alphas = [alphas[label] for label in classes]
    alphas = real_array("alphas", alphas, 1)
    if classes is not None and alphas.shape != (len(classes),):
        raise ValueError(f"alphas must have one entry for each of the {len(classes)} classes, got shape {alphas.shape}")
    if alphas.size < 2:
        raise ValueError(
            f"{'alphas' if mixture is None else 'mixture'} must have at least 2 classes, got {alphas.size}"
        )
    if (empty := np.flatnonzero(alphas == 0.0)).size:
        label = empty[0] if classes is None else classes[empty[0]]
        raise ValueError(f"alphas must be > 0, got 0 for class {label!r}: a class needs rows to have a machine")
    return in_range("alphas", alphas, 0.0, LARGEST_SIZE, open_low=True)


def places_of(mixture):
    """Return the class (K,) of each cluster, as a number from 0."""
    return np.searchsorted(mixture.classes, mixture.labels)


def by_class(mixture, means, overlaps):
    """Return means (T, T) and covariances (T, T, T) of the scores in each class, from those in clusters."""
    of_class = np.where(places_of(mixture) == np.arange(mixture.classes.size)[:, None], mixture.shares, 0.0)
    class_means = of_class @ means
    deviations = means[None] - class_means[:, None]
    spread = np.einsum("kc,kct,kcs->kts", of_class, deviations, deviations)
    return class_means, np.tensordot(of_class, overlaps, 1) + spread


def _weights(weights, alphas):
    """Return the weights (T, T) of each class (column) in each machine (row)."""
    T, total = alphas.size, alphas.sum()
    takes = f"None, 'balanced', ({T},) or ({T}, {T}) numbers"
    if weights is None:
        return np.ones((T, T))
    if isinstance(weights, str):
        if weights != "balanced":
            raise ValueError(f"weights must be {takes}, got {weights!r}")
        other = np.broadcast_to((0.5 * total / (total - alphas))[:, None], (T, T)).copy()
        np.fill_diagonal(other, 0.5 * total / alphas)
        return other
    weights = in_range("weights", real_array("weights", weights), 0.0, open_low=True)
    if weights.shape not in ((T,), (T, T)):
        raise ValueError(f"weights must be {takes}, got shape {weights.shape}")
    return np.broadcast_to(weights, (T, T)).copy()


def _machine(task, problem):
    """Solve one machine."""
    result = solve_ridge(task, problem)
    converged = result.residual <= task.tol
    if converged and result.phase == UNSAT:
        converged = (problem.width * np.exp(result.y[problem.shape])).max() <= task.laws[0].widest ** 2
    K = problem.alpha.size
    if not converged:
        unknown = np.full(K, np.nan)
        return Machine(problem.label, None, unknown, unknown, math.nan, math.nan, unknown, unknown, UNSAT, math.inf)
    values, sides = report(task, problem, result), None
    if result.phase != COLLAPSED:
        mu = problem.label * (values["m"] - values["b"])
        law = problem.law
        sides = [
            Side(law.expectations, *map(float, row), law.unit)
            for row in zip(problem.kappa, problem.weight, values["x"], mu, values["q"], strict=True)
        ]
    return Machine(
        problem.label,
        sides,
        *(values[name] for name in ("m", "q", "b", "k_hat", "x_hat", "m_hat")),
        result.phase,
        result.residual,
    )


def _overlaps(mixture, alpha, machines, tol):
    """Return the covariances (K, T, T) of all scores in every cluster, and the largest residual of their equations."""
    K, T = alpha.size, len(machines)
    overlaps, worst = np.zeros((K, T, T)), 0.0
    resolvents = [None if machine.sides is None else _Resolvent(mixture, machine) for machine in machines]
    for t in range(T):
        overlaps[:, t, t] = machines[t].q
        for s in range(t):
            if resolvents[t] is None or resolvents[s] is None:
                continue  # a machine without weights has the same score everywhere
            pair, weight_side = (machines[t], machines[s]), resolvents[t].against(resolvents[s])
            q, residual = _fixed_point(mixture, alpha, pair, weight_side)
            overlaps[:, t, s] = overlaps[:, s, t] = mixture._width * q[mixture._shape]
            worst = max(worst, residual)
    if any(machine.residual == math.inf for machine in machines):
        worst = math.inf
    return overlaps, worst


class _Resolvent:
    """A⁻¹ and A⁻¹W of one machine."""

    def __init__(self, mixture, machine):
        self.block = block = mixture.blocks
        G = len(mixture._covs)
        x_hat = np.bincount(mixture._shape, mixture._width * machine.x_hat, G)
        W = machine.m_hat @ block.v
        if hasattr(block, "C"):
            above = (x_hat @ block.flat).reshape(block.C.shape[1:])
            self.inverse = np.linalg.inv(above + machine.k_hat * np.eye(len(above)))
            self.outside = 1.0 / (machine.k_hat + x_hat @ block.lam_out)
            self.pull = self.inverse @ W
        else:
            self.inverse = 1.0 / (machine.k_hat + x_hat @ block.lam)
            self.pull = self.inverse * W

    @cached_property
    def products(self):
        """C A⁻¹ (G, k, k) of each covariance, cached because every pair of machines needs it."""
        return self.block.C @ self.inverse

    def against(self, other):
        """Return T (G, G) and p (G,) with q = T q̂ + p for the overlap of two machines."""
        block = self.block
        if not hasattr(block, "C"):
            both = block.g * self.inverse * other.inverse
            return (block.lam * both) @ block.lam.T, block.lam @ (self.pull * other.pull)
        G = len(block.C)
        left, right = self.products.reshape(G, -1), np.swapaxes(other.products, 1, 2).reshape(G, -1)
        outside = (block.lam_out * block.g_out * self.outside * other.outside) @ block.lam_out.T
        return left @ right.T / block.L + outside, (block.C @ other.pull) @ self.pull


def _fixed_point(mixture, alpha, pair, weight_side):
    """Return the overlap (G,) of two machines within each shape of covariance, and its residual, by Newton's method.

    E[f₁f₂] rises with the overlap, at a slope E[f₁'f₂'], and the slope of the whole is below 1.
    """
    one, two = pair
    T, p = weight_side
    G, shape, width = len(p), mixture._shape, mixture._width
    first = np.array([np.flatnonzero(shape == h)[0] for h in range(G)])
    scale = np.sqrt(one.q * two.q)[first] / width[first]  # of the shape itself
    sign, limit = one.label * two.label, (1.0 - CLOSEST) * scale
    q = np.clip(p, -limit, limit)
    for _ in range(STEPS):
        q_hat, slope = np.zeros(G), np.zeros(G)
        for c, h in enumerate(shape):
            rho = sign[c] * q[h] / scale[h]
            value, by_cov = shared_force(one.sides[c], two.sides[c], rho)
            q_hat[h] += width[c] * alpha[c] * sign[c] * value
            slope[h] += width[c] ** 2 * alpha[c] * by_cov
        gap = T @ q_hat + p - q
        residual = float(np.max(np.abs(gap) / scale))
        new = np.clip(q + np.linalg.solve(np.eye(G) - T * slope, gap), -limit, limit)
        if residual <= 1e-13 or np.array_equal(new, q):
            break
        q = new
    at_limit = np.abs(q) >= limit * (1.0 - 1e-13)  # the same machine, or its mirror image
    return q, float(np.max(np.where(at_limit, np.minimum(np.abs(gap) / scale, 1e-11), np.abs(gap) / scale)))
