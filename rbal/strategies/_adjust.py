"""Class weights, margins, shifts and temperatures of any strength, and the strength at which a metric is best."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._support.records import enter
from .._support.validation import broadcast, in_range, number, one_of, real_array
from ..losses import homogeneity, record_of, tempered
from ..moments import Mixture
from ..saddle import Solution
from ..saddle.internal import moved, shifts_of
from ._mixing import EDGES, _end, _highest, _solve, scored, sizes

POWER = 0.15  # of the class sizes, in the temperatures of the vector-scaling loss, for a shift of strength 1
TOLD = (
    "q",
    "r",
    "b",
    "x",
    "phase",
    "alpha_pos",
    "alpha_neg",
    "weight_pos",
    "weight_neg",
)  # of a solution, for its bias


class Change(NamedTuple):
    """What an adjustment does to the loss of each class, in pairs (positives, negatives) of numbers or arrays."""

    weight: tuple = (1.0, 1.0)  # factor on the loss
    margin: tuple = (1.0, 1.0)  # factor on the margin
    shift: tuple = (0.0, 0.0)  # added to the margin
    temperature: tuple = (1.0, 1.0)  # factor on the score, at most 1


@dataclass(frozen=True)
class Adjustment:
    """A loss that depends on the class sizes by a rule with one strength, where 0 leaves it as it is.

    Attributes
    ----------
    name : str
    doing : str
        What to do, as a sentence without its full stop.
    change : callable
        Function of the class sizes and the strength, which returns a Change.
    """

    name: str
    doing: str
    change: Callable


class BestAdjustment(NamedTuple):
    """The strength at which a metric is best; every field is an array if the problem has arrays."""

    strength: float  # 0 is no adjustment
    value: float  # the metric there
    low: float  # from low to high the metric is within the tolerance
    high: float
    edge: str  # "under" or "over" where the best is at an end of the range, "inside" otherwise
    solution: Solution


def _weights(pos, neg, strength):
    """Weights (size of the other class / own size)^(strength/2), with mean 1 over the samples."""
    up, down = (neg / pos) ** (0.5 * strength), (pos / neg) ** (0.5 * strength)
    mean = (pos * up + neg * down) / (pos + neg)
    return Change(weight=(up / mean, down / mean))


def _logits(pos, neg, strength):
    """Shifts by the logarithm of the class ratio, as of a prior: they cancel in the mean of the two margins."""
    shift = strength * np.log(neg / pos)
    return Change(shift=(shift, -shift))


def _margins(pos, neg, strength):
    """Margins like the inverse fourth root of the class sizes; the smaller class keeps its own."""
    least = np.minimum(pos, neg)
    return Change(margin=((least / pos) ** (0.25 * strength), (least / neg) ** (0.25 * strength)))


def _temperatures(pos, neg, strength):
    """Factors on the scores like a power of the class sizes, the largest one 1."""
    up, down = pos**strength, neg**strength
    most = np.maximum(up, down)
    return Change(temperature=(up / most, down / most))


def _scaled(pos, neg, strength):
    """Shifts as of the logit adjustment, and temperatures that are a small power of the class sizes."""
    return Change(
        shift=_logits(pos, neg, strength).shift, temperature=_temperatures(pos, neg, POWER * strength).temperature
    )


_ALL = (
    Adjustment("class weights", "Weigh the classes inversely to a power of their sizes", _weights),
    Adjustment("logit adjustment", "Shift the margins by the logarithm of the class ratio", _logits),
    Adjustment("LDAM margins", "Give the smaller class the larger margin", _margins),
    Adjustment("class temperature", "Scale down the scores of the smaller class in the loss", _temperatures),
    Adjustment("vector scaling", "Shift the margins, and scale down the scores of the smaller class", _scaled),
)
#: All adjustments, by their names.
ADJUSTMENTS = {record.name: record for record in _ALL}


def register_adjustment(adjustment):
    """Add an adjustment to ADJUSTMENTS, so that :func:`adjust` and :func:`best_adjustment` know it by its name.

    Parameters
    ----------
    adjustment : Adjustment
        Its name must be new.

    Returns
    -------
    Adjustment
    """
    return enter(ADJUSTMENTS, Adjustment, adjustment)


def adjust(moments, alpha_pos, alpha_neg, adjustment, strength=1.0, kappa=None, **options):
    """Return the order parameters of a classifier whose loss was adjusted to the class sizes.

    Parameters
    ----------
    moments : Moments or Spectrum
    alpha_pos, alpha_neg : float or array
        Class sizes over L.
    adjustment : str or Adjustment
        "class weights": the ratio of the weights is that of the class sizes, n₋/n₊, to the power of the strength, and
        their mean is 1; strength 1 is scikit-learn's ``class_weight="balanced"``. "logit adjustment": margins are
        shifted by ± strength · log(n₋/n₊). "LDAM margins": margins like n to the power of -strength/4, the largest one
        κ. "class temperature": scores are multiplied, in the loss, by n/n_max to the power of the strength, the
        multiplicative part of the vector-scaling loss. "vector scaling": all of that loss, the shifts of the logit
        adjustment and temperatures n/n_max to the power of 0.15 · strength. Or a record.
    strength : float or array
        0 is no adjustment.
    kappa : float or array, optional
        Margin, as in :func:`rbal.solve`.
    **options
        Passed on to :func:`rbal.solve`: model, lam, loss, fit_bias, tol, max_iter.

    Returns
    -------
    Solution
        Its weights and margins are those that were solved for.

    Examples
    --------
    >>> import rbal
    >>> classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    >>> ridge = {"model": "svm", "loss": "logistic", "lam": 1.0}
    >>> for name in ("class weights", "logit adjustment"):
    ...     print(f"{name}: BA {adjust(classes, 0.5, 5.0, name, **ridge).metrics.ba():.4f}")
    class weights: BA 0.6082
    logit adjustment: BA 0.6259
    """
    record = adjustment
    if not isinstance(adjustment, Adjustment):
        record = ADJUSTMENTS[one_of("adjustment", adjustment, tuple(ADJUSTMENTS))]
    pos, neg = sizes(alpha_pos, alpha_neg)
    strength = np.asarray(in_range("strength", strength, -np.inf), float)
    with np.errstate(all="ignore"):
        change = Change(*record.change(pos, neg, strength))
    finite = all(np.isfinite(value).all() for pair in change for value in pair)
    if not finite or any(np.any(np.less_equal(w, 0.0)) for w in (*change.weight, *change.temperature)):
        raise ValueError(
            f"strength must leave positive weights and finite margins for these alpha_pos and alpha_neg, got "
            f"{np.ravel(strength)[0]:g}"
        )
    options = dict(options)
    loss = options.pop("loss", "hinge")
    kappa = record_of(loss).margin if kappa is None else in_range("kappa", kappa, 0.0)
    return _changed(moments, (pos, neg), kappa, loss, change, options)


def _changed(moments, sizes, kappa, loss, change, options):
    """Solve with the losses of a Change, where the score of a class may have a factor t.

    If ℓ is homogeneous of degree p, then ℓ(t u) with margin κ is tᵖ ℓ(u) with margin κ/t. Otherwise t takes the place
    of the weight, and other weights are not possible.
    """
    weights, kappas = list(change.weight), [kappa * f + s for f, s in zip(change.margin, change.shift, strict=True)]
    if any(np.any(np.not_equal(t, 1.0)) for t in change.temperature):
        record = record_of(loss)
        degree = homogeneity(record)
        if degree is None:
            if any(np.any(np.not_equal(w, 1.0)) for w in weights):
                raise ValueError(f"adjustment must have no weights beside temperatures for the loss {record.name!r}")
            return _tempered(moments, sizes, kappas, tempered(record), change.temperature, options)
        weights = [w * t**degree for w, t in zip(weights, change.temperature, strict=True)]
        kappas = [k / t for k, t in zip(kappas, change.temperature, strict=True)]
    own = {} if np.all(np.equal(*kappas)) else {"kappa_neg": kappas[1]}
    own |= {"weight_pos": weights[0], "weight_neg": weights[1]}
    return _solve(moments, *sizes, kappas[0], loss=loss, **own, **options)


def _tempered(moments, sizes, kappas, law, temperatures, options):
    """Solve with a factor on the score of each class and a shift of each class, which the bias absorbs."""
    weights = {"weight_pos": temperatures[0], "weight_neg": temperatures[1]}
    shifted = np.any(np.not_equal(*kappas))
    if shifted and (isinstance(moments, Mixture) or not options.get("fit_bias", True)):
        raise ValueError("adjustment must have no shifts beside temperatures for a Mixture, or with fit_bias=False")
    margins = shifts_of(kappas, temperatures)
    sol = _solve(moments, *sizes, margins.mean, loss=law, **weights, **options)
    if isinstance(moments, Mixture):
        return sol
    # a temperature is no weight: the training error counts all samples alike
    changes = moved({name: getattr(sol, name) for name in TOLD}, margins, law, counted=(1.0, 1.0))
    return replace(sol, **{name: value[()] for name, value in changes.items()})


def best_adjustment(
    moments, alpha_pos, alpha_neg, adjustment="class weights", kappa=None, *,
    metric="ba", phi_pos=None, between=(-1.0, 3.0), tolerance=1e-3, **options,
):  # fmt: skip
    """Find the strength of an adjustment at which a metric is best, and how much that matters.

    A grid finds the highest point, and golden section refines it; strengths 0 and 1 are always tried.

    Parameters
    ----------
    moments, alpha_pos, alpha_neg, adjustment, kappa
        As in :func:`adjust`; arrays give the best strength of each problem.
    metric, phi_pos, tolerance
        As in :func:`rbal.strategies.best_mixing`.
    between : (float, float)
        Range of strengths that are searched. Of class weights, 0 is none, 1 restores balance.
    **options
        Passed on to :func:`rbal.solve`.

    Returns
    -------
    BestAdjustment
        A named tuple (strength, value, low, high, edge, solution).

    Examples
    --------
    >>> import rbal
    >>> classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    >>> best = best_adjustment(classes, 0.5, 5.0, model="svm", lam=1.0)
    >>> print(f"{best.edge}: {best.strength:.2f}, as good from {best.low:.2f} to {best.high:.2f}")
    inside: 1.15, as good from 1.03 to 1.34
    """
    tolerance = number("tolerance", tolerance, 0.0)
    ends = real_array("between", between)
    if ends.shape != (2,) or not ends[0] < ends[1]:
        raise ValueError(f"between must ascend from one number to another, got {between!r}")
    start, end = ends.tolist()
    pos, neg = sizes(alpha_pos, alpha_neg)
    given = {"kappa": kappa, "lam": options.get("lam")}
    pos, neg, *_ = broadcast(alpha_pos=pos, alpha_neg=neg, **{k: 0.0 if v is None else v for k, v in given.items()})
    score, sign = scored(metric, pos / (pos + neg) if phi_pos is None else in_range("phi_pos", phi_pos, 0.0, 1.0))

    def at(t):  # t from 0 to 1
        return start + t * (end - start)

    def height(t):
        value = sign * score(adjust(moments, pos, neg, adjustment, at(t), kappa, **options).metrics)
        return np.where(np.isnan(value), -np.inf, value)

    t, heights = _highest(height, pos.shape)
    for rule in (0.0, 1.0):  # under a strong ridge weights are right at exact balance, and nowhere near it
        place = np.full(pos.shape, (rule - start) / (end - start))
        if start <= rule <= end:
            t = np.where(height(place) >= height(t), place, t)
    enough = height(t) - tolerance
    low, high = (at(_end(height, heights, t, enough, side))[()] for side in (-1, +1))
    solution = adjust(moments, pos, neg, adjustment, at(t), kappa, **options)
    edge = np.asarray(EDGES)[np.where(t == 0.0, 0, np.where(t == 1.0, 2, 1))]
    edge = edge if pos.ndim else str(edge)
    return BestAdjustment(at(t)[()], score(solution.metrics), low, high, edge, solution)
