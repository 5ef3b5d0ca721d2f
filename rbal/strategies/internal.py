"""What other rooms use of this one, beside its public names."""

from ._bias_guard import bias_is_held, free_share
from ._multiclass_remedies import common_mixing
from ._remedy_record import Design, kept, multiplicity

__all__ = ["Design", "bias_is_held", "common_mixing", "free_share", "kept", "multiplicity"]
