"""A Kafka broker of the tests' own: one node, its own controller, on one port for all its life."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.servers.jars import classpath
from tests.short_lived import SHORT_LIVED

PACKAGE = "org.apache.kafka:kafka_2.13:4.1.1"
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
num.partitions=3
auto.create.topics.enable=false
default.replication.factor=1
min.insync.replicas=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=500
log.segment.delete.delay.ms=0
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=2000
num.network.threads=2
num.io.threads=2
num.recovery.threads.per.data.dir=1
log.cleaner.dedupe.buffer.size=2097152
"""
_LOGGING = """\
Configuration:
  Appenders:
    Console: {name: out, PatternLayout: {pattern: "%d %p %m (%c)%n"}}
  Loggers:
    Root: {level: WARN, AppenderRef: {ref: out}}
"""


class Broker:
    """A broker whose data lies in ``folder``; ``more``: further properties, with ``{port}`` and ``{controller}``."""

    def __init__(self, folder: Path, more: str = "") -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self._port, controller = free_ports(2)
        text = (_PROPERTIES + more).format(port=self._port, controller=controller, folder=folder)
        (folder / "server.properties").write_text(text)
        (folder / "log4j2.yaml").write_text(_LOGGING)
        form = ["format", "--standalone", "-t", _cluster_id(), "-c", f"{folder}/server.properties"]
        done = subprocess.run([*self._java("64m"), "kafka.tools.StorageTool", *form], capture_output=True, timeout=120)
        assert done.returncode == 0, (done.stdout + done.stderr).decode()

    @property
    def servers(self) -> str:
        """Where clients reach it."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        with (self._folder / "server.log").open("ab") as log:
            command = [*self._java("512m"), "kafka.Kafka", f"{self._folder}/server.properties"]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)
        deadline = time.monotonic() + 90
        while not self._answers():
            assert self._process.poll() is None, (self._folder / "server.log").read_text()[-4000:]
            assert time.monotonic() < deadline, "the broker does not answer"
            time.sleep(0.2)

    def kill(self) -> None:
        """Ends it as a crash does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ends it in order."""
        self._end(signal.SIGTERM)

    def admin(self) -> Any:
        """A client that creates topics and the like."""
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    def create(self, topic: str, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
        """A new topic, of which the broker knows."""
        from confluent_kafka.admin import NewTopic

        admin = self.admin()
        admin.create_topics([NewTopic(topic, partitions, 1, config=dict(settings or {}))])[topic].result(30)
        while topic not in admin.list_topics(timeout=10).topics:
            time.sleep(0.05)

    def delete(self, topic: str) -> None:
        """Removes a topic, and waits until it is gone."""
        admin = self.admin()
        admin.delete_topics([topic])[topic].result(30)
        while topic in admin.list_topics(timeout=10).topics:
            time.sleep(0.1)

    def _java(self, heap: str) -> Sequence[str]:
        quiet = f"-Dlog4j2.configurationFile={self._folder}/log4j2.yaml"
        return ["java", f"-Xmx{heap}", *SHORT_LIVED.split(), quiet, "-cp", classpath(PACKAGE)]

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException

        try:
            return bool(self.admin().list_topics(timeout=2).brokers)
        except KafkaException:
            return False

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None


@contextmanager
def broker(folder: Path) -> Iterator[Broker]:
    """A running one, ended at the end."""
    one = Broker(folder)
    one.start()
    try:
        yield one
    finally:
        one.kill()


def _cluster_id() -> str:
    import base64

    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")


def free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in held]
    for one in held:
        one.close()
    return ports
