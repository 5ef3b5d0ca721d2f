r"""Under-, over- and mixed sampling, class weights and moved thresholds, on the theory.

Restoring balance needs one number. With ``mixing`` :math:`\mu\in[0,1]` every sample of the minority counts

.. math:: c = 1 + \mu\,\frac{\alpha_\text{maj} - \alpha_\text{min}}{\alpha_\text{min}}

times, and :math:`c\,\alpha_\text{min}` samples of the majority are kept: 0 is random undersampling, 1 random
oversampling. To the theory a sample that is there c times is one sample whose loss has weight c.
"""

import inspect
from typing import NamedTuple

import numpy as np

from ._support.validation import broadcast, in_range, number, one_of
from .metrics import Metrics
from .saddle import Solution, solve, sweep

GRID = 33  # points of the first look at the mixings, evenly spaced in log c
STEPS = 18  # of golden section and of bisection: the bracket shrinks to 2e-4 of a grid step and less
LOWER_IS_BETTER = frozenset({"fpr", "fnr", "gen_error", "gen_loss", "fdr", "fomr"})
EDGES = ("under", "inside", "over")


class BestMixing(NamedTuple):
    """Where a metric is best among the mixings; arrays for arrays."""

    mixing: float  # 0 is undersampling, 1 oversampling
    c: float  # multiplicity of the minority
    value: float  # of the metric
    low: float  # mixings from low to high are within the tolerance
    high: float
    edge: str  # "under" or "over" where the best is at an end, "inside" otherwise
    solution: Solution


def mix(moments, alpha_pos, alpha_neg, mixing, kappa=None, **options):
    """Order parameters after balance is restored by a mixture of under- and oversampling.

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
        Of arrays where an argument is one.

    Examples
    --------
    >>> import rbal
    >>> classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    >>> mix(classes, 0.5, 5.0, [0.0, 0.5, 1.0], kappa=0.5).metrics.ba().round(4)
    array([0.5736, 0.5899, 0.5915])
    """
    mixing = in_range("mixing", mixing, 0.0, 1.0)
    pos, neg = _sizes(alpha_pos, alpha_neg)
    return balanced(moments, pos, neg, _multiplicity(pos, neg, mixing), kappa, **options)


def balanced(moments, alpha_pos, alpha_neg, c, kappa=None, **options):
    """Order parameters under the balanced protocol (BP): the minority c times, and as many of the majority.

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
    pos, neg = _sizes(alpha_pos, alpha_neg)
    c = _checked_multiplicity(pos, neg, c)
    pos_is_minority = pos <= neg
    return _solve(
        moments,
        np.where(pos_is_minority, pos, c * neg),
        np.where(pos_is_minority, c * pos, neg),
        kappa,
        weight_pos=np.where(pos_is_minority, c, 1.0),
        weight_neg=np.where(pos_is_minority, 1.0, c),
        **options,
    )


def imbalanced(moments, alpha_pos, alpha_neg, c, kappa=None, **options):
    """Order parameters under the imbalanced protocol (IP): the minority c times, and all of the majority.

    Parameters
    ----------
    moments, alpha_pos, alpha_neg, c, kappa
        As in :func:`balanced`; c = 1 is the set as it is.
    **options
        Passed on to :func:`rbal.solve`.

    Returns
    -------
    Solution
    """
    pos, neg = _sizes(alpha_pos, alpha_neg)
    c = _checked_multiplicity(pos, neg, c)
    weight_pos, weight_neg = np.where(pos <= neg, c, 1.0), np.where(pos <= neg, 1.0, c)
    return _solve(moments, pos, neg, kappa, weight_pos=weight_pos, weight_neg=weight_neg, **options)


def best_mixing(moments, alpha_pos, alpha_neg, kappa=None, *, metric="ba", phi_pos=None, tolerance=1e-3, **options):
    """Mixture of under- and oversampling at which a metric is best, and how much that matters.

    A grid in log c finds the highest point, golden section its place. What is trained depends on c and on the size of
    the minority; the majority only limits c. So for a metric of fixed test composition the best c, once it is inside
    the range, is the same for all larger majorities.

    Parameters
    ----------
    moments, alpha_pos, alpha_neg, kappa
        As in :func:`mix`; arrays give the best mixing of each problem.
    metric : str or callable
        Name of a method of :class:`rbal.Metrics` that returns a number (errors and losses are minimised), or a function
        of a :class:`rbal.Metrics` to be maximised.
    phi_pos : float, optional
        Share of positives in the test set, for metrics that depend on it; by default that of the set as it is given.
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
    pos, neg = _sizes(alpha_pos, alpha_neg)
    given = {"kappa": kappa, "lam": options.get("lam")}
    pos, neg, *_ = broadcast(alpha_pos=pos, alpha_neg=neg, **{k: 0.0 if v is None else v for k, v in given.items()})
    score, sign = _score(metric, pos / (pos + neg) if phi_pos is None else in_range("phi_pos", phi_pos, 0.0, 1.0))
    largest = _multiplicity(pos, neg, 1.0)

    def multiplicity(t):  # t from 0 to 1 is log c from 0 to its largest value
        return np.where(t == 1.0, largest, largest**t)

    def height(t):
        value = sign * score(balanced(moments, pos, neg, multiplicity(t), kappa, **options).metrics)
        return np.where(np.isnan(value), -np.inf, value)

    t, heights = _highest(height, pos.shape)
    enough = height(t) - tolerance
    low, high = (_end(height, heights, t, enough, side) for side in (-1, +1))
    solution = balanced(moments, pos, neg, multiplicity(t), kappa, **options)
    edge = np.asarray(EDGES)[np.where(t == 0.0, 0, np.where(t == 1.0, 2, 1))]
    mixing, low, high = (_mixing(largest, multiplicity(place), place)[()] for place in (t, low, high))
    value = score(solution.metrics)
    return BestMixing(mixing, multiplicity(t)[()], value, low, high, edge if pos.ndim else str(edge), solution)


def compare(moments, alpha_pos, alpha_neg, kappa=None, *, metric="ba", phi_pos=None, **options):
    """Table of every remedy for one imbalanced set, each with the trained threshold and with a moved one.

    The strategies are the set as it is; undersampling; oversampling; the best mixture of both; and class weights
    inverse to the class sizes with mean 1, as scikit-learn's ``class_weight="balanced"``. The moved threshold is that
    of the highest balanced accuracy, midway between the class means of the score. Class weights and oversampling are
    the same for the perceptron; for an SVM the weights are smaller, and so the ridge counts for more.

    Parameters
    ----------
    moments : Moments
    alpha_pos, alpha_neg : float
        Class sizes over L.
    kappa : float, optional
        Margin.
    metric : str or callable
        What the best mixture is best at, as in :func:`best_mixing`; it is also the last column.
    phi_pos : float, optional
        Share of positives in the test set; by default that of the set as it is given.
    **options
        Passed on to :func:`rbal.solve`: model, lam, loss, fit_bias, tol, max_iter.

    Returns
    -------
    pandas.DataFrame
        Index (strategy, threshold), threshold "trained" or "moved"; columns n_pos and n_neg (distinct samples over L),
        weight_pos, weight_neg, q, r, b (counted from the threshold), tpr, tnr, ba, auc and the metric.

    Examples
    --------
    >>> import rbal
    >>> classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    >>> compare(classes, 0.5, 5.0, kappa=0.5)["ba"].unstack(sort=False).round(3)
    threshold      trained  moved
    strategy
    as is            0.551  0.603
    undersampling    0.574  0.574
    oversampling     0.591  0.603
    best mix         0.591  0.603
    class weights    0.591  0.603
    """
    import pandas as pd

    pos, neg = number("alpha_pos", alpha_pos, 0.0, open_low=True), number("alpha_neg", alpha_neg, 0.0, open_low=True)
    phi = pos / (pos + neg) if phi_pos is None else number("phi_pos", phi_pos, 0.0, 1.0)
    score, sign = _score(metric, phi)
    label = metric if isinstance(metric, str) else getattr(metric, "__name__", "metric")
    rows = {}
    for threshold, moved in (("trained", False), ("moved", True)):
        see = _centred if moved else _as_trained
        best = best_mixing(moments, pos, neg, kappa, metric=lambda m, see=see: sign * score(see(m)), **options)
        for name, (n_pos, n_neg, weight_pos, weight_neg) in _remedies(pos, neg, float(best.c)).items():
            sol = solve(moments, n_pos, n_neg, kappa, weight_pos=weight_pos, weight_neg=weight_neg, **options)
            m = see(sol.metrics)
            rows[name, threshold] = {
                "n_pos": n_pos, "n_neg": n_neg, "weight_pos": weight_pos, "weight_neg": weight_neg,
                "q": m.q, "r": m.r, "b": m.b,
                "tpr": m.tpr(), "tnr": m.tnr(), "ba": m.ba(), "auc": m.auc(), label: score(m),
            }  # fmt: skip
    names = dict.fromkeys(name for name, _ in rows)
    table = pd.DataFrame.from_dict(rows, orient="index", dtype=float).rename_axis(["strategy", "threshold"])
    return table.loc[[(name, threshold) for name in names for threshold in ("trained", "moved")]]


def _as_trained(metrics):
    return metrics


def _centred(metrics):
    """Metrics after the threshold is moved midway between the classes."""
    return Metrics(metrics.q, metrics.r, np.zeros_like(metrics.b))


def _remedies(pos, neg, best):
    """Distinct samples over L and weights of each class under each strategy."""
    small, ratio = min(pos, neg), max(pos, neg) / min(pos, neg)
    total = pos + neg

    def kept(c):  # the minority whole with weight c, the majority cut down to match
        return (pos, c * pos, c, 1.0) if pos <= neg else (c * neg, neg, 1.0, c)

    return {
        "as is": (pos, neg, 1.0, 1.0),
        "undersampling": (small, small, 1.0, 1.0),
        "oversampling": kept(ratio),
        "best mix": kept(best),
        "class weights": (pos, neg, 0.5 * total / pos, 0.5 * total / neg),
    }


def _sizes(alpha_pos, alpha_neg):
    pos = np.asarray(in_range("alpha_pos", alpha_pos, 0.0, open_low=True), float)
    return pos, np.asarray(in_range("alpha_neg", alpha_neg, 0.0, open_low=True), float)


def _multiplicity(pos, neg, mixing):
    return 1.0 + mixing * (np.maximum(pos, neg) / np.minimum(pos, neg) - 1.0)


def _mixing(largest, c, t):
    """Mixing of a multiplicity; for equal classes, where all are the same, the place t on the way from 0 to 1."""
    with np.errstate(invalid="ignore"):
        return np.where(largest > 1.0, (c - 1.0) / (largest - 1.0), t)


def _checked_multiplicity(pos, neg, c):
    c = np.asarray(in_range("c", c, 1.0), float)
    pos, neg, c = broadcast(alpha_pos=pos, alpha_neg=neg, c=c)
    largest = _multiplicity(pos, neg, 1.0)
    bad = c > largest * (1.0 + 1e-12)
    if bad.any():
        raise ValueError(f"c must be <= the ratio of the class sizes, {largest[bad].flat[0]:g}, got {c[bad].flat[0]:g}")
    return np.minimum(c, largest)


def _solve(moments, pos, neg, kappa, **options):
    """One point as numbers, many as arrays."""
    arrays = [np.asarray(a) for a in (pos, neg, kappa, *options.values()) if a is not None]
    if all(a.ndim == 0 for a in arrays):
        numbers = {k: v.item() if isinstance(v, np.ndarray) else v for k, v in options.items()}
        kappa = None if kappa is None else number("kappa", kappa, 0.0)
        return solve(moments, float(pos), float(neg), kappa, **numbers)
    return sweep(moments, pos, neg, kappa, **options)


def _score(metric, phi_pos):
    """Function from Metrics to numbers, and whether more is better (+1) or less (-1)."""
    if callable(metric):
        return metric, 1.0
    no_number = ("density", "roc", "prc", "best_threshold", "test_loss")  # or one more argument
    names = [n for n in vars(Metrics) if not n.startswith("_") and n not in no_number]
    method = getattr(Metrics, one_of("metric", metric, names))
    needs_share = "phi_pos" in inspect.signature(method).parameters
    return (lambda m: method(m, phi_pos) if needs_share else method(m)), -1.0 if metric in LOWER_IS_BETTER else 1.0


def _highest(height, shape):
    """Place t ∈ [0, 1] of the highest point, and the heights on the grid (last axis)."""
    grid = np.linspace(0.0, 1.0, GRID)
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
    # an end of the range, or a grid point of a flat metric, stays what it is
    return np.where(heights.max(axis=-1) >= height(t), grid[best], t), heights


def _end(height, heights, t, enough, side):
    """Farthest place on one side of t up to which no grid point is below ``enough``."""
    grid = np.linspace(0.0, 1.0, GRID)[::side]
    below = (heights[..., ::side] < enough[..., None]) & (side * (grid - t[..., None]) > 0)
    found = below.any(axis=-1)
    bad = grid[np.where(found, np.argmax(below, axis=-1), GRID - 1)]
    good = np.where(found, side * np.maximum(side * (bad - side / (GRID - 1)), side * t), bad)
    for _ in range(STEPS):
        middle = 0.5 * (good + bad)
        fine = height(middle) >= enough
        good, bad = np.where(fine, middle, good), np.where(fine, bad, middle)
    return good


class Window(NamedTuple):
    """Shares of negatives between which more than half of what is learnt at balance is kept; arrays for arrays."""

    low: float
    high: float

    @property
    def width(self):
        """Length of the range, W."""
        return self.high - self.low


def window(moments, alpha, kappa=None, *, fixed="positives", **options):
    """Range of the share of negatives in which a classifier tolerates imbalance.

    Inside, the balanced accuracy is more than half as far above 1/2 as it is at balance. Each edge is bisected in the
    logarithm of the absolute value of log(alpha_neg / alpha_pos), so that a narrow window is found to the same relative
    precision as a wide one.

    Parameters
    ----------
    moments : Moments
    alpha : float or array
        Size of each class over L, at balance.
    kappa : float or array, optional
        Margin, as in :func:`rbal.solve`.
    fixed : {"positives", "total"}
        What stays as it is at balance while the share of negatives changes: the number of positives, or the total.
    **options
        Passed on to :func:`rbal.solve`: model, lam, loss, fit_bias, tol, max_iter.

    Returns
    -------
    Window
        A named tuple (low, high) with the property ``width``. NaN where nothing is learnt at balance, or where half of
        it is lost at a ratio of class sizes nearer to 1 than 1e-11, beyond what the solver can tell. Ratios are
        followed up to about 1600, so that an edge is never outside of the shares 0.0006 and 0.9994.

    Examples
    --------
    >>> import rbal
    >>> classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    >>> window(classes, 2.0, kappa=[0.5, 1.0, 2.0]).width.round(3)
    array([0.743, 0.569, 0.202])
    """
    alpha = np.asarray(in_range("alpha", alpha, 0.0, open_low=True), float)
    fixed = one_of("fixed", fixed, ("positives", "total"))
    gain = np.asarray(_solve(moments, alpha, alpha, kappa, **options).metrics.ba()) - 0.5
    side = np.array([-1.0, 1.0]).reshape(2, *np.ones(gain.ndim, int))
    narrowest, widest = -25.0, 2.0
    low, high = np.full((2, *gain.shape), narrowest), np.full((2, *gain.shape), widest)
    for _ in range(22):
        middle = 0.5 * (low + high)
        ratio = np.exp(side * np.exp(middle))
        pos = alpha if fixed == "positives" else 2.0 * alpha / (1.0 + ratio)
        inside = _solve(moments, pos, pos * ratio, kappa, **options).metrics.ba() - 0.5 > 0.5 * gain
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    share = np.where(low > narrowest, ratio / (1.0 + ratio), np.nan)
    return Window(share[0][()], share[1][()])
