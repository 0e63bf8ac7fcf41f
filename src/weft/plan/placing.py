"""Which bucket a slice goes to: buckets of equal work, also where some groupings cannot be split by a key."""

from __future__ import annotations

from weft.plan.layout import layouts
from weft.plan.model import Plan

PARTS = 1 << 16
"""In so many equal parts keys are hashed."""


def hash_text(plan: Plan, grouping_column: str) -> str:
    """A number below ``PARTS`` as one native Spark expression: equal for slices that have to meet in one bucket."""
    columns = layouts(plan)
    choices = []
    for number, grouping in enumerate(plan.groupings):
        own = {name: slot for slot, name in columns[number].names(number, grouping).items()}
        keys = [own[name] for name in grouping.placing_columns]
        choices.append(f"WHEN {number} THEN pmod(hash({', '.join([str(number), *keys])}), {PARTS})")
    return f"CAST(CASE {grouping_column} {' '.join(choices)} END AS BIGINT)"


def bucket_text(plan: Plan, buckets: int, grouping_column: str, hash_column: str) -> str:
    """The bucket of a slice as one native Spark expression, by the keys that all queries of its grouping have."""
    whole = whole_groupings(plan, buckets)
    cuts = enumerate(hash_cuts(plan, whole, buckets)[:-1])
    steps = " ".join(f"WHEN {hash_column} < {cut} THEN {bucket}" for bucket, cut in cuts)
    hashed = f"CASE {steps} ELSE {buckets - 1} END" if steps else "0"
    choices = " ".join(f"WHEN {number} THEN {bucket}" for number, bucket in whole.items())
    return f"CASE {grouping_column} {choices} ELSE {hashed} END" if choices else hashed


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
