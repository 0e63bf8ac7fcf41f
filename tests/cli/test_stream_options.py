"""``weft stream``: every option reaches the job, over what ``weft.yaml`` says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.config import StreamConfig
from weft.job.checkpoint import Checkpoint
from weft.job.outbox import Delivered, put, records

Weft = Callable[..., Any]

NEEDED = ("--source", "trades=incoming", "--event-time", "ts", "--checkpoint", "state", "--out", "answers")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[StreamConfig]:
    """What jobs were told, instead of running them."""
    configs: list[StreamConfig] = []
    monkeypatch.setattr("weft.cli.streaming.run_stream", lambda config, take_over: configs.append(config))
    return configs


def test_the_command_of_the_manual_is_understood(weft: Weft, told: list[StreamConfig]) -> None:
    words = (
        *NEEDED,
        "--lateness",
        "10 seconds",
        "--trigger",
        "1 second",
        "--max-files",
        5,
        "--available-now",
        "--drain",
    )
    assert weft("stream", "queries.sql", *words, "--sink", "console", "--sink", "kafka:t@h:1").code == 0
    (config,) = told
    assert config.queries == "queries.sql"
    assert (config.source.name, config.source.spec, config.source.event_time) == ("trades", "incoming", "ts")
    assert (config.source.lateness, config.trigger, config.source.max_files) == (10_000_000, 1_000_000, 5)
    assert (config.available_now, config.drain) == (True, True)
    assert config.sink_specs() == [{"to": "parquet:answers"}, "console", "kafka:t@h:1"]


def test_every_setting_has_an_option(weft: Weft, told: list[StreamConfig]) -> None:
    words = {
        "--format": "json",
        "--schema": "ts TIMESTAMP",
        "--bad-records": "stop",
        "--dead-letter": "bad",
        "--catalog": "sqlite:///c.db",
        "--metrics-port": "9464",
        "--metrics-address": "0.0.0.0",
        "--log-level": "debug",
        "--log-format": "json",
        "--patience": "10 minutes",
        "--waiting-batches": "500",
        "--waiting-bytes": "2.5 GB",
        "--technique": "panes",
        "--master": "local[1]",
        "--memory": "1g",
        "--option": "header=true",
        "--conf": "spark.x=a=b",
        "--packages": "a:b:1,c:d:2",
    }
    assert weft("stream", *NEEDED, *(word for pair in words.items() for word in pair)).code == 0
    (config,) = told
    source = config.source
    assert (source.format, source.schema_, source.bad_records) == ("json", "ts TIMESTAMP", "stop")
    assert (source.dead_letter, source.reader_options) == ("bad", {"header": "true"})
    assert config.catalog_url == "sqlite:///c.db"
    assert (config.metrics_port, config.metrics_address) == (9464, "0.0.0.0")
    assert (config.log_level, config.log_format, config.technique) == ("debug", "json", "panes")
    assert (config.patience, config.waiting_batches, config.waiting_bytes) == (600_000_000, 500, 2_500_000_000)
    assert (config.master, config.memory) == ("local[1]", "1g")
    assert (config.packages, config.spark_options) == (("a:b:1", "c:d:2"), {"spark.x": "a=b"})


def test_options_win_over_the_file(weft: Weft, told: list[StreamConfig], tmp_path: Path) -> None:
    Path("weft.yaml").write_text(
        "source: {name: trades, spec: incoming, event_time: ts, lateness: 5 s}\n"
        "checkpoint: state\nout: answers\navailable_now: true\ndrain: true\n"
    )
    assert weft("stream", "--lateness", "1 min", "--source", "quotes=else", "--no-drain", "--continuous").code == 0
    (config,) = told
    assert (config.source.name, config.source.spec, config.source.lateness) == ("quotes", "else", 60_000_000)
    assert (config.drain, config.available_now) == (False, False)
    assert config.checkpoint == str(tmp_path / "state")


def test_the_environment_names_the_catalog(
    weft: Weft, told: list[StreamConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_CATALOG", "postgresql://ada:hidden@db/weft")
    assert weft("stream", *NEEDED).code == 0
    assert told[0].catalog_url == "postgresql://ada:hidden@db/weft"
    assert "hidden" not in repr(told[0])
    assert "hidden" not in weft("stream", "--help").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "weft: command line: source is missing: write it into weft.yaml, or say --source NAME=SPEC"),
        ((*NEEDED, "--source", "incoming"), "incoming is not of the form NAME=SPEC"),
        ((*NEEDED, "--lateness", "10"), "weft: --lateness: cannot read '10' as a duration"),
        ((*NEEDED, "--bad-records", "ignore"), "weft: --bad-records: input should be 'dead-letter' or 'stop'"),
        ((*NEEDED, "--option", "hidden"), "not of the form K=V"),
        ((*NEEDED, "--conf", "=hidden"), "is not of the form K=V"),
        ((*NEEDED, "--drain"), "drain closes all windows when the input ends: say available_now too"),
        ((*NEEDED[:-2],), "nobody gets the answers: say out, or sinks"),
        ((*NEEDED, "--max-files", "0"), "weft: --max-files: input should be greater than or equal to 1"),
        ((*NEEDED, "--config", "no.yaml"), "there is no file no.yaml"),
    ],
)
def test_bad_use_is_told_with_exit_code_2(
    weft: Weft, told: list[StreamConfig], words: tuple[str, ...], message: str
) -> None:
    done = weft("stream", *words)
    assert done.code == 2
    assert message in " ".join(done.err.replace("│", " ").split())
    assert told == []


def test_a_job_that_fails_does_not_show_its_secrets(weft: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(config: StreamConfig, *, take_over: bool) -> None:
        raise RuntimeError(f"cannot connect to {config.catalog_url}")

    monkeypatch.setattr("weft.cli.streaming.run_stream", fail)
    done = weft("stream", *NEEDED, "--catalog", "postgresql://ada:hidden@db/weft")
    assert (done.code, done.err) == (1, "weft: cannot connect to postgresql://ada:***@db/weft\n")


def test_a_sink_that_is_gone_is_given_up_by_its_name(weft: Weft, told: list[StreamConfig], tmp_path: Path) -> None:
    put(Checkpoint(str(tmp_path / "state")), Delivered("kafka:t@old:1", 3))
    wrong = weft("stream", *NEEDED, "--give-up", "kafka:t@odl:1")
    assert (wrong.code, told) == (2, [])
    assert "it knows kafka:t@old:1" in wrong.err
    assert weft("stream", *NEEDED, "--give-up", "kafka:t@old:1").code == 0
    assert [one.left for one in records(Checkpoint(str(tmp_path / "state")))] == [True]
