"""The check of an answer."""

import numpy as np

from ._exercises import EXERCISES


def check(name, answer):
    """Check the answer to an exercise of a lesson, and print whether it is right, or else a hint.

    Parameters
    ----------
    name : str
        The exercise, as the lesson names it.
    answer : float, bool, str, tuple, list or set
        What was found; ``...`` as long as there is none.

    Returns
    -------
    right : bool or None
        None if there is no answer yet.
    """
    if not isinstance(name, str) or name not in EXERCISES:
        raise ValueError(f"name must be one of {', '.join(EXERCISES)}, got {name!r}")
    exercise = EXERCISES[name]
    if answer is ...:
        print("No answer yet: put it in place of the dots.")
        return None
    expected = exercise.expected()
    if _same(answer, expected, exercise.tolerance):
        print(exercise.right)
        return True
    slip = next((text for text, value in exercise.slips.items() if _same(answer, value(), exercise.tolerance)), None)
    print(f"Not yet. {_kind(answer, expected) or slip or exercise.hint}")
    return False


def _same(answer, expected, tolerance):
    """Whether two answers agree: numbers within the tolerance, all else exactly, whatever the kind of container."""
    if isinstance(expected, float):
        try:
            return _is_number(answer) and abs(float(answer) - expected) <= tolerance
        except (OverflowError, TypeError):  # beyond all numbers, or complex
            return False
    if isinstance(expected, (list, tuple)):
        return isinstance(answer, (list, tuple, np.ndarray)) and list(answer) == list(expected)
    if isinstance(expected, set):
        return isinstance(answer, (list, tuple, set)) and set(answer) == expected
    return isinstance(answer, (bool, np.bool_)) and bool(answer) == expected


def _is_number(answer):
    return np.issubdtype(type(answer), np.number) and not isinstance(answer, (bool, np.bool_))


def _kind(answer, expected):
    """What to say to an answer of another kind than is asked for; None if it is of that kind."""
    if isinstance(expected, bool):
        return None if isinstance(answer, (bool, np.bool_)) else "The answer is True or False."
    if isinstance(expected, float):
        return None if _is_number(answer) else "The answer is one number."
    return None if isinstance(answer, (list, tuple, set, np.ndarray)) else "The answer is several names in brackets."
