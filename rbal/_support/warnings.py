"""Warnings of the package."""

import contextlib
import warnings


def convergence_warning():
    """Return scikit-learn's warning class, imported only when it is needed."""
    from sklearn.exceptions import ConvergenceWarning

    return ConvergenceWarning


@contextlib.contextmanager
def told_once():
    """Decorate a function that solves many saddle points: it warns of those that fail once, with their number."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    failed = []
    for one in caught:
        if issubclass(one.category, convergence_warning()):
            failed.append(one)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    if failed:
        first = getattr(failed[0].message, "first", str(failed[0].message))
        times = sum(getattr(one.message, "times", 1) for one in failed)  # some of them were gathered before
        told = convergence_warning()(first + f" (and so in {times - 1} more solutions on the way)" * (times > 1))
        told.first, told.times = first, times
        warnings.warn(told, stacklevel=4)  # past this function, the context and the decorator
