"""Solve for classes whose variances differ along the weights, where their covariances cannot be known."""

from .._support.validation import positive_int
from .._support.warnings import one_convergence_warning
from ..moments import KernelMoments
from ..saddle import solve

ROUNDS = 4


@one_convergence_warning()
def own_widths(moments, alpha_pos, alpha_neg, *, lam, rounds=ROUNDS, leverages="class", **options):
    """Return the order parameters of a kernel machine, with a width of its own for each class.

    The theory for one covariance says along which directions the weights lie. The variance of each class along them is
    measured on the training rows (:meth:`rbal.moments.KernelMoments.widths`), and the saddle point is solved again for
    classes whose covariances are these multiples of the common one; and so on, a few rounds.

    Parameters
    ----------
    moments : KernelMoments
        From :meth:`rbal.Moments.from_kernel` or :func:`rbal.kernels.moments`.
    alpha_pos, alpha_neg : float
        Class sizes over L.
    lam : float
        Ridge, as ``moments.ridge(C)`` returns it.
    rounds : int
        How often the widths are measured.
    leverages : {"class", "rows"}
        How it is allowed for that they are measured on training rows, as in :meth:`rbal.moments.KernelMoments.widths`.
    **options
        Passed on to :func:`rbal.solve`: loss, weight_pos, weight_neg, kappa, fit_bias, tol, max_iter.

    Returns
    -------
    MixtureSolution

    Examples
    --------
    >>> import numpy as np, rbal
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(400, 100)), np.repeat([1, -1], [100, 300])
    >>> X[y > 0] = 1.5 * X[y > 0] + 0.2
    >>> mom = rbal.Moments.from_kernel(X @ X.T, y)
    >>> sol = own_widths(mom, mom.alpha_pos, mom.alpha_neg, lam=mom.ridge(C=0.01))
    >>> print(f"{np.sqrt(sol.q[0] / sol.q[1]):.1f}")
    1.5
    """
    if not isinstance(moments, KernelMoments):
        raise TypeError(f"moments must be KernelMoments, got {type(moments).__name__}")
    sol = solve(moments.mixture(), alpha_pos, alpha_neg, model="svm", lam=lam, **options)
    for _ in range(positive_int("rounds", rounds)):
        widths = moments.widths(sol, leverages)
        sol = solve(moments.mixture(*widths), alpha_pos, alpha_neg, model="svm", lam=lam, **options)
    return sol
