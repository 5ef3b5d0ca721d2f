"""Test with the lowest versions that pyproject.toml allows, in an environment of its own below _build.

Run by ``make test-lowest``. The tests are the doctests, which call everything public, and the command with two classes
and three. Warnings are errors as in all tests, but for those of one dependency about another: the lowest versions stand
here beside what they themselves need, in its newest version.
"""

import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "_build" / "lowest"
COMMAND = ("test_text", "test_json_and_page", "test_check", "test_by_default_nothing_but_advice_is_printed")
TESTS = ("rbal", *(f"tests/test_cli.py::{name}" for name in COMMAND))


def pins():
    """Return each dependency, and those of the explorations, at the lowest version that is allowed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["widgets"]]
    if open_below := [line for line in lines if line.count(">=") != 1]:
        sys.exit(f"no lowest version: {open_below}")
    return [line.replace(">=", "==") for line in lines]


def install(python):
    """Install the lowest versions, and what runs the tests, if they are not there yet."""
    lines, note = [*pins(), "hypothesis", "pytest", "pyyaml"], PLACE / "installed.txt"
    if note.exists() and note.read_text().splitlines() == lines:
        return
    venv.create(PLACE, with_pip=True, clear=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "-qq", "--no-compile", *lines], check=True)
    subprocess.run([*pip, "check"], check=True)
    note.write_text("\n".join(lines) + "\n")


def main():
    """Make the environment and run the tests; return their exit code."""
    python = PLACE / "bin" / "python"
    install(python)
    print(*pins(), "on Python", ".".join(map(str, sys.version_info[:3])), flush=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(PLACE / "numba")}
    options = ("-q", "-p", "no:cacheprovider", "-W", "ignore::DeprecationWarning")
    return subprocess.run([python, "-m", "pytest", *options, *TESTS], cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
