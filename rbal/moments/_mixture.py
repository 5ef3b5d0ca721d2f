"""Clusters with centres and covariances of their own, each of which belongs to a class."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import helmert

from .._support.validation import (
    in_range,
    number,
    one_hot_room,
    one_of,
    position,
    positive_int,
    real_array,
    room,
    seeded,
    squarable,
    states,
)
from ._blocks import LowRank, as_matrix, distinct, given, reduced
from ._few_rows import quiet
from ._parts import estimated, labels_of, parts_of

LEVELS = ("one covariance", "widths", "commuting", "any")  # what the covariances have in common, from most to least


class ClusterParameters(NamedTuple):
    """The order parameters of a mixture, measured on a trained classifier."""

    m: np.ndarray  # (K,) mean of the scores of each cluster, before the bias is subtracted
    q: np.ndarray  # (K,) variance of the scores of each cluster
    b: float  # bias, counted from the mean of the class means


class Mixture:
    r"""Classes that are made of Gaussian clusters. Built by one of the class methods.

    Where two classes share one covariance and have one cluster each, :class:`rbal.Moments` is simpler.

    Attributes
    ----------
    L : int
        Number of sites (features): the unit of class sizes, :math:`\alpha = P/L`.
    Q : int
        Squared norm of the weights per site: the number of states for one-hot data, 1 for spins and reals.
    means : ndarray
        Centres of the K clusters, (K, D), or (K, L, Q) for one-hot data.
    labels : ndarray
        Class of each cluster, (K,).
    shares : ndarray
        Share of each cluster in its class, (K,).
    classes : ndarray
        The labels that occur, sorted.
    positive : object
        The label that counts as positive; None if there are not two.
    M : ndarray
        Mean of the class means, of the shape of one centre. The bias is counted from there.
    level : str
        What the covariances have in common, which sets the cost of a solution: "one covariance", "widths" (multiples of
        one matrix), "commuting" or "any".
    counts : ndarray or None
        Rows that each cluster was estimated from, (K,).
    intensity : ndarray or None
        How far the covariance of each cluster was drawn to the pooled one, from 0 to 1, (K,), if it was.
    """

    def __init__(self, *, L, Q, means, centres, covs, clusters):
        self.L, self.Q, self.means = L, Q, means
        self.labels, self.shares, self.positive = clusters
        self.classes = np.unique(self.labels)
        # In coordinates without the zero-sum directions of one-hot data: centres (K, D), and as few covariances as
        # there are different ones up to a factor, with the index and the factor of each cluster.
        self._centres = centres
        self._covs, self._shape, self._width = covs
        # Of rows: how many, how far shrunk; the rows themselves, centred and scaled, and how covariances mix theirs.
        self.counts = self.intensity = self._sampled = None

    def __repr__(self):
        K, D = self._centres.shape
        return f"Mixture(K={K}, L={self.L}, Q={self.Q}, D={D}, level={self.level!r})"

    @classmethod
    def gaussian(cls, means, covs, labels, shares=None, *, widths=None, positive=None):
        """Make a mixture from centres and covariances.

        Parameters
        ----------
        means : (K, D) array
            Centre of each cluster.
        covs : (D,), (D, D), (K, D) or (K, D, D) array
            Variances or covariance matrix, of all clusters or of each. If K = D, a two-dimensional array is a matrix
            that all clusters share.
        labels : (K,) array
            Class of each cluster.
        shares : (K,) array, optional
            Share of each cluster in its class, which sum to 1 in every class; by default they are equal.
        widths : (K,) array, optional
            Factors on a covariance that all clusters share.
        positive : object, optional
            Label that counts as positive; by default the greater of two.

        Returns
        -------
        Mixture

        Examples
        --------
        Two clusters in the positive class, with their own variances, and one in the negative class.

        >>> import numpy as np, rbal
        >>> means = np.array([[0.3, 0.0], [0.0, 0.3], [0.0, 0.0]])
        >>> mix = rbal.Mixture.gaussian(means, [[1.0, 0.5], [0.5, 1.0], [1.0, 1.0]], [1, 1, -1], shares=[0.7, 0.3, 1])
        >>> mix
        Mixture(K=3, L=2, Q=1, D=2, level='commuting')
        """
        means = squarable("means", real_array("means", means, 2))
        K, D = means.shape
        if K < 1 or D < 1:
            raise ValueError(f"means must have at least 1 cluster and 1 feature, got shape {means.shape}")
        labels = labels_of("labels", labels, K, "clusters")
        covs = given(real_array("covs", covs, (1, 2, 3)), K, D)
        if widths is None:
            widths = np.ones(K)
        elif len(covs) > 1:
            raise ValueError(f"widths must go with one covariance for all clusters, got {len(covs)} covariances")
        else:
            widths = _each("widths", widths, K)
        shape, width, different = distinct(covs, K)
        return cls(
            L=D, Q=1, means=means, centres=means, covs=(different, shape, width * widths),
            clusters=(labels, _shares(shares, labels), _positive(positive, labels, None)),
        )  # fmt: skip

    @classmethod
    def from_data(cls, X, y, clusters=1, covariance="own", n_states=None, *, positive=None, random_state=0):
        """Estimate a mixture from labelled rows, by sample means and unbiased or shrunk sample covariances.

        Parameters
        ----------
        X : (n, L) array or DataFrame
        y : (n,) array
            Class of each row.
        clusters : int, "auto" or (n,) array
            Number of parts that k-means cuts every class into; for each class the one of 1, 2, 4 and 8 that foretells
            rows best which were left out; or the part of each row.
        covariance : {"own", "shrunk", "width", "shared"}
            One covariance for each cluster; the same, drawn to a width of the pooled one as far as its rows are too few
            to tell the two apart; multiples of a shared one, with the cluster's total variance; or the shared one
            itself: the mean over the classes of the mean over their clusters. Pooled is the mean over rows.
        n_states : int, optional
            Q for categorical data, coded 0 … Q-1 and treated as one-hot; None for real features and spins.
        positive : object, optional
            Label that counts as positive; by default the rarer of two.
        random_state : int or Generator
            Seed of k-means.

        Returns
        -------
        Mixture

        Examples
        --------
        >>> import numpy as np, rbal
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(size=(60, 5)), np.repeat([1, 0], [20, 40])
        >>> rbal.Mixture.from_data(X, y)
        Mixture(K=2, L=5, Q=1, D=5, level='any')
        >>> rbal.Mixture.from_data(X, y, clusters=2, covariance="shared")
        Mixture(K=4, L=5, Q=1, D=5, level='one covariance')
        """
        one_of("covariance", covariance, ("own", "shrunk", "width", "shared"))
        X = squarable("X", real_array("X", X, 2))
        y = labels_of("y", y, len(X), "rows")
        L, Q = X.shape[1], 1
        if L < 1:
            raise ValueError(f"X must have at least 1 column, got shape {X.shape}")
        features, one_hot = X, None
        if n_states is not None:
            Q = positive_int("n_states", n_states)
            one_hot_room("n_states", len(X), L, Q)
            codes = states("X", X, Q)
            features = helmert(Q).T[codes].reshape(len(X), L * (Q - 1))
            one_hot = codes[:, :, None] == np.arange(Q)
        parts = parts_of(features, y, clusters, random_state)
        labels, rows = np.array([label for label, _ in parts]), [members for _, members in parts]
        counts = np.array([members.size for members in rows], float)
        shares = counts / np.array([counts[labels == label].sum() for label in labels])
        centres = np.stack([features[members].mean(axis=0) for members in rows])
        means = centres if one_hot is None else np.stack([one_hot[members].mean(axis=0) for members in rows])
        roots = [(features[r] - c) / np.sqrt(len(r) - 1.0) for r, c in zip(rows, centres, strict=True)]
        covs, mixing, intensity = estimated(roots, labels, shares, covariance)
        mixture = cls(
            L=L, Q=Q, means=means, centres=centres, covs=covs,
            clusters=(labels, shares, _positive(positive, labels, y)),
        )  # fmt: skip
        mixture.counts, mixture.intensity, mixture._sampled = counts.astype(int), intensity, (roots, mixing)
        return mixture

    def debiased(self, counts=None, band=50):
        """Return a copy with the noise of estimated centres taken out of their distances.

        Centres of few rows are further apart than the true ones. In each band of neighbouring eigenvalues of the mean
        covariance, the scalar products of the centres lose the noise that they have on average. For two classes with
        one covariance this is :meth:`rbal.Moments.debiased`. The covariances stay as they are.

        Parameters
        ----------
        counts : (K,) array, optional
            Rows of each cluster; by default those it was estimated from.
        band : int
            Number of neighbouring eigenvalues that are corrected together.

        Returns
        -------
        Mixture
        """
        counts = self.counts if counts is None else counts
        if counts is None:
            raise ValueError("counts must be given for a mixture that was not estimated from rows")
        counts, band = _each("counts", counts, self.labels.size), positive_int("band", band)
        covs = self._covs, self._shape, self._width
        centres = quiet(self._centres, covs, counts, self._balanced, band)
        means = centres
        if self.Q > 1:
            back = (centres - self._centres).reshape(len(centres), self.L, self.Q - 1) @ helmert(self.Q)
            means = self.means + back
        clusters = self.labels, self.shares, self.positive
        copy = Mixture(L=self.L, Q=self.Q, means=means, centres=centres, covs=covs, clusters=clusters)
        copy.counts, copy.intensity = self.counts, self.intensity
        return copy

    @property
    def M(self):
        """Mean of the class means, of the shape of one centre."""
        return np.tensordot(self._balanced, self.means, 1)

    @property
    def _balanced(self):
        """Return weights (K,) under which all classes count the same."""
        return self.shares / self.classes.size

    @cached_property
    def signs(self):
        """+1 for clusters of the positive class, -1 for the others; there must be two classes."""
        if self.classes.size != 2:
            raise ValueError(f"labels must be two for one classifier, got {self.classes.size}: {self.classes.tolist()}")
        return np.where(self.labels == self.positive, 1.0, -1.0)

    @cached_property
    def _places(self):
        """1 for clusters of the positive class, 0 for the others."""
        return np.where(self.signs > 0.0, 1, 0)

    @property
    def level(self):
        """What the covariances have in common, one of four; see the class."""
        if len(self._covs) == 1:
            return LEVELS[0] if np.all(self._width == self._width[0]) else LEVELS[1]
        return LEVELS[3] if hasattr(self.blocks, "C") else LEVELS[2]

    @cached_property
    def blocks(self):
        """Covariances and centres in the smallest basis that holds them, for the solver."""
        return reduced(self._covs, self._centres - self._balanced @ self._centres, self.L)

    def covariance(self, cluster):
        """Return the covariance (D, D) of one cluster; for one-hot data, without the zero-sum directions.

        Parameters
        ----------
        cluster : int

        Returns
        -------
        ndarray
        """
        cluster = position("cluster", cluster, len(self._shape))
        return self._width[cluster] * as_matrix(self._covs[self._shape[cluster]])

    def order_parameters(self, J, b):
        """Return the order parameters of a trained classifier, with the true centres and covariances.

        Parameters
        ----------
        J : array
            Weights, of the shape of one centre, for scores x·J/√L - b.
        b : float

        Returns
        -------
        ClusterParameters
            A named tuple (m, q, b), to compare with the fields of a solution.
        """
        J, b = real_array("J", J), number("b", b, -np.inf)
        if J.shape != self.means.shape[1:]:
            raise ValueError(f"J must have the shape of one centre {self.means.shape[1:]}, got {J.shape}")
        w = J if self.Q == 1 else (J @ helmert(self.Q).T).ravel()
        v = self._centres - self._balanced @ self._centres
        spread = np.array([_spread(cov, w) for cov in self._covs])
        centre = float(np.sum(J * self.M)) / np.sqrt(self.L)
        return ClusterParameters(v @ w / np.sqrt(self.L), self._width * spread[self._shape] / self.L, b - centre)

    def sample(self, n_pos, n_neg, random_state=None):
        """Draw rows of both classes, clusters in proportion to their shares.

        Parameters
        ----------
        n_pos, n_neg : int
            Rows of each class. Every cluster gets its share of them, rounded.
        random_state : int or Generator, optional

        Returns
        -------
        X : (n_pos + n_neg, D) array
        y : (n_pos + n_neg,) array
            Labels.
        """
        if self.Q > 1:
            raise ValueError("sample needs real features: clusters of one-hot data are not Gaussian")
        rng, signs = seeded("random_state", random_state), self.signs
        X, y = [], []
        for sign, name, n in ((1.0, "n_pos", n_pos), (-1.0, "n_neg", n_neg)):
            room(name, n, positive_int(name, n) * self._centres.shape[1])
            mine = np.flatnonzero(signs == sign)
            ends = np.rint(n * np.cumsum(self.shares[mine])).astype(int)
            for c, count in zip(mine, np.diff(ends, prepend=0), strict=True):
                X.append(self._centres[c] + self._noise(c, count, rng))
                y.append(np.repeat(self.labels[c : c + 1], count))
        return np.concatenate(X), np.concatenate(y)

    def _noise(self, c, count, rng):
        """Draw rows (count, D) of cluster c around its centre."""
        cov, D = self._covs[self._shape[c]], self._centres.shape[1]
        if isinstance(cov, LowRank):
            z = rng.normal(size=(count, len(cov.rows))) @ cov.rows
            z += np.sqrt(cov.floor) * rng.normal(size=z.shape)
        elif cov.ndim == 1:
            z = rng.normal(size=(count, D)) * np.sqrt(cov)
        else:
            values, basis = np.linalg.eigh(cov)
            z = rng.normal(size=(count, D)) @ (basis * np.sqrt(np.maximum(values, 0.0))).T
        return np.sqrt(self._width[c]) * z


def _shares(shares, labels):
    """Return the share (K,) of each cluster in its class."""
    sizes = np.array([np.sum(labels == label) for label in labels], float)
    if shares is None:
        return 1.0 / sizes
    shares = _each("shares", shares, labels.size)
    for label in np.unique(labels).tolist():
        total = shares[labels == label].sum()
        if abs(total - 1.0) > 1e-8:
            raise ValueError(f"shares must sum to 1 in each class, got {total:g} in class {label!r}")
    return shares


def _each(name, value, K):
    value = in_range(name, real_array(name, value, 1), 0.0, open_low=True)
    if value.shape != (K,):
        raise ValueError(f"{name} must have one entry for each of the {K} clusters, got shape {value.shape}")
    return value


def _positive(positive, labels, y):
    """Return the positive label: as told, or the rarer one in y, or the greater one."""
    classes = np.unique(labels)
    if positive is not None:
        return one_of("positive", positive, classes.tolist())
    if classes.size != 2:
        return None
    if y is not None and np.sum(y == classes[0]) < np.sum(y == classes[1]):
        return classes[:1].tolist()[0]
    return classes[1:].tolist()[0]


def _spread(cov, w):
    """Return wᵀCw for a covariance of any kind."""
    if isinstance(cov, LowRank):
        return np.sum((cov.rows @ w) ** 2) + cov.floor * (w @ w)
    return cov @ w**2 if cov.ndim == 1 else w @ cov @ w
