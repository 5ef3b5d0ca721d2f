"""Markov chains over pairs of sequences, and how long they remember. Public names are those of ``lattice``."""

from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from tqdm.auto import tqdm

from rbal._support import parallel
from rbal._support.validation import positive_int, real_array

from . import _fold


@dataclass(frozen=True, eq=False)
class DimerSample:
    """Pairs of sequences drawn by Markov chains, and what the chains did.

    Attributes
    ----------
    states : (n, 2·sites) uint8 array
        The samples, chain after chain; within a chain in the order of time.
    traces : (n_chains, sweeps, 5) array
        After each sweep, burn-in included: E(v₁|S₁), E(v₂|S₂), log p_nat of both, and log p_int without its exponent.
    burn_in : int
        Sweeps dropped at the start of each chain.
    thin : int
        Sweeps from one sample of a chain to the next.
    settled : int
        Burn-in that the traces ask for, see :func:`settling_time`.
    tau : float
        Integrated autocorrelation time of the sequences in samples, see :func:`autocorrelation_time`; 1 when samples
        are independent.
    """

    states: np.ndarray
    traces: np.ndarray
    burn_in: int
    thin: int
    settled: int
    tau: float

    def __repr__(self):
        drawn = f"{len(self.states)} pairs from {len(self.traces)} chains"
        return f"DimerSample({drawn}, burn_in={self.burn_in}, thin={self.thin}, tau={self.tau:.2f})"

    @property
    def n_effective(self):
        """Number of independent samples with the same standard error of the frequencies."""
        return len(self.states) / self.tau

    @property
    def chains(self):
        """Samples of each chain, (n_chains, samples, 2·sites)."""
        return self.states.reshape(len(self.traces), -1, self.states.shape[1])


def chain(rng, tables, target, n_samples, burn_in, thin):
    """Run a chain from random sequences; return its samples (n_samples, 2, N) and its trace (sweeps, 5)."""
    N = tables.pattern.shape[0]
    V = rng.integers(len(target.X), size=(2, N)).astype(np.int8)
    trace = np.empty((burn_in + n_samples * thin, 5))
    kept = np.empty((n_samples, 2, N), np.uint8)
    done = 0
    for sample in range(-1, n_samples):
        sweeps = burn_in if sample < 0 else thin
        uniforms, swaps = rng.random((sweeps, 2, N)), rng.random((sweeps, _fold.N_EXCHANGES, 2))
        pair = _fold.weigh(V, tables, target)  # afresh for each sample, so that rounding does not build up
        for lo, hi in parallel.pieces(sweeps):
            _fold.run(pair, uniforms[lo:hi], swaps[lo:hi], tables, target, trace[done + lo : done + hi])
        done += sweeps
        if sample >= 0:
            kept[sample] = V
    return kept, trace


def run_chains(rngs, tables, target, n_samples, burn_in, thin, *, n_jobs, progress):
    """Run a chain for each generator, in threads; return samples (chains, n_samples, 2, N) and traces."""
    tasks = (delayed(chain)(rng, tables, target, n_samples, burn_in, thin) for rng in rngs)
    done = Parallel(parallel.workers(n_jobs), prefer="threads", return_as="generator")(tasks)
    kept, traces = zip(*tqdm(done, total=len(rngs), desc="chains", disable=not progress), strict=True)
    return np.array(kept), np.array(traces)


def _chains(states):
    array = real_array("states", states, ndim=3)
    if array.shape[0] < 2:
        raise ValueError(f"states must hold at least 2 chains, got {array.shape[0]}")
    return np.asarray(states)


def _identity(states):
    """Return the probability that two independent sequences have the same letter, summed over sites."""
    flat = states.reshape(-1, states.shape[2])
    return sum(((flat == a).mean(axis=0) ** 2).sum() for a in np.unique(flat))


def autocorrelation(states, lags):
    """Measure how much more alike two sequences of one chain are than independent ones.

    Parameters
    ----------
    states : (n_chains, n, sites) int array
        Sequences of each chain in the order of time, at least two chains.
    lags : int or (m,) array of int
        Distances in time, 0 … n-1.

    Returns
    -------
    float or (m,) array
        Excess of equal letters over that of independent sequences; 1 at lag 0, 0 when the past is forgotten.
    """
    states = _chains(states)
    _, n, sites = states.shape
    lags = real_array("lags", lags, (0, 1))
    if not lags.size or (lags != np.floor(lags)).any() or np.min(lags) < 0 or np.max(lags) >= n:
        raise ValueError(f"lags must be integers 0 … {n - 1}, got {lags}")
    lags = lags.astype(int)
    equal = [(states[:, : n - lag] == states[:, lag:]).mean() * sites for lag in np.ravel(lags)]
    base = _identity(states)
    if base == sites:
        raise ValueError("states must not be all the same")
    return ((np.array(equal) - base) / (sites - base)).reshape(np.shape(lags))[()]


def autocorrelation_time(states):
    """Estimate the integrated autocorrelation time of sequences from how much the chains differ.

    The variance of a frequency, averaged over a chain of n sequences, is τ/n times that of one sequence. Averaged over
    all letters and sites, and estimated between chains, this needs no window and sees the slowest modes.

    Parameters
    ----------
    states : (n_chains, n, sites) int array
        Sequences of each chain in the order of time, at least two chains.

    Returns
    -------
    float
        τ = 1 + 2 Σ ρ(t) in steps of time; 1 for independent sequences.
    """
    states = _chains(states)
    chains, n, sites = states.shape
    between = sum((states == a).mean(axis=1).var(axis=0, ddof=1).sum() for a in np.unique(states))
    within = sites - _identity(states)
    if within == 0:
        raise ValueError("states must not be all the same")
    # the spread about the mean of all chains misses the variance of that mean
    return float(n * between / (within + between / chains))


def settling_time(traces, batch=5):
    """Find how many sweeps to drop at the start of chains, by the marginal standard error rule (MSER-5).

    Averaged over chains and in batches, each quantity is cut where the standard error of the mean of the rest is least
    (White, Simulation 69, 323, 1997); the longest cut counts.

    Parameters
    ----------
    traces : (n_chains, sweeps, m) array
        m quantities along each chain, from the start.
    batch : int, default 5
        Sweeps averaged into one.

    Returns
    -------
    int
        Sweeps to drop, at most half of them: at that value the chains were too short to tell.
    """
    traces = real_array("traces", traces, ndim=3)
    batch = positive_int("batch", batch)
    n = traces.shape[1] // batch
    if n < 2:
        raise ValueError(f"traces must hold at least two batches of {batch} sweeps, got {traces.shape[1]}")
    x = traces[:, : n * batch].mean(axis=0).reshape(n, batch, -1).mean(axis=1)
    cuts = range(n // 2 + 1)
    error = np.array([x[cut:].var(axis=0) / (n - cut) for cut in cuts])
    return int(error.argmin(axis=0).max()) * batch
