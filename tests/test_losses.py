"""The data side: Gaussian expectations of each loss against quadrature over a numerically computed prox."""

import math
from types import SimpleNamespace

import naive
import numpy as np
import pytest

from rbal import losses
from rbal.losses import EQUALITY, HINGE, INEQUALITY, LOSSES, _constraints, _logistic

# κ, c, x, μ, q. The band κ - cx < u0 < κ is from 1e-4 to 1e4 standard deviations wide.
POINTS = {
    "plain": (0.5, 1.0, 0.6, 0.3, 0.8),
    "weighted": (0.3, 3.0, 0.6, 0.0, 0.8),
    "light": (1.0, 0.2, 2.0, -0.4, 0.5),
    "narrow band": (0.5, 1.0, 1e-4, 0.2, 1.0),
    "wide band": (0.5, 2.0, 1e3, 0.2, 0.04),
    "just under one": (0.5, 1.0, 0.999, 0.2, 1.0),
    "just over one": (0.5, 1.0, 1.001, 0.2, 1.0),
    "far below its margin": (4.0, 1.0, 0.7, -1.0, 0.5),
    "far above its margin": (0.5, 1.5, 0.7, 5.0, 0.5),
    "far above, wide band": (0.5, 1.5, 30.0, 5.0, 0.5),
    "far above, narrow band": (0.5, 1.0, 0.01, 5.0, 0.5),
    "large scores": (20.0, 1.0, 5.0, 10.0, 400.0),
    "tiny scores": (2e-3, 5.0, 1e-4, 1e-3, 1e-6),
}
points = pytest.mark.parametrize("point", POINTS.values(), ids=POINTS.keys())
any_loss = pytest.mark.parametrize("loss", LOSSES)


def steps(point):
    """Steps of central differences in x, μ and q, far below the scale on which anything changes."""
    kappa, _, x, mu, q = point
    fall = 1.0 + abs(kappa - mu) / np.sqrt(q)  # in the tail all falls like exp(-t²/2)
    return {"x": 0.02 * x, "mu": 0.1 * np.sqrt(q) / fall, "q": 0.05 * q / fall**2}


def derivatives(fun, point):
    """(∂μ, ∂q, ∂x) of fun(κ, c, x, μ, q)."""
    kappa, c, x, mu, q = point
    h = steps(point)
    return (
        naive.central(lambda v: fun(kappa, c, x, v, q), mu, h["mu"]),
        naive.central(lambda v: fun(kappa, c, x, mu, v), q, h["q"]),
        naive.central(lambda v: fun(kappa, c, v, mu, q), x, h["x"]),
    )


def assert_derivatives(got, fun, point, rtol=1e-6):
    """Entries 3 to 11, against differences; an entry that cancels is held to the size of its neighbours."""
    values = fun(*point)
    _, _, x, _, q = point
    scales = np.outer([1.0 / np.sqrt(q), 1.0 / q, 1.0 / x], np.abs(values))
    expected = np.array(derivatives(fun, point))
    np.testing.assert_allclose(np.reshape(got[3:], (3, 3)) / scales, expected / scales, rtol=rtol, atol=rtol)


@points
@any_loss
def test_expectations(loss, point):
    got = losses.expectations(LOSSES[loss], *point)[:3]
    np.testing.assert_allclose(got, naive.expectations(loss, *point), rtol=2e-10)


@points
@any_loss
def test_derivatives_of_expectations(loss, point):
    got = losses.expectations(LOSSES[loss], *point)
    assert_derivatives(got, lambda *p: naive.expectations(loss, *p), point)


@points
@any_loss
def test_mean_loss(loss, point):
    kappa, c, _, mu, q = point
    worst = c * naive.LOSS[loss](mu - 14.0 * np.sqrt(q), kappa)
    assert LOSSES[loss].mean_loss(*point) == pytest.approx(naive.mean_loss(loss, *point), 1e-9, 1e-14 * worst)


@points
@any_loss
def test_gradients_of_the_moreau_envelope(loss, point):
    # G = -2 E[M]: ∂μG = 2E[f], ∂qG = -E[-f'], ∂xG = E[f²], whatever the loss and its weight.
    f, f2, slope = losses.expectations(LOSSES[loss], *point)[:3]
    expected = derivatives(lambda *p: naive.envelope(loss, *p), point)
    scale = 1e-8 * abs(naive.envelope(loss, *point)) / np.array([np.sqrt(point[4]), point[4], point[2]])
    for got, value, atol in zip((2.0 * f, -slope, f2), expected, scale, strict=True):
        assert got == pytest.approx(value, rel=1e-7, abs=atol)


@pytest.mark.parametrize("c", [0.5, 1.0, 3.0])
@pytest.mark.parametrize(("K", "q", "x"), [(0.3, 0.8, 0.6), (1.5, 0.2, 0.4), (-0.7, 1.0, 2.0), (0.1, 0.5, 0.05)])
def test_printed_energy(K, q, x, c):
    # eq. (GpmUNSAT) is the Moreau envelope of the hinge, and with weights it is c·G(cx).
    envelope = naive.envelope("hinge", K, c, x, 0.0, q)
    assert naive.g_weighted(K, q, x, c).real == pytest.approx(envelope, rel=1e-11)
    if c != 1.0:
        assert abs(naive.g_printed(K, q, c * x).real / envelope - 1.0) > 0.4


def test_erratum_oversampled_energy():
    # Erratum 1, with the numbers of THEORY.md.
    envelope = naive.envelope("hinge", 0.3, 3.0, 0.6, 0.0, 0.8)
    assert envelope == pytest.approx(-1.0860, abs=5e-5)
    assert naive.g_printed(0.3, 0.8, 3.0 * 0.6).real == pytest.approx(-0.3620, abs=5e-5)


@pytest.mark.parametrize("y", [1.0, -1.0])
@pytest.mark.parametrize(("kappa", "r", "b"), [(0.5, 0.6, 0.2), (2.0, 0.1, -0.7), (0.0, 1.5, 0.3)])
@pytest.mark.parametrize(("q", "x"), [(0.8, 0.6), (0.3, 2.5)])
def test_printed_gradients(kappa, r, b, y, q, x):
    # eq. (gradGpmUNSAT) against complex steps of eq. (GpmUNSAT), and the kernel: (E[f²], -E[-f'], E[f], -2yE[f]).
    def G(x, q, r, b):
        return naive.g_printed(kappa - r / 2 + y * b, q, x)

    printed = naive.g_gradients_printed(kappa - r / 2 + y * b, q, x, y)
    stepped = [naive.complex_step(G, (x, q, r, b), i) for i in range(4)]
    np.testing.assert_allclose(printed, stepped, rtol=1e-11)
    f, f2, slope = losses.expectations(HINGE, kappa, 1.0, x, r / 2 - y * b, q)[:3]
    np.testing.assert_allclose(printed, [f2, -slope, f, -2.0 * y * f], rtol=1e-11)


@pytest.mark.parametrize("c", [1.0, 3.0])
def test_weighted_gradients(c):
    # ∂G of the weighted functional by complex steps: the factor c belongs to all of them.
    kappa, r, b, q, x = 0.4, 0.5, 0.1, 0.8, 0.6
    stepped = [
        naive.complex_step(lambda x, q, r, b: naive.g_weighted(kappa - r / 2 + b, q, x, c), (x, q, r, b), i)
        for i in range(4)
    ]
    f, f2, slope = losses.expectations(HINGE, kappa, c, x, r / 2 - b, q)[:3]
    np.testing.assert_allclose(stepped, [f2, -slope, f, -2.0 * f], rtol=1e-11)


@points
@pytest.mark.parametrize(
    "expectations",
    [*(record.expectations for record in (*LOSSES.values(), INEQUALITY, EQUALITY)), INEQUALITY.edge, EQUALITY.edge],
)
def test_heat_equation(expectations, point):
    # ∂q = ½∂μ²: E[f] and E[-f'] know each other's derivatives, and ∂μE[f] = -E[-f'].
    e = expectations(*point)
    assert e[3] == -e[2]
    assert e[6] == pytest.approx(-0.5 * e[5], rel=1e-12)


@points
@any_loss
def test_stein(loss, point):
    # E[f'] = E[f (u0 - μ)]/q, an integral without any derivative of f.
    kappa, c, x, mu, q = point
    f_z = naive.gaussian_mean(
        lambda u0: naive.force(loss, kappa, c, x, u0) * (u0 - mu) / q, mu, q, naive.kinks(loss, kappa, c, x)
    )[0]
    scale = losses.expectations(LOSSES[loss], *point)[0] / np.sqrt(q)
    assert losses.expectations(LOSSES[loss], *point)[2] == pytest.approx(-f_z, rel=1e-9, abs=1e-13 * abs(scale))


# κ, (c), w, μ, q: solution spaces thinner and wider than the spread of the data.
SAT_POINTS = {
    "plain": (0.5, 1.0, 0.4, 0.3, 0.6),
    "thin": (0.5, 1.0, 1e-6, 0.3, 0.6),
    "thinner": (0.2, 1.0, 1e-12, 0.3, 0.6),
    "wide": (0.5, 1.0, 50.0, 0.3, 0.01),
    "far below": (8.0, 1.0, 0.4, -1.0, 0.6),
    "far above": (0.5, 1.0, 0.4, 4.0, 0.3),
}
sat_points = pytest.mark.parametrize("point", SAT_POINTS.values(), ids=SAT_POINTS.keys())


@sat_points
def test_inequality(point):
    # eq. (appGpmSAT): f is the derivative of log H.
    kappa, _, w, mu, q = point
    got = losses.expectations(INEQUALITY, *point)
    np.testing.assert_allclose(got[:3], naive.sat_expectations(kappa, w, mu, q), rtol=1e-10)


@sat_points
def test_derivatives_of_inequality(point):
    got = losses.expectations(INEQUALITY, *point)
    assert_derivatives(got, lambda kappa, _, w, mu, q: naive.sat_expectations(kappa, w, mu, q), point)


@sat_points
def test_the_force_alone(point):
    every = losses.expectations(INEQUALITY, *point)
    np.testing.assert_allclose(INEQUALITY.mean_force(*point), (every[0], every[3]), rtol=1e-13)


@pytest.mark.parametrize("name", ["plain", "wide", "far below"])
def test_gradients_of_log_H(name):
    # βG = 2∫Dξ log H: ∂μ = 2E[f], ∂q = -E[-f'], ∂w = E[f²] - E[-f'].
    kappa, c, w, mu, q = point = SAT_POINTS[name]
    f, f2, slope = losses.expectations(INEQUALITY, kappa, c, w, mu, q)[:3]
    expected = derivatives(lambda kappa, c, w, mu, q: naive.sat_energy(kappa, w, mu, q), point)
    np.testing.assert_allclose([2.0 * f, -slope, f2 - slope], expected, rtol=1e-8)


@pytest.mark.parametrize(("kappa", "mu", "q"), [(0.5, 0.3, 0.8), (0.0, 6.0, 0.5), (5.0, -1.0, 2.0)])
def test_edges(kappa, mu, q):
    # On the surface x f = (κ - u0)₊ (inequality), κ - u0 (equality), whatever x and c.
    def positive(u0):
        gap = np.maximum(kappa - u0, 0.0)
        return np.stack([gap, gap**2, gap > 0.0])

    def either(u0):
        return np.stack([kappa - u0, (kappa - u0) ** 2, np.ones_like(u0)])

    for edge, fun in ((INEQUALITY.edge, positive), (EQUALITY.edge, either)):
        got = edge(kappa, 7.0, 123.0, mu, q)
        np.testing.assert_allclose(got[:3], naive.gaussian_mean(fun, mu, q, [kappa]), rtol=1e-10)

        def at(kappa, c, x, mu, q, fun=fun):
            return naive.gaussian_mean(fun, mu, q, [kappa])

        # ∂x is that of a force a(x)·gap with a' = -a² at a = 1: nobody asks for it on the surface
        along_mu, along_q, _ = derivatives(at, (kappa, 7.0, 1.0, mu, q))
        scale = np.abs(got[:3])
        np.testing.assert_allclose(got[3:6] / scale * np.sqrt(q), along_mu / scale * np.sqrt(q), rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(got[6:9] / scale * q, along_q / scale * q, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("t", [-4.9, -5.1, -12.0, -35.0])
def test_positive_part_keeps_its_digits_in_the_tail(t):
    # E[(t - z)₊ᵏ] = φ(t) ∫₀ yᵏ exp(ty - y²/2) dy: no difference of nearly equal numbers
    powers = np.arange(3)[:, None]
    integrals = naive.quadrature(lambda y: y**powers * np.exp(t * y - 0.5 * y * y), np.linspace(0.0, 60.0 / -t, 30))
    expected = integrals * np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)
    np.testing.assert_allclose(_constraints.positive_part(t, 0.0, 1.0), expected, rtol=1e-12)


@pytest.mark.parametrize("x", [0.3, 4.0])
def test_equality_is_the_square_loss_at_infinite_weight(x):
    heavy = losses.expectations(LOSSES["square"], 0.7, 1e13, x, 0.2, 0.5)
    np.testing.assert_allclose(losses.expectations(EQUALITY, 0.7, 1.0, x, 0.2, 0.5), heavy, rtol=1e-12)


@any_loss
@pytest.mark.parametrize("u", [-3.0, 0.2, 4.0])
def test_force(loss, u):
    expected = -naive.central(lambda v: 1.7 * naive.LOSS[loss](v, 0.5), u, 1e-3)
    assert LOSSES[loss].force(0.5, 1.7, u) == pytest.approx(expected, abs=1e-10)


@any_loss
@pytest.mark.parametrize("u", [-3.0, 0.2, 4.0])
def test_curvature_and_value(loss, u):
    record = LOSSES[loss]
    slope = naive.central(lambda v: record.force(0.5, 1.7, v), u, 1e-3)
    assert record.curvature(0.5, 1.7, u) == pytest.approx(-slope, abs=1e-9)
    assert record.value(np.array([u]), 0.5) == pytest.approx(naive.LOSS[loss](u, 0.5), rel=1e-14)


@pytest.mark.parametrize("cx", [1e-6, 0.5, 30.0, 1e4, 1e8])
@pytest.mark.parametrize("u0", [-1e3, -5.0, 0.0, 0.7, 20.0])
def test_prox_logistic(u0, cx):
    got = _logistic.prox_logistic(u0, 0.7, cx, u0)
    expected = u0 + cx * naive.force("logistic", 0.7, 1.0, cx, np.array([u0]))[0]
    assert got == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_the_prox_takes_few_steps_from_its_neighbour(monkeypatch):
    # where the force saturates the root is an end of its bracket, and bisection would take forty steps to get there
    calls = []
    counting = SimpleNamespace(exp=lambda x: calls.append(x) or math.exp(x))
    monkeypatch.setattr(_logistic, "math", counting)
    prox = getattr(_logistic.prox_logistic, "py_func", _logistic.prox_logistic)
    u0 = np.linspace(-1000.0, 1000.0, 4001)
    u = u0[0]
    for x in u0:
        u = prox(x, 0.7, 0.14, u)
    assert len(calls) < 2.5 * u0.size


@pytest.mark.parametrize("s", [0.1, 3.0, 40.0, 120.0])
def test_logistic_quadrature_resolves_wide_scores(s):
    # WIDEST is the promise: the loss bends on a scale of 1, whatever the spread of the scores.
    point = (0.0, 1.0, 2.0, 0.5 * s, s * s)
    got = losses.expectations(LOSSES["logistic"], *point)[:3]
    np.testing.assert_allclose(got, naive.expectations("logistic", *point), rtol=1e-9)
