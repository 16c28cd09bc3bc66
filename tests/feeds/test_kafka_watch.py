"""A million events while a process follows them, and the broker is killed in between: nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import yaml

import dbt_incremental_dd
from tests.feeds.kafka import connector_jars, spark
from tests.oracle import difference
from tests.servers.kafka import Broker, broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark"]
pytestmark = pytest.mark.kafka

EVENTS = int(os.environ.get("DD_EVENTS", "1000000"))
SECONDS = 30 if EVENTS <= 100_000 else 60
"""That the events take, if nobody is in the way."""
_FIRST = 20_000
"""Events that are there before they are followed."""
_KEYS = 30_000
_REGIONS = 200
_SOURCES = """
version: 2
sources:
  - name: raw
    schema: raw
    config:
      meta: {{differential: {{connector: kafka, options: {{bootstrap.servers: "{servers}"}}}}}}
    tables:
      - name: accounts
        columns: [{{name: id, data_type: bigint}}, {{name: region, data_type: int}}, {{name: balance, data_type: bigint}}]
        config: {{meta: {{differential: {{envelope: upsert, key: id}}}}}}
      - name: regions
        columns: [{{name: region, data_type: int}}, {{name: word, data_type: string}}]
        config: {{meta: {{differential: {{envelope: upsert, key: region}}}}}}
      - name: clicks
        columns: [{{name: account, data_type: bigint}}, {{name: cents, data_type: bigint}}]
        config: {{meta: {{differential: {{envelope: append}}}}}}
"""
MODELS = {
    "latest": "select id, region, balance from {accounts} where balance >= 500",
    "totals": "select region, count(*) as n, sum(balance) as balance, max(balance) as most from {accounts} group by region",
    "named": "select a.id, r.word, a.balance from {accounts} a join {regions} r on a.region = r.region where a.id < 3000",
    "clicked": "select account % 1000 as part, count(*) as n, sum(cents) as cents from {clicks} group by account % 1000",
}
Event = tuple[str, Any, dict[str, Any] | None]


def events() -> Iterator[Event]:
    """Topic, key and value of each."""
    rng = random.Random(7)
    for n in range(EVENTS):
        kind = rng.random()
        if kind < 0.5:
            id = rng.randrange(_KEYS)
            is_gone = rng.random() < 0.1
            yield (
                "accounts",
                id,
                None if is_gone else {"id": id, "region": id % _REGIONS, "balance": rng.randrange(1000)},
            )
        elif kind < 0.501:
            region = rng.randrange(_REGIONS)
            yield "regions", region, None if rng.random() < 0.2 else {"region": region, "word": f"w{n}"}
        else:
            yield "clicks", None, {"account": rng.randrange(_KEYS), "cents": rng.randrange(100)}


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Broker]:
    """A broker that may be killed."""
    with broker(tmp_path / "kafka") as running:
        for topic, partitions in (("accounts", 3), ("regions", 1), ("clicks", 2)):
            running.create(topic, partitions)
        yield running


@pytest.fixture
def project(own: Broker, tmp_path: Path) -> Path:
    """A dbt project over the topics."""
    folder = tmp_path / "project"
    (folder / "models").mkdir(parents=True)
    settings = {"spark.jars": connector_jars(), "spark.driver.memory": "2g"}
    target = {"type": "differential", "schema": "out", "threads": 2, "server_side_parameters": settings}
    (folder / "profiles.yml").write_text(yaml.safe_dump({"p": {"target": "dev", "outputs": {"dev": target}}}))
    config = {"name": "p", "profile": "p", "models": {"+materialized": "differential"}}
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(config))
    (folder / "models/sources.yml").write_text(_SOURCES.format(servers=own.servers))
    for name, sql in MODELS.items():
        named = {topic: f"{{{{ source('raw', '{topic}') }}}}" for topic in ("accounts", "regions", "clicks")}
        (folder / f"models/{name}.sql").write_text(sql.format(**named))
    return folder


class Watching:
    """`dbt-dd watch` as a process."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "dbt_incremental_dd.cli", "--project-dir", str(folder), "watch"]
        self.log = folder / "watch.log"
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [*command, "--profiles-dir", str(folder), "--every", "5 seconds"],
                stdout=out,
                stderr=out,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )

    def require(self, deadline: float) -> None:
        """That it is there, and in time."""
        assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()[-6000:]

    def until_followed(self) -> None:
        """Its first run is done."""
        deadline = time.monotonic() + 180
        while " s)" not in self.log.read_text():
            self.require(deadline)
            time.sleep(0.2)

    def end(self) -> None:
        """In order, and its JVM with it."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(30)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


def produce(own: Broker, until_followed: Callable[[], None]) -> dict[str, list[tuple[Any, Any]]]:
    """All events at a steady pace once the first are followed, the broker killed in the middle; what was acknowledged,
    in each key's order."""
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": own.servers, "log_level": 0, "acks": "all", "enable.idempotence": True}
    producer = Producer({**settings, "linger.ms": 20, "queue.buffering.max.messages": 500_000})
    acknowledged: dict[str, list[tuple[Any, Any]]] = {"accounts": [], "regions": [], "clicks": []}
    refused: list[Any] = []
    began = time.monotonic()
    for n, (topic, key, value) in enumerate(events()):

        def told(error: Any, message: Any, topic: str = topic, key: Any = key, value: Any = value) -> None:
            if error is None:
                acknowledged[topic].append((key, value))
            else:
                refused.append(error)

        data = None if value is None else json.dumps(value).encode()
        while True:
            try:
                producer.produce(topic, data, None if key is None else str(key).encode(), on_delivery=told)
                break
            except BufferError:
                producer.poll(0.1)
        if n == _FIRST:
            assert producer.flush(60) == 0
            until_followed()
            began = time.monotonic()
        if n % 1000 == 0:
            producer.poll(0)
            time.sleep(max(0.0, began + n * SECONDS / EVENTS - time.monotonic()))
        if n == EVENTS // 2:
            own.kill()
            time.sleep(2)
            own.start()
    assert producer.flush(120) == 0 and not refused, refused[:3]
    assert sum(map(len, acknowledged.values())) == EVENTS
    return acknowledged


def until_taken(own: Broker, folder: Path, watching: Watching) -> None:
    """All sources are at the topics' ends, and all models as far as the sources."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": own.servers, "group.id": "ends", "isolation.level": "read_committed"})
    partitions = {"accounts": 3, "regions": 1, "clicks": 2}
    ends = {
        topic: {str(p): consumer.get_watermark_offsets(TopicPartition(topic, p), 10)[1] for p in range(count)}
        for topic, count in partitions.items()
    }
    consumer.close()
    database = dbt_incremental_dd.open(str(folder / ".dbt_incremental_dd"))
    sources = [database[f"raw.{topic}"] for topic in partitions]
    deadline = time.monotonic() + 240
    while True:
        watching.require(deadline)
        time.sleep(0.5)
        at = [one.manifest["progress"]["offsets"] for one in sources]  # type: ignore[index]
        if at == list(ends.values()):
            last = max(e.upper or 0 for one in sources for e in one.history(1000) if e.updates)
            if all(database[f"out.{name}"].frontiers.upper >= last for name in MODELS):
                return


@pytest.mark.timeout(600)
def test_events_are_followed_while_the_broker_is_killed(
    spark: SparkSession, own: Broker, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    watching = Watching(project)
    began = time.monotonic()
    try:
        acknowledged = produce(own, watching.until_followed)
        produced = time.monotonic()
        until_taken(own, project, watching)
        taken = time.monotonic()
    finally:
        watching.end()
    tables = {name: replay(name, messages) for name, messages in acknowledged.items()}
    for name, table in tables.items():
        spark.createDataFrame(table).createOrReplaceTempView(f"replay_{name}")
    views = {name: f"replay_{name}" for name in tables}
    database = dbt_incremental_dd.open(str(project / ".dbt_incremental_dd"))
    for name, sql in MODELS.items():
        counted = database[f"out.{name}"].as_of()
        assert counted["dd_diff"].unique().to_pylist() == [1]
        found = spark.createDataFrame(counted.drop_columns(["dd_diff"]))
        assert difference(spark.sql(sql.format(**views)), found) == ([], []), name
    taken_in = [e for e in database["raw.clicks"].history(1000) if e.updates]
    assert len(taken_in) > 3, "it was not followed"
    runs = [line for line in watching.log.read_text().splitlines() if " s)" in line or "FAILED" in line]
    with capsys.disabled():
        told = f"{EVENTS} events in {produced - began:.0f} s, taken in {taken - produced:.1f} s after the last"
        print(f"\n{told}; {len(runs)} runs, {sum('FAILED' in run for run in runs)} failed")


def replay(name: str, messages: list[tuple[Any, Any]]) -> pa.Table:
    """What the topic says in the end."""
    rows = [value for _, value in messages] if name == "clicks" else list(dict(_last(messages)).values())
    return pa.Table.from_pylist(rows)


def _last(messages: list[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    known: dict[Any, Any] = {}
    for key, value in messages:
        known.pop(key, None)
        if value is not None:
            known[key] = value
    yield from known.items()
