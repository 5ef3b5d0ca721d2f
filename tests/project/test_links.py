"""Estimators link the book, in the diagrams that notebooks show of them."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.base import BaseEstimator

import rbal
from rbal._support.documented import BOOK

ROOT = Path(__file__).parents[2]
ESTIMATORS = sorted(
    name
    for name in rbal.__all__
    if isinstance(getattr(rbal, name), type) and issubclass(getattr(rbal, name), BaseEstimator)
)


def test_the_book_is_where_it_says():
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    assert config["html"]["baseurl"] == BOOK
    assert "SphericalPerceptron" in ESTIMATORS


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_link_their_entry(name):
    kind = getattr(rbal, name)
    assert kind.__new__(kind)._get_doc_link() == f"{BOOK}book/api.html#rbal.{name}"
    assert name in (ROOT / "book" / "api.md").read_text(encoding="utf-8")


def test_what_is_advised_links_the_chapter():
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [30, 90])
    X = rng.normal(size=(120, 4)) + 0.5 * y[:, None]
    model = rbal.advise(X, y, kernel="linear", C=1.0, train="none").pipeline(random_state=0, members=2)
    assert f"{BOOK}notebooks/your_data.html" in model._repr_html_()
