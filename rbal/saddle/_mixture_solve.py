"""Solve the saddle points of a mixture, and return them with one entry a cluster."""

import warnings
from dataclasses import dataclass, fields, replace
from operator import itemgetter

import numpy as np

from .._support.validation import broadcast, in_range, number, position, positive_int
from .._support.warnings import convergence_warning
from ..losses import EQUALITY, HINGE, record_of
from ..metrics import MixtureMetrics
from ..moments import Mixture
from ._equations import COLLAPSED, RIDGE, SAT, UNSAT
from ._mixture_data import Clusters, losses_at, report_at
from ._mixture_fallback import (
    Result,
    Task,
    can_vanish,
    major,
    margin_of,
    solve_edge,
    solve_ridge,
    solve_sphere,
    with_mode,
)
from ._newton import FEW
from ._population import Sphere, as_ridge, samples_of, solve_population
from ._solve import PHASES, Point, Solution, check_single, checked_point

EACH = ("m", "q", "x", "x_hat", "q_hat", "m_hat")  # results with one entry a cluster
SINGLE = ("r", "b", "k_hat", "r_hat", "train_loss", "train_error")


@dataclass(frozen=True, slots=True)
class MixtureSolution(Solution):
    r"""Saddle point of a mixture, or many: a :class:`rbal.Solution` with one entry a cluster where there are several.

    Attributes
    ----------
    m, q, x : (..., K) array
        Mean of the score of each cluster (before the bias is subtracted), its variance, and the susceptibility; in the
        SAT phase q is the overlap of two typical solutions and x the spread w.
    m_hat, q_hat, x_hat : (..., K) array
        Their conjugates; :math:`\hat m_c` has the sign of the label.
    r, r_hat, b, k_hat
        One number each: the distance between the class means of the score, half the difference of the classes' sums of
        :math:`\hat m`, the bias counted from ``mixture.M``, and the multiplier.
    mixture : Mixture
        The clusters.
    """

    m: np.ndarray
    m_hat: np.ndarray
    mixture: Mixture

    @property
    def variance(self):
        """Variance of a test score of each cluster: q, or q + w in the SAT phase."""
        return self.q + np.where(np.asarray(self.phase)[..., None] == "SAT", self.x, 0.0)

    @property
    def metrics(self):
        """Test metrics of this solution, as :class:`rbal.metrics.MixtureMetrics`."""
        mean = self.m - np.asarray(self.b)[..., None]
        return MixtureMetrics(mean, self.variance, self.mixture.signs, self.mixture.shares)

    def unbiased(self, tol=1e-9, max_iter=300):
        """Return the solution of the population, from that of a mixture which was estimated from rows.

        Covariances and centres of few rows flatter a classifier. Their resolvents tell what those of the population
        are, whose saddle point this is. It exists where the training sets that are asked about have no more rows than
        the mixture was estimated from, often beyond. On the sphere its phase may be another: few rows look separable.

        Parameters
        ----------
        tol : float
            Residual to reach.
        max_iter : int
            Largest number of iterations.

        Returns
        -------
        MixtureSolution
            Of the same points; NaN, with a warning, where there is none.
        """
        tol, max_iter = number("tol", tol, 0.0, open_low=True), positive_int("max_iter", max_iter)
        samples = samples_of(self.mixture)
        shape = np.shape(self.b)
        results = {f.name: np.array(getattr(self, f.name)) for f in fields(self) if f.name in (*EACH, *SINGLE)}
        results |= {name: np.array(getattr(self, name)) for name in ("residual", "n_iter", "converged")}
        results["phase"] = np.array(self.phase, f"<U{max(map(len, PHASES))}")
        for index in np.ndindex(shape):
            one = self[index] if shape else self
            if one.converged and one.phase != PHASES[COLLAPSED]:
                for name, value in _population_results(one, samples, tol, max_iter).items():
                    results[name][index] = value
        _warn_unless(results["converged"])
        return replace(self, **{name: value if value.ndim else value.item() for name, value in results.items()})

    def of_cluster(self, cluster):
        """Return the solution of one cluster, as if it were both classes: its law of scores and its margin.

        Parameters
        ----------
        cluster : int

        Returns
        -------
        Solution
            With q, x, q̂ and x̂ of the cluster, and r = 2 y m.
        """
        cluster = position("cluster", cluster, self.mixture.signs.size)
        sign = self.mixture.signs[cluster]
        values = {f.name: getattr(self, f.name) for f in fields(Solution)}
        values |= {name: getattr(self, name)[..., cluster][()] for name in ("q", "x", "q_hat", "x_hat")}
        margin = self.kappa if sign > 0 else self.kappa_neg
        values |= {"r": 2.0 * sign * self.m[..., cluster][()], "r_hat": 0.5 * sign * self.m_hat[..., cluster][()]}
        values |= {name: margin for name in ("kappa", "kappa_neg") if name in values}
        return Solution(**values)

    def __getitem__(self, index):
        """Return one point of a sweep, or some."""
        if np.ndim(self.b) == 0:
            raise IndexError("this is the solution of one point, which has no parts")
        index = index if isinstance(index, tuple) else (index,)
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        parts = {
            name: value[(*index, slice(None))] if name in EACH and Ellipsis in index else value[index]
            for name, value in values.items()
            if isinstance(value, np.ndarray)
        }
        return replace(self, **{name: p.item() if np.ndim(p) == 0 else p for name, p in parts.items()})


_in_order = itemgetter(*(f.name for f in fields(MixtureSolution)))


def solve_mixture(mixture, point, kappa_neg, options):
    """Return the solution at one point."""
    point = _checked(point, kappa_neg, options)
    check_single(point.values())
    results, _ = _solved(mixture, point, options, (None, -1))
    if not results["converged"]:
        _warn_unless(False)
    return _solution(results, point, mixture, options)


def sweep_mixture(mixture, point, kappa_neg, options):
    """Return the solutions at points that broadcast; neighbours along the last axis start from each other."""
    point = _checked(point, kappa_neg, options)
    columns = dict(zip(point, broadcast(**point), strict=True))
    shape, K = columns["alpha_pos"].shape, mixture.labels.size
    results = {name: np.empty((*shape, K)) for name in EACH}
    results |= {name: np.empty(shape) for name in (*SINGLE, "residual")}
    results |= {"n_iter": np.empty(shape, int), "phase": np.empty(shape, f"<U{max(map(len, PHASES))}")}
    results["converged"], start = np.empty(shape, bool), (None, -1)
    for index in np.ndindex(shape):
        if not index or index[-1] == 0:
            start = None, -1
        one, start = _solved(mixture, {name: float(c[index]) for name, c in columns.items()}, options, start)
        for name, value in one.items():
            results[name][index] = value
    _warn_unless(results["converged"])
    return _solution(results, columns, mixture, options)


def _solution(results, point, mixture, options):
    """Return the solution, from results and arguments by name."""
    results |= point
    if options.model != "svm":
        results["lam"] = None
    results |= {"model": options.model, "loss": options.law.name, "fit_bias": options.fit_bias, "mixture": mixture}
    return MixtureSolution(*_in_order(results))  # positional: keyword construction takes longer


def _checked(point, kappa_neg, options):
    """Check the arguments of a point, or of many; return them by name."""
    law = options.law
    # at κ = 0 a loss with a margin is least at weights 0, if these are allowed, and so is an equality
    open_low = law.margin > 0.0 and (options.model == "svm" or law.constraint is EQUALITY)
    kappa = in_range("kappa", law.margin if point.kappa is None else point.kappa, 0.0, open_low=open_low)
    kappa_neg = kappa if kappa_neg is None else in_range("kappa_neg", kappa_neg, 0.0, open_low=open_low)
    return checked_point(point._replace(kappa=kappa), options)._asdict() | {"kappa_neg": kappa_neg}


def _solved(mixture, point, options, start):
    """Return the results at a point by name, and (state, phase) from which a neighbour can start."""
    laws, widest = options.law.laws, options.law.widest
    problem = _problem(mixture, RIDGE if options.model == "svm" else UNSAT, laws[0], point, options.fit_bias)
    task = Task(laws, mixture.blocks, options.tol, min(options.max_iter, FEW) if widest < np.inf else options.max_iter)
    solve = solve_ridge if options.model == "svm" else solve_sphere
    result = solve(task, problem, *start)
    y, phase, converged = result.y, result.phase, result.residual <= options.tol
    if converged and phase == UNSAT and widest < np.inf:
        converged = (problem.width * np.exp(y[problem.shape])).max() <= widest**2
    if converged:
        results = report(task, problem, result)
    else:
        results = dict.fromkeys(SINGLE, np.nan) | {name: np.full(problem.alpha.size, np.nan) for name in EACH}
    results["residual"], results["n_iter"] = float(result.residual), int(result.n_iter)
    results["phase"], results["converged"] = PHASES[phase], bool(converged)
    return results, (y, phase) if converged and phase != COLLAPSED else (None, -1)


def _population_results(sol, samples, tol, max_iter):
    """Return the results of one point for the population. Its phase may be the other one: few rows look separable."""
    mixture, laws = sol.mixture, record_of(sol.loss).laws
    point = {name: getattr(sol, name) for name in (*Point._fields, "kappa_neg")}
    problem = _problem(mixture, RIDGE, laws[0], point | {"lam": 0.0}, sol.fit_bias)
    task, total = Task(laws, None, tol, max_iter), 0
    phases = sorted((UNSAT, SAT), key=lambda phase: PHASES[phase] != sol.phase)
    for phase in phases if sol.model != "svm" and can_vanish(task) else [UNSAT]:
        p = as_ridge(problem._replace(law=laws[1 if phase == SAT else 0]))
        x = sol.x if PHASES[phase] == sol.phase else np.sqrt(sol.q)
        start = np.concatenate([np.log(sol.q), np.log(x), sol.m, [sol.b, sol.k_hat]])
        sphere = None if sol.model == "svm" else Sphere(float(mixture.Q), bool(phase == SAT))
        residual, n, y = solve_population(samples, p, sphere, start, tol, max_iter)
        total += n
        if residual <= tol:
            break
    converged = bool(residual <= tol)
    results = (
        report(task, p, Result(phase, residual, total, y)) if converged else dict.fromkeys((*EACH, *SINGLE), np.nan)
    )
    return results | {"residual": float(residual), "n_iter": total, "converged": converged, "phase": PHASES[phase]}


def critical_margins(mixture, alpha_pos, alpha_neg, fit_bias, tol):
    """Return the critical margins at sizes (n,), the same for both classes, and whether each converged, (n,)."""
    laws = HINGE.laws
    task = Task(laws, mixture.blocks.visible(), tol, 200)
    margin, converged = np.empty(alpha_pos.size), np.empty(alpha_pos.size, bool)
    point = {"kappa": 0.0, "kappa_neg": 0.0, "weight_pos": 1.0, "weight_neg": 1.0, "lam": 0.0}
    for j, sizes in enumerate(zip(alpha_pos, alpha_neg, strict=True)):
        point["alpha_pos"], point["alpha_neg"] = sizes
        problem = _problem(mixture, UNSAT, laws[0], point, fit_bias)
        residual, _, y = solve_edge(task, problem)
        margin[j], converged[j] = y[problem.n_shapes], residual <= tol
    if mixture.blocks.g_null > 0.0:  # weights on features that never vary give every sample the score 0
        margin = np.maximum(margin, 0.0)
    return np.where(converged, margin, np.nan), converged


def _problem(mixture, mode, law, point, fit_bias):
    """Return the problem of a mixture at a point."""
    by_class = np.array([
        (point["alpha_neg"], point["alpha_pos"]),
        (point["kappa_neg"], point["kappa"]),
        (point["weight_neg"], point["weight_pos"]),
    ])  # fmt: skip
    alpha, kappa, weight = by_class.take(mixture._places, axis=1)
    alpha *= mixture.shares
    return Clusters(
        mode, law, alpha, mixture.signs, kappa, weight, mixture._shape, mixture._width, len(mixture._covs),
        float(mixture.Q), float(point["lam"]), fit_bias,
    )  # fmt: skip


def report(task, problem, result):
    """Return order parameters, hats, training loss and error of a solution, by name."""
    if result.phase == COLLAPSED:
        return _collapsed(problem)
    if result.report is None:
        sat = result.phase == SAT
        each = np.empty((len(EACH), problem.alpha.size))
        r, r_hat = report_at(with_mode(task, problem, SAT) if sat else problem, result.y, each)
        loss, error = (0.0, 0.0) if sat else losses_at(problem, result.y)
    else:
        each, (r, r_hat, loss, error) = result.report.each, result.report.single.tolist()
    values = dict(zip(EACH, each, strict=True))
    b, k_hat = result.y[-2:].tolist()
    if problem.mode != RIDGE:
        k_hat -= task.block.lowest(np.bincount(problem.shape, problem.width * values["x_hat"], problem.n_shapes))
    values["r"], values["b"], values["k_hat"], values["r_hat"] = r, b, k_hat, r_hat
    values["train_loss"], values["train_error"] = loss, error
    return values


def _collapsed(problem):
    """Return the results of vanishing weights, where the classifier answers the major class."""
    side = major(problem)
    pull = problem.alpha * problem.weight
    minor_share = pull[problem.label != side].sum() / pull.sum()
    margin = margin_of(problem, side)
    zeros = np.zeros(problem.alpha.size)
    unknown = np.full(problem.alpha.size, np.nan)
    both = margin + margin_of(problem, -side)
    return {
        "m": zeros, "q": zeros, "x": zeros, "r": 0.0, "b": float(-side * margin),
        "k_hat": problem.ridge if problem.mode == RIDGE else 0.0, "x_hat": unknown, "q_hat": unknown,
        "m_hat": unknown, "r_hat": np.nan, "train_loss": float(both * minor_share),
        "train_error": float(minor_share) if margin > 0.0 else 0.0,  # at κ = 0 every score is 0, and none is wrong
    }  # fmt: skip


def _warn_unless(converged):
    if not np.all(converged):
        warnings.warn(
            f"{np.sum(np.logical_not(converged))} of {np.size(converged)} saddle points did not converge: "
            "their values are NaN",
            convergence_warning(),
            stacklevel=4,
        )
