"""Processes that are ended in the middle: what a topic has is taken in once, and what is published is there once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dbt_incremental_dd
from dbt_incremental_dd.core.errors import ConfigError, SinkError
from dbt_incremental_dd.sinks.kafka import Sink, publish
from dbt_incremental_dd.sources.connectors.kafka.client import Span, extent, messages
from dbt_incremental_dd.sources.connectors.kafka.feed import feed_of
from tests.feeds.kafka import Reader, Writer, kafka, settle, spark, spec_of
from tests.servers.kafka import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["kafka", "spark"]
pytestmark = pytest.mark.kafka
ROOT = Path(__file__).parents[2]


def run(*arguments: str, stop_at: str = "") -> int:
    """A process's exit code."""
    command = [sys.executable, "-m", *arguments]
    environment = {**os.environ, "DD_STOP_AT": stop_at}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr[-4000:]
    return done.returncode


def test_intakes_that_are_ended(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    """Between writing and the commit, and behind it."""
    kafka.create("ended", 3)
    writer = Writer(kafka, "ended")
    sent = 0
    for point in ("source: states written", "source: committed"):
        writer.send(*((None, {"id": n, "v": "a", "n": n}) for n in range(sent, sent + 50)))
        sent += 50
        assert run("tests.feeds.kafka_worker", str(tmp_path), kafka.servers, "ended", stop_at=point) == -signal.SIGKILL
    writer.send(*((None, {"id": n, "v": "a", "n": n}) for n in range(sent, sent + 50)))
    reader = Reader(spark, tmp_path, spec_of(kafka.servers, "ended", envelope="append"))
    shutil.rmtree(tmp_path / "state/scratch")
    reader.time = 10_000
    assert reader.take().rows == 50
    assert reader.rows() == Counter((n, "a", n) for n in range(sent + 50))


class Published:
    """A collection, and the topics that it is published to."""

    def __init__(self, spark: SparkSession, kafka: Broker, folder: Path, name: str) -> None:
        self.kafka = kafka
        self.name = name
        kafka.create(f"{name}-in", 2)
        self.writer = Writer(kafka, f"{name}-in")
        self.source = Reader(
            spark, folder / "source", spec_of(kafka.servers, f"{name}-in", envelope="upsert", key="id")
        )
        self.collection = dbt_incremental_dd.open(self.source.storage.root)
        self.step = 0
        for form in ("upsert", "debezium"):
            kafka.create(f"{name}-{form}", 3)
        meta: dict[str, dict[str, Any]] = {
            "upsert": {"envelope": "upsert", "key": "id", "options": {"key.format": "json"}},
            "debezium": {"envelope": "debezium", "key": "id"},
        }
        self.readers = {
            form: Reader(spark, folder / form, spec_of(kafka.servers, f"{name}-{form}", **one))
            for form, one in meta.items()
        }

    def change(self) -> None:
        """Rows that come, change and go, at one more time."""
        self.step += 1
        rows: list[tuple[Any, Any]] = [
            (str(n), {"v": f"v{self.step}", "n": self.step}) for n in range(0, 30, self.step)
        ]
        rows += [(str(n), None) for n in range(1, 30, 3 + self.step)]
        self.writer.send(*rows)
        self.source.take()

    def sink(self, form: Any) -> Sink:
        return Sink(f"{self.name}-{form}", ("id",), {"bootstrap.servers": self.kafka.servers}, form)

    def arguments(self, form: str) -> Sequence[str]:
        where = ["--state-root", self.source.storage.root, "publish", "s.t", "--topic", f"{self.name}-{form}"]
        return [
            "dbt_incremental_dd.cli",
            *where,
            "--key",
            "id",
            "--form",
            form,
            "--option",
            f"bootstrap.servers={self.kafka.servers}",
        ]

    def sent(self, form: str) -> list[tuple[int, bytes]]:
        """The time of each event that is committed, and its key; tombstones of the form debezium are none."""
        feed = feed_of(self.readers[form].spec)
        settle(self.kafka, feed.topic)
        found = extent(feed)
        spans = [Span(p, found.first[p], end) for p, end in found.end.items()]
        rows = [row for table in messages(feed, spans) for row in table.to_pylist()]
        return [(json.loads(row["value"])["ts_ms"], row["key"]) for row in rows if row["value"] is not None]

    def check(self) -> None:
        """What is read back is what was published."""
        for reader in self.readers.values():
            settle(self.kafka, str(reader.spec.topic))
            reader.take()
            assert reader.rows() == self.source.rows()


def test_what_is_published_reads_back(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    """By itself after each change, and by one that comes late."""
    published = Published(spark, kafka, tmp_path, "roundtrip")
    for step in range(4):
        published.change()
        publish(published.collection["s.t"], published.sink("debezium"), once=True)
        if step != 2:
            publish(published.collection["s.t"], published.sink("upsert"), once=True)
            published.check()
    before = published.sent("debezium")
    publish(published.collection["s.t"], published.sink("debezium"), once=True)
    assert published.sent("debezium") == before


def test_publishers_that_are_ended(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    """Before a commit, behind it, and whenever."""
    published = Published(spark, kafka, tmp_path, "publishers")
    arguments = published.arguments("debezium")
    for point in ("publish: sent", "publish: committed", "publish: sent#2"):
        published.change()
        published.change()
        assert run(*arguments, stop_at=point) == -signal.SIGKILL
    following = subprocess.Popen([sys.executable, "-m", *arguments], cwd=ROOT)
    for _ in range(3):
        published.change()
    time.sleep(1.0)
    following.kill()
    following.wait()
    published.change()
    assert run(*arguments, "--once") == 0
    assert run(*published.arguments("upsert"), "--once") == 0
    published.check()
    sent = published.sent("debezium")
    assert len(sent) == len(set(sent))
    table = published.collection["s.t"].changes(after=min(t for t, _ in sent))
    expected = {
        (t, f'{{"id":{id}}}'.encode())
        for t, id in zip(table["dd_time"].to_pylist(), table["id"].to_pylist(), strict=True)
    }
    assert {one for one in sent if one[0] > min(t for t, _ in sent)} == expected


def test_a_second_publisher_ends_the_first(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    published = Published(spark, kafka, tmp_path, "fenced")
    published.change()
    with (tmp_path / "first.log").open("wb") as log:
        command = [sys.executable, "-m", *published.arguments("debezium")]
        first = subprocess.Popen(command, cwd=ROOT, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while not published.sent("debezium"):
            assert first.poll() is None and time.monotonic() < deadline
            time.sleep(0.2)
        publish(published.collection["s.t"], published.sink("debezium"), once=True)
        published.change()
        assert first.wait(60) == 1
    finally:
        first.kill()
    assert "cannot be published" in (tmp_path / "first.log").read_text()
    publish(published.collection["s.t"], published.sink("debezium"), once=True)
    sent = published.sent("debezium")
    assert len(sent) == len(set(sent)) and len({t for t, _ in sent}) == 2


def test_what_cannot_be_published(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    published = Published(spark, kafka, tmp_path, "refused")
    published.change()
    collection = published.collection["s.t"]
    servers = {"bootstrap.servers": kafka.servers}
    with pytest.raises(SinkError, match="there is no topic nowhere"):
        publish(collection, Sink("nowhere", ("id",), servers), once=True)
    with pytest.raises(ConfigError, match="the key of what is published is nope"):
        publish(collection, Sink("refused-upsert", ("nope",), servers), once=True)
    with pytest.raises(ConfigError, match="publishing needs"):
        publish(collection, Sink("refused-upsert", ("id",), {}), once=True)
    with pytest.raises(ConfigError, match="has several rows"):
        publish(collection, Sink("refused-upsert", ("v",), servers), once=True)
    assert published.sent("upsert") == []
    with pytest.raises(SinkError, match="cannot be published"):
        publish(
            collection,
            Sink(
                "refused-upsert",
                ("id",),
                {"bootstrap.servers": "127.0.0.1:9", "socket.connection.setup.timeout.ms": "1000"},
            ),
            once=True,
        )
