"""A real Kafka broker: one node in KRaft mode, from its published artifacts, with a small heap."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from services.processes import Service, ServiceError, free_ports
from services.relay import ShakyLine
from weft.java.home import java
from weft.java.packages import resolve

BROKER = "org.apache.kafka:kafka_2.13:4.3.1"
LOGGING = "org.slf4j:slf4j-simple:1.7.36"
CLUSTER = "d2VmdC10ZXN0cy1jbHVzdA"
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},SHAKY://127.0.0.1:{behind},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker},SHAKY://127.0.0.1:{shaky}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SHAKY:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
"""


@dataclass
class Broker:
    """A broker that runs."""

    address: str
    _line: tuple[int, int]
    """Ports of the shaky line: where clients go, and where the broker listens for what comes through."""
    service: Service

    @staticmethod
    def start(folder: Path) -> Broker:
        """Fetch it if it was never fetched, and start it with its data in ``folder``."""
        jars = resolve([BROKER, LOGGING])
        port, controller, shaky, behind = free_ports(4)
        settings = folder / "server.properties"
        ports = {"broker": port, "controller": controller, "shaky": shaky, "behind": behind}
        settings.write_text(PROPERTIES.format(**ports, data=folder / "data"))
        log = folder / "broker.log"
        # a short life: the optimising compiler would only take the cores from the tests
        program = [str(java()), "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        program += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", ":".join(map(str, jars))]
        format = [*program, "kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(settings)]
        done = subprocess.run(format, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ServiceError(f"Kafka's folder could not be prepared:\n{done.stdout}{done.stderr}")
        address = f"127.0.0.1:{port}"
        command = [*program, "kafka.Kafka", str(settings)]
        service = Service(command, log, lambda: _admin(address).list_topics(timeout=2))
        return Broker(address, (shaky, behind), service)

    @contextmanager
    def shaky(self) -> Iterator[str]:
        """The address of a line on which the first records are spoilt."""
        line = ShakyLine(*self._line)
        try:
            yield f"127.0.0.1:{self._line[0]}"
            assert line.spoilt, "nothing went over the line"
        finally:
            line.close()

    def topic(self, name: str, partitions: int = 1) -> str:
        """Make a topic."""
        admin = _admin(self.address)
        for made in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            made.result(30)
        return name

    def produce(self, topic: str, values: Iterable[bytes | str]) -> None:
        """Send records, and wait until they have arrived."""
        producer = Producer({"bootstrap.servers": self.address})
        for value in values:
            producer.produce(topic, value)
            producer.poll(0)
        if producer.flush(60):
            raise ServiceError(f"records for {topic} did not arrive")

    def stop(self) -> None:
        """End it."""
        self.service.stop()


def _admin(address: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": address, "log_level": 0})
