"""The hinge loss, ℓ = c (κ - u)₊."""

import math

import numpy as np

from .._support.gauss import GL_NODES, GL_WEIGHTS, cdf, interval, jit, pdf
from ._constraints import INEQUALITY
from ._record import Loss


@jit
def hinge(kappa, c, x, mu, q):
    """Return the twelve expectations, eq. (GpmUNSAT): f = c below κ - cx and falls linearly to 0 at κ."""
    s = math.sqrt(q)
    t1, t2 = (kappa - c * x - mu) / s, (kappa - mu) / s
    below = cdf(t1)
    m0, m1, m2 = band_moments(t1, t2)
    p1, p2 = pdf(t1) / s, pdf(t2) / s
    g = m0 / x
    return (
        c * (below + m1), c * c * (below + m2), g,
        -g, -2.0 * c / x * m1, (p1 - p2) / x,
        0.5 * (p2 - p1) / x, g / x - c / x * p1, 0.5 * (t1 * p1 - t2 * p2) / (s * x),
        -c / x * m1, -2.0 * c * c / x * m2, c / x * p1 - g / x,
    )  # fmt: skip


@jit
def band_moments(t1, t2):
    """Return E[sᵏ; t1 < z < t2] for k = 0, 1, 2, where s falls from 1 at t1 to 0 at t2 and z is standard normal."""
    width = t2 - t1
    if width < 1.0:  # here the closed form would subtract nearly equal numbers
        m0 = m1 = m2 = 0.0
        for k in range(GL_NODES.size):
            s = GL_NODES[k]
            p = width * GL_WEIGHTS[k] * pdf(t2 - width * s)
            m0 += p
            m1 += p * s
            m2 += p * s * s
        return m0, m1, m2
    p1, p2 = pdf(t1), pdf(t2)
    m0 = interval(t1, t2)
    m1 = (t2 * m0 + p2 - p1) / width
    m2 = ((t2 * t2 + 1.0) * m0 + t2 * p2 - (2.0 * t2 - t1) * p1) / width**2
    return m0, m1, m2


@jit
def mean_loss(kappa, c, x, mu, q):
    """Return E[ℓ(u)]."""
    s = math.sqrt(q)
    t = (kappa - c * x - mu) / s
    return c * s * (pdf(t) + t * cdf(t))


@jit
def force(kappa, c, u):
    """Return the force -ℓ'(u), at the kink its limit from below."""
    return c if u <= kappa else 0.0


@jit
def curvature(kappa, c, u):
    """Return ℓ''(u), which is 0 outside of the kink."""
    return 0.0


def estimator(C, fit_bias=True, tol=1e-3, max_iter=-1, class_weight=None):
    """Return a linear SVM of scikit-learn, solved by libsvm, which always fits a bias."""
    from sklearn.svm import SVC

    return SVC(kernel="linear", C=C, cache_size=500, tol=tol, max_iter=max_iter, class_weight=class_weight)


HINGE = Loss(
    name="hinge",
    title="linear SVM",
    formula="(κ - u)₊",
    value=lambda u, kappa: np.maximum(kappa - u, 0.0),
    expectations=hinge,
    mean_loss=mean_loss,
    force=force,
    curvature=curvature,
    estimator=estimator,
    constraint=INEQUALITY,
    saturates=True,
    kinked=True,
)
