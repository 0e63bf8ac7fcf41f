"""Kills of the driver at random moments, and what is left after the last restart.

As a script it runs as many kills as it is told: ``python tests/crash/crashes.py 100``.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weft.catalog import find_catalog

HERE = Path(__file__).parent
SECOND = 1_000_000
BEGIN = 1_700_000_000 * SECOND
POINTS = ("state", "answers", "started", "uncommitted", "committed", "delivering", "delivered", "deleting")
Rows = dict[str, Counter[tuple[Any, ...]]]
EXTRA = "CREATE VIEW extra AS SELECT window.start, k, count(*) AS n FROM s GROUP BY window(ts, '20 seconds'), k"
"""Added between a crash and the restart."""


def write_source(folder: Path, seed: int, files: int = 10) -> None:
    """Files of rows, disordered within the allowed lateness."""
    rnd = random.Random(seed)
    folder.mkdir(parents=True)
    for number in range(files):
        count = rnd.randint(50, 400)
        instants = [BEGIN + number * 12 * SECOND + rnd.randrange(12 * SECOND) for _ in range(count)]
        instants = [instant - rnd.choice((0, 0, 4 * SECOND)) for instant in instants]
        columns = {
            "ts": pa.array(instants, pa.timestamp("us", tz="UTC")),
            "k": pa.array([rnd.choice("abcde") for _ in instants]),
            "v": pa.array([rnd.randrange(100) for _ in instants], pa.int64()),
        }
        file = folder / f"{number:04}.parquet"
        pq.write_table(pa.table(columns), file)
        os.utime(file, (number, number))  # Spark takes files in the order of their times


def read_answers(folder: Path) -> Rows:
    """What a reader of the Parquet sink sees."""
    found: Rows = {}
    for query in sorted((folder / "answers").glob("query=*")):
        rows: Counter[tuple[Any, ...]] = Counter()
        for file in query.glob("*.parquet"):
            table = pq.read_table(file, partitioning=None)
            rows.update(zip(*(column.to_pylist() for column in table.columns), strict=True))
        found[query.name.removeprefix("query=")] = rows
    return found


@dataclass
class Crashes:
    """Runs a driver over a folder, killing it now and then, until it has ended of its own accord."""

    folder: Path
    rnd: random.Random
    kills: list[str] = field(default_factory=list)

    def run(self, kills: int) -> Rows:
        """The answers after ``kills`` kills, or fewer if the stream ended before."""
        added = False
        while len(self.kills) < kills and self.life(deadly=True):
            if not added and (self.folder / "checkpoint" / "catalog.json").exists():
                with find_catalog(str(self.folder / "checkpoint")) as catalog:
                    catalog.add(EXTRA)
                added = True
        while self.life(deadly=False):
            pass
        return read_answers(self.folder)

    def life(self, *, deadly: bool) -> bool:
        """One life of a driver; whether it was cut short."""
        point = self.rnd.choice((*POINTS, "any moment", "any moment")) if deadly else None
        command = [sys.executable, str(HERE / "killed_driver.py"), str(self.folder)]
        if point in POINTS:
            command += [str(point), str(self.rnd.randint(1, 3))]
        with (self.folder / "driver.log").open("ab") as log:
            driver = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, env={**os.environ}, start_new_session=True
            )
            try:
                assert driver.stdout is not None
                driver.stdout.readline()
                if point == "any moment":
                    self._wait(driver, self.rnd.uniform(0, 6))
                    driver.kill()
                code = driver.wait(timeout=300)
            finally:
                # the JVM follows its driver; one that outlives it is an orphan that must do no harm
                driver.stdout.close()
        if code == -signal.SIGKILL:
            self.kills.append(str(point))
            return True
        assert code == 0, (self.folder / "driver.log").read_text(errors="replace")[-4000:]
        return False

    @staticmethod
    def _wait(driver: subprocess.Popen[bytes], seconds: float) -> None:
        until = time.monotonic() + seconds
        while driver.poll() is None and time.monotonic() < until:
            time.sleep(0.02)


def crash_and_compare(folder: Path, seed: int, kills: int) -> list[str]:
    """Kill a driver so often, compare its answers with those of a life without death; gives where it was killed."""
    rnd = random.Random(seed)
    for name in ("calm", "crashed"):
        write_source(folder / name / "source", seed)
    calm = Crashes(folder / "calm", rnd).run(0)
    crashes = Crashes(folder / "crashed", rnd)
    crashed = crashes.run(kills)
    assert calm
    check_extra(folder / "crashed" / "source", crashed.pop("extra", Counter()))
    assert calm.keys() == crashed.keys()
    for query, rows in calm.items():
        assert rows, query
        lost, twice = rows - crashed[query], crashed[query] - rows
        assert not lost and not twice, f"{query}: {len(lost)} lost, {len(twice)} too many; kills: {crashes.kills}"
    return crashes.kills


def check_extra(source: Path, found: Counter[tuple[Any, ...]]) -> None:
    """A query that came later has all its windows from its first on, each whole."""
    if not found:
        return
    counts: Counter[tuple[int, str]] = Counter()
    for file in source.glob("*.parquet"):
        rows = pq.read_table(file)
        for instant, k in zip(
            rows.column("ts").cast(pa.int64()).to_pylist(), rows.column("k").to_pylist(), strict=True
        ):
            counts[instant // (20 * SECOND) * 20 * SECOND, k] += 1
    answers = {(round(start.timestamp() * SECOND), k): n for start, k, n in found}
    first = min(start for start, _ in answers)
    assert answers == {place: n for place, n in counts.items() if place[0] >= first}
    assert found.total() == len(answers)


if __name__ == "__main__":
    wanted, seed, all_kills = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0, Counter[str]()
    while all_kills.total() < wanted:
        seed += 1
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            kills = crash_and_compare(Path(folder), seed, min(4, wanted - all_kills.total()))
            all_kills.update(kills)
            print(
                f"seed {seed}: {len(kills)} kills, nothing lost, nothing twice, {time.monotonic() - began:.0f} s",
                flush=True,
            )
    print(f"{all_kills.total()} kills: " + ", ".join(f"{count} {point}" for point, count in all_kills.items()))
