"""CSV and Parquet files, a block of rows at a time. Nothing in a file is executed."""

import csv
import gzip
import io
import os
import warnings
from pathlib import Path

import pandas as pd

from ._table import Coder, TableError, _some

HEADER = 16_000_000  # bytes in which the first line must end
BLOCK = 32_000_000  # bytes of a file that are parsed at once, about
SEPARATORS = (",", ";", "\t", "|")


def read(path, label, *, positive=None, categorical="auto", drop=(), standardize=True, sep=None, encoding=None,
         random_state=0, advance=None):  # fmt: skip
    """Data of a table in a file.

    ``advance``, when given, is called with the share of the file that was read.
    """
    path = Path(path)
    if not path.exists():
        raise TableError(f"there is no file {str(path)!r}: check the path")
    if not path.is_file():
        raise TableError(f"{str(path)!r} is not a file: give one CSV or Parquet file")
    if path.stat().st_size == 0:
        raise TableError(f"{str(path)!r} is empty")
    coder = Coder(categorical, standardize, random_state)
    with open(path, "rb") as file:
        is_parquet = file.read(4) == b"PAR1" or path.suffix.lower() in (".parquet", ".pq")
    blocks = _parquet(path, advance) if is_parquet else _csv(path, sep, encoding, advance)
    unwanted = None
    for block in blocks:
        if unwanted is None:
            unwanted = _unwanted(list(block.columns), label, drop)
        coder.add(block.drop(columns=unwanted), block[label])
    return coder.finish(positive)


def _unwanted(columns, label, drop):
    """Columns that are no features."""
    if label not in columns:
        raise TableError(f"there is no column {label!r} to be the label: there are {_some(columns)}")
    for name in drop:
        if name not in columns:
            raise TableError(f"there is no column {name!r} to leave out: there are {_some(columns)}")
    return [label, *(name for name in dict.fromkeys(drop) if name != label)]


def _parquet(path, advance):
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise TableError("reading Parquet needs pyarrow: pip install pyarrow, or convert the table to CSV") from None
    try:
        file = parquet.ParquetFile(path)
        done, total = 0, max(file.metadata.num_rows, 1)
        width = max(len(file.schema_arrow.names), 1)
        for batch in file.iter_batches(batch_size=max(64, 4_000_000 // width)):
            yield batch.to_pandas()
            done += batch.num_rows
            if advance:
                advance(done / total)
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{str(path)!r} is not a readable Parquet file ({_line(error)})") from None


def _csv(path, sep, encoding, advance):
    """Blocks of a CSV file, every row with as many fields as the header."""
    head = _head(path)
    encoding = encoding or "utf-8-sig"
    first = _decoded(head, encoding, path)
    sep = sep or max(SEPARATORS, key=first.count)
    fields = next(csv.reader([first], delimiter=sep))
    lines = max(1, head.count(b"\n"))
    nrows = max(100, int(BLOCK * lines / max(len(head), 1)))
    raw = _Watched(_opened(path), sep.encode("ascii", "replace"))
    n = 0
    try:
        with warnings.catch_warnings(), io.TextIOWrapper(io.BufferedReader(raw, 1 << 20), encoding, newline="") as text:
            warnings.simplefilter("error", pd.errors.ParserWarning)
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)
            size = os.path.getsize(path)
            for block in pd.read_csv(text, sep=sep, chunksize=nrows, index_col=False, low_memory=False):
                n += len(block)
                yield block
                if advance:
                    advance(min(1.0, raw.position() / size))
    except UnicodeError:
        raise TableError(_encoding_advice(path, encoding)) from None
    except LookupError:
        raise TableError(f"there is no encoding {encoding!r}: try utf-8, latin-1 or utf-16") from None
    except pd.errors.EmptyDataError:
        raise TableError(f"{str(path)!r} holds no table") from None
    except (pd.errors.ParserError, pd.errors.ParserWarning, csv.Error):
        problem = _ragged(path, sep, encoding, len(fields))
        raise TableError(problem or f"{str(path)!r} is not a readable CSV file") from None
    except (gzip.BadGzipFile, EOFError):
        raise TableError(f"{str(path)!r} is a broken gzip file: unpack it first") from None
    # pandas fills up rows that are too short: the separators tell
    if raw.separators != (n + 1) * (len(fields) - 1):
        problem = _ragged(path, sep, encoding, len(fields))
        if problem:
            raise TableError(problem)


def _opened(path):
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else open(path, "rb", buffering=0)


def _head(path):
    """Beginning of the file, at least its first line."""
    try:
        with _opened(path) as file:
            head = file.read(HEADER)
    except (OSError, EOFError) as error:
        raise TableError(f"{str(path)!r} cannot be read: {_line(error)}") from None
    if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(f"{str(path)!r} is a binary file: give a CSV or Parquet file")
    if len(head) == HEADER and b"\n" not in head and b"\r" not in head:
        raise TableError(f"{str(path)!r} has no line end in its first {HEADER // 1_000_000} MB: is it a CSV file?")
    return head


def _decoded(head, encoding, path):
    """First line that is not empty."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) and "16" not in encoding:
        raise TableError(_encoding_advice(path, encoding))
    try:
        text = io.TextIOWrapper(io.BytesIO(head[:HEADER]), encoding)
        for line in text:
            if line.strip():
                return line.rstrip("\r\n")
    except UnicodeError:
        raise TableError(_encoding_advice(path, encoding)) from None
    except LookupError:
        raise TableError(f"there is no encoding {encoding!r}: try utf-8, latin-1 or utf-16") from None
    raise TableError(f"{str(path)!r} holds no table")


def _encoding_advice(path, encoding):
    with _opened(path) as file:
        start = file.read(2)
    likely = "utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "latin-1"
    return f"{str(path)!r} is not in {encoding.replace('-sig', '')}: name its encoding, for example --encoding {likely}"


def _ragged(path, sep, encoding, width):
    """Message about the first row with another number of fields than the header; None when there is none."""
    with _opened(path) as raw, io.TextIOWrapper(raw, encoding, newline="") as text:
        reader = csv.reader(text, delimiter=sep)
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
    """A binary file that counts the separators that pass."""

    def __init__(self, file, separator):
        self._file, self._separator = file, separator
        self.separators = 0

    def readable(self):
        return True

    def readinto(self, buffer):
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self.separators += data.count(self._separator)
        return len(data)

    def position(self):
        """Bytes of the file on disk that were read."""
        file = getattr(self._file, "fileobj", None) or self._file
        return file.tell()

    def close(self):
        if not self.closed:
            self._file.close()
        super().close()
