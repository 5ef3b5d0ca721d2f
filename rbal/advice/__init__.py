"""Advise what to do with an imbalanced table, for which the theory predicts every remedy from its moments.

:func:`rbal.advise` measures the class statistics of a table without the optimism of small samples, solves the saddle
point of the user's classifier under each remedy, and says which one to take, how sure that is, and when not to believe
it.
"""

from ..losses import trained
from ._advice import Advice, ManyAdvice
from ._advise import advise, advise_file
from ._reading import read_table

__all__ = ["Advice", "ManyAdvice", "advise", "advise_file", "read_table"]


def __getattr__(name):
    if name == "LOSSES":
        return trained()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
