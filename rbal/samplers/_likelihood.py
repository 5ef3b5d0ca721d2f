"""A machine trained on one class: scores of samples, new samples, and which ones to keep."""

from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

AT_ONCE = 4096  # chains that run together


class Drawn(NamedTuple):
    """New samples of a class, and statistics of all generated ones."""

    rows: np.ndarray  # (n, L) states
    scores: np.ndarray  # (generated,) of all that were generated, kept or not
    n_rejected: int
    n_undone: int  # cells with a state that their column never takes, put back to where the chain started


def is_trained(rbm):
    """Tell whether a machine was given, and trained."""
    if rbm is None:
        return False
    try:
        check_is_fitted(rbm)
    except NotFittedError:
        return False
    return True


def trained(rbm, codes, n_states, rng):
    """Return a machine for these states (n, L): ``rbm`` if it is trained, otherwise a copy of it trained on them."""
    from ..rbm import RBM

    if is_trained(rbm):
        if rbm.n_states < n_states or rbm.n_features_in_ != codes.shape[1]:
            raise ValueError(
                f"rbm must have been trained on {codes.shape[1]} columns with at least {n_states} states, "
                f"got {rbm.n_features_in_} columns and {rbm.n_states} states"
            )
        return rbm
    machine = RBM() if rbm is None else clone(rbm)
    machine.set_params(n_states=n_states)
    if machine.random_state is None:
        machine.set_params(random_state=int(rng.integers(2**31)))
    return machine.fit(codes)


def score(machine, codes):
    """Return the log-likelihood (n,) of states (n, L), up to log Z, which is the same for all."""
    return -machine.free_energy(codes)


def in_turn(size, n, rng):
    """Draw n numbers below ``size`` in random order, each as often as any other."""
    rounds = [rng.permutation(size) for _ in range(-(-n // size))]
    return np.concatenate(rounds)[:n] if rounds else np.zeros(0, np.intp)


def evolved(machine, start, steps, occurs, rng):
    """Make Gibbs steps from ``start`` (n, L); return the states, and the number of cells that were undone.

    A cell returns to its start when its column never takes the state, by ``occurs`` (L, Q).
    """
    parts = [
        machine.sample(len(part), init=part, steps=steps, random_state=rng)
        for part in np.split(start, range(AT_ONCE, len(start), AT_ONCE))
    ]
    rows = np.concatenate(parts)
    strange = ~occurs[np.arange(rows.shape[1]), rows]
    return np.where(strange, start, rows), int(strange.sum())


def draw(machine, codes, n, steps, occurs, rng, *, between, max_tries):
    """Draw n samples, with scores in an interval, from chains that start in turn at ``codes`` (m, L).

    Raises
    ------
    ValueError
        When so few have such a score that ``max_tries`` candidates for each one are not enough.
    """
    kept, scores, n_undone = [codes[:0]], [np.zeros(0)], 0
    missing, tried = n, 0
    while missing:
        rate = (n - missing + 1) / (tried + 1)
        size = min(int(np.ceil(1.05 * missing / rate)), max_tries * n - tried, AT_ONCE)
        if size < 1:
            raise ValueError(
                f"sampling_strategy cannot be met: of {tried} generated samples only {n - missing} of {n} have a score "
                f"from {between[0]:.4g} to {between[1]:.4g}; widen over_range, train rbm longer, or raise max_tries"
            )
        start = codes[in_turn(len(codes), size, rng)]
        rows, undone = evolved(machine, start, steps, occurs, rng)
        new = score(machine, rows)
        # samples beyond those needed are not counted either
        fits = np.flatnonzero((new >= between[0]) & (new <= between[1]))[:missing]
        last = len(new) if len(fits) < missing else fits[-1] + 1
        kept.append(rows[fits])
        scores.append(new[:last])
        missing, tried, n_undone = missing - len(fits), tried + int(last), n_undone + undone
    return Drawn(np.concatenate(kept), np.concatenate(scores), tried - n, n_undone)


def central(scores, n, quantiles, rng):
    """Draw the places of n scores at random from those between two quantiles, or wider ones where that is too few.

    The interval grows by the same number of scores on either side, until it holds n; so equal quantiles select the n
    scores around them.
    """
    low, high = int(np.floor(quantiles[0] * len(scores))), int(np.ceil(quantiles[1] * len(scores)))
    wider = max(n - (high - low), 0)
    low, high = low - wider // 2, high + (wider - wider // 2)
    low, high = max(low - max(high - len(scores), 0), 0), min(high - min(low, 0), len(scores))
    inside = np.argsort(scores, kind="stable")[low:high]
    return np.sort(rng.choice(inside, n, replace=False)) if len(inside) > n else np.sort(inside)
