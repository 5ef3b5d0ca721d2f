"""Features of many images, computed once and kept on disk."""

import json
from pathlib import Path

import numpy as np

from rbal._support.files import DataError, atomic, locked

from ._networks import checked_images
from ._training import _digest, outputs

PART = ".part"


def extract(model, images, path, *, batch_size=256, progress=True):
    """Write the features of images to a file, and open it as a memory-mapped array.

    What is finished stays: a call that was interrupted goes on after its last full batch, and a later one only opens
    the file.

    Parameters
    ----------
    model : ResNet, SmallCNN or Classifier
        Used in evaluation mode, where it stands. Its ``features`` are taken.
    images : (n, h, w, 3) array of uint8
    path : path
        File in numpy's format; beside it a small one says which model and images it belongs to.
    batch_size : int
        Images at a time.
    progress : bool
        Show a progress bar.

    Returns
    -------
    (n, n_features) memory-mapped array of float32

    Raises
    ------
    ValueError
        When the file belongs to another model or other images.
    DataError
        When it is damaged.
    """
    images, path = checked_images(images), Path(path)
    owner = {"model": _digest(*model.state_dict().values()), "images": _digest(images)}
    note = path.with_name(path.name + ".json")
    if path.exists():
        _read_note(note, owner)
        return _opened(path, len(images))
    part = path.with_name(path.name + PART)
    with locked(path):
        done = _read_note(note, owner) if part.exists() and note.exists() else 0
        table = None
        for out in outputs(model, model.features, images, batch_size, progress, start=done):
            if table is None:
                table = _table(part, (len(images), out.shape[1]), done)
            table[done : done + len(out)] = out
            table.flush()
            done += len(out)
            _write_note(note, owner, done)
        part.replace(path)
    return _opened(path, len(images))


def _table(part, shape, done):
    """Open the unfinished array: a new one, or that of an earlier call."""
    if not done:
        return np.lib.format.open_memmap(part, "w+", np.float32, shape)
    table = _opened(part, shape[0], mode="r+")
    if table.shape != shape:
        raise DataError(f"{part} should have shape {shape}, got {table.shape}: delete it")
    return table


def _opened(path, n, mode="r"):
    try:
        table = np.load(path, mmap_mode=mode, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} is damaged ({error}): delete it and call again") from error
    if table.ndim != 2 or len(table) != n or table.dtype != np.float32:
        raise DataError(f"{path} should hold {n} rows of float32, got {table.shape} of {table.dtype}: delete it")
    return table


def _write_note(note, owner, done):
    with atomic(note) as file:
        file.write(json.dumps({**owner, "done": done}).encode())


def _read_note(note, owner):
    """Return how many rows are done, when they belong to this owner."""
    try:
        stored = json.loads(note.read_text())
        done = int(stored["done"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{note} is missing or damaged ({error}): delete it, and the features beside it") from error
    for name, value in owner.items():
        if stored.get(name) != value:
            raise ValueError(f"{note.with_suffix('')} holds features of another set of {name}: take another path")
    return done
