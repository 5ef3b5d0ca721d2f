"""Recognise numbers as files write them: decimal and thousands marks, and words for missing values."""

import re
from typing import NamedTuple

import numpy as np
import pandas as pd

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
MARKS = {".": ".", ",": ",", " ": SPACES, "'": APOSTROPHES}  # thousands mark to the characters that it is written with
UNIT = re.compile(r"^[$€£¥] ?| ?[%‰$€£¥]$")
NEARLY = 0.95  # if this share of the cells are numbers, the others are slips or unknown words for missing, not levels
SEVERAL = 10  # a column with no more different numbers than this may hold levels


class Format(NamedTuple):
    """Decimal and thousands marks of a column of numbers."""

    decimal: str = "."
    thousands: str = ""

    @property
    def pattern(self):
        """Regular expression that matches one number in this format."""
        point, whole = re.escape(self.decimal), "[0-9]+"
        if self.thousands:
            mark = f"[{MARKS[self.thousands]}]"
            whole = (
                f"(?:[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+|[1-9][0-9]?(?:{mark}[0-9]{{2}})+{mark}[0-9]{{3}}|[0-9]+)"
            )
        return rf"[+\-−]?(?:(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+\-]?[0-9]+)?|[iI][nN][fF](?:inity)?)"

    def plain(self, cells):
        """Rewrite a Series of numbers in this format as Python writes them."""
        if self.thousands:
            cells = cells.str.replace(f"[{MARKS[self.thousands]}]", "", regex=True)
        if self.decimal != ".":
            cells = cells.str.replace(self.decimal, ".", regex=False)
        return cells.str.replace("−", "-", regex=False)

    def __str__(self):
        words = [f"decimal {self.decimal!r}"] + ([f"thousands {self.thousands!r}"] if self.thousands else [])
        return " and ".join(words)


PLAIN = Format()


class Looked(NamedTuple):
    """What :func:`look` found out about the numbers of a column."""

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


def look(cells, na=()):
    """Return how a Series of text writes its numbers, as :class:`Looked`."""
    counts = cells.str.strip().value_counts()
    words = pd.Series(counts.index, dtype=object)
    here = ~is_missing(words, na, among_numbers=True).to_numpy(bool)
    words, counts = words[here].reset_index(drop=True), counts.to_numpy()[here]
    if not len(words):
        return Looked({}, "")
    formats = {}
    for decimal, other in (".,", ",."):
        for thousands in ("", other, " ", "'"):
            taken = re.compile(Format(decimal, thousands).pattern).fullmatch
            if all(map(taken, words)):
                formats[decimal] = Format(decimal, thousands)
                break
    if formats and not any(form.thousands for form in formats.values()) and len(formats) == 2:
        formats = dict.fromkeys(formats, PLAIN)  # digits alone
    if formats:
        return Looked(formats, max(words[:1000], key=_marks))
    for decimal in ".,":
        taken = re.compile(Format(decimal, "." if decimal == "," else ",").pattern).fullmatch
        if len(words) > SEVERAL and all(taken(UNIT.sub("", word)) for word in words):
            return Looked({}, "", other=words[0])
        is_number = np.array([bool(taken(word)) for word in words])
        share = counts[is_number].sum() / counts.sum()
        if is_number.sum() > SEVERAL and share > 0.5:
            cell = words[int(np.argmin(is_number))]
            return Looked({}, "", odd=cell) if share >= NEARLY else Looked({}, "", other=cell)
    return Looked({}, "")


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
        From column to :class:`Looked`.
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
    for name, found in looks.items():
        if not found.formats:
            continue
        mark = guess or chosen
        if found.ambiguous and guess is None:
            unsure[name] = found.formats["," if mark == "." else "."]
        if len(found.formats) == 1 and decimal is None:
            (mark,) = found.formats
        if mark in found.formats:
            formats[name] = found.formats[mark]
    return formats, unsure
