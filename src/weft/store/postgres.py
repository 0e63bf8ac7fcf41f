"""Connections to PostgreSQL on which nobody waits for ever: a server that is frozen or unreachable is an error."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg
from sqlalchemy import Engine, event

NOTHING = 0
"""What psycopg tells a dialogue when the server has said nothing for a moment."""
NETWORK = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
"""A machine that is gone is noticed after half a minute."""


class SilentError(psycopg.OperationalError):
    """The server owes an answer for too long."""


def prompt(seconds: float) -> type[psycopg.Connection[Any]]:
    """Connections that break when the server says nothing for so many seconds, though it owes an answer."""

    class PromptConnection(psycopg.Connection[Any]):
        """Counts the silence of the server."""

        def wait(self, gen: Any, *arguments: Any, **named: Any) -> Any:
            """Carry on a dialogue with the server."""
            try:
                return super().wait(heard(gen, seconds), *arguments, **named)
            except SilentError:
                self.close()  # a late answer must not be taken for that to another question
                raise

    return PromptConnection


def heard(dialogue: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    """The same dialogue, with an error when the server is silent for so long."""
    try:
        wanted = next(dialogue)
    except StopIteration as end:
        return end.value
    since = time.monotonic()
    while True:
        ready = yield wanted
        if ready != NOTHING:
            since = time.monotonic()
        elif time.monotonic() - since > seconds:
            dialogue.close()
            raise SilentError(f"the server has not answered for {seconds:g} seconds")
        try:
            wanted = dialogue.send(ready)
        except StopIteration as end:
            return end.value


def answering_within(engine: Engine, seconds: float) -> Engine:
    """The engine, with connections on which the server may not be silent for longer."""
    kind = prompt(seconds)

    def connect(_dialect: object, _record: object, arguments: Any, named: Any) -> psycopg.Connection[Any]:
        return kind.connect(*arguments, **{"connect_timeout": max(round(min(seconds, 10)), 1), **NETWORK, **named})

    event.listen(engine, "do_connect", connect)
    return engine
