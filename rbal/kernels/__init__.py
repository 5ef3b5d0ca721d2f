r"""Kernels: machines that are linear in features that nobody writes down.

A kernel is one record, a :class:`rbal.kernels.Kernel`. :func:`bind` fixes its parameters on training rows, and
:func:`moments` gives what the theory needs of it, from a Gram matrix or, for many rows, from landmarks.
"""

from ._kernel_moments import moments
from ._kernel_record import KERNELS, BoundKernel, Kernel, Parameter, bind, register
from ._network_kernels import arc_cosine, ntk

__all__ = ["KERNELS", "BoundKernel", "Kernel", "Parameter", "arc_cosine", "bind", "moments", "ntk", "register"]
