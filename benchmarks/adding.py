"""How long it takes from ``weft add`` to the first batch that includes the new query, on a job with a steady stream.

    .venv/bin/python benchmarks/adding.py --additions 20 --queries 20

A job with ``--trigger '1 second'`` reads files that come twice a second; queries are added by the command, from another
process, at random moments. Told is the time from the start of the command, and from its change in the catalog, to the
start and to the commit of the first batch that answers the query.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from weft.catalog import find_catalog

WEFT = (str(Path(sys.executable).with_name("weft")),)
EVERY = 0.5
"""Seconds between two files."""
ROWS = 1000
"""Rows of a file."""


def query(number: int) -> str:
    """A query of its own: no two have the same windows."""
    return (
        f"CREATE VIEW q{number} AS SELECT window.end, symbol, sum(volume) AS v, max(price) AS p FROM trades "
        f"WHERE volume > {number % 7} GROUP BY window(ts, '{20 + number} seconds', '{1 + number % 10} seconds'), symbol"
    )


def write_rows(file: Path, rnd: random.Random) -> None:
    """Trades of the last half second."""
    now = round(time.time() * 1e6)
    columns = {
        "ts": pa.array([now - rnd.randrange(round(EVERY * 1e6)) for _ in range(ROWS)], pa.timestamp("us", tz="UTC")),
        "symbol": pa.array([f"S{rnd.randrange(100)}" for _ in range(ROWS)]),
        "price": pa.array([rnd.random() for _ in range(ROWS)]),
        "volume": pa.array([rnd.randrange(10) for _ in range(ROWS)], pa.int64()),
    }
    hidden = file.with_name(f".{file.name}")
    pq.write_table(pa.table(columns), hidden)
    hidden.rename(file)


@dataclass
class Batches:
    """When batches started and were committed, as their records tell."""

    folder: Path
    started: dict[int, float] = field(default_factory=dict)
    committed: dict[int, float] = field(default_factory=dict)

    def look(self) -> None:
        """Note what is there: records are deleted two batches later."""
        for file in self.folder.glob("[0-9]*.json"):
            times = self.started if file.name.endswith(".start.json") else self.committed
            with suppress(FileNotFoundError):
                times.setdefault(int(file.name.split(".")[0]), file.stat().st_mtime)


@contextmanager
def repeated(seconds: float, work: Callable[[], object]) -> Iterator[None]:
    """Have something done over and over, beside what else is done."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(seconds):
            work()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def measure(folder: Path, additions: int, queries: int, seed: int) -> dict[str, list[float]]:
    """Run the job and add queries to it; gives the seconds of each addition."""
    rnd = random.Random(seed)
    source, checkpoint = folder / "source", folder / "state"
    source.mkdir()
    (folder / "queries.sql").write_text(";\n".join(query(number) for number in range(queries)))
    files = iter(range(10**9))
    write_rows(source / f"{next(files):08}.parquet", rnd)
    batches = Batches(checkpoint / "weft" / "batches")
    command = [*WEFT, "stream", str(folder / "queries.sql"), "--source", f"trades={source}", "--event-time", "ts"]
    command += ["--lateness", "2 seconds", "--checkpoint", str(checkpoint), "--out", str(folder / "answers")]
    with (folder / "job.log").open("wb") as log:
        job = subprocess.Popen([*command, "--trigger", "1 second"], stdout=log, stderr=log)
    try:
        feed = repeated(EVERY, lambda: write_rows(source / f"{next(files):08}.parquet", rnd))
        with feed, repeated(0.05, batches.look):
            wait_for(lambda: len(batches.committed) >= 10, job, folder)
            began = {}
            for number in range(queries, queries + additions):
                time.sleep(rnd.uniform(0, 2))
                began[f"q{number}"] = time.time()
                subprocess.run([*WEFT, "add", query(number), "--checkpoint", str(checkpoint)], check=True)
            wait_for(lambda: max(batches.committed) >= max(accepted(checkpoint).values()), job, folder)
        job.send_signal(signal.SIGTERM)
        job.wait(60)
    finally:
        job.kill()
    return told(began, batches, checkpoint)


def wait_for(condition: Callable[[], bool], job: subprocess.Popen[bytes], folder: Path) -> None:
    while not condition():
        assert job.poll() is None, (folder / "job.log").read_text()[-3000:]
        time.sleep(0.1)


def accepted(checkpoint: Path) -> dict[str, int]:
    """The first batch of every query."""
    with find_catalog(str(checkpoint)) as catalog:
        return {entry.name: entry.batch for entry in catalog.entries("active") if entry.batch is not None}


def told(began: dict[str, float], batches: Batches, checkpoint: Path) -> dict[str, list[float]]:
    first = accepted(checkpoint)
    with find_catalog(str(checkpoint)) as catalog:
        written = {change.name: change.at.timestamp() for change in catalog.changes() if change.action == "added"}
    return {
        "from the command's start to the batch's start": [batches.started[first[q]] - began[q] for q in began],
        "from the command's start to the batch's commit": [batches.committed[first[q]] - began[q] for q in began],
        "from the catalog's change to the batch's start": [batches.started[first[q]] - written[q] for q in began],
        "from the catalog's change to the batch's commit": [batches.committed[first[q]] - written[q] for q in began],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--additions", type=int, default=20)
    parser.add_argument("--queries", type=int, default=20, help="those that run before")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), options.additions, options.queries, options.seed)
    print(f"{options.additions} additions to {options.queries} queries, trigger 1 second:")
    for what, seconds in found.items():
        print(f"  {what}: median {statistics.median(seconds):.2f} s, max {max(seconds):.2f} s")


if __name__ == "__main__":
    main()
