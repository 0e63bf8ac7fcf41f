"""A repository of Java packages as the world has them, served over HTTP from a folder: slow or shaky where asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha1
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zipfile import ZipFile

GROUP = "org.example"
POM = """\
<project><modelVersion>4.0.0</modelVersion>
<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>
<dependencies>{needs}</dependencies></project>
"""
NEED = "<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>1</version></dependency>"
SETTINGS = """\
<ivysettings><settings defaultResolver="served"/><resolvers>
<ibiblio name="served" m2compatible="true" root="http://127.0.0.1:{port}/"/>
</resolvers></ivysettings>
"""


@dataclass
class Repository:
    """A folder of packages and the server that hands them out."""

    folder: Path
    pause: float = 0.0
    """Seconds that an answer takes."""
    cut_off: int = 0
    """So many jars are sent in half, before they come whole."""
    asked: list[str] = field(default_factory=list)
    """What was asked for, in order."""

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Answer, self))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.settings = self.folder / "settings.xml"
        self.settings.write_text(SETTINGS.format(port=self.server.server_port))

    def publish(self, name: str, version: str = "1", needs: Sequence[str] = (), group: str = GROUP) -> str:
        """Have a package, which needs others of version 1; gives its coordinates."""
        place = self.folder / group.replace(".", "/") / name / version
        place.mkdir(parents=True)
        wanted = "".join(NEED.format(group=group, name=need) for need in needs)
        (place / f"{name}-{version}.pom").write_text(POM.format(group=group, name=name, version=version, needs=wanted))
        jar = place / f"{name}-{version}.jar"
        with ZipFile(jar, "w") as file:
            file.writestr(f"{name}.txt", name * 1000)
        jar.with_suffix(".jar.sha1").write_text(sha1(jar.read_bytes()).hexdigest())
        return f"{group}:{name}:{version}"

    def stop(self) -> None:
        """End the server: from now on it is away."""
        self.server.shutdown()
        self.server.server_close()


class Answer(SimpleHTTPRequestHandler):
    """One answer of the repository."""

    def __init__(self, repository: Repository, *request: object) -> None:
        self.repository = repository
        super().__init__(*request, directory=str(repository.folder))  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.repository.asked.append(self.path)
        time.sleep(self.repository.pause)
        if self.path.endswith(".jar") and self.repository.cut_off:
            self.repository.cut_off -= 1
            whole = Path(self.translate_path(self.path)).read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(whole)))
            self.end_headers()
            self.wfile.write(whole[: len(whole) // 2])
            self.close_connection = True
        else:
            super().do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing."""
