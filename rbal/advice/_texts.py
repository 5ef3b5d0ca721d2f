"""Turn the text of a file into numbers, levels and labels, and note what was recognised."""

from collections import Counter

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from ._features import in_columns
from ._numbers import NO_LABEL, PLAIN, Looked, as_numbers, decide, is_missing, look
from ._table import TableError, _some

ONE_SIGN = ".", ","
MARKS = ".", ",", " ", "'"


class Texts:
    """Reads the text of one CSV file, in the formats that its beginning shows.

    Parameters
    ----------
    table : DataFrame
        Beginning of the file as pandas reads it.
    text : DataFrame
        The same as text.
    label : str
    left : list of str
        Columns that are not read as numbers.
    sep : str
        Separator of the file.
    decimal, thousands : str, optional
        Marks that the user gave; by default they are recognised.
    na : list of str
        Words for missing values, beside the usual ones.
    """

    def __init__(self, table, text, label, left=(), *, sep=",", decimal=None, thousands=None, na=()):
        self.label, self.na = label, tuple(na)
        self.na_numbers = _numbers_among(self.na)
        self.twice = []  # names that several columns have
        self.found = Counter()  # from (word, column) to how often the word meant a missing value
        looks, left = {}, {label, *left}
        for name, dtype, cells in zip(text.columns, table.dtypes, text.to_numpy(object).T, strict=True):
            if name in left or is_bool_dtype(dtype):
                continue
            if not is_numeric_dtype(dtype) or _may_be_thousands(cells):
                looks[name] = look(pd.Series(cells, dtype=object), self.na)
            elif dtype.kind == "f":
                looks[name] = Looked({".": PLAIN}, next((c for c in cells if isinstance(c, str) and "." in c), ""))
            else:
                looks[name] = Looked({".": PLAIN, ",": PLAIN}, "")
            if looks[name].odd is not None:
                raise TableError(
                    f"column {name!r} holds numbers, but also {looks[name].odd!r}: correct it, say that it is missing "
                    f"(--na {looks[name].odd}), or that the column is categorical (--categorical {name})"
                )
        self.formats, self.unsure = decide(looks, sep, decimal, thousands)
        self.marks = {"sep": sep, **self._spelled(looks, sep, decimal, thousands)}
        self.partly = {name: found.other for name, found in looks.items() if found.other is not None}
        self.examples = {name: found.example for name, found in looks.items()}
        for name, found in looks.items():
            form = self.formats.get(name)
            wrong = form is not None and thousands is not None and form.thousands not in ("", thousands)
            if found.formats and (form is None or wrong):
                said = [f"--decimal {decimal}"] if decimal else []
                said += [f"--thousands {thousands}"] if thousands else []
                raise TableError(f"column {name!r} holds {found.example!r}, which is no number with {' '.join(said)}")
        own = [name for name, form in self.formats.items() if form != PLAIN]
        self.dtype = dict.fromkeys([label, *own], "str")

    def __call__(self, block):
        """Return the features of a block that pandas read, with text turned into numbers, and its labels."""
        labels = self._labels(block[self.label])
        block = block.copy().drop(columns=self.label)  # a copy joins the columns, which pandas reads one by one
        new = {}
        for name, dtype in zip(block.columns, block.dtypes, strict=True):
            if is_numeric_dtype(dtype):
                continue
            column = block[name]
            if name in self.formats:
                new[name] = self._numbers(name, column)
            elif pd.api.types.infer_dtype(column, skipna=True) == "string":
                new[name] = self._levels(name, column)
        if self.na_numbers:
            numbers = block[[name for name, dtype in block.dtypes.items() if is_numeric_dtype(dtype)]]
            coded = numbers.columns[numbers.isin(self.na_numbers).any()]
            new |= {name: self._without(name, numbers[name]) for name in coded}
        if len(new) > 0.1 * block.shape[1]:  # to replace many columns one by one takes longer than a new frame
            return pd.DataFrame(
                {name: new[name] if name in new else block[name] for name in block}, block.index
            ), labels
        return block.assign(**new), labels

    def settings(self, sep, encoding):
        """Return the separator, encoding and marks of this file, without those that are recognised or the default."""
        return {
            "encoding": encoding,
            **self.marks,
            "sep": None if sep is None and self.marks["sep"] == "," else self.marks["sep"],
        }

    def _spelled(self, looks, sep, decimal, thousands):
        """Return marks of decimals and thousands that give all columns the formats they have, if there are some."""
        own = [form for form in self.formats.values() if form != PLAIN]
        decimals, marks = {form.decimal for form in own}, {form.thousands for form in own if form.thousands}
        if decimal is None and thousands is None and len(decimals) == 1 and len(marks) <= 1:
            found = {"decimal": min(decimals), "thousands": min(marks, default=None)}
            if decide(looks, sep, **found)[0] == self.formats:
                return found
        return {"decimal": decimal, "thousands": thousands}

    def _without(self, name, column):
        """Return numbers with NaN for those that stand for a missing value."""
        if not self.na_numbers:
            return column
        missing = column.isin(self.na_numbers)
        self.found.update((_short(value), name) for value in column[missing])
        return column.mask(missing) if missing.any() else column

    def _numbers(self, name, cells):
        values, words, bad = as_numbers(cells, self.formats[name], self.na)
        if bad is not None:
            form = self.formats[name]
            raise TableError(
                f"column {name!r} begins with numbers ({form}) but holds {bad!r} further on: correct it, "
                "say how numbers are written (--decimal, --thousands) or what is missing (--na), or name it as "
                "categorical"
            )
        self.found.update((word, name) for word in words)
        return self._without(name, pd.Series(values, index=cells.index))

    def _levels(self, name, cells):
        cells = cells.str.strip()
        missing = is_missing(cells, self.na)
        self.found.update((word, name) for word in cells[missing & cells.notna() & (cells != "")])
        return cells.mask(missing) if missing.any() else cells

    def _labels(self, cells):
        cells = cells.str.strip()
        missing = cells.isna() | cells.str.lower().isin(NO_LABEL) | cells.isin(self.na)
        if missing.any():
            words = sorted({word for word in cells[missing].dropna() if word})
            written = f" ({', '.join(map(repr, words[:3]))})" if words else ""
            raise TableError(
                f"the label is missing{written} in {int(missing.sum())} rows: fill them in or leave these rows out"
            )
        whole = cells.str.fullmatch(r"-?(?:0|[1-9][0-9]*)\.0+").astype(bool)  # 1.0 and 1 are one label
        return cells.mask(whole, cells.str.replace(r"\.0+$", "", regex=True))

    def notes(self, used):
        """Return sentences on what was recognised in the columns that were used."""
        said = [f"More than one column is called {name!r}: those after the first get a number." for name in self.twice]
        groups = {}
        for name, form in self.formats.items():
            if form != PLAIN and name in used and name not in self.unsure:
                groups.setdefault(form, []).append(name)
        for form, names in groups.items():
            cell = self.examples[names[0]]
            value = float(form.plain(pd.Series([cell], dtype=object))[0])
            said.append(f"Numbers with {form} are recognised in {_columns(names)}: {cell!r} is read as {value:g}.")
        names = [name for name in self.unsure if name in used]
        if names:
            cell, other = self.examples[names[0]], self.unsure[names[0]]
            value = float(other.plain(pd.Series([cell], dtype=object))[0])
            taken = float(self.formats[names[0]].plain(pd.Series([cell], dtype=object))[0])
            said.append(
                f"Ambiguous numbers in {_columns(names)}: {cell!r} is read as {taken:g} and could be {value:g}. "
                f"--decimal {other.decimal} reads it so, --decimal {self.formats[names[0]].decimal} ends this note."
            )
        said += [
            f"Column {name!r} holds numbers, but also {cell!r} and its like: it is not taken as numbers."
            for name, cell in self.partly.items()
        ]
        words = {}
        for (word, name), count in self.found.items():
            if name in used:
                words.setdefault(word, []).append((name, count))
        if words:
            said.append(f"Read as missing: {in_columns({repr(word): where for word, where in words.items()})}.")
        return said


def relabelled(labels):
    """Map labels of a CSV file to the numbers or truth values they spell; return sentences on words for missing too.

    Parameters
    ----------
    labels : list of str

    Returns
    -------
    (dict, list of str)
    """
    said = [
        f"The label {label!r} is taken as a class, not as a missing value: give it with --na if it is one."
        for label in labels
        if is_missing(pd.Series([label], dtype=object))[0]
    ]
    if {label.lower() for label in labels} <= {"true", "false"}:
        return _one_to_one({label: label.lower() == "true" for label in labels}), said
    values = {label: _numbers_among([label]) for label in labels}
    if not all(values.values()):
        return {label: label for label in labels}, said
    values = _one_to_one({label: value for label, (value,) in values.items()})
    named = any(label.lstrip("+-").startswith("0") and label.lstrip("+-")[1:2].isdigit() for label in labels)
    if named or any(value % 1.0 for value in values.values()):
        # 01 is a name, not a number; and where there are fractions, scikit-learn takes labels for values to regress
        return {label: label for label in labels}, said
    return {label: int(value) if label.lstrip("+-").isdigit() else value for label, value in values.items()}, said


def _one_to_one(values):
    """Return a dict from label to value, if no two labels have one value."""
    first = {}
    for label, value in values.items():
        other = first.setdefault(value, label)
        if other != label:
            what = "truth value" if isinstance(value, bool) else "number"
            raise TableError(
                f"the labels {other!r} and {label!r} are one {what}, written in two ways: write them alike"
            )
    return values


def without(block, na):
    """Return a block with missing values in place of the words or numbers that the user calls missing."""
    if not len(na):
        return block
    numbers = _numbers_among(na)
    return block.apply(lambda column: column.mask(column.isin(numbers if is_numeric_dtype(column) else list(na))))


def written_numbers(column):
    """Return a telling cell of a column whose text is numbers in all but a few cells, or None for other columns."""
    text = column.dropna()
    text = text[text.map(lambda cell: isinstance(cell, str)).astype(bool)].astype(object)
    found = look(text)
    if found.odd is None and not (found.formats and text.nunique() > 10):
        return None
    return found.odd or next(iter(text[is_missing(text.str.strip(), among_numbers=True)]), None) or text.iloc[0]


def check_marks(decimal, thousands):
    """Raise an error for marks that numbers cannot have."""
    if decimal is not None and not (isinstance(decimal, str) and decimal in ONE_SIGN):
        raise TableError(f"decimal must be '.' or ',', got {decimal!r}")
    if thousands is not None and not (isinstance(thousands, str) and thousands in MARKS):
        raise TableError(f"thousands must be one of {', '.join(map(repr, MARKS))}, got {thousands!r}")
    if decimal is not None and decimal == thousands:
        raise TableError(f"decimal and thousands must differ, got {decimal!r} for both")


def _may_be_thousands(cells):
    """Return whether cells of a column of numbers have points, all of which may be marks of thousands."""
    marked = False
    for cell in cells:
        if not isinstance(cell, str):
            continue
        _, mark, end = cell.strip().rpartition(".")
        marked = marked or bool(mark)
        if mark and len(end) != 3:
            return False
    return marked


def _numbers_among(words):
    values = []
    for word in words:
        try:
            values.append(float(word))
        except (TypeError, ValueError, OverflowError):
            continue
    return [value for value in values if np.isfinite(value)]


def _short(value):
    return f"{float(value):g}"


def _columns(names):
    return ("column " if len(names) == 1 else "columns ") + _some(names)
