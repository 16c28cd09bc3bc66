"""A broker, a Spark session with the Kafka connector, and sources that are topics of the broker."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.verify import contents
from dbt_incremental_dd.sources.config import SourceSpec, parse_source
from dbt_incremental_dd.sources.intake import Intake, take_in
from dbt_incremental_dd.trace.columns import columns_of
from dbt_incremental_dd.trace.layout import Storage
from tests.conftest import SETTINGS
from tests.servers.jars import jars
from tests.servers.kafka import Broker, broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
_OWN = ("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2")
"""What pyspark does not have already."""
COLUMNS = {"id": "bigint", "v": "string", "n": "int"}


def connector_jars() -> str:
    """Spark's Kafka connector as a setting of the session."""
    return ",".join(str(path) for path in jars(CONNECTOR) if path.name.startswith(_OWN))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The suite's session, with Spark's Kafka connector."""
    from dbt_incremental_dd.runtime.session import open_session

    session = open_session(str(tmp_path_factory.mktemp("spark")), {**SETTINGS, "spark.jars": connector_jars()})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker for all tests; each has topics of its own."""
    with broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


def spec_of(
    servers: str,
    topic: str,
    columns: Mapping[str, Any] = COLUMNS,
    options: Mapping[str, Any] | None = None,
    **meta: Any,
) -> SourceSpec:
    """A source that is checked as dbt's are."""
    settings = {"connector": "kafka", "topic": topic, **meta}
    settings["options"] = {"bootstrap.servers": servers, **(options or {})}
    return parse_source("s.t", "s.t", settings, columns, "/")


class Reader:
    """A topic as a source; ``take`` brings it one step further, ``rows`` are its contents."""

    thresholds: ClassVar[Thresholds] = Thresholds()
    """Of a reader that is given none."""

    def __init__(
        self, spark: SparkSession, folder: Path, spec: SourceSpec, thresholds: Thresholds | None = None
    ) -> None:
        self.spark = spark
        self.storage = Storage(str(folder / "state"), thresholds=thresholds or self.thresholds)
        self.spec = spec
        self.time = 100
        self.notes: list[str] = []

    def take(self) -> Intake:
        """One intake at the next time; it leaves no scratch."""
        self.time += 1
        taken = take_in(LazySession.of(self.spark), self.storage, self.spec, self.time, self.notes.append)
        scratch = Path(self.storage.root) / "scratch"
        assert not scratch.exists() or not list(scratch.iterdir())
        return taken

    def rows(self, name: str = "s.t", key: Callable[[Any], Any] = tuple) -> Counter[Any]:
        """The collection as a multiset; ``key``: what each row is counted as."""
        place = self.storage.collection(name)
        log = place.log()
        assert log is not None
        frame = contents(self.spark, log, columns_of(place, log), log.frontiers.last)
        return Counter(key(tuple(row)) for row in frame.collect())


class Writer:
    """Produces to a topic: idempotent, acknowledged by all."""

    def __init__(self, kafka: Broker, topic: str, transactional: str | None = None) -> None:
        from confluent_kafka import Producer

        settings = {"bootstrap.servers": kafka.servers, "log_level": 0, "acks": "all", "enable.idempotence": True}
        self.producer = Producer({**settings, **({"transactional.id": transactional} if transactional else {})})
        self.topic = topic
        self._kafka = kafka
        if transactional:
            self.producer.init_transactions(30)

    def send(self, *messages: tuple[Any, Any], partition: int = -1) -> None:
        """Keys and values: None, bytes, text, or what becomes JSON."""
        for key, value in messages:
            self.producer.produce(self.topic, _bytes(value), _bytes(key), partition)
        assert self.producer.flush(30) == 0

    def transaction(self, messages: Sequence[tuple[Any, Any]], commit: bool = True) -> None:
        """All of them, or none."""
        self.producer.begin_transaction()
        self.send(*messages)
        self.end(commit)

    def end(self, commit: bool = True) -> None:
        """Of a transaction; waits until all brokers' parts of it know."""
        if commit:
            self.producer.commit_transaction(30)
        else:
            self.producer.abort_transaction(30)
        settle(self._kafka, self.topic)


def settle(kafka: Broker, topic: str) -> None:
    """Waits until no transaction is open in the topic."""
    from confluent_kafka import IsolationLevel, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    admin = kafka.admin()
    partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions

    def ends(level: IsolationLevel) -> list[int]:
        wanted = {TopicPartition(topic, one): OffsetSpec.latest() for one in partitions}
        return [found.result(10).offset for found in admin.list_offsets(wanted, isolation_level=level).values()]

    deadline = time.monotonic() + 30
    while ends(IsolationLevel.READ_COMMITTED) != ends(IsolationLevel.READ_UNCOMMITTED):
        assert time.monotonic() < deadline, "a transaction stays open"
        time.sleep(0.02)


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()
