"""Choose a whole classifier without training one: kernel, its parameters, C and remedy."""

from dataclasses import dataclass, field
from itertools import product

import numpy as np

from .._support.validation import in_range, listed, not_lost, one_of, real_array, squarable
from .._support.warnings import one_convergence_warning
from ._bias_guard import bias_is_held, free_share
from ._mixing import _solve, best_mixing, scored
from ._remedy_record import REMEDIES

C_GRID = np.geomspace(1e-2, 1e3, 16)
WIDTHS = 4.0 ** np.arange(-2, 3)  # of the RBF kernel, in units of gamma="scale"


@dataclass
class BestClassifier:
    """The classifier that :func:`best_classifier` chooses.

    Attributes
    ----------
    kernel : BoundKernel
        Kernel with its parameters.
    C : float
        Inverse ridge, as in scikit-learn.
    remedy : str
        Name in :data:`rbal.strategies.REMEDIES`.
    mixing : float
        That of the remedy, NaN where it samples nothing.
    value : float
        Predicted metric.
    table : pandas.DataFrame
        All candidates, the best first. Columns: ``machine`` (index in ``machines``), ``kernel``, the parameters of
        the kernels, ``C``, ``remedy``, ``mixing``, ``value``, ``tpr``, ``tnr``, ``auc``, and ``held``: whether at least
        5 % of the training rows of a class hold the bias. Candidates whose bias is not held come last.
    machines : list of BoundKernel
    weights : (float, float)
        Weights of a positive and of a negative row.
    labels : (object, object)
        Labels of the positive and of the negative class.
    """

    kernel: object
    C: float
    remedy: str
    mixing: float
    value: float
    table: object = field(repr=False)
    machines: list = field(repr=False)
    weights: tuple = field(repr=False)
    labels: tuple = field(repr=False)

    def estimator(self, random_state=None):
        """Return the chosen classifier, not yet fitted: a support vector machine, after a sampler if it has one.

        Parameters
        ----------
        random_state : int, RandomState instance or None
            Seed of the sampler.

        Returns
        -------
        SVC or Pipeline
            It takes rows such as those that were given.
        """
        from imblearn.pipeline import make_pipeline
        from sklearn.svm import SVC

        from ..samplers import RandomMixSampler

        name = self.kernel.kernel.svc
        options = {"kernel": name, **self.kernel.parameters} if name else {"kernel": self.kernel}
        if np.isnan(self.mixing):
            weights = dict(zip(self.labels, self.weights, strict=True)) if REMEDIES[self.remedy].weights else None
            return SVC(C=self.C, class_weight=weights, **options)
        sampler = RandomMixSampler(mixing=self.mixing, random_state=random_state)
        return make_pipeline(sampler, SVC(C=self.C, **options))


@one_convergence_warning()
def best_classifier(
    X,
    y,
    metric="ba",
    *,
    kernels=None,
    C=C_GRID,
    remedies=None,
    phi_pos=None,
    positive=None,
    landmarks=None,
    random_state=0,
):
    """Choose kernel, parameters, C and remedy of a support vector machine for a metric, without training any.

    Each candidate is predicted from the Gram matrix of the rows (:func:`rbal.kernels.moments`), at the threshold that
    it is trained with. Where all but 5 % of the rows of both classes are within the margin, hardly anything holds
    the bias of classes that weigh the same, and a trained machine may have any: such a candidate is chosen only if
    there is no other.

    Parameters
    ----------
    X : (n, D) array
        Rows as the kernel takes them; scale the columns before.
    y : (n,) array
        Two labels.
    metric : str, Metric or callable
        As in :func:`rbal.strategies.best_mixing`.
    kernels : dict, optional
        From the name of a kernel to lists of its parameters, of which all combinations are tried. By default the linear
        kernel, and the RBF kernel with five values of gamma around "scale".
    C : (k,) array
        Inverse ridges to try, as in scikit-learn.
    remedies : list of str, optional
        Names in :data:`rbal.strategies.REMEDIES`; by default all.
    phi_pos : float, optional
        Share of positives in the test set, for metrics that depend on it; by default that of y.
    positive : label, optional
        Label of the positive class; by default the rarer one.
    landmarks, random_state
        As in :func:`rbal.kernels.moments`.

    Returns
    -------
    BestClassifier

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(300, 5)), np.repeat(["ring", "core"], [60, 240])
    >>> X[y == "ring"] *= 2.0
    >>> best = best_classifier(X, y, kernels={"linear": {}, "rbf": {"gamma": [0.01, 0.1]}}, C=[0.1, 1.0, 10.0])
    >>> best.kernel.kernel.name
    'rbf'
    """
    import pandas as pd

    from ..kernels import moments
    from ..moments.internal import labelled

    X = real_array("X", X, 2)
    member, label = labelled(y, len(X), positive)
    C = np.atleast_1d(in_range("C", real_array("C", C, (0, 1)), 1e-100, 1e100))
    squarable("X", not_lost("X", X))
    if not np.ptp(X[member], axis=0).any() and not np.ptp(X[~member], axis=0).any():
        raise ValueError("X must vary within the classes, got rows that are all alike")
    names = tuple(REMEDIES) if remedies is None else listed("remedies", remedies)
    remedies = [one_of("remedies", name, tuple(REMEDIES)) for name in names]
    for name, given in (("C", C), ("remedies", remedies)):
        if not len(given):
            raise ValueError(f"{name} must hold at least one candidate, got none")
    phi = member.mean() if phi_pos is None else in_range("phi_pos", phi_pos, 0.0, 1.0)
    goal = scored(metric, phi)
    machines, rows = _machines(X, kernels), []
    for k, machine in enumerate(machines):
        features = moments(X, y, machine, positive=label, landmarks=landmarks, random_state=random_state)
        for name in remedies:
            columns = _predicted(features, REMEDIES[name], C, goal)
            about = {"machine": k, "kernel": machine.kernel.name, **machine.parameters}
            rows.append(pd.DataFrame({**about, "C": C, "remedy": name, **columns}))
    table = pd.concat(rows, ignore_index=True)
    height = np.nan_to_num(goal[1] * table["value"].to_numpy(), nan=-np.inf)
    order = np.lexsort((-height, ~table["held"].to_numpy() | (height == -np.inf)))
    table = table.iloc[order].reset_index(drop=True)
    best = table.iloc[0]
    if np.isnan(best["value"]):
        raise ValueError("no saddle point converged: try other values of C")
    design = REMEDIES[best["remedy"]].design(float(member.sum()), float((~member).sum()), 1.0)
    return BestClassifier(
        machines[best["machine"]], float(best["C"]), best["remedy"], float(best["mixing"]), float(best["value"]),
        table, machines, (float(design.weight_pos), float(design.weight_neg)), (label, np.asarray(y)[~member][0]),
    )  # fmt: skip


def _machines(X, kernels):
    """Return the bound kernels of all combinations of parameters."""
    from ..kernels import bind

    if kernels is None:
        scale = bind("rbf", X).parameters["gamma"]
        kernels = {"linear": {}, "rbf": {"gamma": list(scale * WIDTHS)}}
    if not isinstance(kernels, dict) or not kernels:
        raise TypeError(f"kernels must be a dict from names to lists of parameters, got {kernels!r}")
    machines = []
    for name, grid in kernels.items():
        if not isinstance(grid, dict):
            raise TypeError(f"kernels[{name!r}] must be a dict from parameters to lists of values, got {grid!r}")
        points = product(*(np.atleast_1d(np.array(values, object)) for values in grid.values()))
        machines += [bind(name, X, **dict(zip(grid, point, strict=True))) for point in points]
    return machines


def _predicted(features, remedy, C, goal):
    """Return columns (k,) with the predictions for a remedy at each C."""
    score, sign = goal
    sizes, lam = (features.alpha_pos, features.alpha_neg), features.ridge(C)
    mixing, c = np.full(C.shape, np.nan), None
    if remedy.searched:
        best = best_mixing(features, *sizes, metric=lambda m: sign * score(m), model="svm", lam=lam)
        mixing, c = best.mixing, best.c
    elif remedy.samples:
        mixing[:] = remedy.mixing
    n_pos, n_neg, weight_pos, weight_neg = remedy.design(*sizes, c)
    sol = _solve(features, n_pos, n_neg, None, model="svm", lam=lam, weight_pos=weight_pos, weight_neg=weight_neg)
    m = sol.metrics
    rates = {"tpr": m.tpr(), "tnr": m.tnr(), "auc": m.auc()}
    return {"mixing": mixing, "value": score(m), **rates, "held": bias_is_held(free_share(sol))}
