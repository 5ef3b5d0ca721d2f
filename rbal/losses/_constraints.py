"""The hard constraints that a vanishing loss imposes, in the SAT phase and on the surface where it ends."""

import math

from .._support.gauss import GL_NODES, GL_WEIGHTS, Z_MAX, cdf, jit, mills, mills_curvatures, pdf
from ._record import Constraint

# In the SAT phase the mean of u0 is the origin if its deviation is this small, relative to the scale of the force. The
# panels, 1.5 wide up to t = 4 and then growing by 1.4 each, are enough for any interval of doubles.
NARROW, MAX_PANELS = 1e-3, 2200


@jit
def ramp(a, kappa, mu, q):
    """Return the twelve expectations for f = a (κ - u0)₊ with ∂a/∂x = -a²: squared hinge, edge of an inequality."""
    i0, i1, i2 = positive_part(kappa, mu, q)
    s = math.sqrt(q)
    t = (kappa - mu) / s
    p = pdf(t) / s
    return (
        a * i1, a * a * i2, a * i0,
        -a * i0, -2.0 * a * a * i1, -a * p,
        0.5 * a * p, a * a * i0, -0.5 * a * t * p / s,
        -a * a * i1, -2.0 * a**3 * i2, -a * a * i0,
    )  # fmt: skip


@jit
def positive_part(kappa, mu, q):
    """Return E[(κ - u0)₊ᵏ] for k = 0, 1, 2."""
    s = math.sqrt(q)
    t = (kappa - mu) / s
    p, i0 = pdf(t), cdf(t)
    if t < -3.0:  # p + t i0 would lose its digits: write it with the Mills ratio
        i1 = i0 * mills(-t)[1]
        return i0, s * i1, q * (i0 + t * i1)
    return i0, s * (p + t * i0), q * ((1.0 + t * t) * i0 + t * p)


@jit
def line(a, kappa, mu, q):
    """Return the twelve expectations for f = a (κ - u0): square loss, and equality constraints."""
    d = kappa - mu
    i2 = d * d + q
    return (
        a * d, a * a * i2, a,
        -a, -2.0 * a * a * d, 0.0,
        0.0, a * a, 0.0,
        -a * a * d, -2.0 * a**3 * i2, -a * a,
    )  # fmt: skip


@jit
def panels(kappa, w, mu, q):
    """Return origin, start, end and widest panel of the range of t - origin in the SAT phase.

    All that is left out is below rounding. The origin is 0, where h bends, unless u0 hardly varies, or only far away
    from there. Then it is the mean of t, since otherwise rounding of t would spoil the Gaussian.
    """
    s, sw, middle = math.sqrt(q), math.sqrt(w), kappa - mu
    if s < NARROW * max(sw, middle):
        return middle / sw, -s * Z_MAX / sw, s * Z_MAX / sw, 1.7 * s / sw
    # h φ is at most a Gaussian around ``centre`` (h falls like one for t < 0, and grows slower than one for t > 0)
    centre = min(sw * middle / (q + w), 0.0)
    start = max((middle - s * Z_MAX) / sw, centre - 9.5, -38.0)  # h underflows below
    return 0.0, start, (middle + s * Z_MAX) / sw, 1.7 * s / sw


@jit
def inequality_force(kappa, c, w, mu, q):
    """Return only E[f] and ∂E[f]/∂μ of ``inequality``, which the search for the bias needs many times."""
    s, sw = math.sqrt(q), math.sqrt(w)
    origin, t, end, widest = panels(kappa, w, mu, q)
    middle = kappa - mu if origin == 0.0 else 0.0
    a1 = a2 = 0.0
    for _ in range(MAX_PANELS):
        if not t < end:
            break
        width = min(max(1.5, 0.4 * (origin + t)), widest, end - t)
        for k in range(GL_NODES.size):
            node = t + width * GL_NODES[k]
            h, excess = mills(origin + node)
            weight = width / s * GL_WEIGHTS[k] * pdf((middle - sw * node) / s) * h
            a1 += weight
            a2 += weight * excess
        t += width
    return a1, -a2 / sw


@jit
def inequality(kappa, c, w, mu, q):
    """Return the twelve expectations in the SAT phase, eq. (GpmSAT): f = h(t)/√w, t = (κ - u0)/√w, h inverse Mills.

    The panels follow the Gaussian in u0 and the corner of h at t = 0, which differ in width when w ≪ q or w ≫ q.
    Here ∂f/∂w = f f' + f''/2.
    """
    s, sw = math.sqrt(q), math.sqrt(w)
    origin, t, end, widest = panels(kappa, w, mu, q)
    middle = kappa - mu if origin == 0.0 else 0.0
    a1 = a2 = a3 = a4 = b1 = b2 = b3 = c2 = d2 = 0.0
    for _ in range(MAX_PANELS):
        if not t < end:
            break
        width = min(max(1.5, 0.4 * (origin + t)), widest, end - t)
        for k in range(GL_NODES.size):
            node = t + width * GL_NODES[k]
            weight = width * GL_WEIGHTS[k] * pdf((middle - sw * node) / s) * sw / s
            h, excess = mills(origin + node)
            h2, h3, h4 = mills_curvatures(origin + node, h, excess)
            a1 += weight * h
            a2 += weight * h2
            a3 += weight * h3
            a4 += weight * h4
            b1 += weight * h * h
            b2 += weight * h * h2
            b3 += weight * h * h3
            c2 += weight * h * h * h2
            d2 += weight * h2 * h2
        t += width
    w15, w2 = w * sw, w * w
    return (
        a1 / sw, b1 / w, a2 / w,
        -a2 / w, -2.0 * b2 / w15, -a3 / w15,
        0.5 * a3 / w15, (d2 + b3) / w2, 0.5 * a4 / w2,
        (0.5 * a3 - b2) / w15, (b3 - 2.0 * c2) / w2, (0.5 * a4 - d2 - b3) / w2,
    )  # fmt: skip


@jit
def equality(kappa, c, w, mu, q):
    """Return the twelve expectations in the SAT phase of u = κ, where f = (κ - u0)/w."""
    return line(1.0 / w, kappa, mu, q)


@jit
def inequality_edge(kappa, c, x, mu, q):
    """Return the twelve expectations where the SAT phase of u ≥ κ ends, as x → ∞: x f = (κ - u0)₊."""
    return ramp(1.0, kappa, mu, q)


@jit
def equality_edge(kappa, c, x, mu, q):
    """Return the twelve expectations where the SAT phase of u = κ ends: x f = κ - u0."""
    return line(1.0, kappa, mu, q)


INEQUALITY = Constraint("inequality", inequality, inequality_edge, mean_force=inequality_force, easier_below=True)
EQUALITY = Constraint("equality", equality, equality_edge)
