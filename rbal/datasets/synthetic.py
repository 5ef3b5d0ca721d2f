r"""Two classes drawn from a model, with the moments that the theory asks of them.

Class :math:`y = \pm1` has mean :math:`M + y\,\delta/(2\sqrt L)`. The theory gives both classes one covariance, but a
spin or a site cannot choose its own: a spin of mean :math:`m` has variance :math:`1 - m^2`, and so the classes differ
by :math:`2m\delta/\sqrt L`. Everywhere in this module ``moments`` holds the average of the two class covariances,
:math:`(C^+ + C^-)/2`. Within a site it is the covariance at the midpoint less :math:`\delta\delta^\top\!/(4L)`, a
difference that vanishes for large :math:`L`. With ``exact`` true, class means and this average hold to rounding.
"""

import warnings
from functools import partial

import numpy as np
from scipy.linalg import helmert
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning

from .._support.validation import LARGEST, flag, in_range, number, positive_int, real_array, room
from ..moments import Moments
from ._classes import Classes, class_means, generator
from ._gibbs import PottsFit, boltzmann_learning, checked_chains, checked_couplings, draw, model_moments
from ._latent import (
    check_variances,
    checked_correlation,
    draw_intervals,
    gaussian_root,
    latent_spins,
    search,
    site_covariance,
)

__all__ = [
    "Classes",
    "PottsFit",
    "d1",
    "d2",
    "d3",
    "fit_potts_model",
    "gaussian",
    "ising",
    "potts",
    "potts_model",
    "random_gaussian",
]


def ising(m=0.0, delta=1.0, L=None, cov=None):
    """Make classes of spins ±1 with means m ± δ/(2√L), independent or correlated.

    Correlated spins are signs of a Gaussian, cut so that each spin has its mean, and correlated so that each pair has
    its covariance: in either class the means and all covariances between spins are exactly those asked for. Variances
    are not free, 1 - (m ± δ/(2√L))²; ``moments`` has their average, 1 - m² - δ²/(4L).

    Not every covariance is within reach; an error tells by how much it is not. At m = δ = 0 a Gaussian with
    correlation R gives (2/π) arcsin R: weak correlations shrink by 2/π, and bring no eigenvalue below 1 - 2/π = 0.36.

    Parameters
    ----------
    m, delta : float or (L,) array
        Midpoint of the class means and scaled shift.
    L : int, optional
        Number of spins; taken from the arrays where there is one.
    cov : (L, L) array, optional
        Covariance of the spins within a class, with 1 - m² on the diagonal, or 1 - m² - δ²/(4L), or anything
        between: the diagonal is checked, then replaced by the latter. By default the spins are independent.

    Returns
    -------
    Classes

    Examples
    --------
    >>> X, y = ising(m=0.4, delta=1.0, L=100).sample(30, 70, rng=0)
    >>> X.shape, set(X.ravel().tolist()), int(y.sum())
    ((100, 100), {1.0, -1.0}, -40)
    """
    base = Moments.ising(m, delta, L, cov)
    half = base.delta / (2.0 * np.sqrt(base.L))
    means = class_means("m", base.M, half, -1.0)
    variances = 0.5 * sum((1.0 - mean) * (1.0 + mean) for mean in means)
    if cov is None:
        moments = Moments.ising(base.M, base.delta, cov=variances)
        return Classes(moments, *(partial(_draw_spins, 0.5 * (1.0 + mean)) for mean in means))
    cov = real_array("cov", cov, 2).copy()
    check_variances(np.diagonal(cov), 1.0 - base.M**2, variances)
    np.fill_diagonal(cov, variances)
    draws = [latent_spins(mean, cov, sign) for mean, sign in zip(means, ("positive", "negative"), strict=True)]
    return Classes(Moments.ising(base.M, base.delta, cov=cov), *draws)


def potts(M, delta, correlation=None):
    """Make classes of sites with Q states and frequencies M ± δ/(2√L), independent or tied by a Gaussian.

    Tied sites are made from a Gaussian with one component a site, cut into Q intervals of the right probabilities;
    neighbouring states are therefore alike. The covariance is computed from the probabilities of rectangles.

    Parameters
    ----------
    M, delta : (L, Q) array
        Midpoint of the class frequencies, rows summing to 1, and scaled shift, rows summing to 0.
    correlation : (L, L) array, optional
        Correlation of the Gaussian, with 1 on the diagonal. By default the sites are independent.

    Returns
    -------
    Classes
    """
    base = Moments.potts(M, delta)
    means = class_means("M", base.M, base.delta / (2.0 * np.sqrt(base.L)), 0.0)
    edges = [_edges(f) for f in means]
    if correlation is None:
        return Classes(_potts_moments(base, means), *(partial(_draw_states, e) for e in edges), n_states=base.Q)
    R = checked_correlation("correlation", correlation, base.L)
    root = gaussian_root("correlation", R)
    edges = [ndtri(np.minimum(e, 1.0)) for e in edges]
    cov = 0.5 * sum(site_covariance(e, R) for e in edges)
    sites = np.arange(base.L)
    cov[sites, :, sites, :] = 0.5 * sum(_site_blocks(f) for f in means)
    moments = Moments.potts(base.M, base.delta, cov=cov.reshape(base.M.size, base.M.size))
    return Classes(moments, *(partial(draw_intervals, e, root) for e in edges), n_states=base.Q)


def _site_blocks(f):
    """Return the covariance (L, Q, Q) of one-hot sites with frequencies f (L, Q)."""
    return f[:, :, None] * np.eye(f.shape[1]) - f[:, :, None] * f[:, None, :]


def _potts_moments(base, means):
    """Return moments of independent sites, with the average of the class covariances, kept block by block."""
    basis = helmert(base.Q).T
    blocks = 0.5 * sum(np.einsum("ta,itu,ub->iab", basis, _site_blocks(f), basis, optimize=True) for f in means)
    return Moments(L=base.L, Q=base.Q, M=base.M, delta=base.delta, shift=base._shift, covariance=blocks)


def potts_model(
    fields_pos,
    fields_neg,
    couplings,
    couplings_neg=None,
    *,
    n_chains=500,
    burn_in=200,
    thin=10,
    n_moments=50_000,
    rng=0,
    progress=True,
):
    r"""Make classes of two Potts models, sampled by heat bath (Gibbs).

    A configuration has probability :math:`\propto\exp\bigl(\sum_i h_i(s_i) + \sum_{i<j} J_{ij}(s_i, s_j)\bigr)`. Each
    call of ``sample`` starts chains at random, lets them run for ``burn_in`` sweeps, and takes a sample of each every
    ``thin`` sweeps; up to ``n_chains`` samples are thus independent. Strong couplings need longer runs.

    Parameters
    ----------
    fields_pos, fields_neg : (L, Q) array
        Fields h of either class.
    couplings : (L, Q, L, Q) or (L*Q, L*Q) array
        Couplings J, symmetric; those within a site are 0.
    couplings_neg : array, optional
        Couplings of the negative class; by default the same.
    n_chains, burn_in, thin : int
        Chains at once, sweeps before the first sample of a chain and between two of them.
    n_moments : int
        Samples of each class for the moments, unless there are at most 2¹⁸ configurations: these are enumerated,
        and the moments exact.
    rng : numpy.random.Generator or int
        Source of randomness for the moments, or a seed for one.
    progress : bool
        Whether to show a bar when estimating the moments takes more than a second.

    Returns
    -------
    Classes
    """
    chains, progress = checked_chains(n_chains, burn_in, thin), flag("progress", progress)
    n_moments, rng = positive_int("n_moments", n_moments), generator(rng)
    fields_pos, fields_neg = real_array("fields_pos", fields_pos, 2), real_array("fields_neg", fields_neg, 2)
    L, Q = fields_pos.shape
    if L < 1 or Q < 2:
        raise ValueError(f"fields_pos must have at least 1 site and 2 states, got shape {fields_pos.shape}")
    if fields_neg.shape != fields_pos.shape:
        raise ValueError(f"fields_neg must have the shape of fields_pos {fields_pos.shape}, got {fields_neg.shape}")
    J_pos = checked_couplings("couplings", couplings, L, Q)
    J_neg = J_pos if couplings_neg is None else checked_couplings("couplings_neg", couplings_neg, L, Q)
    models = (fields_pos.copy(), J_pos), (fields_neg.copy(), J_neg)
    (f_pos, cov_pos, exact), (f_neg, cov_neg, _) = (
        model_moments(*model, chains, n_moments, rng, progress) for model in models
    )
    moments = Moments.potts(0.5 * (f_pos + f_neg), np.sqrt(L) * (f_pos - f_neg), cov=0.5 * (cov_pos + cov_neg))
    return Classes(moments, *(partial(draw, *model, chains) for model in models), n_states=Q, exact=exact)


def fit_potts_model(M, cov, *, n_chains=2000, n_iter=300, sweeps=3, n_samples=50_000, tol=0.02, rng=0, progress=True):
    """Find the Potts model with given frequencies and covariance between sites, by Boltzmann learning.

    Of all distributions with these two moments it is the one of largest entropy. For classes with means M ± δ/(2√L),
    fit either one and give both to :func:`potts_model`.

    Parameters
    ----------
    M : (L, Q) array
        Frequencies, > 0, rows summing to 1.
    cov : (L*Q, L*Q) array
        Covariance of the one-hot variables; only that between different sites is read, M gives the rest.
    n_chains, n_iter, sweeps : int
        Persistent chains, iterations, and sweeps of the chains in each.
    n_samples : int
        Samples that measure the residual, unless there are at most 2¹⁸ configurations: these are enumerated.
    tol : float
        Residual above which a :class:`~rbal.ConvergenceWarning` is given.
    rng : numpy.random.Generator or int
        Source of randomness, or a seed for one.
    progress : bool
        Whether to show a bar when it takes more than a second.

    Returns
    -------
    PottsFit
        Named tuple (fields, couplings, residual, exact), in the zero-sum gauge. ``residual`` is the largest deviation
        of a frequency or of a covariance between sites, and ``exact`` tells whether it was found by enumeration; if
        not, it includes sampling noise of about 2/√n_samples.
    """
    chains = checked_chains(n_chains, 200, sweeps, names=("n_chains", "burn_in", "sweeps"))
    progress = flag("progress", progress)
    n_iter, n_samples = positive_int("n_iter", n_iter), positive_int("n_samples", n_samples)
    tol, rng = number("tol", tol, 0.0, open_low=True), generator(rng)
    M = real_array("M", M, 2)
    Moments.potts(M, np.zeros_like(M), cov)  # checks both
    M = in_range("M", M, 0.0, 1.0, open_low=True)
    fit = boltzmann_learning(M, real_array("cov", cov, 2), chains, n_iter, n_samples, rng, progress)
    if not fit.residual <= tol:
        warnings.warn(
            f"Boltzmann learning reached a residual of {fit.residual:.3g} > tol = {tol:g}; more iterations or chains "
            "may help, unless no Potts model has these moments",
            ConvergenceWarning,
            stacklevel=2,
        )
    return fit


def gaussian(mean_pos, mean_neg, cov):
    """Make Gaussian classes with two means and a common covariance.

    Parameters
    ----------
    mean_pos, mean_neg : (D,) array
    cov : (D, D) or (D,) array
        Covariance matrix, or variances of independent features; directions without variance are allowed.

    Returns
    -------
    Classes
    """
    moments = Moments.real(mean_pos, mean_neg, cov)
    cov = moments._covariance
    root = np.sqrt(cov) if cov.ndim == 1 else gaussian_root("cov", cov)
    means = (np.asarray(mean, dtype=float).copy() for mean in (mean_pos, mean_neg))
    return Classes(moments, *(partial(_draw_gaussian, mean, root) for mean in means))


def random_gaussian(rng, L=100, ratio=2.0, scale=1.0):
    r"""Make Gaussian classes with a random covariance and a random shift.

    The covariance is that of ``ratio * L`` standard Gaussian vectors, :math:`C = FF^\top/(\mathrm{ratio}\,L)`, with
    eigenvalues between :math:`(1 \pm \mathrm{ratio}^{-1/2})^2`; the shift has components
    :math:`\delta_i \sim \mathcal N(0, \mathrm{scale}^2)`. The paper says of some figures that C and δ were "sampled
    randomly", and no more: this is our choice.

    Parameters
    ----------
    rng : numpy.random.Generator or int
        Source of randomness, or a seed for one.
    L : int
        Number of features.
    ratio : float
        Vectors per feature, > 0; the covariance is singular below 1.
    scale : float
        Standard deviation of the components of δ.

    Returns
    -------
    Classes
    """
    rng, L = generator(rng), positive_int("L", L)
    ratio = number("ratio", ratio, 0.0, open_low=True)
    room("L", L, L * L), room("ratio", ratio, ratio * L * L)
    n = max(1, round(ratio * L))
    scale = number("scale", scale, 0.0, LARGEST)
    noise = rng.normal(size=(L, n))
    half = scale * rng.normal(size=L) / (2.0 * np.sqrt(L))
    return gaussian(half, -half, noise @ noise.T / n)


def d1(L=100):
    """Make the paper's first data set: independent spins with m = 0.4 and δ = 1 (used with α⁺ = 1, κ = 0.4).

    Parameters
    ----------
    L : int
        Number of spins.

    Returns
    -------
    Classes
    """
    return ising(m=0.4, delta=1.0, L=positive_int("L", L))


def d2(rng, L=200, Q=10):
    """Make the paper's second data set: independent sites with uniform frequencies (used with α⁺ = 3, κ = 2).

    Printed is: M uniform in [0.1, 0.3] and δ uniform in [0, 0.1], independently over sites and states, but for the
    last state of each site, which makes M sum to 1 and δ to 0. With ten states the last M is then negative, save with
    probability 5·10⁻⁹. Here all Q states of M are drawn from [0.1, 0.3] and divided by their sum, which is how the
    paper normalises its third data set; δ is as printed. Far fewer sites than the paper's 200 end in an error: the
    shift δ/(2√L) is then larger than the smallest frequencies.

    Parameters
    ----------
    rng : numpy.random.Generator or int
        Source of randomness, or a seed for one.
    L, Q : int
        Number of sites and of states.

    Returns
    -------
    Classes
    """
    rng, L, Q = generator(rng), positive_int("L", L), positive_int("Q", Q)
    room("Q", Q, Q * Q), room("L", L, L * Q * Q)
    M = rng.uniform(0.1, 0.3, size=(L, Q))
    delta = rng.uniform(0.0, 0.1, size=(L, Q))
    delta[:, -1] = -delta[:, :-1].sum(axis=1)
    return potts(M / M.sum(axis=1, keepdims=True), delta)


def d3(rng, L=200, Q=10):
    """Make the paper's third data set: independent sites with normal frequencies (used with α⁺ = 4.5, κ = 2).

    Printed is: M± ~ N(0.8 ± 0.2, 0.1), then each site divided by its sum. We read 0.1 as the standard deviation, so
    that M⁺ has mean 1.0 and M⁻ mean 0.6 before they are normalised; a variance of 0.1 would make one in 35 of the
    latter negative. A negative draw (6 standard deviations away: one in 10⁹) is drawn again. M± do not depend on L, so
    that δ grows as √L, and the classes keep covariances that differ by a few percent at any L.

    Parameters
    ----------
    rng : numpy.random.Generator or int
        Source of randomness, or a seed for one.
    L, Q : int
        Number of sites and of states.

    Returns
    -------
    Classes
    """
    rng, L, Q = generator(rng), positive_int("L", L), positive_int("Q", Q)
    room("Q", Q, Q * Q), room("L", L, L * Q * Q)
    means = []
    for centre in (1.0, 0.6):
        M = rng.normal(centre, 0.1, size=(L, Q))
        while (M <= 0.0).any():
            M[M <= 0.0] = rng.normal(centre, 0.1, size=np.count_nonzero(M <= 0.0))
        means.append(M / M.sum(axis=1, keepdims=True))
    return potts(0.5 * (means[0] + means[1]), np.sqrt(L) * (means[0] - means[1]))


def _draw_spins(p, n, rng):
    return np.where(rng.random((n, p.size)) < p, 1.0, -1.0)


def _draw_states(edges, n, rng):
    return search(rng.random((n, len(edges))), edges)


def _draw_gaussian(mean, root, n, rng):
    X = rng.normal(size=(n, root.shape[-1]))
    return mean + (X * root if root.ndim == 1 else X @ root.T)


def _edges(frequencies):
    """Return the edges (L, Q-1) between states on [0, 1]; states at the end that never occur are out of reach."""
    edges = np.cumsum(frequencies, axis=1)[:, :-1]
    rest = np.cumsum(frequencies[:, :0:-1], axis=1)[:, ::-1]
    return np.where(rest > 0.0, edges, np.inf)
