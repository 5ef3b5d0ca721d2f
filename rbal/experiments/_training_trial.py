"""One trial: draw classes, train a classifier, test it."""

import math

import numpy as np

from .._support.validation import LARGEST, flag, instance, number, one_of, positive_int, room
from ..learners import LinearSVM, SphericalPerceptron
from ..metrics import evaluate


def train(
    rng,
    *,
    classes,
    alpha_pos,
    alpha_neg,
    kappa=1.0,
    model="perceptron",
    lam=None,
    weight_pos=1.0,
    weight_neg=1.0,
    sat="largest_margin",
    n_test=5000,
    answers=False,
):
    """Standard trial: draw a training set, train on it, measure on fresh samples.

    Parameters
    ----------
    rng : numpy.random.Generator
    classes : Classes or Images
        What to draw from, of ``rbal.datasets``.
    alpha_pos, alpha_neg : float
        Class sizes over L; each class has ``round(alpha L)`` samples, and at least one.
    kappa : float
        Margin of the perceptron; an SVM has margin 1.
    model : {"perceptron", "svm"}
        :class:`rbal.SphericalPerceptron` or :class:`rbal.LinearSVM`.
    lam : float
        Ridge of the SVM.
    weight_pos, weight_neg : float
        Factors on the loss of each class, as in :func:`rbal.solve`.
    sat : {"largest_margin", "typical"}
        Which weights to take where zero loss is possible, as in :class:`rbal.SphericalPerceptron`.
    n_test : int
        Test samples of each class, where ``classes`` has no test set of its own.
    answers : bool
        Whether to tell, as ``right``, which samples of that test set were answered right; see :func:`shared_test`.

    Returns
    -------
    dict
        Order parameters ``q, r, b``; ``train_loss, train_error``, means over the training set with its weights;
        on the balanced test set ``gen_loss`` (of margin ``kappa``), ``gen_loss_0`` (of margin 0), ``gen_error``, the
        rates ``tpr, tnr``, their mean ``ba``, and ``auc``; ``multiplier`` and ``kkt_residual`` of the perceptron (NaN
        for an SVM). They bear the names of what :func:`rbal.solve` and :class:`rbal.Metrics` predict.
    """
    if missing := [name for name in ("moments", "n_states", "sample") if not hasattr(classes, name)]:
        raise TypeError(
            f"classes must be Classes or Images of rbal.datasets, got {type(classes).__name__}, which has no "
            + " and no ".join(missing)
        )
    instance("rng", rng, np.random.Generator)
    kappa, answers = number("kappa", kappa, 0.0), flag("answers", answers)
    one_of("model", model, ("perceptron", "svm")), one_of("sat", sat, ("largest_margin", "typical"))
    n_test = room("n_test", n_test, positive_int("n_test", n_test) * classes.moments.L)
    n_pos, n_neg = _size("alpha_pos", alpha_pos, classes), _size("alpha_neg", alpha_neg, classes)
    X, y = classes.sample(n_pos, n_neg, rng)
    weight = np.where(
        y > 0,
        number("weight_pos", weight_pos, 0.0, LARGEST, open_low=True),
        number("weight_neg", weight_neg, 0.0, LARGEST, open_low=True),
    )
    if model == "svm":
        learner = LinearSVM(lam=_ridge(lam, kappa), n_states=classes.n_states)
    else:
        if lam is not None:
            raise ValueError("lam goes with model='svm': the perceptron's norm is fixed")
        start = int(rng.integers(2**31)) if sat == "typical" else None
        learner = SphericalPerceptron(kappa=kappa, n_states=classes.n_states, sat=sat, random_state=start)
    learner.fit(X, y, sample_weight=weight)
    u = y * learner.decision_function(X)
    # real data come with images that were never drawn from; anything else is drawn afresh
    fixed = hasattr(classes, "X_test")
    if answers and not fixed:
        raise ValueError("answers goes with classes that have a test set of their own: here each trial draws another")
    X_test, y_test = (classes.X_test, classes.y_test) if fixed else classes.sample(n_test, n_test, rng)
    scores = learner.decision_function(X_test)
    return {
        **learner.order_parameters(classes.moments)._asdict(),
        "train_loss": float(np.average(np.maximum(kappa - u, 0.0), weights=weight)),
        "train_error": float(np.average(u < 0.0, weights=weight)),
        **measured(scores, y_test, kappa),
        "multiplier": getattr(learner, "multiplier_", math.nan),
        "kkt_residual": getattr(learner, "kkt_residual_", math.nan),
        **({"right": (scores > 0) == (y_test > 0)} if answers else {}),
    }


def _size(name, alpha, classes):
    L = classes.moments.L
    return max(1, round(room(name, alpha, number(name, alpha, 0.0, open_low=True) * L * L) * L))


def _ridge(lam, kappa):
    if lam is None:
        raise ValueError("lam must be given for model='svm'")
    if kappa != 1.0:
        raise ValueError(f"kappa must be 1 for model='svm', got {kappa}")
    return lam


def measured(score, y, kappa):
    """Losses, error, rates and AUC on a balanced test set."""
    u, tested = y * score, evaluate(score, y, names=("tpr", "tnr", "ba", "auc"))
    return {
        "gen_loss": float(np.mean(np.maximum(kappa - u, 0.0))),
        "gen_loss_0": float(np.mean(np.maximum(-u, 0.0))),
        "gen_error": 1.0 - tested["ba"],
        **tested,
    }
