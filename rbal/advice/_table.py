"""Reduce a table of any kind to what the theory takes: class sizes, means and covariances of coded columns.

Rows are read once, a block at a time. Numbers are scaled, other columns become one indicator per level, and a missing
value is first coded as an indicator of its own. Means, modes and scales are only known at the end, but imputing and
scaling are linear in these columns, so that one matrix applied to the accumulated moments does both exactly.

A label with three values or more is read by ManyCoder, which keeps coded rows instead of moments.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from .._support.frames import as_pandas, distinct, factorized, floats, is_plain, is_time, needs_plain
from .._support.validation import LARGEST, listed, n_dimensions
from ..moments.internal import from_covariances, from_rows
from ._columns import (
    Counting,
    Extremes,
    ManyLabels,
    Sums,
    TableError,
    class_moments,
    features,
    means_and_widths,
    plain_label,
    some_names,
    still_counting,
    unnamed,
)  # fmt: skip
from ._pipeline import coding
from ._text_columns import ANYWHERE, written_numbers

MOST_LEVELS = 100  # a categorical column with more levels is an identifier or free text
MOST_COLUMNS = 10_000  # largest number of coded columns whose covariance is held in memory
MOST_FLOATS = 32_000_000  # cells of coded rows that are held in memory before they are summed up
BLOCK_FLOATS = 4_000_000  # cells that are coded at once
FEWEST = 5  # smallest class about which anything can be said
FAR = 1e30  # a number larger than this, and by this factor larger than the others, is a slip or a code for missing
KEPT = 4_000  # rows of each class that are kept as they came, for diagnosis and for the check
MOST_CLASSES = 1_000  # a label with more values is a number, a text or a name
MOST_DIAGONALISED = 3_000  # largest number of coded columns whose covariance is diagonalised
MOST_MANY_ROWS = 20_000  # rows that the statistics of the classes are of: a larger table is sampled down
FEWEST_MANY_ROWS = 50  # rows of each class that sampling down keeps, if there are so many


@dataclass(frozen=True)
class TableOptions:
    """How the columns and labels of a table are interpreted."""

    positive: object = None  # label of the positive class; by default the rarer one
    categorical: object = "auto"  # or columns to encode one-hot
    standardize: bool = True
    random_state: object = 0  # of the rows that are kept
    keep: object = ()  # columns that are features although they look like an index


DEFAULTS = TableOptions()


class ColumnKinds(NamedTuple):
    """Names of the columns that hold numbers and levels, and whether numbers are scaled."""

    numeric: list
    categorical: list
    standardize: bool

    def as_text(self):
        """Return the same with all names as text, which scikit-learn asks for."""
        return self._replace(numeric=list(map(str, self.numeric)), categorical=list(map(str, self.categorical)))


class CodedTable:
    """What tables of two classes and of more have in common."""

    @property
    def columns(self):
        """Names of all columns that were used."""
        return [*self.numeric, *self.categorical]

    @property
    def kinds(self):
        """The ColumnKinds of the kept rows."""
        return ColumnKinds(self.numeric, self.categorical, self.standardize)


@dataclass
class Data(CodedTable):
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


@dataclass
class ManyData(CodedTable):
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


def from_arrays(X, y, options=DEFAULTS, *, coder=None):
    """Return the Data of a table in memory: X (n, L) of any kind, y (n,); ``coder`` is the class of Coder to use."""
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
    coder = (coder or Coder)(options)
    size = max(64, BLOCK_FLOATS // max(X.shape[1], 1))
    for start in range(0, len(y), size):
        part = slice(start, start + size)
        coder.add(frame(X, part), y[part])
    data = coder.finish()
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

    def __init__(self, options):
        categorical = options.categorical
        self.categorical = categorical if isinstance(categorical, str) else listed("categorical", categorical)
        self.positive, self.standardize, self.keep = options.positive, options.standardize, listed("keep", options.keep)
        self.names, self.forced = None, ()
        self.keys = {}  # from ("value", column), ("missing", column) or ("level", column, level) to an index
        self.levels = {}  # from a categorical column to the indices of its levels
        self.column_type, self.origin, self.extremes = {}, {}, Extremes()
        self.imputed, self.dropped = {}, {}
        self.classes, self.kept = {}, {}
        self.notes = []
        self.counts = {}  # columns that may be an index
        self.held_floats = 0
        self.rng = np.random.default_rng(options.random_state)

    def add(self, block, labels):
        """Add a block: a DataFrame of features, and their labels (n,)."""
        if not len(block):
            return
        labels = pd.Series(np.asarray(labels))
        if labels.isna().any():
            raise TableError(f"the label is missing in {int(labels.isna().sum())} rows: fill them in or drop them")
        classes, rank = distinct(labels), self.rng.random(len(block))  # in the order of the rows, whatever the blocks
        if self.names is None:
            self._begin(block)
        self.counts = still_counting(self.counts, block)
        A = self._coded(block)
        for label in classes:
            if label not in self.classes:
                self.classes[label] = Sums()
                if len(self.classes) > self.most_classes:
                    raise self.too_many()
            member = (labels == label).to_numpy()
            self.classes[label].add(A[member])
            self._keep(label, block[member], rank[member])
        self.held_floats += A.size
        if self.held_floats > MOST_FLOATS:
            self._sum_up()

    def too_many(self):
        """Return the error for a label with more values than there may be classes."""
        return ManyLabels(_too_many(list(self.classes)))

    def _begin(self, block):
        """Decide what type each column has from the first block."""
        self.names = list(block.columns)
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise TableError(f"two columns are called {twice!r}: rename one")
        written = {}
        for name in self.names:
            other = written.setdefault(str(name), name)
            if other is not name:
                raise TableError(
                    f"columns {plain_label(other)!r} and {plain_label(name)!r} have one name as text: rename one"
                )
        for name in self.keep:
            if name not in self.names:
                raise TableError(f"there is no column {name!r} to keep: there are {some_names(self.names)}")
        nameless, kept = set(unnamed(self.names)), set(self.keep)
        self.counts = {name: Counting(name in nameless) for name in self.names if name not in kept}
        if not isinstance(self.categorical, str):
            missing = [name for name in self.categorical if name not in self.names]
            if missing:
                raise TableError(
                    f"there is no column {missing[0]!r} to be categorical: there are {some_names(self.names)}"
                )
            self.forced = tuple(self.categorical)
        elif self.categorical != "auto":
            raise TableError(f"categorical must be 'auto' or a list of columns, got {self.categorical!r}")
        empty = block.isna().all().to_numpy()
        for name, dtype, is_empty in zip(self.names, block.dtypes, empty, strict=True):
            if is_plain(dtype):
                numeric = True
            elif is_time(block[name]):
                self.column_type[name], self.dropped[name] = "dropped", "dates: turn them into numbers to use them"
                continue
            elif pd.api.types.is_complex_dtype(dtype):
                raise TableError(f"column {name!r} holds complex numbers: take real features from it")
            else:
                numeric = pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)
            column_type = "category" if name in self.forced or not numeric else "number"
            self.column_type[name] = "unknown" if is_empty and name not in self.forced else column_type

    def _coded(self, block):
        """Return the coded columns of a block, (n, K): numbers, missing values and levels."""
        if list(block.columns) != self.names:
            raise TableError("all blocks of rows must have the same columns")
        parts, numbers = [], []
        for name, column_type in self.column_type.items():
            if column_type == "unknown" and block[name].notna().any():
                column_type = self.column_type[name] = (
                    "number" if pd.api.types.is_numeric_dtype(block[name]) else "category"
                )
            if column_type == "unknown":  # empty so far
                self.imputed[name] = self.imputed.get(name, 0) + len(block)
                parts.append((self._place(("missing", name)), np.ones(len(block))))
            elif column_type == "number":
                numbers.append(name)
            elif column_type == "category":
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
        self.origin.update(zip((names[j] for j in new), means_and_widths(values[:, new]).tolist(), strict=True))
        sizes = np.fmax.reduce(np.abs(values), axis=0, initial=0.0)
        for j in np.flatnonzero(sizes >= FAR):
            _check_extremes(names[j], values[~missing[:, j], j], *self.origin[names[j]])
        if (sizes > LARGEST).any():
            j = int(np.argmax(sizes > LARGEST))
            raise TableError(
                f"column {names[j]!r} holds {sizes[j]:g}, more than {LARGEST:g}, "
                "whose square is no number: correct it, or divide the column by its scale"
            )
        self.extremes.add(names, values)
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
        notes = []
        for name in self.names:
            if self.column_type[name] == "number" or name in self.forced:
                continue
            example = written_numbers(pd.concat([kept[0][name] for kept in self.kept.values()]))
            if example is not None:
                notes.append(
                    f"Column {plain_label(name)!r} holds numbers as text (and {example!r}), and is not taken as "
                    "numbers: convert it, for example with pandas.to_numeric(column, errors='coerce')."
                )
        return notes

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
                self.column_type[name] = "dropped"
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
        self.held_floats = 0

    def _keep(self, label, block, rank):
        """Keep those rows of each class that have the smallest random ranks, as they came."""
        old = self.kept.get(label)
        if old is not None:
            block, rank = pd.concat([old[0], block]), np.concatenate([old[1], rank])
        if len(block) > KEPT:
            chosen = np.sort(np.argpartition(rank, KEPT)[:KEPT])
            block, rank = block.iloc[chosen], rank[chosen]
        self.kept[label] = block, rank

    def finish(self):
        """Return the Data of all blocks."""
        pos, neg = self._labels()
        T, numeric, categorical = features(self)
        K, D = T.shape
        sums = [self.classes[label] for label in (pos, neg)]
        if all(s.products is None for s in sums) and sums[0].n + sums[1].n - 2 < D:
            sample = from_rows(*(s.rows(K) @ T for s in sums))
        else:
            if K > MOST_COLUMNS:
                raise TableError(f"{K:,} coded columns and more rows: select at most {MOST_COLUMNS:,} columns")
            sample = from_covariances(sums[0].n, sums[1].n, *class_moments(sums, T))
            if sample.outside > 1e-6 * (sample.outside + sample.shift @ sample.shift):
                self.notes.insert(0, "LEAK? Some columns together tell the label of every row: look for those that do.")
        rows = self._rows(pos, neg, numeric, categorical)
        return Data(
            sums[0].n, sums[1].n, D, sample, plain_label(pos), plain_label(neg), numeric, categorical, self.imputed,
            self.dropped, self.standardize, rows, self.names, notes=self.notes,
        )  # fmt: skip

    def _rows(self, pos, neg, numeric, categorical):
        """Return the kept rows (numbers as floats, levels as strings, NaN if missing), and which are positive (n,)."""
        kept = [self.kept[label][0] for label in (pos, neg)]
        return self._frame(pd.concat(kept), numeric, categorical), np.repeat([True, False], [len(k) for k in kept])

    def _frame(self, both, numeric, categorical):
        """Return rows with numbers as floats and levels as strings, NaN if missing."""
        rows = pd.DataFrame(floats(numeric, both), columns=pd.Index(numeric, dtype=object))
        for name in categorical:
            levels, present = both[name].astype(object).to_numpy(), both[name].notna().to_numpy()
            text = np.full(len(levels), np.nan, object)
            text[present] = [str(level) for level in levels[present]]
            rows[name] = pd.Series(text, dtype=object)
        used = set(rows.columns)
        return rows[[name for name in self.names if name in used]] if categorical else rows

    def _labels(self):
        positive = self.positive
        if not self.classes:
            raise TableError("the table has no rows")
        if len(self.classes) == 1:
            raise TableError(f"the label is always {plain_label(next(iter(self.classes)))!r}: two classes are needed")
        few = min(self.classes, key=lambda label: self.classes[label].n)
        if self.classes[few].n < FEWEST:
            raise TableError(
                f"label {plain_label(few)!r} has {self.classes[few].n} rows: "
                f"at least {FEWEST} are needed, and 30 to be of use"
            )
        if positive is not None:
            if n_dimensions("positive", positive) or pd.isna(positive):
                raise TableError(f"positive must be one label, got {positive!r}")
            few = next((label for label in self.classes if label == positive or str(label) == str(positive)), None)
            if few is None:
                shown = " and ".join(repr(plain_label(label)) for label in self.classes)
                raise TableError(f"positive must be one of the labels, {shown}, got {positive!r}")
        elif len({sums.n for sums in self.classes.values()}) == 1:
            few = max(self.classes, key=lambda label: (str(type(label)), label))  # of equal classes, the larger label
        return few, next(label for label in self.classes if label != few)


def _check_extremes(name, values, mean, width):
    """Raise an error for a cell so large that no digit of the others is left in the mean and the variance."""
    sizes = np.abs(values)
    largest = sizes.max(initial=0.0)
    if largest < FAR:
        return
    typical = np.median(sizes[sizes > 0.0])
    if largest / FAR > typical or largest / FAR > width + abs(mean):
        cell = values[np.argmax(sizes)]
        raise TableError(
            f"column {plain_label(name)!r} holds {cell:g}, beside which its other values vanish: correct it, leave it "
            f"empty, or read it as missing (--na {cell:g})"
        )


def _too_many(labels):
    shown = ", ".join(map(repr, map(plain_label, labels[:3])))
    message = f"the label takes more than two values ({shown}, …): choose two classes, or code one against the rest"
    words = [label for label in labels if isinstance(label, str) and label in ANYWHERE]
    return f"{message}; where {words[0]!r} means that it is missing, leave these rows out" if words else message


# ---- some of the rows of a table of two classes, as they came or as the classifier sees them


def coded(rows, kinds):
    """Return rows, a DataFrame, as the classifier sees them, (n, D)."""
    return coding(*kinds.as_text()).fit_transform(rows.rename(columns={name: str(name) for name in rows.columns}))


def sample_rows(data, most, fewest, rng):
    """Return at most so many kept rows of a table, both classes in proportion, and which are positive.

    Of each class at least ``fewest`` are kept, if there are so many.
    """
    X, positive = data.rows
    n_pos, n_neg = data.n_pos, data.n_neg
    share = min(1.0, most / (n_pos + n_neg))
    chosen = []
    for label, n in ((True, n_pos), (False, n_neg)):
        members = np.flatnonzero(positive == label)
        take = min(len(members), max(round(share * n), min(n, fewest)))
        chosen.append(rng.permutation(members)[:take])
    chosen = np.concatenate(chosen)
    return X.iloc[chosen].reset_index(drop=True), positive[chosen]


# ---- three classes or more


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
        shown = ", ".join(repr(plain_label(label)) for label in list(self.classes)[:3])
        return TableError(
            f"the label takes more than {MOST_CLASSES:,} values ({shown}, …): it is a number, a text or a name, and no "
            "class. Cut numbers into ranges, or choose another column"
        )

    def finish(self):
        """Return the ManyData of all blocks."""
        if self.positive is not None:
            raise TableError(f"positive goes with two classes, got {self.positive!r} for {len(self.classes)}")
        self._check_classes()
        _, numeric, categorical = features(self)
        classes = sorted(self.classes, key=_order)
        most = max(FEWEST_MANY_ROWS, MOST_MANY_ROWS // len(classes))
        kept = [block.iloc[np.sort(np.argsort(rank)[:most])] for block, rank in (self.kept[c] for c in classes)]
        rows = self._frame(pd.concat(kept), numeric, categorical)
        X = np.asarray(coded(rows, ColumnKinds(numeric, categorical, self.standardize)), float)
        if X.shape[1] > MOST_DIAGONALISED:
            raise TableError(f"{X.shape[1]:,} coded columns, and many classes: select at most {MOST_DIAGONALISED:,}")
        sizes = np.array([self.classes[label].n for label in classes])
        if len(X) < sizes.sum():
            self.notes.append(
                f"The statistics of the classes are those of {len(X):,} of {sizes.sum():,} rows, drawn at random."
            )
        y = np.repeat(np.arange(len(classes)), [len(part) for part in kept])
        return ManyData(
            [plain_label(label) for label in classes], sizes, X, y, numeric, categorical, self.imputed, self.dropped,
            self.standardize, self.names, rows, self.notes,
        )  # fmt: skip

    def _check_classes(self):
        """Raise an error for classes with too few rows, or for a label that is a text."""
        sizes = pd.Series({str(plain_label(label)): sums.n for label, sums in self.classes.items()})
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
    label_type = "number" if isinstance(label, (bool, int, float, np.number, np.bool_)) else type(label).__name__
    return label_type, label
