"""Margins of each class: the weights are those of the mean of both, and the bias moves by half of their difference."""

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
    return Margins(pos, neg, in_range("the mean of kappa and kappa_neg", 0.5 * (pos + neg), 0.0, open_low=open_low))


def moved(found, margins, law):
    """Return what margins of their own change of a solution at their mean: the bias, and which samples are wrong."""
    shape = np.shape(found["q"])
    pos, neg = np.broadcast_to(margins.pos, shape), np.broadcast_to(margins.neg, shape)
    b = found["b"] + 0.5 * (neg - pos)
    force, phase, wrong = np.vectorize(law.force, otypes=[float]), np.asarray(found["phase"]), 0.0
    weights = [np.asarray(found["alpha_" + name]) * found["weight_" + name] for name in ("pos", "neg")]
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
