"""Names of this room that other rooms use, besides its public ones."""

from ._constraints import MAX_PANELS, NARROW
from ._record import CALLS, NO_LAW, TRAITS, Law, expectations_at, force_at, law_of, mean_force_at, mean_loss_at

__all__ = [
    "CALLS",
    "MAX_PANELS",
    "NARROW",
    "NO_LAW",
    "TRAITS",
    "Law",
    "expectations_at",
    "force_at",
    "law_of",
    "mean_force_at",
    "mean_loss_at",
]
