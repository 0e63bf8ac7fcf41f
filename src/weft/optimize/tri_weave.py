"""TriWeave (004 §2.4.2): Weave Share's merging under the three-level cost, where rows are cut once for all trees.

Merging x and y saves E_all + E_x·Ω_x + E_y·Ω_y - E_xy·Ω_xy: one tree less reads the fine slices. So the difference to
Weave Share lies in the cost model alone, which :func:`weft.optimize.optimize` sets to ``three-level``.
"""

from __future__ import annotations

from random import Random

from weft.optimize.loom import Loom, Partition
from weft.optimize.weave_share import weave_share


def tri_weave(loom: Loom, rng: Random) -> Partition:
    """Weave under the loom's three-level model."""
    if loom.model.levels != 3:
        raise ValueError("tri-weave needs a three-level cost model")
    return weave_share(loom, rng)
