import contextlib
import functools
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from joblib.parallel import ThreadingBackend
from threadpoolctl import threadpool_info, threadpool_limits

import rbal
from rbal.experiments import TrialError, _store, generator, run, summary

PAGE = Path(__file__).parents[2] / "book" / "clusters.md"
GRID = {"n": [3, 50], "scale": [0.5, 1.0, 2.0], "kind": ["normal", "uniform"]}
quiet = functools.partial(run, progress=False)


# ---- trials, at the top of the module so that workers can import them


def moments(rng, n, scale, kind="normal"):
    x = scale * getattr(rng, kind)(size=n)
    return {"mean": x.mean(), "largest": x.max(), "above": int((x > 0.3).sum()), "all": bool((x > 0).all())}


PAUSE = 0.05  # seconds: there has to be time to kill a run


def slowly(rng, n):
    time.sleep(PAUSE)
    return {"x": rng.normal(size=n).sum()}


def counted(rng, n, log):
    with open(log, "a") as file:
        file.write(f"{n}\n")
    return {"x": rng.random()}


def unlucky(rng, n):
    if n == 2:
        raise ValueError("no luck with two")
    return {"x": rng.random()}


def deadly(rng, n):
    os.kill(os.getpid(), signal.SIGKILL)


def closure(k):
    return lambda: k


class Unsendable(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


def unsendable(rng, n):
    raise Unsendable("this", "that")


def threads(rng, n):
    return {"threads": max(pool["num_threads"] for pool in threadpool_info())}


class Gaussians:
    """Two Gaussian classes, as simple as can be, in the form that train takes."""

    n_states = None

    def __init__(self, L, shift=1.5, slope=2.0):
        self.variance = np.linspace(1.0, slope, L)
        self.mean = 0.5 * shift / np.sqrt(L) * np.ones(L)
        self.moments = rbal.Moments.real(self.mean, -self.mean, np.diag(self.variance))

    def sample(self, n_pos, n_neg, rng):
        y = np.repeat([1, -1], [n_pos, n_neg])
        return rng.normal(size=(len(y), len(self.mean))) * np.sqrt(self.variance) + y[:, None] * self.mean, y


def assert_same(table, other):
    """Bit for bit, but for the time that it took."""
    pd.testing.assert_frame_equal(table.drop(columns="seconds"), other.drop(columns="seconds"), check_exact=True)


def results(store):
    lines = store.read_bytes().splitlines(keepends=True)
    return [r for r in (json.loads(line) for line in lines if line.endswith(b"\n")) if "outputs" in r]


def wait_until(condition, seconds=120):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "nothing happens"
        time.sleep(0.05)


# ---- the table


def test_one_row_a_cell_and_trial_in_the_order_of_the_grid():
    table = quiet(moments, GRID, trials=3)
    assert list(table) == [*GRID, "trial", "mean", "largest", "above", "all", "seed", "seconds"]
    expected = [(*cell, k) for cell in itertools.product(*GRID.values()) for k in range(3)]
    assert list(table[[*GRID, "trial"]].itertuples(index=False, name=None)) == expected
    assert table.dtypes[["n", "above"]].eq(int).all()
    assert table["all"].dtype == bool
    assert (table.seconds > 0).all()


def test_provenance():
    table = quiet(functools.partial(moments, scale=2.0), {"n": [3]}, trials=2, seed=7)
    assert table.attrs["trial"] == f"{__name__}.moments"
    assert table.attrs["seed"] == 7
    assert (table.attrs["rbal"], table.attrs["numpy"]) == (rbal.__version__, np.__version__)
    assert table.attrs["python"] == sys.version.split()[0]
    assert abs(pd.Timestamp(table.attrs["started"]) - pd.Timestamp.now("UTC")) < pd.Timedelta("1min")
    assert table.attrs["grid"] == ["n"]


def test_a_cell_without_parameters():
    table = quiet(functools.partial(moments, n=4, scale=1.0), {}, trials=5)
    assert len(table) == 5
    assert summary(table)["count"].tolist() == [5]


def test_scalars_in_a_grid_are_single_values():
    assert_same(
        quiet(moments, {"n": 3, "scale": 1.0, "kind": "normal"}),
        quiet(moments, {"n": [3], "scale": [1.0], "kind": ["normal"]}),
    )


# ---- seeds


@pytest.mark.parametrize(
    ("grid", "trials", "shared"),
    [
        ({name: values[::-1] for name, values in reversed(GRID.items())}, 3, 36),
        ({**GRID, "n": [7, 3, 50]}, 5, 36),
        ({**GRID, "scale": [2]}, 2, 8),
        ([{"kind": "uniform", "scale": np.float32(2), "n": np.int8(50)}], 1, 1),
    ],
    ids=["reversed", "larger", "smaller", "one cell"],
)
def test_a_result_depends_on_its_own_cell_and_number_only(grid, trials, shared):
    index = [*GRID, "trial"]
    table = quiet(moments, GRID, trials=3).astype({"scale": float}).set_index(index).drop(columns="seconds")
    other = quiet(moments, grid, trials=trials).astype({"scale": float}).set_index(index)[table.columns]
    common = table.index.intersection(other.index)
    assert len(common) == shared
    pd.testing.assert_frame_equal(table.loc[common], other.loc[common], check_exact=True)


def test_every_trial_has_random_numbers_of_its_own():
    table = quiet(lambda rng, a, b: {"x": rng.normal()}, {"a": range(20), "b": [0.1, 0.2, True, None, "z"]}, trials=20)
    assert table.seed.is_unique
    assert table.x.is_unique
    # independent normals: mean, variance and the correlation of neighbours are within 4 standard errors
    x, n = table.x.to_numpy(), len(table)
    assert abs(x.mean()) < 4 / np.sqrt(n)
    assert abs(x.var() - 1) < 4 * np.sqrt(2 / n)
    assert abs(np.mean(x[1:] * x[:-1])) < 4 / np.sqrt(n)
    assert not np.isin(x, quiet(lambda rng, a, b: {"x": rng.normal()}, {"a": [0], "b": [0.1]}, seed=1).x).any()


def test_the_seed_of_a_row_is_a_spawn_key():
    table = quiet(moments, GRID, trials=2, seed=11)
    row = table.iloc[-1]
    words = tuple(int(w, 16) for w in re.findall("." * 8, row.seed))
    assert words[-1] == row.trial == 1
    rng = np.random.default_rng(np.random.SeedSequence(11, spawn_key=words))
    again = moments(rng, **{name: row[name] for name in GRID})
    assert again == row[list(again)].to_dict()
    assert (
        generator(11, row.seed).random() == np.random.default_rng(np.random.SeedSequence(11, spawn_key=words)).random()
    )


# ---- workers


class ListsOnly(ThreadingBackend):
    """Like the backends of multiprocessing and Ray, which cannot return results one by one."""

    supports_return_generator = False


@pytest.mark.parametrize(
    "backend", ["loky", "threading", "sequential", ListsOnly()], ids=["loky", "threading", "sequential", "lists"]
)
def test_workers_give_the_table_of_one_core(backend):
    table = quiet(moments, GRID, trials=5)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert_same(quiet(moments, GRID, trials=5), table)


def test_lists_are_stored_on_the_way(tmp_path):
    store = tmp_path / "results.jsonl"
    with joblib.parallel_config(backend=ListsOnly(), n_jobs=2), pytest.raises(TrialError, match="n=2"):
        quiet(unlucky, {"n": [0, 2, 3]}, trials=16, store=store)
    assert {r["cell"]["n"] for r in results(store)} == {0}


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_blas_has_one_thread_everywhere_and_gets_them_back(n_jobs):
    with threadpool_limits(2):
        table = quiet(threads, {"n": [1, 2]}, trials=2, n_jobs=n_jobs)
        assert max(pool["num_threads"] for pool in threadpool_info()) == 2
    assert (table.threads == 1).all()


def test_progress_bar(capsys):
    quiet(moments, GRID, trials=1)
    assert capsys.readouterr().err == ""
    run(moments, GRID, trials=1)
    assert "12/12" in capsys.readouterr().err


# ---- the store


def test_a_store_is_read_and_not_run_again(tmp_path):
    store, log = tmp_path / "results.jsonl", tmp_path / "log"
    trial = functools.partial(counted, log=str(log))
    first = quiet(trial, {"n": [1, 2]}, trials=3, store=store)
    written = store.read_bytes()
    again = quiet(trial, {"n": [1, 2]}, trials=3, store=store)
    pd.testing.assert_frame_equal(first, again, check_exact=True)  # the seconds too
    assert store.read_bytes() == written
    assert len(log.read_text().split()) == 6
    larger = quiet(trial, {"n": [5, 2, 1]}, trials=4, store=store)
    assert sorted(log.read_text().split()[6:]) == ["1", "2", "5", "5", "5", "5"]
    assert_same(larger, quiet(trial, {"n": [5, 2, 1]}, trials=4))
    assert larger.attrs["started"] == first.attrs["started"]


def test_numbers_come_back_from_a_store_exactly(tmp_path):
    values = [
        0.1 + 0.2,
        5e-324,
        1.7976931348623157e308,
        -0.0,
        np.nan,
        np.inf,
        -np.inf,
        2**53 + 1,
        np.float32(0.1),
        True,
    ]
    trial = lambda rng, i: {"x": values[i], "y": np.array(values[i])}  # noqa: E731
    store = tmp_path / "results.jsonl"
    before = [quiet(trial, {"i": [i]}, trials=1) for i in range(len(values))]
    for i in range(len(values)):
        quiet(trial, {"i": [i]}, trials=1, store=store)
    for i, value in enumerate(values):
        after = quiet(trial, {"i": [i]}, trials=1, store=store)
        assert after.x.dtype == before[i].x.dtype
        assert (
            np.asarray(after.x[0]).tobytes()
            == np.asarray(before[i].x[0]).tobytes()
            == np.asarray(np.asarray(value).item()).tobytes()
        )
        assert np.asarray(after.x[0]).tobytes() == np.asarray(after.y[0]).tobytes()


def test_a_half_written_end_is_dropped(tmp_path):
    store = tmp_path / "results.jsonl"
    table = quiet(moments, {"n": [2], "scale": [1.0, 2.0]}, trials=2, store=store)
    whole = store.read_bytes()
    header = whole.index(b"\n") + 1
    last = whole[:-1].rindex(b"\n") + 1
    for end in (0, 1, 10, 60, header - 1, header, header + 1, last - 1, last, last + 1, len(whole) - 2, len(whole) - 1):
        store.write_bytes(whole[:end])
        assert_same(quiet(moments, {"n": [2], "scale": [1.0, 2.0]}, trials=2, store=store), table)
        assert len(results(store)) == 4
    store.write_bytes(whole[:last] + b"\0" * 40)  # what a power cut may leave
    assert_same(quiet(moments, {"n": [2], "scale": [1.0, 2.0]}, trials=2, store=store), table)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda record: 3, "it should be a result, and is 3"),
        (lambda record: None, "it should be a result, and is null"),
        (lambda record: [record], "it should be a result, and is "),
        (lambda record: {**record, "outputs": None}, "outputs should be an object of numbers, and is null"),
        (lambda record: {**record, "outputs": 1.0}, "outputs should be an object of numbers, and is 1.0"),
        (lambda record: without(record, "outputs"), "it has no outputs"),
        (lambda record: without(record, "seed"), "it has no seed"),
        (lambda record: {**record, "seed": 7}, "seed should be a string, and is 7"),
        (lambda record: {**record, "seed": "7"}, 'seed should be 40 hexadecimal digits, and is "7"'),
        (lambda record: without(record, "seconds"), "it has no seconds"),
        (lambda record: {**record, "trial": True}, "trial should be an integer, and is true"),
        (
            lambda record: {**record, "outputs": {"average": 0.5, "spread": 1.0}},
            r"it has the outputs \['average', 'spread'\], where the first result has \['above', 'all', 'lar",
        ),
        (
            lambda record: {**record, "outputs": {**record["outputs"], "mean": "0.5"}},
            "output 'mean' should be a number or a list of numbers, and is \"0.5\"",
        ),
        (
            lambda record: {**record, "outputs": {**record["outputs"], "mean": None}},
            "output 'mean' should be a number or a list of numbers, and is null",
        ),
        (lambda record: {"format": _store.FORMAT}, "it has no trial"),
    ],
)
def test_a_store_that_was_edited_by_hand_is_refused(tmp_path, edit, message):
    store = tmp_path / "results.jsonl"
    quiet(moments, {"n": [2], "scale": [1.0]}, trials=3, store=store)
    lines = store.read_bytes().splitlines(keepends=True)
    lines[2] = json.dumps(edit(json.loads(lines[2]))).encode() + b"\n"
    store.write_bytes(b"".join(lines))
    where = rf"store '.*results.jsonl' is damaged in line 3: {message}.*; remove that line, or the file"
    with pytest.raises(ValueError, match=where):
        quiet(moments, {"n": [2], "scale": [1.0]}, trials=3, store=store)
    assert store.read_bytes() == b"".join(lines)
    store.write_bytes(b"".join(lines[:2] + lines[3:]))  # and that helps
    assert len(quiet(moments, {"n": [2], "scale": [1.0]}, trials=3, store=store)) == 3


def test_a_store_without_its_seed_is_refused(tmp_path):
    store = tmp_path / "results.jsonl"
    quiet(moments, {"n": [2], "scale": [1.0]}, trials=1, store=store)
    first, *rest = store.read_bytes().splitlines(keepends=True)
    store.write_bytes(json.dumps(without(json.loads(first), "seed")).encode() + b"\n" + b"".join(rest))
    with pytest.raises(ValueError, match="is damaged in line 1: it has no seed; remove that line, or the file"):
        quiet(moments, {"n": [2], "scale": [1.0]}, trials=1, store=store)


def without(record, name):
    return {key: value for key, value in record.items() if key != name}


def test_a_store_with_a_damaged_line_is_refused(tmp_path):
    store = tmp_path / "results.jsonl"
    quiet(moments, {"n": [2], "scale": [1.0]}, trials=3, store=store)
    lines = store.read_bytes().splitlines(keepends=True)
    damaged = b"".join([*lines[:2], lines[2][:20] + b"\n", *lines[3:]])
    store.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"results\.jsonl' is damaged in line 3: remove"):
        quiet(moments, {"n": [2], "scale": [1.0]}, trials=3, store=store)
    assert store.read_bytes() == damaged


@pytest.mark.parametrize("text", ["n,mean\n1,2", "x", '{"format": "rbal.experiments 0"}\n'])
def test_other_files_are_left_alone(tmp_path, text):
    store = tmp_path / "results.jsonl"
    store.write_text(text)
    with pytest.raises(ValueError, match=r"is not of the format 'rbal\.experiments 1': take another path"):
        quiet(moments, {"n": [2], "scale": [1.0]}, store=store)
    assert store.read_text() == text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "seed is 0 there, 1 here; take another path, or delete it"),
        ({"trial": slowly}, r"trial is '\w+\.moments' there, '\w+\.slowly' here"),
        ({"trial": functools.partial(moments, scale=2.0)}, "arguments is"),
        ({"version": "9.9"}, f"rbal is '{rbal.__version__}' there, '9.9' here"),
    ],
)
def test_the_store_of_another_run_is_refused(tmp_path, monkeypatch, change, message):
    store = tmp_path / "results.jsonl"
    arguments = {"trial": functools.partial(moments, scale=1.0), "grid": {"n": [2]}, "trials": 2, "seed": 0}
    quiet(**arguments, store=store)
    before = store.read_bytes()
    monkeypatch.setattr(_store, "__version__", change.pop("version", rbal.__version__))
    with pytest.raises(ValueError, match=f"belongs to another run: {message}"):
        quiet(**{**arguments, **change}, store=store)
    assert store.read_bytes() == before


@pytest.mark.parametrize(
    ("store", "says"),
    [
        (3, "got 3"), (True, "got True"), (b"a.jsonl", "got b'a.jsonl'"), (0.5, "got 0.5"), ("", "got ''"),
        ("a\0b", "got 'a"), (".", "got '.', a folder"), (os.devnull, "a device or a pipe"),
        ("pipe", "got 'pipe', a device or a pipe"),
        ("none/a.jsonl", "got 'none/a.jsonl': No such file or directory"), ("a" * 300, "File name too long"),
    ],
)  # fmt: skip
def test_a_store_is_a_file_and_nothing_else(tmp_path, monkeypatch, store, says):
    """Found before anything is run; a pipe would be waited for, and a device be read without end."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    with pytest.raises(ValueError, match=r"store must be .*" + re.escape(says)):
        quiet(lambda rng, n: pytest.fail("a trial was run"), {"n": [1]}, store=store)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_of_a_file_that_is_no_store_the_beginning_is_read(tmp_path):
    path = tmp_path / "huge"
    with open(path, "wb") as file:
        file.truncate(10_000_000_000)  # takes no space: a hole
    with pytest.raises(ValueError, match="is not of the format"):
        quiet(moments, {"n": [2], "scale": [1.0]}, store=path)


def test_a_store_takes_one_run_at_a_time(tmp_path):
    store = tmp_path / "results.jsonl"

    def nested(rng, n):
        quiet(moments, {"n": [2], "scale": [1.0]}, store=store)

    with pytest.raises(TrialError, match=r"results\.jsonl' is in use by another run: wait for its end"):
        quiet(nested, {"n": [1]}, store=store)
    assert len(quiet(lambda rng, n: {"x": 1}, {"n": [1]}, trials=2, store=tmp_path / "other.jsonl")) == 2


def test_bound_arguments_are_known_by_content():
    def mark(value):
        return _store.describe(functools.partial(moments, scale=value), 0)["arguments"]

    one, same, other = (rbal.Moments.ising(m=0.4, delta=d, L=20) for d in (1.0, 1.0, 1.1))
    rbal.solve(one, 2.0, 5.0)  # what a cached property remembers is not content
    assert mark(one) == mark(same) != mark(other)
    a = np.arange(6.0)
    assert mark(a) != mark(a.reshape(2, 3)) != mark(a.astype(int).reshape(2, 3))
    assert mark(a) == mark(np.arange(12.0)[::2] / 2)
    assert mark({"x": 1, "y": {2, 3}}) == mark({"y": {3, 2}, "x": 1}) != mark({"x": 1, "y": {2, 4}})
    assert mark(functools.partial(max, 1)) != mark(functools.partial(max, 2))
    assert mark(closure(1)) == mark(closure(1)) != mark(closure(2))
    ring = []
    ring.append(ring)
    assert mark(ring)
    assert mark(np.random.default_rng(1).bit_generator.state) != mark(np.random.default_rng(2).bit_generator.state)


# ---- what goes wrong


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_names_its_cell_and_keeps_what_was_finished(tmp_path, n_jobs):
    store = tmp_path / "results.jsonl"
    with pytest.raises(TrialError, match=r"trial \d of the cell n=2 failed: ValueError: no luck with two") as caught:
        quiet(unlucky, {"n": [0, 1, 2, 3]}, trials=3, store=store, n_jobs=n_jobs)
    assert isinstance(caught.value.__cause__, ValueError)
    assert "in unlucky" in caught.value.__cause__.__notes__[0]
    kept = results(store)
    assert {r["cell"]["n"] for r in kept} >= {0, 1}
    table = quiet(unlucky, {"n": [0, 1, 3]}, trials=3, store=store)
    assert_same(table, quiet(unlucky, {"n": [0, 1, 3]}, trials=3))


def test_an_error_that_cannot_be_sent_still_arrives():
    with pytest.raises(TrialError, match="trial 0 of the cell n=1 failed: RuntimeError: Unsendable: this and that"):
        quiet(unsendable, {"n": [1]}, trials=1, n_jobs=2)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([1.0], "TypeError: a trial must return a dict of numbers, got list"),
        ({"x": [1.0]}, "TypeError: a trial must return numbers, got list for 'x'"),
        ({"x": np.ones((1, 1))}, "TypeError: a trial must return numbers, got ndarray for 'x'"),
        ({"x": np.array(["a"])}, "TypeError: a trial must return numbers, got ndarray for 'x'"),
        ({"x": "one"}, "got str for 'x'"),
        ({"x": 1j}, "got complex for 'x'"),
        ({"seed": 1.0}, "ValueError: a trial must not return 'seed': trial, seed, seconds, n are taken"),
        ({"n": 1.0}, "a trial must not return 'n'"),
        ({1: 1.0}, "a trial must not return 1"),
    ],
)
def test_outputs_must_be_numbers(outputs, message):
    with pytest.raises(TrialError, match=f"trial 0 of the cell n=5 failed: .*{re.escape(message)}"):
        quiet(lambda rng, n: outputs, {"n": [5]})


def test_outputs_must_have_the_same_names_in_all_trials(tmp_path):
    trial = lambda rng, n: {"x": 1.0} if n < 2 else {"y": 1.0}  # noqa: E731
    with pytest.raises(
        TrialError, match=r"trial 0 of the cell n=2 failed: .*returned \['y'\] where others returned \['x'\]"
    ):
        quiet(trial, {"n": [1, 2]}, trials=2, store=tmp_path / "results.jsonl")
    assert len(results(tmp_path / "results.jsonl")) == 2


@pytest.mark.parametrize(
    ("grid", "error", "message"),
    [
        ([], ValueError, "grid must hold at least one cell"),
        ({"n": []}, ValueError, "grid must hold at least one cell"),
        ({"n": [1, 1.0]}, ValueError, "grid must hold every cell once, got twice: n=1"),
        ([{"n": 1}, {"m": 1}], ValueError, r"same names in every cell, got \['n'\] and \['m'\]"),
        ({"seed": [1]}, ValueError, "grid must not use the name 'seed'"),
        ({"rng": [1]}, ValueError, "grid must not use the name 'rng'"),
        ({"n": [np.ones(2)]}, TypeError, r"grid\['n'\] must hold numbers, strings, booleans or None, got list: bind"),
        ({"n": [1j]}, TypeError, "got complex"),
        ({"n": [np.nan]}, ValueError, r"grid\['n'\] must not hold NaN"),
        (3, TypeError, "grid must be a dict of values or a list of cells, got int"),
    ],
)
def test_bad_grids(grid, error, message):
    with pytest.raises(error, match=message):
        quiet(slowly, grid)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"trials": 0}, ValueError, "trials must be a positive integer, got 0"),
        ({"seed": -1}, ValueError, "seed must be an integer >= 0, got -1"),
        ({"seed": 1.5}, ValueError, "seed must be an integer >= 0, got 1.5"),
        ({"trial": 3}, TypeError, "trial must be callable, got int"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        quiet(**{"trial": slowly, "grid": {"n": [1]}, **arguments})


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_run_that_was_killed_continues(tmp_path, how, n_jobs, monkeypatch):
    store = tmp_path / "results.jsonl"
    code = f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_experiments import run, slowly
        run(slowly, {{"n": [1, 10, 100]}}, trials=20, store={str(store)!r}, n_jobs={n_jobs}, progress=False)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with (tmp_path / "errors").open("w") as errors:
        # what is started in the background of a shell ignores Ctrl-C, and so would what we start
        mind = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        process = subprocess.Popen(command, stderr=errors, start_new_session=True, preexec_fn=mind)
    try:
        wait_until(lambda: process.poll() is not None or (store.exists() and len(results(store)) > 5))
        # Ctrl-C reaches the workers too; a kill does not, and leaves them without a parent
        os.killpg(process.pid, how) if how == signal.SIGINT else process.kill()
        process.wait(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    errors = (tmp_path / "errors").read_text()
    assert process.returncode == -how, errors
    assert ("KeyboardInterrupt" in errors) == (how == signal.SIGINT)
    kept = results(store)
    assert 5 < len(kept) < 60
    with store.open("ab") as file:  # and as if it had died in the middle of a line
        file.write(b'{"seed": "00')
    monkeypatch.setattr(sys.modules[__name__], "PAUSE", 0.0)
    table = quiet(slowly, {"n": [1, 10, 100]}, trials=20, store=store, n_jobs=3 - n_jobs)
    assert_same(table, quiet(slowly, {"n": [1, 10, 100]}, trials=20))
    seconds = table.set_index("seed").seconds
    assert all(seconds[r["seed"]] == r["seconds"] for r in kept)  # reused, not run again


# ---- clusters


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), flags=re.M | re.S)


def test_the_page_fits_and_compiles():
    assert len(blocks(PAGE)) >= 5
    for block in blocks(PAGE):
        compile(block, "page", "exec")
        assert max(map(len, block.splitlines())) <= 84


@pytest.mark.slow
def test_the_page_runs_as_it_stands(tmp_path):
    (code,) = (block for block in blocks(PAGE) if block.startswith("# sweep.py"))
    script, store = tmp_path / "sweep.py", tmp_path / "sweep.jsonl"
    script.write_text(code)
    done = subprocess.run([sys.executable, script], cwd=tmp_path, check=True, capture_output=True, text=True)
    written = store.read_bytes()
    page = {"__name__": "page"}
    exec(code, page)
    table = quiet(page["trial"], page["grid"], trials=20, store=store)
    assert store.read_bytes() == written  # the cluster has done all of it
    assert_same(table, quiet(page["trial"], page["grid"], trials=20))
    assert summary(table)[["alpha_neg", "ba", "ba_se", "count"]].to_string() in done.stdout


@pytest.fixture
def cluster():
    distributed = pytest.importorskip("distributed")
    # a killed worker is the point of these tests, and not worth a page of warnings in the log
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield cluster, client
    assert not any(worker.process for worker in cluster.workers.values())


@pytest.mark.slow
def test_a_dask_cluster_that_loses_a_worker_gives_the_table_of_one_core(cluster, tmp_path, monkeypatch):
    cluster, client = cluster
    store = tmp_path / "results.jsonl"
    pids = client.run(os.getpid)
    victim = min(pids.values())
    seen = []

    def kill():
        wait_until(lambda: store.exists() and len(results(store)) >= 5)
        seen.append(len(results(store)))
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with joblib.parallel_config(backend="dask"):
        table = quiet(slowly, {"n": [1, 10, 100, 1000]}, trials=50, store=store)
    killer.join()
    assert 5 <= seen[0] < 200  # results were stored as they came, and the kill was in the middle
    assert victim not in client.run(os.getpid).values()
    monkeypatch.setattr(sys.modules[__name__], "PAUSE", 0.0)
    assert_same(table, quiet(slowly, {"n": [1, 10, 100, 1000]}, trials=50))


@pytest.mark.slow
def test_a_trial_that_takes_workers_down_is_named(cluster):
    cluster, _ = cluster
    cluster.scheduler.allowed_failures = 0
    with joblib.parallel_config(backend="dask"):
        with pytest.raises(TrialError, match=r"trial 0 of the cell n=7 failed: KilledWorker: "):
            quiet(deadly, {"n": [7]}, trials=1)
        with pytest.raises(TrialError, match=r"trial \d of the cell n=2 failed: ValueError: no luck with two"):
            quiet(unlucky, {"n": [1, 2]}, trials=3)
