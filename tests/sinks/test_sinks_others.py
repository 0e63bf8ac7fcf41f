"""Memory, console, Delta, routes, and sinks by name."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from deltalake import DeltaTable
from rich.console import Console

from live.batches import committed, expected, in_order
from weft import WeftError
from weft.job.sink import Sink
from weft.sinks.console import ConsoleSink
from weft.sinks.delta import DeltaSink
from weft.sinks.memory import MemorySink
from weft.sinks.routed import RoutedSink
from weft.sinks.specs import sink_of


def test_memory_holds_every_row_once_in_the_order_of_batches(tmp_path: Path) -> None:
    sink = MemorySink()
    for number in (0, 1, 1, 2):
        sink.deliver(committed(tmp_path, number))
    assert sink.table("a").to_pylist() == expected("a", range(3))


def test_the_console_shows_the_first_rows_of_a_batch_and_how_many_more_there_are(tmp_path: Path) -> None:
    said = io.StringIO()
    sink = ConsoleSink(rows=4, console=Console(file=said, width=120))
    for number in (0, 0):
        sink.deliver(committed(tmp_path, number, ("a",)))
    assert said.getvalue().count("a, batch 0") == 1
    assert said.getvalue().count("│ a 0 ") + said.getvalue().count("│ a 1 ") == 4
    assert "and 2 more" in said.getvalue()


def test_a_delta_table_takes_each_batch_once(tmp_path: Path) -> None:
    for first, last in ((0, 2), (0, 3)):
        sink = DeltaSink(str(tmp_path / "out"))
        sink.open()
        for number in range(first, last):
            sink.deliver(committed(tmp_path, number))
        sink.close()
    found = DeltaTable(str(tmp_path / "out" / "query=a"))
    assert found.version() == 3
    assert in_order(found.to_pyarrow_table().to_pylist()) == in_order(expected("a", range(3)))


def test_a_route_lets_only_its_queries_through(tmp_path: Path) -> None:
    behind = MemorySink()
    RoutedSink(behind, ["b*", "c"]).deliver(committed(tmp_path, 0, ("a", "b", "bb", "c")))
    assert behind.queries == ("b", "bb", "c")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("parqet:/tmp/x", "did you mean parquet:DIR?"),
        ("parquet", "not of the form parquet:DIR"),
        ("kafka:topic", "not of the form kafka:TOPIC@HOST:PORT"),
        ({"to": "console", "row": 3}, "has no option row; did you mean rows?"),
        ({"queries": ["a"]}, "a sink says where to by `to`"),
        ("postgres://me:hush@host/db", "did you mean postgresql://user@host:port/database?"),
    ],
)
def test_a_sink_that_cannot_be_is_told_with_what_would_be_right(spec: str | dict[str, object], message: str) -> None:
    with pytest.raises(WeftError) as error:
        sink_of(spec)
    assert message in str(error.value)
    assert "hush" not in str(error.value)


@pytest.mark.parametrize(
    "spec",
    ["parquet:/tmp/x", "kafka:t@h:1", "postgresql://u@h/d", "delta:/tmp/x", "console", "memory", "a*=memory"],
)
def test_every_form_makes_a_sink(spec: str) -> None:
    assert isinstance(sink_of(spec), Sink)
