r"""Classifiers trained for real, exactly: the dots on the theory's lines.

Both share one scaling with the theory: a sample of class :math:`y_\mu = \pm1` has margin
:math:`u_\mu = y_\mu(\mathbf x_\mu\cdot\mathbf J/\sqrt L - b)`. The spherical perceptron minimises
:math:`\sum_\mu c_\mu(\kappa - u_\mu)_+` over :math:`\lVert\mathbf J\rVert^2 = LQ`; the support vector machine minimises
:math:`\sum_\mu c_\mu\,\ell(u_\mu) + \tfrac12\tilde\lambda\lVert\mathbf J\rVert^2` with any of the theory's losses.
"""

from ._classifiers import LinearSVM, SphericalPerceptron
from ._order_parameters import OrderParameters, order_parameters

__all__ = ["LinearSVM", "OrderParameters", "SphericalPerceptron", "order_parameters"]
