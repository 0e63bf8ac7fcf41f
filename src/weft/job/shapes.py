"""What the answers of a name look like: as they did when the name was first used, for as long as the checkpoint lives.

Sinks have a table or a folder a query, made for its columns, and a batch is committed before a sink takes it. Answers
of other columns under the same name would therefore stop the whole job, at every start, when they reach their sink.
So a query that looks otherwise than an earlier one of its name is refused before it is planned.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from weft.errors import QueryError
from weft.job.checkpoint import Checkpoint

RECORD = "shapes.json"
Shape = dict[str, Any]
"""All that a place for answers is made for: columns, types, and what tells one row from another."""


class Shaped(Protocol):
    """A query whose answers have a shape."""

    @property
    def shape(self) -> Shape:
        """What its answers look like."""


class Shapes:
    """The shapes of all queries that were ever answered, by name; upper and lower case are one."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._read: dict[str, Shape] | None = None

    @property
    def _known(self) -> dict[str, Shape]:
        # not before it is asked for: until then another driver may be writing
        if self._read is None:
            self._read = json.loads(self._checkpoint.read(RECORD) or b"{}")
        return self._read

    def refused(self, bound: Mapping[str, Shaped]) -> dict[str, QueryError]:
        """Why queries cannot have their names."""
        found = {}
        for name, one in bound.items():
            now = one.shape
            before = self._known.get(name.lower(), now)
            if before != now:
                message = f"it answers {described(now)}, but the name was given to a query of {described(before)}"
                hint = "places for answers are made once for a name: choose another name"
                found[name] = QueryError(message, hint=hint, query=name)
        return found

    def keep(self, bound: Mapping[str, Shaped]) -> None:
        """Remember what the answers of these queries look like, unless their names are known."""
        new = {name.lower(): one.shape for name, one in bound.items() if name.lower() not in self._known}
        if new:
            self._read = {**self._known, **new}
            self._checkpoint.put(RECORD, json.dumps(self._read).encode())


def described(shape: Shape) -> str:
    """A shape in words.

    Examples
    --------
    >>> described({"columns": [["k", "string"], ["n", "bigint"]], "window": [None, None], "keys": ["k"]})
    'k string, n bigint (a row a k)'
    """
    columns = ", ".join(f"{name} {kind}" for name, kind in shape["columns"])
    telling = [*(column for column in shape["window"] if column), *(shape["keys"] or ())]
    return f"{columns} (a row a {', '.join(telling)})" if telling else columns
