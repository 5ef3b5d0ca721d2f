"""Make the features of a classifier from coded columns: scaled, imputed, without indices, leaks and constants."""

import re

import numpy as np
import pandas as pd
from scipy import sparse

from .._support.frames import TableError
from ._sums import padded

UNNAMED = re.compile(r"(?:Unnamed: \d+(?:_level_\d+)?(?:\.\d+)?|__index_level_\d+__|)")
LEAKING_ROWS = 5  # a column tells the label by accident if it has fewer rows than this for each of its levels


class ManyLabels(TableError):
    """A table has more than two labels where two are expected."""


def candidates(names):
    """Return the columns that may be a saved index: those without a name at the beginning, and the next one."""
    found = []
    for name in names:
        found.append(name)
        if not (isinstance(name, str) and UNNAMED.fullmatch(name)):
            break
    return found


class Counting:
    """Finds out, block after block, whether a column counts the rows."""

    def __init__(self, name):
        self.unnamed = isinstance(name, str) and bool(UNNAMED.fullmatch(name))
        self.sign, self.first, self.last, self.n, self.steps_of_one = None, None, None, 0, True
        self.strictly = True

    def add(self, column):
        """Look at the next block of the column."""
        if not self.strictly:
            return
        if not pd.api.types.is_integer_dtype(column) or column.isna().any():
            self.strictly = False
            return
        values = column.to_numpy(dtype=np.int64 if column.dtype != np.uint64 else np.uint64)
        if self.first is None:
            self.first = int(values[0])
        else:
            values = np.concatenate([[self.last], values]).astype(values.dtype)
        self.n, self.last = self.n + len(column), int(values[-1])
        if len(values) > 1:
            up, down = bool((values[1:] > values[:-1]).all()), bool((values[1:] < values[:-1]).all())
            sign = 1 if up else -1 if down else 0
            self.strictly = sign != 0 and self.sign in (None, sign)
            self.sign = sign
            self.steps_of_one = self.steps_of_one and abs(self.last - self.first) == self.n - 1

    @property
    def why(self):
        """Reason to leave the column out, or None."""
        if self.unnamed:
            return "an index: it has no name"
        if self.strictly and self.n > 1:
            return (
                "an index: it counts the rows"
                if self.steps_of_one
                else "an index: whole numbers in order, all different"
            )
        return None


def features(coder):
    """Return the sparse matrix (K, D) from coded columns to features, and the numeric and categorical columns used."""
    _leave_out_indices(coder)
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
            if variance <= 1e-14 * max(square[place] / n, 1e-300) or variance <= 1e-24:
                coder.dropped[name] = "constant"
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
            places = [place for key, place in coder.keys.items() if key[0] == "level" and key[1] == name]
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
