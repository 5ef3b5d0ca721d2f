"""The explorers as one script, for pages that are opened from a folder."""

import re
import shutil

import bundle
import pytest
from pages import HTML, ROOT, SETTLE, serve

EXPLORER = ROOT / "book" / "_static" / "explorer"
NAMES = re.findall(r"^import (\w+) from", (EXPLORER / "index.js").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture
def modules(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "few.json").write_text('{"x": 1}')

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.js").write_text(text)
        return tmp_path

    return write


@pytest.mark.browser
def test_every_form_of_import_is_understood(modules, chromium):
    folder = modules(
        index='import { a as b,\n  f,\n} from "./a.js";\nimport * as all from "./a.js";\nimport other from "./b.js";\n'
        "window.found = [b, f(), all.a, other.c, new all.K().k, rbalExplorerData.few.x];\n",
        a="export const a = 1;\nexport function f() {\n  return 2;\n}\nexport class K {\n  k = 4;\n}\n",
        b='import { a } from "./a.js";\nexport default { c: a + 2 };\n',
    )
    page = chromium.new_page()
    page.add_script_tag(content=bundle.bundle(folder))
    assert page.evaluate("window.found") == [1, 2, 1, 3, 4, 1]
    page.close()


@pytest.mark.parametrize("line", ["export let n = 0;", "export { a };", 'export * from "./a.js";', 'import "./a.js";'])
def test_other_forms_are_refused(modules, line):
    folder = modules(index=f"const a = 1;\n{line}\n", a="")
    with pytest.raises(ValueError, match=re.escape(f"index.js: tools/bundle.py does not know this form: {line}")):
        bundle.bundle(folder)


def test_modules_that_need_each_other_are_refused(modules):
    folder = modules(index='import { a } from "./a.js";\nexport const b = 1;\n', a='import { b } from "./index.js";\n')
    with pytest.raises(ValueError, match=r"index.js > a.js > index.js"):
        bundle.bundle(folder)


STATES = """
[...document.querySelectorAll("rbal-explorer")].map((e) => [e.explorer.state, e.querySelector(".x-readout").innerText])
"""
UNSET = """
window.MathJax?.startup?.promise.then(
  () => [...document.querySelectorAll(".math")].filter((node) => !node.querySelector("mjx-container")).length) ?? 0
"""


def states(page, address):
    """The setting and the numbers of each explorer of a page."""
    page.goto(address)
    page.wait_for_function(f"document.querySelectorAll('rbal-explorer.x-live').length === {len(NAMES)}")
    page.evaluate(SETTLE)
    return page.evaluate(STATES)


@pytest.mark.browser
def test_explorers_give_the_same_from_a_folder_and_over_http(tmp_path, chromium):
    shutil.copytree(EXPLORER, tmp_path / "explorer")
    (tmp_path / "explorer" / "bundle.js").write_text(bundle.bundle(EXPLORER), encoding="utf-8")
    elements = "".join(f'<rbal-explorer name="{name}"></rbal-explorer>' for name in NAMES)
    (tmp_path / "page.html").write_text(
        f'<!doctype html><meta charset="utf-8"><script type="module" src="explorer/index.js"></script>'
        f'<script src="explorer/from-file.js"></script>{elements}',
        encoding="utf-8",
    )
    page = chromium.new_page()
    page.set_default_timeout(120_000)
    from_folder = states(page, (tmp_path / "page.html").as_uri())
    with serve(tmp_path) as origin:
        assert states(page, f"{origin}page.html") == from_folder
    page.close()
    assert len(from_folder) == len(NAMES) >= 5


@pytest.mark.browser
@pytest.mark.parametrize("name", ["book/explorers.html", "notebooks/metrics.html", "book/notation.html"])
def test_pages_work_from_a_folder(name, browser):
    if not (HTML / "_static" / "explorer" / "bundle.js").exists() or not (HTML / name).exists():
        pytest.skip("there is no book in _build/html: make book")
    page = browser.new_page()
    page.set_default_timeout(120_000)
    thrown = []
    page.on("pageerror", lambda error: thrown.append(str(error)))
    page.goto((HTML / name).as_uri())
    page.wait_for_function("[...document.querySelectorAll('rbal-explorer')].every((e) => e.matches('.x-live'))")
    unset = page.evaluate(UNSET)
    page.close()
    assert unset == 0
    assert not thrown
