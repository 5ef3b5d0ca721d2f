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

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import nnls

from .moments import Moments, Spectrum

ARGUMENTS = 32  # resolvents that are matched, evenly spaced in log ẑ
STEP = 1.25  # ratio of neighbouring eigenvalues of the spectrum that is fitted
MISFIT = 0.01  # relative error allowed to the shift's resolvents beside their sampling noise


class Sample(NamedTuple):
    """Two class samples, in the eigenbasis of their pooled covariance."""

    n_pos: int
    n_neg: int
    D: int
    values: np.ndarray  # eigenvalues of the pooled covariance, those that are not zero
    shift: np.ndarray  # difference of the means along them
    spread_pos: np.ndarray  # variance of the positive class along them
    spread_neg: np.ndarray
    outside: float  # squared difference of the means in no sampled direction


class Estimate(Moments):
    """Moments of which only the spectrum is known, as the saddle point takes it."""

    def __init__(self, D, lam, g, s):
        self.L, self.Q = D, 1
        self._parts = lam, g, s

    def __repr__(self):
        return f"Estimate(D={self.L}, separation={self.separation:.3g})"

    @cached_property
    def _spectrum(self):
        lam, g, s = self._parts
        used = (g > 0.0) | (s > 0.0)
        return Spectrum(lam[used], g[used], s[used], 0.0, float(lam[used][0]))

    @property
    def separation(self):
        """Distance of the class means in units of the deviation of one feature."""
        _, g, s = self._parts
        return float(np.sqrt(s.sum() / g.sum()))


def from_covariances(n_pos, n_neg, difference, cov_pos, cov_neg):
    """Sample of two classes from the difference of their means and their unbiased covariances."""
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
    """The same from the rows themselves, by way of their Gram matrix: for fewer rows than columns."""
    n_pos, n_neg, D = len(rows_pos), len(rows_neg), rows_pos.shape[1]
    means = rows_pos.mean(axis=0), rows_neg.mean(axis=0)
    centred = np.concatenate([rows_pos - means[0], rows_neg - means[1]])
    nu, difference = n_pos + n_neg - 2, means[0] - means[1]
    values, left = eigh(centred @ centred.T / nu, driver="evd")
    seen = values > 1e-10 * values[-1]
    values, left = values[seen], left[:, seen]
    shift = (centred @ difference) @ left / np.sqrt(nu * values)
    # the scores of row i along direction j are √(ν λ_j) left_ij
    spread_pos = nu * values * np.sum(left[:n_pos] ** 2, axis=0) / (n_pos - 1)
    spread_neg = nu * values * np.sum(left[n_pos:] ** 2, axis=0) / (n_neg - 1)
    outside = max(difference @ difference - shift @ shift, 0.0)
    return Sample(n_pos, n_neg, D, values, shift, spread_pos, spread_neg, outside)


class Resolvents(NamedTuple):
    """The two functions of the population that the saddle point asks for, at arguments z, with their noise."""

    z: np.ndarray
    trace: np.ndarray  # 1/D tr C (z + C)⁻¹
    shift: np.ndarray  # δᵀ(z + C)⁻¹δ / L, free of bias, of either sign
    noise: np.ndarray  # covariance of the estimates of ``shift``


def resolvents(sample):
    """Both functions, from the sample."""
    values, nu, D = sample.values, sample.n_pos + sample.n_neg - 2, sample.D
    z_hat = np.geomspace(1e-3 * np.median(values), 1e2 * values[-1], ARGUMENTS)[:, None]
    resolvent = 1.0 / (z_hat + values)
    t = resolvent @ values
    ratio = 1.0 - t / nu  # ẑ/z
    z = z_hat[:, 0] / ratio
    optimism = np.zeros_like(t)
    for n, spread in ((sample.n_pos, sample.spread_pos), (sample.n_neg, sample.spread_neg)):
        inside = resolvent @ spread
        optimism += inside / (1.0 - inside / nu) / n  # a row outside the sample sees more of its noise
    measured = resolvent @ sample.shift**2 + sample.outside / z_hat[:, 0]
    shift = ratio * (measured - optimism)
    return Resolvents(z, t / D, shift, _noise(sample, z_hat, ratio))


def _noise(sample, z_hat, ratio):
    """Covariance of the shift's resolvents over draws of the samples, for Gaussian means."""
    D, total = sample.D, sample.values.sum()
    rank = sample.values.size
    nu = sample.n_pos + sample.n_neg - 2
    # variance of the means along each sampled direction; the eigenvalues of a sample are too wide, so shrink them
    pull = min(1.0, D / nu)
    share = [s * (1.0 - pull) + pull * s.sum() / max(rank, 1) for s in (sample.spread_pos, sample.spread_neg)]
    v = share[0] / sample.n_pos + share[1] / sample.n_neg
    weight = ratio[:, None] / (z_hat + sample.values)
    variance = np.maximum(4.0 * sample.shift**2 * v - 2.0 * v**2, 0.5 * v**2)
    cov = (weight * variance) @ weight.T
    if sample.outside > 0.0:
        each = total / D * (1.0 / sample.n_pos + 1.0 / sample.n_neg)
        edge = ratio / z_hat[:, 0]
        cov += (4.0 * sample.outside * each) * np.outer(edge, edge)
    return cov


class Fitter:
    """Non-negative spectra that have given resolvents."""

    def __init__(self, sample):
        self.D = sample.D
        self.target = resolvents(sample)
        z, values = self.target.z, sample.values
        low, high = 0.5 * min(values[0], np.median(values)), 2.0 * values[-1]
        low = max(low, 1e-6 * high)
        self.lam = np.geomspace(low, high, 2 + int(np.log(high / low) / np.log(STEP)))
        self.g = self._directions(values.sum() / sample.D)
        noise = self.target.noise + np.diag((MISFIT * np.abs(self.target.shift)) ** 2)
        scale = np.sqrt(np.diag(noise))
        scale = np.maximum(scale, 1e-12 * scale.max())
        spectrum, basis = np.linalg.eigh(noise / np.outer(scale, scale))
        self._white = (basis / np.sqrt(np.maximum(spectrum, 1e-4))).T / scale
        self._kernel = self._white @ (1.0 / (z[:, None] + self.lam))
        spectrum, basis = np.linalg.eigh(self.target.noise)
        self._root = basis * np.sqrt(np.maximum(spectrum, 0.0))

    def _directions(self, mean):
        """Number of directions at each eigenvalue, per feature."""
        z, trace = self.target.z, self.target.trace
        rows = self.lam / (z[:, None] + self.lam) / trace[:, None]
        heavy = 10.0 * self.lam / mean
        return _nonnegative(np.vstack([rows, heavy]), np.append(np.ones(z.size), 10.0))

    def fit(self, shift=None):
        """Estimate with these resolvents of the shift; by default the measured ones."""
        shift = self.target.shift if shift is None else shift
        s = _nonnegative(self._kernel, self._white @ shift)
        return Estimate(self.D, self.lam, self.g, s)

    def draws(self, n, rng):
        """Estimates that other samples of the same size could have given."""
        for noise in rng.normal(size=(n, self._root.shape[1])):
            yield self.fit(self.target.shift + self._root @ noise)


def _nonnegative(matrix, target):
    """Non-negative least squares with a ridge that is only there to end the search among nearly equal columns."""
    ridge = 1e-7 * np.linalg.norm(matrix)
    rows = np.vstack([matrix, ridge * np.eye(matrix.shape[1])])
    return nnls(rows, np.append(target, np.zeros(matrix.shape[1])), maxiter=100 * matrix.shape[1])[0]
