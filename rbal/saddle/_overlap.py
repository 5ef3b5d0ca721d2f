r"""Covariance of the scores of two classifiers that were trained on shared samples.

Each classifier has its own saddle point. What is left is one number, the covariance :math:`q_{12}` of their scores
within a class, and a fixed point for it: a shared sample pulls at both classifiers, and the pulls are correlated as far
as the scores are.

.. math::

   \hat q_{12} = \sum_\text{class} \alpha_\text{shared}\,\mathbb E[f_1 f_2] ,\qquad
   q_{12} = \frac1L\sum_i \lambda_i\,\frac{\hat q_{12}\lambda_i + \hat r_1\hat r_2\,d_i^2}{A_{1,i}A_{2,i}} .

Of two correlated Gaussians :math:`u_t = \mu_t + \sqrt{q_t}\,(\sqrt\rho\,z + \sqrt{1-\rho}\,z_t)` only z is common to
both. Given z the forces are independent, and :math:`\mathbb E[f_t\,|\,z]` is the first of the expectations that every
record of a loss has anyway, at another mean and a smaller variance. So one integral over z serves all losses, and the
constraint of the SAT phase too.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from .._support.gauss import GL_NODES, GL_WEIGHTS, Z_MAX, jit, pdf
from .._support.validation import in_range
from ..losses import record_of
from ..losses.internal import expectations_at
from ..moments import spectrum_of
from ._solve import Solution

CLOSEST = 1e-14  # 1 - |correlation| of machines that are taken to be the same
SAME = 1e-9  # violation of the fixed point at correlation 1 that may be rounding of the two solutions
PANEL = 1.0  # width of panels of a smooth integrand, in standard deviations
RESOLVED = 4.5  # panel width, in units of the scale on which a loss bends, at which twelve nodes resolve it


class Overlap(NamedTuple):
    """Covariance of the scores of two classifiers on a test sample, within a class; fields may be arrays."""

    q: float  # the covariance, q₁₂
    correlation: float  # q₁₂ over the standard deviations of the two scores
    q_hat: float  # its conjugate, Σ α E[f₁f₂] over the shared samples
    residual: float  # violation of the fixed point, relative to √(q₁q₂)


class Side(NamedTuple):
    """The law of u0 in one class for one classifier, with the address of the expectations of its loss."""

    law: int
    kappa: float
    c: float
    x: float
    mu: float
    q: float
    unit: float


def overlap(moments, first, second, shared=None):
    """Return the covariance of the scores of two classifiers that share training samples.

    A test sample of a class has two scores, which are jointly Gaussian: their means and variances are those of each
    classifier alone, and this is the covariance. The classifiers may differ in their loss, margin, weights and ridge;
    the samples that they do not share are drawn independently. In the SAT phase they are typical weights without loss.
    On the sphere with k̂ < 0, where the loss has many local minima, it is replica symmetric as the solutions are.

    Parameters
    ----------
    moments : Moments or Spectrum
        Statistics of the classes, those of both solutions.
    first, second : Solution
        Of one problem each, or of sweeps, which broadcast.
    shared : (float, float) or pair of arrays, optional
        Numbers over L of positives and of negatives that both were trained on. By default all of them, for classifiers
        with training sets of the same size.

    Returns
    -------
    Overlap
        A named tuple (q, correlation, q_hat, residual): NaN where a solution did not converge, 0 where one collapsed.

    Examples
    --------
    Two machines that share their positives, and every fifth negative:

    >>> import rbal
    >>> classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    >>> sol = rbal.solve(classes, 2.0, 2.0, model="svm", lam=1.0)
    >>> print(f"correlation of the scores {overlap(classes, sol, sol, shared=(2.0, 0.4)).correlation:.3f}")
    correlation of the scores 0.756
    """
    spectrum = spectrum_of(moments)
    for name, sol in (("first", first), ("second", second)):
        if not isinstance(sol, Solution):
            raise TypeError(f"{name} must be a Solution of rbal.solve or rbal.sweep, got {type(sol).__name__}")
    sizes = _shared(first, second, shared)
    shape = np.broadcast_shapes(np.shape(first.q), np.shape(second.q), *map(np.shape, sizes))
    results = np.empty((*shape, len(Overlap._fields)))
    for index in np.ndindex(shape):
        one, two = _point(first, index, shape), _point(second, index, shape)
        results[index] = _fixed_point(spectrum, one, two, [np.broadcast_to(size, shape)[index] for size in sizes])
    return Overlap(*(column[()] for column in np.moveaxis(results, -1, 0)))


def _shared(first, second, shared):
    """Return the shared numbers of positives and of negatives, checked."""
    names = ("alpha_pos", "alpha_neg")
    sizes = [(np.asarray(getattr(first, name)), np.asarray(getattr(second, name))) for name in names]
    if shared is None:
        if not all(np.array_equal(*np.broadcast_arrays(a, b)) for a, b in sizes):
            raise ValueError("shared must be given for training sets of different sizes")
        return [a for a, _ in sizes]
    try:
        shared = [*shared]
        if len(shared) != 2:
            raise ValueError
    except (TypeError, ValueError):
        raise ValueError(f"shared must be a pair, of positives and of negatives over L, got {shared!r}") from None
    for name, value, (a, b) in zip(names, shared, sizes, strict=True):
        value = np.asarray(in_range(f"shared ({name})", value, 0.0))
        most = np.minimum(a, b)
        if np.any(value > most * (1.0 + 1e-12)):
            raise ValueError(f"shared must not be more than {name} of either, {np.min(most):g}, got {np.max(value):g}")
    return [np.asarray(value, float) for value in shared]


def _point(sol, index, shape):
    """Return one point of a sweep that is broadcast to the shape; a single solution as it is."""
    if np.ndim(sol.q) == 0:
        return sol
    return sol[tuple(np.broadcast_to(k, shape)[index] for k in np.indices(np.shape(sol.q), sparse=True))]


def _fixed_point(spectrum, one, two, shared):
    """Return the Overlap of two solutions of one problem each."""
    if not (one.converged and two.converged):
        return Overlap(np.nan, np.nan, np.nan, np.nan)
    if "COLLAPSED" in (one.phase, two.phase):
        return Overlap(0.0, 0.0, np.nan, 0.0)
    per_force, shift = _weight_side(spectrum, one, two)
    pairs = [(size, _side(one, label), _side(two, label)) for size, label in zip(shared, (1, -1), strict=True)]
    scale = math.sqrt(one.q * two.q)

    def hat(rho):
        return sum(size * shared_force(a, b, rho)[0] for size, a, b in pairs if size > 0.0)

    def gap(rho):  # falls in ρ: E[f₁f₂] rises with a slope E[f₁'f₂'] that is below that of a machine with itself
        return (per_force * hat(rho) + shift) / scale - rho

    low, high = -1.0 + CLOSEST, 1.0 - CLOSEST
    if gap(high) >= -max(SAME, 10.0 * (one.residual + two.residual)):  # the same machine twice
        rho = high
    elif gap(low) <= 0.0:
        rho = low
    else:
        rho = brentq(gap, low, high, xtol=1e-15, rtol=1e-13)
    q12 = rho * scale
    return Overlap(q12, q12 / math.sqrt(one.variance * two.variance), hat(rho), abs(gap(rho)))


def _weight_side(spectrum, one, two):
    """Return the slope of q₁₂ in q̂₁₂, and q₁₂ without shared samples, which is due to the common shift."""
    lam = spectrum.lam
    both = (one.k_hat + one.x_hat * lam) * (two.k_hat + two.x_hat * lam)
    return float(np.sum(spectrum.g * lam**2 / both)), one.r_hat * two.r_hat * float(np.sum(spectrum.s * lam / both))


def _side(sol, label):
    """Return the Side of a class for one classifier."""
    loss = record_of(sol.loss)
    law = loss.laws[1 if sol.phase == "SAT" else 0]
    kappa, c = (sol.kappa, sol.weight_pos) if label > 0 else (sol.kappa_neg, sol.weight_neg)
    mu = 0.5 * sol.r - label * sol.b
    return Side(law.expectations, float(kappa), float(c), float(sol.x), float(mu), float(sol.q), law.unit)


def shared_force(a, b, rho):
    """Return E[f₁f₂] of one class at correlation ρ, and its derivative in the covariance, E[f₁'f₂']."""
    nodes, weights = _nodes(a, b, rho)
    return product(a, b, rho, nodes, weights)


def _nodes(a, b, rho):
    """Return nodes and weights for z, on panels that shrink towards the kinks of the forces.

    Given z, a kink is smeared over √(1 - ρ), so that panels need not be much smaller.
    """
    root, smeared = math.sqrt(abs(rho)), math.sqrt(1.0 - abs(rho))
    if root * Z_MAX < 1e-12:
        return np.zeros(1), np.ones(1)
    edges, width = [], PANEL
    for side, sign in ((a, 1.0), (b, math.copysign(1.0, rho))):
        scale = sign * root * math.sqrt(side.q)
        if side.unit > 0.0:
            width = min(width, RESOLVED * side.unit / abs(scale))
            continue
        levels = 2.0 ** -np.arange(max(2, min(60, 3 - math.log2(smeared / root))))
        for kink in (side.kappa, side.kappa - side.c * side.x):
            edges += [(kink - side.mu) / scale + np.r_[-levels, 0.0, levels]]
    n = math.ceil(2.0 * Z_MAX / width)
    edges = np.unique(np.concatenate([np.linspace(-Z_MAX, Z_MAX, n + 1), *edges]))
    edges = edges[np.abs(edges) <= Z_MAX]
    size = np.diff(edges)[:, None]
    nodes, weights = edges[:-1, None] + size * GL_NODES, size * GL_WEIGHTS
    return nodes.ravel(), weights.ravel()


@jit
def product(a, b, rho, nodes, weights):
    """Return ∫ Dz E[f₁|z] E[f₂|z], and the same of the slopes; with one node these are products of the means."""
    root, rest = math.sqrt(abs(rho)), 1.0 - abs(rho)
    step_a = root * math.sqrt(a.q)
    step_b = math.copysign(root, rho) * math.sqrt(b.q)
    total = slope = 0.0
    for i in range(nodes.size):
        z = nodes[i]
        e_a = expectations_at(a.law, (a.kappa, a.c, a.x, a.mu + step_a * z, a.q * rest))
        e_b = expectations_at(b.law, (b.kappa, b.c, b.x, b.mu + step_b * z, b.q * rest))
        weight = weights[i] * pdf(z) if nodes.size > 1 else 1.0
        total += weight * e_a[0] * e_b[0]
        slope += weight * e_a[3] * e_b[3]
    return total, slope
