"""What other rooms use of this one, beside its public names."""

from ._formulas import Rates
from ._many import GOALS, goal
from ._records import goals, named, two_prices

__all__ = ["GOALS", "Rates", "goal", "goals", "named", "two_prices"]
