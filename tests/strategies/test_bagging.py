"""Bags: single members, limits, bootstrap copies against sums by hand, and bags that were trained."""

import naive
import numpy as np
import pytest
from scipy.stats import poisson

import rbal
from rbal import losses
from rbal.datasets import synthetic
from rbal.strategies import bagging

CLASSES = rbal.Moments.ising(m=0.4, delta=np.linspace(-0.5, 2.0, 20))
SVM = {"model": "svm", "lam": 0.5}
KINDS = ("undersampling", "balanced", "bootstrap")


@pytest.mark.parametrize("options", [SVM, {"kappa": 1.5}, {**SVM, "loss": "logistic", "kappa": 1.0, "kappa_neg": -1.0}])
def test_one_member_is_undersampling(options):
    kappa = options.get("kappa")
    rest = {k: v for k, v in options.items() if k != "kappa"}
    bag = bagging(CLASSES, 0.5, 3.0, 1, kappa, **rest)
    single = rbal.solve(CLASSES, 0.5, 0.5, kappa, **rest)
    assert bag.metrics.ba() == single.metrics.ba()
    assert bag.metrics.tpr() == single.metrics.tpr()


def test_balanced_classes_leave_nothing_to_average():
    bag = bagging(CLASSES, 1.0, 1.0, np.inf, **SVM)
    assert bag.overlap.correlation == pytest.approx(1.0, abs=1e-8)
    assert bag.metrics.ba() == pytest.approx(rbal.solve(CLASSES, 1.0, 1.0, **SVM).metrics.ba(), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_more_members_have_less_variance(kind):
    members = np.array([1, 2, 10, 1e9, np.inf])
    bag = bagging(CLASSES, 0.5, 3.0, members, kind=kind, **SVM)
    assert np.all(np.diff(bag.variance()) < 0.0)
    assert bag.variance()[-1] == bag.overlap.q
    assert bag.metrics.ba()[-1] == bag.limit.ba()
    assert np.all(np.diff(bag.metrics.auc()) > 0.0)


def test_either_class_may_be_the_smaller_one():
    one, two = bagging(CLASSES, 0.5, 3.0, 7, **SVM), bagging(CLASSES, 3.0, 0.5, 7, **SVM)
    assert one.metrics.ba() == pytest.approx(two.metrics.ba(), abs=1e-9)
    assert one.overlap.q == pytest.approx(two.overlap.q, rel=1e-8)


@pytest.mark.parametrize("tolerance", [0.02, 0.003, 1e-4])
def test_how_many_members_are_worth_it(tolerance):
    bag = bagging(CLASSES, 0.5, 3.0, 1, **SVM)
    ba = bagging(CLASSES, 0.5, 3.0, np.arange(1, 2000), **SVM).metrics.ba()
    assert bag.worth(tolerance) == 1 + np.argmax(np.abs(ba - bag.limit.ba()) <= tolerance)


@pytest.mark.parametrize("loss", losses.LOSSES)
@pytest.mark.parametrize("rate", [0.2, 1.0, 2.5])
def test_bootstrap_copies_against_a_sum_over_their_numbers(loss, rate):
    x, mu, q, kappa = 0.8, 0.3, 1.2, 0.9
    n = np.arange(1, 40)
    each = np.array([naive.expectations(loss, kappa, float(k), x, mu, q) for k in n])
    record = losses.bootstrapped(losses.LOSSES[loss])
    got = losses.expectations(record, kappa, rate, x, mu, q)
    np.testing.assert_allclose(got[:3], poisson.pmf(n, rate) @ each, rtol=1e-9)
    for j, (name, step) in enumerate((("mu", 1e-5), ("q", 1e-5), ("x", 1e-5))):
        point = {"mu": mu, "q": q, "x": x}
        up, down = (losses.expectations(record, kappa, rate, **{**point, name: point[name] + s}) for s in (step, -step))
        slope = (np.array(up[:3]) - down[:3]) / (2 * step)
        np.testing.assert_allclose(got[3 + 3 * j : 6 + 3 * j], slope, rtol=1e-6, atol=1e-8)
    mean = poisson.pmf(n, rate) @ [naive.mean_loss(loss, kappa, float(k), x, mu, q) for k in n]
    assert record.mean_loss(kappa, rate, x, mu, q) == pytest.approx(mean, rel=1e-9)


def trained_bag(rng, data, sizes, members, kind):
    """Scores' variance of the mean of the members, their shift and their bias; and the training error of one."""
    L = data.L
    X, y = data.sample(int(sizes[0] * L), int(sizes[1] * L), rng)
    pos, neg = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    J, b, wrong = [], [], []
    for _ in range(members):
        if kind == "undersampling":
            rows = np.r_[pos, rng.choice(neg, len(pos), replace=False)]
        else:
            rows = rng.choice(len(y), len(y))
            if kind == "balanced":
                up, down = rows[y[rows] > 0], rows[y[rows] < 0]
                rows = np.r_[up, rng.choice(down, len(up), replace=False)]
        weight = np.bincount(rows, minlength=len(y)).astype(float)
        svm = rbal.LinearSVM(lam=0.5).fit(X, y, sample_weight=weight)
        J.append(svm.J_)
        b.append(svm.order_parameters(data.moments).b)
        wrong.append(np.average(y * svm.decision_function(X) < 0, weights=weight))
    J = np.mean(J, axis=0)
    return data.moments.variance(J) / L, J @ data.moments.delta / L, np.mean(b), np.mean(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("members", [1, 8])
def test_trained_bags_land_on_the_theory(kind, members):
    rng = np.random.default_rng(members)
    trials, sizes = 16, (0.5, 2.0)
    data = synthetic.random_gaussian(rng, L=120, ratio=3.0, scale=2.0)
    bag = bagging(data.moments, *sizes, members, kind=kind, **SVM)
    found = [trained_bag(rng, data, sizes, members, kind) for _ in range(trials)]
    expected = [bag.variance(), bag.member.r, bag.member.b, bag.member.train_error]
    error = np.std(found, axis=0, ddof=1) / np.sqrt(trials)
    assert (np.abs(np.mean(found, axis=0) - expected) <= 4 * error + 2 / 120).all()


def test_a_bias_that_nothing_decides_is_not_told():
    with pytest.warns(rbal.ConvergenceWarning, match="bias of a bootstrapped member is NaN"):
        bag = bagging(CLASSES, 0.2, 3.0, 5, kind="balanced", model="svm", lam=50.0)
    assert np.isnan(bag.metrics.ba())
    assert 0.5 < bag.metrics.auc() < 1.0


def test_what_is_not_taken():
    with pytest.raises(ValueError, match="members must be >= 1, or infinity, got 0"):
        bagging(CLASSES, 1.0, 2.0, 0, **SVM)
    with pytest.raises(ValueError, match="kind must be one of"):
        bagging(CLASSES, 1.0, 2.0, 2, kind="boosting", **SVM)
    with pytest.raises(ValueError, match="weight_pos must be 1 for a bootstrap sample"):
        bagging(CLASSES, 1.0, 2.0, 2, kind="balanced", weight_pos=2.0, **SVM)
