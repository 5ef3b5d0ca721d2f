"""Two classes, their moments, and a way to draw from them: what every synthetic data set is."""

import numpy as np

from .._support.validation import room


class Classes:
    """A positive and a negative class to draw samples from. Built by the functions of ``rbal.datasets.synthetic``.

    Parameters
    ----------
    moments : Moments
        Midpoint and shift of the class means, and the average of the class covariances.
    draw_pos, draw_neg : callable
        ``draw(n, rng)`` gives n samples of the class, (n, L).
    n_states : int, optional
        Q for states coded 0 … Q-1; None for real features and spins ±1.
    exact : bool
        Whether ``moments`` is exact; otherwise it was estimated from samples.

    Attributes
    ----------
    L : int
        Number of features.
    """

    def __init__(self, moments, draw_pos, draw_neg, n_states=None, exact=True):
        self.moments, self.n_states, self.exact = moments, n_states, exact
        self.L = moments.L
        self._draw_pos, self._draw_neg = draw_pos, draw_neg

    def __repr__(self):
        return f"Classes({self.moments!r}, n_states={self.n_states}, exact={self.exact})"

    def sample(self, n_pos, n_neg, rng):
        """Draw samples of both classes, positives first.

        Parameters
        ----------
        n_pos, n_neg : int
            How many of each class; one of them may be 0.
        rng : numpy.random.Generator or int
            Source of randomness, or a seed for one.

        Returns
        -------
        X : (n_pos + n_neg, L) array
            Floats for real features and spins ±1, integers 0 … Q-1 for states.
        y : (n_pos + n_neg,) array of int
            Labels +1 and -1.
        """
        n_pos, n_neg = _count("n_pos", n_pos), _count("n_neg", n_neg)
        if n_pos + n_neg == 0:
            raise ValueError("n_pos + n_neg must be at least 1, got 0")
        for name, n in (("n_pos", n_pos), ("n_neg", n_neg)):
            room(name, n, n * self.L)
        rng = generator(rng)
        X = np.concatenate([self._draw_pos(n_pos, rng), self._draw_neg(n_neg, rng)])
        return X, np.repeat([1, -1], [n_pos, n_neg])


def _count(name, value):
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise ValueError(f"{name} must be an integer >= 0, got {value!r}")
    return int(value)


def generator(rng):
    """Return a Generator as it is, or a new one from a seed."""
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and rng >= 0:
        return np.random.default_rng(rng)
    raise TypeError(f"rng must be a numpy.random.Generator or a seed (an integer >= 0), got {rng!r}")


def class_means(name, M, half, low):
    """Return M ± half, of the shape of M, when both are in [low, 1]; rounding is forgiven."""
    means = M + half, M - half
    worst = max(max(low - mean.min(), mean.max() - 1.0) for mean in means)
    if worst > 1e-12:
        raise ValueError(
            f"{name} ± delta/(2√L) must be >= {low:g} and <= 1 in both classes, got values {worst:.3g} outside"
        )
    return [np.clip(mean, low, 1.0) for mean in means]
