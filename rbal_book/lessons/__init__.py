"""Exercises of the lessons in notebooks/lessons, which check themselves, and the data they are about.

An answer is compared with what the library computes, so that no solution is written down in a lesson. A wrong answer
gets a hint, and one that comes of a frequent slip is told which.
"""

from ._check import check
from ._data import classes, scored, tumours

__all__ = ["check", "classes", "scored", "tumours"]
