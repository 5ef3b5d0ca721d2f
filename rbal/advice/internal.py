"""What other rooms use of this one, beside its public names."""

from ._judgement import draw, ends, misjudged, model_error
from ._judgement import values_of as values
from ._prediction import Setting, evaluate
from ._reading import SEPARATORS, FileOptions, read
from ._report import numbers, to_json
from ._table import TableOptions, from_arrays
from ._text import clean, explain, fold, many_text, next_command, rate_sentence, summary, text, whole_text
from ._threshold import best_cut

__all__ = [
    "SEPARATORS", "FileOptions", "Setting", "TableOptions", "best_cut", "clean", "draw", "ends", "evaluate",
    "explain", "fold", "from_arrays", "many_text", "misjudged", "model_error", "next_command", "numbers",
    "rate_sentence", "read", "summary", "text", "to_json", "values", "whole_text",
]  # fmt: skip
