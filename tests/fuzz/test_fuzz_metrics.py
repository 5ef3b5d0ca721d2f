"""Metrics of the theory and of scores, with nasty arguments."""

import numpy as np
import pytest
from nasty import Case, hold
from test_fuzz_theory import kept, rates

import rbal

pytestmark = pytest.mark.fuzz
AREA = "metrics"
OWNERS = ("METRICS", "SWEPT", "OF_PARTS")


def rate(value, call):
    """A rate lies between 0 and 1, and so does the one of the exchanged classes."""
    value = np.asarray(value)
    assert np.all((value >= 0.0) & (value <= 1.0)), f"a rate is {value}"


def swap(value, call):
    """Exchanged classes exchange TPR and TNR, and leave the balanced accuracy as it is."""
    rate(value, call)
    m, threshold = eval_owner(call), np.asarray(call.of("threshold"), float)
    if type(m) is rbal.Metrics:
        other = rbal.Metrics(m.q, m.r, -m.b)
        np.testing.assert_allclose(other.tnr(-threshold), m.tpr(threshold), rtol=1e-9)
        np.testing.assert_allclose(other.ba(-threshold), m.ba(threshold), rtol=1e-9)


def eval_owner(call):
    return call.case.function().__self__


def finite(value, call):
    assert np.isfinite(np.asarray(value, float)).all()


def monotone(curve, call):
    """Both rates of a ROC curve rise."""
    fpr, tpr = np.moveaxis(np.asarray(curve[0]), 0, -1), np.moveaxis(np.asarray(curve[1]), 0, -1)
    for part in (fpr, tpr):
        assert np.all((part >= 0.0) & (part <= 1.0))
        steps = np.diff(part, axis=-1)
        assert np.all(steps >= -1e-12) or np.all(steps <= 1e-12), "the curve is not monotone"


def made(m, call):
    if np.isnan(m.ba()).any():  # NaN is what did not converge, and stays NaN
        return
    rates(m)
    kept(m)


def evaluated(found, call):
    for name in ("tpr", "tnr", "ba", "acc", "auc"):
        if name in found:
            assert 0.0 <= found[name] <= 1.0, f"{name} is {found[name]}"


def rows_sum(confusion, call):
    np.testing.assert_allclose(confusion.sum(axis=-1), 1.0, atol=1e-9)


PHI = ("0.2", "0.5", "[0.1, 0.2]", "0.999")
THRESHOLD = ("0.0", "0.5", "[0.0, 1.0]", "-50.0")
LINKS = ("None", "LINK", "metrics.Link()")
SHARES = ("[0.2, 0.3, 0.5]", "np.ones(3) / 3")
OFFSETS = ("None", "np.zeros(3)", "[1.0, 0.0, -1.0]")


def methods(owner):
    """Cases of every method of the metrics of two classes."""
    of = f"{owner}."
    for name in ("tpr", "fpr", "tnr", "fnr", "ba"):
        yield Case(of + name, {"threshold": THRESHOLD}, swap, optional=("threshold",), examples=12)
    for name in ("acc", "gen_error", "ppv", "npv", "fdr", "fomr", "f1", "fm"):
        yield Case(of + name, {"phi_pos": PHI, "threshold": THRESHOLD}, rate, examples=15)
    yield Case(of + "mcc", {"phi_pos": PHI, "threshold": THRESHOLD}, examples=20)
    for name in ("auc", "best_ba"):
        yield Case(of + name, {}, rate, examples=1)
    yield Case(of + "best_threshold", {}, examples=1)
    yield Case(of + "auprc", {"phi_pos": PHI}, rate, examples=20)
    for name in ("brier", "log_loss"):
        yield Case(of + name, {"phi_pos": PHI, "link": LINKS}, finite, examples=20)
    yield Case(of + "calibration", {"phi_pos": PHI, "link": LINKS}, examples=20)
    yield Case(of + "ece", {"phi_pos": ("0.2", "0.5"), "bins": ("None", "10"), "link": LINKS}, rate, examples=20)
    yield Case(of + "best_link", {"phi_pos": ("0.2", "0.5"), "kind": ("'platt'", "'slope'")}, examples=20)
    yield Case(of + "cost_curve", {"n": ("201", "3"), "threshold": ("None", "0.0")}, examples=20)
    yield Case(of + "density", {"delta": ("0.3", "np.linspace(-3, 3, 5)"), "label": ("1", "-1")}, examples=20)
    yield Case(of + "gen_loss", {"phi_pos": PHI, "kappa": ("0.0", "1.0")}, finite, examples=20)
    yield Case(of + "linked", {"link": ("LINK",)}, examples=15)
    yield Case(of + "log_odds", {"delta": ("0.3", "-2.0"), "phi_pos": ("0.2",)}, examples=20)
    yield Case(of + "prc", {"phi_pos": ("0.2", "0.5"), "n": ("201", "3")}, examples=20)
    yield Case(of + "roc", {"n": ("201", "3")}, monotone, examples=20)
    for name in ("reliability", "reliability_bins"):
        size = {"reliability": "n", "reliability_bins": "bins"}[name]
        yield Case(of + name, {"phi_pos": ("0.2",), size: ("10", "3"), "link": LINKS}, nan=True, examples=20)
    yield Case(
        of + "test_loss",
        {"g": ("lambda u, label: u * u", "lambda u, label: abs(u)"), "phi_pos": ("0.2", "0.5")},
        fixed=("g",),
        examples=20,
    )
    yield Case(
        of + "threshold_for",
        {
            "phi_pos": ("0.2",),
            "recall": ("0.9",),
            "precision": ("None",),
            "costs": ("None",),
            "n_pos": ("50",),
            "n_neg": ("100",),
        },
        nan=True,
        examples=40,
    )
    yield Case(
        of + "threshold_for",
        {"phi_pos": ("0.2",), "costs": ("(1.0, 5.0)",), "n_pos": ("50",), "n_neg": ("100",)},
        nan=True,
        optional=("n_pos", "n_neg"),
    )
    yield Case(
        of + "tuning_cost",
        {"phi_pos": ("0.2",), "costs": ("(1.0, 5.0)",), "n_pos": ("50",), "n_neg": ("100",)},
        nan=True,
        examples=20,
    )
    yield Case(
        of + "uncertain_cost",
        {
            "shares": ("[0.1, 0.2]", "[0.5]"),
            "weights": ("None",),
            "costs": ("(1.0, 5.0)",),
            "threshold": ("None", "0.0"),
        },
        examples=20,
    )


CASES = [
    Case("rbal.Metrics", {"q": ("1.0", "[0.5, 1.0]"), "r": ("1.0", "0.0"), "b": ("0.0", "[1.0, -3.0]")}, made, examples=80),
    Case("metrics.MixtureMetrics", {"mean": ("[1.0, 2.0, -1.0]",), "q": ("1.0", "[1.0, 2.0, 0.5]"), "signs": ("[1, 1, -1]",), "shares": ("[0.5, 0.5, 1.0]",)}, made, examples=80),
    Case("metrics.ManyMetrics", {"means": ("np.eye(3)",), "overlaps": ("np.tile(np.eye(3), (3, 1, 1))",), "places": ("[0, 1, 2]",), "shares": ("[1.0, 1.0, 1.0]",)}, kept),
    *(case for owner in OWNERS for case in methods(owner)),
    Case("OF_PARTS.cluster_density", {"delta": ("0.3", "np.zeros(2)")}),
    Case("OF_MANY.confusion", {"offsets": OFFSETS}, rows_sum),
    *(Case(f"OF_MANY.{name}", {"offsets": OFFSETS}, rate, examples=12) for name in ("ba", "recall")),
    Case("OF_MANY.error", {"offsets": OFFSETS}),
    *(Case(f"OF_MANY.{name}", {"phi": SHARES, "offsets": OFFSETS}, rate, examples=15) for name in ("accuracy", "f1", "macro_f1", "precision", "weighted_f1")),
    Case("OF_MANY.auc", {"phi": SHARES}, rate),
    Case("OF_MANY.best_offsets", {"metric": ("'ba'", "'accuracy'", "'macro_f1'"), "phi": SHARES}),
    Case("OF_MANY.top", {"k": ("1", "2"), "offsets": OFFSETS}, rate),
    Case("metrics.Link", {"slope": ("1.0",), "intercept": ("0.0",)}, nan=True),
    Case("LINK.corrected", {"train_share": ("0.2",), "test_share": ("0.5",)}, nan=True, covers=("metrics.Link.corrected",)),
    Case("LINK.tempered", {"temperature": ("2.0",)}, covers=("metrics.Link.tempered",)),
    Case("metrics.evaluate", {"scores": ("SCORES",), "y": ("y",), "threshold": ("0.0", "0.3"), "names": ("['ba']", "None"), "costs": ("(1.0, 2.0)",)}, evaluated, nan=True, examples=100),
    Case("metrics.best_threshold", {"scores": ("SCORES",), "y": ("y",)}, nan=True, examples=60),
    Case("metrics.cost", {"miss": ("1.0", "5.0"), "alarm": ("1.0",)}, words=("costs",)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.target)
def test_named_errors_or_sound_answers(case):
    hold(case)
