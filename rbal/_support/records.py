"""Registries: records by name, which everything that offers a choice loops over."""


def enter(registry, kind, record):
    """Enter a record of this kind under its name, which must be free; returns it."""
    if not isinstance(record, kind):
        raise TypeError(f"record must be a {kind.__name__}, got {type(record).__name__}")
    if record.name in registry:
        raise ValueError(f"name must be new, got {record.name!r}, which is taken")
    registry[record.name] = record
    return record
