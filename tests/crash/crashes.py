"""Kills at random moments, of drivers, JVMs, executors and Python workers, and what is left after the last restart.

As a script it makes as many kills as it is told, over several runs::

    python tests/crash/crashes.py 100 [SEED]
    python tests/crash/crashes.py 100 SEED executors    # finals run there: workers that are killed hold state
"""

from __future__ import annotations

import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow as pa
import pyarrow.parquet as pq

from crash.answers import SECOND, Rows, kafka_rows, parquet_rows, postgres_rows, write_source
from crash.killed_driver import FROZEN, POINTS, Death, Life, points
from crash.victims import EXECUTOR, JVM, PYTHON_WORKER, Driver
from services.kafka import Broker
from services.postgres import Server
from weft.catalog import find_catalog
from weft.spark.live.finals_place import FinalsPlace

FILES = 24
LOCAL = "local[2,4]"
CLUSTER = "local-cluster[2,1,1024]"
EXTRAS = {"extra20": 20, "extra15": 15, "extra60": 60}
"""Queries that are added between a crash and the restart, and the seconds of their windows."""


@dataclass(frozen=True)
class Setting:
    """Where a driver runs, and how it and those around it may end."""

    master: str
    through_python: bool
    ends: tuple[str, ...]


SETTINGS = {
    "local": Setting(LOCAL, False, ("point", "point", "point", "moment", "jvm", "machine", "orphan")),
    "python": Setting(LOCAL, True, ("workers", "workers", "point", "moment")),
    "cluster": Setting(CLUSTER, True, ("executors", "executors", "workers", "point", "machine")),
}


@dataclass
class Crashes:
    """Runs a driver over and over, with deaths in it and around it, until it has ended of its own accord."""

    life: Life
    setting: Setting
    rnd: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    drivers: list[Driver] = field(default_factory=list)

    def run(self, kills: int) -> None:
        """Make ``kills`` kills, or fewer if the stream ends before, and then let it end in peace."""
        try:
            while self._one_life(deadly=self.kills.total() < kills):
                self.restarts += 1
                self._add_a_query()
        finally:
            for driver in self.drivers:
                driver.sweep()

    def _one_life(self, *, deadly: bool) -> bool:
        """Whether it was cut short."""
        if not deadly:
            return self._cut_short(self._driver(), harmed=False)
        end = self.rnd.choice(self.setting.ends)
        ways: dict[str, Callable[[], bool]] = {
            "point": self._at_a_point,
            "orphan": self._orphaned,
            "workers": lambda: self._around(PYTHON_WORKER, "python worker", 4),
            "executors": lambda: self._around(EXECUTOR, "executor", 3),
        }
        return ways[end]() if end in ways else self._at_a_moment(end)

    def _driver(self, death: Death | None = None, *, take_over: bool = False) -> Driver:
        driver = Driver(replace(self.life, death=death, take_over=take_over))
        self.drivers.append(driver)
        return driver

    def _death(self, *, frozen: bool = False) -> Death:
        point = self.rnd.choice(points(self.life.finals))
        return Death(point, self.rnd.randint(1, POINTS[point][3]), frozen)

    def _at_a_point(self) -> bool:
        death = self._death()
        return self._cut_short(self._driver(death), harmed=False, kind=f"driver at {death.point}")

    def _at_a_moment(self, end: str) -> bool:
        """A kill from outside: of the driver, of its JVM, or of all at once."""
        driver = self._driver()
        self._wait(driver)
        victims = {
            "moment": lambda: [driver.pid],
            "jvm": lambda: driver.processes(JVM),
            "machine": lambda: [driver.pid, *driver.processes("")],
        }[end]()
        self.rnd.shuffle(victims)
        hit = [driver.kill(pid) for pid in victims]
        kind = {"moment": "driver", "jvm": "JVM", "machine": "all at once"}[end]
        return self._cut_short(driver, harmed=any(hit), kind=kind)

    def _around(self, kind: str, name: str, most: int) -> bool:
        """Kills around a driver that goes on; at last it may be killed itself."""
        driver = self._driver()
        hits = 0
        for _ in range(self.rnd.randint(1, most)):
            self._wait(driver, first=hits == 0)
            there = driver.processes(kind)
            if there and driver.kill(self.rnd.choice(there)):
                hits += 1
        self.kills[name] += hits
        if self.rnd.random() < 0.5:
            self._wait(driver, first=hits == 0)
            driver.kill(driver.pid)
        return self._cut_short(driver, harmed=hits > 0, kind="driver")

    def _orphaned(self) -> bool:
        """A driver that stands still in the middle of something, is replaced, and then goes on writing."""
        death = self._death(frozen=True)
        old = self._driver(death)
        while (said := old.hear()) not in (FROZEN, None):
            pass
        if said is None:
            return self._cut_short(old, harmed=False)
        self._add_a_query()
        new = self._driver(take_over=True)
        # it may hold what the new one waits for, a row of the database: then it is woken after a while
        for _ in range(1 + self.rnd.randint(0, 4)):
            if new.hear(10) is None:
                break
        old.wake()
        time.sleep(self.rnd.uniform(0, 3))
        if old.kill(old.pid):
            self.kills[f"orphan at {death.point}"] += 1
        old.end()
        self.restarts += 1
        self._wait(new, first=False)
        new.kill(new.pid)
        return self._cut_short(new, harmed=False, kind="driver")

    def _wait(self, driver: Driver, *, first: bool = True) -> None:
        """Until some batches are done, and a little longer."""
        if first:
            driver.hear_batches(self.rnd.choice((0, 1, 1, 2, 3)))
        else:
            driver.hear(self.rnd.uniform(0, 4))
        time.sleep(self.rnd.uniform(0, 1))

    def _cut_short(self, driver: Driver, *, harmed: bool, kind: str | None = None) -> bool:
        """Wait for a driver's end, a kill of a ``kind`` if that was its cause; one that was harmed may fail."""
        while driver.hear() is not None:
            pass
        code = driver.end()
        if code > 0 and not harmed:
            raise AssertionError((driver.life.folder / "driver.log").read_text(errors="replace")[-4000:])
        if kind is not None and (code == -signal.SIGKILL or (code != 0 and kind == "JVM")):
            self.kills[kind] += 1
        return code != 0

    def _add_a_query(self) -> None:
        checkpoint = self.life.folder / "checkpoint"
        if (checkpoint / "catalog.json").exists() and self.rnd.random() < 0.3:
            with find_catalog(str(checkpoint)) as catalog:
                left = EXTRAS.keys() - {entry.name for entry in catalog.entries()}
                for name in sorted(left)[:1]:
                    catalog.add(
                        f"CREATE VIEW {name} AS SELECT window.start, k, count(*) AS n "
                        f"FROM s GROUP BY window(ts, '{EXTRAS[name]} seconds'), k"
                    )


@dataclass(frozen=True)
class Services:
    """Where answers go beside files."""

    kafka: Broker
    postgres: Server

    def sinks(self, topic: str) -> tuple[str, str]:
        """A topic and a database that nobody uses."""
        self.kafka.topic(topic, partitions=2)
        return f"kafka:{topic}@{self.kafka.address}", self.postgres.database()


def calm_rows(source: Path, folder: Path) -> Rows:
    """The answers of a life without death."""
    folder.mkdir()
    Crashes(Life(source, folder), SETTINGS["local"], random.Random(0)).run(0)
    return parquet_rows(folder / "answers")


def crash_and_compare(
    services: Services, calm: Rows, life: Life, setting: Setting, seed: str, kills: int
) -> tuple[Crashes, int]:
    """Kill so often and compare what readers of every sink see with a life without death; gives the rows compared."""
    topic = f"answers-{seed}".replace(" ", "-")
    sinks = services.sinks(topic)
    life.folder.mkdir()
    life = replace(life, sinks=sinks, master=setting.master, through_python=setting.through_python)
    crashes = Crashes(life, setting, random.Random(seed))
    crashes.run(kills)
    files = parquet_rows(life.folder / "answers")
    for name, seconds in EXTRAS.items():
        check_extra(life.source, files.get(name, Counter()), seconds)
    wanted = {query: rows for query, rows in files.items() if query in EXTRAS and rows} | calm
    found = {"files": files, "Kafka": kafka_rows(topic, services.kafka.address), "PostgreSQL": postgres_rows(sinks[1])}
    for sink, rows in found.items():
        check_rows(wanted, {query: some for query, some in rows.items() if some}, f"{sink} after {dict(crashes.kills)}")
    return crashes, 3 * sum(rows.total() for rows in wanted.values())


def check_rows(wanted: Rows, found: Rows, where: str) -> None:
    """No row is lost and none is there twice."""
    assert all(wanted.values())
    for query in wanted.keys() | found.keys():
        there, here = wanted.get(query, Counter()), found.get(query, Counter())
        lost, more = there - here, here - there
        assert not lost and not more, f"{where}: {query}: {len(lost)} lost, {len(more)} too many: {lost} {more}"


def check_extra(source: Path, found: Counter[str], seconds: int) -> None:
    """A query that came later has all its windows from its first on, each whole."""
    if not found:
        return
    counts: Counter[tuple[int, str]] = Counter()
    for file in source.glob("*.parquet"):
        rows = pq.read_table(file, columns=["ts", "k"])
        times = rows.column("ts").cast(pa.int64()).to_pylist()
        for instant, k in zip(times, rows.column("k").to_pylist(), strict=True):
            counts[instant // (seconds * SECOND) * seconds * SECOND, k] += 1
    answers = dict(map(_counted, found))
    first = min(start for start, _ in answers)
    assert answers == {place: n for place, n in counts.items() if place[0] >= first}
    assert found.total() == len(answers)


def _counted(row: str) -> tuple[tuple[int, str], int]:
    answer = json.loads(row)
    start = datetime.fromisoformat(answer["start"])
    return (round(start.timestamp()) * SECOND, answer["k"]), answer["n"]


def main(wanted: int, seed: int, finals: FinalsPlace) -> None:
    """Several runs, one setting after another, until there were so many kills; prints what was killed."""
    kills: Counter[str] = Counter()
    restarts = rows = runs = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "kafka").mkdir()
        services = Services(Broker.start(folder / "kafka"), Server.start())
        try:
            write_source(folder / "source", seed, FILES)
            calm = calm_rows(folder / "source", folder / "calm")
            while kills.total() < wanted:
                name = list(SETTINGS)[runs % len(SETTINGS)]
                began = time.monotonic()
                crashes, compared = crash_and_compare(
                    services,
                    calm,
                    Life(folder / "source", folder / f"run-{runs}", finals=finals),
                    SETTINGS[name],
                    f"{seed} {runs}",
                    wanted - kills.total(),
                )
                runs += 1
                kills += crashes.kills
                restarts += crashes.restarts
                rows += compared
                took = time.monotonic() - began
                print(f"{name}: {dict(crashes.kills)}, {compared} rows equal, {took:.0f} s", flush=True)
        finally:
            services.kafka.stop()
            services.postgres.stop()
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(kills.items()))
    total = f"{kills.total()} kills in {runs} runs, {restarts} restarts, {rows} rows equal"
    print(f"seed {seed}, finals: {finals}: {total}: {told}")


if __name__ == "__main__":
    _, kills, *others = sys.argv
    main(int(kills), int(others[0]) if others else 1, "executors" if "executors" in others else "driver")
