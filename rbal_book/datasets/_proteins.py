"""One lattice protein: structures, sequences, energies, probability to fold. Public names are those of ``lattice``."""

import hashlib
import io
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files

import numpy as np

from rbal._support import parallel
from rbal._support.files import DataError
from rbal._support.validation import instance, positive_int, real_array, seeded, states

from . import _fold, _walks

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"

SHA256 = {
    "mj1996.txt": "2158b5c67de2de2c723dd08d60e9a1d6fd0c12bf2c59fa0f513362eb15bb468c",
    "lattice_dimers.npz": "b8d03b82fb4d3c501efb099f2c1864d61111cad7b1accc93cbc643166475638a",
}


def enumerate_walks(shape=(3, 3, 3)):
    """Enumerate the compact self-avoiding walks in a box: those that visit every site once.

    Walks that a rotation or a reflection of the box maps onto each other count as one, and the first in lexicographic
    order stands for them. A walk and its reverse are two: a sequence has a direction.

    Parameters
    ----------
    shape : tuple of 3 int, default (3, 3, 3)
        Sites along each axis; a plane is one site thick. At most 30 sites in all.

    Returns
    -------
    (n, sites, 3) int8 array
        Coordinates of the walks, in lexicographic order.

    Examples
    --------
    >>> enumerate_walks((2, 2, 2)).shape  # 144 directed walks, 48 symmetries
    (3, 8, 3)
    """
    shape = tuple(positive_int("shape", size) for size in np.ravel(np.asarray(shape, dtype=object)))
    if len(shape) != 3 or np.prod(shape) > 30:
        raise ValueError(f"shape must be three sizes with at most 30 sites in all, got {shape}")
    near, group = _walks.neighbours(shape), _walks.symmetries(shape)
    return _walks.coordinates(shape).astype(np.int8)[_walks.hamiltonian_walks(near, group)]


def contacts(walks):
    """Find the contacts of compact walks: monomers on neighbouring sites that are not neighbours along the chain.

    Bonds and contacts together are all neighbouring sites of the box, so that two walks with the same contacts differ
    by a symmetry of the box. The contact maps of :func:`enumerate_walks` are therefore all different.

    Parameters
    ----------
    walks : (n, sites, 3) int array
        Compact self-avoiding walks in one box, its corner at the origin.

    Returns
    -------
    (n, n_contacts, 2) int8 array
        Pairs i < j in order; 28 of them in the 3×3×3 cube.

    Examples
    --------
    >>> contacts(enumerate_walks((2, 2, 1)))[0].tolist()
    [[0, 3]]
    """
    walks = compact("walks", walks)
    return _walks.contact_pairs(walks)


@dataclass(frozen=True, eq=False)
class Structures:
    """Structures a sequence chooses from when it folds.

    Attributes
    ----------
    walks : (R, sites, 3) array
        Compact self-avoiding walks in one box.
    native : dict
        Positions of structures that have a name.
    contacts : (R, n_contacts, 2) array
        Contacts of each walk, see :func:`contacts`.
    """

    walks: np.ndarray
    native: dict = field(default_factory=dict)

    def __post_init__(self):
        object.__setattr__(self, "walks", compact("walks", self.walks))

    def __len__(self):
        return len(self.walks)

    def __repr__(self):
        return f"Structures({len(self)} walks of {self.walks.shape[1]} monomers)"

    @cached_property
    def contacts(self):
        """Contacts (R, n_contacts, 2) of each walk."""
        return contacts(self.walks)

    @cached_property
    def _tables(self):
        return _fold.tables(self.contacts)


def representative_structures(n=10_000, rng=0):
    """Draw a random subset of the structures of the 3×3×3 cube, in the order of the enumeration.

    Parameters
    ----------
    n : int, default 10_000
        Size R of the subset.
    rng : int or numpy.random.Generator, default 0
        Seed of the choice.

    Returns
    -------
    Structures
    """
    walks = enumerate_walks()
    if positive_int("n", n) > len(walks):
        raise ValueError(f"n must be at most {len(walks)}, the number of structures, got {n}")
    return Structures(walks[np.sort(seeded("rng", rng).choice(len(walks), n, replace=False))])


def encode(sequences):
    """Turn sequences in one-letter codes into states 0 … 19.

    Parameters
    ----------
    sequences : str or list of str
        Sequences of one length, in capital letters.

    Returns
    -------
    (length,) or (n, length) uint8 array

    Examples
    --------
    >>> encode(["ACY", "DDA"]).tolist()
    [[0, 1, 19], [2, 2, 0]]
    """
    return _encoded("sequences", sequences)


def _encoded(name, sequences):
    lines = np.ravel(np.asarray(sequences, dtype=object)).tolist()
    if not all(isinstance(line, str) for line in lines) or len({len(line) for line in lines}) != 1:
        raise ValueError(f"{name} must be strings of one length")
    unknown = sorted(set("".join(lines)) - set(AMINO_ACIDS))
    if unknown:
        raise ValueError(f"{name} must be written in the letters {AMINO_ACIDS}, got {unknown[0]!r}")
    table = np.array([[AMINO_ACIDS.index(letter) for letter in line] for line in lines], np.uint8)
    return table[0] if isinstance(sequences, str) else table


def decode(states):
    """Turn states into sequences in one-letter codes.

    Parameters
    ----------
    states : (length,) or (n, length) int array
        States 0 … 19.

    Returns
    -------
    str or list of str

    Examples
    --------
    >>> decode([0, 1, 19])
    'ACY'
    """
    array = real_array("states", states, ndim=(1, 2))
    table = residues("states", array, array.shape[-1], len(AMINO_ACIDS))
    lines = ["".join(AMINO_ACIDS[a] for a in row) for row in table]
    return lines[0] if array.ndim == 1 else lines


def miyazawa_jernigan():
    """Read the energies of contacts between amino acids, in units of RT.

    The table of Miyazawa and Jernigan, J. Mol. Biol. 256, 623 (1996), entry MIYS960101 of AAindex.

    Returns
    -------
    (20, 20) array
        Symmetric, in the order of ``AMINO_ACIDS``.

    Examples
    --------
    >>> E = miyazawa_jernigan()
    >>> L, K, C = encode("LKC")
    >>> float(E[L, L]), float(E[K, K]), float(E[C, C])
    (-7.37, -0.12, -5.44)
    """
    return np.loadtxt(io.BytesIO(shipped("mj1996.txt")))


def energies(sequences, structures, *, energy=None):
    """Compute the energies E(v|S) of sequences in every structure.

    Parameters
    ----------
    sequences : (n, sites) int array, or strings
        Sequences; see :func:`encode`.
    structures : Structures
        Where they fold.
    energy : (Q, Q) array, optional
        Energies of contacts, :func:`miyazawa_jernigan` by default.

    Returns
    -------
    (n, R) array
    """
    E = default_energy(energy)
    V = residues("sequences", sequences, instance("structures", structures, Structures).walks.shape[1], len(E))
    out = np.empty((len(V), len(structures)))
    for v, row in zip(V, out, strict=True):
        _fold.energies(v, E, structures._tables.pairs, structures._tables.contacts, row)
    return out


def p_nat(sequences, structures, native, *, energy=None):
    """Compute the probability p_nat(S|v) that sequences fold into their native structure.

    Parameters
    ----------
    sequences : (n, sites) int array, or strings
        Sequences; see :func:`encode`.
    structures : Structures
        What they choose from.
    native : int
        Position of the native structure S among them.
    energy : (Q, Q) array, optional
        Energies of contacts, :func:`miyazawa_jernigan` by default.

    Returns
    -------
    (n,) array
    """
    E = default_energy(energy)
    V = residues("sequences", sequences, instance("structures", structures, Structures).walks.shape[1], len(E))
    tables, place, log_p = structures._tables, position("native", native, structures), np.empty(len(V))
    for lo, hi in parallel.pieces(len(V)):
        log_p[lo:hi] = _fold.log_p(V[lo:hi], E, tables.pairs, tables.contacts, place)
    return np.exp(log_p)


# ---- checks at the door


def shipped(name):
    """Return the bytes of a data file of the package, when its checksum is right."""
    path = files(__package__) / "_data" / name
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"{path} is missing: install rbal again") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != SHA256[name]:
        raise DataError(f"{path} is damaged (sha256 {digest}, not {SHA256[name]}): install rbal again")
    return content


def compact(name, walks):
    """Return walks (n, sites, 3) as int8, when each visits every site of one box by steps to neighbouring sites."""
    array = real_array(name, walks, ndim=3)
    if array.shape[2] != 3 or array.size == 0 or (array != np.floor(array)).any() or array.min() < 0:
        raise ValueError(f"{name} must be integer coordinates ≥ 0 of shape (n, sites, 3), got shape {array.shape}")
    shape = array.reshape(-1, 3).max(axis=0) + 1
    array = array.astype(np.int8) if array.shape[1] == np.prod(shape) else array[:0]
    steps = np.abs(np.diff(array, axis=1)).sum(axis=2)
    site = np.sort(array @ np.array([shape[1] * shape[2], shape[2], 1], int), axis=1)
    if not len(array) or (steps != 1).any() or (np.diff(site, axis=1) != 1).any():
        raise ValueError(f"{name} must visit every site of a box of {shape.astype(int).tolist()} once, step by step")
    return array


def default_energy(energy):
    """Return the energies (Q, Q) given, when they are symmetric, or those of Miyazawa and Jernigan for None."""
    if energy is None:
        return miyazawa_jernigan()
    E = real_array("energy", energy, ndim=2)
    if E.shape[0] != E.shape[1] or len(E) < 2 or (E != E.T).any():
        raise ValueError(f"energy must be a symmetric (Q, Q) array, got shape {E.shape}")
    return E


def residues(name, value, length, Q):
    """Return the value as an (n, length) array of states 0 … Q-1; strings are amino acids."""
    if isinstance(value, str) or (isinstance(value, (list, tuple)) and any(isinstance(v, str) for v in value)):
        value = _encoded(name, value)
    array = np.atleast_2d(real_array(name, value, ndim=(1, 2)))
    if array.shape[1] != length:
        raise ValueError(f"{name} must have {length} residues each, got {array.shape[1]}")
    return states(name, array, Q).astype(np.int8)


def position(name, value, structures):
    """Return the value as an int, when it is the position of a structure."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < len(structures):
        raise ValueError(f"{name} must be the position of a structure, 0 … {len(structures) - 1}, got {value!r}")
    return int(value)
