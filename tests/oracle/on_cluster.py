"""A part of the random suite on executors that are processes of their own; run as a script, it prints a verdict.

One JVM holds one Spark context, so this cannot share the process of the other tests:

    python tests/oracle/on_cluster.py DATASETS QUERIES_A_DATASET
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))


def main(datasets: int, queries: int) -> None:
    """Compare some workloads on two executors and say so; the first difference ends the process with its report."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    from oracle import totals
    from oracle.compare import oracle_session
    from oracle.generate import shape, workload
    from oracle.trial import judge

    spark = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .appName("weft tests on a cluster")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    session = oracle_session(spark)
    for seed in range(datasets):
        judge(spark, session, workload(shape(10_007 * (seed + 1), queries)))
    print("EQUAL", totals.sentence())
    spark.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
