"""The wheel with its core dependencies alone: what works, and what says which extra it needs."""

import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]

SESSION = """
from importlib.util import find_spec
import numpy as np
import rbal
left_out = "rbal_book", "matplotlib", "contourpy", "ipywidgets", "skimage", "pyarrow", "torch"
assert not [name for name in left_out if find_spec(name)]
sol = rbal.solve(rbal.Moments.ising(m=0.4, delta=1.0, L=50), alpha_pos=2.0, alpha_neg=5.0, kappa=0.5)
assert sol.converged and 0.5 < sol.metrics.ba() < 1.0
X, y = rbal.datasets.synthetic.random_gaussian(0, L=6).sample(30, 60, 0)
assert np.bincount(rbal.RandomMixSampler(random_state=0).fit_resample(X, y)[1] > 0).tolist() == [45, 45]
rbm = rbal.RBM(4, n_epochs=2, progress=False, random_state=0).fit((X > 0).astype(int))
assert rbm.sample(3, random_state=0).shape == (3, 6)
advice = rbal.advise(X, y, C=1.0, kernel="linear", draws=4, progress=False)
assert advice.pipeline(random_state=0).fit(X, y).score(X, y) > 0.5
assert "<html" not in advice.explain()
small = rbal.RBM(4, n_epochs=2, progress=False, random_state=0)
sampler = rbal.LikelihoodInformedSampler(rbm=small, over_range=None, random_state=0)
sampler.fit_resample((X > 0).astype(int), y)
for call in (advice.plot, advice.to_html, lambda: rbal.widgets, lambda: sampler.plot()):
    try:
        call()
    except ImportError as error:
        print(error)
"""
TOLD = [
    "Advice.plot needs matplotlib, which is not installed: pip install 'rbal[plot]'",
    "the page of an advice needs matplotlib, which is not installed: pip install 'rbal[plot]'",
    "rbal.widgets needs ipywidgets, which is not installed: pip install 'rbal[widgets]'",
    "LikelihoodInformedSampler.plot needs matplotlib, which is not installed: pip install 'rbal[plot]'",
]


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """Python of a new environment with the wheel, its dependencies in the locked versions, and nothing else."""
    pytest.importorskip("hatchling", reason="the build backend is in the extra dev")
    folder = tmp_path_factory.mktemp("core")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("RBAL_", "PYTHONPATH"))}
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, env=clean)
    (wheel,) = folder.glob("*.whl")
    assert wheel.stat().st_size < 1_500_000
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "-qq", "--no-compile"]
    subprocess.run([*pip, "-c", ROOT / "requirements.lock", wheel], check=True)
    return python


@pytest.mark.slow
def test_the_core_solves_samples_trains_and_advises(core, tmp_path):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("RBAL_", "PYTHONPATH"))}
    done = subprocess.run([core, "-c", SESSION], cwd=tmp_path, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == TOLD


@pytest.mark.slow
@pytest.mark.parametrize(("option", "extra"), [(("--html", "page.html"), "plot"), ((), None)])
def test_the_command_of_the_core(core, tmp_path, option, extra):
    rows = "\n".join(f"{i % 7},{(3 * i) % 5},{'yes' if i % 4 == 0 else 'no'}" for i in range(80))
    (tmp_path / "t.csv").write_text(f"a,b,y\n{rows}\n")
    command = [core.parent / "rbal", "advise", "t.csv", "--label", "y", "--C", "1", "--kernel", "linear", *option]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        (0, "")
        if extra is None
        else (1, f"rbal: --html needs matplotlib, which is not installed: pip install 'rbal[{extra}]'\n")
    )


def test_errors_name_the_extras_that_there_are():
    from rbal._support.extras import PACKAGES

    for extra, packages in PACKAGES.items():
        assert {line.split(">")[0] for line in EXTRAS[extra]} == set(packages)
