"""Rows as slices of one row each, as far as a measure's own Spark expressions tell what that is.

Over a single row ``sum(e)`` or ``min(e)`` are e, ``count(e)`` is 1 or 0. So kernels that merge rows need nothing that
is not declared already: e is projected by Spark, and the measure's ``decode`` makes numbers of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.measure import Lift, Lifted, Measure
from weft.algebra.numbers import Array
from weft.errors import WeftError

CALL = re.compile(r"(\w+)\((.*)\)", re.DOTALL)
PLAIN = re.compile(r"\{(\d+)\}")
WIDEST_DECIMAL = 38


class NotLiftedError(WeftError):
    """A measure that kernels cannot make of rows."""


@dataclass(frozen=True, slots=True)
class OneRow:
    """What an aggregate function of Spark gives over a single row."""

    value: Callable[[Sequence[pa.Array], int], pa.Array]
    kind: Callable[[pa.DataType], pa.DataType]
    """The type of the aggregate, by that of the value."""


def lift_of(measure: Measure, types: Sequence[pa.DataType]) -> Lift:
    """How rows with arguments of these types become slices of one row; refused where nothing tells.

    Examples
    --------
    >>> from weft.algebra.aggregates.counts import counted
    >>> lift_of(counted("count({0}, {1})"), [pa.int32(), pa.string()]).inputs
    ('{0}', 'nvl2({1}, true, null)')
    """
    if measure.lift is not None:
        return measure.lift(types)
    calls = [_call(template, types) for template in measure.columns]
    inputs = tuple(dict.fromkeys(text for _, texts in calls for text in texts))
    places = [[inputs.index(text) for text in texts] for _, texts in calls]

    def rows(columns: Sequence[pa.Array], length: int) -> Lifted:
        values = [one.value([columns[at] for at in some], length) for (one, _), some in zip(calls, places, strict=True)]
        aggregates = [pa.array([], one.kind(value.type)) for (one, _), value in zip(calls, values, strict=True)]
        return Lifted(measure.decode(values), aggregates)

    return Lift(inputs, rows)


def _call(template: str, types: Sequence[pa.DataType]) -> tuple[OneRow, tuple[str, ...]]:
    """The function of a template, and what it is called with."""
    found = CALL.fullmatch(template)
    if found is None or found[1] not in FUNCTIONS:
        raise NotLiftedError(f"kernels do not know {template.format(*map(str, types))}")
    texts = tuple(_input(found[1], text, types) for text in split_arguments(found[2]))
    return FUNCTIONS[found[1]], tuple(text for text in texts if "{" in text)


def _input(function: str, text: str, types: Sequence[pa.DataType]) -> str:
    """An argument of a template; strings that are summed are read by Spark, and of long values to count only a bit."""
    plain = PLAIN.fullmatch(text)
    kind = types[int(plain[1])] if plain else None
    if plain is None and function == "sum" and any(pa.types.is_string(types[int(at)]) for at in PLAIN.findall(text)):
        raise NotLiftedError(f"kernels do not read the strings of {text.format(*map(str, types))}")
    if kind is None or pa.types.is_primitive(kind):
        return text
    if function in {"count", "regr_count"}:
        return f"nvl2({text}, true, null)"
    return f"double({text})" if function == "sum" and pa.types.is_string(kind) else text


def split_arguments(text: str) -> list[str]:
    """The arguments of a call, which may be calls.

    Examples
    --------
    >>> split_arguments("nvl2({1}, double({0}), null), 'a, b'")
    ['nvl2({1}, double({0}), null)', "'a, b'"]
    """
    found, depth, quoted = [""], 0, False
    for sign in text:
        quoted ^= sign == "'"
        depth += 0 if quoted else (sign == "(") - (sign == ")")
        if sign == "," and not depth and not quoted:
            found.append("")
        else:
            found[-1] += sign
    return [one.strip() for one in found]


def double_input(place: int, types: Sequence[pa.DataType]) -> str:
    """An argument that is needed as a double: numbers become doubles here, all else in Spark."""
    kind = types[place]
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return f"{{{place}}}" if numeric else f"double({{{place}}})"


def doubles(column: pa.Array) -> Array:
    """Numbers as doubles, also those that have more digits than a double; 0 where NULL is."""
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    return np.asarray(column.fill_null(0)).astype(np.float64, copy=False)


def present(columns: Sequence[pa.Array], length: int) -> Array:
    """Whether no column is NULL, row by row."""
    found = np.ones(length, np.bool_)
    for column in columns:
        if column.null_count:
            found &= np.asarray(pc.is_valid(column))
    return found


def _itself(columns: Sequence[pa.Array], _: int) -> pa.Array:
    return columns[0]


def _counted(columns: Sequence[pa.Array], length: int) -> pa.Array:
    return pa.array(present(columns, length).astype(np.int64))


def _counted_if(columns: Sequence[pa.Array], _: int) -> pa.Array:
    return columns[0].fill_null(False).cast(pa.int64())


def _same(kind: pa.DataType) -> pa.DataType:
    return kind


def _summed(kind: pa.DataType) -> pa.DataType:
    """The type of Spark's sums."""
    if pa.types.is_decimal(kind):
        return pa.decimal128(min(kind.precision + 10, WIDEST_DECIMAL), kind.scale)
    return pa.int64() if pa.types.is_integer(kind) else pa.float64()


_VALUE = OneRow(_itself, _same)
FUNCTIONS = {
    "sum": OneRow(_itself, _summed),
    "count": OneRow(_counted, _same),
    "regr_count": OneRow(_counted, _same),
    "count_if": OneRow(_counted_if, _same),
    "min": _VALUE,
    "max": _VALUE,
    "bit_and": _VALUE,
    "bit_or": _VALUE,
    "bit_xor": _VALUE,
    "bool_and": _VALUE,
    "bool_or": _VALUE,
}
"""Spark's aggregate functions, over a single row."""
