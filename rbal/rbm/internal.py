"""What other rooms use of this one, beside its public names."""

from ._machine import serial_products
from ._partition import annealed, bridged, enumerable, enumerated, path_to, there_and_back

__all__ = ["annealed", "bridged", "enumerable", "enumerated", "path_to", "serial_products", "there_and_back"]
