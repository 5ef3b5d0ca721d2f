"""One truth about versions, told in four files; and nothing in the repository that belongs to one machine."""

import ast
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import jupytext
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from rbal._support import cache

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAX_BYTES = 5_000_000


def exact_pins(lines):
    """Map package to version for lines of the form name==version, and refuse any other form."""
    pins = {}
    for line in lines:
        requirement = Requirement(line)
        (specifier,) = requirement.specifier
        assert specifier.operator == "==", f"not an exact version: {line}"
        assert requirement.url is None
        pins[canonicalize_name(requirement.name)] = specifier.version
    return pins


LOCK_LINES = (ROOT / "requirements.lock").read_text().splitlines()
LOCK = exact_pins(line for line in LOCK_LINES if not line.startswith("#"))
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
(CONDA_PIP,) = [entry["pip"] for entry in CONDA if isinstance(entry, dict)]

WORKFLOW = (ROOT / ".github/workflows/book.yml").read_text()

EXTRAS = PROJECT["optional-dependencies"]
LICENCES = PROJECT["license"].split(" AND ")
LOCKED_EXTRAS = ("plot", "widgets", "book", "test", "dev")
LOWEST = [*PROJECT["dependencies"], *EXTRAS["widgets"]]  # of which plot is a part


def repository_files():
    """Every file that is tracked or would be, by ``git add .``."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.mark.parametrize(
    "dependency", sorted({*PROJECT["dependencies"], *(line for extra in LOCKED_EXTRAS for line in EXTRAS[extra])})
)
def test_lock_satisfies_pyproject(dependency):
    requirement = Requirement(dependency)
    version = LOCK.get(canonicalize_name(requirement.name))
    assert version is not None, f"{requirement.name} is not in requirements.lock: make lock"
    assert requirement.specifier.contains(version), f"{requirement.name} {version} is not {requirement.specifier}"


def test_lowest_versions_are_tested_as_they_are_declared(monkeypatch):
    """``make test-lowest`` finds out whether they can be had together, and work."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from lowest import pins

    pinned = exact_pins(pins())
    assert set(EXTRAS["plot"]) <= set(EXTRAS["widgets"])
    assert len(pinned) == len(LOWEST)
    for requirement in map(Requirement, LOWEST):
        (specifier,) = requirement.specifier
        assert (specifier.operator, specifier.version) == (">=", pinned[canonicalize_name(requirement.name)])
    (run,) = [s["run"] for s in yaml.safe_load(WORKFLOW)["jobs"]["lowest"]["steps"] if "run" in s]
    assert run == "make test-lowest"


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The source distribution, unpacked."""
    pytest.importorskip("hatchling", reason="the build backend is in the extra dev")
    folder = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


@pytest.mark.slow
def test_sdist_holds_all_that_git_holds(sdist):
    held = {str(path.relative_to(ROOT)) for path in repository_files()}
    assert not {name for name in held if not (sdist / name).exists()}


@pytest.mark.slow
def test_tests_of_the_sdist_are_collected(sdist):
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHONPATH"))}
    done = subprocess.run(command, cwd=sdist, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "error" not in done.stdout.splitlines()[-1]


def test_lock_holds_the_build_backend():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    for requirement in map(Requirement, build):
        assert requirement.specifier.contains(LOCK[canonicalize_name(requirement.name)])


def test_lock_leaves_torch_out():
    assert {Requirement(line).name for line in EXTRAS["deep"]} == {"torch"}
    assert not {name for name in LOCK if name == "torch" or name.startswith("nvidia-")}


def test_make_installs_the_torch_of_the_extra():
    (extra,) = EXTRAS["deep"]
    assert re.findall(r"torch==\S+", (ROOT / "Makefile").read_text()) == [f"{extra}+cpu"]


def test_conda_environment_has_the_versions_of_the_lock():
    assert "-e ." in CONDA_PIP
    pins = exact_pins(line for line in CONDA_PIP if line != "-e .")
    assert pins == {name: LOCK.get(name) for name in pins}


def test_conda_environment_runs_the_chapters():
    pins = exact_pins(line for line in CONDA_PIP if line != "-e .")
    needed = {canonicalize_name(Requirement(line).name) for line in LOWEST}
    assert needed | {"scikit-image", "jupyterlab", "jupyterlab-myst", "jupytext", "ipykernel"} <= pins.keys()
    assert not pins.keys() & {"torch", "jupyter-book", "sphinx"}


def modules_of(chapter):
    """Names of the packages that the cells of a chapter import."""
    cells = [cell.source for cell in jupytext.read(chapter).cells if cell.cell_type == "code"]
    lines = [line for source in cells for line in source.splitlines() if not line.startswith(("%", "!"))]
    found = set()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module.split(".")[0])
    ours = {"rbal", "rbal_book", *(path.stem for path in (ROOT / "tools").glob("*.py"))}
    return found - set(sys.stdlib_module_names) - ours


@pytest.mark.parametrize("chapter", sorted((ROOT / "notebooks").glob("*.md")), ids=lambda path: path.stem)
def test_readers_have_what_a_chapter_imports(chapter):
    pins = exact_pins(line for line in CONDA_PIP if line != "-e .")
    packages = packages_distributions()
    missing = {name for name in modules_of(chapter) if not {canonicalize_name(d) for d in packages[name]} & pins.keys()}
    assert not missing


# ---- Binder


@pytest.mark.parametrize("name", ["postBuild", "start"])
def test_what_binder_runs_can_be_run(name):
    path = ROOT / name
    assert os.access(path, os.X_OK)
    assert path.read_text().startswith("#!/usr/bin/env bash\n")
    subprocess.run(["bash", "-n", path], check=True)


def printed(*command, **environment):
    """What a command prints, in an environment without a choice of CPU."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_CPU")}
    return subprocess.check_output(command, cwd=ROOT, env={**clean, **environment}, text=True)


def through_start(*command, **environment):
    """The same, run as Binder runs it."""
    return printed(ROOT / "start", *command, **environment)


def test_start_runs_what_it_is_given():
    assert through_start("echo", "a b", "$HOME") == "a b $HOME\n"
    assert "./start python -m rbal_book.warmup --jobs 2" in (ROOT / "postBuild").read_text().splitlines()


def test_binder_compiles_for_the_family_of_its_cpu():
    """What `start` exports is what compiled files of a wheel are made for."""
    family = cache.FAMILIES["x86_64"][0]
    assert f"export NUMBA_CPU_NAME={family} NUMBA_CPU_FEATURES=\n" in (ROOT / "start").read_text()


LOADS = """
import sys
import llvmlite.binding
if len(sys.argv) > 1:  # a machine with another name, and one feature more or less
    features = llvmlite.binding.get_host_cpu_features()
    features["clzero"] = not features.get("clzero", False)
    llvmlite.binding.get_host_cpu_name = lambda: sys.argv[1]
    llvmlite.binding.get_host_cpu_features = lambda: features
from rbal._support.gauss import pdf as kernel
kernel(0.5)
stats = kernel.outer.stats
print(sum(stats.cache_misses.values()), sum(stats.cache_hits.values()))
"""


def test_what_one_cpu_compiled_another_loads(tmp_path):
    """Binder builds on one machine and runs on another; numba keeps its code by the name of the CPU."""
    if "NUMBA_CPU_NAME" not in through_start("env"):
        pytest.skip("this CPU has no AVX2, for which Binder compiles")
    home = {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    run = [sys.executable, "-c", LOADS]
    assert through_start(*run, **home) == "1 0\n"
    assert through_start(*run, "skylake-avx512", **home) == "0 1\n"
    # without the choice of a CPU it would be compiled for each
    home["NUMBA_CACHE_DIR"] = str(tmp_path / "plain")
    assert [printed(*run, *cpu, **home) for cpu in ([], ["haswell"])] == ["1 0\n", "1 0\n"]


def test_python_versions_agree():
    supported = SpecifierSet(PROJECT["requires-python"])
    (conda,) = [entry.removeprefix("python=") for entry in CONDA if str(entry).startswith("python=")]
    (locked,) = re.findall(r"with Python (\S+)\. Do not", "\n".join(LOCK_LINES))
    workflow = yaml.safe_load(WORKFLOW)
    tested = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    target = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["target-version"]
    assert conda == locked == tested[0]
    assert str(supported) == f">={tested[0]}"
    assert target == "py" + tested[0].replace(".", "")
    fast = workflow["jobs"]["fast"]["strategy"]["matrix"]["python"]
    assert all(supported.contains(version) for version in (*tested, *fast))
    assert fast[: len(tested)] == tested
    (lowest,) = [step["with"]["python-version"] for step in workflow["jobs"]["lowest"]["steps"] if "with" in step]
    assert lowest == tested[0]
    assert set(workflow["jobs"]["publish"]["needs"]) == set(workflow["jobs"]) - {"publish"}


def test_citation_has_the_version_of_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert str(citation["version"]) == PROJECT["version"]
    assert citation["license"] == LICENCES[0]  # of the program; data have their own


def test_licences_of_the_data_are_those_of_the_package():
    """A wheel says in its metadata what its data are under, and carries what their licences ask for."""
    readmes = sorted((ROOT / "rbal_book").glob("**/_data/README.md"))
    texts = [path.read_text(encoding="utf-8") for path in readmes]
    assert {"MIT", *re.findall(r"SPDX: ([\w.-]*\w)", "".join(texts))} == set(LICENCES)
    assert PROJECT["license-files"] == ["LICENSE", *(path.relative_to(ROOT).as_posix() for path in readmes)]
    for path, text in zip(readmes, texts, strict=True):
        assert not [file.name for file in path.parent.iterdir() if file.name not in text and file != path]


# Written as patterns with an escape in each, so that this file does not match itself.
MACHINE_TRACES = {
    "a registry host": r"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|deb\.debian\.org|conda\.anaconda\.org",
    "a local file address": r"file:/\/",
    "an absolute path of one machine": r"(?<![\w.])/(?:home|root|tmp|Users)/[\w.]",
}


@pytest.mark.parametrize("what", MACHINE_TRACES)
def test_no_file_names(what):
    pattern = re.compile(MACHINE_TRACES[what])
    found = []
    for path in repository_files():
        content = path.read_bytes()
        if b"\0" in content:
            continue
        for number, line in enumerate(content.decode("utf-8", errors="replace").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("what", "example"),
    [
        ("a registry host", "https://pypi." + "org/simple"),
        ("a local file address", "numpy @ file:" + "///wheels/numpy.whl"),
        ("an absolute path of one machine", "see /" + "home/ada/notes.txt"),
    ],
)
def test_traces_are_recognised(what, example):
    assert re.search(MACHINE_TRACES[what], example)


def test_no_file_is_large():
    large = {
        str(path.relative_to(ROOT)): size for path in repository_files() if (size := path.stat().st_size) > MAX_BYTES
    }
    assert not large


def test_files_that_comments_name_exist():
    """The explorers name the Python files whose twins they are, CONTRIBUTING those that a recipe touches."""
    sources = [ROOT / "CONTRIBUTING.md", *(ROOT / "book" / "_static" / "explorer").rglob("*.js")]
    named = {path: re.findall(r"\b(?:rbal|rbal_book|tests|tools)/[\w/]+\.py\b", path.read_text()) for path in sources}
    files = {name for names in named.values() for name in names if not name.endswith("/_name.py")}
    assert len(files) > 10
    assert not {name for name in files if not (ROOT / name).exists()}
