"""Windows given by their bounds, answered by any technique."""

from __future__ import annotations

import numpy as np

from weft.algebra.monoid import Monoid
from weft.algebra.numbers import Columns
from weft.evaluate import bulk
from weft.evaluate.columns import empty_columns, frozen
from weft.evaluate.drivers import slide_bounds
from weft.evaluate.operations import new_tally
from weft.evaluate.registry import technique_named


def slide(monoid: Monoid, values: Columns, lo: np.ndarray, hi: np.ndarray, technique: str = "auto") -> Columns:
    """Merge ``values[lo[i]:hi[i]]``, in order, for every ``i``, by the technique of that name.

    ``auto`` takes the bulk kernel for the monoid's algebra, see :func:`weft.evaluate.bulk.slide`, whose contract on
    ``values``, ``lo`` and ``hi`` holds here too. Any other name runs that technique item by item.

    Examples
    --------
    >>> import numpy as np
    >>> from weft.algebra.monoids import max_int
    >>> values = (np.array([3, 1, 4, 1, 5]),)
    >>> slide(max_int, values, np.array([0, 0, 1, 2]), np.array([1, 2, 4, 5]), "daba-lite")
    (array([3, 3, 4, 5]),)
    """
    if technique == "auto":
        return bulk.slide(monoid, values, lo, hi)
    chosen = technique_named(technique)
    run = chosen.bind(monoid, slide_bounds)
    out = empty_columns(monoid, len(lo))
    memory, state = chosen.allocate(monoid, (max(bulk.widest(*frozen((lo, hi))), 1),))
    run(memory, state, frozen(values), *frozen((lo, hi)), out, new_tally())
    return out
