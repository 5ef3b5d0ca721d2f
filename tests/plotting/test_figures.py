"""Figures as SVG: the narrow version, the description, and the colours that the book makes of them."""

import html
import re
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from rbal_book import plotting
from rbal_book.plotting import _figures, _words

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def style():
    with mpl.rc_context():
        plt.switch_backend("agg")
        plotting.use_style()
        yield
        plt.close("all")


@pytest.fixture
def extension(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import figure_extension

    yield figure_extension
    sys.modules.pop("figure_extension", None)


def three_panels():
    x = np.linspace(0, 1, 101)
    fig, axes = plt.subplots(1, 3, figsize=(8.4, 3.1), sharey=True)
    for kappa in (0.5, 2.0):
        axes[0].plot(x, np.exp(-kappa * (x - 0.5) ** 2), color=plotting.margin_color(kappa), label=f"κ = {kappa:g}")
    for ax in axes:
        ax.set(xlabel=r"share of negatives, $\rho^-$")
    axes[0].set(ylabel="balanced accuracy")
    axes[0].legend(fontsize=7.5)
    return fig


def text_sizes(svg):
    """Points of all text: matplotlib scales letters of 100 units, and writes the size as their scale."""
    return [100 * float(scale) for scale in re.findall(r"scale\(([\d.]+) -[\d.]+\)", svg)]


def width(svg):
    return float(re.search(r'viewBox="0 0 ([\d.]+) ', svg)[1])


def test_a_narrow_version_stacks_the_panels_and_has_no_small_text(extension):
    wide, narrow, _ = extension.parts(_figures.svg(three_panels()))
    assert min(text_sizes(wide)) == pytest.approx(7.5)
    column = 335  # pixels, of a phone of 375
    assert min(text_sizes(narrow)) * column / width(narrow) >= 9
    assert width(wide) > 1.5 * width(narrow)
    assert len(re.findall('<g id="axes_', narrow)) == 3


def test_stacked_panels_have_the_labels_that_they_shared():
    fig = _figures.narrowed(three_panels())
    assert {ax.get_ylabel() for ax in fig.axes} == {"balanced accuracy"}
    FigureCanvasAgg(fig).draw()
    tops = [ax.get_position().y1 for ax in fig.axes]
    assert tops == sorted(tops, reverse=True)
    assert np.ptp([ax.get_position().x0 for ax in fig.axes]) < 0.02
    assert all(label.get_visible() for ax in fig.axes for label in ax.get_yticklabels())


def title(ax):
    return ax.get_title("left") + ax.get_title("center")


def test_stacked_panels_say_which_they_were():
    narrow = _figures.narrowed(three_panels())
    assert [title(ax) for ax in narrow.axes] == ["left", "middle", "right"]
    fig, axes = plt.subplots(2, 2, figsize=(8.4, 6))
    axes[0, 0].set_title("new points")
    axes[0, 1].set_title("training points, of which there are so many", loc="center")
    names = [title(ax) for ax in _figures.narrowed(fig).axes]
    assert names[::2] == ["top left: new points", "bottom left: new points"]
    assert names[1] == "top right:\ntraining points, of which there are so many"
    assert [title(ax) for ax in _figures.narrowed(plt.subplots(2, 1, figsize=(8, 6))[0]).axes] == ["", ""]


def test_a_moved_legend_shows_the_same_marks():
    fig, (ax, _) = plt.subplots(1, 2, figsize=(8.4, 3))
    ax.errorbar([0, 1], [0, 1], [0.1, 0.1], fmt="s", label="trained")
    ax.plot([0, 1], [0, 1], "--", label="theory")
    ax.legend()
    (legend,) = (one.get_legend() for one in _figures.narrowed(fig).axes if one.get_legend())
    lines = legend.findobj(mpl.lines.Line2D)
    assert [line.get_marker() for line in lines].count("s") == 1
    assert [line.get_linestyle() for line in lines].count("--") == 1


def test_rows_that_share_x_get_their_labels_too():
    fig, axes = plt.subplots(2, 2, sharex=True, figsize=(7.8, 5.6))
    for ax in axes[1]:
        ax.set_xlabel("size")
    fig = _figures.narrowed(fig)
    assert [ax.get_xlabel() for ax in fig.axes] == ["size"] * 4
    assert [ax.get_subplotspec().rowspan.start for ax in fig.axes] == [0, 1, 2, 3]


def test_the_figure_itself_is_left_alone():
    fig = three_panels()
    before = fig.get_size_inches().tolist(), [ax.get_ylabel() for ax in fig.axes], plt.get_fignums()
    _figures.svg(fig)
    assert (fig.get_size_inches().tolist(), [ax.get_ylabel() for ax in fig.axes], plt.get_fignums()) == before


def test_galleries_and_twins_stay_together():
    fig, axes = plt.subplots(2, 6, figsize=(8, 3))
    for ax in axes.flat:
        ax.imshow(np.eye(3))
        ax.set_axis_off()
    fig = _figures.narrowed(fig)
    assert fig.axes[0].get_subplotspec().get_gridspec().ncols == 6
    fig, (left, _) = plt.subplots(1, 2, figsize=(8, 3))
    twin = left.twinx()
    _figures.narrowed(fig)
    assert twin.get_subplotspec().rowspan == left.get_subplotspec().rowspan


@pytest.mark.parametrize("where", [{}, {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}])
def test_a_legend_goes_above_its_panel(where):
    fig, ax = plt.subplots(figsize=(7, 3))
    for name in "abcd":
        ax.plot([0, 1], label=f"curve {name}")
    ax.legend(**where)
    fig = _figures.narrowed(fig)
    FigureCanvasAgg(fig).draw()
    box = ax.get_legend().get_window_extent()
    assert box.y0 >= ax.bbox.y1 - 1
    assert box.x1 <= fig.bbox.x1
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [f"curve {name}" for name in "abcd"]


def test_many_points_become_a_picture():
    fig, ax = plt.subplots()
    ax.plot(*np.random.default_rng(0).normal(size=(2, 20_000)), ".")
    svg = _figures.svg(fig)
    assert len(svg) < 2 * _figures.LARGEST
    assert "data:image/png" in svg


def test_a_figure_that_cannot_be_copied_has_one_version(extension):
    fig, ax = plt.subplots()
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    wide, narrow, _ = extension.parts(_figures.svg(fig))
    assert narrow is None
    assert wide.rstrip().endswith("</svg>")


def test_the_same_figure_is_the_same_text():
    assert _figures.svg(three_panels()) == _figures.svg(three_panels())


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        (r"share, $\rho^-$", "share, ρ⁻"), (r"$\alpha^{+}$", "α⁺"), (r"$\tilde\lambda$", "λ"), ("plain", "plain"),
        (r"$L\eta/\|\delta\|^2$", "Lη/‖δ‖²"), (r"$\kappa_c$ + 1", "κ_c + 1"),
    ],
)  # fmt: skip
def test_labels_without_tex(label, expected):
    assert _words.plain(label) == expected


def test_a_description_tells_axes_and_courses():
    words = _words.described(three_panels())
    assert words.startswith("Panel 1: balanced accuracy against share of negatives, ρ⁻: κ = 0.5: from 0.882 at 0, ")
    assert "highest 1 at 0.5, to 0.882 at 1" in words
    assert "Panel 3: balanced accuracy against share of negatives, ρ⁻." in words


def test_a_long_description_tells_names_alone():
    fig, axes = plt.subplots(1, 3)
    for ax in axes:
        for k in range(5):
            ax.plot(np.linspace(0, 1, 9), np.linspace(k, k + 1, 9), label=f"a curve with a long name {k}")
    words = _words.described(fig)
    assert "from" not in words
    assert words.count("a curve with a long name 4") == 3


def test_one_colour_a_margin():
    used = [plotting.margin_color(kappa) for kappa in (0.0, 0.3, 0.5, 1.0, 1.5, 2.0, 4.0)]
    assert len(set(used)) == len(used)
    assert plotting.margin_color(np.float64(2)) == plotting.margin_color(2.1) == plotting.PURPLE
    with pytest.raises(ValueError, match="kappa must be finite, got nan"):
        plotting.margin_color(np.nan)


PALETTE = [plotting.BLUE, plotting.VERMILLION, plotting.GREEN, plotting.PURPLE, plotting.ORANGE, plotting.SKY]


def test_colours_are_read_and_told_apart_in_the_dark(extension):
    dark = [extension.in_the_dark(color) for color in [*PALETTE, plotting.BLACK]]
    assert all(extension.contrast(color, extension.DARK_GROUND) >= extension.CONTRAST for color in dark)
    for k, one in enumerate(dark):
        for other in dark[:k]:
            assert np.abs(np.subtract(extension.rgb_of(one), extension.rgb_of(other))).max() > 0.15
    ink = [extension.in_the_dark(color) for color in ("#222222", "#444444")]
    assert all(extension.contrast(color, extension.DARK_GROUND) > 7 for color in ink)
    assert extension.in_the_dark("#FFFFFF") == extension.DARK_GROUND


def test_no_ground_and_no_light_ink_are_left_in_the_dark(extension):
    fig = three_panels()
    fig.axes[1].plot([0, 1], [0, 1], color="black", marker="o", mfc="black")
    found, words = extension.versions(_figures.svg(fig))
    assert set(found) == {"-light", "-dark", "-narrow-light", "-narrow-dark"}
    assert words == _words.described(fig)
    for svg, _ in found.values():
        assert "ground-" not in svg
        assert "rbal-" not in svg
    for ending in ("-dark", "-narrow-dark"):
        colors = set(re.findall(r"#[0-9a-f]{6}\b", found[ending][0].lower()))
        colors = {color for color in colors if f'"{color}"' not in found[ending][0]}  # names of shapes
        assert all(extension.contrast(color, extension.DARK_GROUND) >= 3 for color in colors), colors


def test_scales_of_colour_stay_as_they_are(extension):
    fig, ax = plt.subplots()
    mesh = ax.pcolormesh(np.arange(12.0).reshape(3, 4))
    ax.plot([0, 4], [0, 3], color="white")
    ax.annotate("", (1, 1), (2, 2), arrowprops={"color": "white"})
    fig.colorbar(mesh)
    found, _ = extension.versions(_figures.svg(fig))
    light, dark = (found[ending][0] for ending in ("-light", "-dark"))
    pictures = [re.findall(r"data:image/png;base64,([^\"]+)", svg) for svg in (light, dark)]
    assert pictures[0] == pictures[1] != []
    assert light.count("#fefefe") == dark.count("#fefefe") >= 2


def test_words_on_a_picture_stay_dark(extension):
    fig, ax = plt.subplots()
    ax.imshow(np.eye(2), cmap="Blues", vmax=2)
    ax.text(0, 0, "99")
    ax.set_title("apart")
    found, _ = extension.versions(_figures.svg(fig))
    light, dark = (found[ending][0] for ending in ("-light", "-dark"))
    assert light.count("#010101") == dark.count("#010101") == 1


def test_what_stands_inside_survives_the_way(extension):
    fig, ax = plt.subplots()
    ax.plot(range(9), label="a < b & c > d")
    ax.legend()
    svg = _figures.svg(fig)
    _, narrow, words = extension.parts(svg)
    assert "a < b & c > d" in words
    assert narrow.startswith("<svg")
    assert html.unescape(narrow).count("</svg>") == 1


def test_notebooks_show_figures_as_svg():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    _figures.show_as_svg(shell)
    shown, _ = shell.display_formatter.format(three_panels())
    assert "image/png" not in shown
    assert shown["image/svg+xml"].startswith("<svg")


def test_axes_that_are_placed_by_hand_stay_there(recwarn):
    """A copy for phones is laid out as the figure is, and says nothing."""
    fig = plt.figure(figsize=(5.4, 3.6), layout="none")
    fig.add_axes([0, 0, 1, 1], projection="3d").plot([0, 1], [0, 1], [0, 1])
    assert "<rbal-narrow>" in _figures.svg(fig)
    assert not recwarn.list
