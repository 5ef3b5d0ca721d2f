"""Warnings of the package."""

import contextlib
import warnings


def convergence_warning():
    """Return scikit-learn's warning class, imported only when it is needed."""
    from sklearn.exceptions import ConvergenceWarning

    return ConvergenceWarning


@contextlib.contextmanager
def one_convergence_warning():
    """Decorate a function that solves many saddle points: it warns of those that fail once, with their number."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    failed = []
    for warning in caught:
        if issubclass(warning.category, convergence_warning()):
            failed.append(warning)
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if failed:
        message = getattr(failed[0].message, "first", str(failed[0].message))
        times = sum(getattr(warning.message, "times", 1) for warning in failed)  # some of them were gathered before
        summary = convergence_warning()(message + f" (and so in {times - 1} more solutions on the way)" * (times > 1))
        summary.first, summary.times = message, times
        warnings.warn(summary, stacklevel=4)  # past this function, the context and the decorator
