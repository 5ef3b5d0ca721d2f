"""The exploration of classes of unequal width."""

import numpy as np
import pytest

import rbal
from rbal import widgets
from rbal.datasets import synthetic
from rbal.widgets import _widths

RANDOM = synthetic.random_gaussian(7, L=40, scale=1.5).moments


def by_hand(moments, width):
    """The same mixture from its centres and variances."""
    shift = np.sqrt(moments.delta_sq / moments.L)
    return rbal.Mixture.gaussian(np.stack([shift, -shift]) / 2, moments.eigenvalues, [1, -1], widths=[width, 1.0])


@pytest.mark.parametrize("width", [0.2, 1.0, 5.0])
def test_mixture_of_a_spectrum_is_the_one_of_its_centres(width):
    for point in ((0.3, 0.2, 0.4), (2.0, 1.0, 1.0)):
        found, expected = (rbal.solve(mix(RANDOM, width), *point) for mix in (_widths.widened, by_hand))
        assert found.phase == expected.phase
        for name in ("q", "x", "r", "b", "k_hat"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-9)


def test_one_width_is_the_plain_theory():
    mixed, plain = rbal.solve(_widths.widened(RANDOM, 1.0), 2.0, 1.0, 0.5), rbal.solve(RANDOM, 2.0, 1.0, 0.5)
    np.testing.assert_allclose([*mixed.q, mixed.r, mixed.b], [plain.q, plain.q, plain.r, plain.b], rtol=1e-9)


@pytest.mark.parametrize(("q_pos", "q_neg", "r"), [(4.0, 1.0, 0.5), (4.0, 1.0, 5.0), (0.3, 2.0, 1.0), (1.0, 1.0, 2.0)])
def test_crossing_is_the_best_threshold(q_pos, q_neg, r):
    m = rbal.metrics.MixtureMetrics([0.5 * r, -0.5 * r], [q_pos, q_neg], [1, -1], [1.0, 1.0])
    assert abs(_widths.crossing(q_pos, q_neg, r) - m.best_threshold()) < 1e-9


def test_the_best_threshold_goes_over_from_the_wider_class_to_the_narrower():
    assert _widths.crossing(4.0, 1.0, 1.0) > 0.0  # much overlap: towards the wide positives
    assert _widths.crossing(4.0, 1.0, 5.0) < 0.0
    edge = 2.0 * np.sqrt(np.log(4.0) / (1.0 - 1.0 / 4.0))  # r²/4 (1/q₋ - 1/q₊) = log(q₊/q₋)
    assert abs(_widths.crossing(4.0, 1.0, edge)) < 1e-12


def test_explorer_shows_what_solve_gives():
    ui = widgets.widths(RANDOM, width=3.0, kappa=1.0, alpha_pos=1.0, alpha_neg=2.0)
    assert ui.error == ""
    for name, value in (("width", 0.5), ("kappa", 0.3), ("alpha_pos", 0.2)):
        getattr(ui, name).value = value
        assert ui.error == ""
        assert ui._message.value == ""
        sizes = ui.alpha_pos.value, ui.alpha_neg.value, ui.kappa.value
        m = rbal.solve(by_hand(RANDOM, ui.width.value), *sizes).metrics
        expected = {"trained": m.ba(), "midway": m.ba(-m.b), "best": m.best_ba()}
        for key, ba in expected.items():
            assert abs(ui.curves["ba"][key] - ba) < 1e-8
        assert abs(ui.curves["thresholds"]["best"] - m.best_threshold()) < 1e-7
        edge = rbal.solve(by_hand(RANDOM, _widths.WIDTHS[-1]), *sizes).metrics
        assert abs(ui.curves["ba_best"][-1] - edge.best_ba()) < 1e-8
        np.testing.assert_array_equal(ui.lines["best"].get_ydata(), ui.curves["ba_best"])


def test_collapsed_weights_are_shown_without_a_word():
    # directions that no sample sees take all weight where many negatives leave nothing to learn
    still = rbal.Moments.real(np.r_[np.full(20, 0.02), np.zeros(10)], np.r_[np.full(20, -0.02), np.zeros(10)],
                              np.r_[np.linspace(0.2, 2, 20), np.zeros(10)])  # fmt: skip
    ui = widgets.widths(still, width=0.5, kappa=2.0, alpha_pos=1.0, alpha_neg=50.0)
    assert (ui.error, ui._message.value) == ("", "")
    assert ui.curves["phase"] == "COLLAPSED"
    assert ui.curves["ba"]["best"] == 0.5


def test_arguments_are_checked():
    with pytest.raises(ValueError, match=r"width must be >= 0.1 and <= 10, got 20"):
        widgets.widths(width=20.0)
    with pytest.raises(ValueError, match=r"width must be > 0, got 0"):
        _widths.widened(RANDOM, 0.0)
