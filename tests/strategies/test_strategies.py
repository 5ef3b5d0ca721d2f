import inspect

import numpy as np
import pytest
from numpydoc.docscrape import FunctionDoc

import rbal
from rbal import strategies
from rbal.datasets import synthetic
from rbal.strategies import balanced, best_mixing, compare, imbalanced, mix, window

CLASSES = rbal.Moments.ising(m=0.4, delta=np.linspace(-0.5, 2.0, 20))
NAMES = ("q", "r", "b", "x", "k_hat", "train_loss", "train_error")
SVM = {"model": "svm", "lam": 0.1}


def assert_same(left, right, names=NAMES, sign_b=1.0):
    for name in names:
        expected = getattr(right, name) * (sign_b if name == "b" else 1.0)
        np.testing.assert_allclose(getattr(left, name), expected, rtol=1e-7, atol=1e-9, err_msg=name)


# ---- protocols


def test_mixing_zero_is_undersampling_and_one_is_oversampling():
    assert_same(mix(CLASSES, 0.5, 3.0, 0.0, 0.5), rbal.solve(CLASSES, 0.5, 0.5, 0.5))
    assert_same(mix(CLASSES, 0.5, 3.0, 1.0, 0.5), rbal.solve(CLASSES, 0.5, 3.0, 0.5, weight_pos=6.0))


@pytest.mark.parametrize("options", [{"kappa": 0.5}, SVM, {**SVM, "loss": "logistic"}])
def test_mixing_is_the_papers(options):
    pos, neg, mixing = 0.5, 3.0, 0.3
    c = 1 + mixing * (neg - pos) / pos
    assert pos / (neg - pos) * (c - 1) == pytest.approx(mixing)  # the printed definition
    expected = rbal.solve(CLASSES, pos, c * pos, weight_pos=c, **options)
    assert_same(mix(CLASSES, pos, neg, mixing, **options), expected)
    assert_same(balanced(CLASSES, pos, neg, c, **options), expected)


@pytest.mark.parametrize("protocol", [balanced, imbalanced])
def test_either_class_may_be_the_minority(protocol):
    # the covariance is shared, so that exchanging the classes only turns the bias around
    assert_same(protocol(CLASSES, 3.0, 0.5, 2.5, 0.5), protocol(CLASSES, 0.5, 3.0, 2.5, 0.5), sign_b=-1.0)
    assert_same(mix(CLASSES, 3.0, 0.5, 0.4, 0.5), mix(CLASSES, 0.5, 3.0, 0.4, 0.5), sign_b=-1.0)


def test_protocols_meet_where_all_of_the_majority_is_kept():
    assert_same(balanced(CLASSES, 0.5, 3.0, 6.0, 0.5), imbalanced(CLASSES, 0.5, 3.0, 6.0, 0.5))
    assert_same(imbalanced(CLASSES, 0.5, 3.0, 1.0, 0.5), rbal.solve(CLASSES, 0.5, 3.0, 0.5))


def test_arrays_broadcast_like_single_points():
    pos, mixing, kappa = np.array([0.5, 4.0])[:, None, None], np.array([0.0, 0.7])[:, None], np.array([0.5, 1.0, 2.0])
    sols = mix(CLASSES, pos, 2.0, mixing, kappa)
    assert sols.q.shape == (2, 2, 3)
    assert_same(sols[1, 1, 0], mix(CLASSES, 4.0, 2.0, 0.7, 0.5))
    assert isinstance(mix(CLASSES, 0.5, 2.0, 0.5, 0.5).q, float)


def test_equal_classes_need_no_remedy():
    assert_same(mix(CLASSES, 1.0, 1.0, np.array([0.0, 0.5, 1.0]), 0.5)[1], rbal.solve(CLASSES, 1.0, 1.0, 0.5))
    best = best_mixing(CLASSES, 1.0, 1.0, 0.5)
    assert (best.c, best.low, best.high) == (1.0, 0.0, 1.0)


# ---- the best mixture


def brute(metric, pos, neg, n=1001, **options):
    mixing = np.linspace(0, 1, n)
    values = metric(mix(CLASSES, pos, neg, mixing, **options).metrics)
    return mixing, values


@pytest.mark.parametrize(
    ("pos", "neg", "options"),
    [
        (0.1, 5.0, {"kappa": 0.5}),
        (0.15, 2.0, SVM),
        (1.0, 4.0, {"kappa": 0.5}),
        (0.12, 3.0, {**SVM, "loss": "logistic"}),
    ],
)
def test_best_mixing_against_brute_force(pos, neg, options):
    tolerance = 5e-4
    mixing, values = brute(lambda m: m.ba(), pos, neg, **options)
    best = best_mixing(CLASSES, pos, neg, tolerance=tolerance, **options)
    assert best.value >= values.max() - 1e-9
    assert best.mixing == pytest.approx(mixing[np.argmax(values)], abs=5e-3)
    good = mixing[values >= values.max() - tolerance]
    assert (best.low, best.high) == pytest.approx((good[0], good[-1]), abs=2e-3)
    assert best.low <= best.mixing <= best.high
    assert_same(best.solution, mix(CLASSES, pos, neg, best.mixing, **options))


def test_best_mixing_reports_the_edge():
    mild, severe = best_mixing(CLASSES, 1.0, 4.0, 0.5), best_mixing(CLASSES, 0.1, 5.0, 0.5)
    assert (mild.edge, mild.mixing, mild.c) == ("over", 1.0, 4.0)
    assert severe.edge == "inside"
    recall = best_mixing(CLASSES, 0.5, 5.0, 0.5, metric="tpr")
    assert (recall.edge, recall.mixing, recall.c) == ("under", 0.0, 1.0)


def test_best_multiplicity_does_not_depend_on_the_size_of_the_majority():
    best = best_mixing(CLASSES, 0.1, np.array([3.0, 6.0, 12.0]), 0.5)
    assert np.all(best.edge == "inside")
    np.testing.assert_allclose(
        best.c, best.c[0], rtol=1e-2
    )  # the top is flat: its height is known better than its place
    np.testing.assert_allclose(best.value, best.value[0], atol=1e-7)


def test_best_mixing_of_arrays_is_that_of_each():
    pos, lam = np.array([0.1, 1.0])[:, None], np.array([0.01, 1.0])
    many = best_mixing(CLASSES, pos, 4.0, model="svm", lam=lam)
    assert many.mixing.shape == many.edge.shape == (2, 2)
    for i, j in np.ndindex(2, 2):
        one = best_mixing(CLASSES, pos[i, 0], 4.0, model="svm", lam=lam[j])
        assert one.edge == many.edge[i, j]
        assert one.value == pytest.approx(many.value[i, j], abs=1e-9)
        assert (one.low, one.high) == pytest.approx((many.low[i, j], many.high[i, j]), abs=1e-4)


def test_losses_are_minimised_and_functions_maximised():
    by_name = best_mixing(CLASSES, 0.5, 5.0, 0.5, metric="gen_error", phi_pos=0.5)
    by_function = best_mixing(CLASSES, 0.5, 5.0, 0.5, metric=lambda m: -m.gen_error(0.5))
    assert by_name.mixing == by_function.mixing
    assert by_name.value == -by_function.value
    assert by_name.value == pytest.approx(1 - best_mixing(CLASSES, 0.5, 5.0, 0.5).value)


def test_default_test_set_is_as_imbalanced_as_the_data():
    default, given = (best_mixing(CLASSES, 0.5, 4.5, 0.5, metric="f1", phi_pos=phi) for phi in (None, 0.1))
    assert default.value == given.value
    assert default.value != best_mixing(CLASSES, 0.5, 4.5, 0.5, metric="f1", phi_pos=0.5).value


@pytest.mark.parametrize(("alpha", "kappa"), [(0.5, 0.5), (2.0, 0.5), (0.1, 0.5), (1.0, 3.0)])
def test_slope_at_undersampling_is_half_of_what_more_balanced_data_brings(alpha, kappa):
    # class exchange and the free scale of the weights leave only the new negatives, and those are half of new data
    h = 1e-4

    def ba_mixed(c):
        return balanced(CLASSES, alpha, 50 * alpha, c, kappa).metrics.ba()

    def ba_balanced(t):
        return rbal.solve(CLASSES, alpha * np.exp(t), alpha * np.exp(t), kappa).metrics.ba()

    slope = (-1.5 * ba_mixed(1.0) + 2.0 * ba_mixed(1.0 + h) - 0.5 * ba_mixed(1.0 + 2 * h)) / h
    more_data = (ba_balanced(h) - ba_balanced(-h)) / (2 * h)
    assert slope == pytest.approx(0.5 * more_data, rel=1e-3)
    assert slope > 0


def test_undersampling_wins_where_more_data_hurts():
    # square loss with almost no ridge, short of the interpolation peak at one sample a feature
    best = best_mixing(CLASSES, 0.42, 0.55, model="svm", loss="square", lam=1e-4)
    assert best.edge == "under"


# ---- the table


@pytest.mark.parametrize(("pos", "neg"), [(0.5, 5.0), (5.0, 0.5)])
def test_rows_of_the_table(pos, neg):
    table = compare(CLASSES, pos, neg, 0.5)
    assert list(table.index.get_level_values(0)[::2]) == [
        "as is", "undersampling", "oversampling", "best mix", "class weights",
    ]  # fmt: skip
    trained = table.xs("trained", level="threshold")
    m = rbal.solve(CLASSES, pos, neg, 0.5).metrics
    assert trained.loc["as is", "ba"] == pytest.approx(m.ba())
    assert trained.loc["undersampling", "ba"] == pytest.approx(mix(CLASSES, pos, neg, 0.0, 0.5).metrics.ba())
    assert trained.loc["oversampling", "ba"] == pytest.approx(mix(CLASSES, pos, neg, 1.0, 0.5).metrics.ba())
    assert trained.loc["best mix", "ba"] == pytest.approx(best_mixing(CLASSES, pos, neg, 0.5).value, abs=1e-8)
    moved = table.xs("moved", level="threshold")
    assert moved.loc["as is", "ba"] == pytest.approx(m.best_ba())
    assert np.all(moved["ba"] >= trained["ba"] - 1e-12)
    np.testing.assert_allclose(moved["auc"].drop("best mix"), trained["auc"].drop("best mix"))  # no threshold in AUC
    np.testing.assert_allclose(moved["tpr"], moved["tnr"])


def test_class_weights_are_oversampling_to_the_perceptron_and_a_stronger_ridge_to_the_svm():
    names = ["q", "r", "b", "ba"]
    perceptron = compare(CLASSES, 0.5, 5.0, 0.5)
    np.testing.assert_allclose(
        perceptron.loc["class weights", names].to_numpy(float),
        perceptron.loc["oversampling", names].to_numpy(float),
        atol=1e-8,
    )
    svm = compare(CLASSES, 0.5, 5.0, **SVM).loc[("class weights", "trained")]
    # weights of sum 5.5 in place of 10
    same = mix(CLASSES, 0.5, 5.0, 1.0, model="svm", lam=0.1 * 10 / 5.5)
    assert svm["ba"] == pytest.approx(same.metrics.ba(), abs=1e-8)
    assert svm["q"] == pytest.approx(same.q, rel=1e-7)


def test_table_of_another_metric():
    table = compare(CLASSES, 0.5, 5.0, 0.5, metric="gen_error", phi_pos=0.5)
    np.testing.assert_allclose(table["gen_error"], 1 - table["ba"])
    best = table.loc[("best mix", "trained"), "gen_error"]
    assert best <= table["gen_error"].xs("trained", level=1)[["undersampling", "oversampling"]].min() + 1e-9


def test_table_against_trained_classifiers():
    L, trials = CLASSES.L, 30
    rng = np.random.default_rng(5)
    spins = synthetic.ising(m=0.4, delta=CLASSES.delta)
    table = compare(CLASSES, 2.0, 10.0, kappa=1.0)["ba"]
    trained = []
    for _ in range(trials):
        X, y = spins.sample(2 * L, 10 * L, rng)
        weights = (None, np.where(y > 0, 5.0, 1.0))
        fits = [rbal.SphericalPerceptron(kappa=1.0).fit(X, y, sample_weight=w) for w in weights]
        scores = [rbal.Metrics(*fit.order_parameters(CLASSES)) for fit in fits]
        trained.append([scores[0].ba(), scores[0].best_ba(), scores[1].ba()])
    mean, error = np.mean(trained, axis=0), np.std(trained, axis=0) / np.sqrt(trials)
    expected = [table["as is", "trained"], table["as is", "moved"], table["oversampling", "trained"]]
    assert np.all(np.abs(mean - expected) < 4 * error + 0.5 / L)  # finite size, O(1/L)


# ---- window


@pytest.mark.parametrize("fixed", ["positives", "total"])
@pytest.mark.parametrize("options", [{"kappa": 0.5}, {"kappa": 6.0}, {"model": "svm", "lam": 1.0}])
def test_half_is_lost_at_the_edges_of_the_window(fixed, options):
    found = window(CLASSES, 2.0, fixed=fixed, **options)
    peak = rbal.solve(CLASSES, 2.0, 2.0, **options).metrics.ba() - 0.5
    assert 0.0 < found.low < 0.5 < found.high < 1.0
    for share in found:
        pos = 2.0 if fixed == "positives" else 4.0 * (1.0 - share)
        at_edge = rbal.solve(CLASSES, pos, pos * share / (1.0 - share), **options).metrics.ba() - 0.5
        assert at_edge == pytest.approx(0.5 * peak, rel=1e-3)
    assert found.width == found.high - found.low
    if fixed == "total":
        assert found.low + found.high == pytest.approx(1.0, abs=1e-9)


def test_windows_of_arrays_are_those_of_single_points():
    alpha, kappa = np.array([[1.0], [4.0]]), np.array([0.5, 1.0, 2.0])
    found = window(CLASSES, alpha, kappa)
    assert found.width.shape == (2, 3)
    assert (np.diff(found.width, axis=1) < 0.0).all()  # a larger margin tolerates less
    one = window(CLASSES, 4.0, 2.0)
    assert isinstance(one.low, float)
    assert (found.low[1, 2], found.high[1, 2]) == pytest.approx(one, rel=1e-6)


def test_no_window_where_there_is_no_telling():
    nothing = rbal.Moments.real(np.zeros(4), np.zeros(4), np.ones(4))
    assert np.isnan(window(nothing, 2.0, 0.5)).all()
    assert np.isnan(window(CLASSES, 2.0, 30.0)).all()  # closed to rounding


# ---- bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mix(CLASSES, 0.5, 5.0, 1.5, 0.5), "mixing must be >= 0 and <= 1, got 1.5"),
        (lambda: mix(CLASSES, -0.5, 5.0, 0.5, 0.5), "alpha_pos must be > 0, got -0.5"),
        (lambda: mix(CLASSES, 0.5, np.array([5.0, 0.0]), 0.5, 0.5), "alpha_neg must be > 0, got 0"),
        (lambda: balanced(CLASSES, 0.5, 5.0, 0.9, 0.5), "c must be >= 1, got 0.9"),
        (lambda: imbalanced(CLASSES, 0.5, 5.0, 11.0, 0.5), "c must be <= the ratio of the class sizes, 10, got 11"),
        (lambda: best_mixing(CLASSES, 0.5, 5.0, 0.5, metric="roc"), "metric must be one of 'tpr'"),
        (lambda: best_mixing(CLASSES, 0.5, 5.0, 0.5, metric="f1", phi_pos=2.0), "phi_pos must be >= 0 and <= 1, got 2"),
        (lambda: best_mixing(CLASSES, 0.5, 5.0, 0.5, tolerance=-1.0), "tolerance must be >= 0, got -1"),
        (lambda: best_mixing(CLASSES, [0.5, 1.0], np.ones(3), 0.5), "arrays must broadcast"),
        (lambda: compare(CLASSES, [0.5, 1.0], 5.0, 0.5), "alpha_pos must be a number"),
        (lambda: compare(CLASSES, 0.5, 5.0, model="svm"), "lam must be given"),
        (lambda: window(CLASSES, 0.0, 0.5), "alpha must be > 0, got 0"),
        (lambda: window(CLASSES, 2.0, 0.5, fixed="negatives"), "fixed must be one of 'positives', 'total'"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("function", [mix, balanced, imbalanced, best_mixing, compare, window])
def test_docstrings_document_the_parameters(function):
    documented = [n.strip() for p in FunctionDoc(function)["Parameters"] for n in p.name.split(",")]
    signature = [str(p) if p.kind is p.VAR_KEYWORD else n for n, p in inspect.signature(function).parameters.items()]
    assert sorted(documented) == sorted(signature)


def test_a_record_stands_for_its_name():
    by_name, by_record = (best_mixing(CLASSES, 0.5, 5.0, 0.5, metric=m) for m in ("f1", rbal.metrics.METRICS["f1"]))
    assert by_record[:6] == by_name[:6]
    dear = compare(CLASSES, 0.5, 5.0, 0.5, metric=rbal.metrics.cost(10.0, 1.0))
    np.testing.assert_allclose(dear["cost"], (10.0 * (1.0 - dear["tpr"]) + 10.0 * (1.0 - dear["tnr"])) / 11.0)
    trained = dear["cost"].xs("trained", level=1)
    assert trained["best mix"] <= trained[["undersampling", "oversampling"]].min() + 1e-9  # less is better


# ---- records of remedies


@pytest.mark.parametrize("sizes", [(0.5, 5.0), (5.0, 0.5), (2.0, 2.0)])
def test_every_remedy_but_doing_nothing_balances_the_classes(sizes):
    for name, remedy in strategies.REMEDIES.items():
        design = remedy.design(*sizes, c=1.0)
        balanced = design.n_pos * design.weight_pos == pytest.approx(design.n_neg * design.weight_neg)
        assert balanced == (name != "as is" or sizes == (2.0, 2.0))
        assert design.n_pos <= sizes[0] * (1 + 1e-12)
        assert design.n_neg <= sizes[1] * (1 + 1e-12)
    assert strategies.REMEDIES["class weights"].design(1.0, 3.0) == (1.0, 3.0, 2.0, 2.0 / 3.0)


def test_remedies_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="remedy 'both' must have weights or a mixing, got both"):
        strategies.Remedy("both", "Do both", lambda pos, neg: (1.0, 1.0), mixing=0.5)
    with pytest.raises(ValueError, match="mixing must be >= 0 and <= 1, got 2"):
        strategies.Remedy("more", "Do more", mixing=2.0)
    with pytest.raises(ValueError, match="name must be new, got 'as is', which is taken"):
        strategies.register(strategies.REMEDIES["as is"])
    with pytest.raises(TypeError, match="record must be a Remedy, got str"):
        strategies.register("as is")


def test_table_of_a_mixture_of_two_clusters_is_that_of_the_classes():
    shift = np.array([0.6, 0.0, 0.0])
    mixture = rbal.Mixture.gaussian(0.5 * np.stack([shift, -shift]), np.ones(3), [1, -1])
    alike = rbal.Moments.real(0.5 * shift, -0.5 * shift, np.ones(3))
    found, expected = (compare(m, 0.5, 5.0, kappa=0.5) for m in (mixture, alike))
    np.testing.assert_allclose(found["ba"], expected["ba"], rtol=1e-4)  # the best mixing is searched on a flat top
    rows = [row for row in found.index if row[0] != "best mix"]
    np.testing.assert_allclose(found.loc[rows], expected.loc[rows], rtol=1e-7, atol=1e-9)


def test_table_of_a_mixture_has_the_best_threshold():
    means = np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    mixture = rbal.Mixture.gaussian(means, [[1.0, 0.5, 1.0], [0.5, 1.0, 1.0], [1.0, 1.0, 2.0]], [1, 1, -1])
    table = compare(mixture, 0.5, 2.0, model="svm", lam=1.0)
    best = rbal.solve(mixture, 0.5, 2.0, model="svm", lam=1.0).metrics
    assert table.loc[("as is", "moved"), "ba"] == pytest.approx(best.best_ba(), rel=1e-12)
    assert table.loc[("as is", "trained"), "ba"] == pytest.approx(best.ba(), rel=1e-12)


@pytest.mark.parametrize("function", [best_mixing, compare])
def test_many_failures_are_one_warning(function):
    with pytest.warns(rbal.ConvergenceWarning, match="did not converge.*and so in [0-9]+ more solutions") as told:
        function(CLASSES, 0.5, 5.0, 0.5, tol=1e-14, max_iter=1)
    assert len(told) == 1
    assert told[0].filename == __file__
