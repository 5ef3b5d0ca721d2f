"""Read a table whose label takes three values or more, and refuse labels that are no classes."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from .._support.frames import is_time
from ._features import TableError, features
from ._pipeline import coding
from ._table import FEWEST, Coder, _plain

MOST_CLASSES = 1_000  # a label with more values is a number, a text or a name
MOST_COLUMNS = 3_000  # largest number of coded columns whose covariance is diagonalised
MOST_ROWS = 20_000  # rows that the statistics of the classes are of: a larger table is sampled down
FEWEST_KEPT = 50  # rows of each class that sampling down keeps, if there are so many


@dataclass
class ManyData:
    """A coded table of T classes: sizes, rows as the classifier sees them, and a report of what was done to it."""

    classes: list  # of T labels, sorted
    sizes: np.ndarray  # (T,)
    X: np.ndarray  # (n, D)
    y: np.ndarray  # (n,) index of the class
    numeric: list
    categorical: list
    imputed: dict
    dropped: dict
    standardize: bool
    names: list
    frame: object  # the n rows as they came, for the check
    notes: list = field(default_factory=list)
    is_sparse: bool = False
    is_unusual: bool = False
    source: object = None  # the file that it was read from, if it was

    @property
    def D(self):
        """Number of features."""
        return self.X.shape[1]

    @property
    def columns(self):
        """Names of all columns that were used."""
        return [*self.numeric, *self.categorical]


class ManyCoder(Coder):
    """Codes blocks of rows of three classes or more."""

    most_classes = MOST_CLASSES

    def add(self, block, labels):
        """Add a block: a DataFrame of features, and their labels (n,)."""
        if is_time(pd.Series(labels)):
            raise TableError("the label holds dates, which are no classes: cut them into periods, or choose another")
        super().add(block, labels)

    def too_many(self):
        """Return the error for a label with more values than classes can be."""
        shown = ", ".join(repr(_plain(label)) for label in list(self.classes)[:3])
        return TableError(
            f"the label takes more than {MOST_CLASSES:,} values ({shown}, …): it is a number, a text or a name, and no "
            "class. Cut numbers into ranges, or choose another column"
        )

    def finish(self, positive=None):
        """Return the ManyData of all blocks."""
        if positive is not None:
            raise TableError(f"positive goes with two classes, got {positive!r} for {len(self.classes)}")
        self._check_classes()
        _, numeric, categorical = features(self)
        classes = sorted(self.classes, key=_order)
        most = max(FEWEST_KEPT, MOST_ROWS // len(classes))
        kept = [block.iloc[np.sort(np.argsort(rank)[:most])] for block, rank in (self.kept[c] for c in classes)]
        rows = self._frame(pd.concat(kept), numeric, categorical)
        names = {name: str(name) for name in rows.columns}
        coder = coding([names[n] for n in numeric], [names[n] for n in categorical], self.standardize)
        X = np.asarray(coder.fit_transform(rows.rename(columns=names)), float)
        if X.shape[1] > MOST_COLUMNS:
            raise TableError(f"{X.shape[1]:,} coded columns, and many classes: select at most {MOST_COLUMNS:,}")
        sizes = np.array([self.classes[label].n for label in classes])
        if len(X) < sizes.sum():
            self.notes.append(
                f"The statistics of the classes are those of {len(X):,} of {sizes.sum():,} rows, drawn at random."
            )
        y = np.repeat(np.arange(len(classes)), [len(part) for part in kept])
        return ManyData(
            [_plain(label) for label in classes], sizes, X, y, numeric, categorical, self.imputed, self.dropped,
            self.standardize, self.names, rows, self.notes,
        )  # fmt: skip

    def _check_classes(self):
        """Raise an error for classes with too few rows, or for a label that is a text."""
        sizes = pd.Series({str(_plain(label)): sums.n for label, sums in self.classes.items()})
        few, n = sizes[sizes < FEWEST], int(sizes.sum())
        if few.empty:
            return
        if FEWEST * len(sizes) > n or len(few) > 0.5 * len(sizes):
            raise TableError(
                f"the label takes {len(sizes):,} values in {n:,} rows, {int((sizes == 1).sum()):,} of them once: it is "
                "a number, a text or a name, and no class. Choose another column"
            )
        count = f"{few.iloc[0]} row{'s' if few.iloc[0] > 1 else ''}"
        count += f", and {len(few) - 1} other classes too few" if len(few) > 1 else ""
        raise TableError(
            f"label {few.index[0]!r} has {count}: at least {FEWEST} are "
            "needed of each class, and 30 to be of use. Leave its rows out, or join it with another class"
        )


def _order(label):
    """Return a key that sorts labels as scikit-learn does, and labels of several types by type."""
    kind = "number" if isinstance(label, (bool, int, float, np.number, np.bool_)) else type(label).__name__
    return kind, label
