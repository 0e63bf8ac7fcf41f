"""Where answers go, as settings say it: each kind of sink with fields of its own."""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import Discriminator, Field, InstanceOf, SecretStr, Tag

from weft.config.fields import Duration, Names, Options, Size, WritableFolder, revealed
from weft.config.plugged import Pluggable, accepting
from weft.config.section import Section
from weft.plugins import Plugins, plugged_in


class SinkBase(Section):
    """A place for answers."""

    name: str | None = None
    """Under which the job records how far it has delivered."""
    queries: Names | None = None
    """Only queries whose names match one of these patterns; all if it is not given."""
    patience: Duration | None = None
    """Microseconds for which it is waited for when it is away; as for all if it is not given."""
    waiting_batches: int | None = Field(default=None, ge=1)
    waiting_bytes: Size | None = None
    """What may wait for it; as for all if it is not given."""

    def spec(self) -> str | dict[str, Any] | PluggedSink:
        """What ``sink_of`` makes a sink from, secrets revealed: where to, and what else was said."""
        return self._mapping()

    def _mapping(self) -> dict[str, Any]:
        said = {"name": self.name, "queries": self.queries, **self._options()}
        return {"to": self._to(), **{key: value for key, value in said.items() if value is not None}}

    @abstractmethod
    def _to(self) -> str:
        """The sink in a word."""

    def _options(self) -> dict[str, Any]:
        """What this kind of sink can be told, None where it was not."""
        return {}


class ParquetSink(SinkBase):
    """Files ``path/query=NAME/*.parquet``."""

    type: Literal["parquet"]
    path: WritableFolder
    every: Duration | None = None
    """A query's small files appear so often, as one."""
    small: int | None = Field(default=None, ge=0)
    """Files of fewer bytes are small."""

    def _to(self) -> str:
        return f"parquet:{self.path}"

    def _options(self) -> dict[str, Any]:
        return {"small": self.small, "every": seconds(self.every)}


class DeltaSink(SinkBase):
    """Delta tables ``path/query=NAME``."""

    type: Literal["delta"]
    path: str

    def _to(self) -> str:
        return f"delta:{self.path}"


class KafkaSink(SinkBase):
    """A topic for all queries, or one a query where the name holds ``{query}``."""

    type: Literal["kafka"]
    topic: str = Field(min_length=1)
    servers: str = Field(min_length=1)
    partitions: int | None = Field(default=None, ge=1)
    """Of topics that are made."""
    settings: Options = Field(default_factory=dict)
    """Of the client, such as ``sasl.password``."""
    timeout: Duration | None = None
    """The broker may take so long to answer."""

    def _to(self) -> str:
        return f"kafka:{self.topic}@{self.servers}"

    def _options(self) -> dict[str, Any]:
        return {
            "partitions": self.partitions,
            "settings": revealed(self.settings) or None,
            "timeout": seconds(self.timeout),
        }


class PostgresqlSink(SinkBase):
    """Tables, upserted by group and window."""

    type: Literal["postgresql"]
    url: SecretStr
    password: SecretStr | None = None
    table: str | None = None
    """The table's name, ``{query}`` standing for the query."""
    schema_: str | None = Field(default=None, alias="schema")
    timeout: Duration | None = None
    """The server may be silent for so long."""

    def _to(self) -> str:
        url = self.url.get_secret_value()
        if self.password is None or not self.password.get_secret_value():
            return url
        scheme, _, rest = url.partition("://")
        user, at, place = rest.rpartition("@")
        return (
            f"{scheme}://{user.partition(':')[0]}:{quote(self.password.get_secret_value(), safe='')}{at or '@'}{place}"
        )

    def _options(self) -> dict[str, Any]:
        return {"table": self.table, "schema": self.schema_, "timeout": seconds(self.timeout)}


class ConsoleSink(SinkBase):
    """Rows on standard output."""

    type: Literal["console"]
    rows: int | None = Field(default=None, ge=1)

    def _to(self) -> str:
        return "console"

    def _options(self) -> dict[str, Any]:
        return {"rows": self.rows}


class MemorySink(SinkBase):
    """Rows in the job's own memory, for programs that hold it."""

    type: Literal["memory"]

    def _to(self) -> str:
        return "memory"


class WordSink(SinkBase):
    """A sink in one word, as on the command line: ``kafka:answers@localhost:9092``."""

    type: Literal["word"]
    to: SecretStr

    def _to(self) -> str:
        return self.to.get_secret_value()

    def spec(self) -> str | dict[str, Any]:
        """The word itself, unless something else was said."""
        return self._mapping() if self.name or self.queries else self._to()


def seconds(duration: int | None) -> float | None:
    """A duration that was given, in seconds."""
    return None if duration is None else duration / 1e6


class PluggedSink(Pluggable, SinkBase):
    """A sink of another package (entry points ``weft.sinks``): its own fields, and the sink that is made from them.

    Examples
    --------
    >>> class NullSink(PluggedSink):
    ...     form = "null"
    ...     loud: bool = False
    ...     def sink(self):
    ...         ...
    >>> NullSink.checked("null", {"loud": True, "queries": "a*"}).queries
    ('a*',)
    >>> NullSink.checked("null", {"lout": True})
    Traceback (most recent call last):
        ...
    weft.errors.UseError: null: there is no option lout; there are name, queries, patience, waiting_batches, \
waiting_bytes, loud
    """

    @abstractmethod
    def sink(self) -> Any:
        """The :class:`weft.job.sink.Sink`, not yet opened; if ``name`` is said, it is given that name."""

    def spec(self) -> PluggedSink:
        """Itself."""
        return self

    def _to(self) -> str:
        return self.form


@cache
def sink_plugins() -> Plugins[type[PluggedSink]]:
    """The sinks that other packages bring, by their kinds."""
    return plugged_in("weft.sinks", accepting(PluggedSink, (*SINK_TYPES, "word")))  # type: ignore[type-abstract]


def _type_of(sink: Any) -> str | None:
    """By which the kind of a sink is told."""
    if isinstance(sink, SinkBase):
        return "plugged" if isinstance(sink, PluggedSink) else str(getattr(sink, "type", ""))
    return sink.get("type") if isinstance(sink, dict) else None


SinkConfig = Annotated[
    Annotated[ParquetSink, Tag("parquet")]
    | Annotated[DeltaSink, Tag("delta")]
    | Annotated[KafkaSink, Tag("kafka")]
    | Annotated[PostgresqlSink, Tag("postgresql")]
    | Annotated[ConsoleSink, Tag("console")]
    | Annotated[MemorySink, Tag("memory")]
    | Annotated[WordSink, Tag("word")]
    | Annotated[InstanceOf[PluggedSink], Tag("plugged")],
    Discriminator(_type_of),
]


SINK_TYPES = ("parquet", "delta", "kafka", "postgresql", "console", "memory")
"""What people write; one word has a type of its own, which they do not."""


def in_full(sink: Any) -> Any:
    """``console`` is short for ``to: console``; with options beside it, that is a sink of its kind.

    Examples
    --------
    >>> in_full("console")
    {'type': 'word', 'to': 'console'}
    >>> in_full({"to": "kafka:answers@localhost:9092", "partitions": 3})
    {'type': 'kafka', 'topic': 'answers', 'servers': 'localhost:9092', 'partitions': 3}
    """
    if isinstance(sink, str):
        return {"type": "word", "to": sink}
    if isinstance(sink, dict) and isinstance(kind := sink.get("type"), str) and (plugin := sink_plugins().get(kind)):
        return plugin.checked(f"sink {kind}", {key: value for key, value in sink.items() if key != "type"})
    if isinstance(sink, dict) and "to" in sink and "type" not in sink:
        options = {key: value for key, value in sink.items() if key != "to"}
        if isinstance(sink["to"], str) and (plugin := sink_plugins().get(sink["to"].partition(":")[0])):
            return plugin.told(sink["to"], options)
        found = _kind_of(sink["to"]) if options.keys() - SinkBase.model_fields.keys() else None
        return {"type": "word", **sink} if found is None else {**found, **options}
    return sink


def _kind_of(to: Any) -> dict[str, str] | None:
    """The kind of sink that a word names and where it is; None if the word has to speak for itself."""
    kind, _, rest = to.partition(":") if isinstance(to, str) else ("", "", "")
    if kind in ("parquet", "delta") and rest:
        return {"type": kind, "path": rest}
    topic, at, servers = rest.partition("@")
    if kind == "kafka" and topic and at:
        return {"type": kind, "topic": topic, "servers": servers}
    if kind == "postgresql":
        return {"type": kind, "url": to}
    return {"type": to} if to in ("console", "memory") else None
