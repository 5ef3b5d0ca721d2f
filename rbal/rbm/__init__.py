r"""Restricted Boltzmann machines: a generative model of one class.

Visible units :math:`v_1 \dots v_L`, binary or with states :math:`0 \dots Q-1`, and hidden units
:math:`z_1 \dots z_M`, binary or Gaussian, have the probability

.. math:: p(v, z) = \frac1Z \exp\Big(\sum_i h_i(v_i) + \sum_\mu c_\mu z_\mu + \sum_{i\mu} w_{i\mu}(v_i)\, z_\mu\Big),

with an extra factor :math:`e^{-z_\mu^2/2}/\sqrt{2\pi}` for each Gaussian unit. Summed over the hidden units it is
:math:`p(v) = e^{-F(v)}/Z`, with the free energy :math:`F(v) = -\sum_i h_i(v_i) - \sum_\mu \Gamma(I_\mu)` of the inputs
:math:`I_\mu = c_\mu + \sum_i w_{i\mu}(v_i)`, where :math:`\Gamma(I) = \log(1 + e^I)` for binary hidden units and
:math:`I^2/2` for Gaussian ones. Binary visible units have :math:`h_i(v) = h_i v` and :math:`w_{i\mu}(v) = w_{i\mu} v`.
"""

from ._partition import LogPartition
from ._rbm import RBM

__all__ = ["RBM", "LogPartition"]
