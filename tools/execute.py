"""Run the pages of the book that hold code, some at a time, into the cache that the build then takes every result from.

``python tools/execute.py 2`` runs two at a time. A result is kept as soon as its page is done, so an interrupted run
goes on where it stopped; a page that fails is shown with its error, and the others still run.
"""

import sys
from concurrent.futures import ProcessPoolExecutor, as_completed

import digest
import yaml
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution
from myst_nb.core.config import NbParserConfig
from myst_nb.core.read import create_nb_reader
from myst_parser.config.main import MdParserConfig

ROOT = digest.ROOT


def cache_folder(root=ROOT):
    """Folder of the results for this state of rbal/: the cache by itself would only watch the cells."""
    return root / "_build" / ".jupyter_cache" / digest.outputs(root)


def listed(entry):
    """Names of all files in a table of contents, in order."""
    if isinstance(entry, list):
        return [name for item in entry for name in listed(item)]
    if isinstance(entry, dict):
        own = [entry[key] for key in ("root", "file") if key in entry]
        return own + [name for key in ("parts", "chapters", "sections") for name in listed(entry.get(key, []))]
    return []


def read(path):
    """The page as the build reads it, or None if it is plain prose."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    markdown = MdParserConfig(enable_extensions=config["parse"]["myst_enable_extensions"])
    text = path.read_text(encoding="utf-8")
    reader = create_nb_reader(str(path), markdown, NbParserConfig(), text)
    return reader and reader.read(text)


def pages():
    """Map path to notebook for every page of the table of contents that holds code."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    paths = [ROOT / f"{name}.md" for name in listed(toc)]
    return {path: notebook for path in paths if (notebook := read(path)) is not None}


def record(cache, notebook):
    """What the cache knows about a notebook, or None."""
    try:
        return cache.match_cache_notebook(notebook)
    except KeyError:
        return None


def run(path, timeout):
    """Execute one page in its own folder."""
    return single_nb_execution(read(path), cwd=str(path.parent), timeout=timeout, allow_errors=False)


def main(jobs):
    """Run what the cache lacks; exit 1 if a page failed."""
    timeout = yaml.safe_load((ROOT / "_config.yml").read_text())["execute"]["timeout"]
    cache = get_cache(cache_folder())
    waiting = [path for path, notebook in pages().items() if record(cache, notebook) is None]
    failed = []
    with ProcessPoolExecutor(jobs) as pool:
        futures = {pool.submit(run, path, timeout): path for path in waiting}
        for future in as_completed(futures):
            name = str(futures[future].relative_to(ROOT))
            try:
                result = future.result()
                error = result.exc_string
            except Exception as exception:  # a kernel that died, a page that cannot be read
                error = f"{type(exception).__name__}: {exception}"
            if error:
                failed.append(name)
                print(f"{name}: failed\n{error}", file=sys.stderr, flush=True)
                continue
            bundle = CacheBundleIn(result.nb, str(futures[future]), data={"execution_seconds": result.time})
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
            print(f"{name}: {result.time:.0f} s", flush=True)
    if failed:
        sys.exit(f"these pages failed: {', '.join(sorted(failed))}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
