"""The demo's query file: what ``weft demo`` shows is what a user of Spark would write."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import SparkSession

from weft.cli.demo import QUERIES
from weft.query.sparksql import parse_file

FILE = QUERIES
SCHEMA = """
    year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int,
    arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, air_time int, distance int,
    hour int, minute int, ts timestamp
"""
COLUMNS = {"flights": tuple(re.findall(r"(\w+) (?:int|string|timestamp)", SCHEMA))}


def statements() -> list[str]:
    return [statement.strip() for statement in FILE.read_text().split(";") if statement.strip()]


def test_every_demo_query_is_read_and_there_are_at_least_sixty() -> None:
    queries = parse_file(FILE.read_text(), COLUMNS)
    assert len(queries) == len(statements()) >= 60
    assert len({query.name for query in queries}) == len(queries)


def test_every_demo_query_says_in_words_what_it_asks() -> None:
    questions = re.findall(r"^-- (\w[^\n]+)\nCREATE OR REPLACE TEMPORARY VIEW", FILE.read_text(), re.MULTILINE)
    assert len(questions) == len(set(questions)) == len(statements())


@pytest.fixture
def empty_flights(spark: SparkSession) -> SparkSession:
    spark.createDataFrame([], SCHEMA).createOrReplaceTempView("flights")
    return spark


def test_spark_accepts_every_demo_query_unchanged(empty_flights: SparkSession) -> None:
    for query, statement in zip(parse_file(FILE.read_text(), COLUMNS), statements(), strict=True):
        empty_flights.sql(statement)
        found = empty_flights.table(query.name).columns
        assert found == [output.alias or name for output, name in zip(query.outputs, found, strict=True)]
        empty_flights.catalog.dropTempView(query.name)
