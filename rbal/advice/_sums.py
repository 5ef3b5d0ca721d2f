"""Sum up rows and their products, class by class, while new columns may appear with new rows."""

import numpy as np

SMALLEST = 1e-150  # of a column: its squares are numbers with all their digits


class Sums:
    """Rows of one class: kept while they are few, and then only their number, sum and products."""

    def __init__(self):
        self.n, self.blocks, self.total, self.products = 0, [], np.zeros(0), None

    def add(self, block):
        self.n += len(block)
        self.blocks.append(block)
        self.total = padded(self.total, block.shape[1])
        self.total += block.sum(axis=0)

    def summed(self, K):
        """Replace the blocks that are kept by their products (K, K)."""
        if self.products is None:
            self.products = np.zeros((K, K))
        self.products = padded(self.products, K)
        for block in self.blocks:
            k = block.shape[1]
            self.products[:k, :k] += block.T @ block
        self.blocks = []

    def rows(self, K):
        return np.concatenate([padded(block.T, K, rows_only=True).T for block in self.blocks])


def padded(array, K, rows_only=False):
    """Pad the first axis (or all axes) of an array to length K with zeros, for columns that came later."""
    extra = K - array.shape[0]
    if extra <= 0:
        return array
    return np.pad(array, [(0, extra)] + [(0, 0 if rows_only else extra)] * (array.ndim - 1))


def moments(sums, T):
    """Return the difference of the means (D,) and both covariances (D, D) of the features that T (K, D) makes."""
    means, covariances = [], []
    for s in sums:
        s.summed(T.shape[0])
        mean = padded(s.total, T.shape[0]) / s.n
        products = padded(s.products, T.shape[0])
        cov = (T.T @ (T.T @ (products / s.n - np.outer(mean, mean))).T) * (s.n / (s.n - 1))
        means.append(T.T @ mean)
        covariances.append(0.5 * (cov + cov.T))
        s.products = None
    return means[0] - means[1], *covariances


def middles_and_widths(values):
    """Return mean and standard deviation of columns (n, L), as (L, 2): they bring numbers of any size to order 1."""
    here = ~np.isnan(values)
    n = np.maximum(here.sum(axis=0), 1)
    size = np.fmax.reduce(np.abs(values), axis=0, initial=0.0)  # so that no square overflows
    size[size < SMALLEST] = 1.0
    scaled = np.where(here, values / size, 0.0)
    middle = scaled.sum(axis=0) / n
    width = np.sqrt((np.where(here, scaled - middle, 0.0) ** 2).sum(axis=0) / n)
    return np.stack([size * middle, size * np.where(width > 1e-12 * np.abs(middle) + SMALLEST, width, 1.0)], axis=1)
