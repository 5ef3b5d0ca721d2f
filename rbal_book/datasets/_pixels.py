"""From pixels to bits and spins."""

import numpy as np
from scipy.ndimage import uniform_filter

from rbal._support.validation import number, positive_int, real_array

ROWS_AT_ONCE = 4096  # images held in memory as floats


def sauvola_threshold(grey, window=8, k=0.05):
    r"""Return the local threshold :math:`T = m\,[1 + k\,(s/R - 1)]` of Sauvola and Pietikäinen; a pixel above is white.

    Here m and s are the mean and standard deviation in a square window around the pixel, with the image mirrored at its
    borders, and R is the largest s in the image. For odd windows this is scikit-image's ``threshold_sauvola`` with that
    R. An even window, which scikit-image does not take, has no centre: of 8 pixels 4 lie before the pixel and 3 after
    it. Where the whole image is flat, s/R counts as 0.

    Parameters
    ----------
    grey : (..., h, w) array
        One image, or a stack of them.
    window : int
        Side of the window.
    k : float
        How much the contrast counts.

    Returns
    -------
    ndarray
        Thresholds, of the shape of ``grey``.
    """
    grey, window = real_array("grey", grey), positive_int("window", window)
    if grey.ndim < 2 or not grey.size:
        raise ValueError(f"grey must have at least 2 dimensions and a pixel, got shape {grey.shape}")
    if window > max(grey.shape[-2:]):
        raise ValueError(f"window must fit into images of {grey.shape[-2]} x {grey.shape[-1]} pixels, got {window}")
    k = number("k", k, 0.0)
    size = (1,) * (grey.ndim - 2) + (window, window)
    m = uniform_filter(grey, size, mode="mirror")
    s = np.sqrt(np.maximum(uniform_filter(grey**2, size, mode="mirror") - m**2, 0.0))
    R = s.max(axis=(-2, -1), keepdims=True)
    return m * (1.0 + k * (np.divide(s, R, out=np.zeros_like(s), where=R > 0.0) - 1.0))


def spins(rows, L):
    """Unpack rows of bits to spins ±1, (n, L)."""
    return 2 * np.unpackbits(rows, axis=1, count=L).view(np.int8) - 1


# An encoder takes images (n, h, w) or (n, h, w, 3). It returns rows, the shape of an image, and whether rows are bits.


def flat(images):
    """Encode colours as they are."""
    return images.reshape(len(images), -1), images.shape[1:], False


def black_and_white(images):
    """Encode pixels as bits at the threshold 0.5: no pixel/255 lies on it, so that > and >= are the same."""
    return np.packbits((images > 127).reshape(len(images), -1), axis=1), images.shape[1:], True


def adaptive(images):
    """Encode pixels as bits by Sauvola's threshold. The sum of the channels does as well as the mean, and is exact."""
    bits = []
    for start in range(0, len(images), ROWS_AT_ONCE):
        grey = images[start : start + ROWS_AT_ONCE].sum(axis=3, dtype=float)
        bits.append(np.packbits((grey > sauvola_threshold(grey)).reshape(len(grey), -1), axis=1))
    return np.concatenate(bits), images.shape[1:3], True
