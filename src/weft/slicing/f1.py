"""F1, the closed formula of 004 ch. 5: inclusion-exclusion over all groups of progressions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import gcd

from weft.slicing.edges_bitmap import OverBudgetError
from weft.slicing.progression import Progression, composite_slide

GROUPS = 1 << 24
"""Default limit on groups: about half a minute."""

# 004 §5.2.4: gcds of small numbers come up again and again
memoized_gcd = lru_cache(maxsize=1 << 20)(gcd)


def f1(progressions: Sequence[Progression], budget: int = GROUPS) -> Fraction:
    """Edges per microsecond by Eq. 5.7: each group of i progressions that overlap adds (-1)^(i+1) / lcm of its steps.

    A group is discarded, with all that extend it, as soon as one pair fails the overlap check (Eq. 5.6).

    Examples
    --------
    >>> f1([Progression(3), Progression(4), Progression(4, 3), Progression(6), Progression(6, 2), Progression(9)]) * 36
    Fraction(27, 1)
    """
    composite = composite_slide(progressions)
    count = len(progressions)
    edges = groups = 0
    # a group's lcm grows by one progression at a time: (index of its last member, lcm, sign, members)
    open_groups: list[tuple[int, int, int, tuple[int, ...]]] = [(-1, 1, -1, ())]
    while open_groups:
        last, common, sign, members = open_groups.pop()
        for index in range(last + 1, count):
            step, offset = progressions[index].step, progressions[index].offset
            if any(_apart(progressions[member], step, offset) for member in members):
                continue
            longer = common // memoized_gcd(common, step) * step
            edges -= sign * (composite // longer)
            open_groups.append((index, longer, -sign, (*members, index)))
            groups += 1
        if groups > budget:
            raise OverBudgetError(f"F1 needs more than {budget} groups: count with method='factored'")
    return Fraction(edges, composite)


def _apart(one: Progression, step: int, offset: int) -> bool:
    """The overlap check: whether two progressions have no common edge."""
    return (one.offset - offset) % memoized_gcd(one.step, step) != 0
