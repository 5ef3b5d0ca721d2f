"""Margins of each class: the weights are those of one common margin, and the bias moves by the difference."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from .._support.validation import in_range
from ..losses import EQUALITY, of_difference


class Margins(NamedTuple):
    """Margins of the two classes, and the common margin at which the weights are the same."""

    pos: float
    neg: float
    mean: float
    move: float = 0.0  # shift of the bias


def margins_of(kappa, kappa_neg, law, model, fit_bias):
    """Check the margins of both classes, and return them as Margins.

    A loss is a function of κ - y (score - b). With κ± = κ ± d it is that of a common margin κ with the bias b + d: the
    same weights, and another bias.
    """
    kappa = law.margin if kappa is None else kappa
    # at κ = 0 a loss with a margin is least at weights 0, if these are allowed, and so is an equality
    open_low = law.margin > 0.0 and (model == "svm" or law.constraint is EQUALITY)
    if kappa_neg is None:
        kappa = in_range("kappa", kappa, 0.0, open_low=open_low)
        return Margins(kappa, kappa, kappa)
    pos, neg = in_range("kappa", kappa, -math.inf), in_range("kappa_neg", kappa_neg, -math.inf)
    if not of_difference(law):
        raise ValueError(f"kappa_neg goes with a loss of κ - u, not with {law.name!r}")
    if not fit_bias and np.any(np.not_equal(pos, neg)):
        raise ValueError("kappa_neg must be kappa, or left out, with fit_bias=False: the margins are told by the bias")
    mean = in_range("the mean of kappa and kappa_neg", 0.5 * (pos + neg), 0.0, open_low=open_low)
    return Margins(pos, neg, mean, 0.5 * (neg - pos))


def shifts_of(shifts, temperatures):
    """Return the common shift at which the weights are the same, for shifts and temperatures of the classes.

    A loss of κ - t y (score - b), with κ and t of each class, is that of a common κ with the bias b + d, where
    κ₊ = κ + t₊d and κ₋ = κ - t₋d.

    Parameters
    ----------
    shifts, temperatures : pair of floats or arrays
        Of positives and negatives.

    Returns
    -------
    Margins
        Their ``mean`` is the common shift, weighed by the temperatures of the other class.
    """
    (pos, neg), (t_pos, t_neg) = shifts, temperatures
    total = t_pos + t_neg
    common = (pos * t_neg + neg * t_pos) / total
    return Margins(pos, neg, in_range("the common shift of the classes", common, 0.0), (neg - pos) / total)


def moved(solution, margins, law, counted=None):
    """Return the fields of a solution that change with margins of each class: bias, training error and margins.

    Samples are counted with the weights of their classes, or with those of the pair ``counted``.
    """
    shape = np.shape(solution["q"])
    pos, neg = np.broadcast_to(margins.pos, shape), np.broadcast_to(margins.neg, shape)
    b = solution["b"] + np.broadcast_to(margins.move, shape)
    force, phase, errors = np.vectorize(law.force, otypes=[float]), np.asarray(solution["phase"]), 0.0
    counted = (solution["weight_pos"], solution["weight_neg"]) if counted is None else counted
    weights = [np.asarray(solution["alpha_" + name]) * c for name, c in zip(("pos", "neg"), counted, strict=True)]
    forces = force(pos, solution["weight_pos"], 0.0), force(neg, solution["weight_neg"], 0.0)
    for y, kappa, pull, weight in zip((1.0, -1.0), (pos, neg), forces, weights, strict=True):
        with np.errstate(invalid="ignore", divide="ignore"):
            edge = (-solution["x"] * pull - (0.5 * np.asarray(solution["r"]) - y * b)) / np.sqrt(solution["q"])
        error_rate = np.where(phase == "COLLAPSED", y * b > 0.0, ndtr(edge))
        if law.constraint:
            # without loss every sample is above its margin, but a negative margin leaves open how many are above 0
            error_rate = np.where(phase == "SAT", np.where(kappa >= 0.0, 0.0, np.nan), error_rate)
        errors = errors + weight * error_rate
    train_error = np.where(np.isnan(solution["q"]), np.nan, errors / (weights[0] + weights[1]))
    return {"b": b, "train_error": train_error, "kappa": pos.copy(), "kappa_neg": neg.copy()}
