r"""Where the data become separable: the SAT/UNSAT surface.

Below the critical margin :math:`\kappa_c(\alpha^+,\alpha^-)` some weights on the sphere leave no loss. The surface is
reached from the UNSAT side as :math:`x\to\infty` and from the SAT side as :math:`w\to0`; on it only
:math:`xf=(\kappa-u_0)_+` survives, whatever the weights on the classes, and the margin itself becomes the unknown.
"""

import warnings

import numpy as np
from scipy.optimize import brentq

from ._support import parallel
from ._support.validation import broadcast, flag, in_range, number
from ._support.warnings import convergence_warning
from .losses import HINGE
from .moments import Mixture, spectrum_of
from .saddle.internal import EDGE, Settings, critical_margins, edges, newton_address

ALPHA_RANGE = (1e-6, 1e8)  # first bracket of critical_alpha
SMALLEST_ALPHA = 1e-120  # its lowest end, for large margins
SMALLEST_SHARE = 1e-20  # of a class
SMALLEST_SIZE = 1e-150  # over L, of a class: its square is a double


def critical_margin(moments, alpha_pos, alpha_neg, *, fit_bias=True, tol=1e-12):
    """Largest margin κ at which the training set is separable.

    It is negative where the set is not separable at all. There the problem is not convex and the value, replica
    symmetric, is a bound. Where some features never vary it is 0 instead: weights on these alone score 0 everywhere.

    Parameters
    ----------
    moments : Moments, Spectrum or Mixture
    alpha_pos, alpha_neg : float or array
        Class sizes over L; arrays broadcast, and give the SAT/UNSAT surface.
    fit_bias : bool
        Whether a bias is trained.
    tol : float
        Residual of the equations on the surface.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> import rbal
    >>> noise = rbal.Moments.real([0.0], [0.0], [1.0])
    >>> print(f"{abs(critical_margin(noise, 1.0, 1.0)):.6f}")
    0.000000
    """
    pos, neg = broadcast(
        alpha_pos=in_range("alpha_pos", alpha_pos, SMALLEST_SIZE),
        alpha_neg=in_range("alpha_neg", alpha_neg, SMALLEST_SIZE),
    )
    fit_bias, tol = flag("fit_bias", fit_bias), number("tol", tol, 1e-15)
    if isinstance(moments, Mixture):
        margins, converged = critical_margins(moments, pos.ravel(), neg.ravel(), fit_bias, tol)
        _warn_of(~converged)
        return margins.reshape(pos.shape)[()]
    full = spectrum_of(moments)
    out, alphas = np.empty((pos.size, 5)), np.empty((pos.size, 2))
    alphas[:, 0], alphas[:, 1] = pos.ravel(), neg.ravel()
    # A margin is proportional to the weights: where it can be positive, features that never vary get none.
    spectrum = full.without_free()
    settings = Settings(EDGE, *HINGE.tables, float(full.Q), fit_bias, tol, 200, newton_address(), 0)
    for lo, hi in parallel.pieces(len(alphas)):
        edges(settings, spectrum, alphas[lo:hi], out[lo:hi])
    bad = ~(out[:, 4] <= tol)
    if spectrum.lam[0] == 0.0:  # a direction without noise separates any amount of data, with its own margin
        own_margin = 0.5 * np.sqrt(full.Q * spectrum.s[0])
        out[:, 0] = np.where(bad | (out[:, 0] < own_margin), own_margin, out[:, 0])
        bad[:] = False
    if full.g_null > 0.0:  # weights on the features that never vary alone give every sample the score 0
        out[~bad, 0] = np.maximum(out[~bad, 0], 0.0)
    out[bad] = np.nan
    _warn_of(bad)
    return out[:, 0].reshape(pos.shape)[()]


def _warn_of(bad):
    if bad.any():
        warnings.warn(
            f"{bad.sum()} of {bad.size} critical margins did not converge: they are NaN",
            convergence_warning(),
            stacklevel=3,
        )


def critical_alpha(moments, kappa=0.0, *, rho_pos=0.5, fit_bias=True):
    """Largest total size α⁺ + α⁻ at which the training set is separable with margin κ.

    Parameters
    ----------
    moments : Moments, Spectrum or Mixture
    kappa : float or array
    rho_pos : float or array
        Share of positives in the training set.
    fit_bias : bool

    Returns
    -------
    float or ndarray
        Infinity where no amount of data closes the gap (a direction without noise separates the classes).

    Warns
    -----
    ConvergenceWarning
        Where the surface is not found, as at a margin of 1e100; the size is then NaN.

    Examples
    --------
    >>> import rbal
    >>> noise = rbal.Moments.real([0.0], [0.0], [1.0])
    >>> print(f"{critical_alpha(noise, kappa=0.0):.6f}")
    2.000000
    """
    kappa = in_range("kappa", kappa, 0.0)
    rho_pos = in_range("rho_pos", rho_pos, SMALLEST_SHARE, 1.0)
    if np.any(np.asarray(rho_pos) == 1.0):
        raise ValueError("rho_pos must be < 1, got 1")

    def one(k, rho):
        def gap(log_alpha):
            alpha = np.exp(log_alpha)
            return critical_margin(moments, rho * alpha, (1.0 - rho) * alpha, fit_bias=fit_bias) - k

        lo, hi = np.log(ALPHA_RANGE)
        if gap(hi) >= 0:
            return np.inf
        while gap(lo) < 0 and lo > np.log(SMALLEST_ALPHA):  # the size falls like 1/κ²
            lo, hi = lo - np.log(1e6), lo
        if not (gap(lo) >= 0 and gap(hi) < 0):
            return np.nan
        try:
            return np.exp(brentq(gap, lo, hi, xtol=1e-13, rtol=1e-13))
        except ValueError:  # a margin in between did not converge
            return np.nan

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", convergence_warning())
        sizes = np.vectorize(one, otypes=[float])(kappa, rho_pos)
    if np.isnan(sizes).any():
        warnings.warn(
            f"{np.isnan(sizes).sum()} of {sizes.size} critical sizes did not converge: they are NaN",
            convergence_warning(),
            stacklevel=2,
        )
    return sizes[()]
