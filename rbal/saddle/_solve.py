"""Solve one saddle point or many: check the arguments, walk from point to point, and return a Solution."""

import warnings
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np

from .._support import parallel
from .._support.validation import broadcast, flag, in_range, number, one_of, positive_int
from .._support.warnings import convergence_warning
from ..losses import Loss, record_of
from ..metrics import Metrics
from ..moments import Mixture, spectrum_of
from ._class_margins import margins_of, moved
from ._continuation import COLUMNS, N_COLUMNS, Walks, walk, walk_parallel
from ._equations import RIDGE, UNSAT, Settings
from ._fallback import tables_and_fallback
from ._newton import newton_address

MODELS = ("perceptron", "svm")
PHASES = ("UNSAT", "SAT", "COLLAPSED")
SAME_WIDTHS = (1.0, 1.0)  # of classes with one covariance; the last two columns of a point
LARGEST_SIZE = 1e100  # largest class size over L, beyond which sums overflow
CHUNK = 64  # points of a sweep that share one warm-started walk
NO_NOISE = 1e-7  # variance, relative to the largest, below which the solver treats a direction as one without noise
BLOCK = 2048 * CHUNK  # points at a time, so that the memory of a sweep, without its result, stays at some 40 MB


class Options(NamedTuple):
    """Arguments that all points of a call share."""

    law: Loss
    model: str
    fit_bias: bool
    tol: float
    max_iter: int


class Point(NamedTuple):
    """Arguments of one point, or of many as arrays: the first columns of a walk."""

    kappa: float
    alpha_pos: float
    alpha_neg: float
    weight_pos: float
    weight_neg: float
    lam: float | None


@dataclass(frozen=True, slots=True)
class Solution:
    r"""Saddle point of one problem, or of many, in which case every attribute is an array.

    Attributes
    ----------
    q, r, b : float
        Variance of the score within a class, distance between the class means of the score, bias (counted from the
        midpoint of the data). In the SAT phase q is the overlap of two typical solutions; see :attr:`variance`.
    x : float
        Susceptibility in the UNSAT phase; the spread w = q₀ - q of the solutions in the SAT phase.
    k_hat, x_hat, q_hat, r_hat : float
        Conjugates, signs such that q̂, r̂ > 0. k̂ is the multiplier of the sphere (of either sign) or the ridge of an SVM.
    train_loss, train_error : float
        Weighted means over the training set.
    phase : str
        "UNSAT"; "SAT" where zero loss is possible (then these are typical zero-loss weights); "COLLAPSED" where no
        weights lower the loss and the classifier answers the majority class (q = r = 0, the hats are undefined).
    converged : bool
        Whether ``residual <= tol`` (and, for the logistic loss, its quadrature resolves √q, up to 125). Where it is
        False every number is NaN.
    residual : float
        Largest relative violation of the saddle-point equations.
    n_iter : int
        Newton iterations, over all attempts.
    alpha_pos, alpha_neg, kappa, kappa_neg, weight_pos, weight_neg, lam, model, loss, fit_bias
        The arguments; ``lam`` is None for the perceptron, ``kappa_neg`` that of the negatives.
    """

    q: float
    r: float
    b: float
    x: float
    k_hat: float
    x_hat: float
    q_hat: float
    r_hat: float
    train_loss: float
    train_error: float
    residual: float
    n_iter: int
    phase: str
    converged: bool
    alpha_pos: float
    alpha_neg: float
    kappa: float
    kappa_neg: float
    weight_pos: float
    weight_neg: float
    lam: float | None
    model: str
    loss: str
    fit_bias: bool

    @property
    def variance(self):
        """Variance of a test score: q, or q + w in the SAT phase."""
        return self.q + np.where(np.asarray(self.phase) == "SAT", self.x, 0.0)

    @property
    def metrics(self):
        """Test metrics of this solution, as :class:`rbal.Metrics`."""
        return Metrics(self.variance, self.r, self.b)

    def __getitem__(self, index):
        """Return one point of a sweep, or some."""
        if np.ndim(self.q) == 0:
            raise IndexError("this is the solution of one point, which has no parts")
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        parts = {name: value[index] for name, value in values.items() if isinstance(value, np.ndarray)}
        return replace(self, **{name: p.item() if np.ndim(p) == 0 else p for name, p in parts.items()})


def solve(
    moments,
    alpha_pos,
    alpha_neg,
    kappa=None,
    *,
    model="perceptron",
    loss="hinge",
    lam=None,
    kappa_neg=None,
    weight_pos=1.0,
    weight_neg=1.0,
    fit_bias=True,
    tol=1e-10,
    max_iter=200,
):
    """Return the order parameters of a linear classifier trained on two classes, in the high-dimensional limit.

    Parameters
    ----------
    moments : Moments, Spectrum or Mixture
        Statistics of the classes, or the spectrum that the solver needs of them. For a Mixture the solution has one
        entry a cluster where there are several; sizes are those of the classes, split by the shares of their clusters.
    alpha_pos, alpha_neg : float
        Class sizes over L.
    kappa : float, optional
        Margin, of both classes or of the positives; 1 by default, and 0 (no shift) for the logistic loss.
    model : {"perceptron", "svm"}
        Weights on the sphere ‖J‖² = L·Q, or with the ridge ``lam``/2 ‖J‖² added to the summed loss.
    loss : {"hinge", "squared_hinge", "square", "logistic"} or Loss
        Loss of the signed score u: (κ - u)₊, (κ - u)₊², (κ - u)², log(1 + exp(κ - u)), or another in ``LOSSES``.
    lam : float
        Ridge of the SVM. scikit-learn's C is 1/lam, on inputs divided by √L.
    kappa_neg : float, optional
        Margin of the negatives, if it is another one. For two classes with one covariance the weights are then those of
        the mean of both margins, and the bias is moved by half of their difference: their mean must be a margin that is
        allowed, and there must be a bias.
    weight_pos, weight_neg : float
        Factors on the loss of each class: class weights, or multiplicities of oversampling.
    fit_bias : bool
        Whether a bias is trained; without it b = 0, which is the midpoint M of the data. This describes a machine
        without an intercept only if M = 0. Otherwise its weights along M act as a bias: for many features it is a
        machine with a free bias, on data whose shift and covariance are projected orthogonal to M.
    tol : float
        Residual at which to stop.
    max_iter : int
        Newton iterations per attempt.

    Returns
    -------
    Solution

    Warns
    -----
    ConvergenceWarning
        When no attempt reaches ``tol``; the solution then holds NaN.

    Examples
    --------
    >>> import rbal
    >>> classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    >>> sol = rbal.solve(classes, alpha_pos=2.0, alpha_neg=5.0, kappa=0.5)
    >>> sol.phase, bool(sol.converged)
    ('UNSAT', True)
    >>> print(f"BA {sol.metrics.ba():.4f}, at the best threshold {sol.metrics.best_ba():.4f}")
    BA 0.6259, at the best threshold 0.6453
    """
    options = checked_options(model, loss, fit_bias, tol, max_iter)
    if isinstance(moments, Mixture):
        from ._mixture_solve import solve_mixture

        point = Point(kappa, alpha_pos, alpha_neg, weight_pos, weight_neg, lam)
        return solve_mixture(moments, point, kappa_neg, options)
    margins = margins_of(kappa, kappa_neg, options.law, model, options.fit_bias)
    spectrum = spectrum_of(moments)
    point = checked_point(Point(margins.mean, alpha_pos, alpha_neg, weight_pos, weight_neg, lam), options)
    check_single(point)
    settings = _settings(spectrum, options)
    out = np.empty((1, N_COLUMNS))
    _walk(settings, options.law, spectrum, np.array([point + SAME_WIDTHS]), np.empty(5), out)
    *numbers, n_iter, phase, converged = out[0].tolist()
    if not converged:
        _warn_of(1, 1, _cause(spectrum, options.law), stacklevel=3)
    # Positional, in the order of the fields: keyword construction costs 10 % of a solve.
    sol = Solution(
        *numbers, int(n_iter), PHASES[int(phase)], bool(converged), *point[1:3], point.kappa, point.kappa, *point[3:5],
        point.lam if model == "svm" else None, model, loss, options.fit_bias,
    )  # fmt: skip
    if kappa_neg is None:
        return sol
    values = {f.name: getattr(sol, f.name) for f in fields(sol)}
    return replace(sol, **{name: value.item() for name, value in moved(values, margins, options.law).items()})


def sweep(
    moments,
    alpha_pos,
    alpha_neg,
    kappa=None,
    *,
    model="perceptron",
    loss="hinge",
    lam=None,
    kappa_neg=None,
    weight_pos=1.0,
    weight_neg=1.0,
    fit_bias=True,
    tol=1e-10,
    max_iter=200,
):
    """Solve for arrays that broadcast as :func:`solve` does for numbers, warm-started and on all cores.

    Neighbours along the last axis start from each other. The result does not depend on the number of threads.

    Parameters
    ----------
    moments, model, loss, fit_bias, tol, max_iter
        As in :func:`solve`.
    alpha_pos, alpha_neg, kappa, kappa_neg, lam, weight_pos, weight_neg : float or array
        As in :func:`solve`.

    Returns
    -------
    Solution
        With arrays of the broadcast shape as attributes.

    Examples
    --------
    >>> import numpy as np, rbal
    >>> classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    >>> rbal.sweep(classes, alpha_pos=2.0, alpha_neg=np.array([1.0, 2.0, 4.0]), kappa=0.5).metrics.ba().round(4)
    array([0.6064, 0.6311, 0.6313])
    """
    options = checked_options(model, loss, fit_bias, tol, max_iter)
    if isinstance(moments, Mixture):
        from ._mixture_solve import sweep_mixture

        point = Point(kappa, alpha_pos, alpha_neg, weight_pos, weight_neg, lam)
        return sweep_mixture(moments, point, kappa_neg, options)
    margins = margins_of(kappa, kappa_neg, options.law, model, options.fit_bias)
    values = _swept(moments, Point(margins.mean, alpha_pos, alpha_neg, weight_pos, weight_neg, lam), options)
    if kappa_neg is not None:
        values |= moved(values, margins, options.law)
    return Solution(**values, model=model, loss=loss, fit_bias=options.fit_bias)


def sweep_widths(spectrum, widths, alpha_pos, alpha_neg, *, lam, loss="hinge", weight_pos=1.0, weight_neg=1.0):
    """Solve SVMs as :func:`sweep` does, for classes whose covariances are the common one times a width each.

    This is what a :class:`rbal.Mixture` of two such clusters gives, by the equations of one covariance. One core solves
    all points: what several cores share takes long to compile.

    Parameters
    ----------
    spectrum : Spectrum
        Of the common covariance and the shift.
    widths : pair of floats or arrays
        Widths of the positive and the negative class, > 0.
    alpha_pos, alpha_neg, lam, weight_pos, weight_neg : float or array
    loss : str
        As in :func:`sweep`.

    Returns
    -------
    Solution
        Its q and x are those of the width 1: the scores of a class have q and x times its width.
    """
    options = Options(record_of(loss), "svm", True, 1e-10, 200)
    point = Point(options.law.margin, alpha_pos, alpha_neg, weight_pos, weight_neg, lam)
    widths = tuple(in_range("widths", width, 0.0, open_low=True) for width in widths)
    return Solution(**_swept(spectrum, point, options, widths), model="svm", loss=loss, fit_bias=True)


def checked_options(model, loss, fit_bias, tol, max_iter):
    """Check the arguments that all points share; return the Options."""
    return Options(
        record_of(loss), one_of("model", model, MODELS), flag("fit_bias", fit_bias), number("tol", tol, 1e-14),
        positive_int("max_iter", max_iter, 2**31),
    )  # fmt: skip


def checked_point(point, options):
    """Check the sizes, weights and ridge of a point, or of many; the margin is checked already."""
    kappa, alpha_pos, alpha_neg, weight_pos, weight_neg, lam = point
    if options.model == "svm":
        if lam is None:
            raise ValueError("lam must be given for model='svm'")
        lam = in_range("lam", lam, 0.0, open_low=True)
    elif lam is not None:
        raise ValueError("lam goes with model='svm': the perceptron's norm is fixed")
    return Point(
        kappa,
        in_range("alpha_pos", alpha_pos, 0.0, LARGEST_SIZE, open_low=True),
        in_range("alpha_neg", alpha_neg, 0.0, LARGEST_SIZE, open_low=True),
        in_range("weight_pos", weight_pos, 0.0, open_low=True),
        in_range("weight_neg", weight_neg, 0.0, open_low=True),
        0.0 if lam is None else lam,
    )


def check_single(values):
    """Refuse arrays among the arguments of one point."""
    if any([isinstance(value, np.ndarray) and value.ndim for value in values]):  # noqa: C419 - a list is faster
        raise ValueError(
            "alpha_pos, kappa and the like must be numbers in solve, which takes one point; for arrays use rbal.sweep"
        )


def _settings(spectrum, options):
    """Return the Settings of compiled code."""
    mode = RIDGE if options.model == "svm" else UNSAT
    compiled = tables_and_fallback(options.law, mode)
    return Settings(
        mode, compiled.calls, compiled.traits, float(spectrum.Q), options.fit_bias, options.tol, options.max_iter,
        newton_address(), compiled.fallback,
    )  # fmt: skip


def _swept(moments, point, options, widths=SAME_WIDTHS):
    """Solve many points; return the fields of a Solution that are arrays, by name."""
    spectrum, point = spectrum_of(moments), checked_point(point, options)
    settings, arguments = _settings(spectrum, options), point._asdict()
    if widths is not SAME_WIDTHS:
        arguments |= dict(zip(("width_pos", "width_neg"), widths, strict=True))
    columns = broadcast(**arguments)
    shape, size, names = columns[0].shape, columns[0].size, np.array(PHASES)
    dtypes = dict.fromkeys(COLUMNS, float) | {"n_iter": int, "phase": names.dtype, "converged": bool}
    results = {name: np.empty(size, dtype) for name, dtype in dtypes.items()}
    for lo in range(0, size, BLOCK):
        block = slice(lo, min(lo + BLOCK, size))
        points, out = np.ones((block.stop - lo, len(point) + 2)), np.empty((block.stop - lo, N_COLUMNS))
        for j, column in enumerate(columns):
            points[:, j] = column.flat[block]
        if widths is SAME_WIDTHS:
            _walks(settings, options.law, spectrum, points, out)
        else:
            for k in range(0, len(points), CHUNK):
                _walk(settings, options.law, spectrum, points[k : k + CHUNK], np.empty(5), out[k : k + CHUNK])
        for name, column in zip(COLUMNS, out.T, strict=True):
            results[name][block] = names[column.astype(int)] if name == "phase" else column
    results = {name: values.reshape(shape) for name, values in results.items()}
    if not results["converged"].all():
        _warn_of(np.sum(~results["converged"]), size, _cause(spectrum, options.law), stacklevel=4)
    results |= dict(zip(Point._fields, columns, strict=False)) | {"kappa_neg": columns[0]}
    return results if options.model == "svm" else results | {"lam": None}


def _walk(settings, law, spectrum, points, y, out):
    """Walk over the points (n, 8) into the rows of out; the fallback is compiled when a point needs it."""
    phase, done = -1, 0
    if len(points) == 1:  # the usual call: skip what cuts long walks into pieces
        _, done = walk(settings, spectrum, points, y, phase, out)
        if done:
            return
        settings = _with_fallback(settings, law)
    for _, stop in parallel.pieces(len(points)):
        while done < stop:
            phase, n = walk(settings, spectrum, points[done:stop], y, phase, out[done:stop])
            done += n
            if done < stop:
                settings = _with_fallback(settings, law)


def _walks(settings, law, spectrum, points, out):
    """Solve the points (n, 8) into the rows of out, in walks of CHUNK points, a few steps of a few walks at a time."""
    n = -(-len(points) // CHUNK)
    y = np.empty((n, 5))
    if n == 1:  # nothing to share between cores
        _walk(settings, law, spectrum, points, y[0], out)
        return
    walks, size = Walks(CHUNK, points, out, y, np.full(n, -1), np.zeros(n, int)), 8
    for which in parallel.pieces(n):
        for lo, hi in parallel.pieces(CHUNK, size):
            parallel.run(walk_parallel, settings, spectrum, walks, which, hi)
            if settings.fallback == 0 and _any_stopped(walks, which, hi):
                settings = _with_fallback(settings, law)
                parallel.run(walk_parallel, settings, spectrum, walks, which, hi)
            if hi < CHUNK:  # a full piece: the next walks begin with as many steps
                size = hi - lo


def _any_stopped(walks, which, until):
    """Whether one of some walks stopped at a point that needs the fallback."""
    i = np.arange(*which)
    return np.any(walks.done[i] < np.minimum(until, len(walks.points) - i * walks.chunk))


def _with_fallback(settings, law):
    """Return the settings with the fallback for this loss, which is compiled if need be."""
    return settings._replace(**tables_and_fallback(law, settings.mode, needed=True)._asdict())


def _cause(spectrum, law):
    """Return why the saddle point does not exist as a point, but as a limit, if that is known."""
    if law.kinked and np.any(spectrum.s[spectrum.lam <= NO_NOISE * spectrum.lam[-1]] > 0.0):
        return (
            " (the classes differ along directions without variance: where these alone separate them, all samples lie "
            "on the kink of the loss and q = 0; drop these directions, or use a loss without a kink)"
        )
    return ""


def _warn_of(failed, total, cause, stacklevel):
    warnings.warn(
        f"{failed} of {total} saddle points did not converge: their values are NaN{cause}",
        convergence_warning(),
        stacklevel=stacklevel,
    )
