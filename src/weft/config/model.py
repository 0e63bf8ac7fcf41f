"""Everything that ``weft stream`` can be told."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from weft.config.fields import Duration, Names, Options, revealed
from weft.config.secrets import secrets_in


class Section(BaseModel):
    """A part of the settings: fixed once read, and without fields that nobody reads."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class SourceConfig(Section):
    """Where rows come from."""

    name: str = Field(min_length=1, description="The stream's name in the queries.")
    spec: str = Field(min_length=1, description="A folder of files, or kafka:TOPIC@HOST:PORT.")
    event_time: str = Field(min_length=1, description="The column that holds the event time.")
    lateness: Duration = 0
    """Microseconds."""
    format: str | None = None
    schema_: str | None = Field(default=None, alias="schema", description="The columns: ts TIMESTAMP, price DOUBLE.")
    options: Options = {}
    max_files: int | None = Field(default=None, ge=1)
    dead_letter: str | None = None
    bad_records: Literal["dead-letter", "stop"] = "dead-letter"

    @property
    def reader_options(self) -> dict[str, str]:
        """The options for Spark's reader, secrets revealed."""
        return revealed(self.options)


class SinkBase(Section):
    """A place for answers."""

    name: str | None = None
    queries: Names | None = None
    """Only these queries; all if it is not given."""

    def spec(self) -> str | dict[str, Any]:
        """What a sink is made from: the fields that were given, secrets revealed, without the routing."""
        given = self.model_dump(exclude_none=True, exclude={"queries"}, by_alias=True)
        return {key: _revealed(value) for key, value in given.items()}


class ParquetSink(SinkBase):
    """Files ``path/query=NAME/*.parquet``."""

    type: Literal["parquet"]
    path: str


class DeltaSink(SinkBase):
    """Delta tables ``path/query=NAME``."""

    type: Literal["delta"]
    path: str


class KafkaSink(SinkBase):
    """A topic for all queries, or one a query where the name holds ``{query}``."""

    type: Literal["kafka"]
    topic: str
    servers: str
    options: Options = {}


class PostgresqlSink(SinkBase):
    """Tables, upserted by group and window."""

    type: Literal["postgresql"]
    url: SecretStr
    password: SecretStr | None = None
    table: str | None = None
    """The table's name, ``{query}`` standing for the query."""
    schema_: str | None = Field(default=None, alias="schema")


class ConsoleSink(SinkBase):
    """Rows on standard output."""

    type: Literal["console"]
    rows: int | None = Field(default=None, ge=1)


class MemorySink(SinkBase):
    """Rows in the job's own memory, for programs that hold it."""

    type: Literal["memory"]


class SpecSink(SinkBase):
    """A sink in one word, as on the command line: ``kafka:answers@localhost:9092``."""

    type: Literal["spec"]
    word: SecretStr

    def spec(self) -> str | dict[str, Any]:
        """The word itself."""
        return self.word.get_secret_value()


SinkConfig = Annotated[
    ParquetSink | DeltaSink | KafkaSink | PostgresqlSink | ConsoleSink | MemorySink | SpecSink,
    Field(discriminator="type"),
]


SINK_TYPES = ("parquet", "delta", "kafka", "postgresql", "console", "memory")
"""What people write; one word has a type of its own, which they do not."""


class StreamConfig(Section):
    """A job: from what, to where, how."""

    queries: str | None = None
    """The file that seeds the catalog."""
    source: SourceConfig
    checkpoint: str = Field(min_length=1)
    out: str | None = None
    trigger: Duration = 0
    """Microseconds between the beginnings of batches; 0 is as soon as possible."""
    available_now: bool = False
    drain: bool = False
    sinks: tuple[SinkConfig, ...] = ()
    catalog: SecretStr | None = None
    metrics_port: int | None = Field(default=None, ge=0, le=65535)
    metrics_address: str = "127.0.0.1"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["human", "json"] = "human"
    technique: str = "auto"
    master: str | None = None
    memory: str = "3g"
    spark: Options = {}
    packages: Names = ()

    @model_validator(mode="before")
    @classmethod
    def _sinks_in_a_word(cls, values: Any) -> Any:
        """``- console`` is short for ``- type: spec, word: console``."""
        if isinstance(values, dict) and isinstance(values.get("sinks"), list | tuple):
            sinks = [{"type": "spec", "word": sink} if isinstance(sink, str) else sink for sink in values["sinks"]]
            return {**values, "sinks": sinks}
        return values

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.drain and not self.available_now:
            raise ValueError("drain closes all windows when the input ends: say available_now too")
        if self.out is None and not self.sinks:
            raise ValueError("nobody gets the answers: say out, or sinks")
        return self

    @property
    def catalog_url(self) -> str | None:
        """The catalog's URL, password and all: for connecting, not for showing."""
        return self.catalog.get_secret_value() if self.catalog else None

    @property
    def spark_options(self) -> dict[str, str]:
        """Settings of the Spark session, secrets revealed, with the packages that it loads."""
        packages = {"spark.jars.packages": ",".join(self.packages)} if self.packages else {}
        return packages | revealed(self.spark)

    def secrets(self) -> list[str]:
        """Every value that must not be seen, for logs to leave out."""
        return sorted(set(secrets_in(self)))


def _revealed(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, dict):
        return {key: _revealed(one) for key, one in value.items()}
    return value
