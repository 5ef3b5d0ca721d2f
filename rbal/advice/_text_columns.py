"""Text of a file turned into numbers, levels and labels: marks of decimals and thousands, words for missing values."""

import re
from collections import Counter
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from .._support.frames import TableError
from ._columns import SEVERAL, in_columns, some_names

# Words that mean a missing value in any column: those of pandas, and "?".
ANYWHERE = frozenset({
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null", "?",
})  # fmt: skip
# Words that mean a missing value in a column of numbers, in upper or lower case; elsewhere they may be levels.
AMONG_NUMBERS = frozenset(word.lower() for word in ANYWHERE) | {
    "-", "--", "---", "–", "—", ".", "..", "...", "*", "n.a.", "n.a", "na.", "nil", "missing", "unknown", "#value!",
    "#div/0!", "#ref!", "#num!", "#null!", "#name?",
}  # fmt: skip
# Words that mean a missing label; NA, None and null are not among them, since a class may be called so.
NO_LABEL = frozenset({"", "?", "nan", "-nan", "#n/a", "#n/a n/a", "#na", "<na>"})
SPACES, APOSTROPHES = " \u00a0\u2009\u202f", "'\u2019"
MARK_FORMS = {
    ".": ".",
    ",": ",",
    " ": SPACES,
    "'": APOSTROPHES,
}  # thousands mark to the characters that it is written with
UNIT = re.compile(r"^[$€£¥] ?| ?[%‰$€£¥]$")
NEARLY = 0.95  # if this share of the cells are numbers, the others are slips or unknown words for missing, not levels


class Format(NamedTuple):
    """Decimal and thousands marks of a column of numbers."""

    decimal: str = "."
    thousands: str = ""

    @property
    def pattern(self):
        """Regular expression that matches one number in this format."""
        point, whole = re.escape(self.decimal), "[0-9]+"
        if self.thousands:
            mark = f"[{MARK_FORMS[self.thousands]}]"
            whole = (
                f"(?:[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+|[1-9][0-9]?(?:{mark}[0-9]{{2}})+{mark}[0-9]{{3}}|[0-9]+)"
            )
        return rf"[+\-−]?(?:(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+\-]?[0-9]+)?|[iI][nN][fF](?:inity)?)"

    def plain(self, cells):
        """Rewrite a Series of numbers in this format as Python writes them."""
        if self.thousands:
            cells = cells.str.replace(f"[{MARK_FORMS[self.thousands]}]", "", regex=True)
        if self.decimal != ".":
            cells = cells.str.replace(self.decimal, ".", regex=False)
        return cells.str.replace("−", "-", regex=False)

    def __str__(self):
        words = [f"decimal {self.decimal!r}"] + ([f"thousands {self.thousands!r}"] if self.thousands else [])
        return " and ".join(words)


PLAIN = Format()


class NumberLook(NamedTuple):
    """How a column of text writes its numbers, as :func:`inspect_numbers` recognises it."""

    formats: dict  # from a decimal mark to a format that reads all cells
    example: str  # a cell with a mark
    odd: str | None = None  # a cell that is no number, where nearly all are
    other: str | None = None  # a cell that is no number, where most are

    @property
    def ambiguous(self):
        """Whether the value of the cells depends on the decimal mark, as in 1,234 with its three digits."""
        formats = self.formats
        return len(formats) == 2 and (formats["."].thousands == "," or formats[","].thousands == ".")


def is_missing(cells, na=(), among_numbers=False):
    """Return which cells of a Series of stripped text mean that there is no value."""
    if among_numbers:
        return cells.isna() | cells.str.lower().isin(AMONG_NUMBERS) | cells.isin(na)
    return cells.isna() | cells.isin(ANYWHERE) | cells.isin(na)


def inspect_numbers(cells, na=()):
    """Return how a Series of text writes its numbers, as :class:`NumberLook`."""
    counts = cells.str.strip().value_counts()
    words = pd.Series(counts.index, dtype=object)
    present = ~is_missing(words, na, among_numbers=True).to_numpy(bool)
    words, counts = words[present].reset_index(drop=True), counts.to_numpy()[present]
    if not len(words):
        return NumberLook({}, "")
    formats = {}
    for decimal, other in (".,", ",."):
        for thousands in ("", other, " ", "'"):
            matches = re.compile(Format(decimal, thousands).pattern).fullmatch
            if all(map(matches, words)):
                formats[decimal] = Format(decimal, thousands)
                break
    if formats and not any(form.thousands for form in formats.values()) and len(formats) == 2:
        formats = dict.fromkeys(formats, PLAIN)  # digits alone
    if formats:
        return NumberLook(formats, max(words[:1000], key=_marks))
    for decimal in ".,":
        matches = re.compile(Format(decimal, "." if decimal == "," else ",").pattern).fullmatch
        if len(words) > SEVERAL and all(matches(UNIT.sub("", word)) for word in words):
            return NumberLook({}, "", other=words[0])
        is_number = np.array([bool(matches(word)) for word in words])
        share = counts[is_number].sum() / counts.sum()
        if is_number.sum() > SEVERAL and share > 0.5:
            cell = words[int(np.argmin(is_number))]
            return NumberLook({}, "", odd=cell) if share >= NEARLY else NumberLook({}, "", other=cell)
    return NumberLook({}, "")


def _marks(word):
    """Return how many kinds of marks a number has, and how many marks."""
    marks = [c for c in word.lstrip("+-−") if not c.isalnum()]
    return len(set(marks)), len(marks)


def as_numbers(cells, form, na=()):
    """Convert a Series of text to numbers; tell which cells are words for missing, and the first that is neither.

    Returns
    -------
    values : (n,) array
    words : Series
        The cells that are missing but not empty.
    bad : str or None
    """
    if pd.api.types.infer_dtype(cells, skipna=True) not in ("string", "empty"):
        cells = cells.map(str, na_action="ignore")  # pandas makes Python integers of those beyond 64 bits
    cells = cells.str.strip()
    missing = is_missing(cells, na, among_numbers=True)
    given = cells[~missing]
    is_number = given.str.fullmatch(form.pattern).astype(bool)
    if not is_number.all():
        return None, None, given[~is_number].iloc[0]
    values = np.full(len(cells), np.nan)
    values[~missing.to_numpy(bool)] = pd.to_numeric(form.plain(given)).to_numpy(float)
    return values, cells[missing & cells.notna() & (cells != "")], None


def decide(looks, sep, decimal=None, thousands=None):
    """Choose the format of each column that holds numbers, and name the columns where that is a guess.

    A column that can be read with only one decimal mark decides for those that can be read with either. If there is
    none, the separator decides: files with ; come from countries where the decimal mark is a comma.

    Parameters
    ----------
    looks : dict
        From column to :class:`NumberLook`.
    sep : str
        Separator of the file.
    decimal, thousands : str, optional
        Marks that the user gave.

    Returns
    -------
    formats : dict
        From column to :class:`Format`.
    unsure : dict
        From column to the format that was possible too.
    """
    votes = {next(iter(look.formats)) for look in looks.values() if len(look.formats) == 1}
    unclear = [look for look in looks.values() if look.ambiguous]
    if decimal is None and thousands in (".", ","):
        decimal = "," if thousands == "." else "."
    guess = decimal or (votes.pop() if len(votes) == 1 else None)
    if guess is None:
        with_comma = any("," in look.example for look in unclear)
        chosen = "," if with_comma and sep == ";" else "."
    formats, unsure = {}, {}
    for name, look in looks.items():
        if not look.formats:
            continue
        mark = guess or chosen
        if look.ambiguous and guess is None:
            unsure[name] = look.formats["," if mark == "." else "."]
        if len(look.formats) == 1 and decimal is None:
            (mark,) = look.formats
        if mark in look.formats:
            formats[name] = look.formats[mark]
    return formats, unsure


# ---- all columns of a file


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
        self.missing_words = Counter()  # from (word, column) to how often the word meant a missing value
        looks, left = {}, {label, *left}
        for name, dtype, cells in zip(text.columns, table.dtypes, text.to_numpy(object).T, strict=True):
            if name in left or is_bool_dtype(dtype):
                continue
            if not is_numeric_dtype(dtype) or _may_be_thousands(cells):
                looks[name] = inspect_numbers(pd.Series(cells, dtype=object), self.na)
            elif dtype.kind == "f":
                looks[name] = NumberLook({".": PLAIN}, next((c for c in cells if isinstance(c, str) and "." in c), ""))
            else:
                looks[name] = NumberLook({".": PLAIN, ",": PLAIN}, "")
            if looks[name].odd is not None:
                raise TableError(
                    f"column {name!r} holds numbers, but also {looks[name].odd!r}: correct it, say that it is missing "
                    f"(--na {looks[name].odd}), or that the column is categorical (--categorical {name})"
                )
        self.formats, self.unsure = decide(looks, sep, decimal, thousands)
        self.marks = {"sep": sep, **self._spelled(looks, sep, decimal, thousands)}
        self.partly = {name: look.other for name, look in looks.items() if look.other is not None}
        self.examples = {name: look.example for name, look in looks.items()}
        for name, look in looks.items():
            form = self.formats.get(name)
            wrong = form is not None and thousands is not None and form.thousands not in ("", thousands)
            if look.formats and (form is None or wrong):
                options = [f"--decimal {decimal}"] if decimal else []
                options += [f"--thousands {thousands}"] if thousands else []
                raise TableError(f"column {name!r} holds {look.example!r}, which is no number with {' '.join(options)}")
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
            spelled = {"decimal": min(decimals), "thousands": min(marks, default=None)}
            if decide(looks, sep, **spelled)[0] == self.formats:
                return spelled
        return {"decimal": decimal, "thousands": thousands}

    def _without(self, name, column):
        """Return numbers with NaN for those that stand for a missing value."""
        if not self.na_numbers:
            return column
        missing = column.isin(self.na_numbers)
        self.missing_words.update((_short(value), name) for value in column[missing])
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
        self.missing_words.update((word, name) for word in words)
        return self._without(name, pd.Series(values, index=cells.index))

    def _levels(self, name, cells):
        cells = cells.str.strip()
        missing = is_missing(cells, self.na)
        self.missing_words.update((word, name) for word in cells[missing & cells.notna() & (cells != "")])
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
        sentences = [
            f"More than one column is called {name!r}: those after the first get a number." for name in self.twice
        ]
        groups = {}
        for name, form in self.formats.items():
            if form != PLAIN and name in used and name not in self.unsure:
                groups.setdefault(form, []).append(name)
        for form, names in groups.items():
            cell = self.examples[names[0]]
            value = float(form.plain(pd.Series([cell], dtype=object))[0])
            sentences.append(f"Numbers with {form} are recognised in {_columns(names)}: {cell!r} is read as {value:g}.")
        names = [name for name in self.unsure if name in used]
        if names:
            cell, other = self.examples[names[0]], self.unsure[names[0]]
            value = float(other.plain(pd.Series([cell], dtype=object))[0])
            taken = float(self.formats[names[0]].plain(pd.Series([cell], dtype=object))[0])
            sentences.append(
                f"Ambiguous numbers in {_columns(names)}: {cell!r} is read as {taken:g} and could be {value:g}. "
                f"--decimal {other.decimal} reads it so, --decimal {self.formats[names[0]].decimal} ends this note."
            )
        sentences += [
            f"Column {name!r} holds numbers, but also {cell!r} and its like: it is not taken as numbers."
            for name, cell in self.partly.items()
        ]
        words = {}
        for (word, name), count in self.missing_words.items():
            if name in used:
                words.setdefault(word, []).append((name, count))
        if words:
            sentences.append(f"Read as missing: {in_columns({repr(word): where for word, where in words.items()})}.")
        return sentences


def relabelled(labels):
    """Map labels of a CSV file to the numbers or truth values they spell; return sentences on words for missing too.

    Parameters
    ----------
    labels : list of str

    Returns
    -------
    (dict, list of str)
    """
    sentences = [
        f"The label {label!r} is taken as a class, not as a missing value: give it with --na if it is one."
        for label in labels
        if is_missing(pd.Series([label], dtype=object))[0]
    ]
    if {label.lower() for label in labels} <= {"true", "false"}:
        return _one_to_one({label: label.lower() == "true" for label in labels}), sentences
    values = {label: _numbers_among([label]) for label in labels}
    if not all(values.values()):
        return {label: label for label in labels}, sentences
    values = _one_to_one({label: value for label, (value,) in values.items()})
    named = any(label.lstrip("+-").startswith("0") and label.lstrip("+-")[1:2].isdigit() for label in labels)
    if named or any(value % 1.0 for value in values.values()):
        # 01 is a name, not a number; and where there are fractions, scikit-learn takes labels for values to regress
        return {label: label for label in labels}, sentences
    return {label: int(value) if label.lstrip("+-").isdigit() else value for label, value in values.items()}, sentences


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
    look = inspect_numbers(text)
    if look.odd is None and not (look.formats and text.nunique() > 10):
        return None
    return look.odd or next(iter(text[is_missing(text.str.strip(), among_numbers=True)]), None) or text.iloc[0]


def check_marks(decimal, thousands):
    """Raise an error for marks that numbers cannot have."""
    if decimal is not None and not (isinstance(decimal, str) and decimal in (".", ",")):
        raise TableError(f"decimal must be '.' or ',', got {decimal!r}")
    if thousands is not None and not (isinstance(thousands, str) and thousands in MARK_FORMS):
        raise TableError(f"thousands must be one of {', '.join(map(repr, MARK_FORMS))}, got {thousands!r}")
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
    return ("column " if len(names) == 1 else "columns ") + some_names(names)
