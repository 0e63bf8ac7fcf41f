"""Ivy, which stands among Spark's jars, run as a program: it finds packages by their coordinates and what they need.

Ivy's own cache is used by one fetch only and thrown away: Ivy neither shares it between processes nor looks again at
what it has once put there, so a file that was cut off in it would be handed out for ever.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pyspark

from weft.errors import WeftError
from weft.java.home import java
from weft.store.cache import cache_folder

SCALA = "2.13"
PATIENCE = 600
"""Seconds after which a fetch is given up."""
LONGEST = 300
"""Characters of what Ivy said that an error repeats."""
SETTINGS = "WEFT_IVY_SETTINGS"
_TROUBLE = re.compile(r"access error|SERVER ERROR|FAILED|Host .* not found|[a-z]Exception|invalid (sha|md5)|timed out")
"""What Ivy says where asking again may help. A package that is not published is only `not found`."""


class UnpublishedError(WeftError):
    """A package that no repository has."""


class NotFetchedError(WeftError):
    """A package that did not arrive, though it may be there: asking again may help."""


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


@dataclass(frozen=True)
class Request:
    """Packages with all that they need (or alone), except from the groups ``without``."""

    packages: tuple[Package, ...]
    without: tuple[str, ...] = ()
    transitive: bool = True

    def __str__(self) -> str:
        return ", ".join(map(str, self.packages))

    def text(self) -> str:
        """The Ivy file that asks for them; packages of one list leave each other's versions alone.

        Examples
        --------
        >>> print(Request((Package.of("g:a:1"), Package.of("g:b:2")), ("h",)).text())
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
        for package in self.packages:
            lines += self._dependency(package)
        return "\n".join([*lines, "</dependencies>", "</ivy-module>"])

    def _dependency(self, package: Package) -> Iterator[str]:
        others = [(other.group, other.artifact) for other in self.packages if other != package]
        excluded = [_all_but(package, group) for group in self.without]
        for group, artifact in (*others, ("org.apache.spark", f"spark-tags_{SCALA}")):
            excluded.append(f"<exclude org={quoteattr(group)} module={quoteattr(artifact)}/>")
        where = f"org={quoteattr(package.group)} name={quoteattr(package.artifact)} rev={quoteattr(package.version)}"
        yield f'<dependency {where} conf="default-&gt;default" transitive="{str(self.transitive).lower()}">'
        yield "".join(excluded)
        yield "</dependency>"


def _all_but(package: Package, group: str) -> str:
    """Leave out a group; of a package's own group everything else, as Ivy would leave out the package, too."""
    if group != package.group:
        return f"<exclude org={quoteattr(group)}/>"
    others = f"^(?!{re.escape(package.artifact)}$).*"
    return f'<exclude org={quoteattr(re.escape(group))} module={quoteattr(others)} matcher="regexp"/>'


def fetch(request: Request, target: Path, cache: Path) -> None:
    """Put the jars of a request into ``target``.

    Raises
    ------
    UnpublishedError, NotFetchedError
        In a few lines; all that Ivy said is kept in a file that they name.
    """
    description = target / "ivy.xml"
    description.write_text(request.text(), encoding="utf-8")
    pattern = f"{target}/[artifact]-[revision](-[classifier]).[ext]"
    command = [*_program(cache), "-ivy", str(description), "-retrieve", pattern]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise NotFetchedError(_told(request, f"nothing arrived within {PATIENCE} seconds", "")) from None
    except OSError as error:
        raise WeftError(f"cannot run Java, which fetches packages: {error}") from None
    arrived = {jar.name for jar in target.glob("*.jar")}
    missing = [one for one in request.packages if f"{one.artifact}-{one.version}.jar" not in arrived]
    if answer.returncode or missing:
        raise failure(request, f"{answer.stdout}\n{answer.stderr}")


def failure(request: Request, output: str) -> UnpublishedError | NotFetchedError:
    """What went wrong, by what Ivy said."""
    lines = [line.strip(" \t:") for line in output.splitlines()]
    trouble = next((line for line in lines if _TROUBLE.search(line)), None)
    if trouble is not None:
        return NotFetchedError(_told(request, trouble, output))
    missing = [line for line in lines if line.endswith(": not found")]
    if missing:
        return UnpublishedError(_told(request, missing[0].replace("#", ":").replace(";", ":"), output))
    return NotFetchedError(_told(request, next(filter(None, reversed(lines)), "Ivy said nothing"), output))


def _told(request: Request, reason: str, output: str) -> str:
    """An error of four lines."""
    names, reason = _shortened(str(request)), _shortened(reason)
    ours = os.environ.get(SETTINGS)
    mirror = f"is {SETTINGS}={ours} right?" if ours else f"behind a mirror, name an Ivy settings file in {SETTINGS}"
    told = f"cannot get the Java packages {names}\n  {reason}\n  are names and network right? {mirror}"
    kept = _kept(output)
    return f"{told}\n  all that was said: {kept}" if kept else told


def _kept(output: str) -> Path | None:
    path = cache_folder() / "ivy.log"
    try:
        path.write_text(output, encoding="utf-8")
    except OSError:
        return None
    return path if output else None


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..."


def _program(cache: Path) -> Iterator[str]:
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    if not jars:
        raise WeftError("this Spark has no Ivy among its jars: give it the packages by --packages yourself")
    yield from (str(java()), "-jar", str(jars[-1]), "-m2compatible", "-cache", str(cache))
    if settings := os.environ.get(SETTINGS):
        yield from ("-settings", settings)
