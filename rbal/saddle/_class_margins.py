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
    move: float = 0.0  # what they add to the bias


def margins_of(kappa, kappa_neg, law, model, fit_bias):
    """Check the margins.

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
    """Return the common shift at which the weights are the same, for shifts beside temperatures of the classes.

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


def moved(found, margins, law, counted=None):
    """Return what margins of their own change of a solution at the common one: the bias, and which samples are wrong.

    Samples are counted with the weights of their classes, or with those of the pair ``counted``.
    """
    shape = np.shape(found["q"])
    pos, neg = np.broadcast_to(margins.pos, shape), np.broadcast_to(margins.neg, shape)
    b = found["b"] + np.broadcast_to(margins.move, shape)
    force, phase, wrong = np.vectorize(law.force, otypes=[float]), np.asarray(found["phase"]), 0.0
    counted = (found["weight_pos"], found["weight_neg"]) if counted is None else counted
    weights = [np.asarray(found["alpha_" + name]) * c for name, c in zip(("pos", "neg"), counted, strict=True)]
    forces = force(pos, found["weight_pos"], 0.0), force(neg, found["weight_neg"], 0.0)
    for y, kappa, pull, weight in zip((1.0, -1.0), (pos, neg), forces, weights, strict=True):
        with np.errstate(invalid="ignore", divide="ignore"):
            reached = (-found["x"] * pull - (0.5 * np.asarray(found["r"]) - y * b)) / np.sqrt(found["q"])
        below = np.where(phase == "COLLAPSED", y * b > 0.0, ndtr(reached))
        if law.constraint:
            # without loss every sample is above its margin, but how many are above 0 is not known of a negative one
            below = np.where(phase == "SAT", np.where(kappa >= 0.0, 0.0, np.nan), below)
        wrong = wrong + weight * below
    error = np.where(np.isnan(found["q"]), np.nan, wrong / (weights[0] + weights[1]))
    return {"b": b, "train_error": error, "kappa": pos.copy(), "kappa_neg": neg.copy()}
