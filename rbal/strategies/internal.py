"""What other rooms use of this one, beside its public names."""

from ._held import bias_is_held, free_share
from ._intervals import LEVERAGES, apart, ends, theory_error
from ._many import common_mixing
from ._records import Design, kept, multiplicity

__all__ = [
    "LEVERAGES",
    "Design",
    "apart",
    "bias_is_held",
    "common_mixing",
    "ends",
    "free_share",
    "kept",
    "multiplicity",
    "theory_error",
]
