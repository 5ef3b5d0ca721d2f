"""The second edition of the study on tables: its rules, its trials, and its analysis on results with known answers."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rbal_book import studies
from rbal_book.studies import advice as study
from rbal_book.studies import tables
from rbal_book.studies.advice import _analysis, _many, _methods, _run, _trials

RULES = (Path(study.__file__).parent / "rules.md").read_text(encoding="utf-8")


# ---- the rules


def test_rules_say_what_the_code_does():
    """Numbers of the text are those of the code, so that neither is changed alone."""
    for rows, count in _trials.SPLITS.items():
        assert rows == 2000 or f"{count} of a table with at\nmost {rows} rows" in RULES or f"at most {rows:,}" in RULES
    assert f"{_trials.SPLITS[500]} of a table" in RULES
    assert f"{_trials.SPLITS[1200]} of one" in RULES
    assert f"{_trials.SPLITS[2000]} of a larger one" in RULES
    machines = sum(np.prod([len(v) for v in part.values()]) for part in _methods.grid(np.eye(4)))
    assert f"{machines} machines, {_methods.INNER * machines} fits" in RULES
    assert f"at most {_methods.STEPS:,} steps" in RULES
    assert f"random forest of {_methods.TREES} trees" in RULES
    wanted = study._analysis.WANTED
    line = next(line for line in RULES.splitlines() if line.startswith("| predictions"))
    assert [f"≤ {wanted['error'][m]}" in line for m in (0, tables.SCARCE)] == [True, True]
    assert RULES.count("{} to {}".format(*wanted["held"])) == 2
    assert f"≥ −{-wanted['behind']}" in RULES
    assert f"≥ {wanted['gain']} |" in RULES
    assert f"by {_analysis.INFERIOR} (one-sided)" in RULES
    assert f"at {_analysis.ALPHA} together" in RULES
    assert f"≤ {wanted['recall']} |" in RULES
    assert f"≥ {wanted['cpu']:g} |" in RULES


def test_splits_are_folds_of_the_first_edition():
    listed = tables.listed()
    names = list(listed.index[listed.role == "judge"])
    index = pd.MultiIndex.from_frame(pd.DataFrame(_trials.cells(names))[tables.FOLD])
    assert index.is_unique
    assert index.isin(tables.load("measured").index).all()
    assert set(index.unique("table")) == set(names)


# ---- rules at work, on a table that comes with scikit-learn


@pytest.fixture
def smaller(monkeypatch):
    """A grid search and a forest that take less time."""
    monkeypatch.setattr(_methods, "DECADES", {"linear": (-1, 0), "rbf": (0, 0)})
    monkeypatch.setattr(_methods, "WIDTHS", (1.0,))
    monkeypatch.setattr(_methods, "TREES", 40)


@pytest.mark.slow
def test_a_run_goes_on_where_it_stopped(smaller, tmp_path, monkeypatch, capsys):
    arguments = {"table": ["wine 1"], "splits": 1, "stores": tmp_path / "stores", "out": tmp_path / "out"}
    study.run("design", **arguments)
    results = study.load("design", folder=tmp_path / "out")
    assert list(results.index) == [("wine 1", minority, 0, 0) for minority in (0, tables.SCARCE)]
    ba = study.metric(results)
    assert set(ba) == {*_methods.OTHERS, *_methods.ADVICE}
    assert ((ba >= 0.5) & (ba <= 1.0)).all(axis=None)  # wine is easy
    assert (study.metric(results, "failed") == 0).all(axis=None)
    for name in ("f1", "auprc", "log_loss"):
        found = study.metric(results, name)
        assert set(found) == set(_methods.MACHINES)
        assert ((found > 0.0) & (found <= 1.0)).all(axis=None)
    assert (study.metric(results, "cpu") > 0.0).all(axis=None)
    # the same machine and fold as in the first edition
    measured = tables.load("measured").loc[results.index]
    np.testing.assert_allclose(ba["as is"], measured["as is"], atol=1e-4)
    np.testing.assert_allclose(ba["weights"], measured["class weights"], atol=1e-4)
    told = study.recommended(results)
    assert (told.low <= told.predicted).all()
    assert (told.predicted <= told.high).all()
    assert "CPU seconds" in capsys.readouterr().out
    monkeypatch.setattr(_methods, "fixed", None)  # nothing is computed again
    study.run("design", **arguments)
    pd.testing.assert_frame_equal(study.load("design", folder=tmp_path / "out"), results)


def test_grid_search_is_that_of_scikit_learn(smaller):
    """On classes that one direction tells apart the search finds it, and a machine that was chosen is in the grid."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, -1], [40, 120])
    X = rng.normal(size=(160, 4)) + np.outer(y > 0, [2.0, 0, 0, 0])
    rows = _methods.Rows(X[::2], y[::2], X[1::2])
    first, second = _methods.searched(rows, 0)
    assert set(first.answers) == set(_methods.GRIDS[:2])
    assert set(second.answers) == {_methods.GRIDS[2]}
    for part in (first, second):
        assert part.more["C"] in {*_methods.decades("linear"), *_methods.decades("rbf")}
        for answer in part.answers.values():
            assert np.mean(answer == (y[1::2] > 0)) > 0.75
        assert min(part.cpu.values()) > 0.0


def test_best_of_all_thresholds_is_the_highest():
    class Scores:
        def decision_function(self, X):
            return X[:, 0]

    X, y = np.array([[3.0], [2.0], [1.0], [0.0]]), np.array([1, -1, 1, -1])
    assert _methods.best_of_all_thresholds(Scores(), X, y) == pytest.approx(0.75)


def test_platt_link_is_near_the_truth():
    """Scores of two Gaussian classes have log-odds that are linear in the score."""
    rng = np.random.default_rng(1)
    y = np.where(rng.random(20_000) < 0.2, 1, -1)
    scores = 3.0 * (0.5 * y + rng.normal(size=y.size))
    link = _methods.sigmoid(scores, y)
    assert link.slope == pytest.approx(1.0 / 3.0, abs=0.02)
    assert link.intercept == pytest.approx(np.log(0.25), abs=0.1)


def test_a_rule_that_fails_knows_nothing(capsys):
    y, y_test = np.repeat([1, -1], [10, 30]), np.repeat([1, -1], [5, 20])

    def broken():
        raise ArithmeticError("no")

    found = _trials.measured(["weights"], broken, y, y_test)
    assert found["weights: failed"] == 1
    assert "ArithmeticError: no" in capsys.readouterr().err
    assert found["weights: ba"] == found["weights, tuned: ba"] == 0.5
    assert found["weights: auprc"] == 0.2
    assert found["weights: log_loss"] == pytest.approx(-0.2 * np.log(0.25) - 0.8 * np.log(0.75))
    fine = _methods.Fitted(np.r_[np.ones(5), -np.ones(20)], np.r_[np.ones(10), -np.ones(30)], {}, {})
    assert _trials.numbers("weights", fine, y, y_test)["weights: f1"] == 1.0


def test_tables_that_judge_are_run_once(tmp_path):
    (tmp_path / "advice").mkdir()
    (tmp_path / "advice" / "judge-compared.csv").write_text("table\n")
    with pytest.raises(SystemExit, match="are run once"):
        study.run("judge", stores=tmp_path, out=tmp_path)
    with pytest.raises(SystemExit, match="no table 'glass 1' for design"):
        _run.two_classes("design", ["glass 1"])


# ---- the analysis, on results with known answers


def synthetic(rng, gain=0.0, behind=0.0, sources=22, splits=3, spread=0.01, level=0.005):
    """Results of every rule: the advice is ahead of all fixed rules by ``gain``, and behind all searches.

    Two tables of each source share a gain of their own, of standard deviation ``spread``, in every comparison.
    """
    names = [f"s{k} {j}" for k in range(sources) for j in range(2)]
    grid = [(n, m, 0, k) for n in names for m in (0, tables.SCARCE) for k in range(splits)]
    index = pd.MultiIndex.from_tuples(grid, names=tables.FOLD)
    place = index.get_level_values("table").map(lambda n: int(n[1:].split(" ")[0])).to_numpy()
    columns = {"advice: ba": 0.8 + rng.normal(0.0, level, len(index))}
    for rule in _methods.OTHERS:
        less = -behind if rule in _methods.GRIDS else gain
        own = rng.normal(0.0, spread, sources)[place]
        columns[f"{rule}: ba"] = columns["advice: ba"] - less - own + rng.normal(0.0, level, len(index))
    columns |= {"advice: cpu": np.full(len(index), 0.5), f"{_methods.GRID}: cpu": np.full(len(index), 12.0)}
    return pd.DataFrame(columns, index)


def predictions(rng, index, off, width):
    """What is measured, and predictions that miss it by ``off`` with intervals of that width."""
    truth = pd.DataFrame(0.75, index, _analysis.REMEDIES)
    told = {}
    for name in _analysis.REMEDIES:
        told[name] = 0.75 + off * rng.choice([-1.0, 1.0])
        told |= {f"{name}, low": told[name] - 0.5 * width, f"{name}, high": told[name] + 0.5 * width}
    return truth, pd.DataFrame(told, index)


def test_a_planted_difference_is_found_and_none_is_not():
    results = synthetic(np.random.default_rng(0), gain=0.03, behind=0.0)
    found = study.compared(results, others=_methods.RULES)
    assert (found["p_holm"] < 1e-3).all()
    assert found["mean"].between(0.02, 0.04).all()
    assert (study.compared(results, others=_methods.GRIDS)["mean"].abs() < 0.01).all()


def test_tests_are_wrong_as_often_as_they_say():
    """Without any difference, hypothesis 1 is rejected in one of twenty sets of results; five sigma of 600."""
    rng, wrong = np.random.default_rng(1), []
    names = pd.Index([f"s{k} {j}" for k in range(22) for j in range(2)], name="table")
    for _ in range(600):
        gain = np.repeat(rng.normal(0.0, 0.01, 22), 2) + rng.normal(0.0, 0.005, 44)
        wrong.append(_analysis._tested(pd.Series(gain, names))["p"] < 0.05)
    assert abs(np.mean(wrong) - 0.05) < 5.0 * np.sqrt(0.05 * 0.95 / 600)


def test_not_inferior_is_a_test_at_the_margin():
    rng, shown = np.random.default_rng(2), []
    sources = np.repeat(np.arange(22), 2)
    for _ in range(600):  # exactly as far behind as the margin: an error of the first kind
        gain = -0.01 + np.repeat(rng.normal(0.0, 0.01, 22), 2)
        shown.append(study.not_inferior(gain, sources, 0.01) < 0.05)
    assert abs(np.mean(shown) - 0.05) < 5.0 * np.sqrt(0.05 * 0.95 / 600)
    assert study.not_inferior(np.zeros(44), sources) == 0.0
    assert study.not_inferior(np.full(44, -0.02), sources) == 1.0


def judged(gain, behind, off, first, width):
    rng = np.random.default_rng(3)
    results = synthetic(rng, gain, behind)
    measured, told = predictions(rng, results.index, off, width)
    _, before = predictions(rng, results.index, first, 0.2)
    return study.goals(results, told, before, measured), study.primary(results, study.errors(told, before, measured))


def test_goals_are_met_where_they_are():
    goals, tests = judged(gain=0.04, behind=0.0, off=0.01, first=0.03, width=0.08)
    met = goals.set_index(["goal", "setting"])
    assert met.loc[("mean |error| of predictions", "25 positives"), "value"] == pytest.approx(0.01)
    assert met.loc[("width of intervals over that of the first edition", "all positives"), "value"] == pytest.approx(
        0.4
    )
    assert met.loc[("CPU of grid search over that of advice", "all positives"), "value"] == pytest.approx(24.0)
    held = goals.goal == "intervals that hold"  # all of them: more than the 95 % that are wanted
    assert (goals.value[held] == 1.0).all()
    assert not goals.met[held].any()
    grids = goals.goal == "advice less the best grid search"  # of three that differ by chance, the best
    assert goals.met[~held & ~grids].all()
    assert tests["shown"].all()
    assert (tests["p_holm"] >= tests["p"]).all()


def test_goals_are_missed_where_they_are():
    goals, tests = judged(gain=-0.03, behind=0.05, off=0.04, first=0.03, width=0.15)
    assert not goals.met[goals.goal != "CPU of grid search over that of advice"].any()
    assert not tests["shown"].any()  # significantly worse is not shown to be better


def test_regret_is_that_of_the_best_of_all_rules():
    results = synthetic(np.random.default_rng(4), gain=0.03, behind=0.05, spread=0.0, level=0.0)
    regret = study.mean_regrets(study.metric(results), 0)
    assert regret["advice"] == pytest.approx(0.05)
    assert regret["weights"] == pytest.approx(0.08)
    assert regret[_methods.GRID] == pytest.approx(0.0)


def test_errors_of_predictions_are_of_means_over_splits():
    index = pd.MultiIndex.from_tuples([("a 1", 0, 0, 0), ("a 1", 0, 0, 1)], names=tables.FOLD)
    measured = pd.DataFrame(0.7, index, _analysis.REMEDIES)
    told = measured + np.array([[0.1], [-0.04]])
    found = study.errors(told, measured + 0.05, measured).loc[("a 1", 0)]
    assert found["second"] == pytest.approx(0.03)
    assert found["first"] == pytest.approx(0.05)


def test_macro_recall_is_judged_by_table():
    rows = [("a", 0.8, 0.7, 0.9, 0.9), ("a", 0.8, 0.8, 0.9, 0.9), ("b", 0.5, 0.52, 0.6, 0.7)]
    columns = ["table", "one: predicted", "one: recall", "two: predicted", "two: recall"]
    found = study.recall_errors(pd.DataFrame(rows, columns=columns))
    assert found["a"] == pytest.approx(0.025)
    assert found["b"] == pytest.approx(0.06)


def test_predictions_stand_beside_what_was_measured_on_all_folds():
    index = pd.MultiIndex.from_tuples([("a 1", 0, 0, 0), ("a 1", 0, 0, 1), ("b 1", 0, 0, 0)], names=tables.FOLD)
    measured = pd.DataFrame(np.array([[0.7], [0.8], [0.6]]) * np.ones(5), index, _analysis.REMEDIES)
    found = study.predictions(measured.iloc[:1] + 0.1, measured)  # of one split of one table
    assert list(found.index) == [("a 1", 0, remedy) for remedy in _analysis.REMEDIES]
    np.testing.assert_allclose(found["predicted"], 0.8)
    np.testing.assert_allclose(found["measured"], 0.75)


def test_confidence_is_held_to_the_error_of_its_tables():
    """Errors of 0.01, 0.03 and 0.08 were planted for each step; tests of single splits scatter by 0.04."""
    rng, off = np.random.default_rng(5), np.array([0.08, 0.03, 0.01])
    grid = [(f"s{k} 1", m, 0, j) for k in range(60) for m in (0, tables.SCARCE) for j in range(10)]
    index = pd.MultiIndex.from_tuples(grid, names=tables.FOLD)
    step = index.get_level_values("table").map(lambda name: int(name[1:].split(" ")[0]) % 3).to_numpy()
    results = pd.DataFrame({"advice: confidence": step.astype(float)}, index)
    results["advice: predicted"] = 0.8
    results["advice: low"], results["advice: high"] = 0.8 - 2.0 * off[step], 0.8 + 2.0 * off[step]
    results["advice: ba"] = 0.8 + off[step] * np.where(step == 1, -1, 1) + rng.normal(0.0, 0.04, len(index))
    found = study.confidences(results)
    assert list(found.index.unique("confidence")) == ["high", "moderate", "low"]
    assert found["tables"].eq(20).all()
    assert found["splits"].eq(200).all()
    np.testing.assert_allclose(found["half"], np.tile(2.0 * off[::-1], 2))
    np.testing.assert_allclose(found.xs("low", level="confidence")["error"], 0.08, atol=0.01)
    # of predictions that are all but right, the distance is that of the noise: 0.8 · 0.04/√10,
    # within five sigma of the mean of 20 standard deviations, which ten splits know to 24 % each
    np.testing.assert_allclose(found["noise"], np.sqrt(2.0 / np.pi) * 0.04 / np.sqrt(10), rtol=5.0 * 0.24 / np.sqrt(20))
    assert (found.xs("high", level="confidence")["error"] < found.xs("low", level="confidence")["error"]).all()
    assert (found["worst"] >= found["error"]).all()


def test_choices_are_shares_of_splits():
    index = pd.MultiIndex.from_product([["a 1", "b 1"], [0, tables.SCARCE], [0], [0]], names=tables.FOLD)
    columns = {"advice: remedy": [4.0, 4.0, 0.0, np.nan], "advice: moved": [0.0, 0.0, 1.0, np.nan]}
    results = pd.DataFrame(columns | {"advice: curved": [1.0, 0.0, 0.0, np.nan]}, index)
    found = study.choices(results)
    names = list(_analysis.STRATEGIES)
    assert found.loc[("RBF", names[4], "trained"), "all positives"] == 0.5
    assert found.loc[("linear", names[0], "moved"), "all positives"] == 0.5
    assert found.loc[("linear", names[4], "trained"), "25 positives"] == 1.0  # of those that did not fail
    np.testing.assert_allclose(found.sum(), 1.0)


def test_seconds_have_the_ratio_of_the_goal():
    results = synthetic(np.random.default_rng(6))
    results["advice: choosing"], results["advice, linear: cpu"] = 0.4, 0.1
    found = study.seconds(results)
    np.testing.assert_allclose(found["ratio"], 24.0)
    np.testing.assert_allclose(found["training"], 0.1)
    results.iloc[0, results.columns.get_loc("advice: cpu")] = np.nan  # of a failure, whose time is left out for both
    np.testing.assert_allclose(study.seconds(results)["ratio"], 24.0)


# ---- many classes


def test_tables_of_many_classes_obey_the_rules():
    for source, classes in (("wine", 3), ("digits", 10)):
        X, y = _many.table_of_many(source)
        sizes = pd.Series(y).value_counts()
        assert len(X) == len(y)
        assert len(sizes) == classes
        assert sizes.min() >= _many.ROWS
    assert _many.table_of_many("breast_cancer") is None
    cells = pd.DataFrame(_many.cells_of_many("design", ["wine", "digits"]))
    assert cells.groupby("table").size().to_dict() == {"wine": 5, "digits": _many.SPLITS}
    assert f"at least {_many.ROWS} rows" in RULES
    assert f"more than {_many.LARGE:,} rows" in RULES


def test_macro_recall_is_a_mean_over_classes():
    y = np.array(["a"] * 8 + ["b"] * 2)
    assert _many.macro_recall(np.array(["a"] * 9 + ["b"]), y) == pytest.approx(0.75)


@pytest.mark.slow
def test_many_classes_are_predicted_and_measured():
    found = _many.many(np.random.default_rng(0), "wine", 0)
    for rule in (*_many.RULES, "advice"):
        assert 0.8 < found[f"{rule}: recall"] <= 1.0  # wine is easy
        assert abs(found[f"{rule}: predicted"] - found[f"{rule}: recall"]) < 0.15
    assert found["advice: low"] <= found["advice: predicted"] <= found["advice: high"]
    assert (found["rows"], found["classes"]) == (142, 3)


def test_no_result_of_tables_that_judge_is_stored_yet_or_all_are():
    """They are run once, as a whole."""
    stored = {path.stem for path in (studies.RESULTS / "advice").glob("judge-*.csv")}
    assert not stored or {"judge-compared", "judge-foreseen"} <= stored
