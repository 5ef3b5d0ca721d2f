"""From the file a reader brings to two classes of numbers, or to a sentence that says why not."""

import csv
import io
from typing import NamedTuple

import numpy as np
import pandas as pd

MAX_FEATURES = 3000  # beyond this the eigendecomposition takes more than a few seconds
USUAL_LABELS = ("label", "class", "target", "y", "outcome")


class TwoClasses(NamedTuple):
    """Rows of either class, and what was left out on the way."""

    X_pos: np.ndarray
    X_neg: np.ndarray
    features: list
    notes: list


def read(content):
    """Table of a CSV file with a header, given as bytes; commas, semicolons, tabs or bars between the columns."""
    try:
        text = bytes(content).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError("this is not a text file in UTF-8: export the table as CSV") from error
    if not text.strip():
        raise ValueError("the file is empty")
    if "\0" in text:
        raise ValueError("this is not a text file: export the table as CSV")
    try:
        separator = csv.Sniffer().sniff("\n".join(text.splitlines()[:20]), delimiters=",;\t|").delimiter
    except csv.Error:
        separator = ","
    try:
        tables = [pd.read_csv(io.StringIO(text), sep=separator, decimal=d) for d in (".," if separator == ";" else ".")]
    except (ValueError, csv.Error) as error:  # a row that is too long, a quote that never ends
        raise ValueError(f"the file cannot be read as a table: {str(error).strip().splitlines()[0]}") from error
    table = max(tables, key=lambda t: t.select_dtypes("number").shape[1])
    if len(table) == 0:
        raise ValueError("the table has a header but no rows")
    if table.shape[1] < 2:
        raise ValueError("the table has one column: it needs a label and at least one feature")
    if all(_is_number(name) for name in table.columns):
        raise ValueError("the first row must hold the names of the columns, but it holds numbers")
    return table


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


def values(table, label):
    """Both values of the label, the rarer first; an error where there are not two."""
    counts = table[label].value_counts(ascending=True)
    if len(counts) != 2:
        raise ValueError(f"the label must hold two values, but '{label}' holds {len(counts)}")
    return list(counts.index)


def split(table, label, positive, standardise):
    """The two classes of a table."""
    if positive not in values(table, label):
        raise ValueError(f"'{label}' does not hold the value {positive!r}")
    notes = []
    numeric = table.drop(columns=label).select_dtypes(["number", "bool"]).astype(float)
    dropped = [str(name) for name in table.columns if name != label and name not in numeric.columns]
    if dropped:
        notes.append(f"left out, as they hold no numbers: {_listed(dropped)}")
    whole = np.isfinite(numeric.to_numpy()).all(axis=1) & table[label].notna().to_numpy()
    if not whole.all():
        notes.append(f"{np.sum(~whole)} of {len(table)} rows with missing values are left out")
    numeric, y = numeric[whole], table.loc[whole, label] == positive
    constant = [name for name in numeric.columns if numeric[name].nunique() < 2]
    if constant:
        notes.append(f"left out, as they never change: {_listed(map(str, constant))}")
        numeric = numeric.drop(columns=constant)
    if numeric.shape[1] == 0:
        raise ValueError("no column of numbers is left beside the label")
    if numeric.shape[1] > MAX_FEATURES:
        raise ValueError(f"the table has {numeric.shape[1]} features; this page takes up to {MAX_FEATURES}")
    for name, n in ((positive, y.sum()), (f"not {positive}", (~y).sum())):
        if n < 2:
            raise ValueError(f"class '{name}' has {n} complete rows: at least 2 are needed")
    X = numeric.to_numpy()
    if standardise:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return TwoClasses(X[y.to_numpy()], X[~y.to_numpy()], list(map(str, numeric.columns)), notes)


def _listed(names, most=5):
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
