"""What other rooms use of this one, beside its public names."""

from ._class_margins import moved, shifts_of
from ._kernels import newton_address
from ._mixture import critical_margins
from ._ovr import checked_alphas
from ._problem import EDGE, RIDGE, UNSAT, Question
from ._rescue import tables_and_rescue
from ._solve import sweep_widths
from ._sphere import edges

__all__ = [
    "EDGE",
    "RIDGE",
    "UNSAT",
    "Question",
    "checked_alphas",
    "critical_margins",
    "edges",
    "moved",
    "newton_address",
    "shifts_of",
    "sweep_widths",
    "tables_and_rescue",
]
