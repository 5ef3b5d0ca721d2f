r"""Class statistics: all that the theory asks of the data.

The two classes have means :math:`M \pm \delta/(2\sqrt L)` and share the covariance :math:`C`. The saddle point sees
only the eigenvalues :math:`\lambda_i` of :math:`C` and the squared components :math:`d_i^2` of :math:`\delta` along its
eigenvectors, so that one eigendecomposition, made here once, serves every later solve.

Classes that are made of clusters, each with a centre and a covariance of its own, are a :class:`Mixture`.
"""

from importlib import import_module

from ._moments import Moments
from ._spectrum import Spectrum
from ._spectrum import spectrum_of as spectrum_of  # for other rooms

__all__ = ["KernelMoments", "Mixture", "Moments", "Spectrum"]


def __getattr__(name):
    # by name, so that an edited mixture leaves compiled kernels, which see no more than a spectrum, in their cache
    if name == "Mixture":
        return import_module("._mixture", __name__).Mixture
    if name == "KernelMoments":
        return import_module("._kernel", __name__).KernelMoments
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
