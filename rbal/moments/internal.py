"""Names of this room that other rooms use, besides its public ones."""

from ._blocks import Diagonal
from ._estimate import ARGUMENTS, Fitter, Sample, evenly, from_covariances, from_rows
from ._kernel import labelled
from ._parts import cut, number_of_parts

__all__ = [
    "ARGUMENTS",
    "Diagonal",
    "Fitter",
    "Sample",
    "cut",
    "evenly",
    "from_covariances",
    "from_rows",
    "labelled",
    "number_of_parts",
]
