"""One record for each metric: what the theory, the rates and real scores make of it."""

import inspect

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

import rbal
from rbal.metrics import METRICS, Metric, cost, evaluate, register
from rbal.metrics.internal import Rates, goals, named

SCORES = rbal.Metrics(q=np.array([1.0, 2.0]), r=np.array([2.0, 0.5]), b=np.array([0.5, -1.0]))


@pytest.mark.parametrize("name", [name for name, record in METRICS.items() if record.of_theory and name != "cost"])
def test_a_record_is_the_method_of_its_name(name):
    method = getattr(SCORES, name)
    given = inspect.signature(method).parameters
    arguments = {key: value for key, value in {"phi_pos": 0.2, "threshold": 0.3}.items() if key in given}
    np.testing.assert_allclose(METRICS[name].of_theory(SCORES, 0.2, 0.3), method(**arguments), rtol=1e-14)


@pytest.mark.parametrize("name", [name for name, record in METRICS.items() if record.of_rates])
def test_theory_and_rates_have_one_formula(name):
    record = METRICS[name]
    told = record.of_rates(Rates.of(SCORES.tpr(0.3), SCORES.fpr(0.3)), 0.2)
    np.testing.assert_allclose(record.of_theory(SCORES, 0.2, 0.3), told, rtol=1e-12)


@pytest.mark.parametrize("name", [name for name, record in METRICS.items() if record.of_rates])
def test_better_is_in_the_direction_of_the_sign(name):
    worse, better = (METRICS[name].of_rates(Rates.of(*rates), 0.2) for rates in ((0.6, 0.3), (0.8, 0.1)))
    assert METRICS[name].sign * (better - worse) > 0.0


def test_weights_of_scores_are_repetitions():
    rng = np.random.default_rng(0)
    y, w = rng.random(200) < 0.3, rng.integers(0, 4, size=200)
    s = np.round(rng.normal(size=200) + y, 1)  # with ties
    for name, theirs in (("auc", roc_auc_score), ("auprc", average_precision_score)):
        found = METRICS[name].of_scores(s, y, w.astype(float))
        assert found == pytest.approx(METRICS[name].of_scores(np.repeat(s, w), np.repeat(y, w)))
        assert found == pytest.approx(theirs(y, s, sample_weight=w))


def test_probabilities_of_drawn_scores_are_those_of_the_theory():
    rng = np.random.default_rng(2)
    phi, n, m = 0.2, 100_000, rbal.Metrics(4.0, 2.0, 0.5)
    y = rng.random(n) < phi
    s = (y - 0.5) * m.r - m.b + np.sqrt(m.q) * rng.normal(size=n)
    for name in ("brier", "log_loss"):
        each = np.array([METRICS[name].of_scores(*part) for part in zip(np.split(s, 50), np.split(y, 50), strict=True)])
        assert abs(each.mean() - METRICS[name].of_theory(m, phi)) < 5 * each.std(ddof=1) / np.sqrt(50)
        w = rng.integers(0, 4, size=200)
        found = METRICS[name].of_scores(s[:200], y[:200], w.astype(float))
        assert found == pytest.approx(METRICS[name].of_scores(np.repeat(s[:200], w), np.repeat(y[:200], w)))


def test_with_an_honest_link_probabilities_are_as_good_as_the_ranking():
    # the link takes out units and bias: what is left depends on r²/q, as the AUC does
    q, d = np.array([0.5, 2.0, 9.0])[:, None], np.array([0.3, 1.0, 2.0])
    m = rbal.Metrics(q, d * np.sqrt(q), np.array([[0.3], [-1.0], [4.0]]))
    for name in ("brier", "log_loss"):
        value = getattr(m, name)(0.1, m.calibration(0.1))
        np.testing.assert_allclose(value, np.broadcast_to(value[0], value.shape), rtol=1e-9)
        assert (np.diff(value[0]) < 0.0).all()
    np.testing.assert_allclose(m.auc(), np.broadcast_to(m.auc()[0], (3, 3)), rtol=1e-12)


def test_a_cost_has_its_costs():
    assert cost(5.0, 2.0).of_theory(SCORES, 0.2, 0.0) == pytest.approx(
        5.0 * 0.2 * SCORES.fnr() + 2.0 * 0.8 * SCORES.fpr()
    )
    assert named("cost", (5.0, 2.0)).unit(0.2) == 1.0
    y = np.array([1, 1, -1, -1, -1])
    assert evaluate([1.0, -1.0, 1.0, -1.0, -1.0], y, costs=(5.0, 2.0))["cost"] == pytest.approx(7.0 / 5.0)
    with pytest.raises(ValueError, match="costs must be > 0, got 0"):
        cost(0.0, 1.0)


def test_only_what_is_asked_for_is_measured():
    every = evaluate([2.0, 1.0, -1.0], [1, -1, -1])
    assert evaluate([2.0, 1.0, -1.0], [1, -1, -1], names=("auc", "ba")) == {k: every[k] for k in ("auc", "ba")}
    for name in ("luck", "best_ba", "cost"):  # of no real scores, and of none without costs
        with pytest.raises(ValueError, match=f"names must be one of 'tpr', .*, got '{name}'"):
            evaluate([2.0, -1.0], [1, -1], names=[name])


def test_goals_are_those_of_the_advice():
    assert goals() == ("ba", "f1", "mcc", "auprc", "auc", "cost")
    assert [name for name in goals() if METRICS[name].ranks] == ["auprc", "auc"]


def test_records_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="name must be new, got 'ba', which is taken"):
        register(METRICS["ba"])
    with pytest.raises(TypeError, match="record must be a Metric, got str"):
        register("ba")
    with pytest.raises(ValueError, match="metric 'half' must have of_rates, or of_theory and of_scores"):
        Metric("half", "H", "half a metric", of_theory=lambda m, phi, threshold: m.auc())
    with pytest.raises(ValueError, match=r"metric must be one of 'tpr', .*, got 'luck'"):
        named("luck")
