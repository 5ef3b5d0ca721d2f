import itertools
from collections import Counter

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline
from imblearn.under_sampling import RandomUnderSampler
from imblearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_param_validation,
    estimator_checks_generator,
)
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import estimator_checks_generator as sklearn_checks
from test_random_mix import imbalanced

import rbal
from rbal.samplers import RBMSMOTE, LikelihoodInformedSampler, RandomMixSampler, _columns, _likelihood


def small_rbm(**options):
    return rbal.RBM(**{"n_hidden": 4, "n_epochs": 3, "progress": False, **options})


def informed(**options):
    return LikelihoodInformedSampler(**{"rbm": small_rbm(), "steps": 2, "random_state": 0, **options})


def binary(n_min=30, n_maj=200, L=12, seed=0):
    """Pixels of two classes, the first column constant."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([1, 0], [n_min, n_maj]))
    X = (rng.random((y.size, L)) < np.where(y[:, None] == 1, 0.7, 0.3)).astype(int)
    X[:, 0] = 1
    return X, y


def mixed(n_min=40, n_maj=160, seed=0):
    """A table with a column of every kind."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([1, 0], [n_min, n_maj]))
    colour = pd.Categorical(rng.choice(["red", "green", "blue"], y.size), categories=["red", "green", "blue", "black"])
    table = pd.DataFrame(
        {
            "height": rng.normal(size=y.size) + y,
            "count": rng.integers(0, 4, y.size),
            "colour": colour,
            "grade": pd.Categorical(rng.choice([1, 2, 3], y.size), ordered=True),
            "word": rng.choice(["yes", "no"], y.size),
            "flag": rng.random(y.size) < 0.4,
            "maybe": pd.array(rng.integers(0, 50, y.size), dtype="Int64"),
            "same": 7.5,
        }
    )
    return table, pd.Series(np.where(y, "rare", "common"), name="label")


MODELLED = [
    informed(over_range=(0.0, 1.0)),
    RBMSMOTE(rbm=small_rbm(), random_state=0),
]
of_estimator = {"ids": lambda sampler: type(sampler).__name__}


@pytest.mark.parametrize("sampler", MODELLED, **of_estimator)
def test_model_samplers_pass_the_checks(sampler):
    for estimator, check in itertools.chain(estimator_checks_generator(sampler), sklearn_checks(sampler)):
        if check.func.__name__ != "check_array_api_input":  # skips itself, and would skip the rest
            check(estimator)
    for check in (check_param_validation, check_dataframe_column_names_consistency):
        check(type(sampler).__name__, sampler)


# ---- tables as states


def test_codes_of_every_kind_of_column():
    X, y = mixed()
    coded = _columns.code(X, y.to_numpy(), None, 5)
    assert coded.ordered.tolist() == [True, False, False, False, False, False, True, False]
    assert coded.occurs.sum(axis=1).tolist() == [5, 4, 3, 3, 2, 2, 5, 1]
    for j in np.flatnonzero(~coded.ordered):  # a state is a value
        pairs = {(state, value) for state, value in zip(coded.codes[:, j], X.iloc[:, j], strict=True)}
        assert len(pairs) == coded.occurs[j].sum()


def test_bins_hold_equal_shares_of_the_classes_together():
    X, y = mixed(n_min=50, n_maj=5000)
    coded = _columns.code(X, y.to_numpy(), None, 4)
    share = [np.bincount(coded.codes[y == label, 0], minlength=4) / (y == label).sum() for label in ("rare", "common")]
    np.testing.assert_allclose(np.mean(share, axis=0), 0.25, atol=0.5 / 50 + 1e-9)  # to half a sample of the rare class
    edges = [X["height"][coded.codes[:, 0] == s].agg(["min", "max"]) for s in range(4)]
    assert all(a["max"] < b["min"] for a, b in itertools.pairwise(edges))


def test_one_alphabet_for_arrays_with_few_values():
    X = np.array([[-1.0, 1.0], [-1.0, -1.0], [-1.0, 1.0]])
    coded = _columns.code(X, np.array([0, 0, 1]), None, 10)
    np.testing.assert_array_equal(coded.codes, (X > 0).astype(int))
    np.testing.assert_array_equal(coded.occurs, [[True, False], [True, True]])


def test_states_and_values_are_inverse():
    X, y = mixed()
    y = y.to_numpy()
    coded = _columns.code(X, y, None, 5)
    members = np.flatnonzero(y == "rare")
    lent = _columns.donors(coded, members, coded.codes[members], np.random.default_rng(0))
    back = _columns.stacked(X, np.arange(3), lent)
    assert back.dtypes.tolist() == X.dtypes.tolist()
    pd.testing.assert_frame_equal(back.iloc[:3], X.iloc[:3])
    new = back.iloc[3:].reset_index(drop=True)
    pd.testing.assert_frame_equal(new.iloc[:, ~coded.ordered], X.iloc[members, ~coded.ordered].reset_index(drop=True))
    assert np.all(np.isin(lent[:, coded.ordered], members))
    np.testing.assert_array_equal(coded.codes[lent[:, 0], 0], coded.codes[members, 0])  # values within their bin


def test_a_bin_that_the_class_never_visits_is_lent_by_others():
    X, y = np.arange(20.0)[:, None], np.repeat([1, 0], [5, 15])
    coded = _columns.code(X, y, None, 4)
    lent = _columns.donors(coded, np.arange(5), np.array([[3]]), np.random.default_rng(0))
    assert y[lent[0, 0]] == 0
    assert coded.codes[lent[0, 0], 0] == 3


# ---- under


@pytest.mark.parametrize("n", [1, 4, 7, 13, 20])
@pytest.mark.parametrize("quantiles", [(0.5, 0.5), (0.0, 1.0), (0.1, 0.9), (0.0, 0.2), (0.95, 1.0), (0.3, 0.4)])
def test_central_is_the_window_around_the_quantiles(n, quantiles):
    scores = np.random.default_rng(3).normal(size=20)
    places = _likelihood.central(scores, n, quantiles, np.random.default_rng(0))
    rank = np.sort(stats.rankdata(scores)[places]).astype(int) - 1
    assert len(set(places)) == n
    low, high = int(np.floor(20 * quantiles[0])), int(np.ceil(20 * quantiles[1]))
    while high - low < n:  # one more, on the side whose turn it is, if there is one
        high, low = (high + 1, low) if ((high - low) % 2 == 0 and high < 20) or low == 0 else (high, low - 1)
    if high - low == n:
        assert abs(rank[0] - low) <= 1  # odd numbers put the last one on either side
        assert rank[-1] - rank[0] == n - 1
    else:
        assert low <= rank[0]
        assert rank[-1] < high


def test_edges_of_the_majority_are_dropped():
    X, y = binary()
    sampler = informed(mixing=0.0, under_range=(0.5, 0.5), n_states=2)
    X_new, y_new = sampler.fit_resample(X, y)
    assert Counter(y_new) == {0: 30, 1: 30}
    scores = -sampler.rbms_[1].free_energy(X[y == 0])
    kept = sampler.report_[0].kept
    np.testing.assert_allclose(sampler.report_[0].scores, scores)
    assert np.sum(scores < scores[kept].min()) == pytest.approx(85, abs=3)  # (200 - 30)/2 on each side, but for ties
    assert np.sum(scores > scores[kept].max()) == pytest.approx(85, abs=3)
    np.testing.assert_array_equal(X_new[y_new == 0], X[y == 0][kept])
    np.testing.assert_array_equal(X_new[y_new == 1], X[y == 1])
    assert sampler.report_[1].action == "kept"


# ---- over


def test_new_samples_score_like_the_minority():
    X, y = binary(60, 400)
    sampler = informed(mixing=1.0, over_range=(0.2, 0.9), n_states=2)
    X_new, y_new = sampler.fit_resample(X, y)
    report, rbm = sampler.report_[1], sampler.rbms_[1]
    low, high = np.quantile(-rbm.free_energy(X[y == 1]), [0.2, 0.9])
    assert (report.low, report.high) == pytest.approx((low, high))
    minority = X_new[y_new == 1]
    np.testing.assert_array_equal(minority[:60], X[y == 1])  # nothing of the minority is lost
    scores = -rbm.free_energy(minority[60:])
    assert scores.min() >= low - 1e-9
    assert scores.max() <= high + 1e-9
    inside = (report.generated_scores >= low) & (report.generated_scores <= high)
    assert inside.sum() == 340 == report.n_after - report.n_before
    assert report.n_rejected == np.sum(~inside) == report.n_generated - 340
    np.testing.assert_allclose(report.generated_scores[inside], scores)
    np.testing.assert_array_equal(X_new[y_new == 0], X[y == 0])


def test_new_samples_have_the_probabilities_of_the_model_within_the_range():
    X, y = binary(200, 4200, L=5)
    sampler = informed(mixing=1.0, over_range=(0.1, 0.95), steps=60, n_states=2, rbm=small_rbm(n_epochs=20))
    X_new, y_new = sampler.fit_resample(X, y)
    every = np.array(list(itertools.product([1], *[[0, 1]] * 4)))  # the constant column stays so
    score = -sampler.rbms_[1].free_energy(every)
    report = sampler.report_[1]
    p = np.where((score >= report.low - 1e-9) & (score <= report.high + 1e-9), np.exp(score - score.max()), 0.0)
    new = X_new[y_new == 1][200:]
    counts = np.array([np.sum(np.all(new == v, axis=1)) for v in every])
    assert counts[p == 0].sum() == 0
    assert stats.chisquare(counts[p > 0], len(new) * p[p > 0] / p.sum()).pvalue > 1e-3


def test_without_a_range_nothing_is_rejected():
    sampler = informed(mixing=1.0, over_range=None)
    sampler.fit_resample(*binary())
    assert sampler.report_[1].n_rejected == 0
    assert sampler.report_[1].n_generated == 170


def test_chains_start_in_turn():
    rng = np.random.default_rng(0)
    for size, n in ((5, 12), (5, 5), (7, 3), (4, 0)):
        times = np.bincount(_likelihood.in_turn(size, n, rng), minlength=size)
        assert times.sum() == n
        assert np.ptp(times) <= 1


def test_a_range_that_is_never_reached_is_an_error():
    X, y = np.zeros((100, 12), int), np.repeat([1, 0], [30, 70])
    X[30:] = 1
    X[0, :6] = X[30, :6] = 1 - X[30, :6]  # so that no column is constant
    rbm = small_rbm(n_hidden=1, n_states=2).fit(X[30:])  # it knows the other class: all chains leave for that one
    with pytest.raises(ValueError, match=r"sampling_strategy cannot be met: of 120 generated samples only [0-9] of 40"):
        informed(mixing=1.0, rbm=rbm, steps=20, over_range=(0.0, 0.0), max_tries=3).fit_resample(X, y)


# ---- sizes


@pytest.mark.parametrize("mixing", [0.0, 0.1, 0.37, 1.0])
def test_sizes_are_those_of_the_random_mixture(mixing):
    X, y = binary()
    sampler = informed(mixing=mixing)
    assert Counter(sampler.fit_resample(X, y)[1]) == Counter(RandomMixSampler(mixing=mixing).fit_resample(X, y)[1])
    assert sampler.sampling_strategy_ == sampler.fit(X, y).sampling_strategy_
    for report in sampler.report_.values():
        assert (
            report.n_after
            == sampler.sampling_strategy_[0]
            == report.kept.sum() + report.n_generated - report.n_rejected
        )


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("all", (115, 115)),
        ("minority", (200, 200)),
        ("not majority", (200, 200)),
        ("majority", (30, 30)),
        ("not minority", (30, 30)),
        (1.0, (115, 115)),
        (0.5, (130, 65)),  # between (60, 30) and (200, 100)
        (0.15, (200, 30)),
        ({1: 50}, (200, 50)),
        ({0: 77}, (77, 30)),
        ({0: 300, 1: 20}, (300, 20)),
        (lambda y: {0: 2 * np.sum(y == 1), 1: 40}, (60, 40)),
    ],
)
def test_sampling_strategy(strategy, expected):
    X, y = binary()
    _, y_new = informed(sampling_strategy=strategy).fit_resample(X, y)
    assert tuple(np.bincount(y_new)) == expected


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (0.1, "sampling_strategy cannot be met: a ratio of 0.1 needs fewer than the 30 samples"),
        ({1: 0}, "sampling_strategy cannot be met: class 1 must keep at least 1 sample, got 0"),
        ({0: 12.5}, "class 0 must keep at least 1 sample, got 12.5"),
        ({5: 10}, "sampling_strategy must be one of 0, 1, got 5"),
        ("both", "'sampling_strategy' parameter"),
        (1.5, "'sampling_strategy' parameter"),
    ],
)
def test_strategies_that_cannot_be_met(strategy, message):
    with pytest.raises(ValueError, match=message):
        informed(sampling_strategy=strategy).fit_resample(*binary())


def test_three_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], [10, 30, 50])
    X = (rng.random((90, 6)) < 0.5).astype(int)
    sampler = informed(mixing=0.8, over_range=(0, 1))
    assert Counter(sampler.fit_resample(X, y)[1]) == {"a": 42, "b": 42, "c": 42}
    assert set(sampler.rbms_) == {"a", "b"}  # c is scored by the machine of a
    with pytest.raises(ValueError, match=r"float for two classes only, got 0.5 for 3"):
        informed(sampling_strategy=0.5).fit_resample(X, y)
    with pytest.raises(ValueError, match="serves the smallest class only, but class 'b' needs a machine too"):
        informed(mixing=0.8, over_range=(0, 1), rbm=sampler.rbms_["a"]).fit_resample(X, y)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("auto", (30, 30, 30)),
        ("all", (30, 30, 30)),
        ("minority", (50, 30, 50)),  # only the smallest grows
        ("not majority", (50, 50, 50)),
        ("majority", (10, 30, 10)),  # only the largest shrinks
        ("not minority", (10, 10, 10)),
        ({"a": 20}, (20, 30, 50)),
        ({"b": 12, "c": 60}, (10, 12, 60)),
        (lambda y: dict.fromkeys(np.unique(y).tolist(), 25), (25, 25, 25)),
    ],
)
@pytest.mark.parametrize("make", [RandomMixSampler, lambda **given: informed(**given)], ids=["random", "informed"])
def test_sampling_strategy_of_three_classes(make, strategy, expected):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], [10, 30, 50])
    X = (rng.random((90, 6)) < 0.5).astype(int)
    sampler = make(mixing=0.5, sampling_strategy=strategy, random_state=0)
    counts = Counter(sampler.fit_resample(X, y)[1])
    assert tuple(counts[label] for label in "abc") == expected
    assert tuple(sampler.sampling_strategy_.values()) == expected


@pytest.mark.parametrize("strategy", ["not majority", "minority", {"a": 17, "b": 31}])
def test_sizes_are_those_of_imbalanced_learn_over(strategy):
    y = np.repeat(["a", "b", "c"], [10, 30, 50])
    X = np.arange(90.0)[:, None]
    ours = RandomMixSampler(sampling_strategy=strategy, random_state=0).fit_resample(X, y)[1]
    assert Counter(ours) == Counter(RandomOverSampler(sampling_strategy=strategy, random_state=0).fit_resample(X, y)[1])


@pytest.mark.parametrize("strategy", ["not minority", "majority", {"b": 17, "c": 31}])
def test_rows_are_those_of_imbalanced_learn_under(strategy):
    # the same rows for the same seed, as with two classes
    y = np.repeat(["a", "b", "c"], [10, 30, 50])
    X = np.arange(90.0)[:, None]
    ours, theirs = (
        RandomMixSampler(sampling_strategy=strategy, random_state=3),
        RandomUnderSampler(sampling_strategy=strategy, random_state=3),
    )
    ours.fit_resample(X, y), theirs.fit_resample(X, y)
    np.testing.assert_array_equal(ours.sample_indices_, theirs.sample_indices_)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (0.5, r"sampling_strategy can be a float for two classes only, got 0.5 for 3"),
        ({"d": 5}, "sampling_strategy must be one of 'a', 'b', 'c', got 'd'"),
        ({"a": 0}, "class 'a' must keep at least 1 sample, got 0"),
        ("some", "'sampling_strategy' parameter of RandomMixSampler must be"),
    ],
)
def test_strategies_of_the_random_mixture_that_cannot_be_met(strategy, message):
    y = np.repeat(["a", "b", "c"], [10, 30, 50])
    with pytest.raises(ValueError, match=message):
        RandomMixSampler(sampling_strategy=strategy).fit_resample(np.zeros((90, 2)), y)


def test_balanced_already():
    X, y = binary(40, 40)
    sampler = informed()
    X_new, _ = sampler.fit_resample(X, y)
    np.testing.assert_array_equal(np.sort(X_new.sum(axis=1)), np.sort(X.sum(axis=1)))
    assert sampler.rbms_ == {}
    with pytest.raises(ValueError, match="nothing to plot"):
        sampler.plot()


# ---- bad input


@pytest.mark.parametrize("sampler", MODELLED, **of_estimator)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_and_infinite_values_are_refused(sampler, value):
    X, y = imbalanced()
    X[3, 2] = value
    with pytest.raises(ValueError, match=r"no NaN and no infinity, got (NaN|infinity) in column 2"):
        clone(sampler).fit_resample(X, y)
    with pytest.raises(ValueError, match=r"no NaN and no infinity, got (NaN|infinity) in column 'c'"):
        clone(sampler).fit_resample(pd.DataFrame(X, columns=list("abcd")), y)


@pytest.mark.parametrize("column", ["colour", "word", "maybe"])
def test_missing_categories_are_refused(column):
    X, y = mixed()
    X.loc[5, column] = None
    with pytest.raises(ValueError, match=f"got NaN in column '{column}'"):
        informed().fit_resample(X, y)


def test_names_are_not_categories():
    X, y = binary(30, 300)
    frame = pd.DataFrame(X).assign(name=[f"sample {k}" for k in range(330)])
    frame.columns = frame.columns.astype(str)
    with pytest.raises(ValueError, match=r"at most 256 categories .* got 330 in column 'name'"):
        informed().fit_resample(frame, y)


@pytest.mark.parametrize("sampler", MODELLED, **of_estimator)
@pytest.mark.parametrize("bad", [2, -1, 0.5])
def test_states_outside_are_named(sampler, bad):
    X, y = binary()
    X = X.astype(float)
    X[7, 3] = bad
    with pytest.raises(ValueError, match=rf"X must hold states 0 … 1 \(n_states=2\), got {bad}"):
        clone(sampler).set_params(n_states=2).fit_resample(X, y)


@pytest.mark.parametrize("sampler", MODELLED, **of_estimator)
def test_one_class_and_one_sample_are_refused(sampler):
    with pytest.raises(ValueError, match="more than 1 class"):
        clone(sampler).fit_resample(np.zeros((5, 2)), np.ones(5, int))
    with pytest.raises(ValueError, match="at least 2 samples of a class to model it, got 1 of class 1"):
        clone(sampler).fit_resample(*binary(1, 20))


@pytest.mark.parametrize("sampler", MODELLED, **of_estimator)
def test_fewer_samples_than_chains(sampler):
    X, y = binary(3, 40)
    sampler = clone(sampler).set_params(rbm__n_chains=100, rbm__batch_size=100)
    assert Counter(sampler.fit_resample(X, y)[1]) in ({0: 22, 1: 22}, {0: 40, 1: 40})


@pytest.mark.parametrize("name", ["over_range", "under_range"])
@pytest.mark.parametrize("value", [(0.9, 0.1), (-0.1, 0.5), (0.0, 1.1), (0.5,)])
def test_bad_ranges_are_named(name, value):
    with pytest.raises(ValueError, match=f"{name} must be two quantiles"):
        informed(**{name: value}).fit_resample(*binary())


# ---- a machine that is handed in


def test_one_training_for_many_samplings():
    X, y = binary()
    first = informed(mixing=0.3).fit(X, y)
    first.fit_resample(X, y)
    rbm = first.rbms_[1]
    weights = rbm.weights_.copy()
    for mixing in (0.0, 0.5, 1.0):
        again = informed(mixing=mixing, rbm=rbm)
        again.fit_resample(X, y)
        assert again.rbms_[1] is rbm
        np.testing.assert_allclose(again.report_[1].scores, first.report_[1].scores)
    np.testing.assert_array_equal(rbm.weights_, weights)


def test_an_untrained_machine_is_left_alone():
    X, y = mixed()
    rbm = small_rbm()
    sampler = informed(rbm=rbm, over_range=(0, 1))
    sampler.fit_resample(X, y)
    assert not _likelihood.is_trained(rbm)
    assert sampler.rbms_["rare"].n_states == 10  # of the column with most


def test_a_machine_of_another_table_is_refused():
    X, y = binary()
    rbm = small_rbm().fit(X[:, :7])
    with pytest.raises(ValueError, match=r"rbm must have been trained on 12 columns .* got 7 columns and 2 states"):
        informed(rbm=rbm).fit_resample(X, y)


# ---- company they keep


@pytest.mark.parametrize("sampler", MODELLED, **of_estimator)
def test_tables_keep_their_types_and_values(sampler):
    X, y = mixed()
    sampler = clone(sampler)
    X_new, y_new = sampler.fit_resample(X, y)
    assert X_new.dtypes.to_dict() == X.dtypes.to_dict()
    assert list(X_new["colour"].cat.categories) == ["red", "green", "blue", "black"]
    assert X_new["grade"].cat.ordered
    assert y_new.name == "label"
    assert len(set(y_new.value_counts())) == 1
    new = X_new[(y_new == "rare").to_numpy()].iloc[40:]
    for name in X:  # a generated value is one that the column has, in the minority if its bin has any there
        assert set(new[name]) <= set(X[name])
    coded = _columns.code(X, y.to_numpy(), None, 10)
    visited = np.unique(coded.codes[y == "rare", 0])
    assert set(new["height"]) <= set(X["height"][(y == "rare") | ~np.isin(coded.codes[:, 0], visited)])
    assert len(new) == sampler.report_["rare"].n_after - 40


@pytest.mark.parametrize("sampler", MODELLED, **of_estimator)
def test_spins_and_sparse_give_the_same(sampler):
    X, y = binary()
    codes = clone(sampler).fit_resample(X, y)[0]
    np.testing.assert_array_equal(clone(sampler).fit_resample(2.0 * X - 1.0, y)[0], 2.0 * codes - 1.0)
    new = clone(sampler).fit_resample(sparse.csr_array(X), y)[0]
    assert isinstance(new, sparse.csr_array)
    np.testing.assert_array_equal(new.toarray(), codes)


@pytest.mark.parametrize("sampler", MODELLED, **of_estimator)
def test_seed_decides_for_models(sampler):
    X, y = binary()
    first, same, other = (clone(sampler).set_params(random_state=k).fit_resample(X, y)[0] for k in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert np.any(first != other)


@pytest.mark.parametrize("sampler", MODELLED, **of_estimator)
def test_model_samplers_in_pipeline_and_grid_search(sampler):
    X, y = binary(40, 200)
    pipeline = make_pipeline(clone(sampler), LogisticRegression())
    name = type(sampler).__name__.lower()
    grid = {f"{name}__steps": [1, 3], f"{name}__rbm__n_hidden": [2, 4]}
    search = GridSearchCV(pipeline, grid, scoring="balanced_accuracy", cv=3).fit(X, y)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_score_ > 0.8
    assert len(search.predict(X)) == len(y)


def test_a_frozen_machine_stays_trained_in_a_search():
    X, y = binary(40, 200)
    rbm = small_rbm().fit(X[y == 1])
    pipeline = make_pipeline(informed(rbm=FrozenEstimator(rbm), over_range=(0, 1)), LogisticRegression())
    search = GridSearchCV(pipeline, {"likelihoodinformedsampler__mixing": [0.0, 0.5, 1.0]}, cv=2).fit(X, y)
    used = search.best_estimator_[0].rbms_[1]
    np.testing.assert_array_equal(used.weights_, rbm.weights_)


def test_plot_shows_what_was_kept():
    mpl.use("Agg")
    X, y = binary()
    sampler = informed(mixing=0.5)
    with pytest.raises(Exception, match="not fitted"):
        sampler.plot()
    sampler.fit_resample(X, y)
    ax = sampler.plot()
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[0] == "0, data (115 of 200)"
    assert labels[1] == "1, data (30 of 30)"
    assert labels[2] == f"1, generated (85 of {sampler.report_[1].n_generated})"
    assert sampler.plot(ax) is ax
    mpl.pyplot.close("all")


# ---- RBM-SMOTE


def test_chains_of_rbm_smote_start_between_neighbours():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (8, 400))
    start = RBMSMOTE(k_neighbors=1)._between(codes, 4000, rng)
    distance = (codes[:, None] != codes[None]).sum(axis=2) + 1000 * np.eye(8, dtype=int)
    near = distance.argmin(axis=1)
    of_either = np.array([np.all((start == codes[k]) | (start == codes[near[k]]), axis=1) for k in range(8)])
    assert of_either.any(axis=0).all()  # every cell is of a sample or of its neighbour
    own = of_either.argmax(axis=0)
    differ = codes[own] != codes[near[own]]
    u = np.sum((start == codes[near[own]]) & differ, axis=1) / differ.sum(axis=1)
    assert stats.kstest(u, "uniform").pvalue > 1e-3  # mutual neighbours exchange u and 1 - u


def test_rbm_smote_adds_to_the_minority_only():
    X, y = binary()
    sampler = RBMSMOTE(rbm=small_rbm(), sampling_strategy=0.5, random_state=0)
    X_new, y_new = sampler.fit_resample(X, y)
    assert Counter(y_new) == {0: 200, 1: 100}
    np.testing.assert_array_equal(X_new[y_new == 0], X[y == 0])
    np.testing.assert_array_equal(X_new[y_new == 1][:30], X[y == 1])
    assert sampler.report_[1].n_generated == 70
    assert sampler.report_[0].action == "kept"
    with pytest.raises(ValueError, match="With over-sampling methods"):
        RBMSMOTE(rbm=small_rbm(), sampling_strategy={1: 10}).fit_resample(X, y)


@pytest.mark.parametrize("value", [0, 3, 2.5, "a"])
@pytest.mark.parametrize(
    "sampler", [LikelihoodInformedSampler(mixing=0.5, random_state=0), RBMSMOTE(random_state=0)], ids=["LIS", "SMOTE"]
)
def test_a_table_that_never_changes_stays_as_it_is(sampler, value):
    X = np.full((60, 4), value)
    X = pd.DataFrame(X) if isinstance(value, str) else X
    sampler = clone(sampler).set_params(rbm=rbal.RBM(3, n_epochs=3, progress=False))
    X_new, y_new = sampler.fit_resample(X, np.repeat([1, 0], [10, 50]))
    assert np.bincount(y_new).tolist() == ([30, 30] if hasattr(sampler, "mixing") else [50, 50])
    assert (np.asarray(X_new) == value).all()
    assert sampler.report_[1].n_rejected == 0
    if hasattr(sampler, "plot"):
        heights = [patch.get_height() for patch in sampler.plot().patches if hasattr(patch, "get_height")]
        assert 0.0 < max(heights) <= 1.0 + 1e-9
