"""A running job while what it relies on is away for a while: what readers see in the end, and how late sinks were.

As a script it stops the PostgreSQL sink, the Kafka sink, the Kafka source and the catalog's database for two minutes
each, one after the other, and prints a table of figures::

    python tests/outages/outages.py [SECONDS]
"""

from __future__ import annotations

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from crash.answers import Rows, counted, kafka_rows, parquet_rows, postgres_rows
from services.kafka import Broker
from services.postgres import Server

WEFT = str(Path(sys.executable).parent / "weft")
QUERIES = """
CREATE VIEW sums AS SELECT window.start, window.end, k, sum(v) AS s, count(*) AS n
FROM s GROUP BY window(ts, '10 seconds', '5 seconds'), k;
CREATE VIEW counts AS SELECT window.start, count(*) AS n FROM s GROUP BY window(ts, '5 seconds');
"""
PATIENCE = 600.0
LOOK = 0.2
"""Seconds between two looks at the job's metrics."""
RATE = 100
"""Rows a second."""
SECOND = 1_000_000
FILES, POSTGRES, KAFKA = "files", "postgres", "kafka"
"""The names of the sinks."""


@dataclass(frozen=True)
class Places:
    """The servers around a job; some may be one and the same."""

    source: Broker
    sink: Broker
    database: Server
    catalog: Server


@dataclass(frozen=True)
class Look:
    """What the metrics said at a moment."""

    at: float
    degraded: bool
    batch: int
    delivered: Mapping[str, int]
    waiting: Mapping[str, int]
    lag: float
    """Of the watermark."""


@dataclass
class Feed:
    """Sends rows to a topic, steadily; what cannot be sent now is sent later."""

    servers: str
    topic: str
    rows: list[tuple[int, str, int]] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        settings = {"bootstrap.servers": self.servers, "enable.idempotence": True, "log_level": 0}
        self._producer = Producer({**settings, "message.timeout.ms": 900_000, "reconnect.backoff.max.ms": 1000})
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        began, number = time.time(), 0
        while not self._ended.wait(0.05):
            while number < (time.time() - began) * RATE:
                instant = round((began + number / RATE) * SECOND)
                row = (instant, "abcde"[number % 5], number % 97)
                self.rows.append(row)
                said = {"ts": datetime.fromtimestamp(instant / SECOND, UTC).isoformat(), "k": row[1], "v": row[2]}
                self._producer.produce(self.topic, json.dumps(said))
                number += 1
            self._producer.poll(0)

    def end(self) -> None:
        """Send what is left, and no more."""
        self._ended.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE) == 0


@dataclass
class Job:
    """``weft stream`` as a process, and what its metrics tell."""

    folder: Path
    looks: list[Look] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """The job runs meanwhile."""
        with self.log.open("ab") as log:
            process = subprocess.Popen([WEFT, "stream"], cwd=self.folder, stdout=log, stderr=log)
        ended = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(ended,), daemon=True)
        watcher.start()
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0, self.said()
        finally:
            ended.set()
            watcher.join()
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-6000:]

    def wait(self, condition: Callable[[Look], bool], seconds: float = PATIENCE) -> Look:
        """The first look from now on of which it holds."""
        seen, end = len(self.looks), time.monotonic() + seconds
        while time.monotonic() < end:
            for look in self.looks[seen:]:
                seen += 1
                if condition(look):
                    return look
            time.sleep(LOOK / 2)
        raise AssertionError(f"it takes too long; the job said:\n{self.said()}")

    def _watch(self, ended: threading.Event) -> None:
        port: str | None = None
        while not ended.wait(LOOK):
            if port is None:
                found = re.findall(r'"metrics_port": (\d+)', self.log.read_text())
                port = found[-1] if found else None
                continue
            with suppress(OSError):
                self.looks.append(look_at(port))


def look_at(port: str) -> Look:
    """Scrape the metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    told: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            told.setdefault(sample.name, {})[",".join(sample.labels.values())] = sample.value
    return Look(
        at=time.time(),
        degraded=told["weft_state"]["degraded"] == 1,
        batch=int(told.get("weft_batch", {}).get("", -1)),
        delivered={name: int(batch) for name, batch in told.get("weft_sink_batch", {}).items()},
        waiting={name: int(count) for name, count in told.get("weft_sink_waiting", {}).items()},
        lag=told.get("weft_lag_seconds", {}).get("", 0.0),
    )


@dataclass(frozen=True)
class Figures:
    """What an outage did."""

    what: str
    seconds: float
    """From the stop until it answered again."""
    noticed: float
    """Seconds until the job said that it is degraded."""
    batches: int
    """Committed meanwhile."""
    waiting: int
    """Batches that waited for a sink, at most."""
    lags: Mapping[str, tuple[float, float]]
    """By sink: median and longest seconds from a batch's commit until the sink had taken it."""
    watermark: float
    """Its longest lag, in seconds."""
    recovered: float
    """Seconds from the end of the outage until all was delivered and the job degraded no more."""

    def line(self) -> str:
        """A line of a table."""
        lags = " | ".join(f"{median:.1f} / {longest:.1f}" for median, longest in self.lags.values())
        return (
            f"| {self.what} | {self.seconds:.0f} | {self.noticed:.1f} | {self.batches} | {self.waiting} | {lags} | "
            f"{self.watermark:.0f} | {self.recovered:.1f} |"
        )


HEAD = (
    "| away | s | noticed after, s | batches meanwhile | waited at most | files: lag, s | PostgreSQL: lag, s | "
    "Kafka: lag, s | lag of the watermark, s | caught up after, s |\n|---|---|---|---|---|---|---|---|---|---|"
)


def outage(job: Job, what: str, away: Callable[[], AbstractContextManager[None]], seconds: float) -> Figures:
    """Have something be away, and see the job through it."""
    steady = job.wait(lambda look: not look.degraded and is_delivered(look))
    began = time.time()
    with away():
        time.sleep(seconds)
    back = time.time()
    over = job.wait(lambda look: not look.degraded and is_delivered(look) and look.batch > steady.batch)
    looks = [look for look in job.looks if began <= look.at <= over.at]
    noticed = next((look.at - began for look in looks if look.degraded), float("nan"))
    return Figures(
        what=what,
        seconds=back - began,
        noticed=noticed,
        batches=max((look.batch for look in looks if look.at <= back), default=steady.batch) - steady.batch,
        waiting=max(max(look.waiting.values()) for look in looks),
        lags={sink: lags(looks, sink) for sink in (FILES, POSTGRES, KAFKA)},
        watermark=max(look.lag for look in looks),
        recovered=over.at - back,
    )


def is_delivered(look: Look) -> bool:
    """Whether every sink has taken all but the very last batch."""
    return look.batch >= 0 and all(count <= 1 for count in look.waiting.values())


def lags(looks: list[Look], sink: str) -> tuple[float, float]:
    """Median and longest seconds from a batch's commit until a sink had taken it."""
    found = []
    first, last = looks[0].batch + 1, min(looks[-1].batch, looks[-1].delivered[sink])
    for batch in range(first, last + 1):
        committed = next(look.at for look in looks if look.batch >= batch)
        found.append(next(look.at for look in looks if look.delivered[sink] >= batch) - committed)
    return (statistics.median(found), max(found)) if found else (0.0, 0.0)


def write_project(folder: Path, places: Places, topic: str, options: Mapping[str, str]) -> str:
    """The job's folder; gives the address of the database that its sink writes to."""
    database = places.database.database()
    reading = "".join(f"    {name}: '{value}'\n" for name, value in options.items())
    (folder / "queries.sql").write_text(QUERIES)
    (folder / "weft.yaml").write_text(
        f"""queries: queries.sql
source:
  name: s
  spec: kafka:{topic}@{places.source.address}
  event_time: ts
  lateness: 5 seconds
  schema: ts TIMESTAMP, k STRING, v BIGINT
  options:
{reading or "    startingOffsets: earliest"}
checkpoint: state
sinks:
  - {{to: 'parquet:{folder}/answers', every: 1 s, name: {FILES}}}
  - {{type: postgresql, url: '{database}', timeout: 20 s, name: {POSTGRES}}}
  - {{to: 'kafka:{topic}-answers@{places.sink.address}', timeout: 10 s, name: {KAFKA}}}
catalog: {places.catalog.database()}
trigger: 500 ms
log_format: json
metrics_port: 0
memory: 1g
spark: {{spark.driver.extraJavaOptions: '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'}}
"""
    )
    return database


def last_end(found: Mapping[str, Rows]) -> int:
    """The end of the last window that some sink has an answer for: the job has closed all windows up to there."""
    starts = (json.loads(row)["start"] for rows in found.values() for row in rows["counts"])
    return max(round(datetime.fromisoformat(start).timestamp() * SECOND) for start in starts) + 5 * SECOND


def expected(rows: list[tuple[int, str, int]], until: int) -> Rows:
    """The answers to all rows, of windows that end by then."""
    sums: dict[tuple[int, str], list[int]] = {}
    counts: Counter[int] = Counter()
    for instant, k, v in rows:
        slice = instant // (5 * SECOND) * 5 * SECOND
        counts[slice] += 1
        for start in (slice - 5 * SECOND, slice):
            sums.setdefault((start, k), []).append(v)
    return {
        "sums": counted(
            {"start": shown(start), "end": shown(start + 10 * SECOND), "k": k, "s": sum(values), "n": len(values)}
            for (start, k), values in sums.items()
            if start + 10 * SECOND <= until
        ),
        "counts": counted(
            {"start": shown(start), "n": n} for start, n in counts.items() if start + 5 * SECOND <= until
        ),
    }


def shown(instant: int) -> datetime:
    return datetime.fromtimestamp(instant / SECOND, UTC)


Away = Callable[[], AbstractContextManager[None]]


def live_through(
    folder: Path, places: Places, outages: Mapping[str, Away], seconds: float, options: Mapping[str, str] | None = None
) -> list[Figures]:
    """Run a job through outages, and compare what readers of every sink see in the end with what was sent."""
    topic = places.source.topic(f"outages-{round(time.time() * 1000)}")
    database = write_project(folder, places, topic, options or {})
    job, feed = Job(folder), Feed(places.source.address, topic)
    with job.running():
        figures = []
        for what, away in outages.items():
            figures.append(outage(job, what, away, seconds))
            print(figures[-1].line(), flush=True)
        feed.end()
        job.wait(is_delivered)
    found = {
        FILES: parquet_rows(folder / "answers"),
        POSTGRES: postgres_rows(database),
        KAFKA: kafka_rows(f"{topic}-answers", places.sink.address),
    }
    wanted = expected(feed.rows, last_end(found))
    for sink, rows in found.items():
        for query, there in wanted.items():
            lost, more = there - rows[query], rows[query] - there
            assert not lost and not more, f"{sink}, {query}: {len(lost)} lost, {len(more)} too many: {lost} {more}"
    print(f"{len(feed.rows):,} rows, {sum(rows.total() for rows in wanted.values()):,} answers: equal in all sinks")
    return figures


def main(seconds: float) -> None:
    """Every outage in turn, each of a server of its own."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("source", "sink", "job"):
            (folder / name).mkdir()
        source, sink = Broker.start(folder / "source"), Broker.start(folder / "sink")
        places = Places(source, sink, Server.start(), Server.start())
        try:
            print(HEAD)
            live_through(
                folder / "job",
                places,
                {
                    "PostgreSQL sink stopped": places.database.service.stopped,
                    "Kafka sink stopped": places.sink.service.stopped,
                    "Kafka source stopped": places.source.service.stopped,
                    "catalog's database stopped": places.catalog.service.stopped,
                    "PostgreSQL sink frozen": places.database.service.frozen,
                    "catalog's database frozen": places.catalog.service.frozen,
                },
                seconds,
            )
        finally:
            for server in (source, sink, places.database, places.catalog):
                server.stop()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 120.0)
