"""Solve one saddle point or many: check the arguments, walk from point to point, and return a Solution."""

import warnings
from dataclasses import dataclass, fields, replace

import numpy as np

from .._support import parallel
from .._support.validation import broadcast, flag, in_range, number, one_of, positive_int
from .._support.warnings import convergence_warning
from ..losses import record_of
from ..metrics import Metrics
from ..moments import Mixture, spectrum_of
from ._class_margins import margins_of, moved
from ._continuation import COLUMNS, N_COLUMNS, Walks, walk, walk_parallel
from ._equations import RIDGE, UNSAT, Question
from ._fallback import tables_and_rescue
from ._newton import newton_address

MODELS = ("perceptron", "svm")
PHASES = ("UNSAT", "SAT", "COLLAPSED")
POINT = ("kappa", "alpha_pos", "alpha_neg", "weight_pos", "weight_neg", "lam")  # what a point of a walk is asked for
ALIKE = (1.0, 1.0)  # widths of classes with one covariance, which are the last two columns of a point
LARGEST_SIZE = 1e100  # largest class size over L, beyond which sums overflow
CHUNK = 64  # points of a sweep that share one warm-started walk
STILL = 1e-7  # variance, relative to the largest, below which a direction is one without noise to the solver
BLOCK = 2048 * CHUNK  # points at a time, so that what a sweep takes beside its result does not grow: some 40 MB


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
    if isinstance(moments, Mixture):
        from ._mixture_solve import asked_of, solve_mixture

        point = {"alpha_pos": alpha_pos, "alpha_neg": alpha_neg, "kappa": kappa, "kappa_neg": kappa_neg, "lam": lam}
        point |= {"weight_pos": weight_pos, "weight_neg": weight_neg}
        return solve_mixture(moments, point, asked_of(model, loss, fit_bias, tol, max_iter))
    law, fit_bias = record_of(loss), flag("fit_bias", fit_bias)
    margins = margins_of(kappa, kappa_neg, law, one_of("model", model, MODELS), fit_bias)
    asked = (margins.mean, alpha_pos, alpha_neg, weight_pos, weight_neg, lam)
    spectrum, point, question = _checked(moments, asked, model, law, (fit_bias, tol, max_iter))
    if any(isinstance(value, np.ndarray) and value.ndim for value in point):
        raise ValueError(
            "alpha_pos, kappa and the like must be numbers in solve, which takes one point; for arrays use rbal.sweep"
        )
    out = np.empty((1, N_COLUMNS))
    _walk(question, law, spectrum, np.array([point + ALIKE]), np.empty(5), out)
    *numbers, n_iter, phase, converged = out[0].tolist()
    if not converged:
        _warn_of(1, 1, _cause(spectrum, law), stacklevel=3)
    # in the order of the fields: names would take a tenth of the time of a solve
    asked = (*point[1:3], point[0], point[0], *point[3:5], point[5] if model == "svm" else None, model, loss, fit_bias)
    sol = Solution(*numbers, int(n_iter), PHASES[int(phase)], bool(converged), *asked)
    if kappa_neg is None:
        return sol
    found = {f.name: getattr(sol, f.name) for f in fields(sol)}
    return replace(sol, **{name: value.item() for name, value in moved(found, margins, law).items()})


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
    if isinstance(moments, Mixture):
        from ._mixture_solve import asked_of, sweep_mixture

        point = {"alpha_pos": alpha_pos, "alpha_neg": alpha_neg, "kappa": kappa, "kappa_neg": kappa_neg, "lam": lam}
        point |= {"weight_pos": weight_pos, "weight_neg": weight_neg}
        return sweep_mixture(moments, point, asked_of(model, loss, fit_bias, tol, max_iter))
    law, fit_bias = record_of(loss), flag("fit_bias", fit_bias)
    margins = margins_of(kappa, kappa_neg, law, one_of("model", model, MODELS), fit_bias)
    asked = (margins.mean, alpha_pos, alpha_neg, weight_pos, weight_neg, lam)
    found = _swept(moments, asked, model, law, (fit_bias, tol, max_iter))
    if kappa_neg is not None:
        found |= moved(found, margins, law)
    return Solution(**found, model=model, loss=loss, fit_bias=fit_bias)


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
    law = record_of(loss)
    asked = (law.margin, alpha_pos, alpha_neg, weight_pos, weight_neg, lam)
    widths = tuple(in_range("widths", width, 0.0, open_low=True) for width in widths)
    found = _swept(spectrum, asked, "svm", law, (True, 1e-10, 200), widths)
    return Solution(**found, model="svm", loss=loss, fit_bias=True)


def _swept(moments, asked, model, law, accuracy, widths=ALIKE):
    """Solve many points; return the fields of a Solution that are arrays, by name."""
    spectrum, point, question = _checked(moments, asked, model, law, accuracy)
    asked = dict(zip(POINT, point, strict=True))
    asked |= {} if widths is ALIKE else dict(zip(("width_pos", "width_neg"), widths, strict=True))
    columns = broadcast(**asked)
    shape, size, names = columns[0].shape, columns[0].size, np.array(PHASES)
    kinds = dict.fromkeys(COLUMNS, float) | {"n_iter": int, "phase": names.dtype, "converged": bool}
    found = {name: np.empty(size, kind) for name, kind in kinds.items()}
    for lo in range(0, size, BLOCK):
        here = slice(lo, min(lo + BLOCK, size))
        points, out = np.ones((here.stop - lo, len(POINT) + 2)), np.empty((here.stop - lo, N_COLUMNS))
        for j, column in enumerate(columns):
            points[:, j] = column.flat[here]
        if widths is ALIKE:
            _walks(question, law, spectrum, points, out)
        else:
            for k in range(0, len(points), CHUNK):
                _walk(question, law, spectrum, points[k : k + CHUNK], np.empty(5), out[k : k + CHUNK])
        for name, column in zip(COLUMNS, out.T, strict=True):
            found[name][here] = names[column.astype(int)] if name == "phase" else column
    found = {name: values.reshape(shape) for name, values in found.items()}
    if not found["converged"].all():
        _warn_of(np.sum(~found["converged"]), size, _cause(spectrum, law), stacklevel=4)
    found |= dict(zip(POINT, columns, strict=False)) | {"kappa_neg": columns[0]}
    return found if model == "svm" else found | {"lam": None}


def _walk(question, law, spectrum, points, y, out):
    """Walk over the points (n, 8) into the rows of out; what a rescue takes is compiled when a point needs one."""
    phase, done = -1, 0
    if len(points) == 1:  # a piece of its own, and most calls
        _, done = walk(question, spectrum, points, y, phase, out)
        if done:
            return
        question = _with_rescue(question, law)
    for _, stop in parallel.pieces(len(points)):
        while done < stop:
            phase, n = walk(question, spectrum, points[done:stop], y, phase, out[done:stop])
            done += n
            if done < stop:
                question = _with_rescue(question, law)


def _walks(question, law, spectrum, points, out):
    """Solve the points (n, 8) into the rows of out, in walks of CHUNK points, a few steps of a few walks at a time."""
    n = -(-len(points) // CHUNK)
    y = np.empty((n, 5))
    if n == 1:  # nothing to share between cores
        _walk(question, law, spectrum, points, y[0], out)
        return
    walks, size = Walks(CHUNK, points, out, y, np.full(n, -1), np.zeros(n, int)), 8
    for which in parallel.pieces(n):
        for lo, hi in parallel.pieces(CHUNK, size):
            parallel.run(walk_parallel, question, spectrum, walks, which, hi)
            if question.rescue == 0 and _left_behind(walks, which, hi):
                question = _with_rescue(question, law)
                parallel.run(walk_parallel, question, spectrum, walks, which, hi)
            if hi < CHUNK:  # a full piece: the next walks begin with as many steps
                size = hi - lo


def _left_behind(walks, which, until):
    """Whether one of some walks stands before a point that needs a rescue."""
    i = np.arange(*which)
    return np.any(walks.done[i] < np.minimum(until, len(walks.points) - i * walks.chunk))


def _with_rescue(question, law):
    """Return the question with the ways to go where the first attempt fails, for this loss."""
    calls, traits, rescue = tables_and_rescue(law, question.mode, needed=True)
    return question._replace(calls=calls, traits=traits, rescue=rescue)


def _checked(moments, asked, model, law, accuracy):
    """Check the arguments; return the spectrum, the columns of a point, and the Question that all points share."""
    spectrum = spectrum_of(moments)
    kappa, alpha_pos, alpha_neg, weight_pos, weight_neg, lam = asked
    if model == "svm":
        if lam is None:
            raise ValueError("lam must be given for model='svm'")
        lam = in_range("lam", lam, 0.0, open_low=True)
    elif lam is not None:
        raise ValueError("lam goes with model='svm': the perceptron's norm is fixed")
    fit_bias, tol, max_iter = accuracy
    tol, max_iter = number("tol", tol, 1e-14), positive_int("max_iter", max_iter, 2**31)
    point = (
        kappa,
        in_range("alpha_pos", alpha_pos, 0.0, LARGEST_SIZE, open_low=True),
        in_range("alpha_neg", alpha_neg, 0.0, LARGEST_SIZE, open_low=True),
        in_range("weight_pos", weight_pos, 0.0, open_low=True),
        in_range("weight_neg", weight_neg, 0.0, open_low=True),
        0.0 if lam is None else lam,
    )
    mode = RIDGE if model == "svm" else UNSAT
    calls, traits, rescue = tables_and_rescue(law, mode)
    norm = float(spectrum.Q)
    return (
        spectrum, point, Question(mode, calls, traits, norm, fit_bias, tol, max_iter, newton_address(), rescue)
    )  # fmt: skip


def _cause(spectrum, law):
    """Return what keeps a solution from being found, if that is known: then it is a limit, and not a point."""
    if law.kinked and np.any(spectrum.s[spectrum.lam <= STILL * spectrum.lam[-1]] > 0.0):
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
