"""The build's own scripts: the keys of its caches, and which pages it runs."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def tools_on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    yield
    for name in ("digest", "execute"):
        sys.modules.pop(name, None)


@pytest.fixture
def package(tmp_path):
    (tmp_path / "rbal").mkdir()
    (tmp_path / "rbal" / "a.py").write_text("x = 1\n")
    (tmp_path / "rbal" / "style.txt").write_text("blue\n")
    (tmp_path / "book" / "_data").mkdir(parents=True)
    (tmp_path / "book" / "_data" / "results.csv").write_text("x\n1\n")
    (tmp_path / "requirements.lock").write_text("numpy==1\n")
    return tmp_path


def test_kernels_have_one_cache():
    import digest

    assert Path(os.environ["NUMBA_CACHE_DIR"]) == ROOT / "_build" / "numba" / digest.kernels()


@pytest.mark.parametrize(
    ("changed", "kernels", "outputs"),
    [
        ("rbal/a.py", True, True),
        ("rbal/style.txt", False, True),
        ("requirements.lock", False, True),
        ("book/_data/results.csv", False, True),
    ],
)
def test_keys_follow_what_they_depend_on(package, changed, kernels, outputs):
    import digest

    before = digest.kernels(package), digest.outputs(package)
    (package / changed).write_text("other\n")
    assert (digest.kernels(package) != before[0]) == kernels
    assert (digest.outputs(package) != before[1]) == outputs


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
