"""The aggregates that Weft brings, a family a file. A new file is listed here, and that is its registration."""

from weft.algebra.aggregates import (
    attempts,
    bits,
    booleans,
    counts,
    covariances,
    extremes,
    firsts,
    moments,
    regressions,
    sums,
    winners,
)

FAMILIES = tuple(
    family.AGGREGATES
    for family in (
        counts,
        sums,
        attempts,
        extremes,
        moments,
        covariances,
        regressions,
        booleans,
        bits,
        winners,
        firsts,
    )
)
