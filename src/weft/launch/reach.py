"""Whether Spark can read and write where it will have to: said before it starts where that can be known.

Arrow's half is looked at by :mod:`weft.store.location`. Spark reaches a store by a file system class of Hadoop's, which
for object stores is in a package that Spark does not carry.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from weft.errors import UseError
from weft.store.location import STORES, Location

ELSEWHERE = ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH")
"""Variables that say that Spark, or what it loads, is not what stands beside this Python."""
CLASSES = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")


def refuse_without_package(places: Sequence[Location], options: Mapping[str, str], packages: Sequence[str]) -> None:
    """Raise an error for a store whose package is surely not there."""
    if any(os.environ.get(name) for name in ELSEWHERE):
        return
    named = " ".join([*packages, *(options.get(name, "") for name in CLASSES)])
    for place in places:
        store = STORES.get(place.scheme)
        if store is None or not store.package or f"spark.hadoop.fs.{store.hadoop}.impl" in options:
            continue
        artifact = store.package.partition(":")[2]
        if artifact not in named and not any(_jars().glob(f"{artifact}-*.jar")):
            raise UseError(_told(place, f"the package {artifact} is not among its jars"))


def refuse_without_file_system(spark: SparkSession, places: Sequence[Location]) -> None:
    """Raise an error for a store that this session has no file system class for."""
    for place in places:
        if place.is_remote:
            context = spark.sparkContext
            scheme = place.for_spark.partition("://")[0]
            try:
                found = context._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass  # type: ignore[union-attr]
                found(scheme, context._jsc.hadoopConfiguration())
            except Py4JJavaError as error:
                raise UseError(_told(place, str(error.java_exception.getMessage()))) from None


def _told(place: Location, reason: str) -> str:
    scheme = place.for_spark.partition("://")[0]
    store = STORES.get(place.scheme)
    if store is None or not store.package:
        advice = "give Spark the file system by --packages, or a place that it reaches"
    else:
        version = _hadoop_version() if store.package.startswith("org.apache.hadoop:") else "VERSION"
        advice = f"say --packages {store.package}:{version}"
    return f"{place.text}: Spark cannot reach {scheme}:// ({reason}); {advice}"


def _jars() -> Path:
    return Path(pyspark.__file__).parent / "jars"


def _hadoop_version() -> str:
    """The version of Hadoop that Spark carries, which its other packages have to be of."""
    names = [jar.stem for jar in _jars().glob("hadoop-client-api-*.jar")]
    return names[0].rpartition("-")[2] if names else "VERSION"
