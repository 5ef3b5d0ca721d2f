"""The study of sizes: what its stored table holds, that machines approach the theory like 1/L, and new machines."""

import numpy as np
import pandas as pd
import pytest

from rbal import experiments
from rbal_book import studies
from rbal_book.studies import _sizes

machines = pytest.mark.parametrize("name", _sizes.MACHINES)


@pytest.fixture
def table():
    return studies.stored("sizes")


def small_bias(table, name):
    """Mean residuals (2K + 1,) at the smallest size, and their errors."""
    rows = table[(table.machine == name) & (table.L == _sizes.SIZES[0])]
    wide = rows.pivot(index="batch", columns="quantity", values="value")
    K = wide.shape[1] // 2
    wide = wide[[f"{letter} {k}" for letter in "mq" for k in range(K)] + ["b"]].to_numpy()
    return wide.mean(axis=0), wide.std(axis=0, ddof=1) / np.sqrt(len(wide))


def test_every_machine_at_every_size(table):
    assert list(table.columns) == _sizes.COLUMNS
    for name, setting in _sizes.MACHINES.items():
        mine = table[table.machine == name]
        K = sum(map(len, setting.counts))
        assert len(mine) == len(_sizes.SIZES) * _sizes.BATCHES * (2 * K + 1)
        for L, trials in zip(_sizes.SIZES, setting.trials, strict=True):
            assert mine[mine.L == L].groupby("batch").trials.first().sum() == trials


@machines
def test_the_theory_does_not_know_the_size(name):
    a, b = _sizes.predicted(name, 4), _sizes.predicted(name, 20)
    assert (_sizes.mixture(name, 20).level, a.phase) == ("any", "SAT" if name == "separable" else "UNSAT")
    assert np.sign(a.k_hat) == (-1 if name == "norm pushed up" else 1)
    np.testing.assert_allclose([*a.m, *a.q, a.b], [*b.m, *b.q, b.b], rtol=1e-8)


@machines
def test_rows_are_whole(name):
    setting, w = _sizes.MACHINES[name], _sizes.world(name)
    X, y = _sizes.draw(w, 40, np.random.default_rng(0))
    assert X.shape == (round(40 * sum(setting.sizes)), 40)
    assert np.sum(y == 1) == round(40 * setting.sizes[0])


def test_measured_is_what_a_mixture_measures():
    w, rng = _sizes.world("SVM"), np.random.default_rng(1)
    J = rng.normal(size=40)
    found = _sizes.mixture("SVM", 40).order_parameters(J, 0.3)
    np.testing.assert_allclose(_sizes.measured(w, 40, J, 0.3), [*found.m, *found.q, found.b])


def test_residuals_fall_like_one_over_the_size(table):
    found = _sizes.approach(table)
    value, error = np.array([[L / 20.0 * part for part in found[L]] for L in found]).T  # 1 if they fall like 1/L
    assert np.all(np.abs(value - 1.0) < 4.0 * error), found
    weights = error**-2.0
    mean, error = weights @ value / weights.sum(), weights.sum() ** -0.5
    assert abs(mean - 1.0) < 3.0 * error, found
    assert error < 0.2, found  # residuals that stay would be 2 at the next size and 20 at the last
    # at the two largest sizes nothing is left that errors would show
    for name in _sizes.MACHINES:
        for L in _sizes.SIZES[-2:]:
            batches = _sizes.batches(table[table.machine == name], L)
            off = batches.mean(axis=0) / (batches.std(axis=0, ddof=1) / np.sqrt(_sizes.BATCHES))
            assert np.abs(off).max() < 6.0  # of ten batches


def test_approach_of_residuals_that_are_known():
    rng, rows = np.random.default_rng(2), []
    for name, K in (("a", 5), ("b", 9)):
        bias = rng.normal(size=K)
        for L in (10, 20, 50):
            for batch in range(10):
                values = bias / L + 0.02 * rng.normal(size=K)
                rows += [(name, L, batch, 1, str(k), value) for k, value in enumerate(values)]
    found = _sizes.approach(pd.DataFrame(rows, columns=_sizes.COLUMNS))
    for L, (value, error) in found.items():
        assert abs(value - 10.0 / L) < 4.0 * error
        assert error < 0.1


# How far values of a batch move where the last bits of arithmetic differ, over the scatter of batches: twice the most
# that was seen when all 350 and 250 values were computed as for another CPU (nehalem). With k̂ < 0 the problem is not
# convex, and last bits decide which local minimum is found (0.36); of separable data a random walk goes elsewhere
# (2.99). Both other machines have one solution.
ELSEWHERE = {"norm pushed up": 0.72, "separable": 6.0}


@machines
def test_the_stored_rows_are_what_the_study_trains(table, name):
    L = 80
    new = experiments.run(
        _sizes.measure, [{"machine": name, "L": L}], trials=1, seed=_sizes.SEED, n_jobs=1, progress=False
    )
    rows = table[(table.machine == name) & (table.L == L)]
    stored = rows.pivot(index="batch", columns="quantity", values="value")
    off = (new[stored.columns].iloc[0] - stored.loc[0]).abs()
    assert (off <= 1e-5 + ELSEWHERE.get(name, 0.0) * stored.std(ddof=1)).all(), off.to_dict()


@pytest.mark.slow
@machines
def test_new_machines(table, name):
    # at both sizes: the bias of the smallest one over L, within five errors of new machines; those that
    # are slow to train are smaller and more, with the same error: machines scatter like 1/√L
    sizes, counts = {
        "SVM": ((200, 400), (60, 20)),
        "norm held back": ((200, 400), (60, 30)),
        "norm pushed up": ((80, 200), (60, 12)),
        "separable": ((80, 200), (20, 8)),
    }[name]
    bias, error = small_bias(table, name)
    both = zip(sizes, counts, strict=True)
    off = {L: _sizes.residuals(np.random.default_rng(L), name, L, n) for L, n in both}
    # machines scatter like 1/√L: both sizes together tell by how much
    squares = sum(L * np.sum((o - o.mean(axis=0)) ** 2, axis=0) for L, o in off.items())
    deviation = np.sqrt(squares / (sum(counts) - 2))
    for L, o in off.items():
        scatter = np.hypot(deviation / np.sqrt(L * len(o)), error * 20.0 / L)
        assert (scatter < 0.05).all()  # else the test says nothing
        np.testing.assert_array_less(np.abs(o.mean(axis=0) - bias * 20.0 / L), 5.0 * scatter)
