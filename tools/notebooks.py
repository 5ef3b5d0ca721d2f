"""Chapters as tests: each notebook runs, and the cells tagged nbval-check-output give the numbers of its reference.

``convert`` writes _build/nbval/<chapter>.ipynb: the chapter, with the outputs that tests/references/<chapter>.ipynb has
for its tagged cells, ready for ``pytest --nbval-lax``. ``references`` runs the chapters and writes those references.
"""

import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
REFERENCES = ROOT / "tests" / "references"
CONVERTED = ROOT / "_build" / "nbval"
TAG = "nbval-check-output"
TIMEOUT = 1800


def chapters():
    """Paths of all chapters."""
    return sorted((ROOT / "notebooks").glob("*.md"))


def tagged(notebook):
    """Cells whose output is compared."""
    return [cell for cell in notebook.cells if TAG in cell.metadata.get("tags", [])]


def read(path):
    """Read a chapter; every one must have key numbers to compare."""
    notebook = jupytext.read(path)
    if not tagged(notebook):
        sys.exit(f"{path.name}: no cell is tagged {TAG}; a chapter ends in one that prints its key numbers")
    return notebook


def convert(path, folder=CONVERTED):
    """Write the chapter as a notebook, with the outputs of its reference in the tagged cells; its file."""
    notebook = read(path)
    reference_path = REFERENCES / f"{path.stem}.ipynb"
    if not reference_path.exists():
        sys.exit(f"{path.name}: tests/references/{reference_path.name} is missing; make references, and read it")
    reference = nbformat.read(reference_path, as_version=4)
    if [cell.source for cell in reference.cells] != [cell.source for cell in tagged(notebook)]:
        sys.exit(f"{path.name}: its tagged cells have changed since the reference; make references, and read the diff")
    for cell, expected in zip(tagged(notebook), reference.cells, strict=True):
        cell.outputs = expected.outputs
        cell.execution_count = 1  # nbval refuses outputs of a cell that was never run
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, folder / f"{path.stem}.ipynb")
    return folder / f"{path.stem}.ipynb"


def write_reference(path):
    """Run the chapter and keep its tagged cells alone: their code and their output."""
    notebook = read(path)
    NotebookClient(notebook, timeout=TIMEOUT, resources={"metadata": {"path": str(path.parent)}}).execute()
    cells = []
    for number, cell in enumerate(tagged(notebook)):
        if not cell.outputs:
            sys.exit(f"{path.name}: a cell tagged {TAG} gave no output")
        kept = nbformat.v4.new_code_cell(cell.source, outputs=cell.outputs, metadata={"tags": [TAG]})
        kept.id = f"key-numbers-{number}"  # not random, so that an unchanged reference makes no diff
        for output in kept.outputs:
            if "execution_count" in output:
                output.execution_count = None
        cells.append(kept)
    REFERENCES.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), REFERENCES / f"{path.stem}.ipynb")
    print(f"tests/references/{path.stem}.ipynb")


def main(arguments):
    """Convert all chapters, or write the references of all or of the named ones."""
    match arguments:
        case ["convert"]:
            for stale in CONVERTED.glob("*.ipynb"):
                stale.unlink()
            for path in chapters():
                convert(path)
        case ["references", *names]:
            for path in chapters():
                if not names or path.stem in names:
                    write_reference(path)
        case _:
            sys.exit("usage: notebooks.py convert | references [chapter ...]")


if __name__ == "__main__":
    main(sys.argv[1:])
