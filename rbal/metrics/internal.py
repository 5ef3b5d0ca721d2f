"""What other rooms use of this one, in addition to its public names."""

from ._formulas import Rates
from ._metric_record import goals, named, two_prices
from ._multiclass import GOALS, goal

__all__ = ["GOALS", "Rates", "goal", "goals", "named", "two_prices"]
