"""Experiments that take too long for a chapter of the book, and their results.

Each study is one module, whose docstring says how it runs, how it resumes and where it is stored: ``_sampling``
(chapter likelihood_informed), ``_log_z`` (generative), ``_pairs``, ``_parts`` and ``_sizes`` (parts), ``_digits``
(many_classes), ``_kernels`` and ``_kernel_images`` (kernels), ``_deep`` (deep, with PyTorch) and the packages
``tables`` and ``advice`` (your_data).
``python -m rbal_book.studies NAME`` runs one of them, or what is missing; the targets ``study-…`` and ``deep`` of make
call it. The results come with the package, so that a chapter can draw hours of computing in a second: :func:`stored`
reads them.
"""

from ._compare import Clustered, at_best, clustered, holm, paired
from ._sampling import MINORITIES, MIXINGS, N_MAJORITY, N_TEST, QUICK, STRATEGIES, sampling, tidy
from ._sizes import approach
from ._stored import RESULTS, stored

__all__ = [
    "MINORITIES",
    "MIXINGS",
    "N_MAJORITY",
    "N_TEST",
    "QUICK",
    "RESULTS",
    "STRATEGIES",
    "Clustered",
    "approach",
    "at_best",
    "clustered",
    "holm",
    "paired",
    "sampling",
    "stored",
    "tidy",
]
