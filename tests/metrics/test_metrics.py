from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import norm
from sklearn import metrics as sk

import rbal

# Scores N(y r/2 - b, q): (q, r, b), share of positives, threshold
SCORES = [
    ((1.0, 2.0, 0.5), 0.1, 0.0),
    ((0.84, 0.68, 0.5), 0.1, 0.2),
    ((2.5, 3.0, -1.0), 0.02, 0.5),
    ((0.3, 1.5, -0.2), 0.7, -0.1),
]
OF_SHARE = ("acc", "gen_error", "ppv", "npv", "fdr", "fomr", "f1", "fm", "mcc")
OF_THRESHOLD = ("tpr", "fpr", "tnr", "fnr", "ba")


def value(metrics, name, phi, threshold):
    method = getattr(metrics, name)
    return method(threshold) if name in OF_THRESHOLD else method(phi, threshold)


# ---- against draws scored by scikit-learn

BATCHES, BATCH = 50, 20_000  # 10⁶ draws, as batches that give the standard error

# Truth and prediction of the four cells (TN, FP, FN, TP); scikit-learn takes their counts as sample weights.
TRUTH, GUESS = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])


def by_cells(score, **options):
    return lambda cells: score(TRUTH, GUESS, sample_weight=cells, **options)


SKLEARN = {
    "tpr": by_cells(sk.recall_score),
    "tnr": by_cells(sk.recall_score, pos_label=0),
    "fpr": lambda cells: 1 - by_cells(sk.recall_score, pos_label=0)(cells),
    "fnr": lambda cells: 1 - by_cells(sk.recall_score)(cells),
    "ppv": by_cells(sk.precision_score),
    "npv": by_cells(sk.precision_score, pos_label=0),
    "fdr": lambda cells: 1 - by_cells(sk.precision_score)(cells),
    "fomr": lambda cells: 1 - by_cells(sk.precision_score, pos_label=0)(cells),
    "acc": by_cells(sk.accuracy_score),
    "gen_error": by_cells(sk.zero_one_loss),
    "ba": by_cells(sk.balanced_accuracy_score),
    "f1": by_cells(sk.f1_score),
    "mcc": by_cells(sk.matthews_corrcoef),
    # errata 5: √(PPV·TPR), without a factor 2
    "fm": lambda cells: np.sqrt(by_cells(sk.precision_score)(cells) * by_cells(sk.recall_score)(cells)),
}


@pytest.fixture(scope="module", params=SCORES, ids=str)
def draws(request):
    (q, r, b), phi, threshold = request.param
    rng = np.random.default_rng(SCORES.index(request.param))
    n_pos = round(phi * BATCH)
    y = np.repeat([1, 0], [n_pos, BATCH - n_pos])
    score = np.where(y, r / 2, -r / 2) - b + np.sqrt(q) * rng.normal(size=(BATCHES, BATCH))
    return rbal.Metrics(q, r, b), phi, threshold, y, score


def assert_within_4_standard_errors(theory, whole, batches):
    error = np.std(batches, ddof=1) / np.sqrt(len(batches))
    assert error > 0
    assert abs(whole - theory) < 4 * error


def test_confusion_matrix_metrics_against_draws(draws):
    metrics, phi, threshold, y, score = draws
    cells = np.array([np.bincount(2 * y + (s > threshold), minlength=4) for s in score])
    for name, scored in SKLEARN.items():
        theory = value(metrics, name, phi, threshold)
        assert_within_4_standard_errors(theory, scored(cells.sum(axis=0)), [scored(c) for c in cells])


@pytest.mark.parametrize(("name", "score"), [("auc", sk.roc_auc_score), ("auprc", sk.average_precision_score)])
def test_areas_against_draws(draws, name, score):
    metrics, phi, _, y, scores = draws
    theory = metrics.auc() if name == "auc" else metrics.auprc(phi)
    whole = score(np.tile(y, BATCHES), scores.ravel())
    assert_within_4_standard_errors(theory, whole, [score(y, s) for s in scores])


@pytest.mark.parametrize("kappa", [0.0, 0.7])
def test_gen_loss_against_draws(draws, kappa):
    metrics, phi, _, y, scores = draws
    losses = np.maximum(0, kappa - (2 * y - 1) * scores).mean(axis=1)
    assert_within_4_standard_errors(metrics.gen_loss(phi, kappa), losses.mean(), losses)


# ---- areas and losses against quadrature of their definitions


def auprc_by_quadrature(s, phi):
    """∫ PPV d(TPR) for classes s deviations apart: the score of a positive is z, that of a negative z - s."""

    def integrand(z):
        log_odds = norm.logsf(z) + np.log(phi) - norm.logsf(z + s) - np.log1p(-phi)
        return norm.pdf(z) / (1 + np.exp(-log_odds))

    # precision rises from 0 to 1 over a width 1/s around here: cut the integral into pieces that see it
    step = (np.log1p(-phi) - np.log(phi)) / max(s, 1) - s / 2 + np.arange(-30, 31, 5) / max(s, 1)
    cuts = np.unique(np.clip(np.r_[-10, -5, 0, 5, step, 10], -10, 10))
    pieces = [quad(integrand, a, b, epsabs=1e-15, epsrel=1e-13)[0] for a, b in pairwise(cuts)]
    return np.sum(pieces)


@pytest.mark.parametrize("phi", [1e-100, 1e-12, 1e-6, 0.01, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("s", [0.01, 0.5, 2.0, 5.0, 6.5, 10.0, 20.0, 45.0, 300.0])
def test_auprc_against_quadrature(s, phi):
    q = 1.7
    np.testing.assert_allclose(rbal.Metrics(q, s * np.sqrt(q), 0.3).auprc(phi), auprc_by_quadrature(s, phi), atol=1e-10)


def test_auprc_relative_to_a_tiny_share():
    # at φ = 1e-6 an absolute error would hide behind the answer
    np.testing.assert_allclose(rbal.Metrics(1.0, 1.0, 0.0).auprc(1e-6), auprc_by_quadrature(1.0, 1e-6), rtol=1e-9)


@pytest.mark.parametrize("phi", [0.0, 1e-6, 0.3, 1.0])
def test_auprc_of_no_separation_is_the_share(phi):
    np.testing.assert_allclose(rbal.Metrics(1.0, 0.0, 0.4).auprc(phi), phi, rtol=1e-12)


def test_auprc_ends():
    assert rbal.Metrics(1.0, 1e3, 0.0).auprc(0.1) == pytest.approx(1.0, abs=1e-12)
    assert rbal.Metrics(1.0, -1e3, 0.0).auprc(0.1) < 0.1
    assert rbal.Metrics(1.0, 1.0, 5.0).auprc(0.1) == rbal.Metrics(1.0, 1.0, -5.0).auprc(0.1)  # no threshold in it


def test_areas_are_those_under_the_curves():
    metrics = rbal.Metrics(0.84, 1.4, 0.5)
    fpr, tpr = metrics.roc(2001)
    assert np.trapezoid(tpr, fpr) == pytest.approx(metrics.auc(), abs=1e-5)
    recall, precision = metrics.prc(0.1, 2001)
    assert np.trapezoid(precision, recall) == pytest.approx(metrics.auprc(0.1), abs=1e-5)


@pytest.mark.parametrize(
    ("q", "r", "b", "kappa"), [(0.84, 0.7, 0.5, 0.0), (0.84, 0.7, 0.5, 2.0), (0.01, 1.0, -0.3, 1.0)]
)
def test_gen_loss_against_quadrature(q, r, b, kappa):
    def class_loss(y):
        mu, s = r / 2 - y * b, np.sqrt(q)
        return quad(lambda u: (kappa - u) * norm.pdf(u, mu, s), min(mu, kappa) - 12 * s, kappa, points=[mu])[0]

    expected = 0.2 * class_loss(+1) + 0.8 * class_loss(-1)
    assert rbal.Metrics(q, r, b).gen_loss(0.2, kappa) == pytest.approx(expected, rel=1e-8)


# ---- the mean of any test loss


def zero_one(delta, y):
    return y * delta < 0


def hinge(kappa):
    return lambda delta, y: np.maximum(0.0, kappa - y * delta)


def logistic(delta, y):
    return np.logaddexp(0.0, -y * delta)


@pytest.mark.parametrize(
    "order", [(1.0, 2.0, 0.5), (0.84, -0.3, 0.5), (1e-6, 0.3, 0.1), (1e6, 3.0, 2.0), (1.0, 20.0, 0.0), (0.0, 1.0, 0.3)]
)
def test_test_loss_is_the_closed_forms(order):
    m, phi = rbal.Metrics(*order), 0.2
    q, r, b = order
    square = q + phi * (1 - r / 2 + b) ** 2 + (1 - phi) * (1 - r / 2 - b) ** 2
    np.testing.assert_allclose(m.test_loss(zero_one, phi), m.gen_error(phi), rtol=1e-11)
    for kappa in (0.0, 0.7, -1.3, 5.0):
        np.testing.assert_allclose(m.test_loss(hinge(kappa), phi), m.gen_loss(phi, kappa), rtol=1e-10, atol=1e-18)
    np.testing.assert_allclose(m.test_loss(lambda delta, y: (1 - y * delta) ** 2, phi), square, rtol=1e-11)


def test_test_loss_finds_a_kink_anywhere():
    # also close to the end of a panel, where the nodes of a Gauss rule would miss it
    m = rbal.Metrics(1.0, 0.0, 0.0)
    near = np.arange(-6.0, 7.0)
    spots = np.r_[np.random.default_rng(8).uniform(-6, 6, 300), near + 1e-3, near - 1e-4, near + 1e-7, near + 0.5]
    for spot in spots:
        assert abs(m.test_loss(lambda delta, y, spot=spot: delta > spot, 0.3) - norm.sf(spot)) < 1e-12, spot
        ramp = m.test_loss(lambda delta, y, spot=spot: np.maximum(spot - delta, 0), 0.3)
        assert abs(ramp - m.gen_loss(1.0, spot)) < 1e-11, spot


@pytest.mark.parametrize(("order", "phi", "threshold"), SCORES, ids=str)
def test_test_loss_against_quadrature(order, phi, threshold):
    q, r, b = order

    def class_mean(y):
        mu, s = y * r / 2 - b, np.sqrt(q)
        ends = [quad(lambda d: logistic(d, y) * norm.pdf(d, mu, s), *ab, epsabs=1e-13, epsrel=1e-13)
                for ab in ((mu - 12 * s, mu), (mu, mu + 12 * s))]  # fmt: skip
        return sum(value for value, _ in ends)

    expected = phi * class_mean(+1) + (1 - phi) * class_mean(-1)
    assert rbal.Metrics(*order).test_loss(logistic, phi) == pytest.approx(expected, rel=1e-11)


def test_test_loss_against_draws(draws):
    metrics, phi, _, y, scores = draws
    label = 2 * y - 1
    costs = np.where(label > 0, 10.0, 1.0) * np.minimum(2.0, logistic(scores, label))  # two kinks, unequal classes

    def g(delta, y):
        return (10.0 if y > 0 else 1.0) * np.minimum(2.0, logistic(delta, y))

    assert_within_4_standard_errors(metrics.test_loss(g, phi), costs.mean(), costs.mean(axis=1))


def test_test_loss_broadcasts(monkeypatch):
    monkeypatch.setattr(rbal.metrics._theory, "_BLOCK", 7)  # several blocks, the last one short
    rng = np.random.default_rng(3)
    m = rbal.Metrics(rng.uniform(0.1, 9, (5, 1, 2)), rng.uniform(-1, 5, (4, 1)), rng.normal(size=2))
    phi = np.array([0.1, 0.6])
    found = m.test_loss(hinge(1.0), phi)
    assert found.shape == (5, 4, 2)
    np.testing.assert_allclose(found, m.gen_loss(phi, 1.0), rtol=1e-10)
    assert rbal.Metrics(np.ones(0), 1.0, 0.0).test_loss(zero_one, 0.1).shape == (0,)
    np.testing.assert_allclose(
        rbal.Metrics(1.0, 2.0, 0.5).test_loss(lambda delta, y: 3, [0.1, 0.9]), [3, 3], rtol=1e-12
    )
    assert np.ndim(rbal.Metrics(1.0, 2.0, 0.5).test_loss(zero_one, 0.1)) == 0


def test_test_loss_in_the_tails():
    # the mean of exp(-yΔ) sits √q deviations below that of the score
    m = rbal.Metrics(144.0, 1.0, 0.0)
    exact = np.exp(-0.5 + 72)
    assert m.test_loss(lambda delta, y: np.exp(-y * delta), 0.5) == pytest.approx(exact, rel=1e-10)
    far = rbal.Metrics(1.0, 60.0, 0.0)
    assert far.test_loss(zero_one, 0.5) == pytest.approx(norm.sf(30), rel=1e-9)


NOISE = np.random.default_rng(1)


@pytest.mark.parametrize(
    ("g", "error", "message"),
    [
        ("hinge", TypeError, "g must be a function of a score and a label, got str"),
        (lambda delta, y: delta[0], ValueError, "g must return one value for each score, got shape"),
        (lambda delta, y: np.where(delta > 1, np.nan, 0.0), ValueError, "g must be finite, got nan"),
        (lambda delta, y: "no", TypeError, "g must be numeric, got 'no'"),
        (lambda delta, y: NOISE.normal(size=delta.shape), ValueError, "panels of any width can find"),
        (lambda delta, y: 1 / np.abs(delta + 0.1), ValueError, "panels of any width can find"),
        (lambda delta, y: np.exp(np.minimum(0.49 * delta**2, 600)), ValueError, "more slowly than a Gaussian"),
    ],
)
def test_test_loss_refuses(g, error, message):
    with pytest.raises(error, match=message):
        rbal.Metrics(1.0, 2.0, 0.5).test_loss(g, 0.1)


def test_test_loss_names_a_wrong_share():
    with pytest.raises(ValueError, match="phi_pos must be >= 0 and <= 1"):
        rbal.Metrics(1.0, 2.0, 0.5).test_loss(zero_one, 1.5)


def test_test_loss_is_a_function_for_best_mixing_not_a_name():
    classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    with pytest.raises(ValueError, match="metric must be one of"):
        rbal.strategies.best_mixing(classes, 0.5, 5.0, 0.5, metric="test_loss")
    by_loss = rbal.strategies.best_mixing(classes, 0.5, 5.0, 0.5, metric=lambda m: -m.test_loss(hinge(0.5), 0.5))
    by_name = rbal.strategies.best_mixing(classes, 0.5, 5.0, 0.5, metric=lambda m: -m.gen_loss(0.5, 0.5))
    assert by_loss.c == pytest.approx(by_name.c, rel=1e-3)


# ---- identities

orders = st.tuples(st.floats(1e-3, 1e3), st.floats(-20, 20), st.floats(-20, 20))
shares = st.floats(1e-9, 1 - 1e-9)


@given(orders, shares, st.floats(-20, 20))
def test_identities(order, phi, threshold):
    m = rbal.Metrics(*order)
    tpr, fpr, tnr, fnr = (getattr(m, name)(threshold) for name in ("tpr", "fpr", "tnr", "fnr"))
    ppv, npv, fdr, fomr = (getattr(m, name)(phi, threshold) for name in ("ppv", "npv", "fdr", "fomr"))
    pairs = [
        (tpr + fnr, 1),
        (fpr + tnr, 1),
        (fdr, 1 - ppv),
        (fomr, 1 - npv),
        (m.ba(threshold), (tpr + tnr) / 2),
        (m.gen_error(phi, threshold), 1 - m.acc(phi, threshold)),
        (m.acc(0.5, threshold), m.ba(threshold)),
        (m.fm(phi, threshold), np.sqrt(ppv * tpr)),
        # the paper's MCC
        (m.mcc(phi, threshold), np.sqrt(ppv * tpr * tnr * npv) - np.sqrt(fdr * fnr * fpr * fomr)),
    ]
    np.testing.assert_allclose(*zip(*pairs, strict=True), atol=1e-9)
    if ppv + tpr > 0:
        np.testing.assert_allclose(m.f1(phi, threshold), 2 * ppv * tpr / (ppv + tpr), rtol=1e-9, atol=1e-300)


@given(orders, shares, st.floats(-20, 20))
def test_swapping_the_classes(order, phi, threshold):
    # negatives as positives: Δ → -Δ, so b and the threshold change sign
    q, r, b = order
    m, swapped = rbal.Metrics(q, r, b), rbal.Metrics(q, r, -b)
    np.testing.assert_allclose(m.tpr(threshold), swapped.tnr(-threshold), rtol=1e-12)
    np.testing.assert_allclose(m.npv(phi, threshold), swapped.ppv(1 - phi, -threshold), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(m.mcc(phi, threshold), swapped.mcc(1 - phi, -threshold), rtol=1e-6, atol=1e-12)


def test_threshold_is_a_bias():
    m, moved = rbal.Metrics(1.3, 0.9, 0.2), rbal.Metrics(1.3, 0.9, 0.9)
    for name in (*OF_THRESHOLD, *OF_SHARE):
        np.testing.assert_allclose(value(m, name, 0.1, 0.7), value(moved, name, 0.1, 0.0), rtol=1e-12)


def test_small_errors_keep_their_digits():
    # classes 20 deviations apart: 1 - TPR and 1 - PPV are far below rounding
    m = rbal.Metrics(1.0, 20.0, 0.0)
    np.testing.assert_allclose(m.fnr(), norm.sf(10), rtol=1e-12)
    np.testing.assert_allclose(m.gen_error(0.1), norm.sf(10), rtol=1e-12)
    np.testing.assert_allclose(m.fdr(0.1), 9 * norm.sf(10), rtol=1e-12)
    np.testing.assert_allclose(m.fomr(0.1), norm.sf(10) / 9, rtol=1e-12)


# ---- the ends of the threshold


@pytest.mark.parametrize("phi", [1e-6, 0.1, 0.9])
def test_precision_at_the_ends(phi):
    m = rbal.Metrics(0.84, 0.7, 0.5)
    assert 1 - 1e-12 < m.ppv(phi, 100.0) <= 1.0
    np.testing.assert_allclose(m.ppv(phi, -1e3), phi, rtol=1e-12)
    np.testing.assert_allclose(m.npv(phi, 1e3), 1 - phi, rtol=1e-12)
    # monotone on the way, also where both tails underflow
    assert (np.diff(m.ppv(phi, np.linspace(-50, 50, 2001))) >= 0).all()


@pytest.mark.parametrize("phi", [0.0, 1e-6, 0.5, 1.0])
@pytest.mark.parametrize("r", [-2.0, 0.0, 1e-3, 2.0])
def test_no_nan_at_far_thresholds(r, phi):
    m, thresholds = rbal.Metrics(0.84, r, 0.5), np.array([-1e3, -40.0, 0.0, 40.0, 1e3])
    for name in (*OF_THRESHOLD, *OF_SHARE):
        result = value(m, name, phi, thresholds)
        assert np.isfinite(result).all(), name
        assert (np.abs(result) <= 1 + 1e-12).all(), name


def test_infinite_thresholds_are_the_limits():
    m = rbal.Metrics(0.84, 0.7, 0.5)
    assert (m.tpr(np.inf), m.tpr(-np.inf), m.ba(np.inf), m.ba(-np.inf)) == (0.0, 1.0, 0.5, 0.5)
    np.testing.assert_allclose([m.ppv(0.1, np.inf), m.npv(0.1, -np.inf)], 1.0)
    np.testing.assert_allclose([m.ppv(0.1, -np.inf), m.npv(0.1, np.inf)], [0.1, 0.9])


# ---- the best threshold


@pytest.mark.parametrize(("order", "phi", "threshold"), SCORES, ids=str)
def test_best_threshold_against_a_maximiser(order, phi, threshold):
    m = rbal.Metrics(*order)
    found = minimize_scalar(lambda t: -m.ba(t), bounds=(-10, 10), method="bounded", options={"xatol": 1e-10})
    assert m.best_threshold() == pytest.approx(found.x, abs=1e-6)
    assert m.best_ba() == pytest.approx(-found.fun, abs=1e-12)


@given(orders)
def test_moving_the_threshold_never_loses(order):
    m = rbal.Metrics(*order)
    assert m.best_ba() >= m.ba() - 1e-15
    assert m.best_ba() == pytest.approx(m.ba(m.best_threshold()), abs=1e-15)


def test_scores_that_point_the_wrong_way():
    m = rbal.Metrics(1.0, -2.0, 0.0)
    assert m.auc() == pytest.approx(1 - rbal.Metrics(1.0, 2.0, 0.0).auc(), abs=1e-15)
    assert (m.best_threshold(), m.best_ba()) == (np.inf, 0.5)


# ---- curves


@pytest.mark.parametrize(("order", "phi", "threshold"), SCORES, ids=str)
def test_curves_go_from_end_to_end(order, phi, threshold):
    m = rbal.Metrics(*order)
    fpr, tpr = m.roc(101)
    assert fpr.shape == tpr.shape == (101,)
    np.testing.assert_allclose([fpr[0], tpr[0], fpr[-1], tpr[-1]], [0, 0, 1, 1], atol=1e-15)
    assert (np.diff(fpr) >= 0).all()
    assert (np.diff(tpr) >= 0).all()
    recall, precision = m.prc(phi, 101)
    np.testing.assert_allclose([recall[0], recall[-1], precision[-1]], [0, 1, phi], atol=1e-15)
    assert (np.diff(recall) >= 0).all()
    assert (np.diff(precision) <= 1e-15).all()
    assert 0.9 < precision[0] <= 1.0


# ---- a classifier that gives every sample one score


@pytest.mark.parametrize("b", [0.0, 1.0, -1.0])
@pytest.mark.parametrize("q", [0.0, 1e-300, 1.0])
def test_no_separation_is_chance(q, b):
    m, phi = rbal.Metrics(q, 0.0, b), 0.1
    assert m.ba() == m.auc() == m.best_ba() == 0.5
    assert m.mcc(phi) == 0.0
    assert m.tpr() == m.fpr()
    # whatever the threshold picks, it picks at random
    np.testing.assert_allclose([m.ppv(phi), m.npv(phi), m.fdr(phi), m.fomr(phi)], [0.1, 0.9, 0.9, 0.1], rtol=1e-12)
    np.testing.assert_allclose(m.auprc(phi), phi, rtol=1e-12)
    np.testing.assert_allclose(m.fm(phi), np.sqrt(phi * m.tpr()), rtol=1e-12)
    np.testing.assert_allclose(m.acc(phi), phi * m.tpr() + 0.9 * m.tnr(), rtol=1e-12)


@pytest.mark.parametrize(("b", "kappa", "loss"), [(0.0, 0.0, 0.0), (1.0, 0.0, 0.1), (1.0, 1.0, 0.2), (-2.0, 1.0, 2.7)])
def test_gen_loss_of_one_score(b, kappa, loss):
    assert rbal.Metrics(0.0, 0.0, b).gen_loss(0.1, kappa) == pytest.approx(loss, abs=1e-15)


def test_collapsed_solution_has_metrics():
    # classes nearly on top of each other, many samples, ten to one: no weights lower the loss
    sol = rbal.solve(rbal.Moments.ising(m=0.0, delta=0.5, L=10), 1.0, 10.0, model="svm", lam=1.0)
    assert sol.phase == "COLLAPSED"
    assert (sol.q, sol.r, sol.b) == (0.0, 0.0, 1.0)
    assert sol.metrics.ba() == sol.metrics.auc() == 0.5
    assert sol.metrics.tpr() == 0.0


@pytest.mark.parametrize("r", [0.0, 1.0])
def test_curves_of_one_score_go_from_end_to_end(r):
    # without noise the curves are steps, and still begin and end where all do
    fpr, tpr = rbal.Metrics(0.0, r, 0.3).roc(101)
    np.testing.assert_allclose([fpr[0], tpr[0], fpr[-1], tpr[-1]], [0, 0, 1, 1])
    recall, precision = rbal.Metrics(0.0, r, 0.3).prc(0.1, 101)
    np.testing.assert_allclose([recall[0], recall[-1], precision[-1]], [0, 1, 0.1])


def test_separation_without_noise_is_perfect():
    m = rbal.Metrics(0.0, 1.0, 0.0)
    assert m.ba() == m.auc() == m.ppv(0.1) == m.npv(0.1) == m.mcc(0.1) == m.f1(0.1) == 1.0
    assert m.auprc(0.1) == pytest.approx(1.0, abs=1e-12)


# ---- arrays


def test_arrays_broadcast_as_a_loop_would():
    q, r, b = np.array([0.5, 1.0, 2.0]), np.array([[1.0], [-0.5]]), 0.3
    phi, threshold = np.array([[[0.1]], [[0.4]]]), np.linspace(-1, 1, 4)[:, None, None, None]
    m = rbal.Metrics(q, r, b)
    grid = np.broadcast_arrays(q, r, phi, threshold)

    def loop(call, *arrays):
        return np.vectorize(call)(*arrays)

    for name in (*OF_THRESHOLD, *OF_SHARE):
        result = np.broadcast_to(value(m, name, phi, threshold), grid[0].shape)
        expected = loop(lambda q, r, f, t, name=name: value(rbal.Metrics(q, r, b), name, f, t), *grid)
        np.testing.assert_allclose(result, expected, rtol=1e-13, err_msg=name)
    pairs, triples = np.broadcast_arrays(q, r), np.broadcast_arrays(q, r, phi)
    np.testing.assert_allclose(m.auc(), loop(lambda q, r: rbal.Metrics(q, r, b).auc(), *pairs))
    np.testing.assert_allclose(m.auprc(phi), loop(lambda q, r, f: rbal.Metrics(q, r, b).auprc(f), *triples))
    np.testing.assert_allclose(
        m.gen_loss(phi, 0.5), loop(lambda q, r, f: rbal.Metrics(q, r, b).gen_loss(f, 0.5), *triples)
    )
    np.testing.assert_allclose(m.best_ba(), loop(lambda q, r: rbal.Metrics(q, r, b).best_ba(), *pairs))
    for curve, single in ((m.roc(5), lambda m: m.roc(5)), (m.prc(0.2, 5), lambda m: m.prc(0.2, 5))):
        for side in range(2):
            assert curve[side].shape == (2, 3, 5)
            for i, j in np.ndindex(2, 3):
                one = single(rbal.Metrics(q[j], r[i, 0], b))[side]
                np.testing.assert_allclose(curve[side][i, j], one, rtol=1e-13)


def test_numbers_in_numbers_out():
    m = rbal.Metrics(1.0, 2.0, 0.5)
    results = [value(m, name, 0.1, 0.0) for name in (*OF_THRESHOLD, *OF_SHARE)]
    for result in [*results, m.auc(), m.auprc(0.1), m.gen_loss(0.1), m.best_ba(), m.best_threshold()]:
        assert isinstance(result, float)


def test_unsolved_points_stay_nan():
    # what did not converge must not look like a number
    m = rbal.Metrics(np.nan, np.nan, np.nan)
    for name in (*OF_THRESHOLD, *OF_SHARE):
        assert np.isnan(value(m, name, 0.1, 0.0)), name
    for result in (m.auc(), m.auprc(0.1), m.gen_loss(0.1), m.best_ba(), m.best_threshold()):
        assert np.isnan(result)


# ---- bad input


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda m: rbal.Metrics(-1.0, 1.0, 0.0), "^q must be >= 0, got -1"),
        (lambda m: rbal.Metrics([1.0, -2.0], 1.0, 0.0), "^q must be >= 0, got -2"),
        (lambda m: rbal.Metrics(np.ones(2), np.ones(3), 0.0), r"^arrays must broadcast, got shapes q \(2,\), r \(3,\)"),
        (lambda m: m.acc(-0.1), "^phi_pos must be .*got -0.1"),
        (lambda m: m.gen_error(1.1), "^phi_pos must be .*got 1.1"),
        (lambda m: m.ppv([0.1, 1.1]), "^phi_pos must be .*got 1.1"),
        (lambda m: m.npv(np.nan), "^phi_pos must be finite"),
        (lambda m: m.fdr(2), "^phi_pos must be"),
        (lambda m: m.fomr(2), "^phi_pos must be"),
        (lambda m: m.f1(2), "^phi_pos must be"),
        (lambda m: m.fm(2), "^phi_pos must be"),
        (lambda m: m.mcc(2), "^phi_pos must be"),
        (lambda m: m.auprc(2), "^phi_pos must be"),
        (lambda m: m.prc(2), "^phi_pos must be"),
        (lambda m: m.gen_loss(2), "^phi_pos must be"),
        (lambda m: m.gen_loss(0.1, np.nan), "^kappa must be finite"),
        (lambda m: m.roc(0), "^n must be a positive integer, got 0"),
        (lambda m: m.prc(0.1, 2.5), "^n must be a positive integer, got 2.5"),
        (lambda m: m.density(0.0, 0), "^label must be"),
    ],
)
def test_bad_input_names_the_argument(call, match):
    with pytest.raises(ValueError, match=match):
        call(rbal.Metrics(1.0, 1.0, 0.0))
