"""What a running stream says about itself."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from live.driven import SECOND, Driven
from live.live_cases import BEGIN
from weft.catalog.status import Status
from weft.job.progress import Progress

SUMS = "SELECT window.start AS s, sum(v) {}AS n FROM s GROUP BY window(ts, '10 seconds')"


def test_answers_of_equal_queries_are_all_counted_and_the_catalog_s_version_is_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    driven = Driven(spark, tmp_path, 0)
    driven.add({"one": SUMS.format(""), "equal": SUMS.format(""), "computed": SUMS.format("+ 1 ")})
    progress = Progress()
    for number in range(3):
        driven.feed([(BEGIN + (number * 10 + second) * SECOND, "a", second, 0.5) for second in range(10)])
        progress.note(driven.job, driven.job.last)
    status = progress.status(driven.job)
    assert status["answers"] == 6 == sum(len(driven.sink.rows(name)) for name in ("one", "equal", "computed"))
    assert status["catalog_version"] == driven.catalog.version()


def test_the_figures_of_a_status_are_those_of_one_batch_also_while_the_next_is_committed(
    spark: SparkSession, tmp_path: Path
) -> None:
    driven = Driven(spark, tmp_path, 0)
    driven.add({"one": SUMS.format("")})
    progress = Progress()
    seen: list[Status] = []

    def torn(*_: object) -> None:
        """While a batch is delivered it is committed, but not noted."""
        seen.append(progress.status(driven.job))

    driven.job.ledger.deliver = torn  # type: ignore[method-assign]
    driven.job.listeners = [progress.note]
    for number in range(3):
        driven.feed([(BEGIN + (number * 10 + second) * SECOND, "a", second, 0.5) for second in range(10)])
        seen.append(progress.status(driven.job))
    for status in seen:
        assert status["rows"] == 10 * status["batches"]
        assert status["batch"] == status["batches"] - 1
        if status["batches"]:
            assert status["watermark"] == BEGIN + (status["batches"] * 10 - 1) * SECOND
            assert status["queries"] == 1
    assert [status["batch"] for status in seen] == [-1, 0, 0, 1, 1, 2]


def test_spark_s_pages_tell_the_jobs_of_a_batch_apart(spark: SparkSession, tmp_path: Path) -> None:
    driven = Driven(spark, tmp_path, 0)
    driven.add({"sums": SUMS.format(""), "computed": SUMS.format("+ 1 ")})
    for number in range(2):
        driven.feed([(BEGIN + (number * 10 + second) * SECOND, "a", second, 0.5) for second in range(10)])
    assert described(spark) >= {"weft batch 1: rows to slices", "weft batch 1: select lists of answers"}


def described(spark: SparkSession) -> set[str]:
    """What Spark's pages say its jobs were for."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = [jobs.apply(n).description() for n in range(jobs.size())]
    return {text.get() for text in found if text.isDefined()}
