"""Java packages that Spark does not carry, such as its Kafka connector: found by their coordinates, kept after that.

What Spark does for ``--packages`` is done here with the same Ivy, which stands among its jars: nothing has to be
installed. Jars are kept under ``~/.cache/weft`` (``WEFT_CACHE`` names another folder); ``WEFT_IVY_SETTINGS`` names
an Ivy settings file for those who reach the world through a mirror, as ``spark.jars.ivySettings`` does.

Any number of processes may ask at once: one fetches, the others wait for it. Jars arrive under a name of their own and
are renamed into place with their checksums, by which a damaged one is found and fetched again.

A package of Spark is wanted in the version of the Spark that runs. Where that one is not to be had, the newest earlier
one is taken: the connector's interface to Spark has been stable through Spark 4 (4.2.0 was seen to work on 4.3.0).
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from tempfile import mkdtemp

import pyspark
from filelock import FileLock, Timeout
from pyspark.sql import SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from weft.errors import WeftError
from weft.java import kept_jars
from weft.java.ivy import SCALA, NotFetchedError, Package, Request, UnpublishedError, fetch
from weft.java.kept_jars import DamagedJarError, KeptJars
from weft.store.cache import cache_folder

KAFKA = (f"spark-sql-kafka-0-10_{SCALA}", f"spark-token-provider-kafka-0-10_{SCALA}")
AVRO = (f"spark-avro_{SCALA}",)
EARLIER = (
    *("4.3.0", "4.2.1", "4.2.0", "4.1.4", "4.1.3", "4.1.2", "4.1.1", "4.1.0"),
    *("4.0.5", "4.0.4", "4.0.3", "4.0.2", "4.0.1", "4.0.0"),
)
"""Versions of Spark to fall back on."""
CARRIED = (
    *("org.apache.hadoop", "org.scala-lang", "org.scala-lang.modules", "org.slf4j", "org.lz4", "at.yawk.lz4"),
    *("org.xerial.snappy", "com.github.luben", "org.tukaani", "com.google.code.findbugs"),
)
"""Groups that Spark has itself: another version beside its own would do harm."""
ATTEMPTS = 4
PATIENCE = 1800
"""Seconds to wait for another process that fetches."""
LOG = logging.getLogger("weft.packages")


def add_packages(spark: SparkSession, artifacts: Sequence[str]) -> None:
    """Make packages of Spark known to a session that runs, such as :data:`KAFKA`."""
    for jar in spark_jars(artifacts, spark.version):
        spark.sql(f"ADD JAR '{jar}'")


def spark_jars(artifacts: Sequence[str], version: str = pyspark.__version__) -> tuple[Path, ...]:
    """The jars of packages of Spark and of what they need, for ``spark.jars`` of a session to be made."""
    note = cache_folder() / f"spark-{version}" / f"{artifacts[0]}.packages"
    try:
        return resolve(note.read_text(encoding="utf-8").splitlines(), without=CARRIED)
    except FileNotFoundError:
        found = [str(nearest(artifact, version)) for artifact in artifacts]
    note.parent.mkdir(parents=True, exist_ok=True)
    building = note.with_suffix(f".{os.getpid()}")
    building.write_text("\n".join(found), encoding="utf-8")
    building.replace(note)
    return resolve(found, without=CARRIED)


def nearest(artifact: str, version: str) -> Package:
    """A package of Spark in this version, or in the newest earlier one that is to be had."""
    first: UnpublishedError | None = None
    for candidate in (version, *(earlier for earlier in EARLIER if _number(earlier) < _number(version))):
        package = Package("org.apache.spark", artifact, candidate)
        try:
            _kept(Request((package,), transitive=False))
        except UnpublishedError as error:
            first = first or error
        else:
            return package
    assert first is not None
    raise first


def _number(version: str) -> tuple[int, ...]:
    """
    A version's numbers, to be compared.

    Examples
    --------
    >>> _number("4.3.0-preview1")
    (4, 3, 0)
    """
    return tuple(int(part) for part in version.partition("-")[0].split("."))


def resolve(coordinates: Sequence[str], *, without: Sequence[str] = ()) -> tuple[Path, ...]:
    """The jars of these packages and of all that they need, except from the groups ``without``.

    Raises
    ------
    WeftError
        In a few lines, if one of them is not to be had.
    """
    return _kept(Request(tuple(Package.of(one) for one in coordinates), tuple(without)))


def _kept(request: Request) -> tuple[Path, ...]:
    digest = blake2b(request.text().encode(), digest_size=6).hexdigest()
    jars = KeptJars(cache_folder() / "jars" / f"{request.packages[0].artifact}-{digest}")
    found = jars.whole()
    if found is not None:
        return found
    with _alone(jars.place.parent):
        return jars.whole() or _fetched(request, jars)  # another process may have fetched it meanwhile


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of the folder, which the system takes back from a process that dies."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock", timeout=PATIENCE):
            kept_jars.sweep(folder)
            yield
    except Timeout:
        raise WeftError(f"another process has been fetching Java packages into {folder} for {PATIENCE} s") from None
    except OSError as error:
        raise WeftError(f"Java packages cannot be kept: {error}; name another folder in WEFT_CACHE") from None


def _fetched(request: Request, jars: KeptJars) -> tuple[Path, ...]:
    """Fetch the jars; again, from nothing and after a pause, where that may help."""
    if request.transitive:
        LOG.info("fetching Java packages, once: %s", request)
    again = retry_if_exception_type((NotFetchedError, DamagedJarError))
    attempts = Retrying(
        retry=again, stop=stop_after_attempt(ATTEMPTS), wait=wait_exponential(multiplier=0.5, max=8), reraise=True
    )
    try:
        return attempts(_fetched_once, request, jars)
    except DamagedJarError as error:
        raise WeftError(f"cannot get the Java packages {request}\n  {error}, {ATTEMPTS} times") from None


def _fetched_once(request: Request, jars: KeptJars) -> tuple[Path, ...]:
    building = jars.building()
    cache = Path(mkdtemp(prefix=kept_jars.BUILDING, dir=building.parent))
    try:
        fetch(request, building, cache)
        return jars.keep(building)
    finally:
        shutil.rmtree(building, ignore_errors=True)
        shutil.rmtree(cache, ignore_errors=True)
