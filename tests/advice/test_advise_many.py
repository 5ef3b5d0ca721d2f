"""Advice on three classes and more: predictions against training, what is refused, what is said and handed out."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from tqdm import tqdm

import rbal
from rbal.advice import ManyAdvice, _check, _many_judgement, _many_prediction, _table
from rbal.advice.internal import TableOptions, from_arrays
from rbal.cli import main
from rbal.metrics import ManyMetrics

SIZES = (40, 120, 300)


def rows(sizes=SIZES, D=20, far=2.2, seed=0, labels="abc"):
    """Rows of Gaussian classes around random centres, which are the same for every seed; and the centres."""
    centres = far * np.random.default_rng(99).normal(size=(len(sizes), D)) / np.sqrt(D)
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = centres[y] + np.random.default_rng(seed).normal(size=(len(y), D))
    return X, np.array(list(labels), object)[y], centres


@pytest.fixture(scope="module")
def advice():
    X, y, _ = rows()
    return rbal.advise(X, y, C=[0.1, 1.0], draws=4, train="none")


# ---- predictions


def test_a_column_that_marks_a_class():
    """No spread at all along a column that tells one class from the others: the equations have no solution there."""

    def marked(seed):
        X, y, _ = rows((120, 90, 60), D=6, far=1.5, seed=seed)
        return np.c_[X, y == "c"].astype(float), y

    (X, y), (new, truth) = marked(0), marked(1)
    advice = rbal.advise(X, y, C=1.0, draws=2, train="none")
    assert any("does not vary in some class" in note for note in advice.notes)
    answers = OneVsRestClassifier(SVC(kernel="linear", class_weight="balanced")).fit(X, y).predict(new)
    found = np.mean([np.mean(answers[truth == label] == label) for label in "abc"])
    assert advice.table.loc[("class weights", "trained"), "predicted"] == pytest.approx(found, abs=0.05)


@pytest.mark.slow
def test_predicted_from_rows_is_what_training_gives():
    """Means over eight samples: predictions from each, and machines trained on each and judged by the true classes."""
    told, found = [], []
    for seed in range(8):
        X, y, centres = rows(seed=seed)
        data = from_arrays(X, y, TableOptions(standardize=False), coder=_table.ManyCoder)
        mixture, counts = _many_prediction.estimate_classes(data.X, data.y)
        setting = _many_prediction.ManySetting(SIZES, data.D, "hinge", (0.1,), False)
        for remedy, weight in (("as is", None), ("class weights", "balanced")):
            solution = _many_prediction.solved(mixture.debiased(counts), setting, remedy, 0.1)
            told.append(solution.metrics.ba())
            fit = OneVsRestClassifier(SVC(kernel="linear", C=0.1, class_weight=weight)).fit(X, data.y)
            w, b = (np.array([np.ravel(getattr(m, name)) for m in fit.estimators_]) for name in ("coef_", "intercept_"))
            found.append(ManyMetrics(centres @ w.T + b.T, np.tile(w @ w.T, (3, 1, 1))).ba())
    gap = np.reshape(np.subtract(told, found), (8, 2))
    # 0.015: a theory for many features, at 20
    assert np.all(np.abs(gap.mean(axis=0)) < 5.0 * gap.std(axis=0, ddof=1) / np.sqrt(8) + 0.015)


def test_advice_is_that_of_the_remedies_for_many_classes(advice):
    """From the rows by public functions alone: the row of class weights is what rbal.strategies restores."""
    X, y, _ = rows()
    labels = np.searchsorted(np.unique(y), y)
    mixture = rbal.Mixture.from_data(StandardScaler().fit_transform(X), labels, covariance="shrunk")
    row = advice.table.loc[("class weights", "trained")]
    solution = rbal.strategies.restore(
        mixture.debiased(SIZES), np.array(SIZES) / X.shape[1], "class weights", lam=1.0 / (row["C"] * X.shape[1])
    )
    assert row["predicted"] == pytest.approx(solution.metrics.ba(), abs=1e-9)
    assert row["lowest"] == pytest.approx(solution.metrics.recall().min(), abs=1e-9)
    table = advice.table
    assert (table["low"] <= table["predicted"]).all()
    assert (table["predicted"] <= table["high"]).all()
    assert table["behind"].min() == 0.0
    assert table.loc[advice.best, "behind"] <= 0.02
    assert ("as is", "moved") in table.index
    assert ("undersampling", "moved") not in table.index
    np.testing.assert_allclose(advice.confusion.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.diagonal(advice.confusion), advice.recalls["recall"])
    assert advice.recalls["rows"].tolist() == list(SIZES)
    assert advice.recalls.index.tolist() == list("abc")


def test_draws_scatter_about_the_estimate_and_more_for_fewer_rows():
    widths = []
    for scale in (1, 4):
        X, y, _ = rows([scale * n for n in SIZES])
        data = from_arrays(X, y, coder=_table.ManyCoder)
        mixture, counts = _many_prediction.estimate_classes(data.X, data.y)
        rng = np.random.default_rng(0)
        far = [
            np.linalg.norm(m.means[0] - m.means[1])
            for m in _many_prediction.drawn_mixtures(mixture, counts, 16, 0.0, rng)
        ]
        quiet = mixture.debiased(counts).means
        assert np.mean(far) == pytest.approx(np.linalg.norm(quiet[0] - quiet[1]), abs=2.0 * np.std(far))
        widths.append(np.std(far))
    assert widths[1] < 0.8 * widths[0]


def test_error_of_the_theory_widens_the_interval():
    X, y, _ = rows()
    narrow, wide = (rbal.advise(X, y, draws=4, model_error=size).table.iloc[0] for size in (0.0, 0.4))
    assert wide["high"] - wide["low"] > narrow["high"] - narrow["low"]


def test_interval_is_no_matter_of_luck():
    """The factor of the theory's error is the same set for every seed, and reaches to both sides."""
    X, y, _ = rows()
    data = from_arrays(X, y, coder=_table.ManyCoder)
    mixture, _ = _many_prediction.estimate_classes(data.X, data.y)
    many = np.full(3, 1e12)  # so many rows that centres have no noise
    far = []
    for seed in (0, 1):
        drawn = _many_prediction.drawn_mixtures(mixture, many, 8, 0.3, np.random.default_rng(seed))
        far.append(sorted(np.linalg.norm(m.means[0] - m.means[1]) for m in drawn))
    np.testing.assert_allclose(far[0], far[1], rtol=1e-4)
    assert far[0][-1] / far[0][0] == pytest.approx(np.exp(2 * 0.3 * 1.534), rel=1e-3)  # 1.534: quantile 15/16


# ---- what is handed out


def test_pipeline_is_what_was_recommended(advice):
    X, y, _ = rows(seed=1)
    held = advice.best
    for best in (("class weights", "trained"), ("class weights", "moved"), ("oversampling", "trained")):
        advice.best = best
        model = advice.pipeline(random_state=0).fit(X, y)
        assert list(model.classes_) == list("abc")
        if best[0] == "class weights":
            C, Z = advice.C, StandardScaler().fit_transform(X)
            ours = OneVsRestClassifier(SVC(kernel="linear", C=C, class_weight="balanced")).fit(Z, y)
            scores = ours.decision_function(Z) - advice.rows[best].offsets
            np.testing.assert_array_equal(model.predict(X), np.array(list("abc"))[scores.argmax(axis=1)])
    advice.best = held


@pytest.mark.slow
def test_check_agrees_on_gaussian_classes():
    X, y, _ = rows()
    advice = rbal.advise(X, y, C=0.1, draws=4, check=True, repeats=1)
    assert advice.agrees is True
    assert advice.confidence in ("moderate", "high")
    assert (advice.table["measured"] - advice.table["expected"]).abs().max() < 0.1
    assert "measured" in advice.to_html()


def test_text_tells_verdict_remedies_and_classes(advice):
    said = advice.explain()
    assert said.startswith("Train a linear SVM, one machine for each class, C = ")
    assert "Expect macro recall 0." in said
    assert "doing nothing gives" in said
    assert "Hardest class: a, recall" in said
    assert "the smallest of 40 rows" in said


def test_json_has_all_and_no_nan(advice):
    found = json.loads(advice.to_json(), parse_constant=pytest.fail)
    assert found["classes"] == 3
    assert found["best"] == list(advice.best)
    assert [row["class"] for row in found["recalls"]] == list("abc")
    assert np.shape(found["confusion"]) == (3, 3)
    assert found["table"][0]["mixing"] is None


def test_page_escapes_what_comes_from_the_table():
    X, y, _ = rows()
    names = {"a": "<script>alert(1)</script>", "b": "b&b", "c": "c"}
    advice = rbal.advise(X, pd.Series(y).map(names), draws=2)
    for page in (advice.to_html(), advice._repr_html_()):
        assert "<script" not in page
        assert "Expect macro recall" in page
    assert "b&amp;b" in advice.to_html()
    assert isinstance(advice, ManyAdvice)


# ---- what is refused


@pytest.mark.parametrize(
    ("y", "options", "says"),
    [
        (np.arange(1200), {}, "more than 1,000 values"),
        (
            [f"text {k}" for k in range(200)],
            {},
            r"takes 200 values in 200 rows, 200 of them once: it is a number, a text",
        ),
        (["a"] * 100 + ["b"] * 99 + ["c"], {}, "label 'c' has 1 row: at least 5 are needed of each class"),
        (["a"] * 100 + ["b"] * 93 + ["c"] * 2 + ["d"] * 5, {}, "label 'c' has 2 rows: at least 5"),
        (pd.date_range("2020-01-01", periods=200), {}, "the label holds dates"),
        (np.arange(200) % 3, {"metric": "f1"}, "metric must be 'ba', which is the macro recall, for 3 classes"),
        (np.arange(200) % 3, {"kernel": "rbf"}, "kernel must be 'linear' for 3 classes"),
        (np.arange(200) % 3, {"moments": "width"}, "moments must be 'auto' or 'pooled' for 3 classes"),
        (np.arange(200) % 3, {"positive": 1}, "positive goes with two classes, got 1 for 3"),
    ],
)
def test_labels_that_are_no_classes(y, options, says):
    X = np.random.default_rng(0).normal(size=(len(y), 3))
    with pytest.raises(ValueError, match=says) as caught:
        rbal.advise(X, y, **options)
    assert caught.value.__context__ is None  # one error, not a chain of them


def test_more_classes_than_are_solved(monkeypatch):
    monkeypatch.setattr(_many_judgement, "MOST", 4)
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(ValueError, match="takes 5 values, and advice is for at most 4 classes"):
        rbal.advise(X, np.arange(60) % 5)


def test_a_column_that_tells_the_label_is_left_out():
    X, y, _ = rows()
    frame = pd.DataFrame(X).assign(told=pd.Series(y).map({"a": "x", "b": "y", "c": "z"})).rename(columns=str)
    advice = rbal.advise(frame, y, draws=2)
    assert "told" in advice.data.dropped
    assert any("LEAK" in note for note in advice.notes)


def test_large_tables_are_sampled_down(monkeypatch):
    monkeypatch.setattr(_table, "MOST_MANY_ROWS", 150)
    X, y, _ = rows()
    data = from_arrays(X, y, coder=_table.ManyCoder)
    assert data.sizes.tolist() == list(SIZES)
    assert np.bincount(data.y).tolist() == [40, 50, 50]
    assert "140 of 460 rows" in data.notes[-1]


# ---- the command


def test_command_tells_of_many_classes(tmp_path, capsys):
    X, y, _ = rows()
    path = tmp_path / "table.csv"
    pd.DataFrame(X).rename(columns=lambda k: f"x{k}").assign(kind=y).to_csv(path, index=False)
    page = tmp_path / "report.html"
    assert main(["advise", str(path), "--label", "kind", "--html", str(page)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Train a linear SVM, one machine for each class")
    assert "460 rows, 3 classes, 20 columns used" in said
    assert "X, y = rbal.advice.read_table(" in said
    assert "<table>" in page.read_text(encoding="utf-8")
    assert main(["advise", str(path), "--label", "kind", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metric"] == "macro_recall"
    assert main(["advise", str(path), "--label", "kind", "--C", "1", "--at-recall", "0.9"]) == 1
    assert "--at-precision and --at-recall go with two classes, got 3" in capsys.readouterr().err


# ---- machines that do not converge


def test_own_covariances_that_fail_give_way_to_the_mean_one(monkeypatch):
    covs = np.stack([np.eye(25), 1.2 * np.eye(25), np.diag(np.linspace(0.5, 1.5, 25))])
    mixture = rbal.Mixture.gaussian(0.3 * np.eye(3, 25), covs, np.arange(3))
    setting = _many_prediction.ManySetting((30, 80, 150), 25, "hinge", (1.0,), False)
    solved = _many_prediction.solved

    def fails(mixture, *rest):
        return solved(mixture, *rest) if mixture.level == "one covariance" else None

    monkeypatch.setattr(_many_prediction, "solved", fails)
    found = _many_prediction.candidates(mixture, setting, "class weights", 1.0)[0]
    mean = _many_prediction.with_mean_covariance(mixture, setting.sizes)
    assert np.allclose(mean.covariance(1), np.average(covs, axis=0, weights=(30, 80, 150)))
    assert found.recall == solved(mean, setting, "class weights", 1.0, None).metrics.ba()


def test_labels_of_noise_have_the_recall_of_chance():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(260, 25)), rng.permutation(np.repeat([0, 1, 2], [30, 80, 150]))
    for train in ("none", "little"):
        told = rbal.advise(X, y, C=1.0, draws=2, train=train)
        assert told.table["predicted"].between(1 / 3 - 0.02, 1 / 3 + 0.1).all()


def test_classes_in_one_place_that_do_not_converge_have_it_too(monkeypatch):
    monkeypatch.setattr(_many_prediction, "solved", lambda *rest: None)
    setting = _many_prediction.ManySetting((30, 80, 150), 25, "hinge", (1.0,), False)
    one, apart = (rbal.Mixture.gaussian(far * np.eye(3, 25), np.eye(25), np.arange(3)) for far in (0.0, 1.0))
    found = _many_prediction.all_candidates(one, setting, tqdm(disable=True))
    assert {c.strategy for c in found} == set(rbal.strategies.REMEDIES)
    assert [c.recall for c in found] == pytest.approx([1 / 3] * len(found))
    with pytest.raises(ValueError, match="no saddle point converged"):
        _many_prediction.all_candidates(apart, setting, tqdm(disable=True))


# ---- the level, from a few trained machines


@pytest.mark.parametrize("error", [0.001, 0.5])
def test_the_level_is_weighed_by_the_errors(monkeypatch, error):
    """What is measured surely, the theory then says, at the size of the folds; a vague measurement moves nothing."""
    X, y, _ = rows()
    data = from_arrays(X, y, coder=_table.ManyCoder)
    mixture, counts = _many_prediction.estimate_classes(data.X, data.y)
    quiet, setting = mixture.debiased(counts), _many_prediction.ManySetting(SIZES, data.D, "hinge", (0.1,), False)
    row = "class weights", "trained"
    machine = _many_prediction.candidates(quiet, setting, "class weights", 0.1)[0]
    told = _many_prediction.expected_recall(quiet, setting._replace(sizes=(32, 96, 240)), machine)

    def measured(X, y, loss, machines, validation):
        return dict.fromkeys(machines, told + 0.05), dict.fromkeys(machines, error), 0.8

    monkeypatch.setattr("rbal.advice._many_prediction.cross_validate_many", measured)
    found = _many_prediction.many_level(data, quiet, setting, {row: machine}, (0.5, 1e-3), 0)
    assert found.measured[row][2] == pytest.approx(told, abs=1e-9)
    after = _many_prediction.rescaled(quiet, found.u[row])
    moved = _many_prediction.expected_recall(after, setting._replace(sizes=(32, 96, 240)), machine) - told
    # the curve is known at five places, and 0.004 is what half a row of the smallest class allows
    assert moved == pytest.approx(0.05, abs=0.01) if error < 0.1 else abs(moved) < 0.02


def test_a_part_of_the_rows_keeps_small_classes():
    y = np.repeat([0, 1, 2], [12, 100, 4000])
    kept = np.bincount(y[_check.sample_classes(y, 400, np.random.default_rng(0))])
    assert kept.tolist() == [12, 20, 389]


def test_the_note_tells_what_was_measured():
    X, y, _ = rows()
    told = rbal.advise(X, y, C=0.1, draws=2)
    assert any("machines were trained on 460 rows" in note for note in told.notes)
    assert not any("were trained" in note for note in rbal.advise(X, y, C=0.1, draws=2, train="none").notes)
    # doing nothing, at the C that was fixed, is a row of the table
    assert told.nothing == pytest.approx(told.table.loc[("as is", "trained"), "predicted"], abs=1e-12)
