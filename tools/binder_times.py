"""Measure what a reader on Binder waits for, in a place as fresh as Binder's: a new environment and an empty home.

``python tools/binder_times.py FOLDER`` copies what git holds into FOLDER, makes an environment of ``environment.yml``
there, runs ``postBuild`` with a home that holds nothing, and then, through ``start`` as Binder does, a new kernel for
each number: seconds from the start of the kernel to the first figure of chapter 1, and to that of each widget, and
seconds of the processor, which other work beside it changes less. The memory of each page is that of the last build
(``_build/pages.json``, or ``tools/pages.json``). It takes some minutes, and a machine that does nothing else; a FOLDER
that is there already is measured again without being made.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GOALS = {"chapter": 15.0, "widget": 5.0, "megabytes": 2048}


# ---- what is measured, in the new environment


def has_figure(cell):
    """Whether a cell that was run shows a picture, or a widget."""
    kinds = {kind for output in cell.get("outputs", []) for kind in output.get("data", {})}
    return any(kind.startswith("image/") or "widget-view" in kind for kind in kinds)


def seconds_to_a_figure(notebook):
    """Run cells in a new kernel up to the first that shows a figure: seconds, and those that its processes computed."""
    import psutil
    from nbclient import NotebookClient

    began = time.perf_counter()
    client = NotebookClient(
        notebook, timeout=600, resources={"metadata": {"path": str(ROOT / "notebooks")}},
        extra_arguments=["--IPKernelApp.log_level=ERROR"],  # it would only say that it talks to us without encryption
    )  # fmt: skip
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)
            if has_figure(cell):
                seconds = time.perf_counter() - began
                kernel = psutil.Process(client.km.provisioner.pid)
                return seconds, sum(sum(p.cpu_times()[:4]) for p in [kernel, *kernel.children(recursive=True)])
    sys.exit("no cell shows a figure")


def measure():
    """Print a line for the first chapter and for each widget."""
    import jupytext
    import nbformat

    from rbal import widgets

    chapter = jupytext.read(ROOT / "notebooks" / "imbalance.md")
    tell("first figure of chapter 1", *seconds_to_a_figure(chapter), GOALS["chapter"])
    for name in widgets.__all__:
        lines = f"from rbal import widgets\nwidgets.{name}()"
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(lines)])
        tell(f"widget {name}", *seconds_to_a_figure(notebook), GOALS["widget"])


def tell(what, seconds, cpu, goal):
    """Print one row."""
    note = "" if seconds <= goal else "   MISSED"
    print(f"{what:28}{seconds:6.1f} s, {cpu:5.1f} s of the processor   (goal: {goal:g}){note}", flush=True)


# ---- the new environment


def pins():
    """What environment.yml lets pip install, but for the package itself."""
    import yaml

    listed = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    (lines,) = [entry["pip"] for entry in listed if isinstance(entry, dict)]
    return [line for line in lines if line != "-e ."]


def make(folder):
    """A copy of what git holds, an environment beside it, and an empty home."""
    copy, python = folder / "copy", folder / "venv" / "bin" / "python"
    (folder / "home").mkdir(parents=True)
    copy.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(copy)], input=archive, check=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "-qq"]
    subprocess.run([*pip, *pins(), "hatchling", "editables"], check=True)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "-e", str(copy)], check=True)


def inside(folder, *command):
    """Run a command in the copy, with the new environment and home and nothing of ours; its seconds."""
    mine = {"PATH": f"{folder / 'venv' / 'bin'}:/usr/local/bin:/usr/bin:/bin", "HOME": str(folder / "home")}
    kept = {name: os.environ[name] for name in ("LANG", "TZ") if name in os.environ}
    began = time.perf_counter()
    subprocess.run(command, cwd=folder / "copy", env=mine | kept, check=True)
    return time.perf_counter() - began


def memory():
    """Print the megabytes of each page, the largest first."""
    import schedule

    pages = sorted(schedule.known().items(), key=lambda item: -item[1]["megabytes"])
    for name, page in pages:
        note = "" if page["megabytes"] <= GOALS["megabytes"] else "   MISSED"
        print(f"{name:40}{page['megabytes']:6} MB of {GOALS['megabytes']}{note}")


def main(place):
    """Make the environment if there is none, and print the numbers."""
    folder = Path(place).resolve()
    if not folder.exists():
        make(folder)
        print(f"postBuild: {inside(folder, './postBuild'):.0f} s", flush=True)
    inside(folder, "./start", "python", "tools/binder_times.py")
    memory()


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) > 1 else measure()
