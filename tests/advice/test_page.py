"""The report as a page: what it says first, code that runs, and how it looks in a browser."""

import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from pages import PHONE, WIDE

import rbal
from rbal.advice import _page, advise_file

QUICK = {"draws": 4, "kernel": "linear", "moments": "pooled", "train": "none"}


def table(n_pos=40, n_neg=360, D=14, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(["ill", "well"], [n_pos, n_neg])
    X = pd.DataFrame(rng.normal(size=(len(y), D)) + 0.5 * (y == "ill")[:, None], columns=[f"x{j}" for j in range(D)])
    X["site"] = np.where(rng.random(len(y)) < 0.5, "coast", "hills")
    X["ward"] = rng.integers(0, 3, size=len(y))
    return X.assign(label=y)


def given(frame=None, best=None, **options):
    """Advice on a table, with the remedy that a test is about."""
    frame = table() if frame is None else frame
    advice = rbal.advise(frame.drop(columns="label"), frame["label"], **{"C": 1.0, **QUICK, **options})
    advice.best = best or advice.best
    return advice


def words(page):
    """What a reader sees of a page, without its figures."""
    page = re.sub(r"<style>.*?</style>|<svg.*?</svg>", " ", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def section(page, head):
    (found,) = re.findall(rf"<h2>{head}</h2>(.*?)<h2>", page, re.DOTALL)
    return words(found)


# ---- what it says


def test_the_verdict_comes_first():
    advice = given(best=("class weights", "moved"))
    page = advice.to_html()
    body = page[page.index("<body>") :]
    assert body.index('class="verdict"') < min(body.index("<svg"), body.index("<table"), body.index("<p>"))
    verdict = words(re.search(r"<section.*?</section>", page, re.DOTALL)[0])
    row, plain = advice.table.loc[advice.best], advice.table.loc[("as is", "trained")]
    assert verdict.startswith("Use balanced class weights, and move the threshold.")
    assert f"Expect {row['predicted']:.3f} balanced accuracy on new data (linear SVM, C = 1)" in verdict
    assert f"{row['low']:.3f} to {row['high']:.3f} is the 90% interval" in verdict
    assert f"Doing nothing {plain['predicted']:.3f}" in verdict
    assert f"{row['predicted'] - plain['predicted']:.3f} worse" in verdict
    assert f"Confidence {advice.confidence} 40 positive and 360 negative rows" in verdict


def test_doing_nothing_is_not_compared_with_itself():
    assert "Doing nothing" not in given(best=("as is", "trained")).to_html()


def test_a_lower_cost_is_better():
    advice = given(best=("as is", "moved"), metric="cost", costs=(9.0, 1.0))
    low, plain = (advice.table.loc[row, "predicted"] for row in (advice.best, ("as is", "trained")))
    assert low < plain
    assert f"Doing nothing {plain:.3f} training on the data as they are, predicted: {plain - low:.3f} worse" in words(
        advice.to_html()
    )


def test_where_the_theory_is_wrong_the_verdict_is_what_was_measured():
    advice = given(best=("class weights", "trained"))
    advice.table["expected"], advice.table["measured"], advice.table["measured_error"] = 0.9, 0.65, 0.01
    advice.table.loc[("as is", "trained"), "measured"] = 0.5
    advice.agrees, advice.confidence = False, "low"
    verdict = words(re.search(r"<section.*?</section>", advice.to_html(), re.DOTALL)[0])
    assert "THEORY AND DATA DISAGREE" in verdict
    assert "Expect 0.650 ± 0.010" in verdict
    assert "Doing nothing 0.500 training on the data as they are, measured: 0.150 worse" in verdict
    advice.agrees = True
    assert "Measured 0.650 ± 0.010" in words(advice.to_html())


def test_threshold_in_words():
    moved = given(best=("class weights", "moved"))
    said = section(moved.to_html(), "The threshold")
    assert "Move it" in said
    assert "cross-validation" in said
    row = moved.table.loc[moved.best]
    called = 0.1 * row["tpr"] + 0.9 * (1.0 - row["tnr"])
    assert f"{row['tpr']:.0%} of the positives are found" in said
    assert f"{called:.0%} of all rows are called positive" in said
    assert "Keep the threshold" in section(given(best=("class weights", "trained")).to_html(), "The threshold")
    assert "does not depend on a threshold" in section(given(metric="auc").to_html(), "The threshold")


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("strategy", ["as is", "class weights", "oversampling"])
def test_a_word_on_probabilities(strategy, loss):
    said = section(given(best=(strategy, "trained"), loss=loss).to_html(), "Probabilities")
    assert ("gives scores" in said) == (loss == "hinge")
    assert "10.0%" in said
    assert ("balanced problem, not of this table" in said) == (strategy != "as is")
    assert ("by 0.111" in said) == (strategy != "as is")


def test_the_odds_are_those_of_the_table_after_the_correction():
    frame = table(400, 3600)
    X, y = frame.drop(columns="label"), frame["label"]
    advice = given(frame, best=("class weights", "trained"), loss="logistic")
    model = advice.pipeline().fit(X, y)
    p = model.predict_proba(X)[:, list(model.classes_).index("ill")]
    odds = p / (1.0 - p) * advice.data.n_pos / advice.data.n_neg
    assert p.mean() > 0.2
    assert (odds / (1.0 + odds)).mean() == pytest.approx(0.1, abs=0.01)


# ---- code to copy


def run(code, folder, monkeypatch, **names):
    monkeypatch.chdir(folder)
    exec(code, names)
    return names["model"]


@pytest.mark.parametrize(
    ("best", "options"),
    [
        (("class weights", "trained"), {}),
        (("as is", "moved"), {"metric": "f1", "loss": "logistic", "C": 0.1}),
        (("oversampling", "trained"), {"standardize": False, "positive": "well", "categorical": ["ward"]}),
        (("best mix", "moved"), {"metric": "cost", "costs": (5.0, 1.0), "loss": "squared_hinge"}),
    ],
)
@pytest.mark.parametrize("columns", [10, 40])
def test_code_trains_what_is_recommended(best, options, columns, tmp_path, monkeypatch):
    frame = table(D=columns)
    advice = given(frame, best, **options)
    (code,) = re.findall(r"<pre><code>(.*?)</code></pre>", advice.to_html(), re.DOTALL)
    X, y = frame.drop(columns="label"), frame["label"]
    model = run(unescape(code), tmp_path, monkeypatch, X=X, y=y)
    want = advice.pipeline(random_state=0).fit(X, y)
    assert str(model.get_params()) == str(want.get_params())
    np.testing.assert_array_equal(model.predict(X), want.predict(X))


def test_code_for_arrays(tmp_path, monkeypatch):
    frame = table()
    X, y = frame.iloc[:, :14].to_numpy(), (frame["label"] == "ill").to_numpy()
    advice = rbal.advise(X, y, **QUICK)
    model = run(_page.code(advice), tmp_path, monkeypatch, X=X, y=y)
    np.testing.assert_array_equal(model.predict(X), advice.pipeline(random_state=0).fit(X, y).predict(X))


def test_names_in_the_code_are_strings_whatever_they_hold(tmp_path, monkeypatch):
    evil = "']; raise SystemExit #</code><script>\u202e\x1b"
    frame = table().rename(columns={"x0": evil}).replace({"label": {"ill": "i\"l'l"}})
    frame.to_csv(tmp_path / "table.csv", index=False)
    monkeypatch.chdir(tmp_path)
    page = advise_file("table.csv", "label", keep=[evil], progress=False, **QUICK).to_html()
    assert not re.search("<script|[\u202e\x1b]", page)
    (code,) = re.findall(r"<pre><code>(.*?)</code></pre>", page, re.DOTALL)
    assert set(run(unescape(code), tmp_path, monkeypatch).classes_) == {"i\"l'l", "well"}


# ---- how it looks


def test_it_needs_nothing_else_and_no_name_twice():
    page = given().to_html()
    HTMLParser().feed(page)
    assert not re.search(r"<script|<link|<img|src=|@import|url\((?!#)|https?://(?!www\.w3\.org/)", page)
    names = re.findall(r'\sid="([^"]+)"', page)
    assert len(names) == len(set(names))
    assert page.count("<svg") == 2
    assert page.count('role="img"') == 2


@pytest.fixture(scope="module")
def page():
    advice = given(table().rename(columns={"x0": "n" * 200, "site": "🌊" * 80}).assign(same=1.0))
    advice.table["expected"], advice.table["measured"], advice.table["measured_error"] = 0.9, 0.65, 0.01
    advice.agrees = False
    return advice.to_html()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_in_a_browser(chromium, page, size, scheme):
    view = chromium.new_page(viewport=size, color_scheme=scheme)
    view.set_content(page)
    assert view.evaluate("document.documentElement.scrollWidth") <= size["width"]
    paper, ink = view.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    light = {name: sum(map(int, re.findall(r"\d+", colour)[:3])) / 765 for name, colour in (("p", paper), ("i", ink))}
    assert (light["p"] > 0.9, light["i"] < 0.2) == ((True, True) if scheme == "light" else (False, False))
    assert abs(light["p"] - light["i"]) > 0.7
    # the axes of the figure have the ink of the page, and it is as wide as the page allows
    strokes = "[...document.querySelectorAll('svg path')].map(path => getComputedStyle(path).stroke)"
    assert ink in view.evaluate(strokes)
    widths = view.evaluate("[...document.querySelectorAll('svg')].map(svg => svg.getBoundingClientRect().width)")
    assert all(300 < width <= size["width"] for width in widths)
    assert view.evaluate("document.querySelector('.verdict').getBoundingClientRect().bottom") < size["height"]
    view.close()


def test_on_paper_it_is_light(chromium, page):
    view = chromium.new_page(color_scheme="dark")
    view.set_content(page)
    view.emulate_media(media="print", color_scheme="dark")
    assert view.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    view.close()
