"""Rows of every type that aggregates take, in slices: some all NULL, one with a NaN, none with digits that cancel."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

SLICES = 8
ROWS = 12
"""Of a slice."""
NULLS, NAN = 3, 5
"""The slice that holds nothing but NULL, and the one with a NaN."""
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)

ARGUMENTS = pa.schema(
    [
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("n", pa.decimal128(9, 2)),
        ("w", pa.decimal128(25, 3)),
        ("b", pa.bool_()),
        ("s", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
"""What aggregates may be given."""
WHOLE = {"i": "whole_i", "f": "whole_d"}
"""By the kind of items: the column that is never NULL and holds such."""
SCHEMA = pa.schema(
    [
        ("slice", pa.int32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("k", pa.string()),
        *ARGUMENTS,
        ("whole_i", pa.int64()),
        ("whole_d", pa.float64()),
    ]
)


def sample() -> pa.Table:
    """The rows, slice after slice in the order of time; the same ones each time.

    Examples
    --------
    >>> sample().num_rows == SLICES * ROWS
    True
    """
    return pa.Table.from_pylist(list(_rows(random.Random(7))), SCHEMA)


def _rows(rnd: random.Random) -> Iterator[dict[str, Any]]:
    for number in range(SLICES * ROWS):
        where = number // ROWS
        arguments = _arguments(rnd, number)
        if where == NAN and number % ROWS == 4:
            arguments |= {"f": float("nan"), "d": float("nan")}
        missing = [name for name in arguments if where == NULLS or rnd.random() < 0.15]
        yield {
            "slice": where,
            "ts": BEGIN + timedelta(milliseconds=1000 * number + rnd.randrange(1000)),
            "k": rnd.choice("ab"),
            **arguments,
            **dict.fromkeys(missing),
            "whole_i": rnd.randrange(1000),
            "whole_d": rnd.randrange(-1000, 100_000) / 64,
        }


def _arguments(rnd: random.Random, number: int) -> dict[str, Any]:
    """One value a type; no two rows have the same, where the type has as many."""
    return {
        "tiny": number - 40,
        "small": rnd.randrange(-1000, 10_000) * 2,
        "i": rnd.randrange(-(2**28), 2**30),
        "l": rnd.randrange(-(2**48), 2**50),
        "f": rnd.randrange(-1000, 10_000) / 8,
        "d": rnd.uniform(-20.0, 150.0),
        "n": Decimal(rnd.randrange(-1000, 10**6)).scaleb(-2),
        "w": Decimal(rnd.randrange(-(10**22), 10**24)).scaleb(-3),
        "b": rnd.random() < 0.5,
        "s": f"{rnd.randrange(10**6)}.{number:03}",
        "day": date(2020, 1, 1) + timedelta(days=rnd.randrange(2000)),
        "at": BEGIN + timedelta(seconds=rnd.randrange(10**6), microseconds=number),
    }
