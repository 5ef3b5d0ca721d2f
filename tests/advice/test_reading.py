"""Nothing is misread without a word: numbers of every country, words for missing, indices, leaks, and other frames."""

import contextlib
import gzip
import io
import json
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import rbal
from rbal import cli
from rbal._support.frames import TableError
from rbal._support.streams import write_page
from rbal.advice import _page, _reading, advise_file, read_table
from rbal.advice.internal import FileOptions, TableOptions, from_arrays


def table(n=300, seed=0):
    """Numbers of several sizes, whole numbers and levels."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.3, "yes", "no")
    X = rng.normal(size=(n, 4)) * [1.0, 10.0, 1e3, 2e4] + [0.0, 0.0, 0.0, 3e4] + 0.5 * (y == "yes")[:, None]
    frame = pd.DataFrame(X, columns=list("abcd")).round({"a": 3, "b": 2, "c": 1, "d": 0})
    return frame.assign(e=rng.integers(0, 50, size=n), kind=rng.choice(["u", "v", "w"], n), y=y)


@pytest.fixture
def write(tmp_path):
    def to(content, name="t.csv", **options):
        path = tmp_path / name
        if isinstance(content, pd.DataFrame):
            content = content.to_csv(index=False, **options)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return to


def read(path, **options):
    file = {name: options.pop(name) for name in vars(FileOptions()) if name in options}
    return _reading.read(path, "y", TableOptions(**options), FileOptions(**file))


def assert_same(one, two):
    assert (one.numeric, one.categorical, one.n_pos, one.n_neg) == (two.numeric, two.categorical, two.n_pos, two.n_neg)
    for a, b in zip(one.sample, two.sample, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)  # last digits depend on the BLAS and on alignment


# ---- numbers


def written(value, decimal, thousands):
    text = f"{value:,.3f}".rstrip("0").rstrip(".")
    return text.replace(",", "\0").replace(".", decimal).replace("\0", thousands)


CONVENTIONS = [
    (";", ",", ""), (";", ",", "."), (",", ".", ","), (";", ",", " "), (";", ",", "\u00a0"), ("\t", ",", "\u202f"),
    (";", ".", "'"), (";", ",", "’"), (",", ",", ""), (",", ",", "."), ("|", ".", ","),
]  # fmt: skip


def in_convention(frame, decimal, thousands):
    return frame.assign(**{name: [written(v, decimal, thousands) for v in frame[name]] for name in "abcde"})


@pytest.mark.parametrize(("sep", "decimal", "thousands"), CONVENTIONS)
def test_the_same_numbers_in_another_convention(write, sep, decimal, thousands):
    plain = read(write(table(), "plain.csv"))
    other = read(write(in_convention(table(), decimal, thousands), sep=sep))
    assert plain.notes == []
    assert_same(plain, other)
    assert f"decimal {decimal!r}" in " ".join(other.notes)
    assert not any("Ambiguous" in note for note in other.notes)


def test_the_same_advice_in_another_convention(write):
    paths = write(table(), "plain.csv"), write(in_convention(table(), ",", "."), sep=";")
    one, two = (advise_file(path, "y", C=1.0, train="none", draws=4, progress=False) for path in paths)
    pd.testing.assert_frame_equal(one.table, two.table, check_exact=True)
    assert one.best == two.best
    assert any("decimal ','" in note for note in two.notes)


@pytest.mark.parametrize(
    ("cell", "sep", "value", "other"),
    [("{},{:03}", ",", 1e3, 1.0), ("{},{:03}", ";", 1.0, 1e3), ("{}.{:03}", ";", 1.0, 1e3)],
)
def test_ambiguous_numbers_are_said_to_be(write, cell, sep, value, other):
    """All cells are like 1,234: thousands, or three digits of a fraction."""
    rng = np.random.default_rng(0)
    numbers = rng.integers(1, 1000, size=300), rng.integers(0, 1000, size=300)
    frame = table()[["kind", "y"]].assign(q=[cell.format(a, b) for a, b in zip(*numbers, strict=True)])
    exact = numbers[0] * 1000.0 + numbers[1]
    path = write(frame, sep=sep)
    data = read(path)
    (note,) = data.notes
    assert note.startswith("Ambiguous numbers in column 'q'")
    assert np.sort(data.rows[0]["q"]) == pytest.approx(np.sort(exact * value / 1e3))
    option = note.split("--decimal ")[1][0]
    said = read(path, decimal=option)
    assert np.sort(said.rows[0]["q"]) == pytest.approx(np.sort(exact * other / 1e3))
    assert not any("Ambiguous" in note for note in said.notes)


def test_another_column_decides(write):
    """1,234 is a fraction in a file that also has 12,5, and thousands in one that also has 12.5."""
    rng = np.random.default_rng(0)
    cells = [f"{a},{b:03}" for a, b in rng.integers(1, 1000, size=(300, 2))]
    for mark, sep, size in ((",", ",", 1.0), (".", ";", 1e3)):
        other = [f"{a}{mark}{b}" for a, b in rng.integers(1, 99, size=(300, 2))]
        data = read(write(table()[["y"]].assign(q=cells, r=other), sep=sep))
        assert not any("Ambiguous" in note for note in data.notes)
        assert np.median(data.rows[0]["q"]) == pytest.approx(500 * size, rel=0.3)


def test_options_that_the_file_contradicts(write):
    path = write(table())
    with pytest.raises(TableError, match=r"column 'a' holds '.*', which is no number with --decimal ,"):
        read(path, decimal=",")
    with pytest.raises(TableError, match="decimal must be"):
        read(path, decimal=";")
    with pytest.raises(TableError, match="thousands must be one of"):
        read(path, thousands="x")
    with pytest.raises(TableError, match="must differ"):
        read(path, thousands=",", decimal=",")


def test_another_convention_further_on(write, monkeypatch):
    """What the beginning of the file does not show is an error, not a level."""
    frame = table(600)
    frame["e"] = frame["e"].astype(object)
    frame.loc[500, "e"] = "1,5"
    monkeypatch.setattr(_reading, "BLOCK", 1)
    monkeypatch.setattr(_reading, "LOOKED", 1)
    with pytest.raises(TableError, match=r"column 'e' begins with numbers .* but holds '1,5' further on: .*--decimal"):
        read(write(frame))


# ---- what is missing

WORDS = ["?", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None", "-", ".", "#N/A", "", " ", "missing", " ? "]


@pytest.mark.parametrize("word", WORDS)
def test_words_for_missing(write, word):
    frame = table().astype({"e": object, "b": object})
    frame.loc[[5, 17], "e"], frame.loc[7, "b"] = word, word
    data = read(write(frame, quoting=0))
    gaps = table().astype({"e": float})
    gaps.loc[[5, 17], "e"], gaps.loc[7, "b"] = np.nan, np.nan
    assert_same(read(write(gaps, "gaps.csv")), data)
    assert data.imputed == {"b": 1, "e": 2}
    if word.strip():
        assert data.notes == [f"Read as missing: {word.strip()!r} (1 in 'b', 2 in 'e')."]


def test_a_dash_is_a_level_among_levels(write):
    frame = table().assign(sign=np.where(np.arange(300) % 3 == 0, "-", "+"))
    data = read(write(frame))
    assert data.categorical == ["kind", "sign"]
    assert data.imputed == {}


def test_words_that_the_user_gives(write):
    frame = table().astype({"e": object})
    frame.loc[[5, 17], "e"] = "oops"
    path = write(frame)
    with pytest.raises(TableError, match=r"column 'e' holds numbers, but also 'oops': .*--na oops.*--categorical e"):
        read(path)
    assert read(path, na=["oops"]).imputed == {"e": 2}
    assert "e" in read(path, categorical=["e"]).categorical
    coded = table()
    coded.loc[[5, 17, 40], "e"] = -999
    data = read(write(coded), na=["-999"])
    assert data.imputed == {"e": 3}
    assert data.notes == ["Read as missing: '-999' (3 in 'e')."]


@pytest.mark.parametrize(
    ("column", "value", "count"), [("a", -999, 2), ("e", -999, 3), ("e", 9999, 2), ("b", -9999, 2), ("e", -1, 60),
                                   ("e", 99999, 250), ("d", -77.5, 0), ("a", 12345.5, 3)],
)  # fmt: skip
def test_a_number_that_may_stand_for_missing_is_named(write, monkeypatch, column, value, count):
    monkeypatch.setattr(_reading, "BLOCK", 1)
    frame = table().astype({column: float})
    rows = np.random.default_rng(1).permutation(300)[:count]
    frame.loc[rows, column] = value
    data = read(write(frame))
    assert data.imputed == {}  # a note, and nothing else
    if not count:
        assert data.notes == []
        return
    word = f"{value:g}" if value % 1 else str(value)
    assert data.notes == [
        f"Far from the other values of the column: {word} ({count} in {column!r}). If that stands for a missing value, "
        f"leave these cells empty, or read it as missing (--na {word})."
    ]
    assert from_arrays(frame.drop(columns="y"), frame["y"]).notes == data.notes
    told = read(write(frame), na=[word])
    assert told.imputed == {column: count}
    assert not any("Far from" in note for note in told.notes)


def test_ordinary_columns_hold_no_numbers_for_missing():
    """3,000 columns: normal, log-normal, heavy-tailed and rounded ones, counts of several kinds, and levels."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([30, 300, 3000]))
        size, loc, scale = (n, 10), rng.uniform(-5, 60, 10), rng.uniform(1, 30, 10)
        columns = [
            rng.normal(size=size), rng.normal(size=size).round(1), (rng.normal(size=size) * scale + loc).round(),
            rng.lognormal(0.0, rng.uniform(0.2, 3.0, 10), size), rng.lognormal(3.0, 1.5, size).round(),
            rng.poisson(rng.uniform(0.1, 100.0, 10), size), rng.negative_binomial(0.5, 0.05, size),
            rng.zipf(2.0, size), rng.integers(0, 2, size), rng.integers(0, 100, size),
            np.where(rng.random(size) < 0.7, 0.0, rng.normal(size=size) + 5.0), rng.standard_t(2.0, size).round(1),
        ]  # fmt: skip
        data = from_arrays(np.concatenate(columns, axis=1), np.arange(n) % 3 == 0)
        assert data.notes == []


def test_labels_that_differ_in_case_or_blanks(write):
    note = "Labels that differ only in case or blanks are taken as classes apart: {}. Write them alike if they are one."
    frame = table().assign(y=lambda t: np.where(t["y"] == "yes", "Yes", "yes "))
    assert read(write(frame)).notes[0] in (note.format("'yes' and 'Yes'"), note.format("'Yes' and 'yes'"))
    said = from_arrays(frame.drop(columns="y"), frame["y"]).notes[0]
    assert said in (note.format("'yes ' and 'Yes'"), note.format("'Yes' and 'yes '"))
    frame.loc[::4, "y"] = "no"
    said = advise_file(write(frame), "y", C=1.0, train="none", progress=False).notes[0]
    assert said in (note.format("'yes' and 'Yes'"), note.format("'Yes' and 'yes'"))


@pytest.mark.parametrize("labels", [("True", "true", "False"), ("1", "+1", "0"), ("1", "01", "2")])
def test_one_value_in_two_ways_is_no_class_more(write, labels):
    """The rows of one of the spellings must not vanish."""
    frame = table().assign(y=np.array(labels)[np.arange(300) % 3])
    with pytest.raises(TableError, match=r"the labels .* and .* are one (number|truth value), written in two ways"):
        advise_file(write(frame), "y", C=1.0, train="none", progress=False)


def test_a_short_row_is_said_to_be_short(write):
    text = table().to_csv(index=False).split("\n")
    text[40] = text[40].rsplit(",", 2)[0]
    with pytest.raises(TableError, match=r"^line 41 of '.*t\.csv' has 5 fields and the header 7: mend it"):
        read(write("\n".join(text)))
    with pytest.raises(TableError, match=r"^line 41 of '.*t\.csv' has 5 fields and the header 7: mend it"):
        read_table(write("\n".join(text)), "y")


LABELS = {
    "lists": [[k % 2] for k in range(300)], "lists of several lengths": [[0] * (k % 2) for k in range(300)],
    "structs": [{"a": k % 2} for k in range(300)],
}  # fmt: skip


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_that_are_no_labels(tmp_path, labels):
    frame = table().assign(y=labels)
    path = tmp_path / "t.parquet"
    frame.to_parquet(path)
    for reading in (read, lambda path: read_table(path, "y")):
        with pytest.raises(TableError, match=r"a label is of type (list|dict): each must be one number, text or truth"):
            reading(path)
    with pytest.raises(TableError, match=r"a label is of type (list|dict)"):
        rbal.advise(frame[["a", "b"]], frame["y"])
    with pytest.raises(TableError, match=r"y must (have one dimension|hold one label for each row)|a label is of type"):
        rbal.advise(frame[["a", "b"]], labels)
    with pytest.raises(TableError, match=r"y holds values of type (List|Struct)"):
        rbal.advise(frame[["a", "b"]], pa.chunked_array([pa.array(labels)]))


def test_two_columns_of_one_name_in_arrow(tmp_path):
    frame = table()
    twice = pa.table([pa.array(frame["a"]), pa.array(frame["b"]), pa.array(frame["y"])], names=["a", "a", "y"])
    with pytest.raises(TableError, match=r"two columns have one name: rename one .*'a'"):
        rbal.advise(twice, frame["y"])
    for names, name in ((["a", "a", "y"], "a"), (["a", "y", "y"], "y")):
        parquet.write_table(twice.rename_columns(names), tmp_path / "t.parquet")
        with pytest.raises(TableError, match=f"two columns are called '{name}': rename one"):
            read(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("scale", "standardize"), [(1e-300, True), (1e-300, False), (1e-160, True), (1e-100, False), (5e-324, True)]
)
def test_columns_too_small_to_be_squared(scale, standardize):
    frame = table()
    X, y = frame[["a", "b"]].to_numpy(), frame["y"]
    with pytest.raises(
        TableError, match=r"no column varies \(0 is no larger than .*e-.*, too small to be squared; 1 is"
    ):
        rbal.advise(X * scale, y, standardize=standardize)
    said = from_arrays(X * [scale, 1.0], y, TableOptions(standardize=standardize)).dropped[0]
    assert "too small to be squared" in said


def test_a_column_that_is_partly_numbers(write):
    frame = table().assign(crp=lambda t: np.where(t["e"] < 10, "<0.1", t["e"].astype(str)))
    data = read(write(frame))
    assert data.categorical == ["kind", "crp"]
    assert data.notes == ["Column 'crp' holds numbers, but also '<0.1' and its like: it is not taken as numbers."]


@pytest.mark.parametrize("unit", ["{}%", "{} €", "${}"])
def test_numbers_with_a_unit(write, unit):
    (note,) = read(write(table().assign(e=lambda t: t["e"].map(unit.format)))).notes
    assert "Column 'e' holds numbers, but also " in note


def test_a_name_of_two_columns(write):
    (note,) = read(write(table().to_csv(index=False).replace("b,", "a,", 1))).notes
    assert note == "More than one column is called 'a': those after the first get a number."


@pytest.mark.parametrize("word", ["NA", "None", "null"])
def test_a_class_called_none(write, word):
    frame = table().assign(y=lambda t: np.where(t["y"] == "yes", "tumour", word))
    data = read(write(frame))
    assert (data.positive, data.negative) == ("tumour", word)
    assert data.notes == [
        f"The label {word!r} is taken as a class, not as a missing value: give it with --na if it is one."
    ]
    with pytest.raises(TableError, match=rf"the label is missing \('{word}'\) in \d+ rows"):
        read(write(frame), na=[word])
    frame.loc[:10, "y"] = "third"
    with pytest.raises(TableError, match=f"more than two values .*; where '{word}' means that it is missing"):
        read(write(frame))


@pytest.mark.parametrize("word", ["nan", "?", "#N/A"])
def test_a_label_that_is_missing(write, word):
    frame = table()
    frame.loc[:9, "y"] = word
    with pytest.raises(TableError, match=r"the label is missing \(.*\) in 10 rows"):
        read(write(frame))


@pytest.mark.parametrize(
    ("labels", "kept"),
    [(("01", "02"), ("01", "02")), (("1", "0"), (1, 0)), (("1.0", "0.0"), (1, 0)), (("True", "False"), (True, False)),
     (("0.5", "2"), ("0.5", "2")), (("+", "-"), ("+", "-"))],
)  # fmt: skip
def test_labels_as_they_are_written(write, labels, kept):
    data = read(write(table().assign(y=lambda t: np.where(t["y"] == "yes", *labels))))
    assert (data.positive, data.negative) == kept
    assert [type(label) for label in (data.positive, data.negative)] == [type(label) for label in kept]


def test_one_number_in_two_ways_is_no_two_labels(write):
    with pytest.raises(TableError, match=r"the labels '0?1' and '0?1' are one number, written in two ways"):
        read(write(table().assign(y=lambda t: np.where(t["y"] == "yes", "01", "1"))))


# ---- files


@pytest.mark.parametrize(("sep", "said"), [(", ", ", "), (",", ", "), ("\\t", "\t"), ("tab", "\t"), ("; ", ";")])
def test_separators_of_two_characters(write, sep, said):
    text = table().to_csv(index=False, sep="\1").replace("\1", said)
    assert_same(read(write(table(), "plain.csv")), read(write(text), sep=sep))


@pytest.mark.parametrize("sep", ["ab", "", '"', "\n", "§"])
def test_separators_that_are_none(write, sep):
    with pytest.raises(TableError, match="sep must be one character"):
        read(write(table()), sep=sep)


@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-le", "utf-32-be", "utf-16", "utf-16-le", "utf-16-be"])
def test_wide_encodings(write, encoding):
    content = table().to_csv(index=False).encode(encoding)
    with pytest.raises(TableError, match=f"is not in utf-8: name its encoding, for example --encoding {encoding}$"):
        read(write(content))
    assert_same(read(write(table(), "plain.csv")), read(write(content), encoding=encoding))


def test_a_line_end_inside_the_header(write):
    text = table().to_csv(index=False).replace("a,", '"a\n(cm, dry)",', 1)
    data = read(write(text))
    assert data.numeric[0] == "a\n(cm, dry)"
    assert data.D == read(write(table(), "plain.csv")).D


class Counted(io.RawIOBase):
    """A file that counts what is read of it."""

    read_so_far = 0

    def __init__(self, file):
        self._file = file

    def readable(self):
        return True

    def read(self, size=-1):
        data = self._file.read(size)
        Counted.read_so_far += len(data)
        return data

    def tell(self):
        return self._file.tell()

    def close(self):
        self._file.close()
        super().close()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"1" * 40_000_000, "line 302 of .* is longer than 1 MB"),
        (b'"' + b"1,2\n" * 10_000_000, "line .* cannot be read"),
    ],
    ids=["one line", "a quote that stays open"],
)
def test_a_line_that_does_not_end_is_not_read(write, monkeypatch, line, says):
    """A small compressed file may unpack to a line that fills the memory."""
    monkeypatch.setattr(_reading, "LINE", 1_000_000)
    monkeypatch.setattr(Counted, "read_so_far", 0)
    opened = _reading._opened
    monkeypatch.setattr(_reading, "_opened", lambda path: Counted(opened(path)))
    path = write(gzip.compress(table().to_csv(index=False).encode() + line, 1), "t.csv.gz")
    with pytest.raises(TableError, match=says):
        read(path)
    assert Counted.read_so_far < 10_000_000


def test_a_quote_inside_of_a_cell_is_no_open_quote(write, monkeypatch):
    monkeypatch.setattr(_reading, "LINE", 1000)
    frame = table(3000)
    frame.loc[10, "kind"] = "5 in"
    text = frame.to_csv(index=False).replace("5 in", '5"')
    data = read(write(text))
    assert data.n_pos + data.n_neg == 3000


# ---- odd cells and names


def test_a_cell_that_is_far_too_large(write, monkeypatch):
    frame = table(600)
    for row, block in ((5, 10**8), (500, 1)):
        wrong = frame.copy()
        wrong.loc[row, "a"] = 1e300
        monkeypatch.setattr(_reading, "BLOCK", block)
        with pytest.raises(TableError, match=r"column 'a' holds 1e\+300, beside which its other values vanish"):
            read(write(wrong))
        assert read(write(wrong), na=["1e+300"]).imputed == {"a": 1}


def test_columns_of_two_levels():
    frame = table()
    y = frame.pop("y")
    frame.columns = pd.MultiIndex.from_tuples([("x", name) for name in frame.columns])
    with pytest.raises(ValueError, match="X must have one row of column names, got 2: join them"):
        rbal.advise(frame, y)


def test_two_names_that_are_one_text():
    frame = table()[["a", "b", "y"]].rename(columns={"a": 0, "b": "0"})
    with pytest.raises(ValueError, match="columns 0 and '0' have one name as text: rename one"):
        rbal.advise(frame[[0, "0"]], frame["y"])


def test_numbers_as_text_in_a_frame_are_said_to_be():
    frame = table()
    y = frame.pop("y")
    frame["e"] = [str(value) if k else "?" for k, value in enumerate(frame["e"])]
    data = from_arrays(frame, y)
    assert data.notes == [
        "Column 'e' holds numbers as text (and '?'), and is not taken as numbers: convert it, for example with "
        "pandas.to_numeric(column, errors='coerce')."
    ]


def test_seeds():
    frame = table()
    with pytest.raises(ValueError, match="random_state must be an integer >= 0, a Generator or None, got -1"):
        rbal.advise(frame[["a", "b"]], frame["y"], random_state=-1)


# ---- the command


def command(*arguments):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            code = cli.main(["advise", *map(str, arguments), "--quiet"])
        except SystemExit as stop:
            code = stop.code
    return code, out.getvalue(), err.getvalue()


def test_options_of_the_command(write):
    frame = in_convention(table(), ",", ".").astype({"e": object})
    frame.insert(0, "year", np.arange(300) + 1900)
    frame.loc[:3, "e"] = "-99"
    path = write(frame, sep=";")
    code, out, err = command(
        path,
        "--label",
        "y",
        "--sep",
        "; ",
        "--decimal",
        ",",
        "--thousands",
        ".",
        "--na",
        "-99",
        "--keep",
        "year",
        "--json",
    )
    assert (code, err) == (cli.OK, "")
    found = json.loads(out)
    assert found["data"]["numeric"] == ["year", *"abcde"]
    assert found["data"]["imputed"] == {"e": 4}
    assert any("'-99' (4 in 'e')" in note for note in found["notes"])


def test_the_command_refuses_negative_seeds(write):
    code, _, err = command(write(table()), "--label", "y", "--seed", -1)
    assert code == cli.USAGE
    assert "argument --seed: must be an integer >= 0, got '-1'" in err


@pytest.mark.parametrize("how", ["same", "relative", "symlink", "hard link", "gzip"])
def test_the_table_is_never_overwritten(write, tmp_path, monkeypatch, how):
    content = table().to_csv(index=False).encode()
    path = write(gzip.compress(content), "t.csv.gz") if how == "gzip" else write(content)
    before, page = path.read_bytes(), path
    if how == "relative":
        monkeypatch.chdir(tmp_path)
        page = os.path.join(".", path.name)
    elif how == "symlink":
        page = tmp_path / "link.html"
        page.symlink_to(path)
    elif how == "hard link":
        page = tmp_path / "link.html"
        os.link(path, page)
    code, out, err = command(path, "--label", "y", "--html", page)
    assert (code, out) == (cli.BAD_INPUT, "")
    assert "is the table itself: give another file to write to" in err
    assert path.read_bytes() == before


def test_a_page_is_written_as_a_whole_or_not_at_all(write, tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    page.write_text("before")
    monkeypatch.setattr(_page, "to_html", lambda advice: (_ for _ in ()).throw(ValueError("no page")))
    path = write(table())
    assert command(path, "--label", "y", "--html", page)[0] == cli.BAD_INPUT
    assert page.read_text() == "before"
    monkeypatch.setattr(_page, "to_html", lambda advice: "<p>after")
    monkeypatch.setattr(os, "replace", lambda *names: (_ for _ in ()).throw(OSError("disk full")))
    code, _, err = command(path, "--label", "y", "--html", page)
    assert (code, err) == (cli.BAD_INPUT, f"rbal: --html {page} cannot be written: disk full\n")
    assert page.read_text() == "before"
    assert {entry.name for entry in tmp_path.iterdir()} == {"page.html", "t.csv"}
    monkeypatch.undo()
    assert write_page(page, "<p>after") is None
    assert page.read_text() == "<p>after"


BAD_NAMES = "\x9b31m", "\u202egnp.exe", "\u2066x", "\x1b[31m", "\x7f", "\u2028", "a\tb"


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_names_are_printed_with_escapes(write, tmp_path, option):
    frame = table(60)
    for k, name in enumerate(BAD_NAMES):
        frame[name] = np.where(np.arange(60) % 7 == k, None, frame["a"])
    frame["same\u202e"] = 1.0
    frame["leak\u202e"] = frame["y"]
    path, page = write(frame), tmp_path / "page.html"
    code, out, err = command(path, "--label", "y", "--html", page, *option)
    assert (code, err) == (cli.OK, "")
    for text in (out, page.read_text(encoding="utf-8")):
        assert all(c.isprintable() or c == "\n" for c in text)
    if option:
        assert set(BAD_NAMES) <= set(json.loads(out)["data"]["numeric"])
        assert json.loads(out)["data"]["dropped"]["same\u202e"] == "constant"
    else:
        assert "\\u202e" in out
    code, out, err = command(path, "--label", "\u202ey")
    assert code == cli.BAD_INPUT
    assert all(c.isprintable() or c == "\n" for c in err)


def test_integers_beyond_64_bits_among_empty_cells(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "99999999999999999999999,no\n,yes\n3,no\n" * 20)
    X, _ = read_table(path, "y")
    np.testing.assert_array_equal(X["a"][:3], [1e23, np.nan, 3.0])
