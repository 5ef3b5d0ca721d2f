"""Long experiments of the book, as trials for :func:`rbal.experiments.run`, and what they gave.

The results come with the package, so that a chapter can draw hours of computing in a second. The same trial, at a
smaller size, is run in the chapter itself, and ``make study-sampling`` runs all of it.
"""

from ._sampling import (
    MINORITIES,
    MIXINGS,
    N_MAJORITY,
    N_TEST,
    QUICK,
    RESULTS,
    STRATEGIES,
    Clustered,
    at_best,
    clustered,
    holm,
    paired,
    sampling,
    stored,
    tidy,
)

__all__ = [
    "MINORITIES",
    "MIXINGS",
    "N_MAJORITY",
    "N_TEST",
    "QUICK",
    "RESULTS",
    "STRATEGIES",
    "Clustered",
    "at_best",
    "clustered",
    "holm",
    "paired",
    "sampling",
    "stored",
    "tidy",
]
