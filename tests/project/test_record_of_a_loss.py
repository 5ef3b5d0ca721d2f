"""A loss that is added from outside is seen everywhere: the solver, margins, learners, advice, the command."""

from dataclasses import replace

import numpy as np
import pytest

import rbal
from rbal import cli, losses
from rbal._support.gauss import jit
from rbal.advice.internal import text
from rbal.losses import SQUARED_HINGE
from rbal.widgets import own_data

squared, squared_loss = SQUARED_HINGE.expectations, SQUARED_HINGE.mean_loss
squared_force, squared_curvature = SQUARED_HINGE.force, SQUARED_HINGE.curvature


@jit
def expectations(kappa, c, x, mu, q):
    return squared(kappa, 0.25 * c, x, mu, q)


@jit
def mean_loss(kappa, c, x, mu, q):
    return squared_loss(kappa, 0.25 * c, x, mu, q)


@jit
def force(kappa, c, u):
    return squared_force(kappa, 0.25 * c, u)


@jit
def curvature(kappa, c, u):
    return squared_curvature(kappa, 0.25 * c, u)


@pytest.fixture
def toy():
    """ℓ = (κ - u)₊²/4, which is a squared hinge of a quarter of the weight."""
    loss = replace(
        SQUARED_HINGE, name="toy", title="toy machine", formula="(κ - u)₊²/4", expectations=expectations,
        mean_loss=mean_loss, force=force, curvature=curvature,
        value=lambda u, kappa: 0.25 * np.maximum(kappa - u, 0.0) ** 2,
        estimator=lambda C, **options: SQUARED_HINGE.estimator(0.25 * C, **options),
    )  # fmt: skip
    yield losses.register(loss)
    del losses.LOSSES["toy"]


@pytest.fixture
def classes():
    return rbal.Moments.ising(m=0.4, delta=1.0, L=100)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    y = np.arange(200) < 40
    return rng.normal(size=(200, 8)) + 0.8 * y[:, None], y


@pytest.mark.parametrize(("model", "lam"), [("perceptron", None), ("svm", 0.1)])
def test_the_theory_solves_it(toy, classes, model, lam):
    weights = {"weight_pos": 0.25, "weight_neg": 0.25}
    sol = rbal.solve(classes, 2.0, 5.0, model=model, lam=lam, loss="toy")
    same = rbal.solve(classes, 2.0, 5.0, model=model, lam=lam, loss="squared_hinge", **weights)
    for name in ("q", "r", "b", "x", "k_hat", "train_error"):
        assert getattr(sol, name) == pytest.approx(getattr(same, name), rel=1e-12)
    delta = np.linspace(-3.0, 3.0, 13)
    for label in (1, -1):
        density, atom = rbal.margins.train_density(sol, delta, label)
        np.testing.assert_allclose(density, rbal.margins.train_density(same, delta, label)[0], rtol=1e-10)
        assert atom == 0.0


def test_it_has_a_separable_phase(toy, classes):
    assert rbal.solve(classes, 0.1, 0.2, kappa=0.1, loss="toy").phase == "SAT"


def test_strategies_compare_it(toy, classes):
    found = rbal.strategies.compare(classes, 0.5, 5.0, model="svm", lam=0.1, loss="toy")
    assert found["ba"].between(0.5, 1.0).all()


def test_it_is_trained(toy, table):
    X, y = table
    clf = rbal.LinearSVM(lam=1.0, loss="toy").fit(X, y)
    same = rbal.LinearSVM(lam=4.0, loss="squared_hinge").fit(X, y)
    np.testing.assert_allclose(clf.J_, same.J_, rtol=1e-9)
    assert clf.objective_ == pytest.approx(0.25 * same.objective_)


def test_it_is_advised_on_checked_and_told(toy, table):
    found = rbal.advise(
        *table, loss="toy", C=1.0, moments="pooled", check=True, folds=2, repeats=1, n_jobs=1, progress=False
    )
    assert found.table["measured"].notna().all()
    assert "toy machine" in text(found)
    assert "toy machine" in found.to_html()
    assert found.pipeline().fit(*table).score(*table) > 0.6
    assert cli.parser().parse_args(["advise", "t.csv", "--label", "y", "--loss", "toy"]).loss == "toy"
    assert own_data(loss="toy").loss.value == "toy"


def test_a_name_is_taken_once(toy):
    with pytest.raises(ValueError, match="'toy'"):
        losses.register(toy)
