"""Solve for mixtures of under- and oversampling, and find the best one."""

from typing import NamedTuple

import numpy as np

from .._support.validation import broadcast, given_function, in_range, n_dimensions, number, one_of
from .._support.warnings import one_convergence_warning
from ..metrics import METRICS, Metric
from ..saddle import Solution, solve, sweep
from ._remedy_record import kept, multiplicity

LARGEST_SIZE = 1e100  # that solve takes
GRID = 33  # points of the first look at the mixings, evenly spaced in log c
STEPS = 18  # steps of golden section and of bisection, which shrink the bracket below 2e-4 of a grid step
EDGES = ("under", "inside", "over")


class BestMixing(NamedTuple):
    """The mixing at which a metric is best; every field is an array if the problem has arrays."""

    mixing: float  # 0 is undersampling, 1 oversampling
    c: float  # multiplicity of the minority
    value: float  # the metric there
    low: float  # from low to high the metric is within the tolerance
    high: float
    edge: str  # "under" or "over" where the best is at an end, "inside" otherwise
    solution: Solution


def mix(moments, alpha_pos, alpha_neg, mixing, kappa=None, **options):
    """Return the order parameters after a mixture of under- and oversampling has restored balance.

    Parameters
    ----------
    moments : Moments
    alpha_pos, alpha_neg : float or array
        Class sizes over L, as given; either class may be the smaller one.
    mixing : float or array
        From 0, undersampling, to 1, oversampling.
    kappa : float or array, optional
        Margin, as in :func:`rbal.solve`.
    **options
        Passed on to :func:`rbal.solve`: model, lam, loss, fit_bias, tol, max_iter.

    Returns
    -------
    Solution
        Its fields are arrays if an argument is one.

    Examples
    --------
    >>> import rbal
    >>> classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    >>> mix(classes, 0.5, 5.0, [0.0, 0.5, 1.0], kappa=0.5).metrics.ba().round(4)
    array([0.5736, 0.5899, 0.5915])
    """
    mixing = in_range("mixing", mixing, 0.0, 1.0)
    pos, neg = sizes(alpha_pos, alpha_neg)
    return balanced(moments, pos, neg, multiplicity(pos, neg, mixing), kappa, **options)


def balanced(moments, alpha_pos, alpha_neg, c, kappa=None, **options):
    """Return the order parameters under the balanced protocol (BP): the minority c times, the majority cut to match.

    Parameters
    ----------
    moments, alpha_pos, alpha_neg, kappa
        As in :func:`mix`.
    c : float or array
        Multiplicity of the minority, from 1 (undersampling) to the ratio of the class sizes (oversampling).
    **options
        Passed on to :func:`rbal.solve`.

    Returns
    -------
    Solution
    """
    pos, neg = sizes(alpha_pos, alpha_neg)
    c = _checked_multiplicity(pos, neg, c)
    n_pos, n_neg, weight_pos, weight_neg = kept(pos, neg, c)
    return _solve(moments, n_pos, n_neg, kappa, weight_pos=weight_pos, weight_neg=weight_neg, **options)


def imbalanced(moments, alpha_pos, alpha_neg, c, kappa=None, **options):
    """Return the order parameters under the imbalanced protocol (IP): the minority c times, and all of the majority.

    Parameters
    ----------
    moments, alpha_pos, alpha_neg, c, kappa
        As in :func:`balanced`; c = 1 leaves the set unmodified.
    **options
        Passed on to :func:`rbal.solve`.

    Returns
    -------
    Solution
    """
    pos, neg = sizes(alpha_pos, alpha_neg)
    c = _checked_multiplicity(pos, neg, c)
    weight_pos, weight_neg = np.where(pos <= neg, c, 1.0), np.where(pos <= neg, 1.0, c)
    return _solve(moments, pos, neg, kappa, weight_pos=weight_pos, weight_neg=weight_neg, **options)


@one_convergence_warning()
def best_mixing(moments, alpha_pos, alpha_neg, kappa=None, *, metric="ba", phi_pos=None, tolerance=1e-3, **options):
    """Find the mixture of under- and oversampling at which a metric is best, and how much that matters.

    A grid in log c finds the highest point, and golden section refines it. The classifier depends on c and on the size
    of the minority; the majority only limits c. So for a metric of fixed test composition the best c, once it is inside
    the range, is the same for all larger majorities.

    Parameters
    ----------
    moments, alpha_pos, alpha_neg, kappa
        As in :func:`mix`; arrays give the best mixing of each problem.
    metric : str, Metric or callable
        Name in :data:`rbal.metrics.METRICS` (errors, losses and costs are minimised), a record, for example from
        :func:`rbal.metrics.cost`, or a function of a :class:`rbal.Metrics` that is maximised.
    phi_pos : float, optional
        Share of positives in the test set, for metrics that depend on it; by default that of the unmodified set.
    tolerance : float
        Mixings from ``low`` to ``high`` are worse than the best by at most this.
    **options
        Passed on to :func:`rbal.solve`.

    Returns
    -------
    BestMixing
        A named tuple (mixing, c, value, low, high, edge, solution).

    Examples
    --------
    >>> import rbal
    >>> classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    >>> best = best_mixing(classes, 0.2, 5.0, kappa=0.5)
    >>> print(f"{best.edge}: {best.mixing:.2f}, as good from {best.low:.2f} to {best.high:.2f}")
    inside: 0.05, as good from 0.02 to 0.09
    """
    tolerance = number("tolerance", tolerance, 0.0)
    pos, neg = sizes(alpha_pos, alpha_neg)
    given = {"kappa": kappa, "lam": options.get("lam")}
    pos, neg, *_ = broadcast(alpha_pos=pos, alpha_neg=neg, **{k: 0.0 if v is None else v for k, v in given.items()})
    score, sign = scored(metric, pos / (pos + neg) if phi_pos is None else in_range("phi_pos", phi_pos, 0.0, 1.0))
    largest = multiplicity(pos, neg, 1.0)

    def at(t):  # t from 0 to 1 is log c from 0 to its largest value
        return np.where(t == 1.0, largest, largest**t)

    def height(t):
        value = sign * score(balanced(moments, pos, neg, at(t), kappa, **options).metrics)
        return np.where(np.isnan(value), -np.inf, value)

    t, heights = _highest(height, pos.shape)
    enough = height(t) - tolerance
    low, high = (_end(height, heights, t, enough, side) for side in (-1, +1))
    solution = balanced(moments, pos, neg, at(t), kappa, **options)
    edge = np.asarray(EDGES)[np.where(t == 0.0, 0, np.where(t == 1.0, 2, 1))]
    mixing, low, high = (_mixing(largest, at(place), place)[()] for place in (t, low, high))
    value = score(solution.metrics)
    return BestMixing(mixing, at(t)[()], value, low, high, edge if pos.ndim else str(edge), solution)


def sizes(alpha_pos, alpha_neg):
    """Return the class sizes over L as arrays, when both are positive and their ratio is finite."""
    pos = np.asarray(in_range("alpha_pos", alpha_pos, 0.0, LARGEST_SIZE, open_low=True), float)
    neg = np.asarray(in_range("alpha_neg", alpha_neg, 0.0, LARGEST_SIZE, open_low=True), float)
    with np.errstate(over="ignore"):
        if not np.isfinite(multiplicity(*broadcast(alpha_pos=pos, alpha_neg=neg), 1.0)).all():
            raise ValueError("alpha_pos and alpha_neg must have a finite ratio, got one beyond 1e308")
    return pos, neg


def _mixing(largest, c, t):
    """Return the mixing of a multiplicity c, or t for equal classes, where all mixings are the same."""
    with np.errstate(invalid="ignore"):
        return np.where(largest > 1.0, (c - 1.0) / (largest - 1.0), t)


def _checked_multiplicity(pos, neg, c):
    c = np.asarray(in_range("c", c, 1.0), float)
    pos, neg, c = broadcast(alpha_pos=pos, alpha_neg=neg, c=c)
    largest = multiplicity(pos, neg, 1.0)
    bad = c > largest * (1.0 + 1e-12)
    if bad.any():
        raise ValueError(f"c must be <= the ratio of the class sizes, {largest[bad].flat[0]:g}, got {c[bad].flat[0]:g}")
    return np.minimum(c, largest)


def _solve(moments, pos, neg, kappa, **options):
    """Call solve for numbers, and sweep if any argument is an array."""
    given = {"alpha_pos": pos, "alpha_neg": neg, "kappa": kappa, **options}
    if not any(n_dimensions(name, value) for name, value in given.items()):
        numbers = {k: v.item() if isinstance(v, np.ndarray) else v for k, v in options.items()}
        kappa = kappa.item() if isinstance(kappa, np.ndarray) else kappa
        return solve(moments, float(pos), float(neg), kappa, **numbers)
    return sweep(moments, pos, neg, kappa, **options)


def scored(metric, phi_pos):
    """Return the function from Metrics to the metric, and its sign: +1 if more is better, -1 if less is."""
    if callable(metric):
        return given_function("metric", metric, "Metrics"), 1.0
    if not isinstance(metric, Metric):
        metric = METRICS[one_of("metric", metric, [name for name, record in METRICS.items() if record.of_theory])]
    return (lambda m: metric.of_theory(m, phi_pos, 0.0)), metric.sign


def _highest(height, shape):
    """Return the t in [0, 1] of the highest point (shape), and the heights on the grid (*shape, GRID)."""
    grid = np.linspace(0.0, 1.0, GRID)
    if np.isneginf([height(np.full(shape, t)) for t in (0.0, 0.5, 1.0)]).all():  # nothing converges, and that slowly
        return np.zeros(shape), np.full((*shape, GRID), -np.inf)
    heights = np.stack([height(np.full(shape, t)) for t in grid], axis=-1)
    best = np.argmax(heights, axis=-1)
    a, b = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, GRID - 1)]
    golden = 0.5 * (np.sqrt(5.0) - 1.0)
    left, right = b - golden * (b - a), a + golden * (b - a)
    at_left, at_right = height(left), height(right)
    for _ in range(STEPS):
        go_left = at_left >= at_right
        a, b = np.where(go_left, a, left), np.where(go_left, right, b)
        new = np.where(go_left, b - golden * (b - a), a + golden * (b - a))
        at_new = height(new)
        left, right = np.where(go_left, new, right), np.where(go_left, left, new)
        at_left, at_right = np.where(go_left, at_new, at_right), np.where(go_left, at_left, at_new)
    t = 0.5 * (a + b)
    # keep the grid point if it is at least as high: an end of the range, or any point of a flat metric
    return np.where(heights.max(axis=-1) >= height(t), grid[best], t), heights


def _end(height, heights, t, enough, side):
    """Return the farthest point on one side of t before the height falls below ``enough``."""
    grid = np.linspace(0.0, 1.0, GRID)[::side]
    below = (heights[..., ::side] < enough[..., None]) & (side * (grid - t[..., None]) > 0)
    is_bounded = below.any(axis=-1)
    bad = grid[np.where(is_bounded, np.argmax(below, axis=-1), GRID - 1)]
    good = np.where(is_bounded, side * np.maximum(side * (bad - side / (GRID - 1)), side * t), bad)
    if not is_bounded.any():
        return good
    for _ in range(STEPS):
        middle = 0.5 * (good + bad)
        fine = height(middle) >= enough
        good, bad = np.where(fine, middle, good), np.where(fine, bad, middle)
    return good
