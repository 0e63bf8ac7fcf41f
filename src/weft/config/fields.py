"""Kinds of values that settings have: lengths of time, options, secrets."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, SecretStr

from weft.errors import UseError
from weft.query.durations import cql_duration
from weft.store.location import Location

_UNITS = ("", "K", "M", "G", "T")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B", re.IGNORECASE)


def _microseconds(value: Any) -> int:
    if not isinstance(value, str):
        raise ValueError("write a duration with its unit, such as '10 seconds'")
    return cql_duration(value)


def _bytes(value: Any) -> int:
    found = _SIZE.fullmatch(str(value).strip())
    if found is None or isinstance(value, bool):
        raise ValueError("write a size with its unit, such as '10 GB'")
    return int(float(found[1]) * 10 ** (3 * _UNITS.index(found[2].upper())))


def _option(value: Any) -> Any:
    """Options are text for Spark, though YAML has numbers and truths of its own."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _nodes(value: Any) -> Any:
    """``4`` is four equal nodes; ``3,2,1,1`` three nodes of which the first is twice as fast.

    Examples
    --------
    >>> _nodes(2), _nodes("3,2,1,1"), _nodes([2, 1])
    ((1.0, 1.0), (2.0, 1.0, 1.0), (2.0, 1.0))
    """
    try:
        if isinstance(value, list | tuple):
            speeds = tuple(float(one) for one in value)
        else:
            count, *given = str(value).split(",")
            speeds = tuple(float(one) for one in given) or (1.0,) * int(count)
            if len(speeds) != int(count):
                raise ValueError
        if not speeds or min(speeds) <= 0:
            raise ValueError
    except (TypeError, ValueError):
        message = "write the number of nodes, and then nothing or one positive capacity for each: 3,2,1,1"
        raise ValueError(message) from None
    return speeds


def _list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _writable(text: str) -> str:
    try:
        Location.of(text).refuse_without_arrow()
    except UseError as error:
        raise ValueError(str(error)) from None
    return text


WritableFolder = Annotated[str, AfterValidator(_writable)]
"""A folder, as a path or as a URL of a store that Weft can write to."""

Duration = Annotated[int, BeforeValidator(_microseconds)]
"""Microseconds, written as ``'10 seconds'``."""

Size = Annotated[int, BeforeValidator(_bytes)]
"""Bytes, written as ``'10 GB'``."""

Options = dict[str, Annotated[SecretStr, BeforeValidator(_option)]]
"""Options for Spark; secret, as passwords of brokers and stores are among them."""

Nodes = Annotated[tuple[float, ...], BeforeValidator(_nodes)]
"""Capacities, written as a number of nodes or as ``3,2,1,1``."""

Names = Annotated[tuple[str, ...], BeforeValidator(_list)]
"""One name or a list of them."""


def revealed(options: Options) -> dict[str, str]:
    """Options as Spark wants them.

    Examples
    --------
    >>> revealed({"header": SecretStr("true")})
    {'header': 'true'}
    """
    return {key: value.get_secret_value() for key, value in options.items()}
