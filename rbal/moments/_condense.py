"""Few nodes in place of many eigenvalues.

The sums over a spectrum that the saddle point asks for are integrals of smooth functions of the eigenvalue, so that few
nodes of a Gauss rule do the work of many eigenvalues. It is for those who solve again and again with the same data and
have to wait for it: the explorers of the book, in the browser and in Jupyter.
"""

from copy import copy

import numpy as np

from ._moments import Spectrum


def condensed(moments):
    """The same moments, of which the solver sees the condensed spectrum; all else is as it was."""
    twin = copy(moments)
    twin._spectrum = condense(moments._spectrum)
    return twin


def condense(spectrum, ratio=3.0, n=10):
    """Bins of λ - shift that widen by a factor ``ratio``; in each, n nodes for the directions and n for the shift.

    The poles of what is integrated lie at or below the smallest eigenvalue, so that bins may widen away from it. With
    the defaults, solutions differ by about 1e-11 from those of the full spectrum (tests/moments/test_condense.py).
    """
    lam, g, s, g_null, shift = spectrum
    gap = lam - shift
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
    nodes = nodes[:, np.argsort(nodes[0], kind="stable")]
    return Spectrum(*np.ascontiguousarray(nodes), g_null, shift)


def gauss_rule(nodes, weights, n):
    """Rule with n nodes that integrates polynomials up to degree 2n - 1 as the discrete measure does (Lanczos)."""
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
