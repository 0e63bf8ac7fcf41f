"""Which parts of the settings nobody may see, and texts without them."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from pydantic import BaseModel, SecretStr

from weft.errors import UseError, WeftError

HIDDEN = "***"

_SECRET_KEY = re.compile(r"password|passwd|secret|token|credential|jaas|access\.?key|private", re.IGNORECASE)
_IN_URL = re.compile(r"://[^/?#@\s:]*:([^/?#\s]+)@")
_ASSIGNED = re.compile(r"""(?:password|secret|token)\s*=\s*["']?([^"'&;\s]+)""", re.IGNORECASE)


def secrets_in(value: Any, key: str = "") -> Iterator[str]:
    """Every secret in a tree of settings: values under telling keys, and passwords inside URLs and options.

    Examples
    --------
    >>> set(secrets_in({"url": SecretStr("postgresql://ada:engine@db/weft"), "header": SecretStr("true")}))
    {'engine'}
    """
    if isinstance(value, SecretStr):
        yield from _secrets_of(key, value.get_secret_value())
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from secrets_in(getattr(value, name), name)
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from secrets_in(one, name)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from secrets_in(one, key)


def _secrets_of(key: str, text: str) -> Iterator[str]:
    if _SECRET_KEY.search(key) and text:
        yield text
    for found in (*_IN_URL.findall(text), *_ASSIGNED.findall(text)):
        yield found
        yield unquote(found)


def without(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret blotted out.

    Examples
    --------
    >>> without("cannot log in as ada with engine", ["engine"])
    'cannot log in as ada with ***'
    """
    for secret in sorted(set(secrets), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


@contextmanager
def kept_from(secrets: Iterable[str]) -> Iterator[None]:
    """Have no exception leave the block that shows a secret, in its message or anywhere in its history."""
    try:
        yield
    except Exception as error:
        told = "".join(traceback.format_exception(error))
        if not any(secret in told for secret in secrets):
            raise
        kind = UseError if isinstance(error, UseError) else WeftError
        raise kind(without(str(error), secrets)) from None
