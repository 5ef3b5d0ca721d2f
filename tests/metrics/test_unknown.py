"""The contract of what did not converge: NaN order parameters give NaN in every metric, and touch no other point."""

import numpy as np
import pytest

from rbal.metrics import METRICS, Link, ManyMetrics, Metrics, MixtureMetrics

PHI, NAN = 0.3, np.nan
SIZES = {"n_pos": 10, "n_neg": 20}


def calls():
    """Every metric, by a name: (function of the metrics, whether its first result is an abscissa)."""
    found = {name: lambda m, name=name: getattr(m, name)() for name in ("auc", "best_ba", "best_threshold")}
    for name in ("tpr", "fpr", "tnr", "fnr", "ba"):
        found[name] = lambda m, name=name: getattr(m, name)()
        found[name + " at ∞"] = lambda m, name=name: getattr(m, name)(np.inf)
    of_share = "acc gen_error gen_loss ppv npv fdr fomr f1 fm mcc auprc brier log_loss ece reliability_bins best_link"
    for name in (*of_share.split(), "calibration", "prc"):
        for phi in (PHI,) if name in ("best_link", "calibration") else (PHI, 0.0, 1.0):
            found[f"{name} {phi}"] = lambda m, name=name, phi=phi: getattr(m, name)(phi)
    found |= {
        f"{name} by record": lambda m, of=record.of_theory: of(m, PHI)
        for name, record in METRICS.items()
        if record.of_theory
    }
    return found | {
        "roc": lambda m: m.roc(),
        "best threshold by record": lambda m: METRICS["ba"].best_threshold(m, PHI),
        "density": lambda m: m.density(0.1, 1),
        "log_odds": lambda m: m.log_odds(0.1, PHI),
        "test_loss": lambda m: m.test_loss(lambda s, y: s * s, PHI),
        "linked": lambda m: m.linked(Link(2.0, 1.0)).ba(),
        "linked to its own": lambda m: m.brier(PHI, m.calibration(PHI)),
        "ece in bins": lambda m: m.ece(PHI, bins=5),
        "temperature": lambda m: m.best_link(PHI, "temperature"),
        "shift": lambda m: m.best_link(PHI, "shift"),
        "reliability": lambda m: m.reliability(PHI, n=9)[1],
        "cost_curve": lambda m: m.cost_curve(n=9)[1],
        "uncertain_cost": lambda m: m.uncertain_cost([0.1, 0.3]),
        "tuning_cost": lambda m: m.tuning_cost(PHI, **SIZES),
        "threshold for recall": lambda m: m.threshold_for(PHI, recall=0.8, **SIZES),
        "threshold for precision": lambda m: m.threshold_for(PHI, precision=0.8, **SIZES),
        "threshold for the share": lambda m: m.threshold_for(PHI, precision=PHI, n_pos=10, n_neg=20),
        "threshold for costs": lambda m: m.threshold_for(PHI, costs=(2.0, 1.0), **SIZES),
    }


CALLS = calls()
Q, R, B = np.array([[1.0, NAN, 2.0], [2.0, NAN, -1.0], [0.5, NAN, 0.1]])
MEANS = np.array([[1.0, 2.0, -1.0], [NAN, NAN, NAN], [2.0, 1.0, 0.0]])
WIDTHS = np.array([[1.0, 2.0, 1.0], [NAN, NAN, NAN], [1.0, 1.0, 0.5]])
ROWS = {  # metrics of some of three points, of which the second is unknown
    "one Gaussian a class": lambda i: Metrics(Q[i], R[i], B[i]),
    "two clusters": lambda i: MixtureMetrics(MEANS[i][..., 1:], WIDTHS[i][..., 1:], [1, -1], [1.0, 1.0]),
    "three clusters": lambda i: MixtureMetrics(MEANS[i], WIDTHS[i], [1, 1, -1], [0.5, 0.5, 1.0]),
}


def parts(values):
    return values if isinstance(values, tuple) else (values,)


def test_every_public_metric_is_called():
    public = {n for kind in (Metrics, MixtureMetrics) for n in dir(kind) if not n.startswith("_")}
    named = " ".join(CALLS) + " threshold_for cluster_density"
    assert [name for name in sorted(public) if name not in named.replace("'", " ").split()] == []


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_nan_is_nan_in_every_metric_and_other_points_stay(call, rows):
    for value in parts(call(rows(1))):
        assert np.isnan(value).all()
    with_nan, without = parts(call(rows([0, 1, 2]))), parts(call(rows([0, 2])))
    for value, good in zip(with_nan, without, strict=True):
        assert np.isnan(value[1]).all()
        np.testing.assert_allclose(value[[0, 2]], good, rtol=1e-14)  # sums of three rows round as BLAS likes


@pytest.mark.parametrize("T", [2, 3, 4])
def test_nan_is_nan_for_many_classes(T):
    m, phi = ManyMetrics(np.full((T, T), NAN), np.full((T, T, T), NAN)), np.ones(T)
    found = [getattr(m, name)() for name in ("confusion", "error", "recall", "ba", "best_offsets")]
    found += [getattr(m, n)(phi) for n in ("accuracy", "precision", "f1", "macro_f1", "weighted_f1", "auc")]
    for value in (*found, m.top(1), m.best_offsets("macro_f1", phi)):
        assert np.isnan(value).all()


@pytest.mark.parametrize("phi", [0.9, 0.1, 0.3, 1 / 3])
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_a_wanted_precision_equal_to_the_share_of_positives_is_that_of_all_answers(rows, phi):
    found = rows(0).threshold_for(phi, precision=phi)
    assert (found.threshold, found.recall, found.precision) == (-np.inf, 1.0, phi)


@pytest.mark.parametrize(("q", "r"), [(0.0, 0.0), (0.0, -1.0), (1.0, -1.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)])
@pytest.mark.parametrize("phi", [0.0, 0.2, 0.8, 1.0])
def test_no_threshold_is_cheaper_than_the_cheapest(q, r, phi):
    m = Metrics(q, r, 5.0)  # far from 0, which must not decide
    cost = lambda at: METRICS["cost"].of_theory(m, phi, at)  # noqa: E731
    brute = min(cost(at) for at in (-np.inf, *np.linspace(-12.0, 2.0, 2001), np.inf))
    assert cost(m._cheapest(phi, 1.0, 1.0)) <= brute + 1e-12
    assert m.uncertain_cost([phi]).cost <= brute + 1e-12


@pytest.mark.parametrize("bad", ["a", None, 10**400, np.array([1, "a"], object), 1j])
@pytest.mark.parametrize("call", [lambda m, v: m.tpr(v), lambda m, v: m.ppv(PHI, v), lambda m, v: m.log_odds(v, PHI)])
def test_thresholds_that_are_no_numbers_are_named(call, bad):
    with pytest.raises(TypeError, match=r"(threshold|delta) must be numeric"):
        call(Metrics(1.0, 2.0, 0.5), bad)


def test_shares_of_clusters_are_a_row():
    with pytest.raises(ValueError, match="shares must have 1 dimensions, got 0"):
        MixtureMetrics([1.0, -1.0], 1.0, [1, -1], 1.0)
