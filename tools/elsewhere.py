"""Run chapters as other CPUs would compute them, and compare their key numbers with the same references.

``python tools/elsewhere.py 2`` runs every chapter under every setting, on two cores; ``--settings`` and ``--chapters``
choose. The last bits of a sum depend on the kernel of the BLAS, on fused multiplications in compiled
code, on numpy's own vector loops and on the number of threads. Sampling and training amplify them, so that a chapter
sees another, equally good, random run: what it says must hold there too.
"""

import argparse
import os
import subprocess
import sys

from numpy._core._multiarray_umath import __cpu_dispatch__ as VECTOR_LOOPS

import notebooks

# The kernels of the BLAS, the processor that numba compiles for, how many threads, and whether numpy's vector loops are
# off. Both run on any x86-64 processor of the last ten years. With no list of features, numba has those of the name.
SETTINGS = {
    "nehalem": {"blas": "Nehalem", "numba": "generic", "threads": 1, "plain": True},
    "sandybridge": {"blas": "Sandybridge", "numba": "sandybridge", "threads": 2, "plain": False},
}

# Chapters as notebooks, and what is compiled for them; not where tests that run at the same time write their own.
FOLDER = notebooks.ROOT / "_build" / "elsewhere"


def environment(blas, numba, threads, plain):
    """Environment variables of a setting."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    variables = {name: str(threads) for name in names}
    variables |= {"OPENBLAS_CORETYPE": blas, "NUMBA_CPU_NAME": numba, "NUMBA_CPU_FEATURES": ""}
    if plain:
        variables["NPY_DISABLE_CPU_FEATURES"] = " ".join(VECTOR_LOOPS)
    return variables


def run(setting, files, jobs):
    """Run the files of chapters under one setting; the exit code of pytest."""
    variables = environment(**SETTINGS[setting])
    print(f"\n{setting}: {' '.join(f'{name}={value!r}' for name, value in variables.items())}", flush=True)
    at_once = str(max(1, jobs // SETTINGS[setting]["threads"]))  # more threads than cores wait for each other
    command = [sys.executable, "-m", "pytest", "-c", "tools/nbval.ini", "--rootdir", ".", "-n", at_once, *files]
    where = os.environ | variables | {"NUMBA_CACHE_DIR": str(FOLDER / "numba")}
    return subprocess.run(command, cwd=notebooks.ROOT, env=where, check=False).returncode


def main():
    """Run what was asked for; exit 1 if anything differs."""
    every = [path.stem for path in notebooks.chapters()]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", type=int, help="cores: chapters that run at a time, if each has one thread")
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--chapters", nargs="+", choices=every, default=every, metavar="NAME")
    asked = parser.parse_args()
    chosen = [path for path in notebooks.chapters() if path.stem in asked.chapters]
    files = [str(notebooks.convert(path, FOLDER)) for path in chosen]
    failed = [setting for setting in asked.settings if run(setting, files, asked.jobs)]
    if failed:
        sys.exit(f"chapters differ from their references, or fail, as computed by: {', '.join(failed)}")


if __name__ == "__main__":
    main()
