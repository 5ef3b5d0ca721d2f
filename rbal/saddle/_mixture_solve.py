"""Solve the saddle points of a mixture, and return them with one entry a cluster."""

import warnings
from dataclasses import dataclass, fields, replace
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from .._support.validation import broadcast, flag, in_range, number, one_of, position, positive_int
from .._support.warnings import convergence_warning
from ..losses import EQUALITY, HINGE, LOSSES, Loss
from ..metrics import MixtureMetrics
from ..moments import Mixture
from ._equations import COLLAPSED, RIDGE, SAT, UNSAT
from ._mixture_data import Clusters, losses_at, report_at
from ._mixture_fallback import Task, can_vanish, major, margin_of, solve_edge, solve_ridge, solve_sphere, with_mode
from ._population import Sphere, as_ridge, samples_of, solve_population
from ._solve import LARGEST_SIZE, MODELS, PHASES, Solution

NAMES = ("alpha_pos", "alpha_neg", "kappa", "kappa_neg", "weight_pos", "weight_neg", "lam")
EACH = ("m", "q", "x", "x_hat", "q_hat", "m_hat")  # results with one entry a cluster
ONE = ("r", "b", "k_hat", "r_hat", "train_loss", "train_error")


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
        found = {f.name: np.array(getattr(self, f.name)) for f in fields(self) if f.name in (*EACH, *ONE)}
        found |= {name: np.array(getattr(self, name)) for name in ("residual", "n_iter", "converged")}
        found["phase"] = np.array(self.phase, f"<U{max(map(len, PHASES))}")
        for at in np.ndindex(shape):
            one = self[at] if shape else self
            if one.converged and one.phase != PHASES[COLLAPSED]:
                for name, value in _of_population(one, samples, tol, max_iter).items():
                    found[name][at] = value
        _warn_unless(found["converged"])
        return replace(self, **{name: value if value.ndim else value.item() for name, value in found.items()})

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


class Asked(NamedTuple):
    """Arguments that are the same at all points."""

    law: Loss
    model: str
    fit_bias: bool
    tol: float
    max_iter: int


def solve_mixture(mixture, point, asked):
    """Return the solution at one point, a dict of numbers by NAMES."""
    point = _checked(point, asked)
    if any(isinstance(value, np.ndarray) and value.ndim for value in point.values()):
        raise ValueError(
            "alpha_pos, kappa and the like must be numbers in solve, which takes one point; for arrays use rbal.sweep"
        )
    found, _ = _point(mixture, point, asked, (None, -1))
    if not found["converged"]:
        _warn_unless(False)
    return _solution(found, point, mixture, asked)


def sweep_mixture(mixture, point, asked):
    """Return the solutions at points that broadcast; neighbours along the last axis start from each other."""
    point = _checked(point, asked)
    columns = dict(zip(point, broadcast(**point), strict=True))
    shape, K = columns["alpha_pos"].shape, mixture.labels.size
    found = {name: np.empty((*shape, K)) for name in EACH}
    found |= {name: np.empty(shape) for name in (*ONE, "residual")}
    found |= {"n_iter": np.empty(shape, int), "phase": np.empty(shape, f"<U{max(map(len, PHASES))}")}
    found["converged"], start = np.empty(shape, bool), (None, -1)
    for at in np.ndindex(shape):
        if not at or at[-1] == 0:
            start = None, -1
        one, start = _point(mixture, {name: float(c[at]) for name, c in columns.items()}, asked, start)
        for name, value in one.items():
            found[name][at] = value
    _warn_unless(found["converged"])
    return _solution(found, columns, mixture, asked)


def _solution(found, point, mixture, asked):
    found |= point
    if asked.model != "svm":
        found["lam"] = None
    found["model"], found["loss"], found["fit_bias"], found["mixture"] = (
        asked.model,
        asked.law.name,
        asked.fit_bias,
        mixture,
    )
    return MixtureSolution(*_in_order(found))  # by names it takes longer


def asked_of(model, loss, fit_bias, tol, max_iter):
    """Check the arguments that are the same at all points."""
    law = loss if isinstance(loss, Loss) else LOSSES[one_of("loss", loss, tuple(LOSSES))]
    return Asked(
        law, one_of("model", model, MODELS), flag("fit_bias", fit_bias), number("tol", tol, 1e-14),
        positive_int("max_iter", max_iter),
    )  # fmt: skip


def _checked(point, asked):
    """Check the arguments of a point, or of many."""
    law, svm = asked.law, asked.model == "svm"
    # at κ = 0 a loss with a margin is least at weights 0, if these are allowed, and so is an equality
    open_low = law.margin > 0.0 and (svm or law.constraint is EQUALITY)
    kappa = in_range("kappa", law.margin if point["kappa"] is None else point["kappa"], 0.0, open_low=open_low)
    kappa_neg = point["kappa_neg"]
    kappa_neg = kappa if kappa_neg is None else in_range("kappa_neg", kappa_neg, 0.0, open_low=open_low)
    if svm and point["lam"] is None:
        raise ValueError("lam must be given for model='svm'")
    if not svm and point["lam"] is not None:
        raise ValueError("lam goes with model='svm': the perceptron's norm is fixed")
    lam = in_range("lam", point["lam"], 0.0, open_low=True) if svm else 0.0
    sizes = {name: in_range(name, point[name], 0.0, LARGEST_SIZE, open_low=True) for name in NAMES[:2]}
    weights = {name: in_range(name, point[name], 0.0, open_low=True) for name in NAMES[4:6]}
    return {**sizes, "kappa": kappa, "kappa_neg": kappa_neg, **weights, "lam": lam}


def _point(mixture, point, asked, start):
    """Return the solution at a point as a dict, and (state, phase) from which a neighbour can start."""
    law, svm = asked.law, asked.model == "svm"
    laws, widest = law.laws, law.widest
    problem = _problem(mixture, RIDGE if svm else UNSAT, laws[0], point, asked.fit_bias)
    task = Task(laws, mixture.blocks, asked.tol, min(asked.max_iter, 40) if widest < np.inf else asked.max_iter)
    y, warm = start
    if svm:
        phase, residual, n, y, told = solve_ridge(task, problem, warm == UNSAT, y)
    else:
        phase, residual, n, y = solve_sphere(task, problem, warm, y)
        told = None
    ok = residual <= asked.tol
    if ok and phase == UNSAT and widest < np.inf:
        ok = (problem.width * np.exp(y[problem.shape])).max() <= widest**2
    if ok:
        found = report(task, problem, phase, y, told)
    else:
        found = dict.fromkeys(ONE, np.nan) | {name: np.full(problem.alpha.size, np.nan) for name in EACH}
    found["residual"], found["n_iter"], found["phase"] = float(residual), int(n), PHASES[phase]
    found["converged"] = bool(ok)
    return found, (y, phase) if ok and phase != COLLAPSED else (None, -1)


def _of_population(sol, samples, tol, max_iter):
    """Return the results of one point for the population. Its phase may be the other one: few rows look separable."""
    mixture, laws = sol.mixture, LOSSES[sol.loss].laws
    point = {name: getattr(sol, name) for name in NAMES}
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
    ok = residual <= tol
    found = report(task, p, phase, y) if ok else dict.fromkeys((*EACH, *ONE), np.nan)
    return found | {"residual": float(residual), "n_iter": total, "converged": bool(ok), "phase": PHASES[phase]}


def critical_margins(mixture, alpha_pos, alpha_neg, fit_bias, tol):
    """Return the critical margins at sizes (n,), the same for both classes, and whether each was found, (n,)."""
    laws = HINGE.laws
    task = Task(laws, mixture.blocks.visible(), tol, 200)
    margin, found = np.empty(alpha_pos.size), np.empty(alpha_pos.size, bool)
    point = {"kappa": 0.0, "kappa_neg": 0.0, "weight_pos": 1.0, "weight_neg": 1.0, "lam": 0.0}
    for j, sizes in enumerate(zip(alpha_pos, alpha_neg, strict=True)):
        point["alpha_pos"], point["alpha_neg"] = sizes
        problem = _problem(mixture, UNSAT, laws[0], point, fit_bias)
        residual, _, y = solve_edge(task, problem)
        margin[j], found[j] = y[problem.n_shapes], residual <= tol
    if mixture.blocks.g_null > 0.0:  # weights on features that never vary give every sample the score 0
        margin = np.maximum(margin, 0.0)
    return np.where(found, margin, np.nan), found


def _problem(mixture, mode, law, point, fit_bias):
    """Return the problem of a mixture at a point."""
    both = np.array([
        (point["alpha_neg"], point["alpha_pos"]),
        (point["kappa_neg"], point["kappa"]),
        (point["weight_neg"], point["weight_pos"]),
    ])  # fmt: skip
    alpha, kappa, weight = both.take(mixture._places, axis=1)
    alpha *= mixture.shares
    return Clusters(
        mode, law, alpha, mixture.signs, kappa, weight, mixture._shape, mixture._width, len(mixture._covs),
        float(mixture.Q), float(point["lam"]), fit_bias,
    )  # fmt: skip


def report(task, problem, phase, y, told=None):
    """Return order parameters, hats, training loss and error of a solution; ``told`` has them if they are known."""
    if phase == COLLAPSED:
        return _collapsed(problem)
    if told is None:
        p = with_mode(task, problem, SAT) if phase == SAT else problem
        each = np.empty((len(EACH), problem.alpha.size))
        r, r_hat = report_at(p, y, each)
        loss, error = (0.0, 0.0) if phase == SAT else losses_at(problem, y)
    else:
        each, (r, r_hat, loss, error) = told[0], told[1].tolist()
    found = dict(zip(EACH, each, strict=True))
    b, k_hat = y[-2:].tolist()
    if problem.mode != RIDGE:
        k_hat -= task.block.lowest(np.bincount(problem.shape, problem.width * found["x_hat"], problem.n_shapes))
    found["r"], found["b"], found["k_hat"], found["r_hat"] = r, b, k_hat, r_hat
    found["train_loss"], found["train_error"] = loss, error
    return found


def _collapsed(problem):
    """Return the solution without weights: the classifier answers the major class."""
    side = major(problem)
    pull = problem.alpha * problem.weight
    lost = pull[problem.label != side].sum() / pull.sum()
    margin = margin_of(problem, side)
    nothing = np.zeros(problem.alpha.size)
    unknown = np.full(problem.alpha.size, np.nan)
    both = margin + margin_of(problem, -side)
    return {
        "m": nothing, "q": nothing, "x": nothing, "r": 0.0, "b": float(-side * margin),
        "k_hat": problem.ridge if problem.mode == RIDGE else 0.0, "x_hat": unknown, "q_hat": unknown,
        "m_hat": unknown, "r_hat": np.nan, "train_loss": float(both * lost),
        "train_error": float(lost) if margin > 0.0 else 0.0,  # at κ = 0 every score is 0, and none is wrong
    }  # fmt: skip


def _warn_unless(converged):
    if not np.all(converged):
        warnings.warn(
            f"{np.sum(np.logical_not(converged))} of {np.size(converged)} saddle points did not converge: "
            "their values are NaN",
            convergence_warning(),
            stacklevel=4,
        )
