"""Hear of functions that are being compiled, by numba's own events."""

import contextlib

from numba.core import event


class Counter(event.Listener):
    """Counts functions as they are compiled, and calls ``first`` before the first of them."""

    def __init__(self, first=None):
        self.first = first
        self.functions = 0

    def on_start(self, event):
        """A function begins to be compiled."""
        self.functions += 1
        if self.first is not None and self.functions == 1:
            self.first()

    def on_end(self, event):
        """It is done."""


@contextlib.contextmanager
def counted(first=None):
    """Count the functions that are compiled in the block; call ``first`` before the first of them."""
    counter = Counter(first)
    with event.install_listener("numba:compile", counter):
        yield counter
