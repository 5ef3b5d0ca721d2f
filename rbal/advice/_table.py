"""Reduce a table of any kind to what the theory takes: class sizes, means and covariances of coded columns.

Rows are read once, a block at a time. Numbers are scaled, other columns become one indicator per level, and a missing
value is first coded as an indicator of its own. Means, modes and scales are only known at the end, but imputing and
scaling are linear in these columns, so that one matrix applied to the accumulated moments does both exactly.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy import sparse

from .._support.frames import as_pandas, distinct, factorized, floats, is_plain, is_time, needs_plain
from .._support.validation import LARGEST, listed, n_dimensions
from ..moments.internal import from_covariances, from_rows
from ._features import Counting, Ends, ManyLabels, TableError, features, still_counting, unnamed
from ._numbers import ANYWHERE
from ._sums import Sums, middles_and_widths, moments

MOST_LEVELS = 100  # a categorical column with more levels is an identifier or free text
MOST_COLUMNS = 10_000  # largest number of coded columns whose covariance is held in memory
MOST_FLOATS = 32_000_000  # cells of coded rows that are held in memory before they are summed up
BLOCK_FLOATS = 4_000_000  # cells that are coded at once
FEWEST = 5  # smallest class about which anything can be said
FAR = 1e30  # a number larger than this, and by this factor larger than the others, is a slip or a code for missing
KEPT = 4_000  # rows of each class that are kept as they came, for diagnosis and for the check


@dataclass
class Data:
    """A coded table: sizes, moments, a report of what was done to it, and some of its rows."""

    n_pos: int
    n_neg: int
    D: int
    sample: object
    positive: object
    negative: object
    numeric: list  # names of the columns that were used, as they are in the table
    categorical: list
    imputed: dict = field(default_factory=dict)  # from column to number of missing values
    dropped: dict = field(default_factory=dict)  # from column to reason
    standardize: bool = True
    rows: tuple = ()  # (X, is positive) of the rows that were kept
    names: list = field(default_factory=list)  # of all columns of the table
    is_sparse: bool = False
    is_unusual: bool = False  # whether scikit-learn needs the frame made plain
    notes: list = field(default_factory=list)  # sentences on what was recognised and left out
    source: object = None  # the file that it was read from, if it was

    @property
    def columns(self):
        """Names of all columns that were used."""
        return [*self.numeric, *self.categorical]


def from_arrays(X, y, positive=None, categorical="auto", standardize=True, random_state=0, keep=(), *, kind=None):
    """Return the Data of a table in memory: X (n, L) of any kind, y (n,); ``kind`` is the Coder to use."""
    if isinstance(X, (list, tuple)):
        n_dimensions("X", X)
    unusual = needs_plain(X)
    X, y = as_pandas(with_gaps(X), "X"), _one_dimension(y)
    if sparse.issparse(X):
        X = X.tocsr()
    elif not isinstance(X, pd.DataFrame):
        X = np.asarray(X)
        if X.dtype.kind in "biuf" and not X.dtype.isnative:  # pandas takes no others
            X = X.astype(X.dtype.newbyteorder("="))
        if X.ndim != 2:
            raise TableError(f"X must have two dimensions, got shape {X.shape}")
        X = pd.DataFrame(X).infer_objects() if X.dtype == object else pd.DataFrame(X)
    if X.shape[0] != len(y):
        raise TableError(f"X and y must have as many rows, got {X.shape[0]} and {len(y)}")
    coder = (kind or Coder)(categorical, standardize, random_state, keep)
    size = max(64, BLOCK_FLOATS // max(X.shape[1], 1))
    for start in range(0, len(y), size):
        part = slice(start, start + size)
        coder.add(frame(X, part), y[part])
    data = coder.finish(positive)
    data.is_sparse, data.is_unusual = sparse.issparse(X), unusual
    data.notes += coder.numbers_as_text()
    return data


def _one_dimension(y):
    y = as_pandas(with_gaps(y), "y")
    try:
        y = np.asarray(y)
    except ValueError:
        raise TableError("y must hold one label for each row, got lists of several lengths") from None
    if y.ndim != 1:
        raise TableError(f"y must have one dimension, got shape {y.shape}")
    return y


def with_gaps(array):
    """Return a masked array with NaN in place of masked values, and anything else unchanged."""
    if not np.ma.isMaskedArray(array):
        return array
    if not np.ma.is_masked(array):
        return np.asarray(array)
    return array.astype(float if array.dtype.kind in "biuf" else object).filled(np.nan)


def frame(X, rows):
    """Return some rows as a DataFrame."""
    if sparse.issparse(X):
        return pd.DataFrame(X[rows].toarray())
    return X.iloc[rows]


class Coder:
    """Codes blocks of rows, and adds up their moments class by class."""

    most_classes = 2

    def __init__(self, categorical="auto", standardize=True, random_state=0, keep=()):
        self.categorical = categorical if isinstance(categorical, str) else listed("categorical", categorical)
        self.standardize, self.keep = standardize, listed("keep", keep)
        self.names, self.forced = None, ()
        self.keys = {}  # from ("value", column), ("missing", column) or ("level", column, level) to an index
        self.levels = {}  # from a categorical column to the indices of its levels
        self.kind, self.origin, self.ends = {}, {}, Ends()
        self.imputed, self.dropped = {}, {}
        self.classes, self.kept = {}, {}
        self.notes = []
        self.counts = {}  # columns that may be an index
        self.held = 0
        self.rng = np.random.default_rng(random_state)

    def add(self, block, labels):
        """Add a block: a DataFrame of features, and their labels (n,)."""
        if not len(block):
            return
        labels = pd.Series(np.asarray(labels))
        if labels.isna().any():
            raise TableError(f"the label is missing in {int(labels.isna().sum())} rows: fill them in or drop them")
        found, rank = distinct(labels), self.rng.random(len(block))  # in the order of the rows, whatever the blocks
        if self.names is None:
            self._begin(block)
        self.counts = still_counting(self.counts, block)
        A = self._coded(block)
        for label in found:
            if label not in self.classes:
                self.classes[label] = Sums()
                if len(self.classes) > self.most_classes:
                    raise self.too_many()
            member = (labels == label).to_numpy()
            self.classes[label].add(A[member])
            self._keep(label, block[member], rank[member])
        self.held += A.size
        if self.held > MOST_FLOATS:
            self._sum_up()

    def too_many(self):
        """Return the error for a label with more values than there may be classes."""
        return ManyLabels(_too_many(list(self.classes)))

    def _begin(self, block):
        """Decide the kind of each column from the first block."""
        self.names = list(block.columns)
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise TableError(f"two columns are called {twice!r}: rename one")
        written = {}
        for name in self.names:
            other = written.setdefault(str(name), name)
            if other is not name:
                raise TableError(f"columns {_plain(other)!r} and {_plain(name)!r} have one name as text: rename one")
        for name in self.keep:
            if name not in self.names:
                raise TableError(f"there is no column {name!r} to keep: there are {_some(self.names)}")
        nameless, kept = set(unnamed(self.names)), set(self.keep)
        self.counts = {name: Counting(name in nameless) for name in self.names if name not in kept}
        if not isinstance(self.categorical, str):
            missing = [name for name in self.categorical if name not in self.names]
            if missing:
                raise TableError(f"there is no column {missing[0]!r} to be categorical: there are {_some(self.names)}")
            self.forced = tuple(self.categorical)
        elif self.categorical != "auto":
            raise TableError(f"categorical must be 'auto' or a list of columns, got {self.categorical!r}")
        empty = block.isna().all().to_numpy()
        for name, dtype, nothing in zip(self.names, block.dtypes, empty, strict=True):
            if is_plain(dtype):
                numeric = True
            elif is_time(block[name]):
                self.kind[name], self.dropped[name] = "dropped", "dates: turn them into numbers to use them"
                continue
            elif pd.api.types.is_complex_dtype(dtype):
                raise TableError(f"column {name!r} holds complex numbers: take real features from it")
            else:
                numeric = pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)
            kind = "category" if name in self.forced or not numeric else "number"
            self.kind[name] = "unknown" if nothing and name not in self.forced else kind

    def _coded(self, block):
        """Return the coded columns of a block, (n, K): numbers, missing values and levels."""
        if list(block.columns) != self.names:
            raise TableError("all blocks of rows must have the same columns")
        parts, numbers = [], []
        for name, kind in self.kind.items():
            if kind == "unknown" and block[name].notna().any():
                kind = self.kind[name] = "number" if pd.api.types.is_numeric_dtype(block[name]) else "category"
            if kind == "unknown":  # empty so far
                self.imputed[name] = self.imputed.get(name, 0) + len(block)
                parts.append((self._place(("missing", name)), np.ones(len(block))))
            elif kind == "number":
                numbers.append(name)
            elif kind == "category":
                parts += self._levels(name, block[name])
        if numbers:
            parts += self._numbers(numbers, block)
        A = np.zeros((len(block), len(self.keys)))
        for place, column in parts:
            A[:, place] += column  # += since levels 1 and "1" share a place
        return A

    @property
    def n(self):
        """Number of rows so far."""
        return sum(sums.n for sums in self.classes.values())

    def _place(self, key):
        return self.keys.setdefault(key, len(self.keys))

    def _numbers(self, names, block):
        """Return pairs (index, coded column) of scaled numbers and of indicators of missing ones."""
        values = floats(names, block)
        missing = np.isnan(values)
        if np.isinf(values).any():
            name = names[int(np.argmax(np.isinf(values).any(axis=0)))]
            raise TableError(f"column {name!r} holds infinite values: replace them or leave them empty")
        new = [j for j, name in enumerate(names) if name not in self.origin]
        self.origin.update(zip((names[j] for j in new), middles_and_widths(values[:, new]).tolist(), strict=True))
        sizes = np.fmax.reduce(np.abs(values), axis=0, initial=0.0)
        for j in np.flatnonzero(sizes >= FAR):
            _check_extremes(names[j], values[~missing[:, j], j], *self.origin[names[j]])
        if (sizes > LARGEST).any():
            j = int(np.argmax(sizes > LARGEST))
            raise TableError(
                f"column {names[j]!r} holds {sizes[j]:g}, more than {LARGEST:g}, "
                "whose square is no number: correct it, or divide the column by its scale"
            )
        self.ends.add(names, values)
        origin = np.array([self.origin[name] for name in names])
        coded = (values - origin[:, 0]) / origin[:, 1]
        coded[missing] = 0.0
        parts = [([self._place(("value", name)) for name in names], coded)]
        for j in np.flatnonzero(missing.any(axis=0)):
            self.imputed[names[j]] = self.imputed.get(names[j], 0) + int(missing[:, j].sum())
            parts.append((self._place(("missing", names[j])), missing[:, j]))
        return parts

    def relabel(self, new):
        """Rename the classes by a dict from old to new labels."""
        self.classes = {new[label]: sums for label, sums in self.classes.items()}
        self.kept = {new[label]: kept for label, kept in self.kept.items()}

    def numbers_as_text(self):
        """Return sentences on columns of text that hold numbers, for example because of a word for missing values."""
        from ._texts import written_numbers

        said = []
        for name in self.names:
            if self.kind[name] == "number" or name in self.forced:
                continue
            example = written_numbers(pd.concat([kept[0][name] for kept in self.kept.values()]))
            if example is not None:
                said.append(
                    f"Column {_plain(name)!r} holds numbers as text (and {example!r}), and is not taken as numbers: "
                    "convert it, for example with pandas.to_numeric(column, errors='coerce')."
                )
        return said

    def _levels(self, name, column):
        """Return pairs (index, indicator) of the levels of a column and of its missing values."""
        parts = []
        codes, levels = factorized(column, name)
        if (codes < 0).any():
            self.imputed[name] = self.imputed.get(name, 0) + int((codes < 0).sum())
            parts.append((self._place(("missing", name)), codes < 0))
        known = self.levels.setdefault(name, {})
        for k, level in enumerate(levels):
            place = known.setdefault(str(level), None)
            if len(known) > MOST_LEVELS:
                self.kind[name] = "dropped"
                self.dropped[name] = f"more than {MOST_LEVELS} levels: an identifier, or text"
                self.imputed.pop(name, None)
                return []
            if place is None:
                place = known[str(level)] = self._place(("level", name, str(level)))
            parts.append((place, codes == k))
        return parts

    def _sum_up(self):
        if len(self.keys) > MOST_COLUMNS:
            raise TableError(
                f"{len(self.keys):,} coded columns in more rows than fit in memory: select at most {MOST_COLUMNS:,}"
            )
        for sums in self.classes.values():
            sums.summed(len(self.keys))
        self.held = 0

    def _keep(self, label, block, rank):
        """Keep those rows of each class that have the smallest random ranks, as they came."""
        old = self.kept.get(label)
        if old is not None:
            block, rank = pd.concat([old[0], block]), np.concatenate([old[1], rank])
        if len(block) > KEPT:
            chosen = np.sort(np.argpartition(rank, KEPT)[:KEPT])
            block, rank = block.iloc[chosen], rank[chosen]
        self.kept[label] = block, rank

    def finish(self, positive=None):
        """Return the Data of all blocks."""
        pos, neg = self._labels(positive)
        T, numeric, categorical = features(self)
        K, D = T.shape
        sums = [self.classes[label] for label in (pos, neg)]
        if all(s.products is None for s in sums) and sums[0].n + sums[1].n - 2 < D:
            sample = from_rows(*(s.rows(K) @ T for s in sums))
        else:
            if K > MOST_COLUMNS:
                raise TableError(f"{K:,} coded columns and more rows: select at most {MOST_COLUMNS:,} columns")
            sample = from_covariances(sums[0].n, sums[1].n, *moments(sums, T))
            if sample.outside > 1e-6 * (sample.outside + sample.shift @ sample.shift):
                self.notes.insert(0, "LEAK? Some columns together tell the label of every row: look for those that do.")
        rows = self._rows(pos, neg, numeric, categorical)
        return Data(
            sums[0].n, sums[1].n, D, sample, _plain(pos), _plain(neg), numeric, categorical, self.imputed, self.dropped,
            self.standardize, rows, self.names, notes=self.notes,
        )  # fmt: skip

    def _rows(self, pos, neg, numeric, categorical):
        """Return the kept rows (numbers as floats, levels as strings, NaN if missing), and which are positive (n,)."""
        kept = [self.kept[label][0] for label in (pos, neg)]
        return self._frame(pd.concat(kept), numeric, categorical), np.repeat([True, False], [len(k) for k in kept])

    def _frame(self, both, numeric, categorical):
        """Return rows with numbers as floats and levels as strings, NaN if missing."""
        rows = pd.DataFrame(floats(numeric, both), columns=pd.Index(numeric, dtype=object))
        for name in categorical:
            levels, here = both[name].astype(object).to_numpy(), both[name].notna().to_numpy()
            text = np.full(len(levels), np.nan, object)
            text[here] = [str(level) for level in levels[here]]
            rows[name] = pd.Series(text, dtype=object)
        used = set(rows.columns)
        return rows[[name for name in self.names if name in used]] if categorical else rows

    def _labels(self, positive):
        if not self.classes:
            raise TableError("the table has no rows")
        if len(self.classes) == 1:
            raise TableError(f"the label is always {_plain(next(iter(self.classes)))!r}: two classes are needed")
        few = min(self.classes, key=lambda label: self.classes[label].n)
        if self.classes[few].n < FEWEST:
            raise TableError(
                f"label {_plain(few)!r} has {self.classes[few].n} rows: "
                f"at least {FEWEST} are needed, and 30 to be of use"
            )
        if positive is not None:
            if n_dimensions("positive", positive) or pd.isna(positive):
                raise TableError(f"positive must be one label, got {positive!r}")
            few = next((label for label in self.classes if label == positive or str(label) == str(positive)), None)
            if few is None:
                shown = " and ".join(repr(_plain(label)) for label in self.classes)
                raise TableError(f"positive must be one of the labels, {shown}, got {positive!r}")
        elif len({sums.n for sums in self.classes.values()}) == 1:
            few = max(self.classes, key=lambda label: (str(type(label)), label))  # of equal classes, the larger label
        return few, next(label for label in self.classes if label != few)


def _check_extremes(name, values, middle, width):
    """Raise an error for a cell so large that no digit of the others is left in the mean and the variance."""
    sizes = np.abs(values)
    largest = sizes.max(initial=0.0)
    if largest < FAR:
        return
    typical = np.median(sizes[sizes > 0.0])
    if largest / FAR > typical or largest / FAR > width + abs(middle):
        cell = values[np.argmax(sizes)]
        raise TableError(
            f"column {_plain(name)!r} holds {cell:g}, beside which its other values vanish: correct it, leave it "
            f"empty, or read it as missing (--na {cell:g})"
        )


def _too_many(labels):
    shown = ", ".join(map(repr, map(_plain, labels[:3])))
    said = f"the label takes more than two values ({shown}, …): choose two classes, or code one against the rest"
    words = [label for label in labels if isinstance(label, str) and label in ANYWHERE]
    return f"{said}; where {words[0]!r} means that it is missing, leave these rows out" if words else said


def _plain(label):
    """Return a label as a Python type, for messages and reports."""
    return label.item() if isinstance(label, np.generic) else label


def _some(names):
    shown = ", ".join(repr(_plain(name)) for name in names[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")
