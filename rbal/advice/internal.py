"""What other rooms use of this one, beside its public names."""

from ._many_telling import text
from ._reading import SEPARATORS
from ._report import clean
from ._threshold import best_cut

__all__ = ["SEPARATORS", "best_cut", "clean", "text"]
