r"""A loss, as the saddle point sees it: three Gaussian expectations and a proximal step.

For a class with label :math:`y` the solver draws :math:`u_0\sim\mathcal N(\mu, q)`, moves it to
:math:`u = \mathrm{prox}_{x\ell}(u_0)` and records the force :math:`f = (u-u_0)/x = -\ell'(u)`. All it asks of the
loss is

.. math:: \mathbb E[f],\qquad \mathbb E[f^2],\qquad \mathbb E[-f'],

and their derivatives in :math:`(\mu, q, x)`, which follow from :math:`\partial_q = \tfrac12\partial_\mu^2` and
:math:`\partial_x f = f f'`. Each kernel below returns these twelve numbers. A new loss is one more such kernel.

The SAT phase is such a kernel too: there the hard constraint :math:`u\ge\kappa` replaces the loss, the variance
:math:`w` takes the place of :math:`x`, and :math:`f` is the logarithmic derivative of a partition function. So is the
surface between the phases, where :math:`x\to\infty` and only :math:`x f` stays finite.
"""

import math

from ._support.gauss import GL_NODES, GL_WEIGHTS, Z_MAX, cdf, interval, jit, mills, mills_curvatures, pdf

# Losses, what each becomes where it can vanish on all the data (SAT), and on the surface in between.
HINGE, SQUARED_HINGE, SQUARE, LOGISTIC, INEQUALITY, EQUALITY, INEQUALITY_EDGE, EQUALITY_EDGE = range(8)

# The widest √q, in units of the logistic loss's own scale, that its quadrature resolves.
LOGISTIC_WIDEST = 125.0

# The SAT phase: a deviation of u0 this small, relative to what the force depends on, takes its mean as the origin; and
# panels enough for any interval of doubles, which are 1.5 wide up to t = 4 and then grow by 1.4 each.
NARROW, MAX_PANELS = 1e-3, 2200

#: Names accepted by ``loss=``.
LOSSES = {"hinge": HINGE, "squared_hinge": SQUARED_HINGE, "square": SQUARE, "logistic": LOGISTIC}


@jit
def constraint_of(loss):
    """The hard constraint that a vanishing loss imposes; -1 for the logistic loss, which never vanishes."""
    if loss in (HINGE, SQUARED_HINGE):
        return INEQUALITY
    if loss == SQUARE:
        return EQUALITY
    return -1


@jit
def edge_of(constraint):
    """Form that a constraint takes on the SAT/UNSAT surface."""
    return INEQUALITY_EDGE if constraint == INEQUALITY else EQUALITY_EDGE


@jit
def mean_force(loss, kappa, c, x, mu, q):
    """(E[f], ∂E[f]/∂μ)."""
    if loss == INEQUALITY:
        return inequality_force(kappa, x, mu, q)
    e = expectations(loss, kappa, c, x, mu, q)
    return e[0], e[3]


@jit
def expectations(loss, kappa, c, x, mu, q):
    """(E[f], E[f²], E[-f']), then their derivatives in μ, in q and in x."""
    if loss == HINGE:
        return hinge(kappa, c, x, mu, q)
    if loss == SQUARED_HINGE:
        return ramp(2.0 * c / (1.0 + 2.0 * c * x), kappa, mu, q)
    if loss == SQUARE:
        return line(2.0 * c / (1.0 + 2.0 * c * x), kappa, mu, q)
    if loss == LOGISTIC:
        return logistic(kappa, c, x, mu, q)[:12]
    if loss == INEQUALITY:
        return inequality(kappa, x, mu, q)
    if loss == EQUALITY:
        return line(1.0 / x, kappa, mu, q)
    if loss == INEQUALITY_EDGE:
        return ramp(1.0, kappa, mu, q)
    return line(1.0, kappa, mu, q)


@jit
def mean_loss(loss, kappa, c, x, mu, q):
    """E[ℓ(u)], the weighted loss on a training sample."""
    s = math.sqrt(q)
    if loss == HINGE:
        t = (kappa - c * x - mu) / s
        return c * s * (pdf(t) + t * cdf(t))
    if loss == SQUARED_HINGE:
        return c * positive_part(kappa, mu, q)[2] / (1.0 + 2.0 * c * x) ** 2
    if loss == SQUARE:
        return c * ((kappa - mu) ** 2 + q) / (1.0 + 2.0 * c * x) ** 2
    if loss == LOGISTIC:
        return logistic(kappa, c, x, mu, q)[12]
    return 0.0


@jit
def force(loss, kappa, c, u):
    """-ℓ'(u), the force on a sample that ended at u; on the hinge's kink, the force from below."""
    if loss == HINGE:
        return c if u <= kappa else 0.0
    if loss == SQUARED_HINGE:
        return 2.0 * c * max(kappa - u, 0.0)
    if loss == SQUARE:
        return 2.0 * c * (kappa - u)
    return c / (1.0 + math.exp(u - kappa))


@jit
def hinge(kappa, c, x, mu, q):
    """ℓ = c (κ - u)₊, eq. (GpmUNSAT): f = c below κ - cx and falls linearly to 0 at κ."""
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
    """E[sᵏ; t1 < z < t2] for k = 0, 1, 2, where s falls from 1 at t1 to 0 at t2 and z is standard normal."""
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
def ramp(a, kappa, mu, q):
    """f = a (κ - u0)₊, where a(x) obeys ∂a/∂x = -a²: squared hinge, and the edge of an inequality."""
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
    """E[(κ - u0)₊ᵏ] for k = 0, 1, 2."""
    s = math.sqrt(q)
    t = (kappa - mu) / s
    p, i0 = pdf(t), cdf(t)
    if t < -3.0:  # p + t i0 would lose its digits: write it with the Mills ratio
        i1 = i0 * mills(-t)[1]
        return i0, s * i1, q * (i0 + t * i1)
    return i0, s * (p + t * i0), q * ((1.0 + t * t) * i0 + t * p)


@jit
def line(a, kappa, mu, q):
    """f = a (κ - u0): square loss, and equality constraints."""
    d = kappa - mu
    i2 = d * d + q
    return (
        a * d, a * a * i2, a,
        -a, -2.0 * a * a * d, 0.0,
        0.0, a * a, 0.0,
        -a * a * d, -2.0 * a**3 * i2, -a * a,
    )  # fmt: skip


@jit
def logistic(kappa, c, x, mu, q):
    """ℓ = c log(1 + exp(κ - u)): trapezoid in u0, a scalar prox at each node; E[ℓ] comes last.

    The prox is singular where 1 + xℓ'' = 0, which happens at Im u0 = ±π whatever x: the trapezoid rule with step h
    converges like exp(-2π²/(√q h)).
    """
    s = math.sqrt(q)
    n = 2 * int(Z_MAX / min(0.25, 0.6 / min(s, LOGISTIC_WIDEST))) + 1
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
    """Root u of u - u0 = cx/(1 + exp(u - κ)); it lies in [u0, u0 + cx]."""
    u = min(max(guess, u0), u0 + cx)
    rounding = 1e-15 * (abs(u0) + cx)
    lo, hi = u0 - rounding, u0 + cx + rounding  # where the force saturates the root is an end, which must be inside
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
def panels(kappa, w, mu, q):
    """Range of t - origin in the SAT phase: origin, start, end and the widest panel.

    All that is left out is below rounding. The origin is 0, where h bends, unless u0 hardly varies, or only far away
    from there. Then it is the mean of t, or else t would leave no digits to the Gaussian.
    """
    s, sw, middle = math.sqrt(q), math.sqrt(w), kappa - mu
    if s < NARROW * max(sw, middle):
        return middle / sw, -s * Z_MAX / sw, s * Z_MAX / sw, 1.7 * s / sw
    # h φ is at most a Gaussian around ``centre`` (h falls like one for t < 0, and grows slower than one for t > 0)
    centre = min(sw * middle / (q + w), 0.0)
    start = max((middle - s * Z_MAX) / sw, centre - 9.5, -38.0)  # h underflows below
    return 0.0, start, (middle + s * Z_MAX) / sw, 1.7 * s / sw


@jit
def inequality_force(kappa, w, mu, q):
    """(E[f], ∂E[f]/∂μ) alone, as ``inequality`` has them: what the bias asks for, again and again."""
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
def inequality(kappa, w, mu, q):
    """SAT phase, eq. (GpmSAT): f = h(t)/√w with t = (κ - u0)/√w and h the inverse Mills ratio.

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
