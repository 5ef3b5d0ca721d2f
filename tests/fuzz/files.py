"""Files to read: a sound table or store, damaged in ways that have names, so that each can be made again."""

from pathlib import Path

import numpy as np
import pandas as pd
from objects import Objects, folder

from rbal import experiments

HEADER = "age,dose,city,group,y"


def rows(n=60):
    """A small table of numbers and words, with two labels."""
    rng = np.random.default_rng(0)
    y = np.repeat(["yes", "no"], [n // 4, n - n // 4])
    cities = rng.choice(["Rome", "Oslo", "Bern"], n)
    return pd.DataFrame({
        "age": rng.integers(20, 80, n) + 9 * (y == "yes"), "dose": (rng.normal(size=n) + (y == "yes")).round(3),
        "city": cities, "group": rng.choice(["a", "b"], n), "y": y,
    }).sample(frac=1.0, random_state=0)  # fmt: skip


def _cells(change):
    """A damage that changes some fields of a CSV."""

    def damage(data, dice):
        lines = [line.split(b",") for line in data.split(b"\n")]
        for _ in range(3):
            line = lines[dice.integers(1, max(len(lines), 2))] if len(lines) > 1 else lines[0]
            place = dice.integers(len(line))
            line[place] = change(line[place])
        return b"\n".join(b",".join(line) for line in lines)

    return damage


def _column(change):
    """A damage that changes all fields of one column, below its name."""

    def damage(data, dice):
        lines = [line.split(b",") for line in data.split(b"\n")]
        place = dice.integers(len(lines[0]))
        for k, line in enumerate(lines[1:]):
            if place < len(line):
                line[place] = change(line[place], k)
        return b"\n".join(b",".join(line) for line in lines)

    return damage


def _somewhere(what):
    def damage(data, dice):
        place = dice.integers(len(data) + 1)
        return data[:place] + what + data[place:]

    return damage


DAMAGE = {
    "as it is": lambda data, dice: data,
    "empty": lambda data, dice: b"",
    "blank": lambda data, dice: b"\n\n \n",
    "header": lambda data, dice: data.split(b"\n")[0] + b"\n",
    "one row": lambda data, dice: b"\n".join(data.split(b"\n")[:2]),
    "few rows": lambda data, dice: b"\n".join(data.split(b"\n")[: int(dice.integers(3, 9))]),
    "no header": lambda data, dice: data.split(b"\n", 1)[-1],
    "cut": lambda data, dice: data[: dice.integers(len(data) + 1)],
    "semicolons": lambda data, dice: data.replace(b",", b";"),
    "tabs": lambda data, dice: data.replace(b",", b"\t"),
    "decimal commas": lambda data, dice: data.replace(b",", b";").replace(b".", b","),
    "crlf": lambda data, dice: data.replace(b"\n", b"\r\n"),
    "cr": lambda data, dice: data.replace(b"\n", b"\r"),
    "bom": lambda data, dice: b"\xef\xbb\xbf" + data,
    "utf-16": lambda data, dice: data.decode("latin-1").encode("utf-16"),
    "utf-32": lambda data, dice: data.decode("latin-1").encode("utf-32"),
    "cp037": lambda data, dice: data.decode("latin-1").encode("cp037"),
    "latin": lambda data, dice: data.replace(b"Rome", b"K\xf6ln"),
    "nul": _somewhere(b"\x00"),
    "quote": _somewhere(b'"'),
    "newline": _somewhere(b"\n"),
    "comma": _somewhere(b","),
    "bytes": _somewhere(b"\xff\xfe\x80"),
    "long field": _somewhere(b"x" * 200_000),
    "many fields": _somewhere(b",1" * 3000),
    "deep quotes": _somewhere(b'"""' * 500),
    "double": lambda data, dice: data + data,
    "same names": lambda data, dice: data.replace(b"dose", b"age", 1),
    "no name": lambda data, dice: data.replace(b"dose", b"", 1),
    "odd name": lambda data, dice: data.replace(b"dose", b"\xe2\x80\xaedose<b>", 1),
    "gzip": lambda data, dice: b"\x1f\x8b" + data,
    "zip": lambda data, dice: b"PK\x03\x04" + data,
    "parquet": lambda data, dice: b"PAR1" + data + b"PAR1",
    **{f"cells {text!r}": _cells(lambda old, text=text: text.encode()) for text in (
        "", "nan", "inf", "-inf", "1e400", "-999", "?", "NA", "1_000", "0x10", "1,5", "1.000,5", "\u22125", "\u0663", "12%", "1e", "TRUE",
        "2020-01-01", "1/2", "None", " 7 ", "'", '"a,b"', "\u200b", "1e-320", "99999999999999999999999", "yes",
    )},
    "constant": _column(lambda old, k: b"1"),
    "counts": _column(lambda old, k: str(k).encode()),
    "distinct": _column(lambda old, k: b"w%d" % k),
    "missing": _column(lambda old, k: b""),
    "mixed": _column(lambda old, k: b"1.5" if k % 2 else b"word"),
    "huge": _column(lambda old, k: b"1e300" if k % 2 else b"-1e300"),
    "tiny": _column(lambda old, k: b"1e-300" if k % 2 else b"0"),
    "dates": _column(lambda old, k: b"2020-01-%02d" % (k % 28 + 1)),
    "thousands": _column(lambda old, k: b'"1,%03d"' % k),
    "numbers": _column(lambda old, k: b"%d" % (k % 7)),
    "two": _column(lambda old, k: b"%d" % (k % 2)),
    "lone": _column(lambda old, k: b"a" if k else b"b"),
}  # fmt: skip


def damaged(data, damages):
    """Bytes after each damage, with its own dice."""
    for name, seed in damages:
        data = DAMAGE[name](data, np.random.default_rng(seed))
    return data


def file(*damages, name="table.csv"):
    """Path of a damaged CSV, or of a sound Parquet file by its name."""
    path = Path(folder()) / name
    if name.endswith(".parquet") and not damages:
        rows().to_parquet(path, index=False)
    else:
        path.write_bytes(damaged(rows().to_csv(index=False).encode(), damages))
    return path


def stored(*damages):
    """Path of a damaged store of two trials."""
    path = Path(folder()) / "store"
    experiments.run(Objects()["trial"], {"n": [1, 2]}, trials=1, store=path, n_jobs=1, progress=False)
    path.write_bytes(damaged(path.read_bytes(), damages))
    return path
