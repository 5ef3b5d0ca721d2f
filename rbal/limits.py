r"""Closed forms: the large margin at balance, its convergence rate, and Gardner's capacity."""

from typing import NamedTuple

import numpy as np
from scipy.special import erfc, ndtr

from ._support.validation import broadcast, in_range, real_array
from .moments import Moments


class LargeMargin(NamedTuple):
    """Order parameters as κ → ∞ at balance, where x̂ = 0 and b = (c⁺ - c⁻)x/2."""

    q: float
    r: float
    b: float
    x: float
    k_hat: float
    q_hat: float
    r_hat: float


def large_margin(moments, alpha_pos, alpha_neg, *, weight_pos=1.0, weight_neg=1.0):
    r"""Solve the perceptron at infinite margin, for classes that pull evenly (α⁺c⁺ = α⁻c⁻).

    Every sample lies below its margin and pulls with its full weight, so that A = k̂ and all is explicit. With one
    eigenvalue q* = 1 - m² and u² = ‖δ‖²/L this is the paper's r* = u √(αu²/(4q* + αu²)) and
    x* = √(q*(u² - r*²)/α)/u, α = α⁺ + α⁻. With unequal weights the bias is the limit of a slow approach, with
    corrections of order 1/κ; all else is reached exponentially fast.

    Parameters
    ----------
    moments : Moments
    alpha_pos, alpha_neg : float
        Class sizes over L.
    weight_pos, weight_neg : float
        Factors on the loss of each class.

    Returns
    -------
    LargeMargin

    Examples
    --------
    >>> import rbal
    >>> print(f"{large_margin(rbal.Moments.ising(m=0.4, delta=1.0, L=100), 5.0, 5.0).r:.6f}")
    0.865161
    """
    if not isinstance(moments, Moments):
        raise TypeError(f"moments must be a rbal.Moments, got {type(moments).__name__}")
    names = ("alpha_pos", "alpha_neg", "weight_pos", "weight_neg")
    values = (alpha_pos, alpha_neg, weight_pos, weight_neg)
    a_pos, a_neg, c_pos, c_neg = (in_range(n, v, 0.0, open_low=True) for n, v in zip(names, values, strict=True))
    if not np.allclose(a_pos * c_pos, a_neg * c_neg, rtol=1e-12, atol=0.0):
        pulls = [np.ravel(a * c)[0] for a, c in ((a_pos, c_pos), (a_neg, c_neg))]
        raise ValueError(
            f"alpha_pos*weight_pos must equal alpha_neg*weight_neg, got {pulls[0]:g} and {pulls[1]:g}: "
            "away from balance the bias follows the margin and the balanced accuracy tends to 1/2"
        )
    lam, d2, L = moments.eigenvalues, moments.delta_sq, moments.L
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        q_hat = a_pos * np.square(c_pos) + a_neg * np.square(c_neg)
        r_hat = 0.5 * (a_pos * c_pos + a_neg * c_neg)
        r_hat2 = np.square(r_hat)
        k_hat = np.sqrt((q_hat * lam.sum() + r_hat2 * d2.sum()) / (L * moments.Q))
        q = (q_hat * (lam**2).sum() + r_hat2 * (lam * d2).sum()) / (L * k_hat**2)
        x, r = lam.sum() / (L * k_hat), r_hat * d2.sum() / (L * k_hat)
        solution = LargeMargin(q, r, 0.5 * (c_pos - c_neg) * x, x, k_hat, q_hat, r_hat)
    if not (all(np.isfinite(v).all() for v in solution) and np.all(q > 0.0) and np.all(r_hat2 > 0.0)):
        raise ValueError(
            "alpha_pos, alpha_neg, weight_pos and weight_neg must be of sizes whose squares are doubles, "
            f"got {a_pos}, {a_neg}, {c_pos} and {c_neg}"
        )
    return solution


def large_margin_error(shift, q):
    r"""Compute the limit and the rate of the balanced error at infinite margin, for independent spins.

    :math:`\mathcal E_{\rm gen}\simeq H\bigl(\bar\delta/(2\sqrt q)\bigr) + \mathcal C/(\alpha^++\alpha^-)`
    with :math:`\mathcal C = \sqrt q\,e^{-\bar\delta^2/(8q)}/(\sqrt{2\pi}\,\bar\delta)`. The printed constant lacks the
    factor :math:`1/(\sqrt{2\pi}\bar\delta)`, and the balanced accuracy approaches its limit from below (errata).

    Parameters
    ----------
    shift : float or array
        Size of the shift, δ̄ = ‖δ‖/√L, > 0.
    q : float or array
        1 - m², > 0.

    Returns
    -------
    limit, constant : float or ndarray
    """
    shift, q = in_range("shift", shift, 0.0, open_low=True), in_range("q", q, 0.0, open_low=True)
    broadcast(shift=shift, q=q)
    with np.errstate(over="ignore"):
        z = shift / (2.0 * np.sqrt(2.0 * q))
        return 0.5 * erfc(z), np.sqrt(q / (2.0 * np.pi)) / shift * np.exp(-np.square(z))


def gardner_capacity(kappa):
    r"""Compute how many patterns of random labels a perceptron can store, per weight: α_c(κ) = 1/∫_{-κ}^∞ (t + κ)² Dt.

    Parameters
    ----------
    kappa : float or array
        Margin.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> float(gardner_capacity(0.0))
    2.0
    """
    kappa = real_array("kappa", kappa)
    with np.errstate(over="ignore", divide="ignore"):
        square = kappa**2
        density = np.exp(-0.5 * square) / np.sqrt(2.0 * np.pi)
        # (1 + κ²)Φ + κφ loses its digits below: there it is φ ce/(t + e), with t = -κ, e = h - t = 1/(t + c) of the
        # inverse Mills ratio h and c = 2/(t + 3/(t + …)), Laplace's continued fraction
        t, c = np.maximum(-kappa, 3.0), 0.0
        for k in range(60, 1, -1):
            c = k / (t + c)
        e = 1.0 / (t + c)
        middle = np.maximum(kappa, -3.0)
        return 1.0 / np.where(kappa < -3.0, density * c * e / (t + e), (1.0 + square) * ndtr(middle) + kappa * density)
