import html
import io
import json
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning

import rbal
import rbal_book.widgets  # noqa: F401 - adds the data of the book
from rbal import strategies, widgets
from rbal.advice import advise_file
from rbal.datasets import synthetic
from rbal.widgets import _canvas, _curves, _data, _explorer, _mixing, _points, _table

KINDS = {
    "metrics": widgets.metrics,
    "tradeoff": widgets.tradeoff,
    "mixing": widgets.mixing,
    "margins": widgets.margins,
    "phases": widgets.phases,
    "own_data": widgets.own_data,
    "simulate": widgets.simulate,
    "widths": widgets.widths,
}
KNOB = {kind: "C" if kind == "own_data" else "kappa" for kind in KINDS}
SPINS = rbal.Moments.ising(m=0.4, delta=1.0, L=100)


def pixels(ui):
    return np.asarray(Image.open(io.BytesIO(ui.picture.value)).convert("RGB")).astype(int)


def drawn(line):
    return np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)


def quiet(ui):
    """Nothing is wrong, and nothing is said."""
    return ui.error == "" and ui._message.value == ""


# ---- what a widget is


def test_import_only_when_asked():
    loaded = "'ipywidgets' in sys.modules"
    code = f"import sys, rbal; dir(rbal); print({loaded}); rbal.widgets; print({loaded})"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert out.split() == ["False", "True"]


@pytest.mark.parametrize("kind", KINDS)
def test_is_a_box_with_named_controls_and_a_picture(kind):
    ui = KINDS[kind]()
    assert quiet(ui)
    assert "application/vnd.jupyter.widget-view+json" in ui._repr_mimebundle_()
    for name, control in ui.controls.items():
        assert getattr(ui, name) is control
        assert control.description
    image = pixels(ui)
    width, height = ui.canvas.figure.get_size_inches()
    scale = _canvas.CSS_DPI * _canvas.SHARPNESS
    assert abs(image.shape[0] - height * scale) < 1.5
    assert abs(image.shape[1] - width * scale) < 1.5
    assert (image[0, 0] == 255).all()  # white ground, exactly
    assert (image != 255).any()
    assert ui.summary.value


@pytest.mark.parametrize("kind", KINDS)
def test_frame_is_what_matplotlib_saves(kind):
    # the frame is pieced together from a kept background and moving artists; savefig draws all of it at once
    ui = KINDS[kind]()
    getattr(ui, KNOB[kind]).value = 0.7
    file = io.BytesIO()
    with _canvas.book_style():
        ui.canvas.figure.savefig(file, format="png", dpi=ui.canvas.figure.dpi)
    whole = np.asarray(Image.open(file).convert("RGB")).astype(int)
    off = np.abs(whole - pixels(ui)).max(axis=2)
    assert whole.std() > 10.0
    assert np.mean(off > 24) < 2e-3  # the palette has 20 shades of each colour
    assert off.mean() < 1.0


def test_does_not_touch_the_style_or_the_figures_around(monkeypatch):
    import matplotlib.pyplot as plt

    before, figures = dict(plt.rcParams), plt.get_fignums()
    widgets.phases().kappa.value = 1.0
    assert dict(plt.rcParams) == before
    assert plt.get_fignums() == figures


@pytest.mark.parametrize("kind", ["metrics", "tradeoff", "mixing", "margins", "phases", "simulate"])
def test_same_picture_whatever_the_style_around(kind):
    import matplotlib.pyplot as plt

    plain = pixels(KINDS[kind]())
    with plt.style.context(["dark_background", {"font.size": 22, "font.family": "serif", "lines.linewidth": 9}]):
        assert np.array_equal(pixels(KINDS[kind]()), plain)


# ---- arguments


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("metrics", {"kappa": -1.0}, "kappa must be >= 0 and <= 6, got -1"),
        ("metrics", {"alpha": 1e3}, "alpha must be >= 0.1 and <= 100, got 1000"),
        ("metrics", {"phi_pos": 0.0}, "phi_pos must be >= 0.01 and <= 0.99, got 0"),
        ("metrics", {"separation": -0.1}, "separation must be >= 0, got -0.1"),
        ("metrics", {"show": ["ba", "accuracy"]}, "show must be one of 'ba', 'acc'.* got 'accuracy'"),
        ("metrics", {"data": "cifar"}, "data must be one of 'ising', 'random'.* got 'cifar'"),
        ("tradeoff", {"alpha_pos": 0.0}, "alpha_pos must be >= 0.1"),
        ("mixing", {"metric": "loss"}, "metric must be one of"),
        ("margins", {"kappa_neg": 7.0}, "kappa_neg must be >= 0 and <= 6, got 7"),
        ("margins", {"threshold": 7.0}, "threshold must be >= -6 and <= 6, got 7"),
        ("phases", {"kappa": np.nan}, "kappa must be finite"),
        ("simulate", {"L": 33}, "L must be one of 25, 50, 100, 200, got 33"),
        ("simulate", {"trials": 0}, "trials must be >= 1"),
        ("own_data", {"loss": "cube"}, "loss must be one of 'hinge', 'squared_hinge', 'square', 'logistic', got"),
        ("own_data", {"C": 0.0}, "C must be >= 0.0001 and <= 10000, got 0"),
        ("own_data", {"table": pd.DataFrame({"a": [1.0]}), "label": "b"}, "label must be one of 'a', got 'b'"),
    ],
)
def test_arguments_are_checked(kind, arguments, message):
    with pytest.raises(ValueError, match=message):
        KINDS[kind](**arguments)


def test_data_must_have_moments():
    with pytest.raises(TypeError, match=r"data must be a rbal\.Moments, have moments, or be a name, got int"):
        widgets.metrics(3)
    with pytest.raises(TypeError, match=r"table must be a pandas\.DataFrame, got list"):
        widgets.own_data([1, 2])


@pytest.mark.parametrize("wrap", [lambda classes: classes, lambda classes: classes.moments])
def test_own_moments(wrap):
    classes = synthetic.random_gaussian(3, L=40)
    ui = widgets.metrics(wrap(classes), kappa=0.5, alpha=3.0, rho_pos=0.3)
    want = rbal.solve(classes.moments, 0.9, 2.1, 0.5).metrics
    assert ui.curves["point"]["ba"] == pytest.approx(want.ba(), abs=1e-9)
    assert ui.data.options[0][0] == "the moments given"


# ---- data


@pytest.mark.parametrize("name", _data.SOURCES)
def test_every_source_can_be_chosen(name):
    ui = widgets.phases()
    ui.data.value = name
    assert quiet(ui)
    moments = _data.named(name)
    assert ui.separation.value == pytest.approx(np.linalg.norm(moments.delta) / np.sqrt(moments.L), rel=1e-6)
    sol = rbal.solve(moments, ui.alpha_pos.value, ui.alpha_neg.value, ui.kappa.value)
    assert ui.curves["phase"] == sol.phase
    assert ui.curves["ba"] == pytest.approx(sol.metrics.ba(), abs=1e-9)


def test_the_same_data_as_in_the_browser():
    folder = Path(__file__).parents[2] / "book" / "_static" / "explorer" / "data"
    shipped = json.loads((folder / "moments.json").read_text())
    assert {key: data["name"] for key, data in shipped.items()} == {k: label for k, (label, _) in _data.SOURCES.items()}
    for key, data in shipped.items():
        moments = _data.named(key)
        assert (data["L"], data["Q"]) == (moments.L, moments.Q)
        assert np.sqrt(sum(data["s"])) == pytest.approx(_data.separation(moments), rel=1e-6)


def test_a_new_source_is_drawn_once(monkeypatch):
    ui = widgets.metrics()
    frames = []
    monkeypatch.setattr(ui.canvas, "draw", lambda: frames.append(ui.data.value))
    ui.data.value = "random"
    assert frames == ["random"]


@pytest.mark.parametrize("distance", [0.0, 0.5, 2.5])
def test_moved_apart(distance):
    def same(moved, direct):
        a, b = (rbal.solve(m, 1.0, 4.0, 0.7) for m in (moved, direct))
        np.testing.assert_allclose([a.q, a.r, a.b], [b.q, b.r, b.b], rtol=0, atol=1e-9)

    same(_data.separated(SPINS, distance), rbal.Moments.ising(m=0.4, delta=distance, L=100))
    base = synthetic.random_gaussian(1, L=30).moments
    half = base.delta * distance / np.linalg.norm(base.delta) / 2.0
    same(_data.separated(base, distance), rbal.Moments.real(half, -half, base._covariance))
    potts = synthetic.d2(1).moments
    direct = rbal.Moments.potts(potts.M, potts.delta * distance / _data.separation(potts))
    spread = _data.separated(
        rbal.Moments.potts(potts.M, potts.delta), distance * _data.separation(direct) / (distance or 1.0)
    )
    if distance:
        same(spread, direct)


def test_classes_that_coincide_cannot_be_moved_apart():
    same = rbal.Moments.real(np.zeros(5), np.zeros(5), np.ones(5))
    ui = widgets.metrics(same)
    assert quiet(ui)
    ui.separation.value = 0.1
    assert "equal means" in ui.error
    assert "equal means" in ui._message.value


# ---- metrics


def test_metrics_follow_every_control():
    ui = widgets.metrics(alpha=3.0, show=tuple(_curves.COLOURS))
    steps = [
        ("kappa", 0.4), ("alpha", 8.0), ("separation", 1.6), ("rho_pos", 0.7), ("tested_as_trained", False),
        ("phi_pos", 0.15), ("data", "random"), ("kappa", 2.0),
    ]  # fmt: skip
    for name, value in steps:
        before = ui.picture.value
        ui.controls[name].value = value
        assert quiet(ui), (name, value)
        assert ui.picture.value != before, name
        check_metrics(ui)


def check_metrics(ui):
    moments = _data.separated(_data.named(ui.data.value), ui.separation.value)
    alpha, kappa = ui.alpha.value, ui.kappa.value
    for i in (3, 32, 60):
        rho = ui.curves["rho_pos"][i]
        sol = rbal.solve(moments, alpha * rho, alpha * (1.0 - rho), kappa)
        phi = rho if ui.tested_as_trained.value else ui.phi_pos.value
        m = sol.metrics
        want = {
            "ba": m.ba(), "acc": m.acc(phi), "auc": m.auc(), "auprc": m.auprc(phi), "f1": m.f1(phi), "mcc": m.mcc(phi),
            "ppv": m.ppv(phi),
        }  # fmt: skip
        for name, value in want.items():
            x, y = drawn(ui.lines[name])
            assert x[i] == rho
            assert y[i] == pytest.approx(value, abs=1e-8), name
    here = ui.rho_pos.value
    point = rbal.solve(moments, alpha * here, alpha * (1.0 - here), kappa).metrics
    assert drawn(ui._dots["ba"]) == (pytest.approx([here]), pytest.approx([point.ba()], abs=1e-9))


def test_metrics_are_drawn_as_chosen():
    ui = widgets.metrics(show=["ba"])
    assert drawn(ui.lines["acc"])[0].size == 0
    assert "acc" not in ui.curves
    ui.show["acc"].value = True
    ui.show["ba"].value = False
    assert drawn(ui.lines["acc"])[0].size == _curves.POINTS
    assert drawn(ui.lines["ba"])[0].size == 0
    assert "ACC" in ui.summary.value
    assert "BA" not in ui.summary.value
    ui.show["acc"].value = False
    assert "no metric chosen" in ui.summary.value
    assert quiet(ui)


def test_separable_stretches_are_shaded():
    ui = widgets.metrics(kappa=0.5, alpha=2.0)
    sat = ui.curves["phase"] == "SAT"
    assert 0 < sat.sum() < sat.size
    boxes = [path.vertices[:, 0] for path in ui._sat.get_paths()]
    for rho, phase in zip(ui.curves["rho_pos"], ui.curves["phase"], strict=True):
        assert any(box.min() <= rho <= box.max() for box in boxes) == (phase == "SAT")


def test_a_message_from_the_page_moves_a_slider():
    ui = widgets.metrics()
    ui.kappa.set_state({"value": 0.25})  # what the front end sends
    assert ui.kappa.value == 0.25
    check = rbal.solve(SPINS, 4.0 * 0.2, 4.0 * 0.8, 0.25).metrics
    assert ui.curves["point"]["ba"] == pytest.approx(check.ba(), abs=1e-9)


# ---- trade-off


@pytest.mark.parametrize(("kappa", "data"), [(0.5, "random"), (1.0, "ising"), (3.0, "ising"), (5.0, "random")])
def test_window_against_root_finding(kappa, data):
    ui = widgets.tradeoff(data, kappa=kappa)
    moments = _data.named(data)

    def above(rho):
        return rbal.solve(moments, 2.0, 2.0 * rho / (1.0 - rho), kappa).metrics.ba() - 0.5

    gain = above(0.5)
    low, high = ui.curves["window"]
    assert low == pytest.approx(brentq(lambda rho: above(rho) - gain / 2, 0.021, 0.5), abs=1e-5)
    assert high == pytest.approx(brentq(lambda rho: above(rho) - gain / 2, 0.5, 0.979), abs=1e-5)
    assert ui.curves["width"] == pytest.approx(high - low, abs=1e-15)
    assert ui.curves["ba_at_balance"] == pytest.approx(0.5 + gain, abs=1e-9)
    box = ui._window.get_paths()[0].vertices[:, 0]
    assert (box.min(), box.max()) == pytest.approx((low, high))


def test_a_narrow_window_is_as_exact_as_a_wide_one():
    ui = widgets.tradeoff("ising", kappa=6.0)  # the share at the edge, to 1e-6, used to be all that was known of it
    width = ui.curves["width"]
    assert 1e-7 < width < 1e-6
    peak, edge = (rbal.solve(SPINS, 2.0, 2.0 * (1 + size), 6.0).metrics.ba() - 0.5 for size in (0.0, 2.0 * width))
    assert edge == pytest.approx(0.5 * peak, rel=1e-4)
    assert ui.curves["text"] == f"W = {width:.3g}"


def test_a_window_too_narrow_is_a_bound():
    even = rbal.Moments.real(np.full(50, 0.05), np.full(50, -0.05), np.full(50, 0.1))
    ui = widgets.tradeoff(even, kappa=6.0)
    assert ui.curves["width"] == 0.0
    assert "narrower than 1e-10" in ui.summary.value
    assert "W < 1e-10" in ui.curves["text"]
    near = rbal.solve(even, 2.0, 2.0 * (1 + 2e-10), 6.0).metrics.ba() - 0.5
    assert near < 0.5 * (ui.curves["ba_at_balance"] - 0.5)


def test_window_wider_than_the_picture():
    ui = widgets.tradeoff("ising", kappa=0.1, separation=2.0, alpha_pos=50.0)
    assert np.isnan(ui.curves["width"])
    assert "wider than the picture" in ui.summary.value
    assert quiet(ui)


def test_no_window_where_nothing_is_learnt():
    ui = widgets.tradeoff(separation=0.0)
    assert quiet(ui)
    assert ui.curves["width"] == 0.0
    assert ui.curves["ba_at_balance"] == pytest.approx(0.5, abs=1e-9)


def test_tradeoff_follows_every_control():
    ui = widgets.tradeoff()
    for name, value in (("kappa", 2.0), ("alpha_pos", 5.0), ("separation", 1.5), ("data", "mnist")):
        ui.controls[name].value = value
        assert quiet(ui)
        moments = _data.separated(_data.named(ui.data.value), ui.separation.value)
        for i in (2, 30, 50):
            x, y = drawn(ui.line)
            pos = ui.alpha_pos.value
            m = rbal.solve(moments, pos, pos * x[i] / (1 - x[i]), ui.kappa.value).metrics
            assert y[i] == pytest.approx(m.ba(), abs=1e-8)
            assert drawn(ui.moved_line)[1][i] == pytest.approx(m.best_ba(), abs=1e-8)
        assert ui.axes.get_ylim()[1] >= max(y.max(), 0.5)


def test_kept_curves_stay():
    ui = widgets.tradeoff(kappa=0.5)
    first = ui.curves["ba"].copy()
    ui.keep.click()
    ui.kappa.value = 3.0
    assert np.array_equal(drawn(ui._kept_lines[0])[1], first)
    assert not np.array_equal(ui.curves["ba"], first)
    for kappa in (1.0, 1.5, 2.0, 2.5):
        ui.kappa.value = kappa
        ui.keep.click()
    assert [kept["kappa"] for kept in ui.kept] == [1.0, 1.5, 2.0, 2.5]  # the oldest makes room
    ui.forget.click()
    assert ui.kept == []
    assert all(drawn(line)[0].size == 0 for line in ui._kept_lines)


# ---- mixing


@pytest.mark.parametrize(
    ("data", "pos", "neg", "kappa", "metric"),
    [
        ("ising", 0.2, 5.0, 0.5, "ba"),  # inside
        ("ising", 0.5, 5.0, 0.5, "ba"),  # at the end
        ("random", 0.3, 20.0, 1.0, "mcc"),
        ("ising", 6.0, 0.3, 0.5, "auc"),  # the positives are the majority
        ("potts", 1.0, 8.0, 1.0, "f1"),
    ],
)
def test_best_mixing(data, pos, neg, kappa, metric):
    ui = widgets.mixing(data, kappa=kappa, alpha_pos=pos, alpha_neg=neg, metric=metric)
    assert quiet(ui)
    best = strategies.best_mixing(_data.named(data), pos, neg, kappa, metric=metric)
    assert ui.curves["best_value"] == pytest.approx(best.value, abs=2e-6)
    # the curve is flat at its top: the place is known to where the value changes by 2e-6
    tight = strategies.best_mixing(_data.named(data), pos, neg, kappa, metric=metric, tolerance=4e-6)
    assert tight.low - 1e-3 <= ui.curves["best_mixing"] <= tight.high + 1e-3
    assert ui.curves["low"] == pytest.approx(best.low, abs=0.02)
    assert ui.curves["high"] == pytest.approx(best.high, abs=0.02)
    assert drawn(ui.star) == (pytest.approx([ui.curves["best_mixing"]]), pytest.approx([ui.curves["best_value"]]))


def test_mixing_follows_every_control():
    ui = widgets.mixing()
    steps = (
        ("kappa", 1.0),
        ("alpha_pos", 0.6),
        ("alpha_neg", 9.0),
        ("separation", 1.7),
        ("metric", "f1"),
        ("data", "random"),
    )
    for name, value in steps:
        ui.controls[name].value = value
        assert quiet(ui)
        moments = _data.separated(_data.named(ui.data.value), ui.separation.value)
        pos, neg, kappa = ui.alpha_pos.value, ui.alpha_neg.value, ui.kappa.value
        measure = (lambda m: m.f1(pos / (pos + neg))) if ui.metric.value == "f1" else (lambda m: m.ba())  # noqa: B023
        x, unsat = drawn(ui.line)
        _, sat = drawn(ui.sat_line)
        y = np.where(np.isnan(unsat), sat, unsat)
        for i in (0, x.size // 2, x.size - 1):
            c = 1.0 + x[i] * (neg / pos - 1.0)  # the minority c times, and as many of the majority
            sol = rbal.solve(moments, pos, c * pos, kappa, weight_pos=c)
            assert y[i] == pytest.approx(measure(sol.metrics), abs=1e-8)
        as_is = measure(rbal.solve(moments, pos, neg, kappa).metrics)
        assert drawn(ui.as_is_line)[1] == pytest.approx([as_is] * 2)


def test_nothing_to_mix():
    ui = widgets.mixing(alpha_pos=2.0, alpha_neg=2.0)
    assert quiet(ui)
    assert np.ptp(ui.curves["value"]) < 1e-9
    assert (ui.curves["low"], ui.curves["high"]) == (0.0, 1.0)


# ---- margins


def test_margins_follow_every_control():
    ui = widgets.margins()
    steps = [
        ("kappa", 0.6), ("alpha_pos", 3.0), ("alpha_neg", 9.0), ("separation", 1.8), ("threshold", -0.7),
        ("phi_pos", 0.4), ("fit_bias", False), ("data", "fashion"), ("fit_bias", True), ("kappa", 0.3),
        ("one_margin", False), ("kappa_neg", 1.2), ("fit_bias", False),
    ]  # fmt: skip
    for name, value in steps:
        ui.controls[name].value = value
        assert quiet(ui), (name, value)
        check_margins(ui)


def check_margins(ui):
    moments = _data.separated(_data.named(ui.data.value), ui.separation.value)
    options = {"fit_bias": ui.fit_bias.value}
    if ui.fit_bias.value and not ui.one_margin.value:
        options["kappa_neg"] = ui.kappa_neg.value
    sol = rbal.solve(moments, ui.alpha_pos.value, ui.alpha_neg.value, ui.kappa.value, **options)
    cut, phi = ui.threshold.value, ui.phi_pos.value
    # the scores of a large test set, and what counting makes of them
    z = np.random.default_rng(0).normal(size=(2, 200_000))
    scores = [y * sol.r / 2 - sol.b + np.sqrt(sol.variance) * noise for y, noise in zip((1, -1), z, strict=True)]
    (tpr, fnr), (fpr, tnr) = ui.curves["rates"]
    assert tpr == pytest.approx(np.mean(scores[0] > cut), abs=5e-3)
    assert fpr == pytest.approx(np.mean(scores[1] > cut), abs=5e-3)
    assert (tpr + fnr, fpr + tnr) == pytest.approx((1.0, 1.0))
    counts = ui.curves["counts"]
    assert counts.sum() == pytest.approx(_points.N_TEST)
    assert counts[0].sum() == pytest.approx(phi * _points.N_TEST)
    assert [text.get_text() for text in ui.counts] == [f"{n:.0f}" for n in counts.ravel()]
    # all pictures speak of the same cut
    assert drawn(ui.cut)[0] == pytest.approx([cut, cut])
    assert drawn(ui.roc_dot) == (pytest.approx([fpr]), pytest.approx([tpr]))
    precision = counts[0, 0] / counts[:, 0].sum()
    assert drawn(ui.prc_dot) == (pytest.approx([tpr]), pytest.approx([precision]))
    for line, dot in ((ui.roc_line, ui.roc_dot), (ui.prc_line, ui.prc_dot)):
        x, y = drawn(line)
        order = np.argsort(x, kind="stable")
        assert np.interp(*drawn(dot)[0], x[order], y[order]) == pytest.approx(drawn(dot)[1][0], abs=2e-2)
    for label, line in ui.lines.items():
        x, y = drawn(line)
        assert np.trapezoid(y, x) == pytest.approx(1.0, abs=2e-3)
        assert np.trapezoid(x * y, x) == pytest.approx(label * sol.r / 2 - sol.b, abs=5e-3 * (1 + abs(sol.b)))
    low, high = ui.score_axes.get_xlim()
    assert low < cut < high
    assert max(y.max() for y in (drawn(line)[1] for line in ui.lines.values())) < ui.score_axes.get_ylim()[1]


def test_margins_of_each_class_move_both_densities_as_one():
    ui = widgets.margins(kappa=1.0)
    before = dict(ui.curves)
    assert ui.kappa_neg.disabled
    other = widgets.margins(kappa=1.6, kappa_neg=0.4)  # the same mean
    assert (other.one_margin.value, other.kappa_neg.disabled) == (False, False)
    assert other.curves["b"] == pytest.approx(before["b"] - 0.6)
    for name in ("q", "r", "auc"):
        assert other.curves[name] == before[name]
    other.one_margin.value = True
    ui.kappa.value = 1.6
    assert other.curves["b"] == ui.curves["b"]


def test_the_wrong_side_is_shaded():
    ui = widgets.margins(threshold=0.3)
    (positive,), (negative,) = ui._tails[1].get_paths(), ui._tails[-1].get_paths()
    assert positive.vertices[:, 0].max() == pytest.approx(0.3)
    assert negative.vertices[:, 0].min() == pytest.approx(0.3)


# ---- phases


def test_phases_follow_every_control():
    ui = widgets.phases()
    for name, value in (
        ("kappa", 0.2),
        ("alpha_pos", 2.0),
        ("alpha_neg", 0.4),
        ("separation", 2.0),
        ("data", "random"),
    ):
        ui.controls[name].value = value
        assert quiet(ui)
        moments = _data.separated(_data.named(ui.data.value), ui.separation.value)
        pos, neg, kappa = ui.alpha_pos.value, ui.alpha_neg.value, ui.kappa.value
        critical = rbal.critical_margin(moments, pos, neg)
        assert ui.curves["critical_here"] == pytest.approx(critical, abs=1e-9)
        assert ui.curves["phase"] == ("SAT" if kappa < critical else "UNSAT")
        assert ui.curves["phase"] in ui.summary.value or ui.curves["phase"] in {"SAT", "UNSAT"}
        assert drawn(ui._dots[0]) == (pytest.approx([pos]), pytest.approx([neg]))
        assert drawn(ui._dots[1]) == (pytest.approx([pos + neg]), pytest.approx([kappa]))
        alpha, margin = drawn(ui.slice_line)
        rho = pos / (pos + neg)
        for i in (0, 10, 60):
            want = rbal.critical_margin(moments, rho * alpha[i], (1 - rho) * alpha[i])
            assert margin[i] == pytest.approx(want, abs=1e-9) if want > 0 else not margin[i] > 0
        for a, b in ui.curves["border"][:-1:7]:  # between points of a grid: half a percent of the size, say
            assert rbal.critical_margin(moments, a, b) == pytest.approx(kappa, abs=2e-2)


def test_constant_features_do_not_matter():
    rng = np.random.default_rng(4)
    variances, half = (
        np.append(rng.gamma(2.0, 0.5, 40), np.zeros(10)),
        np.append(rng.normal(size=40), np.zeros(10)) / 14,
    )
    moments = rbal.Moments.real(half, -half, variances)
    rest = moments.spectrum.without_free()
    assert moments.spectrum.g_null == pytest.approx(0.2)
    assert rest.g_null == 0.0
    assert rest.without_free() is rest
    size = np.geomspace(0.1, 0.5, 5)
    with_them, without = (rbal.critical_margin(m, size, 2 * size) for m in (moments, rest))
    assert (without > 0.0).all()
    np.testing.assert_allclose(with_them, without, atol=1e-9)
    # where no margin is positive, zero loss at κ = 0 comes from weights that answer nothing
    assert rbal.critical_margin(rest, 20.0, 20.0) < 0.0
    assert rbal.solve(moments, 20.0, 20.0, 0.0).phase == "COLLAPSED"


def test_surface_where_it_is_positive():
    size = np.geomspace(0.1, 10.0, 9)
    full = rbal.critical_margin(SPINS, size[:, None], size)
    plane = _points.margins_over(SPINS, size)
    assert np.array_equal(plane, plane.T)
    np.testing.assert_allclose(plane[full > 0], full[full > 0], atol=1e-9)
    assert (plane[full < 0] < 0.0).all()
    # next to a positive one every value is the true one, so that a border between them is in its place
    positive = full > 0
    near = np.zeros_like(positive)
    near[1:] |= positive[:-1]
    near[:, 1:] |= positive[:, :-1]
    np.testing.assert_allclose(plane[near], full[near], atol=1e-9)
    along = _points.margins_along(SPINS, 0.3 * size, 0.7 * size)
    want = rbal.critical_margin(SPINS, 0.3 * size, 0.7 * size)
    np.testing.assert_allclose(along[want > 0], want[want > 0], atol=1e-9)
    assert np.isnan(along[-1])


def test_the_surface_is_computed_when_it_changes(monkeypatch):
    ui = widgets.phases()
    planes = []
    exact = _points.margins_over
    monkeypatch.setattr(_points, "margins_over", lambda *args: planes.append(args) or exact(*args))
    ui.kappa.value = 1.0
    ui.alpha_pos.value = 1.0
    assert not planes
    ui.separation.value = 0.5
    assert len(planes) == 1


# ---- errors where they are seen


def test_errors_are_shown_and_go_away(monkeypatch):
    ui = widgets.margins()
    picture = ui.picture.value

    def broken(*_args, **_kwargs):
        raise RuntimeError("<b>no</b> solution & more")

    with monkeypatch.context() as patch:
        patch.setattr(_points.saddle, "solve", broken)
        ui.kappa.value = 2.0  # raises nothing
    assert ui.error == "<b>no</b> solution & more"
    assert "&lt;b&gt;no&lt;/b&gt; solution &amp; more" in ui._message.value
    assert 'role="alert"' in ui._message.value
    assert ui.picture.value == picture
    ui.kappa.value = 2.1
    assert quiet(ui)
    assert ui.picture.value != picture


def test_warnings_are_shown(monkeypatch):
    import warnings

    ui = widgets.metrics()
    exact = rbal.sweep

    def gaps(*args, **kwargs):
        warnings.warn("3 of 65 saddle points did not converge", ConvergenceWarning, stacklevel=2)
        return exact(*args, **kwargs)

    monkeypatch.setattr(_curves.saddle, "sweep", gaps)
    ui.kappa.value = 2.0
    assert ui.error == ""
    assert "3 of 65 saddle points did not converge" in ui._message.value


def test_no_solution_is_an_error_not_a_number(monkeypatch):
    ui = widgets.margins()
    lost = replace(rbal.solve(SPINS, 1.0, 1.0, 1.0), q=np.nan, r=np.nan, b=np.nan, converged=False)
    monkeypatch.setattr(_points.saddle, "solve", lambda *_args, **_kwargs: lost)
    ui.kappa.value = 2.0
    assert "no solution" in ui.error


def test_a_collapsed_score_has_no_density():
    ui = widgets.margins("fashion", alpha_pos=3.0, alpha_neg=9.0, kappa=0.0)
    assert "every sample gets the same score" in ui.error


# ---- a table of one's own


def csv(table, **options):
    return table.to_csv(index=False, **options).encode()


def give(ui, content, name="table.csv"):
    """What the front end sends when a file is chosen."""
    file = {"name": name, "type": "text/csv", "size": len(content), "content": memoryview(content)}
    ui.upload.value = ({**file, "last_modified": datetime(2026, 1, 1)},)


@pytest.fixture(scope="module")
def table():
    X, y = synthetic.random_gaussian(5, L=24, scale=2.0).sample(60, 200, 0)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(24)])
    return frame.assign(sick=np.where(y > 0, "yes", "no"))


FIRST = {"kernel": "linear", "moments": "pooled", "train": "none"}  # what the explorer asks for


def same_advice(ui, want):
    """What is shown and drawn is what ``rbal.advise`` says, to the last digits."""
    assert quiet(ui)
    pd.testing.assert_frame_equal(ui.advice.table, want.table, atol=1e-6)
    assert ui.advice.best == want.best
    assert html.escape(want.explain().split("\n")[0]) in ui.summary.value
    n_pos, n_neg, at = want.data.n_pos, want.data.n_neg, want.table["predicted"]
    drawn_at = {name: drawn(line) for name, line in ui.lines.items()}
    told = {"ba": at["as is", "trained"], "best_ba": at["as is", "moved"], "auc": want.table["auc"]["as is", "trained"]}
    for name, (x, y) in drawn_at.items():  # the curve itself, at the table's own imbalance
        assert y[x == n_pos / (n_pos + n_neg)] == pytest.approx([told[name]], abs=1e-6)
        assert drawn(ui._dots[name])[1] == pytest.approx([told[name]], abs=1e-6)
    x, y = drawn(ui.mixing_line)
    assert (x[0], x[-1]) == (0.0, 1.0)
    assert [y[0], y[-1]] == pytest.approx([at["undersampling", "trained"], at["oversampling", "trained"]], abs=1e-6)
    assert [*drawn(ui.star)] == pytest.approx(np.array([[want.mixing], [at["best mix", "trained"]]]), abs=1e-6)
    for row, line in ui.levels.items():
        assert drawn(line)[1] == pytest.approx([at[row]] * 2, abs=1e-6)


def test_the_numbers_are_those_of_advise(table):
    ui = widgets.own_data(table)
    X, y = table.drop(columns="sick"), table.sick
    assert (ui.label.value, ui.positive.value) == ("sick", "yes")  # the rarer class
    same_advice(ui, rbal.advise(X, y, C=1.0, **FIRST))
    ui.C.value = 0.01
    same_advice(ui, rbal.advise(X, y, C=0.01, **FIRST))
    ui.standardize.value = False
    same_advice(ui, rbal.advise(X, y, C=0.01, standardize=False, **FIRST))
    ui.positive.value = "no"
    same_advice(ui, rbal.advise(X, y, C=0.01, standardize=False, positive="no", **FIRST))


def test_the_curves_are_those_of_the_same_classifier(table):
    ui = widgets.own_data(table, C=0.1)
    moments, D, total = ui.advice.moments, 24, 260 / 24
    for name, line in ui.lines.items():
        x, y = drawn(line)
        for i in (0, 40, -1):
            options = {"model": "svm", "lam": 1.0 / (0.1 * D)}
            want = rbal.solve(moments, total * x[i], total * (1 - x[i]), **options).metrics
            assert y[i] == pytest.approx(getattr(want, name)(), abs=1e-7)


def mixed():
    """Numbers, gaps, levels and a column that never changes, with three healthy to one sick."""
    rng = np.random.default_rng(3)
    sick = rng.random(300) < 0.25
    frame = pd.DataFrame(rng.normal(size=(300, 8)) + 0.6 * sick[:, None], columns=[f"f{i}" for i in range(8)])
    frame = frame.assign(
        site=np.where(rng.random(300) < 0.3 + 0.4 * sick, "coast", np.where(rng.random(300) < 0.5, "hills", "town")),
        flag=rng.random(300) < 0.4, same=3.0, y=np.where(sick, "sick", "well"),
    )  # fmt: skip
    frame.loc[::17, "f3"] = np.nan
    frame.loc[5::31, "site"] = None
    return frame


def few():
    """More features than patients of the rarer class, where plugging in the sample moments is far too hopeful."""
    X, y = synthetic.random_gaussian(2, L=60, scale=1.0).sample(40, 160, 1)
    return pd.DataFrame(X, columns=[f"f{i}" for i in range(60)]).assign(y=np.where(y > 0, "sick", "well"))


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("frame", [mixed(), few()], ids=["mixed", "few"])
def test_an_uploaded_file_gets_what_the_command_says_of_it(frame, loss, tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(csv(frame))
    want = advise_file(path, "y", loss=loss, progress=False, C=1.0, **FIRST)
    ui = widgets.own_data(loss=loss)
    assert "Choose a table" in ui.summary.value
    give(ui, path.read_bytes())
    same_advice(ui, want)
    same_advice(widgets.own_data(frame, loss=loss), want)


def test_coding_is_said():
    ui = widgets.own_data(mixed())
    assert ui.advice.data.D == 8 + 3 + 1  # three levels
    for words in ("missing values imputed: ", "f3 (18)", "site (10)", "columns left out: same (constant)"):
        assert words in ui.summary.value


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\n\n  \n", "the file is empty"),
        (b"\xff\xfe\x00binary", "not a text file in UTF-8"),
        (b"a\x00b,c\n1,2\n", "not a text file"),
        (b"a,b,label\n", "a header but no rows"),
        (b"label\n" + 6 * b"1\n0\n", "no column varies"),
        (b"1.5,2.5,0\n1.0,3.0,1\n", "the first row must hold the names"),
        (b"a,label\n1,x\n2,y,3\n", "cannot be read as a table"),
        (b"label,a,b\n" + 6 * b"u,1,2\nv,3,4\n" + b"u,5\n", "line 14 of 'mine.csv' has 2 fields and the header 3"),
        (b"a,label\n1.5,x\n2.5,y\n3.5,z\n", "no column of this table holds exactly two values"),
        (b"a,label\n1,u\n2,u\n3,u\n4,v\n", "label 'v' has 1 rows"),
        (b"a,label\n" + 6 * b"7,u\n7,v\n", "no column varies"),
    ],
)
def test_bad_files_end_in_a_sentence(content, message, table):
    ui = widgets.own_data(table)
    before = ui.picture.value
    assert drawn(ui.lines["ba"])[0].size
    give(ui, content, "mine.csv")  # raises nothing
    assert message in ui.error
    assert 'role="alert"' in ui._message.value
    assert ui.curves == {}
    assert ui.advice is None
    give(ui, csv(table))  # and all is well with a good one
    assert quiet(ui)
    assert ui.picture.value == before


def test_no_curves_of_another_table_beside_an_error(table):
    ui = widgets.own_data(table)
    before = ui.picture.value
    give(ui, b"a,label\n1,u\n2,u\n3,u\n4,v\n")
    assert ui.error
    assert ui.picture.value != before
    assert all(drawn(line)[0].size == 0 for line in ui.lines.values())
    assert "balanced accuracy" not in ui.summary.value


@pytest.mark.parametrize("write", [{"sep": ";"}, {"sep": "\t"}, {"sep": "|"}])
def test_other_ways_to_write_a_table(write, table):
    ui = widgets.own_data()
    give(ui, b"\xef\xbb\xbf" + csv(table, **write))
    same_advice(ui, rbal.advise(table.drop(columns="sick"), table.sick, C=1.0, **FIRST))


def test_label_can_be_chosen(table):
    thirds = np.digitize(table.f0, np.quantile(table.f0, [1 / 3, 2 / 3]))
    ui = widgets.own_data(table.assign(three=thirds, old=(np.arange(260) % 3 == 0).astype(int)))
    assert (ui.label.value, ui.positive.value) == ("old", 1)  # the last column of two values
    ui.label.value = "sick"
    assert quiet(ui)
    assert [value for _, value in ui.positive.options] == ["yes", "no"]
    for name, says in (
        ("f0", "the label takes 260 values in 260 rows"),
        ("three", "the label takes 3 values, and these"),
    ):
        ui.label.value = name
        assert says in ui.error
        assert ui.curves == {}
    ui.label.value = "sick"
    assert quiet(ui)
    assert ui.curves


def test_usual_names_of_labels(table):
    assert _table.likely_label(table.assign(Class=["a", "b"] * 130, last=[0, 1] * 130)) == "Class"
    assert _table.likely_label(table.drop(columns="sick")) is None


def test_names_from_a_file_are_text_not_markup(table):
    evil = "<img src=x onerror=alert(1)>"
    ui = widgets.own_data()
    give(ui, csv(table.replace({"sick": {"yes": evil}}).assign(**{evil: "text"})))
    assert ui.error == ""
    assert "&lt;img" in ui.summary.value
    assert "<img" not in ui.summary.value
    give(ui, csv(pd.DataFrame({"a": [1.0, 2, 3], "label": ["u", "u", evil]})), name=f"{evil}.csv")
    assert evil in ui.error
    assert "<img" not in ui._message.value


def test_example():
    ui = widgets.own_data()
    ui.example.click()
    assert quiet(ui)
    assert ui.positive.value == "malignant"
    assert ui.advice.data.D == 30
    assert 0.9 < ui.curves["point"]["ba"] < 1.0


def test_few_features_are_called_rough(table):
    ui = widgets.own_data(table[["f0", "f1", "f2", "sick"]])
    assert "Only 3 independent features" in ui.summary.value


def test_a_classifier_with_one_answer_is_shaded():
    rng = np.random.default_rng(0)
    y = np.arange(3060) < 60
    ui = widgets.own_data(pd.DataFrame(rng.normal(size=(3060, 12)) + 0.2 * y[:, None]).assign(y=y))
    assert ui.curves["point"]["ba"] == 0.5
    assert len(ui._collapsed.get_paths()) >= 1
    assert ui._readout._words[10].get_text() == "one answer for all"


# ---- simulate


def test_trained_dots():
    ui = widgets.simulate(L=50, alpha=3.0, kappa=1.0, separation=1.5, rho_pos=0.3, trials=6, seed=11)
    ui.train.click()
    assert quiet(ui)
    ((share, mean, error, count),) = ui.curves["dots"]
    # the same by hand
    rng, classes, values = np.random.default_rng(11), synthetic.ising(m=0.4, delta=1.5, L=50), []
    for _ in range(6):
        X, y = classes.sample(45, 105, rng)
        clf = rbal.SphericalPerceptron(kappa=1.0, sat="typical", random_state=rng).fit(X, y)
        values.append(rbal.Metrics(*clf.order_parameters(classes.moments)).ba())
    assert (share, count) == (0.3, 6)
    assert mean == pytest.approx(np.mean(values), abs=1e-12)
    assert error == pytest.approx(np.std(values, ddof=1) / np.sqrt(6), abs=1e-12)
    assert drawn(ui.dots) == (pytest.approx([0.3]), pytest.approx([mean]))
    segment = ui.bars.get_segments()[0]
    assert segment[:, 1] == pytest.approx([mean - error, mean + error])
    assert np.sort(drawn(ui.single_dots)[1]) == pytest.approx(np.sort(values))
    assert ui.progress.layout.visibility == "hidden"
    assert not ui.train.disabled


def test_dots_accumulate_on_the_curve():
    ui = widgets.simulate("random", L=50, alpha=4.0, trials=8, seed=3)
    for rho in (0.3, 0.5, 0.3):
        ui.rho_pos.value = rho
        ui.train.click()
    dots = ui.curves["dots"]
    assert sorted(dots[:, 3]) == [8.0, 16.0]
    moments = ui.classes().moments
    for share, mean, error, _ in dots:
        want = rbal.solve(moments, 4.0 * share, 4.0 * (1 - share), 1.0).metrics.ba()
        assert abs(mean - want) < 4.0 * error + 0.01  # and a finite-size effect, L = 50
    assert "16 trained" in ui.summary.value


def test_one_dot_has_no_error_bar():
    ui = widgets.simulate(L=25, alpha=2.0, trials=1)
    ui.train.click()
    assert np.isnan(ui.curves["dots"][0, 2])
    assert "±" not in ui.summary.value
    assert quiet(ui)


def test_dots_belong_to_their_setting():
    ui = widgets.simulate(L=25, alpha=2.0, trials=2)
    ui.train.click()
    mean = ui.curves["dots"][0, 1]
    ui.kappa.value = 2.0
    assert len(ui.curves["dots"]) == 0
    ui.kappa.value = 1.0
    assert ui.curves["dots"][0, 1] == mean
    ui.metric.value = "auc"
    assert ui.curves["dots"][0, 1] != mean
    assert ui.axes.get_ylabel() == "AUC"
    ui.forget.click()
    assert ui.trials == {}
    assert drawn(ui.dots)[0].size == 0


def test_simulate_follows_every_control():
    ui = widgets.simulate(L=50)
    steps = (
        ("kappa", 0.5),
        ("alpha", 6.0),
        ("separation", 2.0),
        ("rho_pos", 0.5),
        ("L", 100),
        ("metric", "mcc"),
        ("data", "random"),
    )
    for name, value in steps:
        ui.controls[name].value = value
        assert quiet(ui)
        moments, alpha, kappa = ui.classes().moments, ui.alpha.value, ui.kappa.value
        assert moments.L == ui.L.value
        assert _data.separation(moments) == pytest.approx(ui.separation.value)
        x, y = drawn(ui.line)
        for i in (10, 45):
            m = rbal.solve(moments, alpha * x[i], alpha * (1 - x[i]), kappa).metrics
            want = m.mcc(x[i]) if ui.metric.value == "mcc" else m.ba()
            assert y[i] == pytest.approx(want, abs=1e-8)


def test_training_that_fails_is_shown(monkeypatch):
    ui = widgets.simulate(L=25, trials=2)

    def broken(*_args, **_kwargs):
        raise RuntimeError("did not train")

    monkeypatch.setattr("rbal.widgets._simulate.SphericalPerceptron", broken)
    ui.train.click()
    assert ui.error == "did not train"
    assert not ui.train.disabled


# ---- pieces


def test_rectangles():
    x = np.array([0.0, 1.0, 2.0, 4.0])
    boxes = _canvas.rectangles(x, np.array([True, False, True, True]))
    assert [(min(p[0] for p in box), max(p[0] for p in box)) for box in boxes] == [(0.0, 0.5), (1.5, 4.0)]
    assert _canvas.rectangles(x, np.zeros(4, bool)) == []


@pytest.mark.parametrize("values", [[0.51, 0.62], [0.5, 0.5], [0.999, 1.0], [-0.2, 0.9], [0.6, np.nan]])
def test_rounded_range_holds_the_values(values):
    low, high = _canvas.rounded(values)
    assert low < np.nanmin(values)
    assert np.nanmax(values) < high <= 1.02
    assert high - low >= 0.04


def test_palette_has_white_and_every_colour():
    table = np.reshape(_canvas.PALETTE.getpalette(), (-1, 3))
    for colour in ("#ffffff", *_canvas.COLOURS):
        want = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
        assert np.abs(table - want).max(axis=1).min() <= 3


def test_mixings_are_dense_where_the_best_may_be():
    grid = _mixing.mixings(200.0)
    assert (grid[0], grid[-1]) == (0.0, 1.0)
    assert (np.diff(grid) > 0).all()
    assert np.sum(grid < 0.02) > 5


def test_a_background_is_kept_until_the_range_changes():
    ui = widgets.mixing()
    kept = ui.canvas._background
    ui.canvas.draw()
    assert ui.canvas._background is kept
    ui.separation.value = 2.0  # a higher curve
    assert ui.canvas._background is not kept


def test_explorer_must_be_told_what_to_draw():
    with pytest.raises(NotImplementedError):
        _explorer.Explorer(1.0, 1.0, {})._update()


# ---- in a real kernel


@pytest.mark.slow
def test_in_a_kernel(tmp_path):
    nbclient = pytest.importorskip("nbclient")
    cells = ["import rbal\nfrom rbal import widgets\nall_of_them = {}"]
    for kind in KINDS:
        cells += [
            f"ui = all_of_them[{kind!r}] = widgets.{kind}()\nui",
            f"ui.{KNOB[kind]}.value = 0.5\nassert not ui.error\nprint(len(ui.picture.value) > 5000)",
        ]
    cells += ["ui = all_of_them['simulate']\nui.train.click()\nprint(len(ui.curves['dots']))"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [cell.outputs for cell in notebook.cells]
    assert not [o for out in outputs for o in out if o.output_type == "stream" and o.name == "stderr"]
    shown = [o for out in outputs for o in out if "application/vnd.jupyter.widget-view+json" in o.get("data", {})]
    assert len(shown) == len(KINDS)
    printed = [o.text for out in outputs for o in out if o.output_type == "stream"]
    assert printed == ["True\n"] * len(KINDS) + ["1\n"]
    # the state that a page needs to show them
    states = notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"].values()
    names = [state["model_name"] for state in states]
    assert names.count("ImageModel") == len(KINDS)
    assert names.count("FloatSliderModel") > len(KINDS)
