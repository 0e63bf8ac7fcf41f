"""Logs as lines for people or as JSON, a line each, on standard error; never with a secret."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from weft.cli import standard_error
from weft.cli.others import OthersLog
from weft.config.secrets import without

Form = Literal["human", "json"]


def configure(level: str, form: Form, secrets: Iterable[str] = ()) -> None:
    """Have everything that Weft logs written to standard error from ``level`` on, and what libraries warn of."""
    forget()
    handler = _StandardError()
    handler.setFormatter(_Lines(form, tuple(secrets)))
    log = logging.getLogger("weft")
    log.handlers = [handler]
    log.setLevel(level.upper())
    log.propagate = False
    logging.getLogger().addHandler(handler)
    # what it logs at length comes back as an exception, too
    logging.getLogger("py4j").propagate = False


def forget() -> None:
    """Have no log, as before it was configured."""
    for log in (logging.getLogger("weft"), logging.getLogger()):
        log.handlers = [handler for handler in log.handlers if not isinstance(handler, _StandardError)]
        log.propagate = True


def begin_anew() -> None:
    """Have no log, unless others' lines come to it: somebody has to take them."""
    if standard_error.is_taken_over():
        configure("warning", "human")
    else:
        forget()


def is_json() -> bool:
    """Whether every line is to be a JSON object."""
    return any(
        isinstance(handler.formatter, _Lines) and handler.formatter.form == "json"
        for handler in logging.getLogger("weft").handlers
    )


def begin_log(level: str, form: Form = "human", secrets: Iterable[str] = ()) -> None:
    """Have a log for the rest of the process, with everything in it that anybody writes to standard error."""
    configure(level, form, secrets)
    standard_error.take_over(OthersLog().take, for_good=form == "json")


def fields(**values: object) -> dict[str, dict[str, object]]:
    """What a line says besides its message: ``log.info("batch", extra=fields(rows=5))``."""
    return {"weft_fields": values}


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to what standard error is now: a live view takes its place for a while, to stay below the lines."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:
        in_view = hasattr(sys.stderr, "rich_proxied_file")
        return sys.stderr if in_view else standard_error.real()

    @stream.setter
    def stream(self, value: TextIO) -> None:
        raise AttributeError("standard error is looked up for every line")


class _Lines(logging.Formatter):
    def __init__(self, form: Form, secrets: tuple[str, ...]) -> None:
        super().__init__()
        self.form = form
        self._render = _as_json if form == "json" else _as_text
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "weft_fields", {}),
        }
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return without(self._render(said), self._secrets)


def _as_json(said: dict[str, Any]) -> str:
    return json.dumps(said, default=str)


def _as_text(said: dict[str, Any]) -> str:
    at, level, _, message, *_ = said.values()
    error = said.pop("error", None)
    rest = " ".join(f"{key}={_word(value)}" for key, value in list(said.items())[4:])
    line = f"{at[:23].replace('T', ' ')} {level:<7} {message}" + (f"  {rest}" if rest else "")
    return f"{line}\n{error}" if error else line


def _word(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return json.dumps(text) if " " in text else text
