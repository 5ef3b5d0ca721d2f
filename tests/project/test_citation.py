"""What is said about citing the project, in CITATION.cff, to Zenodo and below each page, agrees."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
ZENODO = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("abstract", "description"), ("type", "upload_type")]
    + [(name, name) for name in ("title", "version", "license", "keywords")],
)
def test_zenodo_is_told_what_the_citation_says(ours, theirs):
    assert ZENODO[theirs] == CITATION[ours]


def test_zenodo_names_the_same_authors():
    def name(author):
        return author.get("name") or f"{author['family-names']}, {author['given-names']}"

    assert [creator["name"] for creator in ZENODO["creators"]] == [name(author) for author in CITATION["authors"]]


def test_zenodo_knows_the_paper_and_where_the_project_lives():
    related = {entry["identifier"]: entry["relation"] for entry in ZENODO["related_identifiers"]}
    (preprint,) = [entry["value"] for entry in CITATION["references"][0]["identifiers"]]
    assert related == {
        preprint: "isDerivedFrom",
        CITATION["repository-code"]: "isSupplementTo",
        CITATION["url"]: "isDocumentedBy",
    }


@pytest.fixture
def extension(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import citation_extension

    yield citation_extension
    sys.modules.pop("citation_extension")


def test_each_page_says_how_to_cite_it(extension):
    config = SimpleNamespace(copyright="2026", html_baseurl="https://example.org/book/")
    app = SimpleNamespace(srcdir=str(ROOT), config=config)
    context = {"title": '<span class="section-number">5. </span>Scores &amp; <em>metrics</em>'}
    extension.add_citation(app, "notebooks/metrics", "page.html", context, doctree=object())
    cite = context["cite"]
    assert cite["title"] == "5. Scores & metrics"
    assert cite["address"] == "https://example.org/book/notebooks/metrics.html"
    assert cite["version"] == CITATION["version"]
    assert cite["paper"] == "Loffredo et al., 2024"
    first, *fields = cite["bibtex"].splitlines()
    assert first == "@incollection{rbal-metrics-" + CITATION["version"].replace(".", "-") + ","
    assert "  title     = {5. Scores & metrics}," in fields
    assert f"  author    = {{{{{CITATION['authors'][0]['name']}}}}}," in fields
    assert cite["bibtex"].count("{") == cite["bibtex"].count("}")


def test_pages_without_a_text_are_not_cited(extension):
    context = {"title": "Search"}
    extension.add_citation(None, "search", "search.html", context, doctree=None)
    assert context["cite"] is None
