"""A committed batch as sinks take it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.job.checkpoint import Checkpoint
from weft.job.history import ANSWERS
from weft.job.records import Manifest
from weft.job.sink import CommittedBatch, QueryAnswers
from weft.query.model import Part
from weft.spark.bind import Bound
from weft.spark.live.planning import LivePlan


def committed_batch(
    checkpoint: Checkpoint, manifest: Manifest, live: LivePlan, names: Iterable[str], run: str
) -> CommittedBatch:
    """The answers of the queries ``names`` in a batch."""
    root = f"{checkpoint.folder.root}/{ANSWERS}"
    queries = [
        query_answers(live.bound[name], [f"{root}/{file}" for file in manifest.answers.get(name, [])]) for name in names
    ]
    return CommittedBatch(manifest.batch, tuple(queries), manifest.watermark, run)


def query_answers(bound: Bound, files: Sequence[str]) -> QueryAnswers:
    """The answers of one query: its files, and which columns tell window and group."""
    window, keys = identity(bound)
    return QueryAnswers(bound.query.name, bound.arrow_schema, tuple(files), window, keys)


def identity(bound: Bound) -> tuple[tuple[str | None, str | None], tuple[str, ...] | None]:
    """The columns that hold a window's start and end, and those of the group's keys if all are shown."""
    query = bound.query
    start = end = None
    keys: dict[int, str] = {}
    for output, column in zip(query.query.outputs, query.columns, strict=True):
        if output.part is Part.WINDOW:
            start, end = f"{column}.start", f"{column}.end"
        elif output.part is Part.WINDOW_START:
            start = column
        elif output.part is Part.WINDOW_END:
            end = column
        elif output.part is Part.KEY:
            keys[output.index] = column
    shown = tuple(keys[index] for index in sorted(keys)) if len(keys) == len(query.query.keys) else None
    return (start, end), shown
