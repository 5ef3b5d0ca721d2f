"""Slow, obvious twins of the compiled kernels, in plain numpy and scipy, written from the equations.

Those of lattice proteins and of Potts models stand beside their tests, in tests/datasets.

Conventions of THEORY.md: for class y, u0 ~ N(r/2 - y b, q), u = prox of x·ℓ at u0, f = (u - u0)/x; q̂ and r̂ positive.
"""

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import erfc, erfcx, expit, log_ndtr, ndtr

UNIT_NODES, UNIT_WEIGHTS = np.polynomial.legendre.leggauss(16)

# A loss and its derivative; kinks are where the force is not smooth in u0.
LOSS = {
    "hinge": lambda u, kappa: np.maximum(kappa - u, 0.0),
    "squared_hinge": lambda u, kappa: np.maximum(kappa - u, 0.0) ** 2,
    "square": lambda u, kappa: (kappa - u) ** 2,
    "logistic": lambda u, kappa: np.logaddexp(0.0, kappa - u),
}
SLOPE = {
    "hinge": lambda u, kappa: -np.heaviside(kappa - u, 0.5),
    "squared_hinge": lambda u, kappa: -2.0 * np.maximum(kappa - u, 0.0),
    "square": lambda u, kappa: -2.0 * (kappa - u),
    "logistic": lambda u, kappa: -expit(kappa - u),
}


def quadrature(fun, points, rtol=1e-13, smallest=0.0):
    """Adaptive Gauss-Legendre quadrature of a vectorised, vector-valued function over [points[0], points[-1]].

    Panels are halved until halving changes none of the integrals by more than rtol of its own size, or of the smallest
    size that is more than rounding.
    """
    points = np.unique(np.asarray(points, float))
    lo, hi = points[:-1], points[1:]

    def panels(lo, hi):
        half = 0.5 * (hi - lo)
        values = np.atleast_2d(fun((0.5 * (lo + hi) + half * UNIT_NODES[:, None]).ravel()))
        values = values.reshape(len(values), UNIT_NODES.size, lo.size) * half
        return np.einsum("n,kni->ki", UNIT_WEIGHTS, values)

    done, coarse = 0.0, panels(lo, hi)
    for _ in range(60):
        middle = 0.5 * (lo + hi)
        left, right = panels(lo, middle), panels(middle, hi)
        size = np.abs(done) + np.abs(left + right).sum(axis=1) + smallest
        bad = (np.abs(left + right - coarse) > rtol * size[:, None]).any(axis=0)
        done = done + (left + right)[:, ~bad].sum(axis=1)
        if not bad.any():
            return done
        assert bad.sum() < 20_000, "quadrature chases rounding: give the smallest size that matters"
        lo, hi = np.r_[lo[bad], middle[bad]], np.r_[middle[bad], hi[bad]]
        coarse = np.concatenate([left[:, bad], right[:, bad]], axis=1)
    raise AssertionError("quadrature did not converge")


def gaussian_mean(fun, mu, q, kinks=(), rtol=1e-13, reach=14.0, smallest=0.0):
    """E[fun(u0)], u0 ~ N(mu, q), over ±reach standard deviations."""
    s = np.sqrt(q)
    grid = mu + s * np.linspace(-reach, reach, 2 * int(reach) + 1)
    inside = [k for k in kinks if grid[0] < k < grid[-1]]

    def integrand(u0):
        return fun(u0) * np.exp(-0.5 * ((u0 - mu) / s) ** 2) / np.sqrt(2.0 * np.pi * q)

    return quadrature(integrand, [*grid, *inside], rtol, smallest)


def force(loss, kappa, c, x, u0):
    """The f = -cℓ'(u0 + x f), by bisection: it lies between 0 and the force at u0."""
    start = -c * SLOPE[loss](u0, kappa)
    lo, hi = np.minimum(start, 0.0), np.maximum(start, 0.0)
    if loss == "hinge":
        hi = np.where(u0 <= kappa, c, 0.0)  # the subgradient at the kink
    for _ in range(80):
        f = 0.5 * (lo + hi)
        high = f + c * SLOPE[loss](u0 + x * f, kappa) > 0.0
        lo, hi = np.where(high, lo, f), np.where(high, f, hi)
    return 0.5 * (lo + hi)


def force_slope(loss, kappa, c, x, f, u0):
    """∂f/∂u0 = -1/(x + 1/(cℓ'')) at the prox."""
    u = u0 + x * f
    if loss == "hinge":  # ℓ'' is infinite at the kink, where 0 < f < c, and zero elsewhere
        return np.where((kappa - c * x < u0) & (u0 < kappa), -1.0 / x, 0.0)
    if loss == "squared_hinge":
        second = np.where(u0 < kappa, 2.0 * c, 0.0)
    elif loss == "square":
        second = np.full_like(u, 2.0 * c)
    else:
        second = c * expit(kappa - u) * expit(u - kappa)
    return -second / (1.0 + x * second)


def kinks(loss, kappa, c, x):
    """Where the force is not smooth in u0 (logistic: where it bends)."""
    return (kappa,) if loss == "squared_hinge" else (kappa - c * x, kappa)


def expectations(loss, kappa, c, x, mu, q, rtol=1e-13, reach=14.0):
    """(E[f], E[f²], E[-f'])."""

    def fun(u0):
        f = force(loss, kappa, c, x, u0)
        return np.stack([f, f * f, -force_slope(loss, kappa, c, x, f, u0)])

    return gaussian_mean(fun, mu, q, kinks(loss, kappa, c, x), rtol, reach)


def shared_force(first, second, rho, width=0.2, reach=9.0):
    """E[f₁f₂] over two Gaussians with correlation ρ, on a grid in two dimensions; each is (loss, κ, c, x, μ, q)."""
    forces, places = [], []
    for loss, kappa, c, x, mu, q in (first, second):
        edges = [*np.arange(-reach, reach + width, width), *((np.array(kinks(loss, kappa, c, x)) - mu) / np.sqrt(q))]
        edges = np.unique(edges)
        z = edges[:-1, None] + 0.5 * np.diff(edges)[:, None] * (1.0 + UNIT_NODES)
        weights = (0.5 * np.diff(edges)[:, None] * UNIT_WEIGHTS).ravel()
        places.append(z.ravel())
        forces.append(weights * force(loss, kappa, c, x, mu + np.sqrt(q) * z.ravel()))
    a, b = places[0][:, None], places[1]
    exponent = (a * a - 2.0 * rho * a * b + b * b) / (2.0 * (1.0 - rho**2))
    return forces[0] @ np.exp(-exponent) @ forces[1] / (2.0 * np.pi * np.sqrt(1.0 - rho**2))


def mean_loss(loss, kappa, c, x, mu, q):
    """E[cℓ(u)], to 1e-14 of the loss of the worst sample before its step."""
    worst = c * LOSS[loss](mu - 14.0 * np.sqrt(q), kappa)

    def fun(u0):
        return c * LOSS[loss](u0 + x * force(loss, kappa, c, x, u0), kappa)

    return gaussian_mean(fun, mu, q, kinks(loss, kappa, c, x), smallest=0.1 * worst)[0]


def envelope(loss, kappa, c, x, mu, q):
    """G = -2 E[min_u cℓ(u) + (u - u0)²/(2x)], the energetic term of any loss."""

    def fun(u0):
        f = force(loss, kappa, c, x, u0)
        return c * LOSS[loss](u0 + x * f, kappa) + 0.5 * x * f * f

    return -2.0 * gaussian_mean(fun, mu, q, kinks(loss, kappa, c, x))[0]


def softmax_proximal(field, V, weight, y, H):
    """Minimise weight times the cross-entropy of class y, plus ½ (u-ω)ᵀV⁻¹(u-ω), without derivatives."""

    def energy(u):
        h, gap = u @ H, u - field
        return weight * (np.log(np.sum(np.exp(h - h.max()))) + h.max() - h[y]) + 0.5 * gap @ np.linalg.solve(V, gap)

    found = field
    for _ in range(4):  # started again, since the simplex may shrink too early
        options = {"xatol": 1e-9, "fatol": 1e-14, "maxiter": 4000}
        found = minimize(energy, found, method="Nelder-Mead", options=options).x
    return found


def inverse_mills(t):
    """h = φ(t)/H(t) and h - t; the latter by its asymptotic series where the difference loses digits."""
    safe = np.clip(t, -37.0, 50.0)
    h = np.sqrt(2.0 / np.pi) / erfcx(safe / np.sqrt(2.0))
    far = np.maximum(t, 50.0)
    tail = 1 / far - 2 / far**3 + 10 / far**5 - 74 / far**7 + 706 / far**9
    h = np.where(t > 50.0, t + tail, np.where(t < -37.0, 0.0, h))
    return h, np.where(t > 50.0, tail, h - t)


def sat_expectations(kappa, w, mu, q):
    """(E[f], E[f²], E[-f']) of f = ∂/∂u0 log H((κ - u0)/√w)."""

    def fun(u0):
        t = (kappa - u0) / np.sqrt(w)
        h, excess = inverse_mills(t)
        return np.stack([h / np.sqrt(w), h * h / w, h * excess / w])

    corner = kappa + np.sqrt(w) * np.outer([-1.0, 1.0], np.logspace(0, 6, 13)).ravel()  # f bends here, however thin
    return gaussian_mean(fun, mu, q, [kappa, *corner])


def sat_energy(kappa, w, mu, q):
    """βG = 2 ∫ Dξ log H((κ - u0)/√w), eq. (appGpmSAT)."""
    return 2.0 * gaussian_mean(lambda u0: log_ndtr((u0 - kappa) / np.sqrt(w)), mu, q, [kappa], reach=12.0)[0]


def erfc_step(z):
    """Erfc of a complex step: first order in the imaginary part, exact in the real one."""
    z = np.asarray(z)
    return erfc(z.real) - 1j * z.imag * 2.0 / np.sqrt(np.pi) * np.exp(-(z.real**2))


def g_printed(K, q, x):
    """Eq. (GpmUNSAT) as printed, K = κ - r/2 ± b; takes complex steps."""
    return (
        -np.sqrt(q / (2 * np.pi))
        * ((x - K) / x * np.exp(-((x - K) ** 2) / (2 * q)) + K / x * np.exp(-(K**2) / (2 * q)))
        + ((x - K) ** 2 + q) / x * 0.5 * erfc_step((x - K) / np.sqrt(2 * q))
        - (K**2 + q) / x * 0.5 * erfc_step(-K / np.sqrt(2 * q))
    )


def g_weighted(K, q, x, c):
    """The same for samples of weight c: x → cx and β → cβ give c·G(cx). The print lacks the factor (erratum 1)."""
    return c * g_printed(K, q, c * x)


def g_gradients_printed(K, q, x, y):
    """Eq. (gradGpmUNSAT) as printed: derivatives in x, q, r and b."""
    low, high = erfc((x - K) / np.sqrt(2 * q)), erfc(-K / np.sqrt(2 * q))
    e_low, e_high = np.exp(-((K - x) ** 2) / (2 * q)), np.exp(-(K**2) / (2 * q))
    root = np.sqrt(q / (2 * np.pi))
    return (
        -g_printed(K, q, x).real / x + (x - K) / x * low - 2 / x * root * e_low,
        -(high - low) / (2 * x),
        K / (2 * x) * high + (x - K) / (2 * x) * low + root / x * (e_high - e_low),
        -y * (K / x * high + (x - K) / x * low + 2 / x * root * (e_high - e_low)),
    )


def complex_step(fun, values, index, h=1e-30):
    """∂fun/∂values[index]."""
    values = [complex(v) for v in values]
    values[index] += 1j * h
    return fun(*values).imag / h


def central(fun, value, step):
    """Derivative by central differences of sixth order."""
    weights = ((1, 45.0), (2, -9.0), (3, 1.0))
    return sum(w * (fun(value + k * step) - fun(value - k * step)) for k, w in weights) / (60.0 * step)


def weight_side(C, delta, L, k_hat, x_hat, q_hat, r_hat, sat=False, n_zero_sum=0):
    """(‖J‖²/L, q, x, r) from dense matrices; takes complex steps.

    In the SAT phase the norm has the entropic part 1/L tr A⁻¹, less one 1/k̂ per zero-sum direction.
    """
    A_inv = np.linalg.inv(k_hat * np.eye(len(C)) + x_hat * C)
    cov = A_inv @ (q_hat * C + r_hat**2 * np.outer(delta, delta)) @ A_inv
    norm = np.trace(cov) / L
    if sat:
        norm = norm + (np.trace(A_inv) - n_zero_sum / k_hat) / L
    return np.array([norm, np.trace(cov @ C) / L, np.trace(A_inv @ C) / L, r_hat * (delta @ A_inv @ delta) / L])


def solve_norm(C, delta, L, norm, x_hat, q_hat, r_hat, sat=False):
    """The k̂ > -x̂ λ_min at which ‖J‖²/L = norm."""
    lowest = -x_hat * np.linalg.eigvalsh(C)[0]

    def gap(log_zeta):
        return weight_side(C, delta, L, lowest + np.exp(log_zeta), x_hat, q_hat, r_hat, sat)[0] - norm

    lo = hi = 0.0
    while gap(lo) < 0.0:
        lo -= 1.0
    while gap(hi) > 0.0:
        hi += 1.0
    return lowest + np.exp(brentq(gap, lo, hi, xtol=1e-15, rtol=1e-15))


def solve_bias(mean_force, alpha):
    """The b at which α₊E₊[f] = α₋E₋[f]; mean_force(k, b) is E[f] of class k."""

    def gap(b):
        return alpha[0] * mean_force(0, b) - alpha[1] * mean_force(1, b)

    reach = 1.0
    while gap(-reach) > 0.0 or gap(reach) < 0.0:
        reach *= 2.0
    return brentq(gap, -reach, reach, xtol=1e-15, rtol=1e-14)


def fixed_point(
    C, delta, L, alpha, kappa, *, loss="hinge", norm=None, ridge=None, weight=(1.0, 1.0), fit_bias=True, damping=0.8,
    tol=1e-10,
):  # fmt: skip
    """(q, r, b, x, k̂) of the whole system by damped iteration: on the sphere given its norm, else with a ridge."""
    q, r, b, x = 1.0, 0.1, 0.0, 1.0
    labels = (1.0, -1.0)

    def mean_force(k, b):
        return expectations(loss, kappa, weight[k], x, 0.5 * r - labels[k] * b, q, 1e-11, 9.0)[0]

    for _ in range(2000):
        if fit_bias:
            b = solve_bias(mean_force, alpha)
        side = [expectations(loss, kappa, weight[k], x, 0.5 * r - labels[k] * b, q, 1e-12, 9.0) for k in range(2)]
        f, f2, slope = np.tensordot(alpha, side, 1)
        k_hat = ridge if norm is None else solve_norm(C, delta, L, norm, slope, f2, 0.5 * f)
        _, q_new, x_new, r_new = weight_side(C, delta, L, k_hat, slope, f2, 0.5 * f)
        change = max(abs(q_new / q - 1.0), abs(x_new / x - 1.0), abs(r_new - r) / np.sqrt(q))
        q, x, r = q + damping * (q_new - q), x + damping * (x_new - x), r + damping * (r_new - r)
        if change < tol:
            return q, r, b, x, k_hat
    raise AssertionError("the damped fixed point did not converge")


def on_the_surface(C, delta, L, alpha, kappa, norm=1.0, fit_bias=True, damping=0.8, tol=1e-12):
    """(q, r, b, excess) where only x f = (κ - u0)₊ survives: the surface is where excess = 1/L tr(A⁻¹C) - 1 = 0."""
    q, r, b = 1.0, 0.1, 0.0
    labels = (1.0, -1.0)

    def positive_part(k, b):
        s = np.sqrt(q)
        t = (kappa - 0.5 * r + labels[k] * b) / s
        density = np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)
        return np.array([s * (density + t * ndtr(t)), q * ((1 + t * t) * ndtr(t) + t * density), ndtr(t)])

    for _ in range(5000):
        if fit_bias:
            b = solve_bias(lambda k, b: positive_part(k, b)[0], alpha)
        f, f2, slope = np.tensordot(alpha, [positive_part(k, b) for k in range(2)], 1)
        k_hat = solve_norm(C, delta, L, norm, slope, f2, 0.5 * f)
        _, q_new, x_new, r_new = weight_side(C, delta, L, k_hat, slope, f2, 0.5 * f)
        change = max(abs(q_new / q - 1.0), abs(r_new - r) / np.sqrt(q))
        q, r = q + damping * (q_new - q), r + damping * (r_new - r)
        if change < tol:
            return q, r, b, x_new - 1.0
    raise AssertionError("the damped fixed point did not converge")


def critical_margin(C, delta, L, alpha, norm=1.0, fit_bias=True):
    """The κ where the solution space closes: below it x grows without bound, 1/L tr(A⁻¹C) > 1."""

    def excess(kappa):
        return on_the_surface(C, delta, L, alpha, kappa, norm, fit_bias)[3]

    lo = hi = 0.5
    while excess(lo) < 0.0:
        lo -= 0.5
    while excess(hi) > 0.0:
        hi += 0.5
    return brentq(excess, lo, hi, xtol=1e-13, rtol=1e-13)


def functional(C, delta, L, norm, alpha, weight, kappa, ridge=None):
    """G_S + α₊G₊ + α₋G₋ of (x, q, r, b, k̂, x̂, q̂, r̂), eqs. (GpmUNSAT) and (GSUNSAT); hats positive, complex steps.

    An SVM (ridge given) has k̂ = ridge, which is not varied, and no norm to fix.
    """

    def G(x, q, r, b, k_hat, x_hat, q_hat, r_hat):
        k = k_hat if ridge is None else ridge
        A_inv = np.linalg.inv(k * np.eye(len(C)) + x_hat * C)
        G_S = (norm * k if ridge is None else 0.0) + x_hat * q - q_hat * x - 2 * r_hat * r
        G_S = G_S + (r_hat**2 * (delta @ A_inv @ delta) + q_hat * np.trace(A_inv @ C)) / L
        return G_S + sum(
            alpha[k] * g_weighted(kappa - r / 2 + y * b, q, x, weight[k]) for k, y in enumerate((1.0, -1.0))
        )

    return G


def functional_sat(C, delta, L, norm, alpha, kappa, n_zero_sum=0):
    """The same in the SAT phase, eqs. (appGS) and (appGpmSAT), up to a constant; w in place of x, real arguments."""

    def G(w, q, r, b, k_hat, w_hat, q_hat, r_hat):
        A = k_hat * np.eye(len(C)) + w_hat * C
        A_inv = np.linalg.inv(A)
        G_S = norm * k_hat + w_hat * w + w_hat * q - q_hat * w - 2 * r_hat * r
        G_S -= (np.linalg.slogdet(A)[1] - n_zero_sum * np.log(k_hat)) / L
        G_S += (q_hat * np.trace(A_inv @ C) + r_hat**2 * (delta @ A_inv @ delta)) / L
        return G_S + sum(alpha[k] * sat_energy(kappa, w, r / 2 - y * b, q) for k, y in enumerate((1.0, -1.0)))

    return G


# ---- mixtures: one entry a cluster, covariances (K, D, D) and centres v (K, D) times √L


def mixture_weights(covs, v, L, k_hat, x_hat, q_hat, m_hat):
    """(‖J‖²/L, q, x, m) from dense matrices, where C A⁻¹SA⁻¹ is not C S A⁻²; takes complex steps."""
    A_inv = np.linalg.inv(k_hat * np.eye(len(covs[0])) + np.tensordot(x_hat, covs, 1))
    W = m_hat @ v
    second = A_inv @ np.tensordot(q_hat, covs, 1) @ A_inv + np.outer(A_inv @ W, A_inv @ W)
    q = np.array([np.trace(C @ second) for C in covs]) / L
    return np.trace(second) / L, q, np.array([np.trace(C @ A_inv) for C in covs]) / L, v @ A_inv @ W / L


def mixture_norm(covs, v, L, norm, x_hat, q_hat, m_hat):
    """The k̂ > -λ_min(Σ x̂C) at which ‖J‖²/L = norm."""
    lowest = -np.linalg.eigvalsh(np.tensordot(x_hat, covs, 1))[0]

    def gap(log_zeta):
        return mixture_weights(covs, v, L, lowest + np.exp(log_zeta), x_hat, q_hat, m_hat)[0] - norm

    lo = hi = 0.0
    while gap(lo) < 0.0:
        lo -= 1.0
    while gap(hi) > 0.0:
        hi += 1.0
    return lowest + np.exp(brentq(gap, lo, hi, xtol=1e-15, rtol=1e-15))


def mixture_fixed_point(
    covs, v, L, alpha, y, kappa, weight, *, loss="hinge", norm=None, ridge=None, fit_bias=True, damping=0.4, tol=1e-10
):
    """(q, x, m, b, k̂) of a mixture by damped iteration: on the sphere given its norm, else with a ridge."""
    K = len(v)
    q, x, m, b = np.ones(K), np.ones(K), 0.1 * y, 0.0

    def side(c, b, rtol):
        return expectations(loss, kappa[c], weight[c], x[c], y[c] * (m[c] - b), q[c], rtol, 9.0)

    def gap(b):
        return sum(alpha[c] * y[c] * side(c, b, 1e-11)[0] for c in range(K))

    for _ in range(3000):
        if fit_bias:
            reach = 1.0
            while gap(-reach) > 0.0 or gap(reach) < 0.0:
                reach *= 2.0
            b = brentq(gap, -reach, reach, xtol=1e-15, rtol=1e-14)
        f, q_hat, x_hat = np.array([side(c, b, 1e-12) for c in range(K)]).T * alpha
        hats = x_hat, q_hat, y * f
        k_hat = ridge if norm is None else mixture_norm(covs, v, L, norm, *hats)
        _, q_new, x_new, m_new = mixture_weights(covs, v, L, k_hat, *hats)
        change = max(np.abs(q_new / q - 1).max(), np.abs(x_new / x - 1).max(), (np.abs(m_new - m) / np.sqrt(q)).max())
        q, x, m = q + damping * (q_new - q), x + damping * (x_new - x), m + damping * (m_new - m)
        if change < tol:
            return q, x, m, b, k_hat
    raise AssertionError("the damped fixed point did not converge")


def mixture_functional(covs, v, L, norm, alpha, y, kappa, weight, ridge=None):
    """The functional of a hinge on clusters, of the flat (x, q, m, b, k̂, x̂, q̂, m̂); takes complex steps.

    An SVM (ridge given) has k̂ = ridge, which is not varied, and no norm to fix.
    """
    K = len(v)

    def G(*at):
        x, q, m, (b, k_hat), x_hat, q_hat, m_hat = np.split(np.array(at), np.cumsum([K, K, K, 2, K, K]))
        k_hat = k_hat if ridge is None else ridge
        A_inv = np.linalg.inv(k_hat * np.eye(len(covs[0])) + np.tensordot(x_hat, covs, 1))
        W = m_hat @ v
        G_S = (norm * k_hat if ridge is None else 0.0) + x_hat @ q - q_hat @ x - 2 * m_hat @ m
        G_S = G_S + (W @ A_inv @ W + np.trace(A_inv @ np.tensordot(q_hat, covs, 1))) / L
        return G_S + sum(alpha[c] * g_weighted(kappa[c] - y[c] * (m[c] - b), q[c], x[c], weight[c]) for c in range(K))

    return G


def mixture_functional_sat(covs, v, L, norm, alpha, y, kappa):
    """The same in the SAT phase, w in place of x, up to a constant; real arguments."""
    K = len(v)

    def G(*at):
        w, q, m, (b, k_hat), w_hat, q_hat, m_hat = np.split(np.array(at), np.cumsum([K, K, K, 2, K, K]))
        A = k_hat * np.eye(len(covs[0])) + np.tensordot(w_hat, covs, 1)
        A_inv, W = np.linalg.inv(A), m_hat @ v
        G_S = norm * k_hat + w_hat @ (w + q) - q_hat @ w - 2 * m_hat @ m - np.linalg.slogdet(A)[1] / L
        G_S += (np.trace(A_inv @ np.tensordot(q_hat, covs, 1)) + W @ A_inv @ W) / L
        return G_S + sum(alpha[c] * sat_energy(kappa[c], w[c], y[c] * (m[c] - b), q[c]) for c in range(K))

    return G


# ---- the spherical perceptron


def split_by(differences, v):
    """Part of v orthogonal to the rows of differences (k, D), and the coefficients (k,) of the rest along them."""
    if not len(differences):
        return v, np.zeros(0)
    along = np.linalg.lstsq(differences.T, v, rcond=None)[0]
    return v - along @ differences, along


def landing(X, y, kappa, on, J):
    """Weights of the norm of J that put samples ``on`` on their margins with one bias, and are closest to J."""
    differences = X[on[1:]] - X[on[0]]
    targets = (y * kappa)[on[1:]] - (y * kappa)[on[0]]
    fixed = np.linalg.pinv(differences) @ targets
    free, _ = split_by(differences, J)
    return fixed + free * np.sqrt((J @ J - fixed @ fixed) / (free @ free))


def turning(differences, J, pull):
    """Free part of J, its norm, its multiplier, and the turn of that norm which raises pull·J fastest; its strength."""
    free, _ = split_by(differences, J)
    slope, _ = split_by(np.vstack([differences, free]), pull)
    size, strength = np.linalg.norm(free), np.linalg.norm(slope)
    return free, size, (pull @ free) / size**2, slope * size / strength, strength


def shift_of_norm(matrix, h, radius):
    """Return the shift of a positive definite matrix at which the solution of (matrix + shift) a = h has this norm."""
    values, basis = np.linalg.eigh(matrix)
    return brentq(lambda shift: np.linalg.norm(h @ basis / (values + shift)) - radius, 1e-6, 1e6)


def sphere_minimiser(matrix, h, radius):
    """Minimiser of ½ aᵀ matrix a - h·a on ‖a‖ = radius: (matrix + μ)a = h with μ above minus the least eigenvalue."""
    lowest = np.linalg.eigvalsh(matrix)[0]

    def solution(log_gap):
        return np.linalg.solve(matrix + (np.exp(log_gap) - lowest) * np.eye(len(h)), h)

    return solution(brentq(lambda g: np.linalg.norm(solution(g)) - radius, -30.0, 30.0, xtol=1e-14, rtol=1e-14))


def admm(X, y, c, kappa, radius, u, dual, steps):
    """Weights, bias, split margins and dual variables after steps of over-relaxed ADMM on Σ c (κ - u)₊."""
    penalty, centred = c.mean(), X - X.mean(axis=0)
    for _ in range(steps):
        target = y * (u - dual)
        J = sphere_minimiser(centred.T @ centred, centred.T @ target, radius)
        b = X.mean(axis=0) @ J - target.mean()
        moved = 1.6 * y * (X @ J - b) - 0.6 * u + dual
        trials = np.stack([np.minimum(moved + c / penalty, kappa), np.maximum(moved, kappa)])  # below, and above
        loss = c / penalty * np.maximum(kappa - trials, 0.0) + 0.5 * (trials - moved) ** 2
        u = np.where(loss[0] < loss[1], *trials)
        dual = moved - u
    return J, b, u, dual


def hit_and_run(X, y, kappa, J, b, normal, uniforms):
    """One step of hit and run among the weights of zero loss, then one of the bias."""
    turn = normal - (normal @ J) / (J @ J) * J
    turn *= np.linalg.norm(J) / np.linalg.norm(turn)
    size, phase = np.hypot(X @ J, X @ turn), np.arctan2(X @ turn, X @ J)  # score = size cos(θ - phase)
    with np.errstate(invalid="ignore"):
        half = np.arccos((b + y * kappa) / size)  # NaN where the circle never meets the margin
    angles = np.concatenate([phase + half, phase - half])
    angles = (angles[np.isfinite(angles)] + np.pi) % (2.0 * np.pi) - np.pi
    low, high = max(angles[angles < 0.0], default=-np.pi), min(angles[angles > 0.0], default=np.pi)
    angle = low + (high - low) * uniforms[0]
    J = np.cos(angle) * J + np.sin(angle) * turn
    room = np.max((X @ J + kappa)[y < 0]), np.min((X @ J - kappa)[y > 0])
    return J, room[0] + (room[1] - room[0]) * uniforms[1]


# ---- restricted Boltzmann machines


def xoshiro(state):
    """Words of xoshiro128++ from a state of four integers, as its authors write it down."""
    a, b, c, d = map(int, state)

    def rotated(x, k):
        return (x << k | x >> (32 - k)) & 0xFFFFFFFF

    while True:
        yield (rotated((a + d) & 0xFFFFFFFF, 7) + a) & 0xFFFFFFFF
        shifted = b << 9 & 0xFFFFFFFF
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= shifted
        d = rotated(d, 11)


class Uniforms:
    """Uniform numbers from streams (4, lanes) that take turns; a draw begins with the first of them."""

    def __init__(self, streams):
        self.streams = [xoshiro(state) for state in streams.T]

    def draw(self, *shape):
        """Middles of intervals of 2⁻²⁴."""
        n = int(np.prod(shape))
        words = [[next(stream) for stream in self.streams] for _ in range(-(-n // len(self.streams)))]
        return (np.ravel(words)[:n].astype(np.int64) // 256 + 0.5).reshape(shape) / 2**24


def draw_units(inputs, Q, u):
    """Features of units with given inputs (n, D): 0 and 1 for Q = 2, one-hot else; u (n, units) decides."""
    if Q == 2:
        return (u < expit(inputs)).astype(float)
    weights = np.exp(inputs.reshape(len(inputs), -1, Q))
    steps = np.cumsum(weights, axis=2) / weights.sum(axis=2, keepdims=True)
    return np.eye(Q)[(u[:, :, None] >= steps).sum(axis=2)].reshape(inputs.shape)


def contrastive_divergence(p, batches, n_gibbs, rate, l2, streams):
    """Weights, fields, biases, running mean and chains after some batches (n, D) of features, with centred gradients.

    Two sets of streams (2, 4, lanes) draw the two halves of the visible units, and of the chains.
    """
    W, b, c, mean, hidden_mean, z = (np.array(a, float) for a in p[2:])
    Q, sources = p.n_states, [Uniforms(s) for s in streams]
    features = 1 if Q == 2 else Q

    def hidden(v):
        return v @ W + c if p.gaussian else expit(v @ W + c)

    def drawn(inputs, source):
        u = source.draw(inputs.size + 1)  # one more: normal deviates come in pairs
        if not p.gaussian:
            return draw_units(inputs, 2, u[:-1].reshape(inputs.shape))
        u = u[: inputs.size + inputs.size % 2].reshape(-1, 2)
        radius, angle = np.sqrt(-2.0 * np.log(u[:, 0])), 2.0 * np.pi * (u[:, 1] - 2.0**-25)
        normals = (radius * np.array([np.cos(angle), np.sin(angle)])).T.ravel()
        return inputs + normals[: inputs.size].reshape(inputs.shape)

    for batch in batches:
        units = batch.shape[1] // features
        for _ in range(n_gibbs):
            inputs, halves = z @ W.T + b, []
            for source, (lo, hi) in zip(sources, ((0, units // 2), (units // 2, units)), strict=True):
                part = inputs[:, features * lo : features * hi]
                halves.append(draw_units(part, Q, source.draw(len(z), hi - lo)))
            v = np.concatenate(halves, axis=1)
            rows = np.split(v @ W + c, [len(z) // 2])
            z = np.concatenate([drawn(part, source) for part, source in zip(rows, sources, strict=True)])
        hidden_mean = 0.95 * hidden_mean + 0.05 * hidden(batch).mean(axis=0)
        dv, dz = batch.mean(axis=0) - v.mean(axis=0), hidden(batch).mean(axis=0) - hidden(v).mean(axis=0)
        step = batch.T @ hidden(batch) / len(batch) - v.T @ hidden(v) / len(v)
        step = step - np.outer(mean, dz) - np.outer(dv, hidden_mean) - 2.0 * l2 * W
        W, b, c = W + rate * step, b + rate * (dv - step @ hidden_mean), c + rate * (dz - mean @ step)
    return W, b, c, hidden_mean, z


def sites_missed(machine, v):
    """Expected number of sites (n, L) that are wrong when they are drawn anew, given the means of the hidden units."""
    W, b = (machine.visible.by_state(np.asarray(a, float)) for a in (machine.W, machine.b))
    total = 0.0
    for row in v:
        inputs = machine.c + sum(W[i, state] for i, state in enumerate(row))
        z = inputs if machine.hidden.gaussian else expit(inputs)
        for i, state in enumerate(row):
            weights = np.exp(b[i] + W[i] @ z)
            total += 1.0 - weights[state] / weights.sum()
    return total
