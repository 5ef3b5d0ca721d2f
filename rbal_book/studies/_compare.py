"""Test paired differences, with corrections for the number of tests and for common sources."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t

from rbal._support.validation import number, one_of, real_array


def paired(table, to="random", metric="ba"):
    """Return the differences between strategies on the same sets, with a test of each.

    Parameters
    ----------
    table : pandas.DataFrame
        In the form of :func:`tidy`.
    to : str
        Strategy with which all others are compared, at the same P and mixing.
    metric : {"ba", "auc"}

    Returns
    -------
    pandas.DataFrame
        One row per P, mixing and strategy: ``difference``, its standard error ``se``, the number ``n`` of sets, the
        p-value ``p`` of a paired t-test, and ``p_holm``, corrected by Holm's method for all rows of the table. Rows
        where the two are the same by construction are left out.
    """
    one_of("metric", metric, ("ba", "auc"))
    wide = table.dropna(subset="mixing").pivot(index=["P", "mixing", "trial"], columns="strategy", values=metric)
    one_of("to", to, tuple(wide))
    gaps = wide.drop(columns=to).sub(wide[to], axis=0).melt(ignore_index=False, value_name="difference")
    return _tests(gaps.dropna().groupby(["P", "mixing", "strategy"])["difference"])


def at_best(table, to="random", metric="ba"):
    """Return the differences between strategies, each at its own best mixing.

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
    """Return the mean of each group of differences, a t-test against zero, and Holm's correction for all groups."""
    rows = gaps.agg(difference="mean", se="sem", n="size")[gaps.agg(lambda x: x.abs().max()) > 0].reset_index()
    rows["p"] = 2 * t.sf(np.abs(rows.difference / rows.se), rows.n - 1)
    rows["p_holm"] = holm(rows.p)
    return rows


def holm(p):
    """Correct p-values for their number by Holm's method.

    Parameters
    ----------
    p : (n,) array
        One p-value per test.

    Returns
    -------
    (n,) array
        Upper bound on the probability that, if all n null hypotheses hold, any test looks as significant as this one.

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
    se: float  # standard error, if groups are independent of each other
    low: float  # ends of the confidence interval
    high: float
    p: float  # two-sided
    n: int  # differences
    sources: int  # groups


def clustered(differences, source, level=0.95):
    r"""Test the mean of paired differences against zero, where those of one source are not independent.

    Two tables cut from one set of measurements tend to err on the same side. An error that counts them as two is too
    small. Here only sources are taken to be independent: with :math:`e_g` the sum, over a source, of deviations from
    the mean, the squared error of the mean of n differences from G sources is
    :math:`\frac{G}{G-1}\sum_g e_g^2/n^2`, and the mean over its error is compared with Student's t of G - 1 degrees
    of freedom.

    Parameters
    ----------
    differences : (n,) array
        One per table: the result of one rule minus that of another.
    source : (n,) sequence
        Source of each difference; at least two sources differ.
    level : float
        Level of the confidence interval.

    Returns
    -------
    Clustered
        ``mean, se, low, high, p, n, sources``. If all differences are zero, p is 1.

    Examples
    --------
    >>> found = clustered([0.02, 0.03, -0.01, 0.01], ["wine", "wine", "glass", "yeast"])
    >>> print(f"{found.mean:.4f} ± {found.se:.4f}, p = {found.p:.2f}")
    0.0125 ± 0.0103, p = 0.35
    """
    d, level = real_array("differences", differences), number("level", level, 0.0, 1.0, open_low=True)
    try:
        names, group = np.unique(np.asarray(source), return_inverse=True)
    except (TypeError, ValueError):
        raise TypeError(f"source must be names of one kind, got {source!r}") from None
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
