"""Registries: records by name, which everything that offers a choice loops over."""

from importlib import import_module
from pickle import PicklingError


class Record:
    """A record that is pickled as its name, since its functions cannot be, and copied as itself, since it is frozen."""

    _registry = ("", "")  # module and name of the registry

    def __reduce__(self):
        module, name = self._registry
        if getattr(import_module(module), name).get(self.name) is not self:
            raise PicklingError(f"{self.name!r} must be in {module}.{name} to be pickled: register it first")
        return known, (module, name, self.name)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


def known(module, name, key):
    """Return the record of a registry; unpickling calls this, perhaps in another process."""
    registry = getattr(import_module(module), name)
    if key not in registry:
        raise ValueError(f"{key!r} must be in {module}.{name} to be unpickled: register it in this process too")
    return registry[key]


def enter(registry, kind, record):
    """Enter a record of this kind under its name, which must be free; returns it."""
    if not isinstance(record, kind):
        raise TypeError(f"record must be a {kind.__name__}, got {type(record).__name__}")
    if record.name in registry:
        raise ValueError(f"name must be new, got {record.name!r}, which is taken")
    registry[record.name] = record
    return record
