"""Everything compiles once: the list of steps, what the command says, and that nothing is left to be compiled."""

import functools
import importlib
import itertools
import os
import pkgutil
import pty
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path

import pytest
from numba import config

from rbal import cli, warmup
from rbal._support import compiling
from rbal._support.jit import Kernel
from rbal_book.warmup import STEPS

ROOT = Path(__file__).parents[1]
jitted = pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")


class Pool:
    """Runs each step when it is submitted, and keeps their order."""

    def __init__(self):
        self.order = []

    def submit(self, work, call):
        self.order.append(call.__name__.replace("_", "-"))
        future = Future()
        future.set_result(2)
        return future


class Bar:
    def set_postfix_str(self, text):
        pass

    def update(self):
        pass


def test_the_list_has_what_people_call_first():
    names = [step.name for step in warmup.STEPS]
    assert len(set(names)) == len(names)
    assert {"solver", "phases", "sweeps", "losses", "perceptron", "binary-rbm", "advice", "explorers"} <= set(names)
    for k, step in enumerate(warmup.STEPS):
        assert step.after <= set(names[:k]), "what a step needs stands before it"


def test_steps_wait_for_what_they_need():
    pool = Pool()
    assert warmup._finish(warmup.chosen(), pool, Bar()) == 2 * len(warmup.STEPS)
    for step in warmup.STEPS:
        assert all(pool.order.index(other) < pool.order.index(step.name) for other in step.after)


def test_only_some_steps():
    needed = ["solver", "sweeps", "phases", "losses", "mixtures", "advice"]
    assert [step.name for step in warmup.chosen(["advice"])] == needed
    with pytest.raises(ValueError, match=r"only must be one of 'perceptron', .*, got 'everything'"):
        warmup.chosen(["everything"])


@pytest.mark.parametrize("options", [{"jobs": 0}, {"jobs": 1.5}, {"native": "no"}, {"only": ["x"]}])
def test_bad_arguments(options):
    (name,) = options
    with pytest.raises((ValueError, TypeError), match=f"{name} must be"):
        warmup.run(**options)


@pytest.fixture(scope="module")
def compiled():
    """Run a step, once; how many functions it compiled. (In processes of their own, ``make test`` ran them before.)"""
    return functools.cache(lambda step: warmup._work(step.call))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # such small data say nothing
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_every_step_runs(step, compiled):
    assert compiled(step) >= 0


def kernels():
    """Every compiled function of both packages, by name."""
    found = {}
    packages = [pkgutil.walk_packages([str(ROOT / name)], f"{name}.") for name in ("rbal", "rbal_book")]
    for module in itertools.chain(*packages):
        if module.name.startswith("rbal_book.deep") or module.name.endswith(("__main__", "studies._deep")):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Kernel) and value.py_func.__module__ == module.name:
                found[f"{module.name}.{name}"] = value
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@jitted
def test_no_kernel_is_left_out(compiled):
    """After all steps each has a compiled form in the cache: a new kernel needs a step that calls it."""
    for step in STEPS:
        compiled(step)
    every = kernels()
    assert len(every) > 100
    indices = {name: [form._cache._cache_file for form in (k.inner, k.outer)] for name, k in every.items()}
    assert not [name for name, files in indices.items() if not any(file._load_index() for file in files)]


# ---- the command


def run(*arguments, **environment):
    command = [sys.executable, "-m", "rbal", "warmup", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=500, env=environment)


@pytest.mark.slow
@jitted
def test_a_second_time_nothing_is_left_to_do(tmp_path):
    first, second = (run("--only", "solver", NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first.returncode == second.returncode == cli.OK, first.stderr + second.stderr
    assert first.stdout.startswith("compiled ")
    assert first.stdout.endswith(f"kept in {tmp_path}\n")
    assert second.stdout == "nothing was left to do: everything is compiled\n"
    assert first.stderr == second.stderr == ""


@jitted
def test_a_cache_that_cannot_be_written_is_named():
    folder = os.path.join(os.devnull, "numba")
    done = run(NUMBA_CACHE_DIR=folder)
    assert done.returncode == cli.BAD_INPUT
    assert done.stdout == ""
    assert done.stderr == (
        f"rbal: compiled code cannot be kept: NUMBA_CACHE_DIR is {folder}, which cannot be written to\n"
    )


def test_usage():
    assert run("--jobs", "0").returncode == cli.USAGE
    assert run("--only", "everything").returncode == cli.USAGE
    assert "perceptron, solver" in " ".join(run("--help").stdout.split())


# ---- what is waited for


@pytest.fixture
def function():
    """A function that is compiled when it is called first."""
    from numba import njit

    return njit(lambda x: x + 1)


@jitted
def test_functions_are_counted_and_the_first_is_told(function):
    said = []
    with compiling.counted(lambda: said.append("first")) as counter:
        assert said == []
        function(1), function(2), function(1.0)
    function(1j)
    assert counter.functions == 2
    assert said == ["first"]


@jitted
@pytest.mark.parametrize("shown", [True, False])
def test_one_line_says_what_is_waited_for(function, shown, capsys):
    with cli.compilation_reported(shown):
        function(1), function(1.0)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == shown
    assert ("rbal: compiling" in err) == shown


@jitted
def test_it_says_why_files_of_the_wheel_are_not_used(function, monkeypatch, capsys):
    monkeypatch.setattr("rbal._support.cache.obstacle", lambda: "this CPU lacks abacus")
    with cli.compilation_reported(True):
        function(1)
    assert "came with rbal are of no use here (this CPU lacks abacus)" in capsys.readouterr().err


@pytest.mark.slow
@jitted
@pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")
def test_on_a_terminal_a_cold_start_is_no_silence(tmp_path):
    """Its JSON stays clean; through a pipe nothing is said."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc")).assign(y=np.arange(60) % 3 == 0)
    table.to_csv(tmp_path / "t.csv", index=False)
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "rbal", "advise", str(tmp_path / "t.csv"), "--label", "y", "--C", "1", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "numba")}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=follower, env=environment, timeout=500, text=True)
    os.close(follower)
    said = os.read(leader, 100_000).decode()
    os.close(leader)
    assert done.returncode == cli.OK
    assert done.stdout.startswith("{")
    assert said.count("rbal: compiling for some seconds, since this is the first run") == 1
    again = subprocess.run(command, capture_output=True, env=environment, timeout=500, text=True)
    assert again.stderr == ""
