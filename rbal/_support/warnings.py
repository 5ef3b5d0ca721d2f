"""Warnings of the package."""


def convergence_warning():
    """Return scikit-learn's warning class, imported only when it is needed."""
    from sklearn.exceptions import ConvergenceWarning

    return ConvergenceWarning
