"""Trials: a grid of settings, each repeated with random numbers of its own, on as many cores as there are.

:func:`run` calls a trial for every cell of a grid and collects a tidy table; :func:`summary` averages it, :func:`pivot`
lays it out trial by trial; :func:`train` is the trial that the book repeats most. A trial's random numbers follow from
the root seed, the content of its cell and its number, and from nothing else: neither the order, the number of workers
nor the rest of the grid changes a result.
"""

from ._summary import SharedTest, pivot, shared_test, summary
from ._training_trial import train
from ._trial_runs import PROVENANCE, TrialError, generator, run

__all__ = ["PROVENANCE", "SharedTest", "TrialError", "generator", "pivot", "run", "shared_test", "summary", "train"]
