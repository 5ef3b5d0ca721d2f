r"""Photographs and handwriting as two classes of spins, with one interface for every set.

Each loader returns :class:`Images`: training images of two classes to draw from, and a balanced test set that none of
them is in. The class named first is the positive one.

A binary image is a vector of spins, +1 where it is white and -1 where it is black. Spins with :math:`\|J\|^2 = L` and
states 0, 1 in one-hot encoding with :math:`\|J\|^2 = 2L` give the same fields :math:`\Delta`, so that margins are those
of the paper.

MNIST and a pair of FashionMNIST come with the package. CIFAR-10 and the other pairs are fetched when they are first
asked for, into the folder that the environment variable ``RBAL_DATA`` names, or else the cache of the platform. CelebA
may not be passed on: its loader reads a copy of your own.
"""

from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rbal._support.files import DataError
from rbal._support.validation import flag, one_of, positive_int, seeded
from rbal.moments import Moments

from . import _fetch, _sources
from ._fetch import cache_dir
from ._pixels import ROWS_AT_ONCE, adaptive, black_and_white, flat, sauvola_threshold, spins
from ._tasks import CIFAR10, DIGITS, FASHION, MNIST_TASKS, Split, apart, pool, two_classes

__all__ = [
    "DataError",
    "Examples",
    "Images",
    "cache_dir",
    "load_celeba",
    "load_cifar10",
    "load_fashion_mnist",
    "load_mnist",
    "sauvola_threshold",
]

SHIPPED = {
    "mnist.npz": "294c1a802e995cd14aa8f2bcb3b036b5ad0ef5cb5596849e39ddf91437f4654b",
    "fashion_pair.npz": "1cf29a852d4477a9ba5243121b4f16aa2bcdb87f4dbefc068b33d2b8962c9738",
}
N_EXAMPLES = 16  # of each class


class Examples(NamedTuple):
    """A few random training images before and after the preprocessing, and their labels ±1."""

    before: np.ndarray  # (n, h, w) or (n, h, w, 3)
    after: np.ndarray  # (n, h, w) or (n, h, w, 3)
    y: np.ndarray  # (n,)


class Images:
    """Two classes of images. Built by the loaders of this module.

    Samples can be drawn as from :class:`rbal.datasets.synthetic.Classes`. Binary images are held as bits, and become
    spins when they are asked for.

    Attributes
    ----------
    name : str
        Which set, and which task.
    labels : tuple of str
        What the positive and the negative class show.
    shape : tuple of int
        Shape of one image; ``X.reshape(-1, *shape)`` turns rows into images.
    L : int
        Number of features.
    n_states : None
        Features are spins or real numbers, not states.
    exact : bool
        False: ``moments`` are empirical.
    examples : Examples
        Images to show: ``before`` (n, h, w) or (n, h, w, 3) with values 0 … 255, ``after`` with the values of
        ``X_pos``, and labels ``y``.
    """

    n_states = None
    exact = False

    def __init__(self, *, name, labels, shape, train, test, examples, packed):
        self.name, self.labels, self.shape, self.examples = name, labels, shape, examples
        self.L = int(np.prod(shape))
        self._train, self._test, self._packed = train, test, packed
        self._moments = {}

    def __repr__(self):
        sizes = ", ".join(f"{label} {len(rows)}" for label, rows in zip(self.labels, self._train, strict=True))
        shape = "×".join(map(str, self.shape))
        return f"Images({self.name}: {sizes}, test {sum(map(len, self._test))}, {shape})"

    def __getstate__(self):
        """Leave out what can be made again, so that workers are sent bits."""
        made = {"X_pos", "X_neg", "X_test", "y_test"}
        return {name: value for name, value in vars(self).items() if name not in made}

    def _decode(self, rows):
        return spins(rows, self.L) if self._packed else rows

    @cached_property
    def X_pos(self):
        """Training images of the positive class, (n, L): spins ±1 (int8), or colours 0 … 255 (uint8)."""
        return self._decode(self._train[0])

    @cached_property
    def X_neg(self):
        """Training images of the negative class, (n, L), in the same form."""
        return self._decode(self._train[1])

    @cached_property
    def X_test(self):
        """Balanced test set (n, L), positives first, in the same form; none of its images is a training image."""
        return np.concatenate([self._decode(rows) for rows in self._test])

    @cached_property
    def y_test(self):
        """Labels +1 and -1 of the test set, (n,)."""
        return np.repeat([1, -1], [len(rows) for rows in self._test])

    def sample(self, n_pos, n_neg, rng):
        """Draw a training set of given class sizes, without replacement, positives first.

        Parameters
        ----------
        n_pos, n_neg : int
            How many of each class; one of them may be 0.
        rng : numpy.random.Generator or int
            Source of randomness, or a seed for one.

        Returns
        -------
        X : (n_pos + n_neg, L) array of float
        y : (n_pos + n_neg,) array of int
            Labels +1 and -1.
        """
        rng = seeded("rng", rng)
        drawn = []
        for name, size, rows in zip(("n_pos", "n_neg"), (n_pos, n_neg), self._train, strict=True):
            size = positive_int(name, size) if size else 0
            if size > len(rows):
                raise ValueError(f"{name} must be at most {len(rows)}, the training images of its class, got {size}")
            drawn.append(self._decode(rows[rng.choice(len(rows), size, replace=False)]))
        if n_pos + n_neg == 0:
            raise ValueError("n_pos + n_neg must be at least 1, got 0")
        return np.concatenate(drawn).astype(float), np.repeat([1, -1], [n_pos, n_neg])

    @property
    def moments(self):
        """Moments of all training images, with their pooled covariance (C⁺ + C⁻)/2."""
        return self.moments_with("pooled")

    def moments_with(self, covariance):
        """Estimate the moments of all training images, once.

        Parameters
        ----------
        covariance : {"pooled", "sites", "shrunk"}
            As for :meth:`rbal.Moments.from_data`, which gives the same numbers with more time and memory.

        Returns
        -------
        Moments
        """
        one_of("covariance", covariance, ("pooled", "sites", "shrunk"))
        if covariance not in self._moments:
            self._moments[covariance] = self._estimate(covariance)
        return self._moments[covariance]

    def _estimate(self, covariance):
        if covariance == "shrunk" or sum(map(len, self._train)) < self.L:
            return Moments.from_data(self.X_pos, self.X_neg, covariance=covariance)
        (mean_pos, cov_pos), (mean_neg, cov_neg) = (self._mean_and_covariance(rows) for rows in self._train)
        cov = 0.5 * (cov_pos + cov_neg)
        return Moments.real(mean_pos, mean_neg, np.diag(cov) if covariance == "sites" else cov)

    def _mean_and_covariance(self, rows):
        # Sums of products of spins are integers, which single precision holds exactly up to 2²⁴ rows.
        precision = np.float32 if self._packed else np.float64
        total, products = np.zeros(self.L), np.zeros((self.L, self.L))
        for start in range(0, len(rows), ROWS_AT_ONCE):
            X = self._decode(rows[start : start + ROWS_AT_ONCE]).astype(precision)
            total += X.sum(axis=0, dtype=float)
            products += X.T @ X
        return total / len(rows), (products - np.outer(total, total) / len(rows)) / (len(rows) - 1)


# ---- loaders


def load_mnist(task="parity", *, test="official", n_test=1000, random_state=0):
    """Load handwritten digits, 28×28: all 70,000, white where pixel/255 > 0.5 (none is at 0.5). Needs no network.

    Parameters
    ----------
    task : {"parity", "five"} or pair
        Odd digits against even ones; 0 … 4 against 5 … 9 (the digit 5 goes with the larger ones); or two digits or
        disjoint sets of digits, the positive class first, such as ``(1, 0)`` or ``({1, 7}, {2, 3})``.
    test : {"official", "pooled"}
        Draw the test set from the 10,000 published test images and train on the published 60,000 only; or draw it
        from all 70,000 and train on the rest.
    n_test : int
        Size of the test set; half of it is of each class.
    random_state : int, numpy.random.Generator or None
        Selects the test set.

    Returns
    -------
    Images

    Examples
    --------
    >>> load_mnist()
    Images(MNIST parity: odd 30508, even 29492, test 1000, 28×28)
    """
    if isinstance(task, str):
        pos, neg, labels = MNIST_TASKS[one_of("task", task, tuple(MNIST_TASKS))]
        name = f"MNIST {task}"
    else:
        pos, neg, labels = two_classes("task", task, DIGITS)
        name = f"MNIST {labels[0]} or {labels[1]}"
    return _shipped("mnist.npz", name, labels, (pos, neg), Split(test, n_test, random_state))


def load_fashion_mnist(
    pair=("Pullover", "Shirt"), *, test="official", n_test=1000, random_state=0, download=True, progress=True
):
    """Load articles of clothing, 28×28, white where pixel/255 > 0.5; pullovers and shirts need no network.

    Parameters
    ----------
    pair : pair of str, int or sets of them
        The positive and the negative class, by name or number; sets of them make larger classes.
    test, n_test, random_state
        As for :func:`load_mnist`.
    download : bool
        Whether other classes than those two may be fetched, when they are not in the cache yet.
    progress : bool
        Show a progress bar while fetching.

    Returns
    -------
    Images

    Examples
    --------
    >>> load_fashion_mnist()
    Images(FashionMNIST: Pullover 6000, Shirt 6000, test 1000, 28×28)
    """
    flag("download", download)
    split = Split(test, n_test, random_state)
    pos, neg, labels = two_classes("pair", pair, FASHION)
    if {*pos, *neg} == {2, 6}:
        return _shipped("fashion_pair.npz", "FashionMNIST", labels, (pos, neg), split)
    raw = _sources.obtain(_sources.FASHION_MNIST, download, progress)
    return _published("FashionMNIST", labels, raw, (pos, neg), black_and_white, split)


def load_cifar10(
    task="split", *, pixels="colour", test="official", n_test=1000, random_state=0, download=True, progress=True
):
    """Load small photographs, 32×32, of ten things; fetched once (140 MB; 185 MB in the cache).

    Parameters
    ----------
    task : "split" or pair of str, int or sets of them
        [airplane, car, bird, cat, deer] against [dog, frog, horse, ship, truck]; or the positive and the negative
        class, by name or number.
    pixels : {"colour", "binary"}
        All three colours as published, 0 … 255; or black and white, by the pipeline of :func:`load_celeba`.
    test, n_test, random_state
        As for :func:`load_mnist`; the published test part has 10,000 images, the training part 50,000.
    download : bool
        Whether the set may be fetched, when it is not in the cache yet.
    progress : bool
        Show a progress bar while fetching.

    Returns
    -------
    Images
    """
    encode = {"colour": flat, "binary": adaptive}[one_of("pixels", pixels, ("colour", "binary"))]
    if isinstance(task, str):
        one_of("task", task, ("split",))
        task = (CIFAR10[:5], CIFAR10[5:])
    flag("download", download)
    pos, neg, labels = two_classes("task", task, CIFAR10)
    raw = _sources.obtain(_sources.CIFAR10, download, progress)
    return _published("CIFAR-10", labels, raw, (pos, neg), encode, Split(test, n_test, random_state))


def load_celeba(
    root=None,
    attributes=("Straight_Hair", "Wavy_Hair"),
    *,
    size=None,
    window=8,
    k=0.05,
    n_test=1000,
    random_state=0,
    partial=False,
    progress=True,
):
    """Load faces from your own copy of CelebA, grey by the mean of the channels and binary by Sauvola's threshold.

    The folder has the layout of the published set: ``list_attr_celeba.txt`` beside ``img_align_celeba/*.jpg``. The
    result is kept in the cache, so that only the first call reads the photographs.

    Parameters
    ----------
    root : path, optional
        The folder; by default the one that the environment variable ``RBAL_CELEBA`` names.
    attributes : pair of str
        Columns of the attribute file that make the positive and the negative class; faces that have both or neither
        are left out.
    size : (int, int), optional
        Height and width to shrink the grey images to, by the mean over areas; by default they stay as they are (218×178
        as published, for which a covariance takes 12 GB).
    window, k
        Of ``sauvola_threshold``.
    n_test : int
        Size of the test set, drawn from all faces; half of it is of each class.
    random_state : int, numpy.random.Generator or None
        Selects the test set.
    partial : bool
        Whether a part of the photographs will do: those that are listed and not there are left out, and the name of the
        result says how many faces of how many it has. By default an absent photograph is an error.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Images
    """
    from . import _celeba

    partial = flag("partial", partial)
    faces, n_listed = _celeba.read(_celeba.root_of(root), attributes, size, window, k, partial, progress)
    n = len(faces.pos) + len(faces.neg)
    name = "CelebA" if n == n_listed else f"CelebA, {n:,} of {n_listed:,} faces"
    pools = [(rows, rows[:0]) for rows in (faces.pos, faces.neg)]
    examples = Examples(faces.before, spins(faces.after, faces.before[0].size).reshape(faces.before.shape), faces.y)
    return _divided(name, tuple(attributes), pools, examples, True, Split("pooled", n_test, random_state))


def _shipped(file, name, labels, classes, split):
    """Load two classes from a file of the package."""
    path = Path(__file__).parent / "_data" / file
    if not path.exists() or _fetch.sha256(path) != SHIPPED[file]:
        raise DataError(f"{file}, which comes with rbal, is missing or damaged: install rbal again")
    rows, y, n_train, before, example = _fetch.load_arrays(path, ["images", "labels", "n_train", "grey", "grey_index"])
    pools = [pool(rows, y, int(n_train), numbers) for numbers in classes]
    shown = [np.isin(y[example], numbers) for numbers in classes]
    order = np.concatenate([np.flatnonzero(part) for part in shown])
    after = spins(rows[example[order]], before[0].size).reshape(-1, *before.shape[1:])
    examples = Examples(before[order], after, np.repeat([1, -1], [part.sum() for part in shown]))
    return _divided(name, labels, pools, examples, True, split)


def _published(name, labels, raw, classes, encode, split):
    """Encode two classes of a published set."""
    part = np.flatnonzero(np.isin(raw.labels, np.concatenate(classes)))
    images, y = raw.images[part], raw.labels[part]
    n_train = int(np.searchsorted(part, raw.n_train))
    rows, shape, packed = encode(images)
    # Neighbours in the canonical order are strangers: the first images are random ones.
    first = np.concatenate([np.flatnonzero(np.isin(y, numbers))[:N_EXAMPLES] for numbers in classes])
    after = spins(rows[first], int(np.prod(shape))) if packed else rows[first]
    examples = Examples(images[first], after.reshape(-1, *shape), np.repeat([1, -1], N_EXAMPLES))
    pools = [pool(rows, y, n_train, numbers) for numbers in classes]
    return _divided(name, labels, pools, examples, packed, split)


def _divided(name, labels, pools, examples, packed, split):
    """Set the test images apart."""
    train, test = apart(pools, labels, split)
    shape = examples.after.shape[1:]
    return Images(name=name, labels=labels, shape=shape, train=train, test=test, examples=examples, packed=packed)
