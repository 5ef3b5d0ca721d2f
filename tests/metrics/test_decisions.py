"""Thresholds for a wanted precision, recall or cost; their spread against repeated tuning; cost curves."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import beta, norm

import rbal

M = rbal.Metrics(q=1.5, r=2.0, b=0.4)
PHI = 0.2


def draw(rng, n_pos, n_neg, times):
    """Sorted scores of held-out positives and negatives, a row for each time."""
    pos = M.r / 2 - M.b + np.sqrt(M.q) * rng.normal(size=(times, n_pos))
    neg = -M.r / 2 - M.b + np.sqrt(M.q) * rng.normal(size=(times, n_neg))
    return np.sort(pos, axis=1), np.sort(neg, axis=1)


def shares_above(pos, neg):
    """All scores of one time as cuts, and the shares of both classes at or above each."""
    cuts = np.sort(np.r_[pos, neg])
    return cuts, *(1.0 - np.searchsorted(s, cuts) / len(s) for s in (pos, neg))


def assert_spread(found, expected, rel):
    """Standard deviations agree, within four times their own sampling error and a bias of order 1/n."""
    error = np.sqrt(0.5 / len(found))
    assert np.std(found) == pytest.approx(expected, rel=4 * error + rel)


# ---- where the threshold is


@pytest.mark.parametrize("recall", [1e-6, 0.1, 0.5, 0.9, 1 - 1e-6])
def test_recall(recall):
    found = M.threshold_for(PHI, recall=recall)
    assert found.threshold == pytest.approx(M.r / 2 - M.b - np.sqrt(M.q) * norm.ppf(recall), abs=1e-9)
    assert found.recall == pytest.approx(recall, rel=1e-12)
    assert found.precision == M.ppv(PHI, found.threshold)
    assert np.isnan(found[3:]).all()


@pytest.mark.parametrize("precision", [0.21, 0.5, 0.9, 0.999])
def test_precision(precision):
    found = M.threshold_for(PHI, precision=precision)
    root = brentq(lambda cut: M.ppv(PHI, cut) - precision, -30.0, 30.0, xtol=1e-13)
    assert found.threshold == pytest.approx(root, abs=1e-9)
    assert found.precision == pytest.approx(precision, rel=1e-12)
    assert found.recall == M.tpr(found.threshold)


def test_what_every_threshold_has_and_what_none_has():
    low = M.threshold_for(PHI, precision=0.1)
    assert (low.threshold, low.recall) == (-np.inf, 1.0)
    assert np.isnan(rbal.Metrics(1.0, -1.0, 0.0).threshold_for(PHI, precision=0.5).threshold)


@pytest.mark.parametrize("costs", [(1.0, 1.0), (20.0, 1.0), (1.0, 3.0)])
def test_lowest_cost(costs):
    miss, alarm = costs

    def cost(cut):
        return PHI * miss * M.fnr(cut) + (1 - PHI) * alarm * M.fpr(cut)

    lowest = minimize_scalar(cost, bounds=(-15.0, 15.0), method="bounded", options={"xatol": 1e-10})
    assert M.threshold_for(PHI, costs=costs).threshold == pytest.approx(lowest.x, abs=1e-5)


def test_costs_of_balanced_accuracy_give_its_threshold():
    assert M.threshold_for(PHI, costs=(1 / PHI, 1 / (1 - PHI))).threshold == pytest.approx(M.best_threshold())


def test_arrays():
    m = rbal.Metrics(np.array([1.0, 2.0]), np.array([[1.0], [2.0], [3.0]]), 0.1)
    for wanted in ({"recall": 0.8}, {"precision": 0.7}, {"costs": (5.0, 1.0)}):
        found = m.threshold_for(PHI, **wanted, n_pos=50, n_neg=200)
        one = rbal.Metrics(2.0, 3.0, 0.1).threshold_for(PHI, **wanted, n_pos=50, n_neg=200)
        assert all(values.shape == (3, 2) for values in found)
        np.testing.assert_allclose([values[2, 1] for values in found], one, rtol=1e-9)
    assert M.threshold_for(PHI, recall=np.array([0.1, 0.9])).threshold.shape == (2,)


def test_errors():
    with pytest.raises(ValueError, match="one of recall, precision and costs must be given, got none"):
        M.threshold_for(PHI)
    with pytest.raises(ValueError, match=r"must be given, got \['recall', 'costs'\]"):
        M.threshold_for(PHI, recall=0.5, costs=(1.0, 1.0))
    with pytest.raises(ValueError, match=r"recall must be >= 0 and <= 1, got 1\.5"):
        M.threshold_for(PHI, recall=1.5)
    with pytest.raises(ValueError, match="costs must be two numbers"):
        M.threshold_for(PHI, costs=3.0)
    with pytest.raises(ValueError, match=r"n_pos must be a positive integer, got 2\.5"):
        M.threshold_for(PHI, recall=0.5, n_pos=2.5)
    with pytest.raises(ValueError, match="weights must be 2 numbers"):
        M.uncertain_cost([0.1, 0.2], [1.0])


# ---- its spread, against repeated tuning


def test_spread_of_a_tuned_recall():
    n, recall, times = 500, 0.8, 4000
    pos, _ = draw(np.random.default_rng(0), n, 1, times)
    cuts = pos[:, round((1 - recall) * n)]  # the score above which this share of the sample lies
    found = M.threshold_for(PHI, recall=recall, n_pos=n)
    assert_spread(cuts, found.threshold_se, 0.01)
    assert_spread(M.tpr(cuts), found.recall_se, 0.01)
    assert_spread(M.ppv(PHI, cuts), found.precision_se, 0.01)
    exact = beta(recall * n, (1 - recall) * n + 1).std()  # of an order statistic
    assert found.recall_se == pytest.approx(exact, rel=2 / n)


def test_spread_of_a_tuned_precision():
    n_pos, n_neg, precision, times = 1000, 4000, 0.6, 1500
    rows = zip(*draw(np.random.default_rng(1), n_pos, n_neg, times), strict=True)
    tuned = []
    for cuts, tpr, fpr in (shares_above(*row) for row in rows):
        ppv = PHI * tpr / (PHI * tpr + (1 - PHI) * fpr)
        tuned.append(cuts[np.argmax(ppv >= precision)])  # the lowest threshold with enough of it
    found = M.threshold_for(PHI, precision=precision, n_pos=n_pos, n_neg=n_neg)
    tuned = np.array(tuned)
    assert_spread(tuned, found.threshold_se, 0.03)
    assert_spread(M.ppv(PHI, tuned), found.precision_se, 0.03)
    assert_spread(M.tpr(tuned), found.recall_se, 0.03)


def tuned_by_cost(rng, costs, n_pos, n_neg, times):
    rows = zip(*draw(rng, n_pos, n_neg, times), strict=True)
    for cuts, tpr, fpr in (shares_above(*row) for row in rows):
        yield cuts[np.argmin(PHI * costs[0] * (1 - tpr) + (1 - PHI) * costs[1] * fpr)]


def test_spread_and_price_of_a_tuned_cost():
    n_pos, n_neg, costs, times = 2000, 8000, (4.0, 1.0), 1000
    tuned = np.array(list(tuned_by_cost(np.random.default_rng(2), costs, n_pos, n_neg, times)))
    # the law of many samples, whose corrections are of order n^(-1/3): 5 % here
    found = M.threshold_for(PHI, costs=costs, n_pos=n_pos, n_neg=n_neg)
    excess = rbal.metrics.cost(*costs).of_theory(M, PHI, np.r_[found.threshold, tuned])
    excess = excess[1:] - excess[0]
    told = M.tuning_cost(PHI, costs, n_pos=n_pos, n_neg=n_neg)
    assert (excess >= -1e-12).all()
    assert_spread(tuned, found.threshold_se, 0.05)
    assert abs(excess.mean() - told) < 4 * excess.std() / np.sqrt(times) + 0.05 * told


def test_errors_shrink_as_roots_of_the_sizes():
    def errors(times):
        sizes = {"n_pos": 50 * times, "n_neg": 100 * times}
        wanted = ({"recall": 0.7}, {"precision": 0.7}, {"costs": (2.0, 1.0)})
        return np.array([M.threshold_for(PHI, **w, **sizes).threshold_se for w in wanted])

    np.testing.assert_allclose(errors(1) / errors(64), [8.0, 8.0, 4.0], rtol=1e-9)


# ---- cost curves


def test_cost_curve_is_the_envelope_of_all_thresholds():
    weight, best = M.cost_curve(n=41)
    cuts = np.linspace(-12, 12, 2401)
    lines = np.array([M.cost_curve(n=41, threshold=cut)[1] for cut in cuts])
    assert (lines >= best - 1e-12).all()
    np.testing.assert_allclose(lines.min(axis=0)[1:-1], best[1:-1], atol=1e-5)
    assert (best <= np.minimum(weight, 1 - weight) + 1e-12).all()
    assert best[20] == pytest.approx(1 - M.best_ba())
    # at one threshold it is a line from the false alarms to the misses
    np.testing.assert_allclose(lines[1200], M.fpr(0.0) + weight * (M.fnr(0.0) - M.fpr(0.0)), atol=1e-12)


def test_scores_that_say_nothing_cost_what_the_rarer_side_costs():
    weight, cost = rbal.Metrics(1.0, 0.0, 0.3).cost_curve(n=11)
    np.testing.assert_allclose(cost, np.minimum(weight, 1 - weight), atol=1e-12)


def test_uncertain_shares_against_a_sum_over_them():
    costs, shares = (6.0, 1.0), beta(2, 18).ppf((np.arange(400) + 0.5) / 400)
    record = rbal.metrics.cost(*costs)
    found = M.uncertain_cost(shares, costs=costs)
    each = np.array([record.of_theory(M, share, found.threshold) for share in shares])
    assert found.cost == pytest.approx(each.mean())
    assert found.spread == pytest.approx(each.std())
    others = record.of_theory(M, shares[:, None], np.linspace(-4, 4, 81)).mean(axis=0)
    assert found.cost <= others.min()
    known = record.of_theory(M, shares[::20, None], np.linspace(-8, 8, 1601)).min(axis=1)
    informed = M.uncertain_cost(shares[::20], costs=costs).informed
    assert informed == pytest.approx(np.mean(known), abs=1e-5)
    assert informed < found.cost
    for share in (0.01, 0.9):
        assert record.of_theory(M, share, found.safe_threshold) == pytest.approx(found.safe_cost)
    fixed = M.uncertain_cost(shares, costs=costs, threshold=0.7)
    assert fixed.threshold == 0.7
    assert fixed.cost > found.cost


def test_a_share_that_is_known_has_no_spread():
    found = M.uncertain_cost([0.2], costs=(3.0, 1.0))
    assert found.spread == 0.0
    assert found.cost == pytest.approx(found.informed)
    weighed = M.uncertain_cost([0.2, 0.9], [1.0, 0.0], costs=(3.0, 1.0))
    assert weighed.cost == pytest.approx(found.cost)
