"""A real standalone Spark: a master on loopback, and workers if asked for."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from services.processes import free_ports, start, stop
from weft.java.home import java

HOME = str(Path(pyspark.__file__).parent)
JARS = f"{HOME}/jars/*"
MODULES = (
    *("java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.io", "java.base/java.net"),
    *("java.base/java.nio", "java.base/java.util", "java.base/java.util.concurrent", "java.base/sun.nio.ch"),
    *("java.base/sun.nio.cs", "java.base/sun.security.action", "java.base/sun.util.calendar"),
)


@dataclass
class Standalone:
    """A master and its workers."""

    folder: Path
    port: int
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @staticmethod
    def start(folder: Path) -> Standalone:
        """A master without workers."""
        port, page = free_ports(2)
        cluster = Standalone(folder, port)
        master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)]
        cluster._run([*master, "--webui-port", str(page)], port)
        return cluster

    @property
    def url(self) -> str:
        """The master's address."""
        return f"spark://127.0.0.1:{self.port}"

    @contextmanager
    def worker(self, cores: int = 1, memory: str = "1g", *, home: str = HOME) -> Iterator[None]:
        """One more worker for a while; with a home that has no Spark, its executors end as soon as they begin."""
        port, page = free_ports(2)
        worker = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--port", str(port)]
        worker += ["--webui-port", str(page), "--cores", str(cores), "--memory", memory]
        self._run([*worker, "--work-dir", str(self.folder / "work"), self.url], port, home)
        try:
            yield
        finally:
            stop(self.processes.pop())

    def stop(self) -> None:
        """End all, workers first."""
        for process in reversed(self.processes):
            stop(process)

    def _run(self, program: list[str], port: int, home: str = HOME) -> None:
        opens = [f"--add-opens={module}=ALL-UNNAMED" for module in MODULES]
        command = [str(java()), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *opens, "-cp", JARS]
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": home, "SPARK_SCALA_VERSION": "2.13"}
        log = self.folder / f"{program[0].rpartition('.')[2]}-{port}.log"
        self.processes.append(start([*command, *program], log, lambda: _answers(port), env=environment))


def _answers(port: int) -> None:
    socket.create_connection(("127.0.0.1", port), 1).close()
