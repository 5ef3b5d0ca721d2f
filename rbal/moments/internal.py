"""What other rooms use of this one, beside its public names."""

from ._blocks import Diagonal
from ._choice import cut, number_of_parts
from ._estimate import ARGUMENTS, Fitter, Sample, evenly, from_covariances, from_rows
from ._kernel import labelled

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
