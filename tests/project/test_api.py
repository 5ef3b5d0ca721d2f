import inspect
import os
import resource
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from numpydoc.docscrape import FunctionDoc

import rbal

HEAVY = ("numba", "scipy", "torch", "matplotlib", "ipywidgets", "sklearn", "pandas")
FUNCTIONS = sorted(name for name in rbal.__all__ if inspect.isfunction(getattr(rbal, name)))
MODULES = (
    "rbal.advice",
    "rbal.experiments",
    "rbal.kernels",
    "rbal.strategies",
    "rbal.widgets",
    "rbal.datasets.synthetic",
    "rbal_book.datasets.images",
    "rbal_book.datasets.lattice",
)
if find_spec("torch"):
    MODULES += ("rbal_book.deep",)


def public_functions(module):
    """Functions of a module that are meant for users: those it lists, or else those it defines."""
    owner = import_module(module)
    names = getattr(owner, "__all__", None) or [
        name for name, value in vars(owner).items() if getattr(value, "__module__", None) == owner.__name__
    ]
    functions = {
        f"{module.split('.', 1)[1]}.{name}": getattr(owner, name) for name in names if not name.startswith("_")
    }
    return {name: function for name, function in functions.items() if inspect.isfunction(function)}


CALLABLES = {
    **{name: getattr(rbal, name) for name in FUNCTIONS},
    **{
        f"Moments.{name}": getattr(rbal.Moments, name)
        for name in ("ising", "potts", "real", "from_data", "from_kernel")
    },
    **{f"Mixture.{name}": getattr(rbal.Mixture, name) for name in ("gaussian", "from_data")},
    "Metrics": rbal.Metrics,
    "MixtureMetrics": rbal.metrics.MixtureMetrics,
    **{name: function for module in MODULES for name, function in public_functions(module).items()},
}


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def cpu_seconds(code):
    """User and system time of a Python process that runs ``code``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(code)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# ---- what `import rbal` costs


def test_import_loads_nothing_heavy():
    # without numba nothing can have been compiled either
    loaded = run("import sys, rbal; print(*{name.split('.')[0] for name in sys.modules})").split()
    assert "rbal" in loaded
    assert set(HEAVY).isdisjoint(loaded)


def test_import_is_quick():
    # the least of three: other processes share the cores
    cost = min(cpu_seconds("import rbal") for _ in range(3)) - min(cpu_seconds("pass") for _ in range(3))
    assert cost < 0.5


def test_looking_around_loads_nothing_heavy():
    # tab completion, help and doctest collection list the names
    loaded = run("import sys, rbal; dir(rbal), rbal.__all__; print(*sys.modules)").split()
    assert set(HEAVY).isdisjoint(loaded)


def test_metrics_and_moments_compile_nothing():
    code = "import rbal, sys; rbal.Moments.ising(m=0.4, L=5).eigenvalues; rbal.Metrics(1.0, 1.0, 0.0).auprc(0.1)"
    assert run(f"{code}; print('numba' in sys.modules)").strip() == "False"


# ---- names


@pytest.mark.parametrize("name", rbal.__all__)
def test_public_names_resolve(name):
    assert getattr(rbal, name) is not None
    assert name in dir(rbal)


def test_star_import_brings_exactly_the_public_names():
    namespace = {}
    exec("from rbal import *", namespace)
    assert set(namespace) - {"__builtins__"} == set(rbal.__all__)


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="module 'rbal' has no attribute 'slove'"):
        _ = rbal.slove
    assert not hasattr(rbal, "_nothing")


def test_deep_without_torch_says_what_to_do():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import rbal_book\ntry: rbal_book.deep\nexcept ImportError as e: print(e)"
    )
    assert run(code).strip() == "rbal_book.deep needs PyTorch, which is not installed: pip install rbal[deep]"


def test_convergence_warning_is_scikit_learns():
    from sklearn.exceptions import ConvergenceWarning

    assert rbal.ConvergenceWarning is ConvergenceWarning


# ---- documentation


def documented(function):
    """Parameters section, with names that share a line taken apart."""
    lines = FunctionDoc(function, doc=inspect.getdoc(function))["Parameters"]
    return [name.strip(" *") for line in lines for name in line.name.split(",")]


@pytest.mark.parametrize("name", CALLABLES)
def test_docstring_documents_exactly_the_parameters(name):
    function = CALLABLES[name]
    signature = inspect.signature(function).parameters
    assert sorted(documented(function)) == sorted(signature)


@pytest.mark.parametrize(
    "owner",
    [rbal.Metrics, rbal.Mixture, rbal.metrics.MixtureMetrics, rbal.Moments, rbal.Solution],
    ids=lambda owner: owner.__name__,
)
def test_public_members_have_docstrings(owner):
    members = [name for name in vars(owner) if not name.startswith("_")]
    slots = set(getattr(owner, "__slots__", ()))
    missing = [name for name in members if name not in slots and not inspect.getdoc(getattr(owner, name))]
    assert members
    assert not missing


def test_solution_documents_its_attributes():
    text = inspect.getdoc(rbal.Solution)
    for name in rbal.Solution.__slots__:
        assert name in text


def test_solve_and_sweep_take_the_same_arguments():
    assert inspect.signature(rbal.solve) == inspect.signature(rbal.sweep)


def test_version_is_that_of_the_package():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert rbal.__version__ == project["version"]


def test_runs_from_any_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("import rbal; print(rbal.__version__)").strip() == rbal.__version__
    assert os.listdir(tmp_path) == []
