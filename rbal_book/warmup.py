"""Compile all that chapters call, so that none waits: ``python -m rbal_book.warmup --jobs 2`` (make, Binder)."""

import argparse
import sys

from rbal import warmup


def lattice():
    """Lattice proteins: folding, and chains of sequences."""
    from rbal_book.datasets import lattice

    structures = lattice.load_structures()
    start, end = (structures.native[name] for name in "AC")
    lattice.p_nat(lattice.load_dimers()[:2, :27], structures, start)
    few = {"n_samples": 2, "n_chains": 2, "burn_in": 19, "thin": 1, "p_min": 1e-12, "n_jobs": 1, "progress": False}
    lattice.sample_dimers(structures, start, end, chi=5.0, rng=0, **few)


#: Those of the library, and the book's own.
STEPS = (*warmup.STEPS, warmup.Step(lattice))


def run(jobs=None, *, progress=True):
    """Compile what is not in numba's cache; see :func:`rbal.warmup.run`."""
    return warmup.run(jobs=jobs, progress=progress, steps=STEPS)


def main():
    """Compile, and say what was done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, help="processes at a time (as many as cores)")
    done = run(parser.parse_args().jobs, progress=sys.stderr.isatty())
    print(f"compiled {done.functions} functions in {done.seconds:.0f} s, kept in {done.folder}")


if __name__ == "__main__":
    main()
