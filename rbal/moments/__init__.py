r"""Class statistics: all that the theory asks of the data.

The two classes have means :math:`M \pm \delta/(2\sqrt L)` and share the covariance :math:`C`. The saddle point sees
only the eigenvalues :math:`\lambda_i` of :math:`C` and the squared components :math:`d_i^2` of :math:`\delta` along its
eigenvectors, so that one eigendecomposition, made here once, serves every later solve.
"""

from ._moments import Moments
from ._spectrum import Spectrum

__all__ = ["Moments", "Spectrum"]
