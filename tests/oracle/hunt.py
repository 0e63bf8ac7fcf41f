"""The random suite as a program: it goes on after a difference, shows each, and prints the totals at the end.

    .venv/bin/python tests/oracle/hunt.py 110 20
    .venv/bin/python tests/oracle/hunt.py 3 12 --master 'local-cluster[2,1,1024]'

    WEFT_TEST_CUT=workers .venv/bin/python tests/oracle/hunt.py 20 20

The second form runs on executors that are processes of their own. It is a program because one JVM holds one Spark
context. The exit code is 0 if every query of every data set gave the rows of Spark.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def session(master: str) -> Any:
    """A Spark session on some master, quiet and in UTC."""
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master(master)
        .appName("weft against spark")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.driver.host", "127.0.0.1")
        # much code that runs a few times: the optimising compiler would only take the cores from it
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        # a machine that sleeps, or a person who stops the process for a while, must not cost the context
        .config("spark.network.timeout", "7200s")
        .config("spark.executor.heartbeatInterval", "3600s")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def main(datasets: int, queries: int, first: int, master: str) -> int:
    """Compare the workloads of consecutive seeds; how many queries differed."""
    from oracle import totals
    from oracle.compare import oracle_session
    from oracle.generate import shape, workload
    from oracle.trial import sessions, trial

    spark = session(master)
    oracle = oracle_session(spark)
    differing = 0
    for number in range(first, first + datasets):
        made = workload(shape(10_007 * (number + 1), queries))
        started = time.perf_counter()
        try:
            outcome = trial(*sessions(spark, oracle, made.shape), made.stream, made.queries)
        except Exception as error:
            if isinstance(error, ConnectionError) or spark.sparkContext._jsc.sc().isStopped():
                raise  # Spark is gone: nothing that follows would be about Weft
            print(f"DID NOT RUN workload({made.shape})\n{error}", flush=True)
            differing += queries
            continue
        totals.add(
            queries_compared=outcome.queries - len(outcome.differences),
            rows_compared=outcome.rows,
            cells=outcome.bounded,
        )
        for query in made.queries:
            if query.name in outcome.differences:
                difference = outcome.differences[query.name]
                print(f"DIFFERS workload({made.shape})\n{query.statement}{made.stream.ddl}\n{difference}\n", flush=True)
        differing += len(outcome.differences)
        print(f"data set {number}: {time.perf_counter() - started:.0f} s; {totals.sentence()}", flush=True)
    print(f"{'EQUAL' if not differing else f'{differing} DIFFER'}: {totals.sentence()}", flush=True)
    spark.stop()
    return differing


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", type=int, help="how many data sets")
    parser.add_argument("queries", type=int, help="queries over each")
    parser.add_argument("--first", type=int, default=0, help="number of the first data set")
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    sys.exit(main(given.datasets, given.queries, given.first, given.master) > 0)
