"""Read CSV and Parquet files, a block of rows at a time. Nothing in a file is executed."""

import contextlib
import csv
import gzip
import io
import os
import warnings
import zlib
from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from .._support.files import any_path
from .._support.frames import as_floats, distinct, needs_plain
from .._support.validation import listed
from ._columns import TableError, some_names
from ._table import DEFAULTS, Coder
from ._text_columns import Texts, check_marks, relabelled, without

LINE = 16_000_000  # largest length of a line, in bytes
BLOCK = 32_000_000  # approximate number of bytes that are parsed at once
LOOKED = 8_000_000  # approximate number of bytes at the beginning by which numbers are recognised
SEPARATORS = (",", ";", "\t", "|")
WIDE = {
    b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16",
}  # fmt: skip


class Source(NamedTuple):
    """The file that a table was read from, and the options that read it in the same way."""

    path: object
    label: object
    options: dict


@dataclass(frozen=True)
class FileOptions:
    """How a file is read, as in :func:`rbal.advice.advise_file`; what is None is recognised."""

    sep: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    na: object = ()
    drop: object = ()


READ_AS_RECOGNISED = FileOptions()


def read(path, label, options=DEFAULTS, file=READ_AS_RECOGNISED, *, advance=None, coder=None):
    """Return the Data of a table in a file.

    Parameters
    ----------
    path, label
        As in :func:`rbal.advice.advise_file`.
    options : TableOptions
    file : FileOptions
    advance : function, optional
        It is called with the share of the file that was read.
    coder : class, optional
        Coder or ManyCoder.

    Returns
    -------
    Data or ManyData
    """
    coder, unusual = (coder or Coder)(options), False
    file = replace(file, drop=listed("drop", file.drop))
    for block, labels, current in _blocks(path, label, file, options.categorical, advance):
        texts, unusual = current, unusual or needs_plain(block)
        coder.add(block, labels)
    if not coder.classes:
        raise TableError("the table has no rows")
    new, sentences = (None, []) if texts is None else relabelled(list(coder.classes))
    if new is not None:
        coder.relabel(new)
    data = coder.finish()
    data.is_unusual = unusual
    data.notes += coder.numbers_as_text() if texts is None else [*sentences, *texts.notes(data.columns)]
    data.source = Source(path, label, _spelled(file, options.categorical, texts))
    return data


def read_table(
    path, label, *, drop=(), categorical="auto", sep=None, encoding=None, decimal=None, thousands=None, na=()
):
    """Read a table as :func:`rbal.advice.advise_file` does, for :func:`rbal.advise` and for training.

    Parameters
    ----------
    path : path
        CSV file with a header, possibly compressed by gzip; or Parquet, if pyarrow is installed.
    label : str
        Column of the labels.
    drop : list of str
        Columns to leave out.
    categorical : "auto" or list of str
        Columns that are not read as numbers, however much their text looks like it.
    sep, encoding, decimal, thousands, na
        As in :func:`rbal.advice.advise_file`: what is not given is recognised.

    Returns
    -------
    X : DataFrame
        Features (n, L), with NaN where a value is missing.
    y : Series
        Labels (n,).
    """
    blocks, labels = [], []
    file = FileOptions(sep, encoding, decimal, thousands, na, listed("drop", drop))
    for block, block_labels, current in _blocks(path, label, file, categorical):
        blocks.append(block), labels.append(block_labels)
        texts = current
    if not blocks:
        raise TableError("the table has no rows")
    y = pd.concat(labels, ignore_index=True)
    y = pd.Series(np.asarray(y), name=label).infer_objects()
    classes = distinct(y).tolist()  # which refuses labels that are lists
    return _joined(blocks), y if texts is None else y.map(relabelled(classes)[0])


def _joined(blocks):
    """Return one frame, in which a column that changes its type further on has the one that the Coder takes it for."""
    X = pd.concat(blocks, ignore_index=True)
    for name in X.columns[X.dtypes != blocks[0].dtypes]:
        first, column = blocks[0][name], X[name]
        if pd.api.types.is_numeric_dtype(first):  # or truth values
            X[name] = as_floats(name, column)
        elif first.notna().any():
            X[name] = column.astype(object).map(str, na_action="ignore")
    return X


def _blocks(path, label, file, categorical="auto", advance=None):
    """Yield blocks of features and labels of a file and, of a CSV file, the Texts that read them, or else None."""
    path, file = any_path("path", path), replace(file, na=listed("na", file.na, "words or numbers"))
    for name, value in (("sep", file.sep), ("encoding", file.encoding)):
        if value is not None and not isinstance(value, str):
            raise TableError(f"{name} must be text, got {value!r}")
    if not path.exists():
        raise TableError(f"there is no file {str(path)!r}: check the path")
    if not path.is_file():
        raise TableError(f"{str(path)!r} is not a file: give one CSV or Parquet file")
    if path.stat().st_size == 0:
        raise TableError(f"{str(path)!r} is empty")
    check_marks(file.decimal, file.thousands)
    with open(path, "rb") as opened:
        is_parquet = opened.read(4) == b"PAR1" or path.suffix.lower() in (".parquet", ".pq")
    if is_parquet:
        for block in _parquet(path, advance):
            unwanted = _unwanted(list(block.columns), label, file.drop)
            yield without(block.drop(columns=unwanted), file.na), block[label], None
        return
    not_numbers = [*file.drop, *(() if isinstance(categorical, str) else listed("categorical", categorical))]
    for block, labels, texts in _csv(path, label, file, not_numbers, advance):
        yield block.drop(columns=_unwanted([*block.columns, label], label, file.drop)[1:]), labels, texts


def _spelled(file, categorical, texts):
    """Return the options of read_table that differ from their defaults, with what was recognised in their place."""
    given = {**vars(file), "categorical": categorical}
    given |= {} if texts is None else texts.settings(file.sep, file.encoding)
    if texts is None:
        given = {name: value for name, value in given.items() if name in ("drop", "na")}
    lists = {name: list(v) for name, v in given.items() if not (v is None or isinstance(v, str))}
    return {name: value for name, value in (given | lists).items() if value not in (None, [], "auto")}


def _unwanted(columns, label, drop):
    """Return the columns that are no features: the label first, then those to drop."""
    try:
        known = bool(label in columns)
    except ValueError:  # an array
        known = False
    if not known:
        raise TableError(f"there is no column {label!r} to be the label: there are {some_names(columns)}")
    if columns.count(label) > 1:
        raise TableError(f"two columns are called {label!r}: rename one")
    for name in drop:
        if name not in columns:
            raise TableError(f"there is no column {name!r} to leave out: there are {some_names(columns)}")
    return [label, *(name for name in dict.fromkeys(drop) if name != label)]


def _parquet(path, advance):
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise TableError(
            "reading Parquet needs pyarrow: pip install 'rbal[parquet]', or convert the table to CSV"
        ) from None
    try:
        file = parquet.ParquetFile(path)
        done, total = 0, max(file.metadata.num_rows, 1)
        width = max(len(file.schema_arrow.names), 1)
        for batch in file.iter_batches(batch_size=max(64, 4_000_000 // width)):
            yield batch.to_pandas(types_mapper=_kept_type)
            done += batch.num_rows
            if advance:
                advance(done / total)
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{str(path)!r} is not a readable Parquet file ({_line(error)})") from None


def _kept_type(arrow_type):
    """Return the pandas type for an Arrow type that would become Python objects, or None for any other."""
    if str(arrow_type) == "bool":
        return pd.BooleanDtype()
    return pd.ArrowDtype(arrow_type) if str(arrow_type).startswith(("decimal", "list", "struct", "map")) else None


def _csv(path, label, file, not_numbers, advance):
    """Yield blocks of a CSV file with their labels and the Texts that read them; rows must be as long as the header."""
    head = _head(path, file.encoding)
    encoding = file.encoding or "utf-8-sig"
    fields, sep = _header(head, encoding, path, file.sep)
    lines = max(1, head.count(b"\n"))
    nrows = max(100, int(BLOCK * lines / max(len(head), 1)))

    def ragged():
        return _ragged(path, sep, encoding, len(fields))

    def watched():
        return _Watched(_opened(path), sep.encode("ascii"), path, ragged)

    def parsed(raw, **options):
        text = io.TextIOWrapper(io.BufferedReader(raw, 1 << 20), encoding, newline="")
        return text, pd.read_csv(
            text, sep=sep, index_col=False, low_memory=False, keep_default_na=False, na_values=[""],
            skipinitialspace=sep != " ", **options,
        )  # fmt: skip

    def read_by(texts, block):
        try:
            return texts(block)
        except TableError as error:  # what is missing in a cell may be missing because the row is short
            raise TableError(ragged() or str(error)) from None

    def beginning(dtype):
        text, table = parsed(watched(), dtype=dtype, nrows=max(100, nrows * LOOKED // BLOCK))
        text.close()
        _unwanted(list(table.columns), label, ())
        return table

    n = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)
            marks = {"sep": sep, "decimal": file.decimal, "thousands": file.thousands}
            texts = Texts(*map(beginning, (None, object)), label, not_numbers, na=file.na, **marks)
            texts.twice = [name for name, count in Counter(fields).items() if count > 1 and name]
            size, raw = os.path.getsize(path), watched()
            text, blocks = parsed(raw, dtype=texts.dtype, chunksize=nrows)
            with text:
                for block in blocks:
                    n += len(block)
                    yield *read_by(texts, block), texts
                    if advance:
                        advance(min(1.0, raw.position() / size))
    except UnicodeError:
        raise TableError(_encoding_advice(path, encoding)) from None
    except pd.errors.EmptyDataError:
        raise TableError(f"{str(path)!r} holds no table") from None
    except (pd.errors.ParserError, pd.errors.ParserWarning, csv.Error):
        raise TableError(ragged() or f"{str(path)!r} is not a readable CSV file") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise TableError(f"{str(path)!r} is a broken gzip file: unpack it first") from None
    if n == 0:
        raise TableError("the table has no rows")
    # pandas fills up rows that are too short, but the number of separators gives them away
    if raw.separators != (n + 1) * (len(fields) - 1) and (problem := ragged()):
        raise TableError(problem)


def _opened(path):
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else open(path, "rb", buffering=0)


def _head(path, encoding):
    """Return the beginning of the file, which holds at least its first line."""
    try:
        with _opened(path) as file:
            head = file.read(LINE)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(f"{str(path)!r} cannot be read: {_line(error)}") from None
    if not (encoding and any(bits in encoding for bits in ("16", "32"))):
        likely = _wide(head)
        if likely:
            raise TableError(_encoding_advice(path, encoding or "utf-8"))
        if b"\0" in head:
            raise TableError(f"{str(path)!r} is a binary file: give a CSV or Parquet file")
    if len(head) == LINE and b"\n" not in head and b"\r" not in head:
        raise TableError(f"{str(path)!r} has no line end in its first {LINE // 1_000_000} MB: is it a CSV file?")
    return head


def _wide(head):
    """Return the name of an encoding with two or four bytes per character, by its mark or its zeros, or None."""
    for mark, name in WIDE.items():
        if head.startswith(mark):
            return name
    zeros = np.frombuffer(head[: min(len(head), 4000) // 4 * 4], np.uint8).reshape(-1, 4) == 0
    share = zeros.mean(axis=0) if len(zeros) else np.zeros(4)
    if not ((share < 0.1) | (share > 0.8)).all():
        return None
    at = tuple((share > 0.8).tolist())
    return {
        (False, True, False, True): "utf-16-le", (True, False, True, False): "utf-16-be",
        (False, True, True, True): "utf-32-le", (True, True, True, False): "utf-32-be",
    }.get(at)  # fmt: skip


def _header(head, encoding, path, sep):
    """Return the names in the first line that is not empty, and the separator that gives most names."""
    if sep is not None:
        given = sep.strip(" ") or sep
        sep = {"\\t": "\t", "tab": "\t"}.get(given, given)
        if len(sep) != 1 or not sep.isascii() or sep in '"\r\n\0':
            raise TableError(f"sep must be one character, such as , or ; or tab, got {given!r}")
    best = []
    try:
        for mark in SEPARATORS if sep is None else (sep,):
            with io.TextIOWrapper(io.BytesIO(head), encoding, newline="") as text, _long_fields():
                rows = csv.reader(text, delimiter=mark, skipinitialspace=mark != " ")
                fields = next((row for row in rows if len(row) > 1 or (row and row[0].strip())), [])
            if len(fields) > len(best):
                best, sep = fields, mark
    except UnicodeError:
        raise TableError(_encoding_advice(path, encoding)) from None
    except LookupError:
        raise TableError(f"there is no encoding {encoding!r}: try utf-8, latin-1 or utf-16") from None
    except csv.Error as error:
        raise TableError(f"the header of {str(path)!r} cannot be read ({error})") from None
    if not best:
        raise TableError(f"{str(path)!r} holds no table")
    return best, sep


@contextlib.contextmanager
def _long_fields():
    """Let the csv module read fields as long as a line may be."""
    before = csv.field_size_limit(LINE)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _encoding_advice(path, encoding):
    with _opened(path) as file:
        likely = _wide(file.read(4000)) or "latin-1"
    return f"{str(path)!r} is not in {encoding.replace('-sig', '')}: name its encoding, for example --encoding {likely}"


def _ragged(path, sep, encoding, width):
    """Return a message about the first row that is not as long as the header, or None if there is none."""
    with _opened(path) as raw, io.TextIOWrapper(raw, encoding, newline="") as text, _long_fields():
        reader = csv.reader(text, delimiter=sep, skipinitialspace=sep != " ")
        try:
            for row in reader:
                if row and len(row) != width:
                    return (
                        f"line {reader.line_num} of {str(path)!r} has {len(row)} fields and the header {width}: "
                        "mend it, or give the separator with --sep"
                    )
        except csv.Error as error:
            return f"line {reader.line_num} of {str(path)!r} cannot be read ({error})"
        except (UnicodeError, EOFError, OSError):
            return None
    return None


def _line(error):
    return " ".join(str(error).split())[:200]


class _Watched(io.RawIOBase):
    """A binary file that counts the separators it reads, and raises if a line is too long or a quote stays open.

    When an odd number of quotes is followed by none for the length of a line, ``doubt`` is called, once, to find out
    what is wrong with the file; if it finds nothing, a quote stood inside a cell.
    """

    def __init__(self, file, separator, path, doubt):
        self._file, self._separator, self._path, self._doubt = file, separator, path, doubt
        self.separators = self._lines = self._length = self._quotes = self._quoted = 0

    def readable(self):
        return True

    def readinto(self, buffer):
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self.separators += data.count(self._separator)
        self._look(data)
        return len(data)

    def _look(self, data):
        ends = [place for place in (data.find(b"\n"), data.find(b"\r")) if place >= 0]
        if self._length + (min(ends) if ends else len(data)) > LINE:
            raise TableError(
                f"line {self._lines + 1:,} of {str(self._path)!r} is longer than {LINE // 1_000_000} MB: "
                "is it a CSV file?"
            )
        self._length = len(data) - 1 - max(data.rfind(b"\n"), data.rfind(b"\r")) if ends else self._length + len(data)
        self._lines += data.count(b"\n")
        quotes = data.count(b'"')
        self._quotes += quotes
        self._quoted = 0 if quotes or self._quotes % 2 == 0 else self._quoted + len(data)
        if self._quoted > LINE and self._doubt:
            problem, self._doubt = self._doubt(), None
            if problem:
                raise TableError(problem)

    def position(self):
        """Return how many bytes of the file on disk were read."""
        file = getattr(self._file, "fileobj", None) or self._file
        return file.tell()

    def close(self):
        if not self.closed:
            self._file.close()
        super().close()
