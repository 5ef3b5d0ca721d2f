"""Two lattice proteins: cubes face to face, and pairs of sequences that bind. Public names are those of ``lattice``."""

from itertools import permutations, product

import numpy as np

from rbal._support.validation import flag, instance, number, positive_int, real_array, seeded

from . import _fold
from ._chains import DimerSample, autocorrelation_time, run_chains, settling_time
from ._proteins import Structures, compact, default_energy, encode, position, residues

CHARGES = ("DR", "EK")  # swapped by collective moves: the energies hardly notice, single changes hardly get there


def dock(first, second, orientation=0):
    """Put two cubes face to face.

    Orientations are numbered by the face of the first cube that is in contact (-x, +x, -y, +y, -z, +z), then by that of
    the second, then by quarter turns about their common axis. No cube is reflected.

    Parameters
    ----------
    first, second : (n³, 3) int arrays
        Compact walks that fill a cube with its corner at the origin.
    orientation : int, default 0
        0 … 143.

    Returns
    -------
    (2, n³, 3) int array
        Coordinates of the first walk as it is, and of the second rotated and moved to its place.

    Examples
    --------
    >>> from rbal_book.datasets.lattice import enumerate_walks
    >>> walk = enumerate_walks((2, 2, 2))[0]
    >>> dock(walk, walk)[1].max(axis=0).tolist()  # beside the face x = 0
    [-1, 1, 1]
    """
    first, second = _cube("first", first), _cube("second", second)
    if first.shape != second.shape:
        raise ValueError(f"first and second must have one shape, got {first.shape} and {second.shape}")
    if isinstance(orientation, bool) or not isinstance(orientation, (int, np.integer)) or not 0 <= orientation < 144:
        raise ValueError(f"orientation must be an integer 0 … 143, got {orientation!r}")
    rotation, normal = _ORIENTATIONS[orientation]
    size = first.max() + 1
    middle = size - 1  # of doubled coordinates
    return np.stack([first, ((2 * second - middle) @ rotation.T + middle) // 2 + size * normal])


def _orientations():
    """Yield 144 rotations of the second cube, and the direction in which it stands, as :func:`dock` numbers them."""
    turns = [np.eye(3, dtype=int)[list(axes)] * sign for axes in permutations(range(3)) for sign in _SIGNS]
    rotations = [turn for turn in turns if round(np.linalg.det(turn)) == 1]
    faces = [sign * axis for axis in np.eye(3, dtype=int) for sign in (-1, 1)]
    for normal, face in product(faces, faces):
        about = next(r for r in rotations if (r @ normal == normal).all() and np.trace(r) == 1)  # a quarter turn
        start = next(r for r in rotations if (r @ face == -normal).all())
        for turn in range(4):
            yield np.linalg.matrix_power(about, turn) @ start, normal


_SIGNS = [np.array(sign)[:, None] for sign in product((1, -1), repeat=3)]
_ORIENTATIONS = list(_orientations())


def dimer_contacts(first, second):
    """Find the contacts between two cubes, in each of the 144 relative orientations.

    Parameters
    ----------
    first, second : (n³, 3) int arrays
        Compact walks that fill a cube with its corner at the origin.

    Returns
    -------
    (144, n², 2) int8 array
        Monomer of the first and monomer of the second walk; nine contacts between 3×3×3 cubes. Ordered as in
        :func:`dock`.
    """
    out = []
    for orientation in range(144):
        a, b = dock(first, second, orientation)
        out.append(np.argwhere(np.abs(a[:, None] - b).sum(axis=2) == 1))
    return np.array(out, np.int8)


def p_int(states, docks, *, chi=1.0, energy=None):
    """Compute the probability that two folded sequences interact in the first orientation, to the power χ.

    Parameters
    ----------
    states : (n, 2·sites) int array, or strings
        Pairs of sequences, the first before the second.
    docks : (144, n_contacts, 2) int array
        Contacts in each orientation, see :func:`dimer_contacts`.
    chi : float, default 1.0
        Exponent, ≥ 0.
    energy : (Q, Q) array, optional
        Energies of contacts, :func:`miyazawa_jernigan` by default.

    Returns
    -------
    (n,) array
    """
    E, docks = default_energy(energy), _docks(docks)
    V = residues("states", states, 2 * (int(docks.max()) + 1), len(E))
    v1, v2 = np.split(V, 2, axis=1)
    interaction = E[v1[:, docks[..., 0]], v2[:, docks[..., 1]]].sum(axis=2)
    weight = np.exp(interaction.min(axis=1, keepdims=True) - interaction)
    return (weight[:, 0] / weight.sum(axis=1)) ** number("chi", chi, 0.0)


def sample_dimers(
    structures,
    first,
    second,
    *,
    chi,
    n_samples=10_000,
    n_chains=50,
    burn_in=320,
    thin=16,
    p_min=0.99,
    energy=None,
    swap=None,
    rng=0,
    n_jobs=None,
    progress=True,
):
    """Draw pairs of sequences that fold, and bind as strongly as χ asks, by Markov chain Monte Carlo.

    The target is p_int(v₁, v₂)^χ on all pairs with p_nat(S₁|v₁) > p_min and p_nat(S₂|v₂) > p_min, and nothing else: a
    hard constraint without a temperature. A sweep draws each residue in turn from its conditional distribution over the
    alphabet (heat bath), then tries to swap letters by the dozen (Metropolis): in one sequence, in the other, in both,
    and in a cluster of native contacts in each. Chains start from random sequences; until a sequence folds, its p_nat
    may not fall.

    Parameters
    ----------
    structures : Structures
        What the sequences choose from when they fold.
    first, second : int
        Positions of the native structures S₁ and S₂; walks that fill a cube.
    chi : float
        Exponent of p_int, ≥ 0; see :data:`CHI`.
    n_samples : int, default 10_000
        Pairs to draw, a multiple of ``n_chains``.
    n_chains : int, default 50
        Independent chains, at least 2.
    burn_in : int, default 320
        Sweeps dropped at the start of each chain.
    thin : int, default 16
        Sweeps from one sample to the next.
    p_min : float, default 0.99
        Least probability to fold.
    energy : (Q, Q) array, optional
        Energies of contacts, :func:`miyazawa_jernigan` by default.
    swap : list of pairs of int, optional
        Letters that collective moves swap. By default acids and bases (D with R, E with K) for the default energies,
        none for others.
    rng : int or numpy.random.Generator, default 0
        Seed; the result does not depend on ``n_jobs``.
    n_jobs : int, optional
        Threads, as joblib counts them.
    progress : bool, default True
        Whether to show a progress bar.

    Returns
    -------
    DimerSample

    Raises
    ------
    RuntimeError
        When a chain has found no sequences that fold by the end of its burn-in.
    """
    E = default_energy(energy)
    if swap is None:
        swap = encode(CHARGES) if energy is None else []
    n_chains, n_samples = positive_int("n_chains", n_chains), positive_int("n_samples", n_samples)
    if n_chains < 2 or n_samples % n_chains:
        raise ValueError(f"n_chains must be at least 2 and divide n_samples={n_samples}, got {n_chains}")
    burn_in, thin = positive_int("burn_in", burn_in), positive_int("thin", thin)
    instance("structures", structures, Structures)
    natives = np.array([position("first", first, structures), position("second", second, structures)])
    docks = dimer_contacts(*structures.walks[natives])
    exchange = _involution(swap, len(E))
    p_min = number("p_min", p_min, 0.0, 1.0)
    target = _fold.Target(
        np.exp(-E),
        natives,
        docks,
        _fold.interface(docks, structures.walks.shape[1]),
        number("chi", chi, 0.0),
        p_min,
        exchange,
        bool((exchange != np.arange(len(E))).any()),
    )
    rngs = seeded("rng", rng).spawn(n_chains)
    lengths, progress = (n_samples // n_chains, burn_in, thin), flag("progress", progress)
    states, traces = run_chains(rngs, structures._tables, target, *lengths, n_jobs=n_jobs, progress=progress)
    unfolded = traces[:, burn_in - 1, 2:4].min()
    with np.errstate(divide="ignore"):  # 0 asks for nothing
        least = np.log(p_min)
    if unfolded <= least:
        raise RuntimeError(
            f"a chain reached p_nat = {np.exp(unfolded):.3g} only after burn_in={burn_in} sweeps, not p_min={p_min}: "
            "burn in for longer, or choose structures that more sequences fold into"
        )
    states = states.reshape(n_chains, n_samples // n_chains, -1)
    return DimerSample(
        states=states.reshape(n_samples, -1),
        traces=traces,
        burn_in=burn_in,
        thin=thin,
        settled=settling_time(traces),
        tau=autocorrelation_time(states) if np.any(states != states[0, 0]) else np.inf,  # none has moved
    )


# ---- checks at the door


def _cube(name, walk):
    walk = compact(name, real_array(name, walk, 2)[None])[0].astype(int)
    if len(set(walk.max(axis=0))) != 1:
        raise ValueError(f"{name} must fill a cube, got a box of {(walk.max(axis=0) + 1).tolist()}")
    return walk


def _docks(docks):
    array = real_array("docks", docks, ndim=3)
    if array.shape[2] != 2 or array.size == 0 or (array != np.floor(array)).any() or array.min() < 0:
        raise ValueError(f"docks must be pairs of monomers as dimer_contacts gives them, got shape {array.shape}")
    return array.astype(np.intp)


def _involution(swap, Q):
    out = np.arange(Q)
    pairs = real_array("swap", swap)
    if not pairs.size:
        return out
    if pairs.ndim != 2 or pairs.shape[1] != 2 or (pairs != np.floor(pairs)).any():
        raise ValueError(f"swap must be pairs of letters, got shape {pairs.shape}")
    pairs = pairs.astype(int)
    if pairs.size and (pairs.min() < 0 or pairs.max() >= Q or len(np.unique(pairs)) != pairs.size):
        raise ValueError(f"swap must be pairs of different letters 0 … {Q - 1}, each in one pair, got {swap!r}")
    out[pairs[:, 0]], out[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    return out
