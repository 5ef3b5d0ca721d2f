"""One width a class: the pooled case as a limit, a mixture as another route, trained machines, and the advice."""

import json

import numpy as np
import pandas as pd
import pytest

import rbal
from rbal.advice import _prediction
from rbal.advice.internal import Setting, evaluate
from rbal.losses import LOSSES
from rbal.moments.internal import Fitter, Sample, from_covariances
from rbal.saddle.internal import sweep_widths


def classes(n_pos=60, n_neg=240, D=40, wide=1.5, shift=0.3, seed=0):
    """Rows of two classes, of which the positives have ``wide`` times the standard deviation."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_pos + n_neg) < n_pos
    X = rng.normal(size=(len(y), D)) * np.where(y, wide, 1.0)[:, None] * np.linspace(0.5, 1.5, D)
    return X + shift * y[:, None], y


def sample_of(X, y, sizes=None):
    parts = X[y], X[~y]
    sizes = sizes or tuple(map(len, parts))
    return from_covariances(*sizes, parts[0].mean(0) - parts[1].mean(0), *(np.cov(part.T) for part in parts))


def known(X, y):
    sample = sample_of(X, y)
    return _prediction.Wide(Fitter(sample).fit(), sample)


def setting(X, y, C=0.1, metric="ba"):
    return Setting(y.sum(), (~y).sum(), X.shape[1], C, "hinge", metric, (1.0, 1.0))


def test_widths_of_one_are_one_covariance():
    X, y = classes()
    wide, s = known(X, y), setting(X, y)
    pooled, alike = evaluate(wide.spectrum, s), evaluate(wide._replace(known=np.ones(2)), s)
    np.testing.assert_allclose(alike.value[0], pooled.value[0], atol=1e-8)
    np.testing.assert_allclose(alike.value[1], pooled.value[1], atol=1e-5)  # a threshold that is searched
    np.testing.assert_allclose(alike.auc, pooled.auc, atol=1e-8)
    np.testing.assert_allclose(alike.free, pooled.free, atol=1e-8)
    np.testing.assert_array_equal(alike.collapsed, pooled.collapsed)


@pytest.mark.parametrize("loss", rbal.losses.LOSSES)
@pytest.mark.parametrize("widths", [(2.0, 0.8), (0.3, 3.0)])
def test_a_mixture_with_widths_is_the_same(widths, loss):
    """The same two clouds, as rbal.Mixture builds them from means and variances; among them collapsed machines."""
    D, rng = 30, np.random.default_rng(1)
    shift, variances = rng.normal(size=D) * 0.3, rng.uniform(0.5, 2.0, size=D)
    clouds = rbal.Mixture.gaussian(np.stack([shift, 0 * shift]), variances, [1, -1], widths=widths)
    spectrum = rbal.Moments.real(shift, 0 * shift, variances).spectrum
    phases = set()
    for sizes, weight in (((1.0, 4.0), 3.0), ((0.05, 10.0), 1.0), ((3.0, 100.0), 1.0), ((0.5, 0.5), 1.0)):
        options = {"lam": 0.1, "weight_pos": weight, "loss": loss}
        theirs = rbal.solve(clouds, *sizes, model="svm", **options)
        mine = sweep_widths(spectrum, widths, *sizes, **options)
        assert mine.phase == theirs.phase
        for name in ("r", "b", "train_loss", "train_error"):
            assert getattr(mine, name) == pytest.approx(getattr(theirs, name), rel=1e-7, abs=1e-8), name
        np.testing.assert_allclose(np.multiply(widths, mine.q), theirs.q, rtol=1e-7, atol=1e-12)
        phases.add(theirs.phase)
    assert ("COLLAPSED" in phases) == (loss == "hinge")


def test_a_width_must_be_positive():
    spectrum = rbal.Moments.ising(m=0.4, delta=1.0, L=20).spectrum
    with pytest.raises(ValueError, match="widths must be > 0, got 0"):
        sweep_widths(spectrum, (1.0, 0.0), 1.0, 1.0, lam=0.1)


def test_weights_are_those_of_trained_machines():
    """Any quadratic form of the weights, here the part on one half of the directions, against machines."""
    D, sizes, C = 40, (60, 240), 0.05
    variances, shift, half = np.linspace(0.4, 2.0, D), 0.35 * (np.arange(D) % 2), (np.arange(D) < D // 2).astype(float)
    sol = rbal.solve(
        rbal.Moments.real(shift, 0 * shift, variances), sizes[0] / D, sizes[1] / D, model="svm", lam=1 / (C * D),
        weight_pos=2.5, weight_neg=0.625,
    )  # fmt: skip
    # the classes themselves, so that there is no noise in the shift
    exact = Sample(10**12, 10**12, D, variances, shift, half, variances, 0.0)
    told = _prediction.widths_along(exact, sol.k_hat, sol.x_hat, sol.q_hat, sol.r_hat)[0]
    rng, y, found = np.random.default_rng(6), np.arange(sum(sizes)) < sizes[0], []
    for _ in range(20):
        X = rng.normal(size=(len(y), D)) * np.sqrt(variances) + shift * y[:, None]
        w = LOSSES["hinge"].estimator(C, class_weight="balanced").fit(X, y).coef_.ravel() ** 2
        found.append([w @ half, w @ variances])
    found = np.array(found)
    ratio, error = found[:, 0].mean() / found[:, 1].mean(), np.std(found[:, 0] / found[:, 1]) / np.sqrt(20)
    assert told == pytest.approx(ratio, abs=5.0 * error)
    assert abs(half.sum() / variances.sum() - ratio) > 5.0 * error  # plain traces would not do


def test_widths_share_the_variance():
    X, y = classes()
    sample = sample_of(X, y)
    pos, neg = _prediction.widths_along(sample, 0.1, 0.3, 0.5, 0.2)
    assert (59 * pos + 239 * neg) / 298 == pytest.approx(1.0)
    assert pos == pytest.approx(1.5**2 / ((59 * 1.5**2 + 239) / 298), rel=0.15)
    assert _prediction.widths_along(sample, 0.1, 0.3, 0.0, 0.0).tolist() == [1.0, 1.0]
    assert np.all(
        _prediction.widths_along(sample._replace(spread_pos=1e9 * sample.spread_pos), 0.1, 0.3, 0.5, 0.2)
        <= _prediction.WIDTH_LIMITS[1]
    )


@pytest.mark.parametrize("row", ["as is", "class weights"])
def test_predictions_are_what_trained_classifiers_score(row):
    """Classes that differ in width alone: one covariance is off by 0.03 and more, widths are not."""
    D, sizes, C, wide = 40, (60, 600), 0.05, 1.8
    X, y = classes(6000, 60_000, D, wide, 0.3, seed=3)  # so many rows that the moments are all but exact
    scale = np.linspace(0.5, 1.5, D)
    s = Setting(*sizes, D, C, "hinge", "ba", (1.0, 1.0))
    sample, pooled = sample_of(X, y, (6000, 60_000)), Fitter(sample_of(X, y)).fit()
    place = _prediction.designs(s).place[row]
    told = evaluate(_prediction.Wide(pooled, sample), s).value[0, place]
    rng, found, small = np.random.default_rng(4), [], np.arange(sum(sizes)) < sizes[0]
    for _ in range(16):
        Z = rng.normal(size=(len(small), D)) * np.where(small, wide, 1.0)[:, None] * scale + 0.3 * small[:, None]
        clf = LOSSES["hinge"].estimator(C, class_weight="balanced" if row == "class weights" else None).fit(Z, small)
        w, b = clf.coef_.ravel(), clf.intercept_[0]
        spread = np.sqrt(w**2 @ scale**2)
        m = rbal.metrics.MixtureMetrics(
            [0.3 * w.sum() + b, b], [(wide * spread) ** 2, spread**2], [1, -1], [1.0, 1.0]
        )  # fmt: skip
        found.append(m.ba())
    error = np.std(found) / 4.0
    assert np.mean(found) == pytest.approx(told, abs=5.0 * error + 0.006)
    one = evaluate(pooled, s).value[0, place]
    assert abs(one - np.mean(found)) > 2.0 * abs(told - np.mean(found))


@pytest.mark.parametrize("metric", ["ba", "f1", "mcc"])
def test_the_moved_threshold_is_the_best_one(metric):
    X, y = classes()
    s = setting(X, y, metric=metric)
    m = _prediction.solve_all(known(X, y), s).metrics
    cut = _prediction.best_threshold(m, s)
    for j in (0, 1, -1):
        one = rbal.metrics.MixtureMetrics(m.mean[j], m.q[j], m.signs, m.shares)
        assert _prediction.score(one, s, cut[j]) == pytest.approx(
            _prediction.score(one, s, np.linspace(-8, 8, 20_001)).max(), abs=1e-5
        )


def test_a_collapsed_machine_stays_one():
    X, y = classes(30, 3000, 12, shift=0.05)
    s = setting(X, y, C=1.0)
    found = _prediction.solve_wide(
        known(X, y), 30 / 12, 3000 / 12, weight_pos=1.0, weight_neg=1.0, lam=1 / 12, loss="hinge"
    )
    assert found.phase == "COLLAPSED"
    assert found.metrics.ba() == 0.5
    assert evaluate(known(X, y), s).collapsed[0]


def test_advice_with_widths():
    X, y = classes(60, 300, 20, 2.0, 0.5)
    options = {"draws": 4, "C": [0.01, 0.1, 1.0], "train": "none"}
    one, two = (rbal.advise(X, y, moments=kind, **options) for kind in ("pooled", "width"))
    assert not np.allclose(one.table["predicted"], two.table["predicted"], atol=0.005)
    assert (two.table["low"] <= two.table["predicted"]).all()
    today = two.curve_of_data.iloc[0]
    assert today["predicted"] == pytest.approx(two.table.loc[two.best, "predicted"], abs=1e-6)
    assert today["low"] == pytest.approx(two.table.loc[two.best, "low"], abs=1e-6)
    assert json.loads(two.to_json())["calibration"]["slope"] > 0.0
    assert "moments=&#x27;width&#x27;" in two.to_html()
    with pytest.raises(ValueError, match="moments must be one of"):
        rbal.advise(X, y, moments="own")
    auto = rbal.advise(X, y, moments="auto", **options)  # widths, since the rows are many
    pd.testing.assert_frame_equal(auto.table, two.table)
