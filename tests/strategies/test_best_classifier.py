"""The choice of a whole classifier from Gram matrices, against training all of them."""

import numpy as np
import pytest
from sklearn.svm import SVC

import rbal
from rbal.metrics import evaluate
from rbal.strategies import REMEDIES, best_classifier
from rbal.strategies.internal import bias_is_held

C = np.geomspace(1e-2, 1e2, 5)


def spheres(n_pos, n_neg, seed):
    rng = np.random.default_rng(seed)
    y = np.repeat([1, -1], [n_pos, n_neg])
    return rng.normal(size=(n_pos + n_neg, 15)) * np.where(y > 0, 1.35, 1.0)[:, None], y


X, Y = spheres(60, 240, 1)
KERNELS = {"linear": {}, "rbf": {"gamma": [0.003, 0.03, 0.3]}}


@pytest.fixture(scope="module")
def best():
    return best_classifier(X, Y, kernels=KERNELS, C=C)


def test_the_choice_is_nearly_as_good_as_that_of_the_test_set(best):
    T, y_test = spheres(2000, 2000, 2)
    found = {}
    for gamma in (0.003, 0.03, 0.3):
        for c in C:
            machine = SVC(C=c, gamma=gamma, class_weight="balanced").fit(X, Y)
            found[gamma, c] = evaluate(machine.decision_function(T), y_test, names=["ba"])["ba"]
    assert best.kernel.kernel.name == "rbf"
    machine = best.estimator(random_state=0).fit(X, Y)
    assert evaluate(machine.decision_function(T), y_test, names=["ba"])["ba"] > max(found.values()) - 0.03


def test_the_table_has_all_candidates(best):
    assert len(best.table) == 4 * len(C) * len(REMEDIES)
    assert best.table["value"].iloc[0] == best.value == best.table["value"].max()
    row = best.table[(best.table["remedy"] == "class weights") & (best.table["kernel"] == "linear")].iloc[0]
    mom = rbal.Moments.from_kernel(X @ X.T, Y)
    same = rbal.solve(mom, mom.alpha_pos, mom.alpha_neg, model="svm", lam=mom.ridge(row["C"]), weight_pos=2.5,
                      weight_neg=0.625)  # fmt: skip
    assert row["value"] == pytest.approx(same.metrics.ba(), abs=1e-7)


@pytest.mark.parametrize("remedy", list(REMEDIES))
def test_every_remedy_has_an_estimator(remedy):
    names = np.where(Y > 0, "few", "many")
    best = best_classifier(X, names, kernels={"rbf": {"gamma": ["scale"]}, "ntk": {}}, C=1.0, remedies=[remedy])
    machine = best.estimator(random_state=0).fit(X, names)
    assert set(machine.predict(X)) <= {"few", "many"}
    last = machine if isinstance(machine, SVC) else machine[-1]
    assert last.C == 1.0
    if remedy == "class weights":
        assert last.class_weight == {"few": 2.5, "many": 0.625}
    assert isinstance(machine, SVC) == (not REMEDIES[remedy].samples)


def test_an_error_is_made_small():
    best = best_classifier(X, Y, "gen_error", kernels={"rbf": {"gamma": [0.03]}}, C=C, remedies=["as is"])
    assert best.value == best.table["value"].min()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"C": []}, ValueError, "C must hold at least one candidate"),
        ({"remedies": []}, ValueError, "remedies must hold at least one candidate"),
        ({"C": 0.0}, ValueError, "C must be >= 1e-100"),
        ({"kernels": ["rbf"]}, TypeError, "kernels must be a dict"),
        ({"kernels": {"rbf": {"gamma": [-1.0]}}}, ValueError, "gamma must be > 0, got -1"),
        ({"kernels": {"cubic": {}}}, ValueError, "kernel must be one of .*got 'cubic'"),
        ({"remedies": ["luck"]}, ValueError, "remedies must be one of .*got 'luck'"),
        ({"metric": "luck"}, ValueError, "metric must be one of .*got 'luck'"),
        ({"positive": 7}, ValueError, "positive must be one of the labels"),
    ],
)
def test_bad_input(options, error, message):
    with pytest.raises(error, match=message):
        best_classifier(X, Y, **options)


# ---- a bias that few samples hold


def shifted(n_pos, n_neg, seed, D=40):
    rng = np.random.default_rng(seed)
    y = np.repeat([1, -1], [n_pos, n_neg])
    return rng.normal(size=(y.size, D)) + 2.0 / np.sqrt(D) * (y > 0)[:, None], y


def test_a_bias_that_nothing_holds_is_not_chosen():
    """With balanced weights and all rows within the margin, the theory has a bias, and the machine has not."""
    for seed in range(3):
        X, y = shifted(40, 400, seed)
        best = best_classifier(X, y, kernels={"linear": {}}, C=[1e-4, 1.0], remedies=["class weights"])
        loose = best.table.iloc[1]
        assert best.C == 1.0
        assert best.table["held"].tolist() == [True, False]
        assert loose["value"] > best.value + 0.02  # it would be the best
        # every bias between these two is optimal: scores of the innermost rows of each class, less the margin
        machine = SVC(kernel="linear", C=1e-4, class_weight="balanced").fit(X, y)
        scores = machine.decision_function(X) - machine.intercept_[0]
        room = 2.0 - scores[y > 0].max() + scores[y < 0].min()
        assert room > 1.0
        alone = best_classifier(X, y, kernels={"linear": {}}, C=1e-4, remedies=["class weights"])
        assert alone.C == 1e-4  # where there is no other


def test_a_bias_is_held_by_enough_samples_or_by_a_smooth_loss():
    share = np.array([0.0, 0.049, 0.051, np.nan])
    assert bias_is_held(share).tolist() == [False, False, True, False]
    assert bias_is_held(share, kinked=False).all()


def test_values_without_the_name_of_a_parameter_are_refused():
    with pytest.raises(TypeError, match=r"kernels\['rbf'\] must be a dict from parameters to lists of values, got \[1"):
        best_classifier(X, Y, kernels={"rbf": [1.0]})
