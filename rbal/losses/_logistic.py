"""The logistic loss, ℓ = c log(1 + exp(κ - u)), whose expectations are quadratures."""

import math

import numpy as np

from .._support.gauss import Z_MAX, jit, pdf
from ._record import Loss

# The widest √q, in units of the loss's own scale, that its quadrature resolves.
WIDEST = 125.0


@jit
def logistic(kappa, c, x, mu, q):
    """Return the twelve expectations."""
    return quadrature(kappa, c, x, mu, q)[:12]


@jit
def mean_loss(kappa, c, x, mu, q):
    """Return E[ℓ(u)]."""
    return quadrature(kappa, c, x, mu, q)[12]


@jit
def quadrature(kappa, c, x, mu, q):
    """Return the twelve expectations and E[ℓ] by the trapezoid rule in u0, with a scalar prox at each node.

    The prox is singular where 1 + xℓ'' = 0, which happens at Im u0 = ±π whatever x: the trapezoid rule with step h
    converges like exp(-2π²/(√q h)).
    """
    s = math.sqrt(q)
    n = 2 * int(Z_MAX / min(0.25, 0.6 / min(s, WIDEST))) + 1
    step = 2.0 * Z_MAX / (n - 1)
    f1 = f2 = g = ff = fff = fpp = curvature = fppz = loss = 0.0
    u = mu - s * Z_MAX
    for k in range(n):
        z = -Z_MAX + k * step
        weight = step * pdf(z)
        u = prox_logistic(mu + s * z, kappa, c * x, u)
        e = 1.0 / (1.0 + math.exp(min(u - kappa, 700.0)))
        f = c * e
        l2 = f * (1.0 - e)
        l3 = -l2 * (1.0 - 2.0 * e)
        shrink = 1.0 / (1.0 + x * l2)
        f_prime = -l2 * shrink
        f_second = -l3 * shrink**3
        f1 += weight * f
        f2 += weight * f * f
        g -= weight * f_prime
        ff += weight * f * f_prime
        fff += weight * f * f * f_prime
        fpp += weight * f_second
        fppz += weight * f_second * z
        curvature += weight * (f_prime * f_prime + f * f_second)
        loss += weight * c * (max(kappa - u, 0.0) + math.log1p(math.exp(-abs(kappa - u))))
    return (
        f1, f2, g,
        -g, 2.0 * ff, -fpp,
        0.5 * fpp, curvature, -0.5 * fppz / s,
        ff, 2.0 * fff, -curvature,
        loss,
    )  # fmt: skip


@jit
def prox_logistic(u0, kappa, cx, guess):
    """Return the root u of u - u0 = cx/(1 + exp(u - κ)), which lies in [u0, u0 + cx]."""
    u = min(max(guess, u0), u0 + cx)
    rounding = 1e-15 * (abs(u0) + cx)
    lo, hi = u0 - rounding, u0 + cx + rounding  # a saturated force has its root at an end: keep it inside
    for _ in range(100):
        e = 1.0 / (1.0 + math.exp(min(u - kappa, 700.0)))
        gap = u - u0 - cx * e
        if gap > 0.0:
            hi = u
        else:
            lo = u
        new = u - gap / (1.0 + cx * e * (1.0 - e))
        if abs(new - u) <= 1e-15 * (abs(u) + abs(u0)):
            return new
        u = new if lo < new < hi else 0.5 * (lo + hi)
    return u


@jit
def force(kappa, c, u):
    """Return the force -ℓ'(u)."""
    return c / (1.0 + math.exp(u - kappa))


@jit
def curvature(kappa, c, u):
    """Return ℓ''(u)."""
    e = 1.0 / (1.0 + math.exp(u - kappa))
    return c * e * (1.0 - e)


def estimator(C, fit_bias=True, tol=None, max_iter=1000, class_weight=None):
    """Return a logistic regression of scikit-learn, solved by Newton's method if a tolerance is given."""
    from sklearn.linear_model import LogisticRegression

    exactly = {} if tol is None else {"solver": "newton-cholesky", "tol": tol}
    return LogisticRegression(C=C, fit_intercept=fit_bias, max_iter=max_iter, class_weight=class_weight, **exactly)


LOGISTIC = Loss(
    name="logistic",
    title="logistic regression",
    formula="log(1 + exp(κ - u))",
    value=lambda u, kappa: np.logaddexp(0.0, kappa - u),
    expectations=logistic,
    mean_loss=mean_loss,
    force=force,
    curvature=curvature,
    estimator=estimator,
    margin=0.0,
    widest=WIDEST,
    unit=1.0,
    saturates=True,
)
