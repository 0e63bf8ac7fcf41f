"""Everything that ``weft stream`` can be told."""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from typing import Any, Literal, Self

from pydantic import Field, SecretStr, model_validator

from weft.config.fields import Duration, Names, Nodes, Options, Size, WritableFolder, revealed
from weft.config.plugged import Pluggable, accepting
from weft.config.secrets import secrets_in
from weft.config.section import Section
from weft.config.sinks import PluggedSink, SinkConfig, in_full
from weft.plugins import Plugins, plugged_in
from weft.query.limits import DEFAULT, Limits
from weft.store.location import Location

NOT_FILES = ("kafka", "rate", "rate-micro-batch", "socket")
"""How specs of sources begin that are no folders."""


class PluggedSource(Pluggable):
    """A source of another package (entry points ``weft.sources``): its own fields, and the rows that come of them.

    What was said of the source as ``format``, ``schema``, ``max_files`` and ``options`` are its fields; ``dead``, the
    folder for what cannot be read, is one if it has it.
    """

    @abstractmethod
    def rows(self, spark: Any) -> Any:
        """A streaming DataFrame, or a :class:`weft.sources.source.LiveSource` with a place for bad records."""


@cache
def source_plugins() -> Plugins[type[PluggedSource]]:
    """The sources that other packages bring, by their kinds."""
    return plugged_in("weft.sources", accepting(PluggedSource, NOT_FILES))  # type: ignore[type-abstract]


class SourceConfig(Section):
    """Where rows come from."""

    name: str = Field(min_length=1, description="The stream's name in the queries.")
    spec: str = Field(min_length=1, description="A folder of files, or kafka:TOPIC@HOST:PORT.")
    event_time: str = Field(min_length=1, description="The column that holds the event time.")
    lateness: Duration = 0
    """Microseconds."""
    format: str | None = None
    schema_: str | None = Field(default=None, alias="schema", description="The columns: ts TIMESTAMP, price DOUBLE.")
    options: Options = Field(default_factory=dict)
    max_files: int | None = Field(default=None, ge=1)
    dead_letter: WritableFolder | None = None
    bad_records: Literal["dead-letter", "stop"] = "dead-letter"

    @property
    def is_files(self) -> bool:
        """Whether rows come from a folder of files, not from a broker or a generator."""
        kind = self.spec.partition(":")[0]
        return kind not in NOT_FILES and source_plugins().get(kind) is None

    @property
    def reader_options(self) -> dict[str, str]:
        """The options for Spark's reader, secrets revealed."""
        return revealed(self.options)


class LimitsConfig(Section):
    """What one query may cause before it is stopped by name; docs/live.md tells what each counts."""

    answers: int = Field(default=DEFAULT.answers, ge=1)
    keys: int = Field(default=DEFAULT.keys, ge=1)
    slices: int = Field(default=DEFAULT.slices, ge=1)
    value_bytes: int = Field(default=DEFAULT.value_bytes, ge=1)

    @property
    def limits(self) -> Limits:
        """The same for those who do not read settings."""
        return Limits(**self.model_dump())


class StreamConfig(Section):
    """A job: from what, to where, how."""

    queries: str | None = None
    """The file that seeds the catalog."""
    source: SourceConfig
    checkpoint: WritableFolder = Field(min_length=1)
    out: WritableFolder | None = None
    trigger: Duration = 0
    """Microseconds between the beginnings of batches; 0 is as soon as possible."""
    available_now: bool = False
    drain: bool = False
    sinks: tuple[SinkConfig, ...] = ()
    patience: Duration | None = None
    """Microseconds for which a sink, the catalog or the source is waited for when it is away; for ever if not given."""
    waiting_batches: int = Field(default=10_000, ge=1)
    waiting_bytes: Size = 10 * 10**9
    """What may wait for a sink that is away, before the stream holds."""
    catalog: SecretStr | None = None
    metrics_port: int | None = Field(default=None, ge=0, le=65535)
    metrics_address: str = "127.0.0.1"
    metrics_queries: int = Field(default=1000, ge=0)
    """Of how many queries there are metrics: of those that take most time."""
    stuck_after: Duration = 1_800_000_000
    """Microseconds after which a batch that is still under way, or a start, has ``/healthz`` tell of it."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["human", "json"] = "human"
    limits: LimitsConfig = Field(default_factory=LimitsConfig)
    technique: str = "auto"
    optimizer: str = "weft"
    """Which queries share slices."""
    model: Literal["two-level", "three-level", "calibrated"] = "calibrated"
    """What the optimizer goes by."""
    nodes: Nodes | None = None
    """Over which nodes, by their capacities, trees of queries are spread."""
    finals: Literal["auto", "driver", "executors"] = "auto"
    """Where slices become answers, for a new checkpoint."""
    cut: Literal["auto", "jvm", "workers", "driver"] = "auto"
    """Who cuts rows into slices: Spark's own aggregation, or compiled kernels in the workers or in the driver."""
    master: str | None = None
    memory: str = "3g"
    spark: Options = Field(default_factory=dict)
    packages: Names = ()

    @model_validator(mode="before")
    @classmethod
    def _sinks_in_a_word(cls, values: Any) -> Any:
        if isinstance(values, dict) and isinstance(values.get("sinks"), list | tuple):
            return {**values, "sinks": [in_full(sink) for sink in values["sinks"]]}
        return values

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.drain and not self.available_now:
            raise ValueError("drain closes all windows when the input ends: say available_now too")
        if self.out is None and not self.sinks:
            raise ValueError("nobody gets the answers: say out, or sinks")
        return self

    @property
    def bad_records_folder(self) -> str | None:
        """Where records go that cannot be read; None if they stop the run."""
        if self.source.bad_records == "stop":
            return None
        return self.source.dead_letter or f"{self.checkpoint}/dead-letters"

    def spark_places(self) -> list[Location]:
        """What Spark itself reads and writes; sinks write without it."""
        places = [self.source.spec] if self.source.is_files else []
        return [Location.of(place) for place in (*places, self.checkpoint, self.bad_records_folder) if place]

    @property
    def catalog_url(self) -> str | None:
        """The catalog's URL, password and all: for connecting, not for showing."""
        return self.catalog.get_secret_value() if self.catalog else None

    @property
    def spark_options(self) -> dict[str, str]:
        """Settings of the Spark session, secrets revealed."""
        return revealed(self.spark)

    def sink_specs(self) -> list[str | dict[str, Any] | PluggedSink]:
        """What ``sink_of`` makes the sinks from, secrets revealed: the folder ``out`` first."""
        out: list[str | dict[str, Any] | PluggedSink] = [] if self.out is None else [{"to": f"parquet:{self.out}"}]
        return out + [sink.spec() for sink in self.sinks]

    def secrets(self) -> list[str]:
        """Every value that must not be seen, for logs to leave out."""
        return sorted(set(secrets_in(self)))
