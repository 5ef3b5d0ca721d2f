"""The build's own scripts: the key of its cache, and which pages it runs."""

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def tools_on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    yield
    for name in ("digest", "elsewhere", "execute", "keep_runs", "notebooks", "schedule", "book_extension"):
        sys.modules.pop(name, None)


@pytest.fixture
def package(tmp_path):
    (tmp_path / "rbal").mkdir()
    (tmp_path / "rbal" / "a.py").write_text("x = 1\n")
    (tmp_path / "rbal" / "style.txt").write_text("blue\n")
    (tmp_path / "rbal_book").mkdir()
    (tmp_path / "rbal_book" / "b.py").write_text("x = 1\n")
    (tmp_path / "requirements.lock").write_text("numpy==1\n")
    (tmp_path / "rbal_book" / "_results").mkdir()
    (tmp_path / "rbal_book" / "_results" / "study.csv").write_text("1\n")
    return tmp_path


def test_the_key_does_not_follow_compiled_files(package):
    import digest

    before = digest.outputs(package)
    for name in ("a.pyc", "a.f-1.py311.nbi", "a.f-1.py311.1.nbc"):
        (package / "rbal" / name).write_text("made from the others\n")
    assert digest.outputs(package) == before


@pytest.mark.parametrize(
    "changed", ["rbal/a.py", "rbal/style.txt", "rbal_book/b.py", "requirements.lock", "rbal_book/_results/study.csv"]
)
def test_the_key_follows_what_it_depends_on(package, changed):
    import digest

    before = digest.outputs(package)
    (package / changed).write_text("other\n")
    assert digest.outputs(package) != before


def test_listed_finds_every_file_in_order():
    import execute

    toc = {
        "root": "a",
        "parts": [{"chapters": [{"file": "b", "sections": [{"file": "c"}]}]}, {"chapters": [{"file": "d"}]}],
    }
    assert execute.listed(toc) == ["a", "b", "c", "d"]


def test_pages_that_run_are_those_with_code():
    import execute

    names = {str(path.relative_to(ROOT)) for path in execute.pages()}
    chapters = {str(path.relative_to(ROOT)) for path in (ROOT / "notebooks").glob("*.md")}
    assert chapters <= names, "a chapter is missing from _toc.yml"
    assert "book/preface.md" not in names


def test_a_run_of_nbval_is_kept_for_the_book():
    import keep_runs
    import nbformat

    v4 = nbformat.v4
    chapter = v4.new_notebook(
        cells=[v4.new_markdown_cell("prose"), v4.new_code_cell("print(1)"), v4.new_code_cell("2")]
    )
    runs = {
        0: ([{"output_type": "stream", "name": "stdout", "text": "1\n"}], 0.1),
        1: (
            [{"output_type": "execute_result", "data": {"text/plain": "2"}, "metadata": {}, "execution_count": 9}],
            0.1,
        ),
    }
    kept = keep_runs.executed(chapter, runs, {"name": "python"})
    nbformat.validate(kept)
    assert [cell.execution_count for cell in kept.cells[1:]] == [1, 2]
    assert kept.cells[1].outputs[0].text == "1\n"
    assert kept.cells[2].outputs[0].data["text/plain"] == "2"


PAGE = """\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# {title}

```{{code-cell}} ipython3
:tags: [nbval-check-output]
print(1)
```

```{{code-cell}} ipython3
{code}
```
"""
PAGES = {
    "sound": "2",
    "warns": "import warnings\nwarnings.warn('a rare thing')",
    "fails": "for k in range(3):\n    1 / k",
    "dies": "import os\nos._exit(1)",
}


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A book of four pages, three of which cannot be shown."""
    import execute

    for name, code in PAGES.items():
        (tmp_path / f"{name}.md").write_text(PAGE.format(title=name, code=code))
    (tmp_path / "_config.yml").write_text("execute: {timeout: 60}\nparse: {myst_enable_extensions: []}\n")
    chapters = ", ".join(f"{{file: {name}}}" for name in PAGES)
    (tmp_path / "_toc.yml").write_text(f"root: sound\nchapters: [{chapters}]\n")
    monkeypatch.setattr(execute, "ROOT", tmp_path)
    monkeypatch.setattr(execute, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(execute, "compile_once", lambda jobs: None)
    monkeypatch.setattr(execute.schedule, "LAST", tmp_path / "pages.json")
    monkeypatch.setattr(execute.schedule, "share", lambda jobs: {})
    return tmp_path


@pytest.mark.slow
def test_pages_that_fail_are_told_at_the_end_and_run_again(book, capfd):
    import execute

    with pytest.raises(SystemExit) as failed:
        execute.main(2)
    told = str(failed.value)
    assert told.strip().startswith("3 of 4 pages failed:")
    assert "warns.md:19: this cell wrote on stderr\n" in told
    assert "UserWarning: a rare thing" in told
    assert "fails.md:19: this cell failed\n    ZeroDivisionError: division by zero\n" in told
    assert "dies.md: could not be run to its end\n    DeadKernelError" in told
    assert "make book again" in told.splitlines()[-2]
    assert len(told.splitlines()) < 20

    shown = capfd.readouterr()
    assert "[4/4]" in shown.out
    assert shown.out.count("FAILED") == 3
    assert "TCP" not in shown.err  # what a kernel logs of its own

    (book / "fails.md").write_text((book / "fails.md").read_text().replace("1 / k", "1 + k"))
    with pytest.raises(SystemExit, match="2 of 4 pages failed"):
        execute.main(2)
    shown = capfd.readouterr().out
    assert shown.startswith("1 of 4 pages are in the cache")
    assert "sound" not in shown
    assert "[3/3]" in shown


def test_a_long_text_is_cut_short():
    import execute

    lines = execute.told("a.md", execute.Fault(7, "failed", "\x1b[31mred\x1b[39m\n" * 30)).splitlines()
    assert lines[0] == "a.md:7: this cell failed"
    assert lines[1:3] == ["    red", "    red"]
    assert lines[-1] == "    … (25 more lines)"
    assert len(lines) == 7


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), [("sound", 0), ("warns", 1), ("fails", 1)])
def test_a_chapter_that_writes_on_stderr_fails_under_nbval(book, name, code):
    import jupytext

    jupytext.write(jupytext.read(book / f"{name}.md"), book / f"{name}.ipynb")
    command = [
        "pytest",
        "-c",
        str(ROOT / "tools" / "nbval.ini"),
        "--rootdir",
        str(book),
        "-p",
        "no:cacheprovider",
        "-x",
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tools")}
    done = subprocess.run(
        [sys.executable, "-m", *command, f"{name}.ipynb"], cwd=book, env=environment, capture_output=True, text=True
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert ("wrote on stderr" in done.stdout) == (name == "warns")


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the settings name processors of x86")
def test_settings_of_other_processors_reach_numpy_and_numba():
    import elsewhere

    code = (
        "import json, numba, threadpoolctl, numpy, scipy.linalg\n"
        "from numba.core.registry import cpu_target\n"
        "info = [i for i in threadpoolctl.threadpool_info() if i['internal_api'] == 'openblas']\n"
        "target = cpu_target.target_context.codegen().magic_tuple()[1:]\n"
        "print(json.dumps([[i['architecture'] for i in info], target, numba.config.NUMBA_NUM_THREADS]))"
    )
    seen = []
    for name, setting in elsewhere.SETTINGS.items():
        environment = os.environ | elsewhere.environment(**setting)
        run = [sys.executable, "-W", "error", "-c", code]
        done = subprocess.run(run, env=environment, capture_output=True, text=True, check=True)
        architectures, target, threads = json.loads(done.stdout)
        assert set(architectures) == {setting["blas"]}, name
        assert target == [setting["numba"], ""], name
        assert threads == setting["threads"], name
        seen.append(done.stdout)
    assert len(set(seen)) == len(seen) >= 2


# ---- when pages run


@pytest.fixture
def timed(tmp_path, monkeypatch):
    """Two pages with known times in the repository, one of which was timed anew since."""
    import schedule

    monkeypatch.setattr(schedule, "STORED", tmp_path / "stored.json")
    monkeypatch.setattr(schedule, "LAST", tmp_path / "last.json")
    schedule.STORED.write_text('{"a.md": {"seconds": 200.0}, "b.md": {"seconds": 100.0}}')
    return schedule


def test_long_pages_are_started_first(timed):
    assert timed.longest_first(["new.md", "b.md", "a.md"]) == ["a.md", "b.md", "new.md"]
    timed.remember("b.md", 300.0, 512.0)
    assert timed.longest_first(["new.md", "a.md", "b.md"]) == ["b.md", "a.md", "new.md"]
    assert timed.known()["b.md"]["megabytes"] == 512
    timed.remember("b.md", 10.0, 512.0)
    assert timed.longest_first(["b.md", "new.md"]) == ["new.md", "b.md"], "what nobody timed may be long"


def test_pages_share_the_cores(monkeypatch):
    import joblib
    import schedule

    for name in ("LOKY_MAX_CPU_COUNT", "NUMBA_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(schedule.joblib, "cpu_count", lambda: 8)
    assert schedule.share(2) == {"LOKY_MAX_CPU_COUNT": "4", "NUMBA_NUM_THREADS": "4", "COLUMNS": "84"}
    assert schedule.share(16)["LOKY_MAX_CPU_COUNT"] == "1"
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")  # said otherwise
    assert schedule.share(2) == {"LOKY_MAX_CPU_COUNT": "4", "COLUMNS": "84"}
    monkeypatch.undo()
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert joblib.cpu_count() == 1


@pytest.mark.skipif(platform.system() != "Linux", reason="sizes are read from /proc")
@pytest.mark.parametrize("children", [1, 2])
def test_memory_of_children_is_seen(children):
    # in a process of its own: this one may have other children, whose memory would be counted too
    watch = """
import schedule, subprocess, sys, time
schedule.EVERY, children = 0.1, int(sys.argv[1])
child = f"x = bytearray({200 // children} * 2**20); x[::4096] = bytes(len(x[::4096])).replace(b'0', b'1'); input()"
memory, deadline = schedule.Memory().start(), time.monotonic() + 60.0
children = [subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE) for _ in range(children)]
while memory.megabytes < 200.0 and time.monotonic() < deadline:
    time.sleep(0.05)
for child in children:
    child.communicate(b"\\n")
print(memory.stop())
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tools")}
    command = [sys.executable, "-c", watch, str(children)]
    found = float(subprocess.check_output(command, env=environment, text=True))
    assert 200.0 < found < 400.0


def test_stored_pages_fit_into_binder():
    """A pod of Binder has 2 GB, of which JupyterLab takes some 200 MB; chapters run there with one worker."""
    stored = json.loads((ROOT / "tools" / "pages.json").read_text())
    assert not [name for name in stored if not (ROOT / name).exists()]
    measured = {name: page["megabytes"] for name, page in stored.items() if page.get("workers") == 1}
    assert not {name: size for name, size in measured.items() if size > 1800}


CHAPTERS = sorted((ROOT / "notebooks").glob("*.md"))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_no_chapter_says_by_heart_how_long_it_runs(chapter):
    """The build adds what it measured."""
    text = re.sub(r"^```.*?^```", "", chapter.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    number = r"(?:\d+|a|an|one|two|three|few|half|some|several)"
    time_of_a_run = rf"\b(?:[Rr]uns?|takes?|took|needs?)\b[^.]{{0,30}}?\b{number} (?:s|seconds?|minutes?|hours?)\b"
    assert not re.findall(time_of_a_run, " ".join(text.split()))


def test_the_build_says_how_long_a_chapter_ran():
    import book_extension
    from docutils import nodes
    from docutils.utils import new_document

    document = new_document("page")
    document += nodes.paragraph("", "", nodes.Text("An answer."))
    document += nodes.paragraph("", "", nodes.emphasis("", "Reproduces Fig. 1."))
    document += nodes.paragraph("", "", nodes.emphasis("", "A quotation."))
    book_extension.add_time(document, 37.4)
    assert [p.astext() for p in document] == [
        "An answer.",
        "Reproduces Fig. 1. Ran in 37\N{NO-BREAK SPACE}s when this book was built.",
        "A quotation.",
    ]
