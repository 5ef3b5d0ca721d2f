"""Words of the glossary in chapters: which are found, and that each is a link once in the built pages."""

import re
import sys

import pytest
from docutils import nodes
from pages import HTML, PAGES, ROOT

sys.path.append(str(ROOT / "tools"))
import term_extension

WORDS = term_extension.words((ROOT / "book" / "glossary.md").read_text(encoding="utf-8"))
CHAPTERS = [name for name in PAGES if name.startswith("notebooks/")]


def found(text):
    return [match[1] for match in term_extension.pattern(WORDS).finditer(text)]


def test_words_are_those_of_the_glossary():
    assert {"margin", "order parameters", "SMOTE", "F₁ score"} <= set(WORDS)
    assert not term_extension.EVERYDAY & set(WORDS)
    assert len(WORDS) > 30


def test_plurals_capitals_and_the_longest_word():
    assert found("Perceptrons with margins") == ["Perceptron", "margin"]
    assert found("the critical margin, the best threshold") == ["critical margin", "best threshold"]
    assert found("marginal, sub-margin, auc, AUCs") == ["AUC"]


@pytest.mark.parametrize(
    ("parent", "is_open"),
    [(nodes.paragraph, True), (nodes.emphasis, False), (nodes.title, False), (nodes.caption, False)],
)
def test_only_running_text_is_open(parent, is_open):
    node = parent("", nodes.Text("a margin"))
    assert term_extension.is_open(node[0]) is is_open
    assert term_extension.is_open(nodes.paragraph("", "", nodes.emphasis("", "a margin"))[0][0])
    assert not term_extension.is_open(nodes.paragraph("", "", nodes.literal("", "a margin"))[0][0])


@pytest.mark.browser
@pytest.mark.parametrize("name", CHAPTERS)
def test_a_word_is_a_link_once(name):
    page = (HTML / name).read_text(encoding="utf-8")
    targets = re.findall(
        r'<a class="reference internal" href="[^"]*glossary\.html#(term-[^"]+)"><span class="xref', page
    )
    assert len(targets) == len(set(targets))
    assert targets
