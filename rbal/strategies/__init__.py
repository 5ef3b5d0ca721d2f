r"""Under-, over- and mixed sampling, class weights and moved thresholds, on the theory.

Restoring balance needs one number. With ``mixing`` :math:`\mu\in[0,1]` every sample of the minority counts

.. math:: c = 1 + \mu\,\frac{\alpha_\text{maj} - \alpha_\text{min}}{\alpha_\text{min}}

times, and :math:`c\,\alpha_\text{min}` samples of the majority are kept: 0 is random undersampling, 1 random
oversampling. To the theory a sample that is there c times is one sample whose loss has weight c.
"""

from ._compare import compare
from ._mixing import BestMixing, balanced, best_mixing, imbalanced, mix
from ._records import REMEDIES, Remedy, register
from ._window import Window, window

__all__ = [
    "REMEDIES", "BestMixing", "Remedy", "Window",
    "balanced", "best_mixing", "compare", "imbalanced", "mix", "register", "window",
]  # fmt: skip
