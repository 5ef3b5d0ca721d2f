r"""Under-, over- and mixed sampling, class weights and moved thresholds, on the theory.

Restoring balance needs one number. With ``mixing`` :math:`\mu\in[0,1]` every sample of the minority counts

.. math:: c = 1 + \mu\,\frac{\alpha_\text{maj} - \alpha_\text{min}}{\alpha_\text{min}}

times, and :math:`c\,\alpha_\text{min}` samples of the majority are kept: 0 is random undersampling, 1 random
oversampling. To the theory a sample that is there c times is one sample whose loss has weight c.
"""

from ._adjust import ADJUSTMENTS, Adjustment, BestAdjustment, Change, adjust, best_adjustment, register_adjustment
from ._bagging import Bagging, bagging
from ._classifier import BestClassifier, best_classifier
from ._compare import compare
from ._intervals import Interval, interval
from ._mixing import BestMixing, balanced, best_mixing, imbalanced, mix
from ._multiclass_remedies import ManyDesign, compare_many, design_many, logit_offsets, restore
from ._own_widths import own_widths
from ._remedy_record import REMEDIES, Remedy, register
from ._window import Window, window

__all__ = [
    "ADJUSTMENTS", "REMEDIES", "Adjustment", "Bagging", "BestAdjustment", "BestClassifier", "BestMixing", "Change",
    "Interval", "ManyDesign", "Remedy", "Window", "adjust", "bagging", "balanced", "best_adjustment",
    "best_classifier", "best_mixing", "compare", "compare_many", "design_many", "imbalanced", "interval",
    "logit_offsets", "mix", "own_widths", "register", "register_adjustment", "restore", "window",
]  # fmt: skip
