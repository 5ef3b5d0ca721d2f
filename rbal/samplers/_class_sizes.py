"""Class sizes after resampling, from what imbalanced-learn calls a sampling strategy."""

from collections import Counter
from collections.abc import Mapping
from numbers import Integral, Real

from sklearn.utils._param_validation import Interval, StrOptions

from .._support.validation import number, one_of

#: What the parameter of a sampler may be, for scikit-learn's check of parameters.
STRATEGIES = [
    Interval(Real, 0, 1, closed="right"),
    StrOptions({"auto", "all", "minority", "not majority", "majority", "not minority"}),
    Mapping,
    callable,
]


def by_function(strategy, y):
    """Return the sizes that a user's function of the labels gives, after a check that there is one for each class."""
    try:
        return dict(strategy(y))
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        raise TypeError(
            f"sampling_strategy must be a function from y to a dict of sizes, got {strategy!r}: {error}"
        ) from error


def sizes_after(y, strategy, mixing):
    """Return the number of samples after resampling, by class, in the order of the labels.

    Parameters
    ----------
    y : (n,) array
    strategy : float, str, mapping or callable
        As for the samplers.
    mixing : float

    Returns
    -------
    dict
    """
    counts = dict(sorted(Counter(y.tolist()).items()))
    small, large = min(counts.values()), max(counts.values())
    strategy = by_function(strategy, y) if callable(strategy) else strategy
    if isinstance(strategy, Mapping):
        return {**counts, **_checked(strategy, counts)}
    if isinstance(strategy, str):
        return counts | _named(strategy, counts, round(small + mixing * (large - small)))
    if len(counts) > 2:
        raise ValueError(f"sampling_strategy can be a float for two classes only, got {strategy} for {len(counts)}")
    strategy = number("sampling_strategy", strategy, 0.0, open_low=True)
    if strategy < small / large:
        raise ValueError(
            f"sampling_strategy cannot be met: a ratio of {strategy} needs fewer than the {small} samples of the "
            f"minority; it must be at least {small / large:.4g}"
        )
    majority = small / strategy + mixing * (large - small / strategy)
    return {label: round(majority if n == large else strategy * majority) for label, n in counts.items()}


def _named(strategy, counts, meeting):
    """Return the sizes of the classes that a name selects: the extreme one, or all but the other extreme."""
    least, most = min(counts, key=counts.get), max(counts, key=counts.get)
    if strategy == "minority":
        return {least: counts[most]}
    if strategy == "majority":
        return {most: counts[least]}
    to = {"not majority": counts[most], "not minority": counts[least]}.get(strategy, meeting)
    return dict.fromkeys(counts, to)


def _checked(sizes, counts):
    for label, n in sizes.items():
        one_of("sampling_strategy", label, tuple(counts))
        if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
            raise ValueError(f"sampling_strategy cannot be met: class {label!r} must keep at least 1 sample, got {n!r}")
    return {label: int(n) for label, n in sizes.items()}
