"""Placeholders in the texts that are left to Spark: names of keys and aggregates, never what a user quoted."""

from __future__ import annotations

import re
from collections.abc import Callable

from weft.query.model import AGGREGATE, KEY
from weft.query.names import quoted

_QUOTED = r"""--[^\n]*|/\*.*?\*/|[rR]'[^']*'|[rR]"[^"]*"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`"""
_FOUND = re.compile(rf"{_QUOTED}|\b(?P<kind>{KEY}|{AGGREGATE})(?P<index>\d+)\b", re.DOTALL)


def replace_placeholders(text: str, name: Callable[[str, int], str]) -> str:
    """The text with other names for its keys and aggregates; strings, comments and quoted names stay as they are.

    Examples
    --------
    >>> replace_placeholders("__key_0 || '__key_0' || __agg_12", lambda kind, index: f"<{index}>")
    "<0> || '__key_0' || <12>"
    """

    def replace(found: re.Match[str]) -> str:
        return name(found["kind"], int(found["index"])) if found["kind"] else found.group()

    return _FOUND.sub(replace, text)


def called(name: str, sql: str) -> str:
    """The value of ``sql`` under a name, for functions that ask for it; Spark's optimizer leaves just the value.

    Examples
    --------
    >>> called("s", "__key_0")
    'struct(__key_0 AS `s`).`s`'
    """
    return f"struct({sql} AS {quoted(name)}).{quoted(name)}"


def nameless(sql: str) -> str:
    """The value of ``sql`` under no name, as ``avg(n)`` has none.

    Examples
    --------
    >>> nameless("__agg_0")
    'coalesce(__agg_0)'
    """
    return f"coalesce({sql})"
