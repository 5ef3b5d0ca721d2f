"""Packages that an extra of the installation brings."""

import contextlib

PLOT = ("matplotlib", "contourpy")
PACKAGES = {"plot": PLOT, "widgets": ("ipywidgets", *PLOT), "parquet": ("pyarrow",)}


@contextlib.contextmanager
def needs(extra, what):
    """Import packages of an extra in this block: where one is missing, the error has the line for pip."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = error.name.partition(".")[0]
        if package not in PACKAGES[extra]:
            raise
        raise ImportError(f"{what} needs {package}, which is not installed: pip install 'rbal[{extra}]'") from None
