"""Lattice proteins: counts, identities, naive twins of the kernels, and a sampler held to exact enumeration."""

import hashlib
import importlib.util
import inspect
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from numpydoc.docscrape import FunctionDoc

from rbal_book.datasets import _dimers, _fold, _proteins, _walks, lattice

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def walks():
    return lattice.enumerate_walks()


@pytest.fixture(scope="module")
def small():
    """Three hundred structures, enough for every kernel."""
    return lattice.representative_structures(300, rng=1)


@pytest.fixture(scope="module")
def shipped():
    return lattice.load_structures()


# ---- naive twins


def naive_walks(shape):
    """All directed walks that fill a box, by recursion."""
    sites = set(itertools.product(*map(range, shape)))

    def extend(walk):
        if len(walk) == len(sites):
            yield walk
        for axis, step in itertools.product(range(3), (-1, 1)):
            to = tuple(x + step * (axis == k) for k, x in enumerate(walk[-1]))
            if to in sites and to not in walk:
                yield from extend([*walk, to])

    return [walk for start in sites for walk in extend([start])]


def naive_symmetries(shape):
    """Images of the coordinates under all maps of the box onto itself, as functions of a walk."""
    for axes in itertools.permutations(range(3)):
        if [shape[a] for a in axes] == list(shape):
            for flip in itertools.product((0, 1), repeat=3):
                yield lambda walk, axes=axes, flip=flip: tuple(
                    tuple(shape[k] - 1 - x[a] if flip[k] else x[a] for k, a in enumerate(axes)) for x in walk
                )


def naive_contacts(walk):
    """Pairs at distance one that are not bonded."""
    return [
        [i, j]
        for i, j in itertools.combinations(range(len(walk)), 2)
        if j > i + 1 and np.abs(np.subtract(walk[i], walk[j])).sum() == 1
    ]


def naive_energy(v, contacts, E):
    return sum(E[v[i], v[j]] for i, j in contacts)


def naive_p_nat(v, structures, native, E):
    weight = [math.exp(-naive_energy(v, naive_contacts(walk), E)) for walk in structures.walks.tolist()]
    return weight[native] / math.fsum(weight)


def naive_p_int(v1, v2, docks, E):
    weight = [math.exp(-sum(E[v1[i], v2[j]] for i, j in contacts)) for contacts in docks]
    return weight[0] / math.fsum(weight)


def naive_heat_bath(V, k, u, structures, target):
    """Draw each monomer of sequence k from its conditional distribution, by p_nat and p_int alone, in place."""
    Q = len(target.X)
    for i in range(V.shape[1]):
        changed = np.repeat(V[None], Q, axis=0)
        changed[:, k, i] = np.arange(Q)
        fold = lattice.p_nat(changed[:, k], structures, int(target.natives[k]))
        allowed = (fold > target.p_min) | (fold >= fold[V[k, i]])
        weight = np.where(allowed, lattice.p_int(changed.reshape(Q, -1), target.docks, chi=target.chi), 0.0)
        V[k, i] = np.searchsorted(np.cumsum(weight) / weight.sum(), u[i], side="right")


def naive_cluster(v, seed, contacts, swap):
    """Monomers that native contacts between letters that swap join to the seed."""
    charged = set(np.flatnonzero(swap[v] != v).tolist())
    component = {seed} & charged
    for _ in range(len(v)):
        component |= {j for c in contacts.tolist() for i, j in (c, c[::-1]) if i in component and j in charged}
    return component


def naive_exchanges(V, swaps, structures, target):
    """Swap all letters of one sequence or of both, twice, then a cluster of each, by Metropolis, in place."""
    natives = target.natives.tolist()
    for move, (u, chance) in enumerate(swaps):
        member = np.zeros(V.shape, bool)
        if move < 2:
            member[[[0], [1], [0, 1]][int(3 * u)]] = True
        else:
            k = move - 2
            member[k, list(naive_cluster(V[k], int(u * V.shape[1]), structures.contacts[natives[k]], target.swap))] = (
                True
            )
        new = np.where(member, target.swap[V], V).astype(V.dtype)
        folds = [[lattice.p_nat(v[[k]], structures, natives[k])[0] for v in (V, new)] for k in range(2)]
        ratio = np.divide(*(lattice.p_int(v.reshape(1, -1), target.docks)[0] for v in (new, V))) ** target.chi
        if all(after >= min(before, target.p_min) for before, after in folds) and chance < ratio:
            V[:] = new


# ---- walks


def test_cube_has_as_many_walks_as_known(walks):
    # 103,346 classes, all of size 48: a symmetry that fixes a walk fixes every site
    assert walks.shape == (103_346, 27, 3)
    assert len(_walks.symmetries((3, 3, 3))) == 48
    assert len(walks) * 48 == 4_960_608


@pytest.mark.parametrize(
    ("shape", "directed"),
    [
        ((2, 2, 1), 8),
        ((3, 3, 1), 40),
        ((4, 4, 1), 552),
        ((5, 5, 1), 8648),
        ((2, 2, 2), 144),
    ],  # OEIS A096969; cube graph
)
def test_counts_known_from_elsewhere(shape, directed):
    assert len(lattice.enumerate_walks(shape)) * len(_walks.symmetries(shape)) == directed


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (2, 1, 1), (2, 3, 1), (3, 3, 1), (4, 3, 1), (2, 2, 2), (3, 2, 2), (2, 3, 2)]
)
def test_walks_are_one_of_each_class(shape):
    maps = list(naive_symmetries(shape))
    classes = {min(g(walk) for g in maps) for walk in naive_walks(shape)}
    found = {tuple(map(tuple, walk)) for walk in lattice.enumerate_walks(shape).tolist()}
    assert found == classes  # the least of each class, as both number sites in lexicographic order


def test_every_walk_is_compact_and_self_avoiding(walks):
    assert walks.min() == 0
    assert walks.max() == 2
    assert (np.abs(np.diff(walks, axis=1)).sum(axis=2) == 1).all()
    sites = np.sort(walks @ np.array([9, 3, 1]), axis=1)
    assert (sites == np.arange(27)).all()


def test_walks_are_distinct_under_every_symmetry(walks):
    # the least of its 48 images stands for a class: equal representatives would show as equal rows
    sites = walks @ np.array([9, 3, 1])
    images = sites
    for g in _walks.symmetries((3, 3, 3)):
        image = g[sites]
        first = np.argmax(image != images, axis=1)[:, None]
        less = np.take_along_axis(image, first, 1) < np.take_along_axis(images, first, 1)
        images = np.where(less, image, images)
    assert (images == sites).all()
    assert len(np.unique(sites, axis=0)) == len(walks)


def test_a_box_without_walks():
    assert lattice.enumerate_walks((1, 1, 4)).shape == (1, 4, 3)
    odd = lattice.enumerate_walks((3, 3, 1))[:, 0].sum(axis=1)
    assert (odd % 2 == 0).all()  # with an odd number of sites only the larger sublattice holds the ends


@pytest.mark.parametrize("shape", [(3, 3), (3, 3, 0), (3, 3, 3.0), (4, 4, 4), "333", 3])
def test_bad_shape(shape):
    with pytest.raises(ValueError, match="shape must be"):
        lattice.enumerate_walks(shape)


# ---- contacts


def test_contacts_match_naive(walks):
    some = walks[:: len(walks) // 50]
    assert lattice.contacts(some).tolist() == [naive_contacts(walk) for walk in some.tolist()]
    plane = lattice.enumerate_walks((4, 3, 1))
    assert lattice.contacts(plane).tolist() == [naive_contacts(walk) for walk in plane.tolist()]


def test_contact_maps_are_all_different(walks):
    contacts = lattice.contacts(walks)
    assert contacts.shape == (103_346, 28, 2)  # 54 pairs of neighbours, 26 of them bonded
    i, j = contacts[..., 0].astype(int), contacts[..., 1].astype(int)
    assert (j - i >= 3).all()
    assert ((j - i) % 2 == 1).all()
    assert len(np.unique(i * 27 + j, axis=0)) == len(walks)


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros((1, 4, 2)),
        np.zeros((1, 8, 3)),
        [[[0, 0, 0], [1, 1, 0], [1, 0, 0], [0, 1, 0]]],
        [[[0, 0, 0], [0, 1, 0], [1, 1, 0]]],
        [[[0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 1, 0]]],
        [[[0, 0, 0], [0, 0.5, 0]]],
        [[[-1, 0, 0], [0, 0, 0]]],
    ],
)
def test_walks_that_are_none(bad):
    with pytest.raises(ValueError, match="walks must"):
        lattice.contacts(bad)
    with pytest.raises(ValueError, match="walks must"):
        lattice.Structures(bad)


def test_subset_is_seeded_and_without_repetition(small):
    again = lattice.representative_structures(300, rng=np.random.default_rng(1))
    assert (again.walks == small.walks).all()
    assert len(np.unique(small.walks.reshape(300, -1), axis=0)) == 300
    other = lattice.representative_structures(300, rng=2)
    assert not (other.walks == small.walks).all()
    with pytest.raises(ValueError, match="n must be at most 103346"):
        lattice.representative_structures(103_347)
    with pytest.raises(ValueError, match="n must be a positive integer"):
        lattice.representative_structures(0)


# ---- sequences and energies


def test_encode_and_decode_are_inverse():
    states = np.random.default_rng(0).integers(20, size=(7, 27))
    assert (lattice.encode(lattice.decode(states)) == states).all()
    assert lattice.decode(lattice.encode("MKVLA")) == "MKVLA"
    assert "".join(sorted(lattice.AMINO_ACIDS)) == lattice.AMINO_ACIDS


@pytest.mark.parametrize(
    ("bad", "message"),
    [("ABC", "'B'"), ("acd", "'a'"), (["AC", "A"], "one length"), ([1], "strings"), ([], "one length")],
)
def test_bad_letters(bad, message):
    with pytest.raises(ValueError, match=message):
        lattice.encode(bad)


@pytest.mark.parametrize("bad", [[0, 20], [-1, 0], [0.5, 1]])
def test_decode_takes_states_only(bad):
    with pytest.raises(ValueError, match="states must hold states 0 … 19"):
        lattice.decode(bad)


def test_energies_of_miyazawa_and_jernigan():
    E = lattice.miyazawa_jernigan()
    assert E.shape == (20, 20)
    assert (E == E.T).all()
    assert (E < 0).all()
    assert E[tuple(lattice.encode("LL"))] == E.min() == -7.37
    assert E[tuple(lattice.encode("KK"))] == E.max() == -0.12
    assert E[tuple(lattice.encode("DR"))] == -2.29
    assert E[tuple(lattice.encode("CC"))] == -5.44


def test_energies_match_naive(small):
    V = np.random.default_rng(2).integers(20, size=(3, 27))
    E = lattice.miyazawa_jernigan()
    expected = [[naive_energy(v, naive_contacts(walk), E) for walk in small.walks.tolist()] for v in V]
    np.testing.assert_allclose(lattice.energies(V, small), expected, rtol=1e-13)
    np.testing.assert_array_equal(lattice.energies(lattice.decode(V), small), lattice.energies(V, small))


@pytest.mark.parametrize("native", [0, 17, 299])
def test_p_nat_matches_naive(small, native):
    V = np.random.default_rng(3).integers(20, size=(2, 27))
    expected = [naive_p_nat(v, small, native, lattice.miyazawa_jernigan()) for v in V]
    np.testing.assert_allclose(lattice.p_nat(V, small, native), expected, rtol=1e-12)


def test_p_nat_sums_to_one(small):
    v = np.random.default_rng(4).integers(20, size=(1, 27))
    assert sum(lattice.p_nat(v, small, s)[0] for s in range(len(small))) == pytest.approx(1.0, rel=1e-12)


def test_p_nat_does_not_overflow(small):
    # energies of thousands: only differences may be exponentiated
    v = np.random.default_rng(4).integers(2, size=(1, 27))
    p = lattice.p_nat(v, small, 0, energy=np.array([[-3000.0, 0.0], [0.0, 3000.0]]))
    assert np.isfinite(p).all()


@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        (np.zeros((2, 26), int), "27 residues each, got 26"),
        ("A" * 28, "27 residues each, got 28"),
        (np.full((1, 27), 20), "states 0 … 19"),
        (np.zeros((1, 1, 27)), "dimensions"),
        (["B" * 27], "'B'"),
        (np.full((1, 27), np.nan), "finite"),
    ],
)
def test_bad_sequences(small, sequences, message):
    with pytest.raises(ValueError, match=message):
        lattice.p_nat(sequences, small, 0)
    with pytest.raises(ValueError, match=message):
        lattice.energies(sequences, small)


@pytest.mark.parametrize("native", [-1, 300, 1.0, True, None])
def test_structure_out_of_range(small, native):
    with pytest.raises(ValueError, match="native must be the position of a structure, 0 … 299"):
        lattice.p_nat("A" * 27, small, native)


@pytest.mark.parametrize("energy", [np.zeros((2, 3)), [[0.0, 1.0], [2.0, 0.0]], [[1.0]]])
def test_bad_energy(small, energy):
    with pytest.raises(ValueError, match="energy must be a symmetric"):
        lattice.p_nat(np.zeros((1, 27)), small, 0, energy=energy)


# ---- two cubes


def test_dimer_contacts_of_a_generic_pair(small):
    docks = lattice.dimer_contacts(small.walks[3], small.walks[40])
    assert docks.shape == (144, 9, 2)
    assert len({frozenset(map(tuple, contacts)) for contacts in docks.tolist()}) == 144
    for side in (0, 1):  # a face meets every other face four times
        faces = [frozenset(contacts[:, side].tolist()) for contacts in docks]
        assert len(set(faces)) == 6
        assert all(len(face) == 9 for face in faces)
        assert {faces.count(face) for face in set(faces)} == {24}


@pytest.mark.parametrize("orientation", [0, 1, 37, 143])
def test_docked_cubes_touch_and_keep_their_shape(small, orientation):
    first, second = small.walks[3], small.walks[40]
    a, b = lattice.dock(first, second, orientation)
    assert (a == first).all()
    assert not {tuple(x) for x in a} & {tuple(x) for x in b}
    distance = np.abs(a[:, None] - b).sum(axis=2)
    assert (distance == 1).sum() == 9
    # a rotation keeps oriented volumes: three steps of the chain that do not lie in a plane
    steps, turned = np.diff(second.astype(int), axis=0), np.diff(b, axis=0)
    volumes = [np.linalg.det(s[k : k + 3]) for s in (steps, turned) for k in range(24)]
    assert any(volumes)
    np.testing.assert_allclose(volumes[:24], volumes[24:])
    contacts = lattice.dimer_contacts(first, second)[orientation]
    assert contacts.tolist() == np.argwhere(distance == 1).tolist()


def test_orientations_are_numbered_by_face_and_face(small):
    docks = lattice.dimer_contacts(small.walks[3], small.walks[40]).reshape(6, 6, 4, 9, 2)
    for k, (axis, at) in enumerate(itertools.product(range(3), (0, 2))):
        for side, walk in enumerate((small.walks[3], small.walks[40])):
            face = set(np.flatnonzero(walk[:, axis] == at).tolist())
            block = docks[k] if side == 0 else docks[:, k]
            assert {frozenset(c[:, side].tolist()) for c in block.reshape(-1, 9, 2)} == {frozenset(face)}


def test_quarter_turns_follow_each_other(small):
    # four turns in one sense are none: the partner of each monomer comes back, and opposite turns agree on the middle
    first, second = small.walks[3], small.walks[40]
    for pair in range(36):
        b = [lattice.dock(first, second, 4 * pair + turn)[1] for turn in range(4)]
        maps = [
            np.linalg.lstsq(b[t] - b[t].mean(0), b[(t + 1) % 4] - b[(t + 1) % 4].mean(0), rcond=None)[0]
            for t in range(4)
        ]
        for turn in maps[1:]:
            np.testing.assert_allclose(turn, maps[0], atol=1e-12)


def test_dock_takes_cubes_only(small):
    plane = lattice.enumerate_walks((3, 3, 1))[0]
    with pytest.raises(ValueError, match="first must fill a cube"):
        lattice.dock(plane, small.walks[0])
    with pytest.raises(ValueError, match="second must visit every site"):
        lattice.dimer_contacts(small.walks[0], small.walks[0][::2])
    with pytest.raises(ValueError, match="first and second must have one shape"):
        lattice.dock(small.walks[0], lattice.enumerate_walks((2, 2, 2))[0])
    for bad in (144, -1, 0.5, 1.0, True, None):
        with pytest.raises(ValueError, match="orientation must be an integer 0 … 143"):
            lattice.dock(small.walks[0], small.walks[1], bad)


@pytest.mark.parametrize("chi", [0.0, 0.1, 5.0])
def test_p_int_matches_naive(small, chi):
    docks = lattice.dimer_contacts(small.walks[3], small.walks[40])
    V = np.random.default_rng(5).integers(20, size=(4, 54))
    E = lattice.miyazawa_jernigan()
    expected = [naive_p_int(v[:27], v[27:], docks.tolist(), E) ** chi for v in V]
    np.testing.assert_allclose(lattice.p_int(V, docks, chi=chi), expected, rtol=1e-11)


def test_p_int_bad_input(small):
    docks = lattice.dimer_contacts(small.walks[3], small.walks[40])
    with pytest.raises(ValueError, match="chi must be >= 0, got -1"):
        lattice.p_int("A" * 54, docks, chi=-1)
    with pytest.raises(ValueError, match="54 residues each, got 27"):
        lattice.p_int("A" * 27, docks)
    with pytest.raises(ValueError, match="docks must be pairs"):
        lattice.p_int("A" * 54, docks[..., :1])


# ---- kernels of the sampler


@pytest.fixture
def pair(small):
    """Random sequences on two structures, with the weights the kernels keep."""
    V = np.random.default_rng(6).integers(20, size=(2, 27)).astype(np.int8)
    E = lattice.miyazawa_jernigan()
    docks = lattice.dimer_contacts(*small.walks[[7, 9]])
    swap = _dimers._involution(lattice.encode(_dimers.CHARGES), 20)
    target = _fold.Target(np.exp(-E), np.array([7, 9]), docks, _fold.interface(docks, 27), 1.3, 1e-12, swap, True)
    return small, target, weights(V, small, target)


def weights(V, structures, target):
    w, b = np.empty((2, len(structures))), np.empty(144)
    tables = structures._tables
    for k in range(2):
        _fold.relative_weights(V[k], target.X, tables.pairs, tables.contacts, target.natives[k], np.inf, w[k])
    _fold.docking_weights(V, target.X, target.docks, b)
    return _fold.Pair(V, w, b)


def copied(pair):
    return _fold.Pair(*map(np.copy, pair))


def test_patterns_are_the_contacts(small):
    tables = small._tables
    for s in (0, 123, 299):
        pairs = {tuple(tables.pairs[c]) for c in tables.contacts[s]}
        assert pairs == {tuple(c) for c in small.contacts[s]}
        for i in range(27):
            partners = tables.partners[i, tables.pattern[i, s]]
            assert {*partners[partners >= 0]} == {a + b - i for a, b in pairs if i in (a, b)}


def test_weights_stop_at_their_limit(pair):
    small, target, (V, w, _) = pair
    tables, total = small._tables, w[0].sum()
    assert 1.0 / total == pytest.approx(lattice.p_nat(V[:1], small, 7)[0], rel=1e-12)
    room = np.empty(300)
    args = V[0], target.X, tables.pairs, tables.contacts, 7
    assert _fold.relative_weights(*args, total * 1.001, room) == pytest.approx(total, rel=1e-12)
    assert _fold.relative_weights(*args, total * 0.999, room) == math.inf


def test_conditional_probabilities_match_naive(pair):
    small, target, (V, w, b) = pair
    tables, p = small._tables, np.empty(20)
    for k, i in itertools.product(range(2), (0, 5, 13, 26)):
        changed = np.repeat(V[None], 20, axis=0)
        changed[:, k, i] = np.arange(20)
        _fold.fold_probabilities(i, V[k], target.X, w[k], target.natives[k], tables, p)
        np.testing.assert_allclose(p, lattice.p_nat(changed[:, k], small, int(target.natives[k])), rtol=1e-11)
        _fold.docking_probabilities(i, V[k], V[1 - k], target.X, b, target.touch[k, i], p)
        np.testing.assert_allclose(p, lattice.p_int(changed.reshape(20, 54), target.docks), rtol=1e-12)


def test_heat_bath_inverts_the_conditional_distribution(pair):
    # a sweep of the kernel against one made of p_nat and p_int alone
    small, target, pair = pair
    V, u = pair.V, np.random.default_rng(7).random(27)
    expected = V.copy()
    naive_heat_bath(expected, 0, u, small, target)
    _fold.heat_bath(0, pair, u, small._tables, target)
    assert V.tolist() == expected.tolist()
    for kept, fresh in zip(pair, weights(V, small, target), strict=True):  # followed all changes
        np.testing.assert_allclose(kept, fresh, rtol=1e-11)


def test_constraint_ratchets_up(pair):
    small, target, pair = pair
    V, target = pair.V, target._replace(p_min=1.0)  # never reached: p_nat may only rise
    last = lattice.p_nat(V[:1], small, 7)[0]
    for u in np.random.default_rng(8).random((5, 27)):
        _fold.heat_bath(0, pair, u, small._tables, target)
        now = lattice.p_nat(V[:1], small, 7)[0]
        assert now >= last * (1 - 1e-12)
        last = now
    assert last > 0.5


def test_exchange_accepts_with_the_ratio_of_weights(pair):
    small, target, pair = pair
    V = pair.V
    swapped = target.swap[V].astype(np.int8)
    docks = target.docks
    ratio = (lattice.p_int(swapped.reshape(1, 54), docks) / lattice.p_int(V.reshape(1, 54), docks))[0] ** target.chi
    all_of_both = np.ones((2, 27), bool)
    for u, accepted in ((ratio * 0.999, True), (ratio * 1.001, False)):
        new = copied(pair)
        _fold.exchange(all_of_both, new, u, small._tables, target)
        assert (new.V == (swapped if accepted else V)).all()
        for kept, fresh in zip(new, weights(new.V, small, target), strict=True):
            np.testing.assert_allclose(kept, fresh, rtol=1e-12)


def test_exchange_respects_the_constraint(pair):
    small, target, pair = pair
    V = pair.V
    p, q = (lattice.p_nat(v[None], small, 7)[0] for v in (V[0], target.swap[V[0]]))
    first = np.repeat([[True], [False]], 27, axis=1)
    for p_min, accepted in ((1.0, q >= p), (q * 0.999, True)):
        new = copied(pair)
        _fold.exchange(first, new, 0.0, small._tables, target._replace(p_min=p_min))
        assert (new.V != V).any() == accepted


def test_cluster_is_a_component_of_native_contacts(pair):
    small, target, _ = pair
    V = np.resize(lattice.encode("DAEKRDA"), (2, 27)).astype(np.int8)
    member = np.empty((2, 27), bool)
    sizes = set()
    for seed in range(27):
        _fold.cluster(1, seed, V, small._tables, target, member)
        component = naive_cluster(V[1], seed, small.contacts[9], target.swap)
        assert not member[0].any()
        assert set(np.flatnonzero(member[1]).tolist()) == component
        sizes.add(len(component))
    assert len(sizes) > 2


@pytest.mark.parametrize("p_min", [1e-12, 0.02])
def test_sweeps_against_their_twin(pair, p_min):
    small, target, pair = pair
    target, rng, trace = target._replace(p_min=p_min), np.random.default_rng(9), np.empty((3, 5))
    uniforms, swaps = rng.random((3, 2, 27)), rng.random((3, _fold.N_EXCHANGES, 2))
    expected, natives, E = pair.V.copy(), target.natives.tolist(), lattice.miyazawa_jernigan()
    _fold.run(_fold.weigh(pair.V, small._tables, target), uniforms, swaps, small._tables, target, trace)
    for u, s, row in zip(uniforms, swaps, trace, strict=True):
        for k in range(2):
            naive_heat_bath(expected, k, u[k], small, target)
        naive_exchanges(expected, s, small, target)
        energy = [naive_energy(expected[k], small.contacts[natives[k]], E) for k in range(2)]
        folds = [lattice.p_nat(expected[[k]], small, natives[k])[0] for k in range(2)]
        meet = lattice.p_int(expected.reshape(1, 54), target.docks)[0]
        np.testing.assert_allclose(row, [*energy, *np.log(folds), np.log(meet)], rtol=1e-9)
    assert pair.V.tolist() == expected.tolist()


# ---- the sampler against exact enumeration


TOY_ENERGY = np.array([[-2.0, -0.3], [-0.3, 0.4]])
TOY_P_MIN = 0.4


def toy_distribution(structures, chi):
    """Probability of each of the 2¹⁶ pairs of binary sequences on the 2×2×2 cube."""
    V = np.array(list(itertools.product(range(2), repeat=8)))
    folds = [lattice.p_nat(V, structures, s, energy=TOY_ENERGY) > TOY_P_MIN for s in (0, 1)]
    pairs = np.array(list(itertools.product(range(2), repeat=16)))
    docks = lattice.dimer_contacts(structures.walks[0], structures.walks[1])
    weight = lattice.p_int(pairs, docks, chi=chi, energy=TOY_ENERGY) * np.outer(*folds).ravel()
    return weight / weight.sum()


@pytest.mark.slow
@pytest.mark.parametrize("swap", [[], [(0, 1)]], ids=["heat bath", "with swaps"])
@pytest.mark.parametrize(("chi", "thin"), [(0.0, 10), (1.0, 20), (3.0, 50)])
def test_sampler_matches_exact_enumeration(chi, thin, swap):
    toy = lattice.Structures(lattice.enumerate_walks((2, 2, 2)))
    exact = toy_distribution(toy, chi)
    assert 1000 < (exact > 0).sum() < 10_000
    settings = {"p_min": TOY_P_MIN, "energy": TOY_ENERGY, "swap": swap, "rng": 1, "progress": False}
    sample = lattice.sample_dimers(
        toy, 0, 1, chi=chi, n_samples=10_000, n_chains=10, burn_in=200, thin=thin, **settings
    )
    assert sample.tau < 1.6  # thinned until samples are as good as independent: χ² asks for it
    counts = np.bincount(sample.states.astype(int) @ (1 << np.arange(16)[::-1]), minlength=exact.size)
    assert counts[exact == 0].sum() == 0
    expected = 10_000 * exact
    often = expected >= 2  # then Pearson's χ² has a variance of at most 2.5 for each cell
    rest = expected[~often].sum()
    chi2 = ((counts - expected)[often] ** 2 / expected[often]).sum() + (counts[~often].sum() - rest) ** 2 / max(rest, 1)
    cells = often.sum()  # the rest is one more cell, the total one fewer
    assert cells > 100
    assert abs(chi2 - cells) < 4 * math.sqrt(2.5 * cells)
    # frequencies, whatever the size of cells
    bits = np.array(list(itertools.product(range(2), repeat=16)))
    mean = exact @ bits
    error = np.sqrt(mean * (1 - mean) / 10_000) * max(1.0, math.sqrt(sample.tau))
    assert (np.abs(sample.states.mean(axis=0) - mean) < 4 * error).all()


@pytest.mark.slow
def test_sampler_started_at_equilibrium_does_not_drift(shipped):
    # shipped pairs, moved on by a few sweeps, keep the distribution of their observables
    states = lattice.load_dimers("bounded")[::200]
    first, second = shipped.native["A"], shipped.native["C"]
    docks = lattice.dimer_contacts(*shipped.walks[[first, second]])
    swap = _dimers._involution(lattice.encode(_dimers.CHARGES), 20)
    X = np.exp(-lattice.miyazawa_jernigan())
    target = _fold.Target(X, np.array([first, second]), docks, _fold.interface(docks, 27), 5.0, 0.99, swap, True)
    rng, after = np.random.default_rng(3), []
    for v in states:
        V = v.reshape(2, 27).astype(np.int8)
        _fold.run(
            _fold.weigh(V, shipped._tables, target),
            rng.random((20, 2, 27)),
            rng.random((20, _fold.N_EXCHANGES, 2)),
            shipped._tables,
            target,
            np.empty((20, 5)),
        )
        after.append(V.ravel())
    before, after = (np.log(lattice.p_int(np.array(s), docks)) for s in (states, after))
    assert abs(before.mean() - after.mean()) < 4 * math.sqrt((before.var() + after.var()) / len(states))


@pytest.fixture(scope="module")
def short_run():
    toy = lattice.Structures(lattice.enumerate_walks((2, 2, 2)))
    return lambda **changes: lattice.sample_dimers(
        toy,
        **{"first": 0, "second": 1, "chi": 1.0, "n_samples": 40, "n_chains": 4, "burn_in": 20, "thin": 2}
        | {"p_min": TOY_P_MIN, "energy": TOY_ENERGY, "progress": False}
        | changes,
    )


def test_sampler_is_seeded_whatever_the_threads(short_run):
    a, b, c = short_run(n_jobs=1), short_run(n_jobs=2), short_run(rng=1)
    assert (a.states == b.states).all()
    assert (a.traces == b.traces).all()
    assert not (a.states == c.states).all()
    assert a.states.shape == (40, 16)
    assert a.traces.shape == (4, 20 + 10 * 2, 5)
    assert (a.chains.reshape(40, 16) == a.states).all()
    assert a.n_effective == pytest.approx(40 / a.tau)
    assert "40 pairs from 4 chains" in repr(a)


def test_traces_are_those_of_the_samples(short_run):
    sample = short_run()
    toy = lattice.Structures(lattice.enumerate_walks((2, 2, 2)))
    docks = lattice.dimer_contacts(*toy.walks[:2])
    at = sample.traces[:, sample.burn_in + sample.thin - 1 :: sample.thin].reshape(40, 5)
    v1, v2 = sample.states[:, :8], sample.states[:, 8:]
    np.testing.assert_allclose(at[:, 0], lattice.energies(v1, toy, energy=TOY_ENERGY)[:, 0], atol=1e-12)
    np.testing.assert_allclose(at[:, 1], lattice.energies(v2, toy, energy=TOY_ENERGY)[:, 1], atol=1e-12)
    np.testing.assert_allclose(at[:, 2], np.log(lattice.p_nat(v1, toy, 0, energy=TOY_ENERGY)), atol=1e-12)
    np.testing.assert_allclose(at[:, 3], np.log(lattice.p_nat(v2, toy, 1, energy=TOY_ENERGY)), atol=1e-12)
    np.testing.assert_allclose(at[:, 4], np.log(lattice.p_int(sample.states, docks, energy=TOY_ENERGY)), atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"chi": -0.1}, "chi must be >= 0, got -0.1"),
        ({"n_chains": 0}, "n_chains must be a positive integer"),
        ({"n_chains": -3}, "n_chains must be a positive integer"),
        ({"n_chains": 1}, "n_chains must be at least 2"),
        ({"n_chains": 3}, "divide n_samples=40"),
        ({"n_samples": 0}, "n_samples must be a positive integer"),
        ({"thin": 0}, "thin must be a positive integer"),
        ({"burn_in": 0}, "burn_in must be a positive integer"),
        ({"first": 3}, "first must be the position of a structure, 0 … 2, got 3"),
        ({"second": -1}, "second must be the position"),
        ({"p_min": 1.5}, "p_min must be >= 0 and <= 1"),
        ({"swap": [(0, 2)]}, "swap must be pairs of different letters 0 … 1"),
        ({"swap": [(0, 0)]}, "swap must be pairs"),
        ({"energy": [[0.0, 1.0]]}, "energy must be a symmetric"),
    ],
)
def test_sampler_bad_input(short_run, changes, message):
    with pytest.raises(ValueError, match=message):
        short_run(**changes)


def test_sampler_says_when_nothing_folds(short_run):
    with pytest.raises(RuntimeError, match=r"p_min=0\.999"):
        short_run(p_min=0.999)


# ---- how long chains remember


def two_state_chains(stay, shape, rng):
    """Independent sites that keep their letter with probability ``stay``, else draw it anew."""
    states = rng.integers(4, size=shape)
    for t in range(1, shape[1]):
        kept = rng.random((shape[0], shape[2])) < stay
        states[:, t] = np.where(kept, states[:, t - 1], states[:, t])
    return states


@pytest.mark.parametrize("stay", [0.0, 0.6, 0.9])
def test_autocorrelation_of_a_chain_we_know(stay):
    # ρ(t) = stayᵗ, τ = (1 + stay)/(1 - stay)
    states = two_state_chains(stay, (40, 2000, 30), np.random.default_rng(0))
    lags = np.array([0, 1, 3])
    rho = lattice.autocorrelation(states, lags)
    # one draw of 40 × 2000 × 30 letters; a correlation of neighbours widens the error by √τ
    tau = (1 + stay) / (1 - stay)
    assert rho[0] == pytest.approx(1.0)
    np.testing.assert_allclose(rho[1:], stay ** lags[1:], atol=4 * math.sqrt(tau / 2.4e6))
    # finite chains: τ(n) = τ - 2 stay (1 - stayⁿ) / (n (1 - stay)²); 39 · 90 free directions
    finite = tau - 2 * stay * (1 - stay**2000) / (2000 * (1 - stay) ** 2)
    assert lattice.autocorrelation_time(states) == pytest.approx(finite, rel=4 * math.sqrt(2 / (39 * 90)))


def test_autocorrelation_bad_input():
    states = two_state_chains(0.5, (3, 10, 2), np.random.default_rng(0))
    with pytest.raises(ValueError, match="at least 2 chains"):
        lattice.autocorrelation_time(states[:1])
    with pytest.raises(ValueError, match="states must have 3 dimensions"):
        lattice.autocorrelation(states[0], 1)
    for lags in (10, -1, 0.5):
        with pytest.raises(ValueError, match="lags must be integers 0 … 9"):
            lattice.autocorrelation(states, lags)
    for function in (lattice.autocorrelation_time, lambda x: lattice.autocorrelation(x, 1)):
        with pytest.raises(ValueError, match="must not be all the same"):
            function(np.zeros((2, 5, 3)))


def test_settling_time_finds_the_end_of_a_drift():
    rng = np.random.default_rng(1)
    traces = rng.normal(size=(10, 400, 2))
    assert lattice.settling_time(traces) < 60
    traces[:, :100, 1] += np.linspace(8, 0, 100)
    assert 60 <= lattice.settling_time(traces) <= 110
    traces[:, :, 0] += np.linspace(0, 50, 400)  # never settles
    assert lattice.settling_time(traces) == 200
    with pytest.raises(ValueError, match="at least two batches"):
        lattice.settling_time(traces[:, :9])
    with pytest.raises(ValueError, match="batch must be a positive integer"):
        lattice.settling_time(traces, batch=0)


# ---- what is shipped


SETS = [("A+C", "bounded"), ("A+C", "mildly bounded"), ("A+C", "unbounded"), ("B+C", "bounded")]


@pytest.mark.parametrize("name", sorted(_proteins.SHA256))
def test_shipped_files_have_their_checksum(name):
    content = (ROOT / "rbal_book" / "datasets" / "_data" / name).read_bytes()
    assert hashlib.sha256(content).hexdigest() == _proteins.SHA256[name]
    assert len(content) <= 2e6


@pytest.mark.parametrize(("compound", "state"), SETS)
def test_shipped_dimers_are_what_they_say(shipped, compound, state):
    states = lattice.load_dimers(state, compound)
    assert states.shape == (10_000, 54)
    assert states.dtype == np.uint8
    assert states.max() < 20
    info = lattice.dimer_info(state, compound)
    assert info["chi"] == lattice.CHI[state]
    natives = [shipped.native[name] for name in compound.split("+")]
    some = states[:: len(states) // 100]
    assert (lattice.p_nat(some[:, :27], shipped, natives[0]) > 0.99).all()
    assert (lattice.p_nat(some[:, 27:], shipped, natives[1]) > 0.99).all()


def test_shipped_chains_forget(shipped):
    for compound, state in SETS:
        info = lattice.dimer_info(state, compound)
        states = lattice.load_dimers(state, compound).reshape(info["n_chains"], -1, 54)
        assert info["settled"] <= info["burn_in"]
        assert lattice.autocorrelation_time(states) == pytest.approx(info["tau"], abs=1e-3)
        assert lattice.autocorrelation(states, 1) == pytest.approx(info["autocorrelation"]["1"], abs=1e-4)
        assert info["autocorrelation"]["1"] < 0.15


def test_binding_grows_with_chi(shipped):
    docks = lattice.dimer_contacts(*shipped.walks[[shipped.native["A"], shipped.native["C"]]])
    means = [np.log(lattice.p_int(lattice.load_dimers(state), docks)).mean() for state in lattice.CHI]
    assert means[0] > means[1] > means[2]


def test_shipped_structures_are_reproducible(shipped):
    spec = importlib.util.spec_from_file_location("make_lattice_data", ROOT / "tools" / "make_lattice_data.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    index, natives = tool.structures()
    assert (lattice.enumerate_walks()[index] == shipped.walks).all()
    assert list(shipped.native.values()) == natives.tolist()
    assert len(shipped) == 10_000


def test_dimers_that_are_not_there():
    with pytest.raises(ValueError, match="state must be one of 'bounded', 'mildly bounded', 'unbounded', got 'free'"):
        lattice.load_dimers("free")
    with pytest.raises(ValueError, match=r"compound must be one of 'A\+C', 'B\+C', got 'A\+B'"):
        lattice.load_dimers("bounded", "A+B")
    with pytest.raises(ValueError, match=r"state must be 'bounded' for the compound 'B\+C'"):
        lattice.dimer_info("unbounded", "B+C")


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-10], lambda b: b[:500] + bytes([b[500] ^ 1]) + b[501:], lambda b: b""]
)
@pytest.mark.parametrize(
    "load", [lattice.load_dimers, lattice.load_structures, lattice.dimer_info, lattice.miyazawa_jernigan]
)
def test_damaged_files_are_refused(monkeypatch, tmp_path, load, damage):
    folder = tmp_path / "_data"
    folder.mkdir()
    for name in _proteins.SHA256:
        (folder / name).write_bytes(damage((ROOT / "rbal_book" / "datasets" / "_data" / name).read_bytes()))
    monkeypatch.setattr(_proteins, "files", lambda package: tmp_path)
    with pytest.raises(OSError, match=r"is damaged .*install rbal again"):
        load()


def test_missing_files_are_reported(monkeypatch, tmp_path):
    monkeypatch.setattr(_proteins, "files", lambda package: tmp_path)
    with pytest.raises(OSError, match="is missing: install rbal again"):
        lattice.load_dimers()


# ---- documentation


@pytest.mark.parametrize("name", [n for n in lattice.__all__ if inspect.isfunction(getattr(lattice, n))])
def test_docstring_documents_exactly_the_parameters(name):
    function = getattr(lattice, name)
    lines = FunctionDoc(function, doc=inspect.getdoc(function))["Parameters"]
    documented = [n.strip() for line in lines for n in line.name.split(",")]
    assert sorted(documented) == sorted(inspect.signature(function).parameters)
