"""``weft.yaml``: found, read, checked with places and hints, and overruled by the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from weft.cli.init import TEMPLATE
from weft.config import Settings, StreamConfig, find_file, read_file, stream_config
from weft.config.secrets import kept_from
from weft.config.settings import ConfigError
from weft.errors import UseError, WeftError
from weft.job.patience import Patience
from weft.launch.live import own_patience, sinks_of

SMALL = """\
source:
  name: trades
  spec: incoming
  event_time: ts
checkpoint: state
out: answers
"""


def config_of(tmp_path: Path, text: str, environment: dict[str, str] | None = None, **options: Any) -> StreamConfig:
    (tmp_path / "weft.yaml").write_text(text)
    settings = read_file(tmp_path / "weft.yaml").filled(environment or {})
    return stream_config(settings, {(name,): (f"--{name}", value) for name, value in options.items()})


def mistake(tmp_path: Path, text: str, environment: dict[str, str] | None = None, **options: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        config_of(tmp_path, text, environment, **options)
    return str(caught.value)


def test_a_small_file_is_enough(tmp_path: Path) -> None:
    config = config_of(tmp_path, SMALL)
    assert (config.source.name, config.source.event_time, config.source.lateness) == ("trades", "ts", 0)
    assert (config.trigger, config.sinks, config.queries, config.catalog_url) == (0, (), None, None)


def test_paths_are_relative_to_the_file_but_other_places_are_not(tmp_path: Path) -> None:
    text = SMALL + (
        "queries: q.sql\nsinks: ['parquet:more', 'a,b=parquet:some', {to: 'delta:t', queries: c}, "
        "'kafka:t@h:1', console, {type: delta, path: tables}]\n"
    )
    config = config_of(tmp_path, text)
    assert config.queries == str(tmp_path / "q.sql")
    assert (config.checkpoint, config.out) == (str(tmp_path / "state"), str(tmp_path / "answers"))
    assert config.source.spec == str(tmp_path / "incoming")
    assert config.sink_specs() == [
        {"to": f"parquet:{tmp_path}/answers"},
        f"parquet:{tmp_path}/more",
        f"a,b=parquet:{tmp_path}/some",
        {"to": f"delta:{tmp_path}/t", "queries": ("c",)},
        "kafka:t@h:1",
        "console",
        {"to": f"delta:{tmp_path}/tables"},
    ]
    for spec in ("kafka:trades@localhost:9092", "s3://bucket/trades", "/data/trades"):
        assert config_of(tmp_path, SMALL.replace("incoming", spec)).source.spec == spec


def test_the_nearest_file_above_is_found(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert find_file(deep) is None
    (tmp_path / "weft.yaml").write_text(SMALL)
    assert find_file(deep) == tmp_path / "weft.yaml"
    (tmp_path / "a" / "weft.yaml").write_text(SMALL)
    assert find_file(deep) == tmp_path / "a" / "weft.yaml"


def test_durations_have_units(tmp_path: Path) -> None:
    config = config_of(tmp_path, SMALL.replace("event_time: ts", "event_time: ts\n  lateness: 1 minute 30 s"))
    assert config.source.lateness == 90_000_000
    assert config_of(tmp_path, SMALL + "trigger: 500ms").trigger == 500_000
    assert mistake(tmp_path, SMALL + "trigger: 10") == (
        "weft.yaml, line 7: trigger: write a duration with its unit, such as '10 seconds'"
    )
    assert "no unit 'fortnight'" in mistake(tmp_path, SMALL + "trigger: 1 fortnight")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SMALL + "chekpoint: x", "weft.yaml, line 7: there is no setting chekpoint; did you mean checkpoint?"),
        (
            SMALL.replace("event_time: ts", "event_time: ts\n  latenes: 5 s"),
            "weft.yaml, line 5: there is no setting source.latenes; did you mean lateness?",
        ),
        (
            SMALL + "sinks:\n  - console\n  - type: kafka\n    topic: t\n    servers: s\n    topik: u",
            "weft.yaml, line 12: there is no setting sinks.1.topik; did you mean topic?",
        ),
        (
            SMALL + "sinks:\n  - type: kafak",
            "weft.yaml, line 8: sinks.0 needs a type: one of parquet, delta, kafka, postgresql, console, memory",
        ),
        (
            SMALL + "sinks:\n  - path: x",
            "weft.yaml, line 8: sinks.0 needs a type: one of parquet, delta, kafka, postgresql, console, memory",
        ),
        (
            SMALL + "sinks:\n  - type: kafka\n    topic: t",
            "weft.yaml, line 8: sinks.0.servers is missing: write it into weft.yaml",
        ),
        (
            SMALL.replace("  event_time: ts\n", ""),
            "weft.yaml, line 1: source.event_time is missing: write it into weft.yaml, or say --event-time",
        ),
        (
            SMALL.replace("checkpoint: state\n", ""),
            "weft.yaml: checkpoint is missing: write it into weft.yaml, or say --checkpoint",
        ),
        ("checkpoint: s\nout: a", "weft.yaml: source is missing: write it into weft.yaml, or say --source NAME=SPEC"),
        (SMALL.replace("out: answers", ""), "nobody gets the answers: say out, or sinks"),
        (SMALL + "drain: true", "drain closes all windows when the input ends: say available_now too"),
        (SMALL + "metrics_port: 99999", "weft.yaml, line 7: metrics_port: input should be less than or equal to 65535"),
        (SMALL + "log_format: xml", "weft.yaml, line 7: log_format: input should be 'human' or 'json'"),
        (SMALL + "out: twice", "weft.yaml, line 7: out is there twice, first on line 6"),
        (
            SMALL + "sinks: [",
            "weft.yaml, line 7: this is not YAML: expected the node content, but found '<stream end>'",
        ),
        ("- one\n- two", "weft.yaml: write settings as NAME: VALUE, a line each"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_what_would_be_right(tmp_path: Path, text: str, message: str) -> None:
    assert mistake(tmp_path, text) == message


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    assert len(mistake(tmp_path, SMALL + "trigger: 1\nmax_file: 2\nlog_level: loud").splitlines()) == 3


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "weft.yaml").write_text("# nothing yet\n")
    assert read_file(tmp_path / "weft.yaml").values == {}


def test_the_command_line_wins(tmp_path: Path) -> None:
    config = config_of(tmp_path, SMALL + "trigger: 1 s\nsinks: [console]", trigger="5 s", sinks=["memory"], out="here")
    assert (config.trigger, config.out) == (5_000_000, "here")
    assert config.sink_specs() == [{"to": "parquet:here"}, "memory"]


def test_a_single_option_is_laid_over_the_ones_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "weft.yaml").write_text(SMALL.replace("event_time: ts", "event_time: ts\n  options: {a: 1, b: yes}"))
    given = {("source", "options", "a"): ("--option", "2"), ("source", "name"): ("--source", "quotes")}
    config = stream_config(read_file(tmp_path / "weft.yaml"), given)
    assert config.source.reader_options == {"a": "2", "b": "true"}
    assert (config.source.name, config.source.event_time) == ("quotes", "ts")


def test_a_mistake_on_the_command_line_is_named_by_its_option(tmp_path: Path) -> None:
    message = mistake(tmp_path, SMALL + "trigger: 1 s", trigger="often")
    assert message == "--trigger: cannot read 'often' as a duration"


def test_the_environment_fills_in(tmp_path: Path) -> None:
    text = SMALL + "catalog: postgresql://weft:${PW}@${HOST:-localhost}/weft\nmetrics_port: ${PORT}\n"
    config = config_of(tmp_path, text, {"PW": "a$$b", "PORT": "9464"})
    assert config.catalog_url == "postgresql://weft:a$$b@localhost/weft"
    assert config.metrics_port == 9464
    assert config_of(tmp_path, SMALL.replace("answers", "$${PW}")).out == str(tmp_path / "${PW}")


def test_a_variable_that_is_not_set_is_named(tmp_path: Path) -> None:
    assert mistake(tmp_path, SMALL + "catalog: postgresql://weft:${WEFT_PW}@db/weft") == (
        "weft.yaml, line 7: there is no environment variable WEFT_PW: set it, or write a default as ${WEFT_PW:-default}"
    )


def test_secrets_are_never_shown(tmp_path: Path) -> None:
    text = (
        SMALL.replace("event_time: ts", "event_time: ts\n  options: {kafka.sasl.jaas.config: 'x password=\"s-one\";'}")
        + "catalog: postgresql://weft:s-two@db/weft\n"
        + "spark: {spark.hadoop.fs.s3a.secret.key: s-three, spark.ui.enabled: true}\n"
        + "sinks:\n  - postgresql://weft:s-four@db/weft\n"
        + "  - {type: postgresql, url: 'postgresql://db/weft', password: s-five}\n"
        + "  - {type: kafka, topic: t, servers: 'h:1', settings: {ssl.keystore.password: s-six}}\n"
    )
    config = config_of(tmp_path, text)
    for rendered in (repr(config), str(config), config.model_dump_json(), str(config.model_dump())):
        assert "s-" not in rendered.replace("dead-letter", "")
    assert {"s-one", "s-two", "s-three", "s-four", "s-five", "s-six"} <= set(config.secrets())
    assert "true" not in config.secrets()
    assert config.spark_options["spark.hadoop.fs.s3a.secret.key"] == "s-three"
    assert config.sinks[1].spec() == {"to": "postgresql://:s-five@db/weft"}
    assert config.sinks[2].spec() == {"to": "kafka:t@h:1", "settings": {"ssl.keystore.password": "s-six"}}


def test_a_mistake_beside_a_secret_does_not_show_it(tmp_path: Path) -> None:
    text = SMALL + "sinks:\n  - {type: postgresql, url: [hidden], password: {hidden: hidden}}\ncatalog: [hidden]\n"
    message = mistake(tmp_path, text)
    assert len(message.splitlines()) == 3
    assert "hidden" not in message


def test_sinks_are_routed_to_some_queries(tmp_path: Path) -> None:
    text = SMALL + "sinks:\n  - {type: console, queries: hourly}\n  - {type: memory, queries: [a, b]}\n  - console\n"
    assert [sink.queries for sink in config_of(tmp_path, text).sinks] == [("hourly",), ("a", "b"), None]


def test_a_sink_may_be_a_word_with_options(tmp_path: Path) -> None:
    text = SMALL + (
        "sinks:\n"
        "  - {to: 'kafka:t@h:1', partitions: 3, settings: {linger.ms: 9}, queries: [a]}\n"
        "  - {to: 'parquet:more', every: 2 seconds, small: 5}\n"
        "  - {to: 'postgresql://u@h/d', table: 'x_{query}', schema: y, name: db}\n"
        "  - {to: console, rows: 5}\n"
    )
    assert config_of(tmp_path, text).sink_specs()[1:] == [
        {"to": "kafka:t@h:1", "partitions": 3, "settings": {"linger.ms": "9"}, "queries": ("a",)},
        {"to": f"parquet:{tmp_path}/more", "every": 2.0, "small": 5},
        {"to": "postgresql://u@h/d", "table": "x_{query}", "schema": "y", "name": "db"},
        {"to": "console", "rows": 5},
    ]
    wrong = mistake(tmp_path, SMALL + "sinks:\n  - to: console\n    row: 5")
    assert wrong == "weft.yaml, line 9: there is no setting sinks.0.row; did you mean rows?"


def test_every_kind_of_sink_becomes_what_sinks_are_made_from(tmp_path: Path) -> None:
    text = SMALL.replace("out: answers", "") + (
        "sinks:\n"
        "  - {type: parquet, path: /p, every: 1 minute, small: 1000, name: mine}\n"
        "  - {type: kafka, topic: 't-{query}', servers: 'h:1', partitions: 3, queries: 'a*'}\n"
        "  - {type: postgresql, url: 'postgresql://ada:old@db:5/w', password: 'a/b', table: 't_{query}', schema: s}\n"
        "  - {type: console, rows: 5}\n"
    )
    assert config_of(tmp_path, text).sink_specs() == [
        {"to": "parquet:/p", "every": 60.0, "small": 1000, "name": "mine"},
        {"to": "kafka:t-{query}@h:1", "partitions": 3, "queries": ("a*",)},
        {"to": "postgresql://ada:a%2Fb@db:5/w", "table": "t_{query}", "schema": "s"},
        {"to": "console", "rows": 5},
    ]


def test_bad_records_go_into_the_checkpoint_unless_something_else_is_said(tmp_path: Path) -> None:
    assert config_of(tmp_path, SMALL).bad_records_folder == str(tmp_path / "state" / "dead-letters")
    said = SMALL.replace("event_time: ts", "event_time: ts\n  dead_letter: lost")
    assert config_of(tmp_path, said).bad_records_folder == str(tmp_path / "lost")
    stop = SMALL.replace("event_time: ts", "event_time: ts\n  bad_records: stop")
    assert config_of(tmp_path, stop).bad_records_folder is None


def test_one_package_or_several_can_be_named(tmp_path: Path) -> None:
    assert config_of(tmp_path, SMALL + "packages: a:b:1").packages == ("a:b:1",)
    assert config_of(tmp_path, SMALL + "packages: [a:b:1, c:d:2]").packages == ("a:b:1", "c:d:2")


def test_the_template_is_right_as_it_is_and_with_every_comment_taken_away(tmp_path: Path) -> None:
    config = config_of(tmp_path, TEMPLATE)
    assert (config.source.lateness, config.trigger) == (10_000_000, 1_000_000)
    everything = "\n".join(line.replace("# ", "", 1) if _is_setting(line) else line for line in TEMPLATE.splitlines())
    config = config_of(tmp_path, everything)
    assert config.drain and config.catalog_url and len(config.sinks) == 3 and config.packages


def _is_setting(line: str) -> bool:
    """Whether a comment is a setting that is switched off, not a sentence."""
    words = line.strip().removeprefix("# ")
    return line.strip().startswith("# ") and (words.startswith(("- ", " ")) or words.partition(":")[0].isidentifier())


def test_the_template_shows_every_setting() -> None:
    for name, field in StreamConfig.model_fields.items():
        assert f"{field.alias or name}:" in TEMPLATE, name
    source = StreamConfig.model_fields["source"].annotation
    assert source is not None
    for name, field in source.model_fields.items():
        assert f"{field.alias or name}:" in TEMPLATE, name


def test_settings_without_a_file_say_so() -> None:
    with pytest.raises(ConfigError, match="command line: checkpoint is missing"):
        stream_config(Settings(), {("out",): ("--out", "x")})


def test_no_exception_shows_a_secret_in_its_message_or_its_history() -> None:
    with pytest.raises(UseError, match=r"cannot log in with \*\*\*") as caught, kept_from(["engine"]):
        raise UseError("cannot log in with engine")
    with pytest.raises(WeftError) as other, kept_from(["engine"]):
        try:
            raise ValueError("postgresql://ada:engine@db")
        except ValueError as error:
            raise RuntimeError("no connection") from error
    for error in (caught.value, other.value):
        assert "engine" not in str(error)
        assert error.__cause__ is None and error.__suppress_context__, "a traceback shows this error only"
    with pytest.raises(KeyError), kept_from(["engine"]):
        raise KeyError("other")


def test_a_sink_has_a_patience_of_its_own_or_that_of_all(tmp_path: Path) -> None:
    text = SMALL + (
        "patience: 1 hour\nwaiting_bytes: 5 GB\nsinks:\n"
        "  - {to: 'kafka:t@h:1', patience: 10 s, waiting_batches: 7}\n"
        "  - {type: postgresql, url: 'postgresql://db/x', timeout: 5 s}\n"
    )
    config = config_of(tmp_path, text)
    sinks = sinks_of(config)
    assert own_patience(config, sinks) == {
        "kafka:t@h:1": Patience(10, 7, 5 * 10**9),
        "postgresql://db/x": Patience(3600, 10_000, 5 * 10**9),
    }
    assert config.sinks[1].spec() == {"to": "postgresql://db/x", "timeout": 5.0}


@pytest.mark.parametrize("size", ["10", "many GB", "true", "-1 GB"])
def test_a_size_says_its_unit(tmp_path: Path, size: str) -> None:
    with pytest.raises(ConfigError, match="waiting_bytes: write a size with its unit, such as '10 GB'"):
        config_of(tmp_path, SMALL + f"waiting_bytes: {size}\n")
