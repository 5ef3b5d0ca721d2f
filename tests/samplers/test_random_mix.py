"""The sampler that mixes under- and oversampling at random."""

from collections import Counter

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
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import estimator_checks_generator as sklearn_checks

import rbal
from rbal.samplers import RandomMixSampler


def imbalanced(n_min=20, n_maj=107, L=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([1, 0], [n_min, n_maj]))
    return rng.normal(size=(y.size, L)) + y[:, None], y


# ---- the door: imbalanced-learn's and scikit-learn's own checks


@pytest.mark.parametrize("mixing", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    "check", [c for _, c in estimator_checks_generator(RandomMixSampler())], ids=lambda c: c.func.__name__
)
def test_imbalanced_learn_checks(check, mixing):
    check(RandomMixSampler(mixing=mixing, random_state=0))


@pytest.mark.parametrize(
    ("estimator", "check"),
    list(sklearn_checks(RandomMixSampler(random_state=0))),
    ids=lambda value: value.func.__name__ if hasattr(value, "func") else "",
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", [check_param_validation, check_dataframe_column_names_consistency])
def test_checks_imbalanced_learn_keeps_aside(check):
    check("RandomMixSampler", RandomMixSampler(random_state=0))


@pytest.mark.parametrize("mixing", [-0.1, 1.1, "half", None])
def test_bad_mixing_is_named(mixing):
    with pytest.raises(ValueError, match="'mixing' parameter of RandomMixSampler must be a float in the range"):
        RandomMixSampler(mixing=mixing).fit_resample(*imbalanced())


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="more than 1 class"):
        RandomMixSampler().fit_resample(np.zeros((5, 2)), np.ones(5, int))


# ---- what it draws


def test_mixing_zero_is_random_undersampling_sample_by_sample():
    X, y = imbalanced()
    ours, theirs = RandomMixSampler(mixing=0.0, random_state=3), RandomUnderSampler(random_state=3)
    ours.fit_resample(X, y), theirs.fit_resample(X, y)
    np.testing.assert_array_equal(ours.sample_indices_, theirs.sample_indices_)


def test_mixing_one_has_the_sizes_of_random_oversampling():
    X, y = imbalanced()
    assert Counter(RandomMixSampler(mixing=1.0).fit_resample(X, y)[1]) == Counter(
        RandomOverSampler().fit_resample(X, y)[1]
    )


@pytest.mark.parametrize("mixing", [0.0, 0.1, 0.37, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_sizes_and_multiplicities(mixing, seed):
    n_min, n_maj = 20, 107
    X, y = imbalanced(n_min, n_maj)
    sampler = RandomMixSampler(mixing=mixing, random_state=seed)
    X_new, y_new = sampler.fit_resample(X, y)
    n = round(n_min + mixing * (n_maj - n_min))
    assert Counter(y_new) == {0: n, 1: n} == sampler.sampling_strategy_
    times = np.bincount(sampler.sample_indices_, minlength=y.size)
    assert set(times[y == 1]) <= {n // n_min, n // n_min + 1}  # as equal as can be
    assert times[y == 1].mean() == n / n_min
    assert set(times[y == 0]) <= {0, 1}  # nothing of the majority is repeated
    np.testing.assert_array_equal(X_new, X[sampler.sample_indices_])
    np.testing.assert_array_equal(y_new, y[sampler.sample_indices_])


def test_every_sample_has_the_same_chance():
    X, y = imbalanced(10, 40)
    n, trials = 25, 400  # c = 2.5: each of the minority 2 or 3 times, 25 of the 40 kept
    times = np.mean(
        [
            np.bincount(s.sample_indices_, minlength=50)
            for s in (RandomMixSampler(mixing=0.5, random_state=k) for k in range(trials))
            if s.fit_resample(X, y)
        ],
        axis=0,
    )
    expected = np.where(y == 1, 2.5, n / 40)
    spread = np.where(y == 1, 0.5, np.sqrt(0.625 * 0.375)) / np.sqrt(trials)
    assert np.all(np.abs(times - expected) < 4.5 * spread)


def test_three_classes_meet_in_the_middle():
    y = np.repeat(["a", "b", "c"], [10, 30, 50])
    sampler = RandomMixSampler(mixing=0.5, random_state=0)
    _, y_new = sampler.fit_resample(np.arange(90.0)[:, None], y)
    assert Counter(y_new) == {"a": 30, "b": 30, "c": 30}
    assert set(np.arange(10, 40)) <= set(sampler.sample_indices_)  # b has its size already and is left alone


def test_seed_decides():
    X, y = imbalanced()
    draws = [RandomMixSampler(random_state=seed) for seed in (1, 1, 2)]
    for sampler in draws:
        sampler.fit_resample(X, y)
    np.testing.assert_array_equal(draws[0].sample_indices_, draws[1].sample_indices_)
    assert np.any(draws[0].sample_indices_ != draws[2].sample_indices_)


def test_fit_alone_says_the_sizes():
    assert RandomMixSampler(mixing=0.5).fit(*imbalanced(20, 100)).sampling_strategy_ == {0: 60, 1: 60}


# ---- company it keeps


def test_dataframes_stay_dataframes_with_mixed_columns():
    X, y = imbalanced()
    frame = pd.DataFrame({"x": X[:, 0], "n": np.arange(len(y)), "kind": pd.Categorical(np.where(y, "u", "v"))})
    labels = pd.Series(np.where(y, "rare", "common"), name="label")
    sampler = RandomMixSampler(random_state=0)
    X_new, y_new = sampler.fit_resample(frame, labels)
    assert isinstance(X_new, pd.DataFrame)
    assert isinstance(y_new, pd.Series)
    assert list(X_new.dtypes) == list(frame.dtypes)
    assert y_new.name == "label"
    np.testing.assert_array_equal(X_new["n"], sampler.sample_indices_)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array])
def test_sparse_stays_sparse(kind):
    X, y = imbalanced()
    X_new, _ = RandomMixSampler(random_state=0).fit_resample(kind(X), y)
    assert sparse.issparse(X_new)
    np.testing.assert_array_equal(X_new.toarray(), RandomMixSampler(random_state=0).fit_resample(X, y)[0])


def test_pipeline_and_grid_search():
    X, y = imbalanced(60, 400)
    pipeline = make_pipeline(RandomMixSampler(random_state=0), LogisticRegression())
    search = GridSearchCV(pipeline, {"randommixsampler__mixing": [0.0, 0.5, 1.0]}, scoring="balanced_accuracy", cv=3)
    search.fit(X, y)
    assert search.best_params_["randommixsampler__mixing"] in (0.0, 0.5, 1.0)
    assert search.best_score_ > 0.8
    assert len(search.predict(X)) == len(y)  # nothing is resampled when predicting


def test_repeated_rows_are_weights():
    X, y = imbalanced(30, 150, L=8)
    sampler = RandomMixSampler(mixing=0.6, random_state=0)
    X_new, y_new = sampler.fit_resample(X, y)
    repeated = rbal.LinearSVM(lam=0.5, tol=1e-8).fit(X_new, y_new)
    weight = np.bincount(sampler.sample_indices_, minlength=y.size)
    weighted = rbal.LinearSVM(lam=0.5, tol=1e-8).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(repeated.J_, weighted.J_, atol=1e-5)
    assert abs(repeated.objective_ - weighted.objective_) < 1e-6 * repeated.objective_


# ==== samplers with a model of the minority
