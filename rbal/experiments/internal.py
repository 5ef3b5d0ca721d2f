"""What other rooms use of this one, in addition to its public names."""

from ._training_trial import measured

__all__ = ["measured"]
