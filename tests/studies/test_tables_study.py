"""The study of the chapter your_data: its tables, its trials and its stored results."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score
from sklearn.svm import SVC

import rbal
from rbal import experiments
from rbal.advice.internal import model_error
from rbal.metrics import evaluate
from rbal_book import studies
from rbal_book.studies import tables
from rbal_book.studies.tables import _run, _sources, _trials

SHIPPED = ("breast_cancer", "digits", "wine")  # with scikit-learn


# ---- the tables


def test_shipped_tables_obey_the_rules():
    names = _sources.names(SHIPPED)
    assert len(names) == len(set(names)) >= 4
    for name in names:
        table = _sources.table_of(name)
        n_pos, n_neg = np.sum(table.y > 0), np.sum(table.y < 0)
        assert n_pos >= _sources.MINORITY
        assert n_neg >= _sources.RATIO * n_pos
        assert len(table.X) == n_pos + n_neg <= _sources.ROWS
    per_source = pd.Series([name.split(" ")[0] for name in names]).value_counts()
    assert per_source.max() <= 2


def test_smallest_class_comes_first():
    name = _sources.names(["digits"])[0]
    _, labels = _sources._cut("digits")
    assert labels.value_counts()[name.split(" ")[1]] == labels.value_counts().min()


def test_roles_are_a_matter_of_the_source_alone():
    roles = {source: _sources.role_of(f"{source} a") for source in _sources.SOURCES}
    assert roles == {source: _sources.role_of(f"{source} other class") for source in _sources.SOURCES}
    share = np.mean([role == "design" for role in roles.values()])
    assert 0.2 < share < 0.5  # one in three, of 41


def test_texts_are_read_as_they_are(tmp_path, monkeypatch):
    lines = ["@relation r", "% note", "@data", "", "1, red,?, a", "2.5,blue , 7,b", " 3,<null>,8,a"]
    (tmp_path / "odd.dat").write_text("\n".join(lines))
    (tmp_path / "__init__.py").write_text("raise SystemExit('code of a data package was run')")
    monkeypatch.syspath_prepend(str(tmp_path.parent))
    monkeypatch.setitem(_sources.SOURCES, "odd", _sources.Source((tmp_path.name, "{0}.dat")))
    X, labels = _sources._read("odd")
    assert labels.tolist() == ["a", "b", "a"]
    assert X[0].tolist() == [1.0, 2.5, 3.0]
    assert X[1].tolist()[:2] == ["red", "blue"]
    assert X[1].isna().tolist() == [False, False, True]
    np.testing.assert_array_equal(X[2], [np.nan, 7.0, 8.0])


def test_large_sources_are_cut_in_proportion(monkeypatch):
    labels = pd.Series(np.repeat(["a", "b", "c"], [600, 2400, 7000]))
    monkeypatch.setattr(_sources, "_read", lambda source: (pd.DataFrame({0: np.arange(10_000)}), labels))
    X, kept = _sources._cut.__wrapped__("any")
    assert kept.value_counts().reindex(["a", "b", "c"]).tolist() == pytest.approx([120, 480, 1400], abs=1)
    assert X[0].is_unique
    assert (labels[X[0]].to_numpy() == kept.to_numpy()).all()


# ---- what a trial is made of


def test_folds_are_a_partition_coded_by_the_training_part():
    seen = []
    for fold in range(_trials.FOLDS):
        (X, y), (X_test, y_test) = _trials.fold_of("wine 1", 0, fold)
        np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-9)
        np.testing.assert_allclose(X.std(axis=0), 1.0)
        assert np.abs(X_test.mean(axis=0)).max() > 1e-3
        assert len(y) + len(y_test) == 178
        seen.append(len(y_test))
    assert sum(seen) == 178


def test_scarce_folds_keep_their_test_part():
    (_, y), (_, y_test) = _trials.fold_of("wine 1", 1, 2)
    (_, few), (_, same) = _trials.fold_of("wine 1", 1, 2, tables.SCARCE)
    assert np.sum(few > 0) == tables.SCARCE < np.sum(y > 0)
    assert np.sum(few < 0) == np.sum(y < 0)
    np.testing.assert_array_equal(same, y_test)


def test_weights_are_what_the_samplers_and_scikit_learn_do():
    y = np.repeat([1, -1], [10, 35])
    under, over, mix = (
        tables.weights(y, name, m, 0) for name, m in (("undersampling", None), ("oversampling", None), ("mix", 0.4))
    )
    assert under[y > 0].sum() == under[y < 0].sum() == 10
    assert over[y > 0].sum() == over[y < 0].sum() == 35
    assert mix[y > 0].sum() == mix[y < 0].sum() == 20
    X = np.random.default_rng(0).normal(size=(45, 3)) + 0.5 * y[:, None]
    ours = SVC(kernel="linear").fit(X, y, sample_weight=tables.weights(y, "class weights", None, 0))
    theirs = SVC(kernel="linear", class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)


def test_tuned_threshold_is_the_best_of_all():
    rng = np.random.default_rng(1)
    y = np.where(rng.random(200) < 0.2, 1, -1)
    scores = np.round(rng.normal(size=200) + 0.7 * y, 1)  # with ties
    cuts = np.concatenate([[-9.0], np.unique(scores) + 0.05])
    best = max(evaluate(scores, y, cut)["ba"] for cut in cuts)
    cut = tables.tuned(scores, y)
    assert evaluate(scores, y, cut)["ba"] == pytest.approx(best, abs=1e-12)
    assert evaluate(scores, y, cut)["ba"] == pytest.approx(balanced_accuracy_score(y, np.where(scores > cut, 1, -1)))


def test_gaussian_accuracy_is_that_of_normal_scores():
    rng = np.random.default_rng(2)
    y = np.repeat([1, -1], 100_000)
    scores = np.where(y > 0, rng.normal(0.3, 2.0, y.size), rng.normal(-1.0, 0.5, y.size))
    error = 0.5 / np.sqrt(100_000)
    assert _trials.gaussian(scores, y) == pytest.approx(evaluate(scores, y)["ba"], abs=4 * error)


# ---- the run


def test_small_run_goes_on_and_agrees_with_what_is_stored(tmp_path):
    grid = [cell for cell in tables.cells(["wine 1"], 1) if cell["fold"] == 0]
    arguments = {"trials": 1, "seed": tables.SEED, "n_jobs": 1, "progress": False}
    for trial, columns, tolerance in (
        (tables.measured, list(tables.REMEDIES), 1e-4),
        (tables.foreseen, ["as is", "undersampling", "oversampling", "class weights"], 1e-3),
    ):
        store = tmp_path / trial.__name__
        first = experiments.run(trial, grid[:1], store=store, **arguments)
        both = experiments.run(trial, grid, store=store, **arguments)
        pd.testing.assert_frame_equal(both[:1], first, check_flags=False)
        _run.keep(both, trial.__name__, tmp_path)
        written = tables.load(trial.__name__, tmp_path)
        stored = tables.load(trial.__name__).loc[written.index]
        np.testing.assert_allclose(written[columns], stored[columns], atol=tolerance)


def test_regret_is_counted_from_the_best_of_each_table():
    index = pd.MultiIndex.from_product([["a", "b"], [0], [0], [0, 1]], names=tables.FOLD)
    found = pd.DataFrame({"one": [0.9, 0.7, 0.5, 0.5], "two": [0.7, 0.7, 0.6, 0.8]}, index)
    regrets = tables.regrets(found).set_index(["table", "rule"])
    assert regrets.regret.loc[("a", "one")] == regrets.regret.loc[("b", "two")] == 0.0
    assert regrets.regret.loc[("a", "two")] == pytest.approx(0.1)
    assert regrets.error.loc[("a", "two")] == pytest.approx(0.1)
    assert regrets.regret.loc[("b", "one")] == pytest.approx(0.2)


def test_a_rule_is_compared_table_by_table_with_sources_as_groups():
    index = pd.Index(["a 1", "a 2", "b 1", "c 1", "d 1"], name="table")
    ours = pd.Series([0.9, 0.9, 0.7, 0.6, 0.8], index)
    gains = np.array([0.1, 0.1, -0.01, 0.0, 0.01])
    means = pd.DataFrame({"advice": ours, "one": ours - gains, "two": ours - 0.05}, index)
    found = tables.versus(means, "advice", ["one", "two"]).loc["one"]
    assert (found["mean"], found.n, found.sources) == (pytest.approx(0.04), 5, 4)
    assert found["without"] == "a"  # both of its tables go at once
    assert (found.least, found.worst) == (pytest.approx(0.0, abs=1e-12), pytest.approx(-0.01))
    assert found.se > gains.std(ddof=1) / np.sqrt(5)
    assert found.p > 0.2
    assert found.p_holm == found.p  # the other rule is behind everywhere by the same


def test_advice_is_not_shown_to_beat_the_usual_rules():
    """The first edition said that it beats five; the chapter may say of the stored results what holds here."""
    means = (
        tables.remedies(tables.load("measured"), tables.load("foreseen")).groupby(level=["table", "minority"]).mean()
    )
    judge = means.index.get_level_values("table").map(_sources.role_of) == "judge"
    rules = ["undersampling", "oversampling", "class weights", "SMOTE", "as is, tuned"]
    found = tables.versus(means[judge].xs(tables.SCARCE, level="minority"), "advice", rules)
    assert (found.p[:4] > 0.3).all()
    assert found.p_holm["as is, tuned"] == pytest.approx(0.05, abs=0.01)
    assert (found.without[1:4] == "splice").all()
    assert (found.least[1:4] < 0.0).all()


def test_an_interval_holds_what_lies_in_it_or_within_the_error_of_what_is_measured():
    predicted, low, high = np.full(4, 0.8), np.full(4, 0.7), np.full(4, 0.85)
    measured = np.array([0.69, 0.71, 0.84, 0.86])
    assert tables.holds(predicted, low, high, measured).tolist() == [False, True, True, False]
    assert tables.holds(predicted, low, high, measured, 0.05).all()


def test_error_of_the_theory_is_found_where_it_is_known():
    """Gaussian by construction: intervals as wide as the error, and no other noise."""
    rng, names = np.random.default_rng(3), [f"t {k}" for k in range(400)]
    index = pd.MultiIndex.from_product([names, [0, tables.SCARCE], [0], [0, 1]], names=tables.FOLD)
    few = index.get_level_values("minority") == tables.SCARCE
    true, reach = np.where(few, 0.4, 0.25), 1.6449 * 0.1
    labels = [_trials.label_of(*row) for row in _trials.PLACES]
    off = 0.1 * np.repeat(rng.normal(size=(len(index) // 2, len(labels))), 2, axis=0) * true[:, None]
    measured = pd.DataFrame(0.75 + off, index, labels).assign(n_pos=np.where(few, 25, 100))
    widened = pd.DataFrame(0.75, index, labels)
    for label in labels:
        for size in _trials.ERRORS:
            widened[f"{label}, low {size:g}"] = 0.75 - reach * size
            widened[f"{label}, high {size:g}"] = 0.75 + reach * size
    (n_few, of_few), (n_all, of_all) = tables.model_error(measured, widened)
    assert (n_few, n_all) == (25, 100)
    assert of_few == pytest.approx(0.4, abs=0.02)
    assert of_all == pytest.approx(0.25, abs=0.02)


def test_advice_is_credited_with_what_it_named():
    index = pd.MultiIndex.from_product([["a"], [0], [0], [0, 1, 2]], names=tables.FOLD)
    measured = pd.DataFrame({name: 0.5 + 0.01 * k for k, name in enumerate(tables.REMEDIES)}, index)
    rows = [("class weights", "trained"), ("best mix", "trained"), ("best mix", "moved")]
    foreseen = pd.DataFrame(
        {"advised": [tables.ROWS.index(row) for row in rows], "measured, trained": 0.9, "measured, moved": np.nan},
        index,
    )
    found = tables.remedies(measured, foreseen)
    assert found["advice"].tolist() == [measured["class weights"].iloc[0], 0.9, measured["oversampling, tuned"].iloc[0]]


# ---- what is stored


def test_the_error_that_advice_allows_for_is_that_of_the_tables_for_design():
    widened = tables.load("widened")
    assert {_sources.role_of(name) for name in widened.index.unique("table")} == {"design"}
    for rows, size in tables.model_error(tables.load("measured"), widened):
        assert model_error(rows) == pytest.approx(size, abs=0.006)


def test_intervals_for_several_errors_hold_those_of_advice():
    cell = {"table": "wine 1", "minority": tables.SCARCE, "repeat": 0, "fold": 0}
    found = tables.widened(np.random.default_rng(0), **cell)
    (X, y), _ = _trials.fold_of("wine 1", 0, 0, tables.SCARCE)
    dice = _trials._dice(np.random.default_rng(0))
    first = {"C": 1.0, "kernel": "linear", "moments": "pooled", "train": "none"}
    said = rbal.advise(X, y, draws=_trials.DRAWS, model_error=_trials.ERRORS[2], random_state=dice, **first).table
    for row in _trials.PLACES:
        label = _trials.label_of(*row)
        told = [found[label], *(found[f"{label}, {end} {_trials.ERRORS[2]:g}"] for end in ("low", "high"))]
        np.testing.assert_allclose(told, said.loc[row, ["predicted", "low", "high"]].astype(float), atol=1e-12)


def test_stored_results_are_complete():
    measured, foreseen = tables.load("measured"), tables.load("foreseen")
    assert measured.index.equals(foreseen.index)
    assert measured.index.is_unique
    listed = tables.listed()
    assert set(listed.index) == set(measured.index.unique("table"))
    roles = listed["role"].sort_index()
    assert roles.tolist() == [_sources.role_of(name) for name in roles.index]
    assert (listed["positives"] >= _sources.MINORITY).all()
    assert (listed["rows"] - listed["positives"] >= _sources.RATIO * listed["positives"]).all()
    assert (roles == "judge").sum() >= 30
    folds = measured.groupby(level=["table", "minority"]).size().unstack()
    assert folds.loc[roles == "judge"].nunique().tolist() == [1, 1]
    assert (folds.loc[roles == "design"] == _trials.FOLDS).all(axis=None)
    values = measured[list(tables.REMEDIES)].to_numpy()
    assert ((values >= 0.0) & (values <= 1.0)).all()
    assert (foreseen[[c for c in foreseen if c.endswith("scatter")]] >= 0.0).all(axis=None)
    assert sum(path.stat().st_size for path in (studies.RESULTS / "tables").iterdir()) < 1_000_000
