"""Java packages that Spark does not carry, such as its Kafka connector: found by their coordinates, kept after that.

What Spark does for ``--packages`` is done here with the same Ivy, which stands among its jars: nothing has to be
installed. Jars are kept under ``~/.cache/weft`` (``WEFT_CACHE`` names another folder); ``WEFT_IVY_SETTINGS`` names
an Ivy settings file for those who reach the world through a mirror, as ``spark.jars.ivySettings`` does.

A package of Spark is wanted in the version of the Spark that runs. Where that one is not to be had, the newest earlier
one is taken: the connector's interface to Spark has been stable through Spark 4 (4.2.0 was seen to work on 4.3.0).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import mkdtemp
from xml.sax.saxutils import quoteattr

import pyspark
from pyspark.sql import SparkSession

from weft.errors import WeftError
from weft.java.home import java

SCALA = "2.13"
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
PATIENCE = 900
"""Seconds after which a download is given up."""


@dataclass(frozen=True)
class Package:
    """Coordinates.

    Examples
    --------
    >>> Package.of("org.apache.kafka:kafka-clients:3.9.2")
    Package(group='org.apache.kafka', artifact='kafka-clients', version='3.9.2')
    """

    group: str
    artifact: str
    version: str

    @staticmethod
    def of(coordinates: str) -> Package:
        """Read ``group:artifact:version``."""
        parts = coordinates.split(":")
        if len(parts) != 3 or not all(parts):
            raise WeftError(f"{coordinates} names no package: write group:artifact:version")
        return Package(*parts)

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def add_packages(spark: SparkSession, artifacts: Sequence[str]) -> None:
    """Make packages of Spark known to a session that runs, such as :data:`KAFKA`."""
    for jar in spark_jars(artifacts, spark.version):
        spark.sql(f"ADD JAR '{jar}'")


def spark_jars(artifacts: Sequence[str], version: str = pyspark.__version__) -> tuple[Path, ...]:
    """The jars of packages of Spark and of what they need, for ``spark.jars`` of a session to be made."""
    listing = cache_folder() / f"spark-{version}" / f"{artifacts[0]}.jars"
    if listing.exists():
        jars = tuple(Path(line) for line in listing.read_text().splitlines())
        if all(jar.exists() for jar in jars):
            return jars
    packages = [nearest(artifact, version) for artifact in artifacts]
    jars = resolve([str(package) for package in packages], without=CARRIED)
    listing.parent.mkdir(parents=True, exist_ok=True)
    listing.with_suffix(f".{os.getpid()}").write_text("\n".join(map(str, jars)))
    listing.with_suffix(f".{os.getpid()}").replace(listing)
    return jars


def nearest(artifact: str, version: str) -> Package:
    """A package of Spark in this version, or in the newest earlier one that is to be had."""
    said = ""
    for candidate in (version, *(earlier for earlier in EARLIER if _number(earlier) < _number(version))):
        package = Package("org.apache.spark", artifact, candidate)
        try:
            _retrieve([package], (), transitive=False)
        except WeftError as error:
            said = said or str(error)
        else:
            return package
    raise WeftError(said)


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
        With what Ivy said, if one of them is not to be had.
    """
    return _retrieve([Package.of(one) for one in coordinates], without, transitive=True)


def _retrieve(packages: Sequence[Package], without: Sequence[str], *, transitive: bool) -> tuple[Path, ...]:
    wanted = module(packages, without, transitive=transitive)
    place = (
        cache_folder() / "packages" / f"{packages[0].artifact}-{blake2b(wanted.encode(), digest_size=6).hexdigest()}"
    )
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        building = Path(mkdtemp(prefix=".", dir=place.parent))
        try:
            _run_ivy(packages, wanted, building)
            if not place.exists():  # another process may have been faster
                building.rename(place)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return tuple(sorted(place.glob("*.jar")))


def _run_ivy(packages: Sequence[Package], wanted: str, target: Path) -> None:
    description = target / "ivy.xml"
    description.write_text(wanted, encoding="utf-8")
    command = [*_ivy(), "-ivy", str(description), "-retrieve", f"{target}/[artifact]-[revision](-[classifier]).[ext]"]
    names = ", ".join(map(str, packages))
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        raise WeftError(f"{names} did not arrive within {PATIENCE} seconds; is the network reachable?") from None
    arrived = {jar.name for jar in target.glob("*.jar")}
    missing = [str(one) for one in packages if f"{one.artifact}-{one.version}.jar" not in arrived]
    if answer.returncode or missing:
        raise WeftError(f"cannot resolve {names}: {' '.join(_complaints(answer.stdout)) or answer.stderr.strip()}")


def _ivy() -> Iterator[str]:
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    if not jars:
        raise WeftError("this Spark has no Ivy among its jars: give it the packages by --packages yourself")
    yield from (str(java()), "-jar", str(jars[-1]), "-m2compatible", "-cache", str(cache_folder() / "ivy"))
    if settings := os.environ.get("WEFT_IVY_SETTINGS"):
        yield from ("-settings", settings)


def _complaints(output: str) -> Iterator[str]:
    """What Ivy found wrong, without the frame that it draws around it."""
    for line in output.splitlines():
        text = line.strip(" \t:")
        if "not found" in text or "FAILED" in text or "rror" in text:
            yield text


def module(packages: Sequence[Package], without: Sequence[str], *, transitive: bool) -> str:
    """The Ivy file that asks for packages; those of one list leave each other's versions alone.

    Examples
    --------
    >>> print(module([Package.of("g:a:1"), Package.of("g:b:2")], ["h"], transitive=True))
    <ivy-module version="2.0">
    <info organisation="weft" module="packages"/>
    <configurations><conf name="default"/></configurations>
    <dependencies>
    <dependency org="g" name="a" rev="1" conf="default-&gt;default" transitive="true">
    <exclude org="h"/><exclude org="g" module="b"/><exclude org="org.apache.spark" module="spark-tags_2.13"/>
    </dependency>
    <dependency org="g" name="b" rev="2" conf="default-&gt;default" transitive="true">
    <exclude org="h"/><exclude org="g" module="a"/><exclude org="org.apache.spark" module="spark-tags_2.13"/>
    </dependency>
    </dependencies>
    </ivy-module>
    """
    lines = [
        '<ivy-module version="2.0">',
        '<info organisation="weft" module="packages"/>',
        '<configurations><conf name="default"/></configurations>',
        "<dependencies>",
    ]
    for one in packages:
        others = [(other.group, other.artifact) for other in packages if other != one]
        excluded = [f"<exclude org={quoteattr(group)}/>" for group in without]
        for group, artifact in (*others, ("org.apache.spark", f"spark-tags_{SCALA}")):
            excluded.append(f"<exclude org={quoteattr(group)} module={quoteattr(artifact)}/>")
        where = f"org={quoteattr(one.group)} name={quoteattr(one.artifact)} rev={quoteattr(one.version)}"
        depth = "true" if transitive else "false"
        lines.append(f'<dependency {where} conf="default-&gt;default" transitive="{depth}">')
        lines += ["".join(excluded), "</dependency>"]
    return "\n".join([*lines, "</dependencies>", "</ivy-module>"])


def cache_folder() -> Path:
    """Where what was fetched is kept."""
    if named := os.environ.get("WEFT_CACHE"):
        return Path(named).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft"
