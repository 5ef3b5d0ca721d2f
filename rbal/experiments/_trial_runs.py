"""Trials over a grid, on cores or clusters, stored as they come."""

import contextlib
import functools
import hashlib
import itertools
import json
import pickle
import re
import sys
import time
import traceback

import joblib
import numpy as np
import pandas as pd
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController, threadpool_limits
from tqdm.auto import tqdm

from .._support import parallel as local
from .._support.validation import flag, positive_int
from ._store import describe, opened

PROVENANCE = ("trial", "seed", "seconds")


class TrialError(RuntimeError):
    """A trial failed; its own error is the cause. Trials that finished before are in the store."""


def run(trial, grid, trials=20, seed=0, store=None, n_jobs=None, progress=True):
    """Repeat a trial in every cell of a grid.

    Parameters
    ----------
    trial : callable
        ``trial(rng, **cell)`` returns a dict of numbers, always of the same names; an array of one dimension may stand
        for a number, and is kept as a list. It draws from ``rng`` alone. What is the same in all cells is bound with
        ``functools.partial``.
    grid : dict or list of dict
        Values of each name, of which all combinations are run; or the cells themselves. Values are numbers, strings,
        booleans or None.
    trials : int
        Repetitions of each cell.
    seed : int
        Root of all random numbers, >= 0.
    store : path, optional
        File that takes each result as it comes. What it already holds is not run again, so that an interrupted run
        continues, and a larger grid or more trials cost only what is new. It knows a trial by its name and its bound
        arguments: start a new one when you change its code.
    n_jobs : int, optional
        Workers of joblib, on one machine never more than it has cores; by default what :func:`joblib.parallel_config`
        says, which also selects a cluster.
    progress : bool
        Whether to show a bar.

    Returns
    -------
    pandas.DataFrame
        A row for each cell and trial, in the order of the grid: its values, ``trial``, what the trial returned,
        ``seed`` (see :func:`generator`) and ``seconds``. ``attrs`` holds versions, the root seed, the trial's name and
        when the run was started.

    Raises
    ------
    TrialError
        When a trial raises or returns something else than numbers. Results that were finished stay in the store.

    Examples
    --------
    >>> from rbal.experiments import run, summary
    >>> def mean_of(rng, n, scale):
    ...     return {"mean": scale * rng.normal(size=n).mean()}
    >>> table = run(mean_of, {"n": [10, 1000], "scale": [1.0, 2.0]}, trials=50, progress=False)
    >>> len(table)
    200
    >>> summary(table, by="n").round(3)[["n", "mean_se", "count"]]
          n  mean_se  count
    0    10    0.053    100
    1  1000    0.005    100
    """
    trials, seed = positive_int("trials", trials), _checked_seed(seed)
    flag("progress", progress)
    cells = _cells(grid)
    keys = [_key(cell, k) for cell in cells for k in range(trials)]
    jobs = dict(zip(keys, itertools.product(cells, range(trials)), strict=True))
    header = describe(trial, seed)
    with opened(store, header) as (done, append, started):
        todo = [(trial, seed, key, *jobs[key]) for key in keys if key not in done]
        _finish(todo, done, append, n_jobs, tqdm(total=len(keys), initial=len(keys) - len(todo), disable=not progress))
    table = pd.DataFrame([_row(jobs[key], done[key]) for key in keys])
    provenance = {name: header[name] for name in ("trial", "seed", "rbal", "numpy", "python")}
    table.attrs = {**provenance, "started": started, "grid": list(cells[0])}
    return table


def generator(seed, key):
    """Return the random numbers of one row of a table, to repeat that trial alone.

    Parameters
    ----------
    seed : int
        Root seed of the run: ``table.attrs["seed"]``.
    key : str
        The row's ``seed``: the spawn key of its :class:`numpy.random.SeedSequence`, eight hexadecimal digits a word.

    Returns
    -------
    numpy.random.Generator

    Examples
    --------
    >>> table = run(lambda rng, n: {"first": rng.random()}, {"n": [1, 2]}, trials=2, progress=False)
    >>> bool(generator(0, table.seed[3]).random() == table["first"][3])
    True
    """
    if not isinstance(key, str) or not re.fullmatch("([0-9a-f]{8})*", key):
        raise ValueError(f"key must be eight hexadecimal digits a word, as run stores it, got {key!r}")
    seed = _checked_seed(seed)
    words = tuple(int(key[i : i + 8], 16) for i in range(0, len(key), 8))
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=words))


# ---- cells and their seeds


def _cells(grid):
    """Return the cells of a grid, each a dict of plain scalars."""
    if isinstance(grid, dict):
        columns = {name: np.atleast_1d(np.asarray(values, object)).tolist() for name, values in grid.items()}
        cells = [dict(zip(columns, values, strict=True)) for values in itertools.product(*columns.values())]
    elif isinstance(grid, (list, tuple)) and all(isinstance(cell, dict) for cell in grid):
        cells = list(grid)
    else:
        raise TypeError(f"grid must be a dict of values or a list of cells, got {type(grid).__name__}")
    if not cells:
        raise ValueError("grid must hold at least one cell")
    for cell in cells:
        if set(cell) != set(cells[0]):
            raise ValueError(f"grid must have the same names in every cell, got {list(cells[0])} and {list(cell)}")
    cells = [{name: _checked_value(name, cell[name]) for name in cells[0]} for cell in cells]
    if len({_canonical(cell) for cell in cells}) < len(cells):
        counts = pd.Series([_spelled(cell) for cell in cells]).value_counts()
        raise ValueError(f"grid must hold every cell once, got twice: {counts.index[0]}")
    return cells


def _checked_value(name, value):
    if not isinstance(name, str) or name in (*PROVENANCE, "rng"):
        raise ValueError(f"grid must not use the name {name!r}: {', '.join(PROVENANCE)} and rng are taken")
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (bool, int, float, str, type(None))):
        raise TypeError(
            f"grid[{name!r}] must hold numbers, strings, booleans or None, got {type(value).__name__}: "
            "bind other objects to the trial with functools.partial"
        )
    if value != value:
        raise ValueError(f"grid[{name!r}] must not hold NaN")
    return value


def _canonical(cell):
    """Return the content of a cell as text: equal numbers read the same, whatever their type and order."""
    plain = {k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in cell.items()}
    return json.dumps(plain, sort_keys=True)


def _key(cell, k):
    """Return the spawn key of a trial, as text: 128 bits of the cell's content and the trial's number."""
    return hashlib.sha256(_canonical(cell).encode()).hexdigest()[:32] + f"{k:08x}"


def _checked_seed(seed):
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"seed must be an integer >= 0, got {seed!r}")
    return int(seed)


def _spelled(cell):
    return ", ".join(f"{name}={value!r}" for name, value in cell.items()) or "(no parameters)"


def _row(job, result):
    cell, k = job
    return {**cell, "trial": k, **result["outputs"], "seed": result["seed"], "seconds": result["seconds"]}


# ---- running


def _finish(todo, done, append, n_jobs, bar):
    """Run the jobs, put each result into ``done`` and the store as it comes, and raise the first failure at the end.

    After a failure no new job is started, but running jobs are awaited and stored.
    """
    failure, names = None, next((set(result["outputs"]) for result in done.values()), None)
    jobs = (job for job in todo if failure is None)
    # sums depend on the number of threads, in their last bits
    with bar, threadpool_limits(1), contextlib.closing(_results(jobs, n_jobs)) as results:
        for result in results:
            error = result.get("error")
            if error is None:
                names = set(result["outputs"]) if names is None else names
                if set(result["outputs"]) == names:
                    append(result)
                    done[result["seed"]] = result
                    bar.update()
                    continue
                error = ValueError(f"returned {sorted(result['outputs'])} where others returned {sorted(names)}")
            failure = failure or (result, error)
    if failure is not None:
        result, error = failure
        where = f"trial {result['trial']} of the cell {_spelled(result['cell'])}"
        raise TrialError(f"{where} failed: {type(error).__name__}: {error}") from error


def _results(jobs, n_jobs):
    """Yield the outcomes of the jobs, in the order in which they are finished."""
    backend = get_active_backend()[0]
    if hasattr(backend, "client"):
        yield from _dask_results(backend, jobs, n_jobs)
        return
    if type(backend).__module__.startswith("joblib."):  # on this machine
        n_jobs = local.workers(n_jobs)
    calls = (joblib.delayed(_attempt)(job) for job in jobs)
    try:
        parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    except ValueError:  # multiprocessing and Ray return lists only: many short ones, so that they are stored on the way
        with joblib.Parallel(n_jobs=n_jobs) as parallel:
            while part := list(itertools.islice(calls, 8 * joblib.effective_n_jobs(n_jobs))):
                yield from parallel(part)
    else:
        yield from parallel(calls)


def _dask_results(backend, jobs, n_jobs):
    """Yield the outcomes of the jobs from a Dask cluster, by its own client.

    joblib waits for ever when a task cannot be run at all (it takes four workers down, or they lack a module), and it
    scatters large arguments, which are lost with the worker that holds them. Here a job travels with its task.
    """
    from distributed import as_completed

    joblib.effective_n_jobs(n_jobs)  # waits for workers, with a message where none come
    finished, running = as_completed(loop=backend.client.loop), {}

    def submit():
        # enough to keep all cores busy, and an adaptive cluster growing
        room = 16 + 4 * sum(backend.client.ncores().values()) - len(running)
        for job in itertools.islice(jobs, max(room, 0)):
            future = backend.client.submit(functools.partial(_attempt, job), pure=False, **backend.submit_kwargs)
            running[future] = job
            finished.add(future)

    try:
        submit()
        for batch in finished.batches():
            for future in batch:
                job = running.pop(future)
                try:
                    yield future.result()
                except Exception as error:  # of the cluster, not of the trial: another task would fare no better
                    yield _outcome(job, error=error)
                    return
            submit()
    finally:
        backend.client.cancel(list(running))


def _attempt(job):
    """Run a trial and return its outcome. An error is a value: raised, it would take finished trials with it."""
    trial, seed, key, cell, _ = job
    _one_thread()
    begin = time.perf_counter()
    try:
        outputs = _checked_outputs(trial(generator(seed, key), **cell), cell)
    except Exception as error:
        return _outcome(job, error=_portable(error))
    return _outcome(job, outputs=outputs, seconds=round(time.perf_counter() - begin, 6))


def _outcome(job, **outcome):
    _, _, key, cell, k = job
    return {"seed": key, "cell": cell, "trial": k, **outcome}


def _checked_outputs(outputs, cell):
    if not isinstance(outputs, dict):
        raise TypeError(f"a trial must return a dict of numbers, got {type(outputs).__name__}")
    plain = {}
    for name, value in outputs.items():
        if not isinstance(name, str) or name in (*PROVENANCE, *cell):
            raise ValueError(f"a trial must not return {name!r}: {', '.join((*PROVENANCE, *cell))} are taken")
        if isinstance(value, (np.generic, np.ndarray)) and np.ndim(value) == 0:
            value = value.item()
        listed = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "biuf"
        if listed:
            value = value.tolist()
        if not listed and not isinstance(value, (bool, int, float)):
            raise TypeError(f"a trial must return numbers, got {type(value).__name__} for {name!r}")
        plain[name] = value
    return plain


def _portable(error):
    """Return the error with its traceback as a note, or a stand-in where it cannot be sent between processes."""
    error.add_note("".join(traceback.format_exception(error)))
    try:
        return pickle.loads(pickle.dumps(error))
    except Exception:
        stand_in = RuntimeError(f"{type(error).__name__}: {error}")
        stand_in.__notes__ = error.__notes__
        return stand_in


_pools = {"modules": 0, "controller": None}


def _one_thread():
    """Limit BLAS and OpenMP to one thread in this process; libraries are searched again after imports."""
    if _pools["modules"] != len(sys.modules):
        _pools["controller"] = ThreadpoolController()
        _pools["modules"] = len(sys.modules)
    _pools["controller"].limit(limits=1)
