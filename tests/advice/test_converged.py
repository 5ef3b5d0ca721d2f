"""What is trained converges, or has no say: fits of the level and of the check, and the error of the rows."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import rbal
from rbal.advice import _check, _level


def table(n=400, D=6, seed=0):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < n // 5).astype(int)
    return rng.normal(size=(n, D)) + 0.7 * y[:, None], y


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_an_svm_that_libsvm_gives_up_has_the_scores_of_the_minimum(monkeypatch, kernel):
    X, y = table()
    options = {"kernel": kernel, "C": 50.0, "gamma": 0.2, "class_weight": "balanced"}
    known = SVC(**options, tol=1e-7).fit(X, y).decision_function(X[::3])
    monkeypatch.setattr(_check, "PATIENCE", 1)
    scores = _check.converged_scores(SVC(**options), X, y, X[::3])
    assert scores == pytest.approx(known, abs=2e-3)


def test_libsvm_is_not_tried_where_it_cannot_finish(monkeypatch):
    """With many rows it would be stopped long before each support vector had a step."""
    X, y = table(n=7_000, D=3)
    options = {"kernel": "linear", "C": 0.1, "class_weight": "balanced"}
    known = SVC(**options, tol=1e-5).fit(X, y).decision_function(X[::50])
    monkeypatch.setattr(SVC, "fit", None)
    assert _check.converged_scores(SVC(**options), X, y, X[::50]) == pytest.approx(known, abs=2e-3)


def test_another_classifier_that_does_not_converge_has_no_scores():
    X, y = table()
    machine = LogisticRegression(C=1e6, max_iter=1)
    assert np.isnan(_check.converged_scores(machine, X, y, X[:5])).all()


def test_what_did_not_converge_is_said_and_not_used(monkeypatch):
    X, y = table()
    plain = rbal.advise(X, y, kernel="linear", train="none", loss="logistic", progress=False)
    monkeypatch.setattr(_check, "converged_scores", lambda machine, X, y, new: np.full(len(new), np.nan))
    advice = rbal.advise(X, y, kernel="linear", loss="logistic", progress=False)
    assert advice.trained.u == 0.0
    assert advice.trained.measured == {}
    assert advice.table.loc[advice.best, "predicted"] == pytest.approx(
        plain.table.loc[advice.best, "predicted"], abs=0.01
    )
    assert any("did not converge, and were not used" in note for note in advice.notes)
    checked = rbal.advise(X, y, kernel="linear", loss="logistic", check=True, n_jobs=1, progress=False)
    assert checked.best == plain.best
    assert checked.agrees is None
    assert any("did not converge" in note for note in checked.notes)


def test_many_classes_say_it_too(monkeypatch):
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], [40, 60, 100])
    X = rng.normal(size=(200, 5)) + np.eye(3, 5)[y]
    monkeypatch.setattr("rbal.advice._check.converged_scores", lambda machine, X, y, new: np.full(len(new), np.nan))
    for options in ({"train": "little"}, {"check": True}):
        advice = rbal.advise(X, y, C=1.0, draws=2, progress=False, **options)
        assert any("did not converge, and were not used" in note for note in advice.notes)
        assert np.isfinite(advice.table["predicted"]).all()
        assert advice.agrees is None


def test_what_the_rows_get_wrong_is_not_mended_by_them():
    """With exact fits to the same rows the error of the theory goes, that of the rows stays."""
    grid = np.linspace(-1.0, 1.0, 9)
    told = (0.8 + 0.2 * grid)[:, None]
    u, error = _level.weigh(0.3, 0.1, grid, told, np.array([0.84]), np.array([[1e-6]]))
    assert u == pytest.approx(0.2, abs=0.01)
    assert error == pytest.approx(0.1, rel=0.05)
    u, error = _level.weigh(0.3, 0.1, grid, told, np.array([0.84]), np.array([[100.0]]))
    assert u == pytest.approx(0.0, abs=0.01)
    assert error > 0.3
