"""Summaries of trials, the standard trial, and the error of a test set that all trials share."""

import functools
import inspect
import itertools

import numpy as np
import pandas as pd
import pytest
from numpydoc.docscrape import FunctionDoc
from sklearn.metrics import roc_auc_score
from test_experiments import GRID, Gaussians, assert_same, moments, quiet

import rbal
from rbal import experiments
from rbal.datasets import synthetic
from rbal.experiments import generator, pivot, run, summary, train
from rbal_book.datasets.images import load_mnist

# ---- averages


def test_summary_by_hand():
    table = quiet(moments, GRID, trials=7)
    s = summary(table)
    assert list(s) == [*GRID, "mean", "mean_se", "largest", "largest_se", "above", "above_se", "all", "all_se", "count"]
    assert list(s[[*GRID]].itertuples(index=False, name=None)) == list(itertools.product(*GRID.values()))
    cell = table[(table.n == 50) & (table["scale"] == 0.5) & (table.kind == "uniform")]
    row = s[(s.n == 50) & (s["scale"] == 0.5) & (s.kind == "uniform")].iloc[0]
    for name in ("mean", "above", "all"):
        x = cell[name].astype(float).to_numpy()
        assert row[name] == pytest.approx(sum(x) / 7, rel=1e-12)
        assert row[f"{name}_se"] == pytest.approx(np.sqrt(sum((x - sum(x) / 7) ** 2) / 6 / 7), rel=1e-12)
    assert (s["count"] == 7).all()


def test_summary_over_a_part_of_the_grid():
    table = quiet(moments, GRID, trials=7)
    s = summary(table, by="kind")
    assert list(s.kind) == ["normal", "uniform"]
    assert not {"n", "scale", "n_se", "trial", "seconds"} & set(s)
    assert s["mean"][0] == pytest.approx(table["mean"][table.kind == "normal"].mean())
    assert (s["count"] == 42).all()
    pd.testing.assert_frame_equal(summary(table, by=list(GRID)), summary(table))
    assert len(summary(table[table.n == 3])) == 6


def test_summary_hides_no_failures():
    table = quiet(
        lambda rng, n: {"x": np.nan if n == 1 and rng.random() < 0.5 else 1.0}, {"n": [1, 2, None]}, trials=20
    )
    s = summary(table)
    assert np.isnan(s.x[0])
    assert s.x[1:].tolist() == [1.0, 1.0]
    assert np.isnan(summary(table[table.trial == 0]).x_se).all()


def test_summary_bad_columns():
    table = quiet(moments, GRID, trials=1)
    with pytest.raises(ValueError, match="by must name columns of the table, got 'm'"):
        summary(table, by=["n", "m"])
    with pytest.raises(ValueError, match="by must name the columns that define a cell"):
        summary(pd.DataFrame(table.to_dict("list")))


def test_pivot_by_hand():
    table = quiet(moments, {"n": [50, 3], "scale": [0.5, 1.0]}, trials=4)
    found = pivot(table.sample(frac=1.0, random_state=0), "mean", "n", scale=1.0)
    assert found.shape == (4, 2)
    for trial, row in enumerate(found):
        for n, value in zip((3, 50), row, strict=True):
            cell = table[(table.trial == trial) & (table.n == n) & (table["scale"] == 1.0)]
            assert value == cell["mean"].item()


def test_pivot_keeps_what_failed():
    table = quiet(lambda rng, n: {"x": np.nan if n == 1 else 1.0}, {"n": [1, 2]}, trials=2)
    np.testing.assert_array_equal(pivot(table, "x", "n"), [[np.nan, 1.0]] * 2)


def test_pivot_takes_one_row_a_trial_and_value():
    table = quiet(moments, GRID, trials=2)
    for cell in ({}, {"scale": 1.0}, {"scale": 7.0, "kind": "normal"}):
        with pytest.raises(ValueError, match="one row for every trial and n, and no others"):
            pivot(table, "mean", "n", **cell)
    whole = {"scale": 1.0, "kind": "normal"}
    with pytest.raises(ValueError, match="one row for every trial and n"):
        pivot(table[(table.n == 3) | (table.trial == 0)], "mean", "n", **whole)
    with pytest.raises(ValueError, match="table must have the column 'median'"):
        pivot(table, "median", "n", **whole)


# ---- the standard trial


def test_train_is_seeded_and_measures_what_it_says():
    classes = Gaussians(40)
    out = train(np.random.default_rng(3), classes=classes, alpha_pos=1.0, alpha_neg=3.0, kappa=0.8, n_test=2000)
    assert out == train(np.random.default_rng(3), classes=classes, alpha_pos=1.0, alpha_neg=3.0, kappa=0.8, n_test=2000)
    rng = np.random.default_rng(3)
    X, y = classes.sample(40, 120, rng)
    X_test, y_test = classes.sample(2000, 2000, rng)
    clf = rbal.SphericalPerceptron(kappa=0.8).fit(X, y)
    score = clf.decision_function(X_test)
    assert out["train_loss"] == pytest.approx(clf.objective_ / 160, abs=1e-12)
    assert out["train_error"] == pytest.approx(1 - clf.score(X, y))
    assert out["gen_error"] == pytest.approx(1 - clf.score(X_test, y_test))
    assert out["ba"] == pytest.approx(clf.score(X_test, y_test)) == pytest.approx(0.5 * (out["tpr"] + out["tnr"]))
    assert out["tpr"] == np.mean(clf.predict(X_test[:2000]) == 1)
    assert out["auc"] == pytest.approx(roc_auc_score(y_test, score))
    assert out["gen_loss"] == pytest.approx(np.mean(np.clip(0.8 - y_test * score, 0, None)))
    assert out["gen_loss_0"] == pytest.approx(np.mean(np.clip(-y_test * score, 0, None)))
    assert (out["q"], out["r"], out["b"]) == clf.order_parameters(classes.moments)
    assert (out["multiplier"], out["kkt_residual"]) == (clf.multiplier_, clf.kkt_residual_)


@pytest.mark.parametrize(
    "setting",
    [{"kappa": 0.8}, {"kappa": 0.8, "weight_pos": 3.0}, {"kappa": 1.0, "model": "svm", "lam": 0.5}],
    ids=["perceptron", "weights", "svm"],
)
def test_train_falls_on_the_theory(setting):
    classes = Gaussians(150)
    trial = functools.partial(train, classes=classes, alpha_pos=1.0, alpha_neg=4.0, **setting)
    s = summary(quiet(trial, {}, trials=20)).iloc[0]
    sol = rbal.solve(classes.moments, 1.0, 4.0, **setting)
    m, kappa = sol.metrics, setting["kappa"]
    theory = {name: getattr(sol, name) for name in ("q", "r", "b", "train_loss", "train_error")}
    theory |= {"gen_loss": m.gen_loss(0.5, kappa), "gen_loss_0": m.gen_loss(0.5), "gen_error": m.gen_error(0.5)}
    theory |= {"tpr": m.tpr(), "tnr": m.tnr(), "ba": m.ba(), "auc": m.auc()}
    for name, value in theory.items():  # the theory's own finite-size error is of order 1/L
        assert abs(s[name] - value) < 4 * s[f"{name}_se"] + 1.5 / 150 * abs(value), name


def test_train_in_the_separable_phase():
    classes = Gaussians(40, shift=8.0)
    trial = functools.partial(train, classes=classes, alpha_pos=0.3, alpha_neg=0.5, kappa=0.1, n_test=100)
    table = quiet(trial, {"sat": ["largest_margin", "typical"]}, trials=4)
    assert (table.train_loss == 0).all()
    assert (table.multiplier == 0).all()
    assert_same(table, quiet(trial, {"sat": ["largest_margin", "typical"]}, trials=4))
    s = summary(table)
    assert s.r[0] > s.r[1] + 2 * s.r_se[1]  # of all zero-loss weights, those of largest margin see the shift best


def test_train_uses_the_states_of_the_classes():
    class Sites:
        n_states = 3
        moments = rbal.Moments.potts(np.full((30, 3), 1 / 3), np.tile([0.9, 0.0, -0.9], (30, 1)))

        def sample(self, n_pos, n_neg, rng):
            y = np.repeat([1, -1], [n_pos, n_neg])
            p = 1 / 3 + y[:, None] * np.array([0.9, 0.0, -0.9]) / (2 * np.sqrt(30))
            return (rng.random((len(y), 30, 1)) > p.cumsum(axis=1)[:, None, :2]).sum(axis=2), y

    out = train(np.random.default_rng(0), classes=Sites(), alpha_pos=2.0, alpha_neg=2.0, kappa=1.0)
    assert abs(out["ba"] - rbal.Metrics(out["q"], out["r"], out["b"]).ba()) < 4 * 0.5 / np.sqrt(10_000) + 0.01
    assert out["r"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha_pos": 0.0}, "alpha_pos must be > 0, got 0"),
        ({"alpha_neg": -1.0}, "alpha_neg must be > 0, got -1"),
        ({"model": "forest"}, "model must be one of 'perceptron', 'svm', got 'forest'"),
        ({"model": "svm"}, "lam must be given for model='svm'"),
        ({"lam": 1.0}, "lam goes with model='svm'"),
        ({"model": "svm", "lam": 1.0, "kappa": 0.5}, "kappa must be 1 for model='svm', got 0.5"),
        ({"n_test": 0}, "n_test must be a positive integer, got 0"),
        ({"weight_pos": -1.0}, "weight_pos must be > 0, got -1"),
        ({"sat": "any"}, "sat must be one of 'largest_margin', 'typical', got 'any'"),
    ],
)
def test_train_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        train(np.random.default_rng(0), **{"classes": Gaussians(10), "alpha_pos": 2.0, "alpha_neg": 2.0, **arguments})


@pytest.mark.parametrize("function", [run, summary, pivot, generator, train], ids=lambda f: f.__name__)
def test_docstrings_document_exactly_the_parameters(function):
    lines = FunctionDoc(function, doc=inspect.getdoc(function))["Parameters"]
    documented = [name.strip(" *") for line in lines for name in line.name.split(",")]
    assert documented == list(inspect.signature(function).parameters)


# ---- one test set for all trials


def answers(rng, n_trials, n_test):
    """Right or wrong: some images are harder than others, some training sets are better than others, and chance."""
    image = rng.normal(0.6, 1.0, size=n_test)
    trial = rng.normal(scale=0.15, size=(n_trials, 1)) * np.repeat(
        [1.0, -0.5], n_test // 2
    )  # the bias moves both rates
    return image + trial + rng.normal(scale=0.7, size=(n_trials, n_test)) > 0


def test_error_of_a_shared_test_set_is_that_of_training_and_test_sets_drawn_anew():
    rng, y = np.random.default_rng(0), np.repeat([1, -1], 100)
    found = [experiments.shared_test(answers(rng, 8, 200), y) for _ in range(2000)]
    means, se, of_trials, of_test = np.array(found).T
    spread = means.std(ddof=1)
    relative = 4.0 / np.sqrt(2.0 * len(found))  # four standard errors of a standard deviation
    assert np.sqrt(np.mean(se**2)) == pytest.approx(spread, rel=relative + 0.01)
    inside = np.abs(means - means.mean())
    assert np.mean(inside < 1.96 * se) == pytest.approx(0.95, abs=0.025)
    # the scatter of trials alone, as error bars had it, covers a part of it
    assert np.mean(inside < 1.96 * of_trials) < 0.6
    np.testing.assert_allclose(np.hypot(of_trials, of_test), se)


def test_no_number_of_trials_takes_the_error_of_the_test_set_away():
    rng, y = np.random.default_rng(1), np.repeat([1, -1], 150)
    few, many = (experiments.shared_test(answers(rng, n, 300), y) for n in (5, 500))
    assert many.of_trials < 0.2 * few.of_trials
    assert many.of_test == pytest.approx(few.of_test, rel=0.25)
    right = answers(rng, 3, 300)
    assert experiments.shared_test(right, y).mean == pytest.approx(
        0.5 * (right[:, :150].mean() + right[:, 150:].mean())
    )


def test_trials_that_agree_leave_the_binomial_error():
    right = np.tile(np.random.default_rng(2).random(400) < 0.8, (4, 1))
    found = experiments.shared_test(right)
    p = right[0].mean()
    assert found.of_trials == 0.0
    assert found.se == pytest.approx(np.sqrt(p * (1 - p) / 399))


@pytest.mark.parametrize(
    ("values", "y", "message"),
    [
        (np.ones((1, 4)), None, "values must hold two trials"),
        (np.ones((3, 4)), [1, 1, 1, -1], "values must hold two trials and two samples of each class"),
        (np.ones((3, 4)), [1, -1], "y must give the class of each of 4 test samples"),
        (np.ones(4), None, "values must have 2 dimensions"),
        (np.full((3, 4), np.nan), None, "values must be finite"),
    ],
)
def test_shared_test_says_what_it_takes(values, y, message):
    with pytest.raises(ValueError, match=message):
        experiments.shared_test(values, y)


def test_answers_are_told_image_by_image(tmp_path):
    data = load_mnist((1, 7), n_test=200)
    trial = functools.partial(experiments.train, classes=data, kappa=0.5, answers=True)
    store = tmp_path / "answers.jsonl"
    cell = {"alpha_pos": [0.05], "alpha_neg": [0.1]}
    table = experiments.run(trial, cell, trials=3, store=store, progress=False)
    right = np.array(table.right.tolist())
    assert right.shape == (3, 200)
    found = experiments.shared_test(right, data.y_test)
    assert found.mean == pytest.approx(table.ba.mean())
    assert found.of_trials == pytest.approx(experiments.summary(table).ba_se[0])
    assert "right" not in experiments.summary(table)
    anew = functools.partial(trial, classes=load_mnist((1, 7), n_test=200))  # has not computed its moments yet
    again = experiments.run(anew, cell, trials=3, store=store, progress=False)
    assert again.right.tolist() == table.right.tolist()


def test_answers_need_a_test_set_that_stays():
    classes = synthetic.gaussian(np.ones(3), -np.ones(3), np.eye(3))
    with pytest.raises(ValueError, match="answers goes with classes that have a test set of their own"):
        experiments.train(np.random.default_rng(0), classes=classes, alpha_pos=3.0, alpha_neg=3.0, answers=True)


def test_classes_that_cannot_be_drawn_from_are_refused():
    with pytest.raises(TypeError, match=r"classes must be Classes or Images of rbal.datasets, got Moments"):
        train(
            np.random.default_rng(0), classes=rbal.Moments.ising(m=0.4, delta=1.0, L=10), alpha_pos=1.0, alpha_neg=1.0
        )


def test_a_weight_of_next_to_nothing_does_not_make_classes_separable():
    """A loss that a weight hides was taken for none, and the largest margin of classes without one looked for."""
    classes = synthetic.ising(m=0.3, delta=1.0, L=8)
    trial = {"classes": classes, "alpha_pos": 1.0, "alpha_neg": 2.0, "n_test": 50}
    small, none = (train(np.random.default_rng(0), weight_pos=w, **trial) for w in (1e-9, 2.8e-307))
    assert none["multiplier"] == pytest.approx(small["multiplier"], abs=1e-6)
    assert none["q"] == pytest.approx(small["q"])
