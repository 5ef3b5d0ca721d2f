"""Records of kernels: formulas against integrals, networks and scikit-learn; parameters, and what is refused."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import pairwise
from sklearn.svm import SVC

import rbal
from rbal.kernels import KERNELS, Kernel, Parameter, arc_cosine, bind, ntk, register

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 6)) * [1.0, 2.0, 0.5, 1.0, 1.0, 3.0]
Y = RNG.normal(size=(7, 6))


def angular(order, theta, n=200_000):
    """Gaussian expectation of two units at an angle, by the midpoint rule over directions."""
    phi = (np.arange(n) + 0.5) * 2.0 * np.pi / n
    a, b = np.cos(phi), np.cos(phi - theta)
    both = (a > 0) & (b > 0)
    # E r² = 2; weights of variance 2 for rectified units, of variance 1 and twice the height for steps
    return 2.0 * np.mean(both * (2.0 * a * b if order == 1 else 1.0))


@pytest.mark.parametrize("order", [0, 1])
def test_one_layer_is_a_gaussian_integral(order):
    x, y = X[:1], Y[:1]
    norm = np.sqrt((x**2).sum() * (y**2).sum()) / 6 if order == 1 else 1.0
    theta = np.arccos((x @ y.T).item() / np.sqrt((x**2).sum() * (y**2).sum()))
    assert arc_cosine(x, y, depth=1, order=order).item() == pytest.approx(norm * angular(order, theta), rel=1e-4)


def test_deeper_layers_are_one_layer_after_another():
    """On unit vectors a layer maps a correlation to a correlation, so that depths compose."""
    unit = np.sqrt(6.0) * X / np.linalg.norm(X, axis=1)[:, None]
    correlation = arc_cosine(unit, unit, depth=2)
    root = np.linalg.cholesky(correlation + 1e-12 * np.eye(40)) * np.sqrt(40.0)  # rows with these products
    np.testing.assert_allclose(arc_cosine(root, root, depth=3), arc_cosine(unit, unit, depth=5), atol=1e-6)


def test_tangent_kernel_is_the_product_of_gradients_of_a_wide_network():
    m, (x, y) = 400_000, X[:2]
    rng = np.random.default_rng(1)
    w, a = rng.normal(size=(m, 6)), rng.normal(size=m)
    u, v = w @ x / np.sqrt(6.0), w @ y / np.sqrt(6.0)
    head = 2.0 * np.maximum(u, 0.0) * np.maximum(v, 0.0)
    body = 2.0 * a**2 * (u > 0) * (v > 0) * (x @ y) / 6.0
    each = head + body
    assert ntk(x[None], y[None], depth=1).item() == pytest.approx(each.mean(), abs=4.5 * each.std() / np.sqrt(m))


def test_tangent_kernel_recursion():
    """Θ_l = Σ_l + Θ_(l-1) κ₀, written out for two layers with biases."""
    bias, S = 0.3, X @ Y.T / 6 + 0.3
    x, y = np.sum(X**2, axis=1) / 6 + bias, np.sum(Y**2, axis=1) / 6 + bias
    tangent = S
    for _ in range(2):
        theta = np.arccos(S / np.sqrt(np.outer(x, y)))
        S = np.sqrt(np.outer(x, y)) * (np.sin(theta) + (np.pi - theta) * np.cos(theta)) / np.pi + bias
        tangent, x, y = S + tangent * (1 - theta / np.pi), x + bias, y + bias
    np.testing.assert_allclose(ntk(X, Y, depth=2, bias=bias), tangent, rtol=1e-12)


def test_a_row_of_zeros_has_a_gram_matrix():
    rows = np.vstack([np.zeros((2, 6)), X[:3]])
    for K in (ntk(rows, rows, 3), arc_cosine(rows, rows, 2, order=0), arc_cosine(rows, rows, 2)):
        assert np.isfinite(K).all()
        assert np.linalg.eigvalsh(K)[0] > -1e-7


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "precomputed"])
def test_gram_matrices_are_symmetric_and_positive(name):
    k = bind(name, X)
    K = k(X)
    np.testing.assert_allclose(K, K.T, atol=1e-12 * np.abs(K).max())
    assert np.linalg.eigvalsh(K)[0] > -1e-7 * np.abs(K).max()
    np.testing.assert_allclose(k.diagonal(X), np.diag(K), rtol=1e-7)
    assert k(Y, X).shape == (7, 40)
    assert pickle.loads(pickle.dumps(k)) == k


@pytest.mark.parametrize("name", ["linear", "rbf", "poly"])
def test_kernels_are_those_of_scikit_learn(name):
    y = np.where(X[:, 0] ** 2 + X[:, 1] > 1.0, 1, -1)
    k = bind(name, X)
    ours, theirs = SVC(kernel=k).fit(X, y), SVC(kernel=KERNELS[name].svc).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(Y), theirs.decision_function(Y), atol=1e-3)
    assert clone(ours).kernel == k


def test_rules_for_gamma():
    assert bind("rbf", X).parameters["gamma"] == pytest.approx(1.0 / (6 * X.var()))
    squared = pairwise.euclidean_distances(X, squared=True)[np.triu_indices(40, 1)]
    assert bind("rbf", X, gamma="median").parameters["gamma"] == pytest.approx(1.0 / np.median(squared))
    absolute = pairwise.manhattan_distances(X)[np.triu_indices(40, 1)]
    assert bind("laplacian", X, gamma="median").parameters["gamma"] == pytest.approx(1.0 / np.median(absolute))
    for name in ("rbf", "laplacian", "poly"):  # a unit of the columns does not matter
        k, scaled = bind(name, X), bind(name, 10.0 * X)
        np.testing.assert_allclose(k(X), scaled(10.0 * X), rtol=1e-9)


def test_a_function_and_a_record_are_kernels():
    def cosine(A, B, power=1):
        return pairwise.cosine_similarity(A, B) ** power

    np.testing.assert_allclose(bind(cosine, X, power=2)(X, Y), pairwise.cosine_similarity(X, Y) ** 2)
    record = register(Kernel("cosine", "the cosine", cosine, {"power": Parameter(1, lambda name, value, X: value)}))
    try:
        np.testing.assert_allclose(bind("cosine", X)(X), pairwise.cosine_similarity(X))
        with pytest.raises(ValueError, match="'cosine', which is taken"):
            register(record)
    finally:
        del KERNELS["cosine"]


def test_a_given_gram_matrix_stays_as_it_is():
    K = X @ X.T
    np.testing.assert_array_equal(bind("precomputed", K)(K), K)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: bind("rbf", X, gamma=0.0), ValueError, "gamma must be > 0, got 0"),
        (lambda: bind("rbf", X, gamma=-1.0), ValueError, "gamma must be > 0, got -1"),
        (lambda: bind("rbf", X, gamma="auto"), ValueError, "gamma must be one of 'scale', 'median', got 'auto'"),
        (lambda: bind("rbf", np.ones((5, 2))), ValueError, "gamma='scale' needs rows X that differ"),
        (lambda: bind("rbf", np.ones((5, 2)), gamma="median"), ValueError, "gamma='median' needs rows X that differ"),
        (lambda: bind("sigmoid", X), ValueError, "kernel must be one of 'linear', 'rbf'.*got 'sigmoid'"),
        (lambda: bind(3, X), TypeError, "kernel must be a name, a Kernel or a function, got int"),
        (lambda: bind("linear", X, gamma=1.0), TypeError, "kernel 'linear' takes no parameters, got gamma"),
        (lambda: bind("ntk", X, depth=6), ValueError, "depth must be >= 1 and <= 5, got 6"),
        (lambda: bind("ntk", X, depth=1.5), ValueError, "depth must be a positive integer, got 1.5"),
        (lambda: bind("arc-cosine", X, order=2), ValueError, "order must be one of 0, 1, got 2"),
        (lambda: bind("ntk", X, bias=-1.0), ValueError, "bias must be >= 0, got -1"),
        (lambda: bind("poly", X, degree=0), ValueError, "degree must be a positive integer, got 0"),
        (lambda: bind("rbf", np.where(X > 2, np.nan, X)), ValueError, "X must be finite, got nan"),
        (lambda: bind("rbf", X)(X[:, :2], X), ValueError, "Y must have the 2 columns of X, got 6"),
        (lambda: bind(lambda A, B: A, X)(X), ValueError, r"must return shape \(40, 40\)"),
    ],
)  # fmt: skip
def test_bad_kernels(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_room_of_its_own():
    assert rbal.kernels.bind is bind
