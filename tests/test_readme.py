"""The README's example prints what the README says it prints."""

import contextlib
import io
import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_example_runs_as_printed():
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)
    printed = re.search(r"```text\n(.*?)```", README, re.DOTALL).group(1)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    assert out.getvalue() == printed


def test_links_lead_somewhere():
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert len(links) > 3
    for link in links:
        assert (Path(__file__).parents[1] / link).exists(), link
