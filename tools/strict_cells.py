"""pytest plugin for chapters under nbval: a cell that writes on stderr fails here, as it does in the book."""

import pytest
from nbval.plugin import IPyNbCell, NbCellError


def written(outputs):
    """All that a cell wrote on stderr."""
    return "".join(output["text"] for output in outputs if output.get("name") == "stderr")


@pytest.hookimpl(wrapper=True, trylast=True)  # within keep_runs, which keeps only what passed
def pytest_runtest_call(item):
    """Run the cell, then look at its outputs."""
    outcome = yield
    if isinstance(item, IPyNbCell) and (text := written(item.test_outputs)):
        raise NbCellError(item.cell_num, "this cell wrote on stderr, which fails the book", item.cell.source, text)
    return outcome
