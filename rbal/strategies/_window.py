"""Find how much imbalance a classifier tolerates."""

from typing import NamedTuple

import numpy as np

from .._support.validation import in_range, one_of
from .._support.warnings import one_convergence_warning
from ._mixing import LARGEST_SIZE, _solve


class Window(NamedTuple):
    """Shares of negatives between which more than half of what is learnt at balance is kept; numbers or arrays."""

    low: float
    high: float

    @property
    def width(self):
        """Length of the range, W."""
        return self.high - self.low


@one_convergence_warning()
def window(moments, alpha, kappa=None, *, fixed="positives", **options):
    """Return the range of the share of negatives in which a classifier tolerates imbalance.

    Inside, the balanced accuracy is more than half as far above 1/2 as it is at balance. Each edge is bisected in the
    logarithm of the absolute value of log(alpha_neg / alpha_pos), so that a narrow window is found to the same relative
    precision as a wide one.

    Parameters
    ----------
    moments : Moments
    alpha : float or array
        Size of each class over L, at balance.
    kappa : float or array, optional
        Margin, as in :func:`rbal.solve`.
    fixed : {"positives", "total"}
        What stays as it is at balance while the share of negatives changes: the number of positives, or the total.
    **options
        Passed on to :func:`rbal.solve`: model, lam, loss, fit_bias, tol, max_iter.

    Returns
    -------
    Window
        A named tuple (low, high) with the property ``width``. NaN where nothing is learnt at balance, or where half of
        it is lost at a ratio of class sizes nearer to 1 than 1e-11, beyond what the solver can tell. Ratios are
        followed up to about 1600, so that an edge is never outside of the shares 0.0006 and 0.9994.

    Examples
    --------
    >>> import rbal
    >>> classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    >>> window(classes, 2.0, kappa=[0.5, 1.0, 2.0]).width.round(3)
    array([0.743, 0.569, 0.202])
    """
    alpha = np.asarray(in_range("alpha", alpha, 0.0, 1e-3 * LARGEST_SIZE, open_low=True), float)
    fixed = one_of("fixed", fixed, ("positives", "total"))
    gain = np.asarray(_solve(moments, alpha, alpha, kappa, **options).metrics.ba()) - 0.5
    side = np.array([-1.0, 1.0]).reshape(2, *np.ones(gain.ndim, int))
    narrowest, widest = -25.0, 2.0
    low, high = np.full((2, *gain.shape), narrowest), np.full((2, *gain.shape), widest)
    for _ in range(22):
        middle = 0.5 * (low + high)
        ratio = np.exp(side * np.exp(middle))
        pos = alpha if fixed == "positives" else 2.0 * alpha / (1.0 + ratio)
        inside = _solve(moments, pos, pos * ratio, kappa, **options).metrics.ba() - 0.5 > 0.5 * gain
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    share = np.where(low > narrowest, ratio / (1.0 + ratio), np.nan)
    return Window(share[0][()], share[1][()])
