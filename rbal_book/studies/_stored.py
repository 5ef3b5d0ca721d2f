"""Read and write the results of studies."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from rbal._support.files import any_path, atomic
from rbal._support.validation import one_of

RESULTS = Path(__file__).parent / "_results"
WORK = Path("_build") / "studies"  # unfinished work, in the folder that a study is run from


def stored(name, folder=None):
    """Return results of a study, which come with the package.

    Parameters
    ----------
    name : str
        Path of a file in the folder, without its ending: ``"sampling"``, ``"tables/measured"`` or ``"deep/epochs"``,
        for example. The error about an unknown name lists all names.
    folder : path, optional
        Folder given as ``--out`` to a run of your own; by default that of the package.

    Returns
    -------
    pandas.DataFrame or dict
        A table (csv), arrays by name (npz) or settings (json), as the file has them.

    Examples
    --------
    >>> stored("log_z")["machine"].nunique()
    6
    """
    root = RESULTS if folder is None else any_path("folder", folder)
    files = {p.relative_to(root).with_suffix("").as_posix(): p for p in root.rglob("*") if p.suffix in _READ}
    path = files[one_of("name", name, sorted(files))]
    return _READ[path.suffix](path)


def _arrays(path):
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


_READ = {
    ".csv": lambda path: pd.read_csv(path, comment="#"),
    ".npz": _arrays,
    ".json": lambda path: json.loads(path.read_text(encoding="utf-8")),
}


def write(path, table, header=(), **how):
    """Write a table under lines of comment; ``how`` goes to ``DataFrame.to_csv``."""
    comment = "".join(f"# {line}\n" for line in header)
    with atomic(path) as file:
        file.write((comment + table.to_csv(index=False, lineterminator="\n", **how)).encode())


def renew(path, table):
    """Write a table with five digits, unless the file holds more rows, so that no run replaces a longer one."""
    if not path.exists() or len(table) >= len(pd.read_csv(path)):
        write(path, table.round(5))
