"""What holds rows, answers or queries is its owner's alone; the answers' own folder is as the user's umask says."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from weft.catalog import create_catalog
from weft.job.patience import Patience
from weft.launch.engine import Engine
from weft.launch.live import assembled
from weft.sinks.parquet import ParquetSink
from weft.sources.specs import live_source
from weft.spark.bind import Stream
from weft.spark.live.engine import Pace
from weft.spark.live.next_plan import Wishes

QUERIES = """
CREATE VIEW hourly AS SELECT window.start AS s, count(*) AS n FROM trades GROUP BY window(ts, '1 hour');
CREATE VIEW daily AS SELECT window.start AS s, sum(v) + 1 AS v FROM trades GROUP BY window(ts, '1 day');
"""


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}


def test_a_checkpoint_is_its_owner_s_alone_and_answers_are_not(
    spark: SparkSession, tmp_path: Path, usual_umask: None
) -> None:
    incoming, state = tmp_path / "incoming", tmp_path / "state"
    incoming.mkdir()
    (incoming / "1.json").write_text(
        '{"ts": "2024-01-01T00:10:00Z", "v": 1}\n{"ts": "2024-01-01T03:10:00Z", "v": 2}\nnot JSON\n'
    )
    source = live_source(
        spark, str(incoming), "ts", format="json", schema="ts TIMESTAMP, v BIGINT", dead=str(state / "dead-letters")
    )
    live = assembled(
        Stream("trades", source.rows.drop("__weft_bad"), "ts"),
        source,
        str(state),
        0,
        [ParquetSink(str(tmp_path / "answers"))],
        catalog=create_catalog(str(state)),
        wishes=Wishes(),
        pace=Pace(available_now=True),
        patience=Patience(),
    )
    live.sql(QUERIES)
    live.start().await_termination()

    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    found = modes(state)
    for folder in ("weft", "spark", "dead-letters"):
        assert found[folder] == 0o700, folder
    ours = {name for name in found if (state / name).is_file() and not name.startswith("spark/")}
    payloads = {name for name in ours if not name.startswith("weft/answers/")}
    assert {"catalog.db", "catalog.json"} < payloads
    assert any(name.startswith("weft/state/") for name in payloads)
    assert any(name.startswith("dead-letters/") and name.endswith(".parquet") for name in payloads)
    assert {name: oct(found[name]) for name in payloads if found[name] != 0o600} == {}
    shown = [path for path in (tmp_path / "answers").rglob("*.parquet") if ".weft" not in path.parts]
    assert shown and {stat.S_IMODE(path.stat().st_mode) for path in shown} == {0o644}
    assert stat.S_IMODE((tmp_path / "answers").stat().st_mode) == 0o755


def test_staged_answers_are_their_owner_s_alone_and_written_ones_are_not(
    spark: SparkSession, tmp_path: Path, usual_umask: None
) -> None:
    engine = Engine(spark)
    rows = spark.sql("SELECT timestamp_seconds(60 * id) AS ts, id AS v FROM range(100)")
    engine.stream("trades", rows, "ts").sql(QUERIES)
    answers = engine.run()
    assert stat.S_IMODE(Path(answers._staged.folder.root).stat().st_mode) == 0o700
    answers.write(str(tmp_path / "out"))
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o755
    assert {mode for name, mode in modes(tmp_path / "out").items() if name.endswith(".parquet")} == {0o644}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
