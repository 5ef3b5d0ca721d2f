"""Read the file that a reader brings, for the menu of its columns and for the advice on it."""

import io
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from ..advice import advise_file
from ..advice.internal import SEPARATORS

USUAL_LABELS = ("label", "class", "target", "y", "outcome")


class File:
    """A CSV file as the page hands it over.

    Attributes
    ----------
    name : str
    table : pandas.DataFrame
        Its cells as text, for the menus; the advice reads the file again.
    """

    def __init__(self, name, content):
        self.name, self._content = Path(name).name, bytes(content)
        if not self._content.strip():
            raise ValueError("the file is empty")
        try:
            text = self._content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError("this is not a text file in UTF-8: export the table as CSV") from None
        if "\0" in text:
            raise ValueError("this is not a text file: export the table as CSV")
        header = text.strip().splitlines()[0]
        separator = max(SEPARATORS, key=header.count)
        try:
            self.table = pd.read_csv(
                io.StringIO(text), sep=separator, dtype=str, index_col=False, keep_default_na=False, na_values=[""]
            )
        except (ValueError, pd.errors.ParserWarning) as error:  # a row that is too long, a quote that never ends
            raise ValueError(f"the file cannot be read as a table: {str(error).strip().splitlines()[0]}") from None
        if len(self.table) == 0:
            raise ValueError("the table has a header but no rows")
        if all(map(_is_number, self.table.columns)):
            raise ValueError("the first row must hold the names of the columns, but it holds numbers")

    def advise(self, label, **options):
        """Return the advice on this file; errors call it by the name that its owner knows."""
        with TemporaryDirectory() as folder:
            path = Path(folder, "table.csv")
            path.write_bytes(self._content)
            try:
                advice = advise_file(path, label, progress=False, **options)
            except ValueError as error:
                raise ValueError(str(error).replace(str(path), self.name)) from None
        advice.data.source = advice.data.source._replace(path=self.name)
        return advice


def _is_number(name):
    try:
        float(name)
    except ValueError:
        return False
    return True


def likely_label(table):
    """Return a column with two values, one of a usual name if possible, else the last one; None if there is none."""
    binary = [name for name in table.columns if table[name].nunique() == 2]
    usual = [name for name in binary if str(name).strip().lower() in USUAL_LABELS]
    return (usual or binary[::-1] or [None])[0]
