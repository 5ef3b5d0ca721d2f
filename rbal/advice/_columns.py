"""Column statistics of a table, class by class, and the features that follow from them.

Sums are taken while blocks of rows arrive; at the end come scaling, imputing, and the columns that are no features:
indices, leaks and constants.
"""

import itertools
import re

import numpy as np
import pandas as pd
from scipy import sparse

from .._support.frames import TableError
from .._support.validation import LARGEST

UNNAMED = re.compile(r"(?:Unnamed: \d+(?:_level_\d+)?(?:\.\d+)?|__index_level_\d+__|)")
EXACT = 2.0**53  # floats below this tell whole numbers apart
LEAKING_ROWS = 5  # a column tells the label by accident if it has fewer rows than this for each of its levels
SMALLEST = 1e-150  # of a column: its squares are numbers with all their digits
SEVERAL = 10  # a column with no more different numbers than this may hold levels


class ManyLabels(TableError):
    """A table has more than two labels where two are expected."""


def unnamed(names):
    """Return the columns without a name at the beginning: those of a saved index."""
    return list(itertools.takewhile(lambda name: isinstance(name, str) and UNNAMED.fullmatch(name), names))


def still_counting(counts, block):
    """Add a block to the Countings, a dict by column; return those of columns that may still be an index."""
    names = [name for name, dtype in block.dtypes.items() if name in counts and dtype.kind in "iuf"]
    first = block[names].iloc[:8].to_numpy(float)  # a glance, since few of many columns are in order
    with np.errstate(invalid="ignore"):  # infinities are refused later, by the name of their column
        steps = np.diff(first, axis=0)
    in_order = (steps > 0.0).all(axis=0) | (steps < 0.0).all(axis=0) | (np.abs(first) >= EXACT).any(axis=0)
    out_of_order = {name for name, kept in zip(names, in_order, strict=True) if not kept}
    for name, counting in counts.items():
        if name in out_of_order:
            counting.strictly = False
        else:
            counting.add(block[name])
    return {name: counting for name, counting in counts.items() if counting.nameless or counting.strictly}


class Counting:
    """Whether a column counts the rows, or is a saved index without a name; it is read block by block."""

    def __init__(self, nameless=False):
        self.nameless, self.is_float = nameless, False
        self.sign, self.first, self.last, self.n, self.steps_of_one = None, None, None, 0, True
        self.strictly = True

    def add(self, column):
        """Add the next block of the column."""
        if not self.strictly:
            return
        values = self._whole(column)
        if values is None:
            self.strictly = False
            return
        if self.first is None:
            self.first = int(values[0])
        else:
            values = np.concatenate([[self.last], values]).astype(values.dtype)
        self.n, self.last = self.n + len(column), int(values[-1])
        if len(values) > 1:
            up, down = bool((values[1:] > values[:-1]).all()), bool((values[1:] < values[:-1]).all())
            sign = 1 if up else -1 if down else 0
            self.steps_of_one = self.steps_of_one and abs(self.last - self.first) == self.n - 1
            self.strictly = sign != 0 and self.sign in (None, sign) and (self.steps_of_one or not self.is_float)
            self.sign = sign

    def _whole(self, column):
        """Return a column as whole numbers, or None if it holds anything else."""
        if column.isna().any():
            return None
        if pd.api.types.is_integer_dtype(column):
            return column.to_numpy(dtype=np.int64 if column.dtype != np.uint64 else np.uint64)
        if not pd.api.types.is_float_dtype(column):
            return None
        values, self.is_float = column.to_numpy(dtype=float), True
        whole = (values == np.floor(values)) & (np.abs(values) < EXACT)
        return values.astype(np.int64) if whole.all() else None

    @property
    def why(self):
        """Reason to leave the column out, or None."""
        if self.nameless:
            return "an index: it has no name"
        if self.strictly and self.n > 1:
            return (
                "an index: it counts the rows"
                if self.steps_of_one
                else "an index: whole numbers in order, all different"
            )
        return None


class Extremes:
    """Lowest and highest value of each column of numbers, how often it occurs, and the value next to it."""

    def __init__(self):
        self.positions = {}
        self.extremes = np.zeros((2, 3, 0))  # of the values and of minus the values: lowest, how often, the next

    def add(self, names, values):
        """Add the next block (n, L) of columns with these names."""
        at = np.array([self.positions.setdefault(name, len(self.positions)) for name in names])
        new = np.empty((2, 3, len(self.positions) - self.extremes.shape[2]))
        new[:] = np.array([np.inf, 0.0, np.inf])[:, None]
        self.extremes = np.concatenate([self.extremes, new], axis=2)
        for side, signed in enumerate((values, -values)):
            low, count, after = self.extremes[side][:, at]
            lowest = np.fmin.reduce(signed, axis=0, initial=np.inf)
            is_lowest = signed == lowest
            following = np.fmin.reduce(np.where(is_lowest, np.inf, signed), axis=0, initial=np.inf)
            following = np.minimum(np.where(lowest > low, lowest, following), np.where(lowest < low, low, after))
            count = count * (low <= lowest) + is_lowest.sum(axis=0) * (lowest <= low)
            self.extremes[side][:, at] = np.minimum(low, lowest), count, following

    def vanishing(self, name, least):
        """Return why a column that varies is too small if no value is as large as ``least``, or else None."""
        low, high = self.extremes[:, 0, self.positions[name]] * [1.0, -1.0]
        size = max(abs(low), abs(high))
        return f"no larger than {size:.3g}, too small to be squared" if low < high and size < least else None

    def codes(self):
        """Yield column, value and count of values that repeat far from all others, as codes for missing values do."""
        names = list(self.positions)
        for side, (low, count, after) in enumerate(self.extremes):
            top, of_top, below = self.extremes[1 - side]
            value = -low if side else low
            with np.errstate(invalid="ignore"):
                gap, width = after - low, -np.where(of_top > 1, below, top) - after
                far = (count > 2) & (value != 0.0) & (gap > 2.0 * width)
                near = (count > 1) & (gap > 0.5 * width)
                below_all = (value == -1.0) & (count > 4) & (after >= 0.0) & (width > 20.0)
            for j in np.flatnonzero((far | near | below_all) & (width > 0.0) & (gap < np.inf)):
                nines = set(f"{abs(value[j]):.0f}") == {"9"} and value[j] % 1.0 == 0.0 and not 0.0 < value[j] < 99.0
                if far[j] or (near[j] and nines) or below_all[j]:
                    yield names[j], float(value[j]), int(count[j])


def features(coder):
    """Return the sparse matrix (K, D) from coded columns to features, and the numeric and categorical columns used."""
    _leave_out_indices(coder)
    coder.notes += [*label_notes(coder.classes), *_code_notes(coder)]
    K, n = len(coder.keys), coder.n
    totals = {label: padded(sums.total, K) for label, sums in coder.classes.items()}
    squares = {label: _squares(sums, K) for label, sums in coder.classes.items()}
    total, square = sum(totals.values()), sum(squares.values())
    sizes = {label: sums.n for label, sums in coder.classes.items()}
    rows, columns, entries, used = [], [], [], []
    D = 0
    for name in coder.names:
        if coder.column_type[name] == "number":
            place, gap = coder.keys["value", name], coder.keys.get(("missing", name))
            n_known = n - (total[gap] if gap is not None else 0.0)
            mean = total[place] / n_known
            # v + mean·missing: its square sums to Σv² + mean²·(number missing), as v = 0 there
            variance = (square[place] + mean**2 * (n - n_known)) / n - mean**2
            small = coder.extremes.vanishing(name, SMALLEST if coder.standardize else 1.0 / LARGEST)
            if small or variance <= 1e-14 * max(square[place] / n, 1e-300) or variance <= 1e-24:
                coder.dropped[name] = small or "constant"
                continue
            if _number_leaks(place, gap, totals, squares, sizes, variance):
                _leave_out_leak(coder, name)
                continue
            scale = 1.0 / np.sqrt(variance) if coder.standardize else coder.origin[name][1]
            rows.append(place), columns.append(D), entries.append(scale)
            if gap is not None:
                rows.append(gap), columns.append(D), entries.append(scale * mean)
            used.append((name, "number"))
            D += 1
        elif coder.column_type[name] == "category":
            places = list(coder.levels[name].values())
            if len(places) < 2:
                coder.dropped[name] = "constant"
                continue
            if _levels_leak(places, totals, n):
                _leave_out_leak(coder, name)
                continue
            mode = places[int(np.argmax(total[places]))]
            gap = coder.keys.get(("missing", name))
            for place in places:
                rows.append(place), columns.append(D), entries.append(1.0)
                if place == mode and gap is not None:
                    rows.append(gap), columns.append(D), entries.append(1.0)
                D += 1
            used.append((name, "category"))
        elif coder.column_type[name] == "unknown":
            coder.dropped[name] = "empty"
    if D == 0:
        reasons = "; ".join(f"{name!r} is {why}" for name, why in list(coder.dropped.items())[:3])
        raise TableError(f"no column varies ({reasons or 'there are none'}): nothing to learn from")
    for name in coder.dropped:
        coder.imputed.pop(name, None)
    numeric = [name for name, column_type in used if column_type == "number"]
    categorical = [name for name, column_type in used if column_type == "category"]
    return sparse.csr_array((entries, (rows, columns)), shape=(K, D)), numeric, categorical


def _leave_out_indices(coder):
    for name, counting in coder.counts.items():
        if counting.why is None or coder.column_type[name] == "dropped":
            continue
        coder.column_type[name], coder.dropped[name] = "dropped", counting.why
        coder.notes.append(f"Column {name!r} is left out as {counting.why}. If it is a feature, keep it (--keep).")


def label_notes(labels):
    """Return a sentence on labels that differ only in case or blanks, if there are some."""
    groups = {}
    for label in labels:
        if isinstance(label, str):
            groups.setdefault(" ".join(label.split()).casefold(), []).append(label)
    shown = "; ".join(" and ".join(map(repr, group)) for group in groups.values() if len(group) > 1)
    sentence = f"Labels that differ only in case or blanks are taken as classes apart: {shown}."
    return [f"{sentence} Write them alike if they are one."] if shown else []


def _code_notes(coder):
    """Return a sentence on values that may stand for missing ones, if there are some."""
    words = {}
    for name, value, count in coder.extremes.codes():
        if coder.column_type[name] != "number":
            continue
        kept = np.concatenate([block[name].to_numpy(float, na_value=np.nan) for block, _ in coder.kept.values()])
        values, counts = np.unique(kept[~np.isnan(kept) & (kept != value)], return_counts=True)
        if len(values) < SEVERAL or (value == -1.0 and not (kept == value).sum() > 3 * counts[0]):
            continue  # a level among levels, or the end of a tail
        word = f"{value:.0f}" if value % 1.0 == 0.0 and abs(value) < EXACT else repr(value)
        words.setdefault(word, []).append((name, count))
    if not words:
        return []
    return [f"Far from the other values of the column: {in_columns(words)}. If that stands for a missing value, leave "
            f"these cells empty, or read it as missing (--na {' '.join(words)})."]  # fmt: skip


def _leave_out_leak(coder, name):
    if name in coder.keep:
        raise TableError(f"column {name!r} tells the label of every row: no classifier is needed, leave it out")
    coder.dropped[name] = "a leak: it tells the label of every row"
    coder.notes.insert(
        0,
        f"LEAK. Column {name!r} tells the label of every row, which no feature does: it is left out, and the advice is "
        "about the others. Look for more columns that are known only after the label.",
    )


def _number_leaks(place, gap, totals, squares, sizes, variance):
    """Return whether each class has a single value of its own."""
    means = []
    for label, n in sizes.items():
        n_known = n - (totals[label][gap] if gap is not None else 0.0)
        if n_known < 2:
            return False
        mean = totals[label][place] / n_known
        if squares[label][place] / n_known - mean**2 > 1e-10 * variance:
            return False
        means.append(mean)
    return np.diff(np.sort(means)).min() > 1e-6 * np.sqrt(variance)


def _levels_leak(places, totals, n):
    """Return whether each level belongs to one class alone, with so many rows that it is no accident."""
    n_classes = sum(counts[places] > 0.0 for counts in totals.values())  # that have each level
    return len(places) * LEAKING_ROWS <= n and bool((n_classes <= 1).all())


def _squares(sums, K):
    square = np.zeros(K)
    for block in sums.blocks:
        square[: block.shape[1]] += np.einsum("ij,ij->j", block, block)
    if sums.products is not None:
        square[: len(sums.products)] += np.diag(sums.products)
    return square


# ---- sums of rows and of their products


class Sums:
    """Rows of one class: kept while they are few, and then only their number, sum and products."""

    def __init__(self):
        self.n, self.blocks, self.total, self.products = 0, [], np.zeros(0), None

    def add(self, block):
        self.n += len(block)
        self.blocks.append(block)
        self.total = padded(self.total, block.shape[1])
        self.total += block.sum(axis=0)

    def summed(self, K):
        """Replace the blocks that are kept by their products (K, K)."""
        if self.products is None:
            self.products = np.zeros((K, K))
        self.products = padded(self.products, K)
        for block in self.blocks:
            k = block.shape[1]
            self.products[:k, :k] += block.T @ block
        self.blocks = []

    def rows(self, K):
        return np.concatenate([padded(block.T, K, rows_only=True).T for block in self.blocks])


def padded(array, K, rows_only=False):
    """Pad the first axis (or all axes) of an array to length K with zeros, for columns that came later."""
    extra = K - array.shape[0]
    if extra <= 0:
        return array
    return np.pad(array, [(0, extra)] + [(0, 0 if rows_only else extra)] * (array.ndim - 1))


def class_moments(sums, T):
    """Return the difference of the means (D,) and both covariances (D, D) of the features that T (K, D) makes."""
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


def means_and_widths(values):
    """Return mean and standard deviation of columns (n, L), as (L, 2): they bring numbers of any size to order 1."""
    present = ~np.isnan(values)
    n = np.maximum(present.sum(axis=0), 1)
    size = np.fmax.reduce(np.abs(values), axis=0, initial=0.0)  # so that no square overflows
    size[size < SMALLEST] = 1.0
    scaled = np.where(present, values / size, 0.0)
    mean = scaled.sum(axis=0) / n
    width = np.sqrt((np.where(present, scaled - mean, 0.0) ** 2).sum(axis=0) / n)
    return np.stack([size * mean, size * np.where(width > 1e-12 * np.abs(mean) + SMALLEST, width, 1.0)], axis=1)


# ---- names in messages


def plain_label(label):
    """Return a label as a Python type, for messages and reports."""
    return label.item() if isinstance(label, np.generic) else label


def some_names(names):
    shown = ", ".join(repr(plain_label(name)) for name in names[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def in_columns(words):
    """Return words, each with the columns and how often it occurs there, from a dict of lists of both."""
    return ", ".join(
        f"{word} ({', '.join(f'{count:,} in {name!r}' for name, count in where[:5])}"
        + (f" and {len(where) - 5} more columns)" if len(where) > 5 else ")")
        for word, where in list(words.items())[:5]
    )
