"""Checks of arguments. Every message names the argument, the value it got and the values it takes."""

import math

import numpy as np

LARGEST = 1e75  # of a feature: sums of its fourth powers are finite
TECHNICAL = 1e50  # upper bounds from here on only keep numbers from overflowing
MOST_DRAWS = 2**14  # draws for an interval: each needs a saddle point, and the ends converge long before
MOST_FLOATS = 2**28  # of one array of one-hot states, 2 GB


def real_array(name, value, ndim=None, *, finite=True):
    """Return the value as a float array, when it has no NaN or infinity (unless not ``finite``), mask or text."""
    unmasked(name, value)
    n_dimensions(name, value)
    try:
        array = np.asarray(value)
        texts = array.dtype == object and any(entry is None or isinstance(entry, (str, bytes)) for entry in array.flat)
        if value is None or texts or array.dtype.kind not in "biufO":
            raise TypeError
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be numeric, got {_kind(value)}") from None
    if ndim is not None and array.ndim not in np.atleast_1d(ndim):
        raise ValueError(f"{name} must have {' or '.join(map(str, np.atleast_1d(ndim)))} dimensions, got {array.ndim}")
    if finite and not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {_first(array, ~np.isfinite(array))}")
    return array


def in_range(name, value, low, high=math.inf, *, open_low=False):
    """Return the value as a float array in [low, high], or (low, high] with ``open_low``; scalars take a fast path."""
    if isinstance(value, (float, int)) and not isinstance(value, bool):
        try:
            value = float(value)
        except OverflowError:
            raise ValueError(f"{name} must be finite, got an integer beyond 1e308") from None
        if (low < value or (value == low and not open_low)) and value <= high and value < math.inf:
            return value
    if isinstance(value, (bool, np.bool_)) or getattr(value, "dtype", None) == np.bool_:
        raise TypeError(f"{name} must be a number, got {_kind(value)}")
    array = real_array(name, value)
    bad = (array <= low if open_low else array < low) | (array > high)
    if bad.any():
        # an upper bound that only keeps numbers from overflowing is no news to who is below the lower one
        bounded = high < math.inf and (high < TECHNICAL or (array > high).any())
        takes = f"{'>' if open_low else '>='} {low:g}" + (f" and <= {high:g}" if bounded else "")
        raise ValueError(f"{name} must be {takes}, got {_first(array, bad)}")
    return array


def number(name, value, low, high=math.inf, *, open_low=False):
    """Return the value as a float, when it is one number in the same range."""
    value = in_range(name, value, low, high, open_low=open_low)
    if np.ndim(value):
        raise ValueError(f"{name} must be a number, got shape {np.shape(value)}")
    return float(value)


def broadcast(**arrays):
    """Return arrays of one shape, by numpy's rules."""
    try:
        return np.broadcast_arrays(*arrays.values())
    except ValueError as error:
        shapes = ", ".join(f"{name} {_shape(value)}" for name, value in arrays.items())
        raise ValueError(f"arrays must broadcast, got shapes {shapes}") from error


def n_dimensions(name, value):
    """Return the number of dimensions of a value, when its rows are of one length."""
    if isinstance(known := getattr(value, "ndim", None), int):
        return known
    try:
        return np.asarray(value).ndim
    except ValueError:
        raise TypeError(f"{name} must be numeric, got lists of several lengths") from None


def _shape(value):
    try:
        return np.shape(value)
    except ValueError:
        return "of several lengths"


def one_of(name, value, choices):
    """Return the value, when it is one of the choices."""
    try:
        known = hash(value) is not None and bool(value in choices)  # an array is no choice, nor is pandas' NA
    except (TypeError, ValueError):
        known = False
    if not known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def flag(name, value):
    """Return the value as a bool, when it is one: "no" is not, and would count as true."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def seeded(name, value):
    """Return a generator of random numbers: the one given, one with this seed, or any for None."""
    try:
        if isinstance(value, (bool, np.bool_, str)) or hasattr(value, "__len__"):  # numpy takes lists, and mixes them
            raise TypeError
        return np.random.default_rng(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an integer >= 0, a Generator or None, got {value!r}") from None


def given_function(name, function, takes):
    """Return a user's function whose errors name the argument that it was given as, and whose values are numbers."""
    if not callable(function):
        raise TypeError(f"{name} must be a function of {takes}, got {type(function).__name__}")

    def call(*arguments):
        try:
            value = function(*arguments)
        except (TypeError, ValueError, AttributeError, LookupError) as error:
            raise TypeError(f"{name} must be a function of {takes}, got {function!r}, which fails: {error}") from error
        return real_array(f"the value of {name}", value, finite=False)[()]

    return call


def unmasked(name, value):
    """Return the value, when it has no masked entries: the number behind a mask means nothing."""
    if np.ma.is_masked(value):
        n = int(np.ma.count_masked(value))
        raise ValueError(f"{name} must hold no masked values, got {n}: fill them in, or leave these rows out")
    return value


def not_lost(name, X):
    """Return X (n, L), when its numbers are all zero or not all so small that their squares are lost."""
    size = np.abs(X).max(initial=0.0)
    if 0.0 < size < 1.0 / LARGEST:
        raise ValueError(f"{name} must hold numbers of size >= {1.0 / LARGEST:g}, got none above {size:g}: scale it")
    return X


def squarable(name, X, columns=None):
    """Return X (n, L), when no number in it is so large that variances overflow."""
    sizes = np.abs(X).max(axis=0, initial=0.0)
    if (bad := np.flatnonzero(sizes > LARGEST)).size:
        column = int(bad[0]) if columns is None else columns[bad[0]]
        raise ValueError(
            f"{name} must hold numbers of size <= {LARGEST:g}, got {sizes[bad[0]]:g} in column {column!r}: "
            "correct it, or divide the column by its scale"
        )
    return X


def one_hot_room(name, n, L, Q):
    """Refuse so many states Q of n rows and L columns that their encoding would not fit in memory."""
    if Q < 2:
        raise ValueError(f"{name} must be at least 2, got {Q}")
    floats = max(n * L, Q) * Q
    if floats > MOST_FLOATS:
        raise ValueError(
            f"{name} must leave arrays of at most {MOST_FLOATS:,} numbers, got {Q}, which makes {floats:,} with "
            f"{n:,} rows of {L:,} columns: merge rare states"
        )


def positive_int(name, value, most=math.inf):
    """Return the value as an int, when it is one ≥ 1, and not too many."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}")
    if value > most:
        got = f"{value:,}" if value < 10**18 else f"one of {len(str(value))} digits"
        raise ValueError(f"{name} must be at most {most:,}, got {got}")
    return int(value)


def position(name, value, n):
    """Return the value as an int, when it is the number of one of n things, counted from 0 or from the end."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not -n <= value < n:
        raise ValueError(f"{name} must be an integer >= {-n} and < {n}, got {value!r}")
    return int(value)


def listed(name, value, of="names"):
    """Return the value as a list: a string becomes a list of one; a value that is not iterable is refused."""
    if isinstance(value, str):
        return [value]
    try:
        entries = [] if isinstance(value, (bytes, dict)) else list(value)
        if isinstance(value, (bytes, dict)) or any(getattr(entry, "ndim", 0) for entry in entries):
            raise TypeError
        return entries
    except TypeError:
        raise TypeError(f"{name} must be a list of {of}, got {_kind(value)}") from None


def room(name, value, floats):
    """Return the value, a size, when the array of so many numbers that it makes fits in memory."""
    if floats > MOST_FLOATS:
        got = f"{value:.6g}" if value < 1e300 else "more than 1e300"
        raise ValueError(f"{name} must leave arrays of at most {MOST_FLOATS:,} numbers, got {got}")
    return value


def instance(name, value, *kinds):
    """Return the value, when it is of one of these classes."""
    if not isinstance(value, kinds):
        raise TypeError(f"{name} must be a {' or '.join(k.__name__ for k in kinds)}, got {type(value).__name__}")
    return value


def _kind(value):
    return repr(value) if isinstance(value, (str, bytes, bool, np.bool_)) else type(value).__name__


def _first(array, bad):
    return f"{array[bad].flat[0]:g}"


def states(name, X, Q, dtype=np.intp):
    """Return X as integers, when they are states 0 … Q-1."""
    if X.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold states 0 … {Q - 1} (n_states={Q}), got the type {X.dtype}")
    whole = X.dtype.kind in "biu" or np.array_equal(X, np.floor(X))
    if X.size and not (whole and X.min() >= 0 and X.max() < Q):
        bad = (X != np.floor(X)) | (X < 0) | (X >= Q)
        raise ValueError(f"{name} must hold states 0 … {Q - 1} (n_states={Q}), got {X[bad].flat[0]:g}")
    return X.astype(dtype, copy=False)
