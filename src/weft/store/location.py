"""Paths and URLs: the one way in which a user says where something lies, for both halves that read and write there.

Answers and state are written by Arrow, in tasks and in the driver; Spark reads some of them back, and keeps its own
checkpoint. The halves know stores by different names: Arrow's ``s3://`` is Hadoop's ``s3a://``. A user may write
either. What one half cannot reach is refused here, before anything is made: a URL is never taken for a path.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from pyarrow import fs

from weft.errors import UseError, WeftError

LOCAL = fs.LocalFileSystem()
PLAIN = re.compile(r"(/(?!\.(/|$))[^/]+)+")
"""Absolute paths with nothing in them that Python would write in another way."""


@dataclass(frozen=True)
class Store:
    """What a kind of store is called: by Arrow, by Hadoop, and the package that Hadoop has it in."""

    arrow: str
    hadoop: str
    package: str = ""


STORES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), Store("s3", "s3a", "org.apache.hadoop:hadoop-aws")),
    **dict.fromkeys(("gs", "gcs"), Store("gs", "gs", "com.google.cloud.bigdataoss:gcs-connector")),
    "abfs": Store("abfs", "abfs", "org.apache.hadoop:hadoop-azure"),
    "abfss": Store("abfss", "abfss", "org.apache.hadoop:hadoop-azure"),
    "hdfs": Store("hdfs", "hdfs"),
    "viewfs": Store("viewfs", "viewfs"),
}
"""By the scheme that a user writes."""
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://(?P<host>[^/]*)(?P<path>.*)", re.DOTALL)
_FILE = re.compile(r"file:(?://(?:localhost)?)?(?=/)(?P<path>.*)", re.IGNORECASE | re.DOTALL)
_NEARLY = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<slash>/?)(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True)
class Location:
    """A path on this machine, or a URL.

    Examples
    --------
    >>> Location.of("s3a://bucket/answers").for_spark, Location.of("s3://bucket/answers").for_spark
    ('s3a://bucket/answers', 's3a://bucket/answers')
    >>> Location.of("file:///data/answers")
    Location(text='/data/answers')
    >>> Location.of("s3a:/bucket/answers")
    Traceback (most recent call last):
    ...
    weft.errors.UseError: s3a:/bucket/answers is neither a path nor a URL: write s3a://bucket/answers
    """

    text: str
    """An absolute path, or the URL as it was written, without slashes at its end."""

    @staticmethod
    def of(text: str) -> Location:
        """Read what a user wrote."""
        if PLAIN.fullmatch(text):
            return Location(text)
        if local := _FILE.fullmatch(text):
            return Location(str(Path(local["path"]).absolute()))
        if url := _URL.fullmatch(text):
            return _checked(url)
        nearly = _NEARLY.fullmatch(text)
        if nearly and (nearly["slash"] or nearly["scheme"].lower() in STORES):
            right = f"{nearly['scheme']}://{nearly['rest']}"
            raise UseError(f"{text} is neither a path nor a URL: write {right}")
        return Location(str(Path(text).absolute()))

    @property
    def scheme(self) -> str:
        """How the URL begins; nothing for a path."""
        return self.text.partition("://")[0].lower() if self.is_remote else ""

    @property
    def is_remote(self) -> bool:
        """Whether it is a URL."""
        return "://" in self.text and not self.text.startswith("/")

    def beneath(self, name: str) -> Location:
        """What lies in it under a name."""
        return Location(f"{self.text}/{name}")

    @property
    def for_delta(self) -> str:
        """Where ``deltalake`` finds it, which knows stores by Arrow's names."""
        scheme, found, rest = self.text.partition("://")
        return f"{STORES[scheme.lower()].arrow}://{rest}" if found and self.scheme in STORES else self.text

    @property
    def path(self) -> Path:
        """The path on this machine."""
        assert not self.is_remote
        return Path(self.text)

    @cached_property
    def for_spark(self) -> str:
        """Where Spark finds it: a URL with the scheme that Hadoop knows."""
        if not self.is_remote:
            return f"file://{self.text}"
        scheme, rest = self.scheme, self.text.partition("://")[2]
        return f"{STORES[scheme].hadoop if scheme in STORES else scheme}://{rest}"

    def for_arrow(self) -> tuple[fs.FileSystem, str]:
        """The file system and the path on it, as Arrow has them."""
        if not self.is_remote:
            return LOCAL, self.text
        self.refuse_without_arrow()
        host, _, path = self.text.partition("://")[2].partition("/")
        filesystem, root = _opened(STORES[self.scheme].arrow, host)
        return filesystem, f"{root.rstrip('/')}/{path}" if path else root

    def refuse_without_arrow(self) -> None:
        """Raise an error unless Arrow knows such a store."""
        if self.is_remote and self.scheme not in STORES:
            raise UseError(
                f"{self.text}: Weft cannot write to {self.scheme}://; "
                f"give a folder, or a URL that begins with {', '.join(f'{name}://' for name in STORES)}"
            )

    def exists(self) -> bool:
        """Whether anything is there."""
        filesystem, path = self.for_arrow()
        try:
            return bool(filesystem.get_file_info(path).type != fs.FileType.NotFound)
        except OSError as error:
            raise WeftError(f"{self.text} cannot be reached: {str(error).splitlines()[0]}") from None


def _checked(url: re.Match[str]) -> Location:
    scheme, host, path = url["scheme"], url["host"], url["path"]
    if ":" in host.rpartition("@")[0]:
        raise UseError(
            f"{scheme}://...@{host.rpartition('@')[2]}{path} holds a password: "
            "leave it out, stores take theirs from the environment"
        )
    if "?" in path or "#" in path:
        raise UseError(f"{url[0]} holds ? or #: such options of a store come from the environment, not from its URL")
    if scheme.lower() in STORES and not host and scheme.lower() not in {"hdfs", "viewfs"}:
        raise UseError(f"{url[0]} names no bucket: write {scheme}://BUCKET/PATH")
    return Location(f"{scheme}://{host}{path.rstrip('/')}")


@lru_cache
def _opened(scheme: str, host: str) -> tuple[fs.FileSystem, str]:
    """A file system; opening one may ask the store, so it is done once a process."""
    try:
        found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(f"{scheme}://{host}/")
    except (OSError, ValueError, NotImplementedError) as error:
        said = str(error).splitlines()[0]
        raise WeftError(f"{scheme}://{host} cannot be reached: {said}{_advice(scheme)}") from None
    return found


def _advice(scheme: str) -> str:
    if scheme in {"hdfs", "viewfs"}:
        return "\n  Arrow needs Hadoop's library: set HADOOP_HOME, and CLASSPATH to what `hadoop classpath --glob` says"
    return ""
