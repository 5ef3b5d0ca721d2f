"""From a table of any kind to what the theory takes: class sizes, means and covariances of coded columns.

Rows are read once, a block at a time. Numbers are scaled, other columns become one indicator a level; a missing value
is first coded as an indicator of its own. Means, modes and scales are only known at the end, but imputing and scaling
are linear in these columns, so that one matrix applied to the accumulated moments does both exactly.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy import sparse

from ._estimate import from_covariances, from_rows
from ._sums import Sums, padded
from ._validation import LARGEST

MOST_LEVELS = 100  # of a categorical column; one with more is an identifier or free text
MOST_COLUMNS = 10_000  # of which the covariance is held in memory
MOST_FLOATS = 32_000_000  # of rows held in memory, before they are summed up
BLOCK_FLOATS = 4_000_000  # coded at once
FEWEST = 5  # samples of a class below which nothing can be said
KEPT = 4_000  # rows of each class that are kept as they came, for diagnosis and for the check


class TableError(ValueError):
    """The table cannot be used; the message is one line that says what to do."""


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
    imputed: dict = field(default_factory=dict)  # column to number of missing values
    dropped: dict = field(default_factory=dict)  # column to reason
    standardize: bool = True
    rows: tuple = ()  # (X, is positive) of the rows that were kept
    names: list = field(default_factory=list)  # of all columns of the table
    is_sparse: bool = False

    @property
    def columns(self):
        """Names of all columns that were used."""
        return [*self.numeric, *self.categorical]


def from_arrays(X, y, positive=None, categorical="auto", standardize=True, random_state=0):
    """Data of a table in memory."""
    X, y = with_gaps(X), np.asarray(with_gaps(y))
    if y.ndim != 1:
        raise TableError(f"y must have one dimension, got shape {y.shape}")
    if sparse.issparse(X):
        X = X.tocsr()
    elif not isinstance(X, pd.DataFrame):
        X = np.asarray(X)
        if X.ndim != 2:
            raise TableError(f"X must have two dimensions, got shape {X.shape}")
        X = pd.DataFrame(X).infer_objects() if X.dtype == object else pd.DataFrame(X)
    if X.shape[0] != len(y):
        raise TableError(f"X and y must have as many rows, got {X.shape[0]} and {len(y)}")
    coder = Coder(categorical, standardize, random_state)
    size = max(64, BLOCK_FLOATS // max(X.shape[1], 1))
    for start in range(0, len(y), size):
        part = slice(start, start + size)
        coder.add(frame(X, part), y[part])
    data = coder.finish(positive)
    data.is_sparse = sparse.issparse(X)
    return data


def with_gaps(array):
    """A masked array as one with missing values in place of its masked ones; anything else as it is."""
    if not np.ma.isMaskedArray(array):
        return array
    if not np.ma.is_masked(array):
        return np.asarray(array)
    return array.astype(float if array.dtype.kind in "biuf" else object).filled(np.nan)


def frame(X, rows):
    """Some rows as a DataFrame."""
    if sparse.issparse(X):
        return pd.DataFrame(X[rows].toarray())
    return X.iloc[rows]


class Coder:
    """Codes blocks of rows and adds up their moments, class by class."""

    def __init__(self, categorical="auto", standardize=True, random_state=0):
        self.categorical, self.standardize = categorical, standardize
        self.names, self.forced = None, ()
        self.keys = {}  # ("value", column), ("missing", column) or (column, level) to its place
        self.kind, self.origin = {}, {}
        self.imputed, self.dropped = {}, {}
        self.classes, self.kept = {}, {}
        self.held = 0
        self.rng = np.random.default_rng(random_state)

    def add(self, block, labels):
        """Take a DataFrame of features and their labels."""
        if not len(block):
            return
        labels = pd.Series(np.asarray(labels))
        if labels.isna().any():
            raise TableError(f"the label is missing in {int(labels.isna().sum())} rows: fill them in or drop them")
        if self.names is None:
            self._begin(block)
        A = self._coded(block)
        for label in labels.unique():
            if label not in self.classes:
                self.classes[label] = Sums()
                if len(self.classes) > 2:
                    shown = ", ".join(map(repr, map(_plain, list(self.classes)[:3])))
                    raise TableError(
                        f"the label takes more than two values ({shown}, …): "
                        "choose two classes, or code one against the rest"
                    )
            member = (labels == label).to_numpy()
            self.classes[label].add(A[member])
            self._keep(label, block[member])
        self.held += A.size
        if self.held > MOST_FLOATS:
            self._sum_up()

    def _begin(self, block):
        """Decide the kind of each column by the first block."""
        self.names = list(block.columns)
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise TableError(f"two columns are called {twice!r}: rename one")
        if not isinstance(self.categorical, str):
            missing = [name for name in self.categorical if name not in self.names]
            if missing:
                raise TableError(f"there is no column {missing[0]!r} to be categorical: there are {_some(self.names)}")
            self.forced = tuple(self.categorical)
        elif self.categorical != "auto":
            raise TableError(f"categorical must be 'auto' or a list of columns, got {self.categorical!r}")
        for name in self.names:
            column = block[name]
            if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
                self.kind[name], self.dropped[name] = "dropped", "dates: turn them into numbers to use them"
            elif pd.api.types.is_complex_dtype(column):
                raise TableError(f"column {name!r} holds complex numbers: take real features from it")
            elif name in self.forced or not (
                pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)
            ):
                self.kind[name] = "unknown" if column.isna().all() and name not in self.forced else "category"
            else:
                self.kind[name] = "unknown" if column.isna().all() else "number"

    def _coded(self, block):
        """Columns of numbers, of missing values and of levels, for one block."""
        if list(block.columns) != self.names:
            raise TableError("all blocks of rows must have the same columns")
        parts, numbers = [], []
        for name in self.names:
            column = block[name]
            if self.kind[name] == "unknown" and column.notna().any():
                self.kind[name] = "number" if pd.api.types.is_numeric_dtype(column) else "category"
            if self.kind[name] == "unknown":  # empty so far
                self.imputed[name] = self.imputed.get(name, 0) + len(block)
                parts.append((self._place(("missing", name)), np.ones(len(block))))
            elif self.kind[name] == "number":
                numbers.append(name)
            elif self.kind[name] == "category":
                parts += self._levels(name, column)
        if numbers:
            parts += self._numbers(numbers, block)
        A = np.zeros((len(block), len(self.keys)))
        for place, column in parts:
            A[:, place] += column  # += : levels 1 and "1" are the same
        return A

    @property
    def _n(self):
        return sum(sums.n for sums in self.classes.values())

    def _place(self, key):
        return self.keys.setdefault(key, len(self.keys))

    def _numbers(self, names, block):
        """Scaled numbers, and indicators of the missing ones."""
        values = np.empty((len(block), len(names)))
        for j, name in enumerate(names):
            values[:, j] = self._as_numbers(name, block[name])
        missing = np.isnan(values)
        if np.isinf(values).any():
            name = names[int(np.argmax(np.isinf(values).any(axis=0)))]
            raise TableError(f"column {name!r} holds infinite values: replace them or leave them empty")
        if (np.abs(values) > LARGEST).any():
            j = int(np.argmax((np.abs(values) > LARGEST).any(axis=0)))
            raise TableError(
                f"column {names[j]!r} holds {np.nanmax(np.abs(values[:, j])):g}, more than {LARGEST:g}, "
                "whose square is no number: correct it, or divide the column by its scale"
            )
        for j, name in enumerate(names):
            if name not in self.origin:
                self.origin[name] = _middle_and_width(values[~missing[:, j], j])
        origin = np.array([self.origin[name] for name in names])
        values = (values - origin[:, 0]) / origin[:, 1]
        parts = []
        for j, name in enumerate(names):
            parts.append((self._place(("value", name)), np.where(missing[:, j], 0.0, values[:, j])))
            if missing[:, j].any():
                self.imputed[name] = self.imputed.get(name, 0) + int(missing[:, j].sum())
                parts.append((self._place(("missing", name)), missing[:, j]))
        return parts

    def _as_numbers(self, name, column):
        try:
            return column.to_numpy(dtype=float, na_value=np.nan)
        except (TypeError, ValueError):
            found = pd.to_numeric(column, errors="coerce")
            bad = column[found.isna() & column.notna()]
            raise TableError(
                f"column {name!r} begins with numbers but holds {_plain(bad.iloc[0])!r} further on: "
                "correct it, or name it as categorical"
            ) from None

    def _levels(self, name, column):
        """One indicator a level."""
        parts = []
        codes, levels = pd.factorize(column)
        if (codes < 0).any():
            self.imputed[name] = self.imputed.get(name, 0) + int((codes < 0).sum())
            parts.append((self._place(("missing", name)), codes < 0))
        known = sum(1 for key in self.keys if key[0] == "level" and key[1] == name)
        for k, level in enumerate(levels):
            key = ("level", name, str(level))
            known += key not in self.keys
            if known > MOST_LEVELS:
                self.kind[name] = "dropped"
                self.dropped[name] = f"more than {MOST_LEVELS} levels: an identifier, or text"
                self.imputed.pop(name, None)
                return []
            parts.append((self._place(key), codes == k))
        return parts

    def _sum_up(self):
        if len(self.keys) > MOST_COLUMNS:
            raise TableError(
                f"{len(self.keys):,} coded columns in more rows than fit in memory: select at most {MOST_COLUMNS:,}"
            )
        for sums in self.classes.values():
            sums.summed(len(self.keys))
        self.held = 0

    def _keep(self, label, block):
        """A random sample of the rows of each class, as they came."""
        rank = self.rng.random(len(block))
        old = self.kept.get(label)
        if old is not None:
            block, rank = pd.concat([old[0], block]), np.concatenate([old[1], rank])
        if len(block) > KEPT:
            chosen = np.sort(np.argpartition(rank, KEPT)[:KEPT])
            block, rank = block.iloc[chosen], rank[chosen]
        self.kept[label] = block, rank

    def finish(self, positive=None):
        """Moments of the coded table."""
        pos, neg = self._labels(positive)
        T, numeric, categorical = self._map()
        K, D = T.shape
        sums = [self.classes[label] for label in (pos, neg)]
        if all(s.products is None for s in sums) and sums[0].n + sums[1].n - 2 < D:
            sample = from_rows(*(s.rows(K) @ T for s in sums))
        else:
            if K > MOST_COLUMNS:
                raise TableError(f"{K:,} coded columns and more rows: select at most {MOST_COLUMNS:,} columns")
            sample = from_covariances(sums[0].n, sums[1].n, *self._moments(sums, T))
        rows = self._rows(pos, neg, numeric, categorical)
        return Data(
            sums[0].n, sums[1].n, D, sample, _plain(pos), _plain(neg), numeric, categorical, self.imputed, self.dropped,
            self.standardize, rows, self.names,
        )  # fmt: skip

    def _rows(self, pos, neg, numeric, categorical):
        """Rows that were kept: numbers as floats and levels as strings, with NaN where they are missing."""
        kept = [self.kept[label][0] for label in (pos, neg)]
        both = pd.concat(kept)
        columns = {name: both[name].to_numpy(dtype=float, na_value=np.nan) for name in numeric}
        for name in categorical:
            levels = both[name].astype(object)
            columns[name] = levels.where(levels.isna(), levels.map(str)).where(levels.notna(), np.nan).to_numpy(object)
        rows = pd.DataFrame({name: columns[name] for name in self.names if name in columns})
        return rows.astype(dict.fromkeys(categorical, object)), np.repeat([True, False], [len(k) for k in kept])

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
            few = next((label for label in self.classes if label == positive or str(label) == str(positive)), None)
            if few is None:
                shown = " and ".join(repr(_plain(label)) for label in self.classes)
                raise TableError(f"positive must be one of the labels, {shown}, got {positive!r}")
        elif len({sums.n for sums in self.classes.values()}) == 1:
            few = max(self.classes, key=lambda label: (str(type(label)), label))  # as many of both: the larger label
        return few, next(label for label in self.classes if label != few)

    def _map(self):
        """Matrix from coded columns to the features of the classifier; constant ones are left out."""
        K = len(self.keys)
        n = self._n
        total = sum((padded(sums.total, K) for sums in self.classes.values()), np.zeros(K))
        square = self._squares(K)
        rows, columns, entries, kinds = [], [], [], []
        D = 0
        for name in self.names:
            if self.kind[name] == "number":
                place, gap = self.keys["value", name], self.keys.get(("missing", name))
                seen = n - (total[gap] if gap is not None else 0.0)
                mean = total[place] / seen
                # v + mean·missing: its square sums to Σv² + mean²·(number missing), as v = 0 there
                variance = (square[place] + mean**2 * (n - seen)) / n - mean**2
                if variance <= 1e-14 * max(square[place] / n, 1e-300) or variance <= 1e-24:
                    self.dropped[name] = "constant"
                    continue
                scale = 1.0 / np.sqrt(variance) if self.standardize else self.origin[name][1]
                rows.append(place), columns.append(D), entries.append(scale)
                if gap is not None:
                    rows.append(gap), columns.append(D), entries.append(scale * mean)
                kinds.append((name, "number"))
                D += 1
            elif self.kind[name] == "category":
                places = [place for key, place in self.keys.items() if key[0] == "level" and key[1] == name]
                if len(places) < 2:
                    self.dropped[name] = "constant"
                    continue
                mode = places[int(np.argmax(total[places]))]
                gap = self.keys.get(("missing", name))
                for place in places:
                    rows.append(place), columns.append(D), entries.append(1.0)
                    if place == mode and gap is not None:
                        rows.append(gap), columns.append(D), entries.append(1.0)
                    D += 1
                kinds.append((name, "category"))
            elif self.kind[name] == "unknown":
                self.dropped[name] = "empty"
        if D == 0:
            reasons = "; ".join(f"{name!r} is {why}" for name, why in list(self.dropped.items())[:3])
            raise TableError(f"no column varies ({reasons or 'there are none'}): nothing to learn from")
        for name in self.dropped:
            self.imputed.pop(name, None)
        numeric = [name for name, kind in kinds if kind == "number"]
        categorical = [name for name, kind in kinds if kind == "category"]
        return sparse.csr_array((entries, (rows, columns)), shape=(K, D)), numeric, categorical

    def _squares(self, K):
        square = np.zeros(K)
        for sums in self.classes.values():
            for block in sums.blocks:
                square[: block.shape[1]] += np.einsum("ij,ij->j", block, block)
            if sums.products is not None:
                square[: len(sums.products)] += np.diag(sums.products)
        return square

    def _moments(self, sums, T):
        """Difference of the means and both covariances of the features."""
        means, covariances = [], []
        for s in sums:
            s.summed(T.shape[0])
            mean = padded(s.total, T.shape[0]) / s.n
            products = padded(s.products, T.shape[0])
            cov = (T.T @ (T.T @ (products / s.n - np.outer(mean, mean))).T) * (s.n / (s.n - 1))
            means.append(T.T @ mean)
            covariances.append(0.5 * (cov + cov.T))
            s.products = None
        return means[0] - means[1], *covariances


def _middle_and_width(values):
    """Mean and deviation of what is there, by which numbers of any size are brought to order 1."""
    if not values.size:
        return 0.0, 1.0
    size = np.abs(values).max() or 1.0  # so that no square overflows
    middle, width = (values / size).mean(), (values / size).std()
    return size * middle, size * width if width > 1e-12 * abs(middle) else size


def _plain(label):
    """A label as Python's own type, for messages and reports."""
    return label.item() if isinstance(label, np.generic) else label


def _some(names):
    shown = ", ".join(repr(_plain(name)) for name in names[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")
