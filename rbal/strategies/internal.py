"""What other rooms use of this one, in addition to its public names."""

from ._bias_guard import bias_is_held, free_share
from ._intervals import LEVERAGES, interval_ends, theory_error, with_distances
from ._multiclass_remedies import common_mixing
from ._remedy_record import Design, kept, multiplicity

__all__ = [
    "LEVERAGES", "Design", "bias_is_held", "common_mixing", "free_share", "interval_ends", "kept", "multiplicity",
    "theory_error", "with_distances",
]  # fmt: skip
