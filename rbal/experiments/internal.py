"""What other rooms use of this one, beside its public names."""

from ._train import measured

__all__ = ["measured"]
