"""What other rooms use of this one, beside its public names."""

from ._training_trial import measured

__all__ = ["measured"]
