"""Run the pages of the book that hold code, some at a time, into the cache that the build then takes every result from.

``python tools/execute.py 2`` runs two at a time, the longest first (``schedule.py``), with a line as each is done. What
many of them call is compiled once, before. A result is kept at once, so an
interrupted run goes on where it stopped. A page that fails, or that writes on stderr, is not kept: it runs again the
next time. What went wrong is said at the very end, in a few lines a page, after all others have run.
"""

import os
import re
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import NamedTuple

import digest
import schedule
import yaml
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution
from myst_nb.core.config import NbParserConfig
from myst_nb.core.read import create_nb_reader
from myst_parser.config.main import MdParserConfig

ROOT = digest.ROOT


def cache_folder(root=ROOT):
    """Folder of the results for this state of rbal and rbal_book: the cache by itself would only watch the cells."""
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


class Fault(NamedTuple):
    """Why a page cannot be shown: the line of the cell in its file, what it did, and the text of it."""

    line: int | None
    what: str
    text: str


def fault(notebook):
    """The first cell that failed or wrote on stderr, or None."""
    lines = notebook.metadata.get("source_map", [None] * len(notebook.cells))
    for cell, line in zip(notebook.cells, lines, strict=True):
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                return Fault(line, "failed", f"{output.ename}: {output.evalue}")
            if output.get("name") == "stderr":
                return Fault(line, "wrote on stderr", output.text)
    return None


def run(path, timeout):
    """Execute one page in its own folder: the notebook with its outputs, its seconds, megabytes, and fault or None."""
    notebook = read(path)
    # below errors, all that a kernel logs is that it talks to us without encryption
    quiet = ["--IPKernelApp.log_level=ERROR"]
    memory = schedule.Memory().start()
    try:
        result = single_nb_execution(notebook, str(path.parent), timeout, allow_errors=False, extra_arguments=quiet)
    except Exception as exception:  # a kernel that died
        died = Fault(None, "could not be run to its end", f"{type(exception).__name__}: {exception}")
        return notebook, 0.0, memory.stop(), died
    found = fault(notebook)
    if found is None and result.err is not None:  # a cell that took too long
        found = Fault(None, "could not be run to its end", str(result.err))
    return notebook, result.time, memory.stop(), found


def compile_once(jobs):
    """Compile what pages call, so that two of them do not do it at a time."""
    from rbal_book import warmup

    done = warmup.run(jobs, progress=False)
    print(f"{done.functions} functions compiled in {done.seconds:.0f} s", flush=True)


def told(name, found, most=6):
    """The lines that say what is wrong with a page."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", found.text).strip().splitlines()
    if len(text) > most:
        text = [*text[: most - 1], f"… ({len(text) - most + 1} more lines)"]
    place = name if found.line is None else f"{name}:{found.line}"
    what = found.what if found.line is None else f"this cell {found.what}"
    return "\n".join([f"{place}: {what}", *(f"    {line}" for line in text)])


def main(jobs):
    """Run what the cache lacks; exit 1, and say why, if a page cannot be shown."""
    timeout = yaml.safe_load((ROOT / "_config.yml").read_text())["execute"]["timeout"]
    cache = get_cache(cache_folder())
    every = pages()
    waiting = [path for path, notebook in every.items() if record(cache, notebook) is None]
    print(f"{len(every) - len(waiting)} of {len(every)} pages are in the cache", flush=True)
    if len(waiting) > jobs:  # a few pages compile what they call by themselves
        compile_once(jobs)
    faults = {}
    with ProcessPoolExecutor(jobs, initializer=os.environ.update, initargs=(schedule.share(jobs),)) as pool:
        order = schedule.longest_first(str(path.relative_to(ROOT)) for path in waiting)
        futures = {pool.submit(run, ROOT / name, timeout): ROOT / name for name in order}
        for done, future in enumerate(as_completed(futures), 1):
            path = futures[future]
            name = str(path.relative_to(ROOT))
            try:
                notebook, seconds, megabytes, found = future.result()
            except Exception as exception:  # a page that cannot be read, a worker that was killed
                found = Fault(None, "could not be run", f"{type(exception).__name__}: {exception}")
            if found is None:
                bundle = CacheBundleIn(notebook, str(path), data={"execution_seconds": seconds})
                cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
                schedule.remember(name, seconds, megabytes)
            else:
                faults[name] = found
            print(f"[{done}/{len(waiting)}] {name}: {f'{seconds:.0f} s' if found is None else 'FAILED'}", flush=True)
    if faults:
        lines = [told(name, found) for name, found in sorted(faults.items())]
        lines.append(
            "Mend the cell (a warning that is to be expected there is caught there), then make book again: it runs"
        )
        lines.append("these pages again, and takes the others from the cache.")
        sys.exit("\n".join(["", f"{len(faults)} of {len(every)} pages failed:", *lines]))


if __name__ == "__main__":
    main(int(sys.argv[1]))
