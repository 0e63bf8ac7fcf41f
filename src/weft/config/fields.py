"""Kinds of values that settings have: lengths of time, options, secrets."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, SecretStr

from weft.query.durations import cql_duration


def _microseconds(value: Any) -> int:
    if not isinstance(value, str):
        raise ValueError("write a duration with its unit, such as '10 seconds'")
    return cql_duration(value)


def _option(value: Any) -> Any:
    """Options are text for Spark, though YAML has numbers and truths of its own."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Duration = Annotated[int, BeforeValidator(_microseconds)]
"""Microseconds, written as ``'10 seconds'``."""

Options = dict[str, Annotated[SecretStr, BeforeValidator(_option)]]
"""Options for Spark; secret, as passwords of brokers and stores are among them."""

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
