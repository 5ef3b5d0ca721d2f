"""Write requirements.lock: the exact versions of everything the book, the tests and the tools need, torch left out.

Run by ``make lock``, which then installs what it wrote. The versions are the newest that pyproject.toml allows.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
HEADER = """\
# Exact versions of everything that `make` installs. Written by `make lock` from pyproject.toml
# (the extras plot, widgets, book, test and dev), with Python {python}. Do not edit by hand.
"""


def main():
    """Resolve in a fresh environment and freeze it."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        pip = [str(Path(folder, "bin", "python")), "-m", "pip", "--disable-pip-version-check"]
        # setuptools is upgraded because Python 3.11 brings an old one, and 3.12 none
        subprocess.run(
            [*pip, "install", "-qq", "--upgrade", "setuptools", f"{ROOT}[plot,widgets,book,test,dev]"], check=True
        )
        freeze = [*pip, "freeze", "--all", "--exclude", "pip", "--exclude", "rbal"]
        frozen = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout
    pins = frozen.splitlines()
    if not_exact := [pin for pin in pins if "==" not in pin]:
        sys.exit(f"not an exact version, so nothing was written: {not_exact}")
    python = ".".join(map(str, sys.version_info[:2]))
    LOCK.write_text(HEADER.format(python=python) + "\n".join(pins) + "\n")
    print(f"{LOCK.name}: {len(pins)} packages")


if __name__ == "__main__":
    main()
