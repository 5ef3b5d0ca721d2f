"""Sphinx extension: the meaning of a symbol where the pointer rests on it, in every formula of the book.

The rows of book/notation.md become the script ``_static/symbols.js``; previews.js finds the symbol under the pointer
and shows its row. A script, and not data to be fetched, so that it works for pages opened from a folder too.
"""

import html
import json
import re
from pathlib import Path

NOTATION = Path(__file__).resolve().parent.parent / "book" / "notation.md"
# The same row under another name: vectors, and a class by its name in place of ±.
ALSO = {
    r"\delta_i": [r"\boldsymbol\delta", r"\delta"],
    "J_i": [r"\mathbf J"],
    "M_i": [r"\mathbf M"],
    "C_{ij}": ["C"],
    r"\Delta^\pm": [r"\Delta"],
    r"\kappa_\pm": [r"\kappa_y"],
    r"\mathcal K_\pm": [r"\mathcal K_y"],
    "d_n^2": ["d_n"],
}
# Letters that other chapters use in their own way: shown in these alone, or not in those.
ONLY = {
    "k": ["kernels"],
    "K": ["kernels"],
    r"\phi": ["kernels"],
    "n": ["replicas", "cavity"],
    "R": ["replicas", "cavity"],
    "s": ["metrics_seen"],
    r"\psi": ["replicas", "cavity"],
    r"\pi": ["metrics_seen"],
    r"\tau": ["ensembles"],
    "Z": ["generative"],
    "F": ["generative"],
    r"\chi": ["lattice"],
    r"\mu": ["strategies", "likelihood_informed"],
    "D": ["replicas", "cavity", "solving", "metrics"],
    "T": ["tradeoff"],
    "g": ["metrics"],
    r"\sigma": ["probabilities"],
}
NEVER_IN = {"C": ["kernels", "likelihood_informed", "your_data"], "S": ["lattice", "parts"]}
ROW = re.compile(r"^\|(?P<symbol>[^|]*\$[^|]*)\|(?P<meaning>[^|]+)\|(?:(?P<code>[^|]*)\|)?$", re.MULTILINE)
# A formula.
NO_SYMBOL = re.compile(r"\\(langle|lVert|sum|tfrac|frac|log|cdot|Diff)(?![a-z])| [+-] |(?<!\d)/(?!\d)|^\W*$")
ROLE = re.compile(r"\s*\(\{(?:eq|ref)\}`[^`]*`\)|;? ?\{(?:eq|ref)\}`[^`]*`")


def names(cell):
    r"""TeX of each symbol that a cell of the table explains, without definitions and arguments.

    >>> names(r"$\alpha^+ = P/L,\ \alpha^- = N/L$")
    ['\\alpha^+', '\\alpha^-']
    >>> names(r"$\mathcal E_{\rm train},\ \mathcal L_{\rm train}$")
    ['\\mathcal E_{\\rm train}', '\\mathcal L_{\\rm train}']
    >>> names(r"$k(\mathbf s, \mathbf s') = \phi(\mathbf s)\cdot\phi(\mathbf s')$")
    ['k']
    """
    found = []
    for formula in re.findall(r"\$([^$]+)\$", cell):
        for part in re.split(r"[,;]\\ ", formula):
            symbol = re.split(r"=|\\sim", part)[0]
            while (bare := re.sub(r"\([^()]*\)", "", symbol)) != symbol:  # arguments
                symbol = bare
            symbol = symbol.strip()
            if symbol and not NO_SYMBOL.search(symbol):
                found.append(symbol)
    return found


def spellings(symbol):
    r"""All ways in which texts write a symbol: its aliases, and + or - or y for the sign.

    >>> spellings(r"\rho^\pm")
    ['\\rho^\\pm', '\\rho^+', '\\rho^-', '\\rho^y']
    """
    every = [symbol, *ALSO.get(symbol, [])]
    return every + [name.replace(r"\pm", sign) for name in every if r"\pm" in name for sign in "+-y"]


def as_html(cell):
    """A cell of the table: its formulas for MathJax, its code, no references."""
    text = html.escape(ROLE.sub("", cell).strip(), quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return re.sub(r"\$([^$]+)\$", r'<span class="math">\\(\1\\)</span>', text)


def table(text):
    """Rows of the page of notation that explain a symbol: its spellings, what to show, and where."""
    rows = []
    for row in ROW.finditer(text.split("(sec-notation-local)=")[0]):
        meaning, code = as_html(row["meaning"]), as_html(row["code"] or "")
        shown = f'<p><span class="rbal-symbol">{as_html(row["symbol"])}</span> {meaning}</p>'
        shown += f"<p>In rbal: {code}</p>" if code else ""
        for symbol in names(row["symbol"]):
            entry = {"names": spellings(symbol), "html": shown}
            if symbol in ONLY:
                entry["only"] = ONLY[symbol]
            for name in NEVER_IN.keys() & set(entry["names"]):
                entry["never"] = NEVER_IN[name]
            rows.append(entry)
    return rows


def write(app):
    """Write the script beside the others, before pages ask for it."""
    if app.builder.format != "html":
        return
    folder = Path(app.outdir) / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    rows = json.dumps(table(NOTATION.read_text(encoding="utf-8")), ensure_ascii=False)
    (folder / "symbols.js").write_text(f"window.rbalSymbols = {rows};\n", encoding="utf-8")


def setup(app):
    """Load the script on every page, before the previews."""
    app.add_js_file("symbols.js", loading_method="defer", priority=400)
    app.connect("builder-inited", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
