"""The ways to a solution where the first attempt fails, by their addresses: compiled when a point first needs them."""

import numpy as np
from numba import typeof, types

from .._support.jit import FLOAT, INT, VECTOR, address, late
from ..losses.internal import CALLS, TRAITS
from ._kernels import kinds as newton_kinds
from ._problem import RIDGE, UNSAT, Question
from ._ridge import rescue_ridge
from ._sphere import rescue_sphere


def kinds():
    """Types of the arguments: the question, the problem, the spectrum, y, the phase of a neighbour, iterations."""
    problem, spectrum, *_ = newton_kinds()
    question = Question(UNSAT, np.empty((3, CALLS), np.int64), np.empty((3, TRAITS)), 0.0, True, 0.0, 0, 0, 0)
    return typeof(question), problem, spectrum, VECTOR, INT, INT


OUTCOME = types.Tuple((FLOAT, INT, INT))
rescue_at = late(OUTCOME, kinds)


READY = {}  # for each loss and mode that needed a rescue: the tables of its laws, and the address


def tables_and_rescue(law, mode, needed=False):
    """What a question of this loss and mode holds as ``calls``, ``traits`` and ``rescue``.

    All ways and laws of a rescue are compiled when it is first needed; until then its address is 0.
    """
    if needed and (law, mode) not in READY:
        function, tables = (rescue_ridge, law.table) if mode == RIDGE else (rescue_sphere, law.tables)
        READY[law, mode] = (*tables, address(function, OUTCOME, kinds()))
    return READY.get((law, mode), (*law.table, 0))
