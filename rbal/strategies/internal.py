"""What other rooms use of this one, beside its public names."""

from ._held import bias_is_held, free_share
from ._many import common_mixing
from ._records import Design, kept, multiplicity

__all__ = ["Design", "bias_is_held", "common_mixing", "free_share", "kept", "multiplicity"]
