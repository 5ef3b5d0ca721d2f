r"""Losses, of which the saddle point needs three Gaussian expectations after a proximal step.

For a class with label :math:`y` the solver draws :math:`u_0\sim\mathcal N(\mu, q)`, moves it to
:math:`u = \mathrm{prox}_{x\ell}(u_0)` and records the force :math:`f = (u-u_0)/x = -\ell'(u)`. All it asks of the
loss is

.. math:: \mathbb E[f],\qquad \mathbb E[f^2],\qquad \mathbb E[-f'],

and their derivatives in :math:`(\mu, q, x)`, which follow from :math:`\partial_q = \tfrac12\partial_\mu^2` and
:math:`\partial_x f = f f'`. Each kernel returns these twelve numbers. A new loss is one more
:class:`rbal.losses.Loss`: see ``_hinge.py`` for a short one.

The SAT phase is such a kernel too: there the hard constraint :math:`u\ge\kappa` replaces the loss, the variance
:math:`w` takes the place of :math:`x`, and :math:`f` is the logarithmic derivative of a partition function. So is the
surface between the phases, where :math:`x\to\infty` and only :math:`x f` stays finite.
"""

import math

from .._support.validation import instance, number, one_of
from ._constraints import EQUALITY, INEQUALITY
from ._derived import bootstrapped, homogeneity, of_difference, tempered
from ._hinge import HINGE, hinge
from ._logistic import LOGISTIC, logistic
from ._quadratic import SQUARE, SQUARED_HINGE
from ._record import LOSSES, Constraint, Law, Loss, register, trained

for _loss in (HINGE, SQUARED_HINGE, SQUARE, LOGISTIC):
    register(_loss)


def record_of(loss):
    """Return the record of a loss: itself, or the one of this name in LOSSES.

    Parameters
    ----------
    loss : str or Loss

    Returns
    -------
    Loss
    """
    return loss if isinstance(loss, Loss) else LOSSES[one_of("loss", loss, tuple(LOSSES))]


def expectations(loss, kappa, c, x, mu, q):
    """Return the twelve expectations of a loss or a constraint.

    Parameters
    ----------
    loss : Loss or Constraint
    kappa, c, x, mu, q : float
        Margin, weight, variance of the proximal step, mean and variance of u0.

    Returns
    -------
    tuple
        E[f], E[f²], E[-f'], then their derivatives in μ, in q and in x.
    """
    instance("loss", loss, Loss, Constraint)
    kappa, c, mu = (number(name, value, -math.inf) for name, value in (("kappa", kappa), ("c", c), ("mu", mu)))
    x, q = number("x", x, 0.0), number("q", q, 0.0)
    return loss.expectations(kappa, c, x, mu, q)


__all__ = [
    "EQUALITY", "HINGE", "INEQUALITY", "LOGISTIC", "LOSSES", "SQUARE", "SQUARED_HINGE",
    "Constraint", "Law", "Loss", "bootstrapped", "expectations", "hinge", "homogeneity", "logistic", "of_difference",
    "record_of", "register", "tempered", "trained",
]  # fmt: skip
