"""Interactive explorations of the theory for Jupyter and Binder.

Each function returns an ``ipywidgets`` box for a notebook to show. Every control is an attribute of it
(``ui.kappa.value = 1.0`` moves a slider), and ``ui.curves`` holds the numbers behind the picture. Without a kernel,
the same explorations run in the pages of the book.
"""

from .._support.extras import needs

with needs("widgets", "rbal.widgets"):
    from ._curves import metrics, tradeoff
    from ._mixing import mixing
    from ._own_data import own_data
    from ._points import margins, phases
    from ._simulate import simulate
    from ._widths import widths

__all__ = ["margins", "metrics", "mixing", "own_data", "phases", "simulate", "tradeoff", "widths"]
