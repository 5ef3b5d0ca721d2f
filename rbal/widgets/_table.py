"""From the file that a reader brings to the columns to choose from, and to the advice on it."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from .. import _reading
from ..advice import advise_file

USUAL_LABELS = ("label", "class", "target", "y", "outcome")


class File:
    """A CSV file as the page hands it over, read by what reads the files of the command ``rbal advise``.

    Attributes
    ----------
    name : str
    table : pandas.DataFrame
    """

    def __init__(self, name, content):
        self.name, self._content = Path(name).name, bytes(content)
        self.table = self._at_a_path(lambda path: pd.concat(_reading._csv(path, None, None, None), ignore_index=True))
        if len(self.table) == 0:
            raise ValueError("the table has a header but no rows")
        if all(map(_is_number, self.table.columns)):
            raise ValueError("the first row must hold the names of the columns, but it holds numbers")

    def advise(self, label, **options):
        """What ``rbal advise`` says of this file."""
        return self._at_a_path(lambda path: advise_file(path, label, progress=False, **options))

    def _at_a_path(self, act):
        """Write the file, and say what is wrong with it under the name that its owner knows."""
        if not self._content.strip():
            raise ValueError("the file is empty")
        with TemporaryDirectory() as folder:
            path = Path(folder, "table.csv")
            path.write_bytes(self._content)
            try:
                return act(path)
            except ValueError as error:
                raise ValueError(str(error).replace(str(path), self.name)) from None


def _is_number(name):
    try:
        float(name)
    except ValueError:
        return False
    return True


def likely_label(table):
    """Column that looks like a label: one of two values, of the usual names first, then from the right; or None."""
    binary = [name for name in table.columns if table[name].nunique() == 2]
    usual = [name for name in binary if str(name).strip().lower() in USUAL_LABELS]
    return (usual or binary[::-1] or [None])[0]
