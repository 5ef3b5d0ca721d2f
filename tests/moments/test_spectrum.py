"""Few nodes for many eigenvalues: the rule against moments of the measure, and solutions against the full spectrum."""

import numpy as np
import pytest

import rbal
from rbal.moments import Spectrum
from rbal.moments._spectrum import gauss_rule
from rbal.widgets import _data


def wide(D, seed=0):
    """Classes whose eigenvalues spread over six decades, some features constant."""
    rng = np.random.default_rng(seed)
    lam = np.concatenate([10.0 ** rng.uniform(-6.0, 0.0, D - 20), np.zeros(20)])
    half = 0.5 * np.sqrt(lam) * rng.normal(size=D)
    return rbal.Moments.real(half, -half, lam)


@pytest.mark.parametrize("n", [1, 3, 8])
def test_a_gauss_rule_has_the_moments_of_the_measure(n):
    rng = np.random.default_rng(n)
    nodes, weights = np.sort(rng.uniform(0.5, 1.5, 60)), rng.exponential(size=60)
    x, w = gauss_rule(nodes, weights, n)
    assert x.size == n
    assert (w > 0.0).all()
    for degree in range(2 * n):
        assert w @ x**degree == pytest.approx(weights @ nodes**degree, rel=1e-11)
    assert w @ x ** (2 * n) != pytest.approx(weights @ nodes ** (2 * n), rel=1e-13)


def test_few_nodes_are_left_alone():
    nodes, weights = np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, 2.0])
    x, w = gauss_rule(nodes, weights, 5)
    np.testing.assert_array_equal(x, [1.0, 3.0])
    np.testing.assert_array_equal(w, [1.0, 2.0])
    spectrum = rbal.Moments.real([0.1, -0.2], [0.0, 0.0], [1.0, 2.0]).spectrum
    for ours, theirs in zip(spectrum.condensed(), spectrum, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_sums_are_kept():
    full, few = (make(wide(2000).spectrum) for make in (lambda s: s, Spectrum.condensed))
    assert few.lam.size < 400 < full.lam.size
    assert (np.diff(few.lam) >= 0.0).all()
    assert (few.g_null, few.shift) == (full.g_null, full.shift)
    for z in (1e-7, 1e-4, 1e-2, 1.0, 50.0):  # poles closer than the smallest eigenvalue to far away
        for name in ("g", "s"):
            for power in (1, 2):
                ours, theirs = (getattr(s, name) @ (s.lam + z) ** -power for s in (few, full))
                assert ours == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("name", [*_data.SOURCES, "wide"])
@pytest.mark.parametrize("kappa", [0.0, 0.5, 2.0])
def test_solutions_are_those_of_the_full_spectrum(name, kappa):
    moments = wide(1000) if name == "wide" else _data.named(name)
    few = moments.spectrum.condensed()
    assert few.lam.size <= moments.spectrum.lam.size
    pos, neg = np.array([0.05, 0.1, 0.5, 2.0, 1.0]), np.array([0.05, 2.0, 1.0, 2.0, 20.0])
    a, b = (rbal.sweep(m, pos, neg, kappa) for m in (few, moments))
    assert (a.phase == b.phase).all()
    for field in ("q", "r", "b", "k_hat"):
        np.testing.assert_allclose(getattr(a, field), getattr(b, field), rtol=2e-9, atol=2e-9)


def test_the_moments_themselves_are_not_touched():
    moments = wide(500)
    before = moments.spectrum
    few = before.condensed()
    assert moments.spectrum is before
    assert few.lam.size < before.lam.size


@pytest.mark.parametrize("options", [{"kappa": 0.5}, {"model": "svm", "lam": 0.1}])
def test_a_spectrum_is_solved_like_its_moments(options):
    moments = wide(50)
    for function in (rbal.solve, rbal.sweep):
        ours, theirs = (function(m, 0.5, 2.0, **options) for m in (moments.spectrum, moments))
        assert (ours.q, ours.r, ours.b) == (theirs.q, theirs.r, theirs.b)
    assert rbal.critical_margin(moments.spectrum, 0.5, 0.2) == rbal.critical_margin(moments, 0.5, 0.2)
    with pytest.raises(TypeError, match=r"moments must be a rbal\.Moments or a Spectrum, got list"):
        rbal.solve([1.0], 1.0, 1.0)


@pytest.mark.parametrize("factor", [0.0, 0.5, 3.0])
def test_apart_is_what_moved_means_give(factor):
    lam, half = np.array([0.0, 0.0, 0.5, 1.0, 1.0]), np.array([0.2, 0.0, 0.3, 0.1, 0.4])  # one separates without noise
    ours = rbal.Moments.real(half, -half, lam).spectrum.apart(factor)
    theirs = rbal.Moments.real(factor * half, -factor * half, lam).spectrum
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=0)
    assert ours.separation == pytest.approx(theirs.separation)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: Spectrum.of([2.0, 1.0], [0.0, 0.0], 2), "eigenvalues must ascend"),
        (lambda s: Spectrum.of([1.0], [0.0, 0.0], 2), r"one delta_sq each, got shapes \(1,\) and \(2,\)"),
        (lambda s: Spectrum.of([-1.0, 1.0], [0.0, 0.0], 2), "eigenvalues must be >= 0, got -1"),
        (lambda s: Spectrum.of([0.0, 0.0], [1.0, 0.0], 2), "eigenvalues must not all be zero"),
        (lambda s: Spectrum.of([1.0], [np.nan], 1), "delta_sq must be finite"),
        (lambda s: Spectrum.of([1.0], [0.0], 0), "L must be"),
        (lambda s: s.apart(-1.0), "factor must be >= 0, got -1"),
        (lambda s: s.condensed(ratio=1.0), "ratio must be > 1, got 1"),
        (lambda s: s.condensed(n=0), "n must be"),
    ],
)
def test_what_is_no_spectrum(call, message):
    with pytest.raises(ValueError, match=message):
        call(wide(30).spectrum)
