"""What a figure shows, in words, for readers who do not see it."""

import re
import unicodedata

import numpy as np

LINES = 6  # described one by one in a panel; of more, the names are told
LONGEST = 700  # characters; where it would be more, the names of all curves are told and not their courses
RAISED = str.maketrans("0123456789+-−*", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻*")
SIGNS = {
    "approx": "≈", "cdot": "·", "geq": "≥", "infty": "∞", "langle": "⟨", "leq": "≤", "partial": "∂", "pm": "±",
    "rangle": "⟩", "star": "*", "sqrt": "√", "times": "×", "to": "→", "varphi": "φ", "varrho": "ϱ", "vartheta": "ϑ",
    "lambda": "λ", "Vert": "‖", "lVert": "‖", "rVert": "‖", "|": "‖",
}  # fmt: skip


def plain(text):
    r"""Give a label of matplotlib without its TeX: ``$\rho^-$`` becomes ρ⁻."""

    def sign(found):
        name = found[1]
        if name in SIGNS:
            return SIGNS[name]
        kind = "CAPITAL" if name[0].isupper() else "SMALL"
        try:
            return unicodedata.lookup(f"GREEK {kind} LETTER {name.upper()}")
        except KeyError:
            return " "

    def formula(found):
        inner = re.sub(r"\\(?:mathbf|boldsymbol|mathrm|rm|mathcal|mathit|hat|tilde|bar)\b\s*", "", found[1])
        inner = re.sub(r"\\([A-Za-z]+|\|)", sign, inner)
        inner = re.sub(r"\^\{?([0-9+\-−*]+)\}?", lambda part: part[1].translate(RAISED), inner)
        return re.sub(r"[{}\\]", "", inner)

    return " ".join(re.sub(r"\$([^$]*)\$", formula, text).split())


def _number(value):
    return f"{value:.3g}".replace("-", "−")


def _course(x, y):
    """Say where a line starts, where it has its greatest or least value within, and where it ends."""
    seen = np.isfinite(x) & np.isfinite(y)
    x, y = x[seen], y[seen]
    if len(y) < 2:
        return f"at {_number(y[0])}" if len(y) else "outside"
    y = np.where(np.abs(y) < 1e-3 * np.ptp(y), 0.0, y)  # what the eye does not tell from zero
    text = f"from {_number(y[0])} at {_number(x[0])}"
    reach = 0.05 * (np.ptp(y) or 1.0)
    for at, word in ((np.argmax(y), "highest"), (np.argmin(y), "lowest")):
        if min(abs(y[at] - y[0]), abs(y[at] - y[-1])) > reach:
            text += f", {word} {_number(y[at])} at {_number(x[at])}"
    return f"{text}, to {_number(y[-1])} at {_number(x[-1])}"


def _values(line):
    try:
        return (np.asarray(data, float) for data in (line.get_xdata(), line.get_ydata()))
    except (TypeError, ValueError):  # names, or dates
        return np.zeros(0), np.zeros(0)


def _curves(ax, courses):
    """Say how the labelled curves of a panel run, or what they are called, or how many there are."""
    handles, labels = ax.get_legend_handles_labels()
    lines = [
        (plain(label), handle) for handle, label in zip(handles, labels, strict=True) if hasattr(handle, "get_xdata")
    ]
    drawn = [(label, line) for label, line in lines if len(line.get_xdata()) > 4 and line.get_linestyle() != "None"]
    if courses and 0 < len(drawn) <= LINES:
        return "; ".join(f"{label}: {_course(*_values(line))}" for label, line in drawn)
    names = list(dict.fromkeys(plain(label) for label in labels))
    if names:
        return f"shown are {', '.join(names)}"
    plain_lines = [line for line in ax.get_lines() if len(line.get_xdata()) > 4 and line.get_linestyle() != "None"]
    if courses and 0 < len(plain_lines) <= 2:
        return "; ".join(f"a line {_course(*_values(line))}" for line in plain_lines)
    return f"{len(plain_lines)} lines" if plain_lines else ""


def _label(ax, axis):
    """Label of an axis ("x" or "y"), or of one that shares its scale."""
    sharing = getattr(ax, f"get_shared_{axis}_axes")().get_siblings(ax)
    labels = [plain(getattr(one, f"get_{axis}label")()) for one in (ax, *sharing)]
    return next(filter(None, labels), "")


def _panel(ax, courses):
    """One sentence on a panel; empty for a picture without words."""
    title = plain(ax.get_title() or ax.get_title("left") or ax.get_title("right"))
    across, up = _label(ax, "x"), _label(ax, "y")
    subject = f"{up} against {across}" if across and up else up or across
    subject = ", ".join(part for part in (title, subject) if part)
    return ": ".join(part for part in (subject, _curves(ax, courses) if ax.axison else "") if part)


def described(fig):
    """Describe a figure: each panel's axes, and the course of its labelled curves.

    Parameters
    ----------
    fig : matplotlib Figure

    Returns
    -------
    str
        Empty if the figure holds no words at all.
    """
    text = _told(fig, courses=True)
    return text if len(text) <= LONGEST else _told(fig, courses=False)


def _told(fig, courses):
    bars = [ax for ax in fig.axes if hasattr(ax, "_colorbar")]
    panels = [words for ax in fig.axes if ax not in bars and (words := _panel(ax, courses))]
    scales = [f"Colours show {words}" for ax in bars if (words := plain(ax.get_ylabel() or ax.get_xlabel()))]
    if len(panels) > 1:
        panels = [f"Panel {number}: {words}" for number, words in enumerate(panels, 1)]
    text = ". ".join([*panels, *scales])
    return f"{text}." if text else ""
