"""Streams to measure with: the same trades as Parquet files and as JSON records of a Kafka topic, made once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from weft.java.packages import KAFKA, add_packages
from workload_thousand import _Market

if TYPE_CHECKING:
    from services.kafka import Broker

ROOT = Path(__file__).resolve().parent.parent
BUSIER_MORNING = 1.0 + 0.08 * 2 * np.pi
"""How much faster the market's clock runs at the opening than over the day."""
ROW_GROUPS = 8
"""Row groups a file: one row group alone would keep all but one core waiting, on either side."""
PARTITIONS = 2
MICROS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"


@dataclass(frozen=True)
class Trades:
    """So many trades a minute of event time, in files of so many."""

    a_minute: int
    a_file: int
    files: int

    @property
    def name(self) -> str:
        """As tables call it."""
        return (
            f"{self.a_minute // 1_000_000} M a minute"
            if self.a_minute >= 1_000_000
            else f"{self.a_minute // 1000} k a minute"
        )

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        return ROOT / "bench-out" / f"feed-{self.a_minute}-{self.a_file}-{self.files}"

    @property
    def paths(self) -> list[Path]:
        """Its files, in the order of time."""
        return [self.folder / f"part-{number:04}.parquet" for number in range(self.files)]

    def write(self) -> None:
        """Make the files, once."""
        if (self.folder / "_DONE").exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        market = _Market(np.random.default_rng(11))
        whole = round(self.a_minute * 360 * BUSIER_MORNING)
        for number, path in enumerate(self.paths):
            rows = market.trades(number * self.a_file, (number + 1) * self.a_file, whole)
            pq.write_table(rows, path, row_group_size=self.a_file // ROW_GROUPS)
        (self.folder / "_DONE").touch()


@dataclass(frozen=True)
class Files:
    """Trades from files."""

    trades: Trades
    source = "files"

    def stream(self, spark: SparkSession, a_batch: int) -> DataFrame:
        """The trades as a stream with micro-batches of so many rows."""
        reader = spark.readStream.schema(self.schema(spark)).option("maxFilesPerTrigger", a_batch // self.trades.a_file)
        return reader.parquet(str(self.trades.folder))

    def schema(self, spark: SparkSession) -> StructType:
        """The columns."""
        return spark.read.parquet(str(self.trades.folder)).schema


@dataclass(frozen=True)
class Topic:
    """The same trades from a topic, as JSON."""

    trades: Trades
    broker: Broker
    files: int
    """Of so many files of the trades."""
    source = "Kafka"

    @property
    def name(self) -> str:
        """Its name."""
        return f"trades-{self.trades.a_minute}"

    def fill(self, spark: SparkSession) -> None:
        """Send all trades, in the order of time, to the partitions by turns."""
        add_packages(spark, KAFKA)
        self.broker.topic(self.name, PARTITIONS)
        for path in self.trades.paths[: self.files]:
            rows = spark.read.parquet(str(path)).coalesce(1).sortWithinPartitions("ts")
            record = F.to_json(F.struct("*"), {"timestampFormat": MICROS}).alias("value")
            turn = (F.monotonically_increasing_id() % PARTITIONS).cast("int").alias("partition")
            sent = rows.select(turn, record).write.format("kafka")
            sent.option("kafka.bootstrap.servers", self.broker.address).option("topic", self.name).save()

    def stream(self, spark: SparkSession, a_batch: int) -> DataFrame:
        """The trades as a stream with micro-batches of so many rows."""
        options = {"kafka.bootstrap.servers": self.broker.address, "subscribe": self.name}
        options |= {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(a_batch)}
        records = spark.readStream.format("kafka").options(**options).load()
        schema = Files(self.trades).schema(spark)
        return records.select(F.from_json(F.col("value").cast("string"), schema).alias("row")).select("row.*")


Feed = Files | Topic


@contextmanager
def broker() -> Iterator[Broker]:
    """A broker as the tests start it."""
    sys.path.insert(0, str(ROOT / "tests"))
    from services.kafka import Broker

    with TemporaryDirectory(prefix="weft-kafka-") as folder:
        running = Broker.start(Path(folder))
        try:
            yield running
        finally:
            running.stop()
