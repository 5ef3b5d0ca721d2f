"""A reader's own copy of CelebA, photograph by photograph, into bits that are kept in the cache."""

import hashlib
import os
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm.auto import tqdm

from rbal._support.files import DataError
from rbal._support.validation import positive_int

from . import _fetch
from ._pixels import sauvola_threshold

ATTRIBUTES, PHOTOGRAPHS = "list_attr_celeba.txt", "img_align_celeba"
VARIABLE = "RBAL_CELEBA"  # of the environment: a folder
N_EXAMPLES = 16  # of each class
VERSION = 1  # of the preprocessing: part of the key


class Faces(NamedTuple):
    """Bits of the two classes, and a few examples before and after."""

    pos: np.ndarray  # (n, ceil(h w / 8)), uint8
    neg: np.ndarray  # likewise
    before: np.ndarray  # (n, h, w), uint8
    after: np.ndarray  # (n, ceil(h w / 8)), uint8: bits
    y: np.ndarray  # (n,) labels ±1


def root_of(given):
    """Return the folder of the copy: the one given, or the one that the environment names."""
    root = os.environ.get(VARIABLE) if given is None else given
    if not root:
        raise DataError(f"root must be the folder of your copy of CelebA: give it, or name it in {VARIABLE}")
    return Path(root)


def read(root, attributes, size, window, k, partial, progress):
    """Return the faces of the two classes, from the cache where they were read before, and how many are listed."""
    if size is not None:
        size = tuple(positive_int("size", side) for side in size)
        if len(size) != 2:
            raise ValueError(f"size must be a height and a width, got {size}")
    listed, classes = select(root / ATTRIBUTES, attributes)
    folder = root / PHOTOGRAPHS
    n_listed = sum(map(len, classes))
    sizes, classes = _matching(folder, root / ATTRIBUTES, listed, classes, attributes, partial)
    key = hashlib.sha256(repr((VERSION, _fetch.sha256(root / ATTRIBUTES), tuple(attributes), size, window, k)).encode())
    key.update(repr([(name, sizes[name]) for part in classes for name in part]).encode())
    path = _fetch.cache_dir() / f"celeba-{key.hexdigest()[:24]}.npz"
    if path.exists():
        try:
            return Faces(*_fetch.load_arrays(path, Faces._fields)), n_listed
        except DataError as error:
            warnings.warn(f"{path} is left aside: {error}", stacklevel=3)
    faces = _binarised(folder, classes, size, window, k, progress)
    _fetch.save_arrays(path, faces._asdict())
    return faces, n_listed


def select(path, attributes):
    """Return the names of all files, and of those that have one attribute and not the other, for either attribute."""
    if isinstance(attributes, str) or len(attributes) != 2 or attributes[0] == attributes[1]:
        raise ValueError(f"attributes must be two different names, got {attributes!r}")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(
            f"{path} cannot be read ({error}): root must be a folder with {ATTRIBUTES} and {PHOTOGRAPHS}, as CelebA is "
            "published"
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a text file") from error
    rows = [line.split() for line in lines[2:] if line.strip()]
    if len(lines) < 2 or not lines[0].strip().isdigit() or int(lines[0]) != len(rows):
        raise DataError(f"{path} is damaged: its first line should be the number of images, {len(rows)}")
    columns = lines[1].split()
    if missing := [name for name in attributes if name not in columns]:
        raise ValueError(f"attributes must be among {', '.join(columns)}, got {missing[0]!r}")
    first, second = (1 + columns.index(name) for name in attributes)
    classes, seen = ([], []), set()
    for number, row in enumerate(rows, 3):
        name = row[0]
        if len(row) != len(columns) + 1 or not {*row[1:]} <= {"1", "-1"}:
            raise DataError(f"{path} is damaged: line {number} should be a file and {len(columns)} values 1 or -1")
        if name in seen or name in (".", "..") or "/" in name or "\\" in name:
            raise DataError(f"{path} is damaged: line {number} names {name!r}, twice or outside its folder")
        seen.add(name)
        if row[first] != row[second]:
            classes[row[second] == "1"].append(name)
    for label, names in zip(attributes, classes, strict=True):
        if not names:
            raise DataError(f"{path} has no image with {label} and not the other attribute")
    return seen, classes


def _matching(folder, path, listed, classes, attributes, partial):
    """Return the sizes of the photographs on disk and the classes among them, when the attribute file matches them."""
    try:
        with os.scandir(folder) as entries:
            photographs = [entry for entry in entries if entry.name.lower().endswith((".jpg", ".png"))]
            sizes = {entry.name: entry.stat().st_size for entry in photographs}
    except OSError as error:
        raise DataError(f"{folder} cannot be read ({error}): it should hold the photographs of CelebA") from error
    absent = [name for part in classes for name in part if name not in sizes]
    if absent and not partial:
        raise DataError(
            f"{path} does not match {folder}: {len(absent)} images are absent, {absent[0]} first; "
            "partial=True takes those that are there"
        )
    if strangers := sorted({*sizes} - listed):
        raise DataError(
            f"{path} does not match {folder}: it does not name {len(strangers)} images, {strangers[0]} first"
        )
    classes = [[name for name in part if name in sizes] for part in classes]
    for label, names in zip(attributes, classes, strict=True):
        if not names:
            raise DataError(f"{folder} has no image with {label} and not the other attribute")
    return sizes, classes


def _binarised(folder, classes, size, window, k, progress):
    """Turn photographs into bits, with one of them in memory at a time."""
    bits, shape = [None, None], None
    before, after = [], []
    bar = tqdm(total=sum(map(len, classes)), desc="CelebA", unit="image", disable=not progress)
    with bar:
        for side, names in enumerate(classes):
            shown = {*np.random.default_rng(side).permutation(len(names))[:N_EXAMPLES].tolist()}
            for row, name in enumerate(names):
                grey = channel_sum(folder / name, size)
                shape = grey.shape if shape is None else shape
                if grey.shape != shape:
                    raise DataError(f"{folder / name} has the shape {grey.shape}, others {shape}: give a size to all")
                packed = np.packbits(grey > sauvola_threshold(grey, window, k))
                if bits[side] is None:
                    bits[side] = np.empty((len(names), packed.size), np.uint8)
                bits[side][row] = packed
                if row in shown:
                    before.append(np.rint(grey / 3.0).astype(np.uint8))
                    after.append(packed)
                bar.update()
    y = np.repeat([1, -1], [min(N_EXAMPLES, len(names)) for names in classes])
    return Faces(*bits, np.array(before), np.array(after), y)


def channel_sum(path: Path, size=None):
    """Return the sum (h, w) of the three channels, in whole numbers three times the grey value: the bits are alike."""
    from PIL import Image

    try:
        with Image.open(path) as photograph:
            grey = np.asarray(photograph.convert("RGB")).sum(axis=2, dtype=np.float32)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{path} is not an image that can be read ({error})") from error
    if size is not None:
        grey = np.asarray(Image.fromarray(grey).resize(size[::-1], Image.Resampling.BOX))
    return grey.astype(float)
