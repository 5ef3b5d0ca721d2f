"""Columns of two frames, matched by their names."""


def names(X):
    """Return the names of the columns of a frame, or None; a table of pyarrow has them apart from its columns."""
    names = getattr(X, "column_names", getattr(X, "columns", None))
    return None if names is None else list(names)


def matching(X_pos, X_neg):
    """Return the columns of X_neg in the order of X_pos, or None where no names differ."""
    ours, theirs = names(X_pos), names(X_neg)
    if ours is None or theirs is None or ours == theirs:
        return None
    for alone, of, other in ((ours, "X_pos", theirs), (theirs, "X_neg", ours)):
        if missing := [name for name in alone if name not in other]:
            shown = ", ".join(map(repr, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
            raise ValueError(f"X_pos and X_neg must have the same columns, got {shown} in {of} alone")
    if len(set(ours)) < len(ours) or len(ours) != len(theirs):
        raise ValueError("X_pos and X_neg must have each column once, or in the same order, got a name twice")
    places = {name: j for j, name in enumerate(theirs)}
    return [places[name] for name in ours]
