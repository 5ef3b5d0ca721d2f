"""Probabilities of the theory, of trained classifiers and of the estimator that puts the one on the other."""

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import SMOTE
from imblearn.pipeline import make_pipeline as chain
from imblearn.under_sampling import RandomUnderSampler
from scipy.sparse import csr_array
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, Perceptron, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.estimator_checks import parametrize_with_checks

import rbal
from rbal import losses
from rbal.datasets import synthetic
from rbal.metrics import Link

REPEATED = "a row of weight 2 is one sample that pulls twice as hard, two equal rows are taken as two samples"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": REPEATED for kind in ("dense", "sparse")}
CHECKED = [LogisticRegression(), rbal.LinearSVM(), RidgeClassifier(), make_pipeline(StandardScaler(), LinearSVC())]


@parametrize_with_checks(
    [rbal.calibrated(estimator) for estimator in CHECKED], expected_failed_checks=lambda estimator: EXPECTED
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


# ---- theory


def test_slope_tends_to_one_without_a_ridge():
    classes = rbal.Moments.ising(m=0.2, delta=1.5, L=100)
    alpha = np.array([10.0, 100.0, 1000.0, 1e4])
    sols = rbal.sweep(classes, 0.2 * alpha, 0.8 * alpha, model="svm", loss="logistic", lam=1e-6)
    slope, intercept = sols.metrics.calibration(0.2)
    assert (np.diff(slope) > 0).all()
    assert slope[-1] == pytest.approx(1.0, abs=1e-3)
    # the optimism is of order (features)/(samples): ten times the data, a tenth of it
    np.testing.assert_allclose((1 - slope[1:-1]) / (1 - slope[2:]), 10.0, rtol=0.05)
    np.testing.assert_allclose(intercept[-1], 0.0, atol=2e-3)


def test_class_weights_shift_the_log_odds_as_many_samples_say():
    # with weights w the classifier believes in shares w φ, and in the limit of much data the prior correction is exact
    classes = rbal.Moments.ising(m=0.2, delta=1.5, L=100)
    sol = rbal.solve(classes, 2e3, 8e3, model="svm", loss="logistic", lam=1e-6, weight_pos=4.0)
    np.testing.assert_allclose(sol.metrics.calibration(0.2), (1.0, -logit(0.5) + logit(0.2)), atol=5e-3)
    np.testing.assert_allclose(sol.metrics.calibration(0.05, Link().corrected(0.5, 0.05)), (1.0, 0.0), atol=5e-3)


# ---- trained


def cox(scores, y):
    """Slope and intercept of Cox's regression of outcomes on scores."""
    fit = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(scores[:, None], y)
    return fit.coef_[0, 0], fit.intercept_[0]


def platt(clf, X, y):
    """Slope and intercept of scikit-learn's Platt scaling of a trained classifier."""
    sigmoid = CalibratedClassifierCV(FrozenEstimator(clf), method="sigmoid").fit(X, y)
    fits = [c.calibrators[0] for c in sigmoid.calibrated_classifiers_]
    return -np.mean([f.a_ for f in fits]), -np.mean([f.b_ for f in fits])


def held_out_fits(rng, classes, loss, design, phi, n_test=10_000):
    """Slope and intercept of the true log-odds against the score of one trained machine, from held-out samples."""
    L = classes.L
    X, y = classes.sample(round(design["alpha_pos"] * L), round(design["alpha_neg"] * L), rng)
    weight = np.where(y > 0, design["weight_pos"], 1.0)
    clf = rbal.LinearSVM(loss=loss, lam=design["lam"]).fit(X, y, sample_weight=weight)
    X, y = classes.sample(round(phi * n_test), round((1 - phi) * n_test), rng)
    return cox(clf.decision_function(X), y) if loss == "logistic" else platt(clf, X, y)


@pytest.mark.slow
@pytest.mark.parametrize("L", [300, 600])
@pytest.mark.parametrize(("loss", "weight"), [("logistic", 1.0), ("logistic", 4.0), ("hinge", 4.0)])
def test_cox_fits_of_held_out_scores(L, loss, weight):
    trials, phi = 4800 // L, 0.2
    classes = synthetic.random_gaussian(np.random.default_rng(L), L=L, scale=1.5)
    design = {"alpha_pos": 0.5, "alpha_neg": 2.0, "lam": 0.1, "weight_pos": weight}
    sol = rbal.solve(classes.moments, **design, model="svm", loss=loss)
    rng = np.random.default_rng(0)
    fits = np.array([held_out_fits(rng, classes, loss, design, phi) for _ in range(trials)])
    error = fits.std(axis=0, ddof=1) / np.sqrt(trials)
    told = np.array(sol.metrics.calibration(phi))
    assert (error < 0.1 * np.abs(told) + 0.05).all()  # or the comparison says little
    assert (np.abs(fits.mean(axis=0) - told) < 4 * error).all()


# ---- the estimator


@pytest.fixture(scope="module")
def table():
    classes = synthetic.random_gaussian(np.random.default_rng(0), L=100, scale=1.5)
    rng = np.random.default_rng(1)
    return classes, classes.sample(100, 400, rng), classes.sample(4000, 16_000, rng)


ESTIMATORS = {
    "logistic": LogisticRegression(C=0.1, max_iter=1000, tol=1e-6),
    "weighted": LogisticRegression(C=0.1, class_weight="balanced", max_iter=1000, tol=1e-6),
    "svc": SVC(kernel="linear", C=0.02, class_weight={-1: 1.0, 1: 3.0}),
    "linear svc": LinearSVC(C=0.02, intercept_scaling=10.0, tol=1e-6),
    "ridge": RidgeClassifier(alpha=20.0),
    "svm": rbal.LinearSVM(lam=0.3),
    "margins": rbal.LinearSVM(lam=0.3, kappa=2.0, kappa_neg=0.5),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_probabilities_are_honest(table, name):
    _, train, (X, y) = table
    clf = rbal.calibrated(ESTIMATORS[name]).fit(*train)
    p = clf.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(p[:, 1], expit(clf.decision_function(X)))
    slope, intercept = cox(clf.decision_function(X), y)
    assert slope == pytest.approx(1.0, abs=0.25)
    assert intercept == pytest.approx(0.0, abs=0.3)
    best = cox(clf.estimator_.decision_function(X), y)
    lowest = log_loss(y, Link(*best)(clf.estimator_.decision_function(X)))
    assert log_loss(y, p[:, 1]) < lowest + 0.01
    assert (clf.predict(X) == clf.classes_[np.argmax(p, axis=1)]).all()


def test_it_is_the_theory_with_moments_from_the_rows(table):
    classes, (X, y), _ = table
    clf = rbal.calibrated(ESTIMATORS["weighted"]).fit(X, y)
    sol = rbal.solve(classes.moments, 1.0, 4.0, model="svm", loss="logistic", lam=0.1, weight_pos=2.5, weight_neg=0.625)
    for name in ("alpha_pos", "alpha_neg", "lam", "weight_pos", "weight_neg", "loss"):
        assert getattr(clf.solution_, name) == pytest.approx(getattr(sol, name))
    told = sol.metrics.calibration(0.2)
    assert clf.link_.slope == pytest.approx(told.slope, rel=0.15)
    assert clf.link_.intercept == pytest.approx(told.intercept, abs=0.15)
    assert clf.link_ == clf.solution_.metrics.calibration(0.2)


def test_another_share_moves_the_intercept(table):
    _, train, _ = table
    here, there = (rbal.calibrated(ESTIMATORS["logistic"], share=share).fit(*train) for share in (None, 0.01))
    assert here.share_ == 0.2
    assert there.link_.slope == here.link_.slope
    assert there.link_.intercept - here.link_.intercept == pytest.approx(logit(0.01) - logit(0.2))


def test_pipelines_that_scale_and_resample(table):
    _, (X, y), (X_test, y_test) = table
    shifted = 100.0 + 7.0 * X
    under = chain(StandardScaler(), RandomUnderSampler(random_state=0), LogisticRegression(C=0.1, max_iter=1000))
    clf = rbal.calibrated(under).fit(shifted, y)
    sizes = [getattr(clf.solution_, name) for name in ("alpha_pos", "alpha_neg", "weight_pos", "weight_neg")]
    assert sizes == [1.0, 1.0, 1.0, 1.0]
    raw, honest = (c.predict_proba(100.0 + 7.0 * X_test)[:, 1] for c in (clf.estimator_, clf))
    assert abs(honest.mean() - 0.2) < 0.03 < raw.mean() - 0.2
    assert log_loss(y_test, honest) < log_loss(y_test, raw) - 0.05
    over = chain(rbal.RandomMixSampler(mixing=1.0, random_state=0), LogisticRegression(C=0.1, max_iter=1000))
    sol = rbal.calibrated(over).fit(X, y).solution_
    assert [sol.alpha_pos, sol.alpha_neg, sol.weight_pos, sol.weight_neg] == [1.0, 4.0, 4.0, 1.0]


# ---- weights of the rows


def test_weights_of_rows_that_are_those_of_classes(table):
    _, (X, y), (X_test, _) = table
    plain = ESTIMATORS["logistic"]
    by_class = rbal.calibrated(clone(plain).set_params(class_weight={-1: 0.5, 1: 3.0})).fit(X, y)
    by_row = rbal.calibrated(plain).fit(X, y, sample_weight=np.where(y > 0, 3.0, 0.5))
    assert by_row.link_ == pytest.approx(by_class.link_)
    np.testing.assert_allclose(by_row.predict_proba(X_test), by_class.predict_proba(X_test), atol=1e-4)
    balanced = rbal.calibrated(ESTIMATORS["weighted"]).fit(X, y)
    assert rbal.calibrated(plain).fit(X, y, compute_sample_weight("balanced", y)).link_ == pytest.approx(balanced.link_)
    ones = rbal.calibrated(plain).fit(X, y, np.ones(len(y)))
    assert ones.link_ == rbal.calibrated(plain).fit(X, y).link_


@pytest.mark.parametrize("form", [np.asarray, csr_array, pd.DataFrame, np.ndarray.tolist])
def test_rows_of_weight_zero_are_not_there(table, form):
    _, (X, y), _ = table
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 2.0)
    rest = weight > 0.0
    there = rbal.calibrated(ESTIMATORS["logistic"]).fit(X[rest], y[rest], weight[rest])
    some = rbal.calibrated(ESTIMATORS["logistic"]).fit(form(X), form(y) if form is np.ndarray.tolist else y, weight)
    assert some.link_ == pytest.approx(there.link_)
    assert some.share_ == np.mean(y[rest] > 0)


def test_weights_reach_the_last_step_of_a_pipeline(table):
    _, (X, y), _ = table
    weight = np.where(y > 0, 4.0, 1.0)
    scaled = StandardScaler().fit_transform(X)
    alone = rbal.calibrated(LogisticRegression(C=0.1)).fit(scaled, y, weight)
    chained = rbal.calibrated(make_pipeline(StandardScaler(), LogisticRegression(C=0.1))).fit(X, y, weight)
    assert chained.link_ == pytest.approx(alone.link_)
    np.testing.assert_allclose(chained.decision_function(X), alone.decision_function(scaled), atol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("lam", [0.03, 0.3])
@pytest.mark.parametrize("sizes", [(0.5, 2.0), (1.0, 8.0)])
def test_weights_that_differ_within_a_class_are_taken_by_their_mean(loss, lam, sizes):
    # exact for bootstrap copies: of the rows that are there, their numbers have a spread of half of their mean
    classes = synthetic.random_gaussian(np.random.default_rng(0), L=100, scale=1.5).moments
    exact = rbal.solve(classes, *sizes, model="svm", lam=lam, loss=losses.bootstrapped(losses.LOSSES[loss]))
    seen = 1.0 - np.exp(-1.0)
    there = (seen * size for size in sizes)
    mean = rbal.solve(classes, *there, model="svm", lam=lam, loss=loss, weight_pos=1 / seen, weight_neg=1 / seen)
    told, true = mean.metrics.calibration(0.2), exact.metrics.calibration(0.2)
    assert told.slope == pytest.approx(true.slope, rel=0.1)
    assert told.intercept == pytest.approx(true.intercept, abs=0.12)


def test_weights_that_are_not_taken(table):
    _, (X, y), _ = table
    weight = np.ones(len(y))
    under = chain(RandomUnderSampler(random_state=0), LogisticRegression())
    cases = {
        "does not resample, got randomundersampler=": (under, weight),
        "got class_weight='balanced'": (LogisticRegression(class_weight="balanced"), weight),
        "sample_weight must be >= 0, got -1": (LogisticRegression(), -weight),
        r"sample_weight.shape == \(3,\)": (LogisticRegression(), weight[:3]),
        "y must hold two classes, got 1 class": (LogisticRegression(), (y > 0).astype(float)),
    }
    for message, (estimator, given) in cases.items():
        with pytest.raises(ValueError, match=message):
            rbal.calibrated(estimator).fit(X, y, given)


def test_units_of_the_features_do_not_matter(table):
    _, (X, y), (X_test, _) = table
    small = rbal.calibrated(LogisticRegression(C=0.1 * 64, tol=1e-9, max_iter=5000)).fit(X / 8, y)
    large = rbal.calibrated(LogisticRegression(C=0.1, tol=1e-9, max_iter=5000)).fit(X, y)
    np.testing.assert_allclose(small.predict_proba(X_test / 8), large.predict_proba(X_test), atol=1e-4)


def test_sparse_rows_and_few_rows(table):
    _, (X, y), _ = table
    dense, thin = (rbal.calibrated(ESTIMATORS["logistic"]).fit(rows, y) for rows in (X, csr_array(X)))
    assert thin.link_.slope == pytest.approx(dense.link_.slope, rel=1e-6)
    few = np.r_[:30, 100:150]  # fewer than columns
    assert 0.0 < rbal.calibrated(ESTIMATORS["logistic"]).fit(X[few], y[few]).link_.slope < 2.0


def test_a_collapsed_machine_gives_the_share():
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [80, 1600])
    X = rng.normal(size=(1680, 40))
    clf = rbal.calibrated(SVC(kernel="linear", C=1e-3)).fit(X, y)
    assert clf.solution_.phase == "COLLAPSED"
    np.testing.assert_allclose(clf.predict_proba(X)[:, 1], 80 / 1680)


def test_errors_name_what_they_got(table):
    _, (X, y), _ = table
    cases = {
        "estimator must be a linear classifier with an L2 penalty": Perceptron(),
        "linear classifier with an L2 penalty .*got SVC": SVC(),
        "must fit an intercept": LogisticRegression(fit_intercept=False),
        "must have a finite penalty > 0": RidgeClassifier(alpha=0.0),
        "samplers that have sample_indices_, got smote=": chain(SMOTE(random_state=0), LogisticRegression()),
    }
    for message, estimator in cases.items():
        with pytest.raises(ValueError, match=message):
            rbal.calibrated(estimator).fit(X, y)
    with pytest.raises(ValueError, match="share must be >= 0 and <= 1, got 3"):
        rbal.calibrated(LogisticRegression(), share=3.0).fit(X, y)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        rbal.calibrated(LogisticRegression()).fit(X, np.arange(len(y)) % 3)
    plain = make_pipeline("passthrough", LogisticRegression(C=0.1))
    assert rbal.calibrated(plain).fit(X, y).link_.slope > 0


@pytest.mark.parametrize("scale", [0.0, 1e-300])
def test_features_that_do_not_vary_are_refused(scale):
    X = scale * np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(ValueError, match=r"X must (have a feature that varies within a class|hold numbers of size >=)"):
        rbal.calibrated(LogisticRegression()).fit(X, [0, 1] * 20)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_penalty_that_is_searched_is_refused():
    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(ValueError, match="L2 penalty of a given size"):
        rbal.calibrated(LogisticRegressionCV(Cs=2, cv=2)).fit(X, [0, 1] * 20)
