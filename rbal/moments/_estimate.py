r"""Moments of two classes from few samples, without the optimism of plugging in what was measured.

A sample covariance :math:`\hat C` with :math:`\nu` degrees of freedom has a spectrum that is wider than that of
:math:`C`, and the squared distance of two sample means exceeds :math:`\lVert\delta\rVert^2` by the noise of both. Both
errors are as large as the signal where the number of columns is that of the samples. But the resolvents of
:math:`\hat C` and of :math:`C` are the same matrix up to a known change of argument,

.. math:: \hat z(\hat z+\hat C)^{-1} \simeq z(z+C)^{-1},\qquad
          z = \frac{\hat z}{1-\frac1\nu\operatorname{tr}\hat C(\hat z+\hat C)^{-1}},

so that the two functions that the saddle point asks of the data, :math:`\operatorname{tr} C(z+C)^{-1}` and
:math:`\delta^\top(z+C)^{-1}\delta`, follow from the sample for every :math:`z`, the second after the trace of its noise
is subtracted. What is returned is the non-negative spectrum that has these two functions.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import nnls
from scipy.special import ndtri
from scipy.stats import qmc

from ._spectrum import Spectrum

ARGUMENTS = 32  # resolvents that are matched, evenly spaced in log ẑ
STEP = 1.25  # ratio of neighbouring eigenvalues of the spectrum that is fitted
REWEIGHTED = 2  # fits, each with the noise that follows from the one before
MISFIT = 0.01  # relative error allowed to the shift's resolvents beside their sampling noise


class Sample(NamedTuple):
    """Two class samples, in the eigenbasis of their pooled covariance."""

    n_pos: int
    n_neg: int
    D: int
    values: np.ndarray  # (k,) eigenvalues of the pooled covariance, those that are not zero
    shift: np.ndarray  # (k,) difference of the means along them
    spread_pos: np.ndarray  # (k,) variance of the positive class along them
    spread_neg: np.ndarray  # (k,)
    outside: float  # squared difference of the means in no sampled direction


def from_covariances(n_pos, n_neg, difference, cov_pos, cov_neg):
    """Make the sample of two classes from the difference of their means (D,) and unbiased covariances (D, D)."""
    D, nu = difference.size, n_pos + n_neg - 2
    pooled = ((n_pos - 1) * cov_pos + (n_neg - 1) * cov_neg) / nu
    values, vectors = eigh(pooled, driver="evd")
    seen = values > 1e-10 * values[-1]
    values, vectors = values[seen], vectors[:, seen]
    shift = difference @ vectors
    spread_pos = np.einsum("ij,ij->j", vectors, cov_pos @ vectors)
    spread_neg = (nu * values - (n_pos - 1) * spread_pos) / (n_neg - 1)
    outside = max(difference @ difference - shift @ shift, 0.0)
    if outside < 1e-12 * (difference @ difference):
        outside = 0.0
    return Sample(n_pos, n_neg, D, values, shift, spread_pos, spread_neg, outside)


def from_rows(rows_pos, rows_neg):
    """Make the sample of two classes from their rows (n, D), by the Gram matrix: for fewer rows than columns."""
    n_pos, n_neg, D = len(rows_pos), len(rows_neg), rows_pos.shape[1]
    means = rows_pos.mean(axis=0), rows_neg.mean(axis=0)
    centred = np.concatenate([rows_pos - means[0], rows_neg - means[1]])
    difference = means[0] - means[1]
    positive = np.repeat([True, False], [n_pos, n_neg])
    return from_products(centred @ centred.T, centred @ difference, difference @ difference, positive, D)


def from_products(products, along, squared, positive, D, noise=1e-10):
    """Make the sample of two classes from scalar products of their rows; see :func:`with_rows`."""
    return with_rows(products, along, squared, positive, D, noise)[0]


def with_rows(products, along, squared, positive, D, noise=1e-10):
    """Make the sample of two classes from scalar products of their rows, whose number of columns need not be finite.

    Parameters
    ----------
    products : (n, n) array
        Scalar products of the rows, each less the mean of its class.
    along : (n,) array
        Scalar products of the same rows with the difference of the means.
    squared : float
        Squared difference of the means.
    positive : (n,) array of bool
    D : int
        Number of columns, or any other unit of class sizes.
    noise : float
        Eigenvalues below this share of the largest are rounding errors.

    Returns
    -------
    Sample
    (n, k) array
        Scores of the rows along the k directions of the sample, in units of √(νλ).
    """
    n_pos, n_neg = int(positive.sum()), int((~positive).sum())
    nu = n_pos + n_neg - 2
    values, left = eigh(products / nu, driver="evd")
    seen = values > noise * values[-1]
    values, left = values[seen], left[:, seen]
    shift = along @ left / np.sqrt(nu * values)
    # the scores of row i along direction j are √(ν λ_j) left_ij
    spread_pos = nu * values * np.sum(left[positive] ** 2, axis=0) / (n_pos - 1)
    spread_neg = nu * values * np.sum(left[~positive] ** 2, axis=0) / (n_neg - 1)
    outside = max(squared - shift @ shift, 0.0)
    return Sample(n_pos, n_neg, D, values, shift, spread_pos, spread_neg, outside), left


class Resolvents(NamedTuple):
    """The two functions of the population that the saddle point asks for, at arguments z."""

    z: np.ndarray  # (ARGUMENTS,), as all
    trace: np.ndarray  # 1/D tr C (z + C)⁻¹
    shift: np.ndarray  # δᵀ(z + C)⁻¹δ / L, free of bias, of either sign


def resolvents(sample):
    """Estimate both functions from the sample."""
    values, nu = sample.values, sample.n_pos + sample.n_neg - 2
    z_hat = np.geomspace(1e-3 * np.median(values), 1e2 * values[-1], ARGUMENTS)
    resolvent = 1.0 / (z_hat[:, None] + values)
    t = resolvent @ values
    ratio = 1.0 - t / nu  # ẑ/z
    optimism = np.zeros_like(t)
    for n, spread in ((sample.n_pos, sample.spread_pos), (sample.n_neg, sample.spread_neg)):
        inside = resolvent @ spread
        optimism += inside / (1.0 - inside / nu) / n  # a row that is not in the covariance sees more of the noise
    measured = resolvent @ sample.shift**2 + sample.outside / z_hat
    return Resolvents(z_hat / ratio, t / sample.D, ratio * (measured - optimism))


class Fitter:
    """Non-negative spectra that have given resolvents, and the noise of these."""

    def __init__(self, sample):
        self.D, self.nu = sample.D, sample.n_pos + sample.n_neg - 2
        self.target = resolvents(sample)
        values, total = sample.values, sample.values.sum()
        low, high = 0.5 * min(values[0], np.median(values)), 2.0 * values[-1]
        if values.size >= self.nu and low > 0.25 * self.target.z[0]:
            low = 0.05 * self.target.z[0]  # directions that outnumber the rows many times vary less than any measured
        low = max(low, 1e-6 * high)
        self.lam = np.geomspace(low, high, 2 + int(np.log(high / low) / np.log(STEP)))
        self._resolvent = 1.0 / (self.target.z[:, None] + self.lam)
        self.g = self._directions(total / sample.D)
        # variance of the difference of the means along a direction, in units of the common variance there
        self.tau = sample.spread_pos.sum() / total / sample.n_pos + sample.spread_neg.sum() / total / sample.n_neg
        self.s = np.zeros_like(self.lam)
        for _ in range(REWEIGHTED):
            noise = self.noise()
            self._prepare(noise + np.diag((MISFIT * self.target.shift) ** 2))
            self.s = self._fit(self.target.shift)
        spectrum, basis = np.linalg.eigh(self.noise())
        # largest first, as points that are spread evenly want it, and signs that are no matter of the machine
        basis = (basis * np.where(basis.sum(axis=0) < 0.0, -1.0, 1.0))[:, ::-1]
        self._root = basis * np.sqrt(np.maximum(spectrum[::-1], 0.0))

    def _directions(self, mean):
        """Fit the number of directions at each eigenvalue, per feature."""
        rows = self.lam * self._resolvent / self.target.trace[:, None]
        heavy = 10.0 * self.lam / mean  # the trace is known best
        return _nonnegative(np.vstack([rows, heavy]), np.append(np.ones(len(rows)), 10.0))

    def noise(self):
        """Return the covariance of the shift's resolvents over draws of the samples, for Gaussian classes.

        The means scatter along δ and on their own, and so does the covariance, seen through the resolvent; noise in
        the resolvents of the sample amplifies all three.
        """
        R, lam, D = self._resolvent, self.lam, self.D
        seen = (R * (self.s * lam)) @ R.T  # δᵀR C R'δ / L
        freedom = D * (R * (self.g * lam**2)) @ R.T  # tr C R C R'
        cov = 4.0 * self.tau * seen + 2.0 * self.tau**2 * freedom + 2.0 / self.nu * seen**2
        return cov / np.maximum(1.0 - freedom / self.nu, 1.0 / self.nu)

    def _prepare(self, noise):
        """Whiten the resolvents."""
        scale = np.sqrt(np.diag(noise))
        values, basis = np.linalg.eigh(noise / np.outer(scale, scale))
        self._white = (basis / np.sqrt(np.maximum(values, 1e-4))).T / scale
        self._kernel = self._white @ self._resolvent

    def _fit(self, shift):
        return _nonnegative(self._kernel, self._white @ shift)

    def fit(self):
        """Return the spectrum with the measured resolvents."""
        return self._spectrum(self.s)

    def _spectrum(self, s):
        used = (self.g > 0.0) | (s > 0.0)
        lam = self.lam[used]
        return Spectrum(lam, self.g[used], s[used], 0.0, float(lam[0]), self.D, 1)

    def draws(self, normals):
        """Yield spectra that other samples of this size could have given, one for each row of normals (n, ARGUMENTS).

        Their percentiles are the interval: what was measured, of either sign, is moved by its noise before it is made a
        spectrum. The number of directions stays, whose noise is of order 1/D.
        """
        for noise in normals:
            yield self._spectrum(self._fit(self.target.shift + self._root @ noise))


def evenly(n, dimensions, rng):
    """Draw quasi-random (Sobol') standard normals (n, dimensions); n is rounded up to a power of two.

    A 5 % point of a hundred independent draws is off by a fifth of a standard deviation, and with one seed it is so on
    every table; of as many even draws by a twentieth.
    """
    points = qmc.Sobol(dimensions, scramble=False).random_base2(int(n - 1).bit_length())
    points = (points + rng.random(dimensions)) % 1.0  # the same evenness, and another place for each seed
    return ndtri(np.clip(points, 1e-12, 1.0 - 1e-12))


def _nonnegative(matrix, target):
    """Solve non-negative least squares, with a ridge that ends the search among nearly equal columns."""
    ridge = 1e-7 * np.linalg.norm(matrix)
    rows = np.vstack([matrix, ridge * np.eye(matrix.shape[1])])
    return nnls(rows, np.append(target, np.zeros(matrix.shape[1])), maxiter=100 * matrix.shape[1])[0]
