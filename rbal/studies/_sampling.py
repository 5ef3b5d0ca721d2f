"""The study of the chapter on likelihood-informed sampling, and how studies are judged."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from imblearn.over_sampling import SMOTE, SMOTEN
from scipy.stats import t
from sklearn.svm import LinearSVC

from .._support.validation import number, one_of, positive_int, real_array
from ..experiments._train import measured
from ..rbm import RBM
from ..samplers import RBMSMOTE, LikelihoodInformedSampler

RESULTS = Path(__file__).parent / "_results"

#: Ways to restore balance: how the minority grows, and how the majority shrinks.
STRATEGIES = {
    "random": ("copies", "random"),
    "SMOTE": ("SMOTE", "random"),
    "SMOTEN": ("SMOTEN", "random"),
    "RBM-SMOTE": ("RBM-SMOTE", "random"),
    "LIS over": ("LIS", "random"),
    "LIS under": ("copies", "LIS"),
    "LIS mixed": ("LIS", "LIS"),
    "LIS over, no filter": ("unfiltered", "random"),
    "LIS over, narrow filter": ("narrow", "random"),
    "LIS under, edges only": ("copies", "edges"),
    "new digits": ("new", "random"),
}
QUICK = tuple(name for name in STRATEGIES if name != "SMOTEN")  # which takes as long as all the others
MIXINGS = (0.0, 0.05, 0.15, 0.4, 1.0)
MINORITIES = (100, 300, 1000)
N_MAJORITY = 5000
N_TEST = 9722  # all of the published test digits that two classes of one size can have


def sampling(
    rng,
    P,
    *,
    data,
    N=N_MAJORITY,
    mixings=MIXINGS,
    strategies=QUICK,
    steps=10,
    n_epochs=250,
    C=10.0,
):
    """Trial of the sampling figure: one imbalanced set of digits, balanced in every way, and an SVM for each.

    All strategies share the set, the machine that is trained on its minority and the order in which majority samples
    are taken at random, so that their differences are paired. Each way to grow the minority is asked once for N
    samples; a smaller P' takes the first P' of them.

    Parameters
    ----------
    rng : numpy.random.Generator
    P : int
        Samples of the minority, the positive class.
    data : Images
        What to draw from, of spins; pixels 0 and 1 over √L go to the SVM.
    N : int
        Samples of the majority.
    mixings : sequence of float
        P' = round(P + mixing (N - P)) samples of each class.
    strategies : sequence of str
        Names in ``STRATEGIES``.
    steps : int
        Gibbs steps of the likelihood-informed sampler; all else is as by default.
    n_epochs : int
        Of the machine.
    C : float
        Of the SVM, which has no intercept.

    Returns
    -------
    dict
        ``"ba as is"``, and for each strategy and mixing ``"ba <strategy> <mixing>"``; the same with ``auc``.
    """
    P, N = positive_int("P", P), positive_int("N", N)
    for name in strategies:
        one_of("strategies", name, tuple(STRATEGIES))
    bits = ((data.sample(N, N, rng)[0] + 1) / 2).astype(np.int8)
    digits, X, y = bits[:N], np.concatenate([bits[:P], bits[N:]]), np.repeat([1, -1], [P, N])
    order, random_state = rng.permutation(N), int(rng.integers(2**31))
    rbm = RBM(n_epochs=n_epochs, progress=False, random_state=random_state).fit(X[:P])
    samplers = _samplers(rbm, steps, random_state)
    ways = {STRATEGIES[name] for name in strategies}
    grown = {"copies": X[np.arange(N) % P], "new": digits}
    grown |= {over: _of(1, samplers[over], X, y, N) for over, _ in ways if over in samplers}
    result = _seen("as is", _tested(X[:P], X[P:], data, C))
    for mixing in mixings:
        n = round(P + mixing * (N - P))
        kept, tested = {"random": X[P:][order[:n]]}, {}
        if n < N:
            kept |= {under: _of(-1, samplers[under], X, y, n) for _, under in ways if under in samplers}
        for name in strategies:
            over, under = STRATEGIES[name]
            pair = (over if n > P else "copies", under if n < N else "random")  # there is one way to change nothing
            if pair not in tested:
                tested[pair] = _tested(grown[pair[0]][:n], kept[pair[1]], data, C)
            result |= _seen(f"{name} {mixing:g}", tested[pair])
    return result


def _seen(name, tested):
    return {f"{metric} {name}": tested[metric] for metric in ("ba", "auc")}


def _samplers(rbm, steps, random_state):
    """Samplers by the names that STRATEGIES uses."""
    seed = {"random_state": random_state}
    lis = {"rbm": rbm, "steps": steps, "n_states": 2, **seed}
    return {
        "SMOTE": SMOTE(**seed),
        "SMOTEN": SMOTEN(**seed),
        "RBM-SMOTE": RBMSMOTE(rbm=rbm, n_states=2, **seed),
        "LIS": LikelihoodInformedSampler(**lis),
        "unfiltered": LikelihoodInformedSampler(over_range=None, **lis),
        "narrow": LikelihoodInformedSampler(over_range=(0.05, 0.95), **lis),
        "edges": LikelihoodInformedSampler(under_range=(0.5, 0.5), **lis),
    }


def _of(label, sampler, X, y, n):
    """n samples of one class, its own first."""
    # SMOTE interpolates, and keeps the type
    X = X.astype(float) if isinstance(sampler, SMOTE) else X
    Z, labels = sampler.set_params(sampling_strategy={label: n}).fit_resample(X, y)
    return Z[labels == label]


def _tested(X_pos, X_neg, data, C):
    """Metrics, on the test set, of an SVM without an intercept."""
    X, y = np.concatenate([X_pos, X_neg]) / np.sqrt(data.L), np.repeat([1, -1], [len(X_pos), len(X_neg)])
    # liblinear takes samples in random order, which changes what it returns within the tolerance
    svm = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-3, max_iter=1_000_000, random_state=0).fit(X, y)
    return measured((data.X_test @ svm.coef_[0]) + svm.coef_.sum(), data.y_test, 1.0)


def tidy(table):
    """Long form of a table of :func:`sampling`: one row a trial, strategy and mixing.

    Parameters
    ----------
    table : pandas.DataFrame
        From :func:`rbal.experiments.run`.

    Returns
    -------
    pandas.DataFrame
        Columns P, trial, strategy, mixing (NaN for "as is"), ba, auc.
    """
    rows = []
    for record in table.to_dict("records"):
        for column in (name for name in record if name.startswith("ba ")):
            name = column.removeprefix("ba ")
            strategy, mixing = (name, np.nan) if name == "as is" else name.rsplit(" ", 1)
            rows.append((record["P"], record["trial"], strategy, float(mixing), record[column], record[f"auc {name}"]))
    return pd.DataFrame(rows, columns=["P", "trial", "strategy", "mixing", "ba", "auc"])


def paired(table, to="random", metric="ba"):
    """Differences between strategies on the same sets, with a test of each.

    Parameters
    ----------
    table : pandas.DataFrame
        In the form of :func:`tidy`.
    to : str
        Strategy that all others are compared with, at the same P and mixing.
    metric : {"ba", "auc"}

    Returns
    -------
    pandas.DataFrame
        One row a P, mixing and strategy: ``difference``, its standard error ``se``, the number ``n`` of sets, the
        p-value ``p`` of a paired t-test, and ``p_holm``, corrected by Holm's method for all rows of the table. Rows
        where the two are the same by construction are left out.
    """
    one_of("metric", metric, ("ba", "auc"))
    wide = table.dropna(subset="mixing").pivot(index=["P", "mixing", "trial"], columns="strategy", values=metric)
    one_of("to", to, tuple(wide))
    gaps = wide.drop(columns=to).sub(wide[to], axis=0).melt(ignore_index=False, value_name="difference")
    return _tests(gaps.dropna().groupby(["P", "mixing", "strategy"])["difference"])


def at_best(table, to="random", metric="ba"):
    """Differences between strategies, each at the mixing that is best for it.

    The mixing is chosen on every other set and the difference is measured on the sets between, and the other way
    round, so that choosing the highest of several noisy means brings no advantage.

    Parameters
    ----------
    table, to, metric
        As in :func:`paired`.

    Returns
    -------
    pandas.DataFrame
        As from :func:`paired`, without ``mixing``.
    """
    one_of("metric", metric, ("ba", "auc"))
    one_of("to", to, tuple(table.strategy.unique()))
    rows = []
    for P, part in table.dropna(subset="mixing").groupby("P"):
        wide = part.pivot(index="trial", columns=["strategy", "mixing"], values=metric)
        for odd in (0, 1):
            half = wide.index.to_numpy() % 2 == odd
            chosen = wide[~half].mean().groupby("strategy").idxmax()
            best = wide.loc[half, list(chosen)].droplevel("mixing", axis=1)
            gaps = best.drop(columns=to).sub(best[to], axis=0)
            rows.append(gaps.melt(value_name="difference").assign(P=P))
    return _tests(pd.concat(rows).dropna().groupby(["P", "strategy"])["difference"])


def _tests(gaps):
    """Mean of each group of differences, t-test against zero, and Holm's correction for all of them."""
    rows = gaps.agg(difference="mean", se="sem", n="size")[gaps.agg(lambda x: x.abs().max()) > 0].reset_index()
    rows["p"] = 2 * t.sf(np.abs(rows.difference / rows.se), rows.n - 1)
    rows["p_holm"] = holm(rows.p)
    return rows


def holm(p):
    """Holm's correction of p-values for their number.

    Parameters
    ----------
    p : (n,) array
        One p-value a test.

    Returns
    -------
    (n,) array
        The share of families of n true null hypotheses in which any test would look as significant as this one, at
        most.

    Examples
    --------
    >>> holm([0.03, 0.01, 0.5])
    array([0.06, 0.03, 0.5 ])
    """
    p = real_array("p", p)
    if p.ndim != 1 or not np.all((p >= 0.0) & (p <= 1.0)):
        raise ValueError(f"p must be a list of probabilities, got {p}")
    order = np.argsort(p, kind="stable")
    held = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return held[np.argsort(order, kind="stable")]


class Clustered(NamedTuple):
    """Mean of differences that come in groups, and a test of it against zero."""

    mean: float  # over all differences, each with the same weight
    se: float  # standard error, of groups that are independent of each other
    low: float  # ends of the confidence interval
    high: float
    p: float  # two-sided
    n: int  # differences
    sources: int  # groups


def clustered(differences, source, level=0.95):
    r"""Mean of paired differences, tested against zero, where those of one source are not independent.

    Two tables cut from one set of measurements tend to err on the same side. An error that counts them as two is too
    small. Here only sources are taken to be independent: with :math:`e_g` the sum, over a source, of deviations from
    the mean, the squared error of the mean of n differences from G sources is
    :math:`\frac{G}{G-1}\sum_g e_g^2/n^2`, and the mean over its error is compared with Student's t of G - 1 degrees
    of freedom.

    Parameters
    ----------
    differences : (n,) array
        One a table: what one rule gives less what another gives.
    source : (n,) sequence
        Where each comes from; at least two are different.
    level : float
        Of the confidence interval.

    Returns
    -------
    Clustered
        ``mean, se, low, high, p, n, sources``. Where all differences are zero, p is 1.

    Examples
    --------
    >>> found = clustered([0.02, 0.03, -0.01, 0.01], ["wine", "wine", "glass", "yeast"])
    >>> print(f"{found.mean:.4f} ± {found.se:.4f}, p = {found.p:.2f}")
    0.0125 ± 0.0103, p = 0.35
    """
    d, level = real_array("differences", differences), number("level", level, 0.0, 1.0, open_low=True)
    names, group = np.unique(np.asarray(source), return_inverse=True)
    if d.ndim != 1 or d.shape != group.shape:
        raise ValueError(f"source must name the source of each difference, got {group.size} for {d.size}")
    if len(names) < 2:
        raise ValueError(f"source must name at least two sources, got {len(names)}")
    n, G, mean = len(d), len(names), float(d.mean())
    e = np.bincount(group, d - mean)
    se = float(np.sqrt(G / (G - 1) * np.sum(e**2)) / n)
    reach = float(t.ppf(0.5 + 0.5 * level, G - 1)) * se
    p = float(2.0 * t.sf(abs(mean) / se, G - 1)) if se > 0.0 else float(mean == 0.0)
    return Clustered(mean, se, mean - reach, mean + reach, p, n, G)


def stored(name):
    """Results of a study that come with the package.

    Parameters
    ----------
    name : {"sampling"}

    Returns
    -------
    pandas.DataFrame
        In the form of :func:`tidy`.
    """
    return pd.read_csv(RESULTS / f"{one_of('name', name, ('sampling',))}.csv")
