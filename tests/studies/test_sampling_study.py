import functools
import inspect

import numpy as np
import pandas as pd
import pytest
from numpydoc.docscrape import FunctionDoc
from scipy import stats

import rbal
from rbal import experiments
from rbal_book import studies
from rbal_book.datasets.images import load_mnist
from rbal_book.studies import _sampling


@pytest.fixture(scope="module")
def table():
    trial = functools.partial(
        studies.sampling,
        data=load_mnist("five", n_test=1000),
        N=120,
        mixings=(0.0, 0.3, 1.0),
        strategies=tuple(studies.STRATEGIES),
        n_epochs=5,
    )
    return studies.tidy(experiments.run(trial, {"P": [20, 40]}, trials=2, progress=False))


def at(table, strategy, mixing):
    return table[(table.strategy == strategy) & (table.mixing == mixing)].ba.to_numpy()


def test_every_strategy_at_every_size(table):
    assert set(table.strategy) == {"as is", *studies.STRATEGIES}
    assert len(table) == 2 * 2 * (1 + 3 * len(studies.STRATEGIES))
    assert table.mixing[table.strategy == "as is"].isna().all()
    assert table.ba.between(0.4, 1).all()
    assert table.auc.between(0.4, 1).all()


def test_strategies_meet_where_they_do_nothing(table):
    for name, (over, under) in studies.STRATEGIES.items():
        assert np.array_equal(at(table, name, 0.0), at(table, "random", 0.0)) == (under == "random")
        assert np.array_equal(at(table, name, 1.0), at(table, "random", 1.0)) == (over == "copies")


def test_new_digits_are_the_best_of_all(table):
    # the only one that is given more information
    assert (
        at(table, "new digits", 1.0).mean() > table[table.strategy != "new digits"].groupby("strategy").ba.mean().max()
    )


def test_the_svm_is_that_of_the_theory():
    data = load_mnist("five", n_test=1000)
    X, y = data.sample(60, 60, 0)
    ours = rbal.LinearSVM(lam=0.1, fit_bias=False, tol=1e-6).fit((X + 1) / 2, y)
    score = ours.decision_function((data.X_test + 1) / 2)
    expected = 0.5 * (np.mean(score[:500] > 0) + np.mean(score[500:] <= 0))
    assert _sampling._tested((X[:60] + 1) / 2, (X[60:] + 1) / 2, data, 10.0)["ba"] == pytest.approx(expected, abs=0.003)


def test_paired_differences_by_hand():
    rng = np.random.default_rng(0)
    rows = [
        (P, k, s, 0.1, shift + 0.1 * rng.normal(), 0.5)
        for P in (1, 2)
        for k in range(12)
        for s, shift in (("random", 0.5), ("a", 0.9), ("b", 0.55))
    ]
    table = pd.DataFrame(rows, columns=["P", "trial", "strategy", "mixing", "ba", "auc"])
    found = studies.paired(table).set_index(["P", "strategy"])
    p = {}
    for P, s in found.index:
        x, base = (table[(table.P == P) & (table.strategy == name)].ba.to_numpy() for name in (s, "random"))
        assert found.difference[P, s] == pytest.approx(np.mean(x - base))
        p[P, s] = stats.ttest_rel(x, base).pvalue
        assert found.p[P, s] == pytest.approx(p[P, s])
    ranked = sorted(p, key=p.get)
    for k, key in enumerate(ranked):  # Holm, as it is defined
        expected = min(1.0, max((4 - j) * p[ranked[j]] for j in range(k + 1)))
        assert found.p_holm[key] == pytest.approx(expected)


def test_at_best_by_hand():
    # two mixings; "a" is best at the second one, "random" at the first, by more than any noise
    rng = np.random.default_rng(0)
    height = {("random", 0.1): 0.8, ("random", 0.5): 0.5, ("a", 0.1): 0.4, ("a", 0.5): 0.9}
    rows = [(1, k, s, m, h + 0.02 * rng.normal(), 0.5) for k in range(10) for (s, m), h in height.items()]
    table = pd.DataFrame(rows, columns=["P", "trial", "strategy", "mixing", "ba", "auc"])
    found = studies.at_best(table).iloc[0]
    wide = table.pivot(index="trial", columns=["strategy", "mixing"], values="ba")
    gap = wide["a", 0.5] - wide["random", 0.1]
    assert found.n == 10
    assert found.difference == pytest.approx(gap.mean())
    assert found.p == pytest.approx(stats.ttest_1samp(gap, 0).pvalue)


def test_choosing_the_best_of_pure_noise_brings_nothing():
    rng = np.random.default_rng(1)
    mixings = {"random": [0.1], "many": np.arange(20) / 20}
    rows = [(1, k, s, m, rng.normal(), 0.5) for k in range(400) for s, ms in mixings.items() for m in ms]
    table = pd.DataFrame(rows, columns=["P", "trial", "strategy", "mixing", "ba", "auc"])
    found = studies.at_best(table).iloc[0]
    assert abs(found.difference) < 3.5 * found.se


def test_paired_leaves_out_what_is_the_same(table):
    found = studies.paired(table)
    assert not ((found.mixing == 1.0) & (found.strategy == "LIS under")).any()
    assert not ((found.mixing == 0.0) & (found.strategy == "SMOTE")).any()
    with pytest.raises(ValueError, match="metric must be one of 'ba', 'auc', got 'f1'"):
        studies.paired(table, metric="f1")
    with pytest.raises(ValueError, match="to must be one of"):
        studies.paired(table, to="none")


def test_stored_results_are_of_this_study():
    table = studies.stored("sampling")
    assert list(table) == ["P", "trial", "strategy", "mixing", "ba", "auc"]
    assert set(table.P) == set(studies.MINORITIES)
    assert set(studies.QUICK) <= set(table.strategy)
    trials = table.groupby("P").trial.nunique()
    assert trials.min() == trials.max() >= 5
    with pytest.raises(ValueError, match="name must be one of"):
        studies.stored("other")


def test_unknown_strategy_is_named():
    with pytest.raises(ValueError, match=r"strategies must be one of .*, got 'magic'"):
        studies.sampling(np.random.default_rng(0), 5, data=None, strategies=("magic",))


@pytest.mark.parametrize("function", [studies.sampling, studies.tidy, studies.paired, studies.at_best, studies.stored])
def test_documented_parameters(function):
    named = [name.strip() for p in FunctionDoc(function)["Parameters"] for name in p.name.split(",")]
    assert named == list(inspect.signature(function).parameters)


# ---- differences that come in groups


def grouped(rng, sizes):
    """Differences without a mean: what a source shares is twice as large as what a table has of its own."""
    source = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=len(sizes))[source] + 0.5 * rng.normal(size=len(source)), source


@pytest.mark.parametrize("sizes", [[2] * 11 + [1] * 11, [4] * 20, [1, 1, 2, 3, 5, 8] * 4])
def test_clustered_test_has_its_size_and_one_without_sources_has_not(sizes):
    rng = np.random.default_rng(16)
    found = [grouped(rng, sizes) for _ in range(2000)]
    tests = [studies.clustered(d, source) for d, source in found]
    false = np.mean([test.p < 0.05 for test in tests])
    # 5 %, with four errors of 2000 draws; a little more is known of sources of very different sizes
    assert 0.03 < false < (0.07 if max(sizes) < 8 else 0.10)
    inside = np.mean([test.low < 0.0 < test.high for test in tests])
    assert inside == pytest.approx(1.0 - false, abs=1e-12)
    naive = np.mean(stats.ttest_1samp(np.array([d for d, _ in found]), 0.0, axis=1).pvalue < 0.05)
    assert naive > false + 0.03
    spread = np.std([test.mean for test in tests])
    assert np.sqrt(np.mean([test.se**2 for test in tests])) == pytest.approx(spread, rel=0.1)


def test_clustered_is_a_t_test_where_every_source_has_one_difference():
    d = np.random.default_rng(17).normal(0.3, 1.0, size=30)
    found, theirs = studies.clustered(d, np.arange(30)), stats.ttest_1samp(d, 0.0)
    assert found.p == pytest.approx(theirs.pvalue)
    assert found[2:4] == pytest.approx(tuple(theirs.confidence_interval(0.95)))
    assert (found.n, found.sources) == (30, 30)


def test_a_difference_told_twice_is_told_once():
    d = np.random.default_rng(18).normal(0.3, 1.0, size=12)
    once, twice = studies.clustered(d, np.arange(12)), studies.clustered(np.tile(d, 2), np.tile(np.arange(12), 2))
    assert twice[:5] == pytest.approx(once[:5])


def test_no_difference_is_not_significant():
    assert studies.clustered(np.zeros(4), list("aabc")).p == 1.0


def test_clustered_says_what_it_takes():
    with pytest.raises(ValueError, match="source must name the source of each difference, got 2 for 3"):
        studies.clustered([1.0, 2.0, 3.0], ["a", "b"])
    with pytest.raises(ValueError, match="source must name at least two sources, got 1"):
        studies.clustered([1.0, 2.0], ["a", "a"])
    with pytest.raises(ValueError, match="p must be a list of probabilities"):
        studies.holm([0.2, 1.2])


def test_holm_is_the_least_of_what_the_definition_asks():
    p = np.array([0.04, 0.01, 0.03, 0.9, 0.01])
    by_hand = [max(min(1.0, sum(p >= q) * q) for q in p[p <= own]) for own in p]
    # ties share a place in the definition; each of them asks for the largest number of tests that remain
    np.testing.assert_allclose(studies.holm(p), by_hand)
