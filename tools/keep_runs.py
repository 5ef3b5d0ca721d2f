"""pytest plugin of ``make test-notebooks``: what a chapter shows under nbval goes into the cache of the book.

So ``make test`` runs every chapter once, and the pages that it then walks show the very run that was compared.
"""

import time

import execute
import nbformat
import pytest
import schedule
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from nbval.plugin import IPyNbCell

MEMORY = {}  # the file of a chapter -> the watch over its memory
RUNS = {}  # the file of a chapter -> {number of a cell that passed: (its outputs, its seconds)}


def with_history(kernel):
    """Run cells as Jupyter does: without a history, as nbval has it, IPython shows what a semicolon should hide."""
    execute_plain = kernel.kc.execute
    kernel.kc.execute = lambda code, **options: execute_plain(code, **(options | {"store_history": True}))


def executed(notebook, runs, language_info):
    """The chapter with what its cells gave."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code):
        cell.outputs = nbformat.from_dict(runs[number][0])
        cell.execution_count = number + 1
    notebook.metadata["language_info"] = language_info
    return notebook


def keep(chapter, megabytes):
    """Put a chapter all of whose cells passed into the cache."""
    path = execute.ROOT / "notebooks" / f"{chapter.path.stem}.md"
    notebook = execute.read(path)
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    if sources != [cell.source for cell in chapter.nb.cells if cell.cell_type == "code"]:
        return  # the file has changed since it was converted
    info = chapter.kernel.kc.kernel_info(reply=True, timeout=10)["content"]["language_info"]
    result = executed(notebook, RUNS[chapter], info)
    seconds = sum(spent for _, spent in RUNS[chapter].values())
    bundle = CacheBundleIn(result, str(path), data={"execution_seconds": seconds})
    get_cache(execute.cache_folder()).cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    schedule.remember(str(path.relative_to(execute.ROOT)), seconds, megabytes)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Note the outputs of a cell that passed; after the last, keep the chapter."""
    if isinstance(item, IPyNbCell) and item.parent not in RUNS:
        RUNS[item.parent] = {}
        MEMORY[item.parent] = schedule.Memory().start()
        with_history(item.parent.kernel)
    start = time.perf_counter()
    outcome = yield
    if isinstance(item, IPyNbCell):
        runs = RUNS[item.parent]
        runs[item.cell_num] = item.test_outputs, time.perf_counter() - start
        if len(runs) == sum(cell.cell_type == "code" for cell in item.parent.nb.cells):
            keep(item.parent, MEMORY[item.parent].stop())
    return outcome
