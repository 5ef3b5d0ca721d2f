"""Advice on the whole classifier against fixed rules, grid search and a forest, on real tables: the second edition.

The rules of the study are in ``rules.md``, written before any result. Tables, folds and coding are those of the study
on tables. Each trial is one split: ``compared`` trains every rule on the training part and tests it on the rest;
``foreseen`` gives the same training part to rbal.advise with C = 1, as the first edition did; ``many`` does both for
tables of three classes and more.

How it runs: ``make study-advice`` fetches the tables and runs the tables for design; the tables that judge are run
once, by ``make study-advice ROLE=judge``, in about 90 minutes of one core. A part of it:
``python -m rbal_book.studies advice --table "wine 1" --splits 1 --stores _build/small --out _build/small``
How it resumes: every split is kept in a store as it comes, one store per kind of trial, and is not computed again.
Where it is stored: ``advice/design-compared.csv``, ``advice/judge-compared.csv`` and the same for the other trials.
"""

from ._analysis import (
    REMEDIES,
    SETTINGS,
    choices,
    compared,
    confidences,
    errors,
    goals,
    hardest,
    intervals,
    load,
    load_many,
    mean_regrets,
    means,
    metric,
    not_inferior,
    predictions,
    primary,
    recall_errors,
    recommended,
    seconds,
)
from ._methods import GRIDS, OTHERS, RULES
from ._run import OPTIONS, run

__all__ = [
    "GRIDS", "OPTIONS", "OTHERS", "REMEDIES", "RULES", "SETTINGS", "choices", "compared", "confidences", "errors",
    "goals", "hardest", "intervals", "load", "load_many", "mean_regrets", "means", "metric", "not_inferior",
    "predictions", "primary", "recall_errors", "recommended", "run", "seconds",
]  # fmt: skip
