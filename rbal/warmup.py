"""Compile everything once, so that no first call waits: ``rbal warmup``, Binder, and wheels that carry compiled files.

What is to be compiled is listed in one place, ``STEPS``. Each step calls public functions on small data. Steps run in
processes of their own, several at a time, and leave what they compiled in numba's cache.
"""

import multiprocessing
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from importlib.util import find_spec
from typing import NamedTuple

from ._support.extras import PACKAGES
from ._support.validation import flag, one_of, positive_int


class CacheError(OSError):
    """Compiled code cannot be kept; the message says where it was to go."""


class Warmed(NamedTuple):
    """What a warm-up did."""

    functions: int  # that were compiled: 0 if nothing was left to do
    seconds: float
    folder: str  # that holds them


# ---- what is compiled


def solver():
    """A saddle point."""
    import rbal

    rbal.solve(rbal.Moments.ising(m=0.4, delta=1.0, L=100), alpha_pos=2.0, alpha_neg=5.0, kappa=0.5)


def phases():
    """Saddle points that are hard to find, which are solved in other ways; and where phases meet."""
    import rbal
    from rbal.saddle.internal import RIDGE, UNSAT, tables_and_fallback

    for loss in rbal.losses.LOSSES.values():
        for mode in (UNSAT, RIDGE):
            tables_and_fallback(loss, mode, needed=True)
    classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    for fit_bias in (True, False):
        rbal.solve(classes, alpha_pos=0.1, alpha_neg=0.1, kappa=0.5, fit_bias=fit_bias)
    rbal.critical_margin(classes, 0.4, 0.4)
    rbal.critical_alpha(classes, 0.5)


def sweeps():
    """Many points: on one walk, and on walks that cores share."""
    import numpy as np

    import rbal

    classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    for points in (8, 64, 65):
        rbal.sweep(classes, 2.0, np.linspace(1.0, 5.0, points), 0.5)
    rbal.strategies.best_mixing(classes, 0.5, 5.0, 0.5)


def losses():
    """Each loss under each model, one point and many, and the margins of its training samples."""
    import numpy as np

    import rbal

    classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    for name in rbal.losses.LOSSES:
        for options in ({"kappa": 1.0}, {"model": "svm", "lam": 1.0}):
            rbal.train_density(rbal.solve(classes, 2.0, 5.0, loss=name, **options), [0.0, 1.0], 1)
            rbal.sweep(classes, 2.0, np.linspace(1.0, 5.0, 65), loss=name, **options)


def mixtures():
    """Classes made of clusters, with covariances of their own: diagonal, and any."""
    import numpy as np

    import rbal

    rng = np.random.default_rng(0)
    means, spread = rng.normal(size=(3, 8)) / 8.0, rng.normal(size=(3, 8, 8)) / 4.0
    for covs in (np.full((3, 8), 1.0) + 0.1 * np.arange(3)[:, None], np.eye(8) + spread @ spread.transpose(0, 2, 1)):
        clusters = rbal.Mixture.gaussian(means, covs, [1, -1, -1])
        for alpha, options in ((4.0, {"kappa": 0.5}), (0.2, {"kappa": 0.5}), (4.0, {"model": "svm", "lam": 1.0})):
            rbal.solve(clusters, alpha, alpha, **options).metrics.ba()


def bags():
    """Classifiers that share samples."""
    import rbal

    classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    rbal.strategies.bagging(classes, 0.5, 5.0, [1, 10], model="svm", lam=1.0).metrics.ba()


def perceptron():
    """Perceptrons with errors, and without: the largest margin, and a typical solution."""
    import rbal
    from rbal.datasets import synthetic

    classes = synthetic.random_gaussian(0, L=20)
    for n, sat in ((60, "largest_margin"), (8, "largest_margin"), (8, "typical")):
        rbal.SphericalPerceptron(kappa=0.2, sat=sat, random_state=0).fit(*classes.sample(n, n, 0))


def binary_rbm():
    """Machines of binary units."""
    _machines(2)


def categorical_rbm():
    """Machines of units with several states."""
    _machines(3)


def _machines(states):
    """Restricted Boltzmann machines with either kind of hidden units: trained, sampled and normalised."""
    import numpy as np

    import rbal

    X = np.random.default_rng(0).integers(0, states, size=(20, 30))
    for hidden in ("bernoulli", "gaussian"):
        rbm = rbal.RBM(25, n_states=states, hidden=hidden, n_epochs=1, n_chains=8, progress=False, random_state=0)
        rbm.fit(X).sample(4, steps=2, random_state=0)
        rbm.log_partition(n_chains=16, n_betas=10, max_betas=10, random_state=0)


def spins():
    """Correlated spins and states: cut from a Gaussian, and of Potts models, enumerated and sampled."""
    import numpy as np

    from rbal.datasets import synthetic

    tied = 0.8 * np.eye(4) + 0.2
    synthetic.ising(delta=0.5, cov=0.9 * np.eye(4) + 0.1).sample(2, 2, 0)
    synthetic.potts(np.full((4, 3), 1.0 / 3.0), np.zeros((4, 3)), tied).sample(2, 2, 0)
    for L in (3, 20):  # few configurations are enumerated
        fields = np.zeros((2, L, 2))
        short = {"n_chains": 4, "burn_in": 2, "thin": 1, "n_moments": 50, "rng": 0, "progress": False}
        synthetic.potts_model(*fields, np.zeros((L, 2, L, 2)), **short).sample(2, 2, 0)
    options = {"n_chains": 4, "n_iter": 2, "sweeps": 1, "n_samples": 4, "rng": 0, "progress": False}
    synthetic.fit_potts_model(np.full((3, 2), 0.5), np.zeros((6, 6)), **options)


def advice():
    """A table, as ``rbal advise`` takes it, and without widths."""
    import rbal
    from rbal.datasets import synthetic

    X, y = synthetic.random_gaussian(0, L=15).sample(40, 120, 0)
    for loss in rbal.losses.trained():
        for moments in ("auto", "pooled"):
            rbal.advise(X, y, loss=loss, C=[0.1, 1.0], moments=moments, draws=2)


def explorers():
    """Every exploration of :mod:`rbal.widgets`."""
    from rbal import widgets

    for name in widgets.__all__:
        getattr(widgets, name)()


class Step(NamedTuple):
    """Calls that compile something."""

    call: Callable
    after: frozenset = frozenset()  # steps that compile what this one needs too
    extra: str = ""  # without whose packages the step is left out

    @property
    def name(self):
        """As it is shown."""
        return self.call.__name__.replace("_", "-")


#: All steps, the long ones first; no two that may run at a time compile the same.
STEPS = (
    Step(perceptron),
    Step(solver),
    Step(binary_rbm),
    Step(categorical_rbm, frozenset({"binary-rbm"})),
    Step(sweeps, frozenset({"solver"})),
    Step(phases, frozenset({"solver"})),
    Step(losses, frozenset({"sweeps"})),
    Step(mixtures, frozenset({"losses"})),
    Step(spins),
    Step(bags, frozenset({"losses"})),
    Step(advice, frozenset({"losses", "phases", "mixtures"})),
    Step(explorers, frozenset({"losses", "phases", "perceptron"}), "widgets"),
)


# ---- how


def run(only=None, *, jobs=None, native=False, progress=True, steps=STEPS):
    """Compile everything that is not in numba's cache.

    Parameters
    ----------
    only : list of str, optional
        Names of the steps to be run, with those they need; all steps by default.
    jobs : int, optional
        Processes at a time; by default as many as there are cores.
    native : bool
        Whether to compile for this very CPU what came with the package for a family of them.
    progress : bool
        Whether to show a bar.
    steps : sequence of Step
        What can be compiled. What a step comes after stands before it.

    Returns
    -------
    Warmed
        How many functions were compiled (0 if nothing was left to do), in how many seconds, and where they are kept.

    Raises
    ------
    CacheError
        If compiled code cannot be kept.

    Examples
    --------
    >>> from rbal import warmup
    >>> [step.name for step in warmup.chosen(["sweeps"])]
    ['solver', 'sweeps']
    """
    import joblib
    from tqdm.auto import tqdm

    from ._support.cache import NotKept

    steps = chosen(only, steps)
    jobs = joblib.cpu_count() if jobs is None else positive_int("jobs", jobs)
    flag("native", native), flag("progress", progress)
    folder, began = cache_folder(), time.perf_counter()
    with (
        ProcessPoolExecutor(min(jobs, len(steps)), multiprocessing.get_context("spawn"), _ready, (native,)) as pool,
        tqdm(total=len(steps), desc="compiling", unit="step", disable=not progress, leave=False) as bar,
    ):
        try:
            functions = _finish(steps, pool, bar)
        except NotKept as error:
            raise CacheError(str(error)) from error
    return Warmed(functions, time.perf_counter() - began, folder)


def chosen(only=None, steps=STEPS):
    """Return the steps of these names and those that they need, in order; all that are installed for None."""
    if only is None:
        return [step for step in steps if all(map(find_spec, PACKAGES.get(step.extra, ())))]
    for name in only:
        one_of("only", name, tuple(step.name for step in steps))
    wanted = set(only)
    for step in reversed(steps):  # what a step needs stands before it
        if step.name in wanted:
            wanted |= step.after
    return [step for step in steps if step.name in wanted]


def cache_folder():
    """Return the folder that compiled code is kept in; raise an error if there is none that can be written to."""
    from numba import config

    from ._support import cache, gauss

    found = cache.folder_of(gauss.pdf)
    wanted = config.CACHE_DIR
    if wanted and (found is None or not found.is_relative_to(os.path.abspath(wanted))):
        raise CacheError(f"compiled code cannot be kept: NUMBA_CACHE_DIR is {wanted}, which cannot be written to")
    if found is None:
        raise CacheError(
            f"compiled code cannot be kept: neither {cache.PACKAGE} nor the cache folder of this user can be written "
            "to; set NUMBA_CACHE_DIR to a folder that can"
        )
    return wanted or str(cache.PACKAGE if found.name == "__pycache__" else found.parent)


def _finish(steps, pool, bar):
    """Run each step as soon as those before it are done; return how many functions were compiled."""
    waiting, running, done, functions = steps, {}, set(), 0
    while waiting or running:
        ready = [step for step in waiting if step.after <= done]
        running |= {pool.submit(_work, step.call): step.name for step in ready}
        waiting = [step for step in waiting if step not in ready]
        bar.set_postfix_str(", ".join(running.values()))
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            functions += future.result()
            done.add(running.pop(future))
            bar.update()
    return functions


def _ready(native):
    """Prepare a process that runs steps: quiet figures, and nothing that came with the package if so asked."""
    os.environ.setdefault("MPLBACKEND", "agg")
    if native:
        os.environ["RBAL_SHIPPED"] = "0"


def _work(call):
    """Call a step; return how many functions it had to compile."""
    from ._support.cache import NotKept
    from ._support.compiling import counted

    with counted() as counter, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such small data say nothing
        warnings.simplefilter("error", NotKept)
        call()
    return counter.functions
