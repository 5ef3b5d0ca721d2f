"""Names of this room that other rooms use, besides its public ones."""

from ._class_margins import moved, shifts_of
from ._continuation import COLUMNS, N_COLUMNS, walk
from ._equations import EDGE, RIDGE, UNSAT, Settings
from ._fallback import edges, tables_and_fallback
from ._mixture_solve import critical_margins
from ._newton import newton_address
from ._ovr import checked_alphas
from ._solve import sweep_widths

__all__ = [
    "COLUMNS",
    "EDGE",
    "N_COLUMNS",
    "RIDGE",
    "UNSAT",
    "Settings",
    "checked_alphas",
    "critical_margins",
    "edges",
    "moved",
    "newton_address",
    "shifts_of",
    "sweep_widths",
    "tables_and_fallback",
    "walk",
]
