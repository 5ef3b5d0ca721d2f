"""What other rooms use of this one, in addition to its public names."""

from ._interior import fit_svm

__all__ = ["fit_svm"]
