"""One record for each kernel: its formula, its parameters, and its name in scikit-learn."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from .._support.records import enter
from .._support.validation import (
    given_function,
    in_range,
    not_lost,
    number,
    one_of,
    positive_int,
    real_array,
    squarable,
)
from ._network_kernels import DEEPEST, arc_cosine, ntk

SEEN = 1000  # rows whose distances give a median


class Parameter(NamedTuple):
    """A parameter of a kernel."""

    default: object
    settle: Callable  # of its name, its value and the training rows: the value that enters the kernel, or an error


@dataclass(frozen=True)
class Kernel:
    """A kernel.

    Attributes
    ----------
    name : str
    title : str
        Name in a sentence.
    of : callable
        Gram matrix (n, m) of rows (n, D) and (m, D), which takes the parameters by name.
    parameters : dict
        From the name of each parameter to a :class:`Parameter`.
    svc : str, optional
        Name in scikit-learn's ``SVC``, if that has this kernel with the same parameters.
    """

    name: str
    title: str
    of: Callable = field(compare=False)  # a copy of a function need not be equal to it: records are compared by name
    parameters: dict = field(default_factory=dict, compare=False)
    svc: str | None = None


@dataclass(frozen=True)
class BoundKernel:
    """A kernel with numbers for its parameters. Called with rows, it returns their Gram matrix.

    ``SVC(kernel=…)`` takes it as it is. Two are equal if record and parameters are.

    Attributes
    ----------
    kernel : Kernel
    parameters : dict
        From names to numbers.
    """

    kernel: Kernel
    parameters: dict

    def __call__(self, X, Y=None):
        """Return the Gram matrix (n, m) of rows X (n, D) and Y (m, D), by default those of X with each other."""
        X = real_array("X", X, 2)
        Y = X if Y is None else real_array("Y", Y, 2)
        if X.shape[1] != Y.shape[1]:
            raise ValueError(f"Y must have the {X.shape[1]} columns of X, got {Y.shape[1]}")
        of = given_function("kernel", partial(self.kernel.of, **self.parameters), "rows X and Y")
        with np.errstate(over="ignore", invalid="ignore"):
            K = np.asarray(of(X, Y))
        if not np.isfinite(K).all():
            raise ValueError(f"X must have finite products by the kernel {self.kernel.name!r}: scale its columns")
        if K.shape != (len(X), len(Y)):
            raise ValueError(
                f"kernel {self.kernel.name!r} must return shape {(len(X), len(Y))} for so many rows, got {K.shape}"
            )
        return K

    def diagonal(self, X):
        """Return the products of each row of X (n, D) with itself, (n,)."""
        X = real_array("X", X, 2)
        return np.concatenate([np.empty(0), *(np.diag(self(X[k : k + 64])) for k in range(0, len(X), 64))])


def bind(kernel, X, **parameters):
    """Fix the parameters of a kernel on the training rows.

    Parameters
    ----------
    kernel : str, Kernel or callable
        Name in :data:`rbal.kernels.KERNELS` ("linear", "rbf", "poly", "laplacian", "arc-cosine", "ntk", "precomputed"),
        a record, or a function of rows (n, D) and (m, D) that returns an (n, m) array.
    X : (n, D) array
        Training rows.
    **parameters
        Those of the kernel. ``gamma`` is a number, "scale" (as in scikit-learn, 1 over the summed variance of the
        columns) or "median" (1 over the median squared distance of two rows; of "laplacian" the median distance).

    Returns
    -------
    BoundKernel

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> k = bind("rbf", X, gamma="median")
    >>> K, K_new = k(X), k(X[:3] + 0.1, X)
    >>> K.shape, K_new.shape, round(k.parameters["gamma"], 3)
    ((50, 50), (3, 50), 0.153)
    """
    if isinstance(kernel, str):
        kernel = KERNELS[one_of("kernel", kernel, tuple(KERNELS))]
    elif not isinstance(kernel, Kernel):
        if not callable(kernel):
            raise TypeError(f"kernel must be a name, a Kernel or a function, got {type(kernel).__name__}")
        # its own parameters are its own matter
        name = getattr(kernel, "__name__", type(kernel).__name__)
        return BoundKernel(Kernel(name, name, kernel), parameters)
    X = squarable("X", not_lost("X", real_array("X", X, 2)))
    if unknown := set(parameters) - set(kernel.parameters):
        takes = ", ".join(kernel.parameters) or "no parameters"
        raise TypeError(f"kernel {kernel.name!r} takes {takes}, got {', '.join(sorted(unknown))}")
    settled = {
        name: parameter.settle(name, parameters.get(name, parameter.default), X)
        for name, parameter in kernel.parameters.items()
    }
    return BoundKernel(kernel, settled)


def register(kernel):
    """Add a kernel to KERNELS, so that every function knows it by its name.

    Parameters
    ----------
    kernel : Kernel
        Its name must be new.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> import rbal
    >>> k = register(Kernel("cauchy", "the Cauchy kernel", lambda X, Y: 1 / (1 + (X[:, None] - Y).sum(-1) ** 2)))
    >>> bind("cauchy", np.zeros((2, 1)))(np.array([[0.0], [1.0]])).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    >>> del rbal.kernels.KERNELS["cauchy"]
    """
    return enter(KERNELS, Kernel, kernel)


# ---- parameters


def _gamma(name, value, X, *, power=2):
    """Return γ for a rule or a number; distances to the power of 2, or of 1 for sums of absolute differences."""
    if not isinstance(value, str):
        return number(name, value, 0.0, open_low=True)
    one_of(name, value, ("scale", "median"))
    if value == "scale":
        unit = X.shape[1] * (X.var() if power == 2 else X.std())
    else:
        from scipy.spatial.distance import pdist

        few = X[np.unique(np.linspace(0, len(X) - 1, SEEN).round().astype(int))]
        unit = np.median(pdist(few, "sqeuclidean" if power == 2 else "cityblock")) if len(few) > 1 else 0.0
    if not unit > 0.0:
        raise ValueError(f"{name}={value!r} needs rows X that differ: give a number")
    return float(1.0 / unit)


def _at_least(name, value, X, *, low):
    return number(name, value, low)


def _whole(name, value, X):
    return positive_int(name, value)


def _depth(name, value, X):
    return int(in_range(name, positive_int(name, value), 1, DEEPEST))


def _order(name, value, X):
    return one_of(name, value, (0, 1))


def _pairwise(X, Y, *, metric, **parameters):
    from sklearn.metrics.pairwise import pairwise_kernels

    return pairwise_kernels(X, Y, metric=metric, **parameters)


def _given(X, Y):
    """Return a Gram matrix that is given in place of rows."""
    return X


_WIDTH = Parameter("scale", _gamma)
_FREE = Parameter(0.0, partial(_at_least, low=0.0))
_LAYERS = {"depth": Parameter(1, _depth), "bias": _FREE}
_ALL = (
    Kernel("linear", "the linear kernel", partial(_pairwise, metric="linear"), svc="linear"),
    Kernel("rbf", "the Gaussian (RBF) kernel", partial(_pairwise, metric="rbf"), {"gamma": _WIDTH}, "rbf"),
    Kernel("poly", "the polynomial kernel", partial(_pairwise, metric="poly"),
           {"gamma": _WIDTH, "degree": Parameter(3, _whole), "coef0": _FREE}, "poly"),
    Kernel("laplacian", "the Laplacian kernel", partial(_pairwise, metric="laplacian"),
           {"gamma": Parameter("scale", partial(_gamma, power=1))}),
    Kernel("arc-cosine", "the arc-cosine kernel", arc_cosine, {**_LAYERS, "order": Parameter(1, _order)}),
    Kernel("ntk", "the neural tangent kernel", ntk, _LAYERS),
    Kernel("precomputed", "a given Gram matrix", _given, svc="precomputed"),
)  # fmt: skip
KERNELS = {kernel.name: kernel for kernel in _ALL}
