r"""Predict every remedy for a table of many classes, from the statistics of its classes: one machine a class.

Each class has a covariance of its own, drawn to a width of the pooled one as far as its rows are too few to tell the
two apart. With many features, or few rows for them, all have the pooled one, drawn to a multiple of the identity
(Ledoit and Wolf). The noise of estimated centres is taken out of their distances. Intervals come from centres that
other samples of these sizes could have given, and from the error that the theory itself makes on real tables, as for
two classes.

How the covariance was chosen: three were tried (one for all, widths of it, own ones) at C = 1, as is and with class
weights, on four tables for design, two folds each (vehicle, ecoli, segment, page-blocks). Mean errors of macro recall
were 0.060, 0.064 and 0.043 over the seven cells that all three solved. On three tables looked at afterwards (wine,
digits, abalone; one fold) they were 0.030, 0.026 and 0.031: no gain. Own covariances are kept since they alone and
widths converged in every cell; on page-blocks with class weights, where a class has 25 rows, they are off by 0.17 and
one covariance by 0.02. A little training takes that to 0.03: over three folds 0.77 was predicted, 0.90 with it, and
0.93 measured. (These comparisons are not among the stored results.)

Of up to five classes, what is recommended, the data as they are and class weights are trained by cross-validation. Each
measured macro recall says by which factor exp(u) the centres of the classes would have to be further apart for the
theory to give it, at the size of the folds, as for two classes (``_level.py``). Outliers, above all, make the theory
err by another factor for each remedy, so that what was trained has a factor of its own, and all others that of the
recommended one.
"""

import functools
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

from .._support.warnings import convergence_warning
from ..moments import Mixture
from ..strategies import REMEDIES, restore
from ..strategies.internal import common_mixing
from ._check import Validation, cross_validate_many, sample_classes
from ._judgement import LARGEST_NOISE
from ._level import FOLDS, plan, weigh
from ._selection import C_TOLERANCE, PREDICTION_ERROR, distance_from_1, simplicity

DECADES = (-3, 1)  # of C that are tried first, one value each
FACTORS = (0.3, 3.0)  # of the best of them that are tried next
MIXED = (0.33, 0.67)  # places between under- and oversampling that are tried, in the logarithm of the size
SCANNED = 5  # classes up to which every remedy has a C of its own
DRAWS = 16
ENOUGH = 2  # rows a feature that own covariances take
MOST_CELLS = 1_000_000  # of all covariances together, beyond which classes share one
THRESHOLDS = ("trained", "moved")
ALIKE = 1e-12  # squared distance of centres, in units of the total variance, that is a rounding error
GRID = np.array([-0.9, -0.4, 0.0, 0.4, 0.9])  # of u, at which the theory is solved
PLAIN = ("as is", "plain")  # doing nothing, with the C that it has
PRIOR_DRAWS = 8  # draws of the centres that show their noise


class ManySetting(NamedTuple):
    """Class sizes and the classifier."""

    sizes: tuple
    D: int
    loss: str
    C: tuple  # candidates; one if it is fixed
    open: bool  # whether C is to be refined

    @property
    def alphas(self):
        """Class sizes (T,) over the number of features."""
        return np.array(self.sizes, float) / self.D


class Candidate(NamedTuple):
    """One remedy with its C and threshold, as predicted."""

    strategy: str
    threshold: str
    C: float
    mixing: float
    offsets: np.ndarray  # (T,) subtracted from the scores
    confusion: np.ndarray  # (T, T)
    collapsed: tuple  # classes whose machine answers "another class" to all

    @property
    def recall(self):
        """Macro recall."""
        return float(np.diagonal(self.confusion).mean())


def estimate_classes(X, y):
    """Estimate the classes from rows X (n, D) and classes y (n,) of 0 … T-1.

    Returns
    -------
    Mixture
        With centres as they were measured.
    counts : (T,) array
        Rows of each class.
    """
    counts, (n, D) = np.bincount(y), X.shape
    means = np.stack([X[y == k].mean(axis=0) for k in range(len(counts))])
    centred = X - means[y]
    varies = all(centred[y == k].any() for k in range(len(counts)))
    if varies and n >= ENOUGH * D and len(counts) * D**2 <= MOST_CELLS:
        return Mixture.from_data(X, y, covariance="shrunk"), counts
    from sklearn.covariance import ledoit_wolf

    cov = ledoit_wolf(centred, assume_centered=True)[0] * n / max(n - len(counts), 1)
    return Mixture.gaussian(means, cov, np.arange(len(counts))), counts


class NotSolved(ValueError):
    """No saddle point of any C converged."""


def with_spread(mixture, counts):
    """Return a mixture in whose classes every column varies, by as much as one more row from anywhere would add.

    Where a column is constant in a class, and of another value in the others, scores of no spread separate them and the
    equations have no solution at finite log q. What n rows do not show may still happen once in n rows.
    """
    covs = np.broadcast_to(_covariances(mixture), (len(counts), *mixture.covariance(0).shape))
    offsets = mixture.means - np.average(mixture.means, axis=0, weights=counts)
    every_row = np.average(np.diagonal(covs, axis1=1, axis2=2) + offsets**2, axis=0, weights=counts)
    return Mixture.gaussian(mixture.means, covs + np.diag(every_row) / counts[:, None, None], mixture.labels)


def rescaled(mixture, u):
    """Return a mixture whose centres are exp(u) times as far from their mean."""
    if u == 0.0:
        return mixture
    center = mixture.means.mean(axis=0)
    return Mixture.gaussian(center + np.exp(u) * (mixture.means - center), _covariances(mixture), mixture.labels)


def _covariances(mixture):
    """Return the covariance (D, D) of all clusters if they share one, else that of each (K, D, D)."""
    if mixture.level == "one covariance":
        return mixture.covariance(0)
    return np.stack([mixture.covariance(c) for c in range(len(mixture.labels))])


def drawn_mixtures(mixture, counts, draws, error, rng, u=0.0):
    """Yield mixtures that other samples could have given, with distances misjudged by the error of the theory.

    Their centres are exp(u) times as far apart, as those of :func:`rescaled`.
    """
    quiet = mixture.debiased(counts)
    labels, center = mixture.labels, quiet.means.mean(axis=0)
    covs = _covariances(mixture)
    values, basis = np.linalg.eigh(covs)
    roots = np.broadcast_to(basis * np.sqrt(np.maximum(values, 0.0))[..., None, :], (len(labels), *covs.shape[-2:]))
    # half of the draws mirror the others, so that the mean over them is that of the estimate to first order
    normals = rng.normal(size=((draws + 1) // 2, *mixture.means.shape))
    # the error of the theory at even quantiles: of few random ones the largest is a matter of luck
    errors = rng.permutation(ndtri(0.5 + 0.5 * (np.arange(len(normals)) + 0.5) / len(normals)))
    for k in range(draws):
        sign = 1.0 if k % 2 else -1.0
        noise = sign * np.einsum("cij,cj->ci", roots, normals[k // 2]) / np.sqrt(counts)[:, None]
        other = Mixture.gaussian(quiet.means + noise, covs, labels).debiased(counts)
        factor = np.exp(u + sign * error * errors[k // 2])
        yield Mixture.gaussian(center + factor * (other.means - center), covs, labels)


@functools.lru_cache(maxsize=16)
def solved(mixture, setting, strategy, C, mixing=None):
    """Solve all machines of a remedy; None where they do not converge. The last ones are kept: some are used twice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", convergence_warning())
        lam = 1.0 / (C * setting.D)
        solution = restore(mixture, setting.alphas, strategy, mixing=mixing, lam=lam, loss=setting.loss)
    return solution if solution.converged else None


def solve_candidate(mixture, setting, candidate):
    """Solve all machines of a candidate on some classes; None where they do not converge."""
    mixing = None if np.isnan(candidate.mixing) else candidate.mixing
    return solved(mixture, setting, candidate.strategy, candidate.C, mixing)


@functools.lru_cache(maxsize=4)
def with_mean_covariance(mixture, sizes):
    """Return a mixture whose classes, of these sizes, all have their mean covariance."""
    covs = _covariances(mixture)
    mean = covs if covs.ndim == 2 else np.average(covs, axis=0, weights=sizes)
    return Mixture.gaussian(mixture.means, mean, mixture.labels)


def centres_coincide(mixture, sizes):
    """Return whether the centres of all classes are in one place, so that no machine tells a class from another."""
    offsets = mixture.means - mixture.means.mean(axis=0)
    return bool(np.sum(offsets**2) <= ALIKE * np.trace(with_mean_covariance(mixture, sizes).covariance(0)))


def candidates(mixture, setting, strategy, C, mixing=None, *, moved=False):
    """Return the candidates of one remedy at one C: with trained thresholds and, with ``moved``, with moved ones.

    Where machines of classes with own covariances do not converge, all have the mean one; and where these do not
    converge either, and no class is apart from another, all have the recall of chance.
    """
    solution = solved(mixture, setting, strategy, C, mixing)
    if solution is None and mixture.level != "one covariance":
        solution = solved(with_mean_covariance(mixture, setting.sizes), setting, strategy, C, mixing)
    if solution is None:
        T = len(setting.sizes)
        mixing, confusion = np.nan if mixing is None else mixing, np.full((T, T), 1.0 / T)
        chance = Candidate(strategy, "trained", C, mixing, np.zeros(T), confusion, tuple(range(T)))
        return [chance] if centres_coincide(mixture, setting.sizes) else []
    collapsed = tuple(np.flatnonzero(np.array(solution.phases) == "COLLAPSED").tolist())
    thresholds = [("trained", np.zeros(len(setting.sizes)))]
    if moved and not collapsed:  # a machine without weights has no threshold to be moved
        thresholds.append(("moved", solution.metrics.best_offsets("ba")))
    mixing = np.nan if mixing is None else mixing
    return [
        Candidate(strategy, name, C, mixing, offsets, solution.metrics.confusion(offsets), collapsed)
        for name, offsets in thresholds
    ]


def scanned(mixture, setting, strategy, bar):
    """Return candidates of a remedy over all C, with trained thresholds; of few classes, closer around the best."""
    mixing = REMEDIES[strategy].mixing
    scan = []
    for C in setting.C:
        scan += candidates(mixture, setting, strategy, C, mixing)
        bar.update()
    if scan and setting.open and len(setting.sizes) <= SCANNED:
        top = max(scan, key=lambda c: c.recall).C
        scan += [c for f in FACTORS for c in candidates(mixture, setting, strategy, top * f, mixing)]
    return scan


def weighted_remedy():
    """Return the name of the remedy by class weights."""
    return next(name for name, remedy in REMEDIES.items() if remedy.class_weight)


def all_candidates(mixture, setting, bar):
    """Return all candidates; the progress bar moves with each C of each remedy.

    C is searched for class weights and, of few classes, for all remedies; others have that of class weights. Thresholds
    are moved where no row is lost and none counts twice.
    """
    weighted = weighted_remedy()
    collected = scanned(mixture, setting, weighted, bar)
    if not collected:
        raise NotSolved(f"no saddle point converged at C={list(setting.C)} and loss={setting.loss!r}: try another C")
    C = chosen_rows(collected)[weighted, "trained"].C
    for name, remedy in REMEDIES.items():
        if remedy.searched:
            places = MIXED[len(setting.sizes) > SCANNED :] if len(set(setting.sizes)) > 1 else ()
            mixings = [common_mixing(setting.alphas, u) for u in places]
            collected += [c for mixing in mixings for c in candidates(mixture, setting, name, C, mixing)]
            bar.update()
            continue
        if name != weighted and len(setting.sizes) <= SCANNED:
            collected += scanned(mixture, setting, name, bar)
        at = candidates(mixture, setting, name, C, remedy.mixing, moved=not remedy.samples)
        known = {(c.strategy, c.threshold, c.C) for c in collected}
        collected += [c for c in at if (c.strategy, c.threshold, c.C) not in known]
        bar.update()
    return collected


def chosen_rows(candidates):
    """Return the candidate of each (strategy, threshold): of C predicted all but equal, the one nearest to 1."""
    rows = {}
    for c in candidates:
        rows.setdefault((c.strategy, c.threshold), []).append(c)
    best = {}
    for row, of_row in rows.items():
        top = max(c.recall for c in of_row)
        close = [c for c in of_row if c.recall >= top - C_TOLERANCE]
        best[row] = min(close, key=lambda c: distance_from_1(c.C))
    order = [(name, kind) for name in REMEDIES for kind in THRESHOLDS]
    return {row: best[row] for row in order if row in best}


def recommended_row(rows):
    """Return the simplest (strategy, threshold) of those predicted close to the best."""
    top = max(c.recall for c in rows.values())
    good = [row for row, c in rows.items() if c.recall >= top - PREDICTION_ERROR]
    return min(good, key=lambda row: simplicity(*row, True))


def n_steps(setting, draws):
    """Return how often a bar moves in :func:`all_candidates` and :func:`intervals`."""
    searches = sum(not remedy.searched for remedy in REMEDIES.values()) if len(setting.sizes) <= SCANNED else 1
    return searches * len(setting.C) + len(REMEDIES) + draws


def intervals(mixtures, setting, candidate, bar):
    """Return macro recalls (draws,) and recalls (draws, T) of one candidate on other samples.

    Parameters
    ----------
    mixtures : iterable of Mixture
        As from :func:`drawn_mixtures`.
    setting : ManySetting
    candidate : Candidate
    bar : tqdm
        Moves with each draw.
    """
    recalls = []
    for other in mixtures:
        bar.update()
        solution = solve_candidate(other, setting, candidate)
        if solution is not None:
            recalls.append(solution.metrics.recall(candidate.offsets))
    recalls = np.array(recalls) if recalls else np.full((1, len(setting.sizes)), np.nan)
    return recalls.mean(axis=1), recalls


def table_of(rows, setting, ends):
    """Return the table of all remedies; ``ends`` are those of the recommended one's interval minus its prediction."""
    top, phi = max(c.recall for c in rows.values()), np.array(setting.sizes) / np.sum(setting.sizes)
    lines = {
        row: {
            "predicted": c.recall, "low": max(c.recall + ends[0], 0.0), "high": min(c.recall + ends[1], 1.0),
            "behind": top - c.recall, "lowest": float(np.diagonal(c.confusion).min()),
            "accuracy": float(phi @ np.diagonal(c.confusion)), "C": c.C, "mixing": c.mixing,
        }
        for row, c in rows.items()
    }  # fmt: skip
    return pd.DataFrame.from_dict(lines, orient="index").rename_axis(["strategy", "threshold"])


# ---- the level, from a few trained machines


class ManyLevel(NamedTuple):
    """What was trained, and what follows from it."""

    u: dict  # from (strategy, threshold) to the logarithm of the factor by which the centres are moved apart
    error: dict  # to its standard deviation
    measured: dict  # to macro recall, its standard error, and what the theory expected of it
    rows: int  # trained on
    fits: int
    plain_C: float  # of doing nothing


def to_train(rows, best, plain):
    """Return the candidates to train: the recommended one, class weights, and doing nothing (None if it fails)."""
    chosen = {row: rows[row] for row in dict.fromkeys([best, (weighted_remedy(), "trained")]) if row in rows}
    return chosen if plain is None else chosen | {PLAIN: plain}


def prior_errors(mixture, counts, error, random_state):
    """Return both errors of u before training: that of the theory, and the noise of the centres."""
    rng, quiet = np.random.default_rng(random_state), mixture.debiased(counts)
    others = [quiet, *drawn_mixtures(mixture, counts, PRIOR_DRAWS, 0.0, rng)]
    distances = np.array([np.linalg.norm(other.means - other.means.mean(axis=0)) for other in others])
    # classes in one place have no distance whose noise could be estimated
    noise = (
        LARGEST_NOISE
        if distances[0] < 0.1 * distances.max()
        else np.std(np.log(np.maximum(distances / distances[0], 0.1)))
    )
    return max(error, 1e-3), float(min(noise, LARGEST_NOISE))


def many_level(data, mixture, setting, machines, prior, random_state):
    """Train some candidates, and return the ManyLevel.

    Parameters
    ----------
    data : ManyData
    mixture : Mixture
        The classes as the theory has them.
    setting : ManySetting
    machines : dict
        The candidates to train.
    prior : (float, float)
        Errors of u before: of the theory, and of the rows.
    random_state : int

    Returns
    -------
    ManyLevel
    """
    T = len(data.classes)
    rows, repeats = plan(len(data.X), data.D, T * len(machines))
    chosen = sample_classes(data.y, rows, np.random.default_rng(random_state))
    X, y = data.X[chosen], data.y[chosen]
    # on a part of the rows, C is larger by as much as they are fewer: the ridge keeps its weight
    more = np.sum(setting.sizes) / len(y)
    at = {row: c._replace(C=c.C * more) for row, c in machines.items()}
    recall, error, share = cross_validate_many(X, y, setting.loss, at, Validation(FOLDS, repeats, random_state))
    smaller = setting._replace(sizes=tuple((share * np.bincount(y)).tolist()))
    plain_C = machines[PLAIN].C if PLAIN in machines else np.nan
    level = ManyLevel({}, {}, {}, len(y), FOLDS * repeats * T * len(at), plain_C)
    mixtures = [rescaled(mixture, u) for u in GRID]  # shared, so that the same machines are solved once
    for row, c in at.items():
        if not np.isfinite(recall[row]):  # its fits did not converge
            continue
        predicted = np.array([expected_recall(other, smaller, c) for other in mixtures])
        good = np.isfinite(predicted)
        if good.sum() < 3:
            continue
        noise = np.array([[error[row] ** 2 + (0.5 / (T * np.bincount(y).min())) ** 2]])
        value = np.array([recall[row]])
        level.u[row], level.error[row] = weigh(*prior, GRID[good], predicted[good, None], value, noise)
        level.measured[row] = recall[row], error[row], float(np.interp(0.0, GRID[good], predicted[good]))
    return level


def expected_recall(mixture, setting, c):
    """Return the macro recall of a candidate on other classes, with its thresholds; NaN where it fails."""
    solution = solve_candidate(mixture, setting, c)
    return np.nan if solution is None else solution.metrics.ba(c.offsets)


def at_level(rows, plain, level, mixture, setting, best):
    """Return the candidates of all rows of the table, and the one of doing nothing, after training.

    Each has its own level, if it was trained, or else that of the recommended one.
    """
    mixtures = {u: rescaled(mixture, u) for u in level.u.values()}

    def moved(c, row):
        if c is None or row not in level.u:
            return c
        mixing = None if np.isnan(c.mixing) else c.mixing
        again = candidates(mixtures[level.u[row]], setting, c.strategy, c.C, mixing, moved=c.threshold == "moved")
        return next((new for new in again if new.threshold == c.threshold), c)

    trained = {row: moved(c, _level_row(c, row, level, best)) for row, c in rows.items()}
    return trained, moved(plain, PLAIN)


def _is_plain(c, level):
    """Return whether a candidate is the machine of doing nothing."""
    return c.strategy == "as is" and c.threshold == "trained" and c.C == level.plain_C


def _level_row(c, row, level, best):
    """Return the row whose level a candidate has: its own if it was trained, or else that of the recommended one."""
    return row if row in level.u else PLAIN if _is_plain(c, level) else best
