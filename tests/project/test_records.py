"""What is added from outside, as one record, is seen everywhere: a toy metric and a toy remedy."""

import copy
import json
import pickle
import sys
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import rbal
from rbal import cli, strategies
from rbal.advice._threshold import TunedThreshold
from rbal.advice.internal import text
from rbal.kernels import KERNELS
from rbal.losses import LOSSES
from rbal.metrics import METRICS, Metric, cost, evaluate
from rbal.strategies import REMEDIES, Remedy

ROOT = Path(__file__).resolve().parents[2]
CLASSES = rbal.Moments.ising(m=0.4, delta=1.0, L=20)
QUICK = {
    "kernel": "linear",
    "C": 1.0,
    "moments": "pooled",
    "train": "none",
    "draws": 4,
    "repeats": 1,
    "folds": 3,
    "n_jobs": 1,
    "progress": False,
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    y = np.repeat(["ill", "well"], [40, 200])
    return rng.normal(size=(240, 12)) + 0.5 * (y == "ill")[:, None], y


# ---- a metric


@pytest.fixture(
    params=[
        # each is a balanced accuracy or an AUC in disguise, so that its values are known
        Metric("youden", "J", "index of Youden", of_rates=lambda rates, phi: rates.tpr - rates.fpr, balanced=True),
        Metric("errors", "E", "sum of both errors", of_rates=lambda rates, phi: rates.fpr + rates.fnr,
               higher_is_better=False, balanced=True),
        Metric("gini", "G", "coefficient of Gini", of_theory=lambda m, phi, threshold: 2 * m.auc() - 1,
               of_scores=lambda *scores: 2 * METRICS["auc"].of_scores(*scores) - 1),
    ],
    ids=lambda metric: metric.name,
)  # fmt: skip
def toy(request):
    yield rbal.metrics.register(request.param)
    del METRICS[request.param.name]


KNOWN = {
    "youden": ("ba", lambda v: 2 * v - 1),
    "errors": ("ba", lambda v: 2 * (1 - v)),
    "gini": ("auc", lambda v: 2 * v - 1),
}


def test_a_metric_is_known_to_the_theory_and_to_real_scores(toy):
    twin, of = KNOWN[toy.name]
    best, expected = (strategies.best_mixing(CLASSES, 0.5, 5.0, 0.5, metric=name) for name in (toy.name, twin))
    assert best.value == pytest.approx(of(expected.value), abs=1e-9)
    rows = strategies.compare(CLASSES, 0.5, 5.0, 0.5, metric=toy.name)
    np.testing.assert_allclose(rows[toy.name], of(rows[twin]))
    found = evaluate([2.0, 1.0, -1.0, 0.5, -2.0, -1.0], [1, 1, 1, -1, -1, -1])
    assert found[toy.name] == pytest.approx(of(found[twin]))


def test_a_metric_is_known_to_the_advice(toy, table):
    twin, of = KNOWN[toy.name]
    advice, expected = (rbal.advise(*table, name, check=True, **QUICK) for name in (toy.name, twin))
    assert advice.table["predicted"].to_numpy() == pytest.approx(of(expected.table["predicted"]), abs=1e-4)
    measured = advice.table["measured"].xs("trained", level=1)
    assert measured.to_numpy() == pytest.approx(of(expected.table["measured"].xs("trained", level=1)), abs=1e-12)
    assert (advice.table["behind"] >= 0.0).all()
    for told in (advice.explain(), advice.to_html(), text(advice)):
        assert toy.title in told
    assert json.loads(advice.to_json())["metric"] == toy.name
    assert advice.plot().axes[0].get_xlabel() == toy.title


def test_a_metric_is_known_to_the_pipeline_and_the_command(toy, table, tmp_path, capsys):
    X, y = table
    path = tmp_path / "table.csv"
    pd.DataFrame(X).add_prefix("f").assign(y=y).to_csv(path, index=False)
    assert cli.main(["advise", str(path), "--label", "y", "--metric", toy.name, "--json", "--quiet"]) == cli.OK
    assert json.loads(capsys.readouterr().out)["metric"] == toy.name
    cut, twin = (TunedThreshold(SVC(kernel="linear"), metric=name) for name in (toy.name, "ba"))
    if toy.ranks:
        with pytest.raises(ValueError, match="metric must be one of 'ba', 'f1', 'mcc', 'cost', got 'gini'"):
            cut.fit(X, y)
    else:
        assert cut.fit(X, y).best_threshold_ == pytest.approx(twin.fit(X, y).best_threshold_)


def test_a_metric_is_known_to_the_widgets(toy):
    from rbal import widgets

    twin, of = KNOWN[toy.name]
    ui = widgets.metrics(show=(toy.name, twin))
    np.testing.assert_allclose(ui.curves[toy.name], of(ui.curves[twin]))
    ui, expected = (widgets.mixing(metric=name) for name in (toy.name, twin))
    assert ui.curves["best_value"] == pytest.approx(of(expected.curves["best_value"]), abs=1e-4)


def test_an_unknown_metric_is_refused_everywhere(table):
    X, y = table
    calls = [
        lambda: strategies.best_mixing(CLASSES, 0.5, 5.0, 0.5, metric="luck"),
        lambda: strategies.compare(CLASSES, 0.5, 5.0, 0.5, metric="luck"),
        lambda: rbal.advise(X, y, "luck"),
        lambda: TunedThreshold(SVC(), metric="luck").fit(X, y),
        lambda: rbal.widgets.mixing(metric="luck"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"metric must be one of .*, got 'luck'"):
            call()


def test_the_browser_has_the_names_of_the_records(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import make_explorer_data

    sys.modules.pop("make_explorer_data")
    written = make_explorer_data.RECORDS.read_text(encoding="utf-8")
    assert written == make_explorer_data.records()  # run tools/make_explorer_data.py
    assert 'ba: {"name": "BA", "title": "balanced accuracy", "sign": 1}' in written


# ---- a remedy


def roots(n_pos, n_neg):
    """Class weights to the power ½."""
    mean = 0.5 * (n_pos + n_neg)
    return (mean / n_pos) ** 0.5, (mean / n_neg) ** 0.5


@pytest.fixture(
    params=[
        Remedy("half weights", "Use the square roots of class weights", roots),
        Remedy("half mix", "Go half way from under- to oversampling", mixing=0.5),
    ],
    ids=lambda remedy: remedy.name,
)
def remedy(request):
    yield strategies.register(request.param)
    del REMEDIES[request.param.name]


def test_a_remedy_is_known_to_the_theory(remedy):
    row = strategies.compare(CLASSES, 0.5, 5.0, 0.5).loc[(remedy.name, "trained")]
    if remedy.samples:
        same = strategies.mix(CLASSES, 0.5, 5.0, 0.5, 0.5)
    else:
        same = rbal.solve(CLASSES, 0.5, 5.0, 0.5, weight_pos=5.5**0.5, weight_neg=0.55**0.5)
    assert row["ba"] == pytest.approx(same.metrics.ba(), abs=1e-8)


def test_a_remedy_is_known_to_the_advice(remedy, table):
    X, y = table
    advice = rbal.advise(X, y, check=True, **QUICK)
    n_pos, n_neg, weight_pos, weight_neg = remedy.design(40, 200)
    same = rbal.solve(
        advice.moments, n_pos / 12, n_neg / 12, model="svm", lam=1 / 12, weight_pos=weight_pos, weight_neg=weight_neg
    )
    row = advice.table.loc[(remedy.name, "trained")]
    assert row["predicted"] == pytest.approx(same.metrics.ba(), abs=1e-7)
    assert 0.5 < row["measured"] < 1.0
    assert abs(row["expected"] - row["predicted"]) < 0.05
    assert advice.table.index.is_unique
    assert len(advice.table) == 2 * len(REMEDIES)
    for threshold in ("trained", "moved"):
        advice.best = (remedy.name, threshold)
        for told in (advice.explain(), advice.to_html(), text(advice)):
            assert remedy.doing in told
        assert remedy.name in {entry["strategy"] for entry in json.loads(advice.to_json())["table"]}
    assert len(advice.plot().axes[0].get_yticks()) == len(advice.table)


def test_a_remedy_is_known_to_the_pipeline(remedy, table):
    X, y = table
    advice = rbal.advise(X, y, draws=4, C=1.0, kernel="linear", moments="pooled", train="none")
    advice.best = (remedy.name, "trained")
    pipeline = advice.pipeline(0).fit(X, y)
    if remedy.samples:
        assert advice.sampler().mixing == 0.5
        return
    weights = dict(zip(("ill", "well"), roots(40, 200), strict=True))
    Z = StandardScaler().fit_transform(X)
    expected = SVC(kernel="linear", class_weight=weights).fit(Z, y).decision_function(Z)
    np.testing.assert_allclose(pipeline.decision_function(X), expected, atol=1e-6)
    # labels that were read as text may be numbers in the table that is fitted
    advice.data.positive, advice.data.negative = "1", "0"
    fitted = advice.pipeline(0).fit(X, np.where(y == "ill", 1, 0))
    np.testing.assert_allclose(fitted[-1].class_weight_, roots(40, 200)[::-1])  # of 0 and 1


# ---- a loss: test_record_of_a_loss.py


@pytest.mark.parametrize("record", [*LOSSES.values(), *METRICS.values()], ids=lambda record: record.name)
def test_a_record_is_pickled_and_copied_as_itself(record):
    assert pickle.loads(pickle.dumps(record)) is record
    assert copy.deepcopy(record) is record


@pytest.mark.parametrize("record", [*REMEDIES.values(), *KERNELS.values()], ids=lambda record: record.name)
def test_a_record_whose_functions_have_names_is_pickled(record):
    assert pickle.loads(pickle.dumps(record)) == record


def title_of(record):
    return record.title


def test_records_reach_other_processes():
    records = [LOSSES["hinge"], METRICS["auc"], cost(5.0, 2.0)]
    found = joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(title_of)(record) for record in records)
    assert found == [record.title for record in records]


def test_costs_are_pickled_with_the_metric():
    again = pickle.loads(pickle.dumps(cost(5.0, 2.0)))
    assert evaluate([1.0, -1.0], [-1, 1], costs=(5.0, 2.0))["cost"] == again.of_rates(
        rbal.Metrics(0.0, -2.0, 0.0)._rates(), 0.5
    )


@pytest.mark.parametrize(
    "record", [replace(LOSSES["hinge"], name="other"), Metric("other", "", "", of_rates=lambda rates, phi: rates.tpr)]
)
def test_a_record_that_nobody_knows_is_not_pickled(record):
    with pytest.raises(pickle.PicklingError, match=r"'other' must be in .* to be pickled: register it first"):
        pickle.dumps(record)


def test_a_record_that_another_process_does_not_know_is_named(monkeypatch):
    monkeypatch.setitem(METRICS, "other", Metric("other", "", "", of_rates=lambda rates, phi: rates.tpr))
    sent = pickle.dumps(METRICS["other"])
    monkeypatch.delitem(METRICS, "other")
    with pytest.raises(ValueError, match=r"'other' must be in rbal.metrics.METRICS to be unpickled"):
        pickle.loads(sent)
