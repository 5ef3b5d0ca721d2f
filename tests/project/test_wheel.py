"""A wheel that carries compiled files: installed elsewhere, it compiles nothing. Without being asked, none does."""

import email
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from numba import config

from rbal._support import cache

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(config.DISABLE_JIT or cache.family() is None, reason="no compiled files are made here"),
]

FIRST_SOLVE = """
import json, sys, warnings
import llvmlite.binding
features = llvmlite.binding.get_host_cpu_features()
features["clzero"] = not features.get("clzero", False)
llvmlite.binding.get_host_cpu_name = lambda: sys.argv[1]  # another machine of the same family
llvmlite.binding.get_host_cpu_features = lambda: features
import rbal
from rbal._support.compiling import counted
with counted() as counter:
    sol = rbal.solve(rbal.Moments.ising(m=0.4, delta=1.0, L=100), alpha_pos=2.0, alpha_neg=5.0, kappa=0.5)
print(json.dumps([rbal.__file__, counter.functions, sol.q]))
"""


def built(folder, **environment):
    """The wheel that is built in this environment."""
    pytest.importorskip("hatchling", reason="the build backend is in the extra dev")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    clean = {name: value for name, value in os.environ.items() if name != "RBAL_COMPILE"}
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=clean | environment)
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_a_plain_wheel_is_for_any_platform(tmp_path):
    wheel = built(tmp_path)
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.endswith((".nbc", ".nbi"))]
    (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
    told = email.message_from_bytes(zipfile.ZipFile(wheel).read(metadata))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert told["License-Expression"] == project["license"]
    assert told.get_all("License-File") == project["license-files"]
    assert {metadata.replace("METADATA", f"licenses/{name}") for name in told.get_all("License-File")} <= set(names)


def test_what_comes_with_a_wheel_is_not_compiled(tmp_path):
    import json

    import rbal

    wheel = built(tmp_path, RBAL_COMPILE="solver")
    assert f"-cp{sys.version_info[0]}{sys.version_info[1]}-none-" in wheel.name
    assert not wheel.name.endswith("-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert f"rbal/_compiled/{cache.MANIFEST}" in names
    assert any(name.startswith("rbal/_compiled/saddle/") for name in names)

    elsewhere = tmp_path / "elsewhere"
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--no-index", "--target", str(elsewhere)]
    subprocess.run([*pip, str(wheel)], check=True)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "RBAL_", "PYTHON"))}
    environment = clean | {"PYTHONPATH": str(elsewhere), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    command = [sys.executable, "-c", FIRST_SOLVE, "alderlake"]
    printed = subprocess.check_output(command, cwd=tmp_path, env=environment, text=True)
    place, functions, q = json.loads(printed)
    assert Path(place).is_relative_to(elsewhere)
    assert functions == 0
    assert not list((tmp_path / "kept").rglob("*.nbc"))
    here = rbal.solve(rbal.Moments.ising(m=0.4, delta=1.0, L=100), alpha_pos=2.0, alpha_neg=5.0, kappa=0.5)
    assert abs(q / here.q - 1.0) < 1e-9
