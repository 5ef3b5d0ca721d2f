"""The partition function by annealing, against sums over all states."""

import math

import numpy as np
import pytest
from machines import digits, fitted, kinds, machine_of, probabilities
from scipy.special import expit, logsumexp
from sklearn.exceptions import ConvergenceWarning

from rbal.rbm import RBM
from rbal.rbm._machine import Bernoulli, Machine
from rbal.rbm._partition import annealed, bridged, enumerated, path_to

# ---- annealing there and back


def drawn(machine, n, rng):
    """Exact samples of a machine small enough to be summed over."""
    v, p = probabilities(machine)
    return v[rng.choice(len(v), n, p=p)]


def covers(estimate, exact, widths=1.96):
    return abs(estimate.value - exact) <= widths * estimate.error


@kinds
def test_annealing_finds_the_partition_function(kind):
    machine, rng = machine_of(kind, seed=8, scale=1.0), np.random.default_rng(10)
    base = np.random.default_rng(9).normal(size=machine.visible.width)
    estimate = annealed(machine, base, drawn(machine, 200, rng), 200, 200, 200, rng)
    assert estimate.reliable
    assert 0.0 < estimate.error < 0.03
    assert covers(estimate, enumerated(machine).value, 4.0)


@kinds
def test_weights_of_paths_have_the_right_means_where_annealing_is_rough(kind):
    """In either direction, as Jarzynski has it; forward it is annealed importance sampling."""
    machine, rng, n = machine_of(kind, seed=11, scale=0.8), np.random.default_rng(12), 40_000
    path = path_to(machine, np.zeros(machine.visible.width))
    ratio, betas = enumerated(machine).value - path.log_z(), np.linspace(0.0, 1.0, 6)
    forward = path.follow(path.first(n, rng), betas, rng)[1]
    reverse = path.follow(machine.visible.encode(drawn(machine, n, rng), np.float32), betas[::-1], rng)[1]
    for log_w in (forward - ratio, reverse + ratio):
        w = np.exp(log_w)
        assert abs(w.mean() - 1.0) < 4.0 * w.std() / np.sqrt(n)
        assert w.std() > 0.1


def test_the_bridge_is_that_of_bennett():
    """Log weights of normal deviates, for which the two directions have one known ratio; and the error has its size."""
    rng, ratio, sd = np.random.default_rng(13), 3.0, 0.5
    pulls, group = [], np.arange(100)
    for _ in range(300):
        forward, reverse = (sign * ratio - 0.5 * sd**2 + sd * rng.normal(size=(4, 100)) for sign in (1.0, -1.0))
        estimate = bridged(forward, reverse, group)
        x = estimate.value  # as many of one direction as of the other are taken for the other
        assert expit(forward - x).sum() == pytest.approx(expit(reverse + x).sum(), rel=1e-9)
        pulls.append((x - ratio) / estimate.error)
    assert abs(np.mean(pulls)) < 4.0 / np.sqrt(300)
    assert 0.6 < np.std(pulls) < 1.1  # some room is left for shares of modes, of which there are none here
    one = bridged(forward, reverse, np.zeros(100, int))
    assert not one.reliable  # chains that have begun at one state say nothing of each other


def test_a_shared_start_is_no_second_chain():
    rng = np.random.default_rng(14)
    forward, reverse = (-0.5 + rng.normal(size=(4, 50)) for _ in range(2))
    twice = [np.concatenate([w, w], axis=1) for w in (forward, reverse)]
    once, doubled = bridged(forward, reverse, np.arange(50)), bridged(*twice, np.arange(100) % 50)
    assert doubled.value == pytest.approx(once.value)
    assert 0.9 * once.error < doubled.error <= once.error  # twice as many paths forward might have found more


def test_states_that_no_path_forward_finds_make_the_error_as_large_as_their_room():
    """However few they are: what they weigh is not known from how many there are."""
    rng = np.random.default_rng(16)
    forward, reverse = (-0.5 + rng.normal(size=(4, 100)) for _ in range(2))
    before = bridged(forward, reverse, np.arange(100))
    assert before.reliable
    found = []
    for depth in (6.0, 9.0):
        reverse[:, 7] = -depth  # one chain, in every round: about 400 e^-depth paths would come there
        estimate = bridged(forward, reverse, np.arange(100))
        found.append(np.exp(np.minimum(forward - depth, 0.0)).sum())
        assert abs(estimate.value - before.value) < 0.03
        assert not estimate.reliable
        assert estimate.error == pytest.approx(np.log1p(1.0 / found[-1]), rel=0.05)
    assert found[1] < 0.1 < 0.5 < found[0] < 3.0
    reverse[1:, 7] = 0.0  # in one round only: the path was slow, and the state is no such one
    assert bridged(forward, reverse, np.arange(100)).reliable


def prototypes(Q, L, n_modes, flips, seed, n=600):
    """States around a few random ones, modes of unequal weight."""
    rng = np.random.default_rng(seed)
    modes = rng.integers(0, Q, (n_modes, L))
    X = modes[rng.choice(n_modes, n, p=np.arange(1, n_modes + 1) / (n_modes * (n_modes + 1) / 2))]
    return np.where(rng.random(X.shape) < flips, rng.integers(0, Q, X.shape), X)


TRAINED = {
    "binary": ({"Q": 2, "L": 120, "n_modes": 6, "flips": 0.2, "seed": 1}, {"n_hidden": 12}),
    "few samples": ({"Q": 2, "L": 120, "n_modes": 4, "flips": 0.1, "seed": 2, "n": 60}, {"n_hidden": 12}),
    "potts": ({"Q": 5, "L": 30, "n_modes": 5, "flips": 0.3, "seed": 3}, {"n_hidden": 12}),
    "gaussian": ({"Q": 2, "L": 15, "n_modes": 3, "flips": 0.3, "seed": 4}, {"n_hidden": 6, "hidden": "gaussian"}),
}


@pytest.mark.slow
def test_intervals_of_log_z_hold():
    """Four trained machines whose log Z is known; the stored study has ten seeds of six larger ones."""
    held, reliable = {}, {}
    for name, (data, params) in TRAINED.items():
        X = prototypes(**data)
        rbm = RBM(n_states=data["Q"], n_epochs=150, random_state=0, progress=False, **params).fit(X)
        t, exact = rbm._training, enumerated(rbm._training.machine).value
        starts = t.machine.visible.decode(t.visible_chains)
        runs = [annealed(t.machine, t.base, starts, 100, 200, 1600, np.random.default_rng(seed)) for seed in range(4)]
        held[name] = [covers(run, exact) for run in runs]
        reliable[name] = [run.reliable for run in runs]
        assert all(covers(run, exact, 4.0) for run in runs), name
    assert np.mean(list(held.values())) >= 0.9, held
    assert np.mean(list(reliable.values())) >= 0.9, reliable


def hiding():
    """A machine with most of its mass where annealing from independent units does not come: all units on at once."""
    L, w, b = 60, 8.0, -3.0
    here, there = L * np.logaddexp(0.0, b), L * np.logaddexp(0.0, b + w)
    f32 = np.float32
    c = here - there + 2.0
    machine = Machine(Bernoulli(L), Bernoulli(1), np.full((L, 1), w, f32), np.full(L, b, f32), np.array([c], f32))
    return machine, np.repeat([[0], [1]], 30, axis=0) * np.ones(L, int)


def test_mass_that_annealing_misses_is_seen_from_the_other_side():
    machine, both = hiding()
    rng, exact, betas = np.random.default_rng(15), enumerated(machine).value, np.linspace(0.0, 1.0, 200)
    path = path_to(machine, machine.b)
    alone = path.log_z() + path.follow(path.first(400, rng), betas, rng)[1]
    assert alone.std() < 0.5  # all chains agree on a value that
    assert logsumexp(alone) - np.log(400) < exact - 1.5  # misses most of the mass
    for starts in (both, both[30:]):
        estimate = annealed(machine, machine.b, starts, 100, 50, 100, rng)
        assert not estimate.reliable
        assert estimate.error > 0.5


def test_an_unreliable_log_z_warns_once():
    machine, both = hiding()
    rest = Machine(
        Bernoulli(60), Bernoulli(21), np.pad(machine.W, ((0, 0), (0, 20))), machine.b, np.pad(machine.c, (0, 20))
    )
    rbm, quick = fitted(rest), {"n_chains": 40, "n_betas": 20, "max_betas": 40}
    rbm._training.base, rbm._training.visible_chains = rest.b, both.astype(np.float32)
    with pytest.warns(ConvergenceWarning, match="is not reliable: annealing forward and in reverse disagree") as seen:
        first = rbm.log_partition(**quick)
    assert len(seen) == 1
    assert not first.reliable
    assert rbm.log_partition(**quick) == first  # and no second warning, which would be an error here
    assert rbm.log_partition(both, **quick).reliable is False
    rbm.partial_fit(both)
    rbm._training.machine = rest
    rbm.log_partition(**quick)
    rbm.fit(both)  # a new training, a new machine
    rbm._training.machine, rbm._training.base = rest, rest.b
    with pytest.warns(ConvergenceWarning, match="said once"):
        rbm.log_partition(both, **quick)


def test_weights_that_overflow_are_not_reliable():
    nothing = bridged(np.full((4, 20), np.inf), np.zeros((4, 20)), np.arange(20))
    assert math.isnan(nothing.value)
    assert not nothing.reliable


def test_a_machine_too_large_to_enumerate_is_annealed():
    X = digits(300, L=30, seed=1)
    X[:, 1:15] = X[:, :1]  # half of the sites are copies of one
    rbm = RBM(25, n_epochs=30, random_state=0, progress=False).fit(X)
    first, second = rbm.log_partition(), rbm.log_partition(X, n_betas=100, random_state=3)
    assert first.reliable
    assert 0.0 < first.error < 0.2
    assert abs(first.value - second.value) < 4.0 * np.hypot(first.error, second.error)
    assert rbm.score(X) == pytest.approx(-rbm.free_energy(X).mean() - first.value)  # the same, again
    with pytest.raises(ValueError, match="X must hold states"):
        rbm.log_partition(X + 1)
