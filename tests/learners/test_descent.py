"""The pieces of the exact descent, each against the obvious way; run with and without the compiler."""

import functools

import naive
import numba
import numpy as np
import pytest

from rbal.learners import _descent as descent
from rbal.learners import _faces as faces
from rbal.learners import _splitting as splitting
from rbal.learners._perceptron import Draws, Frame, Problem, merge_repeated, walk


@functools.cache
def from_python(function):
    """A compiled function that only compiled ones can call, as one that Python can."""
    return numba.njit(lambda *args: function(*args)) if hasattr(function, "py_func") else function


def differences(X, on, m):
    return X[on[1:m]] - X[on[0]]


@pytest.mark.parametrize("seed", range(4))
def test_factorisation_follows_samples_that_come_and_go(seed):
    rng = np.random.default_rng(seed)
    D, n = 12, 40
    X = rng.normal(size=(n, D))
    face, m = faces.empty_face(D), 0
    on, basis, R = face
    for _ in range(60):
        if m < D and (m < 2 or rng.random() < 0.6):
            sample = int(rng.choice(np.setdiff1d(np.arange(n), on[:m])))
            assert from_python(faces.join)(X, face, m, sample)
            m += 1
        else:
            gone = int(rng.integers(m))
            left = np.delete(on[:m], gone)
            from_python(faces.leave)(face, m, gone)
            m -= 1
            np.testing.assert_array_equal(on[:m], left)
        if m > 1:
            k = m - 1
            np.testing.assert_allclose(basis[:k] @ basis[:k].T, np.eye(k), atol=1e-12)
            np.testing.assert_allclose(basis[:k].T @ np.triu(R[:k, :k]), differences(X, on, m).T, atol=1e-11)


def test_a_sample_in_the_span_of_the_others_cannot_join():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [0.0, 1.0]])
    face, join = faces.empty_face(2), from_python(faces.join)
    assert join(X, face, 0, 0)
    assert join(X, face, 1, 1)
    assert not join(X, face, 2, 2)


def test_samples_held_at_once_are_those_that_join_one_by_one():
    rng = np.random.default_rng(5)
    D, n = 9, 30
    X = rng.normal(size=(n, D))
    X[4] = 0.5 * (X[0] + X[2])  # cannot be held together with these two
    one_by_one, at_once, m = faces.empty_face(D), faces.empty_face(D), 0
    for sample in range(7):
        m += from_python(faces.join)(X, one_by_one, m, sample)
    assert faces.hold(X, at_once, np.arange(7)) == m == 6
    k = m - 1
    np.testing.assert_array_equal(at_once.on[:m], one_by_one.on[:m])
    signs = np.sign(np.diag(at_once.R[:k, :k]))  # the same up to the signs of rows
    np.testing.assert_allclose(signs[:, None] * at_once.R[:k, :k], np.triu(one_by_one.R[:k, :k]), atol=1e-12)
    np.testing.assert_allclose(signs[:, None] * at_once.basis[:k], one_by_one.basis[:k], atol=1e-12)


@pytest.fixture
def held():
    """Samples of which five, of eight dimensions, are on a face, and weights."""
    rng = np.random.default_rng(11)
    n, D, m = 20, 8, 5
    y, c = np.where(rng.random(n) < 0.5, 1.0, -1.0), rng.random(n) + 0.5
    samples = faces.Samples(rng.normal(size=(n, D)), y, c * y, np.full(n, 0.3))
    face = faces.empty_face(D)
    assert faces.hold(samples.X, face, 3 * np.arange(m)) == m
    return samples, face, m, 4.0 * rng.normal(size=D), rng.normal(size=D)


def test_landing_against_its_twin(held):
    samples, face, m, J, _ = held
    found = faces.land(samples, face, m, J, np.linalg.norm(J))
    expected = naive.landing(samples.X, samples.y, samples.kappa, face.on[:m], J)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    on = face.on[:m]
    b = samples.X[on] @ found - samples.y[on] * samples.kappa[on]  # one bias puts all on their margins
    np.testing.assert_allclose(b, b[0], atol=1e-10)
    assert faces.land(samples, face, m, J, 1e-3) is None  # a sphere that the face does not meet


def test_turn_on_a_face_against_its_twin(held):
    samples, face, m, J, pull = held
    free, size, multiplier, turn, strength = naive.turning(differences(samples.X, face.on, m), J, pull)
    vectors = faces.empty_vectors(len(J))
    vectors.free[:], vectors.pull[:] = faces.free_part(J, face.basis[: m - 1]), pull
    np.testing.assert_allclose(vectors.free, free, rtol=1e-10, atol=1e-10)
    numbers = from_python(faces.directions)(vectors, face.basis, m - 1)
    np.testing.assert_allclose(numbers, (size, multiplier, strength), rtol=1e-10)
    np.testing.assert_allclose(vectors.turn, turn, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(vectors.parts[: m - 1], face.basis[: m - 1] @ pull, rtol=1e-10, atol=1e-12)


def test_pulls_on_a_face_balance_the_rest(held):
    samples, face, m, J, pull = held
    found = np.empty(m)
    from_python(faces.held_pulls)(face.basis[: m - 1] @ (0.2 * J - pull), 0.7, face.R, m, found)
    _, along = naive.split_by(differences(samples.X, face.on, m), 0.2 * J - pull)
    np.testing.assert_allclose(found[1:], along, rtol=1e-9)
    assert found.sum() == pytest.approx(-0.7)
    shares = found / samples.pulls[face.on[:m]]
    outside = np.maximum(shares - 1.0, -shares)
    worst, above = from_python(faces.worst_of)(found, samples.pulls, face.on, m)
    assert outside.max() > 0.0
    assert worst == np.argmax(outside)
    assert above == (shares[worst] > 1.0)
    half = 0.5 * samples.pulls[face.on[:m]]
    assert from_python(faces.worst_of)(half, samples.pulls, face.on, m) == (-1, False)


def test_splitting_against_its_twin():
    rng, n = np.random.default_rng(12), 41  # one more than a multiple of four, as samples are taken
    y, c = np.repeat([1.0, -1.0], [12, n - 12]), rng.random(n) + 0.5
    X = rng.normal(size=(n, 5)) + 0.2 * y[:, None]
    kappa, J = np.full(n, 0.8), rng.normal(size=5)
    J *= 2.0 / np.linalg.norm(J)
    state = splitting.Splitting(faces.Samples(X, y, c * y, kappa), 2.0, J, 0.1)
    expected = naive.admm(X, y, c, kappa, 2.0, np.maximum(y * (X @ J - 0.1), kappa), np.zeros(n), 4)
    for _ in range(4):
        state.factorise(1e-7, rough=0.0)
        state.run(1)
    changed = np.stack(state.margins)
    for ours, twin in zip((*state.weights(), *changed[:, :n]), expected, strict=True):
        np.testing.assert_allclose(ours, twin, atol=2e-5)  # single precision
    assert not changed[:, n:].any()
    on = changed[0, :n] == state.rows.kappa[:n]
    assert 0 < np.sum(on) < n


@pytest.mark.parametrize("column", [None, 3], ids=["all vary", "one does not"])
def test_weight_step_of_the_splitting_against_brute_force(column):
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(30, 4)) * [1.0, 0.5, 0.1, 2.0], np.repeat([1.0, -1.0], 15)
    if column is not None:
        X[:, column] = 0.7
    samples = faces.Samples(X, y, y, np.full(30, 0.5))
    for radius in (0.1, 2.0, 300.0):
        state = splitting.Splitting(samples, radius, np.full(4, 0.5 * radius), 0.0)
        state.factorise()
        h, G = state.step.h.astype(float), state.gram.astype(float)
        from_python(splitting.fit_weights)(state.step, state.factor, state.scalars)
        a = state.step.a.astype(float)
        assert np.linalg.norm(a) == pytest.approx(radius, rel=1e-5)
        trials = rng.normal(size=(100_000, 4))
        trials *= radius / np.linalg.norm(trials, axis=1, keepdims=True)
        best = np.min(0.5 * np.einsum("ij,jk,ik->i", trials, G, trials) - trials @ h)
        ours = 0.5 * a @ G @ a - h @ a
        assert ours <= best + 1e-3 * (abs(best) + radius * np.linalg.norm(h))


@pytest.fixture
def large():
    """A splitting of a convex problem with more weights than the least that counts as large."""
    rng = np.random.default_rng(15)
    n, D = 600, splitting.LARGE + 20
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    X = (rng.normal(size=(n, D)) * rng.uniform(0.2, 2.0, size=D) + 0.1 * y[:, None]) / np.sqrt(D)
    samples, J = faces.Samples(X, y, y, np.full(n, 1.5)), X.T @ y
    J *= np.sqrt(D) / np.linalg.norm(J)
    return samples, splitting.Splitting(samples, np.sqrt(D), J, 0.0), J


def test_guessed_shift_is_a_lower_bound_and_close(large):
    _, state, _ = large
    for _ in range(3):  # powers of the Gram matrix at first, then of the last block's inverse
        h, G = state.step.h.astype(float), state.gram.astype(float)
        radius = state.scalars["radius"]
        exact = naive.shift_of_norm(G, h, radius)
        found = state.guess_shift(np.linalg.norm(h) / radius, 0.0)
        assert 0.9 * exact < found <= exact * (1.0 + 1e-3)
        state.factorise()
        assert state.convex
        norm = np.linalg.norm(np.linalg.solve(G + state.mu * np.eye(len(h)), h))
        assert norm == pytest.approx(radius, rel=1.1 * splitting.ROUGH)
        state.run(3)


def test_rough_shifts_lead_to_the_same_minimum(large, monkeypatch):
    samples, _, J = large
    found = []
    for least in (splitting.LARGE, 10**6):
        monkeypatch.setattr(splitting, "LARGE", least)
        guess = splitting.split(samples, np.linalg.norm(J), J, 0.0)
        assert guess.convex == (least < 10**6)
        found.append(descent.descend(samples, *guess[:3], 5000))
    assert found[0][2] > 0.0  # one minimum
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-9)
    assert found[0][1] == pytest.approx(found[1][1], abs=1e-9)


def test_coordinates_of_the_span_of_the_samples():
    rng = np.random.default_rng(16)
    X, J = rng.normal(size=(5, 12)), rng.normal(size=12)
    frame = Frame(X)
    basis, triangle = np.linalg.qr(np.column_stack([X.T, np.ones(12)]))
    np.testing.assert_allclose(frame.samples(), triangle[:, :-1].T, atol=1e-12)
    np.testing.assert_allclose(frame.lift(np.arange(6.0)), basis @ np.arange(6.0), atol=1e-12)
    np.testing.assert_allclose(frame.lower(J), basis.T @ J, atol=1e-12)
    np.testing.assert_allclose(X @ frame.outside(J), 0.0, atol=1e-12)
    np.testing.assert_allclose(X @ frame.lift(frame.lower(J)), X @ J, atol=1e-12)


def test_descent_of_few_samples_is_that_of_all():
    rng = np.random.default_rng(14)
    n, D = 400, 8
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    samples = faces.Samples(rng.normal(size=(n, D)) + 0.3 * y[:, None], y, y, np.full(n, 1.0))
    J = rng.normal(size=D)
    J *= 0.5 / np.linalg.norm(J)
    start = np.argsort(np.abs(descent.gaps(samples, J, 0.0)))[:3]
    found = []
    for near in (1, 2, n):  # the fewer, the more often others move to the other side
        found.append(descent.descend(samples, J, 0.0, start, 2000, near))
    assert found[2][2] > 0.0  # there is one minimum
    for few in found[:2]:
        np.testing.assert_allclose(few[0], found[2][0], atol=1e-9)
        assert few[1] == pytest.approx(found[2][1], abs=1e-9)
        np.testing.assert_allclose(few[3], found[2][3], atol=1e-6)


def test_walk_against_its_twin():
    rng = np.random.default_rng(13)
    y = np.repeat([1.0, -1.0], [4, 6])
    X = rng.normal(size=(10, 7)) + y[:, None]
    problem = Problem(X, y, np.ones(10), 0.1, 1.5)
    J, b, _ = problem.largest_margin()
    normals, uniforms = rng.normal(size=(20, 7)), rng.random((20, 2))
    found = walk(problem.samples, J, b, J @ J, Draws(normals, np.zeros(20), uniforms))
    for normal, u in zip(normals, uniforms, strict=True):
        J, b = naive.hit_and_run(X, y, 0.1, J, b, normal, u)
    np.testing.assert_allclose(found[0], J, atol=1e-9)
    assert found[1] == pytest.approx(b, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_best_bias_against_all_candidates(seed):
    rng = np.random.default_rng(seed)
    n = 30
    scores, y = rng.normal(size=n), np.where(rng.random(n) < 0.4, 1.0, -1.0)
    c, kappa = rng.integers(1, 4, size=n).astype(float), np.full(n, rng.choice([0.0, 0.5, 2.0]))

    def loss(b):
        return c @ np.maximum(kappa - y * (scores - b), 0.0)

    b, sample = descent.best_bias(scores, y, c, kappa, 1e-13)
    assert loss(b) == pytest.approx(min(loss(kink) for kink in scores - y * kappa), abs=1e-12)
    if sample >= 0:
        assert y[sample] * (scores[sample] - b) == pytest.approx(kappa[sample], abs=1e-12)


def cross(gap, along, across, side, y=1.0):
    """The track of samples with margin 0 and gaps (n,), with its crossings of an arc."""
    n = len(gap)
    samples = faces.Samples(np.empty((n, 0)), np.full(n, y), np.empty(n), np.zeros(n))
    track = faces.empty_track(n)
    track.score[:], track.along[:], track.across[:], track.side[:] = gap, along, across, side
    from_python(faces.crossings)(samples, track, 0.0, -1, 1e-13)
    return track


def test_crossings_are_where_the_margin_is_met():
    rng = np.random.default_rng(0)
    n = 200
    gap, along, across = rng.normal(size=(3, n))
    side = np.where(gap < 0.0, faces.BELOW, faces.ABOVE)
    side[7] = faces.ON
    track = cross(gap, along, across, side)
    assert np.isinf(track.first[7])
    angles = np.linspace(0.0, np.pi, 20_001)[:-1, None]
    path = gap + along * (np.cos(angles) - 1.0) + across * np.sin(angles)
    changes = np.sum(np.diff(np.sign(path), axis=0) != 0, axis=0)
    changes[7] = 0
    np.testing.assert_array_equal(np.isfinite(track.first).astype(int) + np.isfinite(track.second), changes)
    for roots in (track.first, track.second):
        i = np.flatnonzero(np.isfinite(roots))
        angle = 2.0 * np.arctan(roots[i])
        at = gap[i] + along[i] * (np.cos(angle) - 1.0) + across[i] * np.sin(angle)
        np.testing.assert_allclose(at, 0.0, atol=1e-9)


def test_scores_along_an_arc():
    rng = np.random.default_rng(1)
    X, vectors, track = rng.normal(size=(9, 6)), faces.empty_vectors(6), faces.empty_track(9)
    vectors.free[:], vectors.turn[:] = rng.normal(size=(2, 6))
    from_python(faces.arc_scores)(X, vectors, track)
    np.testing.assert_allclose(track.along, X @ vectors.free)
    np.testing.assert_allclose(track.across, X @ vectors.turn)


def test_a_sample_on_its_margin_crosses_at_once_or_not():
    first = cross(np.zeros(2), np.zeros(2), np.array([1.0, -1.0]), np.full(2, faces.BELOW)).first
    assert 0.0 < first[0] < 1e-12  # below, and moving up
    assert np.isinf(first[1])


def test_crossings_come_from_the_heap_in_order():
    rng = np.random.default_rng(3)
    track, heap = faces.empty_track(50), faces.empty_heap(50)
    track.first[:], track.second[:] = rng.exponential(size=(2, 50))
    track.second[::3] = np.inf
    n = from_python(faces.gather)(track, heap, 0.2, 1.5)
    roots = np.sort(np.concatenate([track.first, track.second]))
    expected = roots[(roots > 0.2) & (roots <= 1.5)]
    assert n == len(expected)
    for left, t in zip(range(n - 1, -1, -1), expected, strict=True):
        assert heap.t[0] == t
        assert t in (track.first[heap.sample[0]], track.second[heap.sample[0]])
        heap.t[0], heap.sample[0] = heap.t[left], heap.sample[left]
        from_python(faces.sift)(heap, 0, left)


@pytest.mark.parametrize("seed", range(20))
def test_first_stop_is_the_first_minimum_along_the_arc(seed):
    rng = np.random.default_rng(seed)
    n = 25
    base, along, across = 0.3 * rng.normal(size=(3, n))
    y, c, kappa = np.where(rng.random(n) < 0.5, 1.0, -1.0), rng.random(n) + 0.2, 0.2
    start = y * (base + along)
    side = np.where(start < kappa, faces.BELOW, faces.ABOVE)
    below = side == faces.BELOW
    cosine, sine = -((c * y)[below] @ along[below]), -((c * y)[below] @ across[below])
    if sine > 0.0:  # the arc goes the way that lowers the loss
        across, sine = -across, -sine
    track = cross(base + along - y * kappa, along, across, side, y)
    t, sample = from_python(faces.first_stop)(c * y, track, faces.empty_heap(n), cosine, sine, 1e-2)
    changed = ((track.first <= t) + 1 * (track.second <= t)) % 2 == 1
    np.testing.assert_array_equal(track.side != side, changed)

    def loss(angle):
        u = y * (base + along * np.cos(angle) + across * np.sin(angle))
        return c @ np.maximum(kappa - u, 0.0)

    angles = np.linspace(0.0, np.pi, 10_001)
    values = np.array([loss(angle) for angle in angles])
    rises = np.flatnonzero(np.diff(values) > 0.0)
    expected = angles[rises[0]] if len(rises) else np.pi
    assert 2.0 * np.arctan(t) == pytest.approx(expected, abs=1e-3)
    if sample >= 0:
        u = y[sample] * (base + along * np.cos(2 * np.arctan(t)) + across * np.sin(2 * np.arctan(t)))[sample]
        assert u == pytest.approx(kappa, abs=1e-9)


def test_repeated_samples_are_one_with_the_sum_of_their_weights():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(5, 3)), np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    again = np.array([0, 1, 1, 4, 2, 3, 1])
    rows, labels, weight = merge_repeated(X[again], y[again], np.arange(1.0, 8.0))
    assert len(rows) == 5
    assert weight.sum() == 28.0
    assert weight[np.all(rows == X[1], axis=1)] == 2.0 + 3.0 + 7.0
    assert labels[np.all(rows == X[1], axis=1)] == -1.0
    untouched = merge_repeated(X, y, np.ones(5))
    assert untouched[0] is X


def test_equal_samples_of_two_classes_stay_two():
    X = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]])
    rows, labels, _ = merge_repeated(X, np.array([1.0, -1.0, 1.0]), np.ones(3))
    assert len(rows) == 3
    assert sorted(labels[np.all(rows == X[0], axis=1)]) == [-1.0, 1.0]


def test_walk_stays_among_the_zero_loss_weights():
    # two weights: the zero-loss weights for given samples are an arc, and the walk visits all of it evenly
    rng = np.random.default_rng(2)
    X, y = np.array([[1.0, 0.2], [0.8, -0.3], [-0.9, 0.1]]), np.array([1.0, 1.0, -1.0])
    problem = Problem(X, y, np.ones(3), 0.1, 1.0)
    J, b, _ = problem.largest_margin()
    angles = []
    for _ in range(4000 if hasattr(walk, "py_func") else 400):
        J, b = walk(problem.samples, J, b, J @ J, Draws(rng.normal(size=(3, 2)), np.zeros(3), rng.random((3, 2))))
        assert (problem.margins(J, b) >= problem.kappa - 1e-12).all()
        assert J @ J == pytest.approx(1.0)
        angles.append((np.arctan2(J[1], J[0]), b))
    # the evenly filled region, by rejection
    draws = np.column_stack([rng.uniform(-np.pi, np.pi, 400_000), rng.uniform(-2.0, 2.0, 400_000)])
    J = np.column_stack([np.cos(draws[:, 0]), np.sin(draws[:, 0])])
    inside = draws[np.all(y * (J @ X.T - draws[:, 1:]) >= 0.1, axis=1)]
    for moment in (np.mean, np.std):
        np.testing.assert_allclose(moment(angles, axis=0), moment(inside, axis=0), atol=0.05)


@pytest.mark.skipif(not hasattr(walk, "py_func"), reason="many draws need the compiler")
def test_typical_weights_fill_the_directions_outside_the_samples():
    # two samples in six dimensions: against weights drawn evenly on the sphere, and kept where they have zero loss
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(2, 6)) / np.sqrt(6), np.array([1.0, -1.0])
    problem = Problem(X, y, np.ones(2), 0.2, np.sqrt(6))
    assert problem.frame is not None
    J, b, _ = problem.largest_margin()
    drawn = np.array([problem.typical(J, b, 50, rng)[0] for _ in range(2000)])
    np.testing.assert_allclose(np.sum(drawn**2, axis=1), 6.0)
    even = rng.normal(size=(400_000, 6))
    even *= np.sqrt(6) / np.linalg.norm(even, axis=1, keepdims=True)
    room = (even @ X[0] - 0.2) - (even @ X[1] + 0.2)  # of the bias
    weight = np.maximum(room, 0.0)
    for power in (1, 2):
        expected = np.average(even**power, axis=0, weights=weight)
        error = np.std(drawn**power, axis=0) / np.sqrt(len(drawn))
        assert (np.abs(np.mean(drawn**power, axis=0) - expected) <= 5 * error).all()


def test_a_descent_in_a_circle_starts_again_and_leaves_the_problem_as_it_was(monkeypatch):
    rng = np.random.default_rng(17)
    y = np.repeat([1.0, -1.0], [30, 50])
    problem = Problem(rng.normal(size=(80, 6)) + 0.2 * y[:, None], y, np.ones(80), 1.0, np.sqrt(6))
    direct, kappa, descend, margins = problem.solve(1e-6, 5000), problem.kappa.copy(), problem.descend, []

    def stuck_at_first(start, max_iter, kappa):
        margins.append(kappa)
        solution = descend(start, max_iter, kappa)
        return solution if len(margins) > 1 else solution._replace(violation=1.0, n_iter=max_iter)

    monkeypatch.setattr(problem, "descend", stuck_at_first)
    again = problem.solve(1e-6, 5000)
    assert len(margins) == 2
    assert 0.0 < np.abs(margins[1] - kappa).max() < 3e-9
    np.testing.assert_array_equal(problem.kappa, kappa)
    np.testing.assert_allclose(again.J, direct.J, atol=1e-7)
