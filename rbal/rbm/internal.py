"""What other rooms use of this one, in addition to its public names."""

from ._machine import serial_products
from ._partition import annealed, both_directions, bridged, enumerable, enumerated, path_to

__all__ = ["annealed", "both_directions", "bridged", "enumerable", "enumerated", "path_to", "serial_products"]
