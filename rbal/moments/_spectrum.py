"""The spectrum of two classes: eigenvalues, the number of directions of each, and the shift along them."""

from typing import NamedTuple

import numpy as np

from .._support.validation import in_range, number, positive_int

LARGEST = 1e40  # variance in one direction: beyond it the solver would search long for what it cannot resolve


class Spectrum(NamedTuple):
    """Distinct eigenvalues of the covariance, with everything divided by L so that each 1/L Σᵢ is a plain sum.

    It is made by :meth:`of`, or by :attr:`rbal.Moments.spectrum`. :func:`rbal.solve`, :func:`rbal.sweep` and
    :func:`rbal.critical_margin` take it in place of the moments it is of.

    Attributes
    ----------
    lam : (n,) array
        Eigenvalues, ascending.
    g : (n,) array
        Number of directions that have them, per site.
    s : (n,) array
        Squared shift along these directions, per site.
    g_null : float
        Directions that neither vary nor separate, per site; they are not in the arrays.
    shift : float
        Smallest eigenvalue, 0 with ``g_null``: the multiplier of the sphere is above -x̂·shift.
    L, Q : int
        Number of sites or features, and of states of each; 1 for spins and real features.
    """

    lam: np.ndarray
    g: np.ndarray
    s: np.ndarray
    g_null: float
    shift: float
    L: int
    Q: int

    @classmethod
    def of(cls, eigenvalues, delta_sq, L, Q=1):
        """Merge equal eigenvalues, and count free directions apart.

        Parameters
        ----------
        eigenvalues, delta_sq : (n,) arrays
            Ascending, and the squared shift along each eigenvector.
        L, Q : int
            As above.

        Returns
        -------
        Spectrum
        """
        L, Q = positive_int("L", L, 2**53), positive_int("Q", Q, 2**53)
        values, squares = in_range("eigenvalues", eigenvalues, 0.0), in_range("delta_sq", delta_sq, 0.0)
        if np.ndim(values) != 1 or np.shape(values) != np.shape(squares) or np.any(np.diff(values) < 0.0):
            shapes = f"{np.shape(values)} and {np.shape(squares)}"
            raise ValueError(f"eigenvalues must ascend, with one delta_sq each, got shapes {shapes}")
        if not values.any():
            raise ValueError("eigenvalues must not all be zero")
        largest = max(values[-1], squares.sum())
        if largest > LARGEST:
            raise ValueError(
                f"variances and squared shifts must be at most {LARGEST:g}, got {largest:g}: divide the features by a "
                "number"
            )
        null = int(np.searchsorted(values, 0.0, side="right"))
        null_shift = squares[:null].sum()
        if null_shift <= 1e-22 * squares.sum():  # rounding of the eigenvectors, not a shift
            null_shift = 0.0
        values, squares = values[null:], squares[null:]
        groups = np.cumsum(np.diff(values, prepend=values[0]) > 4 * np.finfo(float).eps * values)
        counts = np.bincount(groups).astype(float)
        lam = np.bincount(groups, values) / counts
        g, s = counts / L, np.bincount(groups, squares) / L
        if null_shift > 0.0:  # the one direction without noise that separates; any others are free
            lam, g, s = np.r_[0.0, lam], np.r_[1.0 / L, g], np.r_[null_shift / L, s]
            null -= 1
        return cls(lam, g, s, null / L, 0.0 if null > 0 else float(lam[0]), L, Q)

    @property
    def separation(self):
        """Distance of the class means, in units of the root mean square deviation of a feature along them."""
        return float(np.sqrt(self.s.sum() / self.g.sum()))

    def apart(self, factor):
        """Return a copy with the means of the classes ``factor`` times as far apart."""
        factor = number("factor", factor, 0.0)
        s, without_noise = factor**2 * self.s, self.lam == 0.0
        if factor > 0.0 or not without_noise.any():
            return self._replace(s=s)
        free = self.g_null + self.g[without_noise].sum()  # what separated without noise now does nothing
        return self._replace(lam=self.lam[1:], g=self.g[1:], s=s[1:], g_null=float(free), shift=0.0)

    def without_free(self):
        """Return a copy without the directions that neither vary nor separate, such as pixels that are constant.

        A margin is proportional to the weights. Where it can be positive, all of them go into directions that matter,
        and the others might as well not be there; where it cannot, all go into the others, for a margin of 0.
        """
        return self._replace(g_null=0.0, shift=float(self.lam[0])) if self.g_null > 0.0 else self

    def condensed(self, ratio=3.0, n=10):
        """Return a copy with few nodes in place of many eigenvalues, to solve again and again without waiting.

        The sums over a spectrum that the saddle point asks for are integrals of smooth functions of the eigenvalue, so
        that few nodes of a Gauss rule do. The poles of what is integrated lie at or below the smallest eigenvalue, so
        that bins of λ - shift may widen away from it. With the defaults, solutions differ by about 1e-11 from those of
        the full spectrum (tests/moments/test_spectrum.py).

        Parameters
        ----------
        ratio : float
            Factor by which bins widen.
        n : int
            Nodes in each bin for the directions, and as many for the shift.

        Returns
        -------
        Spectrum
        """
        ratio, n = number("ratio", ratio, 1.0, open_low=True), positive_int("n", n)
        lam, g, s = self.lam, self.g, self.s
        gap = lam - self.shift
        first = gap[gap > 0][0] if (gap > 0).any() else 1.0
        bins = np.where(gap > 0, np.floor(np.log(np.maximum(gap, first) / first) / np.log(ratio) * (1 - 1e-12)), -1)
        parts = []
        for index in np.unique(bins):
            here = bins == index
            if here.sum() <= 2 * n:
                parts.append(np.stack([lam[here], g[here], s[here]]))
                continue
            for row, weights in ((1, g[here]), (2, s[here])):
                part = np.zeros((3, min(n, np.count_nonzero(weights))))
                part[0], part[row] = gauss_rule(lam[here], weights, n)
                parts.append(part)
        nodes = np.concatenate(parts, axis=1)
        lam, g, s = np.ascontiguousarray(nodes[:, np.argsort(nodes[0], kind="stable")])
        return self._replace(lam=lam, g=g, s=s)


def spectrum_of(moments):
    """Return the spectrum of an argument ``moments``, which may be one."""
    spectrum = moments if isinstance(moments, Spectrum) else getattr(moments, "spectrum", None)
    if not isinstance(spectrum, Spectrum):
        raise TypeError(f"moments must be a rbal.Moments or a Spectrum, got {type(moments).__name__}")
    if all(a.flags.carray and a.dtype == float for a in spectrum[:3]):
        return spectrum
    # compiled code knows one kind of array: shared memory of a worker, say, cannot be written to
    return spectrum._replace(**{name: np.array(getattr(spectrum, name), float) for name in ("lam", "g", "s")})


def gauss_rule(nodes, weights, n):
    """Return nodes and weights (n,) that integrate polynomials up to degree 2n - 1 as the discrete measure does."""
    used = weights > 0
    nodes, weights = nodes[used], weights[used]
    if nodes.size <= n:
        return nodes, weights
    centre, width = 0.5 * (nodes[0] + nodes[-1]), 0.5 * (nodes[-1] - nodes[0])
    t, basis = (nodes - centre) / width, [np.sqrt(weights / weights.sum())]
    diagonal, off = [], []
    for k in range(n):
        v = t * basis[k]
        diagonal.append(v @ basis[k])
        for _ in range(2):  # twice is enough to keep the basis orthogonal
            for u in basis:
                v = v - (u @ v) * u
        off.append(np.linalg.norm(v))
        basis.append(v / off[-1])
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off[:-1], 1) + np.diag(off[:-1], -1))
    return centre + width * values, weights.sum() * vectors[0] ** 2
