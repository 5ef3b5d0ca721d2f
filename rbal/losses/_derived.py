"""Losses derived from another one: averaged over bootstrap copies, or of a rescaled score.

They are compiled at their first use in a process, and not cached, which takes a few seconds.
"""

import functools
import math
from dataclasses import replace

import numpy as np
from numba import njit

from .._support.validation import instance
from ._record import Loss

compile_now = njit(error_model="numpy")
DEGREES = (1, 2)  # of homogeneity that are tested


@compile_now
def add(total, p, e):
    """Return total + p·e of two tuples of twelve numbers."""
    return (
        total[0] + p * e[0], total[1] + p * e[1], total[2] + p * e[2], total[3] + p * e[3],
        total[4] + p * e[4], total[5] + p * e[5], total[6] + p * e[6], total[7] + p * e[7],
        total[8] + p * e[8], total[9] + p * e[9], total[10] + p * e[10], total[11] + p * e[11],
    )  # fmt: skip


def bootstrapped(loss):
    """Return the loss of a sample that is there a random number of times, as in a bootstrap sample.

    A row of a bootstrap sample of many rows is there n times, with n Poisson of mean 1; of mean c if c times as many
    rows are drawn, or if a share c of them is kept. The weight c of the new loss is that mean: all expectations are
    those of the old loss at weight n, averaged over n.

    Parameters
    ----------
    loss : Loss

    Returns
    -------
    Loss
        Without a constraint, so on the sphere only where some loss is left; without an estimator. Its force is the mean
        one.
    """
    return _bootstrapped(instance("loss", loss, Loss))


@functools.cache
def _bootstrapped(loss):
    old, old_loss, old_force, old_curvature = loss.expectations, loss.mean_loss, loss.force, loss.curvature

    @compile_now
    def expectations(kappa, c, x, mu, q):
        total = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        n, p = 1.0, c * math.exp(-c)
        while n <= c or p > 1e-17:
            total = add(total, p, old(kappa, n, x, mu, q))
            n += 1.0
            p *= c / n
        return total

    @compile_now
    def mean_loss(kappa, c, x, mu, q):
        total, n, p = 0.0, 1.0, c * math.exp(-c)
        while n <= c or p > 1e-17:
            total += p * old_loss(kappa, n, x, mu, q)
            n += 1.0
            p *= c / n
        return total

    @compile_now
    def force(kappa, c, u):
        return c * old_force(kappa, 1.0, u)

    @compile_now
    def curvature(kappa, c, u):
        return c * old_curvature(kappa, 1.0, u)

    return replace(
        loss,
        name=f"bootstrapped {loss.name}",
        title=f"{loss.title} on a bootstrap sample",
        formula=f"E[n] {loss.formula}",
        expectations=expectations,
        mean_loss=mean_loss,
        force=force,
        curvature=curvature,
        estimator=None,
        constraint=None,
        kinked=False,
    )


def tempered(loss):
    """Return the loss of a rescaled score, ℓ(c u): its weight c is a factor on the score, at most 1.

    With c of each class this is the multiplicative part of the vector-scaling loss. A loss that is homogeneous needs no
    new record: ℓ(c u) with margin κ is cᵖ times ℓ(u) with margin κ/c (:func:`homogeneity` tells p).

    Parameters
    ----------
    loss : Loss
        One that is not homogeneous.

    Returns
    -------
    Loss
    """
    return _tempered(instance("loss", loss, Loss))


@functools.cache
def _tempered(loss):
    if homogeneity(loss) is not None:
        raise ValueError(f"loss must be one that is not homogeneous, got {loss.name!r}: weights and margins do it")
    old, old_loss, old_force, old_curvature = loss.expectations, loss.mean_loss, loss.force, loss.curvature

    @compile_now
    def expectations(kappa, c, x, mu, q):
        # with v = c u the step has x → c²x and the force is c times that on v; f' and ∂μ bring a factor c, ∂q and ∂x c²
        e = old(kappa, 1.0, c * c * x, c * mu, c * c * q)
        c2, c3, c4 = c**2, c**3, c**4
        return (
            c * e[0], c2 * e[1], c2 * e[2],
            c2 * e[3], c3 * e[4], c3 * e[5],
            c3 * e[6], c4 * e[7], c4 * e[8],
            c3 * e[9], c4 * e[10], c4 * e[11],
        )  # fmt: skip

    @compile_now
    def mean_loss(kappa, c, x, mu, q):
        return old_loss(kappa, 1.0, c * c * x, c * mu, c * c * q)

    @compile_now
    def force(kappa, c, u):
        return c * old_force(kappa, 1.0, c * u)

    @compile_now
    def curvature(kappa, c, u):
        return c * c * old_curvature(kappa, 1.0, c * u)

    return replace(
        loss,
        name=f"tempered {loss.name}",
        title=f"{loss.title} with class temperatures",
        formula=loss.formula.replace("u", "c u"),
        expectations=expectations,
        mean_loss=mean_loss,
        force=force,
        curvature=curvature,
        estimator=None,
        constraint=None,
        kinked=False,
    )


def of_difference(loss):
    """Return whether a loss depends on κ - u alone, at any weight, so that margins of a class can be told by a bias.

    Parameters
    ----------
    loss : Loss

    Returns
    -------
    bool
    """
    instance("loss", loss, Loss)
    points = [(kappa, c, u) for kappa in (0.0, 0.7) for c in (0.4, 1.0) for u in (-1.3, 0.2, 1.1)]
    return all(
        math.isclose(loss.force(kappa, c, u), loss.force(kappa + 0.5, c, u + 0.5), rel_tol=1e-9, abs_tol=1e-12)
        for kappa, c, u in points
    )


def homogeneity(loss):
    """Return p if ℓ(t u) with margin t κ is tᵖ times ℓ(u) with margin κ, None if there is no such p.

    Parameters
    ----------
    loss : Loss

    Returns
    -------
    int or None
        1 for the hinge, 2 for the squared hinge and the square loss, None for the logistic loss.
    """
    instance("loss", loss, Loss)
    u, kappa, t = np.array([-2.3, -0.4, 0.3, 0.9, 2.0]), 0.7, 1.9
    old, new = loss.value(u, kappa), loss.value(t * u, t * kappa)
    return next((p for p in DEGREES if np.allclose(new, t**p * old, rtol=1e-12, atol=1e-12)), None)
