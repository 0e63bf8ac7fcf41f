"""Sinks, sources and aggregates of other packages: found by their entry points, typed, and named if they are broken."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weft.algebra import registry
from weft.config import Settings, stream_config
from weft.config.model import source_plugins
from weft.config.sinks import sink_plugins
from weft.errors import WeftError
from weft.launch.live import own_patience, sinks_of
from weft.plugins import PluginError
from weft.sinks.memory import MemorySink
from weft.sinks.routed import RoutedSink
from weft.sinks.specs import sink_of

TOY = """
from pydantic import Field, SecretStr
from weft.config import PluggedSink, PluggedSource
from weft.sinks.memory import MemorySink

class ToySink(PluggedSink):
    form = "toy:SHELF"
    shelf: str
    size: int = Field(default=3, ge=1)
    password: SecretStr | None = None

    @classmethod
    def of_word(cls, rest):
        if not rest:
            raise ValueError
        return {"shelf": rest}

    def sink(self):
        made = MemorySink(f"toy:{self.shelf}")
        made.size = self.size
        return made

class ToySource(PluggedSource):
    form = "ticks:ROWS"
    per_batch: int

    @classmethod
    def of_word(cls, rest):
        return {"per_batch": int(rest)}

    def rows(self, spark):
        return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", self.per_batch).load()
"""
ENTRIES = """
[weft.sinks]
toy = weft_toy:ToySink
broken = weft_toy.missing:Sink
odd = weft_toy:ToySource
parquet = weft_toy:ToySink
[weft.sources]
ticks = weft_toy:ToySource
[weft.aggregates]
unheard = weft_toy:UNHEARD
"""
CACHES = (sink_plugins, source_plugins, registry._plugged_in)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package that brings a sink, a source, and things that cannot be loaded."""
    (tmp_path / "weft_toy.py").write_text(TOY)
    described = tmp_path / "weft_toy-0.1.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: weft-toy\nVersion: 0.1\n")
    (described / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    for cached in CACHES:
        cached.cache_clear()
    yield
    sys.modules.pop("weft_toy", None)
    for cached in CACHES:
        cached.cache_clear()


def told(*sinks: Any) -> Any:
    source = {"name": "s", "spec": "rows", "event_time": "ts"}
    return stream_config(Settings({"source": source, "checkpoint": "state", "sinks": list(sinks)}), {})


@pytest.mark.usefixtures("toy")
def test_a_word_makes_the_sink_of_another_package() -> None:
    assert sink_of("toy:top").name == "toy:top"
    routed = sink_of("delays*=toy:top")
    assert isinstance(routed, RoutedSink) and routed.queries == ("delays*",)


@pytest.mark.usefixtures("toy")
def test_weft_yaml_types_the_options_of_another_packages_sink() -> None:
    config = told(
        {"type": "toy", "shelf": "top", "size": 7, "name": "mine", "patience": "5 s"},
        {"to": "toy:low", "size": 2, "password": "hush"},
        "toy:word",
        "memory",
    )
    first, second, third, memory = sinks_of(config)
    assert [first.name, second.name, third.name] == ["mine", "toy:low", "toy:word"]
    assert (first.size, second.size) == (7, 2)  # type: ignore[attr-defined]
    assert isinstance(memory, MemorySink)
    assert own_patience(config, [first, second, third, memory])["mine"].seconds == 5
    assert config.secrets() == ["hush"]


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ({"type": "toy", "shelf": "top", "size": 0}, "sink toy: size: Input should be greater than or equal to 1"),
        ({"type": "toy"}, "sink toy: shelf: Field required"),
        ({"to": "toy:top", "sizes": 3}, "toy: there is no option sizes; there are name"),
        ({"type": "toys"}, "one of parquet, delta, kafka, postgresql, console, memory, toy"),
        ({"type": "broken"}, "sink broken of package weft-toy cannot be used: weft_toy.missing:Sink: ModuleNotFound"),
    ],
)
def test_what_is_wrong_in_weft_yaml_is_told(sink: dict[str, Any], message: str) -> None:
    with pytest.raises(WeftError) as error:
        told(sink)
    assert message in str(error.value)


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("toy", "toy is not of the form toy:SHELF"),
        ("tor:top", "did you mean toy:SHELF?"),
        ("broken:top", "sink broken of package weft-toy cannot be used"),
        ("odd:top", "it has to be a class that extends weft.config.PluggedSink"),
    ],
)
def test_what_is_wrong_in_a_word_is_told(word: str, message: str) -> None:
    with pytest.raises(WeftError) as error:
        sink_of(word)
    assert message in str(error.value)


@pytest.mark.usefixtures("toy")
def test_what_cannot_be_loaded_is_warned_of_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "weft.plugins"):
        plugins = sink_plugins()
    assert plugins.loaded.keys() == {"toy"}
    assert plugins.broken.keys() == {"broken", "odd", "parquet"}
    assert "there is a parquet already: choose another name" in caplog.text
    assert sink_of("parquet:/tmp/x").name == "parquet:/tmp/x"


@pytest.mark.usefixtures("toy")
def test_an_aggregate_that_cannot_be_loaded_is_named_to_those_who_ask_for_it() -> None:
    assert registry.AGGREGATES["sum"].name == "sum"
    with pytest.raises(PluginError, match="aggregate unheard of package weft-toy cannot be used"):
        registry.AGGREGATES.named("unheard")


@pytest.mark.usefixtures("toy")
def test_a_source_of_another_package_gives_rows(spark: Any) -> None:
    from weft.sources.specs import live_source

    assert live_source(spark, "ticks:5", "timestamp").columns == ("timestamp", "value")
    with pytest.raises(WeftError, match="ticks: there is no option header"):
        live_source(spark, "ticks:5", "timestamp", options={"header": "true"})
    config = stream_config(
        Settings(
            {"source": {"name": "s", "spec": "ticks:5", "event_time": "timestamp"}, "checkpoint": "c", "out": "o"}
        ),
        {},
    )
    assert not config.source.is_files
