r"""Moments in the feature space of a kernel, from the Gram matrix of the training rows alone.

A kernel :math:`k(x, x') = \phi(x)\cdot\phi(x')` makes features :math:`\phi` that nobody writes down, and a machine on
them is linear. Resolvents of their covariance and of their shift follow from scalar products of rows
(:mod:`rbal.moments._estimate`), and those are what a Gram matrix holds.
"""

from functools import cached_property

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from .._support.validation import MOST_DRAWS, n_dimensions, number, one_of, positive_int, real_array, seeded, unmasked
from ._blocks import Diagonal
from ._estimate import ARGUMENTS, Fitter, evenly, with_rows
from ._mixture import Mixture
from ._moments import Moments

FEWEST = 2  # rows of a class, so that it has a variance


class KernelMoments(Moments):
    r"""Moments of two classes in the feature space of a kernel, as :meth:`rbal.Moments.from_kernel` estimates them.

    :attr:`spectrum`, which :func:`rbal.solve` and :func:`rbal.sweep` take, is free of the optimism of few rows.
    ``eigenvalues`` and ``delta_sq`` are what was measured, with its noise. Features have no coordinates here:
    ``M`` and ``delta`` are None.

    Attributes
    ----------
    L : int
        Unit of class sizes. A ridge machine is the same for every L, with the ridge of :meth:`ridge`.
    n_pos, n_neg : int
        Rows of each class.
    positive : object
        Label of the positive class.
    rest : float
        Variance that an approximation of the kernel left out, and the spectrum has as noise; 0 for a full Gram matrix.
    """

    def __init__(self, sample, positive, sizes, rest=0.0, rows=None):
        super().__init__(L=sample.D, Q=1, M=None, delta=None, shift=sample.shift, covariance=sample.values)
        self.sample, self.positive, self.rest = sample, positive, rest
        self._rows = rows  # scores of the rows along the eigenvectors (n, k), and which are positive (n,); or None
        self.n_pos, self.n_neg = sizes

    def __repr__(self):
        return f"KernelMoments(n_pos={self.n_pos}, n_neg={self.n_neg}, L={self.L})"

    @property
    def alpha_pos(self):
        """Size of the positive class over L."""
        return self.n_pos / self.L

    @property
    def alpha_neg(self):
        """Size of the negative class over L."""
        return self.n_neg / self.L

    @property
    def missing(self):
        """Share of the variance that an approximation of the kernel left out."""
        return self.rest / (self.rest + self.sample.values.sum())

    def ridge(self, C):
        r"""Return the ridge of the theory for scikit-learn's C.

        With :math:`J = \sqrt L\,w` the theory's :math:`\tfrac12\tilde\lambda\lVert J\rVert^2 + \sum\ell` is
        :math:`\tfrac12\lVert w\rVert^2 + C\sum\ell` times :math:`1/C`, if :math:`\tilde\lambda = 1/(CL)`.

        Parameters
        ----------
        C : float or array

        Returns
        -------
        float or array
        """
        C = real_array("C", C)
        if not (C > 0.0).all():
            raise ValueError(f"C must be > 0, got {C.min():g}")
        with np.errstate(over="ignore", divide="ignore"):
            ridge = 1.0 / (C * self.L)
        if not np.isfinite(ridge).all():
            raise ValueError(f"C must leave a ridge that is a double, got {C.min():g}")
        return ridge[()]

    @cached_property
    def _eigen(self):
        values, squares = self.sample.values, self.L * self.sample.shift**2
        if self.sample.outside > 0.0:  # a part of the shift where no row varies
            values, squares = np.r_[0.0, values], np.r_[self.L * self.sample.outside, squares]
        return values, squares

    @cached_property
    def _squared(self):
        return self._rows[0] ** 2

    @cached_property
    def _fitter(self):
        return Fitter(self.sample)

    @cached_property
    def spectrum(self):
        """The :class:`rbal.moments.Spectrum` that the solver takes, estimated without the optimism of few rows."""
        return self._with_rest(self._fitter.fit())

    def _with_rest(self, spectrum):
        """Return the spectrum with what was left out, spread evenly over as many directions as there are rows."""
        if not self.rest > 0.0:
            return spectrum
        n = self.n_pos + self.n_neg
        lam, g, s = (np.r_[a, b] for a, b in zip((self.rest / n, n / self.L, 0.0), spectrum[:3], strict=True))
        order = np.argsort(lam, kind="stable")
        lam = lam[order]
        return spectrum._replace(lam=lam, g=g[order], s=s[order], shift=float(lam[0]))

    def draws(self, n=64, random_state=0):
        """Return spectra that other rows could have given: predictions with each of them scatter as their errors do.

        Parameters
        ----------
        n : int
            Number of spectra, rounded up to a power of two; at most 16,384.
        random_state : int
            Seed.

        Returns
        -------
        list of Spectrum
        """
        normals = evenly(positive_int("n", n, MOST_DRAWS), ARGUMENTS, seeded("random_state", random_state))
        return [self._with_rest(spectrum) for spectrum in self._fitter.draws(normals)]

    def widths(self, solution, leverages="class"):
        r"""Return the variance of each class along the weights of a solution, in units of the pooled one.

        With few rows of a class its covariance is unknown; this one number of it is not. The weights of a saddle point
        have the mean squares :math:`(\hat q\lambda/L + \hat r^2\Delta^2)/(\hat k + \hat x\lambda)^2` along
        the eigenvectors of the covariance. Those of the sample stand for them, with the resolvent of the sample that is
        the same matrix. Of a row that is part of the sample, with leverage h, this resolvent shows :math:`1 - h`, and
        noise that is the row's own, which is taken out.

        Parameters
        ----------
        solution : Solution
            Of these moments, or of :meth:`mixture`.
        leverages : {"class", "rows"}
            Whether all rows of a class are taken to have its mean leverage; or each row is given the score that it
            would have by the other rows. The second is free of bias where one covariance is a multiple of the other,
            also where leverages go with scores; the first is the more stable one where a few rows have leverages next
            to 1, as on real tables, or covariances differ in shape. Moments by landmarks know classes only.

        Returns
        -------
        (float, float)
            Widths of the positive and of the negative class; 1 and 1 where there are no weights.
        """
        if not all(hasattr(solution, name) for name in ("b", "phase", "k_hat")):
            raise TypeError(f"solution must be a Solution, got {type(solution).__name__}")
        if np.ndim(solution.b):
            raise ValueError(f"solution must be of one point, got shape {np.shape(solution.b)}")
        by_rows = one_of("leverages", leverages, ("class", "rows")) == "rows"
        if by_rows and self._rows is None:
            raise ValueError("leverages must be 'class' for moments by landmarks, which know no rows")
        if solution.phase == "COLLAPSED" or not solution.converged:
            return 1.0, 1.0
        x_hat, q_hat, s = solution.x_hat, solution.q_hat, self.sample
        if np.ndim(x_hat):  # one entry a class, with its own width
            x_hat, q_hat = solution.mixture._width @ x_hat, solution.mixture._width @ q_hat
        nu = s.n_pos + s.n_neg - 2
        # where no sample is beyond its margin, x_hat is 0 or next to it, and the resolvent is that of infinity
        z = seen_at(s, solution.k_hat / x_hat) if x_hat > 1e-12 * solution.k_hat else np.inf
        resolvent = 1.0 / (1.0 + s.values / z)  # times z
        pull = q_hat / self.L, solution.r_hat
        pos, neg = (self._of_rows if by_rows else self._of_means)(resolvent, z, *pull)
        if not (pos > 0.0 and neg > 0.0):  # leverages next to 1 leave nothing but rounding
            return 1.0, 1.0
        pooled = ((s.n_pos - 1) * pos + (s.n_neg - 1) * neg) / nu
        return float(pos / pooled), float(neg / pooled)

    def _of_means(self, resolvent, z, noise, r_hat):
        """Return variances of both classes along the weights, with the mean leverage of a class for all of its rows."""
        s = self.sample
        nu = s.n_pos + s.n_neg - 2
        squares = (noise * s.values + r_hat**2 * s.shift**2) * resolvent**2
        for spread in (s.spread_pos, s.spread_neg):
            h = resolvent @ spread / nu
            yield (squares @ spread - noise * nu * h**2) / (1.0 - h / z) ** 2

    def _of_rows(self, resolvent, z, noise, r_hat):
        r"""Return variances of both classes along the weights, from scores of each row by the others.

        With c the row less the mean of its class of n rows, :math:`R = z(z+\hat C)^{-1}` and
        :math:`h = c^\top Rc/(\nu z)`, leaving the row out turns :math:`c^\top R` into
        :math:`\kappa c^\top R/(1-\kappa h)`, :math:`\kappa = n/(n-1)`, and moves the difference of the means by
        :math:`\pm c/(n-1)`.
        """
        s, (left, member) = self.sample, self._rows
        nu = s.n_pos + s.n_neg - 2
        seen = s.values * resolvent
        lever, own = (self._squared @ np.stack([seen, seen**2], axis=1)).T  # h z, and cᵀRĈRc/ν
        along = left @ (np.sqrt(nu * s.values) * s.shift * resolvent)
        for sign, n, rows in ((1.0, s.n_pos, member), (-1.0, s.n_neg, ~member)):
            kappa = n / (n - 1)
            rest = 1.0 - kappa * lever[rows] / z
            scores = kappa * (along[rows] - sign * nu * lever[rows] / (n - 1)) / rest
            random = kappa * nu * (own[rows] - kappa * lever[rows] ** 2) / rest**2
            yield noise * np.mean(random) + r_hat**2 * np.var(scores, ddof=1)

    def mixture(self, width_pos=1.0, width_neg=1.0):
        """Return two clusters whose covariances are multiples of the pooled one, for :func:`rbal.solve`.

        Parameters
        ----------
        width_pos, width_neg : float

        Returns
        -------
        Mixture
        """
        widths = (
            number("width_pos", width_pos, 0.0, open_low=True),
            number("width_neg", width_neg, 0.0, open_low=True),
        )
        return _Widths(self.spectrum, *widths)

    def variance(self, J):
        """Raise an error: features of a kernel have no coordinates, so that weights cannot be given."""
        raise NotImplementedError("variance needs weights in feature space, where a kernel has no coordinates")

    def debiased(self, n_pos, n_neg, band=50):
        """Raise an error: the spectrum of kernel moments is free of this bias already."""
        raise NotImplementedError("debiased is for measured moments; the spectrum of kernel moments has no such bias")


class _Widths(Mixture):
    """Two classes with multiples of one covariance, known by its spectrum."""

    def __init__(self, spectrum, width_pos, width_neg):
        half = 0.5 * np.sqrt(spectrum.s)
        centres, one = np.array([half, -half]), np.ones(2)
        covs = [spectrum.lam], np.zeros(2, np.int64), np.array([width_pos, width_neg])
        super().__init__(
            L=spectrum.L, Q=spectrum.Q, means=centres, centres=centres, covs=covs, clusters=(np.array([1, -1]), one, 1)
        )
        self._block = Diagonal(spectrum.lam[None].copy(), spectrum.g.copy(), centres, spectrum.g_null)

    @property
    def blocks(self):
        """What the solver sees."""
        return self._block

    def sample(self, n_pos, n_neg, random_state=None):
        """Raise an error: features of a kernel have no coordinates."""
        raise NotImplementedError("sample needs coordinates, and features of a kernel have none")


def from_kernel(K, y, *, positive=None, L=None):
    """Estimate the moments from a Gram matrix; see :meth:`rbal.Moments.from_kernel`."""
    precision = np.finfo(np.float32 if getattr(K, "dtype", None) == np.float32 else float).eps
    K = _symmetric(K, np.sqrt(precision))
    member, label = labelled(y, len(K), positive)
    L = len(K) if L is None else positive_int("L", L, 2**53)
    a = np.where(member, 1.0 / member.sum(), -1.0 / (~member).sum())
    squared = a @ K @ a
    along = without_means(K @ a, member)
    products = without_means(without_means(K, member).T, member)
    tolerance = np.sqrt(precision)
    if not np.abs(products).max() > tolerance * np.abs(K).max():
        raise ValueError("K must vary within the classes, got rows that are all alike")
    sample, left = with_rows(products, along, squared, member, L, noise=max(1e-10, len(K) * precision))
    _check_positive(sample, np.trace(products), squared, tolerance)
    return KernelMoments(sample, label, (sample.n_pos, sample.n_neg), rows=(left, member))


def seen_at(sample, z):
    """Return the argument ẑ at which the resolvent of a sample is that of the population at z.

    Where even ẑ = 0 is at a larger z, as with more features than rows, it is next to 0.
    """
    nu, values = sample.n_pos + sample.n_neg - 2, sample.values

    def gap(log):
        z_hat = np.exp(log)
        return np.log(z_hat / max(1.0 - np.sum(values / (z_hat + values)) / nu, 1e-15) / z)

    low, high = np.log(1e-6 * values[-1]), np.log(z)
    if gap(min(low, high)) >= 0.0:
        return np.exp(min(low, high))
    if gap(high) <= 0.0:  # so large a z that the two differ by less than rounding
        return z
    return np.exp(brentq(gap, low, high, xtol=1e-6))


def without_means(rows, member):
    """Return rows (n, …) less the mean of their class, which ``member`` (n,) tells."""
    out = np.array(rows, float)
    for own in (member, ~member):
        out[own] -= out[own].mean(axis=0)
    return out


def labelled(y, n, positive=None):
    """Return which of n rows are positive (n,), and the label of these: by default the rarer of two."""
    try:
        y = np.asarray(unmasked("y", y))
    except ValueError:
        raise ValueError(f"y must have one label for each of {n} rows, got lists of several lengths") from None
    if y.shape != (n,):
        raise ValueError(f"y must have one label for each of {n} rows, got shape {y.shape}")
    if y.dtype.kind == "f" and np.isnan(y).any():
        raise ValueError("y must hold no NaN")
    try:
        labels, counts = np.unique(y, return_counts=True)
    except TypeError:
        kinds = ", ".join(sorted({type(label).__name__ for label in y.tolist()}))
        raise TypeError(f"y must hold labels of one kind, got {kinds}") from None
    if len(labels) != 2:
        raise ValueError(f"y must hold two classes, got {len(labels)}")
    if positive is None:
        positive = labels[0] if counts[0] < counts[1] else labels[1]  # of equal classes, the larger label
    elif n_dimensions("positive", positive) or pd.isna(positive) or positive not in labels:
        raise ValueError(f"positive must be one of the labels {labels[0]!r} and {labels[1]!r}, got {positive!r}")
    if counts.min() < FEWEST:
        raise ValueError(f"y must have at least {FEWEST} rows of each class, got {counts.min()}")
    return y == positive, positive


def _symmetric(K, tolerance):
    K = real_array("K", K, 2)
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"K must be square, the scalar products of the rows with each other, got shape {K.shape}")
    off = np.abs(K - K.T).max(initial=0.0)
    if off > tolerance * np.abs(K).max(initial=0.0):
        raise ValueError(f"K must be symmetric, got entries that differ by {off:g}")
    return 0.5 * (K + K.T)


def _check_positive(sample, trace, squared, tolerance):
    """Refuse a matrix that is not one of scalar products, up to rounding.

    The bias of a machine is free, so that only differences of rows matter, and only their products are judged.
    """
    seen = (sample.n_pos + sample.n_neg - 2) * sample.values[sample.values > 0.0].sum()
    if seen - trace > tolerance * max(seen, -trace):  # eigenvalues add up to the trace
        raise ValueError(f"K must have no negative eigenvalues, got some that add up to {trace - seen:g}")
    rest = squared - sample.shift @ sample.shift
    if rest < -tolerance * max(abs(squared), sample.values.max()):
        raise ValueError(f"K must have no negative eigenvalues, got a squared distance of {rest:g} between the means")
