"""What a linear SVM gains from each remedy on real tables, and what the theory predicted.

Each trial is one fold of a repeated, stratified cross-validation. ``measured`` trains every remedy on the training part
and tests it on the rest; ``foreseen`` gives the same training part to rbal.advise, and nothing else; ``widened`` does
so on the tables for design, for several sizes of the error that the theory itself makes.

How it runs: ``make study-tables`` fetches the tables and runs everything, half an hour of one core. A part of it:
``python -m rbal_book.studies tables --table "wine 1" --repeats 1 --stores _build/small --out _build/small``
How it resumes: every fold is kept in a store as it comes, one store per kind of trial, and is not computed again.
Where it is stored: ``tables/measured.csv``, ``tables/foreseen.csv``, ``tables/widened.csv``; all tables are listed in
``tables/listed.csv``.
"""

from ._analysis import centre, covered, holds, listed, load, model_error, regrets, remedies, versus
from ._run import OPTIONS, cells, run
from ._sources import source_of
from ._trials import (
    FOLD,
    REMEDIES,
    ROWS,
    SCARCE,
    SEED,
    STRATEGIES,
    foreseen,
    learner,
    measured,
    tuned,
    unseen,
    weights,
    widened,
)

__all__ = [
    "FOLD", "OPTIONS", "REMEDIES", "ROWS", "SCARCE", "SEED", "STRATEGIES", "cells", "centre", "covered", "foreseen",
    "holds", "learner", "listed", "load", "measured", "model_error", "regrets", "remedies", "run", "source_of", "tuned",
    "unseen", "versus", "weights", "widened",
]  # fmt: skip
