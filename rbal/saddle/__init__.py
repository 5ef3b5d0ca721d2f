r"""Order parameters of the trained classifier: :func:`solve` for one point, :func:`sweep` for many.

The eight saddle-point equations collapse. In the eigenbasis of the covariance the weight side is a handful of sums over
eigenvalues; the data side is three Gaussian expectations of the loss. What is left are three unknowns,
:math:`\log q, \log x` and :math:`r`: for given values the bias solves a monotone equation, and so does the
multiplier :math:`\hat k` of the sphere. Newton's method with the analytic Jacobian closes the rest in some six
iterations. Where it fails, the solver looks for the reason: the data are separable (the SAT phase, with its own
equations), the weights of an SVM vanish, or the start was poor, and then it follows the solution from an easier
problem.

For a mixture of clusters the unknowns are :math:`\log q, \log x` of each covariance and :math:`m` of each cluster, and
the same method closes them: with sums over eigenvalues where the covariances share a basis, and otherwise with one
factorisation a step.
"""

from .._support.warnings import convergence_warning
from ._mixture_solve import MixtureSolution
from ._multinomial import MultinomialSolution, solve_multinomial
from ._overlap import Overlap, overlap
from ._ovr import OvrSolution, solve_ovr
from ._residuals import Residuals, residuals
from ._solve import MODELS, PHASES, Solution, solve, sweep

__all__ = [
    "MODELS", "PHASES", "MixtureSolution", "MultinomialSolution", "Overlap", "OvrSolution", "Residuals", "Solution",
    "overlap", "residuals", "solve", "solve_multinomial", "solve_ovr", "sweep",
]  # fmt: skip


def __getattr__(name):
    if name == "ConvergenceWarning":
        return convergence_warning()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
