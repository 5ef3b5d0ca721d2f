"""What other rooms use of this one, beside its public names."""

from ._bias_guard import bias_is_held, free_share
from ._intervals import LEVERAGES, apart, ends, theory_error
from ._multiclass_remedies import common_mixing
from ._remedy_record import Design, kept, multiplicity

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
