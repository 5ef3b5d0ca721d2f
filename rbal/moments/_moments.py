"""Moments of two classes, and their spectrum."""

from functools import cached_property

import numpy as np
from scipy.linalg import helmert

from .._support.validation import in_range, one_hot_room, one_of, positive_int, real_array, room, squarable, states
from ._spectrum import Spectrum

SITES_AT_ONCE = 4096  # blocks of independent Potts sites held in memory together


class Moments:
    r"""First two moments of a positive and a negative class. Built by one of the class methods.

    Attributes
    ----------
    L : int
        Number of sites (features): the unit of class sizes, :math:`\alpha = P/L`.
    Q : int
        Squared norm of the weights per site: the number of states for one-hot (Potts) data, 1 for spins and reals.
    M : ndarray
        Midpoint of the two class means, (L,) or (L, Q).
    delta : ndarray
        Shift between the class means times :math:`\sqrt L`, of the shape of ``M``.
    """

    def __init__(self, *, L, Q, M, delta, shift, covariance):
        self.L, self.Q = L, Q
        self.M, self.delta = M, delta
        # In coordinates without the zero-sum directions of one-hot data: δ, and one of (D,) variances,
        # (sites, k, k) blocks, a (D, D) matrix, or rows F with C = FᵀF.
        self._shift, self._covariance = shift, covariance

    def __repr__(self):
        return f"Moments(L={self.L}, Q={self.Q}, D={self._shift.size})"

    @classmethod
    def ising(cls, m=0.0, delta=1.0, L=None, cov=None):
        """Make the moments of spins ±1 with means m ± δ/(2√L).

        Parameters
        ----------
        m, delta : float or (L,) array
            Midpoint of the class means and scaled shift.
        L : int, optional
            Number of spins; taken from the arrays where there is one.
        cov : (L,) or (L, L) array, optional
            Variances or covariance matrix; by default the spins are independent, with variances 1 - m².

        Examples
        --------
        >>> Moments.ising(m=0.4, delta=1.0, L=100)
        Moments(L=100, Q=1, D=100)
        """
        m, delta = in_range("m", m, -1.0, 1.0), real_array("delta", delta)
        cov = None if cov is None else real_array("cov", cov)
        sizes = {len(a) for a in (m, delta, cov) if np.ndim(a)}
        if L is not None:
            sizes.add(room("L", L, positive_int("L", L)))
        if len(sizes) != 1 or 0 in sizes:
            raise ValueError(f"m, delta, cov and L must agree on one number of spins, got {sorted(sizes) or 'none'}")
        L = sizes.pop()
        m, delta = _vector("m", m, L), _vector("delta", delta, L)
        if cov is None and np.all(np.abs(m) == 1.0):
            raise ValueError("m must leave a spin that varies, got -1 or 1 for all of them")
        cov = 1.0 - m**2 if cov is None else _covariance("cov", cov, L)
        return cls(L=L, Q=1, M=m, delta=delta, shift=delta, covariance=cov)

    @classmethod
    def potts(cls, M, delta, cov=None):
        """Make the moments of one-hot sites with Q states and frequencies M ± δ/(2√L).

        Parameters
        ----------
        M, delta : (L, Q) array
            Midpoint of the class frequencies, rows summing to 1, and scaled shift, rows summing to 0.
        cov : (L*Q, L*Q) array, optional
            Covariance of the one-hot variables, site by site; by default the sites are independent,
            C_i(t, u) = M_i(t) δ_tu - M_i(t) M_i(u).
        """
        M, delta = in_range("M", real_array("M", M, 2), 0.0), real_array("delta", delta, 2)
        L, Q = M.shape
        if L < 1 or Q < 2:
            raise ValueError(f"M must have at least 1 site and 2 states, got shape {M.shape}")
        if delta.shape != M.shape:
            raise ValueError(f"delta must have the shape of M {M.shape}, got {delta.shape}")
        sums, drift = M.sum(axis=1), np.abs(delta.sum(axis=1)).max()
        if np.abs(sums - 1.0).max() > 1e-8:
            raise ValueError(f"M must sum to 1 at each site, got {sums[np.argmax(np.abs(sums - 1.0))]:g}")
        if drift > 1e-8 * max(1.0, np.abs(delta).max()):
            raise ValueError(f"delta must sum to 0 at each site, got {drift:g}")
        basis = helmert(Q).T  # (Q, Q-1), orthonormal columns that sum to zero
        if cov is not None:
            cov = _covariance("cov", cov, L * Q, diagonal=False)
            rows = cov.reshape(L, Q, L * Q).sum(axis=1)
            if np.abs(rows).max() > 1e-8 * np.abs(cov).max():
                raise ValueError(
                    f"cov must sum to 0 over the states of each site, as one-hot data do, got {np.abs(rows).max():g}"
                )
            cov = np.einsum("ta,itju,ub->iajb", basis, cov.reshape(L, Q, L, Q), basis, optimize=True)
            cov = cov.reshape(L * (Q - 1), L * (Q - 1))
        return cls(L=L, Q=Q, M=M, delta=delta, shift=(delta @ basis).ravel(), covariance=cov)

    @classmethod
    def real(cls, mean_pos, mean_neg, cov):
        """Make the moments of real features with a common covariance: δ = √D (mean_pos - mean_neg) and L = D.

        Parameters
        ----------
        mean_pos, mean_neg : (D,) array
        cov : (D, D) or (D,) array
            Covariance matrix, or variances of independent features.
        """
        mean_pos, mean_neg = real_array("mean_pos", mean_pos, 1), real_array("mean_neg", mean_neg, 1)
        D = mean_pos.size
        if mean_neg.size != D or D == 0:
            raise ValueError(f"mean_neg must have the shape of mean_pos {mean_pos.shape}, got {mean_neg.shape}")
        delta = np.sqrt(D) * (mean_pos - mean_neg)
        cov = _covariance("cov", cov, D)
        return cls(L=D, Q=1, M=0.5 * (mean_pos + mean_neg), delta=delta, shift=delta, covariance=cov)

    @classmethod
    def from_data(cls, X_pos, X_neg, n_states=None, covariance="pooled"):
        """Estimate the moments of two samples.

        Parameters
        ----------
        X_pos, X_neg : (n, L) array or DataFrame
            Samples of the two classes, at least two each. Columns of two DataFrames are matched by name, in the order
            of X_pos; names that only one of them has are an error.
        n_states : int, optional
            Q for categorical data, coded 0 … Q-1 and treated as one-hot; None for real features.
        covariance : {"pooled", "sites", "shrunk"}
            (C⁺ + C⁻)/2 with unbiased class covariances; its blocks on the sites alone; or its Ledoit–Wolf shrinkage.
        """
        one_of("covariance", covariance, ("pooled", "sites", "shrunk"))
        order = matching(X_pos, X_neg)
        X_pos, X_neg = _sample("X_pos", X_pos), _sample("X_neg", X_neg)
        X_neg = X_neg if order is None else X_neg[:, order]
        L = X_pos.shape[1]
        if X_neg.shape[1] != L:
            raise ValueError(f"X_neg must have the {L} columns of X_pos, got {X_neg.shape[1]}")
        if n_states is None:
            Q, k, features = 1, 1, (X_pos, X_neg)
            means = [X.mean(axis=0) for X in features]
        else:
            Q, k = positive_int("n_states", n_states), n_states - 1
            rows = {"shrunk": L * k, "sites": k}.get(covariance, 0)  # of the covariance that is estimated
            one_hot_room("n_states", max(rows, len(X_pos) + len(X_neg)), L, Q)
            codes = [states("X_pos", X_pos, Q), states("X_neg", X_neg, Q)]
            means = [np.stack([(X == t).mean(axis=0) for t in range(Q)], axis=1) for X in codes]
            basis = helmert(Q).T  # row t is state t, in coordinates without the zero-sum direction
            features = [basis[X].reshape(len(X), L * k) for X in codes]
        M, delta = 0.5 * (means[0] + means[1]), np.sqrt(L) * (means[0] - means[1])
        shift = np.sqrt(L) * (features[0].mean(axis=0) - features[1].mean(axis=0))
        # Rows F with FᵀF = (C⁺ + C⁻)/2.
        rows = np.concatenate([(F - F.mean(axis=0)) / np.sqrt(2.0 * (len(F) - 1)) for F in features])
        if covariance == "sites":
            blocks = rows.reshape(-1, L, k)
            cov = np.einsum("nia,nib->iab", blocks, blocks)
            cov = cov[:, 0, 0] if k == 1 else cov
        elif covariance == "shrunk":
            from sklearn.covariance import ledoit_wolf

            cov = ledoit_wolf(rows * np.sqrt(len(rows)), assume_centered=True)[0]
        else:
            cov = rows.T @ rows if len(rows) >= L * k else rows
        return cls(L=L, Q=Q, M=M, delta=delta, shift=shift, covariance=cov)

    @classmethod
    def from_kernel(cls, K, y, *, positive=None, L=None):
        """Estimate the moments in the feature space of a kernel, from the Gram matrix of the training rows alone.

        Parameters
        ----------
        K : (n, n) array
            Scalar products of the rows in feature space; :func:`rbal.kernels.bind` makes such matrices.
        y : (n,) array
            Two labels.
        positive : label, optional
            Label of the positive class; by default the rarer one.
        L : int, optional
            Unit of class sizes, n by default. It changes nothing about a machine with the ridge that ``ridge(C)`` of
            the result returns.

        Returns
        -------
        rbal.moments.KernelMoments

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(size=(60, 300)), np.repeat([1, 0], [20, 40])
        >>> Moments.from_kernel(X @ X.T, y)
        KernelMoments(n_pos=20, n_neg=40, L=60)
        """
        from ._kernel import from_kernel

        return from_kernel(K, y, positive=positive, L=L)

    @cached_property
    def _eigen(self):
        cov, shift = self._covariance, self._shift
        if cov is None:
            values, squares = _potts_sites(self.M, self.delta)
        elif cov.ndim == 1:
            with np.errstate(over="ignore"):
                values, squares = cov, shift**2
        elif cov.ndim == 3:
            values, vectors = np.linalg.eigh(cov)
            squares = np.einsum("iab,ia->ib", vectors, shift.reshape(len(cov), -1)) ** 2
        elif cov.shape[0] == cov.shape[1]:
            values, vectors = np.linalg.eigh(cov)
            squares = (shift @ vectors) ** 2
        else:
            values, squares = _few_rows(cov, shift)
        # An eigensolver is exact to rounding in the size of what it solved; given variances are exact.
        size = 0 if cov is not None and cov.ndim == 1 else values.shape[-1]
        values, squares = values.ravel(), squares.ravel()
        if not np.isfinite(squares.sum() + values.sum()):
            raise ValueError(f"delta must have squares that are doubles, got {np.abs(shift).max():g}")
        floor = 10 * size * np.finfo(float).eps * np.abs(values).max()
        if values.min() < -floor:
            raise ValueError(f"cov must have no negative eigenvalue, got {values.min():g}")
        if values.max() <= 0.0:
            raise ValueError("cov must not be zero")
        values = np.where(values < floor, 0.0, values)
        order = np.argsort(values, kind="stable")
        values, squares = values[order], squares[order]
        values.flags.writeable = squares.flags.writeable = False
        return values, squares

    @property
    def eigenvalues(self):
        """Eigenvalues λ (D,), ascending; directions ruled out by one-hot encoding are not among them."""
        return self._eigen[0]

    @property
    def delta_sq(self):
        """Squared shift d² (D,) along each eigenvector of :attr:`eigenvalues`."""
        return self._eigen[1]

    def variance(self, J):
        """Return the variance JᵀCJ of the weighted sum of the features within a class.

        Parameters
        ----------
        J : array
            Weights, of the shape of ``M``.

        Returns
        -------
        float
        """
        J = real_array("J", J)
        if J.shape != self.M.shape:
            raise ValueError(f"J must have the shape of M {self.M.shape}, got {J.shape}")
        if self._covariance is None:  # independent one-hot sites
            return float(np.sum(self.M * J**2) - np.sum(np.sum(self.M * J, axis=1) ** 2))
        w = J if self.Q == 1 else (J @ helmert(self.Q).T).ravel()
        cov = self._covariance
        if cov.ndim == 1:
            return float(cov @ w**2)
        if cov.ndim == 3:
            sites = w.reshape(len(cov), -1)
            return float(np.einsum("ia,iab,ib->", sites, cov, sites))
        return float(w @ cov @ w) if cov.shape[0] == cov.shape[1] else float(np.sum((cov @ w) ** 2))

    def debiased(self, n_pos, n_neg, band=50):
        r"""Return a copy of the moments with the noise of estimated means taken out of the shift.

        Means of n⁺ and n⁻ samples differ even when the classes do not: along an eigenvector, the squared shift is too
        large by :math:`L\lambda(1/n^++1/n^-)` on average. One such term is as noisy as what it corrects, but the saddle
        point only sees sums over many. So δ is shortened by one factor in each band of neighbouring eigenvalues: the
        one that takes the expected noise out of the band's part of :math:`\sum_id_i^2/(L\lambda_i)`, the squared
        distance of the classes in units of their noise. The covariance stays as it is.

        Parameters
        ----------
        n_pos, n_neg : int
            Samples from which the two means were estimated.
        band : int
            Number of neighbouring eigenvalues that share a factor.

        Returns
        -------
        Moments

        Examples
        --------
        >>> rng = np.random.default_rng(2)
        >>> seen = Moments.from_data(*rng.normal(size=(2, 300, 100)))  # two samples of one class
        >>> for mom in (seen, seen.debiased(300, 300)):
        ...     print(f"{mom.delta_sq.sum() / mom.L:.2f}")
        0.70
        0.11
        """
        n_pos, n_neg = (positive_int(n, v, 2**53) for n, v in (("n_pos", n_pos), ("n_neg", n_neg)))
        band = positive_int("band", band)
        values, shift, back = self._directions()
        order = np.argsort(values, kind="stable")
        order = order[values[order] > 10 * values.size * np.finfo(float).eps * values.max()]
        shift = shift.copy()
        for part in np.array_split(order, max(1, order.size // band)):
            distance = np.sum(shift[part] ** 2 / values[part]) / self.L
            noise = part.size * (1.0 / n_pos + 1.0 / n_neg)
            shift[part] *= np.sqrt(1.0 - noise / distance) if distance > noise else 0.0
        shift = back(shift)
        delta = shift if self.Q == 1 else shift.reshape(self.L, -1) @ helmert(self.Q)
        return Moments(L=self.L, Q=self.Q, M=self.M, delta=delta, shift=shift, covariance=self._covariance)

    def _directions(self):
        """Return the eigenvalues (D,), δ along each eigenvector (D,), and the map from such components back to δ."""
        cov, shift = self._covariance, self._shift
        if cov is None:
            cov = _site_blocks(self.M, helmert(self.Q).T)
        if cov.ndim == 1:
            return cov, shift, lambda c: c
        if cov.ndim == 3:
            values, vectors = np.linalg.eigh(cov)
            along = np.einsum("iab,ia->ib", vectors, shift.reshape(len(cov), -1))
            return (
                values.ravel(),
                along.ravel(),
                lambda c: np.einsum("iab,ib->ia", vectors, c.reshape(along.shape)).ravel(),
            )
        if cov.shape[0] == cov.shape[1]:
            values, vectors = np.linalg.eigh(cov)
            return values, shift @ vectors, lambda c: vectors @ c
        _, singular, vectors = np.linalg.svd(cov, full_matrices=False)
        rest = shift - (vectors @ shift) @ vectors  # the noise is unknown where the sample does not vary
        return singular**2, vectors @ shift, lambda c: c @ vectors + rest

    @cached_property
    def spectrum(self):
        """The :class:`rbal.moments.Spectrum` that the solver takes: equal eigenvalues merged."""
        return Spectrum.of(*self._eigen, self.L, self.Q)


def _potts_sites(M, delta):
    """Return eigenvalues and squared shifts (L, Q-1) of independent sites, block by (Q-1)×(Q-1) block."""
    basis = helmert(M.shape[1]).T
    values, squares = np.empty((len(M), basis.shape[1])), np.empty((len(M), basis.shape[1]))
    for start in range(0, len(M), SITES_AT_ONCE):
        part = slice(start, start + SITES_AT_ONCE)
        values[part], vectors = np.linalg.eigh(_site_blocks(M[part], basis))
        squares[part] = np.einsum("iab,ia->ib", vectors, delta[part] @ basis) ** 2
    return values, squares


def _site_blocks(M, basis):
    """Return M_i(t) δ_tu - M_i(t) M_i(u) of independent sites, (L, k, k) in the coordinates of the basis (Q, k)."""
    projected = M @ basis
    blocks = np.einsum("ta,it,tb->iab", basis, M, basis, optimize=True)
    return blocks - projected[:, :, None] * projected[:, None, :]


def _few_rows(rows, shift):
    """Return eigenvalues of FᵀF and squared shifts (D,) for few rows F; the rest of the shift is in the null space."""
    _, singular, vectors = np.linalg.svd(rows, full_matrices=False)
    values, squares = np.zeros(shift.size), np.zeros(shift.size)
    values[: singular.size] = singular**2
    squares[: singular.size] = (vectors @ shift) ** 2
    rest = shift - (vectors @ shift) @ vectors
    squares[-1] = rest @ rest
    return values, squares


def _vector(name, value, size):
    value = real_array(name, value)
    if value.ndim > 1 or value.size not in (1, size):
        raise ValueError(f"{name} must be a number or have shape ({size},), got {value.shape}")
    return np.broadcast_to(value, (size,)).copy()


def _covariance(name, value, size, diagonal=True):
    """Return the value as variances (size,) or a symmetric matrix (size, size)."""
    cov = real_array(name, value, (1, 2) if diagonal else 2)
    if any(n != size for n in cov.shape):
        takes = f"({size},) or ({size}, {size})" if diagonal else f"({size}, {size})"
        raise ValueError(f"{name} must have shape {takes}, got {cov.shape}")
    if cov.ndim == 2:
        off = np.abs(cov - cov.T).max()
        if off > 1e-10 * np.abs(cov).max():
            raise ValueError(f"{name} must be symmetric, got entries that differ by {off:g}")
        return 0.5 * (cov + cov.T)
    return in_range(name, cov, 0.0)


def _sample(name, value):
    X = real_array(name, value, 2)
    if len(X) < 2 or X.shape[1] < 1:
        raise ValueError(f"{name} must have at least 2 rows and 1 column, got shape {X.shape}")
    return squarable(name, X, names(value))


# ---- columns of two frames, matched by their names


def names(X):
    """Return the names of the columns of a frame, or None; a table of pyarrow has them apart from its columns."""
    names = getattr(X, "column_names", getattr(X, "columns", None))
    return None if names is None else list(names)


def matching(X_pos, X_neg):
    """Return the columns of X_neg in the order of X_pos, or None where no names differ."""
    ours, theirs = names(X_pos), names(X_neg)
    if ours is None or theirs is None or ours == theirs:
        return None
    for alone, of, other in ((ours, "X_pos", theirs), (theirs, "X_neg", ours)):
        if missing := [name for name in alone if name not in other]:
            shown = ", ".join(map(repr, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
            raise ValueError(f"X_pos and X_neg must have the same columns, got {shown} in {of} alone")
    if len(set(ours)) < len(ours) or len(ours) != len(theirs):
        raise ValueError("X_pos and X_neg must have each column once, or in the same order, got a name twice")
    places = {name: j for j, name in enumerate(theirs)}
    return [places[name] for name in ours]
