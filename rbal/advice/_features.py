"""Make the features of a classifier from coded columns: scaled, imputed, without indices, leaks and constants."""

import itertools
import re

import numpy as np
import pandas as pd
from scipy import sparse

from .._support.frames import TableError
from .._support.validation import LARGEST
from ._numbers import SEVERAL
from ._sums import SMALLEST, padded

UNNAMED = re.compile(r"(?:Unnamed: \d+(?:_level_\d+)?(?:\.\d+)?|__index_level_\d+__|)")
EXACT = 2.0**53  # floats below this tell whole numbers apart
LEAKING_ROWS = 5  # a column tells the label by accident if it has fewer rows than this for each of its levels


class ManyLabels(TableError):
    """A table has more than two labels where two are expected."""


def unnamed(names):
    """Return the columns without a name at the beginning: those of a saved index."""
    return list(itertools.takewhile(lambda name: isinstance(name, str) and UNNAMED.fullmatch(name), names))


def still_counting(counts, block):
    """Show the next block to Countings, a dict by column, and return those of columns that may still be an index."""
    names = [name for name, dtype in block.dtypes.items() if name in counts and dtype.kind in "iuf"]
    first = block[names].iloc[:8].to_numpy(float)  # a glance, since few of many columns are in order
    with np.errstate(invalid="ignore"):  # infinities are refused later, by the name of their column
        steps = np.diff(first, axis=0)
    in_order = (steps > 0.0).all(axis=0) | (steps < 0.0).all(axis=0) | (np.abs(first) >= EXACT).any(axis=0)
    out_of_order = {name for name, kept in zip(names, in_order, strict=True) if not kept}
    for name, seen in counts.items():
        if name in out_of_order:
            seen.strictly = False
        else:
            seen.add(block[name])
    return {name: seen for name, seen in counts.items() if seen.nameless or seen.strictly}


class Counting:
    """Finds out, block after block, whether a column counts the rows, or is a saved index without a name."""

    def __init__(self, nameless=False):
        self.nameless, self.is_float = nameless, False
        self.sign, self.first, self.last, self.n, self.steps_of_one = None, None, None, 0, True
        self.strictly = True

    def add(self, column):
        """Look at the next block of the column."""
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


class Ends:
    """Lowest and highest value of each column of numbers, how often it occurs, and the value next to it."""

    def __init__(self):
        self.places = {}
        self.found = np.zeros((2, 3, 0))  # of the values and of minus the values: lowest, how often, the next

    def add(self, names, values):
        """Look at the next block (n, L) of columns with these names."""
        at = np.array([self.places.setdefault(name, len(self.places)) for name in names])
        new = np.empty((2, 3, len(self.places) - self.found.shape[2]))
        new[:] = np.array([np.inf, 0.0, np.inf])[:, None]
        self.found = np.concatenate([self.found, new], axis=2)
        for side, signed in enumerate((values, -values)):
            low, count, after = self.found[side][:, at]
            lowest = np.fmin.reduce(signed, axis=0, initial=np.inf)
            here = signed == lowest
            beyond = np.fmin.reduce(np.where(here, np.inf, signed), axis=0, initial=np.inf)
            beyond = np.minimum(np.where(lowest > low, lowest, beyond), np.where(lowest < low, low, after))
            count = count * (low <= lowest) + here.sum(axis=0) * (lowest <= low)
            self.found[side][:, at] = np.minimum(low, lowest), count, beyond

    def vanishing(self, name, least):
        """Return why a column that varies is too small if no value is as large as ``least``, or else None."""
        low, high = self.found[:, 0, self.places[name]] * [1.0, -1.0]
        size = max(abs(low), abs(high))
        return f"no larger than {size:.3g}, too small to be squared" if low < high and size < least else None

    def codes(self):
        """Yield column, value and count of values that repeat far from all others, as codes for missing values do."""
        names = list(self.places)
        for side, (low, count, after) in enumerate(self.found):
            top, of_top, below = self.found[1 - side]
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
    coder.notes += [*of_labels(coder.classes), *_of_codes(coder)]
    K, n = len(coder.keys), coder.n
    totals = {label: padded(sums.total, K) for label, sums in coder.classes.items()}
    squares = {label: _squares(sums, K) for label, sums in coder.classes.items()}
    total, square = sum(totals.values()), sum(squares.values())
    sizes = {label: sums.n for label, sums in coder.classes.items()}
    rows, columns, entries, kinds = [], [], [], []
    D = 0
    for name in coder.names:
        if coder.kind[name] == "number":
            place, gap = coder.keys["value", name], coder.keys.get(("missing", name))
            seen = n - (total[gap] if gap is not None else 0.0)
            mean = total[place] / seen
            # v + mean·missing: its square sums to Σv² + mean²·(number missing), as v = 0 there
            variance = (square[place] + mean**2 * (n - seen)) / n - mean**2
            small = coder.ends.vanishing(name, SMALLEST if coder.standardize else 1.0 / LARGEST)
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
            kinds.append((name, "number"))
            D += 1
        elif coder.kind[name] == "category":
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
            kinds.append((name, "category"))
        elif coder.kind[name] == "unknown":
            coder.dropped[name] = "empty"
    if D == 0:
        reasons = "; ".join(f"{name!r} is {why}" for name, why in list(coder.dropped.items())[:3])
        raise TableError(f"no column varies ({reasons or 'there are none'}): nothing to learn from")
    for name in coder.dropped:
        coder.imputed.pop(name, None)
    numeric = [name for name, kind in kinds if kind == "number"]
    categorical = [name for name, kind in kinds if kind == "category"]
    return sparse.csr_array((entries, (rows, columns)), shape=(K, D)), numeric, categorical


def _leave_out_indices(coder):
    for name, seen in coder.counts.items():
        if seen.why is None or coder.kind[name] == "dropped":
            continue
        coder.kind[name], coder.dropped[name] = "dropped", seen.why
        coder.notes.append(f"Column {name!r} is left out as {seen.why}. If it is a feature, keep it (--keep).")


def of_labels(labels):
    """Return a sentence on labels that differ only in case or blanks, if there are some."""
    groups = {}
    for label in labels:
        if isinstance(label, str):
            groups.setdefault(" ".join(label.split()).casefold(), []).append(label)
    shown = "; ".join(" and ".join(map(repr, group)) for group in groups.values() if len(group) > 1)
    said = f"Labels that differ only in case or blanks are taken as classes apart: {shown}."
    return [f"{said} Write them alike if they are one."] if shown else []


def _of_codes(coder):
    """Return a sentence on values that may stand for missing ones, if there are some."""
    words = {}
    for name, value, count in coder.ends.codes():
        if coder.kind[name] != "number":
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


def in_columns(words):
    """Return words, each with the columns and how often it occurs there, from a dict of lists of both."""
    return ", ".join(
        f"{word} ({', '.join(f'{count:,} in {name!r}' for name, count in where[:5])}"
        + (f" and {len(where) - 5} more columns)" if len(where) > 5 else ")")
        for word, where in list(words.items())[:5]
    )


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
        seen = n - (totals[label][gap] if gap is not None else 0.0)
        if seen < 2:
            return False
        mean = totals[label][place] / seen
        if squares[label][place] / seen - mean**2 > 1e-10 * variance:
            return False
        means.append(mean)
    return np.diff(np.sort(means)).min() > 1e-6 * np.sqrt(variance)


def _levels_leak(places, totals, n):
    """Return whether each level belongs to one class alone, with so many rows that it is no accident."""
    seen = sum(counts[places] > 0.0 for counts in totals.values())  # in how many classes
    return len(places) * LEAKING_ROWS <= n and bool((seen <= 1).all())


def _squares(sums, K):
    square = np.zeros(K)
    for block in sums.blocks:
        square[: block.shape[1]] += np.einsum("ij,ij->j", block, block)
    if sums.products is not None:
        square[: len(sums.products)] += np.diag(sums.products)
    return square
