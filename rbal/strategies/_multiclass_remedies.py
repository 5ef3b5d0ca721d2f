"""Remedies for more than two classes: weights, resampling and thresholds, on the theory."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from .._support.validation import in_range, instance, number, one_of, real_array
from ..metrics.internal import GOALS, goal
from ..saddle import MultinomialSolution, OvrSolution, solve_multinomial, solve_ovr
from ..saddle.internal import checked_alphas
from ._remedy_record import REMEDIES, Remedy

GRID, REFINED = 7, 5  # sizes at which all classes meet, evenly spaced in their logarithm; and steps to refine the best
SCHEMES = ("ovr", "multinomial")
THRESHOLDS = ("trained", "logit adjustment", "moved")


class ManyDesign(NamedTuple):
    """Training set of a remedy for T classes."""

    alphas: np.ndarray  # (T,) distinct samples over L
    weights: np.ndarray  # (T, T) of each class (column) in each machine (row); (T,) for multinomial regression


def design_many(remedy, alphas, *, mixing=None, scheme="ovr"):
    """Return the training set that a remedy makes of many classes.

    Resampling brings all classes to one size between the smallest, undersampling, and the largest, oversampling: a
    larger class loses samples, those of a smaller one count several times. Weights are those of the record for each
    class against all others. Multinomial regression has one weight a class: that of the class against all others, with
    mean 1 over the samples.

    Parameters
    ----------
    remedy : str or Remedy
        One of :data:`rbal.strategies.REMEDIES`, by its name, or a record.
    alphas : (T,) array
        Class sizes in any unit.
    mixing : float, optional
        From 0, undersampling, to 1, oversampling, for a remedy whose mixing is searched.
    scheme : {"ovr", "multinomial"}
        One machine for each class against the rest, or one regression for all.

    Returns
    -------
    ManyDesign
        A named tuple (alphas, weights).

    Examples
    --------
    >>> for name in ("undersampling", "oversampling", "class weights"):
    ...     kept, weights = design_many(name, [10.0, 40.0, 100.0], scheme="multinomial")
    ...     print(f"{name:13}", kept, weights.round(2))
    undersampling [10. 10. 10.] [1. 1. 1.]
    oversampling  [ 10.  40. 100.] [10.   2.5  1. ]
    class weights [ 10.  40. 100.] [5.   1.25 0.5 ]
    """
    record, one_of_two = _record(remedy), one_of("scheme", scheme, SCHEMES) == "ovr"
    alphas = checked_alphas(alphas)
    T, kept, weights = alphas.size, alphas, np.ones(alphas.size)
    if record.samples:
        if record.searched and mixing is None:
            raise ValueError(f"mixing must be given for the remedy {record.name!r}, whose mixing is searched")
        share = number("mixing", mixing if record.searched else record.mixing, 0.0, 1.0)
        size = alphas.min() + share * (alphas.max() - alphas.min())
        kept = np.minimum(alphas, size)
        weights = size / kept
    elif record.weights is not None:
        own, rest = (np.broadcast_to(w, (T,)) for w in record.weights(alphas, alphas.sum() - alphas))
        if one_of_two:
            return ManyDesign(kept, np.where(np.eye(T, dtype=bool), own[:, None], rest[:, None]))
        weights = own * alphas.sum() / (alphas @ own)
    return ManyDesign(kept, np.tile(weights, (T, 1)) if one_of_two else weights)


def restore(mixture, alphas, remedy="class weights", *, mixing=None, scheme="ovr", **options):
    """Solve for many classes after a remedy for their imbalance.

    Parameters
    ----------
    mixture : Mixture
        Clusters of two classes or more.
    alphas : (T,) array
        Class sizes over L before the remedy, in the order of ``mixture.classes``.
    remedy, mixing, scheme
        As for :func:`design_many`.
    **options
        Passed on to :func:`rbal.solve_ovr` or :func:`rbal.solve_multinomial`: lam, loss and others.

    Returns
    -------
    OvrSolution or MultinomialSolution

    Examples
    --------
    >>> import numpy as np, rbal
    >>> mix = rbal.Mixture.gaussian(2.0 * np.eye(3, 50), np.ones(50), ["a", "b", "c"])
    >>> for remedy in ("as is", "class weights"):
    ...     print(restore(mix, [0.2, 1.0, 4.0], remedy, lam=1.0).metrics.recall().round(3))
    [0.046 0.699 0.974]
    [0.351 0.841 0.899]
    """
    kept, weights = design_many(remedy, checked_alphas(alphas, mixture), mixing=mixing, scheme=scheme)
    solve = solve_ovr if scheme == "ovr" else solve_multinomial
    return solve(mixture, kept, weights=weights, **options)


def logit_offsets(solution, strength=1.0):
    """Return thresholds that take the class sizes out of the scores, as a rule: logit adjustment.

    From the score of a class its prior log-odds are subtracted, those of the training set as it was weighted. The rule
    is exact for scores that are true log-odds; how far others are from that,
    :meth:`rbal.metrics.ManyMetrics.best_offsets` tells.

    Parameters
    ----------
    solution : OvrSolution or MultinomialSolution
    strength : float
        Factor on the log-odds.

    Returns
    -------
    (T,) array
        Thresholds, with mean 0, for the methods of ``solution.metrics``.
    """
    instance("solution", solution, OvrSolution, MultinomialSolution)
    strength, mass = number("strength", strength, -np.inf), solution.weights * solution.alphas
    if mass.ndim == 2:
        own = np.diagonal(mass)
        mass = own / (mass.sum(axis=1) - own)  # odds of each class against the rest
    offsets = np.log(mass)
    return strength * (offsets - offsets.mean())


def compare_many(mixture, alphas, *, metric="ba", phi=None, scheme="ovr", **options):
    """Return a table of every remedy for many classes, each with trained thresholds and with moved ones.

    The strategies are those of :data:`rbal.strategies.REMEDIES`, as :func:`design_many` applies them to many classes.
    Each has three rows: "trained" thresholds; "logit adjustment", which subtracts the prior log-odds; and "moved", the
    thresholds at which the metric is best, one for each class.

    Parameters
    ----------
    mixture : Mixture
    alphas : (T,) array
        Class sizes over L, in the order of ``mixture.classes``.
    metric : {"ba", "accuracy", "macro_f1", "weighted_f1"} or callable
        What the best mixture of sampling and moved thresholds are chosen for, as in
        :meth:`rbal.metrics.ManyMetrics.best_offsets`.
    phi : (T,) array, optional
        Share of each class in the test set; by default that of the unmodified set.
    scheme : {"ovr", "multinomial"}
        One machine for each class against the rest, or one regression for all.
    **options
        Passed on to :func:`rbal.solve_ovr` or :func:`rbal.solve_multinomial`.

    Returns
    -------
    pandas.DataFrame
        Index (strategy, threshold); columns ba, macro_f1, accuracy, lowest (of the recalls), one "recall …" for each
        class, n (distinct samples over L), and the metric if it has no column yet.

    Examples
    --------
    >>> import numpy as np, rbal
    >>> mix = rbal.Mixture.gaussian(2.0 * np.eye(3, 50), np.ones(50), ["a", "b", "c"])
    >>> compare_many(mix, [0.2, 1.0, 4.0], lam=1.0)["ba"].unstack(sort=False).round(3)
    threshold      trained  logit adjustment  moved
    strategy
    as is            0.573             0.506  0.760
    undersampling    0.699             0.699  0.699
    oversampling     0.704             0.704  0.754
    best mix         0.730             0.730  0.754
    class weights    0.697             0.697  0.765
    """
    import pandas as pd

    alphas, value = checked_alphas(alphas, mixture), goal(metric)
    phi = alphas if phi is None else in_range("phi", real_array("phi", phi, 1), 0.0)
    if phi.shape != alphas.shape or not phi.sum() > 0.0:
        raise ValueError(f"phi must be {alphas.size} shares with a sum > 0, got shape {phi.shape}")
    solutions = {}

    def solved(name, mixing=None):
        key = name, mixing
        if key not in solutions:
            solutions[key] = restore(mixture, alphas, name, mixing=mixing, scheme=scheme, **options)
        return solutions[key]

    rows = {}
    for name, remedy in REMEDIES.items():
        for threshold in THRESHOLDS:
            solution, offsets = _best(solved, remedy, alphas, threshold, metric, phi)
            rows[name, threshold] = _row(solution, offsets, phi, mixture.classes)
            if metric not in GOALS:
                label = getattr(metric, "__name__", "metric")
                confusion = solution.metrics.confusion(offsets)
                rows[name, threshold][label] = float(value(confusion[None], phi / phi.sum())[0])
    return pd.DataFrame.from_dict(rows, orient="index", dtype=float).rename_axis(["strategy", "threshold"])


def _best(solved, remedy, alphas, threshold, metric, phi):
    """Return the solution of a remedy and the offsets of a kind of threshold; a mixing is searched."""
    value = goal(metric)

    def at(u):
        mixing = common_mixing(alphas, u) if remedy.searched else None
        solution = solved(remedy.name, mixing)
        offsets = {"trained": lambda: np.zeros(alphas.size), "logit adjustment": lambda: logit_offsets(solution)}.get(
            threshold, lambda: solution.metrics.best_offsets(metric, phi)
        )()
        offsets = np.zeros(alphas.size) if np.isnan(offsets).any() else offsets  # no convergence: all is NaN
        return solution, offsets, float(value(solution.metrics.confusion(offsets)[None], phi / phi.sum())[0])

    if not remedy.searched or alphas.min() == alphas.max():
        return at(0.0)[:2]
    grid = np.linspace(0.0, 1.0, GRID)
    points = [at(u) for u in grid]
    best = int(np.argmax([height for *_, height in points]))
    ends = grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)]
    closer = minimize_scalar(lambda u: -at(u)[2], bounds=ends, method="bounded", options={"maxiter": REFINED})
    return max((points[best], at(float(closer.x))), key=lambda one: one[2])[:2]


def common_mixing(alphas, u):
    """Return the mixing at which all classes meet at a size between the extremes, u of the way in its logarithm."""
    ratio = alphas.max() / alphas.min()
    if ratio == 1.0:
        return 0.0  # one size already, whatever the mixing
    return float(np.clip((ratio**u - 1.0) / (ratio - 1.0), 0.0, 1.0))


def _row(solution, offsets, phi, classes):
    metrics = solution.metrics
    recall = metrics.recall(offsets)
    return {
        "ba": recall.mean(), "macro_f1": metrics.macro_f1(phi, offsets), "accuracy": metrics.accuracy(phi, offsets),
        "lowest": recall.min(), **{f"recall {label}": r for label, r in zip(classes.tolist(), recall, strict=True)},
        "n": solution.alphas.sum(),
    }  # fmt: skip


def _record(remedy):
    return remedy if isinstance(remedy, Remedy) else REMEDIES[one_of("remedy", remedy, tuple(REMEDIES))]
