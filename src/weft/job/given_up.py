"""Answers that nobody is to have any more: some sink can never take them, and the rest is to go on."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable

from weft.errors import UseError
from weft.job.checkpoint import Checkpoint
from weft.job.history import History

FILE = "given-up.json"


def give_up_answers(checkpoint: Checkpoint, query: str) -> int:
    """Have no sink be given the answers of a query that are committed by now; gives the last of these batches."""
    history = History(checkpoint)
    batches = history.committed()
    waiting = dict.fromkeys(name for batch in batches for name in history.manifest(batch).answers)
    if query not in waiting:
        close = difflib.get_close_matches(query, waiting, 1)
        hint = f"did you mean {close[0]}?" if close else f"there are answers of {', '.join(waiting) or 'none'}"
        raise UseError(f"{checkpoint.root} keeps no answers of a query {query}, which could be given up; {hint}")
    checkpoint.put(FILE, json.dumps(_through(checkpoint) | {query: batches[-1]}).encode())
    return batches[-1]


def answers_given_up(checkpoint: Checkpoint, batches: Iterable[int]) -> set[tuple[str, int]]:
    """Of some committed batches: the queries whose answers were given up, each with its batch."""
    through = _through(checkpoint)
    return {(query, batch) for batch in batches for query, last in through.items() if batch <= last}


def _through(checkpoint: Checkpoint) -> dict[str, int]:
    """By query: the last batch whose answers were given up."""
    data = checkpoint.read(FILE)
    return {} if data is None else json.loads(data)
