"""Which bucket a slice goes to: buckets of equal work, also where some groupings cannot be split by a key."""

from __future__ import annotations

from weft.plan.layout import layouts
from weft.plan.model import Plan

PARTS = 1 << 16
"""In so many equal parts keys are hashed."""


def bucket_text(plan: Plan, buckets: int, grouping_column: str) -> str:
    """The bucket of a slice as one native Spark expression, by the keys that all queries of its grouping have."""
    columns = layouts(plan)
    whole = whole_groupings(plan, buckets)
    cuts = hash_cuts(plan, whole, buckets)
    choices = []
    for number, grouping in enumerate(plan.groupings):
        if number in whole:
            choices.append(f"WHEN {number} THEN {whole[number]}")
            continue
        own = {name: slot for slot, name in columns[number].names(number, grouping).items()}
        hashed = f"pmod(hash({', '.join([str(number), *(own[name] for name in grouping.placing_columns)])}), {PARTS})"
        steps = " ".join(f"WHEN {hashed} < {cut} THEN {bucket}" for bucket, cut in enumerate(cuts[:-1]))
        choices.append(f"WHEN {number} THEN " + (f"CASE {steps} ELSE {buckets - 1} END" if steps else "0"))
    return f"CASE {grouping_column} {' '.join(choices)} END"


def loads_of(plan: Plan) -> tuple[float, ...]:
    """How much work each grouping is, as far as it is known."""
    return plan.loads or (1.0,) * len(plan.groupings)


def whole_groupings(plan: Plan, buckets: int) -> dict[int, int]:
    """Groupings without a key that all their queries share, and the bucket of each: heaviest first, to the least."""
    loads = loads_of(plan)
    work = [0.0] * buckets
    placed: dict[int, int] = {}
    unsplit = [number for number, grouping in enumerate(plan.groupings) if not grouping.placing_columns]
    for number in sorted(unsplit, key=lambda number: -loads[number]):
        bucket = min(range(buckets), key=lambda bucket: work[bucket])
        work[bucket] += loads[number]
        placed[number] = bucket
    return placed


def hash_cuts(plan: Plan, whole: dict[int, int], buckets: int) -> list[int]:
    """Up to which hash each bucket takes keys: less where it has whole groupings to do already."""
    loads = loads_of(plan)
    work = [sum(loads[number] for number, at in whole.items() if at == bucket) for bucket in range(buckets)]
    room = [max(sum(loads) / buckets - done, 0.0) for done in work]
    total = sum(room) or 1.0
    return [round(PARTS * sum(room[: bucket + 1]) / total) for bucket in range(buckets)]
