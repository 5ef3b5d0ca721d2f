"""Run the study behind the sampling figure (chapter 13), or what is missing of it, and write its table.

    python tools/sampling_study.py [--trials 100] [--n-jobs 1] [--store _build/sampling.jsonl]

Results are kept in the store as they come, so that an interrupted run goes on where it stopped. The table that comes
with the package, rbal/studies/_results/sampling.csv, is written anew after each round, once there are as many as it
holds.
"""

import argparse
import functools
from pathlib import Path

from tqdm.auto import trange

from rbal import experiments, studies
from rbal.datasets.images import load_mnist

ROOT = Path(__file__).resolve().parent.parent
SEED = 13


def main():
    """Run one trial of each size after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100, help="realisations of each size (default 100)")
    parser.add_argument("--n-jobs", type=int, default=1, help="workers (default 1)")
    parser.add_argument("--store", type=Path, default=ROOT / "_build" / "sampling.jsonl", help="keeps every result")
    options = parser.parse_args()
    options.store.parent.mkdir(parents=True, exist_ok=True)
    studies.RESULTS.mkdir(exist_ok=True)
    trial = functools.partial(studies.sampling, data=load_mnist("five", n_test=studies.N_TEST))
    grid, keep = {"P": studies.MINORITIES}, {"store": options.store, "n_jobs": options.n_jobs, "progress": False}
    for trials in trange(1, options.trials + 1):
        table = studies.tidy(experiments.run(trial, grid, trials, SEED, **keep))
        path = studies.RESULTS / "sampling.csv"
        if not path.exists() or trials >= studies.stored("sampling").trial.nunique():
            table.round(5).to_csv(path, index=False)


if __name__ == "__main__":
    main()
