"""What all tests share: where compiled kernels are kept, how hypothesis draws, a browser."""

import os
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from looks import ALONE, DESK, at_a_desk, on_a_phone, once
from pages import CHROMIUM, HTML, PHONE, serve

ROOT = Path(__file__).parents[1]

# Several workers share the cores: threads within one would only get in each other's way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["COLUMNS"] = "100"  # texts are not folded to the terminal on which the tests run


def pytest_configure():
    os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / "_build" / "numba"))  # as in the Makefile


settings.register_profile("rbal", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("rbal")
# Hypothesis also draws constants that it finds in imported modules, even with derandomize. Workers import different
# modules, so that without this line the same test draws other values from run to run.
providers.is_local_module_file = lambda path: False


@pytest.fixture(scope="session")
def origin():
    """Address of the built book."""
    with serve(HTML) as address:
        yield address


@pytest.fixture(scope="session")
def chromium():
    """A headless browser."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine, so nothing is opened in a browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", ALONE])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def browser(chromium):
    """The same, for pages of the book that carry their assets."""
    if not (HTML / "_static" / "vendor").exists():
        pytest.skip("the book was built without npm, so its pages load their assets from CDNs")
    return chromium


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A folder of this run, the same for all workers."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own


@pytest.fixture(scope="session")
def desk(browser, origin, shared):
    """What a page of the book is like at a desk; each is opened once, by the first worker that asks."""
    with browser.new_context(viewport=DESK) as context:
        yield once(at_a_desk, context, origin, shared)


@pytest.fixture(scope="session")
def phone(browser, origin, shared):
    """What a page of the book is like on a phone."""
    with browser.new_context(viewport=PHONE) as context:
        yield once(on_a_phone, context, origin, shared)
