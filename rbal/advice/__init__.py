"""What to do with an imbalanced table: the theory, fed with its moments, predicts every remedy.

:func:`rbal.advise` measures the class statistics of a table without the optimism of small samples, solves the saddle
point of the user's classifier under each remedy, and says which one to take, how sure that is, and when not to believe
it.
"""

from ._advise import LOSSES, Advice, advise, advise_file

__all__ = ["LOSSES", "Advice", "advise", "advise_file"]
