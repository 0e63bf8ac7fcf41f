"""What a forest costs. All models are linear in the same four quantities, so optimizers need to know only one shape.

==========  ===================  =====================================================================
model       unit                 cost of a tree with edge rate E, overlap Ω and A answers a second
==========  ===================  =====================================================================
two-level   operations a second  λ + E·Ω                                    (000 Eq. 1, 004 Eq. 7.1)
three-level operations a second  E_all + E·Ω, and once λ                    (TriWeave: rows are cut once)
calibrated  seconds a second     either of the two with measured constants, whichever is cheaper
==========  ===================  =====================================================================

E_all is the edge rate of all queries together: every tree reads each of those fine slices once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from weft.optimize.constants import Constants
from weft.optimize.omega import TechniqueCode

Levels = Literal[2, 3]


@dataclass(frozen=True, slots=True)
class CostModel:
    """``per_tree + E * (per_edge + per_operation * Ω) + per_answer * A`` for a tree, ``shared`` once for the forest."""

    name: str
    levels: Levels
    per_tree: float
    per_edge: float = 0.0
    per_operation: float = 1.0
    per_answer: float = 0.0
    shared: float = 0.0

    def tree(self, edge_rate: float, overlap: float, answers: float) -> float:
        """Cost of one tree.

        Examples
        --------
        >>> two_level(rate=1.2).tree(edge_rate=0.25, overlap=6.0, answers=0.5)
        2.7
        """
        return self.per_tree + edge_rate * (self.per_edge + self.per_operation * overlap) + self.per_answer * answers


def two_level(rate: float) -> CostModel:
    """The papers' model: every tree reads every row (000 Eq. 3)."""
    return CostModel("two-level", 2, per_tree=rate)


def three_level(rate: float, all_edges: float) -> CostModel:
    """TriWeave's: rows are cut once at ``all_edges`` a second, trees assemble their slices from those."""
    return CostModel("three-level", 3, per_tree=all_edges, shared=rate)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the calibrated model wants to know of a stream and its queries besides the rate."""

    groups: float = 1.0
    """Expected number of groups (distinct keys)."""
    columns: float = 1.0
    """Numbers that are kept of a slice."""


def calibrated(
    rate: float, all_edges: float, levels: Levels, technique: str, constants: Constants, traffic: Traffic
) -> CostModel:
    """Seconds of work per second of stream, with measured constants.

    A slice exists once a group, as far as there are rows to fill it: at ``all_edges`` cuts a second there are at most
    ``rate / all_edges`` groups with a row in a slice.
    """
    filled = max(1.0, min(traffic.groups, rate / all_edges))
    row = constants.row + constants.update * traffic.columns
    handed = (constants.slice + constants.number * traffic.columns) * filled
    merged = (constants.pane + constants.merge * traffic.columns) * filled
    operation = merged if technique == TechniqueCode.BULK.label else constants.kernel[technique] * filled
    answer = (constants.answer + constants.value) * filled
    if levels == 2:
        return CostModel("calibrated", 2, rate * row, handed, operation, answer)
    return CostModel(
        "calibrated",
        3,
        per_tree=all_edges * merged,
        per_operation=operation,
        per_answer=answer,
        shared=rate * row + all_edges * handed,
    )
