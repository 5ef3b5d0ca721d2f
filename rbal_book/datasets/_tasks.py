"""Two classes out of many, and the images of them that are set apart for tests."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from rbal._support.validation import one_of, positive_int, seeded

DIGITS = tuple("0123456789")
FASHION = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
CIFAR10 = ("airplane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
MNIST_TASKS = {
    "parity": ((1, 3, 5, 7, 9), (0, 2, 4, 6, 8), ("odd", "even")),
    "five": ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9), ("0-4", "5-9")),
}


class Split(NamedTuple):
    """How a test set is set apart: from the published test part or from all, how large, and by which seed."""

    test: str
    n_test: int
    random_state: object


def two_classes(name, value, names):
    """Return the numbers of the positive and the negative classes, and what to call them.

    ``names`` are those of all classes, in the order of their numbers.
    """
    if isinstance(value, str) or not _iterable(value) or len(value := list(value)) != 2:
        raise ValueError(f"{name} must be a pair (positive, negative), got {value!r}")
    pos, neg = (_numbers(name, part, names) for part in value)
    if {*pos} & {*neg}:
        raise ValueError(f"{name} must be two disjoint sets, got {names[min({*pos} & {*neg})]!r} in both")
    return pos, neg, tuple(", ".join(names[number] for number in part) for part in (pos, neg))


def _iterable(value):
    """Return whether a value has entries: an array without dimensions has none."""
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) > 0


def _numbers(name, value, names):
    parts = list(value) if _iterable(value) and not isinstance(value, str) else [value]
    if not parts:
        raise ValueError(f"{name} must be two sets that are not empty")
    known = {**dict(enumerate(names)), **{label: number for number, label in enumerate(names)}}
    for part in parts:
        if isinstance(part, bool) or not isinstance(part, (str, int, np.integer)) or part not in known:
            raise ValueError(f"{name} must hold numbers 0 … {len(names) - 1} or {', '.join(names)}, got {part!r}")
    return tuple(sorted({part if not isinstance(part, str) else known[part] for part in parts}))


def pool(rows, y, n_train, numbers):
    """Return the rows of the classes with these numbers: those of the training part, and those of the test part."""
    inside = np.flatnonzero(np.isin(y, numbers))
    return rows[inside[inside < n_train]], rows[inside[inside >= n_train]]


def apart(pools, labels, split):
    """Set a balanced test set apart; return the rows of both classes to train on, and to test on.

    For each class, ``pools`` has its rows of the training part and of the test part, and ``labels`` its name.
    """
    test, n_test, random_state = split
    one_of("test", test, ("official", "pooled"))
    if positive_int("n_test", n_test) % 2:
        raise ValueError(f"n_test must be even, for the test set is balanced, got {n_test}")
    rng = seeded("random_state", random_state)
    train, held_out = [], []
    for label, (learn, held) in zip(labels, pools, strict=True):
        if test == "pooled":
            learn = held = np.concatenate([learn, held])
        room = len(held) - 2 * (test == "pooled")  # a covariance needs two images
        if n_test // 2 > room:
            raise ValueError(f"n_test must be at most {2 * max(room, 0)} for the images of {label}, got {n_test}")
        drawn = rng.choice(len(held), n_test // 2, replace=False)
        held_out.append(held[drawn])
        train.append(np.delete(learn, drawn, axis=0) if test == "pooled" else learn)
    return train, held_out
