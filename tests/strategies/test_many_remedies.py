"""Remedies for more than two classes."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import rbal
from rbal import strategies
from rbal.metrics.internal import GOALS
from rbal.strategies import REMEDIES, Remedy, design_many, restore
from rbal.strategies.internal import multiplicity

ALPHAS = np.array([0.2, 1.0, 4.0])


def classes(T=3, D=60, distance=2.0, seed=0):
    """T classes at random centres, with one covariance."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(D, 3 * D)) / np.sqrt(3 * D)
    return rbal.Mixture.gaussian(distance * rng.normal(size=(T, D)) / np.sqrt(D), F @ F.T, np.arange(T))


@pytest.mark.parametrize("sizes", [(0.5, 5.0), (3.0, 0.7)])
@pytest.mark.parametrize("name", REMEDIES)
def test_two_classes_have_the_usual_design(name, sizes):
    mixing = 0.4
    c = multiplicity(*sizes, mixing)
    usual = REMEDIES[name].design(*sizes, c)
    kept, weights = design_many(name, sizes, mixing=mixing if REMEDIES[name].searched else None)
    np.testing.assert_allclose(kept, usual[:2], rtol=1e-12)
    np.testing.assert_allclose(weights, [usual[2:], usual[2:]] if not REMEDIES[name].weights else
                               [usual[2:], REMEDIES[name].design(*sizes[::-1])[:1:-1]], rtol=1e-12)  # fmt: skip


def test_sampling_brings_all_classes_to_one_size():
    for mixing, size in ((0.0, 0.2), (0.25, 1.15), (1.0, 4.0)):
        kept, weights = design_many("best mix", ALPHAS, mixing=mixing, scheme="multinomial")
        np.testing.assert_allclose(kept * weights, size, rtol=1e-12)
        assert np.all(kept <= ALPHAS)
        assert np.all(weights >= 1.0)


def test_class_weights_are_those_of_scikit_learn():
    from sklearn.utils.class_weight import compute_class_weight

    y = np.repeat([0, 1, 2], [10, 50, 200])
    _, weights = design_many("class weights", [10, 50, 200], scheme="multinomial")
    np.testing.assert_allclose(weights, compute_class_weight("balanced", classes=np.arange(3), y=y), rtol=1e-12)
    _, weights = design_many("class weights", [10, 50, 200])
    for t in range(3):
        rest, own = compute_class_weight("balanced", classes=np.array([False, True]), y=y == t)
        np.testing.assert_allclose(weights[t], np.where(np.arange(3) == t, own, rest), rtol=1e-12)


def test_registered_weights_are_applied_to_each_class_against_the_rest():
    half = Remedy("half", "Weigh by square roots", lambda pos, neg: ((neg / pos) ** 0.5, 1.0))
    _, weights = design_many(half, [1.0, 4.0, 11.0])
    np.testing.assert_allclose(np.diagonal(weights), np.sqrt([15.0, 3.0, 5.0 / 11.0]), rtol=1e-12)
    assert np.all(weights[~np.eye(3, dtype=bool)] == 1.0)


def test_logit_adjustment_of_two_classes_is_the_usual_one():
    # there the margins are shifted in training, here the thresholds after it
    mix, alphas = classes(2), (0.5, 5.0)
    moments = rbal.Moments.real(mix.means[0], mix.means[1], mix.covariance(0))
    for strength in (0.3, 1.0):
        options = {"model": "svm", "loss": "logistic", "lam": 1.0}
        usual = strategies.adjust(moments, *alphas, "logit adjustment", strength, **options).metrics
        sol = rbal.solve_ovr(mix, alphas, 1.0, "logistic")
        found = sol.metrics.confusion(strategies.logit_offsets(sol, strength))
        np.testing.assert_allclose(found, [[usual.tpr(), usual.fnr()], [usual.fpr(), usual.tnr()]], rtol=1e-7)


def test_balanced_sets_need_no_logit_adjustment():
    for remedy in ("undersampling", "oversampling", "class weights"):
        for scheme in ("ovr", "multinomial"):
            offsets = strategies.logit_offsets(restore(classes(D=20), ALPHAS, remedy, scheme=scheme))
            np.testing.assert_allclose(offsets, 0.0, atol=1e-12)


def test_a_table_of_all_remedies():
    mix = classes(D=40)
    table = strategies.compare_many(mix, ALPHAS, metric="macro_f1", lam=0.5)
    assert list(table.index.get_level_values(0).unique()) == list(REMEDIES)
    assert list(table.columns) == ["ba", "macro_f1", "accuracy", "lowest", "recall 0", "recall 1", "recall 2", "n"]
    as_is = rbal.solve_ovr(mix, ALPHAS, 0.5).metrics
    row = table.loc["as is", "trained"]
    np.testing.assert_allclose(row[["recall 0", "recall 1", "recall 2"]], as_is.recall(), rtol=1e-9)
    assert row["macro_f1"] == pytest.approx(as_is.macro_f1(ALPHAS), rel=1e-9)
    assert row["accuracy"] == pytest.approx(as_is.accuracy(ALPHAS), rel=1e-9)
    assert table.loc["undersampling", "trained"]["n"] == pytest.approx(0.6)
    values = table["macro_f1"].unstack()
    assert np.all(values["moved"] >= values[["trained", "logit adjustment"]].max(axis=1) - 1e-9)
    ends = values.loc[["undersampling", "oversampling"]].max()
    assert np.all(values.loc["best mix"] >= ends - 1e-9)


def test_a_metric_of_your_own():
    def worst(confusion, phi):
        return np.diagonal(confusion, axis1=-2, axis2=-1).min(axis=-1)

    table = strategies.compare_many(classes(D=20), ALPHAS, metric=worst, phi=[1, 1, 1], loss="square")
    np.testing.assert_allclose(table.iloc[:, -1], table["lowest"], rtol=1e-12)
    assert table.columns[-1] == "worst"
    np.testing.assert_allclose(table["accuracy"], table["ba"], rtol=1e-12)  # all classes alike in the test set


@pytest.mark.parametrize("T", [2, 3, 6])
@pytest.mark.parametrize("metric", ["ba", "macro_f1"])
def test_no_other_thresholds_are_better(T, metric):
    mix, phi = classes(T, D=40), np.geomspace(0.1, 2.0, T)
    m = rbal.solve_ovr(mix, phi, 0.5, "square").metrics
    best = m.best_offsets(metric, phi)

    def height(offsets):
        return GOALS[metric](m.confusion(offsets)[None], phi / phi.sum())[0]

    rng, scale = np.random.default_rng(0), np.sqrt(m.overlaps[:, 0, 0].mean())
    assert best.sum() == pytest.approx(0.0, abs=1e-12)
    # beyond three classes the search and the check are on counted points
    slack = 1e-9 if T <= 3 else 4.0 * m.error(best).max()
    for size in (0.03, 0.2, 1.0):
        for change in size * scale * rng.normal(size=(8, T)):
            assert height(best + change) < height(best) + slack


def test_best_thresholds_undo_a_shift():
    # orthogonal centres at one distance and equal classes: by symmetry no threshold is to be moved
    mix = rbal.Mixture.gaussian(2.0 * np.eye(4, 40), np.ones(40), np.arange(4))
    m = rbal.solve_ovr(mix, np.ones(4), 0.5).metrics
    shift = np.array([0.3, -0.1, 0.0, -0.2])
    moved = rbal.metrics.ManyMetrics(m.means + shift, m.overlaps)
    np.testing.assert_allclose(m.best_offsets(), 0.0, atol=1e-12)
    np.testing.assert_allclose(moved.best_offsets(), shift, atol=0.1)  # the top is flat, and points are counted
    assert moved.ba(moved.best_offsets()) == pytest.approx(m.ba(), abs=m.error().max())


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["ovr", "multinomial"])
@pytest.mark.parametrize("remedy", ["undersampling", "best mix", "class weights"])
def test_trained_after_a_remedy(remedy, scheme):
    """Real resampling or weights, then training; thresholds that the theory chose for macro recall."""
    L, lam, mixing, alphas = 200, 0.5, 0.3, np.array([0.2, 0.5, 2.0])
    mix, sizes = classes(D=L, seed=3), np.rint(200 * alphas).astype(int)
    given = {"mixing": mixing} if remedy == "best mix" else {}
    sol = restore(mix, alphas, remedy, scheme=scheme, lam=lam, **given)
    offsets, found = sol.metrics.best_offsets(), []
    y = np.repeat(np.arange(3), sizes)
    for seed in range(16):
        rng = np.random.default_rng(seed)
        X = np.concatenate([mix.means[k] + mix._noise(k, n, rng) for k, n in enumerate(sizes)]) / np.sqrt(L)
        rows = np.arange(len(y))
        if remedy != "class weights":
            share = 0.0 if remedy == "undersampling" else mixing
            sampler = rbal.RandomMixSampler(mixing=share, random_state=seed)
            sampler.fit_resample(X, y)
            rows = sampler.sample_indices_
        weight = "balanced" if remedy == "class weights" else None
        if scheme == "ovr":
            machines = [
                SVC(kernel="linear", C=1 / lam, class_weight=weight).fit(X[rows], y[rows] == t) for t in range(3)
            ]
            w, b = (np.concatenate([getattr(m, name) for m in machines]) for name in ("coef_", "intercept_"))
        else:
            one = LogisticRegression(C=1 / lam, class_weight=weight, tol=1e-6, max_iter=1000).fit(X[rows], y[rows])
            w, b = one.coef_, one.intercept_
        w = w / np.sqrt(L)
        overlaps = np.stack([w @ mix.covariance(k) @ w.T for k in range(3)])
        real = rbal.metrics.ManyMetrics(mix.means @ w.T + b, overlaps)
        found.append([real.confusion(), real.confusion(offsets)])
    error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    expected = np.stack([sol.metrics.confusion(), sol.metrics.confusion(offsets)])
    assert np.all(np.abs(np.mean(found, axis=0) - expected) < 5.0 * error + 2.0 / L)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda mix: restore(mix, ALPHAS, "cutting"), "remedy must be one of 'as is'"),
        (lambda mix: restore(mix, ALPHAS, "best mix"), "mixing must be given for the remedy 'best mix'"),
        (lambda mix: restore(mix, ALPHAS, scheme="ovo"), "scheme must be one of 'ovr', 'multinomial', got 'ovo'"),
        (lambda mix: restore(mix, [1.0, 0.0, 2.0]), "alphas must be > 0, got 0 for class 1: a class needs rows"),
        (lambda mix: strategies.compare_many(mix, [1.0, 2.0]), "one entry for each of the 3 classes"),
        (lambda mix: strategies.compare_many(mix, ALPHAS, phi=[0.5, 0.5]), "phi must be 3 shares with a sum > 0"),
        (lambda mix: strategies.compare_many(mix, ALPHAS, metric="auc"), "metric must be one of 'ba', 'accuracy'"),
        (lambda mix: design_many("as is", [1.0]), "alphas must have at least 2 classes, got 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(classes(D=10))
