"""Lattice proteins: chains that fill a 3×3×3 cube, energies of contacts, and pairs of sequences that bind or do not.

A structure is a compact self-avoiding walk. A sequence v of 27 amino acids folds into structure S with probability
p_nat(S|v) ∝ exp(-E(v|S)), where E sums the energies of Miyazawa and Jernigan over the contacts of S. Two folded cubes
meet face to face in 144 orientations; p_int is the probability of the first of them.

A pair of sequences is 54 states 0 … 19, in the order of ``AMINO_ACIDS``, the first protein before the second.
"""

import io
import json

import numpy as np

from rbal._support.validation import one_of

from ._chains import DimerSample, autocorrelation, autocorrelation_time, settling_time
from ._dimers import dimer_contacts, dock, p_int, sample_dimers
from ._proteins import (
    AMINO_ACIDS,
    Structures,
    contacts,
    decode,
    encode,
    energies,
    enumerate_walks,
    miyazawa_jernigan,
    p_nat,
    representative_structures,
    shipped,
)

__all__ = [
    "AMINO_ACIDS",
    "CHI",
    "DimerSample",
    "Structures",
    "autocorrelation",
    "autocorrelation_time",
    "contacts",
    "decode",
    "dimer_contacts",
    "dimer_info",
    "dock",
    "encode",
    "energies",
    "enumerate_walks",
    "load_dimers",
    "load_structures",
    "miyazawa_jernigan",
    "p_int",
    "p_nat",
    "representative_structures",
    "sample_dimers",
    "settling_time",
]

CHI = {"bounded": 5.0, "mildly bounded": 0.1, "unbounded": 0.0}
"""Exponent χ of p_int in each state of a compound."""


def load_structures():
    """Load the structures behind the shipped sequences: 10,000 of the 3×3×3 cube, with S_A, S_B and S_C by name.

    Returns
    -------
    Structures
        ``native["A"]``, ``native["B"]`` and ``native["C"]`` are the positions of the three.
    """
    data = _dimer_file()
    walks = enumerate_walks()[data["index"]]
    return Structures(walks, dict(zip("ABC", map(int, data["native"]), strict=True)))


def load_dimers(state="bounded", compound="A+C"):
    """Load pairs of sequences in one of the states of a compound, as :func:`sample_dimers` drew them.

    Parameters
    ----------
    state : {"bounded", "mildly bounded", "unbounded"}
        How strongly the two proteins bind; see :data:`CHI`.
    compound : {"A+C", "B+C"}
        Native structures; "B+C" comes bounded only.

    Returns
    -------
    (10000, 54) uint8 array
        States 0 … 19, the first protein before the second.

    Examples
    --------
    >>> load_dimers("unbounded").shape
    (10000, 54)
    """
    return np.ascontiguousarray(_dimer_file()[_key(state, compound)].T)


def dimer_info(state="bounded", compound="A+C"):
    """Tell how shipped sequences were drawn, and what was measured on them.

    Parameters
    ----------
    state : {"bounded", "mildly bounded", "unbounded"}
        See :func:`load_dimers`.
    compound : {"A+C", "B+C"}
        See :func:`load_dimers`.

    Returns
    -------
    dict
        The arguments of :func:`sample_dimers`; ``settled`` and ``tau`` as it measured them; ``autocorrelation`` of the
        samples at a few lags.
    """
    return json.loads(_dimer_file()["info"].tobytes())[_key(state, compound)]


def _key(state, compound):
    one_of("state", state, tuple(CHI))
    one_of("compound", compound, ("A+C", "B+C"))
    if compound == "B+C" and state != "bounded":
        raise ValueError(f"state must be 'bounded' for the compound 'B+C', got {state!r}")
    return f"{compound} {state}"


def _dimer_file():
    return np.load(io.BytesIO(shipped("lattice_dimers.npz")), allow_pickle=False)
